//! The table of a family: prefixes in numbered places, found by a hash; at each place its routes (which are the
//! Adj-RIBs-In) and the best of them (which is the Loc-RIB).

use hashbrown::HashTable;
use wire::bgp::{Family, Prefix};

use super::NONE;
use super::blocks::{Blocks, ROUTES_MAX, RouteRef};
use super::chunked::Chunked;
use super::hash;
use super::paths::PathStore;

/// The address of a prefix as a table holds it.
pub(crate) trait Key: Copy + Eq + std::fmt::Debug {
    const FAMILY: Family;
    fn of(prefix: Prefix) -> Self;
    fn prefix(self, len: u8) -> Prefix;
    fn hash(self, len: u8, seed: u64) -> u64;
    /// This family's table.
    fn table(tables: &Tables) -> &Table<Self>;
    /// This family's table.
    fn table_mut(tables: &mut Tables) -> &mut Table<Self>;
}

impl Key for u32 {
    const FAMILY: Family = Family::Ipv4Unicast;
    #[inline]
    fn of(prefix: Prefix) -> Self {
        (prefix.bits() >> 96) as u32
    }
    #[inline]
    fn prefix(self, len: u8) -> Prefix {
        Prefix::v4(self, len)
    }
    #[inline]
    fn hash(self, len: u8, seed: u64) -> u64 {
        hash::number(seed, u64::from(self) << 8 | u64::from(len))
    }
    fn table(tables: &Tables) -> &Table<Self> {
        &tables.v4
    }
    fn table_mut(tables: &mut Tables) -> &mut Table<Self> {
        &mut tables.v4
    }
}

impl Key for [u32; 4] {
    const FAMILY: Family = Family::Ipv6Unicast;
    #[inline]
    fn of(prefix: Prefix) -> Self {
        let bits = prefix.bits();
        [96, 64, 32, 0].map(|shift| (bits >> shift) as u32)
    }
    #[inline]
    fn prefix(self, len: u8) -> Prefix {
        let bits = self
            .iter()
            .fold(0, |bits, &word| bits << 32 | u128::from(word));
        Prefix::v6(bits, len)
    }
    #[inline]
    fn hash(self, len: u8, seed: u64) -> u64 {
        let [a, b, c, d] = self.map(u64::from);
        hash::numbers(seed, [a << 32 | b, c << 32 | d, len.into()])
    }
    fn table(tables: &Tables) -> &Table<Self> {
        &tables.v6
    }
    fn table_mut(tables: &mut Tables) -> &mut Table<Self> {
        &mut tables.v6
    }
}

/// Both families' tables.
#[derive(Debug)]
pub(crate) struct Tables {
    v4: Table<u32>,
    v6: Table<[u32; 4]>,
}

/// Does the same with the table of a family.
macro_rules! with_table {
    ($tables:expr, $family:expr, $table:ident => $body:expr) => {
        match $family {
            ::wire::bgp::Family::Ipv4Unicast => {
                let $table = $tables.v4();
                $body
            }
            ::wire::bgp::Family::Ipv6Unicast => {
                let $table = $tables.v6();
                $body
            }
        }
    };
}
pub(crate) use with_table;

impl Tables {
    pub(crate) fn new(seed: u64) -> Self {
        Tables {
            v4: Table::new(seed),
            v6: Table::new(seed),
        }
    }

    pub(crate) fn v4(&self) -> &Table<u32> {
        &self.v4
    }

    pub(crate) fn v6(&self) -> &Table<[u32; 4]> {
        &self.v6
    }

    /// Where a prefix stands.
    pub(crate) fn find(&self, prefix: Prefix) -> Option<u32> {
        with_table!(self, prefix.family(), table => table.find(prefix))
    }

    /// The best path at a place, or [`NONE`].
    #[inline]
    pub(crate) fn best(&self, family: Family, slot: u32) -> u32 {
        with_table!(self, family, table => table.best(slot))
    }

    #[inline]
    pub(crate) fn prefix(&self, family: Family, slot: u32) -> Prefix {
        with_table!(self, family, table => table.prefix(slot))
    }

    /// Places that were ever used.
    pub(crate) fn end(&self, family: Family) -> u32 {
        with_table!(self, family, table => table.entries.len())
    }

    /// Prefixes with a route, and routes.
    pub(crate) fn counts(&self, family: Family) -> (usize, usize) {
        with_table!(self, family, table => (table.prefixes, table.routes))
    }

    /// The paths of the routes at a place.
    pub(crate) fn routes(&self, family: Family, slot: u32, out: &mut Vec<u32>) {
        with_table!(self, family, table => table.collect(slot, out));
    }

