//! Tunnels by place, and the sessions of L2TPv2 by id: the order in which SNMP asks for rows (RFC 3371, RFC 4087). A step
//! finds the next row without a walk over others, and nothing is done for rows that nobody asks for.

use std::collections::BTreeMap;

use base::OrderedSet;
use wire::l2tp::Version;

use super::Endpoint;
use crate::pool::NIL;
use crate::session::SessionView;
use crate::tunnel::{TunnelKey, TunnelView};

/// Sessions of a tunnel from which on their ids are kept as a set. A step visits all sessions of a tunnel with fewer.
const MANY: u32 = 512;

/// The places of tunnels, and the ids of sessions in tunnels that have many.
#[derive(Default)]
pub(super) struct Ordered {
    /// Tunnels of any version.
    every: OrderedSet,
    /// L2TPv2 tunnels.
    tunnels: OrderedSet,
    /// L2TPv2 tunnels that have sessions.
    callers: OrderedSet,
    /// The session ids of tunnels with [`MANY`] sessions, until they have fewer than half as many.
    ids: BTreeMap<u32, OrderedSet>,
}

impl Ordered {
    pub(super) fn add_tunnel(&mut self, index: u32, version: Version) {
        self.every.insert(index);
        if version == Version::V2 {
            self.tunnels.insert(index);
        }
    }

    pub(super) fn remove_tunnel(&mut self, index: u32) {
        self.every.remove(index);
        self.tunnels.remove(index);
    }

    /// A session was removed from a tunnel that has `left` others.
    pub(super) fn remove_session(&mut self, tunnel: u32, id: u32, left: u32) {
        if left == 0 {
            self.callers.remove(tunnel);
        }
        if left < MANY / 2 {
            self.ids.remove(&tunnel);
        } else if let Some(ids) = self.ids.get_mut(&tunnel) {
            ids.remove(id);
        }
    }
}

impl Endpoint {
    /// Notes a new L2TPv2 session, which is in its tunnel's list already.
    pub(super) fn order_session(&mut self, tunnel: u32, id: u32) {
        if self.tunnel_at(tunnel).sessions == 1 {
            self.ordered.callers.insert(tunnel);
        }
        if let Some(ids) = self.ordered.ids.get_mut(&tunnel) {
            ids.insert(id);
        } else if self.tunnel_at(tunnel).sessions >= MANY {
            let mut ids = OrderedSet::new();
            for id in self.ids_of(tunnel) {
                ids.insert(id);
            }
            self.ordered.ids.insert(tunnel, ids);
        }
    }

    /// Our ids of a tunnel's sessions, in no order.
    fn ids_of(&self, tunnel: u32) -> impl Iterator<Item = u32> {
        let first = self.tunnel_at(tunnel).first_session;
        let known = |at: u32| (at != NIL).then_some(at);
        core::iter::successors(known(first), move |at| known(self.session_at(*at).next))
            .map(|at| self.session_at(at).local_id)
    }

    /// The first L2TPv2 tunnel at place `from` or after it, with its place; closing and held ones too. O(log n).
    #[must_use]
    pub fn tunnel_from(&self, from: u32) -> Option<(u32, TunnelView<'_>)> {
        let place = self.ordered.tunnels.next_from(from)?;
        Some((place, self.tunnels.at(place)?.view()))
    }

    /// The first tunnel of any version at place `from` or after it, with its place; closing and held ones too. O(log n).
    #[must_use]
    pub fn any_tunnel_from(&self, from: u32) -> Option<(u32, TunnelView<'_>)> {
        let place = self.ordered.every.next_from(from)?;
        Some((place, self.tunnels.at(place)?.view()))
    }

    /// The first L2TPv2 session at `from` or after it, by the place of its tunnel and then its id, with both. O(log n),
    /// and at most a few hundred sessions of a tunnel.
    #[must_use]
    pub fn session_from(&self, from: (u32, u32)) -> Option<((u32, u32), SessionView<'_>)> {
        let (mut from_place, mut from_id) = from;
        loop {
            let place = self.ordered.callers.next_from(from_place)?;
            if place != from_place {
                from_id = 0;
            }
            let next = match self.ordered.ids.get(&place) {
                Some(ids) => ids.next_from(from_id),
                None => self.ids_of(place).filter(|id| *id >= from_id).min(),
            };
            // At most two tunnels are looked at: the second one is looked at from its first id.
            let Some(id) = next else {
                (from_place, from_id) = (place.checked_add(1)?, 0);
                continue;
            };
            let tunnel = self.tunnel_at(place);
            debug_assert_eq!(tunnel.version, Version::V2);
            let session = self.session_at(self.narrow_session(place, id)?);
            let view = session.view(TunnelKey(tunnel.key), tunnel.local_id);
            return Some(((place, id), view));
        }
    }
}
