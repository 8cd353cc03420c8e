//! Queues by key, and the round of their turns.

use crate::fattest::Fattest;
use crate::packet::{Id, List, Pool};
use crate::round::{Link, Member, Round};

const NONE: u32 = u32::MAX;

/// One queue. It is in the table and in the round from its first packet until its turn comes while it is empty.
#[derive(Debug, Clone, Copy)]
struct Slot {
    key: u64,
    list: List,
    allot: i32,
    link: Link,
    /// The next slot of its bucket, or of the free list.
    next: u32,
}

impl Member for Slot {
    #[inline]
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// The queues in use, never more than packets.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: u32,
    /// The first slot of each bucket; allocated with the first packet.
    buckets: Vec<u32>,
    divisor: u32,
    quantum: i32,
    round: Round,
    longest: Fattest,
    /// Slots for which `longest` has room.
    room: usize,
}

impl Slots {
    /// No queues yet. `divisor` is a power of two.
    pub(super) fn new(divisor: u32, quantum: i32) -> Self {
        Self {
            slots: Vec::new(),
            free: NONE,
            buckets: Vec::new(),
            divisor,
            quantum,
            round: Round::default(),
            longest: Fattest::default(),
            room: 0,
        }
    }

    /// The bucket of a key: its highest bits.
    #[inline]
    fn bucket(&self, key: u64) -> usize {
        (((key >> 32) * u64::from(self.divisor)) >> 32) as usize
    }

    /// The slot for a packet with this key; a new one if there is none.
    pub(super) fn find(&mut self, key: u64) -> u32 {
        if self.buckets.is_empty() {
            self.buckets = vec![NONE; self.divisor as usize];
        }
        let bucket = self.bucket(key);
        let mut index = self.buckets[bucket];
        while let Some(slot) = self.slots.get(index as usize) {
            if slot.key == key {
                return index;
            }
            index = slot.next;
        }
        let slot = Slot {
            key,
            list: List::default(),
            allot: self.quantum,
            link: Link::default(),
            next: self.buckets[bucket],
        };
        let index = self.free;
        let index = if let Some(place) = self.slots.get_mut(index as usize) {
            self.free = place.next;
            *place = slot;
            index
        } else {
            self.slots.push(slot);
            self.make_room();
            (self.slots.len() - 1) as u32
        };
        self.buckets[bucket] = index;
        self.round.push(&mut self.slots, index);
        index
    }

    /// Makes room in `longest` for all slots.
    fn make_room(&mut self) {
        if self.slots.len() <= self.room {
            return;
        }
        self.room = (2 * self.room).max(128);
        self.longest = Fattest::new(self.room);
        for (index, slot) in self.slots.iter().enumerate() {
            self.longest.raise(index, slot.list.packets());
        }
    }

    #[inline]
    pub(super) fn push(&mut self, slot: u32, pool: &mut Pool, id: Id) {
        let list = &mut self.slots[slot as usize].list;
        list.push(pool, id);
        self.longest.raise(slot as usize, list.packets());
    }

    pub(super) fn pop(&mut self, slot: u32, pool: &Pool) -> Option<Id> {
        self.slots[slot as usize].list.pop(pool)
    }

    pub(super) fn pop_last(&mut self, slot: u32, pool: &mut Pool) -> Option<Id> {
        self.slots[slot as usize].list.pop_last(pool)
    }

    #[inline]
    pub(super) fn packets(&self, slot: u32) -> u32 {
        self.slots[slot as usize].list.packets()
    }

    /// Slots in use.
    pub(super) fn flows(&self) -> u32 {
        self.round.length()
    }

    /// The slot with most packets.
    pub(super) fn longest(&mut self) -> Option<u32> {
        let slots = &self.slots;
        let size = |index: usize| slots.get(index).map_or(0, |slot| slot.list.packets());
        self.longest.find(size).map(|index| index as u32)
    }

    /// The packet whose turn it is.
    pub(super) fn next(&mut self, pool: &Pool) -> Option<Id> {
        loop {
            let index = self.round.first()?;
            let slot = &mut self.slots[index as usize];
            if slot.list.is_empty() {
                self.remove_first();
                continue;
            }
            if slot.allot <= 0 {
                slot.allot += self.quantum;
                self.round.pop(&mut self.slots);
                self.round.push(&mut self.slots, index);
                continue;
            }
            let id = slot.list.pop(pool)?;
            slot.allot = slot.allot.saturating_sub_unsigned(pool.length(id));
            if slot.list.is_empty() {
                self.remove_first();
            }
            return Some(id);
        }
    }

    /// Bytes that the slot with the turn may still send.
    pub(super) fn turn(&self) -> i32 {
        let first = self.round.first();
        first.map_or(self.quantum, |index| self.slots[index as usize].allot)
    }

    /// Sets the bytes that the slot with the turn may still send.
    pub(super) fn set_turn(&mut self, allot: i32) {
        if let Some(index) = self.round.first() {
            self.slots[index as usize].allot = allot;
        }
    }

    /// Removes all packets, each queue's in order.
    pub(super) fn drain(&mut self, pool: &Pool, into: &mut Vec<Id>) {
        while let Some(index) = self.round.first() {
            self.slots[index as usize].list.drain(pool, into);
            self.remove_first();
        }
    }

    /// Removes the slot with the turn.
    fn remove_first(&mut self) {
        let Some(index) = self.round.pop(&mut self.slots) else {
            return;
        };
        let Slot { key, next, .. } = self.slots[index as usize];
        let bucket = self.bucket(key);
        if self.buckets[bucket] == index {
            self.buckets[bucket] = next;
        } else {
            let mut before = self.buckets[bucket];
            while self.slots[before as usize].next != index {
                before = self.slots[before as usize].next;
            }
            self.slots[before as usize].next = next;
        }
        self.slots[index as usize].next = self.free;
        self.free = index;
    }
}
