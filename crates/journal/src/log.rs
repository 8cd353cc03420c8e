//! The journal without a thread: each call does its part on a [`Disk`] and returns.

mod compact;
mod open;

use std::io;

use base::{Disk, Duration, Instant, snapshot::Timeline};

use crate::batch::Batch;
use crate::file::Writing;
use crate::format::ENTRIES_MAX;
use crate::index::Index;
use crate::{Host, Moment};
use compact::Copying;
pub use open::{OpenError, Opened};

/// What a [`Log`] keeps to.
#[derive(Clone, Debug)]
pub struct Limits {
    /// A segment above so many bytes is compacted when less than half of it is live.
    pub compact_octets: u64,
    /// Compaction reads about so many bytes a step.
    pub step_octets: usize,
    /// An outage across boots counts no longer than this; see [`Opened::is_long`].
    pub age_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            compact_octets: 64 << 20,
            step_octets: 1 << 20,
            age_max: Duration::from_secs(300),
        }
    }
}

/// A directory of segments, of which the newest one has the records.
#[derive(Debug)]
pub struct Log<D: Disk> {
    disk: D,
    host: Host,
    limits: Limits,
    /// What the caller wants each run to begin with.
    names: Vec<u8>,
    shift: i128,
    main: Writing<D::File>,
    index: Index,
    /// The number of the next entry.
    next: u64,
    /// All entries below were written to the file.
    written: u64,
    /// All entries below are on the disk.
    synced: u64,
    copying: Option<Copying<D::File>>,
    /// A compaction that failed is tried again above this length.
    compact_above: u64,
    compactions: u64,
}

impl<D: Disk> Log<D> {
    /// The number of the last entry that a kill of the process does not lose.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written - 1
    }

    /// The number of the last entry that a power cut does not lose.
    #[must_use]
    pub fn synced(&self) -> u64 {
        self.synced - 1
    }

    /// The number of the last entry.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.next - 1
    }

    /// Whether all entries are on the disk.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.synced == self.next && self.main.is_synced()
    }

    /// The bytes of entries that are in memory because they are not on the disk.
    #[must_use]
    pub fn held(&self) -> usize {
        let copying = self.copying.as_ref().map_or(0, Copying::held);
        self.main.held() + copying
    }

    /// The length of the newest segment, in bytes.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.main.end()
    }

    /// About how many bytes of it are live.
    #[must_use]
    pub fn live_octets(&self) -> u64 {
        self.index.octets()
    }

    /// The number of live records.
    #[must_use]
    pub fn records(&self) -> usize {
        self.index.len()
    }

    /// How many compactions ended well.
    #[must_use]
    pub fn compactions(&self) -> u64 {
        self.compactions
    }

    /// Translates the process's clock to the journal's timeline.
    #[must_use]
    pub fn timeline(&self) -> Timeline {
        Timeline::new(self.shift)
    }

    /// Adds the entries of a batch in memory, and empties it.
    pub fn add(&mut self, batch: &mut Batch, now: Moment) {
        let (mut octets, mut lengths) = (batch.octets(), batch.lengths());
        while !lengths.is_empty() {
            let (mut end, mut count) = (0, 0);
            for length in lengths {
                if end + *length as usize > ENTRIES_MAX {
                    break;
                }
                end += *length as usize;
                count += 1;
            }
            let (entries, rest) = octets.split_at(end);
            self.add_group(entries, count, now);
            octets = rest;
            lengths = &lengths[count as usize..];
        }
        batch.clear();
    }

    /// Adds a group without entries, which says that the process lives.
    pub fn add_mark(&mut self, now: Moment) {
        self.add_group(&[], 0, now);
    }

    fn add_group(&mut self, entries: &[u8], count: u32, now: Moment) {
        let first = self.next;
        let timeline = self.timeline_ns(now.clock);
        let files = core::iter::once((&mut self.main, &mut self.index));
        let copying = self.copying.as_mut().map(Copying::both);
        for (file, index) in files.chain(copying) {
            let base = file.push(first, count, timeline, now.wall_ns, entries);
            crate::segment::each(entries, 0..entries.len(), |entry, place| {
                index.apply(entry, entries, place, base);
            });
        }
        self.next += u64::from(count);
    }

    fn timeline_ns(&self, clock: Instant) -> u64 {
        let ns = i128::from(clock.as_nanos()).saturating_add(self.shift);
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }

    /// Writes what is not written: a kill of the process does not lose it then.
    ///
    /// # Errors
    /// The disk's error. What was not written stays in memory.
    pub fn write(&mut self) -> io::Result<()> {
        self.main.write(&mut self.disk)?;
        if let Some(copying) = &mut self.copying
            && let Err(error) = copying.write(&mut self.disk)
        {
            self.give_up_copying(error)?;
        }
        self.written = self.next;
        Ok(())
    }

    /// Writes all, and waits until it is on the disk: a power cut does not lose it then.
    ///
    /// # Errors
    /// The disk's error. What is not known to be on the disk stays in memory, and is written again.
    pub fn sync(&mut self) -> io::Result<()> {
        self.write()?;
        self.main.sync(&mut self.disk)?;
        if let Some(copying) = &mut self.copying {
            copying.sync(&mut self.disk)?;
        }
        self.synced = self.next;
        Ok(())
    }
}
