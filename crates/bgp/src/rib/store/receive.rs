//! From a message into the table, and the decision for each route. RFC 4271, sections 9.1.1 and 9.1.2.
//!
//! Implements parts of RFC 8212.

use std::net::IpAddr;
use std::sync::Arc;

use wire::bgp::attr::{self, code};
use wire::bgp::{FamilyId, NextHop, Nlri, Place, Prefix, Role, Update};
use wire::with_family;

use super::attrs::{Digest, PathAttributes};
use super::decision::Decision;
use super::paths::{LOCAL, PathInfo};
use super::table::{Stored, Whose};
use super::{Follower, PeerId, Store};
use crate::policy::Policy;
use crate::policy::rewrite::Rewrite;
use crate::rib::number::NONE;

/// What became of a message's routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Announced routes that were stored, including denied ones.
    pub announced: u32,
    /// Withdrawn routes that were stored.
    pub withdrawn: u32,
    /// Announced routes that the import policy denied.
    pub denied: u32,
    /// Announced routes that are loops: they contain our AS, our identifier or our cluster, or their next hop is our
    /// end of the session (RFC 4271, sections 6.3 and 9.1.2; RFC 4456, section 8). They are treated as withdrawn.
    pub loops: u32,
    /// Announced routes that were leaked (RFC 9234, section 5). They are treated as withdrawn.
    pub leaks: u32,
    /// Announced routes that were refused because their prefix has as many as it can.
    pub refused: u32,
    /// Whether the peer exceeds its limit of routes of a family.
    pub is_over_limit: bool,
}

/// A route of our own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalRoute {
    /// Canonical attributes without NEXT_HOP. ORIGIN and AS_PATH are optional.
    pub attributes: Vec<u8>,
    /// Its next hop; by default our own towards each peer.
    pub next_hop: Option<IpAddr>,
}

/// The attributes of a message, for its routes of one family.
struct Arriving {
    peer: u32,
    epoch: u8,
    received: u32,
    import: Arc<Policy>,
    /// The path of the last route, and its path identifier: routes with the same identifier share it.
    same: Option<(u32, u32)>,
    has_med: bool,
}

impl Store {
    /// Takes the routes of a message from a peer that has a session.
    pub(in crate::rib) fn receive(
        &mut self,
        peer: PeerId,
        update: &Update<'_>,
        follower: &mut impl Follower,
    ) -> Received {
        let mut result = Received::default();
        let Some(state) = self.peers.get(peer.0) else {
            return result;
        };
        let limits = state.traits.prefix_limit;
        let mut routes = std::mem::take(&mut self.scratch.routes);
        routes.clear();
        routes.extend(update.withdrawn());
        self.touch_all(&routes);
        for &nlri in &routes {
            result.withdrawn += u32::from(self.withdraw(peer.0, nlri, follower));
        }
        routes.clear();
        routes.extend(update.announced());
        for routes in routes.chunk_by(|a, b| a.prefix.family() == b.prefix.family()) {
            let family = routes[0].prefix.family();
            let next_hop = apart(family, update.next_hop(family));
            let attributes = PathAttributes {
                next_hop: &next_hop,
                raw: update.attributes(),
            };
            self.announce(peer.0, family, attributes, routes, (&mut result, follower));
        }
        self.scratch.routes = routes;
        if let Some(state) = self.peers.get(peer.0) {
            let over = |(held, limit): (&super::peer::Held, &Option<u32>)| {
                limit.is_some_and(|limit| held.routes - held.old > limit)
            };
            result.is_over_limit = state.held.iter().zip(&limits).any(over);
        }
        result
    }

    /// Loads the index entries of all routes before the first is used, so that the processor waits for memory once.
    fn touch_all(&self, routes: &[Nlri]) {
        for nlri in routes {
            self.tables.touch(nlri.prefix);
        }
    }

