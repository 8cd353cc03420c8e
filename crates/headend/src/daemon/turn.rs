//! One turn of the loop: wait, read, fire timers, serve control clients, send,
//! tell what happened.

use std::io;

use base::{Datagram, Duration, Instant, Machine, Route};
use l2tp::Endpoint;
use reactor::{HandlerId, Interest, Reactor, Ready, RecvBatch, Signal, Signals};

use super::events::Summary;
use super::server::Server;
use super::sockets::Sockets;

/// Batches read from one socket before others have their turn.
const READS: usize = 4;

/// What a watched descriptor is, in the 64 bits that the reactor keeps for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Signals,
    Listener,
    /// A UDP socket by its number.
    Udp(u32),
    /// A control client by its place.
    Client(u32),
}

impl Source {
    pub(super) fn to_bits(self) -> u64 {
        let (kind, number) = match self {
            Source::Signals => (0, 0),
            Source::Listener => (1, 0),
            Source::Udp(number) => (2, number),
            Source::Client(number) => (3, number),
        };
        kind << 32 | u64::from(number)
    }

    fn from_bits(bits: u64) -> Self {
        let number = bits as u32;
        match bits >> 32 {
            0 => Source::Signals,
            1 => Source::Listener,
            2 => Source::Udp(number),
            _ => Source::Client(number),
        }
    }
}

/// What the loop's time is booked on.
pub(super) struct Accounts {
    read: HandlerId,
    input: HandlerId,
    timers: HandlerId,
    control: HandlerId,
    output: HandlerId,
    write: HandlerId,
    events: HandlerId,
}

impl Accounts {
    pub(super) fn open(reactor: &mut Reactor) -> Self {
        Self {
            read: reactor.handler("udp read"),
            input: reactor.handler("l2tp input"),
            timers: reactor.handler("l2tp timers"),
            control: reactor.handler("control"),
            output: reactor.handler("l2tp output"),
            write: reactor.handler("udp write"),
            events: reactor.handler("events"),
        }
    }
}

/// What control clients act on.
pub(super) struct Core {
    pub(super) reactor: Reactor,
    pub(super) endpoint: Endpoint,
    pub(super) sockets: Sockets,
    /// The turn's time.
    pub(super) now: Instant,
    pub(super) started: Instant,
    /// When the end waits no longer; set once a signal asked for the end.
    pub(super) stop_at: Option<Instant>,
    pub(super) timers: base::timer::TimerKind,
}

/// The daemon.
pub(super) struct Daemon {
    pub(super) core: Core,
    pub(super) server: Server,
    pub(super) summary: Summary,
    pub(super) signals: Signals,
    pub(super) received: RecvBatch,
    pub(super) composed: Vec<u8>,
    pub(super) accounts: Accounts,
    pub(super) shutdown_wait: Duration,
}

