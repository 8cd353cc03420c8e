//! Which session a destination belongs to: the longest prefix that covers it (RFC 1812 section 5.2.4.3, RFC 8200).
//!
//! There is a hash table for each prefix length in use; a look-up tries the longest first. Nearly all routes of an edge
//! are its subscribers' own addresses (/32, and /64 for IPv6). So nearly every look-up is one probe, with 100,000
//! routes as with ten. While there are framed routes, each longer length in use costs one more probe. IPv6 lengths up
//! to /64 use only the upper half of an address.
//!
//! A slot of a table takes 9 bytes for IPv4, 13 for IPv6 up to /64, and 21 for longer prefixes. A table doubles when
//! 7/8 of its slots are used; when more than half of these are left from removed routes, it is cleaned instead. So each
//! of 100,000 subscribers' routes takes 12 or 24 bytes, and 17 or 34 for IPv6. A table keeps its size until its last
//! route is removed.
//!
//! Hashes have a fixed seed. Prefixes come from pools and from the authority, not from packets, and packets cause only
//! look-ups.

use std::fmt;
use std::hash::BuildHasher;
use std::net::IpAddr;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Place;

/// Prefixes of both families, each with its session.
#[derive(Debug, Clone)]
pub struct Routes {
    v4: Family<u32>,
    /// Lengths 65 to 128.
    v6_long: Family<u128>,
    /// Lengths 0 to 64, of the upper half.
    v6_short: Family<u64>,
    count: usize,
    count_max: usize,
}

/// Why a prefix was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    /// The prefix already has this session, which may be the same one.
    #[error("the prefix is held by session {0}")]
    Held(u32),
    /// The table is full.
    #[error("the table of routes is full")]
    Full,
    /// The length exceeds that of the address.
    #[error("a prefix length beyond its address")]
    Length,
}

impl Routes {
    /// A table for at most `count_max` prefixes. It allocates with the first one.
    #[must_use]
    pub const fn new(count_max: usize) -> Self {
        Self {
            v4: Family::new(),
            v6_long: Family::new(),
            v6_short: Family::new(),
            count: 0,
            count_max,
        }
    }

    /// Number of prefixes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no prefix.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a prefix. Bits of `address` beyond `length` are ignored.
    ///
    /// # Errors
    /// As [`Refused`] says; nothing was changed.
    pub fn insert(&mut self, address: IpAddr, length: u8, slot: u32) -> Result<(), Refused> {
        if let Some(holder) = self.holder(address, length)? {
            return Err(Refused::Held(holder));
        }
        self.replace(address, length, slot).map(|_| ())
    }

    /// Sets the session of a prefix, and returns its previous one.
    ///
    /// # Errors
    /// [`Refused::Full`] if the prefix is new, or [`Refused::Length`]; nothing was changed.
    pub fn replace(
        &mut self,
        address: IpAddr,
        length: u8,
        slot: u32,
    ) -> Result<Option<u32>, Refused> {
        if self.count >= self.count_max && self.holder(address, length)?.is_none() {
            return Err(Refused::Full);
        }
        let before = match key(address, length)? {
            Key::V4(key) => self.v4.set(length, key, slot),
            Key::V6Short(key) => self.v6_short.set(length, key, slot),
            Key::V6Long(key) => self.v6_long.set(length, key, slot),
        };
        self.count += usize::from(before.is_none());
        Ok(before)
    }

    /// Removes a prefix if its session is `slot`, and returns whether it was. So a session that ends does not remove
    /// the route of another one that has the prefix now.
    pub fn remove(&mut self, address: IpAddr, length: u8, slot: u32) -> bool {
        let removed = match key(address, length) {
            Ok(Key::V4(key)) => self.v4.remove(length, key, slot),
            Ok(Key::V6Short(key)) => self.v6_short.remove(length, key, slot),
            Ok(Key::V6Long(key)) => self.v6_long.remove(length, key, slot),
            Err(_) => false,
        };
        self.count -= usize::from(removed);
        removed
    }

    /// The session of exactly this prefix, regardless of longer and shorter ones.
    ///
    /// # Errors
    /// [`Refused::Length`] for a length beyond the address.
    pub fn holder(&self, address: IpAddr, length: u8) -> Result<Option<u32>, Refused> {
        Ok(match key(address, length)? {
            Key::V4(key) => self.v4.get(length, key),
            Key::V6Short(key) => self.v6_short.get(length, key),
            Key::V6Long(key) => self.v6_long.get(length, key),
        })
    }

