//! Stores records on disk until their receiver has acknowledged them: takes bytes, returns numbers. Start
//! reading at [`Ledger`].
//!
//! The owner's thread adds and acknowledges records; neither waits for the disk. The ledger's own thread
//! collects the entries of [`Options::commit_interval`] and commits them as one transaction with one `fsync`.
//!
//! ```text
//! let (mut ledger, recovered) = Ledger::open(path, Options::default())?;
//! let id = ledger.add(&record)?;                 // on its way to the disk
//! ledger.acknowledged(id);                       // need not come back after a restart
//! for (id, record) in ledger.waiting(after, 100)? { … }
//! ledger.close()?;                               // all that is left goes to the disk
//! ```
//!
//! SIGKILL may lose the records and acknowledgements of the last commit interval plus the duration of up to two
//! commits before them ([`Stats::lateness_longest`] is the longest observed wait). A power cut loses no more,
//! as long as the disk honours its flushes. If an acknowledgement is lost, its record reappears, and sending it
//! again creates a duplicate.
//!
//! Besides records, the file holds drafts: records that may become due by a crash, such as the end of an account that is
//! still open. A draft has a key of the owner's, and a later draft of the same key replaces it. After a restart, the owner
//! reads the drafts ([`Ledger::drafts`]) and adds them as records.
//!
//! The store is a redb file of mode 0600 with two tables; a second process is refused. A damaged file is moved
//! aside and reported. Left out: encryption, multiple writers, records longer than 64 KiB.
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

/// The longest record, in bytes.
pub const RECORD_OCTETS_MAX: usize = 65_535;

/// Identifies a record. Later records have larger numbers, even across restarts as long as any record is
/// waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(pub u64);

/// The limits of a ledger.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Additions are committed together after this interval.
    pub commit_interval: Duration,
    /// Or as soon as there are this many records and acknowledgements.
    pub commit_records: usize,
    /// The most waiting records, on disk and in memory; further ones are refused.
    pub records_max: u64,
    /// The most bytes of waiting records, likewise.
    pub octets_max: u64,
    /// The most bytes in memory of records not yet on disk, which may be slow or full; likewise.
    pub memory_octets_max: u64,
    /// Called first on the writer's thread, for example to drop privileges.
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

/// What was found when opening the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Waiting records.
    pub records: u64,
    /// Their size in bytes.
    pub octets: u64,
    /// Drafts.
    pub drafts: u64,
    /// The new path of a damaged file and what was wrong with it; its records are lost to this ledger.
    pub damaged: Option<(PathBuf, String)>,
    /// Whether the file was damaged and has been repaired: records of its last commits may be missing.
    pub repaired: bool,
}

/// Why a record was refused. Each refusal is counted; the caller still has the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The limit [`Options::records_max`] or [`Options::octets_max`] is reached.
    #[error("as many records wait as may wait")]
    Full,
    /// [`Options::memory_octets_max`] bytes are not yet on disk: the disk is slow, full or broken.
    #[error("the disk does not keep up")]
    Behind,
    /// The record is longer than [`RECORD_OCTETS_MAX`].
    #[error("the record is too long")]
    TooLong,
}

/// State and counters of a ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records on disk, including those whose acknowledgement is not yet on disk.
    pub stored: u64,
    /// Their size in bytes.
    pub stored_octets: u64,
    /// Drafts on disk.
    pub drafts: u64,
    /// Records not yet on disk.
    pub pending: u64,
    /// Their size in bytes.
    pub pending_octets: u64,
    /// All records up to this one are on disk, or acknowledged.
    pub committed: RecordId,
    /// Commits since the start.
    pub commits: u64,
    /// Duration of the last commit.
    pub commit_last: Duration,
    /// Duration of the longest commit.
    pub commit_longest: Duration,
    /// The longest time from adding or acknowledging to the end of the commit.
    pub lateness_longest: Duration,
    /// Records refused because a limit was reached.
    pub refused_full: u64,
    /// Records refused because the disk fell behind.
    pub refused_behind: u64,
    /// Records refused because they are too long.
    pub refused_length: u64,
    /// Failed commits; each is retried.
    pub failures: u64,
    /// Why the last commit failed; cleared by a success.
    pub failure: Option<String>,
}

/// Records on disk, and the thread that writes them.
pub struct Ledger {
    shared: Arc<Shared>,
    store: Arc<Store>,
    writer: Option<JoinHandle<()>>,
}

impl Ledger {
    /// Opens or creates the file; its directory must exist. Reads the whole file once to verify it.
    ///
    /// # Errors
    /// The directory is missing, another process uses the file, it belongs to another program or version, or it
    /// cannot be read or written. A damaged file is not an error: see [`Recovered::damaged`].
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
            drafts: totals.drafts,
            ..Recovered::default()
        };
        Ok((ledger, recovered))
    }

    /// Hands a record to the writer. Copies it, and waits at most for the writer to take the previous batch.
    ///
    /// # Errors
    /// Why it was refused.
    pub fn add(&mut self, record: &[u8]) -> Result<RecordId, Refused> {
        self.shared.add(record)
    }

    /// Marks a record as acknowledged, so that it is removed. Unknown and already acknowledged records are
    /// ignored.
    pub fn acknowledged(&mut self, id: RecordId) {
        self.shared.acknowledged(id);
    }

    /// Hands a draft to the writer, in place of an earlier one with the same key.
    ///
    /// # Errors
    /// Why it was refused. The earlier draft stays then.
    pub fn keep(&mut self, key: u128, draft: &[u8]) -> Result<(), Refused> {
        self.shared.keep(key, draft)
    }

    /// Removes a draft. Its removal is never on disk before records that were added earlier.
    pub fn discard(&mut self, key: u128) {
        self.shared.discard(key);
    }

    /// Up to `max` drafts that are on disk, with keys from `from` on, in the order of their keys.
    ///
    /// # Errors
    /// As [`Ledger::waiting`].
    pub fn drafts(&mut self, from: u128, max: usize) -> io::Result<Vec<(u128, Vec<u8>)>> {
        self.store.drafts(from, max)
    }

    /// Up to `max` records after `after` that are on disk and not acknowledged, oldest first. Reads from the
    /// disk if they are not cached; does not wait for the writer.
    ///
    /// # Errors
    /// The file cannot be read, or is about to be reopened after a failure; retrying may help.
    pub fn waiting(&mut self, after: RecordId, max: usize) -> io::Result<Vec<(RecordId, Vec<u8>)>> {
        // Read first: a record committed from here on is then missing from the result rather than duplicated.
        let acknowledged = self.shared.removals();
        self.store.read(after, max, &acknowledged)
    }

    /// State and counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Commits now, and waits until everything added is on disk; `false` if that takes longer than `wait`.
    pub fn flush(&mut self, wait: Duration) -> bool {
        self.shared.flush(wait)
    }

    /// Commits the rest and ends the thread.
    ///
    /// # Errors
    /// Why the last commit failed, and how many records that lost.
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
            // A panicked writer has left its batch uncommitted, which the counters show.
            let _ = writer.join();
        }
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.end();
    }
}
