//! A heap of instants, at most one per item, earliest first.

const NONE: u32 = u32::MAX;

/// Each item has at most one entry.
#[derive(Debug, Default)]
pub(super) struct Heap {
    entries: Vec<(u64, u32)>,
    /// The index of each item's entry.
    places: Vec<u32>,
}

impl Heap {
    /// A heap for the items below `items`.
    pub(super) fn new(items: usize) -> Self {
        Self {
            entries: Vec::new(),
            places: vec![NONE; items],
        }
    }

    /// Schedules `item` for `at`, unless it is scheduled earlier already.
    pub(super) fn lower(&mut self, item: u32, at: u64) {
        let place = self.places[item as usize];
        let place = if place == NONE {
            self.entries.push((at, item));
            self.entries.len() - 1
        } else if at < self.entries[place as usize].0 {
            self.entries[place as usize].0 = at;
            place as usize
        } else {
            return;
        };
        self.rise(place);
    }

    /// Whether [`Heap::pop`] returns an item at `now`.
    #[inline]
    pub(super) fn is_due(&self, now: u64) -> bool {
        self.entries.first().is_some_and(|&(at, _)| at <= now)
    }

    /// Removes and returns the first item if it is due at `now`.
    pub(super) fn pop(&mut self, now: u64) -> Option<u32> {
        let &(at, item) = self.entries.first()?;
        if at > now {
            return None;
        }
        self.places[item as usize] = NONE;
        let last = self.entries.pop()?;
        if let Some(first) = self.entries.first_mut() {
            *first = last;
            self.sink(0);
        }
        Some(item)
    }

    /// The smallest value of `exact` over all items. `exact` must not return less than the item's own instant.
    pub(super) fn least(&self, exact: impl Fn(u32) -> u64) -> u64 {
        let mut best = u64::MAX;
        let mut open = vec![0];
        while let Some(place) = open.pop() {
            if let Some(&(at, item)) = self.entries.get(place)
                && at < best
            {
                best = best.min(exact(item));
                open.extend([2 * place + 2, 2 * place + 1]);
            }
        }
        best
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.entries[place];
        while place > 0 {
            let above = (place - 1) / 2;
            if self.entries[above].0 <= entry.0 {
                break;
            }
            self.put(place, self.entries[above]);
            place = above;
        }
        self.put(place, entry);
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.entries[place];
        loop {
            let mut below = 2 * place + 1;
            let Some(&left) = self.entries.get(below) else {
                break;
            };
            let mut lower = left;
            if let Some(&right) = self.entries.get(below + 1)
                && right.0 < left.0
            {
                below += 1;
                lower = right;
            }
            if entry.0 <= lower.0 {
                break;
            }
            self.put(place, lower);
            place = below;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (u64, u32)) {
        self.entries[place] = entry;
        self.places[entry.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_in_the_order_of_their_instants_each_once() {
        let mut heap = Heap::new(100);
        for item in 0..100_u32 {
            heap.lower(item, u64::from(item * 37 % 101) + 1_000);
            heap.lower(item, u64::from(item * 37 % 101));
            heap.lower(item, 5_000);
        }
        assert_eq!(heap.least(|item| u64::from(item * 37 % 101) + 7), 7);
        let mut last = 0;
        for _ in 0..100 {
            let item = heap.pop(200).expect("an item");
            let at = u64::from(item * 37 % 101);
            assert!(at >= last);
            last = at;
        }
        assert_eq!(heap.pop(u64::MAX), None);
        assert_eq!(heap.least(|_| 0), u64::MAX);
    }
}
