//! Filling a peer's buffer: its share of the group's queue, and what it is sent apart from the other members, because
//! it is new, asked for a refresh, or reads too slowly. RFC 2918, 4724, 7313.

use base::{Duration, Instant};
use wire::bgp::{FamilyId, Nlri, Refresh, RouteRefresh, UpdateWriter};

use super::Groups;
use super::group::{Context, Group, NOTED_AT_ONCE};
use super::member::Resend;
use crate::policy::Edits;
use crate::rib::dirty::Dirty;
use crate::rib::hash;
use crate::rib::number::NONE;
use crate::rib::store::Store;

/// Slots of one path that are served together.
const SERVED_AT_ONCE: usize = 1_024;

impl Groups {
    /// Sends a peer all routes of a family again (RFC 2918), with marks around them if that was negotiated (RFC 7313).
    pub(in crate::rib) fn refresh(&mut self, peer: u32, family: FamilyId) {
        if let Some(member) = self.members.get_mut(peer, family)
            && member.group().is_some()
        {
            member.wants_refresh = true;
            self.set_ready(peer);
        }
    }

    /// Appends whole messages for a peer until `out` has `limit` bytes or nothing is left. Returns whether there is
    /// more.
    pub(in crate::rib) fn fill(
        &mut self,
        peer: u32,
        out: &mut Vec<u8>,
        limit: usize,
        (store, now): (&mut Store, Instant),
    ) -> bool {
        if self.is_deferred {
            return false;
        }
        FamilyId::ALL
            .into_iter()
            .any(|family| self.fill_family((peer, family), out, limit, (&mut *store, now)))
    }

    fn fill_family(
        &mut self,
        (peer, family): (u32, FamilyId),
        out: &mut Vec<u8>,
        limit: usize,
        (store, now): (&mut Store, Instant),
    ) -> bool {
        let mut is_flushed = false;
        loop {
            let Some(member) = self.members.get_mut(peer, family) else {
                return false;
            };
            let Some(number) = member.group() else {
                return false;
            };
            if member.resend.is_some() {
                if !self.serve((peer, family), number, out, limit, store) {
                    return true;
                }
                continue;
            }
            let Some(group) = &mut self.list[number as usize] else {
                return false;
            };
            let has_more = group.queue.read(&mut member.cursor, peer, out, limit);
            // A refresh with several paths forgets what was advertised, so withdrawals that wait for the timer go first.
            let has_waiting = group.outward.add_path.is_some() && !group.pending.is_empty();
            let is_due = group.is_due(now) || member.wants_refresh && has_waiting;
            if out.len() >= limit {
                return has_more || is_due || member.owes_anything();
            }
            if is_due && (group.is_waiting() || !group.may_detach(now)) {
                // It is not this cohort's turn, or its other members have not read what a flush would follow.
                return false;
            }
            if is_due && (group.cohort.is_none() || group.is_due(now)) {
                // A window that was nothing for this peer leaves the others their turn.
                if std::mem::replace(&mut is_flushed, true) {
                    return true;
                }
                self.flush(number, store, now);
                continue;
            }
            if group.unmarked.is_some() || group.cohort.is_some() && !group.pending.is_empty() {
                return false;
            }
            if member.owes_end {
                member.owes_end = false;
                UpdateWriter::end_of_rib(family, out);
                continue;
            }
            if std::mem::take(&mut member.owes_refresh_end) {
                mark(Refresh::End, family, out);
                continue;
            }
            if std::mem::take(&mut member.wants_refresh) {
                self.begin_refresh((peer, family), number, out, store);
                continue;
            }
            if group.cohort.is_some() {
                self.merge(number);
            }
            return false;
        }
    }