    /// Gives back a place without routes.
    pub(crate) fn remove(&mut self, family: Family, slot: u32) {
        match family {
            Family::Ipv4Unicast => self.v4.remove(slot),
            Family::Ipv6Unicast => self.v6.remove(slot),
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.v4.memory() + self.v6.memory()
    }
}

/// A place. A free one has `count` 0 and [`FREE`] as its length.
#[derive(Debug, Clone, Copy)]
struct Entry<K> {
    key: K,
    /// No route: nothing. One: its path. More: the number of their block.
    routes: u32,
    /// The path of the best route, or [`NONE`]; of a free place, the next free one.
    best: u32,
    count: u16,
    len: u8,
    /// Whether a route here has had a MULTI_EXIT_DISC other than 0, so that all must be looked at together.
    has_med: bool,
}

const FREE: u8 = u8::MAX;

/// Which route of a place: whose, and its path identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whose {
    pub(crate) peer: u32,
    pub(crate) path_id: u32,
}

/// The prefix has as many routes as are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

/// The table of a family.
#[derive(Debug)]
pub(crate) struct Table<K> {
    entries: Chunked<Entry<K>>,
    index: HashTable<u32>,
    blocks: Blocks,
    free: u32,
    seed: u64,
    prefixes: usize,
    routes: usize,
    /// Prefixes of each length that have a place, so that a longest match asks only for lengths that are there.
    lengths: Vec<u32>,
}

impl<K: Key> Table<K> {
    fn new(seed: u64) -> Self {
        Table {
            entries: Chunked::new(),
            index: HashTable::new(),
            blocks: Blocks::default(),
            free: NONE,
            seed,
            prefixes: 0,
            routes: 0,
            lengths: Vec::new(),
        }
    }

    fn memory(&self) -> usize {
        self.entries.memory() + self.index.allocation_size() + self.blocks.memory()
    }

    #[inline]
    pub(crate) fn find(&self, prefix: Prefix) -> Option<u32> {
        let (key, len) = (K::of(prefix), prefix.len());
        let entries = &self.entries;
        self.index
            .find(key.hash(len, self.seed), |&slot| {
                let entry = &entries[slot];
                entry.key == key && entry.len == len
            })
            .copied()
    }

    /// Reads where the prefix would be found, for somebody who looks for it soon.
    #[inline]
    pub(crate) fn touch(&self, prefix: Prefix) {
        let hash = K::of(prefix).hash(prefix.len(), self.seed);
        let found = self.index.find(hash, |&slot| {
            std::hint::black_box(self.entries.get(slot).map(|entry| entry.count));
            true
        });
        std::hint::black_box(found);
    }

    /// Finds the prefix or gives it a place, without a route.
    #[inline]
    pub(crate) fn find_or_insert(&mut self, prefix: Prefix) -> u32 {
        let (key, len) = (K::of(prefix), prefix.len());
        let hash = key.hash(len, self.seed);
        let entries = &self.entries;
        let found = self.index.find(hash, |&slot| {
            let entry = &entries[slot];
            entry.key == key && entry.len == len
        });
        match found {
            Some(&slot) => slot,
            None => self.insert(key, len, hash),
        }
    }

    fn insert(&mut self, key: K, len: u8, hash: u64) -> u32 {
        let entry = Entry {
            key,
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
            entry.key.hash(entry.len, seed)
        });
        if self.lengths.len() <= len.into() {
            self.lengths.resize(usize::from(len) + 1, 0);
        }
        self.lengths[usize::from(len)] += 1;
        slot
    }

    /// Gives back a place without routes.
    pub(crate) fn remove(&mut self, slot: u32) {
        let Entry { key, len, .. } = self.entries[slot];
        let hash = key.hash(len, self.seed);
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
        entry.key.prefix(entry.len)
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

    /// Routes at a place.
    #[inline]
    pub(crate) fn count(&self, slot: u32) -> usize {
        self.entries[slot].count.into()
    }

    /// The only path at a place, where there is one route.
    #[inline]
    pub(crate) fn only(&self, slot: u32) -> Option<u32> {
        let entry = &self.entries[slot];
        (entry.count == 1).then_some(entry.routes)
    }

    /// The paths at a place, which must have one.
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

    /// Puts a route in the place of that peer's with that path identifier, whose path it gives back.
    ///
    /// # Errors
    /// There are [`ROUTES_MAX`] others.
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

    /// Takes the route of that peer with that path identifier out; gives its path.
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

    /// The longest prefix with a best route that holds `prefix` and has at most `len` bits.
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

    /// The first place from `slot` on, below `end`, that has a route.
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

/// Where the route of that peer with that path identifier stands.
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
