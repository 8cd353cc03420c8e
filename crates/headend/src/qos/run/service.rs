//! The main thread: signals, and control clients as docs/control-protocol.md has them. A client that does not read
//! costs its own buffer and nobody else's time.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::net::{UnixListener, UnixStream};

use anyhow::{Context, Result};
use reactor::{Interest, PollerKind, Reactor, Ready, Signal, Signals, StoreKind, Token, Waker};

use super::shaping::Shaping;
use crate::control::lines::{Heard, Lines, is_shortage};
use crate::control::reply::{Code, Refusal};

/// Clients at a time.
const CLIENTS_MAX: usize = 16;

/// What a watched descriptor is; clients are numbered from the last one on.
const SIGNALS: u64 = 0;
const LISTENER: u64 = 1;
const ENDED: u64 = 2;
const CLIENT: u64 = 3;

struct Connection {
    stream: UnixStream,
    token: Token,
    lines: Lines,
}

/// Everything that the main thread waits for.
pub(super) struct Service<'s> {
    reactor: Reactor,
    signals: Signals,
    listener: &'s UnixListener,
    listening: Token,
    is_accepting: bool,
    clients: BTreeMap<u64, Connection>,
    /// The number of the next client.
    next: u64,
    shaping: Shaping,
    is_over: bool,
}

impl<'s> Service<'s> {
    pub(super) fn new(
        signals: Signals,
        listener: &'s UnixListener,
        ended: &Waker,
        shaping: Shaping,
    ) -> Result<Self> {
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::default())?;
        reactor.add(&signals, "signals", SIGNALS, Interest::READ)?;
        reactor.add(ended, "engine", ENDED, Interest::READ)?;
        let listening = reactor.add(listener, "control", LISTENER, Interest::READ)?;
        Ok(Self {
            reactor,
            signals,
            listener,
            listening,
            is_accepting: true,
            clients: BTreeMap::new(),
            next: CLIENT,
            shaping,
            is_over: false,
        })
    }

    /// Serves until a signal asks for the end, or the engine has ended.
    ///
    /// # Errors
    /// The system failed.
    pub(super) fn run(&mut self) -> Result<()> {
        while !self.is_over {
            self.reactor.wait(None).context("the event loop failed")?;
            while let Some(ready) = self.reactor.next_ready() {
                self.ready(ready)?;
            }
        }
        Ok(())
    }

    fn ready(&mut self, ready: Ready) -> Result<()> {
        match ready.user {
            SIGNALS => {
                while let Some(signal) = self.signals.next_signal()? {
                    match signal {
                        Signal::Terminate | Signal::Interrupt => self.is_over = true,
                        // It has said what there is to say.
                        Signal::Hangup => drop(self.shaping.reload_and_say()),
                    }
                }
            }
            ENDED => self.is_over = true,
            LISTENER => self.accept(),
            client => self.attend(client, ready),
        }
        Ok(())
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.welcome(stream),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    // Without a descriptor, nobody is taken until another goes.
                    if is_shortage(&error) {
                        self.accept_again(false);
                    }
                    return;
                }
            }
        }
    }

    fn accept_again(&mut self, again: bool) {
        let interest = if again {
            Interest::READ
        } else {
            Interest::NONE
        };
        if self.reactor.set_interest(self.listening, interest).is_ok() {
            self.is_accepting = again;
        }
    }

    fn welcome(&mut self, mut stream: UnixStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let mut lines = Lines::default();
        let count = self.clients.len();
        if count >= CLIENTS_MAX {
            let message = format!("{count} control clients are connected already");
            lines.close_with(&Refusal::new(Code::Limit, message));
            // What does not fit into an empty socket buffer is not worth a wait.
            lines.write(&mut stream);
            return;
        }
        let number = self.next;
        let reactor = &mut self.reactor;
        match reactor.add_from_reserve(&stream, "control client", number, Interest::READ) {
            Ok(token) => {
                self.next += 1;
                let connection = Connection {
                    stream,
                    token,
                    lines,
                };
                self.clients.insert(number, connection);
            }
            Err(error) => eprintln!("headend qos: a control client cannot be served: {error}"),
        }
    }

    /// Hears a client, answers as much as it reads, and waits for what is next.
    fn attend(&mut self, number: u64, ready: Ready) {
        let Some(client) = self.clients.get_mut(&number) else {
            return;
        };
        let (lines, stream) = (&mut client.lines, &mut client.stream);
        let mut heard = Heard::Fine;
        if ready.readiness.readable() && !ready.readiness.hangup() {
            heard = lines.read(stream);
        }
        if ready.readiness.hangup() || heard == Heard::Lost {
            return self.close(number);
        }
        loop {
            while !lines.is_full() && lines.next_line(|line, out| self.shaping.answer(line, out)) {}
            if lines.write(stream) == Heard::Lost || lines.is_done() {
                return self.close(number);
            }
            if lines.has_output() || !lines.has_line() {
                break;
            }
        }
        let mut interest = Interest::NONE;
        if lines.wants_input() {
            interest = interest.with(Interest::READ);
        }
        if lines.has_output() {
            interest = interest.with(Interest::WRITE);
        }
        if self.reactor.set_interest(client.token, interest).is_err() {
            self.close(number);
        }
    }

    fn close(&mut self, number: u64) {
        // It is not closed before it is no longer watched.
        if let Some(gone) = self.clients.remove(&number) {
            self.reactor.remove(gone.token);
        }
        if !self.is_accepting {
            self.accept_again(true);
        }
    }
}
