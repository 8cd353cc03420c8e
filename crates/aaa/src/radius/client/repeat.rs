//! Handles a request that received no reply in time (RFC 5080, section 2.2.1).
//!
//! Implements parts of RFC 2865, section 2.5.

use base::slab::Key;
use base::timer::TimerStore;
use base::{Duration, Instant};

use super::{Client, Place};
use crate::radius::event::{Event, Failure, Purpose};

/// The longest time between two transmissions (RFC 5080, section 2.2.1: MRT).
const PATIENCE_MAX: Duration = Duration::from_secs(16);

impl Client {
    /// A request's timer fired.
    pub(super) fn time_out(&mut self, now: Instant, key: Key) {
        let Some(request) = self.requests.get(key) else {
            return;
        };
        let Some(place) = request.place else {
            let why = match request.ignored {
                none if none.is_none() => Failure::Overloaded,
                some => Failure::NoAnswer(some),
            };
            return self.fail(now, key, why);
        };
        let (purpose, tried, sent_at) = (request.purpose, request.tried, request.sent_at);
        let config = &self.servers[usize::from(place.server)].config;
        let is_last = request.transmissions >= config.transmissions;
        let (dead_after, dead_time) = (config.dead_after, config.dead_time);
        let server = usize::from(place.server);
        let service = self.service(purpose, place.server);
        let dies = service.time_out(now, sent_at, dead_after, dead_time);
        let is_dead = service.dead_since().is_some();
        if dies {
            service.counters.deaths += 1;
            self.events.push_back(Event::ServerDead { server, purpose });
        }
        if is_last || is_dead && self.has_better(purpose, place.server, tried) {
            self.move_on(now, key, place);
        } else {
            self.repeat(now, key, place);
        }
    }

    /// Retransmits a request to the same server.
    fn repeat(&mut self, now: Instant, key: Key, place: Place) {
        let Some(request) = self.requests.get(key) else {
            return;
        };
        let purpose = request.purpose;
        let patience = request.patience.saturating_mul(2).min(PATIENCE_MAX);
        self.service(purpose, place.server).counters.retransmissions += 1;
        if purpose == Purpose::Accounting && self.config.acct_delay_time {
            self.renumber(now, key, place);
        }
        self.send(now, key, patience);
    }

    /// Gives a request a new identifier, because its Acct-Delay-Time changes (RFC 2866, section 5.2). If no
    /// identifier is free, it is retransmitted unchanged.
    fn renumber(&mut self, now: Instant, key: Key, old: Place) {
        let service = self.service(Purpose::Accounting, old.server);
        let Some(identifier) = service.identifiers.take() else {
            return;
        };
        service.identifiers.assign(identifier, key.index);
        service.identifiers.release(old.identifier);
        let place = Place { identifier, ..old };
        if let Some(request) = self.requests.get_mut(key) {
            request.place = Some(place);
        }
        self.rewrite(now, key, place);
    }

    /// Moves a request to the next server, or fails it.
    fn move_on(&mut self, now: Instant, key: Key, old: Place) {
        let waiting_until = now + self.config.waiting_time;
        let Some(request) = self.requests.get_mut(key) else {
            return;
        };
        request.tried |= 1 << old.server;
        let (purpose, tried) = (request.purpose, request.tried);
        let why = Failure::NoAnswer(request.ignored);
        self.service(purpose, old.server).counters.given_up += 1;
        if !self.has_untried(purpose, tried) {
            return self.fail(now, key, why);
        }
        let Some(request) = self.requests.get_mut(key) else {
            return;
        };
        // Its identifier is freed before it looks for another, so that one is available however many requests
        // are outstanding.
        request.place = None;
        request.timer = self.timers.insert(waiting_until, key.index);
        self.leave(purpose, old);
        match self.find_place(now, purpose, tried) {
            Some(place) => {
                self.rewrite(now, key, place);
                self.enter(now, key, place);
            }
            None => self.wait(key),
        }
        self.admit(now);
    }
}
