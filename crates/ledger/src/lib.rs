//! Records that wait on disk until somebody has acknowledged them: octets in, numbers out.
//!
//! The owner's thread adds and acknowledges; neither waits for the disk. A thread of the ledger's own takes what came
//! within [`Options::commit_interval`] and commits it as one transaction with one `fsync`.
//!
//! ```text
//! let (mut ledger, recovered) = Ledger::open(path, Options::default())?;
//! let id = ledger.add(&record)?;                 // on its way to the disk
//! ledger.acknowledged(id);                       // need not come back after a restart
//! for (id, record) in ledger.waiting(after, 100)? { … }
//! ledger.close()?;                               // all that is left goes to the disk
//! ```
//!
//! What the end of the process by SIGKILL may lose: records added, and acknowledgements given, within the last commit
//! interval and the time of the two commits that may stand before them ([`Stats::lateness_longest`] is the longest that
//! any has waited). A power cut loses no more, as far as the disk keeps what it was told to keep. An acknowledgement that
//! is lost brings its record back: who sends it again sends a duplicate.
//!
//! The store is a redb file of mode 0600 with one table; a second process is refused. A file that is damaged is moved
//! aside and told. Left out: encryption, several writers, records longer than 64 KiB.
#![forbid(unsafe_code)]

mod inbox;
mod store;
#[cfg(test)]
mod tests;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use inbox::Shared;
use store::{Opener, Store};

/// Octets of a record.
pub const RECORD_OCTETS_MAX: usize = 65_535;

/// Names a record: later ones have larger numbers, also those of later runs while any waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(pub u64);

/// How much may wait, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What is added is committed after so long, together.
    pub commit_interval: Duration,
    /// Or as soon as so many records and acknowledgements are there.
    pub commit_records: usize,
    /// Records that wait, on disk and on their way to it; what is added beyond is refused.
    pub records_max: u64,
    /// Octets of the records that wait, likewise.
    pub octets_max: u64,
    /// Octets in memory of records on their way to the disk, which may be slow or full; likewise.
    pub memory_octets_max: u64,
    /// What the writer's thread does first: gives up what its process does, for example.
    pub begin: fn(),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            commit_interval: Duration::from_millis(50),
            commit_records: 8_192,
            records_max: 1_000_000,
            octets_max: 1 << 30,
            memory_octets_max: 32 << 20,
            begin: || {},
        }
    }
}

/// What was found in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Records that wait.
    pub records: u64,
    /// Their octets.
    pub octets: u64,
    /// A damaged file, where it is now, and what was wrong with it; its records are not among those that wait.
    pub damaged: Option<(PathBuf, String)>,
    /// Whether the file was damaged and could be repaired: records of its last commits may be missing.
    pub repaired: bool,
}

/// Why a record is not kept. Each is counted; the caller still has the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// [`Options::records_max`] or [`Options::octets_max`] wait.
    #[error("as many records wait as may wait")]
    Full,
    /// [`Options::memory_octets_max`] are on their way: the disk is slow, full or broken.
    #[error("the disk does not keep up")]
    Behind,
    /// The record has more than [`RECORD_OCTETS_MAX`] octets.
    #[error("the record is too long")]
    TooLong,
}

/// What a ledger did and holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records on disk, those included whose acknowledgement is not there yet.
    pub stored: u64,
    /// Their octets.
    pub stored_octets: u64,
    /// Records on their way to the disk.
    pub pending: u64,
    /// Their octets.
    pub pending_octets: u64,
    /// All records up to this one are on disk, or acknowledged.
    pub committed: RecordId,
    /// Commits since the start.
    pub commits: u64,
    /// How long the last took.
    pub commit_last: Duration,
    /// How long the longest took.
    pub commit_longest: Duration,
    /// The longest time from adding or acknowledging to the end of the commit.
    pub lateness_longest: Duration,
    /// Records refused because too many wait.
    pub refused_full: u64,
    /// Records refused because the disk did not keep up.
    pub refused_behind: u64,
    /// Records refused because they are too long.
    pub refused_length: u64,
    /// Commits that failed; each is tried again.
    pub failures: u64,
    /// Why the last failed, until one succeeds.
    pub failure: Option<String>,
}

/// Records on disk, and the thread that writes them.
pub struct Ledger {
    shared: Arc<Shared>,
    store: Arc<Store>,
    writer: Option<JoinHandle<()>>,
}

impl Ledger {
    /// Opens the file, or makes it; its directory must be there. Reads the whole file once to see that it is whole.
    ///
    /// # Errors
    /// The directory is missing, another process has the file, it is another program's or version's, or it cannot be
    /// read or written. A damaged file is none: see [`Recovered::damaged`].
    pub fn open(path: &Path, options: Options) -> io::Result<(Self, Recovered)> {
        let settled = store::settle(path)?;
        let file = path.to_owned();
        let (ledger, mut recovered) = Self::start(Box::new(move || store::open(&file)), options)?;
        recovered.damaged = settled.damaged;
        recovered.repaired = settled.repaired;
        Ok((ledger, recovered))
    }

    fn start(opener: Opener, options: Options) -> io::Result<(Self, Recovered)> {
        let (store, totals) = Store::new(opener)?;
        let store = Arc::new(store);
        let shared = Arc::new(Shared::new(options, totals));
        let (its_shared, its_store) = (Arc::clone(&shared), Arc::clone(&store));
        let begin = options.begin;
        let writer = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || {
                begin();
                writer::run(&its_shared, &its_store);
            })?;
        let ledger = Self {
            shared,
            store,
            writer: Some(writer),
        };
        let recovered = Recovered {
            records: totals.records,
            octets: totals.octets,
            ..Recovered::default()
        };
        Ok((ledger, recovered))
    }

    /// Gives a record to the writer. Copies it, and waits for nothing but for the writer to pick up what was there.
    ///
    /// # Errors
    /// Why it is not kept.
    pub fn add(&mut self, record: &[u8]) -> Result<RecordId, Refused> {
        self.shared.add(record)
    }

    /// The record need not come back. One that is not there, or was acknowledged before, is let pass.
    pub fn acknowledged(&mut self, id: RecordId) {
        self.shared.acknowledged(id);
    }

    /// Up to `max` records behind `after` that are on disk and not acknowledged, oldest first. Reads from the disk, if
    /// its cache does not have them; does not wait for the writer.
    ///
    /// # Errors
    /// The file cannot be read, or is about to be opened anew after a failure; asking again may help.
    pub fn waiting(&mut self, after: RecordId, max: usize) -> io::Result<Vec<(RecordId, Vec<u8>)>> {
        // Asked first: what is committed from here on is missing in what is read, not doubled.
        let acknowledged = self.shared.removals();
        self.store.read(after, max, &acknowledged)
    }

    /// What it did and holds.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Commits now, and waits until all that was added is on disk or the time is over; `false` if it is not there then.
    pub fn flush(&mut self, wait: Duration) -> bool {
        self.shared.flush(wait)
    }

    /// Commits what is left and ends.
    ///
    /// # Errors
    /// Why the last commit failed, and how many records were lost by that.
    pub fn close(mut self) -> io::Result<()> {
        self.end();
        let stats = self.stats();
        match stats.failure {
            Some(failure) if stats.pending > 0 => Err(io::Error::other(format!(
                "{} records are lost: {failure}",
                stats.pending
            ))),
            _ => Ok(()),
        }
    }

    fn end(&mut self) {
        self.shared.stop();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has left its batch uncommitted, which the counts say.
            let _ = writer.join();
        }
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.end();
    }
}
