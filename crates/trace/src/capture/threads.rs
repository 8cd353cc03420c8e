//! Analyses a capture on several threads.
//!
//! Each thread reads the next block of the capture, decodes it, analyses it, and takes another. A flow's hash assigns
//! it to one of several shards, and each shard takes the blocks in the order of the capture. The threads therefore
//! follow each other through the shards, one block apart, and the result is the same as on one thread: a connection
//! depends only on its own packets and on the capture's clock, and connections are sorted by their first packets at the
//! end.
//!
//! Once a block, the connections in use move from one processor to the other. Packets do not: one thread reads, decodes
//! and analyses each. Two threads are busy even with few flows, because they alternate on each shard; with a single
//! flow, one thread analyses while the other reads and decodes.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use capfile::Block;
use wire::packet::Packet;

use super::store::Store;
use crate::analyzer::{Analyzer, Config, Limits};
use crate::clock::Clock;
use crate::records::decoded::Decoded;
use crate::records::decoder::Decoder;
use crate::records::fragments::Fragments;
use crate::records::machine;
use crate::records::plan::Plan;
use crate::records::tally::Tally;

/// Shards for each thread, so that a thread finds a free shard although flows have unequal sizes.
const SHARDS_PER_THREAD: usize = 4;

/// How often a thread checks a shard before it sleeps: about ten microseconds, less than waking up takes.
const LOOKS: u32 = 500;

/// The results of all threads.
pub(super) struct Outcome {
    pub(super) tally: Tally,
    pub(super) store: io::Result<Store>,
    pub(super) limits: Limits,
}

/// The source of blocks.
struct Source<F> {
    next: F,
    /// Blocks read.
    blocks: u64,
    /// The capture's clock after them.
    clock: Clock,
    /// Time stamp of their last record.
    last: i64,
    ended: bool,
}

/// A shard, and the number of the block it takes next.
struct Turn {
    /// The block that is next.
    next: AtomicU64,
    shard: Mutex<Shard>,
    /// Wakes the threads that wait for their turn.
    passed: Condvar,
}

/// The packets whose fragments are arriving.
#[derive(Default)]
struct Join {
    /// The block that is next.
    next: u64,
    fragments: Fragments,
}

struct Shard {
    analyzer: Analyzer,
    /// IP packets in the blocks so far, including those of other shards.
    packets: u64,
    /// Number of threads that sleep until it is free.
    sleepers: u32,
}

struct Shared<'a, F> {
    plan: &'a Plan,
    source: Mutex<Source<F>>,
    turns: Vec<Turn>,
    /// The finished connections of all shards.
    store: Mutex<io::Result<Store>>,
    /// Puts fragments together, block by block, before the shards take the block.
    join: Mutex<Join>,
    /// Wakes the threads that wait for the block before theirs.
    joined: Condvar,
    /// Number of shards that are finished or that a thread is finishing.
    finished: AtomicUsize,
    /// A thread has panicked.
    failed: AtomicBool,
}

/// The state of a thread: a block, and its decoded segments.
struct Lot {
    block: Block,
    /// The block's place in the capture, from 0.
    sequence: u64,
    file: u32,
    decoder: Decoder,
    /// Its segments, shard by shard, numbered within the block.
    decoded: Vec<Decoded>,
    /// Times of the first and the last packet of this thread's blocks, and the numbers of these blocks.
    first: Option<(u64, i64)>,
    last: Option<(u64, i64)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic ends the whole run. Until then the other threads may go on.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Analyses on `threads` threads, including this one. `next` reads the next block and returns the index of its file, or
/// `None` at the end.
pub(super) fn run(
    plan: &Plan,
    threads: usize,
    store: Store,
    next: impl FnMut(&mut Block) -> Option<u32> + Send,
) -> Outcome {
    let shards = threads * SHARDS_PER_THREAD;
    let config = Config {
        memory: plan.config.memory / shards as u64,
        hot: (plan.config.hot / shards).max(64),
        ..plan.config
    };
    let shared = Shared {
        plan,
        source: Mutex::new(Source {
            next,
            blocks: 0,
            clock: Clock::default(),
            last: i64::MIN,
            ended: false,
        }),
        turns: (0..shards).map(|_| Turn::new(config)).collect(),
        store: Mutex::new(Ok(store)),
        join: Mutex::default(),
        joined: Condvar::new(),
        finished: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
    };
    let lots = std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads)
            .map(|_| scope.spawn(|| shared.work()))
            .collect();
        let mut lots = vec![shared.work()];
        for worker in workers {
            match worker.join() {
                Ok(lot) => lots.push(lot),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        lots
    });
    let store = shared.store.into_inner();
    let store = store.unwrap_or_else(PoisonError::into_inner);
    let mut outcome = gather(&lots, shared.turns, store);
    let join = shared.join.into_inner();
    let join = join.unwrap_or_else(PoisonError::into_inner);
    outcome.tally.incomplete += join.fragments.incomplete();
    outcome
}

