//! The route store: what each peer announced (Adj-RIBs-In) and the best route of each prefix (Loc-RIB). RFC 4271,
//! sections 3.2 and 9.1.
//!
//! | module | what it holds |
//! |---|---|
//! | `attrs`, `paths` | attribute sets and paths, each stored once |
//! | `table`, `blocks` | prefixes in numbered slots, their routes, and the best route of each |
//! | `peer` | peers: what the session negotiated, and how many routes they have |
//! | `decision` | which route is best, and why another is not (9.1.2.2, RFC 4456) |
//! | `receive` | from a message into the table (9.1.1, RFC 4456, 9234, 7911) |
//! | `sweep` | walks over tables in slices: closed peers, stale routes (RFC 4724), changed import policies |
//! | `view` | what operators look at |
//!
//! The store does not know to which peers its routes are sent. It reports each change to a [`Follower`].

mod attrs;
mod blocks;
mod decision;
mod paths;
mod peer;
mod receive;
mod sweep;
mod table;
mod view;

use std::sync::Arc;

use wire::bgp::{FAMILIES, Families, FamilyId, Nlri, Prefix};

use crate::PeerId;
use crate::policy::{Edits, Policy, Roas, Subject};
use attrs::AttributeStore;
pub(super) use attrs::{Digest, LOCAL_PREF_DEFAULT, PathAttributes};
use decision::Decision;
pub use decision::Reason;
use paths::PathStore;
pub(super) use paths::{LOCAL, PathInfo};
use peer::Peers;
pub use peer::{NextHopRule, PeerTraits};
pub(super) use peer::{Old, Peer, Source};
pub use receive::{LocalRoute, Received};
use sweep::Sweep;
use table::Tables;
pub use view::{Best, Cursor, Memory, RouteView};

/// What a rib is configured with when it is made.
#[derive(Debug, Clone)]
pub struct RibConfig {
    /// Our AS.
    pub asn: u32,
    /// Our BGP identifier.
    pub router_id: u32,
    /// The cluster identifier of a route reflector (RFC 4456); by default our BGP identifier.
    pub cluster_id: Option<u32>,
    /// Whether the current best external route wins against one that is better by identifiers only (RFC 5004).
    pub prefers_oldest: bool,
    /// Keys the hashes, and draws the jitter of advertisement intervals.
    pub seed: u64,
}

/// Is notified of every change in a [`Store`].
pub(super) trait Follower {
    /// The routes of a slot have changed; `best` is the best path now, and `is_new_best` says whether it was another
    /// one before.
    fn changed(&mut self, store: &Store, at: (FamilyId, u32), best: u32, is_new_best: bool);

    /// The best path of a slot has another number now, with the same attributes: nothing has to be sent.
    fn renumbered(&mut self, store: &mut Store, at: (FamilyId, u32), old: u32, new: u32);

    /// The last route of a slot is gone.
    fn emptied(&mut self, at: (FamilyId, u32));
}

/// The routes of a router.
#[derive(Debug)]
pub(super) struct Store {
    config: RibConfig,
    tables: Tables,
    paths: PathStore,
    attributes: AttributeStore,
    peers: Peers,
    roas: Arc<Roas>,
    sweeps: [Sweep; FAMILIES],
    /// Routes that were refused because their prefix has as many as it can.
    refused: u64,
    scratch: Scratch,
}

/// Buffers that calls reuse.
#[derive(Debug, Default)]
struct Scratch {
    paths: Vec<u32>,
    left: Vec<u32>,
    looked: Vec<u32>,
    routes: Vec<Nlri>,
}

impl Store {
    pub(super) fn new(config: RibConfig, seed: u64) -> Self {
        Store {
            tables: Tables::new(seed),
            paths: PathStore::new(seed),
            attributes: AttributeStore::new(seed),
            peers: Peers::new(config.asn, config.router_id),
            roas: Arc::default(),
            sweeps: Default::default(),
            refused: 0,
            scratch: Scratch::default(),
            config,
        }
    }

    /// Replaces our AS and identifiers.
    pub(super) fn set_identity(&mut self, asn: u32, router_id: u32, cluster_id: Option<u32>) {
        self.config.asn = asn;
        self.config.router_id = router_id;
        self.config.cluster_id = cluster_id;
        self.peers.set_local(asn, router_id);
    }

    /// Our cluster identifier as a route reflector.
    pub(super) fn cluster_id(&self) -> u32 {
        self.config.cluster_id.unwrap_or(self.config.router_id)
    }

    /// Starts a peer's session.
    pub(super) fn open_peer(&mut self, peer: u32, traits: PeerTraits) {
        self.peers.open(peer, traits);
    }

    /// Ends a peer's session. Its routes of the families in `keep` stay as stale routes; all others are removed.
    pub(super) fn close_peer(&mut self, peer: u32, keep: Families, follower: &mut impl Follower) {
        let Some(state) = self.peers.get_mut(peer) else {
            return;
        };
        state.is_open = false;
        for family in FamilyId::ALL {
            let because = keep.contains(family).then_some(Old::Restart);
            self.age(peer, family, because, follower);
        }
        self.peers.forget_if_gone(peer);
    }

