//! Routes: what each peer announced (Adj-RIBs-In), the best of them (Loc-RIB), and what each peer is told
//! (Adj-RIBs-Out). RFC 4271, sections 3.2 and 9.
//!
//! | module | what it is |
//! |---|---|
//! | `attrs`, `paths` | attribute sets and paths, each held once |
//! | `table`, `blocks` | prefixes, their routes and the best of those |
//! | `decision` | which is the best, and why another is not (9.1.2.2, RFC 4456) |
//! | `receive` | a message's routes, into the table (9.1.1, RFC 4456, 9234, 7911) |
//! | `group`, `outward`, `queue` | what peers are told, written once for all that are told the same (9.1.3, 9.2) |
//! | `serve` | a peer's share of it; peers that lag or come anew; refresh (RFC 2918, 7313) |
//! | `sweep` | what walks over tables, in slices: closed peers, stale routes (RFC 4724), changed policies |
//! | `view` | what operators look at |
//!
//! A path is a peer with a set of attributes; prefixes announced alike share one, so a route is a path's number. A
//! group keeps that number of what it told, not the octets, which it makes from it again. A route has no time and no
//! mark: a peer's session has a number, and routes of an older one are stale (or are being swept away).
//!
//! Left out: interior cost and reachability of next hops (9.1.2), aggregation (9.2.2; aggregates are originated),
//! confederations (RFC 5065), dampening, multiple best paths.

mod addpath;
mod attrs;
mod blocks;
mod chunked;
mod decision;
mod dirty;
mod group;
mod hash;
mod outward;
mod paths;
mod peer;
mod queue;
mod receive;
mod serve;
mod sweep;
mod table;
#[cfg(test)]
mod tests;
mod view;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use base::Instant;
use wire::bgp::{Families, Family, Prefix};

use crate::PeerId;
use crate::policy::{Policy, Roas};
use attrs::AttributeStore;
pub use decision::Reason;
use dirty::{Dirty, Item};
use group::{Group, Scratch};
use outward::Outward;
use paths::{LOCAL, PathStore};
use peer::{Member, Peers, Resend};
pub use peer::{NextHopRule, PeerTraits};
pub use receive::{LocalRoute, Received};
use sweep::Sweep;
use table::Tables;
pub use view::{Cursor, Memory, PeerCounts, RouteView};

/// Peers' numbers stay below this; sessions of others are ignored.
pub const PEERS_MAX: u32 = LOCAL;

/// No path, no place, no set.
const NONE: u32 = u32::MAX;

/// What a rib is told once.
#[derive(Debug, Clone)]
pub struct RibConfig {
    /// Our AS.
    pub asn: u32,
    /// Our BGP identifier.
    pub router_id: u32,
    /// The cluster of a route reflector (RFC 4456); else its BGP identifier.
    pub cluster_id: Option<u32>,
    /// Whether the best external route stays against one that is better by identifiers only (RFC 5004).
    pub prefers_oldest: bool,
    /// Keys hashes, and draws the jitter of advertisement intervals.
    pub seed: u64,
}

/// Routes that were not taken or not told, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Announced prefixes that were refused since their prefix has as many routes as are held.
    pub refused: u64,
    /// Prefixes that were not told since their attributes leave no room in a message.
    pub too_long: u64,
    /// Prefixes that were not told since there was no next hop of their family.
    pub without_next_hop: u64,
    /// Members of groups that were served apart since they had read too little of what waited.
    pub detached: u64,
}

/// The best route of a prefix has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BestChange {
    /// Which prefix.
    pub prefix: Prefix,
    /// Its best route now.
    pub best: Option<Best>,
}

/// A best route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Best {
    /// The peer that it came from; `None` for one of our own.
    pub peer: Option<PeerId>,
    /// Its next hop; one of our own may have none.
    pub next_hop: Option<IpAddr>,
}

/// The groups.
#[derive(Debug, Default)]
struct Groups {
    list: Vec<Option<Box<Group>>>,
    /// By family.
    by_family: [Vec<u32>; 2],
    /// Those with something pending.
    active: Vec<u32>,
    /// What groups told that are no more, to be let go in slices.
    dying: Vec<chunked::Chunked<u32>>,
    serial: u64,
}

/// Places whose routes are all gone, until nobody refers to them.
#[derive(Debug, Default)]
struct Dead {
    collected: Dirty,
    waiting: Vec<Item>,
    /// Group, its serial number, the block that must have been read.
    barrier: Vec<(u32, u64, u64)>,
    retry_at: Instant,
}

#[derive(Debug, Default)]
struct Watch {
    dirty: [Dirty; 2],
    window: Vec<Item>,
    family: usize,
}

