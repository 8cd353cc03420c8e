//! A log that is full becomes a sorted segment on a thread of its own, so that records go on being written meanwhile.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::record::Entry;
use crate::runs;
use crate::segment::{Sealed, Segment};
use crate::store::{StoreError, at};

/// A full log.
#[derive(Debug)]
pub(crate) struct Full {
    pub(crate) key: (u64, u32),
    pub(crate) first_ms: u64,
    entries: Arc<Vec<Entry>>,
    log: PathBuf,
    segment: PathBuf,
    /// `None` after a failure.
    thread: Option<JoinHandle<Result<Sealed, StoreError>>>,
}

impl Full {
    /// Starts to sort a log.
    pub(crate) fn start(
        key: (u64, u32),
        (log, segment): (PathBuf, PathBuf),
        first_ms: u64,
        entries: Vec<Entry>,
    ) -> Self {
        let mut full = Self {
            key,
            first_ms,
            entries: Arc::new(entries),
            log,
            segment,
            thread: None,
        };
        let (entries, log) = (Arc::clone(&full.entries), full.log.clone());
        let segment = full.segment.clone();
        let builder = thread::Builder::new().name("nat-seal".to_owned());
        // Without a thread it is sorted when the next log is full.
        full.thread = builder.spawn(move || seal(&entries, &log, &segment)).ok();
        full
    }

    /// Whether [`Full::finish`] would wait.
    pub(crate) fn is_running(&self) -> bool {
        let thread = self.thread.as_ref();
        thread.is_some_and(|thread| !thread.is_finished())
    }

    /// Waits for the segment. After a failure, each call tries again.
    ///
    /// # Errors
    /// The segment cannot be written. The log is as it was.
    pub(crate) fn finish(&mut self) -> Result<Sealed, StoreError> {
        match self.thread.take() {
            Some(thread) => thread.join().unwrap_or_else(|_| {
                let error = io::Error::other("the thread that sorts a log panicked");
                Err(at(&self.log)(error))
            }),
            None => seal(&self.entries, &self.log, &self.segment),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The last record of a port that is not after a time.
    pub(crate) fn find(&self, external: Ipv4Addr, port: u16, at_ms: u64) -> Option<Entry> {
        last(&self.entries, external, port, at_ms)
    }
}

/// The last record of a port that is not after a time.
pub(crate) fn last(entries: &[Entry], external: Ipv4Addr, port: u16, at_ms: u64) -> Option<Entry> {
    let is_it = |one: &&Entry| one.at_ms <= at_ms && one.has(external, port);
    entries.iter().rev().find(is_it).copied()
}

/// Sorts a log's records and puts a segment in the place of the log. Nothing is lost if this fails or is cut off.
pub(crate) fn seal(entries: &[Entry], log: &Path, segment: &Path) -> Result<Sealed, StoreError> {
    let mut entries = entries.to_vec();
    let sealed = Segment::write(segment, &mut entries).map_err(at(segment))?;
    // Without runs, a search that has the log open reads it.
    let _ = fs::remove_file(runs::path(log));
    match fs::remove_file(log) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(log)(error)),
        _ => Ok(sealed),
    }
}
