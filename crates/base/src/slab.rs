//! A slab: stores values under small keys, in pages that never move.

/// Entries in a page.
const PAGE_ENTRIES: u32 = 256;
/// No entry, no page.
const NIL: u32 = u32::MAX;

/// Names one value of a [`Slab`]. The key of a removed value is recognised as stale, even after its place is reused
/// (until 2^32 uses later).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The place; places are reused.
    pub index: u32,
    /// Which use of that place it means.
    pub generation: u32,
}

/// Values in pages of 256. Insert, remove and get are O(1); growing moves nothing; an empty page frees its memory.
///
/// One empty page keeps its memory: the one for the next value. So inserting and removing at a page's edge does not
/// allocate.
pub struct Slab<T> {
    pages: Vec<Page<T>>,
    /// The first page with room; pages are linked by `next_open`.
    open: u32,
    len: usize,
}

struct Page<T> {
    /// Never grows beyond `PAGE_ENTRIES`, its capacity.
    entries: Vec<Entry<T>>,
    /// The first free entry below `entries.len()`.
    free: u32,
    used: u32,
    next_open: u32,
    /// Later than every generation of the page before its memory was freed.
    first_generation: u32,
}

struct Entry<T> {
    generation: u32,
    state: State<T>,
}

enum State<T> {
    Free { next: u32 },
    Used(T),
}

impl<T> Slab<T> {
    /// A slab without values.
    pub const fn new() -> Self {
        Self {
            pages: Vec::new(),
            open: NIL,
            len: 0,
        }
    }

    /// Values held.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no value is held.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Stores a value.
    pub fn insert(&mut self, value: T) -> Key {
        self.insert_with(|_| value)
    }

    /// Stores a value made from its own key.
    pub fn insert_with(&mut self, make: impl FnOnce(Key) -> T) -> Key {
        if self.open == NIL {
            self.open = u32::try_from(self.pages.len()).expect("memory ends before 2^24 pages");
            self.pages.push(Page::new());
        }
        let number = self.open;
        let page = &mut self.pages[number as usize];
        let (offset, generation) = page.vacant();
        let key = Key {
            index: number * PAGE_ENTRIES + offset,
            generation,
        };
        let value = make(key);
        page.fill(offset, value);
        if page.used == PAGE_ENTRIES {
            self.open = page.next_open;
        }
        self.len += 1;
        key
    }

    /// Stores a value under a key that a slab gave out before: for a slab that is built again from what another one held.
    ///
    /// It takes O(1) steps if keys come in the order of their places, and otherwise up to one step for each page and
    /// each entry of a page.
    ///
    /// # Errors
    /// The value itself, if another value has its place.
    pub fn insert_at(&mut self, key: Key, value: T) -> Result<(), T> {
        let (number, offset) = (key.index / PAGE_ENTRIES, key.index % PAGE_ENTRIES);
        if self.at(key.index).is_some() {
            return Err(value);
        }
        let page = self.page_mut(number);
        page.claim(offset, key.generation, value);
        if page.used == PAGE_ENTRIES {
            self.close(number);
        }
        self.len += 1;
        Ok(())
    }

    /// The free places that had values, each with its next generation. Those of a page are in the order of their use.
    pub fn vacant(&self) -> impl Iterator<Item = Key> {
        self.pages.iter().zip(0..).flat_map(|(page, number)| {
            let next = |offset: u32| match page.entries.get(offset as usize)?.state {
                State::Free { next } => Some((offset, next)),
                State::Used(_) => None,
            };
            let all = core::iter::successors(next(page.free), move |(_, then)| next(*then));
            all.map(move |(offset, _)| Key {
                index: number * PAGE_ENTRIES + offset,
                generation: page.entries[offset as usize].generation,
            })
        })
    }

    /// Makes these free places the next ones of their pages, in this order and with these generations: for a slab that
    /// is built again from what another one held and had [`vacant`](Self::vacant). Places in use stay as they are.
    pub fn set_vacant(&mut self, keys: impl DoubleEndedIterator<Item = Key>) {
        for key in keys.rev() {
            if self.at(key.index).is_none() {
                let page = self.page_mut(key.index / PAGE_ENTRIES);
                page.free_next(key.index % PAGE_ENTRIES, key.generation);
            }
        }
    }

    /// A page, which is made if there are fewer.
    fn page_mut(&mut self, number: u32) -> &mut Page<T> {
        while self.pages.len() <= number as usize {
            let mut page = Page::new();
            page.next_open = self.open;
            self.open = self.pages.len() as u32;
            self.pages.push(page);
        }
        &mut self.pages[number as usize]
    }

