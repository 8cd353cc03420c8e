//! Deadlines: client retransmissions, hosts that send no PPP frame, PADTs that wait, and delayed PADOs.
//!
//! An established session has no timer.

use base::Instant;
use base::timer::{TimerId, TimerStore};

use super::Endpoint;
use super::fsm::Event;
use crate::event::EndReason;
use crate::route::Route;
use crate::session::Phase;

/// Timer tokens of delayed PADOs have this bit; those of sessions do not.
const DELAYED: u32 = 1 << 31;

/// A PADO that waits for its delay.
pub(super) struct Delayed {
    route: Route,
    pado: Box<[u8]>,
    timer: TimerId,
}

impl Endpoint {
    /// Arms a session's one timer.
    pub(super) fn arm(&mut self, index: u32, at: Instant) {
        self.disarm(index);
        let timer = self.timers.insert(at, index);
        self.at_mut(index).timer = Some(timer);
    }

    pub(super) fn disarm(&mut self, index: u32) {
        if let Some(timer) = self.at_mut(index).timer.take() {
            self.timers.cancel(timer);
        }
    }

    /// Stores a PADO until its time.
    pub(super) fn delay(&mut self, route: Route, pado: Box<[u8]>, at: Instant) {
        let timers = &mut self.timers;
        self.delayed.insert_with(|key| Delayed {
            route,
            pado,
            timer: timers.insert(at, DELAYED | key.index),
        });
    }

    /// Drops the delayed PADOs of some routes.
    pub(super) fn drop_delayed(&mut self, which: impl Fn(&Route) -> bool) {
        let mut next = 0;
        while let Some((index, delayed)) = self.delayed.next_from(next) {
            next = index + 1;
            if which(&delayed.route) {
                self.timers.cancel(delayed.timer);
                self.take_delayed(index);
            }
        }
    }

    fn take_delayed(&mut self, index: u32) -> Option<Delayed> {
        let key = self.delayed.key_at(index)?;
        self.delayed.remove(key)
    }

    /// Ends sessions that are to end, and fires timers that are due, at most `most` together, so that the caller can do
    /// other work before the next ones. Returns how many.
    pub fn handle_timeouts(&mut self, now: Instant, most: usize) -> usize {
        let mut fired = self.part_some(most);
        while fired < most
            && let Some(expired) = self.timers.pop_due(now)
        {
            fired += 1;
            let index = expired.token & !DELAYED;
            if expired.token & DELAYED == 0 {
                self.session_due(index, now);
            } else {
                self.pado_due(index);
            }
        }
        fired
    }

    fn session_due(&mut self, index: u32, now: Instant) {
        let session = self.at_mut(index);
        session.timer = None;
        match session.phase {
            Phase::Soliciting | Phase::Requesting => self.client_due(index, now),
            Phase::HalfOpen => self.end_by(index, Event::Timeout, EndReason::SetupTimeout),
            Phase::Ending => self.end_by(index, Event::Timeout, EndReason::Payload),
            Phase::Established => {}
        }
    }

    fn pado_due(&mut self, index: u32) {
        let Some(Delayed { route, pado, .. }) = self.take_delayed(index) else {
            return;
        };
        if !self.outbox.has_room() {
            self.counters.discard_outbox_full += 1;
            return;
        }
        self.outbox
            .push(route, pado.len(), |out| out.extend_from_slice(&pado));
        self.counters.sent_pado += 1;
    }

    pub(super) fn earliest_deadline(&self) -> Option<(Instant, &'static str)> {
        let timer = self.timers.next_deadline().map(|at| (at, "Discovery"));
        let parting = self.partings.due().map(|at| (at, "end of sessions"));
        parting.into_iter().chain(timer).min_by_key(|(at, _)| *at)
    }
}
