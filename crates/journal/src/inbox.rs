//! The state shared by the owner's thread and the writer: a growing batch, and the counters.
//!
//! The lock is held only to copy an entry in, or to swap the batch for an empty one; never during a call on the disk.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time;

use base::{Disk, Instant};

use crate::writer::Writer;
use crate::{Batch, Log, Moment, Options, Refused, Stats};

/// Memory of an entry beyond its own bytes.
const OVERHEAD: usize = 4;

pub(crate) struct Inbox {
    inner: Mutex<Inner>,
    /// All entries up to these were written, and are on the disk.
    written: AtomicU64,
    synced: AtomicU64,
    /// Notified when there is work for the writer.
    work: Condvar,
    /// Notified after each of its turns.
    done: Condvar,
    memory_octets_max: usize,
}

struct Inner {
    batch: Batch,
    /// The number of the last entry.
    last: u64,
    /// Bytes that the writer has in memory.
    held: usize,
    /// Everything is to be on the disk as soon as it can be.
    hurry: bool,
    stop: bool,
    has_ended: bool,
    stats: Stats,
}

/// Notes the end of the writer, even after a panic.
struct Farewell<'a>(&'a Inbox);

impl Drop for Farewell<'_> {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.done.notify_all();
    }
}

impl Inbox {
    pub(crate) fn new<D: Disk>(log: &Log<D>, options: &Options) -> Self {
        Self {
            inner: Mutex::new(Inner {
                batch: Batch::default(),
                last: log.last(),
                held: 0,
                hurry: false,
                stop: false,
                has_ended: false,
                stats: Stats::default(),
            }),
            written: AtomicU64::new(log.written()),
            synced: AtomicU64::new(log.synced()),
            work: Condvar::new(),
            done: Condvar::new(),
            memory_octets_max: options.memory_octets_max,
        }
    }

    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    pub(crate) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Adds an entry of about so many bytes. Returns its number.
    pub(crate) fn add(
        &self,
        octets: usize,
        add: impl FnOnce(&mut Batch) -> bool,
    ) -> Result<u64, Refused> {
        let mut inner = self.lock();
        let memory = inner.batch.octets().len() + inner.batch.len() * OVERHEAD + inner.held;
        if memory + octets > self.memory_octets_max {
            inner.stats.refused_behind += 1;
            return Err(Refused::Behind);
        }
        let is_first = inner.batch.is_empty();
        if !add(&mut inner.batch) {
            inner.stats.refused_length += 1;
            return Err(Refused::TooLong);
        }
        inner.last += 1;
        let last = inner.last;
        drop(inner);
        if is_first {
            self.work.notify_one();
        }
        Ok(last)
    }

    pub(crate) fn stats(&self) -> Stats {
        let inner = self.lock();
        Stats {
            memory_octets: (inner.batch.octets().len() + inner.held) as u64,
            last: inner.last,
            written: self.written(),
            synced: self.synced(),
            ..inner.stats.clone()
        }
    }

    /// Waits until all entries are on the disk; `false` if that takes longer than `wait`.
    pub(crate) fn flush(&self, wait: time::Duration) -> bool {
        let mut inner = self.lock();
        let last = inner.last;
        inner.hurry = true;
        self.work.notify_one();
        let until = time::Instant::now() + wait;
        while self.synced() < last {
            let left = until.saturating_duration_since(time::Instant::now());
            if left.is_zero() || inner.has_ended {
                return false;
            }
            inner = wait_on(&self.done, inner, left);
        }
        true
    }

    /// Asks the writer to end; `false` if that takes longer than `wait`.
    pub(crate) fn stop(&self, wait: time::Duration) -> bool {
        let mut inner = self.lock();
        inner.stop = true;
        self.work.notify_one();
        let until = time::Instant::now() + wait;
        while !inner.has_ended {
            let left = until.saturating_duration_since(time::Instant::now());
            if left.is_zero() {
                return false;
            }
            inner = wait_on(&self.done, inner, left);
        }
        true
    }

    /// The writer's thread, until [`Inbox::stop`].
    pub(crate) fn run<D: Disk>(&self, writer: &mut Writer<D>, now: fn() -> Moment) {
        let _farewell = Farewell(self);
        let mut batch = Batch::default();
        loop {
            let (hurry, stop) = self.take(&mut batch, writer.due(), now);
            let count = batch.len() as u64;
            let done = writer.turn(&mut batch, now(), hurry || stop);
            self.report(writer, count, done);
            if stop {
                return;
            }
        }
    }

    /// Waits for entries, or until `due`. Swaps the batch for `empty`.
    fn take(&self, empty: &mut Batch, due: Instant, now: fn() -> Moment) -> (bool, bool) {
        let mut inner = self.lock();
        while inner.batch.is_empty() && !inner.hurry && !inner.stop {
            let left = due.since(now().clock);
            if left == base::Duration::ZERO {
                break;
            }
            inner = wait_on(&self.work, inner, left.into());
        }
        core::mem::swap(&mut inner.batch, empty);
        inner.held += empty.octets().len();
        (core::mem::take(&mut inner.hurry), inner.stop)
    }

    fn report<D: Disk>(&self, writer: &Writer<D>, count: u64, done: io::Result<()>) {
        let log = &writer.log;
        let mut inner = self.lock();
        inner.held = log.held();
        self.written.store(log.written(), Ordering::Release);
        self.synced.store(log.synced(), Ordering::Release);
        let stats = &mut inner.stats;
        stats.entries += count;
        stats.records = log.records() as u64;
        stats.octets = log.octets();
        stats.live_octets = log.live_octets();
        stats.compactions = log.compactions();
        match done {
            Err(error) => {
                stats.failures += 1;
                stats.failure.get_or_insert_with(|| error.to_string());
            }
            // Not if it is not time yet for the next attempt.
            Ok(()) if !writer.is_failing() => stats.failure = None,
            Ok(()) => {}
        }
        drop(inner);
        self.done.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wait_on<'a>(
    on: &Condvar,
    inner: MutexGuard<'a, Inner>,
    wait: time::Duration,
) -> MutexGuard<'a, Inner> {
    let waited = on.wait_timeout(inner, wait);
    waited.unwrap_or_else(PoisonError::into_inner).0
}
