//! Timers: the rings send KEEPALIVEs, the heap has every other timer.
//!
//! Implements parts of RFC 4271, sections 6.5 and 8.1.3; RFC 9687.

use base::{Duration, Instant};

use super::Speaker;
use crate::end::CloseReason;
use crate::fsm::{self, State};
use crate::peer::{Origin, Waits};
use crate::ring::{PHASES, Stay};
use crate::table::{ConnId, Flags, Hot};
use crate::timers::Timer;

impl Speaker {
    /// Fires the timers that are due. Idempotent: early or repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.expire(None, now);
    }

    /// As [`handle_timeout`](Self::handle_timeout), except for connections that have only a KEEPALIVE to send. Those do
    /// not become ready; they are appended to `keepalives`, and the caller sends one KEEPALIVE on each. A driver with
    /// very many idle sessions saves a queue and a copy for each.
    pub fn handle_timeout_apart(&mut self, keepalives: &mut Vec<ConnId>, now: Instant) {
        self.expire(Some(keepalives), now);
    }

    fn expire(&mut self, mut keepalives: Option<&mut Vec<ConnId>>, now: Instant) {
        self.latest = now;
        if self.rib.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.has_work = true;
        }
        for place in 0..self.rings.len() {
            self.turn(place, keepalives.as_deref_mut(), now);
        }
        while let Some((at, timer)) = self.timers.next().filter(|(at, _)| *at <= now) {
            self.timers.pop();
            if self.is_meant(at, timer) {
                self.fire(timer, now);
            }
        }
        self.drop_stopped_timers();
        if self.timers.wants_sweep() {
            let mut timers = core::mem::take(&mut self.timers);
            timers.sweep(|at, timer| self.is_meant(at, timer));
            self.timers = timers;
        }
    }

    /// Removes stopped timers from the top of the heap.
    pub(super) fn drop_stopped_timers(&mut self) {
        while let Some((at, timer)) = self.timers.next() {
            if self.is_meant(at, timer) {
                break;
            }
            self.timers.pop();
        }
    }

    /// The earliest deadline, and the name of its timer in the RFC.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let keepalive = self.rings.iter().filter_map(|ring| ring.next_visit()).min();
        let exact = self.timers.next().map(|(at, timer)| (at, timer.name()));
        let routes = self.rib.poll_timeout();
        [keepalive.map(|at| (at, "KeepaliveTimer")), exact, routes]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }

    /// The driver has read from every connection that had input at `until`, and has called [`unread`](Self::unread) for
    /// those that it did not read to the end. Hold timers are measured against this time, so that a peer that was in
    /// time is not dropped because we are late.
    #[inline]
    pub fn drained(&mut self, until: Instant) {
        self.drained = self.drained.max(until);
        if !self.suspects.is_empty() {
            self.latest = self.latest.max(until);
            let now = self.latest;
            for conn in core::mem::take(&mut self.suspects) {
                self.check_hold(conn, now);
            }
        }
    }

    /// The driver has read from this connection at `now`, but maybe not to the end: its hold timer waits until the
    /// driver has looked again. Other connections are not affected.
    pub fn unread(&mut self, conn: ConnId, now: Instant) {
        if let Some(conn) = self.conns.get_mut(conn) {
            conn.unread = now;
        }
    }

    /// Whether a hold timer waits for [`drained`](Self::drained). Nothing else needs that call.
    #[must_use]
    #[inline]
    pub const fn wants_drained(&self) -> bool {
        !self.suspects.is_empty()
    }

    /// Visits the sessions that are due on a ring.
    fn turn(&mut self, place: usize, mut apart: Option<&mut Vec<ConnId>>, now: Instant) {
        let Self {
            rings,
            conns,
            timers,
            ready,
            random,
            margin,
            ..
        } = self;
        let ring = &mut rings[place];
        let ahead = now + looks_ahead(ring.interval());
        let mut odd = Vec::new();
        while let Some(tick) = ring.due(now) {
            ring.visit(now, random, |id| {
                let is_near =
                    |hot: &Hot| hot.hold_deadline() <= ahead && !hot.flags.has(Flags::HOLD_ARMED);
                if conns.has_late() && conns.hot(id).is_some_and(is_near) {
                    conns.note_late(&mut odd, margin);
                }
                let Some(hot) = conns.hot_mut(id) else {
                    return Stay::Leaves;
                };
                let deadline = hot.hold_deadline();
                if is_near(hot) {
                    hot.flags.set(Flags::HOLD_ARMED);
                    timers.arm(deadline, Timer::Hold(id));
                }
                if tick.wrapping_sub(hot.sent_tick).cast_signed() < PHASES.cast_signed() {
                    return if hot.sent_tick % PHASES == tick % PHASES {
                        Stay::Here
                    } else {
                        Stay::At(hot.sent_tick)
                    };
                }
                hot.sent_tick = tick;
                if let Some(apart) = &mut apart
                    && !hot.flags.any(Flags::OCCUPIED)
                {
                    hot.keepalives_out = hot.keepalives_out.wrapping_add(1);
                    apart.push(id);
                    return Stay::Here;
                }
                hot.flags.set(Flags::KEEPALIVE);
                if !hot.flags.any(Flags::READY_OR_BLOCKED) {
                    hot.flags.set(Flags::READY);
                    ready.push_back(id);
                }
                Stay::Here
            });
        }
        self.receive_odd(odd);
    }

    /// Whether an entry of the heap stands for a timer that is running.
    fn is_meant(&self, at: Instant, timer: Timer) -> bool {
        match timer {
            Timer::Hold(id) => self.conns.get(id).is_some_and(|conn| match conn.state {
                State::OpenSent => conn.wait == at,
                State::OpenConfirm | State::Established => self
                    .conns
                    .hot(id)
                    .is_some_and(|hot| hot.flags.has(Flags::HOLD_ARMED)),
                State::Idle | State::Connect | State::Active => false,
            }),
            Timer::DelayOpen(id) => self
                .conns
                .get(id)
                .is_some_and(|conn| conn.is_delaying() && conn.wait == at),
            Timer::SendHold(id) => self.conns.get(id).is_some_and(|conn| conn.send_hold == at),
            Timer::ConnectRetry(peer) => self
                .peers
                .get(peer)
                .is_some_and(|peer| peer.waits == Waits::Retry(at)),
            Timer::IdleHold(peer) => self
                .peers
                .get(peer)
                .is_some_and(|peer| peer.waits == Waits::IdleHold(at)),
            Timer::Stale(peer) => self
                .peers
                .get(peer)
                .is_some_and(|peer| peer.stale.as_ref().is_some_and(|stale| stale.until == at)),
            Timer::Deferral => self.deferral == Some(at),
        }
    }

    fn fire(&mut self, timer: Timer, now: Instant) {
        match timer {
            Timer::Hold(conn) => self.check_hold(conn, now),
            Timer::DelayOpen(conn) => {
                let event = fsm::Event::DelayOpenTimerExpires;
                self.run_conn(conn, event, CloseReason::Closed, now);
            }
            Timer::SendHold(conn) => {
                let event = fsm::Event::SendHoldTimerExpires;
                self.run_conn(conn, event, CloseReason::SendHoldTimer, now);
            }
            Timer::ConnectRetry(index) => {
                let main = self.peers.get(index).and_then(|peer| peer.main);
                let event = fsm::Event::ConnectRetryTimerExpires;
                self.run(index, main, event, CloseReason::ConnectRetryTimer, now);
            }
            Timer::IdleHold(index) => self.idle_hold_expires(index, now),
            Timer::Stale(index) => self.stale_expires(index),
            Timer::Deferral => self.end_deferral(),
        }
    }

    /// Signals an event to the state machine of a connection.
    pub(super) fn run_conn(
        &mut self,
        conn: ConnId,
        event: fsm::Event,
        why: CloseReason,
        now: Instant,
    ) {
        if let Some(index) = self.conns.get(conn).map(|conn| conn.peer) {
            self.run(index, Some(conn), event, why, now);
        }
    }

    fn idle_hold_expires(&mut self, index: u32, now: Instant) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        peer.waits = Waits::Nothing;
        if matches!(peer.origin, Origin::Dynamic(_)) && peer.stale.is_none() {
            return self.forget(index);
        }
        self.end_hold(index);
        let event = fsm::Event::IdleHoldTimerExpires;
        self.run(index, None, event, CloseReason::Closed, now);
        self.start_event(index, false, now);
    }

    /// Checks whether the hold time of a connection is over.
    fn check_hold(&mut self, id: ConnId, now: Instant) {
        self.note_late();
        let (Some(conn), Some(hot)) = (self.conns.get(id), self.conns.hot(id)) else {
            return;
        };
        let deadline = match conn.state {
            State::OpenSent => conn.wait,
            State::OpenConfirm | State::Established if hot.hold_s != 0 => hot.hold_deadline(),
            State::Idle
            | State::Connect
            | State::Active
            | State::OpenConfirm
            | State::Established => return,
        };
        if deadline <= now {
            if self.drained < deadline || self.drained <= conn.unread {
                self.suspects.push(id);
            } else {
                let event = fsm::Event::HoldTimerExpires;
                self.run_conn(id, event, CloseReason::HoldTimer, now);
            }
            return;
        }
        let ahead = self
            .rings
            .get(usize::from(hot.ring))
            .map_or(Duration::ZERO, |ring| looks_ahead(ring.interval()));
        if deadline <= now + ahead {
            self.timers.arm(deadline, Timer::Hold(id));
        } else if let Some(hot) = self.conns.hot_mut(id) {
            hot.flags.clear(Flags::HOLD_ARMED);
        }
    }
}

/// Until when a visit on a ring checks the hold timer: a little past the next visit.
const fn looks_ahead(interval: Duration) -> Duration {
    Duration::from_nanos(interval.as_nanos() + interval.as_nanos() / 32)
}
