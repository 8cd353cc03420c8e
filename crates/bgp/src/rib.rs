//! The routing information base: what each peer announced (Adj-RIBs-In), the best routes (Loc-RIB), and what each peer
//! is sent (Adj-RIBs-Out). RFC 4271, sections 3.2 and 9.
//!
//! | module | what it is |
//! |---|---|
//! | `store` | the routes, and the decision which is best |
//! | `groups` | what peers are sent, written once for all peers that get the same |
//! | `reclaim` | slots without routes, until they can be used again |
//! | `watch` | changes of best routes, for an owner that asks for them |
//! | `view` | what operators look at |
//!
//! The arrows go one way: [`Rib`] has a store and groups, groups read the store, and the store knows of neither. The
//! store reports each change to a `Follower`; `Rib` passes it to the groups, the watch and the reclaimer.
//!
//! A path is a peer with a set of attributes. Prefixes that were announced alike share one path, so a route is the
//! number of a path. A group remembers that number for each route that it advertised, and not the bytes, which it can
//! write again. A route has no timestamp and no mark: each session of a peer has a number, and routes of an older
//! session are stale or are being removed.
//!
//! Left out: the interior cost and reachability of next hops (9.1.2), aggregation (9.2.2; aggregates are originated),
//! confederations (RFC 5065), route flap dampening, several best paths.

mod chunked;
mod dirty;
mod groups;
mod hash;
mod index;
mod number;
mod reclaim;
mod store;
#[cfg(test)]
mod tests;
mod view;
mod watch;

use std::sync::Arc;

use base::Instant;
use wire::bgp::{Families, FamilyId, Prefix, Update};

use crate::PeerId;
use crate::policy::{Policy, Roas};
use groups::Groups;
use reclaim::Reclaim;
pub use store::{
    Best, Cursor, LocalRoute, Memory, NextHopRule, PeerTraits, Reason, Received, RibConfig,
    RouteView,
};
use store::{Follower, Old, Store};
pub use view::{Counters, PeerCounts};
pub use watch::BestChange;
use watch::Watch;

/// Peers' numbers are below this; sessions of other peers are ignored.
pub const PEERS_MAX: u32 = store::LOCAL;

/// The routes of a router.
///
/// Time is an argument. After calls that add or remove routes, call [`work`](Self::work) until it returns `false`. Then
/// [`poll_ready`](Self::poll_ready) names the peers that have something to be sent, and [`fill`](Self::fill) writes it.
#[derive(Debug)]
pub struct Rib {
    store: Store,
    groups: Groups,
    reclaim: Reclaim,
    watch: Option<Box<Watch>>,
}

/// Those that follow the changes of the store.
struct Followers<'a> {
    groups: &'a mut Groups,
    reclaim: &'a mut Reclaim,
    watch: Option<&'a mut Watch>,
}

impl Follower for Followers<'_> {
    #[inline]
    fn changed(&mut self, store: &Store, at: (FamilyId, u32), best: u32, is_new_best: bool) {
        self.groups.changed(store, at, best, is_new_best);
        if is_new_best && let Some(watch) = &mut self.watch {
            watch.insert(at.0, at.1);
        }
    }

    fn renumbered(&mut self, store: &mut Store, at: (FamilyId, u32), old: u32, new: u32) {
        self.groups.renumbered(store, at, old, new);
    }

    #[inline]
    fn emptied(&mut self, at: (FamilyId, u32)) {
        self.reclaim.insert(at);
    }
}

impl Rib {
    /// A rib without peers and routes.
    #[must_use]
    pub fn new(config: RibConfig) -> Self {
        let seed = config.seed;
        Rib {
            store: Store::new(config, hash::number(seed, 1)),
            groups: Groups::new(seed),
            reclaim: Reclaim::default(),
            watch: None,
        }
    }

    /// The store, and those that follow it.
    fn split(&mut self) -> (&mut Store, Followers<'_>) {
        let followers = Followers {
            groups: &mut self.groups,
            reclaim: &mut self.reclaim,
            watch: self.watch.as_deref_mut(),
        };
        (&mut self.store, followers)
    }

    /// A session is established. The peer is sent all routes, then End-of-RIB if that was negotiated (RFC 4724).
    ///
    /// Routes that were kept as stale from an older session stay until they are replaced or
    /// [`sweep_stale`](Self::sweep_stale) is called.
    pub fn open_peer(&mut self, peer: PeerId, traits: PeerTraits) {
        if peer.0 >= PEERS_MAX {
            return;
        }
        self.groups.close(peer.0);
        let families = traits.families;
        self.store.open_peer(peer.0, traits);
        self.groups.open(peer.0, families, &self.store);
    }

    /// A session has ended. Routes of the families in `keep` stay as stale routes (RFC 4724, section 4.2), except
    /// those that were stale before. All others are removed, in slices.
    pub fn close_peer(&mut self, peer: PeerId, keep: Families) {
        self.groups.close(peer.0);
        let (store, mut followers) = self.split();
        store.close_peer(peer.0, keep, &mut followers);
    }

    /// Makes the peer's routes of a family stale, until they are announced again or
    /// [`sweep_stale`](Self::sweep_stale) is called: for a refresh whose start the peer marked (RFC 7313).
    pub fn mark_stale(&mut self, peer: PeerId, family: FamilyId) {
        let (store, mut followers) = self.split();
        store.age(peer.0, family, Some(Old::Refresh), &mut followers);
    }

    /// Removes the peer's stale routes of a family, in slices.
    pub fn sweep_stale(&mut self, peer: PeerId, family: FamilyId) {
        self.store.sweep_stale(peer.0, family);
    }

