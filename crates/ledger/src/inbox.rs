//! The state shared by the owner's thread and the writer: a growing batch, and the counters.
//!
//! The lock is held only to copy a record in, or to swap the batch for an empty one; never during a commit.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::store::Totals;
use crate::{Options, RECORD_OCTETS_MAX, RecordId, Refused, Stats};

/// Memory of a record beyond its own bytes.
const OVERHEAD: u64 = 16;
/// The writer and the reader.
const THREADS: usize = 2;
/// The largest empty batch that is kept for reuse, in bytes.
const KEEP: usize = 4 << 20;

/// Records and acknowledgements of one commit.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The number of the first record; the others follow without gaps.
    first: u64,
    lengths: Vec<u32>,
    octets: Vec<u8>,
    /// Where the drafts are in `drafts_octets`, by key: `None` removes one. The store adds them fastest in order.
    drafts: BTreeMap<u128, Option<Range<usize>>>,
    drafts_octets: Vec<u8>,
    /// Acknowledged records, possibly from this very batch.
    pub(crate) removals: Arc<Vec<u64>>,
    /// When the oldest entry was added.
    since: Option<Instant>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.lengths.is_empty() && self.removals.is_empty() && self.drafts.is_empty()
    }

    fn draft(&mut self, key: u128, draft: Option<&[u8]>) {
        let entry = self.drafts.entry(key).or_default();
        let Some(draft) = draft else {
            *entry = None;
            return;
        };
        // A draft takes the place of an earlier one if it is no longer.
        let start = match entry {
            Some(place) if draft.len() <= place.len() => place.start,
            _ => {
                let start = self.drafts_octets.len();
                self.drafts_octets.resize(start + draft.len(), 0);
                start
            }
        };
        let place = start..start + draft.len();
        self.drafts_octets[place.clone()].copy_from_slice(draft);
        *entry = Some(place);
    }

    /// Its drafts in the order of their keys, as they are to be: `None` removes one.
    pub(crate) fn drafts(&self) -> impl ExactSizeIterator<Item = (u128, Option<&[u8]>)> {
        let octets = &self.drafts_octets;
        let drafts = self.drafts.iter();
        drafts.map(|(key, place)| (*key, place.clone().map(|place| &octets[place])))
    }

    /// Its records by number, without those that the batch itself acknowledges.
    pub(crate) fn records(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut gone = vec![false; self.lengths.len()];
        for id in self.removals.iter() {
            let place = id.checked_sub(self.first).map(|place| place as usize);
            if let Some(gone) = place.and_then(|place| gone.get_mut(place)) {
                *gone = true;
            }
        }
        let mut rest = self.octets.as_slice();
        let records = (self.first..).zip(&self.lengths).zip(gone);
        records.filter_map(move |((id, &length), gone)| {
            let (record, behind) = rest.split_at(length as usize);
            rest = behind;
            (!gone).then_some((id, record))
        })
    }

    /// The acknowledged records that are not in this batch.
    pub(crate) fn removals(&self) -> impl Iterator<Item = u64> {
        let own = self.first..self.first + self.lengths.len() as u64;
        let all = self.removals.iter().copied();
        all.filter(move |id| !own.contains(id))
    }

    fn memory(&self) -> u64 {
        let entries = self.lengths.len() as u64 + 4 * self.drafts.len() as u64;
        (self.octets.len() + self.drafts_octets.len()) as u64 + entries * OVERHEAD
    }

    fn clear(&mut self) {
        self.lengths.clear();
        self.octets.clear();
        self.octets.shrink_to(KEEP);
        self.lengths.shrink_to(KEEP / 16);
        self.removals = Arc::default();
        self.drafts.clear();
        self.drafts_octets.clear();
        self.drafts_octets.shrink_to(KEEP);
        self.since = None;
    }
}

/// The writer's next task.
pub(crate) enum Work {
    /// Commit this batch.
    Commit(Batch),
    /// Nothing is left, and nothing will be added.
    End,
}

/// Notes the end of a thread, even after a panic.
pub(crate) struct Farewell<'a>(pub(crate) &'a Shared);

impl Drop for Farewell<'_> {
    fn drop(&mut self) {
        self.0.lock().threads -= 1;
        self.0.done.notify_all();
    }
}

struct Inner {
    batch: Batch,
    /// Records in the batch that the writer is committing.
    written_records: u64,
    written_octets: u64,
    written_memory: u64,
    written_removals: Arc<Vec<u64>>,
    written_drafts: usize,
    next: u64,
    totals: Totals,
    hurry: bool,
    stop: bool,
    /// Threads that have not ended.
    threads: usize,
    stats: Stats,
}

pub(crate) struct Shared {
    inner: Mutex<Inner>,
    /// Whether the last commit failed.
    fails: AtomicBool,
    /// Notified when there is work for the writer.
    work: Condvar,
    /// Notified when a commit has finished.
    done: Condvar,
    options: Options,
}