/// Collects the results of all threads and shards.
fn gather(lots: &[Lot], turns: Vec<Turn>, store: io::Result<Store>) -> Outcome {
    let mut tally = Tally::default();
    for lot in lots {
        tally.add(&lot.decoder.tally);
    }
    let first = lots.iter().filter_map(|lot| lot.first).min();
    let last = lots.iter().filter_map(|lot| lot.last).max();
    tally.first_time = first.map(|(_, time)| time);
    tally.last_time = last.map_or(0, |(_, time)| time);
    let mut outcome = Outcome {
        tally,
        store,
        limits: Limits::default(),
    };
    for turn in turns {
        let shard = turn.shard.into_inner();
        let shard = shard.unwrap_or_else(PoisonError::into_inner);
        let limits = shard.analyzer.limits();
        outcome.limits.finished_early += limits.finished_early;
        outcome.limits.closed_early += limits.closed_early;
        outcome.limits.flights_cut += limits.flights_cut;
    }
    outcome
}

impl<F: FnMut(&mut Block) -> Option<u32>> Shared<'_, F> {
    /// Works until all is done.
    fn work(&self) -> Lot {
        let _alarm = Alarm(self);
        let mut lot = Lot::new(self.plan, self.turns.len());
        while self.read(&mut lot) {
            lot.decode();
            self.join(&mut lot);
            self.analyse(&mut lot);
        }
        let blocks = lock(&self.source).blocks;
        while let Some(turn) = self
            .turns
            .get(self.finished.fetch_add(1, Ordering::Relaxed))
        {
            self.wait(turn, blocks);
            let mut shard = lock(&turn.shard);
            self.keep(&mut shard);
            self.adopt(&mut shard);
        }
        lot
    }

    /// Reads the next block. False when there is none.
    fn read(&self, lot: &mut Lot) -> bool {
        let mut source = lock(&self.source);
        if source.ended {
            return false;
        }
        let Some(file) = (source.next)(&mut lot.block) else {
            source.ended = true;
            return false;
        };
        (lot.sequence, lot.file) = (source.blocks, file);
        (lot.decoder.clock, lot.decoder.last) = (source.clock, source.last);
        source.blocks += 1;
        for record in lot.block.records() {
            source.clock.tick(record.time_ns);
            source.last = record.time_ns;
        }
        true
    }

    /// Puts the block's fragments together with those of the blocks before it.
    fn join(&self, lot: &mut Lot) {
        let mut join = lock(&self.join);
        while join.next != lot.sequence {
            assert!(!self.failed.load(Ordering::Relaxed), "a thread panicked");
            join = self
                .joined
                .wait(join)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if !lot.decoder.parts.is_empty() {
            lot.decoder.join(&mut join.fragments, &mut lot.decoded);
        }
        join.next += 1;
        self.joined.notify_all();
    }

    /// Analyses the decoded segments, each shard's as soon as it is the block's turn there.
    fn analyse(&self, lot: &mut Lot) {
        let mut left: Vec<usize> = (0..self.turns.len()).collect();
        while let Some(&first) = left.first() {
            let before = left.len();
            left.retain(|&at| {
                let turn = &self.turns[at];
                let free = turn.is(lot.sequence);
                if free {
                    let mut shard = lock(&turn.shard);
                    shard.take(at, lot);
                    self.keep(&mut shard);
                    turn.pass(&shard, lot.sequence);
                }
                !free
            });
            if left.len() == before {
                self.wait(&self.turns[first], lot.sequence);
            }
        }
    }

    /// Moves the connections that have finished to the store.
    fn keep(&self, shard: &mut Shard) {
        if !shard.analyzer.has_finished() {
            return;
        }
        let mut store = lock(&self.store);
        if let Ok(kept) = &mut *store
            && let Err(error) = kept.push(shard.analyzer.take_finished())
        {
            *store = Err(error);
        }
        // After an error, nothing is kept.
        drop(shard.analyzer.take_finished());
    }

    /// Moves all other connections to the store, at the end.
    fn adopt(&self, shard: &mut Shard) {
        let count = shard.analyzer.held();
        let (entries, shelf) = shard.analyzer.finish_shelved();
        let mut store = lock(&self.store);
        if let Ok(kept) = &mut *store
            && let Err(error) = kept.adopt(count, entries, shelf)
        {
            *store = Err(error);
        }
    }

    /// Waits until it is that block's turn.
    fn wait(&self, turn: &Turn, block: u64) {
        for _ in 0..LOOKS {
            if turn.is(block) {
                return;
            }
            std::hint::spin_loop();
        }
        let mut shard = lock(&turn.shard);
        while !turn.is(block) {
            assert!(!self.failed.load(Ordering::Relaxed), "a thread panicked");
            shard.sleepers += 1;
            shard = turn
                .passed
                .wait(shard)
                .unwrap_or_else(PoisonError::into_inner);
            shard.sleepers -= 1;
        }
    }
}