    /// The peer has sent all its routes of a family (RFC 4724): its stale routes are removed.
    pub fn end_of_rib(&mut self, peer: PeerId, family: FamilyId) {
        self.sweep_stale(peer, family);
    }

    /// While `deferred`, peers are sent nothing, not even End-of-RIB: for a router that restarts and waits for its
    /// peers' routes (RFC 4724, section 4.1).
    pub fn set_deferred(&mut self, deferred: bool) {
        self.groups.set_deferred(deferred);
    }

    /// Takes the routes of a message from a peer that has a session.
    pub fn receive(&mut self, peer: PeerId, update: &Update<'_>) -> Received {
        let (store, mut followers) = self.split();
        store.receive(peer, update, &mut followers)
    }

    /// Adds a route of our own, or replaces its attributes.
    pub fn originate(&mut self, prefix: Prefix, route: &LocalRoute) {
        let (store, mut followers) = self.split();
        store.originate(prefix, route, &mut followers);
    }

    /// Removes a route of our own. Returns whether there was one.
    pub fn retract(&mut self, prefix: Prefix) -> bool {
        let (store, mut followers) = self.split();
        store.retract(prefix, &mut followers)
    }

    /// Does a slice of work, of about `budget` routes (10,000 of them take a few milliseconds). Returns whether there
    /// is more to do now.
    pub fn work(&mut self, budget: usize, now: Instant) -> bool {
        let left = self.work_on_routes(budget, now);
        let left = self.free_slots(left, now);
        left == 0 || self.has_work(now)
    }

    /// As [`work`](Self::work), but leaves the slots of withdrawn prefixes to [`reclaim`](Self::reclaim), which a driver
    /// calls when there is nothing to read.
    pub fn work_apart(&mut self, budget: usize, now: Instant) -> bool {
        self.work_on_routes(budget, now) == 0 || self.has_work(now)
    }

    /// Frees up to `budget` slots of withdrawn prefixes. Returns whether more can be freed now.
    pub fn reclaim(&mut self, budget: usize, now: Instant) -> bool {
        self.free_slots(budget, now) == 0
    }

    /// How many slots of withdrawn prefixes wait for [`reclaim`](Self::reclaim).
    #[must_use]
    pub fn reclaimable(&self) -> usize {
        self.reclaim.waiting()
    }

    /// Does everything but reclaim slots. Returns what is left of the budget.
    fn work_on_routes(&mut self, budget: usize, now: Instant) -> usize {
        let mut left = budget;
        let (store, mut followers) = self.split();
        for family in FamilyId::ALL {
            left = store.sweep(family, left, &mut followers);
        }
        left = self.groups.mark(left, &self.store);
        left = self.groups.flush_all(left, &mut self.store, now);
        self.groups.bury(left, &mut self.store)
    }

    fn free_slots(&mut self, budget: usize, now: Instant) -> usize {
        let mut left = budget;
        let referrers = (&self.groups, self.watch.as_deref());
        for family in FamilyId::ALL {
            left = self
                .reclaim
                .work(family, left, &mut self.store, referrers, now);
        }
        left
    }

    fn has_work(&self, now: Instant) -> bool {
        self.store.is_sweeping()
            || self.groups.has_dying()
            || self.groups.is_marking()
            || self.groups.has_flushable(now)
    }

    /// When [`work`](Self::work) has to be called at the latest, and the name of the timer.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.groups.poll_timeout()
    }

    /// A peer that has something to be sent. Each is named once until [`fill`](Self::fill) was called for it.
    #[inline]
    pub fn poll_ready(&mut self) -> Option<PeerId> {
        self.groups.poll_ready().map(PeerId)
    }

    /// Appends whole messages for a peer until `out` has `limit` bytes or nothing is left. Returns whether there is
    /// more.
    pub fn fill(&mut self, peer: PeerId, out: &mut Vec<u8>, limit: usize, now: Instant) -> bool {
        self.groups.fill(peer.0, out, limit, (&mut self.store, now))
    }

    /// Sends the peer all routes of a family again (RFC 2918), with marks around them if that was negotiated (RFC
    /// 7313).
    pub fn refresh(&mut self, peer: PeerId, family: FamilyId) {
        self.groups.refresh(peer.0, family);
    }

    /// From now on [`poll_change`](Self::poll_change) returns changes of best routes; first come all best routes that
    /// there are.
    pub fn watch_changes(&mut self) {
        self.watch = Some(Box::new(Watch::new(&self.store)));
    }

    /// Replaces our AS, our BGP identifier and our cluster identifier. Loops are detected by the new ones from now on.
    /// The caller closes the sessions for which the change matters: their routes were judged by the old ones.
    pub fn set_identity(&mut self, asn: u32, router_id: u32, cluster_id: Option<u32>) {
        self.store.set_identity(asn, router_id, cluster_id);
    }

    /// The next change of a best route, after [`watch_changes`](Self::watch_changes). Of several changes of one prefix
    /// only the last is returned.
    pub fn poll_change(&mut self) -> Option<BestChange> {
        self.watch.as_mut()?.next(&self.store)
    }

    /// Replaces policies and authorised origins. Stored routes are judged again, in slices; peers are sent those for
    /// which that makes a difference.
    pub fn set_policies(
        &mut self,
        policies: impl IntoIterator<Item = (PeerId, Arc<Policy>, Arc<Policy>)>,
        roas: Arc<Roas>,
    ) {
        let has_new_roas = self.store.set_roas(roas);
        let mut exports = Vec::new();
        for (peer, import, export) in policies {
            let is_known =
                self.store
                    .set_policies(peer.0, import, Arc::clone(&export), has_new_roas);
            if is_known {
                exports.push((peer.0, export));
            }
        }
        self.groups
            .set_exports(&exports, has_new_roas, &mut self.store);
    }
}
