//! The live records of a segment that was read.

use crate::index::{Index, Key, Places};

/// Records as the last process left them.
#[derive(Clone, Debug, Default)]
pub struct Records {
    octets: Vec<u8>,
    index: Index,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its kind, which the caller gave it.
    pub kind: u8,
    /// Its key among those of its kind.
    pub key: u64,
    /// Its sections by number. None of them is empty.
    pub sections: Vec<(u8, &'a [u8])>,
}

impl Records {
    pub(crate) fn new(octets: Vec<u8>, index: Index) -> Self {
        Self { octets, index }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All records, by kind and key.
    pub fn iter(&self) -> impl Iterator<Item = Record<'_>> {
        let keys = self.index.keys().into_iter();
        keys.filter_map(|key| Some(self.record(key, self.index.get(key)?)))
    }

    /// The record of a key.
    #[must_use]
    pub fn get(&self, kind: u8, key: u64) -> Option<Record<'_>> {
        let key = Key { kind, key };
        Some(self.record(key, self.index.get(key)?))
    }

    fn record(&self, key: Key, places: &Places) -> Record<'_> {
        Record {
            kind: key.kind,
            key: key.key,
            sections: places.sections(&self.octets),
        }
    }
}