    /// Starts to send a peer again all that its group has advertised.
    fn begin_refresh(
        &mut self,
        (peer, family): (u32, FamilyId),
        number: u32,
        out: &mut Vec<u8>,
        store: &mut Store,
    ) {
        let Some(mut group) = self.list[number as usize].take() else {
            return;
        };
        let is_marked = store
            .peer(peer)
            .is_some_and(|state| state.traits.enhanced_refresh);
        if is_marked {
            mark(Refresh::Begin, family, out);
        }
        let is_apart = group.outward.add_path.is_none();
        if !is_apart {
            group.sends_again = true;
            group.next_flush = Instant::ZERO;
        }
        // The member has read the queue, so it was sent all that the group has advertised, except its own routes.
        let mut dirty = Dirty::default();
        let has_routes = !group.pending.is_empty() || store.has_routes(peer, family);
        for slot in 0..group.sent.len() {
            let path = group.sent_path(slot);
            if path != NONE && !(has_routes && store.path(path).peer() == peer) {
                dirty.insert(slot);
            }
        }
        let resend = Resend {
            sent: Some(dirty.clone()),
            dirty,
            is_marked,
            ..Resend::default()
        };
        if let Some(member) = self.members.get_mut(peer, family) {
            if is_apart {
                group.queue.leave(member.cursor, |_| {});
                group.attached -= 1;
                member.resend = Some(Box::new(resend));
            } else {
                member.owes_refresh_end = is_marked;
            }
        }
        self.list[number as usize] = Some(group);
        if !is_apart {
            self.mark_all(number, store);
        }
    }

    /// Serves a member apart from the others. Returns whether that is finished; the member then reads the queue.
    fn serve(
        &mut self,
        (peer, family): (u32, FamilyId),
        number: u32,
        out: &mut Vec<u8>,
        limit: usize,
        store: &mut Store,
    ) -> bool {
        let member = self.members.get_mut(peer, family);
        let Some(mut resend) = member.and_then(|member| member.resend.take()) else {
            return true;
        };
        let Some(mut group) = self.list[number as usize].take() else {
            return true;
        };
        if group.is_noting() {
            // This member's slots may be noted now, so it has to be complete.
            if let Some(member) = self.members.get_mut(peer, family) {
                member.resend = Some(resend);
            }
            group.note_detached(&mut self.members);
            self.list[number as usize] = Some(group);
            return false;
        }
        let is_done = group.serve(peer, &mut resend, out, limit, &mut self.context(store));
        let group = self.list[number as usize].insert(group);
        let Some(member) = self.members.get_mut(peer, family) else {
            return true;
        };
        if is_done {
            if resend.is_marked {
                mark(Refresh::End, family, out);
            }
            member.cursor = group.queue.end();
            group.attached += 1;
        } else {
            member.resend = Some(resend);
        }
        is_done
    }

    /// Flushes the active groups whose timer allows it. Returns what is left of the budget.
    pub(in crate::rib) fn flush_all(
        &mut self,
        budget: usize,
        store: &mut Store,
        now: Instant,
    ) -> usize {
        if self.is_deferred {
            return budget;
        }
        let mut left = budget;
        let mut at = 0;
        while left > 0
            && let Some(&number) = self.active.get(at)
        {
            let has_to_wait = self
                .group(number)
                .is_some_and(|group| self.has_to_wait(group));
            let group = self.list[number as usize].as_deref_mut();
            if let Some(group) = group {
                if group.is_noting() {
                    let noted = group.note_detached(&mut self.members);
                    left = left.saturating_sub(noted.max(1));
                    continue;
                }
                if has_to_wait || !group.may_detach(now) {
                    at += 1;
                    continue;
                }
            }
            let group = self.list[number as usize].as_deref();
            if group.is_none_or(|group| group.pending.is_empty()) {
                if let Some(group) = &mut self.list[number as usize] {
                    group.is_active = false;
                }
                self.active.swap_remove(at);
            } else if self.can_flush(number, now) {
                left = left.saturating_sub(self.flush(number, store, now));
            } else {
                if let Some(group) = &mut self.list[number as usize] {
                    group.wait_again(now);
                }
                at += 1;
            }
        }
        left
    }

