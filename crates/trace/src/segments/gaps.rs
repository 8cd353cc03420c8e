//! Data below the acknowledged edge that the capture lacks.

use super::GAPS_MAX;
use crate::frozen::Codec;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default)]
pub(super) struct Gaps {
    /// No data below this was seen: the gap that every stream begins with.
    floor: u64,
    /// The other gaps: first byte and end.
    inner: BTreeMap<u64, u64>,
    forgotten: u64,
    /// Bytes in the forgotten ones.
    forgotten_bytes: u64,
}

impl Gaps {
    /// Bytes at or above `first` that the capture lacks, except those below the floor.
    pub(super) fn bytes_above(&self, first: u64) -> u64 {
        let inner = self.inner.iter();
        let bytes = inner.map(|(start, end)| end.saturating_sub(first.max(*start)));
        self.forgotten_bytes.saturating_add(bytes.sum())
    }

    fn pop_first(&mut self) {
        if let Some((first, end)) = self.inner.pop_first() {
            self.forgotten += 1;
            self.forgotten_bytes = self.forgotten_bytes.saturating_add(end - first);
        }
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Number of gaps, without the one below the floor.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.inner.len()
    }

    /// Forgets the lower half of them, as if their data had been seen.
    pub(super) fn forget(&mut self) {
        for _ in 0..self.inner.len() / 2 {
            self.pop_first();
        }
    }

    /// Removes all gaps.
    pub(super) fn clear(&mut self) {
        (self.floor, self.forgotten, self.forgotten_bytes) = (0, 0, 0);
        if !self.inner.is_empty() {
            self.inner.clear();
        }
    }

    /// Adds a gap above all others.
    pub(super) fn add(&mut self, first: u64, end: u64) {
        if first == 0 {
            self.floor = end;
            return;
        }
        self.insert(first, end);
    }

    #[cold]
    fn insert(&mut self, first: u64, end: u64) {
        self.inner.insert(first, end);
        if self.inner.len() > GAPS_MAX {
            self.pop_first();
        }
    }

    /// Removes the data from `first` to `end`, which has been seen now. Returns how many bytes of it are new, and the
    /// first of these.
    pub(super) fn fill(&mut self, first: u64, end: u64) -> (u32, u64) {
        let (mut new, mut lowest) = (0, u64::MAX);
        if first < self.floor {
            let to = end.min(self.floor);
            new += to - first;
            lowest = first;
            if to < self.floor {
                let floor = self.floor;
                self.insert(to, floor);
            }
            self.floor = first;
        }
        let start = self
            .inner
            .range(..=first)
            .next_back()
            .map_or(first, |(start, _)| *start);
        while let Some((&gap, &gap_end)) = self
            .inner
            .range(start..end)
            .find(|(_, gap_end)| **gap_end > first)
        {
            let (from, to) = (gap.max(first), gap_end.min(end));
            new += to - from;
            lowest = lowest.min(from);
            self.inner.remove(&gap);
            if gap < from {
                self.inner.insert(gap, from);
            }
            if to < gap_end {
                self.inner.insert(to, gap_end);
                break;
            }
        }
        (new as u32, lowest)
    }

    /// Whether nothing from `first` to `end` is in a gap.
    pub(super) fn is_clear(&self, first: u64, end: u64) -> bool {
        if first >= end {
            return true;
        }
        first >= self.floor
            && self
                .inner
                .range(..end)
                .next_back()
                .is_none_or(|(_, gap_end)| *gap_end <= first)
    }

    #[inline(always)]
    pub(super) fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.offset(&mut self.floor);
        codec.unsigned(&mut self.forgotten);
        if self.forgotten > 0 {
            codec.unsigned(&mut self.forgotten_bytes);
        }
        let mut count = self.inner.len() as u64;
        codec.unsigned(&mut count);
        if C::READS {
            self.inner.clear();
            if count > GAPS_MAX as u64 {
                codec.fail();
                return;
            }
            for _ in 0..count {
                let (mut first, mut end) = (0, 0);
                codec.offset(&mut first);
                codec.offset(&mut end);
                if codec.is_over() {
                    break;
                }
                self.inner.insert(first, end);
            }
            return;
        }
        for (first, end) in &self.inner {
            codec.room();
            codec.offset(&mut first.clone());
            codec.offset(&mut end.clone());
        }
    }
}
