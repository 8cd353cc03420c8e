//! Update groups: peers that are told the same share what was told (their Adj-RIB-Out), what is still to be told, and
//! the messages that tell it. RFC 4271, section 9.2.

use std::sync::Arc;

use base::Instant;
use hashbrown::HashMap;
use wire::bgp::{Family, Nlri, UpdateWriter};

use super::attrs::AttributeStore;
use super::chunked::Chunked;
use super::dirty::{Dirty, Item};
use super::outward::{Ours, Outward, Told};
use super::paths::{Path, PathStore};
use super::peer::{Peers, Source};
use super::queue::{Mark, Queue};
use super::table::Tables;
use super::{Counters, NONE};
use crate::policy::{Edits, Policy, Roas, Subject};

/// The bit of a sent path that says under which of two export policies it was sent.
pub(crate) const PARITY: u32 = 1 << 31;

/// A group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) outward: Outward,
    pub(crate) export: Arc<Policy>,
    /// The policy under which those were sent whose parity is not the group's, as long as there may be some.
    pub(crate) old_export: Option<Arc<Policy>>,
    pub(crate) parity: u32,
    pub(crate) members: Vec<u32>,
    /// Members that read the queue.
    pub(crate) attached: u32,
    /// By place: the path that members were told of, with its parity, or [`NONE`]. Its own peer was not told.
    pub(crate) sent: Chunked<u32>,
    /// How many of them there are.
    pub(crate) sent_count: u32,
    /// With path identifiers, by place: identifiers and paths that were told.
    pub(crate) sent_paths: HashMap<u32, Vec<(u32, u32)>>,
    pub(crate) pending: Dirty,
    pub(crate) queue: Queue,
    /// MinRouteAdvertisementIntervalTimer: nothing is told before.
    pub(crate) next_flush: Instant,
    /// Whether it stands among those that have something pending.
    pub(crate) is_active: bool,
    /// Whether routes of its only member were left out of `sent`.
    pub(crate) skips_own: bool,
    /// Tells groups of one number in turn apart.
    pub(crate) serial: u64,
}

/// Everything a group looks at.
pub(crate) struct World<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) paths: &'a mut PathStore,
    pub(crate) attributes: &'a mut AttributeStore,
    pub(crate) peers: &'a mut Peers,
    pub(crate) roas: &'a Roas,
    pub(crate) ours: Ours,
    pub(crate) counters: &'a mut Counters,
}

/// As much of it as can be looked at without changing anything.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) attributes: &'a AttributeStore,
    pub(crate) peers: &'a Peers,
    pub(crate) roas: &'a Roas,
    pub(crate) ours: Ours,
}

impl World<'_> {
    pub(crate) fn look(&self) -> Look<'_> {
        Look {
            tables: self.tables,
            attributes: self.attributes,
            peers: self.peers,
            roas: self.roas,
            ours: self.ours,
        }
    }
}

/// A route to be withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Withdrawal {
    /// To all (0), all but a peer (1), or only a peer (2).
    to: (u8, u32),
    slot: u32,
    path_id: u32,
}

/// Room to work in, kept between flushes.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    items: Vec<Item>,
    announced: Vec<(Edits, u32)>,
    withdrawn: Vec<Withdrawal>,
    touched: Vec<u32>,
    pub(crate) told: Told,
    other: Told,
    pub(crate) paths: Vec<u32>,
    pub(crate) left: Vec<u32>,
    pub(crate) looked: Vec<u32>,
    pub(crate) routes: Vec<Nlri>,
}

