//! Timers: retransmissions, HELLOs, set-up timeouts, tunnels without sessions, and the end of the hold time.
//!
//! Implements parts of RFC 2661, sections 5.5 and 5.8.

use base::timer::TimerStore;
use base::{Duration, Instant};

use super::Endpoint;
use crate::end::{SessionEnd, TunnelEnd};
use crate::reliable::Expiry;
use crate::session::fsm as call;
use crate::tunnel::fsm::Event;
use crate::tunnel::{Ending, TunnelState};

/// A millisecond in nanoseconds.
const MS: u64 = 1_000_000;

/// Timer tokens of sessions have this bit; those of tunnels do not.
const SESSION: u32 = 1 << 31;

impl Endpoint {
    /// Arms a tunnel's one timer for the earliest of its deadlines.
    pub(super) fn settle_timer(&mut self, index: u32) {
        let Self {
            tunnels, timers, ..
        } = self;
        let tunnel = tunnels.at_mut(index).expect("the caller has the tunnel");
        let due = tunnel.reliable.deadline.min(tunnel.idle_deadline);
        let due = due.min(tunnel.empty_deadline);
        let due = due.min(tunnel.reliable.settle_at());
        match tunnel.timer {
            Some((_, at)) if at == due => return,
            Some((timer, _)) => {
                timers.cancel(timer);
            }
            None => {}
        }
        tunnel.timer = (due != Instant::FAR_FUTURE).then(|| (timers.insert(due, index), due));
    }

    /// Arms a session's timer: for its set-up timeout, or for its end after its payload ended.
    pub(super) fn arm_session(&mut self, index: u32, at: Instant) {
        let timer = self.timers.insert(at, SESSION | index);
        self.session_at_mut(index).timer = Some((timer, at));
    }

    pub(super) fn disarm_session(&mut self, index: u32) {
        if let Some((timer, _)) = self.session_at_mut(index).timer.take() {
            self.timers.cancel(timer);
        }
    }

    /// Fires at most `most` of the timers that are due, so that the caller can do other work before the next ones.
    /// Returns how many fired.
    pub fn handle_timeouts(&mut self, now: Instant, most: usize) -> usize {
        let mut fired = 0;
        while fired < most
            && let Some(expired) = self.timers.pop_due(now)
        {
            fired += 1;
            let index = expired.token & !SESSION;
            if expired.token & SESSION == 0 {
                self.tunnel_due(index, now);
            } else {
                self.session_at_mut(index).timer = None;
                let (role, state) = (self.session_at(index).role, self.session_at(index).state);
                let (_, next) = call::step(role, state, call::Event::Close);
                debug_assert_eq!(next, crate::SessionState::Idle);
                let why = match self.session_at(index).up {
                    Some(_) => SessionEnd::Payload,
                    None => SessionEnd::SetupTimeout,
                };
                self.end_session(index, why, now);
            }
        }
        self.retime(now);
        fired
    }

    fn tunnel_due(&mut self, index: u32, now: Instant) {
        self.tunnel_at_mut(index).timer = None;
        if self.cut_short(index, now) || self.settle(index, now) {
            return;
        }
        let Self {
            tunnels, config, ..
        } = self;
        let tunnel = tunnels
            .at_mut(index)
            .expect("a tunnel cancels its timer when it goes");
        match tunnel.reliable.expire(&config.retransmit, now) {
            Expiry::Retransmit if tunnel.ending == Ending::StopSent => tunnel.reliable.make_room(),
            Expiry::NotDue | Expiry::Retransmit => {}
            Expiry::GiveUp if tunnel.ending == Ending::StopSent => {
                return self.remove_tunnel(index);
            }
            Expiry::GiveUp => {
                return self.end_tunnel(index, Event::Close, TunnelEnd::Unanswered, now);
            }
        }
        if tunnel.empty_deadline <= now {
            self.end_tunnel(index, Event::Close, TunnelEnd::NoSessions, now);
        } else if tunnel.idle_deadline <= now {
            self.tunnel_idle(index, now);
        }
        if self.tunnels.at(index).is_some() {
            self.mark_ready(index);
        }
    }

    /// Starts the time that an established tunnel may stay without a session, if it has none.
    pub(super) fn watch_empty(&mut self, index: u32, now: Instant) {
        let limit = self.config.idle_tunnel;
        let tunnel = self.tunnel_at_mut(index);
        let empty = tunnel.sessions == 0 && tunnel.state == TunnelState::Established;
        if empty && limit != Duration::ZERO {
            tunnel.empty_deadline = now + limit;
            self.mark_ready(index);
        }
    }

    /// The idle deadline of a tunnel passed; its meaning depends on the tunnel's state.
    fn tunnel_idle(&mut self, index: u32, now: Instant) {
        let hello = self.hello_wait();
        let tunnel = self.tunnel_at_mut(index);
        match (tunnel.ending, tunnel.state) {
            (Ending::Held, _) => self.release_held(index),
            (Ending::StopSent, _) => tunnel.idle_deadline = Instant::FAR_FUTURE,
            (Ending::No, TunnelState::Established) => {
                let is_probe = tunnel.reliable.is_closed();
                if is_probe {
                    tunnel.reliable.open();
                }
                let Some(hello) = hello else {
                    tunnel.idle_deadline = Instant::FAR_FUTURE;
                    return;
                };
                let due = tunnel.last_heard + hello;
                if due > now && !is_probe {
                    tunnel.idle_deadline = due;
                    return;
                }
                tunnel.idle_deadline = now + hello;
                // An unacknowledged message already probes the peer.
                if tunnel.reliable.is_idle() {
                    self.compose_hello(index);
                }
            }
            (
                Ending::No,
                TunnelState::Idle | TunnelState::WaitCtlReply | TunnelState::WaitCtlConn,
            ) => self.end_tunnel(index, Event::Close, TunnelEnd::SetupTimeout, now),
        }
    }

    /// The silence before the next HELLO: the interval minus a random part of up to an eighth (RFC 3931 4.4).
    /// `None` if none are sent.
    pub(super) fn hello_wait(&mut self) -> Option<Duration> {
        let interval = self.config.hello_interval.as_nanos();
        // In whole milliseconds, as a snapshot stores times.
        let jitter = self.random.u64() % (interval / 8 / MS + 1) * MS;
        (interval > 0).then(|| Duration::from_nanos(interval - jitter))
    }

    pub(super) fn earliest_deadline(&self) -> Option<(Instant, &'static str)> {
        let timer = self.timers.next_deadline();
        let timer = timer.map(|at| (at, "retransmission or Hello"));
        let retiming = self.retiming.map(|(at, _)| (at, "new configuration"));
        timer.into_iter().chain(retiming).min_by_key(|(at, _)| *at)
    }
}
