//! A set of slots that are pending: one bit per slot, and a list as long as there are few.

/// The slots of one window, and also the most that are listed.
pub(crate) const WINDOW: usize = 16_384;
/// The longest window, for paths of very many prefixes: then slots of its paths are left.
const WINDOW_MAX: usize = 2 * WINDOW;
/// The most slots that are looked at in one call. With more, a window needs several calls.
const LOOKED_AT_MAX: usize = 8 * WINDOW;

/// A slot to look at, and the path by which it is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    pub(crate) path: u32,
    pub(crate) slot: u32,
}

/// A set of slots.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dirty {
    bits: Vec<u64>,
    count: u32,
    /// All slots in insertion order, unless `is_long`.
    list: Vec<u32>,
    is_long: bool,
    /// The path at which the next window of a long set starts.
    next_path: u32,
    /// The search for the next window of a long set, between two calls.
    search: Option<Box<Search>>,
}

/// A search for the slots of a window. They stay in the set until it has ended.
#[derive(Debug, Clone)]
struct Search {
    first: u32,
    last: u32,
    /// The word of the bits at which it goes on.
    at: usize,
    found: Vec<u32>,
}

impl Dirty {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    pub(crate) fn memory(&self) -> usize {
        let found = self.search.as_ref().map_or(0, |s| s.found.capacity());
        self.bits.capacity() * 8 + (self.list.capacity() + found) * 4
    }

    #[inline]
    pub(crate) fn contains(&self, slot: u32) -> bool {
        let word = self.bits.get(slot as usize / 64);
        word.is_some_and(|word| word & 1 << (slot % 64) != 0)
    }

    /// Adds a slot. Returns `false` if it was in the set.
    #[inline]
    pub(crate) fn insert(&mut self, slot: u32) -> bool {
        let word = slot as usize / 64;
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        let bit = 1 << (slot % 64);
        if self.bits[word] & bit != 0 {
            return false;
        }
        self.bits[word] |= bit;
        self.count += 1;
        if !self.is_long {
            if self.list.len() < WINDOW {
                self.list.push(slot);
            } else {
                self.list = Vec::new();
                self.is_long = true;
                self.next_path = 0;
            }
        }
        true
    }

    #[inline]
    fn remove(&mut self, slot: u32) {
        self.bits[slot as usize / 64] &= !(1 << (slot % 64));
        self.count -= 1;
    }

    /// Removes one slot from a set from which no windows are taken. Returns whether it was in the set.
    pub(crate) fn remove_if_in(&mut self, slot: u32) -> bool {
        let is_in = self.contains(slot);
        if is_in {
            self.remove(slot);
        }
        is_in
    }

    /// Removes a window: about [`WINDOW`] slots with their paths, sorted by path. A window has all slots of its paths
    /// unless those are very many. `paths_end` is above the numbers of all paths, except the number for no path.
    /// Returns how many slots it looked at. If those were the most for one call and the search has not ended, `out` is
    /// empty, and the next call goes on.
    ///
    /// A long set is scanned once for each window, by ranges of paths. So the slots of one path come together wherever
    /// they are in the table, and no list of the whole set is made.
    pub(crate) fn take(
        &mut self,
        paths_end: u32,
        path_of: impl Fn(u32) -> u32,
        out: &mut Vec<Item>,
    ) -> usize {
        out.clear();
        let mut looked_at = self.list.len();
        if self.is_long {
            let mut search = match self.search.take() {
                Some(search) => search,
                None => self.new_search(paths_end),
            };
            let has_ended;
            (has_ended, looked_at) = self.go_on(&mut search, &path_of);
            if !has_ended {
                self.search = Some(search);
                return looked_at;
            }
            for slot in search.found {
                self.remove(slot);
                // The path may have changed since the slot was found.
                let path = path_of(slot);
                out.push(Item { path, slot });
            }
            if self.count == 0 {
                *self = Dirty::default();
            }
        } else {
            let list = std::mem::take(&mut self.list);
            for &slot in &list {
                self.remove(slot);
                let path = path_of(slot);
                out.push(Item { path, slot });
            }
            self.list = list;
            self.list.clear();
        }
        out.sort_unstable();
        looked_at
    }

    /// A search for the next window.
    fn new_search(&self, paths_end: u32) -> Box<Search> {
        let first = self.next_path;
        let paths_left = u64::from(paths_end.saturating_sub(first));
        let share = paths_left * WINDOW as u64 / u64::from(self.count.max(1));
        let last = first.saturating_add(share.min(u32::MAX.into()) as u32);
        Box::new(Search {
            first,
            // Slots without a path come last, with the highest number.
            last: if last >= paths_end { u32::MAX } else { last },
            at: 0,
            found: Vec::new(),
        })
    }

