//! Update groups: what each peer is sent (Adj-RIBs-Out). Peers that get the same messages are one group, which writes
//! each message once. RFC 4271, sections 9.1.3 and 9.2.
//!
//! | module | what it holds |
//! |---|---|
//! | `group` | a group: the routes it advertised, the slots it still has to look at, and its messages |
//! | `outward` | from a stored path to attributes on the wire (5.1, RFC 1997, 4456, 9234) |
//! | `queue` | messages that members have not all read |
//! | `member` | a peer's place in its groups, and what it is sent apart from the others |
//! | `serve` | filling a peer's buffer: its share of the queue, first dumps and refreshes (RFC 2918, 7313) |
//! | `addpath` | groups of one peer, with several paths of a prefix (RFC 7911) |
//! | `export` | changed export policies: groups change theirs, or split |
//!
//! Groups read the [`Store`] and count themselves among the users of its paths. The store knows nothing of groups.

mod addpath;
mod export;
mod group;
mod member;
mod outward;
mod queue;
mod serve;

use std::collections::VecDeque;
use std::sync::Arc;

use base::Instant;
use hashbrown::hash_map;
use wire::bgp::{FAMILIES, Families, FamilyId, NextHop, Nlri};

use super::chunked::Chunked;
use super::dirty::{Dirty, WINDOW};
use super::number::NONE;
use super::store::Store;
use group::{Context, Group, PARITY, Scratch};
pub(super) use member::Resend;
use member::{Member, Members};
use outward::Outward;

/// Slots that are marked together for a group to look at, which takes about a millisecond.
const MARKED_AT_ONCE: u32 = 65_536;

/// A time that has passed, for work that is due now.
const AT_ONCE: Instant = Instant::from_nanos(1);

/// Cohorts of one family that are sent their dump at the same time. Peers that join meanwhile gather in the next one.
const COHORTS_MAX: usize = 2;
/// Cohorts beside one group, with those whose members do not read. Each holds its own list of what it advertised; peers
/// that join beyond that are served apart.
const COHORTS_KEPT: usize = 8;

/// Routes that were not sent, and members that fell behind.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SendCounters {
    /// Prefixes that were not advertised because their attributes leave no room in a message.
    pub(super) too_long: u64,
    /// Prefixes that were not advertised because there was no next hop of their family.
    pub(super) without_next_hop: u64,
    /// Members that were detached from the queue because they read too slowly.
    pub(super) detached: u64,
}

/// What a group has to have read before slots can be freed: its number, its serial number, and a block of its queue.
pub(super) type Barrier = (u32, u64, u64);

/// All groups, and the peers that are in them.
#[derive(Debug)]
pub(super) struct Groups {
    list: Vec<Option<Box<Group>>>,
    by_family: [Vec<u32>; FAMILIES],
    /// Groups that have slots to look at.
    active: Vec<u32>,
    /// Groups for which slots are still to be marked.
    marking: Vec<u32>,
    /// What groups advertised that do not exist any more, to be released in slices.
    dying: Vec<Chunked<u32>>,
    /// The same of groups with path identifiers.
    dying_paths: Vec<hash_map::IntoIter<u32, Vec<(u32, u32)>>>,
    serial: u64,
    members: Members,
    /// Peers with data to send.
    ready: VecDeque<u32>,
    /// Whether peers are sent nothing for now.
    is_deferred: bool,
    scratch: Scratch,
    counters: SendCounters,
    seed: u64,
    jitter: u64,
    /// The path identifiers that we gave out.
    identifiers: addpath::Identifiers,
}

impl Groups {
    pub(super) fn new(seed: u64) -> Self {
        Groups {
            list: Vec::new(),
            by_family: Default::default(),
            active: Vec::new(),
            marking: Vec::new(),
            dying: Vec::new(),
            dying_paths: Vec::new(),
            serial: 0,
            members: Members::default(),
            ready: VecDeque::new(),
            is_deferred: false,
            scratch: Scratch::default(),
            counters: SendCounters::default(),
            seed,
            jitter: seed,
            identifiers: addpath::Identifiers::new(),
        }
    }

    /// Adds a peer whose session is established. It is sent all routes, then End-of-RIB if that was negotiated.
    pub(super) fn open(&mut self, peer: u32, families: Families, store: &Store) {
        self.members.open(peer);
        for family in families.iter() {
            self.join(peer, family, store);
        }
    }

