//! Read access for operators: routes, what peers are sent, counters, memory.

use wire::bgp::{FamilyId, NextHop, Nlri, Prefix};

use super::{Cursor, Memory, PeerId, Reason, Rib, RouteView};

/// Routes that were not taken or not sent, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Announced routes that were refused because their prefix has as many as it can.
    pub refused: u64,
    /// Prefixes that were not sent because their attributes leave no room in a message.
    pub too_long: u64,
    /// Prefixes that were not sent because there was no next hop of their family.
    pub without_next_hop: u64,
    /// Members of groups that were detached because they read too slowly.
    pub detached: u64,
}

/// Counts of one family of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerCounts {
    /// Its routes in the table.
    pub received: u32,
    /// The stale routes among them.
    pub stale: u32,
    /// Routes that it was sent, or will be sent at once.
    pub sent: u32,
    /// Routes that it is still to be sent apart from the group's queue: 0 for a peer that keeps up.
    pub behind: u32,
}

impl Rib {
    /// How many prefixes of a family have a route, and how many routes there are.
    #[must_use]
    pub fn counts(&self, family: FamilyId) -> (usize, usize) {
        self.store.counts(family)
    }

    /// Counts of routes that were not taken or not sent.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        let sent = self.groups.counters();
        Counters {
            refused: self.store.refused(),
            too_long: sent.too_long,
            without_next_hop: sent.without_next_hop,
            detached: sent.detached,
        }
    }

    /// The routes of a prefix, in the order of peers; our own route is last.
    pub fn routes(&self, prefix: Prefix) -> impl Iterator<Item = RouteView<'_>> {
        self.store.routes(prefix)
    }

    /// Why each route of a prefix is the best or is not, in the order of [`routes`](Self::routes).
    #[must_use]
    pub fn reasons(&self, prefix: Prefix) -> Vec<Reason> {
        self.store.reasons(prefix)
    }

    /// The best route of exactly this prefix.
    #[must_use]
    pub fn best(&self, prefix: Prefix) -> Option<RouteView<'_>> {
        self.store.best(prefix)
    }

    /// The longest prefix with a best route that contains `prefix`, which may be an address.
    #[must_use]
    pub fn longest_match(&self, prefix: Prefix) -> Option<Prefix> {
        self.store.longest_match(prefix)
    }

    /// Walks over the prefixes of a family that have a route, in the table's order, and looks at up to `steps` slots.
    /// Returns where to continue, `None` at the end. A prefix that is added or removed during the walk may be missed;
    /// every other prefix is seen once.
    pub fn walk(
        &self,
        family: FamilyId,
        cursor: Cursor,
        steps: u32,
        see: impl FnMut(Prefix),
    ) -> Option<Cursor> {
        self.store.walk(family, cursor, steps, see)
    }

    /// As [`walk`](Self::walk), but only the prefixes that `within` contains, itself included.
    pub fn walk_within(
        &self,
        within: Prefix,
        cursor: Cursor,
        steps: u32,
        mut see: impl FnMut(Prefix),
    ) -> Option<Cursor> {
        self.walk(within.family(), cursor, steps, |prefix| {
            if within.contains(prefix) {
                see(prefix);
            }
        })
    }

    /// What a peer is sent of a family, in the order of [`walk`](Self::walk): each route, its attributes as they are
    /// on the wire, and its next hop.
    pub fn walk_sent(
        &self,
        peer: PeerId,
        family: FamilyId,
        cursor: Cursor,
        steps: u32,
        see: impl FnMut(Nlri, &[u8], NextHop),
    ) -> Option<Cursor> {
        let (slots, next) = cursor.slots(steps, self.store.end(family));
        self.groups
            .walk_sent(&self.store, (peer.0, family), slots, see)?;
        next
    }

    /// Counts of a peer's routes of a family.
    #[must_use]
    pub fn peer_counts(&self, peer: PeerId, family: FamilyId) -> PeerCounts {
        let Some(state) = self.store.peer(peer.0) else {
            return PeerCounts::default();
        };
        let held = state.held(family);
        let (sent, behind) = self.groups.counts(peer.0, family);
        PeerCounts {
            received: held.routes,
            stale: held.old,
            sent,
            behind,
        }
    }

    /// Memory held, by part.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let store = self.store.memory();
        let (groups, members, group_count) = self.groups.memory();
        Memory {
            groups,
            peers: store.peers + members,
            group_count,
            ..store
        }
    }
}