    /// The session of the longest prefix that covers `address`.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: IpAddr) -> Option<u32> {
        match address {
            IpAddr::V4(address) => self.lookup_v4(address.to_bits()),
            IpAddr::V6(address) => self.lookup_v6(address.to_bits()),
        }
    }

    /// As [`Routes::lookup`] for an IPv4 address.
    #[inline]
    #[must_use]
    pub fn lookup_v4(&self, address: u32) -> Option<u32> {
        self.v4.lookup(address)
    }

    /// As [`Routes::lookup`] for an IPv6 address.
    #[inline]
    #[must_use]
    pub fn lookup_v6(&self, address: u128) -> Option<u32> {
        self.v6_long
            .lookup(address)
            .or_else(|| self.v6_short.lookup((address >> 64) as u64))
    }

    /// Bytes that the tables have allocated.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.v4.memory() + self.v6_long.memory() + self.v6_short.memory()
    }
}

/// A prefix with the bits beyond its length cleared.
enum Key {
    V4(u32),
    V6Short(u64),
    V6Long(u128),
}

fn key(address: IpAddr, length: u8) -> Result<Key, Refused> {
    match (address, length) {
        (IpAddr::V4(a), 0..=32) => Ok(Key::V4(a.to_bits().prefix(length))),
        (IpAddr::V6(a), 0..=64) => Ok(Key::V6Short(((a.to_bits() >> 64) as u64).prefix(length))),
        (IpAddr::V6(a), 65..=128) => Ok(Key::V6Long(a.to_bits().prefix(length))),
        (IpAddr::V4(_) | IpAddr::V6(_), _) => Err(Refused::Length),
    }
}

/// The part of an address that a table uses, as a number.
trait Bits: Copy + Eq + fmt::Debug {
    /// The first `length` bits, the others zero.
    fn prefix(self, length: u8) -> Self;
    fn hash(self) -> u64;
}

macro_rules! bits {
    ($($number:ty)*) => {$(
        impl Bits for $number {
            #[inline]
            fn prefix(self, length: u8) -> Self {
                let rest = Self::BITS - u32::from(length);
                Self::MAX.checked_shl(rest).unwrap_or(0) & self
            }

            #[inline]
            fn hash(self) -> u64 {
                const STATE: FixedState = FixedState::with_seed(0x6865_6164_656e_6421);
                STATE.hash_one(self)
            }
        }
    )*};
}

bits!(u32 u64 u128);

/// A prefix and its session. Packed, so that a table has no gaps.
#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
struct Entry<K: Copy> {
    key: K,
    slot: u32,
}

/// The prefixes of one length.
#[derive(Debug, Clone)]
struct Length<K: Copy> {
    length: u8,
    table: HashTable<Entry<K>>,
}

/// The prefixes of one family, longest first; no table is empty.
#[derive(Debug, Clone)]
struct Family<K: Copy> {
    lengths: Vec<Length<K>>,
}

impl<K: Bits> Family<K> {
    const fn new() -> Self {
        Self {
            lengths: Vec::new(),
        }
    }

    #[inline]
    fn lookup(&self, address: K) -> Option<u32> {
        self.lengths
            .iter()
            .find_map(|length| length.get(address.prefix(length.length)))
    }

    fn place(&self, length: u8) -> Result<usize, usize> {
        self.lengths
            .binary_search_by(|other| length.cmp(&other.length))
    }

    fn get(&self, length: u8, key: K) -> Option<u32> {
        let place = self.place(length).ok()?;
        self.lengths[place].get(key)
    }

    fn set(&mut self, length: u8, key: K, slot: u32) -> Option<u32> {
        let place = self.place(length).unwrap_or_else(|place| {
            let table = HashTable::new();
            self.lengths.insert(place, Length { length, table });
            place
        });
        let same = |entry: &Entry<K>| entry.key() == key;
        let rehash = |entry: &Entry<K>| entry.key().hash();
        match self.lengths[place].table.entry(key.hash(), same, rehash) {
            Place::Occupied(mut entry) => {
                Some(std::mem::replace(entry.get_mut(), Entry { key, slot }).slot)
            }
            Place::Vacant(entry) => {
                entry.insert(Entry { key, slot });
                None
            }
        }
    }

    fn remove(&mut self, length: u8, key: K, slot: u32) -> bool {
        let Ok(place) = self.place(length) else {
            return false;
        };
        let table = &mut self.lengths[place].table;
        let same = |entry: &Entry<K>| entry.key() == key && entry.slot == slot;
        let Ok(entry) = table.find_entry(key.hash(), same) else {
            return false;
        };
        entry.remove();
        if table.is_empty() {
            self.lengths.remove(place);
        }
        true
    }

    fn memory(&self) -> usize {
        let tables = self
            .lengths
            .iter()
            .map(|length| length.table.allocation_size());
        tables.sum::<usize>() + self.lengths.capacity() * size_of::<Length<K>>()
    }
}

impl<K: Bits> Length<K> {
    #[inline]
    fn get(&self, key: K) -> Option<u32> {
        self.table
            .find(key.hash(), |entry| entry.key() == key)
            .map(|entry| entry.slot)
    }
}

impl<K: Copy> Entry<K> {
    #[inline]
    fn key(&self) -> K {
        self.key
    }
}

#[cfg(test)]
mod tests;
