//! The table of a family: prefixes in numbered places, found by a hash; at each place its routes (which are the
//! Adj-RIBs-In) and the best of them (which is the Loc-RIB).

use wire::bgp::{Family, FamilyId, HashWords, Prefix};
use wire::with_family;

use super::blocks::{Blocks, ROUTES_MAX, RouteRef};
use super::paths::PathStore;
use crate::rib::chunked::Chunked;
use crate::rib::hash;
use crate::rib::index::Index;
use crate::rib::number::NONE;

/// A family that has a table here.
pub(crate) trait Stored: Family {
    /// This family's table.
    fn table(tables: &Tables) -> &Table<Self>;
    /// This family's table.
    fn table_mut(tables: &mut Tables) -> &mut Table<Self>;
}

/// Defines the tables, one for each family.
macro_rules! tables {
    ($($table:ident: $family:ident,)+) => {
        /// The tables of all families.
        #[derive(Debug)]
        pub(crate) struct Tables {
            $($table: Table<wire::bgp::$family>,)+
        }

        impl Tables {
            pub(crate) fn new(seed: u64) -> Self {
                Tables { $($table: Table::new(seed),)+ }
            }

            pub(crate) fn memory(&self) -> usize {
                [$(self.$table.memory()),+].iter().sum()
            }
        }

        $(impl Stored for wire::bgp::$family {
            #[inline]
            fn table(tables: &Tables) -> &Table<Self> {
                &tables.$table
            }

            #[inline]
            fn table_mut(tables: &mut Tables) -> &mut Table<Self> {
                &mut tables.$table
            }
        })+
    };
}
wire::for_each_family!(tables);

impl Tables {
    /// The table of a family.
    #[inline]
    pub(crate) fn of<F: Stored>(&self) -> &Table<F> {
        F::table(self)
    }

    /// The table of a family.
    #[inline]
    pub(crate) fn of_mut<F: Stored>(&mut self) -> &mut Table<F> {
        F::table_mut(self)
    }

    /// The slot of a prefix.
    pub(crate) fn find(&self, prefix: Prefix) -> Option<u32> {
        with_family!(prefix.family(), F => self.of::<F>().find(prefix))
    }

    /// Loads the memory that [`find`](Self::find) will read, for a caller that looks for the prefix soon.
    #[inline]
    pub(crate) fn touch(&self, prefix: Prefix) {
        with_family!(prefix.family(), F => self.of::<F>().touch(prefix));
    }

    /// The best path of a slot, or [`NONE`].
    #[inline]
    pub(crate) fn best(&self, family: FamilyId, slot: u32) -> u32 {
        with_family!(family, F => self.of::<F>().best(slot))
    }

    /// The prefix of a slot.
    #[inline]
    pub(crate) fn prefix(&self, family: FamilyId, slot: u32) -> Prefix {
        with_family!(family, F => self.of::<F>().prefix(slot))
    }

    /// How many slots were ever used.
    pub(crate) fn end(&self, family: FamilyId) -> u32 {
        with_family!(family, F => self.of::<F>().entries.len())
    }

    /// How many prefixes have a route, and how many routes there are.
    pub(crate) fn counts(&self, family: FamilyId) -> (usize, usize) {
        with_family!(family, F => self.of::<F>().counts())
    }

    /// Appends the paths of the routes of a slot.
    pub(crate) fn routes(&self, family: FamilyId, slot: u32, out: &mut Vec<u32>) {
        with_family!(family, F => self.of::<F>().collect(slot, out));
    }

    /// Whether a slot has a prefix but no route.
    pub(crate) fn is_empty_at(&self, family: FamilyId, slot: u32) -> bool {
        with_family!(family, F => self.of::<F>().is_empty_at(slot))
    }

    /// Frees a slot without routes.
    pub(crate) fn remove(&mut self, family: FamilyId, slot: u32) {
        with_family!(family, F => self.of_mut::<F>().remove(slot));
    }

