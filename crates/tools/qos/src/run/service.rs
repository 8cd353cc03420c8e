//! The main thread: signals, and clients of the control socket (docs/control-protocol.md).

use std::convert::Infallible;

use anyhow::{Context, Result};
use reactor::{Interest, PollerKind, Reactor, Ready, Signal, Signals, StoreKind, Waker};

use super::shaping::Shaping;
use control::service::{Answer, Service as Clients, Socket};

/// Tags of watched descriptors; those of clients contain `CLIENTS`.
const SIGNALS: u64 = 0;
const ENDED: u64 = 1;
const CLIENTS: u64 = 1 << 32;

/// Everything that the main thread waits for.
pub(super) struct Service {
    reactor: Reactor,
    signals: Signals,
    clients: Clients<Infallible>,
    shaping: Shaping,
    is_over: bool,
}

impl Service {
    pub(super) fn new(
        signals: Signals,
        socket: Socket,
        ended: &Waker,
        shaping: Shaping,
    ) -> Result<Self> {
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::default())?;
        reactor.add(&signals, "signals", SIGNALS, Interest::READ)?;
        reactor.add(ended, "engine", ENDED, Interest::READ)?;
        let clients = Clients::new(socket, CLIENTS, &mut reactor)?;
        Ok(Self {
            reactor,
            signals,
            clients,
            shaping,
            is_over: false,
        })
    }

    /// Serves until a signal asks for the end, or the engine has ended.
    ///
    /// # Errors
    /// A system call failed.
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
                        // The engine's own result describes the failure.
                        Signal::Hangup => drop(self.shaping.reload_and_say()),
                    }
                }
            }
            ENDED => self.is_over = true,
            _ => self
                .clients
                .ready(ready, &mut self.reactor, &mut self.shaping),
        }
        Ok(())
    }
}

impl Answer for Shaping {
    type Rest = Infallible;

    fn answer(&mut self, line: &[u8], out: &mut Vec<u8>) -> Option<Infallible> {
        self.answer_at_once(line, out);
        None
    }

    fn go_on(&mut self, rest: Infallible, _: &mut Vec<u8>) -> Option<Infallible> {
        match rest {}
    }
}
