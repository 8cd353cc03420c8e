//! The ids that we assign: O(1) to allocate and to look up, and hard to guess.
//!
//! A 32-bit id (L2TPv3) holds its table index in the low 20 bits below 12 random bits that are never all zero.
//! So it needs no table, and is never a valid 16-bit id. 16-bit tunnel ids (L2TPv2) are allocated in random
//! order, and released ids are reused last.
//!
//! Implements parts of RFC 2661, sections 4.4.3 and 9.1; RFC 3931, sections 4.1 and 5.4.3.

use std::collections::VecDeque;

use base::snapshot::{Codec, Part};

use crate::random::Random;

const INDEX_BITS: u32 = 20;
/// The most tunnels that ids can distinguish, including held ones.
pub(crate) const MAX_TUNNELS: u32 = 1 << INDEX_BITS;
/// The most sessions that ids can distinguish.
pub(crate) const MAX_SESSIONS: u32 = 1 << INDEX_BITS;

/// The most released ids that wait: each one twice, if it was claimed once and then came from the order.
const RETURNED_MAX: usize = 2 << 16;

/// Makes the 32-bit id of the record at `index`.
pub(crate) fn wide_id(index: u32, random: &mut Random) -> u32 {
    debug_assert!(index < 1 << INDEX_BITS);
    let tag = 1 + random.below((1 << (32 - INDEX_BITS)) - 1);
    (tag << INDEX_BITS) | index
}

/// Whether a 32-bit id may be that of the record at `index`.
pub(crate) const fn is_wide(id: u32, index: u32) -> bool {
    id >> INDEX_BITS != 0 && wide_index(id) == index
}

/// The table index in a 32-bit id; the caller compares the whole id.
pub(crate) const fn wide_index(id: u32) -> u32 {
    id & ((1 << INDEX_BITS) - 1)
}

/// The 16-bit tunnel ids of one socket. Unused ids are allocated first, in a random order that needs no set-up;
/// then released ones, oldest first.
pub(crate) struct NarrowIds {
    order: Order,
    /// How much of `order` has been used.
    begun: u32,
    returned: VecDeque<u16>,
    /// The tunnel's index plus one by id, 0 for none.
    index: Vec<u32>,
}

impl NarrowIds {
    pub(crate) fn new(random: &mut Random) -> Self {
        Self {
            order: Order::new(random),
            begun: 0,
            returned: VecDeque::new(),
            index: vec![0; 1 << 16],
        }
    }

    /// Assigns an id to the tunnel at `index`; `None` if all are in use.
    pub(crate) fn take(&mut self, index: u32) -> Option<u16> {
        let id = self.begin().or_else(|| self.next_returned())?;
        self.index[usize::from(id)] = index + 1;
        Some(id)
    }

    /// Assigns this id, which the tunnel at `index` had before; `false` if it is in use, or 0.
    pub(crate) fn claim(&mut self, id: u16, index: u32) -> bool {
        let is_free = id != 0 && self.get(id).is_none();
        if is_free {
            self.index[usize::from(id)] = index + 1;
        }
        is_free
    }

    /// The next id that was not used before; a claimed one is not among them.
    fn begin(&mut self) -> Option<u16> {
        while let Ok(place) = u16::try_from(self.begun) {
            self.begun += 1;
            let id = self.order.at(place);
            if id != 0 && self.get(id).is_none() {
                return Some(id);
            }
        }
        None
    }

    /// The id that was released first. An id that was claimed and released may come from the order too, so it may be in
    /// use.
    fn next_returned(&mut self) -> Option<u16> {
        loop {
            let id = self.returned.pop_front()?;
            if self.get(id).is_none() {
                return Some(id);
            }
        }
    }

    pub(crate) fn release(&mut self, id: u16) {
        if core::mem::take(&mut self.index[usize::from(id)]) != 0 {
            self.returned.push_back(id);
        }
    }

    pub(crate) fn get(&self, id: u16) -> Option<u32> {
        self.index[usize::from(id)].checked_sub(1)
    }

    /// Continues with the ids of another one. Ids in use stay in use.
    pub(crate) fn follow(&mut self, other: IdSequence) {
        (self.order, self.begun) = (other.order, other.begun);
        self.returned = other.returned.into();
    }

    /// The order of the next ids.
    pub(crate) fn sequence(&self) -> IdSequence {
        IdSequence {
            order: self.order.clone(),
            begun: self.begun,
            returned: self.returned.iter().copied().collect(),
        }
    }

    #[cfg(test)]
    pub(crate) fn in_use(&self) -> usize {
        self.index.iter().filter(|&&index| index != 0).count()
    }
}

/// The order in which a [`NarrowIds`] assigns its next ids.
#[derive(Clone, Default)]
pub(crate) struct IdSequence {
    order: Order,
    begun: u32,
    returned: Vec<u16>,
}

