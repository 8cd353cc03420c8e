//! The smallest free id, found without looking at the used ones.

const WORD_BITS: usize = 64;

/// Hands out the smallest free id from 1 up, in O(log64 n) steps: at most six
/// words are looked at.
///
/// A tree of bits: one bit per id that is in use, and above each 64 of them one
/// bit that says whether all are. Its size follows the largest id in use.
#[derive(Clone, Debug, Default)]
pub struct FirstFree {
    /// From the ids up. Words past a level's end count as zero, and no level
    /// ends in a zero word or is empty.
    levels: Vec<Vec<u64>>,
    used: u32,
}

impl FirstFree {
    /// All ids are free.
    pub const fn new() -> Self {
        Self {
            levels: Vec::new(),
            used: 0,
        }
    }

    /// Takes the smallest free id; `None` when all 2^32 - 1 are in use.
    pub fn allocate(&mut self) -> Option<u32> {
        if self.used == u32::MAX {
            return None;
        }
        let bit = self.first_free_bit();
        self.set(bit);
        self.used += 1;
        Some(u32::try_from(bit + 1).expect("an id below 2^32 is free"))
    }

    /// Takes this id; `false` if it is in use, or is 0.
    pub fn claim(&mut self, id: u32) -> bool {
        if id == 0 || self.is_used(id) {
            return false;
        }
        self.set(id as usize - 1);
        self.used += 1;
        true
    }

    /// Frees an id; `false` if it was not in use.
    pub fn release(&mut self, id: u32) -> bool {
        if !self.is_used(id) {
            return false;
        }
        let mut bit = id as usize - 1;
        for level in &mut self.levels {
            if let Some(word) = level.get_mut(bit / WORD_BITS) {
                *word &= !(1 << (bit % WORD_BITS));
            }
            bit /= WORD_BITS;
            trim(level);
        }
        // A level without a full word has nothing above it.
        while self.levels.pop_if(|level| level.is_empty()).is_some() {}
        self.used -= 1;
        true
    }

    /// Whether an id is in use.
    pub fn is_used(&self, id: u32) -> bool {
        let Some(bit) = (id as usize).checked_sub(1) else {
            return false;
        };
        let word = self.levels.first().and_then(|ids| ids.get(bit / WORD_BITS));
        word.is_some_and(|word| word >> (bit % WORD_BITS) & 1 == 1)
    }

    /// Ids in use.
    pub const fn len(&self) -> u32 {
        self.used
    }

    /// Whether no id is in use.
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Follows the first bit that is not full from the top down.
    fn first_free_bit(&self) -> usize {
        self.levels.iter().rev().fold(0, |number, level| {
            let word = level.get(number).copied().unwrap_or(0);
            number * WORD_BITS + word.trailing_ones() as usize
        })
    }

    /// Sets the bit of an id, and the bits above it as far as words are full.
    fn set(&mut self, mut bit: usize) {
        for depth in 0.. {
            if depth == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let level = &mut self.levels[depth];
            let number = bit / WORD_BITS;
            if number >= level.len() {
                level.resize(number + 1, 0);
            }
            level[number] |= 1 << (bit % WORD_BITS);
            if level[number] != u64::MAX {
                break;
            }
            bit = number;
        }
    }
}

/// Drops the zero words at a level's end, and their memory when it is most of it.
fn trim(level: &mut Vec<u64>) {
    while level.pop_if(|word| *word == 0).is_some() {}
    if level.capacity() / 4 > level.len() {
        level.shrink_to(2 * level.len());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_are_sequential_and_the_first_free_one_is_next() {
        let mut ids = FirstFree::new();
        for id in 1..=300_000 {
            assert_eq!(ids.allocate(), Some(id));
        }
        for id in [299_999, 64, 65, 4_096] {
            assert!(ids.release(id));
        }
        for id in [64, 65, 4_096, 299_999, 300_001] {
            assert_eq!(ids.allocate(), Some(id));
        }
        assert_eq!(ids.len(), 300_001);
    }

    #[test]
    fn an_id_is_released_once() {
        let mut ids = FirstFree::new();
        assert!(!ids.release(0));
        assert!(!ids.release(1));
        assert_eq!(ids.allocate(), Some(1));
        assert!(!ids.release(0));
        assert!(!ids.release(u32::MAX));
        assert!(ids.release(1));
        assert!(!ids.release(1));
        assert!(ids.is_empty());
    }

    #[test]
    fn memory_follows_the_largest_id_in_use() {
        let mut ids = FirstFree::new();
        for _ in 0..1_000_000 {
            ids.allocate();
        }
        for id in 2..=1_000_000 {
            ids.release(id);
        }
        let words: usize = ids.levels.iter().map(Vec::capacity).sum();
        assert!(words <= 8, "{words} words for one id");
        ids.release(1);
        assert!(ids.levels.is_empty());
    }

    #[test]
    fn none_is_left_after_the_last_id() {
        // All words full but the last, which lacks 2^32: the state after 2^32 - 1
        // allocations, without making them.
        let mut ids = FirstFree {
            levels: Vec::new(),
            used: u32::MAX,
        };
        assert_eq!(ids.allocate(), None);
        ids.used = 0;
        assert_eq!(ids.allocate(), Some(1));
    }

    #[derive(Clone, Debug)]
    enum Op {
        Allocate(u16),
        Claim(u32),
        Release(u32),
        ReleaseFrom(u32),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (1_u16..700).prop_map(Op::Allocate),
            (0_u32..9_000).prop_map(Op::Claim),
            (0_u32..9_000).prop_map(Op::Release),
            (0_u32..9_000).prop_map(Op::ReleaseFrom),
        ]
    }

    proptest! {
        #[test]
        fn the_smallest_free_id_is_handed_out(ops in prop::collection::vec(op(), 0..60)) {
            let mut ids = FirstFree::new();
            let mut model = BTreeSet::new();
            let mut all_used_below = 1;
            for op in ops {
                match op {
                    Op::Allocate(count) => {
                        for _ in 0..count {
                            let smallest = (all_used_below..).find(|id| !model.contains(id));
                            prop_assert_eq!(ids.allocate(), smallest);
                            model.extend(smallest);
                            all_used_below = smallest.unwrap();
                        }
                    }
                    Op::Claim(id) => {
                        prop_assert_eq!(ids.claim(id), id > 0 && model.insert(id));
                    }
                    Op::Release(id) => {
                        prop_assert_eq!(ids.release(id), model.remove(&id));
                        all_used_below = all_used_below.min(id.max(1));
                    }
                    Op::ReleaseFrom(first) => {
                        for id in model.split_off(&first) {
                            prop_assert!(ids.release(id));
                        }
                        all_used_below = all_used_below.min(first.max(1));
                    }
                }
                prop_assert_eq!(ids.len() as usize, model.len());
            }
            for id in 0..9_000 {
                prop_assert_eq!(ids.is_used(id), model.contains(&id));
            }
        }
    }
}
