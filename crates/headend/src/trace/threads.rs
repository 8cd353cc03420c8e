//! The same way of a packet on several threads.
//!
//! One thread reads; every thread decodes blocks and analyses what was decoded. Each flow belongs to one of several
//! shards by its hash, and a shard takes its packets in the order of the capture, one thread at a time, whichever is
//! free. So the result is that of one thread: connections depend on their own packets and on the capture's clock
//! alone, and are ordered by their first packets in the end.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capfile::Block;
use trace::{Analyzer, Clock, Finished, Limits, Segment};
use wire::packet::{Layers, Packet};
use wire::tcp::Tcp;

use super::decoder::{Decoder, Step};
use super::pipeline::{self, AHEAD, Plan};
use super::tally::Tally;

/// Shards for each thread, so that there is work for all though flows are of unequal sizes.
const SHARDS_PER_THREAD: usize = 4;

/// Blocks in flight for each thread.
const BLOCKS_PER_THREAD: usize = 4;

/// What a run on several threads gives.
pub(super) struct Outcome {
    pub(super) tally: Tally,
    pub(super) finished: Vec<Finished>,
    pub(super) limits: Limits,
    pub(super) connections: u64,
}

/// A block as it was read.
struct Raw {
    sequence: u64,
    file: u32,
    block: Block,
    /// The capture's clock before it.
    clock: Clock,
    /// Time stamp of the record before it.
    last: i64,
}

/// A shard's part of a decoded block.
#[derive(Default)]
struct Batch {
    file: u32,
    /// IP packets in the block, the other shards' too.
    packets: u64,
    /// Hash and segment, numbered within the block.
    segments: Vec<(u64, Segment)>,
    /// Encapsulations of those that have any.
    layers: Vec<(usize, Layers)>,
}

struct Shard {
    analyzer: Analyzer,
    /// The block whose batch is next.
    next: u64,
    /// IP packets in the blocks before that.
    packets: u64,
    finished: Vec<Finished>,
}

struct Shared<'a> {
    plan: &'a Plan,
    raw: Mutex<VecDeque<Raw>>,
    /// Something was added, or all has been read.
    news: Condvar,
    spare: Mutex<Vec<Block>>,
    spare_batches: Mutex<Vec<Batch>>,
    shards: Vec<Mutex<Shard>>,
    /// Batches that wait for their turn, by block.
    inboxes: Vec<Mutex<BTreeMap<u64, Batch>>>,
    /// Batches in all of them.
    waiting: AtomicUsize,
    /// Blocks read and not yet analysed by all shards, times shards.
    unfinished: AtomicUsize,
    all_read: AtomicBool,
}

/// A thread's decoder with its counts, and the times of the first and the last packet by their blocks.
struct Counts {
    decoder: Decoder,
    first: Option<(u64, i64)>,
    last: Option<(u64, i64)>,
}