impl Shared {
    pub(crate) fn new(options: Options, totals: Totals) -> Self {
        let next = totals.last + 1;
        let stats = Stats {
            committed: RecordId(totals.last),
            ..Stats::default()
        };
        let batch = Batch {
            first: next,
            ..Batch::default()
        };
        Self {
            inner: Mutex::new(Inner {
                batch,
                written_records: 0,
                written_octets: 0,
                written_memory: 0,
                written_removals: Arc::default(),
                written_drafts: 0,
                next,
                totals,
                hurry: false,
                stop: false,
                threads: THREADS,
                stats,
            }),
            fails: AtomicBool::new(false),
            work: Condvar::new(),
            done: Condvar::new(),
            options,
        }
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn add(&self, record: &[u8]) -> Result<RecordId, Refused> {
        let length = record.len() as u64;
        let mut inner = self.lock();
        let options = &self.options;
        if record.len() > RECORD_OCTETS_MAX {
            inner.stats.refused_length += 1;
            return Err(Refused::TooLong);
        }
        let memory = inner.batch.memory() + inner.written_memory + length + OVERHEAD;
        if memory > options.memory_octets_max {
            inner.stats.refused_behind += 1;
            return Err(Refused::Behind);
        }
        let records = inner.totals.records + inner.pending();
        let octets = inner.totals.octets + inner.pending_octets() + length;
        if records >= options.records_max || octets > options.octets_max {
            inner.stats.refused_full += 1;
            return Err(Refused::Full);
        }
        let id = inner.next;
        inner.next += 1;
        inner.batch.octets.extend_from_slice(record);
        inner.batch.lengths.push(record.len() as u32);
        self.told(inner);
        Ok(RecordId(id))
    }

    /// Stores a draft in place of an earlier one of the same key.
    pub(crate) fn keep(&self, key: u128, draft: &[u8]) -> Result<(), Refused> {
        let mut inner = self.lock();
        if draft.len() > RECORD_OCTETS_MAX {
            inner.stats.refused_length += 1;
            return Err(Refused::TooLong);
        }
        let memory = inner.batch.memory() + inner.written_memory;
        if memory + draft.len() as u64 > self.options.memory_octets_max {
            inner.stats.refused_behind += 1;
            return Err(Refused::Behind);
        }
        if inner.totals.drafts + inner.batch.drafts.len() as u64 >= self.options.records_max {
            inner.stats.refused_full += 1;
            return Err(Refused::Full);
        }
        inner.batch.draft(key, Some(draft));
        self.told(inner);
        Ok(())
    }

    /// Removes a draft.
    pub(crate) fn discard(&self, key: u128) {
        let mut inner = self.lock();
        inner.batch.draft(key, None);
        self.told(inner);
    }

    pub(crate) fn acknowledged(&self, id: RecordId) {
        let mut inner = self.lock();
        let known = 1..inner.next;
        // If there are more acknowledgements than waiting records, some are repeated.
        let room = (inner.batch.removals.len() as u64) < self.options.records_max;
        if known.contains(&id.0) && room {
            Arc::make_mut(&mut inner.batch.removals).push(id.0);
            self.told(inner);
        }
    }

    /// Records acknowledged but possibly still in the file, sorted.
    pub(crate) fn removals(&self) -> Vec<u64> {
        let (written, mut all) = {
            let inner = self.lock();
            let written = Arc::clone(&inner.written_removals);
            (written, inner.batch.removals.to_vec())
        };
        all.extend(written.iter());
        all.sort_unstable();
        all
    }

    pub(crate) fn stats(&self) -> Stats {
        let inner = self.lock();
        Stats {
            stored: inner.totals.records,
            stored_octets: inner.totals.octets,
            drafts: inner.totals.drafts,
            pending: inner.pending(),
            pending_octets: inner.pending_octets(),
            ..inner.stats.clone()
        }
    }

    /// The entries that are not on disk, by kind.
    pub(crate) fn left(&self) -> [(u64, &'static str); 3] {
        let inner = self.lock();
        let batch = &inner.batch;
        let acknowledged = batch.removals.len() + inner.written_removals.len();
        let drafts = batch.drafts.len() + inner.written_drafts;
        [
            (inner.pending(), "records"),
            (acknowledged as u64, "acknowledgements"),
            (drafts as u64, "drafts"),
        ]
    }

    pub(crate) fn flush(&self, wait: Duration) -> bool {
        let mut inner = self.lock();
        inner.hurry = true;
        self.work.notify_one();
        let is_busy = |inner: &mut Inner| !inner.batch.is_empty() || inner.is_writing();
        let until = Instant::now() + wait;
        while is_busy(&mut inner) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            inner.hurry = true;
            (inner, _) = self
                .done
                .wait_timeout(inner, left)
                .expect("no thread panics with the lock");
        }
        true
    }

    /// Why the last commit failed.
    pub(crate) fn failure(&self) -> Option<String> {
        let fails = self.fails.load(Ordering::Acquire);
        fails.then(|| self.lock().stats.failure.clone()).flatten()
    }

    /// Asks the writer to end, and waits for both threads. Returns `false` if it takes longer than `wait`.
    pub(crate) fn stop(&self, wait: Duration) -> bool {
        let mut inner = self.lock();
        inner.stop = true;
        self.work.notify_one();
        let until = Instant::now() + wait;
        while inner.threads > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            (inner, _) = self
                .done
                .wait_timeout(inner, left)
                .expect("no thread panics with the lock");
        }
        true
    }