    /// The longest prefix with a best route that contains `prefix`.
    pub(crate) fn longest_match(&self, prefix: Prefix) -> Option<Prefix> {
        with_family!(prefix.family(), F => {
            let table = self.of::<F>();
            table.longest_match(prefix, F::BITS).map(|slot| table.prefix(slot))
        })
    }

    /// The first slot with a route from `slot` on and below `end`, and its prefix.
    pub(crate) fn next_used(&self, family: FamilyId, slot: u32, end: u32) -> Option<(u32, Prefix)> {
        with_family!(family, F => {
            let table = self.of::<F>();
            table.next_used(slot, end).map(|slot| (slot, table.prefix(slot)))
        })
    }
}

/// Hashes a prefix as its family says.
#[inline]
fn hash_of<F: Family>(nlri: F::Nlri, len: u8, seed: u64) -> u64 {
    match F::hash_words(nlri, len) {
        HashWords::One(word) => hash::number(seed, word),
        HashWords::Three(words) => hash::numbers(seed, words),
    }
}

/// A slot. A free slot has `count` 0 and the length [`FREE`].
#[derive(Debug, Clone, Copy)]
struct Entry<N> {
    nlri: N,
    /// With one route, its path. With more, the number of their block.
    routes: u32,
    /// The path of the best route, or [`NONE`]; in a free slot, the next free slot.
    best: u32,
    count: u16,
    len: u8,
    /// Whether a route here had a MULTI_EXIT_DISC other than 0, so that all routes have to be compared together.
    has_med: bool,
}

const FREE: u8 = u8::MAX;

/// Identifies a route of a slot: its peer and path identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whose {
    pub(crate) peer: u32,
    pub(crate) path_id: u32,
}

/// The prefix has as many routes as it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

/// The table of a family.
#[derive(Debug)]
pub(crate) struct Table<F: Family> {
    entries: Chunked<Entry<F::Nlri>>,
    index: Index,
    blocks: Blocks,
    free: u32,
    seed: u64,
    prefixes: usize,
    routes: usize,
    /// How many prefixes of each length there are, so that a longest match looks only for lengths that exist.
    lengths: Vec<u32>,
}

impl<F: Family> Table<F> {
    fn new(seed: u64) -> Self {
        Table {
            entries: Chunked::new(),
            index: Index::new(),
            blocks: Blocks::default(),
            free: NONE,
            seed,
            prefixes: 0,
            routes: 0,
            lengths: Vec::new(),
        }
    }

    fn counts(&self) -> (usize, usize) {
        (self.prefixes, self.routes)
    }

    fn memory(&self) -> usize {
        self.entries.memory() + self.index.allocation_size() + self.blocks.memory()
    }

    #[inline]
    pub(crate) fn find(&self, prefix: Prefix) -> Option<u32> {
        let (nlri, len) = (F::split(prefix), prefix.len());
        let entries = &self.entries;
        self.index
            .find(hash_of::<F>(nlri, len, self.seed), |&slot| {
                let entry = &entries[slot];
                entry.nlri == nlri && entry.len == len
            })
            .copied()
    }

    /// Loads the memory in which the prefix would be found, for a caller that looks for it soon.
    #[inline]
    pub(crate) fn touch(&self, prefix: Prefix) {
        let hash = hash_of::<F>(F::split(prefix), prefix.len(), self.seed);
        let found = self.index.find(hash, |&slot| {
            std::hint::black_box(self.entries.get(slot).map(|entry| entry.count));
            true
        });
        std::hint::black_box(found);
    }

    /// Finds the prefix, or adds it without a route.
    #[inline]
    pub(crate) fn find_or_insert(&mut self, prefix: Prefix) -> u32 {
        let (nlri, len) = (F::split(prefix), prefix.len());
        let hash = hash_of::<F>(nlri, len, self.seed);
        let entries = &self.entries;
        let found = self.index.find(hash, |&slot| {
            let entry = &entries[slot];
            entry.nlri == nlri && entry.len == len
        });
        match found {
            Some(&slot) => slot,
            None => self.insert(nlri, len, hash),
        }
    }

