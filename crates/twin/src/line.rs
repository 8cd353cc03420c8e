//! The bottleneck: a queue discipline, a rate, and losses before the queue.

use base::{Duration, Instant};
use qos::bucket::{Bucket, Tokens};
use qos::tree::{Overhead, Spec, SpecError, Tree};
use qos::{Discipline, Packet, Pool};
use sim::Rng;
use wire::flow::Keys;

/// Packets that wait at most.
const POOL: u32 = 1 << 20;

/// What a bottleneck is made of.
#[derive(Debug, Clone)]
pub struct Line {
    /// Bits per second, of frames without their checksum.
    pub rate_bps: u64,
    /// The queue.
    pub queue: Spec,
    /// How the queue counts lengths; `None` as the line does.
    pub overhead: Option<Overhead>,
    /// Share of packets that are lost before the queue.
    pub loss: f64,
    /// A policer before the queue: rate, and bytes of its bucket.
    pub policer: Option<(u64, u32)>,
}

/// A packet on its way through the bottleneck.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passing {
    /// Index of its flow; `None` is cross traffic.
    pub(crate) flow: Option<u32>,
    pub(crate) segment: u64,
    /// Bytes of its frame, and of the headers before its IP packet.
    pub(crate) frame: u32,
    pub(crate) link_header: u32,
    pub(crate) keys: Keys,
}

/// A bottleneck at work.
pub(crate) struct Bottleneck {
    rate_bps: u64,
    overhead: Option<Overhead>,
    loss: f64,
    policer: Option<Bucket>,
    tree: Tree,
    pool: Pool,
    waiting: Vec<Passing>,
    free: Vec<u32>,
    busy_until: u64,
    rng: Rng,
    /// Packets dropped, of any flow.
    pub(crate) dropped: u64,
}

impl Bottleneck {
    pub(crate) fn new(line: &Line, seed: u64) -> Result<Bottleneck, SpecError> {
        let start = Instant::ZERO;
        let bucket = |(rate, size): (u64, u32)| Bucket::new(rate, size, i64::from(size), start);
        Ok(Bottleneck {
            rate_bps: line.rate_bps.max(1),
            overhead: line.overhead,
            loss: line.loss,
            policer: line.policer.map(bucket),
            tree: Tree::new(&line.queue, seed, start)?,
            pool: Pool::new(POOL),
            waiting: Vec::new(),
            free: Vec::new(),
            busy_until: 0,
            rng: Rng::stream(seed, &["loss"]),
            dropped: 0,
        })
    }

    /// A packet arrives, and waits or is dropped.
    pub(crate) fn offer(&mut self, passing: Passing, now: u64) {
        if self.loss > 0.0 && self.rng.chance(self.loss) {
            self.dropped += 1;
            return;
        }
        let time = Instant::from_nanos(now);
        if let Some(bucket) = &mut self.policer {
            bucket.fill(time);
            if bucket.octets() < i64::from(passing.frame) {
                self.dropped += 1;
                return;
            }
            bucket.take(Tokens::of(passing.frame));
        }
        let handle = match self.free.pop() {
            Some(handle) => handle,
            None => {
                self.waiting.push(passing);
                (self.waiting.len() - 1) as u32
            }
        };
        self.waiting[handle as usize] = passing;
        let length = match &self.overhead {
            Some(overhead) => overhead.on_line(passing.frame - passing.link_header),
            None => passing.frame,
        };
        let packet = Packet {
            handle,
            length,
            keys: passing.keys,
            arrived: time,
            marked: false,
        };
        match self.pool.insert(packet) {
            Some(id) => _ = self.tree.enqueue(&mut self.pool, id, time),
            None => {
                self.free.push(handle);
                self.dropped += 1;
            }
        }
        self.collect();
    }

    /// The packet that starts to leave now, and when its last bit has left.
    pub(crate) fn poll(&mut self, now: u64) -> Option<(Passing, u64)> {
        if now < self.busy_until {
            return None;
        }
        let id = self.tree.dequeue(&mut self.pool, Instant::from_nanos(now));
        self.collect();
        let packet = self.pool.take(id?);
        self.free.push(packet.handle);
        let passing = self.waiting[packet.handle as usize];
        self.busy_until = now + self.time_of(passing.frame);
        Some((passing, self.busy_until))
    }

    /// When to call [`Bottleneck::poll`]; `None` if nothing waits.
    pub(crate) fn next(&self, now: u64) -> Option<u64> {
        let next = self.tree.next_time(Instant::from_nanos(now))?;
        Some(next.as_nanos().max(self.busy_until).max(now))
    }

    fn time_of(&self, bytes: u32) -> u64 {
        (u128::from(bytes) * 8_000_000_000 / u128::from(self.rate_bps)) as u64
    }

    fn collect(&mut self) {
        for (handle, _) in self.pool.discarded() {
            self.free.push(handle);
            self.dropped += 1;
        }
    }
}

/// Time that a number of bytes takes at a rate.
#[must_use]
pub fn time_at(rate_bps: f64, bytes: f64) -> Duration {
    Duration::from_nanos((bytes * 8e9 / rate_bps.max(1.0)) as u64)
}