/// The routes of a router.
///
/// Time is an argument. After calls that take or remove routes, [`work`](Self::work) is to be called until it says
/// that there is no more to do now; what peers are to be sent then is asked by [`poll_ready`](Self::poll_ready) and
/// [`fill`](Self::fill).
#[derive(Debug)]
pub struct Rib {
    config: RibConfig,
    tables: Tables,
    paths: PathStore,
    attributes: AttributeStore,
    peers: Peers,
    groups: Groups,
    roas: Arc<Roas>,
    ready: VecDeque<u32>,
    sweeps: [Sweep; 2],
    dead: [Dead; 2],
    watch: Option<Box<Watch>>,
    /// Whether nobody is told anything for now.
    is_deferred: bool,
    scratch: Scratch,
    counters: Counters,
    jitter: u64,
    /// Path identifiers that we gave out.
    identifiers: addpath::Identifiers,
}

/// Splits a rib into what groups look at and the rest.
macro_rules! world {
    ($rib:expr) => {{
        let cluster_id = $rib.cluster_id();
        $crate::rib::group::World {
            tables: &$rib.tables,
            paths: &mut $rib.paths,
            attributes: &mut $rib.attributes,
            peers: &mut $rib.peers,
            roas: &$rib.roas,
            ours: $crate::rib::outward::Ours { cluster_id },
            counters: &mut $rib.counters,
        }
    }};
}
use world;

impl Rib {
    /// A rib without peers and routes.
    #[must_use]
    pub fn new(config: RibConfig) -> Self {
        let seed = hash::number(config.seed, 1);
        Rib {
            tables: Tables::new(seed),
            paths: PathStore::new(seed),
            attributes: AttributeStore::new(seed),
            peers: Peers::new(config.asn, config.router_id),
            groups: Groups::default(),
            roas: Arc::default(),
            ready: VecDeque::new(),
            sweeps: Default::default(),
            dead: Default::default(),
            watch: None,
            is_deferred: false,
            scratch: Scratch::default(),
            counters: Counters::default(),
            jitter: config.seed,
            identifiers: addpath::Identifiers::new(),
            config,
        }
    }

    /// A session is established. The peer is told all routes, and after them, if so agreed, the end (RFC 4724).
    ///
    /// Routes that were kept as stale from a session before stay until they are replaced, or
    /// [`sweep_stale`](Self::sweep_stale) is called.
    pub fn open_peer(&mut self, peer: PeerId, traits: PeerTraits, _now: Instant) {
        if peer.0 >= PEERS_MAX {
            return;
        }
        self.leave_groups(peer.0);
        let families = traits.families;
        self.peers.open(peer.0, traits);
        for family in families.iter() {
            self.join_group(peer.0, family);
        }
    }

    /// A session is over. Routes of the families in `keep` stay as stale ones (RFC 4724, section 4.2), but not those
    /// that were stale before; all others are removed, in slices.
    pub fn close_peer(&mut self, peer: PeerId, keep: Families, now: Instant) {
        self.leave_groups(peer.0);
        let Some(state) = self.peers.get_mut(peer.0) else {
            return;
        };
        state.is_open = false;
        for family in Family::ALL {
            self.age(peer.0, family, keep.contains(family), now);
        }
        self.peers.forget_if_gone(peer.0);
    }

    /// The peer's routes of a family become stale, until they are announced again or
    /// [`sweep_stale`](Self::sweep_stale) is called: for a refresh whose beginning it marked (RFC 7313).
    pub fn mark_stale(&mut self, peer: PeerId, family: Family, now: Instant) {
        self.age(peer.0, family, true, now);
    }

    /// The peer's stale routes of a family are removed, in slices.
    pub fn sweep_stale(&mut self, peer: PeerId, family: Family, now: Instant) {
        if let Some(state) = self.peers.get_mut(peer.0) {
            state.held_mut(family).kept = None;
            self.request_sweep(peer.0, family, now);
        }
    }

    /// The peer has sent all of its routes of a family (RFC 4724): its stale ones are removed.
    pub fn end_of_rib(&mut self, peer: PeerId, family: Family, now: Instant) {
        self.sweep_stale(peer, family, now);
    }

    /// While `deferred`, peers are told nothing, not even the end of all routes: for a router that restarts and waits
    /// for its peers' routes (RFC 4724, section 4.1).
    pub fn set_deferred(&mut self, deferred: bool) {
        if self.is_deferred && !deferred {
            let open: Vec<u32> = self.open_peers().collect();
            open.into_iter().for_each(|peer| self.set_ready(peer));
        }
        self.is_deferred = deferred;
    }