    /// Removes a peer's stale routes of a family, in slices.
    pub(super) fn sweep_stale(&mut self, peer: u32, family: FamilyId) {
        if let Some(state) = self.peers.get_mut(peer) {
            state.held_mut(family).kept = None;
            self.request_sweep(peer, family);
        }
    }

    /// Gives a peer new policies; its routes pass the new import policy in slices. Returns whether the peer is known.
    pub(super) fn set_policies(
        &mut self,
        peer: u32,
        import: Arc<Policy>,
        export: Arc<Policy>,
        has_new_roas: bool,
    ) -> bool {
        let Some(state) = self.peers.get_mut(peer) else {
            return false;
        };
        // A policy that both configurations share is not compared term by term.
        let rejudges = state.traits.import != import || has_new_roas && import.uses_roas();
        state.traits.import = import;
        state.traits.export = export;
        if rejudges {
            state.reimports = true;
            for family in FamilyId::ALL {
                self.request_sweep(peer, family);
            }
        }
        true
    }

    /// Replaces the authorised origins. Returns whether they differ from those before.
    pub(super) fn set_roas(&mut self, roas: Arc<Roas>) -> bool {
        let is_new = self.roas != roas;
        self.roas = roas;
        is_new
    }

    /// A peer that has a session, or routes from an older one.
    #[inline]
    pub(super) fn peer(&self, peer: u32) -> Option<&Peer> {
        self.peers.get(peer)
    }

    /// The traits of the peer that a route came from, or our own.
    #[inline]
    pub(super) fn source(&self, peer: u32) -> &Source {
        self.peers.source(peer)
    }

    /// The path with a number.
    #[inline]
    pub(super) fn path(&self, id: u32) -> &PathInfo {
        self.paths.get(id)
    }

    /// All path numbers are below this.
    #[inline]
    pub(super) fn paths_end(&self) -> u32 {
        self.paths.end()
    }

    /// Counts more users of a path.
    #[inline]
    pub(super) fn hold(&mut self, path: u32, times: u32) {
        self.paths.hold(path, times);
    }

    /// Counts one user of a path less, and frees the path after the last one.
    #[inline]
    pub(super) fn release(&mut self, path: u32) {
        self.paths.release(path, &mut self.attributes);
    }

    /// An attribute set.
    #[inline]
    pub(super) fn attributes(&self, set: u32) -> PathAttributes<'_> {
        self.attributes.get(set)
    }

    /// What the decision asks of an attribute set.
    #[inline]
    pub(super) fn digest(&self, set: u32) -> &Digest {
        self.attributes.digest(set)
    }

    /// The best path of a slot, or `NONE`.
    #[inline]
    pub(super) fn best_path(&self, family: FamilyId, slot: u32) -> u32 {
        self.tables.best(family, slot)
    }

    /// The slot of a prefix.
    pub(super) fn slot(&self, prefix: Prefix) -> Option<u32> {
        self.tables.find(prefix)
    }

    /// The prefix of a slot.
    #[inline]
    pub(super) fn prefix(&self, family: FamilyId, slot: u32) -> Prefix {
        self.tables.prefix(family, slot)
    }

    /// How many slots of a family were ever used.
    pub(super) fn end(&self, family: FamilyId) -> u32 {
        self.tables.end(family)
    }

    /// Loads the memory of the index entry of a slot's prefix, for a caller that frees the slot soon.
    pub(super) fn touch(&self, family: FamilyId, slot: u32) {
        self.tables.touch(self.tables.prefix(family, slot));
    }

    /// Whether a slot has a prefix but no route.
    pub(super) fn is_empty_at(&self, family: FamilyId, slot: u32) -> bool {
        self.tables.is_empty_at(family, slot)
    }

    /// Frees a slot without routes.
    pub(super) fn free_slot(&mut self, family: FamilyId, slot: u32) {
        self.tables.remove(family, slot);
    }

    /// What a policy makes of a path for one prefix; `None` denies it.
    pub(super) fn judge(
        &self,
        policy: &Policy,
        attributes: &[u8],
        peer: u32,
        prefix: Prefix,
    ) -> Option<Edits> {
        let source = self.source(peer);
        policy.judge(&Subject {
            prefix,
            attributes,
            neighbour: (!source.is_local).then_some((source.asn, source.address)),
            roas: &self.roas,
        })
    }

    /// The usable paths of a slot, the best `count` of them first and in order (all of them for 0), into `paths`.
    pub(super) fn rank(
        &self,
        (family, slot): (FamilyId, u32),
        count: u16,
        paths: &mut Vec<u32>,
        left: &mut Vec<u32>,
    ) {
        paths.clear();
        self.tables.routes(family, slot, paths);
        paths.retain(|&path| self.paths.get(path).is_eligible());
        let count = usize::from(count);
        if count > 0 && count < paths.len() {
            let best = self.tables.best(family, slot);
            self.decision().rank(paths, best, left, count);
            paths.truncate(count);
        }
    }

    fn decision(&self) -> Decision<'_> {
        Decision {
            attributes: &self.attributes,
            paths: &self.paths,
            peers: &self.peers,
            prefers_oldest: self.config.prefers_oldest,
        }
    }

    /// How many routes were refused because their prefix has as many as it can.
    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }
}
