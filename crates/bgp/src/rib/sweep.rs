//! What walks over whole tables, in slices: routes of closed peers and stale ones leave, changed import policies are
//! asked again; and what is left behind is given back.
//!
//! Implements parts of RFC 4724; RFC 7313.

use std::sync::Arc;

use base::{Duration, Instant};
use wire::bgp::Family;

use super::chunked::Chunked;
use super::group::{Group, PARITY};
use super::paths::LOCAL;
use super::peer::Resend;
use super::table::{Key, Whose, with_table};
use super::{NONE, Rib};
use crate::policy::Policy;

/// Sessions of a peer that may begin and end before its old routes are swept, so that their numbers do not run around.
const SESSIONS_MAX: u8 = 250;
/// Places whose memory is asked for together.
const TOUCHED_AT_ONCE: usize = 16;
/// How long places that somebody refers to are left alone.
const RECLAIM_INTERVAL: Duration = Duration::from_secs(1);

/// A walk over a table, round and round as long as somebody wants it.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    at: u32,
    /// Where it goes back to the first place. Those behind that came when it had begun hold nothing to be swept.
    end: u32,
    /// Places to go.
    left: u32,
    /// Peers for which it is done.
    peers: Vec<u32>,
}

impl Sweep {
    pub(super) fn is_running(&self) -> bool {
        !self.peers.is_empty()
    }
}

impl Rib {
    /// All routes of a peer are of an older session now; with `keeps`, those of the last one stay for now.
    pub(super) fn age(&mut self, peer: u32, family: Family, keeps: bool, now: Instant) {
        let Some(state) = self.peers.get_mut(peer) else {
            return;
        };
        let held = state.held_mut(family);
        let has_older = held.old > 0;
        held.kept = keeps.then_some(held.epoch);
        held.old = held.routes;
        held.epoch = held.epoch.wrapping_add(1);
        held.sessions = if has_older { held.sessions + 1 } else { 0 };
        let is_late = held.sessions >= SESSIONS_MAX;
        if held.old > 0 && (!keeps || has_older) {
            self.request_sweep(peer, family, now);
        }
        if is_late {
            while self.sweeps[family.index()].is_running() {
                self.sweep(family, usize::MAX);
            }
            if let Some(state) = self.peers.get_mut(peer) {
                state.held_mut(family).sessions = 0;
            }
        }
    }

    /// Lets a peer's routes be looked at, each once.
    pub(super) fn request_sweep(&mut self, peer: u32, family: Family, _now: Instant) {
        let sweep = &mut self.sweeps[family.index()];
        // All places from now on, wherever it is.
        sweep.end = self.tables.end(family);
        sweep.left = sweep.end;
        if !sweep.peers.contains(&peer) {
            sweep.peers.push(peer);
        }
    }

    /// Goes on with the walk over a family's table; gives what is left of the budget.
    pub(super) fn sweep(&mut self, family: Family, budget: usize) -> usize {
        match family {
            Family::Ipv4Unicast => self.sweep_table::<u32>(budget),
            Family::Ipv6Unicast => self.sweep_table::<[u32; 4]>(budget),
        }
    }

    fn sweep_table<K: Key>(&mut self, budget: usize) -> usize {
        let which = K::FAMILY.index();
        let mut budget = budget;
        if !self.sweeps[which].is_running() {
            return budget;
        }
        self.drop_idle_sweepers(K::FAMILY);
        while budget > 0 && self.sweeps[which].is_running() {
            let sweep = &mut self.sweeps[which];
            if sweep.left == 0 {
                self.end_sweep(K::FAMILY);
                break;
            }
            let slot = sweep.at;
            sweep.at = if slot + 1 >= sweep.end { 0 } else { slot + 1 };
            sweep.left -= 1;
            budget -= 1;
            if K::table(&self.tables).count(slot) > 0 {
                budget = budget.saturating_sub(self.look_at::<K>(slot));
            }
        }
        budget
    }

