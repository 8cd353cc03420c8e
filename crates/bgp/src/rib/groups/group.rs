//! An update group: its members share the routes that were advertised (their Adj-RIB-Out), the slots that are still to
//! be looked at, and the messages. RFC 4271, section 9.2.

use std::sync::Arc;

use base::{Duration, Instant};
use hashbrown::HashMap;
use wire::bgp::{FAMILIES, FamilyId, Nlri, UpdateWriter};

use super::SendCounters;
use super::member::Members;
use super::outward::Outward;
use super::queue::{Mark, Queue};
use crate::policy::{Edits, Policy};
use crate::rib::chunked::Chunked;
use crate::rib::dirty::{Dirty, Item};
use crate::rib::number::NONE;
use crate::rib::store::{PathInfo, Store};

/// The bit of a sent path that tells which of two export policies it passed.
pub(crate) const PARITY: u32 = 1 << 31;

/// An update group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) outward: Outward,
    pub(crate) export: Arc<Policy>,
    /// The policy that paths of the other parity passed, as long as there may be such paths.
    pub(crate) old_export: Option<Arc<Policy>>,
    pub(crate) parity: u32,
    pub(crate) members: Vec<u32>,
    /// How many members read the queue.
    pub(crate) attached: u32,
    /// By slot: the path that was advertised, with its parity, or [`NONE`]. The path's own peer was not sent it.
    pub(crate) sent: Chunked<u32>,
    /// How many routes were advertised.
    pub(crate) sent_count: u32,
    /// With path identifiers, by slot: the identifiers and paths that were advertised.
    pub(crate) sent_paths: HashMap<u32, Vec<(u32, u32)>>,
    /// Whether what was advertised with path identifiers is advertised again, for a refresh.
    pub(crate) sends_again: bool,
    /// Slots to look at.
    pub(crate) pending: Dirty,
    /// The first slot that is still to be marked, if the group is to look at all its slots.
    pub(crate) unmarked: Option<u32>,
    pub(crate) noting: Noting,
    pub(crate) queue: Queue,
    /// MinRouteAdvertisementIntervalTimer: nothing is advertised before this time.
    pub(crate) next_flush: Instant,
    /// If its members joined a large group at the same time: they share their first dump, and then join that group.
    pub(crate) cohort: Option<Cohort>,
    /// Whether the group is in the list of active groups.
    pub(crate) is_active: bool,
    /// Whether routes of the only member were skipped, so `sent` does not list them.
    pub(crate) skips_own: bool,
    /// Distinguishes groups that had the same number one after the other.
    pub(crate) serial: u64,
}

/// Slots to note for the members that are served apart.
#[derive(Debug, Default)]
pub(crate) struct Noting {
    slots: Vec<u32>,
    /// The members before this one in the list have not been looked at.
    members_left: usize,
}

/// Slots that are noted in one call for members that are served apart. One queue has up to 50,000, and a group can have
/// 1,000 members that stop to read at the same time.
pub(crate) const NOTED_AT_ONCE: usize = 32_768;

/// How long a new cohort waits for more members before it sends.
const GATHER: Duration = Duration::from_millis(100);
/// How long a cohort waits for its slowest members before these are served apart.
const STALLED_MAX: Duration = Duration::from_secs(3);

/// The state of a group of joiners.
#[derive(Debug, Default)]
pub(crate) struct Cohort {
    /// Whether its time to gather members has started.
    is_timed: bool,
    /// Since when its queue is full, because of its slowest members.
    full_since: Option<Instant>,
    /// Whether none of its members has read everything in that time. No other cohort waits for it any more.
    is_stuck: bool,
}

/// What a group needs from outside to look at its slots.
pub(crate) struct Context<'a> {
    pub(crate) store: &'a mut Store,
    pub(crate) members: &'a mut Members,
    pub(crate) counters: &'a mut SendCounters,
    pub(crate) scratch: &'a mut Scratch,
}

/// A route to withdraw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Withdrawal {
    /// For all members (0), all but one peer (1), or only one peer (2).
    to: (u8, u32),
    slot: u32,
    path_id: u32,
}

