//! The ids that we assign: O(1) to allocate and to look up, and hard to guess.
//!
//! A 32-bit id (L2TPv3) holds its table index in the low 20 bits below 12 random bits that are never all zero.
//! So it needs no table, and is never a valid 16-bit id. 16-bit tunnel ids (L2TPv2) are allocated in random
//! order, and released ids are reused last.
//!
//! Implements parts of RFC 2661, sections 4.4.3 and 9.1; RFC 3931, sections 4.1 and 5.4.3.

use std::collections::VecDeque;

use crate::random::Random;

const INDEX_BITS: u32 = 20;
/// The most tunnels that ids can distinguish, including held ones.
pub(crate) const MAX_TUNNELS: u32 = 1 << INDEX_BITS;
/// The most sessions that ids can distinguish.
pub(crate) const MAX_SESSIONS: u32 = 1 << INDEX_BITS;

/// Makes the 32-bit id of the record at `index`.
pub(crate) fn wide_id(index: u32, random: &mut Random) -> u32 {
    debug_assert!(index < 1 << INDEX_BITS);
    let tag = 1 + random.below((1 << (32 - INDEX_BITS)) - 1);
    (tag << INDEX_BITS) | index
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
        let id = self.begin().or_else(|| self.returned.pop_front())?;
        self.index[usize::from(id)] = index + 1;
        Some(id)
    }

    /// The next unused id; 0 if there is none.
    fn begin(&mut self) -> Option<u16> {
        while let Ok(place) = u16::try_from(self.begun) {
            self.begun += 1;
            let id = self.order.at(place);
            if id != 0 {
                return Some(id);
            }
        }
        None
    }

    pub(crate) fn release(&mut self, id: u16) {
        if core::mem::take(&mut self.index[usize::from(id)]) != 0 {
            self.returned.push_back(id);
        }
    }

    pub(crate) fn get(&self, id: u16) -> Option<u32> {
        self.index[usize::from(id)].checked_sub(1)
    }

    #[cfg(test)]
    pub(crate) fn in_use(&self) -> usize {
        self.index.iter().filter(|&&index| index != 0).count()
    }
}

/// A random permutation of all 16-bit numbers: a Feistel network over two octets.
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
