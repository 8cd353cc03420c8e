//! Look-ups and links: every one is O(1).

use core::hash::BuildHasher;

use base::slab::{Key, Slab};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use wire::pppoe::{LineInfo, Mac};

use super::Endpoint;
use crate::discard::Discard;
use crate::route::Route;
use crate::session::{NIL, Role, Session, SessionKey};

/// The port and address as one number.
const fn station(port: u16, mac: Mac) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    let [p, q] = port.to_be_bytes();
    u64::from_be_bytes([p, q, a, b, c, d, e, f])
}

fn id_hash(hasher: &FixedState, port: u16, mac: Mac, id: u16) -> u64 {
    hasher.hash_one((station(port, mac), id))
}

pub(super) fn host_hash(hasher: &FixedState, route: &Route) -> u64 {
    hasher.hash_one((station(route.port, route.peer), route.vlans.bits()))
}

pub(super) fn vlan_hash(hasher: &FixedState, route: &Route) -> u64 {
    hasher.hash_one((route.port, route.vlans.bits()))
}

fn request_hash(hasher: &FixedState, route: &Route, stamp: u64, host_uniq: &[u8]) -> u64 {
    hasher.hash_one((station(route.port, route.peer), stamp, host_uniq))
}

/// The session with a port, a station and an id.
#[inline]
pub(super) fn find_in(
    by_id: &HashTable<u32>,
    sessions: &Slab<Session>,
    hasher: &FixedState,
    (port, mac, id): (u16, Mac, u16),
) -> Option<u32> {
    let is_it = |&index: &u32| {
        let session = listed(sessions, index);
        session.id == id && session.route.peer == mac && session.route.port == port
    };
    by_id.find(id_hash(hasher, port, mac, id), is_it).copied()
}

/// The session at an index that a table contains.
fn listed(sessions: &Slab<Session>, index: u32) -> &Session {
    sessions.at(index).expect("tables name only sessions")
}

impl Endpoint {
    pub(super) fn discard(&mut self, why: Discard) -> Discard {
        *why.counter(&mut self.counters) += 1;
        why
    }

    pub(super) fn at(&self, index: u32) -> &Session {
        listed(&self.sessions, index)
    }

    pub(super) fn at_mut(&mut self, index: u32) -> &mut Session {
        self.sessions
            .at_mut(index)
            .expect("the caller has the session")
    }

    /// The session with this id of this station.
    #[inline]
    pub(super) fn find_index(&self, port: u16, mac: Mac, id: u16) -> Option<u32> {
        find_in(&self.by_id, &self.sessions, &self.hasher, (port, mac, id))
    }

    /// The session with an id, of a route.
    pub(super) fn find_by_id(&self, route: &Route, id: u16) -> Result<u32, Discard> {
        if matches!(id, 0 | wire::pppoe::SESSION_RESERVED) {
            return Err(Discard::SessionReserved);
        }
        let index = self
            .find_index(route.port, route.peer, id)
            .ok_or(Discard::UnknownSession)?;
        if self.at(index).route.vlans != route.vlans {
            return Err(Discard::WrongVlans);
        }
        Ok(index)
    }

    /// The session that a PADR made before.
    pub(super) fn find_request(&self, route: &Route, stamp: u64, host_uniq: &[u8]) -> Option<u32> {
        let hash = request_hash(&self.hasher, route, stamp, host_uniq);
        let is_it = |&index: &u32| {
            let session = listed(&self.sessions, index);
            session.stamp == stamp && session.route == *route && *session.host_uniq == *host_uniq
        };
        self.by_request.find(hash, is_it).copied()
    }

    /// A host's oldest session, and the number of its sessions.
    pub(super) fn host_sessions(&self, route: &Route) -> Option<(u32, u32)> {
        let hash = host_hash(&self.hasher, route);
        let is_it = |&index: &u32| listed(&self.sessions, index).route == *route;
        let oldest = *self.by_host.find(hash, is_it)?;
        Some((oldest, self.at(oldest).host_count))
    }

    /// The key of a line in the table of lines; 0: none.
    pub(super) fn line_key(&self, route: &Route, line: Option<&LineInfo>) -> u64 {
        let ids = line
            .map(|line| (line.circuit_id(), line.remote_id()))
            .filter(|(circuit, remote)| circuit.is_some() || remote.is_some());
        let key = match ids {
            Some(ids) => self.hasher.hash_one(ids),
            None if route.vlans.is_none() => return 0,
            None => vlan_hash(&self.hasher, route),
        };
        key.max(1)
    }