impl Group {
    pub(crate) fn new(outward: Outward, export: Arc<Policy>, serial: u64) -> Self {
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
            pending: Dirty::default(),
            queue: Queue::default(),
            next_flush: Instant::ZERO,
            is_active: false,
            skips_own: false,
            serial,
        }
    }

    pub(crate) fn family(&self) -> Family {
        self.outward.family
    }

    pub(crate) fn memory(&self) -> usize {
        let told = self.sent.memory() + self.sent_paths.allocation_size();
        told + self.pending.memory() + self.queue.memory() + size_of::<Group>()
    }

    /// The path that was told at a place, or [`NONE`].
    #[inline]
    pub(crate) fn sent_path(&self, slot: u32) -> u32 {
        match self.sent.get(slot) {
            Some(&sent) if sent != NONE => sent & !PARITY,
            _ => NONE,
        }
    }

    /// Whether anything was told at a place.
    pub(crate) fn has_sent(&self, slot: u32) -> bool {
        self.sent_path(slot) != NONE || self.sent_paths.contains_key(&slot)
    }

    /// Whether the group could be told something now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        !self.pending.is_empty() && now >= self.next_flush
    }

    pub(crate) fn writer(&self) -> UpdateWriter {
        let mut add_path = [false; 2];
        add_path[self.family().index()] = self.outward.add_path.is_some();
        UpdateWriter {
            message_max: self.outward.message_max.into(),
            add_path,
        }
    }

    /// What the export policy makes of a path, for one prefix.
    pub(crate) fn judge(
        &self,
        policy: &Policy,
        path: &Path,
        slot: u32,
        look: Look<'_>,
    ) -> Option<Edits> {
        let source = look.peers.source(path.peer());
        policy.judge(&Subject {
            prefix: look.tables.prefix(self.family(), slot),
            attributes: look.attributes.get(path.attributes).raw,
            neighbour: (!source.is_local).then_some((source.asn, source.address)),
            roas: look.roas,
        })
    }

    /// Whether a path may be told before policy.
    pub(crate) fn may_send(&self, path: &Path, look: Look<'_>) -> bool {
        let source = look.peers.source(path.peer());
        let digest = look.attributes.digest(path.attributes);
        self.outward.may_send(digest, source)
    }

    pub(crate) fn tell(
        &self,
        path: &Path,
        edits: (&Policy, Edits),
        look: Look<'_>,
        told: &mut Told,
    ) -> Option<()> {
        let source: &Source = look.peers.source(path.peer());
        self.outward
            .tell(path, source, &look.ours, look.attributes, edits, told)
    }

    /// Takes a window of what is pending, and writes what members are to be told of it. Gives how many places were
    /// looked at.
    pub(crate) fn flush(
        &mut self,
        number: u32,
        world: &mut World<'_>,
        scratch: &mut Scratch,
    ) -> usize {
        let family = self.family();
        let mut items = std::mem::take(&mut scratch.items);
        self.pending.take(
            world.paths.end(),
            |slot| world.tables.best(family, slot),
            &mut items,
        );
        scratch.withdrawn.clear();
        scratch.touched.clear();
        for run in items.chunk_by(|a, b| a.path == b.path) {
            if run[0].path == NONE {
                for item in run {
                    self.withdraw(number, item.slot, world, scratch);
                }
            } else {
                self.flush_run(number, run, world, scratch);
            }
        }
        self.write_withdrawn(world, scratch);
        self.queue.seal(self.attached);
        if self.attached as usize != self.members.len() {
            self.tell_detached(world, &scratch.touched);
        }
        if self.pending.is_empty() {
            self.old_export = None;
        }
        let count = items.len();
        scratch.items = items;
        count
    }

    /// Places whose best path is the same.
    fn flush_run(
        &mut self,
        number: u32,
        run: &[Item],
        world: &mut World<'_>,
        scratch: &mut Scratch,
    ) {
        let id = run[0].path;
        let path = *world.paths.get(id);
        let is_own = self.is_member(number, path.peer(), world.peers);
        let skips = is_own && self.members.len() == 1;
        self.skips_own |= skips;
        let may_send = !skips && self.may_send(&path, world.look());
        let export = Arc::clone(&self.export);
        let mut verdict = None;
        scratch.announced.clear();
        for &Item { slot, .. } in run {
            let edits = if !may_send {
                None
            } else if let Some(verdict) = verdict {
                verdict
            } else {
                let edits = self.judge(&export, &path, slot, world.look());
                if !export.is_by_prefix() {
                    verdict = Some(edits);
                }
                edits
            };
            let old = self.sent.get(slot).copied().unwrap_or(NONE);
            match edits {
                None => self.withdraw(number, slot, world, scratch),
                Some(_) if old == id | self.parity => {}
                Some(edits)
                    if old == id | (self.parity ^ PARITY)
                        && self.says_the_same(&path, slot, edits, world, scratch) =>
                {
                    self.sent[slot] = id | self.parity;
                }
                Some(edits) => scratch.announced.push((edits, slot)),
            }
        }
        scratch.announced.sort_unstable();
        let announced = std::mem::take(&mut scratch.announced);
        for same in announced.chunk_by(|a, b| a.0 == b.0) {
            self.announce(number, id, is_own, same, world, scratch);
        }
        scratch.announced = announced;
    }

    /// Whether the policy before would have told the same of a path.
    fn says_the_same(
        &self,
        path: &Path,
        slot: u32,
        edits: Edits,
        world: &World<'_>,
        scratch: &mut Scratch,
    ) -> bool {
        let Some(old) = &self.old_export else {
            return false;
        };
        let Some(old_edits) = self.judge(old, path, slot, world.look()) else {
            return false;
        };
        let Scratch { told, other, .. } = scratch;
        let a = self.tell(path, (&self.export, edits), world.look(), told);
        let b = self.tell(path, (old, old_edits), world.look(), other);
        a == b && told.attributes == other.attributes && told.next_hop == other.next_hop
    }

    fn announce(
        &mut self,
        number: u32,
        id: u32,
        is_own: bool,
        places: &[(Edits, u32)],
        world: &mut World<'_>,
        scratch: &mut Scratch,
    ) {
        let path = *world.paths.get(id);
        let export = Arc::clone(&self.export);
        let is_told = self.tell(
            &path,
            (&export, places[0].0),
            world.look(),
            &mut scratch.told,
        );
        let (Some(()), Some(next_hop)) = (is_told, scratch.told.next_hop) else {
            world.counters.without_next_hop += places.len() as u64;
            for &(_, slot) in places {
                self.withdraw(number, slot, world, scratch);
            }
            return;
        };
        let family = self.family();
        let (writer, tables) = (self.writer(), world.tables);
        let mark = if is_own {
            Mark::AllBut(path.peer())
        } else {
            Mark::All
        };
        let mut fits = true;
        if self.attached > 0 {
            let slots = places.iter().map(|place| place.1);
            let routes = slots.clone().map(|slot| Nlri {
                prefix: tables.prefix(family, slot),
                path_id: 0,
            });
            let attributes = &scratch.told.attributes;
            self.queue.append(self.attached, mark, slots, |out| {
                fits = writer.announce(attributes, next_hop, routes, out).is_ok();
            });
        }
        if !fits {
            world.counters.too_long += places.len() as u64;
            for &(_, slot) in places {
                self.withdraw(number, slot, world, scratch);
            }
            return;
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
            if is_own && world.paths.get(old).peer() != path.peer() {
                // Its own route is best now: it loses the one that it was told of.
                scratch.withdrawn.push(Withdrawal {
                    to: (2, path.peer()),
                    slot,
                    path_id: 0,
                });
            }
            self.set_sent(number, slot, id | self.parity, world);
        }
        self.sent_count += new;
        self.count_own(number, id, new.cast_signed(), world);
        world.paths.hold(id, new);
        if self.attached as usize != self.members.len() {
            scratch.touched.extend(places.iter().map(|place| place.1));
        }
    }

    /// Takes back what was told at a place, if anything was.
    fn withdraw(&mut self, number: u32, slot: u32, world: &mut World<'_>, scratch: &mut Scratch) {
        let old = self.sent_path(slot);
        if old == NONE {
            return;
        }
        let source = world.paths.get(old).peer();
        let to = if self.is_member(number, source, world.peers) {
            (1, source)
        } else {
            (0, 0)
        };
        scratch.withdrawn.push(Withdrawal {
            to,
            slot,
            path_id: 0,
        });
        scratch.touched.push(slot);
        self.set_sent(number, slot, NONE, world);
    }

    fn write_withdrawn(&mut self, world: &World<'_>, scratch: &mut Scratch) {
        if self.attached == 0 {
            return;
        }
        scratch.withdrawn.sort_unstable();
        let family = self.family();
        let (writer, tables) = (self.writer(), world.tables);
        for same in scratch.withdrawn.chunk_by(|a, b| a.to == b.to) {
            let mark = match same[0].to {
                (0, _) => Mark::All,
                (1, peer) => Mark::AllBut(peer),
                (_, peer) => Mark::Only(peer),
            };
            let routes = same.iter().map(|withdrawal| Nlri {
                prefix: tables.prefix(family, withdrawal.slot),
                path_id: withdrawal.path_id,
            });
            let slots = same.iter().map(|withdrawal| withdrawal.slot);
            self.queue.append(self.attached, mark, slots, |out| {
                writer.withdraw(family, routes, out);
            });
        }
    }

    /// Notes for members that are served apart what the others have been told just now.
    fn tell_detached(&self, world: &mut World<'_>, touched: &[u32]) {
        for &peer in &self.members {
            let member = world
                .peers
                .get_mut(peer)
                .map(|peer| peer.member_mut(self.outward.family));
            if let Some(resend) = member.and_then(|member| member.resend.as_mut()) {
                for &slot in touched {
                    resend.dirty.insert(slot);
                }
            }
        }
    }

    /// Whether a peer is told by this group, so that its own routes must be kept from it.
    pub(crate) fn is_member(&self, number: u32, peer: u32, peers: &Peers) -> bool {
        let peer = peers.get(peer);
        peer.is_some_and(|peer| peer.member(self.family()).group() == Some(number))
    }

    /// Writes down what was told at a place.
    pub(crate) fn set_sent(&mut self, number: u32, slot: u32, sent: u32, world: &mut World<'_>) {
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
            self.count_own(number, new, 1, world);
            world.paths.hold(new, 1);
            self.sent_count += 1;
        }
        if old != NONE {
            self.count_own(number, old, -1, world);
            world.paths.release(old, world.attributes);
            self.sent_count -= 1;
        }
    }

    /// Counts with a member what is told that is its own.
    fn count_own(&self, number: u32, path: u32, by: i32, world: &mut World<'_>) {
        let source = world.paths.get(path).peer();
        if let Some(peer) = world.peers.get_mut(source) {
            let member = peer.member_mut(self.outward.family);
            if member.group() == Some(number) {
                member.own = member.own.wrapping_add_signed(by);
            }
        }
    }
}

impl Group {
    /// A path that was told is another one now that says the same.
    pub(crate) fn replace_sent(
        &mut self,
        number: u32,
        slot: u32,
        old: u32,
        new: u32,
        world: &mut World<'_>,
    ) {
        if self.sent_path(slot) == old {
            let parity = self.sent[slot] & PARITY;
            self.set_sent(number, slot, new | parity, world);
        }
        if let Some(sent) = self.sent_paths.get_mut(&slot) {
            for (_, path) in sent.iter_mut().filter(|(_, path)| *path == old) {
                world.paths.hold(new, 1);
                world.paths.release(old, world.attributes);
                *path = new;
            }
        }
    }
}
