//! The thread that writes, and what its owner calls.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use base::snapshot::Timeline;
use base::{Disk, Duration};

use crate::inbox::Inbox;
use crate::writer::Writer;
use crate::{Host, Limits, Log, Moment, OpenError, Opened, directory};

/// What a [`Journal`] keeps to.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is written is synced so long after its first unsynced byte at the latest.
    pub commit_interval: Duration,
    /// If nothing else is written for so long, a mark says that the process lives: an outage counts from the last write.
    pub mark_interval: Duration,
    /// The most bytes in memory that are not on the disk; more are refused.
    pub memory_octets_max: usize,
    /// Delay from a failure to the next attempt; each further one waits twice as long.
    pub retry: Duration,
    /// The longest delay between attempts.
    pub retry_max: Duration,
    /// How long the end waits for a disk that does not answer.
    pub close_wait: Duration,
    /// The log's own.
    pub limits: Limits,
    /// Called first on the thread, for example to drop privileges.
    pub begin: fn(),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            commit_interval: Duration::from_millis(100),
            mark_interval: Duration::from_secs(10),
            memory_octets_max: 32 << 20,
            retry: Duration::from_millis(100),
            retry_max: Duration::from_secs(10),
            close_wait: Duration::from_secs(10),
            limits: Limits::default(),
            begin: || {},
        }
    }
}

/// Why an entry was refused. The caller still has it, and may try again later. Each refusal is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// [`Options::memory_octets_max`] bytes are not on the disk: it is slow, full or broken.
    #[error("the disk does not keep up")]
    Behind,
    /// It has more than [`RECORD_OCTETS_MAX`](crate::RECORD_OCTETS_MAX) bytes or
    /// [`SECTIONS_MAX`](crate::SECTIONS_MAX) sections.
    #[error("the record is too long")]
    TooLong,
}

/// State and counters of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The numbers of the last entry, the last written one and the last synced one.
    pub last: u64,
    /// See [`Stats::last`].
    pub written: u64,
    /// See [`Stats::last`].
    pub synced: u64,
    /// Live records.
    pub records: u64,
    /// The length of the segment in bytes, and about how many of them are live.
    pub octets: u64,
    /// See [`Stats::octets`].
    pub live_octets: u64,
    /// Bytes in memory that are not on the disk.
    pub memory_octets: u64,
    /// Entries that the writer took.
    pub entries: u64,
    /// Compactions that ended well.
    pub compactions: u64,
    /// Entries refused because the disk fell behind.
    pub refused_behind: u64,
    /// Entries refused because they are too long.
    pub refused_length: u64,
    /// Failed attempts to write, to sync or to compact.
    pub failures: u64,
    /// The first failure since the last success.
    pub failure: Option<String>,
}

/// Records on disk, and the thread that writes them.
pub struct Journal {
    inbox: Arc<Inbox>,
    timeline: Timeline,
    close_wait: Duration,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").finish_non_exhaustive()
    }
}

impl Journal {
    /// Opens the journal in a directory, or creates it; reads all of it. See [`Log::open`] for `names`.
    ///
    /// # Errors
    /// Another process has the directory, others may read it, or as [`Log::open`].
    pub fn open(path: &Path, names: &[u8], options: Options) -> Result<(Self, Opened), OpenError> {
        let (disk, lock) = directory::take(path)?;
        let limits = options.limits.clone();
        let (log, opened) = Log::open(disk, Host::this(), limits, names, Moment::now())?;
        let journal = Self::start(log, options, lock).map_err(|error| OpenError::Disk {
            file: "a thread".to_owned(),
            error,
        })?;
        Ok((journal, opened))
    }

    /// Starts the thread of a log. It drops `lock` at its end.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start<D, L>(log: Log<D>, options: Options, lock: L) -> io::Result<Self>
    where
        D: Disk<File: Send> + Send + 'static,
        L: Send + 'static,
    {
        let inbox = Arc::new(Inbox::new(&log, &options));
        let timeline = log.timeline();
        let (close_wait, begin) = (options.close_wait, options.begin);
        let its_inbox = Arc::clone(&inbox);
        let heir = reactor::faults::heir();
        let thread = std::thread::Builder::new().name("state".to_owned());
        let thread = thread.spawn(move || {
            let _lock = lock;
            heir.take();
            begin();
            let mut writer = Writer::new(log, options, Moment::now().clock);
            its_inbox.run(&mut writer, Moment::now);
        })?;
        Ok(Self {
            inbox,
            timeline,
            close_wait,
            thread: Some(thread),
        })
    }

    /// Stores a record in place of an earlier one of its key. Sections without octets are left out. Returns the entry's
    /// number.
    ///
    /// # Errors
    /// Why it was refused.
    pub fn put(&self, kind: u8, key: u64, sections: &[(u8, &[u8])]) -> Result<u64, Refused> {
        let octets = sections.iter().map(|(_, octets)| octets.len()).sum();
        self.inbox
            .add(octets, |batch| batch.put(kind, key, sections))
    }

    /// Changes some sections of a record. A section without octets is removed.
    ///
    /// # Errors
    /// Why it was refused.
    pub fn change(&self, kind: u8, key: u64, sections: &[(u8, &[u8])]) -> Result<u64, Refused> {
        let octets = sections.iter().map(|(_, octets)| octets.len()).sum();
        self.inbox
            .add(octets, |batch| batch.change(kind, key, sections))
    }

    /// Removes a record.
    ///
    /// # Errors
    /// Why it was refused.
    pub fn remove(&self, kind: u8, key: u64) -> Result<u64, Refused> {
        self.inbox.add(0, |batch| {
            batch.remove(kind, key);
            true
        })
    }

    /// The number of the last entry that a kill of the process does not lose.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.inbox.written()
    }

    /// The number of the last entry that a power cut does not lose.
    #[must_use]
    pub fn synced(&self) -> u64 {
        self.inbox.synced()
    }

    /// Translates the process's clock to the journal's timeline.
    #[must_use]
    pub fn timeline(&self) -> Timeline {
        self.timeline
    }

    /// State and counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inbox.stats()
    }

    /// Waits until everything is on the disk; `false` if that takes longer than `wait`.
    pub fn flush(&self, wait: Duration) -> bool {
        self.inbox.flush(wait.into())
    }

    /// Writes and syncs the rest, and ends the thread, within [`Options::close_wait`].
    ///
    /// # Errors
    /// How many entries are lost, and why.
    pub fn close(mut self) -> io::Result<()> {
        self.end();
        let stats = self.stats();
        if stats.synced == stats.last {
            return Ok(());
        }
        let failure = stats.failure.as_deref();
        let failure = failure.unwrap_or("the disk does not answer");
        let left = stats.last - stats.synced;
        let text = format!("{left} changes of state are lost: {failure}");
        Err(io::Error::other(text))
    }

    fn end(&mut self) {
        if let Some(thread) = self.thread.take()
            && self.inbox.stop(self.close_wait.into())
        {
            // A panicked writer has left its entries unsynced, which the counters show.
            let _ = thread.join();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.end();
    }
}