    /// Takes a page that is full from the list of pages with room.
    fn close(&mut self, number: u32) {
        let next = self.pages[number as usize].next_open;
        if self.open == number {
            self.open = next;
            return;
        }
        let mut before = self.open;
        while let Some(page) = self.pages.get_mut(before as usize) {
            if page.next_open == number {
                page.next_open = next;
                return;
            }
            before = page.next_open;
        }
    }

    /// Removes and returns a value; `None` if it was removed before.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let number = key.index / PAGE_ENTRIES;
        let page = self.pages.get_mut(number as usize)?;
        let value = page.take(key.index % PAGE_ENTRIES, key.generation)?;
        self.len -= 1;
        if page.used == PAGE_ENTRIES - 1 {
            let last_open = core::mem::replace(&mut self.open, number);
            page.next_open = last_open;
            if let Some(page) = self.pages.get_mut(last_open as usize) {
                page.give_back_if_empty();
            }
        } else if self.open != number {
            page.give_back_if_empty();
        }
        Some(value)
    }

    /// The value that `key` names.
    pub fn get(&self, key: Key) -> Option<&T> {
        let entry = self.entry(key.index)?;
        match &entry.state {
            State::Used(value) if entry.generation == key.generation => Some(value),
            _ => None,
        }
    }

    /// The value that `key` names, mutably.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let page = self.pages.get_mut((key.index / PAGE_ENTRIES) as usize)?;
        let entry = page.entries.get_mut((key.index % PAGE_ENTRIES) as usize)?;
        match &mut entry.state {
            State::Used(value) if entry.generation == key.generation => Some(value),
            _ => None,
        }
    }

    /// The present value at a place, whatever its generation.
    pub fn at(&self, index: u32) -> Option<&T> {
        match &self.entry(index)?.state {
            State::Used(value) => Some(value),
            State::Free { .. } => None,
        }
    }

    /// The present value at a place, mutably.
    pub fn at_mut(&mut self, index: u32) -> Option<&mut T> {
        let page = self.pages.get_mut((index / PAGE_ENTRIES) as usize)?;
        match &mut page.entries.get_mut((index % PAGE_ENTRIES) as usize)?.state {
            State::Used(value) => Some(value),
            State::Free { .. } => None,
        }
    }

    /// The key of the present value at a place.
    pub fn key_at(&self, index: u32) -> Option<Key> {
        let entry = self.entry(index)?;
        matches!(entry.state, State::Used(_)).then_some(Key {
            index,
            generation: entry.generation,
        })
    }

    /// All values by place.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.pages.iter().zip(0..).flat_map(|(page, number)| {
            page.entries
                .iter()
                .zip(number * PAGE_ENTRIES..)
                .filter_map(|(entry, index)| {
                    let State::Used(value) = &entry.state else {
                        return None;
                    };
                    Some((
                        Key {
                            index,
                            generation: entry.generation,
                        },
                        value,
                    ))
                })
        })
    }

    /// The first value at place `index` or after it, with its place.
    ///
    /// To list a slab in parts while it changes, continue one past the place of the last result: every value that
    /// stays is returned once.
    pub fn next_from(&self, index: u32) -> Option<(u32, &T)> {
        let first = (index / PAGE_ENTRIES) as usize;
        let mut skip = (index % PAGE_ENTRIES) as usize;
        for (page, number) in self.pages.iter().zip(0..).skip(first) {
            for (entry, offset) in page.entries.iter().zip(0..).skip(skip) {
                if let State::Used(value) = &entry.state {
                    return Some((number * PAGE_ENTRIES + offset, value));
                }
            }
            skip = 0;
        }
        None
    }

    fn entry(&self, index: u32) -> Option<&Entry<T>> {
        let page = self.pages.get((index / PAGE_ENTRIES) as usize)?;
        page.entries.get((index % PAGE_ENTRIES) as usize)
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Page<T> {
    const fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: NIL,
            used: 0,
            next_open: NIL,
            first_generation: 0,
        }
    }

    /// The free entry to use next, and the generation that it will have.
    fn vacant(&self) -> (u32, u32) {
        match self.entries.get(self.free as usize) {
            Some(entry) => (self.free, entry.generation),
            None => (self.entries.len() as u32, self.first_generation),
        }
    }

    /// Stores a value in the place that `vacant` returned.
    fn fill(&mut self, offset: u32, value: T) {
        let state = State::Used(value);
        match self.entries.get_mut(offset as usize) {
            Some(entry) => {
                let State::Free { next } = core::mem::replace(&mut entry.state, state) else {
                    unreachable!("the free list names free entries only");
                };
                self.free = next;
            }
            None => {
                self.entries
                    .reserve_exact(PAGE_ENTRIES as usize - self.entries.len());
                self.entries.push(Entry {
                    generation: self.first_generation,
                    state,
                });
            }
        }
        self.used += 1;
    }

    /// Stores a value in a free place, which then has that generation.
    fn claim(&mut self, offset: u32, generation: u32, value: T) {
        self.unlink(offset);
        self.entries[offset as usize] = Entry {
            generation,
            state: State::Used(value),
        };
        self.used += 1;
    }

    /// Makes a free place the next one.
    fn free_next(&mut self, offset: u32, generation: u32) {
        self.unlink(offset);
        let next = core::mem::replace(&mut self.free, offset);
        self.entries[offset as usize] = Entry {
            generation,
            state: State::Free { next },
        };
    }

    /// Takes a free place from the list of free ones, once the page reaches as far.
    fn unlink(&mut self, offset: u32) {
        self.entries
            .reserve_exact(PAGE_ENTRIES as usize - self.entries.len());
        while self.entries.len() <= offset as usize {
            let next = core::mem::replace(&mut self.free, self.entries.len() as u32);
            self.entries.push(Entry {
                generation: self.first_generation,
                state: State::Free { next },
            });
        }
        let State::Free { next } = self.entries[offset as usize].state else {
            unreachable!("the caller has checked that the place is free");
        };
        // The list leads to every free entry, the last one first if places come in their order.
        if self.free == offset {
            self.free = next;
        } else {
            let mut before = self.free;
            while let Some(entry) = self.entries.get_mut(before as usize) {
                let State::Free { next: after } = &mut entry.state else {
                    unreachable!("the free list names free entries only");
                };
                if *after == offset {
                    *after = next;
                    break;
                }
                before = *after;
            }
        }
    }

    /// Frees an entry if it has that generation.
    fn take(&mut self, offset: u32, generation: u32) -> Option<T> {
        let entry = self.entries.get_mut(offset as usize)?;
        if entry.generation != generation || matches!(entry.state, State::Free { .. }) {
            return None;
        }
        let free = State::Free {
            next: core::mem::replace(&mut self.free, offset),
        };
        entry.generation = generation.wrapping_add(1);
        self.used -= 1;
        match core::mem::replace(&mut entry.state, free) {
            State::Used(value) => Some(value),
            State::Free { .. } => unreachable!("checked above"),
        }
    }

    /// Frees the memory of an empty page, and remembers its generations.
    fn give_back_if_empty(&mut self) {
        if self.used > 0 {
            return;
        }
        let latest = self.entries.iter().map(|entry| entry.generation).max();
        self.first_generation = latest.unwrap_or(self.first_generation);
        self.entries = Vec::new();
        self.free = NIL;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stale_key_is_refused_after_its_place_was_used_again() {
        let mut slab = Slab::new();
        let old = slab.insert("old");
        assert_eq!(slab.remove(old), Some("old"));
        let new = slab.insert("new");
        assert_eq!(old.index, new.index);
        assert_eq!(slab.get(old), None);
        assert_eq!(slab.get_mut(old), None);
        assert_eq!(slab.remove(old), None);
        assert_eq!(slab.get(new), Some(&"new"));
        assert_eq!(slab.key_at(new.index), Some(new));
    }

    #[test]
    fn a_stale_key_is_refused_after_its_page_was_given_back() {
        let mut slab = Slab::new();
        let keys: Vec<Key> = (0..3 * PAGE_ENTRIES).map(|n| slab.insert(n)).collect();
        for &key in &keys {
            slab.remove(key);
        }
        let pages_held = slab
            .pages
            .iter()
            .filter(|page| page.entries.capacity() > 0)
            .count();
        assert_eq!(pages_held, 1);
        let again: Vec<Key> = (0..3 * PAGE_ENTRIES).map(|n| slab.insert(n)).collect();
        assert_eq!(slab.pages.len(), 3);
        for key in keys {
            assert_eq!(slab.get(key), None);
        }
        for (key, n) in again.into_iter().zip(0..) {
            assert_eq!(slab.get(key), Some(&n));
        }
    }

    #[test]
    fn growing_moves_no_value() {
        let mut slab = Slab::new();
        let first = slab.insert(7_u64);
        let place = std::ptr::from_ref(slab.get(first).unwrap());
        for n in 0..10_000 {
            slab.insert(n);
        }
        assert!(std::ptr::eq(place, slab.get(first).unwrap()));
    }

    #[test]
    fn a_value_can_hold_its_own_key() {
        let mut slab = Slab::new();
        let key = slab.insert_with(|key| key);
        assert_eq!(slab.get(key), Some(&key));
    }

    #[test]
    fn listing_goes_on_from_where_it_was_while_values_come_and_go() {
        let mut slab = Slab::new();
        let keys: Vec<Key> = (0..600_u32).map(|n| slab.insert(n)).collect();
        let mut seen = Vec::new();
        let mut next = 0;
        while let Some((index, &value)) = slab.next_from(next) {
            seen.push(value);
            next = index + 1;
            if value < 300 {
                slab.remove(keys[value as usize + 300]);
            }
        }
        assert_eq!(seen, (0..300).collect::<Vec<u32>>());
        assert_eq!(slab.next_from(u32::MAX), None);
        for &key in &keys[1..256] {
            slab.remove(key);
        }
        assert_eq!(slab.next_from(1), Some((256, &256)));
    }

    #[test]
    fn a_place_that_is_in_use_is_not_given_again() {
        let mut slab = Slab::new();
        let key = slab.insert("first");
        let later = Key {
            generation: 7,
            ..key
        };
        assert_eq!(slab.insert_at(later, "second"), Err("second"));
        slab.remove(key);
        assert_eq!(slab.insert_at(later, "second"), Ok(()));
        assert_eq!((slab.get(key), slab.get(later)), (None, Some(&"second")));
        assert_eq!(slab.remove(later), Some("second"));
        assert_eq!(slab.insert("third").generation, 8);
    }

    proptest! {
        #[test]
        fn a_slab_is_built_again_from_what_it_held(
            ops in prop::collection::vec(op(), 0..2_000),
            in_order in any::<bool>(),
            after in prop::collection::vec(op(), 0..600),
        ) {
            let mut first = Slab::new();
            let mut keys = Vec::new();
            apply(&mut first, &mut keys, ops)?;
            let mut held: Vec<(Key, usize)> = first.iter().map(|(key, &n)| (key, n)).collect();
            if !in_order {
                held.reverse();
            }
            let mut second = Slab::new();
            for &(key, n) in &held {
                prop_assert_eq!(second.insert_at(key, n), Ok(()));
                prop_assert_eq!(second.insert_at(key, n), Err(n));
            }
            prop_assert_eq!(second.len(), first.len());
            let mut keys: Vec<Key> = held.iter().map(|(key, _)| *key).collect();
            for &(key, n) in &held {
                prop_assert_eq!(second.get(key), Some(&n));
            }
            // It goes on as any other one: no key is given out twice, and none is lost.
            apply(&mut second, &mut keys, after)?;
        }
    }

    proptest! {
        #[test]
        fn a_slab_that_is_built_again_gives_out_the_same_keys(
            ops in prop::collection::vec(op(), 0..200),
            after in prop::collection::vec(op(), 0..50),
        ) {
            let mut first = Slab::new();
            let mut keys = Vec::new();
            apply(&mut first, &mut keys, ops)?;
            let mut second = Slab::new();
            for (key, &n) in first.iter() {
                prop_assert_eq!(second.insert_at(key, n), Ok(()));
            }
            let vacant: Vec<Key> = first.vacant().collect();
            second.set_vacant(vacant.iter().copied());
            prop_assert!(second.vacant().eq(vacant));
            let mut others = keys.clone();
            apply(&mut first, &mut keys, after.clone())?;
            apply(&mut second, &mut others, after)?;
            prop_assert_eq!(keys, others);
        }
    }

    /// Changes a slab, and compares it with a map after each change.
    fn apply(
        slab: &mut Slab<usize>,
        keys: &mut Vec<Key>,
        ops: Vec<Op>,
    ) -> Result<(), TestCaseError> {
        let mut model: HashMap<Key, usize> = slab.iter().map(|(key, &n)| (key, n)).collect();
        for (n, op) in ops.into_iter().enumerate() {
            match op {
                Op::Insert => {
                    let key = slab.insert(n);
                    prop_assert!(model.insert(key, n).is_none(), "a key was given out twice");
                    keys.push(key);
                }
                Op::Remove(which) if !keys.is_empty() => {
                    let key = keys[which % keys.len()];
                    prop_assert_eq!(slab.remove(key), model.remove(&key));
                }
                Op::Remove(_) => {}
                Op::RemoveAll => {
                    for &key in &*keys {
                        prop_assert_eq!(slab.remove(key), model.remove(&key));
                    }
                }
            }
            prop_assert_eq!(slab.len(), model.len());
        }
        for &key in &*keys {
            prop_assert_eq!(slab.get(key), model.get(&key));
        }
        let listed: HashMap<Key, usize> = slab.iter().map(|(key, &n)| (key, n)).collect();
        prop_assert_eq!(listed, model);
        Ok(())
    }

    #[derive(Clone, Debug)]
    enum Op {
        Insert,
        Remove(usize),
        RemoveAll,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            60 => Just(Op::Insert),
            40 => any::<usize>().prop_map(Op::Remove),
            1 => Just(Op::RemoveAll),
        ]
    }

    proptest! {
        #[test]
        fn a_slab_holds_what_a_map_holds(ops in prop::collection::vec(op(), 0..2_000)) {
            apply(&mut Slab::new(), &mut Vec::new(), ops)?;
        }
    }
}
