//! Where the live octets of each record are in a segment.

use core::ops::Range;
use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::format::{Entry, Form};

/// What names a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) kind: u8,
    pub(crate) key: u64,
}

/// A record: the entry with most of its sections, and the places of those that changed since.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    entry: u64,
    length: u32,
    changed: Vec<Changed>,
}

#[derive(Clone, Copy, Debug)]
struct Changed {
    number: u8,
    length: u32,
    start: u64,
}

impl Places {
    /// Its octets in the segment. Sections of the entry that changed since count too.
    fn octets(&self) -> u64 {
        let changed = self.changed.iter().map(|one| u64::from(one.length));
        u64::from(self.length) + changed.sum::<u64>()
    }

    fn set(&mut self, number: u8, place: Range<usize>, base: u64) {
        let new = Changed {
            number,
            length: place.len() as u32,
            start: base + place.start as u64,
        };
        match self.changed.iter_mut().find(|one| one.number == number) {
            Some(one) => *one = new,
            None => self.changed.push(new),
        }
    }

    /// Whether the octets of a section of the entry at `entry` are those of the record now.
    pub(crate) fn is_live(&self, entry: u64, number: u8, start: u64) -> bool {
        match self.changed.iter().find(|one| one.number == number) {
            Some(one) => one.start == start,
            None => self.entry == entry,
        }
    }

    /// Whether it begins with the entry at `entry`.
    pub(crate) fn begins(&self, entry: u64) -> bool {
        self.entry == entry
    }

    /// The record's sections in a segment's octets, by number. Sections without octets are left out.
    pub(crate) fn sections<'a>(&self, octets: &'a [u8]) -> Vec<(u8, &'a [u8])> {
        let mut found: Vec<(u8, &[u8])> = Vec::new();
        if self.length > 0 {
            let entry = Entry::parse(octets, self.entry as usize);
            for (number, place) in entry.iter().flat_map(|(entry, _)| entry.sections(octets)) {
                found.retain(|(other, _)| *other != number);
                if !self.changed.iter().any(|one| one.number == number) {
                    found.push((number, &octets[place]));
                }
            }
        }
        let changed = self.changed.iter().map(|one| {
            let start = one.start as usize;
            (one.number, &octets[start..start + one.length as usize])
        });
        found.extend(changed);
        found.retain(|(_, octets)| !octets.is_empty());
        found.sort_unstable_by_key(|(number, _)| *number);
        found
    }
}

/// All live records of a segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    records: HashMap<Key, Places, FixedState>,
    octets: u64,
}

impl Index {
    /// Applies an entry that is at `place` of `octets`, which begin at `base` of the segment.
    pub(crate) fn apply(&mut self, entry: &Entry, octets: &[u8], place: Range<usize>, base: u64) {
        let key = Key {
            kind: entry.kind,
            key: entry.key,
        };
        if entry.form == Form::Run {
            return;
        }
        if entry.form == Form::Removed {
            let old = self.records.remove(&key);
            self.octets -= old.map_or(0, |old| old.octets());
            return;
        }
        let record = self.records.entry(key).or_default();
        self.octets -= record.octets();
        if entry.form == Form::Whole || (record.length == 0 && record.changed.is_empty()) {
            record.entry = base + place.start as u64;
            record.length = place.len() as u32;
            record.changed.clear();
        } else {
            for (number, place) in entry.sections(octets) {
                record.set(number, place, base);
            }
        }
        self.octets += record.octets();
    }

    pub(crate) fn get(&self, key: Key) -> Option<&Places> {
        self.records.get(&key)
    }

    /// The keys of all records, in order.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.records.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    /// About how many octets of the segment are live.
    pub(crate) fn octets(&self) -> u64 {
        self.octets
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }
}