/// Buffers that flushes reuse.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    items: Vec<Item>,
    announced: Vec<(Edits, u32)>,
    withdrawn: Vec<Withdrawal>,
    touched: Vec<u32>,
    /// Attributes as they are sent.
    pub(crate) encoded: Vec<u8>,
    other: Vec<u8>,
    pub(crate) paths: Vec<u32>,
    pub(crate) left: Vec<u32>,
}

/// The work of a flush, in slots: to look whether a slot is in a window costs a sixteenth of writing a message about it.
pub(crate) fn flush_cost(taken: usize, looked_at: usize) -> usize {
    taken.max(looked_at / 16).max(1)
}

impl Group {
    pub(crate) fn new(outward: Outward, export: Arc<Policy>) -> Self {
        Group {
            outward,
            export,
            old_export: None,
            parity: 0,
            members: Vec::new(),
            attached: 0,
            sent: Chunked::new(),
            sent_count: 0,
            sent_paths: HashMap::new(),
            sends_again: false,
            pending: Dirty::default(),
            unmarked: None,
            noting: Noting::default(),
            queue: Queue::default(),
            next_flush: Instant::ZERO,
            cohort: None,
            is_active: false,
            skips_own: false,
            serial: 0,
        }
    }

    pub(crate) fn family(&self) -> FamilyId {
        self.outward.family
    }

    pub(crate) fn memory(&self) -> usize {
        let sent = self.sent.memory() + self.sent_paths.allocation_size();
        let sent = sent + self.noting.slots.capacity() * 4;
        sent + self.pending.memory() + self.queue.memory() + size_of::<Group>()
    }

    /// The path that was advertised for a slot, or [`NONE`].
    #[inline]
    pub(crate) fn sent_path(&self, slot: u32) -> u32 {
        match self.sent.get(slot) {
            Some(&sent) if sent != NONE => sent & !PARITY,
            _ => NONE,
        }
    }

    /// Whether anything was advertised for a slot.
    pub(crate) fn has_sent(&self, slot: u32) -> bool {
        self.sent_path(slot) != NONE || self.sent_paths.contains_key(&slot)
    }

    /// Whether more joiners can become members: nothing was sent yet.
    pub(crate) fn is_gathering(&self) -> bool {
        self.cohort.is_some() && self.sent_count == 0 && self.queue.last() == 0
    }

    /// Whether it is a cohort that has not started its time to gather members.
    pub(crate) fn is_waiting(&self) -> bool {
        self.cohort.as_ref().is_some_and(|cohort| !cohort.is_timed)
    }

    /// Whether it is a cohort that still has routes to write for members that read.
    pub(crate) fn is_running(&self) -> bool {
        let has_more = !self.pending.is_empty() || self.unmarked.is_some();
        let cohort = self.cohort.as_ref();
        has_more && cohort.is_some_and(|cohort| cohort.is_timed && !cohort.is_stuck)
    }

    /// For a cohort: starts the time in which it gathers members, and watches whether the slowest of them reads. Returns
    /// whether a flush may detach those that lag behind; for other groups it always may.
    pub(crate) fn may_detach(&mut self, now: Instant) -> bool {
        let Some(cohort) = &mut self.cohort else {
            return true;
        };
        if !std::mem::replace(&mut cohort.is_timed, true) {
            self.next_flush = now + GATHER;
        }
        if !self.queue.is_full() {
            (cohort.full_since, cohort.is_stuck) = (None, false);
            return true;
        }
        now >= *cohort.full_since.get_or_insert(now) + STALLED_MAX
    }

    /// No member of a cohort has read everything, although the slowest had their time: they have the same time again.
    pub(crate) fn wait_again(&mut self, now: Instant) {
        if let Some(cohort) = &mut self.cohort
            && let Some(since) = &mut cohort.full_since
            && now >= *since + STALLED_MAX
        {
            *since = now;
            cohort.is_stuck = true;
        }
    }

    /// When the slowest members of a cohort have had their time.
    pub(crate) fn stalled_until(&self) -> Option<Instant> {
        Some(self.cohort.as_ref()?.full_since? + STALLED_MAX)
    }

