//! Finds the longest of a changing number of queues.
//!
//! A heap of upper bounds. A queue that grows past its bound raises the bound; a queue that shrinks changes nothing.
//! A search corrects the bounds that it meets, so the packets that left since the last search pay for it.

/// A queue that a [`Heaviest`] ranks.
pub(super) trait Weighed {
    /// Its bytes.
    fn size(&self) -> u64;

    /// A copy of its bound in the heap; while the queue stays below, the heap need not be read.
    fn bound(&mut self) -> &mut u64;
}

/// A heap of some items of a slab. The items' places in the heap are in a list of their own, the argument `places`: one
/// cache line has those of 16 items, and a change of the heap need not read the items that it moves.
#[derive(Debug, Default)]
pub(super) struct Heaviest {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    bound: u64,
    item: u32,
}

impl Heaviest {
    /// Adds an empty item.
    pub(super) fn add<T: Weighed>(&mut self, all: &mut [T], places: &mut [u32], item: u32) {
        *all[item as usize].bound() = 0;
        places[item as usize] = self.entries.len() as u32;
        self.entries.push(Entry { bound: 0, item });
    }

    /// Removes an item.
    pub(super) fn remove(&mut self, places: &mut [u32], item: u32) {
        let place = places[item as usize] as usize;
        self.entries.swap_remove(place);
        if place < self.entries.len() {
            let place = self.rise(places, place);
            self.sink(places, place);
        }
    }

    /// Raises the bound of an item that grew.
    #[inline]
    pub(super) fn raise<T: Weighed>(&mut self, all: &mut [T], places: &mut [u32], item: u32) {
        let grown = &mut all[item as usize];
        let size = grown.size();
        if *grown.bound() < size {
            *grown.bound() = size;
            let place = places[item as usize] as usize;
            self.entries[place].bound = size;
            self.rise(places, place);
        }
    }

    /// The largest item.
    pub(super) fn find<T: Weighed>(&mut self, all: &mut [T], places: &mut [u32]) -> Option<u32> {
        loop {
            let first = self.entries.first_mut()?;
            let found = &mut all[first.item as usize];
            let size = found.size();
            if size >= first.bound {
                return Some(first.item);
            }
            first.bound = size;
            *found.bound() = size;
            self.sink(places, 0);
        }
    }

    /// Whether it has no item.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets all items.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    fn rise(&mut self, places: &mut [u32], mut place: usize) -> usize {
        let entry = self.entries[place];
        while place > 0 {
            let above = (place - 1) / 2;
            if self.entries[above].bound >= entry.bound {
                break;
            }
            self.put(places, place, self.entries[above]);
            place = above;
        }
        self.put(places, place, entry);
        place
    }

    fn sink(&mut self, places: &mut [u32], mut place: usize) {
        let entry = self.entries[place];
        loop {
            let mut below = 2 * place + 1;
            let Some(left) = self.entries.get(below) else {
                break;
            };
            let mut larger = *left;
            if let Some(right) = self.entries.get(below + 1)
                && right.bound > larger.bound
            {
                below += 1;
                larger = *right;
            }
            if larger.bound <= entry.bound {
                break;
            }
            self.put(places, place, larger);
            place = below;
        }
        self.put(places, place, entry);
    }

    #[inline]
    fn put(&mut self, places: &mut [u32], place: usize, entry: Entry) {
        self.entries[place] = entry;
        places[entry.item as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Default)]
    struct Item {
        size: u64,
        bound: u64,
        is_in: bool,
    }

    impl Weighed for Item {
        fn size(&self) -> u64 {
            self.size
        }

        fn bound(&mut self) -> &mut u64 {
            &mut self.bound
        }
    }

    proptest! {
        #[test]
        fn it_finds_what_a_walk_finds(
            steps in prop::collection::vec((0u32..40, 0u64..50, 0u8..4), 1..400),
        ) {
            let mut heap = Heaviest::default();
            let mut items = [Item::default(); 40];
            let mut places = [0; 40];
            for (item, size, what) in steps {
                let index = item as usize;
                match what {
                    0 if items[index].is_in => {
                        heap.remove(&mut places, item);
                        items[index] = Item::default();
                    }
                    1 => {
                        let found = heap.find(&mut items, &mut places);
                        let most = items.iter().filter(|item| item.is_in).map(|item| item.size).max();
                        prop_assert_eq!(found.map(|item| items[item as usize].size), most);
                    }
                    _ => {
                        if !items[index].is_in {
                            heap.add(&mut items, &mut places, item);
                        }
                        items[index].is_in = true;
                        items[index].size = size;
                        heap.raise(&mut items, &mut places, item);
                    }
                }
            }
        }
    }
}
