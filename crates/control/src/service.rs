//! Serves the clients of a control socket from a loop that has other work: it answers a request at once, or in pieces
//! as the client reads. A client that does not read costs only its own buffer.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use reactor::{Interest, Reactor, Ready, Token};

use super::lines::{Heard, Lines, is_shortage};
use super::reply::{Code, Refusal};

/// Clients at a time.
const CLIENTS_MAX: usize = 16;
/// Mode of the socket's file: its owner and group may use it.
const MODE: u32 = 0o660;
/// In a descriptor's number: the listener; clients have lower ones.
const LISTENER: u32 = u32::MAX;

/// Something that answers requests.
pub trait Answer {
    /// The rest of a reply that is written in pieces.
    type Rest;

    /// Answers a request line. The rest of a long reply is asked for when the client has read.
    fn answer(&mut self, line: &[u8], out: &mut Vec<u8>) -> Option<Self::Rest>;

    /// Continues a reply.
    fn go_on(&mut self, rest: Self::Rest, out: &mut Vec<u8>) -> Option<Self::Rest>;
}

struct Connection<R> {
    stream: UnixStream,
    token: Token,
    lines: Lines,
    rest: Option<R>,
}

/// A control socket; dropping it removes its file.
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Listens at `path`.
    ///
    /// # Errors
    /// Another process answers there, or the path cannot be used.
    pub fn listen(path: &Path) -> Result<Self> {
        let listener = reactor::unix::listen(path, MODE).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => {
                anyhow!("{error}; end it, or give this one another socket with --socket PATH")
            }
            _ => anyhow!("control socket {}: {error}", path.display()),
        })?;
        let path = path.to_owned();
        Ok(Self { listener, path })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            let path = self.path.display();
            eprintln!("headend: {path}: the socket's name could not be removed: {error}");
        }
    }
}

/// A socket and its clients.
pub struct Service<R> {
    socket: Socket,
    listening: Token,
    is_accepting: bool,
    /// Marks the reactor's tokens of this service.
    tag: u64,
    clients: BTreeMap<u32, Connection<R>>,
    /// The number of the next client.
    next: u32,
}

impl<R> Service<R> {
    /// Watches the socket. The lower 32 bits of `tag` are not used.
    ///
    /// # Errors
    /// The socket cannot be watched.
    pub fn new(socket: Socket, tag: u64, reactor: &mut Reactor) -> Result<Self> {
        let user = tag | u64::from(LISTENER);
        let listener = &socket.listener;
        let listening = reactor.add_from_reserve(listener, "control", user, Interest::READ);
        Ok(Self {
            listening: listening.context("control socket")?,
            socket,
            is_accepting: true,
            tag,
            clients: BTreeMap::new(),
            next: 0,
        })
    }

    /// Serves one of its descriptors that is ready.
    pub fn ready(&mut self, ready: Ready, reactor: &mut Reactor, who: &mut impl Answer<Rest = R>) {
        match ready.user as u32 {
            LISTENER => self.accept(reactor),
            client => self.attend(client, ready, reactor, who),
        }
    }

    fn accept(&mut self, reactor: &mut Reactor) {
        loop {
            match self.socket.listener.accept() {
                Ok((stream, _)) => self.welcome(stream, reactor),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    // Without a free descriptor, no client is accepted until another leaves.
                    if is_shortage(&error) {
                        self.accept_again(false, reactor);
                    }
                    return;
                }
            }
        }
    }

    fn accept_again(&mut self, again: bool, reactor: &mut Reactor) {
        let interest = if again {
            Interest::READ
        } else {
            Interest::NONE
        };
        if reactor.set_interest(self.listening, interest).is_ok() {
            self.is_accepting = again;
        }
    }

    fn welcome(&mut self, mut stream: UnixStream, reactor: &mut Reactor) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let mut lines = Lines::default();
        let count = self.clients.len();
        if count >= CLIENTS_MAX {
            let message = format!("{count} control clients are connected already");
            lines.close_with(&Refusal::new(Code::Limit, message));
            // A line that does not fit into an empty socket buffer is not worth a wait.
            lines.write(&mut stream);
            return;
        }
        let number = self.next;
        let user = self.tag | u64::from(number);
        if let Ok(token) = reactor.add_from_reserve(&stream, "control client", user, Interest::READ)
        {
            self.next = (self.next + 1) % LISTENER;
            let connection = Connection {
                stream,
                token,
                lines,
                rest: None,
            };
            self.clients.insert(number, connection);
        }
    }

    /// Reads from a client, replies as far as it reads, and waits for the next event.
    fn attend(
        &mut self,
        number: u32,
        ready: Ready,
        reactor: &mut Reactor,
        who: &mut impl Answer<Rest = R>,
    ) {
        let Some(client) = self.clients.get_mut(&number) else {
            return;
        };
        let (lines, stream, rest) = (&mut client.lines, &mut client.stream, &mut client.rest);
        let heard = if ready.readiness.readable() {
            lines.read(stream)
        } else {
            Heard::Fine
        };
        if ready.readiness.hangup() || heard == Heard::Lost {
            lines.hang_up();
        }
        loop {
            if lines.is_deaf() {
                *rest = None;
            }
            while !lines.is_full() {
                if let Some(left) = rest.take() {
                    *rest = who.go_on(left, lines.out());
                } else if !lines.next_line(|line, out| *rest = who.answer(line, out)) {
                    break;
                }
            }
            let is_done = rest.is_none() && lines.is_done();
            if lines.write(stream) == Heard::Lost {
                lines.hang_up();
                continue;
            }
            if is_done && lines.is_done() {
                return self.close(number, reactor);
            }
            if lines.has_output() || rest.is_none() && !lines.has_line() {
                break;
            }
        }
        if rest.is_none() && lines.is_done() {
            return self.close(number, reactor);
        }
        let mut interest = Interest::NONE;
        if lines.wants_input() && rest.is_none() {
            interest = interest.with(Interest::READ);
        }
        if lines.has_output() {
            interest = interest.with(Interest::WRITE);
        }
        if reactor.set_interest(client.token, interest).is_err() {
            self.close(number, reactor);
        }
    }

    fn close(&mut self, number: u32, reactor: &mut Reactor) {
        // A descriptor is closed only after the poller has stopped watching it.
        if let Some(gone) = self.clients.remove(&number) {
            reactor.remove(gone.token);
        }
        if !self.is_accepting {
            self.accept_again(true, reactor);
        }
    }
}