impl Daemon {
    /// Runs until a signal asked for the end and the peers know.
    pub(super) fn run(&mut self) -> io::Result<()> {
        while !self.is_over() {
            self.turn()?;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let quiet = || self.core.endpoint.is_quiet() && !self.core.sockets.is_blocked();
        self.core
            .stop_at
            .is_some_and(|at| at <= self.core.now || quiet())
    }

    fn turn(&mut self) -> io::Result<()> {
        let deadline = self.deadline();
        self.core.now = self.core.reactor.wait(deadline)?;
        while let Some(ready) = self.core.reactor.next_ready() {
            self.ready(ready)?;
        }
        self.fire_timers();
        if self.server.has_work() {
            self.server.serve(&mut self.core);
            self.core.reactor.lap(self.accounts.control);
        }
        self.send();
        if self.tell() {
            self.server.flush(&mut self.core);
            self.core.reactor.lap(self.accounts.events);
        }
        Ok(())
    }

    /// When the next wait has to end.
    fn deadline(&self) -> Option<Instant> {
        if self.server.has_work() {
            return Some(self.core.now);
        }
        let timer = self.core.endpoint.poll_timeout().map(|(at, _)| at);
        [timer, self.summary.due(), self.core.stop_at]
            .into_iter()
            .flatten()
            .min()
    }

    fn ready(&mut self, ready: Ready) -> io::Result<()> {
        match Source::from_bits(ready.user) {
            Source::Udp(number) => {
                if ready.readiness.writable() {
                    self.core.sockets.writable(number, &mut self.core.reactor);
                }
                if ready.readiness.readable() {
                    self.receive(number, ready)?;
                }
            }
            Source::Listener => self.server.accept(&mut self.core),
            Source::Client(place) => self.server.ready(place, ready.readiness, &mut self.core),
            Source::Signals => {
                while let Some(signal) = self.signals.next_signal()? {
                    self.signal(signal);
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self, number: u32, ready: Ready) -> io::Result<()> {
        let Self {
            core,
            received,
            accounts,
            ..
        } = self;
        for _ in 0..READS {
            match core.sockets.receive(number, received) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => {
                    // A socket that cannot be read would be ready for ever.
                    tracing::error!(%error, socket = number, "a socket failed; it is not read any more");
                    return core.reactor.set_interest(ready.token, Interest::NONE);
                }
            }
            core.reactor.lap(accounts.read);
            let mut datagrams = 0;
            for datagram in received.iter() {
                let socket = core.sockets.number_for(number, datagram.peer);
                let route = Route {
                    peer: datagram.peer,
                    local: datagram.local,
                    socket,
                };
                let input = Datagram {
                    route,
                    bytes: datagram.bytes,
                };
                if let Err(why) = core.endpoint.handle(input, core.now) {
                    tracing::trace!(peer = %datagram.peer, %why, "discarded");
                }
                datagrams += 1;
            }
            core.reactor.lap_many(accounts.input, datagrams);
            if !received.is_full() {
                core.reactor.drained(ready.token);
                break;
            }
        }
        Ok(())
    }

    fn fire_timers(&mut self) {
        let core = &mut self.core;
        let due = core
            .endpoint
            .poll_timeout()
            .filter(|(at, _)| *at <= core.now);
        if let Some((at, _)) = due {
            core.reactor.record_lateness(core.now.since(at));
            core.endpoint.handle_timeout(core.now);
            core.reactor.lap(self.accounts.timers);
        }
    }

    /// Sends what the endpoint has, as far as the send buffers take it.
    fn send(&mut self) {
        let Self {
            core,
            composed,
            accounts,
            ..
        } = self;
        let mut messages = 0;
        while !core.sockets.is_blocked() {
            composed.clear();
            let Some(route) = core.endpoint.poll_transmit(core.now, composed) else {
                break;
            };
            messages += 1;
            if core.sockets.needs_room(route.socket) {
                core.reactor.lap_many(accounts.output, messages);
                core.sockets.make_room(route.socket, &mut core.reactor);
                core.reactor.lap(accounts.write);
                messages = 0;
            }
            core.sockets.push(route, composed);
        }
        if messages > 0 {
            core.reactor.lap_many(accounts.output, messages);
        }
        if core.sockets.has_queued() {
            core.sockets.flush(&mut core.reactor);
            core.reactor.lap(accounts.write);
        }
    }

    /// Hands on what the endpoint tells; whether there was anything.
    fn tell(&mut self) -> bool {
        let Self {
            core,
            server,
            summary,
            ..
        } = self;
        let mut told = false;
        while let Some(event) = core.endpoint.poll_event() {
            super::events::tell(event, core, server, summary);
            told = true;
        }
        summary.write(core);
        told
    }

    fn signal(&mut self, signal: Signal) {
        let core = &mut self.core;
        match signal {
            Signal::Hangup => {
                tracing::info!(
                    "SIGHUP: there is no log file to open again, and the configuration is read at start only"
                );
            }
            Signal::Terminate | Signal::Interrupt if core.stop_at.is_some() => {
                tracing::warn!("a second signal: ending at once");
                core.stop_at = Some(Instant::ZERO);
            }
            Signal::Terminate | Signal::Interrupt => {
                let tunnels = core.endpoint.counts().tunnels;
                tracing::info!(tunnels, "ending: telling every peer");
                core.endpoint.shut_down(core.now);
                core.stop_at = Some(core.now + self.shutdown_wait);
            }
        }
    }

    /// Takes the control socket away and says good-bye.
    pub(super) fn finish(&mut self) {
        self.server.remove_socket();
        if self.core.stop_at.is_some() && !self.core.endpoint.is_quiet() {
            tracing::warn!("ended; some peers did not acknowledge in time");
        } else {
            tracing::info!("ended");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_survives_the_reactor() {
        for source in [
            Source::Signals,
            Source::Listener,
            Source::Udp(u32::MAX),
            Source::Client(7),
        ] {
            assert_eq!(Source::from_bits(source.to_bits()), source);
        }
    }
}
