//! Read access for operators: routes, and why each is or is not the best.

use std::net::IpAddr;

use wire::bgp::{FamilyId, NextHop, Prefix};

use super::decision::Reason;
use super::paths::LOCAL;
use super::{PeerId, Store};
use crate::rib::number::NONE;

/// A best route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Best {
    /// The peer that it came from; `None` for a route of our own.
    pub peer: Option<PeerId>,
    /// Its next hop. A route of our own may have none.
    pub next_hop: Option<IpAddr>,
}

/// A route of a prefix, for display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteView<'a> {
    /// The peer that it came from; `None` for a route of our own.
    pub peer: Option<PeerId>,
    /// Its path identifier, 0 without.
    pub path_id: u32,
    /// Canonical attributes as received. They have no IPv6 next hop; see `next_hop`.
    pub received: &'a [u8],
    /// Canonical attributes after the import policy; `None` if that denied the route.
    pub attributes: Option<&'a [u8]>,
    /// Its next hop. A route of our own may have none.
    pub next_hop: Option<NextHop>,
    /// Its degree of preference.
    pub local_pref: u32,
    /// Whether it is the best.
    pub is_best: bool,
    /// Whether it is stale: from an older session.
    pub is_stale: bool,
    /// Whether the peer is in our AS.
    pub is_internal: bool,
    path: u32,
}

/// Where a walk over a table continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor(u32);

/// Memory held, in bytes, by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// The tables of prefixes and routes.
    pub tables: usize,
    /// Attribute sets.
    pub attributes: usize,
    /// Paths.
    pub paths: usize,
    /// Update groups: advertised routes and queued messages.
    pub groups: usize,
    /// Peers.
    pub peers: usize,
    /// How many attribute sets there are.
    pub attribute_sets: usize,
    /// How many paths.
    pub path_count: usize,
    /// How many groups.
    pub group_count: usize,
}

impl Store {
    /// Whether a path of the peer may be among those of a family. Routes of an earlier session that are still being
    /// removed count as well.
    pub(crate) fn has_routes(&self, peer: u32, family: FamilyId) -> bool {
        self.is_sweeping()
            || self
                .peer(peer)
                .is_some_and(|state| state.held(family).routes > 0)
    }

    /// How many prefixes of a family have a route, and how many routes there are.
    pub(in crate::rib) fn counts(&self, family: FamilyId) -> (usize, usize) {
        self.tables.counts(family)
    }

    /// The routes of a prefix, in the order of peers; our own route is last.
    pub(in crate::rib) fn routes(&self, prefix: Prefix) -> impl Iterator<Item = RouteView<'_>> {
        let slot = self.slot(prefix);
        self.routes_at(prefix.family(), slot.unwrap_or(NONE))
    }

    fn routes_at(&self, family: FamilyId, slot: u32) -> impl Iterator<Item = RouteView<'_>> {
        let mut paths = Vec::new();
        let mut best = NONE;
        if slot != NONE {
            self.tables.routes(family, slot, &mut paths);
            best = self.tables.best(family, slot);
        }
        paths.into_iter().map(move |id| self.view(family, id, best))
    }

    fn view(&self, family: FamilyId, id: u32, best: u32) -> RouteView<'_> {
        let path = self.paths.get(id);
        let peer = path.peer();
        let shown = if path.is_eligible() {
            path.attributes
        } else {
            path.received
        };
        let held = self.peers.get(peer).map(|state| *state.held(family));
        RouteView {
            peer: (peer != LOCAL).then_some(PeerId(peer)),
            path_id: path.path_id,
            received: self.attributes.get(path.received).raw,
            attributes: path
                .is_eligible()
                .then(|| self.attributes.get(path.attributes).raw),
            next_hop: self.attributes.get(shown).next_hop(family),
            local_pref: self.attributes.digest(shown).local_pref,
            is_best: id == best,
            is_stale: held.is_some_and(|held| held.epoch != path.epoch()),
            is_internal: self.peers.source(peer).is_internal,
            path: id,
        }
    }

    /// Why each route of a prefix is the best or is not, in the order of [`routes`](Self::routes).
    pub(in crate::rib) fn reasons(&self, prefix: Prefix) -> Vec<Reason> {
        let family = prefix.family();
        let Some(slot) = self.slot(prefix) else {
            return Vec::new();
        };
        let mut paths = Vec::new();
        self.tables.routes(family, slot, &mut paths);
        let best = self.tables.best(family, slot);
        let decision = self.decision();
        paths
            .iter()
            .map(|&path| decision.reason(path, best, &paths))
            .collect()
    }

    /// The best route of exactly this prefix.
    pub(in crate::rib) fn best(&self, prefix: Prefix) -> Option<RouteView<'_>> {
        let family = prefix.family();
        let best = self.tables.best(family, self.slot(prefix)?);
        (best != NONE).then(|| self.view(family, best, best))
    }

    /// The longest prefix with a best route that contains `prefix`, which may be an address.
    pub(in crate::rib) fn longest_match(&self, prefix: Prefix) -> Option<Prefix> {
        self.tables.longest_match(prefix)
    }

    /// Walks over the prefixes of a family that have a route, in the table's order, and looks at up to `steps` slots.
    /// Returns where to continue.
    pub(in crate::rib) fn walk(
        &self,
        family: FamilyId,
        cursor: Cursor,
        steps: u32,
        mut see: impl FnMut(Prefix),
    ) -> Option<Cursor> {
        let (slots, next) = cursor.slots(steps, self.tables.end(family));
        let (mut slot, end) = (slots.start, slots.end);
        while let Some((found, prefix)) = self.tables.next_used(family, slot, end) {
            see(prefix);
            slot = found + 1;
        }
        next
    }

    /// The best route of a slot.
    pub(in crate::rib) fn best_at(&self, family: FamilyId, slot: u32) -> Option<Best> {
        let best = self.tables.best(family, slot);
        if best == NONE {
            return None;
        }
        let path = self.paths.get(best);
        let next_hop = self.attributes.get(path.attributes).next_hop(family);
        Some(Best {
            peer: (path.peer() != LOCAL).then_some(PeerId(path.peer())),
            next_hop: next_hop.map(NextHop::address),
        })
    }

    /// Memory that the store holds in bytes, by part. The caller adds that of groups.
    pub(in crate::rib) fn memory(&self) -> Memory {
        Memory {
            tables: self.tables.memory(),
            attributes: self.attributes.memory(),
            paths: self.paths.memory(),
            peers: self.peers.memory(),
            attribute_sets: self.attributes.len(),
            path_count: self.paths.len(),
            ..Memory::default()
        }
    }
}

impl Cursor {
    /// The slots that a walk of so many steps looks at, and where it continues.
    pub(in crate::rib) fn slots(
        self,
        steps: u32,
        all: u32,
    ) -> (std::ops::Range<u32>, Option<Self>) {
        let end = self.0.saturating_add(steps).min(all);
        (self.0..end, (end < all).then_some(Cursor(end)))
    }
}