    /// Continues a search. Returns whether it has ended, and how many slots it looked at.
    fn go_on(&mut self, search: &mut Search, path_of: impl Fn(u32) -> u32) -> (bool, usize) {
        let mut looked_at = 0;
        while let Some(&word) = self.bits.get(search.at) {
            if looked_at >= LOOKED_AT_MAX {
                return (false, looked_at);
            }
            let mut rest = word;
            while rest != 0 {
                let slot = search.at as u32 * 64 + rest.trailing_zeros();
                rest &= rest - 1;
                looked_at += 1;
                if !(search.first..=search.last).contains(&path_of(slot)) {
                    continue;
                }
                search.found.push(slot);
                if search.found.len() >= WINDOW_MAX {
                    // Slots of these paths are left.
                    return (true, looked_at);
                }
            }
            search.at += 1;
        }
        self.next_path = match search.last {
            u32::MAX => 0,
            last => last + 1,
        };
        (true, looked_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(dirty: &mut Dirty, paths_end: u32, path_of: impl Fn(u32) -> u32) -> Vec<Vec<Item>> {
        let mut windows = Vec::new();
        while !dirty.is_empty() {
            let mut window = Vec::new();
            dirty.take(paths_end, &path_of, &mut window);
            if !window.is_empty() {
                windows.push(window);
            }
        }
        windows
    }

    #[test]
    fn a_few_come_out_at_once_sorted_by_path() {
        let mut dirty = Dirty::default();
        for slot in [5, 900, 5, 70] {
            dirty.insert(slot);
        }
        assert_eq!(dirty.len(), 3);
        assert!(dirty.contains(900) && !dirty.contains(901));
        let windows = drain(&mut dirty, 10, |slot| if slot == 5 { 9 } else { 1 });
        let slots: Vec<u32> = windows[0].iter().map(|item| item.slot).collect();
        assert_eq!((windows.len(), slots), (1, vec![70, 900, 5]));
    }

    #[test]
    fn many_come_out_in_windows_each_path_in_one_of_them() {
        let n = 10 * WINDOW as u32;
        let path_of = |slot: u32| match slot.wrapping_mul(2_654_435_761) % 1_001 {
            1_000 => u32::MAX,
            path => path,
        };
        let mut dirty = Dirty::default();
        for slot in 0..n {
            assert!(dirty.insert(slot));
        }
        let windows = drain(&mut dirty, 1_000, path_of);
        assert!((10..20).contains(&windows.len()), "{}", windows.len());
        assert!(windows.iter().all(|window| window.len() < 2 * WINDOW));
        let mut items: Vec<Item> = windows.iter().flatten().copied().collect();
        assert!(
            items.is_sorted_by_key(|item| item.path),
            "one window a path"
        );
        items.sort_by_key(|item| item.slot);
        assert!(items.iter().map(|item| item.slot).eq(0..n));
        assert!(dirty.memory() < 1_000, "nothing is kept of a long set");
    }

    #[test]
    fn no_call_looks_at_more_slots_than_its_limit_however_large_the_set_is() {
        let n = 60 * WINDOW as u32;
        let mut dirty = Dirty::default();
        for slot in 0..n {
            dirty.insert(slot);
        }
        let calls = std::cell::Cell::new(0);
        let path_of = |slot: u32| {
            calls.set(calls.get() + 1);
            slot / 7
        };
        let mut window = Vec::new();
        let mut taken = 0;
        while !dirty.is_empty() {
            calls.set(0);
            let looked_at = dirty.take(n / 7, path_of, &mut window);
            assert!(
                calls.get() <= LOOKED_AT_MAX + 64 + window.len(),
                "{calls:?}"
            );
            assert!(looked_at > 0 && looked_at <= calls.get());
            taken += window.len();
            assert!(
                window
                    .chunk_by(|a, b| a.path == b.path)
                    .all(|run| run.len() <= 7)
            );
        }
        assert_eq!(taken, n as usize);
    }

    #[test]
    fn a_slot_whose_path_changes_during_a_search_comes_out_once_with_its_new_path() {
        let n = 20 * WINDOW as u32;
        let mut dirty = Dirty::default();
        for slot in 0..n {
            dirty.insert(slot);
        }
        let mut window = Vec::new();
        dirty.take(n, |slot| slot, &mut window);
        assert!(window.is_empty(), "the search takes several calls");
        assert!(dirty.contains(5) && !dirty.insert(5));
        let changed = |slot: u32| if slot == 5 { n - 1 } else { slot };
        let items: Vec<Item> = drain(&mut dirty, n, changed).concat();
        let of_5: Vec<u32> = items
            .iter()
            .filter(|item| item.slot == 5)
            .map(|item| item.path)
            .collect();
        assert_eq!((items.len(), of_5), (n as usize, vec![n - 1]));
    }

    #[test]
    fn a_place_that_comes_back_while_windows_are_taken_is_taken_again() {
        let n = 3 * WINDOW as u32;
        let mut dirty = Dirty::default();
        for slot in 0..n {
            dirty.insert(slot);
        }
        let mut window = Vec::new();
        dirty.take(n, |slot| slot, &mut window);
        let again = window[7].slot;
        assert!(dirty.insert(again));
        let rest = drain(&mut dirty, n, |slot| slot);
        let count = rest
            .iter()
            .flatten()
            .filter(|item| item.slot == again)
            .count();
        assert_eq!(count, 1);
    }
}
