//! One control client: its input and output lines, both bounded, and the requests it has sent. It
//! knows nothing of the socket, which [`super::server`] owns.

use std::collections::VecDeque;
use std::io::{Read, Write};

use base::slab::Key;
use base::{Instant, Slab};
use reactor::Slice;

use control::lines::{Heard, Lines};
use control::reply::{self, Created, Refusal};
use control::request;

/// Limit of tunnels and sessions that one client may be creating at a time; further ones wait.
const WAITING_MAX: u32 = 16 * 1024;

const QUEUE_MAX: usize = 256;

pub(super) struct Client<J> {
    lines: Lines,
    queue: VecDeque<J>,
    tickets: Slab<Ticket>,
    waiting: u32,
}

/// What is left of a turn for the requests of one client: a number of steps, and the time of all clients together.
pub(super) struct Steps {
    left: usize,
    slice: Slice,
}

impl Steps {
    pub(super) fn new(left: usize, slice: Slice) -> Self {
        Self { left, slice }
    }

    /// Whether another step may be done.
    pub(super) fn are_left(&self) -> bool {
        self.left > 0 && !self.slice.is_over()
    }

    /// Takes a step; `false` if none is left. A step may be a row, or a tunnel that is opened.
    pub(super) fn next(&mut self) -> bool {
        let is_left = self.are_left();
        self.left -= usize::from(is_left);
        is_left
    }
}

impl Steps {
    /// No further step may be done in this turn: what the work waits for needs another one.
    pub(super) fn end(&mut self) {
        self.left = 0;
    }
}

/// A request that replies once for each creation that finishes.
#[derive(Debug)]
pub(super) struct Ticket {
    id: u64,
    /// In progress.
    left: u32,
    rows: u64,
    /// Every creation has been started.
    begun: bool,
}

impl<J> Default for Client<J> {
    fn default() -> Self {
        Self {
            lines: Lines::default(),
            queue: VecDeque::new(),
            tickets: Slab::default(),
            waiting: 0,
        }
    }
}

impl<J> Client<J> {
    /// Whether more of its input should be read.
    pub(super) fn wants_input(&self) -> bool {
        self.lines.wants_input()
    }

    /// Whether bytes wait to be written.
    pub(super) fn has_output(&self) -> bool {
        self.lines.has_output()
    }

    /// Whether a request can continue now.
    pub(super) fn can_work(&self) -> bool {
        let has_work = !self.queue.is_empty() || self.lines.has_line();
        !self.is_full() && !self.lines.is_closing() && has_work
    }

    /// Whether the connection can be closed.
    pub(super) fn is_done(&self) -> bool {
        let waits = self.waiting > 0 && !self.lines.is_deaf();
        let idle = self.queue.is_empty() && !waits;
        self.lines.is_done() && (idle || self.lines.is_closing())
    }

    /// Reads pending input, up to the limit.
    pub(super) fn read(&mut self, stream: &mut impl Read) -> Heard {
        self.lines.read(stream)
    }

    /// The client reads no more: its complete requests are still carried out.
    pub(super) fn hang_up(&mut self) {
        self.lines.hang_up();
    }

    /// Whether the client reads no more.
    pub(super) fn is_deaf(&self) -> bool {
        self.lines.is_deaf()
    }

    /// Writes as much output as the socket takes.
    pub(super) fn write(&mut self, stream: &mut impl Write) -> Heard {
        self.lines.write(stream)
    }

    /// Parses complete lines into requests, up to the queue's limit.
    pub(super) fn take_lines(&mut self)
    where
        J: From<request::Request>,
    {
        let queue = &mut self.queue;
        while queue.len() < QUEUE_MAX
            && self
                .lines
                .next_line(|line, out| match request::parse(line) {
                    Ok(request) => queue.push_back(J::from(request)),
                    Err((id, refusal)) => reply::refused(out, id, &refusal),
                })
        {}
    }

    /// Sends the reason, and closes once it is written.
    pub(super) fn close_with(&mut self, refusal: &Refusal) {
        self.lines.close_with(refusal);
    }

    /// Takes the next request to work on.
    pub(super) fn next_job(&mut self) -> Option<J> {
        if self.can_work() {
            self.queue.pop_front()
        } else {
            None
        }
    }

    /// Puts back an unfinished request.
    pub(super) fn keep(&mut self, job: J) {
        self.queue.push_front(job);
    }

    /// The buffer that replies are appended to.
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        self.lines.out()
    }

    /// Bytes of replies waiting to be written.
    pub(super) fn out_len(&self) -> usize {
        self.lines.out_len()
    }

    /// Whether the replies have reached the limit.
    pub(super) fn is_full(&self) -> bool {
        self.lines.is_full() || self.waiting >= WAITING_MAX && !self.lines.is_deaf()
    }

    /// Opens a ticket for a request whose creations report later.
    pub(super) fn open_ticket(&mut self, id: u64) -> Key {
        self.tickets.insert(Ticket {
            id,
            left: 0,
            rows: 0,
            begun: false,
        })
    }

    /// One creation of `ticket` has started.
    pub(super) fn begin(&mut self, ticket: Key) {
        if let Some(ticket) = self.tickets.get_mut(ticket) {
            ticket.left += 1;
            self.waiting += 1;
        }
    }

    /// Reports a creation of `ticket` that failed before it started, or that the client does not
    /// wait for.
    pub(super) fn report(&mut self, ticket: Key, created: Created<'_>) {
        if let Some(ticket) = self.tickets.get_mut(ticket) {
            ticket.rows += 1;
            reply::created(self.lines.out(), ticket.id, created);
        }
    }

    /// Reports a creation of `ticket` that is now up or has failed.
    pub(super) fn settle(&mut self, ticket: Key, created: Created<'_>) {
        self.report(ticket, created);
        if let Some(open) = self.tickets.get_mut(ticket) {
            open.left -= 1;
            self.waiting -= 1;
            self.end_if_settled(ticket);
        }
    }

    /// One request goes on elsewhere, and its client stays for the answer.
    pub(super) fn wait(&mut self) {
        self.waiting += 1;
    }

    /// The request of an earlier [`Client::wait`] has come back, with the rest of its work if there is any.
    pub(super) fn resume(&mut self, rest: Option<J>) {
        self.waiting -= 1;
        self.queue.extend(rest);
    }

    /// Every creation of `ticket` has started.
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
            reply::end(self.lines.out(), ticket.id, ticket.rows);
            self.tickets.remove(key);
        }
    }
}

/// Milliseconds from `start` to `end`, with microsecond precision.
pub(super) fn ms(start: Instant, end: Instant) -> f64 {
    (end.since(start).as_nanos() / 1000) as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_with_their_number_or_with_the_time_of_all() {
        let mut steps = Steps::new(2, Slice::until(Instant::FAR_FUTURE));
        assert_eq!([(); 3].map(|()| steps.next()), [true, true, false]);
        let mut late = Steps::new(2, Slice::until(Instant::ZERO));
        assert!(!late.are_left() && !late.next());
    }
}