    /// Waits until there is something to commit and its time has come. `empty` is an old batch whose memory is
    /// reused.
    pub(crate) fn next_work(&self, mut empty: Batch) -> Work {
        let mut inner = self.lock();
        loop {
            let due = inner
                .batch
                .since
                .map(|at| at + self.options.commit_interval);
            let left = due.map(|due| due.saturating_duration_since(Instant::now()));
            match left {
                Some(left) if left.is_zero() || inner.hurry || inner.stop => break,
                None if inner.stop => return Work::End,
                Some(left) => {
                    (inner, _) = self
                        .work
                        .wait_timeout(inner, left)
                        .expect("no thread panics with the lock");
                }
                None => {
                    inner.hurry = false;
                    inner = self
                        .work
                        .wait(inner)
                        .expect("no thread panics with the lock");
                }
            }
        }
        inner.hurry = false;
        empty.clear();
        empty.first = inner.next;
        let batch = std::mem::replace(&mut inner.batch, empty);
        inner.written_records = batch.lengths.len() as u64;
        inner.written_octets = batch.octets.len() as u64;
        inner.written_memory = batch.memory();
        inner.written_removals = Arc::clone(&batch.removals);
        inner.written_drafts = batch.drafts.len();
        Work::Commit(batch)
    }

    /// Notes that a batch is on disk, with the file's new totals.
    pub(crate) fn committed(&self, batch: &Batch, totals: Totals, took: Duration) {
        let mut inner = self.lock();
        let late = batch.since.map_or(took, |since| since.elapsed());
        inner.totals = totals;
        inner.written_records = 0;
        inner.written_octets = 0;
        inner.written_memory = 0;
        inner.written_removals = Arc::default();
        inner.written_drafts = 0;
        let stats = &mut inner.stats;
        stats.committed = RecordId(batch.first + batch.lengths.len() as u64 - 1);
        stats.commits += 1;
        stats.commit_last = took;
        stats.commit_longest = stats.commit_longest.max(took);
        stats.lateness_longest = stats.lateness_longest.max(late);
        stats.failure = None;
        self.fails.store(false, Ordering::Release);
        self.done.notify_all();
    }

    /// Notes a failed commit. Waits a while, and returns whether to retry.
    pub(crate) fn failed(&self, why: String, rest: Duration) -> bool {
        let mut inner = self.lock();
        inner.stats.failures += 1;
        inner.stats.failure = Some(why);
        self.fails.store(true, Ordering::Release);
        let until = Instant::now() + rest;
        while !inner.stop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            (inner, _) = self
                .work
                .wait_timeout(inner, left)
                .expect("no thread panics with the lock");
        }
        false
    }

    /// Notes that the file was reopened, with its totals.
    pub(crate) fn reopened(&self, totals: Totals) {
        self.lock().totals = totals;
    }

    /// Notes when a batch started, and wakes the writer for its first and its last entry.
    fn told(&self, mut inner: MutexGuard<'_, Inner>) {
        let batch = &inner.batch;
        let count = batch.lengths.len() + batch.removals.len() + batch.drafts.len();
        let is_first = inner.batch.since.is_none();
        if is_first {
            inner.batch.since = Some(Instant::now());
        }
        let batch = &inner.batch;
        let octets = (batch.octets.len() + batch.drafts_octets.len()) as u64;
        let half = octets >= self.options.memory_octets_max / 2;
        let is_last = !inner.hurry && (count >= self.options.commit_records || half);
        inner.hurry |= is_last;
        drop(inner);
        if is_first || is_last {
            self.work.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no thread panics with the lock")
    }
}

impl Inner {
    fn pending(&self) -> u64 {
        self.batch.lengths.len() as u64 + self.written_records
    }

    fn pending_octets(&self) -> u64 {
        self.batch.octets.len() as u64 + self.written_octets
    }

    fn is_writing(&self) -> bool {
        self.written_records > 0 || !self.written_removals.is_empty() || self.written_drafts > 0
    }
}
