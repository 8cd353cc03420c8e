//! What a peer is sent: its share of the group's queue; apart from that, what it is to be told anew or could not keep
//! up with. RFC 2918, 4724, 7313.

use base::{Duration, Instant};
use wire::bgp::{Family, Nlri, Refresh, RouteRefresh, UpdateWriter};

use super::group::{Group, World};
use super::hash;
use super::outward::Told;
use super::peer::Resend;
use super::{NONE, PeerId, Rib, world};
use crate::policy::Edits;

/// Places of one path that are served in one go.
const SERVED_AT_ONCE: usize = 1_024;

impl Rib {
    /// The peer is told all of its routes of a family again (RFC 2918), with a mark before and after them if that was
    /// agreed on (RFC 7313).
    pub fn refresh(&mut self, peer: PeerId, family: Family, _now: Instant) {
        if let Some(state) = self.peers.get_mut(peer.0) {
            let member = state.member_mut(family);
            if member.group().is_some() {
                member.wants_refresh = true;
                self.set_ready(peer.0);
            }
        }
    }

    /// Appends whole messages for a peer, until `out` has `limit` octets or all is written. `true`: there is more.
    pub fn fill(&mut self, peer: PeerId, out: &mut Vec<u8>, limit: usize, now: Instant) -> bool {
        if self.is_deferred {
            return false;
        }
        Family::ALL
            .into_iter()
            .any(|family| self.fill_family(peer.0, family, out, limit, now))
    }

    fn fill_family(
        &mut self,
        peer: u32,
        family: Family,
        out: &mut Vec<u8>,
        limit: usize,
        now: Instant,
    ) -> bool {
        loop {
            let Some(state) = self.peers.get_mut(peer) else {
                return false;
            };
            let member = state.member_mut(family);
            let Some(number) = member.group() else {
                return false;
            };
            if member.resend.is_some() {
                if !self.serve(peer, number, family, out, limit) {
                    return true;
                }
                continue;
            }
            let Some(group) = &mut self.groups.list[number as usize] else {
                return false;
            };
            let has_more = group.queue.read(&mut member.cursor, peer, out, limit);
            if out.len() >= limit {
                return has_more || member.wants_refresh || member.owes_end || group.is_due(now);
            }
            if group.is_due(now) {
                self.flush(number, now);
                continue;
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
                self.begin_refresh(peer, number, family, out);
                continue;
            }
            return false;
        }
    }

    /// Lets the peer be told again all that the group has told.
    fn begin_refresh(&mut self, peer: u32, number: u32, family: Family, out: &mut Vec<u8>) {
        let Some(mut group) = self.groups.list[number as usize].take() else {
            return;
        };
        let is_marked = self
            .peers
            .get(peer)
            .is_some_and(|state| state.traits.enhanced_refresh);
        if is_marked {
            mark(Refresh::Begin, family, out);
        }
        if group.outward.add_path.is_some() {
            group.forget_paths(&mut world!(self));
            group.next_flush = Instant::ZERO;
            if !group.is_active && !group.pending.is_empty() {
                group.is_active = true;
                self.groups.active.push(number);
            }
        }
        let is_apart = group.outward.add_path.is_none();
        let mut resend = Resend {
            is_marked,
            ..Resend::default()
        };
        for slot in 0..group.sent.len() {
            if group.sent_path(slot) != NONE {
                resend.dirty.insert(slot);
            }
        }
        if let Some(state) = self.peers.get_mut(peer) {
            let member = state.member_mut(family);
            if is_apart {
                group.queue.leave(member.cursor, |_| {});
                group.attached -= 1;
                member.resend = Some(Box::new(resend));
            } else {
                member.owes_refresh_end = is_marked;
            }
        }
        self.groups.list[number as usize] = Some(group);
    }

