//! Acts on the outcomes that sources report: lets a source rest, opens a lost source again, and
//! shuts the daemon down in order if it cannot go on. `health` keeps the state.
//!
//! No error of a source ends the daemon by itself. Start with [`Daemon::note`].

use std::io;

use base::{Duration, Instant};
use reactor::netlink::Notice;
use reactor::{Interest, Signal, Signals, Token, clock};

use super::health::{Outcome, State};
use super::source::Source;
use super::turn::Daemon;

/// How often in a row the wait for descriptors may fail before the daemon gives up.
const WAITS_FAILED_MAX: u32 = 8;
/// Pause after a failed wait.
const PAUSE: Duration = Duration::from_millis(10);
/// Pause before a port is bound again whose interface is up.
const PORT_PAUSE: Duration = Duration::from_secs(1);

impl Daemon {
    /// Records what became of a source, and acts on it.
    pub(super) fn note(&mut self, source: Source, token: Token, outcome: Outcome) {
        let now = self.core.now;
        match outcome {
            Outcome::Again => {}
            Outcome::Rest(error) => {
                let name = self.name(source);
                let health = &mut self.core.health;
                health.rests((source, token), || name, &error, now);
                // A source that cannot be silenced would keep the loop busy.
                if let Err(error) = self.core.reactor.set_interest(token, Interest::NONE) {
                    self.lose(source, Some(token), &error);
                }
            }
            Outcome::Lost(error) => self.lose(source, Some(token), &error),
        }
    }

    /// Closes a source that failed, to open it again.
    pub(super) fn lose(&mut self, source: Source, token: Option<Token>, error: &io::Error) {
        let name = self.name(source);
        let core = &mut self.core;
        let reactor = &mut core.reactor;
        match source {
            Source::Udp(number) => core.sockets.lose(number, reactor),
            Source::Port(number) => {
                core.ports.lose(number, reactor);
                let endpoint = core.edge.endpoint_mut().pppoe_mut();
                endpoint.remove_port(number as u16, core.now);
            }
            Source::Tun(_) => core.inside.lose(reactor),
            Source::Kernel => core.notices.lose(reactor),
            Source::Radius(place) => {
                if let Some(radius) = core.authority.radius_mut() {
                    radius.lose(place, reactor);
                }
            }
            Source::Disconnect => {
                if let Some(radius) = core.authority.radius_mut() {
                    radius.lose_door(reactor);
                }
            }
            Source::Listener => self.server.lose(reactor),
            Source::Signals => {}
            // The peering, the SNMP agent and the control clients handle their own connections, the ledger its file.
            Source::Bgp | Source::Client(_) | Source::Store | Source::Loader | Source::Snmp => {
                return;
            }
            Source::Shards => return self.give_up(io::Error::new(error.kind(), error.to_string())),
        }
        if let Some(token) = token {
            core.reactor.remove(token);
        }
        core.health.lost(source, || name, error, core.now);
        // No notice will come of an interface that is up by now, or that has another MAC address.
        if let Source::Port(number) = source
            && core.ports.is_ready(number)
        {
            core.health.hurry(source, core.now + PORT_PAUSE);
        }
    }

    /// Tries the sources that are due, and sockets that failed while sending.
    pub(super) fn mend(&mut self) {
        if let Some((number, error)) = self.core.sockets.take_failed() {
            self.lose(Source::Udp(number), None, &error);
        }
        if let Some((number, error)) = self.core.ports.take_failed() {
            self.lose(Source::Port(number), None, &error);
        }
        self.take_radius_failure();
        self.take_bgp_failure();
        self.take_store_failure();
        let now = self.core.now;
        while let Some((source, state, token)) = self.core.health.next_due(now) {
            let mended = match (state, token) {
                (State::Resting, Some(token)) => {
                    let interest = match source {
                        Source::Udp(number) => self.core.sockets.interest(number),
                        Source::Port(number) => self.core.ports.interest(number),
                        _ => Interest::READ,
                    };
                    let watched = self.core.reactor.set_interest(token, interest);
                    if let Err(error) = watched {
                        self.lose(source, Some(token), &error);
                        continue;
                    }
                    Ok(())
                }
                _ => self.reopen(source),
            };
            match mended {
                Ok(()) => self.core.health.works(source, now),
                Err(error) => self.core.health.still_lost(source, &error, now),
            }
        }
    }

