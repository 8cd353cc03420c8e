//! An open-addressing hash table from a 32-bit hash to the index of a record elsewhere.
//!
//! An entry takes 8 bytes: the hash and the index. A search compares hashes first, so it reads another record only if 32
//! bits agree. Linear probing keeps a search within one or two cache lines; removal moves later entries back, so that
//! there are no tombstones. All memory is reserved at the start, and the kernel supplies pages as they are written.

use crate::pages::Reserve;

/// The table. An entry is `hash << 32 | index + 1`; 0 is a free slot.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Vec<u64>,
    len: usize,
}

impl Table {
    /// A table for `entries_max` entries, at most three quarters full.
    pub(crate) fn new(entries_max: usize) -> Self {
        let slots = entries_max + entries_max.div_ceil(3) + 1;
        Self {
            slots: vec![0; slots],
            len: 0,
        }
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.slots.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        match at + 1 {
            next if next == self.slots.len() => 0,
            next => next,
        }
    }

    /// The slot where a search for this hash starts.
    #[inline]
    pub(crate) fn first(&self, hash: u32) -> u64 {
        self.slots[self.home(hash)]
    }

    /// The index in a slot, if the hash is this one.
    #[inline]
    pub(crate) fn index(slot: u64, hash: u32) -> Option<u32> {
        (slot as u32 != 0 && (slot >> 32) as u32 == hash).then(|| slot as u32 - 1)
    }

    /// The index of the entry with this hash for which `is` holds.
    #[inline]
    pub(crate) fn find(&self, hash: u32, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            let index = (slot as u32).wrapping_sub(1);
            if (slot >> 32) as u32 == hash && is(index) {
                return Some(index);
            }
            at = self.after(at);
        }
    }

    /// Adds an entry. The caller bounds the number of entries.
    pub(crate) fn insert(&mut self, hash: u32, index: u32) {
        assert!(self.len + 1 < self.slots.len(), "the owner has a limit");
        let mut at = self.home(hash);
        while self.slots[at] != 0 {
            at = self.after(at);
        }
        self.slots[at] = u64::from(hash) << 32 | u64::from(index + 1);
        self.len += 1;
    }

    /// Removes an entry, if it is there.
    pub(crate) fn remove(&mut self, hash: u32, index: u32) {
        let entry = u64::from(hash) << 32 | u64::from(index + 1);
        let mut hole = self.home(hash);
        while self.slots[hole] != entry {
            if self.slots[hole] == 0 {
                return;
            }
            hole = self.after(hole);
        }
        let mut at = hole;
        loop {
            at = self.after(at);
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            // An entry may move back unless its home lies cyclically in (hole, at].
            let home = self.home((slot >> 32) as u32);
            let stays = match hole <= at {
                true => hole < home && home <= at,
                false => hole < home || home <= at,
            };
            if !stays {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = 0;
        self.len -= 1;
    }

    pub(crate) fn on_reserve(&self, reserve: Reserve) {
        reserve(self.slots.as_ptr().cast(), self.bytes());
    }

    /// Bytes of address space.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * 8
    }
}

/// A keyed hash of 128 bits of key. Both halves of the seed are secret, so that remote hosts cannot choose keys that
/// collide.
#[inline]
pub(crate) fn hash(seed: [u64; 2], high: u64, low: u64) -> u32 {
    let product = u128::from(high ^ seed[0]) * u128::from(low ^ seed[1]);
    let folded = (product >> 64) as u64 ^ product as u64;
    // Both factors are even or odd as the keys are: mix again, so that the upper bits depend on all.
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_table_holds_what_a_set_holds(
            steps in prop::collection::vec((any::<bool>(), 0_u32..40, 0_u32..6), 1..400),
        ) {
            let mut table = Table::new(60);
            let mut set = BTreeSet::new();
            for (add, index, group) in steps {
                // Few hashes, at both ends of the table, so that runs collide and wrap.
                let hash = [0, 1, 0x8000_0000, 0xffff_fffe, u32::MAX, 0xf800_0000][group as usize];
                if add && set.len() < 60 && set.insert((hash, index)) {
                    table.insert(hash, index);
                } else if !add {
                    set.remove(&(hash, index));
                    table.remove(hash, index);
                }
                for &(hash, index) in &set {
                    prop_assert_eq!(table.find(hash, |at| at == index), Some(index));
                }
                prop_assert_eq!(table.len, set.len());
            }
        }
    }
}
