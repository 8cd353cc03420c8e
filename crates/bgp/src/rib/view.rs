//! What operators look at: routes and why they are best or not, what peers are told, counts, memory.

use wire::bgp::attr;
use wire::bgp::{Family, NextHop, Nlri, Prefix};

use super::attrs::Attributes;
use super::decision::{Decision, Reason};
use super::group::Look;
use super::outward::{Ours, Told, next_hop_v6};
use super::paths::LOCAL;
use super::table::with_table;
use super::{Best, Counters, NONE, PeerId, Rib};

/// A route of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteView<'a> {
    /// The peer that it came from; `None` for one of our own.
    pub peer: Option<PeerId>,
    /// Its path identifier, 0 without.
    pub path_id: u32,
    /// Canonical attributes as received; an IPv6 next hop stands apart.
    pub received: &'a [u8],
    /// Canonical attributes after the import policy; `None` where that denied the route.
    pub attributes: Option<&'a [u8]>,
    /// Its next hop; one of our own may have none.
    pub next_hop: Option<NextHop>,
    /// Its degree of preference.
    pub local_pref: u32,
    /// Whether it is the best.
    pub is_best: bool,
    /// Whether it is of an older session.
    pub is_stale: bool,
    /// Whether the peer is of our AS.
    pub is_internal: bool,
    path: u32,
}

/// Where a walk over a table goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor(u32);

/// Counts of one family of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerCounts {
    /// Its routes in the table.
    pub received: u32,
    /// Those of older sessions among them.
    pub stale: u32,
    /// Routes that it has been told, or will be at once.
    pub sent: u32,
    /// Routes that it is still to be told, apart from what is written: 0 when it keeps up.
    pub behind: u32,
}

/// Octets held, by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// Tables of prefixes, and their routes.
    pub tables: usize,
    /// Attribute sets.
    pub attributes: usize,
    /// Paths.
    pub paths: usize,
    /// What was told, and what waits to be told.
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

impl Rib {
    /// Prefixes that have a route, and routes, of a family.
    #[must_use]
    pub fn counts(&self, family: Family) -> (usize, usize) {
        self.tables.counts(family)
    }