    /// Adds a route of our own, or replaces its attributes.
    pub(in crate::rib) fn originate(
        &mut self,
        prefix: Prefix,
        route: &LocalRoute,
        follower: &mut impl Follower,
    ) {
        let mut raw = Vec::with_capacity(route.attributes.len() + 16);
        let mut rewrite = Rewrite::default();
        if attr::find(&route.attributes, code::ORIGIN).is_none() {
            rewrite.origin = Some(0);
        }
        let family = prefix.family();
        let next_hop = route.next_hop.map(NextHop::from);
        let next_hop = next_hop.filter(|next_hop| family.takes(*next_hop));
        if let (Some(NextHop::V4(address)), Place::Fields) = (next_hop, family.place()) {
            rewrite.next_hop = crate::policy::rewrite::Change::Set(address.to_bits());
        }
        rewrite.apply(&route.attributes, &mut raw);
        let next_hop = apart(family, next_hop);
        let attributes = PathAttributes {
            next_hop: &next_hop,
            raw: &raw,
        };
        let set = self.attributes.intern(attributes);
        let has_med = self.attributes.digest(set).med != 0;
        let path = PathInfo::new(LOCAL, 0, 0).with(set, set);
        let path = self.paths.intern(path, &mut self.attributes);
        let whose = Whose {
            peer: LOCAL,
            path_id: 0,
        };
        with_family!(family, F => self.put::<F>(prefix, whose, path, has_med, follower));
    }

    /// Removes a route of our own. Returns whether there was one.
    pub(in crate::rib) fn retract(&mut self, prefix: Prefix, follower: &mut impl Follower) -> bool {
        self.withdraw(LOCAL, Nlri { prefix, path_id: 0 }, follower)
    }

    fn withdraw(&mut self, peer: u32, nlri: Nlri, follower: &mut impl Follower) -> bool {
        let whose = Whose {
            peer,
            path_id: nlri.path_id,
        };
        with_family!(nlri.prefix.family(), F => {
            let found = self.tables.of::<F>().find(nlri.prefix);
            found.is_some_and(|slot| self.take_at::<F>(slot, whose, follower))
        })
    }

    fn announce(
        &mut self,
        peer: u32,
        family: FamilyId,
        attributes: PathAttributes<'_>,
        routes: &[Nlri],
        (result, follower): (&mut Received, &mut impl Follower),
    ) {
        let Some(state) = self.peers.get(peer) else {
            return;
        };
        let import = Arc::clone(&state.traits.import);
        let epoch = state.held(family).epoch;
        let set = self.attributes.intern(attributes);
        self.attributes.hold(set);
        let digest = *self.attributes.digest(set);
        if let Some(count) = self.refusal(peer, &digest, (family, attributes), result) {
            *count += routes.len() as u32;
            for &nlri in routes {
                self.withdraw(peer, nlri, follower);
            }
            self.attributes.release(set);
            return;
        }
        let mut arriving = Arriving {
            peer,
            epoch,
            received: set,
            import,
            same: None,
            has_med: digest.med != 0,
        };
        with_family!(family, F => {
            self.announce_all::<F>(&mut arriving, routes, result, follower);
        });
        if let Some((_, path)) = arriving.same {
            self.paths.release(path, &mut self.attributes);
        }
        self.attributes.release(set);
    }

