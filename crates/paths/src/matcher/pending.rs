//! Packets that wait for their counterpart at the other point: a slab with two lists through it, one in the order of
//! reading and one for each flow.

use wire::tcp::Flags;

use crate::packet::{Mix, Point, Sight};
use crate::prints::FLAGS;

/// No entry.
pub(super) const NONE: u32 = u32::MAX;

/// A packet that waits, or is looked up.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) sight: Sight,
    pub(super) point: Point,
    /// Its flow, by its own point's numbers.
    pub(super) flow: u32,
    /// Sequence number as A numbers them.
    pub(super) sequence: u32,
    /// The same without wrapping; only where packets are matched by ranges.
    pub(super) start: u64,
    /// What is the same at both points, as a hash.
    pub(super) mark: u64,
    /// Everything that tells transmissions of the same data apart, as a hash.
    pub(super) full: u64,
    /// An earlier packet of the same point looks the same.
    pub(super) is_copy: bool,
    /// It is in the lists; false for a slot that is free.
    pub(super) is_waiting: bool,
    /// It is in the table of marks.
    pub(super) is_marked: bool,
    /// Parts of its data without counterpart so far; empty for all of it.
    pub(super) left: Vec<(u64, u64)>,
    /// Some of its data has a counterpart.
    pub(super) is_partial: bool,
    next: u32,
    prev: u32,
    flow_next: u32,
    flow_prev: u32,
}

impl Entry {
    pub(super) fn new(sight: &Sight, point: Point, flow: u32, seed: Mix) -> Entry {
        let stamps = sight
            .stamps
            .map_or(0, |(value, echo)| u64::from(value) << 32 | u64::from(echo));
        let sack = sight
            .sack
            .map_or(0, |(from, to)| u64::from(from) << 32 | u64::from(to));
        let head = u64::from(sight.sequence) << 32 | u64::from(sight.acknowledgment);
        let rest =
            u64::from(sight.length) << 32 | u64::from(sight.id) << 16 | u64::from(sight.window);
        let full = seed
            .with(head)
            .with(rest ^ u64::from(sight.flags) << 48)
            .with(stamps);
        Entry {
            sight: *sight,
            point,
            flow,
            sequence: sight.sequence,
            start: 0,
            mark: 0,
            full: full.with(sack ^ sight.body).0,
            is_copy: false,
            is_waiting: false,
            is_marked: false,
            left: Vec::new(),
            is_partial: false,
            next: NONE,
            prev: NONE,
            flow_next: NONE,
            flow_prev: NONE,
        }
    }

    /// Sets what is the same at both points. `shift` is by how much the point's sequence numbers differ from A's, in this
    /// direction and in the other.
    #[inline]
    pub(super) fn set_mark(&mut self, lane: u32, shift: (u32, u32), seed: Mix) {
        let sight = &self.sight;
        self.sequence = sight.sequence.wrapping_sub(shift.0);
        let length = u64::from(sight.length);
        let mix = seed.with(u64::from(lane));
        self.mark = if !sight.is_tcp() {
            mix.with(sight.body)
                .with(length)
                .with(u64::from(sight.sequence))
                .0
        } else {
            let flags = u64::from(sight.flags & FLAGS & !Flags::ACK.0);
            // Without data, it is the acknowledgment that tells packets apart.
            let acknowledgment = match sight.length == 0 && sight.has(Flags::ACK) {
                true => u64::from(sight.acknowledgment.wrapping_sub(shift.1)),
                false => 0,
            };
            mix.with(u64::from(self.sequence) << 32 | acknowledgment)
                .with(length << 16 | flags)
                .0
        };
    }

    /// The end of its data, as `start`.
    pub(super) fn end(&self) -> u64 {
        self.start + u64::from(self.sight.length)
    }

    /// Whether time stamps or identification distinguish its transmissions.
    pub(super) fn is_distinct(&self) -> bool {
        self.sight.stamps.is_some() || self.sight.id != 0
    }