    /// What is counted of routes that were not taken or not told.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The routes of a prefix, in the order of peers; ours last.
    pub fn routes(&self, prefix: Prefix) -> impl Iterator<Item = RouteView<'_>> {
        let slot = self.tables.find(prefix);
        self.routes_at(prefix.family(), slot.unwrap_or(NONE))
    }

    fn routes_at(&self, family: Family, slot: u32) -> impl Iterator<Item = RouteView<'_>> {
        let mut paths = Vec::new();
        let mut best = NONE;
        if slot != NONE {
            self.tables.routes(family, slot, &mut paths);
            best = self.tables.best(family, slot);
        }
        paths.into_iter().map(move |id| self.view(family, id, best))
    }

    fn view(&self, family: Family, id: u32, best: u32) -> RouteView<'_> {
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
            next_hop: next_hop_of(family, self.attributes.get(shown)),
            local_pref: self.attributes.digest(shown).local_pref,
            is_best: id == best,
            is_stale: held.is_some_and(|held| held.epoch != path.epoch()),
            is_internal: self.peers.source(peer).is_internal,
            path: id,
        }
    }

    /// Why each route of a prefix is the best or is not, in the order of [`routes`](Self::routes).
    #[must_use]
    pub fn reasons(&self, prefix: Prefix) -> Vec<Reason> {
        let family = prefix.family();
        let Some(slot) = self.tables.find(prefix) else {
            return Vec::new();
        };
        let mut paths = Vec::new();
        self.tables.routes(family, slot, &mut paths);
        let best = self.tables.best(family, slot);
        let decision = Decision {
            attributes: &self.attributes,
            paths: &self.paths,
            peers: &self.peers,
            prefers_oldest: self.config.prefers_oldest,
        };
        paths
            .iter()
            .map(|&path| decision.reason(path, best, &paths))
            .collect()
    }

    /// The best route of exactly that prefix.
    #[must_use]
    pub fn best(&self, prefix: Prefix) -> Option<RouteView<'_>> {
        let family = prefix.family();
        let best = self.tables.best(family, self.tables.find(prefix)?);
        (best != NONE).then(|| self.view(family, best, best))
    }

    /// The longest prefix with a best route in which an address or prefix lies.
    #[must_use]
    pub fn longest_match(&self, prefix: Prefix) -> Option<Prefix> {
        let family = prefix.family();
        with_table!(self.tables, family, table => {
            let slot = table.longest_match(prefix, family.bits())?;
            Some(table.prefix(slot))
        })
    }

    /// Walks over the prefixes of a family that have a route, in the table's order, and looks at up to `steps` places;
    /// gives where to go on, `None` at the end. Prefixes that come and go meanwhile may be seen or not; all others are
    /// seen once.
    pub fn walk(
        &self,
        family: Family,
        cursor: Cursor,
        steps: u32,
        mut see: impl FnMut(Prefix),
    ) -> Option<Cursor> {
        let all = self.tables.end(family);
        let end = cursor.0.saturating_add(steps).min(all);
        let mut slot = cursor.0;
        with_table!(self.tables, family, table => {
            while let Some(found) = table.next_used(slot, end) {
                see(table.prefix(found));
                slot = found + 1;
            }
        });
        (end < all).then_some(Cursor(end))
    }

    /// As [`walk`](Self::walk), the prefixes that lie in `within`, itself among them.
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

    /// As [`walk`](Self::walk), the best routes.
    pub fn walk_best(
        &self,
        family: Family,
        cursor: Cursor,
        steps: u32,
        mut see: impl FnMut(Prefix, RouteView<'_>),
    ) -> Option<Cursor> {
        self.walk(family, cursor, steps, |prefix| {
            if let Some(best) = self.best(prefix) {
                see(prefix, best);
            }
        })
    }

    /// What a peer is told of a family, as [`walk`](Self::walk) goes: routes, attributes as they go on the wire, next
    /// hop.
    pub fn walk_sent(
        &self,
        peer: PeerId,
        family: Family,
        cursor: Cursor,
        steps: u32,
        mut see: impl FnMut(Nlri, &[u8], NextHop),
    ) -> Option<Cursor> {
        let number = self.peers.get(peer.0)?.member(family).group()?;
        let group = self.groups.list[number as usize].as_deref()?;
        let look = self.look();
        let end = self.tables.end(family).min(cursor.0.saturating_add(steps));
        let mut told = Told::default();
        for slot in cursor.0..end {
            let prefix = self.tables.prefix(family, slot);
            let single = [(0, group.sent_path(slot))];
            let sent = group
                .sent_paths
                .get(&slot)
                .map_or(&single[..], Vec::as_slice);
            for &(path_id, id) in sent.iter().filter(|sent| sent.1 != NONE) {
                let path = self.paths.get(id);
                if path.peer() == peer.0 {
                    continue;
                }
                let edits = group.judge(&group.export, path, slot, look);
                if let Some(edits) = edits
                    && group
                        .tell(path, (&group.export, edits), look, &mut told)
                        .is_some()
                    && let Some(next_hop) = told.next_hop
                {
                    see(Nlri { prefix, path_id }, &told.attributes, next_hop);
                }
            }
        }
        (end < self.tables.end(family)).then_some(Cursor(end))
    }

    /// Counts of a peer's routes of a family.
    #[must_use]
    pub fn peer_counts(&self, peer: PeerId, family: Family) -> PeerCounts {
        let Some(state) = self.peers.get(peer.0) else {
            return PeerCounts::default();
        };
        let (held, member) = (state.held(family), state.member(family));
        let group = member.group().and_then(|number| self.group(number));
        let resend = member.resend.as_deref();
        PeerCounts {
            received: held.routes,
            stale: held.old,
            sent: group.map_or(0, |group| group.sent_count - member.own),
            behind: resend.map_or(0, |resend| {
                resend.dirty.len() + (resend.window.len() - resend.at) as u32
            }),
        }
    }

    /// What memory is held for what.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let groups = self.groups.list.iter().flatten();
        let dying: usize = self.groups.dying.iter().map(|sent| sent.memory()).sum();
        Memory {
            tables: self.tables.memory(),
            attributes: self.attributes.memory(),
            paths: self.paths.memory(),
            groups: groups.clone().map(|group| group.memory()).sum::<usize>() + dying,
            peers: self.peers.memory(),
            attribute_sets: self.attributes.len(),
            path_count: self.paths.len(),
            group_count: groups.count(),
        }
    }

    fn look(&self) -> Look<'_> {
        Look {
            tables: &self.tables,
            attributes: &self.attributes,
            peers: &self.peers,
            roas: &self.roas,
            ours: Ours {
                cluster_id: self.cluster_id(),
            },
        }
    }

    pub(super) fn best_of(&self, family: Family, path: u32) -> Best {
        let path = self.paths.get(path);
        let next_hop = next_hop_of(family, self.attributes.get(path.attributes));
        Best {
            peer: (path.peer() != LOCAL).then_some(PeerId(path.peer())),
            next_hop: next_hop.map(NextHop::address),
        }
    }
}

fn next_hop_of(family: Family, attributes: Attributes<'_>) -> Option<NextHop> {
    match family {
        Family::Ipv4Unicast => attr::next_hop(attributes.raw).map(NextHop::V4),
        Family::Ipv6Unicast => next_hop_v6(attributes.next_hop),
    }
}