    fn open_peers(&self) -> impl Iterator<Item = u32> {
        let open = self.peers.iter().filter(|(_, peer)| peer.is_open);
        open.map(|(number, _)| number)
    }

    /// A slice of what is to be done, of about `budget` routes (10,000 of them take few milliseconds). `true`: there
    /// is more to be done now.
    pub fn work(&mut self, budget: usize, now: Instant) -> bool {
        let mut left = budget;
        for family in Family::ALL {
            left = self.sweep(family, left);
        }
        left = self.flush_groups(left, now);
        left = self.bury(left);
        for family in Family::ALL {
            left = self.reclaim(family, left, now);
        }
        left == 0
            || self.sweeps.iter().any(Sweep::is_running)
            || !self.groups.dying.is_empty()
            || self.has_flushable(now)
    }

    /// When [`work`](Self::work) has to be called at the latest, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        if self.is_deferred {
            return None;
        }
        let active = self.groups.active.iter();
        let waiting = active.filter_map(|&number| self.group(number));
        let earliest = waiting
            .filter(|group| !group.pending.is_empty() && group.next_flush > Instant::ZERO)
            .map(|group| group.next_flush)
            .min()?;
        Some((earliest, "MinRouteAdvertisementIntervalTimer"))
    }

    /// A peer that has something to be sent, each once until [`fill`](Self::fill) was called for it.
    pub fn poll_ready(&mut self) -> Option<PeerId> {
        while let Some(number) = self.ready.pop_front() {
            if let Some(peer) = self.peers.get_mut(number) {
                peer.is_ready = false;
                if peer.is_open {
                    return Some(PeerId(number));
                }
            }
        }
        None
    }

    /// From now on changes of best routes are told by [`poll_change`](Self::poll_change), those that there are first.
    pub fn watch_changes(&mut self) {
        let mut watch = Box::<Watch>::default();
        for family in Family::ALL {
            for slot in 0..self.tables.end(family) {
                if self.tables.best(family, slot) != NONE {
                    watch.dirty[family.index()].insert(slot);
                }
            }
        }
        self.watch = Some(watch);
    }

    /// The next change of a best route, if somebody asked for them. Of several changes of one prefix the last is told.
    pub fn poll_change(&mut self) -> Option<BestChange> {
        let watch = self.watch.as_mut()?;
        while watch.window.is_empty() {
            let family = watch.dirty.iter().position(|dirty| !dirty.is_empty())?;
            watch.family = family;
            let (end, tables) = (self.paths.end(), &self.tables);
            let path_of = |slot| tables.best(Family::ALL[family], slot);
            watch.dirty[family].take(end, path_of, &mut watch.window);
        }
        let item = watch.window.pop()?;
        let family = Family::ALL[watch.family];
        let prefix = self.tables.prefix(family, item.slot);
        let best = match self.tables.best(family, item.slot) {
            NONE => None,
            path => Some(self.best_of(family, path)),
        };
        Some(BestChange { prefix, best })
    }

    /// Policies and authorisations are others now. Routes are judged again, in slices; peers are told of those for
    /// which that changes something.
    pub fn set_policies(
        &mut self,
        policies: impl IntoIterator<Item = (PeerId, Arc<Policy>, Arc<Policy>)>,
        roas: Arc<Roas>,
        now: Instant,
    ) {
        let has_new_roas = *self.roas != *roas;
        self.roas = roas;
        let mut exports = Vec::new();
        for (peer, import, export) in policies {
            let Some(state) = self.peers.get_mut(peer.0) else {
                continue;
            };
            let rejudges = *state.traits.import != *import || has_new_roas && import.uses_roas();
            state.traits.import = import;
            state.traits.export = Arc::clone(&export);
            if rejudges {
                state.reimports = true;
                for family in Family::ALL {
                    self.request_sweep(peer.0, family, now);
                }
            }
            exports.push((peer.0, export));
        }
        self.set_exports(&exports, has_new_roas);
    }

    fn cluster_id(&self) -> u32 {
        self.config.cluster_id.unwrap_or(self.config.router_id)
    }

    fn group(&self, number: u32) -> Option<&Group> {
        self.groups.list.get(number as usize)?.as_deref()
    }

    fn set_ready(&mut self, number: u32) {
        if let Some(peer) = self.peers.get_mut(number)
            && !peer.is_ready
        {
            peer.is_ready = true;
            self.ready.push_back(number);
        }
    }

    /// The best route at a place, or all of its routes, are others than before.
    #[inline]
    fn changed(&mut self, family: Family, slot: u32, best: u32, is_best_other: bool) {
        let source = (best != NONE).then(|| self.paths.get(best).peer());
        for &number in &self.groups.by_family[family.index()] {
            let Some(group) = &mut self.groups.list[number as usize] else {
                continue;
            };
            if !is_best_other && group.outward.add_path.is_none() {
                continue;
            }
            if let [only] = group.members[..]
                && source == Some(only)
                && group.outward.add_path.is_none()
                && group.sent_path(slot) == NONE
            {
                // Nobody else is there to be told.
                group.skips_own = true;
                continue;
            }
            group.pending.insert(slot);
            if !group.is_active {
                group.is_active = true;
                self.groups.active.push(number);
            }
        }
        if is_best_other && let Some(watch) = &mut self.watch {
            watch.dirty[family.index()].insert(slot);
        }
    }

    fn join_group(&mut self, peer: u32, family: Family) {
        let Some(state) = self.peers.get(peer) else {
            return;
        };
        let outward = Outward::of(peer, &state.traits, family);
        let export = Arc::clone(&state.traits.export);
        let owes_end = state.traits.end_of_rib;
        let same = self.groups.by_family[family.index()]
            .iter()
            .copied()
            .find(|&number| {
                self.group(number)
                    .is_some_and(|group| group.outward == outward && *group.export == *export)
            });
        let number = match same {
            Some(number) => number,
            None => self.make_group(Group::new(outward, export, 0)),
        };
        let Some(group) = &mut self.groups.list[number as usize] else {
            return;
        };
        let mut member = Member::of(number);
        member.owes_end = owes_end;
        member.cursor = group.queue.end();
        let is_first = group.members.is_empty();
        group.members.push(peer);
        let mut dirty = Dirty::default();
        for slot in 0..if is_first { 0 } else { group.sent.len() } {
            let path = group.sent_path(slot);
            if path != NONE {
                dirty.insert(slot);
                member.own += u32::from(self.paths.get(path).peer() == peer);
            }
        }
        if dirty.is_empty() {
            group.attached += 1;
        } else {
            member.resend = Some(Box::new(Resend {
                dirty,
                told: Some(Dirty::default()),
                ..Resend::default()
            }));
        }
        let skipped = std::mem::take(&mut group.skips_own);
        if is_first || skipped {
            self.mark_all(number);
        }
        if let Some(state) = self.peers.get_mut(peer) {
            *state.member_mut(family) = member;
        }
        self.set_ready(peer);
    }

    fn make_group(&mut self, mut group: Group) -> u32 {
        self.groups.serial += 1;
        group.serial = self.groups.serial;
        let family = group.family();
        let free = self.groups.list.iter().position(Option::is_none);
        let number = free.unwrap_or(self.groups.list.len());
        let group = Some(Box::new(group));
        match self.groups.list.get_mut(number) {
            Some(place) => *place = group,
            None => self.groups.list.push(group),
        }
        self.groups.by_family[family.index()].push(number as u32);
        number as u32
    }

    /// All that the group could tell or has told is pending.
    fn mark_all(&mut self, number: u32) {
        let Some(group) = &mut self.groups.list[number as usize] else {
            return;
        };
        let family = group.family();
        for slot in 0..self.tables.end(family) {
            if self.tables.best(family, slot) != NONE || group.has_sent(slot) {
                group.pending.insert(slot);
            }
        }
        if !group.pending.is_empty() && !group.is_active {
            group.is_active = true;
            self.groups.active.push(number);
        }
    }

    fn leave_groups(&mut self, peer: u32) {
        for family in Family::ALL {
            let Some(state) = self.peers.get_mut(peer) else {
                return;
            };
            let member = std::mem::take(state.member_mut(family));
            let Some(number) = member.group() else {
                continue;
            };
            let Some(group) = &mut self.groups.list[number as usize] else {
                continue;
            };
            group.members.retain(|&other| other != peer);
            if member.resend.is_none() {
                group.queue.leave(member.cursor, |_| {});
                group.attached -= 1;
            }
            if group.members.is_empty() {
                self.drop_group(number);
            }
        }
    }

    fn drop_group(&mut self, number: u32) {
        let Some(group) = self.groups.list[number as usize].take() else {
            return;
        };
        let of_family = &mut self.groups.by_family[group.family().index()];
        of_family.retain(|&other| other != number);
        self.groups.active.retain(|&other| other != number);
        if group.sent_count > 0 {
            self.groups.dying.push(group.sent);
        }
        for (_, path) in group.sent_paths.into_values().flatten() {
            self.paths.release(path, &mut self.attributes);
        }
    }
}
