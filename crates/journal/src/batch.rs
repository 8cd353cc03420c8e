//! Entries on their way to the disk.

use crate::format::{self, Form};

/// The longest record, in bytes.
pub const RECORD_OCTETS_MAX: usize = 65_535;
/// The most sections of a record.
pub const SECTIONS_MAX: usize = 255;
/// The largest empty batch whose memory is kept, in bytes.
const KEEP: usize = 4 << 20;

/// Entries that go to the disk together.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    octets: Vec<u8>,
    lengths: Vec<u32>,
}

impl Batch {
    /// Adds a record in place of an earlier one of its key. Sections without octets are left out.
    ///
    /// Returns whether it did: not if the record is longer than [`RECORD_OCTETS_MAX`] or has more than
    /// [`SECTIONS_MAX`] sections.
    #[must_use]
    pub fn put(&mut self, kind: u8, key: u64, sections: &[(u8, &[u8])]) -> bool {
        let sections = sections.iter().copied();
        let sections = sections.filter(|(_, octets)| !octets.is_empty());
        self.add(kind, key, Form::Whole, sections)
    }

    /// Changes some sections of a record, as [`Batch::put`]. A section without octets is removed. Without an earlier
    /// record, these sections become one.
    #[must_use]
    pub fn change(&mut self, kind: u8, key: u64, sections: &[(u8, &[u8])]) -> bool {
        self.add(kind, key, Form::Changed, sections.iter().copied())
    }

    /// Removes a record.
    pub fn remove(&mut self, kind: u8, key: u64) {
        let _ = self.add(kind, key, Form::Removed, core::iter::empty());
    }

    fn add<'a>(
        &mut self,
        kind: u8,
        key: u64,
        form: Form,
        sections: impl Iterator<Item = (u8, &'a [u8])> + Clone,
    ) -> bool {
        let (count, octets) = sections.clone().fold((0, 0), |(count, sum), (_, octets)| {
            (count + 1, sum + octets.len())
        });
        if count > SECTIONS_MAX || octets > RECORD_OCTETS_MAX {
            return false;
        }
        let start = self.octets.len();
        format::emit_entry(kind, key, form, sections, &mut self.octets);
        self.lengths.push((self.octets.len() - start) as u32);
        true
    }

    /// Whether there are no entries in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The number of its entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    pub(crate) fn octets(&self) -> &[u8] {
        &self.octets
    }

    pub(crate) fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    pub(crate) fn clear(&mut self) {
        self.octets.clear();
        self.octets.shrink_to(KEEP);
        self.lengths.clear();
        self.lengths.shrink_to(KEEP / 16);
    }
}