    /// Whether routes with these attributes are refused. Returns the counter for that.
    fn refusal<'r>(
        &self,
        peer: u32,
        digest: &Digest,
        (family, attributes): (FamilyId, PathAttributes<'_>),
        result: &'r mut Received,
    ) -> Option<&'r mut u32> {
        let traits = &self.peers.get(peer)?.traits;
        let allowed = usize::from(traits.allow_own);
        let mut own = vec![self.config.asn];
        if traits.local_asn != self.config.asn {
            own.push(traits.local_asn);
        }
        let raw = attributes.raw;
        let path = attr::as_path(raw);
        let mut is_loop = digest.path_len > 0 && own.iter().any(|&asn| path.count(asn) > allowed);
        if digest.originator != 0 || digest.cluster_len > 0 {
            let cluster_id = self.cluster_id();
            is_loop |= digest.originator == self.config.router_id
                || attr::cluster_list(raw).any(|id| id == cluster_id);
        }
        let next_hop = attributes.next_hop(family);
        let own = family.own_next_hop(traits.local_v4, traits.local_v6);
        is_loop |= own.is_some() && next_hop == own;
        if is_loop {
            return Some(&mut result.loops);
        }
        let is_leak = match traits.role {
            Some(Role::Provider | Role::RouteServer) => digest.otc != 0,
            Some(Role::Peer) => digest.otc != 0 && digest.otc != traits.remote_asn,
            Some(Role::Customer | Role::RouteServerClient) | None => false,
        };
        is_leak.then_some(&mut result.leaks)
    }

    fn announce_all<F: Stored>(
        &mut self,
        arriving: &mut Arriving,
        routes: &[Nlri],
        result: &mut Received,
        follower: &mut impl Follower,
    ) {
        self.touch_all(routes);
        for &nlri in routes {
            let path = self.path_for(arriving, nlri);
            if !self.paths.get(path).is_eligible() {
                result.denied += 1;
            }
            let whose = Whose {
                peer: arriving.peer,
                path_id: nlri.path_id,
            };
            if self.put::<F>(nlri.prefix, whose, path, arriving.has_med, follower) {
                result.announced += 1;
            } else {
                result.refused += 1;
            }
        }
    }

    /// The path of one route, with one more user.
    fn path_for(&mut self, arriving: &mut Arriving, nlri: Nlri) -> u32 {
        if let Some((path_id, path)) = arriving.same
            && path_id == nlri.path_id
        {
            self.paths.hold(path, 1);
            return path;
        }
        let attributes = self.import(
            arriving.peer,
            &arriving.import,
            arriving.received,
            nlri.prefix,
        );
        if attributes != NONE && attributes != arriving.received {
            arriving.has_med |= self.attributes.digest(attributes).med != 0;
        }
        let path = PathInfo::new(arriving.peer, arriving.epoch, nlri.path_id);
        let path = path.with(arriving.received, attributes);
        let path = self.paths.intern(path, &mut self.attributes);
        if !arriving.import.is_by_prefix() {
            if let Some((_, old)) = arriving.same.replace((nlri.path_id, path)) {
                self.paths.release(old, &mut self.attributes);
            }
            self.paths.hold(path, 1);
        }
        path
    }

    /// The attributes after the import policy, or [`NONE`]. A new set has no user yet.
    pub(super) fn import(
        &mut self,
        peer: u32,
        policy: &Policy,
        received: u32,
        prefix: Prefix,
    ) -> u32 {
        let PathAttributes { next_hop, raw } = self.attributes.get(received);
        let Some(edits) = self.judge(policy, raw, peer, prefix) else {
            return NONE;
        };
        if edits == crate::policy::Edits::NONE {
            return received;
        }
        let mut rewrite = Rewrite::default();
        let set = policy.rewrite(edits, self.config.asn, &mut rewrite);
        let family = prefix.family();
        let set = set
            .map(NextHop::from)
            .filter(|next_hop| family.takes(*next_hop));
        if family.place() == Place::Multiprotocol {
            rewrite.next_hop = crate::policy::rewrite::Change::Keep;
        }
        let mut changed = Vec::with_capacity(raw.len() + 16);
        rewrite.apply(raw, &mut changed);
        let next_hop = match set {
            Some(_) => apart(family, set),
            None => next_hop.to_vec(),
        };
        self.attributes.intern(PathAttributes {
            next_hop: &next_hop,
            raw: &changed,
        })
    }

    /// Puts a route into the table; the caller has counted it as a user of its path. Returns `false` if there was no
    /// room: the table is then as before.
    fn put<F: Stored>(
        &mut self,
        prefix: Prefix,
        whose: Whose,
        path: u32,
        has_med: bool,
        follower: &mut impl Follower,
    ) -> bool {
        let table = self.tables.of_mut::<F>();
        let slot = table.find_or_insert(prefix);
        self.put_at::<F>(slot, whose, path, has_med, follower)
    }

    pub(super) fn put_at<F: Stored>(
        &mut self,
        slot: u32,
        whose: Whose,
        path: u32,
        has_med: bool,
        follower: &mut impl Follower,
    ) -> bool {
        let table = self.tables.of_mut::<F>();
        let old = match table.put(slot, whose, path, &self.paths) {
            Ok(old) => old,
            Err(super::table::Full) => {
                self.refused += 1;
                self.paths.release(path, &mut self.attributes);
                return false;
            }
        };
        if has_med {
            table.set_has_med(slot);
        }
        let best = table.best(slot);
        if old == Some(path) {
            self.paths.release(path, &mut self.attributes);
            return true;
        }
        self.count_route::<F>(whose.peer, old, true);
        let is_same = old.is_some_and(|old| self.is_same_to_others(old, path));
        let new_best = self.decide::<F>(slot, best, old, path);
        if is_same && new_best == path && Some(best) == old {
            self.tables.of_mut::<F>().set_best(slot, path);
            follower.renumbered(self, (F::ID, slot), best, path);
        } else if new_best != best || !is_same {
            self.tables.of_mut::<F>().set_best(slot, new_best);
            follower.changed(self, (F::ID, slot), new_best, new_best != best);
        }
        if let Some(old) = old {
            self.paths.release(old, &mut self.attributes);
        }
        true
    }

    /// Removes a route from the table. Returns whether it was there.
    pub(super) fn take_at<F: Stored>(
        &mut self,
        slot: u32,
        whose: Whose,
        follower: &mut impl Follower,
    ) -> bool {
        let table = self.tables.of_mut::<F>();
        let Some(old) = table.take(slot, whose, &self.paths) else {
            return false;
        };
        let best = table.best(slot);
        let is_empty = table.count(slot) == 0;
        self.count_route::<F>(whose.peer, Some(old), false);
        let new_best = if is_empty {
            NONE
        } else {
            self.decide::<F>(slot, best, Some(old), NONE)
        };
        self.tables.of_mut::<F>().set_best(slot, new_best);
        follower.changed(self, (F::ID, slot), new_best, new_best != best);
        if is_empty {
            follower.emptied((F::ID, slot));
        }
        self.paths.release(old, &mut self.attributes);
        true
    }

    /// Whether two paths are equal in all that peers are sent: a stale route that was announced again.
    fn is_same_to_others(&self, old: u32, new: u32) -> bool {
        let (old, new) = (self.paths.get(old), self.paths.get(new));
        old.attributes == new.attributes && new.is_eligible()
    }

    fn count_route<F: Stored>(&mut self, peer: u32, old: Option<u32>, is_put: bool) {
        let old_epoch = old.map(|old| self.paths.get(old).epoch());
        let Some(state) = self.peers.get_mut(peer) else {
            return;
        };
        let held = state.held_mut(F::ID);
        held.routes += u32::from(is_put);
        if let Some(epoch) = old_epoch {
            held.routes -= 1;
            held.old -= u32::from(epoch != held.epoch);
        }
    }

    /// The best path of a slot after `old` was replaced by `new`; either may be absent. `best` was the best before.
    fn decide<F: Stored>(&mut self, slot: u32, best: u32, old: Option<u32>, new: u32) -> u32 {
        let table = self.tables.of::<F>();
        if let Some(only) = table.only(slot) {
            return if self.paths.get(only).is_eligible() {
                only
            } else {
                NONE
            };
        }
        let decision = Decision {
            attributes: &self.attributes,
            paths: &self.paths,
            peers: &self.peers,
            prefers_oldest: self.config.prefers_oldest,
        };
        let is_candidate = new != NONE && self.paths.get(new).is_eligible();
        let lost_best = old == Some(best) && best != NONE;
        if !table.has_med(slot) && !lost_best {
            let is_better = || best == NONE || decision.is_better_without_med(new, best);
            return if is_candidate && is_better() {
                new
            } else {
                best
            };
        }
        let paths = &mut self.scratch.paths;
        paths.clear();
        table.collect(slot, paths);
        paths.retain(|&path| self.paths.get(path).is_eligible());
        // If the best route was announced again, it still is the oldest.
        let oldest = if lost_best && is_candidate { new } else { best };
        decision.best(paths, oldest, &mut self.scratch.left)
    }
}

/// The octets of a next hop that is stored apart from the attributes, as MP_REACH_NLRI has it.
fn apart(family: FamilyId, next_hop: Option<NextHop>) -> Vec<u8> {
    let mut octets = Vec::new();
    if let (Some(next_hop), Place::Multiprotocol) = (next_hop, family.place()) {
        next_hop.emit(&mut octets);
    }
    octets
}