    /// Serves a member apart. `true`: it is done, and reads the queue from now on.
    fn serve(
        &mut self,
        peer: u32,
        number: u32,
        family: Family,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> bool {
        let member = self
            .peers
            .get_mut(peer)
            .map(|state| state.member_mut(family));
        let Some(mut resend) = member.and_then(|member| member.resend.take()) else {
            return true;
        };
        let Some(group) = self.groups.list[number as usize].take() else {
            return true;
        };
        let mut world = world!(self);
        let told = &mut self.scratch.told;
        let is_done = group.serve(peer, &mut resend, out, limit, &mut world, told);
        let group = self.groups.list[number as usize].insert(group);
        let Some(state) = self.peers.get_mut(peer) else {
            return true;
        };
        let member = state.member_mut(family);
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

    /// Flushes groups that have something pending, those that may now.
    pub(super) fn flush_groups(&mut self, budget: usize, now: Instant) -> usize {
        if self.is_deferred {
            return budget;
        }
        let mut left = budget;
        let mut at = 0;
        while left > 0
            && let Some(&number) = self.groups.active.get(at)
        {
            let group = self.groups.list[number as usize].as_deref();
            if group.is_none_or(|group| group.pending.is_empty()) {
                if let Some(group) = &mut self.groups.list[number as usize] {
                    group.is_active = false;
                }
                self.groups.active.swap_remove(at);
            } else if self.can_flush(number, now) {
                left = left.saturating_sub(self.flush(number, now));
            } else {
                at += 1;
            }
        }
        left
    }

    pub(super) fn has_flushable(&self, now: Instant) -> bool {
        !self.is_deferred
            && self
                .groups
                .active
                .iter()
                .any(|&number| self.can_flush(number, now))
    }

    /// Whether there is something pending, its time has come, and the queue has room or somebody has read it all.
    fn can_flush(&self, number: u32, now: Instant) -> bool {
        self.group(number).is_some_and(|group| {
            let has_reader = || {
                group.members.iter().any(|&peer| {
                    let member = self
                        .peers
                        .get(peer)
                        .map(|state| state.member(group.family()));
                    member.is_some_and(|m| m.resend.is_none() && group.queue.is_read(m.cursor))
                })
            };
            group.is_due(now) && (!group.queue.is_full() || has_reader())
        })
    }

    /// Flushes a window of a group. Members that hold back too much are served apart from then on.
    fn flush(&mut self, number: u32, now: Instant) -> usize {
        let Some(mut group) = self.groups.list[number as usize].take() else {
            return 0;
        };
        if group.queue.is_full() {
            self.detach_laggards(&mut group);
        }
        let before = group.queue.last();
        let mut world = world!(self);
        let count = match group.outward.add_path {
            None => group.flush(number, &mut world, &mut self.scratch),
            Some((_, count)) => group.flush_paths(
                count,
                self.config.prefers_oldest,
                &mut self.identifiers,
                &mut world,
                &mut self.scratch,
            ),
        };
        let has_written = group.queue.last() != before;
        if group.pending.is_empty() {
            group.next_flush = now + self.interval(&group, has_written);
        }
        for at in 0..group.members.len() {
            self.set_ready(group.members[at]);
        }
        self.groups.list[number as usize] = Some(group);
        count
    }

    /// MinRouteAdvertisementIntervalTimer with its jitter (RFC 4271, section 10): three quarters to all of it.
    fn interval(&mut self, group: &Group, has_written: bool) -> Duration {
        let whole = group.outward.advertisement_interval;
        if !has_written || whole == Duration::ZERO {
            return Duration::ZERO;
        }
        self.jitter = hash::number(self.config.seed, self.jitter.wrapping_add(1));
        let share = 768 + self.jitter % 257;
        Duration::from_nanos(whole.as_nanos() / 1_024 * share)
    }

    fn detach_laggards(&mut self, group: &mut Group) {
        let family = group.family();
        for at in 0..group.members.len() {
            let Some(state) = self.peers.get_mut(group.members[at]) else {
                continue;
            };
            let member = state.member_mut(family);
            if member.resend.is_some() || !group.queue.lags(member.cursor) {
                continue;
            }
            let mut resend = Box::<Resend>::default();
            group.queue.leave(member.cursor, |slot| {
                resend.dirty.insert(slot);
            });
            member.resend = Some(resend);
            group.attached -= 1;
            self.counters.detached += 1;
        }
    }
}

impl Group {
    /// Writes for a member that is served apart what it is to know of the places that it is behind with. `true`: it is
    /// behind with none any more.
    fn serve(
        &self,
        peer: u32,
        resend: &mut Resend,
        out: &mut Vec<u8>,
        limit: usize,
        world: &mut World<'_>,
        told: &mut Told,
    ) -> bool {
        loop {
            if resend.at == resend.window.len() {
                resend.window.clear();
                resend.at = 0;
                if resend.dirty.is_empty() {
                    return true;
                }
                let end = world.paths.end();
                resend
                    .dirty
                    .take(end, |slot| self.sent_path(slot), &mut resend.window);
                continue;
            }
            if out.len() >= limit {
                return false;
            }
            self.serve_run(peer, resend, out, world, told);
        }
    }

    /// The next places of one path.
    fn serve_run(
        &self,
        peer: u32,
        resend: &mut Resend,
        out: &mut Vec<u8>,
        world: &mut World<'_>,
        told: &mut Told,
    ) {
        let items = &resend.window[resend.at..];
        let id = items[0].path;
        let count = items
            .iter()
            .take(SERVED_AT_ONCE)
            .take_while(|item| item.path == id)
            .count();
        let mut announced: Vec<(Edits, u32)> = Vec::new();
        let mut withdrawn = Vec::new();
        let path = (id != NONE).then(|| *world.paths.get(id));
        for item in &items[..count] {
            // What has changed since comes again.
            if self.sent_path(item.slot) != id {
                continue;
            }
            let edits = path
                .filter(|path| path.peer() != peer)
                .and_then(|path| self.judge(&self.export, &path, item.slot, world.look()));
            match edits {
                Some(edits) => announced.push((edits, item.slot)),
                None => withdrawn.push(item.slot),
            }
        }
        resend.at += count;
        announced.sort_unstable();
        let (family, writer, tables) = (self.family(), self.writer(), world.tables);
        for same in announced.chunk_by(|a, b| a.0 == b.0) {
            let Some(path) = &path else {
                continue;
            };
            let is_told = self.tell(path, (&self.export, same[0].0), world.look(), told);
            let (Some(()), Some(next_hop)) = (is_told, told.next_hop) else {
                withdrawn.extend(same.iter().map(|place| place.1));
                continue;
            };
            let routes = same.iter().map(|place| Nlri {
                prefix: tables.prefix(family, place.1),
                path_id: 0,
            });
            if writer
                .announce(&told.attributes, next_hop, routes, out)
                .is_err()
            {
                withdrawn.extend(same.iter().map(|place| place.1));
            } else if let Some(told) = &mut resend.told {
                same.iter().for_each(|place| {
                    told.insert(place.1);
                });
            }
        }
        if let Some(told) = &mut resend.told {
            withdrawn.retain(|&slot| told.remove_if_in(slot));
        }
        let routes = withdrawn.iter().map(|&slot| Nlri {
            prefix: tables.prefix(family, slot),
            path_id: 0,
        });
        writer.withdraw(family, routes, out);
    }
}

fn mark(refresh: Refresh, family: Family, out: &mut Vec<u8>) {
    let family = family.into();
    RouteRefresh { family, refresh }.emit(out);
}