    /// Removes a peer whose session has ended.
    pub(super) fn close(&mut self, peer: u32) {
        self.leave(peer);
        self.members.close(peer);
    }

    /// While `deferred`, peers are sent nothing, not even End-of-RIB (RFC 4724, section 4.1).
    pub(super) fn set_deferred(&mut self, deferred: bool) {
        if self.is_deferred && !deferred {
            let open: Vec<u32> = self.members.open_peers().collect();
            open.into_iter().for_each(|peer| self.set_ready(peer));
        }
        self.is_deferred = deferred;
    }

    /// When groups have to look at their slots, and the name of the timer.
    pub(super) fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        if self.is_deferred {
            return None;
        }
        let active = self.active.iter();
        let waiting = active.filter_map(|&number| self.group(number));
        let waiting = waiting.filter(|group| !group.pending.is_empty() && !self.has_to_wait(group));
        let due = |group: &Group| match group.stalled_until() {
            Some(until) => until,
            // Its turn has come.
            None if group.is_waiting() => AT_ONCE,
            None => group.next_flush,
        };
        let earliest = waiting.map(due).filter(|&at| at > Instant::ZERO).min()?;
        Some((earliest, "MinRouteAdvertisementIntervalTimer"))
    }

    /// The next peer with data to send.
    #[inline]
    pub(super) fn poll_ready(&mut self) -> Option<u32> {
        loop {
            let peer = self.ready.pop_front()?;
            if self.members.take_ready(peer) {
                return Some(peer);
            }
        }
    }

    /// The best route of a slot, or all of its routes, have changed.
    #[inline]
    pub(super) fn changed(
        &mut self,
        store: &Store,
        (family, slot): (FamilyId, u32),
        best: u32,
        is_new_best: bool,
    ) {
        let source = (best != NONE).then(|| store.path(best).peer());
        for &number in &self.by_family[family.index()] {
            let Some(group) = &mut self.list[number as usize] else {
                continue;
            };
            if !is_new_best && group.outward.add_path.is_none() {
                continue;
            }
            if let [only] = group.members[..]
                && source == Some(only)
                && group.outward.add_path.is_none()
                && group.sent_path(slot) == NONE
            {
                // The only member is the source of the route.
                group.skips_own = true;
                continue;
            }
            group.pending.insert(slot);
            if !group.is_active {
                group.is_active = true;
                self.active.push(number);
            }
        }
    }

    /// A path has been renumbered without a change that peers would have to be sent.
    pub(super) fn renumbered(
        &mut self,
        store: &mut Store,
        (family, slot): (FamilyId, u32),
        old: u32,
        new: u32,
    ) {
        for at in 0..self.by_family[family.index()].len() {
            let number = self.by_family[family.index()][at];
            let Some(mut group) = self.list[number as usize].take() else {
                continue;
            };
            group.replace_sent(number, slot, old, new, &mut self.context(store));
            self.list[number as usize] = Some(group);
        }
    }

    /// Whether a group still refers to a slot without routes; `owed` is what [`owed`](Self::owed) returns.
    pub(super) fn refers_to(&self, family: FamilyId, slot: u32, owed: &[&Resend]) -> bool {
        let mut groups = self.of_family(family);
        groups.any(|(_, group)| {
            group.has_sent(slot) || group.pending.contains(slot) || group.is_noting()
        }) || owed.iter().any(|resend| resend.refers_to(slot))
    }

    /// What members that are served apart are still to be sent.
    pub(super) fn owed(&self, family: FamilyId) -> Vec<&Resend> {
        let mut owed = Vec::new();
        for (_, group) in self.of_family(family) {
            if group.attached as usize != group.members.len() {
                let members = group.members.iter();
                owed.extend(
                    members.filter_map(|&peer| self.members.get(peer, family)?.resend.as_deref()),
                );
            }
        }
        owed
    }

    /// How far the groups of a family have written.
    pub(super) fn barriers(&self, family: FamilyId, out: &mut Vec<Barrier>) {
        let groups = self.of_family(family);
        out.extend(groups.map(|(number, group)| (number, group.serial, group.queue.last())));
    }

    /// Whether a member has yet to read what its group had written by then.
    pub(super) fn is_behind(&self, &(number, serial, block): &Barrier) -> bool {
        self.group(number)
            .is_some_and(|group| group.serial == serial && group.queue.first() < block)
    }

    /// How many routes of a family a peer was sent or will be sent at once, and how many it is behind with.
    pub(super) fn counts(&self, peer: u32, family: FamilyId) -> (u32, u32) {
        let Some(member) = self.members.get(peer, family) else {
            return (0, 0);
        };
        let group = member.group().and_then(|number| self.group(number));
        let behind =
            |resend: &Resend| resend.dirty.len() + (resend.window.len() - resend.at) as u32;
        (
            group.map_or(0, |group| group.sent_count - member.own),
            member.resend.as_deref().map_or(0, behind),
        )
    }

    /// Shows what a peer is sent of the slots from `from` to `end`: routes, attributes on the wire, next hop.
    pub(super) fn walk_sent(
        &self,
        store: &Store,
        (peer, family): (u32, FamilyId),
        slots: std::ops::Range<u32>,
        mut see: impl FnMut(Nlri, &[u8], NextHop),
    ) -> Option<()> {
        let number = self.members.get(peer, family)?.group()?;
        let group = self.group(number)?;
        let mut encoded = Vec::new();
        for slot in slots {
            let prefix = store.prefix(family, slot);
            let single = [(0, group.sent_path(slot))];
            let sent = group
                .sent_paths
                .get(&slot)
                .map_or(&single[..], Vec::as_slice);
            for &(path_id, id) in sent.iter().filter(|sent| sent.1 != NONE) {
                let path = store.path(id);
                if path.peer() == peer {
                    continue;
                }
                if let Some(edits) = group.judge(&group.export, path, slot, store)
                    && let Some(next_hop) =
                        group
                            .outward
                            .encode(path, store, (&group.export, edits), &mut encoded)
                {
                    see(Nlri { prefix, path_id }, &encoded, next_hop);
                }
            }
        }
        Some(())
    }

    /// Bytes held by groups, bytes held by peers, and the number of groups.
    pub(super) fn memory(&self) -> (usize, usize, usize) {
        let groups = self.list.iter().flatten();
        let dying: usize = self.dying.iter().map(|sent| sent.memory()).sum();
        let held: usize = groups.clone().map(|group| group.memory()).sum();
        (held + dying, self.members.memory(), groups.count())
    }

    /// Routes that were not sent.
    pub(super) const fn counters(&self) -> SendCounters {
        self.counters
    }

    fn group(&self, number: u32) -> Option<&Group> {
        self.list.get(number as usize)?.as_deref()
    }

    fn of_family(&self, family: FamilyId) -> impl Iterator<Item = (u32, &Group)> {
        let numbers = self.by_family[family.index()].iter();
        numbers.filter_map(|&number| Some((number, self.group(number)?)))
    }

    /// What a group needs that was taken out of the list.
    fn context<'a>(&'a mut self, store: &'a mut Store) -> Context<'a> {
        Context {
            store,
            members: &mut self.members,
            counters: &mut self.counters,
            scratch: &mut self.scratch,
        }
    }

    fn set_ready(&mut self, peer: u32) {
        if self.members.set_ready(peer) {
            self.ready.push_back(peer);
        }
    }

    fn activate(&mut self, number: u32) {
        if let Some(group) = &mut self.list[number as usize]
            && !group.pending.is_empty()
            && !group.is_active
        {
            group.is_active = true;
            self.active.push(number);
        }
    }

    fn join(&mut self, peer: u32, family: FamilyId, store: &Store) {
        let Some(state) = store.peer(peer) else {
            return;
        };
        let outward = Outward::of(peer, &state.traits, family);
        let export = Arc::clone(&state.traits.export);
        let owes_end = state.traits.end_of_rib;
        let is_same = |group: &Group| group.outward == outward && *group.export == *export;
        let number = self.group_to_join(family, store, is_same);
        let number = number.unwrap_or_else(|is_cohort| {
            let mut group = Group::new(outward.clone(), Arc::clone(&export));
            group.cohort = is_cohort.then(Default::default);
            self.add(group)
        });
        let Some(group) = &mut self.list[number as usize] else {
            return;
        };
        let mut member = Member::of(number);
        member.owes_end = owes_end;
        member.cursor = group.queue.end();
        let is_first = group.members.is_empty() || group.is_gathering();
        group.members.push(peer);
        let mut dirty = Dirty::default();
        // Most peers have announced nothing yet: then no path has to be looked at. A group that is behind may still have
        // advertised what a peer announced earlier.
        let has_routes = !group.pending.is_empty() || store.has_routes(peer, family);
        for slot in 0..if is_first { 0 } else { group.sent.len() } {
            let path = group.sent_path(slot);
            if path != NONE {
                dirty.insert(slot);
                member.own += u32::from(has_routes && store.path(path).peer() == peer);
            }
        }
        if dirty.is_empty() {
            group.attached += 1;
        } else {
            member.resend = Some(Box::new(Resend {
                dirty,
                sent: Some(Dirty::default()),
                ..Resend::default()
            }));
        }
        let skipped = std::mem::take(&mut group.skips_own);
        // A cohort that gathers members has marked its slots for the first of them.
        if group.members.len() == 1 || skipped {
            self.mark_all(number, store);
        }
        if let Some(place) = self.members.get_mut(peer, family) {
            *place = member;
        }
        self.set_ready(peer);
    }

    /// The group that a new peer joins. Otherwise it gets a new one, and the error tells whether that is a cohort: peers
    /// that join a large group at the same time share their first dump, so that each message is built once.
    fn group_to_join(
        &self,
        family: FamilyId,
        store: &Store,
        is_same: impl Fn(&Group) -> bool,
    ) -> Result<u32, bool> {
        let same = || self.of_family(family).filter(|(_, group)| is_same(group));
        if let Some((number, _)) = same().find(|(_, group)| group.is_gathering()) {
            return Ok(number);
        }
        let mains = same().filter(|(_, group)| group.cohort.is_none());
        // A group whose only member is the source of its routes has advertised none of them.
        let size = |group: &Group| match group.skips_own {
            true => store.end(family),
            false => group.sent_count,
        };
        let Some((number, main)) = mains.max_by_key(|(_, group)| (!group.skips_own, size(group)))
        else {
            return match same().next() {
                Some((number, _)) => Ok(number),
                None => Err(false),
            };
        };
        let is_large = size(main) as usize > WINDOW && main.outward.add_path.is_none();
        let cohorts = same().filter(|(_, group)| group.cohort.is_some()).count();
        if is_large && cohorts < COHORTS_KEPT {
            Err(true)
        } else {
            Ok(number)
        }
    }

    /// Whether a cohort has to wait until another one of its family has sent its dump. Meanwhile more peers can join it.
    fn has_to_wait(&self, group: &Group) -> bool {
        let runs = |(_, other): &(u32, &Group)| other.is_running();
        group.is_waiting() && self.of_family(group.family()).filter(runs).count() >= COHORTS_MAX
    }

    /// Lets the members of a cohort join the group that other peers of their kind are in, once both have advertised and
    /// read everything: then both have advertised the same.
    fn merge(&mut self, number: u32) {
        let Some(cohort) = self.group(number) else {
            return;
        };
        if cohort.cohort.is_none() || !cohort.is_settled() {
            return;
        }
        let family = cohort.family();
        let is_main = |(_, group): &(u32, &Group)| {
            group.cohort.is_none()
                && !group.skips_own
                && group.outward == cohort.outward
                && *group.export == *cohort.export
        };
        let found = self.of_family(family).find(is_main);
        let has_same_routes = |main: &Group| {
            main.pending.is_empty()
                && main.unmarked.is_none()
                && main.sent_count == cohort.sent_count
                && !cohort.skips_own
        };
        let found = found.map(|(main, group)| has_same_routes(group).then_some(main));
        let Some(main) = found else {
            // There is no such group: this one takes its place.
            if let Some(cohort) = &mut self.list[number as usize] {
                cohort.cohort = None;
            }
            return;
        };
        let Some(main) = main else { return };
        let owes = |peer: &u32| {
            let member = self.members.get(*peer, family);
            member.is_none_or(Member::owes_anything)
        };
        if cohort.members.iter().any(owes) {
            return;
        }
        let Some(cohort) = &mut self.list[number as usize] else {
            return;
        };
        let joining = std::mem::take(&mut cohort.members);
        let Some(group) = &mut self.list[main as usize] else {
            return;
        };
        for peer in joining {
            if let Some(member) = self.members.get_mut(peer, family) {
                member.set_group(main);
                member.cursor = group.queue.end();
                group.members.push(peer);
                group.attached += 1;
            }
        }
        self.remove(number);
    }

    fn add(&mut self, mut group: Group) -> u32 {
        self.serial += 1;
        group.serial = self.serial;
        let family = group.family();
        let free = self.list.iter().position(Option::is_none);
        let number = free.unwrap_or(self.list.len());
        let group = Some(Box::new(group));
        match self.list.get_mut(number) {
            Some(place) => *place = group,
            None => self.list.push(group),
        }
        self.by_family[family.index()].push(number as u32);
        number as u32
    }

    /// Lets a group look at every slot that it could advertise or has advertised, in slices.
    fn mark_all(&mut self, number: u32, store: &Store) {
        let Some(group) = &mut self.list[number as usize] else {
            return;
        };
        if group.unmarked.replace(0).is_none() {
            self.marking.push(number);
        }
        self.mark_slice(number, store);
    }

    /// Marks the next slots of a group. Returns how many it looked at.
    fn mark_slice(&mut self, number: u32, store: &Store) -> usize {
        let Some(group) = &mut self.list[number as usize] else {
            return 0;
        };
        let Some(first) = group.unmarked else {
            return 0;
        };
        let family = group.family();
        let end = store.end(family);
        let last = end.min(first.saturating_add(MARKED_AT_ONCE));
        for slot in first..last {
            if store.best_path(family, slot) != NONE || group.has_sent(slot) {
                group.pending.insert(slot);
            }
        }
        group.unmarked = Some(last).filter(|&last| last < end);
        if group.unmarked.is_none() {
            self.marking.retain(|&other| other != number);
            // Members that have read everything may have waited for this, to be sent End-of-RIB.
            let members = std::mem::take(&mut group.members);
            members.iter().for_each(|&peer| self.set_ready(peer));
            if let Some(group) = &mut self.list[number as usize] {
                group.members = members;
            }
        }
        self.activate(number);
        last.saturating_sub(first) as usize
    }

    /// Whether groups wait for [`mark`](Self::mark).
    pub(super) fn is_marking(&self) -> bool {
        !self.marking.is_empty()
    }

    /// Marks slots of the groups that are to look at all of theirs. Returns what is left of the budget.
    pub(super) fn mark(&mut self, budget: usize, store: &Store) -> usize {
        let mut left = budget;
        while left > 0
            && let Some(&number) = self.marking.last()
        {
            left = left.saturating_sub((self.mark_slice(number, store) / 8).max(1));
        }
        left
    }

    fn leave(&mut self, peer: u32) {
        for family in FamilyId::ALL {
            let Some(member) = self.members.get_mut(peer, family) else {
                return;
            };
            let member = std::mem::take(member);
            let Some(number) = member.group() else {
                continue;
            };
            let Some(group) = &mut self.list[number as usize] else {
                continue;
            };
            group.members.retain(|&other| other != peer);
            if member.resend.is_none() {
                group.queue.leave(member.cursor, |_| {});
                group.attached -= 1;
            }
            if group.members.is_empty() {
                self.remove(number);
            }
        }
    }

    fn remove(&mut self, number: u32) {
        let Some(group) = self.list[number as usize].take() else {
            return;
        };
        let of_family = &mut self.by_family[group.family().index()];
        of_family.retain(|&other| other != number);
        self.active.retain(|&other| other != number);
        self.marking.retain(|&other| other != number);
        if !group.sent_paths.is_empty() {
            self.dying_paths.push(group.sent_paths.into_iter());
        } else if group.sent_count > 0 {
            self.dying.push(group.sent);
        }
    }

    /// Whether groups that do not exist any more still hold paths.
    pub(super) fn has_dying(&self) -> bool {
        !self.dying.is_empty() || !self.dying_paths.is_empty()
    }

    /// Releases the paths of groups that do not exist any more. Returns what is left of the budget.
    pub(super) fn bury(&mut self, budget: usize, store: &mut Store) -> usize {
        let mut left = budget;
        while left > 0
            && let Some(sent) = self.dying.last_mut()
        {
            let Some(chunk) = sent.pop_chunk() else {
                self.dying.pop();
                continue;
            };
            left = left.saturating_sub(chunk.len() / 4);
            for sent in chunk.into_iter().filter(|&sent| sent != NONE) {
                store.release(sent & !PARITY);
            }
        }
        while left > 0
            && let Some(sent) = self.dying_paths.last_mut()
        {
            let Some((_, paths)) = sent.next() else {
                self.dying_paths.pop();
                continue;
            };
            left = left.saturating_sub(paths.len());
            for (_, path) in paths {
                store.release(path);
            }
        }
        left
    }
}
