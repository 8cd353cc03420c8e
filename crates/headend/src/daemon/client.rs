//! One control client: its lines in, its lines out, both bounded, and what it has
//! asked for.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};

use base::slab::Key;
use base::{Instant, Slab};

use super::jobs::Job;
use crate::control::LINE_MAX;
use crate::control::reply::{self, Code, Created, Refusal};
use crate::control::request;

/// Unsent bytes from which on a client's requests rest until it has read some.
pub(super) const OUT_HIGH: usize = 128 * 1024;

/// Creations of one client that may be under way; more wait their turn.
const WAITING_MAX: u32 = 16 * 1024;

/// Requests read and not begun; the lines behind them stay unread.
const QUEUE_MAX: usize = 256;

/// Bytes read ahead.
const INPUT_MAX: usize = 4 * LINE_MAX;

/// A client's side of the daemon. It knows nothing of the socket itself.
#[derive(Default)]
pub(super) struct Client {
    input: Vec<u8>,
    out: Vec<u8>,
    written: usize,
    queue: VecDeque<Job>,
    tickets: Slab<Ticket>,
    waiting: u32,
    /// The client sends no more.
    ended: bool,
    /// Nothing more is to be done for it but to write what is there.
    closing: bool,
}

/// A request whose creations report when they are up.
#[derive(Debug)]
pub(super) struct Ticket {
    id: u64,
    /// Under way.
    left: u32,
    rows: u64,
    /// Every one has been begun.
    begun: bool,
}

/// What reading has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing to see to.
    Fine,
    /// The connection failed.
    Lost,
}

impl Client {
    /// Whether more of its input should be read.
    pub(super) fn wants_input(&self) -> bool {
        !self.ended && !self.closing && self.input.len() < INPUT_MAX && self.out_len() < OUT_HIGH
    }

    /// Whether bytes wait to be written.
    pub(super) fn has_output(&self) -> bool {
        self.out_len() > 0
    }

    /// Whether a request can go on now.
    pub(super) fn can_work(&self) -> bool {
        let room = self.out_len() < OUT_HIGH && self.waiting < WAITING_MAX;
        room && !self.closing && (!self.queue.is_empty() || self.has_line())
    }

    /// Whether the connection has served its purpose.
    pub(super) fn is_done(&self) -> bool {
        let idle = self.queue.is_empty() && self.waiting == 0 && !self.has_line();
        !self.has_output() && (self.closing || self.ended && idle)
    }

    /// Reads what is there, up to the bound.
    pub(super) fn read(&mut self, stream: &mut impl Read) -> Heard {
        while self.wants_input() {
            let start = self.input.len();
            self.input.resize(start + LINE_MAX, 0);
            let read = stream.read(&mut self.input[start..]);
            self.input.truncate(start + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => self.ended = true,
                Ok(count) if count < LINE_MAX => return Heard::Fine,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Heard::Fine,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Heard::Lost,
            }
        }
        Heard::Fine
    }

    /// Writes what the other side takes.
    pub(super) fn write(&mut self, stream: &mut impl Write) -> Heard {
        while self.has_output() {
            match stream.write(&self.out[self.written..]) {
                Ok(0) => return Heard::Lost,
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Heard::Fine,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Heard::Lost,
            }
        }
        self.out.clear();
        self.out.shrink_to(2 * OUT_HIGH);
        self.written = 0;
        Heard::Fine
    }

    /// Takes whole lines apart into requests, as many as may wait.
    pub(super) fn take_lines(&mut self) {
        let mut start = 0;
        while self.queue.len() < QUEUE_MAX && !self.closing {
            let Some(length) = self.input[start..].iter().position(|&byte| byte == b'\n') else {
                break;
            };
            let line = &self.input[start..start + length];
            match line.len() {
                0 => {}
                1..=LINE_MAX => match request::parse(line) {
                    Ok(request) => self.queue.push_back(Job::new(request)),
                    Err((id, refusal)) => reply::refused(&mut self.out, id, &refusal),
                },
                _ => self.refuse_line(),
            }
            start += length + 1;
        }
        self.input.drain(..start);
        if self.input.len() > LINE_MAX && !self.has_line() {
            self.refuse_line();
        }
    }

    fn refuse_line(&mut self) {
        let message = format!("a line has more than {LINE_MAX} bytes");
        self.close_with(&Refusal::new(Code::BadRequest, message));
    }

    /// Says why, and closes once that is written.
    pub(super) fn close_with(&mut self, refusal: &Refusal) {
        reply::refused(&mut self.out, 0, refusal);
        self.closing = true;
        self.input.clear();
    }

    /// The request in turn, to go on with.
    pub(super) fn next_job(&mut self) -> Option<Job> {
        if self.can_work() {
            self.queue.pop_front()
        } else {
            None
        }
    }

    /// Puts back a request that is not done.
    pub(super) fn keep(&mut self, job: Job) {
        self.queue.push_front(job);
    }

    /// Where replies are appended.
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Whether the replies have reached the bound.
    pub(super) fn is_full(&self) -> bool {
        self.out_len() >= OUT_HIGH || self.waiting >= WAITING_MAX
    }

    /// Opens the account of a request whose creations report later.
    pub(super) fn open_ticket(&mut self, id: u64) -> Key {
        self.tickets.insert(Ticket {
            id,
            left: 0,
            rows: 0,
            begun: false,
        })
    }

    /// One creation of `ticket` is under way.
    pub(super) fn begin(&mut self, ticket: Key) {
        if let Some(ticket) = self.tickets.get_mut(ticket) {
            ticket.left += 1;
            self.waiting += 1;
        }
    }

    /// One creation of `ticket` has come to nothing before it began, or nobody
    /// waits for it.
    pub(super) fn report(&mut self, ticket: Key, created: Created<'_>) {
        if let Some(ticket) = self.tickets.get_mut(ticket) {
            ticket.rows += 1;
            reply::created(&mut self.out, ticket.id, created);
        }
    }

    /// One creation of `ticket` that was under way is up or has failed.
    pub(super) fn settle(&mut self, ticket: Key, created: Created<'_>) {
        self.report(ticket, created);
        if let Some(open) = self.tickets.get_mut(ticket) {
            open.left -= 1;
            self.waiting -= 1;
            self.end_if_settled(ticket);
        }
    }

    /// Every creation of `ticket` has begun.
    pub(super) fn all_begun(&mut self, ticket: Key) {
        if let Some(open) = self.tickets.get_mut(ticket) {
            open.begun = true;
            self.end_if_settled(ticket);
        }
    }

    fn end_if_settled(&mut self, key: Key) {
        if let Some(ticket) = self.tickets.get(key)
            && ticket.begun
            && ticket.left == 0
        {
            reply::end(&mut self.out, ticket.id, ticket.rows);
            self.tickets.remove(key);
        }
    }

    fn out_len(&self) -> usize {
        self.out.len() - self.written
    }

    fn has_line(&self) -> bool {
        self.input.contains(&b'\n')
    }
}

/// Milliseconds from `start` to `end`, to the microsecond.
pub(super) fn ms(start: Instant, end: Instant) -> f64 {
    (end.since(start).as_nanos() / 1000) as f64 / 1000.0
}

/// Whether an accept failed because no descriptor was free.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    let shortages = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
    shortages
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
