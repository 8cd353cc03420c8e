//! Routes that come: from messages into the table, and the decision on each. RFC 4271, sections 9.1.1 and 9.1.2.
//!
//! Implements parts of RFC 8212.

use std::net::IpAddr;
use std::sync::Arc;

use base::Instant;
use wire::bgp::attr::{self, code};
use wire::bgp::{Family, NextHop, Nlri, Prefix, Role, Update};

use super::attrs::{Attributes, Digest};
use super::decision::Decision;
use super::paths::{LOCAL, Path};
use super::peer::Source;
use super::table::{Key, Whose};
use super::{NONE, PeerId, Rib};
use crate::policy::rewrite::Rewrite;
use crate::policy::{Policy, Subject};

/// What became of a message's routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Routes that were announced and taken into the table; denied ones are among them.
    pub announced: u32,
    /// Routes that were withdrawn and had been there.
    pub withdrawn: u32,
    /// Announced routes that the import policy denied.
    pub denied: u32,
    /// Announced routes that had been through here: our AS, our identifier or our cluster is in them, or they lead back
    /// to our end of the session (RFC 4271, sections 6.3 and 9.1.2; RFC 4456, section 8). They count as withdrawn.
    pub loops: u32,
    /// Announced routes that must have leaked (RFC 9234, section 5). They count as withdrawn.
    pub leaks: u32,
    /// Announced routes for which there was no room.
    pub refused: u32,
    /// Whether the peer has more routes of a family now than it may.
    pub is_over_limit: bool,
}

/// A route of our own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalRoute {
    /// Canonical attributes, without NEXT_HOP; ORIGIN and AS_PATH may be left out.
    pub attributes: Vec<u8>,
    /// Its next hop; without one, ours towards each peer.
    pub next_hop: Option<IpAddr>,
}

/// A message's attributes as they are looked at for each of its routes of one family.
struct Arriving {
    peer: u32,
    epoch: u8,
    received: u32,
    import: Arc<Policy>,
    /// For routes with the same path identifier: that, and their path.
    same: Option<(u32, u32)>,
    has_med: bool,
}