    /// Whether every route that it could advertise was advertised and read.
    pub(crate) fn is_settled(&self) -> bool {
        self.pending.is_empty()
            && self.unmarked.is_none()
            && !self.is_noting()
            && self.queue.is_empty()
            && self.attached as usize == self.members.len()
    }

    /// Whether there are slots to look at, and the timer allows it.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        !self.pending.is_empty() && now >= self.next_flush
    }

    pub(crate) fn writer(&self) -> UpdateWriter {
        let mut add_path = [false; FAMILIES];
        add_path[self.family().index()] = self.outward.add_path.is_some();
        UpdateWriter {
            message_max: self.outward.message_max.into(),
            add_path,
        }
    }

    /// What an export policy makes of a path, for one prefix; `None` denies it.
    pub(crate) fn judge(
        &self,
        policy: &Policy,
        path: &PathInfo,
        slot: u32,
        store: &Store,
    ) -> Option<Edits> {
        let prefix = store.prefix(self.family(), slot);
        let attributes = store.attributes(path.attributes).raw;
        store.judge(policy, attributes, path.peer(), prefix)
    }

    /// Whether a path may be sent, before policy.
    pub(crate) fn may_send(&self, path: &PathInfo, store: &Store) -> bool {
        let digest = store.digest(path.attributes);
        self.outward.may_send(digest, store.source(path.peer()))
    }

    /// Takes a window of the pending slots, if it is found in this call, and writes the messages about them. Returns how
    /// much work that was, in slots.
    pub(crate) fn flush(&mut self, number: u32, cx: &mut Context<'_>) -> usize {
        let family = self.family();
        let mut items = std::mem::take(&mut cx.scratch.items);
        let looked_at = self.pending.take(
            cx.store.paths_end(),
            |slot| cx.store.best_path(family, slot),
            &mut items,
        );
        cx.scratch.withdrawn.clear();
        cx.scratch.touched.clear();
        for run in items.chunk_by(|a, b| a.path == b.path) {
            if run[0].path == NONE {
                for item in run {
                    self.withdraw(number, item.slot, cx);
                }
            } else {
                self.flush_run(number, run, cx);
            }
        }
        self.write_withdrawn(cx);
        self.queue.seal(self.attached);
        if self.attached as usize != self.members.len() && !cx.scratch.touched.is_empty() {
            std::mem::swap(&mut self.noting.slots, &mut cx.scratch.touched);
            self.noting.members_left = self.members.len();
            self.note_detached(cx.members);
        }
        if self.pending.is_empty() && self.unmarked.is_none() {
            self.old_export = None;
        }
        let cost = flush_cost(items.len(), looked_at);
        cx.scratch.items = items;
        cost
    }

    /// Looks at slots that have the same best path.
    fn flush_run(&mut self, number: u32, run: &[Item], cx: &mut Context<'_>) {
        let id = run[0].path;
        let path = *cx.store.path(id);
        let is_own = self.is_member(number, path.peer(), cx.members);
        let skips = is_own && self.members.len() == 1;
        self.skips_own |= skips;
        let may_send = !skips && self.may_send(&path, cx.store);
        let export = Arc::clone(&self.export);
        let mut verdict = None;
        cx.scratch.announced.clear();
        for &Item { slot, .. } in run {
            let edits = if !may_send {
                None
            } else if let Some(verdict) = verdict {
                verdict
            } else {
                let edits = self.judge(&export, &path, slot, cx.store);
                if !export.is_by_prefix() {
                    verdict = Some(edits);
                }
                edits
            };
            let old = self.sent.get(slot).copied().unwrap_or(NONE);
            match edits {
                None => self.withdraw(number, slot, cx),
                Some(_) if old == id | self.parity => {}
                Some(edits)
                    if old == id | (self.parity ^ PARITY)
                        && self.is_unchanged(&path, slot, edits, cx) =>
                {
                    self.sent[slot] = id | self.parity;
                }
                Some(edits) => cx.scratch.announced.push((edits, slot)),
            }
        }
        cx.scratch.announced.sort_unstable();
        let announced = std::mem::take(&mut cx.scratch.announced);
        for same in announced.chunk_by(|a, b| a.0 == b.0) {
            self.announce(number, id, is_own, same, cx);
        }
        cx.scratch.announced = announced;
    }

    /// Whether the policy before would have sent the same for a path.
    fn is_unchanged(&self, path: &PathInfo, slot: u32, edits: Edits, cx: &mut Context<'_>) -> bool {
        let Some(old) = &self.old_export else {
            return false;
        };
        let Some(old_edits) = self.judge(old, path, slot, cx.store) else {
            return false;
        };
        let Scratch { encoded, other, .. } = &mut *cx.scratch;
        let outward = &self.outward;
        let new_hop = outward.encode(path, cx.store, (&self.export, edits), encoded);
        let old_hop = outward.encode(path, cx.store, (old, old_edits), other);
        new_hop == old_hop && encoded == other
    }

    fn announce(
        &mut self,
        number: u32,
        id: u32,
        is_own: bool,
        places: &[(Edits, u32)],
        cx: &mut Context<'_>,
    ) {
        let path = *cx.store.path(id);
        let (policy, encoded) = ((&*self.export, places[0].0), &mut cx.scratch.encoded);
        let next_hop = self.outward.encode(&path, cx.store, policy, encoded);
        let Some(next_hop) = next_hop else {
            cx.counters.without_next_hop += places.len() as u64;
            return self.withdraw_all(number, places, cx);
        };
        let family = self.family();
        let (writer, store) = (self.writer(), &*cx.store);
        let mark = if is_own {
            Mark::AllBut(path.peer())
        } else {
            Mark::All
        };
        let mut fits = true;
        if self.attached > 0 {
            let slots = places.iter().map(|place| place.1);
            let routes = slots.clone().map(|slot| Nlri {
                prefix: store.prefix(family, slot),
                path_id: 0,
            });
            let attributes = &cx.scratch.encoded;
            self.queue.append(self.attached, mark, slots, |out| {
                fits = writer.announce(attributes, next_hop, routes, out).is_ok();
            });
        }
        if !fits {
            cx.counters.too_long += places.len() as u64;
            return self.withdraw_all(number, places, cx);
        }
        let end = places.iter().map(|place| place.1 + 1).max();
        self.sent.grow(end.unwrap_or(0), NONE);
        let mut new = 0;
        for &(_, slot) in places {
            if self.sent[slot] == NONE {
                self.sent[slot] = id | self.parity;
                new += 1;
                continue;
            }
            let old = self.sent_path(slot);
            if is_own && cx.store.path(old).peer() != path.peer() {
                // The member's own route is best now, so the route that it was sent is withdrawn from it.
                cx.scratch.withdrawn.push(Withdrawal {
                    to: (2, path.peer()),
                    slot,
                    path_id: 0,
                });
            }
            self.set_sent(number, slot, id | self.parity, cx);
        }
        self.sent_count += new;
        self.count_own(number, id, new.cast_signed(), cx);
        cx.store.hold(id, new);
        if self.attached as usize != self.members.len() {
            cx.scratch
                .touched
                .extend(places.iter().map(|place| place.1));
        }
    }

    fn withdraw_all(&mut self, number: u32, places: &[(Edits, u32)], cx: &mut Context<'_>) {
        for &(_, slot) in places {
            self.withdraw(number, slot, cx);
        }
    }

    /// Withdraws the route that was advertised for a slot, if there is one.
    fn withdraw(&mut self, number: u32, slot: u32, cx: &mut Context<'_>) {
        let old = self.sent_path(slot);
        if old == NONE {
            return;
        }
        let source = cx.store.path(old).peer();
        let to = if self.is_member(number, source, cx.members) {
            (1, source)
        } else {
            (0, 0)
        };
        cx.scratch.withdrawn.push(Withdrawal {
            to,
            slot,
            path_id: 0,
        });
        cx.scratch.touched.push(slot);
        self.set_sent(number, slot, NONE, cx);
    }

    fn write_withdrawn(&mut self, cx: &mut Context<'_>) {
        if self.attached == 0 {
            return;
        }
        cx.scratch.withdrawn.sort_unstable();
        let family = self.family();
        let (writer, store) = (self.writer(), &*cx.store);
        for same in cx.scratch.withdrawn.chunk_by(|a, b| a.to == b.to) {
            let mark = match same[0].to {
                (0, _) => Mark::All,
                (1, peer) => Mark::AllBut(peer),
                (_, peer) => Mark::Only(peer),
            };
            let routes = same.iter().map(|withdrawal| Nlri {
                prefix: store.prefix(family, withdrawal.slot),
                path_id: withdrawal.path_id,
            });
            let slots = same.iter().map(|withdrawal| withdrawal.slot);
            self.queue.append(self.attached, mark, slots, |out| {
                writer.withdraw(family, routes, out);
            });
        }
    }

    /// Whether slots are still to be noted for detached members. Until that is done, the group writes nothing, and none
    /// of these members is served.
    pub(crate) fn is_noting(&self) -> bool {
        self.noting.members_left > 0
    }

    /// Notes for detached members the slots about which the others were sent messages last, until [`NOTED_AT_ONCE`] are
    /// noted. Returns how many were.
    pub(crate) fn note_detached(&mut self, members: &mut Members) -> usize {
        let mut noted = 0;
        // Backwards: if a member leaves meanwhile, one is looked at twice and none is missed.
        while noted < NOTED_AT_ONCE
            && let Some(at) = self.noting.members_left.checked_sub(1)
        {
            self.noting.members_left = at;
            let member = self.members.get(at).copied();
            let member = member.and_then(|peer| members.get_mut(peer, self.outward.family));
            if let Some(resend) = member.and_then(|member| member.resend.as_mut()) {
                noted += self.noting.slots.len();
                for &slot in &self.noting.slots {
                    resend.dirty.insert(slot);
                }
            }
        }
        if !self.is_noting() {
            self.noting.slots = Vec::new();
        }
        noted
    }

    /// Whether a peer is a member of this group, so that it must not be sent its own routes.
    pub(crate) fn is_member(&self, number: u32, peer: u32, members: &Members) -> bool {
        let member = members.get(peer, self.family());
        member.is_some_and(|member| member.group() == Some(number))
    }

    /// Notes which path was advertised for a slot.
    pub(crate) fn set_sent(&mut self, number: u32, slot: u32, sent: u32, cx: &mut Context<'_>) {
        if sent != NONE {
            self.sent.grow(slot + 1, NONE);
        }
        let old = self.sent_path(slot);
        self.sent[slot] = sent;
        let new = self.sent_path(slot);
        if new == old {
            return;
        }
        if new != NONE {
            self.count_own(number, new, 1, cx);
            cx.store.hold(new, 1);
            self.sent_count += 1;
        }
        if old != NONE {
            self.count_own(number, old, -1, cx);
            cx.store.release(old);
            self.sent_count -= 1;
        }
    }

    /// Counts how many of the advertised routes are a member's own.
    fn count_own(&self, number: u32, path: u32, by: i32, cx: &mut Context<'_>) {
        let source = cx.store.path(path).peer();
        if let Some(member) = cx.members.get_mut(source, self.outward.family)
            && member.group() == Some(number)
        {
            member.own = member.own.wrapping_add_signed(by);
        }
    }

    /// Notes that an advertised path has another number now, with the same attributes.
    pub(crate) fn replace_sent(
        &mut self,
        number: u32,
        slot: u32,
        old: u32,
        new: u32,
        cx: &mut Context<'_>,
    ) {
        if self.sent_path(slot) == old {
            let parity = self.sent[slot] & PARITY;
            self.set_sent(number, slot, new | parity, cx);
        }
        if let Some(sent) = self.sent_paths.get_mut(&slot) {
            for (_, path) in sent.iter_mut().filter(|(_, path)| *path == old) {
                cx.store.hold(new, 1);
                cx.store.release(old);
                *path = new;
            }
        }
    }
}
