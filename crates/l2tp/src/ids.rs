//! Ids that we assign: O(1) to make and to look up, and not to be guessed by
//! counting.
//!
//! A 32-bit id (L2TPv3) carries its table index in the low 20 bits under 12
//! random bits that are never all zero, so it needs no table of its own and is
//! never a valid 16-bit id. The 16-bit tunnel ids (L2TPv2) come from a shuffled
//! ring: an id that was given back is used again last.

use std::collections::VecDeque;

use crate::random::Random;

const INDEX_BITS: u32 = 20;
/// The most tunnels that ids can tell apart, held ones included.
pub(crate) const MAX_TUNNELS: u32 = 1 << INDEX_BITS;
/// The most sessions that ids can tell apart.
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

const NONE: u32 = u32::MAX;

/// The 16-bit tunnel ids of one socket.
pub(crate) struct NarrowIds {
    free: VecDeque<u16>,
    index: Vec<u32>,
}

impl NarrowIds {
    pub(crate) fn new(random: &mut Random) -> Self {
        let mut ids: Vec<u16> = (1..=u16::MAX).collect();
        for i in (1..ids.len()).rev() {
            ids.swap(i, random.below(i as u32 + 1) as usize);
        }
        Self {
            free: ids.into(),
            index: vec![NONE; 1 << 16],
        }
    }

    /// Gives out an id for the tunnel at `index`; `None` when all are in use.
    pub(crate) fn take(&mut self, index: u32) -> Option<u16> {
        let id = self.free.pop_front()?;
        self.index[usize::from(id)] = index;
        Some(id)
    }

    pub(crate) fn release(&mut self, id: u16) {
        if core::mem::replace(&mut self.index[usize::from(id)], NONE) != NONE {
            self.free.push_back(id);
        }
    }

    pub(crate) fn get(&self, id: u16) -> Option<u32> {
        let index = self.index[usize::from(id)];
        (index != NONE).then_some(index)
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.free.len()
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
        ids.release(500);
        ids.release(500);
        assert_eq!(ids.take(1), Some(500));
        assert_eq!(ids.take(1), None);
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
