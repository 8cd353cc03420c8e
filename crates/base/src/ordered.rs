//! A set of small numbers whose next member is found without looking at the absent ones.

const WORD_BITS: usize = 64;

/// A set of numbers below 2^32, in O(log64 n) steps for each operation: a tree of bits, one bit per number, and above
/// each 64 of them one bit that says whether any is set.
#[derive(Clone, Debug, Default)]
pub struct OrderedSet {
    /// From the numbers up. Words past a level's end count as zero. The last level has one word.
    levels: Vec<Vec<u64>>,
    len: u32,
}

impl OrderedSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            levels: Vec::new(),
            len: 0,
        }
    }

    /// Number of members.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether it has no members.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a number; `false` if it was a member.
    pub fn insert(&mut self, number: u32) -> bool {
        if self.contains(number) {
            return false;
        }
        let mut bit = number as usize;
        for depth in 0.. {
            if depth == self.levels.len() {
                // A new top level marks the words of the one below.
                let below = self.levels.last().and_then(|level| level.first());
                let any = below.is_some_and(|word| *word != 0);
                self.levels.push(vec![u64::from(depth > 0 && any)]);
            }
            let level = &mut self.levels[depth];
            let word = bit / WORD_BITS;
            if word >= level.len() {
                level.resize(word + 1, 0);
            }
            level[word] |= 1 << (bit % WORD_BITS);
            if depth + 1 == self.levels.len() && word == 0 {
                break;
            }
            bit = word;
        }
        self.len += 1;
        true
    }

    /// Removes a number; `false` if it was no member.
    pub fn remove(&mut self, number: u32) -> bool {
        if !self.contains(number) {
            return false;
        }
        let mut bit = number as usize;
        for level in &mut self.levels {
            let word = &mut level[bit / WORD_BITS];
            *word &= !(1 << (bit % WORD_BITS));
            if *word != 0 {
                break;
            }
            bit /= WORD_BITS;
        }
        self.len -= 1;
        if self.len == 0 {
            self.levels = Vec::new();
        }
        true
    }

    /// Whether a number is a member.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        self.bit(0, number as usize)
    }

    /// The smallest member that is not below `from`.
    #[must_use]
    pub fn next_from(&self, from: u32) -> Option<u32> {
        let mut bit = from as usize;
        // Up, until a word has a member that is not below.
        for depth in 0..self.levels.len() {
            let word = self.word(depth, bit / WORD_BITS) & (u64::MAX << (bit % WORD_BITS));
            if word != 0 {
                let mut found = bit / WORD_BITS * WORD_BITS + word.trailing_zeros() as usize;
                // Down, to the first member of each word.
                for below in (0..depth).rev() {
                    let word = self.word(below, found);
                    found = found * WORD_BITS + word.trailing_zeros() as usize;
                }
                return u32::try_from(found).ok();
            }
            bit = bit / WORD_BITS + 1;
        }
        None
    }

    fn word(&self, depth: usize, number: usize) -> u64 {
        let level = self.levels.get(depth);
        level
            .and_then(|level| level.get(number))
            .map_or(0, |word| *word)
    }

    fn bit(&self, depth: usize, bit: usize) -> bool {
        self.word(depth, bit / WORD_BITS) >> (bit % WORD_BITS) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn members_are_found_in_order_over_wide_gaps() {
        let mut set = OrderedSet::new();
        let members = [0, 63, 64, 4_095, 4_096, 300_000, u32::MAX];
        for member in members {
            assert!(set.insert(member));
            assert!(!set.insert(member));
        }
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(member) = set.next_from(from) {
            found.push(member);
            let Some(next) = member.checked_add(1) else {
                break;
            };
            from = next;
        }
        assert_eq!(found, members);
        for member in members {
            assert!(set.remove(member));
            assert!(!set.remove(member));
        }
        assert!(set.is_empty() && set.levels.is_empty());
    }

    proptest! {
        #[test]
        fn the_set_is_that_of_the_standard_library(
            ops in prop::collection::vec((0_u32..3, 0_u32..20_000), 0..400),
        ) {
            let mut set = OrderedSet::new();
            let mut model = BTreeSet::new();
            for (what, number) in ops {
                // Half of the numbers are dense, so that words fill.
                let number = if number % 2 == 0 { number } else { number / 100 };
                if what == 0 {
                    prop_assert_eq!(set.remove(number), model.remove(&number));
                } else {
                    prop_assert_eq!(set.insert(number), model.insert(number));
                }
                prop_assert_eq!(set.len() as usize, model.len());
                for from in [0, number / 2, number, number + 1, 25_000] {
                    let expected = model.range(from..).next().copied();
                    prop_assert_eq!(set.next_from(from), expected);
                }
            }
        }
    }
}