impl Rib {
    /// Takes the routes of a message from an open peer.
    pub fn receive(&mut self, peer: PeerId, update: &Update<'_>, _now: Instant) -> Received {
        let mut result = Received::default();
        let Some(state) = self.peers.get(peer.0) else {
            return result;
        };
        let limits = state.traits.prefix_limit;
        let mut routes = std::mem::take(&mut self.scratch.routes);
        routes.clear();
        routes.extend(update.withdrawn());
        self.touch(&routes);
        for &nlri in &routes {
            result.withdrawn += u32::from(self.withdraw(peer.0, nlri));
        }
        routes.clear();
        routes.extend(update.announced());
        for routes in routes.chunk_by(|a, b| a.prefix.family() == b.prefix.family()) {
            let family = routes[0].prefix.family();
            let next_hop = match (family, update.next_hop(family)) {
                (Family::Ipv6Unicast, Some(next_hop)) => octets_of(next_hop),
                _ => Vec::new(),
            };
            let attributes = Attributes {
                next_hop: &next_hop,
                raw: update.attributes(),
            };
            self.announce(peer.0, family, attributes, routes, &mut result);
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

    /// Reads what routes will need of the tables' indices, all at once: so the processor waits for memory once.
    fn touch(&self, routes: &[Nlri]) {
        for nlri in routes {
            match nlri.prefix.family() {
                Family::Ipv4Unicast => self.tables.v4().touch(nlri.prefix),
                Family::Ipv6Unicast => self.tables.v6().touch(nlri.prefix),
            }
        }
    }

    /// A prefix is ours. Where it was before, the attributes are replaced.
    pub fn originate(&mut self, prefix: Prefix, route: &LocalRoute, _now: Instant) {
        let mut raw = Vec::with_capacity(route.attributes.len() + 16);
        let mut rewrite = Rewrite::default();
        if attr::find(&route.attributes, code::ORIGIN).is_none() {
            rewrite.origin = Some(0);
        }
        if let (Some(IpAddr::V4(address)), Family::Ipv4Unicast) = (route.next_hop, prefix.family())
        {
            rewrite.next_hop = crate::policy::rewrite::Change::Set(address.to_bits());
        }
        rewrite.apply(&route.attributes, &mut raw);
        let next_hop = match (route.next_hop, prefix.family()) {
            (Some(IpAddr::V6(address)), Family::Ipv6Unicast) => address.octets().to_vec(),
            _ => Vec::new(),
        };
        let attributes = Attributes {
            next_hop: &next_hop,
            raw: &raw,
        };
        let set = self.attributes.intern(attributes);
        let has_med = self.attributes.digest(set).med != 0;
        let path = Path::new(LOCAL, 0, 0).with(set, set);
        let path = self.paths.intern(path, &mut self.attributes);
        let whose = Whose {
            peer: LOCAL,
            path_id: 0,
        };
        match prefix.family() {
            Family::Ipv4Unicast => self.put::<u32>(prefix, whose, path, has_med),
            Family::Ipv6Unicast => self.put::<[u32; 4]>(prefix, whose, path, has_med),
        };
    }

    /// A prefix is no longer ours. Gives whether it was.
    pub fn retract(&mut self, prefix: Prefix, _now: Instant) -> bool {
        self.withdraw(LOCAL, Nlri { prefix, path_id: 0 })
    }

    fn withdraw(&mut self, peer: u32, nlri: Nlri) -> bool {
        let whose = Whose {
            peer,
            path_id: nlri.path_id,
        };
        match nlri.prefix.family() {
            Family::Ipv4Unicast => self.take::<u32>(nlri.prefix, whose),
            Family::Ipv6Unicast => self.take::<[u32; 4]>(nlri.prefix, whose),
        }
    }

    fn take<K: Key>(&mut self, prefix: Prefix, whose: Whose) -> bool {
        let found = K::table(&self.tables).find(prefix);
        found.is_some_and(|slot| self.take_at::<K>(slot, whose))
    }

    fn announce(
        &mut self,
        peer: u32,
        family: Family,
        attributes: Attributes<'_>,
        routes: &[Nlri],
        result: &mut Received,
    ) {
        let Some(state) = self.peers.get(peer) else {
            return;
        };
        let import = Arc::clone(&state.traits.import);
        let epoch = state.held(family).epoch;
        let set = self.attributes.intern(attributes);
        self.attributes.hold(set);
        let digest = *self.attributes.digest(set);
        if let Some(count) = self.refusal(peer, &digest, attributes, result) {
            *count += routes.len() as u32;
            for &nlri in routes {
                self.withdraw(peer, nlri);
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
        match family {
            Family::Ipv4Unicast => self.announce_all::<u32>(&mut arriving, routes, result),
            Family::Ipv6Unicast => self.announce_all::<[u32; 4]>(&mut arriving, routes, result),
        }
        if let Some((_, path)) = arriving.same {
            self.paths.release(path, &mut self.attributes);
        }
        self.attributes.release(set);
    }

    /// Where routes with such attributes are not taken: what counts them.
    fn refusal<'r>(
        &self,
        peer: u32,
        digest: &Digest,
        Attributes { next_hop, raw }: Attributes<'_>,
        result: &'r mut Received,
    ) -> Option<&'r mut u32> {
        let traits = &self.peers.get(peer)?.traits;
        let allowed = usize::from(traits.allow_own);
        let mut own = vec![self.config.asn];
        if traits.local_asn != self.config.asn {
            own.push(traits.local_asn);
        }
        let path = attr::as_path(raw);
        let mut is_loop = digest.path_len > 0 && own.iter().any(|&asn| path.count(asn) > allowed);
        if digest.originator != 0 || digest.cluster_len > 0 {
            let cluster_id = self.cluster_id();
            is_loop |= digest.originator == self.config.router_id
                || attr::cluster_list(raw).any(|id| id == cluster_id);
        }
        is_loop |= match super::outward::next_hop_v6(next_hop) {
            Some(NextHop::V6(address, _)) => traits.local_v6 == Some(address),
            Some(NextHop::V4(_)) | None => {
                traits.local_v4.is_some() && attr::next_hop(raw) == traits.local_v4
            }
        };
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

    fn announce_all<K: Key>(
        &mut self,
        arriving: &mut Arriving,
        routes: &[Nlri],
        result: &mut Received,
    ) {
        self.touch(routes);
        for &nlri in routes {
            let path = self.path_for(arriving, nlri);
            if !self.paths.get(path).is_eligible() {
                result.denied += 1;
            }
            let whose = Whose {
                peer: arriving.peer,
                path_id: nlri.path_id,
            };
            if self.put::<K>(nlri.prefix, whose, path, arriving.has_med) {
                result.announced += 1;
            } else {
                result.refused += 1;
            }
        }
    }

    /// The path of one route, held once more.
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
        let path = Path::new(arriving.peer, arriving.epoch, nlri.path_id);
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

    /// The attributes after the import policy, or [`NONE`]. A set that this makes is not held yet.
    pub(super) fn import(
        &mut self,
        peer: u32,
        policy: &Policy,
        received: u32,
        prefix: Prefix,
    ) -> u32 {
        let source: &Source = self.peers.source(peer);
        let Attributes { next_hop, raw } = self.attributes.get(received);
        let edits = policy.judge(&Subject {
            prefix,
            attributes: raw,
            neighbour: Some((source.asn, source.address)),
            roas: &self.roas,
        });
        let Some(edits) = edits else {
            return NONE;
        };
        if edits == crate::policy::Edits::NONE {
            return received;
        }
        let mut rewrite = Rewrite::default();
        let set = policy.rewrite(edits, self.config.asn, &mut rewrite);
        let set = set.filter(|address| Family::of(*address) == prefix.family());
        if prefix.family() == Family::Ipv6Unicast {
            rewrite.next_hop = crate::policy::rewrite::Change::Keep;
        }
        let mut changed = Vec::with_capacity(raw.len() + 16);
        rewrite.apply(raw, &mut changed);
        let next_hop = match set {
            Some(IpAddr::V6(address)) => address.octets().to_vec(),
            _ => next_hop.to_vec(),
        };
        self.attributes.intern(Attributes {
            next_hop: &next_hop,
            raw: &changed,
        })
    }

    /// Puts a route, whose path is held once for it, into the table. `false`: there was no room, and what the route
    /// was before stays.
    pub(super) fn put<K: Key>(
        &mut self,
        prefix: Prefix,
        whose: Whose,
        path: u32,
        has_med: bool,
    ) -> bool {
        let table = K::table_mut(&mut self.tables);
        let slot = table.find_or_insert(prefix);
        self.put_at::<K>(slot, whose, path, has_med)
    }

    pub(super) fn put_at<K: Key>(
        &mut self,
        slot: u32,
        whose: Whose,
        path: u32,
        has_med: bool,
    ) -> bool {
        let table = K::table_mut(&mut self.tables);
        let old = match table.put(slot, whose, path, &self.paths) {
            Ok(old) => old,
            Err(super::table::Full) => {
                self.counters.refused += 1;
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
        self.count_route::<K>(whose.peer, old, true);
        let is_same = old.is_some_and(|old| self.is_same_to_others(old, path));
        let new_best = self.decide::<K>(slot, best, old, path);
        if is_same && new_best == path && Some(best) == old {
            K::table_mut(&mut self.tables).set_best(slot, path);
            self.replace_sent(K::FAMILY, slot, best, path);
        } else if new_best != best || !is_same {
            K::table_mut(&mut self.tables).set_best(slot, new_best);
            self.changed(K::FAMILY, slot, new_best, new_best != best);
        }
        if let Some(old) = old {
            self.paths.release(old, &mut self.attributes);
        }
        true
    }

    /// Takes a route out of the table; `false` if it was not there.
    pub(super) fn take_at<K: Key>(&mut self, slot: u32, whose: Whose) -> bool {
        let table = K::table_mut(&mut self.tables);
        let Some(old) = table.take(slot, whose, &self.paths) else {
            return false;
        };
        let best = table.best(slot);
        let is_empty = table.count(slot) == 0;
        self.count_route::<K>(whose.peer, Some(old), false);
        let new_best = if is_empty {
            NONE
        } else {
            self.decide::<K>(slot, best, Some(old), NONE)
        };
        K::table_mut(&mut self.tables).set_best(slot, new_best);
        self.changed(K::FAMILY, slot, new_best, new_best != best);
        if is_empty {
            self.dead[K::FAMILY.index()].collected.insert(slot);
        }
        self.paths.release(old, &mut self.attributes);
        true
    }

    /// Whether two paths differ in nothing that others are told: a stale one, announced again.
    fn is_same_to_others(&self, old: u32, new: u32) -> bool {
        let (old, new) = (self.paths.get(old), self.paths.get(new));
        old.attributes == new.attributes && new.is_eligible()
    }

    fn count_route<K: Key>(&mut self, peer: u32, old: Option<u32>, is_put: bool) {
        let old_epoch = old.map(|old| self.paths.get(old).epoch());
        let Some(state) = self.peers.get_mut(peer) else {
            return;
        };
        let held = state.held_mut(K::FAMILY);
        held.routes += u32::from(is_put);
        if let Some(epoch) = old_epoch {
            held.routes -= 1;
            held.old -= u32::from(epoch != held.epoch);
        }
    }

    /// The best path at a place where `old` was replaced by `new`, either of which may not be; `best` was the best.
    fn decide<K: Key>(&mut self, slot: u32, best: u32, old: Option<u32>, new: u32) -> u32 {
        let table = K::table(&self.tables);
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
        // The best one announced anew is still the oldest.
        let oldest = if lost_best && is_candidate { new } else { best };
        decision.best(paths, oldest, &mut self.scratch.left)
    }

    /// A path that was told is another one now, with nothing that would have to be told.
    fn replace_sent(&mut self, family: Family, slot: u32, old: u32, new: u32) {
        for at in 0..self.groups.by_family[family.index()].len() {
            let number = self.groups.by_family[family.index()][at];
            let Some(mut group) = self.groups.list[number as usize].take() else {
                continue;
            };
            let mut world = super::world!(self);
            group.replace_sent(number, slot, old, new, &mut world);
            self.groups.list[number as usize] = Some(group);
        }
    }
}

/// A next hop as it is kept apart from the attributes.
fn octets_of(next_hop: NextHop) -> Vec<u8> {
    match next_hop {
        NextHop::V4(_) => Vec::new(),
        NextHop::V6(global, None) => global.octets().to_vec(),
        NextHop::V6(global, Some(link_local)) => [global.octets(), link_local.octets()].concat(),
    }
}