    /// The parts without counterpart.
    pub(super) fn uncovered(&self) -> Vec<(u64, u64)> {
        match self.is_partial {
            true => self.left.clone(),
            false => vec![(self.start, self.end())],
        }
    }
}

/// The ends of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    head: u32,
    tail: u32,
    pub(super) count: u32,
}

impl Default for List {
    fn default() -> List {
        List {
            head: NONE,
            tail: NONE,
            count: 0,
        }
    }
}

/// All entries.
#[derive(Debug, Default)]
pub(super) struct Pending {
    slots: Vec<Entry>,
    free: Vec<u32>,
    /// The entries of each point, in the order of reading.
    lists: [List; 2],
}

impl Pending {
    /// Adds an entry to its point's list and to its flow's.
    pub(super) fn insert(&mut self, mut entry: Entry, flow: &mut List) -> u32 {
        entry.is_waiting = true;
        let list = &mut self.lists[entry.point as usize];
        (entry.prev, entry.next) = (list.tail, NONE);
        (entry.flow_prev, entry.flow_next) = (flow.tail, NONE);
        let (last, last_of_flow) = (list.tail, flow.tail);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                (self.slots.len() - 1) as u32
            }
        };
        list.tail = slot;
        list.count += 1;
        if list.head == NONE {
            list.head = slot;
        }
        flow.tail = slot;
        flow.count += 1;
        if flow.head == NONE {
            flow.head = slot;
        }
        if last != NONE {
            self.slots[last as usize].next = slot;
        }
        if last_of_flow != NONE {
            self.slots[last_of_flow as usize].flow_next = slot;
        }
        slot
    }

    /// Removes an entry from both lists. Its slot stays readable until the next insertion.
    pub(super) fn remove(&mut self, slot: u32, flow: &mut List) {
        let entry = &mut self.slots[slot as usize];
        entry.is_waiting = false;
        let (prev, next, flow_prev, flow_next) =
            (entry.prev, entry.next, entry.flow_prev, entry.flow_next);
        let list = &mut self.lists[entry.point as usize];
        list.count -= 1;
        flow.count -= 1;
        match prev {
            NONE => list.head = next,
            prev => self.slots[prev as usize].next = next,
        }
        match next {
            NONE => list.tail = prev,
            next => self.slots[next as usize].prev = prev,
        }
        match flow_prev {
            NONE => flow.head = flow_next,
            prev => self.slots[prev as usize].flow_next = flow_next,
        }
        match flow_next {
            NONE => flow.tail = flow_prev,
            next => self.slots[next as usize].flow_prev = flow_prev,
        }
        self.free.push(slot);
    }

    #[inline]
    pub(super) fn get(&self, slot: u32) -> &Entry {
        &self.slots[slot as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Entry {
        &mut self.slots[slot as usize]
    }

    /// The entry of that point that has waited longest.
    pub(super) fn oldest(&self, point: Point) -> Option<u32> {
        let head = self.lists[point as usize].head;
        (head != NONE).then_some(head)
    }

    /// Entries of a point.
    pub(super) fn count(&self, point: Point) -> u32 {
        self.lists[point as usize].count
    }

    /// The latest slots of a flow's list, the last one first.
    pub(super) fn latest(&self, flow: &List, limit: usize) -> impl Iterator<Item = u32> {
        let last = (flow.tail != NONE).then_some(flow.tail);
        let before = |&slot: &u32| {
            let prev = self.slots[slot as usize].flow_prev;
            (prev != NONE).then_some(prev)
        };
        std::iter::successors(last, before).take(limit)
    }

    /// The slots of a flow's list, in order, at most `limit`.
    pub(super) fn of_flow(&self, flow: &List, limit: usize) -> Vec<u32> {
        let mut slots = Vec::new();
        let mut at = flow.head;
        while at != NONE && slots.len() < limit {
            slots.push(at);
            at = self.slots[at as usize].flow_next;
        }
        slots
    }
}