    fn insert(&mut self, nlri: F::Nlri, len: u8, hash: u64) -> u32 {
        let entry = Entry {
            nlri,
            routes: NONE,
            best: NONE,
            count: 0,
            len,
            has_med: false,
        };
        let slot = match self.free {
            NONE => self.entries.push(entry),
            slot => {
                self.free = self.entries[slot].best;
                self.entries[slot] = entry;
                slot
            }
        };
        let (entries, seed) = (&self.entries, self.seed);
        self.index.insert_unique(hash, slot, |&slot| {
            let entry = &entries[slot];
            hash_of::<F>(entry.nlri, entry.len, seed)
        });
        if self.lengths.len() <= len.into() {
            self.lengths.resize(usize::from(len) + 1, 0);
        }
        self.lengths[usize::from(len)] += 1;
        slot
    }

    /// Frees a slot without routes.
    pub(crate) fn remove(&mut self, slot: u32) {
        let Entry { nlri, len, .. } = self.entries[slot];
        let hash = hash_of::<F>(nlri, len, self.seed);
        if let Ok(entry) = self.index.find_entry(hash, |&found| found == slot) {
            entry.remove();
        }
        self.lengths[usize::from(len)] -= 1;
        let entry = &mut self.entries[slot];
        entry.len = FREE;
        entry.best = self.free;
        self.free = slot;
    }

    /// Whether a place has a prefix but no route.
    pub(crate) fn is_empty_at(&self, slot: u32) -> bool {
        let entry = &self.entries[slot];
        entry.count == 0 && entry.len != FREE
    }

    #[inline]
    pub(crate) fn prefix(&self, slot: u32) -> Prefix {
        let entry = &self.entries[slot];
        F::join(entry.nlri, entry.len)
    }

    #[inline]
    pub(crate) fn best(&self, slot: u32) -> u32 {
        let entry = &self.entries[slot];
        if entry.len == FREE { NONE } else { entry.best }
    }

    #[inline]
    pub(crate) fn set_best(&mut self, slot: u32, best: u32) {
        self.entries[slot].best = best;
    }

    #[inline]
    pub(crate) fn has_med(&self, slot: u32) -> bool {
        self.entries[slot].has_med
    }

    #[inline]
    pub(crate) fn set_has_med(&mut self, slot: u32) {
        self.entries[slot].has_med = true;
    }

    /// How many routes a slot has.
    #[inline]
    pub(crate) fn count(&self, slot: u32) -> usize {
        self.entries[slot].count.into()
    }

    /// The only path of a slot that has one route.
    #[inline]
    pub(crate) fn only(&self, slot: u32) -> Option<u32> {
        let entry = &self.entries[slot];
        (entry.count == 1).then_some(entry.routes)
    }

    /// Appends the paths of a slot.
    pub(crate) fn collect(&self, slot: u32, out: &mut Vec<u32>) {
        let entry = &self.entries[slot];
        match entry.count {
            0 => {}
            1 => out.push(entry.routes),
            count => {
                let routes = self.blocks.get(entry.routes, count.into());
                out.extend(routes.iter().map(|route| route.path));
            }
        }
    }

