//! Changed export policies: a group changes its policy, or splits when its members differ.

use std::sync::Arc;

use wire::bgp::FamilyId;

use super::Groups;
use super::group::{Group, PARITY};
use super::member::Resend;
use crate::policy::Policy;
use crate::rib::chunked::Chunked;
use crate::rib::number::NONE;
use crate::rib::store::Store;

impl Groups {
    /// Gives peers their new export policies.
    pub(in crate::rib) fn set_exports(
        &mut self,
        exports: &[(u32, Arc<Policy>)],
        has_new_roas: bool,
        store: &mut Store,
    ) {
        for family in FamilyId::ALL {
            for number in self.by_family[family.index()].clone() {
                self.set_export(number, exports, has_new_roas, store);
            }
        }
    }

    fn set_export(
        &mut self,
        number: u32,
        exports: &[(u32, Arc<Policy>)],
        has_new_roas: bool,
        store: &mut Store,
    ) {
        if let Some(group) = &mut self.list[number as usize] {
            // Members that move to another group take their slots along.
            while group.is_noting() {
                group.note_detached(&mut self.members);
            }
        }
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
            let split = self.split(number, &peers, store);
            self.change_export(split, policy, has_new_roas, store);
        }
        self.change_export(number, policy, has_new_roas, store);
    }

    /// Changes a group's policy. All that the group advertised is compared with what it would advertise now.
    fn change_export(
        &mut self,
        number: u32,
        policy: Arc<Policy>,
        has_new_roas: bool,
        store: &Store,
    ) {
        let Some(group) = &mut self.list[number as usize] else {
            return;
        };
        let is_same = *group.export == *policy && !(has_new_roas && policy.uses_roas());
        let old = std::mem::replace(&mut group.export, policy);
        if is_same {
            return;
        }
        // If an earlier change is not finished, or authorisations changed too, the old policy does not show what was sent.
        // Then everything is sent again.
        let is_known = group.old_export.is_none() && !has_new_roas;
        group.old_export = is_known.then_some(old);
        group.parity ^= PARITY;
        self.mark_all(number, store);
    }

    /// Makes a new group of some of a group's members, with the same advertised routes. Returns its number.
    fn split(&mut self, number: u32, peers: &[u32], store: &mut Store) -> u32 {
        let Some(group) = self.group(number) else {
            return number;
        };
        let family = group.family();
        let mut twin = Group::new(group.outward.clone(), Arc::clone(&group.export));
        twin.old_export = group.old_export.clone();
        twin.parity = group.parity;
        let is_marking = group.unmarked.is_some();
        twin.skips_own = group.skips_own;
        let mut sent = Chunked::new();
        for slot in 0..group.sent.len() {
            sent.push(group.sent[slot]);
        }
        twin.sent_count = group.sent_count;
        for slot in 0..sent.len() {
            if sent[slot] != NONE {
                store.hold(sent[slot] & !PARITY, 1);
            }
        }
        twin.sent = sent;
        let twin = self.add(twin);
        let Some(mut group) = self.list[number as usize].take() else {
            return number;
        };
        for &peer in peers {
            group.members.retain(|&other| other != peer);
            let Some(member) = self.members.get_mut(peer, family) else {
                continue;
            };
            member.set_group(twin);
            if member.resend.is_none() {
                let mut resend = Box::<Resend>::default();
                group.queue.leave(member.cursor, |slot| {
                    resend.dirty.insert(slot);
                });
                member.resend = Some(resend);
                group.attached -= 1;
            }
            if let Some(twin) = &mut self.list[twin as usize] {
                twin.members.push(peer);
            }
            self.set_ready(peer);
        }
        self.list[number as usize] = Some(group);
        // Each group has fewer members now, so fewer of the advertised routes are a member's own.
        self.recount(number, store);
        self.recount(twin, store);
        if is_marking {
            self.mark_all(twin, store);
        }
        twin
    }

    /// Counts again how many of a group's routes are each member's own.
    fn recount(&mut self, number: u32, store: &Store) {
        let Some(group) = self.list[number as usize].as_deref() else {
            return;
        };
        let family = group.family();
        for &peer in &group.members {
            if let Some(member) = self.members.get_mut(peer, family) {
                member.own = 0;
            }
        }
        for slot in 0..group.sent.len() {
            let path = group.sent_path(slot);
            if path == NONE {
                continue;
            }
            let source = store.path(path).peer();
            if group.is_member(number, source, &self.members)
                && let Some(member) = self.members.get_mut(source, family)
            {
                member.own += 1;
            }
        }
    }
}
