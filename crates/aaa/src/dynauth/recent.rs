//! Remembers recent requests, so that a repeated one is recognised (RFC 5176, sections 2.3 and 6.3).
//!
//! A request with Event-Timestamp is identified by its client and its authenticator, a digest of the whole request. A
//! replay from another port is therefore recognised too. Without a time, a second request of the same content is the
//! same one only if it comes from the same port (section 2.3): otherwise a change back and forth would be lost whenever
//! two of 256 identifiers are equal.
//!
//! The table has a limit. At the limit it forgets the oldest request, and remembers of it only its Event-Timestamp: from
//! then on every request of that client with this time stamp or an older one is refused. A replay is therefore
//! recognised under any load, and under load only the window becomes shorter.

use std::collections::VecDeque;

use base::slab::Key;
use base::{Duration, Instant, Route, Slab};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use wire::radius::attribute::{PROXY_STATE, STATE};
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
    /// State to copy into the reply (RFC 5176, section 3.3).
    pub(super) state: Option<Box<[u8]>>,
    /// Event-Timestamp, in seconds since 1970.
    pub(super) sent_s: Option<u64>,
    /// The reply, once it was answered; empty if none fits into a packet.
    pub(super) reply: Option<Box<[u8]>>,
}

impl Seen {
    pub(super) fn new(
        client: usize,
        route: Route,
        packet: &Packet<'_>,
        sent_s: Option<u64>,
    ) -> Self {
        let is_state = |kind: u8| kind == PROXY_STATE;
        let states = packet.attributes().filter(|state| is_state(state.kind));
        Self {
            client,
            route,
            code: packet.code(),
            identifier: packet.identifier(),
            authenticator: packet.authenticator(),
            proxy_states: states.map(|state| state.value.into()).collect(),
            state: packet.find(STATE).map(|state| state.value.into()),
            sent_s,
            reply: None,
        }
    }

    fn name(&self) -> Name {
        // A repeated request may have changed the route only if the port does not count.
        Name::new(self.client, &self.route, self.authenticator, self.sent_s)
    }
}

/// What a repeated request has in common with the first one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Name {
    client: usize,
    /// The source port of a request without Event-Timestamp.
    port: Option<u16>,
    authenticator: Authenticator,
}

impl Name {
    pub(super) fn new(
        client: usize,
        route: &Route,
        authenticator: Authenticator,
        sent_s: Option<u64>,
    ) -> Self {
        Self {
            client,
            port: sent_s.is_none().then_some(route.peer.port()),
            authenticator,
        }
    }
}

/// The requests of the last time window.
pub(super) struct Recent {
    window: Duration,
    len_max: usize,
    seen: Slab<Seen>,
    by_name: HashMap<Name, Key, FixedState>,
    /// In order of arrival.
    order: VecDeque<(Instant, Key)>,
    /// By client: the latest Event-Timestamp of a request that was forgotten within the window.
    forgotten_s: HashMap<usize, u64, FixedState>,
}

impl Recent {
    pub(super) fn new(window: Duration, len_max: usize) -> Self {
        Self {
            // A timestamp may be as far in the future as in the past.
            window: window.saturating_mul(2),
            len_max,
            seen: Slab::new(),
            by_name: HashMap::default(),
            order: VecDeque::new(),
            forgotten_s: HashMap::default(),
        }
    }

    /// An earlier identical request, and whether it was answered.
    pub(super) fn find(&self, name: &Name) -> Option<(Key, bool)> {
        let &key = self.by_name.get(name)?;
        let seen = self.seen.get(key)?;
        Some((key, seen.reply.is_some()))
    }

    /// Whether a request of this client with this Event-Timestamp may have been forgotten.
    pub(super) fn is_forgotten(&self, client: usize, sent_s: u64) -> bool {
        let forgotten_s = self.forgotten_s.get(&client);
        forgotten_s.is_some_and(|&forgotten_s| sent_s <= forgotten_s)
    }

    /// Remembers a request; `None` if the table is full of requests that are not answered yet.
    pub(super) fn insert(&mut self, now: Instant, seen: Seen) -> Option<Key> {
        if self.seen.len() >= self.len_max {
            self.forget_first()?;
        }
        let name = seen.name();
        let key = self.seen.insert(seen);
        self.by_name.insert(name, key);
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
            self.forget(key);
        }
    }

    /// Forgets the oldest request, if it was answered, and refuses all that are as old.
    fn forget_first(&mut self) -> Option<()> {
        let &(_, key) = self.order.front()?;
        if self.seen.get(key).is_some_and(|seen| seen.reply.is_none()) {
            return None;
        }
        if let Some(seen) = self.forget(key)
            && let Some(sent_s) = seen.sent_s
        {
            let forgotten_s = self.forgotten_s.entry(seen.client).or_default();
            *forgotten_s = sent_s.max(*forgotten_s);
        }
        Some(())
    }

    /// Forgets the oldest request, which has this key.
    fn forget(&mut self, key: Key) -> Option<Seen> {
        self.order.pop_front();
        let seen = self.seen.remove(key)?;
        let name = seen.name();
        self.by_name.remove(&name);
        Some(seen)
    }
}