    pub(super) fn line_sessions(&self, key: u64) -> u32 {
        self.lines.get(&key).copied().unwrap_or(0)
    }

    /// Stores a session. A server's is entered into all tables, a client's gets its id later.
    pub(super) fn insert(&mut self, make: impl FnOnce(Key) -> Session) -> u32 {
        let index = self.sessions.insert_with(make).index;
        if self.at(index).role == Role::Server {
            self.enter_id(index);
            self.enter_host(index);
            self.enter_request(index);
            let line = self.at(index).line_key;
            if line != 0 {
                *self.lines.entry(line).or_default() += 1;
            }
        }
        index
    }

    /// Enters a session by its id.
    pub(super) fn enter_id(&mut self, index: u32) {
        let Self {
            sessions,
            by_id,
            hasher,
            ..
        } = self;
        let hash = |&index: &u32| {
            let session = listed(sessions, index);
            id_hash(hasher, session.route.port, session.route.peer, session.id)
        };
        by_id.insert_unique(hash(&index), index, hash);
    }

    fn enter_request(&mut self, index: u32) {
        let Self {
            sessions,
            by_request,
            hasher,
            ..
        } = self;
        let hash = |&index: &u32| {
            let session = listed(sessions, index);
            request_hash(hasher, &session.route, session.stamp, &session.host_uniq)
        };
        by_request.insert_unique(hash(&index), index, hash);
    }

    /// Adds a session to its host's ring, as the newest.
    fn enter_host(&mut self, index: u32) {
        let route = self.at(index).route;
        if let Some((oldest, _)) = self.host_sessions(&route) {
            let newest = self.at(oldest).host_before;
            self.at_mut(newest).host_next = index;
            let session = self.at_mut(index);
            session.host_before = newest;
            session.host_next = oldest;
            let first = self.at_mut(oldest);
            first.host_before = index;
            first.host_count += 1;
            return;
        }
        let session = self.at_mut(index);
        (session.host_before, session.host_next) = (index, index);
        session.host_count = 1;
        let Self {
            sessions,
            by_host,
            hasher,
            ..
        } = self;
        let hash = |&index: &u32| host_hash(hasher, &listed(sessions, index).route);
        by_host.insert_unique(hash(&index), index, hash);
    }

    /// Removes a session from its host's ring.
    fn leave_host(&mut self, index: u32) {
        let (route, before, next) = {
            let session = self.at(index);
            (session.route, session.host_before, session.host_next)
        };
        let Some((oldest, count)) = self.host_sessions(&route) else {
            return;
        };
        let hash = host_hash(&self.hasher, &route);
        let entry = self.by_host.find_entry(hash, |&at| at == oldest);
        let entry = entry.expect("it was found just now");
        if count == 1 {
            entry.remove();
            return;
        }
        self.at_mut(before).host_next = next;
        self.at_mut(next).host_before = before;
        let first = if oldest == index { next } else { oldest };
        if oldest == index {
            let hash = host_hash(&self.hasher, &route);
            if let Some(place) = self.by_host.find_mut(hash, |&at| at == oldest) {
                *place = first;
            }
        }
        self.at_mut(first).host_count = count - 1;
    }

    /// Takes a session out of all tables.
    pub(super) fn take(&mut self, index: u32) -> Session {
        let (key, role, id, route, stamp) = {
            let session = self.at(index);
            (
                session.key,
                session.role,
                session.id,
                session.route,
                session.stamp,
            )
        };
        if id != 0 {
            let hash = id_hash(&self.hasher, route.port, route.peer, id);
            if let Ok(entry) = self.by_id.find_entry(hash, |&at| at == index) {
                entry.remove();
            }
        }
        if role == Role::Server {
            self.leave_host(index);
            let hash = request_hash(&self.hasher, &route, stamp, &self.at(index).host_uniq);
            if let Ok(entry) = self.by_request.find_entry(hash, |&at| at == index) {
                entry.remove();
            }
            self.leave_line(index);
            self.ids.release(id);
        }
        self.sessions.remove(key).expect("the caller has it")
    }

    fn leave_line(&mut self, index: u32) {
        let key = self.at(index).line_key;
        if let Some(count) = self.lines.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.lines.remove(&key);
            }
        }
    }

    /// The index of a session that still exists.
    pub(super) fn index_of(&self, key: SessionKey) -> Option<u32> {
        self.sessions.get(key.0).map(|_| key.0.index)
    }
}

/// The links of a session without a host.
pub(super) const UNLINKED: u32 = NIL;
