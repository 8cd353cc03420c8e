//! Remembers recent requests, so that a repeated one is recognised (RFC 5176, sections 2.3 and 6.3).
//!
//! A request is identified by its client and its authenticator, a digest of the whole request. A replay from
//! another port is therefore recognised too.

use std::collections::VecDeque;

use base::slab::Key;
use base::{Duration, Instant, Route, Slab};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use wire::radius::attribute::PROXY_STATE;
use wire::radius::{Authenticator, Packet};

/// A request and its reply.
pub(super) struct Seen {
    pub(super) client: usize,
    pub(super) route: Route,
    pub(super) code: u8,
    pub(super) identifier: u8,
    pub(super) authenticator: Authenticator,
    /// Proxy-State attributes to copy into the reply, in order (RFC 2865, section 5.33).
    pub(super) proxy_states: Vec<Box<[u8]>>,
    /// Empty until there is a reply.
    pub(super) reply: Box<[u8]>,
}

impl Seen {
    pub(super) fn new(client: usize, route: Route, packet: &Packet<'_>) -> Self {
        let is_state = |kind: u8| kind == PROXY_STATE;
        let states = packet.attributes().filter(|state| is_state(state.kind));
        Self {
            client,
            route,
            code: packet.code(),
            identifier: packet.identifier(),
            authenticator: packet.authenticator(),
            proxy_states: states.map(|state| state.value.into()).collect(),
            reply: Box::default(),
        }
    }
}

/// The requests of the last time window.
pub(super) struct Recent {
    window: Duration,
    len_max: usize,
    seen: Slab<Seen>,
    by_authenticator: HashMap<(usize, Authenticator), Key, FixedState>,
    /// In order of arrival.
    order: VecDeque<(Instant, Key)>,
}

impl Recent {
    pub(super) fn new(window: Duration, len_max: usize) -> Self {
        Self {
            // A timestamp may be as far in the future as in the past.
            window: window.saturating_mul(2),
            len_max,
            seen: Slab::new(),
            by_authenticator: HashMap::default(),
            order: VecDeque::new(),
        }
    }

    /// An earlier identical request, and whether it was answered.
    pub(super) fn find(&self, client: usize, authenticator: &Authenticator) -> Option<(Key, bool)> {
        let &key = self.by_authenticator.get(&(client, *authenticator))?;
        let seen = self.seen.get(key)?;
        Some((key, !seen.reply.is_empty()))
    }

    /// Remembers a request; `None` if the table is full.
    pub(super) fn insert(&mut self, now: Instant, seen: Seen) -> Option<Key> {
        if self.seen.len() >= self.len_max {
            return None;
        }
        let name = (seen.client, seen.authenticator);
        let key = self.seen.insert(seen);
        self.by_authenticator.insert(name, key);
        self.order.push_back((now, key));
        Some(key)
    }

    /// Sets the destination of the repeated reply.
    pub(super) fn redirect(&mut self, key: Key, route: Route) {
        if let Some(seen) = self.seen.get_mut(key) {
            seen.route = route;
        }
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut Seen> {
        self.seen.get_mut(key)
    }

    /// Forgets requests older than the window.
    pub(super) fn forget_old(&mut self, now: Instant) {
        while let Some(&(at, key)) = self.order.front() {
            if now - at <= self.window {
                break;
            }
            self.order.pop_front();
            if let Some(seen) = self.seen.remove(key) {
                self.by_authenticator
                    .remove(&(seen.client, seen.authenticator));
            }
        }
    }
}
