//! Stores records on disk until their receiver has acknowledged them: takes bytes, returns numbers. Start
//! reading at [`Ledger`].
//!
//! The owner's thread adds and acknowledges records; neither waits for the disk. A thread of the ledger
//! collects the entries of [`Options::commit_interval`] and commits them as one transaction with one `fsync`.
//! Another one reads records back ([`Ledger::request`]).
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
mod reader;
mod store;
#[cfg(test)]
mod tests;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use inbox::Shared;
pub use reader::Answer;
use reader::Reading;
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
    /// Delay from a failed commit to the next attempt; each further one waits twice as long.
    pub retry: Duration,
    /// The longest delay between attempts.
    pub retry_max: Duration,
    /// How long the end of the ledger waits for a disk that does not answer.
    pub close_wait: Duration,
    /// [`Ledger::request`] reads at once, on the caller's thread, so that a simulation does the same each time.
    pub read_at_once: bool,
    /// Called first on each thread, for example to drop privileges.
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
            retry: Duration::from_millis(100),
            retry_max: Duration::from_secs(10),
            close_wait: Duration::from_secs(10),
            read_at_once: false,
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

/// What a thread of a ledger does.
type Work = Box<dyn FnOnce(&Shared, &Store) + Send>;

/// Records on disk, and the threads that write and read them.
pub struct Ledger {
    shared: Arc<Shared>,
    store: Arc<Store>,
    close_wait: Duration,
    reading: Option<Reading>,
    read_at_once: bool,
    /// The answer to a request that was read at once.
    read: Option<Answer>,
    threads: Vec<JoinHandle<()>>,
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
        let spawn = |name: &str, work: Work| {
            let (its_shared, its_store) = (Arc::clone(&shared), Arc::clone(&store));
            let begin = options.begin;
            let heir = reactor::faults::heir();
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread.spawn(move || {
                heir.take();
                begin();
                work(&its_shared, &its_store);
            })
        };
        let (requests, its_requests) = channel();
        let (its_answers, answers) = channel();
        let threads = vec![
            spawn("ledger", Box::new(writer::run))?,
            spawn(
                "ledger reads",
                Box::new(move |shared, store| {
                    reader::run(shared, store, &its_requests, &its_answers);
                }),
            )?,
        ];
        let ledger = Self {
            shared,
            store,
            close_wait: options.close_wait,
            reading: Some(Reading::new(requests, answers)),
            read_at_once: options.read_at_once,
            read: None,
            threads,
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

    /// Up to `max` records after `after` that are on disk and not acknowledged, oldest first. Waits for the disk if
    /// they are not cached, or if a write hangs.
    ///
    /// # Errors
    /// The file cannot be read, or is about to be reopened after a failure; retrying may help.
    pub fn waiting(&mut self, after: RecordId, max: usize) -> io::Result<Vec<(RecordId, Vec<u8>)>> {
        reader::read(&self.shared, &self.store, after, max)
    }

    /// Asks for what [`Ledger::waiting`] would return; [`Ledger::answer`] returns it later. Ignored while an earlier
    /// request is not answered.
    pub fn request(&mut self, after: RecordId, max: usize) {
        if self.read_at_once {
            let read = || reader::read(&self.shared, &self.store, after, max);
            self.read.get_or_insert_with(read);
        } else if let Some(reading) = &mut self.reading {
            reading.ask((after, max));
        }
    }

    /// The result of the last request; `None` if there is none yet. A record that was acknowledged since the request
    /// may be among the results.
    ///
    /// # Errors
    /// As [`Ledger::waiting`].
    pub fn answer(&mut self) -> Option<Answer> {
        let read = self.read.take();
        read.or_else(|| self.reading.as_mut().and_then(Reading::answer))
    }

    /// State and counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Why the last commit failed; `None` if it did not. Costs little, unlike [`Ledger::stats`].
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.shared.failure()
    }

    /// Commits now, and waits until everything added is on disk; `false` if that takes longer than `wait`.
    pub fn flush(&mut self, wait: Duration) -> bool {
        self.shared.flush(wait)
    }

    /// Commits the rest and ends the thread, within [`Options::close_wait`].
    ///
    /// # Errors
    /// Why the last commit failed, and how many records, acknowledgements and drafts that lost. A record whose
    /// acknowledgement is lost reappears at the next start.
    pub fn close(mut self) -> io::Result<()> {
        self.end();
        let left = self.shared.left();
        let left: Vec<String> = left
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if left.is_empty() {
            return Ok(());
        }
        let failure = self.stats().failure;
        let failure = failure.as_deref().unwrap_or("the disk does not answer");
        let left = left.join(", ");
        Err(io::Error::other(format!("{left} are lost: {failure}")))
    }

    fn end(&mut self) {
        // The reader ends with its requests.
        self.reading = None;
        if !self.threads.is_empty() && self.shared.stop(self.close_wait) {
            for thread in self.threads.drain(..) {
                // A panicked writer has left its batch uncommitted, which the counters show.
                let _ = thread.join();
            }
        }
        self.threads.clear();
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.end();
    }
}