impl Part for IdSequence {
    const NAME: &'static str = "id_sequence";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let mut order = [0; 24];
        for (place, key) in order.chunks_exact_mut(4).zip(self.order.0) {
            place.copy_from_slice(&key.to_be_bytes());
        }
        codec.array(1, "order", &mut order);
        let (keys, _) = order.as_chunks();
        for (key, octets) in self.order.0.iter_mut().zip(keys) {
            *key = u32::from_be_bytes(*octets);
        }
        codec.number(2, "started", &mut self.begun);
        let ids = self.returned.iter().flat_map(|id| id.to_be_bytes());
        let mut returned: Vec<u8> = ids.collect();
        codec.bytes(3, "returned", &mut returned, 2 * RETURNED_MAX);
        let (ids, rest) = returned.as_chunks();
        self.returned = ids.iter().map(|id| u16::from_be_bytes(*id)).collect();
        if C::READS && (!rest.is_empty() || self.returned.contains(&0) || self.begun > 1 << 16) {
            codec.refuse();
        }
    }
}

/// A random permutation of all 16-bit numbers: a Feistel network over two octets.
#[derive(Clone, Default)]
struct Order([u32; 6]);

impl Order {
    fn new(random: &mut Random) -> Self {
        Self(core::array::from_fn(|_| random.u64() as u32))
    }

    /// The number at position `place`.
    fn at(&self, place: u16) -> u16 {
        let [mut left, mut right] = place.to_be_bytes();
        for key in self.0 {
            let mixed = (u32::from(right) ^ key).wrapping_mul(0x9e37_79b1) ^ key.rotate_left(16);
            let mixed = mixed.wrapping_mul(0x85eb_ca6b) >> 24;
            (left, right) = (right, left ^ mixed as u8);
        }
        u16::from_be_bytes([left, right])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_ids_are_all_given_out_once_and_zero_never() {
        let mut random = Random::new([7; 32]);
        let mut ids = NarrowIds::new(&mut random);
        let mut seen = std::collections::HashSet::new();
        while let Some(id) = ids.take(seen.len() as u32) {
            assert_ne!(id, 0);
            assert!(seen.insert(id));
        }
        assert_eq!(seen.len(), 65_535);
        for id in [500, 40, 500] {
            ids.release(id);
        }
        assert_eq!(ids.get(500), None);
        assert_eq!(ids.take(1), Some(500));
        assert_eq!(ids.take(2), Some(40));
        assert_eq!(ids.get(40), Some(2));
        assert_eq!(ids.take(1), None);
    }

    #[test]
    fn claimed_ids_are_not_given_out_until_they_are_released() {
        let mut random = Random::new([7; 32]);
        let mut ids = NarrowIds::new(&mut random);
        let claimed: Vec<u16> = (1..=40_000).step_by(3).collect();
        for &id in &claimed {
            assert!(ids.claim(id, 5));
            assert!(!ids.claim(id, 6));
            assert_eq!(ids.get(id), Some(5));
        }
        assert!(!ids.claim(0, 5));
        // Some of them are free again before their turn in the order.
        for &id in &claimed[..100] {
            ids.release(id);
        }
        let mut seen: std::collections::HashSet<u16> = claimed[100..].iter().copied().collect();
        while let Some(id) = ids.take(9) {
            assert!(id != 0 && seen.insert(id), "{id} is in use");
        }
        assert_eq!(seen.len(), 65_535);
        ids.release(claimed[0]);
        assert_eq!(ids.take(1), Some(claimed[0]));
        assert_eq!(ids.take(1), None);
    }

    #[test]
    fn ids_that_follow_others_are_the_same() {
        let mut random = Random::new([7; 32]);
        let mut ids = NarrowIds::new(&mut random);
        for index in 0..60_000 {
            ids.take(index);
        }
        for id in (1..30_000).step_by(7) {
            ids.release(id);
        }
        let mut others = NarrowIds::new(&mut random);
        for id in 1..=u16::MAX {
            if let Some(index) = ids.get(id) {
                assert!(others.claim(id, index));
            }
        }
        others.follow(ids.sequence());
        for index in 0..7_000 {
            assert_eq!(ids.take(index), others.take(index));
        }
    }

    #[test]
    fn narrow_ids_do_not_come_in_steps() {
        let mut random = Random::new([7; 32]);
        let mut ids = NarrowIds::new(&mut random);
        let first: Vec<u16> = (0..1_000).map_while(|index| ids.take(index)).collect();
        let mut steps: Vec<u16> = first.windows(2).map(|w| w[1].wrapping_sub(w[0])).collect();
        steps.sort_unstable();
        let most = steps.chunk_by(|a, b| a == b).map(<[u16]>::len).max();
        assert!(most < Some(10), "one step {most:?} times of 999");
    }

    #[test]
    fn wide_ids_carry_their_index_and_are_never_narrow() {
        let mut random = Random::new([7; 32]);
        for index in [0, 1, 77, MAX_TUNNELS - 1] {
            let id = wide_id(index, &mut random);
            assert_eq!(wide_index(id), index);
            assert!(id > 0xffff);
        }
    }
}