/// Wakes the other threads when one panics, because its block will never finish.
struct Alarm<'a, 'p, F>(&'a Shared<'p, F>);

impl<F> Drop for Alarm<'_, '_, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let join = lock(&self.0.join);
            self.0.failed.store(true, Ordering::Relaxed);
            self.0.joined.notify_all();
            drop(join);
            for turn in &self.0.turns {
                let _shard = lock(&turn.shard);
                self.0.failed.store(true, Ordering::Relaxed);
                turn.passed.notify_all();
            }
        }
    }
}

impl Turn {
    fn new(config: Config) -> Turn {
        Turn {
            next: AtomicU64::new(0),
            shard: Mutex::new(Shard {
                analyzer: Analyzer::new(config),
                packets: 0,
                sleepers: 0,
            }),
            passed: Condvar::new(),
        }
    }

    /// Whether it is that block's turn.
    fn is(&self, block: u64) -> bool {
        self.next.load(Ordering::Acquire) == block
    }

    /// Admits the next block.
    fn pass(&self, shard: &Shard, block: u64) {
        self.next.store(block + 1, Ordering::Release);
        if shard.sleepers > 0 {
            self.passed.notify_all();
        }
    }
}

impl Shard {
    fn take(&mut self, at: usize, lot: &mut Lot) {
        self.analyzer.set_file(lot.file);
        machine::take(&mut self.analyzer, &mut lot.decoded[at], self.packets);
        self.packets += lot.decoder.number;
    }
}

impl Lot {
    fn new(plan: &Plan, shards: usize) -> Lot {
        let mut decoder = Decoder::new(*plan);
        decoder.fragments = None;
        Lot {
            block: Block::new(),
            sequence: 0,
            file: 0,
            decoder,
            decoded: (0..shards).map(|_| Decoded::default()).collect(),
            first: None,
            last: None,
        }
    }

    /// Decodes the block.
    fn decode(&mut self) {
        self.decoded.iter_mut().for_each(Decoded::clear);
        let decoder = &mut self.decoder;
        decoder.number = 0;
        decoder.tally.first_time = None;
        let mut packet = Packet::new();
        for record in self.block.records() {
            decoder.decode(&self.block, record, &mut packet, &mut self.decoded);
        }
        // A thread's blocks come in the order of the capture.
        if let Some(first) = decoder.tally.first_time {
            self.first.get_or_insert((self.sequence, first));
            self.last = Some((self.sequence, decoder.tally.last_time));
        }
    }
}