impl Counts {
    fn new(plan: &Plan) -> Counts {
        Counts {
            decoder: Decoder::new(*plan),
            first: None,
            last: None,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked takes the whole run with it; until then the others may go on.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Analyses on `threads` threads, this one included. `next` reads the next block and says from which file it is.
///
/// # Errors
/// What `next` gave; what was read before it is lost.
pub(super) fn run(
    plan: &Plan,
    threads: usize,
    mut next: impl FnMut(&mut Block) -> io::Result<Option<u32>>,
) -> io::Result<Outcome> {
    let shards = threads * SHARDS_PER_THREAD;
    let config = trace::Config {
        memory: plan.config.memory / shards as u64,
        hot: (plan.config.hot / shards).max(64),
        ..plan.config
    };
    let shared = Shared {
        plan,
        raw: Mutex::new(VecDeque::new()),
        news: Condvar::new(),
        spare: Mutex::new(Vec::new()),
        spare_batches: Mutex::new(Vec::new()),
        shards: (0..shards)
            .map(|_| {
                Mutex::new(Shard {
                    analyzer: Analyzer::new(config),
                    next: 0,
                    packets: 0,
                    finished: Vec::new(),
                })
            })
            .collect(),
        inboxes: (0..shards).map(|_| Mutex::default()).collect(),
        waiting: AtomicUsize::new(0),
        unfinished: AtomicUsize::new(0),
        all_read: AtomicBool::new(false),
    };
    let mut counts = Vec::new();
    let read = std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads)
            .map(|worker| {
                let shared = &shared;
                scope.spawn(move || shared.work(worker))
            })
            .collect();
        let mut own = Counts::new(plan);
        let read = shared.read(threads, &mut next, &mut own);
        shared.all_read.store(true, Ordering::Release);
        shared.news.notify_all();
        own = shared.rest(0, own);
        counts.push(own);
        for worker in workers {
            match worker.join() {
                Ok(other) => counts.push(other),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        read
    });
    read?;
    Ok(gather(counts, shared.shards))
}

/// What all threads and shards have.
fn gather(counts: Vec<Counts>, shards: Vec<Mutex<Shard>>) -> Outcome {
    let first = counts.iter().filter_map(|counts| counts.first).min();
    let last = counts
        .iter()
        .filter_map(|counts| counts.last)
        .max_by_key(|last| last.0);
    let mut tally = Tally::default();
    for counts in &counts {
        tally.add(&counts.decoder.tally);
    }
    tally.first_time = first.map(|first| first.1);
    tally.last_time = last.map_or(0, |last| last.1);
    let mut outcome = Outcome {
        tally,
        finished: Vec::new(),
        limits: Limits::default(),
        connections: 0,
    };
    for shard in shards {
        let mut shard = shard.into_inner().unwrap_or_else(PoisonError::into_inner);
        shard.analyzer.finish();
        outcome.connections += shard.analyzer.connections();
        outcome.finished.append(&mut shard.finished);
        outcome.finished.append(&mut shard.analyzer.take_finished());
        let limits = shard.analyzer.limits();
        outcome.limits.finished_early += limits.finished_early;
        outcome.limits.flights_cut += limits.flights_cut;
    }
    outcome
        .finished
        .sort_unstable_by_key(|finished| finished.first_packet);
    outcome
}

impl Shared<'_> {
    /// Reads all blocks, and works while enough are waiting.
    fn read(
        &self,
        threads: usize,
        next: &mut impl FnMut(&mut Block) -> io::Result<Option<u32>>,
        counts: &mut Counts,
    ) -> io::Result<()> {
        let (mut sequence, mut clock, mut last) = (0, Clock::default(), i64::MIN);
        let limit = threads * BLOCKS_PER_THREAD * self.shards.len();
        loop {
            while self.unfinished.load(Ordering::Acquire) >= limit {
                if !self.step(0, counts) {
                    self.wait();
                }
            }
            let mut block = lock(&self.spare).pop().unwrap_or_default();
            let Some(file) = next(&mut block)? else {
                return Ok(());
            };
            let before = clock;
            for record in block.records() {
                clock.tick(record.time_ns);
            }
            let after = block.records().last().map(|record| record.time_ns);
            self.unfinished
                .fetch_add(self.shards.len(), Ordering::AcqRel);
            lock(&self.raw).push_back(Raw {
                sequence,
                file,
                block,
                clock: before,
                last,
            });
            self.news.notify_one();
            sequence += 1;
            last = after.unwrap_or(last);
            // With one other thread, half of the work is this one's.
            if lock(&self.raw).len() >= threads {
                self.step(0, counts);
            }
        }
    }

    fn work(&self, worker: usize) -> Counts {
        self.rest(worker, Counts::new(self.plan))
    }

    /// Works until all is done.
    fn rest(&self, worker: usize, mut counts: Counts) -> Counts {
        loop {
            if self.step(worker, &mut counts) {
                continue;
            }
            if self.all_read.load(Ordering::Acquire) && self.unfinished.load(Ordering::Acquire) == 0
            {
                self.news.notify_all();
                return counts;
            }
            self.wait();
        }
    }

    fn wait(&self) {
        let raw = lock(&self.raw);
        if raw.is_empty() {
            // The time-out is for what came between the look and the wait.
            drop(self.news.wait_timeout(raw, Duration::from_micros(200)));
        }
    }

    /// Does a piece of work: analyses what waits for a shard that is free, else decodes a block. False when there was
    /// none.
    fn step(&self, worker: usize, counts: &mut Counts) -> bool {
        let shards = self.shards.len();
        if self.waiting.load(Ordering::Acquire) >= shards {
            let mut worked = false;
            for offset in 0..shards {
                worked |= self.analyse((worker * SHARDS_PER_THREAD + offset) % shards);
            }
            if worked {
                return true;
            }
        }
        let raw = lock(&self.raw).pop_front();
        if let Some(raw) = raw {
            self.decode(raw, counts);
            return true;
        }
        let mut worked = false;
        for offset in 0..shards {
            worked |= self.analyse((worker * SHARDS_PER_THREAD + offset) % shards);
        }
        worked
    }

    /// Analyses what a shard may take now. False when that is nothing, or another thread is at it.
    fn analyse(&self, at: usize) -> bool {
        let mut shard = match self.shards[at].try_lock() {
            Ok(shard) => shard,
            Err(_) => return false,
        };
        let mut worked = false;
        loop {
            let next = shard.next;
            let Some(mut batch) = lock(&self.inboxes[at]).remove(&next) else {
                return worked;
            };
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            shard.take(&mut batch);
            worked = true;
            self.unfinished.fetch_sub(1, Ordering::AcqRel);
            batch.segments.clear();
            batch.layers.clear();
            lock(&self.spare_batches).push(batch);
        }
    }

    fn decode(&self, raw: Raw, counts: &mut Counts) {
        let shards = self.shards.len();
        let mut batches: Vec<Batch> = {
            let mut spare = lock(&self.spare_batches);
            (0..shards)
                .map(|_| spare.pop().unwrap_or_default())
                .collect()
        };
        let packets = self.decode_block(&raw, &mut batches, counts);
        for (at, mut batch) in batches.into_iter().enumerate() {
            batch.packets = packets;
            batch.file = raw.file;
            self.waiting.fetch_add(1, Ordering::AcqRel);
            lock(&self.inboxes[at]).insert(raw.sequence, batch);
        }
        lock(&self.spare).push(raw.block);
        self.news.notify_one();
    }

    /// Returns how many IP packets there are in the block.
    fn decode_block(&self, raw: &Raw, batches: &mut [Batch], counts: &mut Counts) -> u64 {
        let shards = batches.len() as u64;
        let decoder = &mut counts.decoder;
        (decoder.number, decoder.clock, decoder.last) = (0, raw.clock, raw.last);
        decoder.tally.first_time = None;
        let mut packet = Packet::new();
        let mut place = (0, Segment::default());
        for record in raw.block.records() {
            if decoder.record(&raw.block, record, &mut packet) != Step::Packet {
                continue;
            }
            match Tcp::parse(&packet) {
                Ok(ref tcp) => {
                    if !decoder.segment(&packet, tcp, &mut place) {
                        continue;
                    }
                    // The table uses the lowest and the highest bits.
                    let batch =
                        &mut batches[(((place.0 >> 24 & 0xffff_ffff) * shards) >> 32) as usize];
                    if !packet.layers.is_empty() {
                        batch.layers.push((batch.segments.len(), packet.layers));
                    }
                    batch.segments.push(place);
                }
                Err(error) => decoder.tally.not_tcp(&packet, error),
            }
        }
        if let Some(first) = decoder.tally.first_time {
            let earlier = counts
                .first
                .is_none_or(|(sequence, _)| raw.sequence < sequence);
            if earlier {
                counts.first = Some((raw.sequence, first));
            }
            let later = counts
                .last
                .is_none_or(|(sequence, _)| raw.sequence > sequence);
            if later {
                counts.last = Some((raw.sequence, decoder.tally.last_time));
            }
        }
        decoder.number
    }
}

impl Shard {
    /// Analyses a batch.
    fn take(&mut self, batch: &mut Batch) {
        self.analyzer.set_file(batch.file);
        let mut layers = &batch.layers[..];
        for (chunk, segments) in batch.segments.chunks_mut(AHEAD).enumerate() {
            for (_, segment) in &mut *segments {
                segment.number += self.packets;
            }
            if layers.is_empty() {
                pipeline::take(&mut self.analyzer, segments, &[]);
                continue;
            }
            let end = (chunk + 1) * AHEAD;
            let (own, rest) = layers.split_at(layers.partition_point(|(of, _)| *of < end));
            let own: Vec<_> = own
                .iter()
                .map(|(of, layers)| (of % AHEAD, *layers))
                .collect();
            pipeline::take(&mut self.analyzer, segments, &own);
            layers = rest;
        }
        self.packets += batch.packets;
        self.next += 1;
        if self.analyzer.has_finished() {
            self.finished.append(&mut self.analyzer.take_finished());
        }
    }
}