    fn drop_idle_sweepers(&mut self, family: Family) {
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

    fn end_sweep(&mut self, family: Family) {
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

    /// Looks at the routes of a place; gives how many changed.
    fn look_at<K: Key>(&mut self, slot: u32) -> usize {
        let mut paths = std::mem::take(&mut self.scratch.looked);
        paths.clear();
        K::table(&self.tables).collect(slot, &mut paths);
        let mut changed = 0;
        for &id in &paths {
            let path = *self.paths.get(id);
            let peer = path.peer();
            let Some(state) = self.peers.get(peer) else {
                debug_assert_eq!(peer, LOCAL);
                continue;
            };
            let held = state.held(K::FAMILY);
            let whose = Whose {
                peer,
                path_id: path.path_id,
            };
            if path.epoch() != held.epoch && held.kept != Some(path.epoch()) {
                self.take_at::<K>(slot, whose);
                changed += 1;
            } else if state.reimports {
                let import = Arc::clone(&state.traits.import);
                let prefix = K::table(&self.tables).prefix(slot);
                let attributes = self.import(peer, &import, path.received, prefix);
                if attributes != path.attributes {
                    let has_med = attributes != NONE && self.attributes.digest(attributes).med != 0;
                    let path = path.with(path.received, attributes);
                    let path = self.paths.intern(path, &mut self.attributes);
                    self.put_at::<K>(slot, whose, path, has_med);
                    changed += 1;
                }
            }
        }
        self.scratch.looked = paths;
        changed
    }

    /// Lets go of what groups told that are no more.
    pub(super) fn bury(&mut self, budget: usize) -> usize {
        let mut left = budget;
        while left > 0
            && let Some(sent) = self.groups.dying.last_mut()
        {
            let Some(chunk) = sent.pop_chunk() else {
                self.groups.dying.pop();
                continue;
            };
            left = left.saturating_sub(chunk.len() / 4);
            for sent in chunk.into_iter().filter(|&sent| sent != NONE) {
                self.paths.release(sent & !PARITY, &mut self.attributes);
            }
        }
        left
    }

    /// Gives places back whose routes are gone, once nobody refers to them.
    pub(super) fn reclaim(&mut self, family: Family, budget: usize, now: Instant) -> usize {
        let which = family.index();
        if budget == 0 {
            return 0;
        }
        let dead = &mut self.dead[which];
        if dead.waiting.is_empty() {
            if dead.collected.is_empty() || now < dead.retry_at {
                return budget;
            }
            dead.collected.take(1, |_| 0, &mut dead.waiting);
            dead.barrier.clear();
            for &number in &self.groups.by_family[which] {
                if let Some(group) = self.groups.list[number as usize].as_deref() {
                    dead.barrier
                        .push((number, group.serial, group.queue.last()));
                }
            }
        }
        let groups = &self.groups.list;
        let is_behind = |&(number, serial, block): &(u32, u64, u64)| {
            let group = groups[number as usize].as_deref();
            group.is_some_and(|group| group.serial == serial && group.queue.first() < block)
        };
        if self.dead[which].barrier.iter().any(is_behind) {
            return budget;
        }
        let slots = std::mem::take(&mut self.dead[which].waiting);
        let mut is_kept = false;
        for (at, item) in slots.iter().enumerate() {
            let slot = item.slot;
            if at.is_multiple_of(TOUCHED_AT_ONCE) {
                for item in slots[at..].iter().take(TOUCHED_AT_ONCE) {
                    with_table!(self.tables, family, table => table.touch(table.prefix(item.slot)));
                }
            }
            if !with_table!(self.tables, family, table => table.is_empty_at(slot)) {
                continue;
            }
            if self.is_referred_to(family, slot) {
                self.dead[which].collected.insert(slot);
                is_kept = true;
            } else {
                self.tables.remove(family, slot);
            }
        }
        if is_kept {
            self.dead[which].retry_at = now + RECLAIM_INTERVAL;
        }
        budget.saturating_sub(slots.len())
    }

    fn is_referred_to(&self, family: Family, slot: u32) -> bool {
        let groups = self.groups.by_family[family.index()].iter();
        let by_group = groups
            .filter_map(|&number| self.group(number))
            .any(|group| {
                group.has_sent(slot)
                    || group.pending.contains(slot)
                    || group.attached as usize != group.members.len() && self.is_owed(group, slot)
            });
        let by_watch = self.watch.as_ref().is_some_and(|watch| {
            !watch.window.is_empty() || watch.dirty[family.index()].contains(slot)
        });
        by_group || by_watch
    }

    /// Whether a member that is served apart is still to be told of a place.
    fn is_owed(&self, group: &Group, slot: u32) -> bool {
        let owes = |resend: &Resend| {
            let window = &resend.window[resend.at..];
            resend.dirty.contains(slot) || window.iter().any(|item| item.slot == slot)
        };
        let members = group
            .members
            .iter()
            .filter_map(|&peer| self.peers.get(peer));
        members
            .filter_map(|state| state.member(group.family()).resend.as_deref())
            .any(owes)
    }

    /// Gives peers their new export policies: groups change theirs, or split.
    pub(super) fn set_exports(&mut self, exports: &[(u32, Arc<Policy>)], has_new_roas: bool) {
        for family in Family::ALL {
            for number in self.groups.by_family[family.index()].clone() {
                self.set_export(number, exports, has_new_roas);
            }
        }
    }

    fn set_export(&mut self, number: u32, exports: &[(u32, Arc<Policy>)], has_new_roas: bool) {
        let Some(group) = self.group(number) else {
            return;
        };
        let of_peer = |peer: u32| {
            let found = exports.iter().find(|(other, _)| *other == peer);
            found.map_or(&group.export, |(_, policy)| policy)
        };
        let Some(&first) = group.members.first() else {
            return;
        };
        let policy = Arc::clone(of_peer(first));
        let (_, others): (Vec<u32>, Vec<u32>) = group
            .members
            .iter()
            .partition(|&&peer| **of_peer(peer) == *policy);
        let mut rest: Vec<(u32, Arc<Policy>)> = others
            .into_iter()
            .map(|peer| (peer, Arc::clone(of_peer(peer))))
            .collect();
        while let Some((_, policy)) = rest.first().cloned() {
            let (same, different) = rest.into_iter().partition(|other| *other.1 == *policy);
            rest = different;
            let same: Vec<(u32, Arc<Policy>)> = same;
            let peers: Vec<u32> = same.into_iter().map(|(peer, _)| peer).collect();
            let split = self.split(number, &peers);
            self.change_export(split, policy, has_new_roas);
        }
        self.change_export(number, policy, has_new_roas);
    }

    /// The group's policy is another one now: all that it told is compared with what it would tell.
    fn change_export(&mut self, number: u32, policy: Arc<Policy>, has_new_roas: bool) {
        let Some(group) = &mut self.groups.list[number as usize] else {
            return;
        };
        let is_same = *group.export == *policy && !(has_new_roas && policy.uses_roas());
        let old = std::mem::replace(&mut group.export, policy);
        if is_same {
            return;
        }
        // Where a change was not through yet, or authorisations changed too, nobody knows what was told: all is told.
        let is_known = group.old_export.is_none() && !has_new_roas;
        group.old_export = is_known.then_some(old);
        group.parity ^= PARITY;
        self.mark_all(number);
    }

    /// Makes a group of some of a group's members, which were told the same.
    fn split(&mut self, number: u32, peers: &[u32]) -> u32 {
        let Some(group) = self.group(number) else {
            return number;
        };
        let family = group.family();
        let mut twin = Group::new(group.outward.clone(), Arc::clone(&group.export), 0);
        twin.old_export = group.old_export.clone();
        twin.parity = group.parity;
        twin.skips_own = group.skips_own;
        let mut sent = Chunked::new();
        for slot in 0..group.sent.len() {
            sent.push(group.sent[slot]);
        }
        twin.sent_count = group.sent_count;
        for slot in 0..sent.len() {
            if sent[slot] != NONE {
                self.paths.hold(sent[slot] & !PARITY, 1);
            }
        }
        twin.sent = sent;
        let twin = self.make_group(twin);
        let Some(mut group) = self.groups.list[number as usize].take() else {
            return number;
        };
        for &peer in peers {
            group.members.retain(|&other| other != peer);
            let Some(state) = self.peers.get_mut(peer) else {
                continue;
            };
            let member = state.member_mut(family);
            member.set_group(twin);
            if member.resend.is_none() {
                let mut resend = Box::<Resend>::default();
                group.queue.leave(member.cursor, |slot| {
                    resend.dirty.insert(slot);
                });
                member.resend = Some(resend);
                group.attached -= 1;
            }
            if let Some(twin) = &mut self.groups.list[twin as usize] {
                twin.members.push(peer);
            }
            self.set_ready(peer);
        }
        self.groups.list[number as usize] = Some(group);
        // What was sent to somebody else's own peer is different now, and counted anew.
        self.recount(number);
        self.recount(twin);
        twin
    }

    /// Counts again which of a group's routes are its members' own.
    fn recount(&mut self, number: u32) {
        let Some(group) = self.groups.list[number as usize].as_deref() else {
            return;
        };
        let family = group.family();
        for &peer in &group.members {
            if let Some(state) = self.peers.get_mut(peer) {
                state.member_mut(family).own = 0;
            }
        }
        for slot in 0..group.sent.len() {
            let path = group.sent_path(slot);
            if path == NONE {
                continue;
            }
            let source = self.paths.get(path).peer();
            if group.is_member(number, source, &self.peers)
                && let Some(state) = self.peers.get_mut(source)
            {
                state.member_mut(family).own += 1;
            }
        }
    }
}
