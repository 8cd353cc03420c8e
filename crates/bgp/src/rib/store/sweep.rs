//! Walks over whole tables, in slices. They remove the routes of closed peers and stale routes (RFC 4724), and apply a
//! changed import policy to the routes that are stored.

use std::sync::Arc;

use wire::bgp::FamilyId;
use wire::with_family;

use super::paths::LOCAL;
use super::peer::{Kept, Old};
use super::table::{Stored, Whose};
use super::{Follower, Store};
use crate::rib::number::NONE;

/// How many numbers of sessions and refreshes a peer may use before its old routes are swept. More would let the 8-bit
/// number wrap around.
const SESSIONS_MAX: u8 = 250;
/// How many of those numbers refreshes may use, so that sessions have some left.
const REFRESHES_MAX: u8 = 100;

/// A walk over a table. It goes around until no peer needs it.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    at: u32,
    /// The slot at which the walk returns to slot 0. Later slots were added after it started, so they need no sweep.
    end: u32,
    /// Slots that are left.
    left: u32,
    /// The peers whose routes are swept.
    peers: Vec<u32>,
}

impl Sweep {
    pub(super) fn is_running(&self) -> bool {
        !self.peers.is_empty()
    }
}

impl Store {
    /// Makes all routes of a peer old. With `because`, they stay until they are swept on request; without it they are
    /// removed, in slices.
    ///
    /// Routes that were old before stay too if a refresh made them old: the peer has not withdrawn them. Those that a
    /// restart made old are removed, because the peer had its time to send them again (RFC 4724, section 4.2).
    pub(in crate::rib) fn age(
        &mut self,
        peer: u32,
        family: FamilyId,
        because: Option<Old>,
        follower: &mut impl Follower,
    ) {
        let Some(state) = self.peers.get_mut(peer) else {
            return;
        };
        let held = state.held_mut(family);
        let has_older = held.old > 0;
        if because == Some(Old::Refresh) && held.is_refreshing() {
            // The peer starts again before it has sent all. Without new routes there is nothing more to mark, and many
            // such starts must not use up the numbers.
            let is_marked = held.old == held.routes;
            if is_marked || held.sessions >= REFRESHES_MAX {
                return;
            }
        }
        let since = match held.kept {
            Some(kept) if held.is_refreshing() => kept.since,
            Some(_) | None => held.epoch,
        };
        let drops_older = has_older && !held.is_refreshing();
        held.kept = because.map(|because| Kept { since, because });
        held.old = held.routes;
        held.epoch = held.epoch.wrapping_add(1);
        held.sessions = if has_older { held.sessions + 1 } else { 0 };
        let is_late = held.sessions >= SESSIONS_MAX;
        if is_late {
            // The oldest numbers are about to be used again. Only the routes of the last number can stay.
            let last = held.epoch.wrapping_sub(1);
            held.kept = because.map(|because| Kept {
                since: last,
                because,
            });
        }
        if held.old > 0 && (because.is_none() || drops_older || is_late) {
            self.request_sweep(peer, family);
        }
        if is_late {
            while self.sweeps[family.index()].is_running() {
                self.sweep(family, usize::MAX, follower);
            }
            if let Some(state) = self.peers.get_mut(peer) {
                state.held_mut(family).sessions = 0;
            }
        }
    }

    /// Requests that each route of a peer is looked at once.
    pub(super) fn request_sweep(&mut self, peer: u32, family: FamilyId) {
        let sweep = &mut self.sweeps[family.index()];
        // One whole round from now on, wherever the walk is.
        sweep.end = self.tables.end(family);
        sweep.left = sweep.end;
        if !sweep.peers.contains(&peer) {
            sweep.peers.push(peer);
        }
    }

    /// Whether a walk is not finished.
    pub(in crate::rib) fn is_sweeping(&self) -> bool {
        self.sweeps.iter().any(Sweep::is_running)
    }

    /// Continues the walk over a family's table. Returns what is left of the budget.
    pub(in crate::rib) fn sweep(
        &mut self,
        family: FamilyId,
        budget: usize,
        follower: &mut impl Follower,
    ) -> usize {
        with_family!(family, F => self.sweep_table::<F>(budget, follower))
    }

    fn sweep_table<F: Stored>(&mut self, budget: usize, follower: &mut impl Follower) -> usize {
        let which = F::ID.index();
        let mut budget = budget;
        if !self.sweeps[which].is_running() {
            return budget;
        }
        self.drop_idle_sweepers(F::ID);
        while budget > 0 && self.sweeps[which].is_running() {
            let sweep = &mut self.sweeps[which];
            if sweep.left == 0 {
                self.end_sweep(F::ID);
                break;
            }
            let slot = sweep.at;
            sweep.at = if slot + 1 >= sweep.end { 0 } else { slot + 1 };
            sweep.left -= 1;
            budget -= 1;
            if self.tables.of::<F>().count(slot) > 0 {
                budget = budget.saturating_sub(self.look_at::<F>(slot, follower));
            }
        }
        budget
    }

    fn drop_idle_sweepers(&mut self, family: FamilyId) {
        let which = family.index();
        let peers = std::mem::take(&mut self.sweeps[which].peers);
        let (busy, idle): (Vec<u32>, Vec<u32>) = peers.into_iter().partition(|&peer| {
            self.peers
                .get(peer)
                .is_some_and(|state| state.held(family).old > 0 || state.reimports)
        });
        self.sweeps[which].peers = busy;
        idle.into_iter()
            .for_each(|peer| self.peers.forget_if_gone(peer));
    }

    fn end_sweep(&mut self, family: FamilyId) {
        let peers = std::mem::take(&mut self.sweeps[family.index()].peers);
        for peer in peers {
            let runs = |sweep: &Sweep| sweep.peers.contains(&peer);
            let elsewhere = self.sweeps.iter().any(runs);
            if let Some(state) = self.peers.get_mut(peer) {
                state.reimports &= elsewhere;
            }
            self.peers.forget_if_gone(peer);
        }
    }

    /// Looks at the routes of a slot. Returns how many changed.
    fn look_at<F: Stored>(&mut self, slot: u32, follower: &mut impl Follower) -> usize {
        let mut paths = std::mem::take(&mut self.scratch.looked);
        paths.clear();
        self.tables.of::<F>().collect(slot, &mut paths);
        let mut changed = 0;
        for &id in &paths {
            let path = *self.paths.get(id);
            let peer = path.peer();
            let Some(state) = self.peers.get(peer) else {
                debug_assert_eq!(peer, LOCAL);
                continue;
            };
            let held = state.held(F::ID);
            let whose = Whose {
                peer,
                path_id: path.path_id,
            };
            if !held.stays(path.epoch()) {
                self.take_at::<F>(slot, whose, follower);
                changed += 1;
            } else if state.reimports {
                let import = Arc::clone(&state.traits.import);
                let prefix = self.tables.of::<F>().prefix(slot);
                let attributes = self.import(peer, &import, path.received, prefix);
                if attributes != path.attributes {
                    let has_med = attributes != NONE && self.attributes.digest(attributes).med != 0;
                    let path = path.with(path.received, attributes);
                    let path = self.paths.intern(path, &mut self.attributes);
                    self.put_at::<F>(slot, whose, path, has_med, follower);
                    changed += 1;
                }
            }
        }
        self.scratch.looked = paths;
        changed
    }
}