    pub(in crate::rib) fn has_flushable(&self, now: Instant) -> bool {
        !self.is_deferred
            && self
                .active
                .iter()
                .any(|&number| self.is_noting(number) || self.can_flush(number, now))
    }

    fn is_noting(&self, number: u32) -> bool {
        self.group(number).is_some_and(Group::is_noting)
    }

    /// Whether a group has pending slots, its timer allows a flush, and its queue has room or a member has read it all.
    fn can_flush(&self, number: u32, now: Instant) -> bool {
        self.group(number).is_some_and(|group| {
            let has_reader = || {
                group.members.iter().any(|&peer| {
                    let member = self.members.get(peer, group.family());
                    member.is_some_and(|m| m.resend.is_none() && group.queue.is_read(m.cursor))
                })
            };
            let may_flush = || match group.stalled_until() {
                Some(until) => now >= until && has_reader(),
                None => has_reader(),
            };
            !group.is_waiting() && group.is_due(now) && (!group.queue.is_full() || may_flush())
        })
    }

    /// Flushes a window of a group. Members that lag too far behind are detached first; if they are many, that alone
    /// takes several calls. Returns how much work it was, in slots.
    fn flush(&mut self, number: u32, store: &mut Store, now: Instant) -> usize {
        let Some(mut group) = self.list[number as usize].take() else {
            return 0;
        };
        if group.is_noting() {
            let noted = group.note_detached(&mut self.members);
            self.list[number as usize] = Some(group);
            return noted.max(1);
        }
        if group.queue.is_full() {
            let noted = self.detach_laggards(&mut group);
            if noted >= NOTED_AT_ONCE {
                self.list[number as usize] = Some(group);
                return noted;
            }
        }
        let before = group.queue.last();
        let count = match group.outward.add_path {
            None => group.flush(number, &mut self.context(store)),
            Some((_, count)) => {
                let mut identifiers = std::mem::take(&mut self.identifiers);
                let looked_at =
                    group.flush_paths(count, &mut identifiers, &mut self.context(store));
                self.identifiers = identifiers;
                looked_at
            }
        };
        let has_written = group.queue.last() != before;
        if group.pending.is_empty() {
            group.next_flush = now + self.interval(&group, has_written);
        } else if group.cohort.is_some() {
            // It has gathered its members: from here on its queue decides when it is due.
            group.next_flush = Instant::ZERO;
        }
        for at in 0..group.members.len() {
            // A member that has nothing to read costs nothing.
            let peer = group.members[at];
            if has_written || group.pending.is_empty() && self.waits_for_end(peer, group.family()) {
                self.set_ready(peer);
            }
        }
        self.list[number as usize] = Some(group);
        count
    }

    /// Whether a member is owed something once its group has looked at all its slots.
    fn waits_for_end(&self, peer: u32, family: FamilyId) -> bool {
        let member = self.members.get(peer, family);
        member.is_some_and(|member| member.owes_anything() || member.resend.is_some())
    }

    /// The next MinRouteAdvertisementIntervalTimer: 75 to 100 % of its value (jitter of RFC 4271, section 10).
    fn interval(&mut self, group: &Group, has_written: bool) -> Duration {
        let whole = group.outward.advertisement_interval;
        if !has_written || whole == Duration::ZERO {
            return Duration::ZERO;
        }
        self.jitter = hash::number(self.seed, self.jitter.wrapping_add(1));
        let share = 768 + self.jitter % 257;
        Duration::from_nanos(whole.as_nanos() / 1_024 * share)
    }

