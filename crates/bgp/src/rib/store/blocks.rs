//! The routes of prefixes that have more than one: blocks of 2, 4, 8 and so on, in one array for each size.

use crate::rib::chunked::Chunked;
use crate::rib::number::NONE;

/// The most routes of one prefix. Further routes are refused and counted.
pub(crate) const ROUTES_MAX: usize = 4_096;
const CLASSES: usize = ROUTES_MAX.ilog2() as usize;

/// A route of a prefix. Routes are sorted by peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RouteRef {
    pub(crate) peer: u32,
    pub(crate) path: u32,
}

const NOTHING: RouteRef = RouteRef {
    peer: NONE,
    path: NONE,
};

#[derive(Debug)]
struct Class {
    store: Chunked<RouteRef>,
    /// The first free block; each free block has the next one in `path`.
    free: u32,
}

/// Blocks of all sizes. The size of a block follows from the number of its routes.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// By the logarithm of the size, minus one; added when first needed.
    classes: Vec<Class>,
}

fn class_of(count: usize) -> usize {
    count.next_power_of_two().ilog2() as usize - 1
}

impl Blocks {
    pub(crate) fn memory(&self) -> usize {
        let stores: usize = self.classes.iter().map(|class| class.store.memory()).sum();
        stores + self.classes.capacity() * size_of::<Class>()
    }

    /// The routes of a block of `count`, which is two or more.
    #[inline]
    pub(crate) fn get(&self, block: u32, count: usize) -> &[RouteRef] {
        self.classes[class_of(count)].store.block(block, count)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, block: u32, count: usize) -> &mut [RouteRef] {
        self.classes[class_of(count)].store.block_mut(block, count)
    }

    /// Adds a block of two.
    pub(crate) fn pair(&mut self, mut routes: [RouteRef; 2]) -> u32 {
        routes.sort_by_key(|route| route.peer);
        let block = self.take(0);
        self.get_mut(block, 2).copy_from_slice(&routes);
        block
    }

    /// Inserts a route into a block of `count`, which is below [`ROUTES_MAX`], after other routes of the same peer.
    /// Returns the block, which may be another one.
    pub(crate) fn insert(&mut self, block: u32, count: usize, route: RouteRef) -> u32 {
        let (old, new) = (class_of(count), class_of(count + 1));
        let block = if old == new {
            block
        } else {
            let larger = self.take(new);
            let (left, right) = self.classes.split_at_mut(new);
            let from = left[old].store.block(block, count);
            right[0]
                .store
                .block_mut(larger, count)
                .copy_from_slice(from);
            self.give(old, block);
            larger
        };
        let routes = self.get_mut(block, count + 1);
        let at = routes[..count].partition_point(|other| other.peer <= route.peer);
        routes.copy_within(at..count, at + 1);
        routes[at] = route;
        block
    }

    /// Removes the route at an index from a block of `count`, which is three or more. Returns the block, which may be
    /// another one.
    pub(crate) fn remove(&mut self, block: u32, count: usize, at: usize) -> u32 {
        self.get_mut(block, count).copy_within(at + 1.., at);
        let (old, new) = (class_of(count), class_of(count - 1));
        if old == new {
            return block;
        }
        let smaller = self.take(new);
        let (left, right) = self.classes.split_at_mut(old);
        let from = right[0].store.block(block, count - 1);
        left[new]
            .store
            .block_mut(smaller, count - 1)
            .copy_from_slice(from);
        self.give(old, block);
        smaller
    }

    /// Frees a block of two.
    pub(crate) fn free_pair(&mut self, block: u32) {
        self.give(0, block);
    }

    fn take(&mut self, class: usize) -> u32 {
        debug_assert!(class < CLASSES);
        while self.classes.len() <= class {
            self.classes.push(Class {
                store: Chunked::new(),
                free: NONE,
            });
        }
        let Class { store, free } = &mut self.classes[class];
        match *free {
            NONE => store.push_block(2 << class, NOTHING),
            block => {
                *free = store[block].path;
                block
            }
        }
    }

    fn give(&mut self, class: usize, block: u32) {
        let Class { store, free } = &mut self.classes[class];
        store[block].path = *free;
        *free = block;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_grows_and_shrinks_through_all_sizes_and_stays_sorted_by_peer() {
        let mut blocks = Blocks::default();
        let route = |peer: u32| RouteRef {
            peer: peer.wrapping_mul(7_919) % ROUTES_MAX as u32,
            path: peer,
        };
        let mut block = blocks.pair([route(1), route(0)]);
        for count in 2..ROUTES_MAX {
            block = blocks.insert(block, count, route(count as u32));
        }
        let routes = blocks.get(block, ROUTES_MAX);
        assert!(routes.is_sorted_by_key(|route| route.peer));
        let before = blocks.memory();
        for count in (3..=ROUTES_MAX).rev() {
            block = blocks.remove(block, count, count / 2);
            assert!(blocks.get(block, count - 1).is_sorted());
        }
        blocks.free_pair(block);
        let again = blocks.pair([route(5), route(6)]);
        assert_eq!(again, block);
        assert_eq!(blocks.memory(), before, "freed blocks are used again");
    }
}