    fn reopen(&mut self, source: Source) -> io::Result<()> {
        let core = &mut self.core;
        let reactor = &mut core.reactor;
        match source {
            Source::Udp(number) => core.sockets.reopen(number, reactor),
            Source::Port(number) => core.bind_port(number),
            Source::Tun(_) => {
                let made = core.inside.reopen(reactor, core.now);
                let queues = made.map_err(|error| io::Error::other(format!("{error:#}")))?;
                core.shards.give(queues);
                Ok(())
            }
            Source::Kernel => {
                core.notices.reopen(reactor)?;
                core.notice(&Notice::Overflow);
                Ok(())
            }
            Source::Radius(place) => match core.authority.radius_mut() {
                Some(radius) => radius.reopen(place, reactor),
                None => Ok(()),
            },
            Source::Disconnect => match core.authority.radius_mut() {
                Some(radius) => radius.reopen_door(reactor),
                None => Ok(()),
            },
            Source::Listener => self.server.reopen(reactor),
            Source::Signals => {
                self.signals = Signals::new()?;
                let bits = Source::Signals.to_bits();
                reactor.add(&self.signals, "signals", bits, Interest::READ)?;
                Ok(())
            }
            // The ledger's thread tries by itself; `take_store_failure` notices that it succeeded.
            Source::Store => match self.store_failure() {
                Some(failure) => Err(io::Error::other(failure)),
                None => Ok(()),
            },
            Source::Bgp | Source::Client(_) | Source::Shards | Source::Loader | Source::Snmp => {
                Ok(())
            }
        }
    }

    fn store_failure(&self) -> Option<String> {
        let radius = self.core.authority.radius();
        radius.and_then(|radius| radius.store_failure())
    }

    /// The ledger's thread retries what it cannot write; this counts, logs and shows it.
    fn take_store_failure(&mut self) {
        let is_down = self.core.health.is_down(Source::Store);
        let failure = self.store_failure();
        let (now, health) = (self.core.now, &mut self.core.health);
        match failure {
            Some(failure) if !is_down => {
                let name = || "accounting store".to_owned();
                health.lost(Source::Store, name, &io::Error::other(failure), now);
            }
            None if is_down => health.works(Source::Store, now),
            _ => {}
        }
    }

    fn take_radius_failure(&mut self) {
        let radius = self.core.authority.radius_mut();
        if let Some((place, error)) = radius.and_then(|radius| radius.take_failed()) {
            self.lose(Source::Radius(place), None, &error);
        }
    }

    /// The peering lets a listener rest that cannot accept; this counts and logs it.
    fn take_bgp_failure(&mut self) {
        let routes = self.core.routes.as_mut();
        if let Some((token, error)) = routes.and_then(|routes| routes.take_failed()) {
            let now = self.core.now;
            let name = || "bgp listener".to_owned();
            let health = &mut self.core.health;
            health.rests((Source::Bgp, token), name, &error, now);
        }
    }

    /// Waits for the next turn's descriptors. After a failure the turn goes on without any, so that
    /// timers and goodbyes still happen.
    pub(super) fn wait(&mut self, deadline: Option<Instant>) {
        let reactor = &mut self.core.reactor;
        let error = match reactor.wait(deadline) {
            Ok(now) => {
                self.core.now = now;
                self.waits_failed = 0;
                return;
            }
            Err(error) => error,
        };
        reactor.pause(PAUSE);
        let reopened = reactor.reopen();
        self.core.now = clock::now();
        self.waits_failed += 1;
        tracing::warn!(%error, reopened = reopened.is_ok(), "the wait for descriptors failed");
        if self.waits_failed >= WAITS_FAILED_MAX {
            self.give_up(error);
        }
    }

    /// Starts the shutdown because the daemon cannot go on.
    pub(super) fn give_up(&mut self, error: io::Error) {
        if self.failure.is_some() {
            return;
        }
        tracing::error!(%error, "the daemon cannot go on");
        self.failure = Some(error);
        if self.core.stop_at.is_none() {
            self.signal(Signal::Terminate);
        }
    }

    fn name(&self, source: Source) -> String {
        let core = &self.core;
        match source {
            Source::Udp(number) => match core.sockets.local_addr(number) {
                Some(address) => format!("udp {address}"),
                None => "udp".into(),
            },
            Source::Port(number) => match core.ports.name(number) {
                Some(name) => format!("pppoe {name}"),
                None => "pppoe".into(),
            },
            Source::Tun(_) => format!("tun {}", core.inside.name()),
            Source::Radius(place) => {
                let radius = core.authority.radius();
                let server = radius.and_then(|radius| radius.server_of(place));
                server.map_or("radius".into(), |server| format!("radius {server}"))
            }
            Source::Disconnect => "radius disconnect".into(),
            Source::Listener => "control".into(),
            Source::Signals => "signals".into(),
            Source::Kernel => "netlink".into(),
            Source::Bgp => "bgp".into(),
            Source::Client(_) => "control client".into(),
            Source::Shards => "shards".into(),
            Source::Store => "accounting store".into(),
            Source::Loader => "configuration".into(),
            Source::Snmp => "snmp".into(),
        }
    }
}

#[cfg(test)]
mod tests;