    /// Detaches members that lag behind, until [`NOTED_AT_ONCE`] slots are noted for them. Returns how many were.
    fn detach_laggards(&mut self, group: &mut Group) -> usize {
        let family = group.family();
        let mut noted = 0;
        for at in 0..group.members.len() {
            if noted >= NOTED_AT_ONCE {
                break;
            }
            let Some(member) = self.members.get_mut(group.members[at], family) else {
                continue;
            };
            // Of a cohort, only those that have not read its oldest block are slow; the others wait for them.
            let lags = match group.cohort {
                Some(_) => group.queue.is_at_first(member.cursor),
                None => group.queue.lags(member.cursor),
            };
            if member.resend.is_some() || !lags {
                continue;
            }
            let mut resend = Box::<Resend>::default();
            group.queue.leave(member.cursor, |slot| {
                noted += 1;
                resend.dirty.insert(slot);
            });
            member.resend = Some(resend);
            group.attached -= 1;
            self.counters.detached += 1;
        }
        noted
    }
}

impl Group {
    /// Writes messages about the slots that a detached member is behind with. Returns whether none is left.
    fn serve(
        &self,
        peer: u32,
        resend: &mut Resend,
        out: &mut Vec<u8>,
        limit: usize,
        cx: &mut Context<'_>,
    ) -> bool {
        let mut is_taken = false;
        loop {
            if resend.at == resend.window.len() {
                resend.window.clear();
                resend.at = 0;
                if resend.dirty.is_empty() {
                    return true;
                }
                // One window at a time: the next one may again be nothing to send.
                if std::mem::replace(&mut is_taken, true) {
                    return false;
                }
                let end = cx.store.paths_end();
                resend
                    .dirty
                    .take(end, |slot| self.sent_path(slot), &mut resend.window);
                continue;
            }
            if out.len() >= limit {
                return false;
            }
            self.serve_run(peer, resend, out, cx);
        }
    }

    /// Serves the next slots of one path.
    fn serve_run(&self, peer: u32, resend: &mut Resend, out: &mut Vec<u8>, cx: &mut Context<'_>) {
        let items = &resend.window[resend.at..];
        let id = items[0].path;
        let count = items
            .iter()
            .take(SERVED_AT_ONCE)
            .take_while(|item| item.path == id)
            .count();
        let mut announced: Vec<(Edits, u32)> = Vec::new();
        let mut withdrawn = Vec::new();
        let path = (id != NONE).then(|| *cx.store.path(id));
        for item in &items[..count] {
            // A slot that has changed since is in `dirty` again.
            if self.sent_path(item.slot) != id {
                continue;
            }
            let edits = path
                .filter(|path| path.peer() != peer)
                .and_then(|path| self.judge(&self.export, &path, item.slot, cx.store));
            match edits {
                Some(edits) => announced.push((edits, item.slot)),
                None => withdrawn.push(item.slot),
            }
        }
        resend.at += count;
        announced.sort_unstable();
        let (family, writer, store) = (self.family(), self.writer(), &*cx.store);
        for same in announced.chunk_by(|a, b| a.0 == b.0) {
            let Some(path) = &path else {
                continue;
            };
            let (policy, encoded) = ((&*self.export, same[0].0), &mut cx.scratch.encoded);
            let Some(next_hop) = self.outward.encode(path, store, policy, encoded) else {
                withdrawn.extend(same.iter().map(|place| place.1));
                continue;
            };
            let routes = same.iter().map(|place| Nlri {
                prefix: store.prefix(family, place.1),
                path_id: 0,
            });
            if writer.announce(encoded, next_hop, routes, out).is_err() {
                withdrawn.extend(same.iter().map(|place| place.1));
            } else if let Some(sent) = &mut resend.sent {
                same.iter().for_each(|place| {
                    sent.insert(place.1);
                });
            }
        }
        if let Some(sent) = &mut resend.sent {
            withdrawn.retain(|&slot| sent.remove_if_in(slot));
        }
        let routes = withdrawn.iter().map(|&slot| Nlri {
            prefix: store.prefix(family, slot),
            path_id: 0,
        });
        writer.withdraw(family, routes, out);
    }
}

fn mark(refresh: Refresh, family: FamilyId, out: &mut Vec<u8>) {
    let family = family.into();
    RouteRefresh { family, refresh }.emit(out);
}