    /// Adds the route of a peer with a path identifier, or replaces it and returns its old path.
    ///
    /// # Errors
    /// The prefix has [`ROUTES_MAX`] other routes.
    #[inline]
    pub(crate) fn put(
        &mut self,
        slot: u32,
        whose: Whose,
        path: u32,
        paths: &PathStore,
    ) -> Result<Option<u32>, Full> {
        let entry = &mut self.entries[slot];
        let count = usize::from(entry.count);
        let route = RouteRef {
            peer: whose.peer,
            path,
        };
        match count {
            0 => {
                entry.routes = path;
                self.prefixes += 1;
            }
            1 => {
                let old = entry.routes;
                let other = paths.get(old);
                if other.peer() == whose.peer && other.path_id == whose.path_id {
                    entry.routes = path;
                    return Ok(Some(old));
                }
                let other = RouteRef {
                    peer: other.peer(),
                    path: old,
                };
                entry.routes = self.blocks.pair([other, route]);
            }
            _ => {
                let routes = self.blocks.get_mut(entry.routes, count);
                if let Some(at) = position(routes, whose, paths) {
                    return Ok(Some(std::mem::replace(&mut routes[at].path, path)));
                }
                if count >= ROUTES_MAX {
                    return Err(Full);
                }
                entry.routes = self.blocks.insert(entry.routes, count, route);
            }
        }
        entry.count += 1;
        self.routes += 1;
        Ok(None)
    }

    /// Removes the route of a peer with a path identifier. Returns its path.
    #[inline]
    pub(crate) fn take(&mut self, slot: u32, whose: Whose, paths: &PathStore) -> Option<u32> {
        let entry = &mut self.entries[slot];
        let count = usize::from(entry.count);
        let old = match count {
            0 => return None,
            1 => {
                let other = paths.get(entry.routes);
                if other.peer() != whose.peer || other.path_id != whose.path_id {
                    return None;
                }
                self.prefixes -= 1;
                std::mem::replace(&mut entry.routes, NONE)
            }
            _ => {
                let block = entry.routes;
                let routes = self.blocks.get(block, count);
                let at = position(routes, whose, paths)?;
                let old = routes[at].path;
                if count == 2 {
                    entry.routes = routes[1 - at].path;
                    self.blocks.free_pair(block);
                } else {
                    entry.routes = self.blocks.remove(block, count, at);
                }
                old
            }
        };
        entry.count -= 1;
        entry.has_med &= entry.count > 0;
        self.routes -= 1;
        Some(old)
    }

    /// The longest prefix with a best route that contains `prefix` and has at most `len` bits.
    pub(crate) fn longest_match(&self, prefix: Prefix, len: u8) -> Option<u32> {
        let len = len.min(prefix.len());
        let lengths = self.lengths.iter().take(usize::from(len) + 1);
        for (len, _) in lengths.enumerate().rev().filter(|(_, count)| **count > 0) {
            if let Some(slot) = self.find(prefix.truncated(len as u8))
                && self.best(slot) != NONE
            {
                return Some(slot);
            }
        }
        None
    }

    /// The first slot with a route from `slot` on and below `end`.
    pub(crate) fn next_used(&self, slot: u32, end: u32) -> Option<u32> {
        for (first, run) in self.entries.runs_from(slot) {
            if first >= end {
                return None;
            }
            if let Some(at) = run.iter().position(|entry| entry.count > 0) {
                let found = first + at as u32;
                return (found < end).then_some(found);
            }
        }
        None
    }
}

/// The index of the route of a peer with a path identifier.
#[inline]
fn position(routes: &[RouteRef], whose: Whose, paths: &PathStore) -> Option<usize> {
    let first = routes.partition_point(|route| route.peer < whose.peer);
    let of_peer = routes[first..]
        .iter()
        .take_while(|route| route.peer == whose.peer);
    of_peer
        .enumerate()
        .find(|(_, route)| paths.get(route.path).path_id == whose.path_id)
        .map(|(at, _)| first + at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::bgp::{Ipv4Unicast, Ipv6Unicast};

    #[test]
    fn an_entry_is_as_small_as_its_family_allows() {
        assert_eq!(size_of::<Entry<<Ipv4Unicast as Family>::Nlri>>(), 16);
        assert_eq!(size_of::<Entry<<Ipv6Unicast as Family>::Nlri>>(), 28);
    }
}
