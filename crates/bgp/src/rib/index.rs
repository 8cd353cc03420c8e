//! A hash index that is divided into parts. The parts grow one at a time.
//!
//! When a single table of a million entries grows, it moves all its entries. The move takes 60 ms, and no KEEPALIVE
//! leaves meanwhile. Start reading at [`Index`].

use hashbrown::HashTable;
use hashbrown::hash_table::{AbsentEntry, OccupiedEntry};

/// The parts of a large index.
const PARTS: usize = 64;
/// An index with more entries is divided. A small one is one table, since an emulation has thousands of them.
const SMALL: usize = 16_384;

/// Numbers of entries by their hash.
#[derive(Debug)]
pub(crate) struct Index {
    small: HashTable<u32>,
    parts: Vec<HashTable<u32>>,
}

/// The part of a hash. These bits choose neither the place in a part nor the tag there.
const fn place(hash: u64) -> usize {
    (hash >> 18) as usize % PARTS
}

impl Index {
    pub(crate) const fn new() -> Self {
        Index {
            small: HashTable::new(),
            parts: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.small.len() + self.parts.iter().map(HashTable::len).sum::<usize>()
    }

    pub(crate) fn allocation_size(&self) -> usize {
        let parts = self.parts.iter();
        let held: usize = parts.map(|part| part.allocation_size()).sum();
        self.small.allocation_size() + held + self.parts.capacity() * size_of::<HashTable<u32>>()
    }

    #[inline]
    pub(crate) fn find(&self, hash: u64, eq: impl FnMut(&u32) -> bool) -> Option<&u32> {
        self.part(hash).find(hash, eq)
    }

    #[inline]
    pub(crate) fn find_entry(
        &mut self,
        hash: u64,
        eq: impl FnMut(&u32) -> bool,
    ) -> Result<OccupiedEntry<'_, u32>, AbsentEntry<'_, u32>> {
        self.part_mut(hash).find_entry(hash, eq)
    }

    /// Adds an entry that is not in the index; `hash_of` is the hash of an entry.
    #[inline]
    pub(crate) fn insert_unique(&mut self, hash: u64, entry: u32, hash_of: impl Fn(&u32) -> u64) {
        if self.parts.is_empty() && self.small.len() == SMALL {
            self.divide(&hash_of);
        }
        self.part_mut(hash).insert_unique(hash, entry, hash_of);
    }

    #[cold]
    fn divide(&mut self, hash_of: &impl Fn(&u32) -> u64) {
        self.parts.resize_with(PARTS, HashTable::new);
        for entry in std::mem::take(&mut self.small) {
            let hash = hash_of(&entry);
            self.parts[place(hash)].insert_unique(hash, entry, hash_of);
        }
    }

    #[inline]
    fn part(&self, hash: u64) -> &HashTable<u32> {
        self.parts.get(place(hash)).unwrap_or(&self.small)
    }

    #[inline]
    fn part_mut(&mut self, hash: u64) -> &mut HashTable<u32> {
        self.parts.get_mut(place(hash)).unwrap_or(&mut self.small)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rib::hash;

    #[test]
    fn entries_stay_found_when_the_index_is_divided_and_parts_are_of_like_size() {
        let hash_of = |entry: &u32| hash::number(7, u64::from(*entry));
        let mut index = Index::new();
        for entry in 0..200_000 {
            index.insert_unique(hash_of(&entry), entry, hash_of);
        }
        assert_eq!(index.len(), 200_000);
        for entry in 0..200_000 {
            assert_eq!(
                index.find(hash_of(&entry), |&other| other == entry),
                Some(&entry)
            );
        }
        let most = index.parts.iter().map(HashTable::len).max().unwrap();
        assert!(most < 200_000 / PARTS * 11 / 10, "{most}");
        for entry in (0..200_000).step_by(2) {
            let found = index.find_entry(hash_of(&entry), |&other| other == entry);
            assert!(found.map(|entry| entry.remove()).is_ok(), "{entry}");
        }
        assert_eq!(index.len(), 100_000);
        assert_eq!(index.find(hash_of(&4), |&other| other == 4), None);
    }
}
