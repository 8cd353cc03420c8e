//! Stochastic fair queuing: flows take turns by bytes, and the longest loses packets. tc's `sfq`.
//!
//! P. E. McKenney, "Stochastic Fairness Queueing", 1990. There, flows whose hashes fall into one bucket share a
//! queue, and the hash changes from time to time so that they do not share it for long. The change has a price: a
//! flow that had its own queue may now share a flood's queue and wait behind it. And if waiting packets stay in the
//! old buckets, new packets overtake them. [`Perturb`] offers both designs, and one without either fault. Left out:
//! Linux's RED within a queue.

mod slots;

use base::{Duration, Instant};

use crate::classify::{Hash, KeySet};
use crate::discipline::{Backlog, Discipline, Statistics};
use crate::packet::{Id, Pool, Reason};
use crate::plan::{About, Declared, Make, Picture, Plan, Unfit};
use crate::queue::{FLOW_KEYS, LimitBy, Offer, QUANTUM, Queue, Setting, Takes};
use crate::units::{Octets, Time};
use slots::Slots;

/// What a change of the hash does to waiting packets, and which flows share a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Perturb {
    /// All 64 bits of the hash identify a flow, so two flows in one bucket have a queue each. Waiting packets move
    /// with their flow, in order.
    #[default]
    Apart,
    /// Flows in one bucket share a queue. Waiting packets move with their flow, in order: Linux since 2.6.39.
    Rehash,
    /// Flows in one bucket share a queue. Waiting packets stay where they are, so later ones may overtake them: the
    /// old design.
    Stay,
}

/// Options of an [`Sfq`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Packets in all queues.
    pub limit: u32,
    /// Packets in one queue.
    pub depth: u32,
    /// Bytes on the line for each queue and turn, from 1 to 2^30; values outside count as the nearest of these.
    pub quantum: u32,
    /// Buckets, rounded up to a power of two, at most 65,536.
    pub divisor: u32,
    /// Whether a queue above its depth loses its oldest packet instead of its newest.
    pub head_drop: bool,
    /// How often the hash changes; zero means never. The first change is one period after the first packet.
    pub period: Duration,
    /// What a change does.
    pub perturb: Perturb,
    /// The keys of a flow.
    pub keys: KeySet,
    /// Chooses the first hash and those after it.
    pub seed: u64,
}

impl Default for Options {
    /// Linux's values for Ethernet, but with flows told apart inside tunnels too.
    fn default() -> Self {
        Self {
            limit: 127,
            depth: 127,
            quantum: 1514,
            divisor: 1024,
            head_drop: false,
            period: Duration::ZERO,
            perturb: Perturb::default(),
            keys: KeySet::FLOW,
            seed: 0,
        }
    }
}

/// A queue for each flow, or for each bucket of flows.
#[derive(Debug)]
pub struct Sfq {
    options: Options,
    hash: Hash,
    /// The bits of a flow's hash that identify its queue.
    known_by: u64,
    slots: Slots,
    perturbations: u64,
    /// `None` before the first packet, and when the hash never changes.
    perturb_at: Option<Instant>,
    backlog: Backlog,
    statistics: Statistics,
}

impl Sfq {
    /// Empty queues.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let divisor = options.divisor.clamp(1, 1 << 16).next_power_of_two();
        Self {
            options,
            hash: Self::hash(&options, 0),
            known_by: match options.perturb {
                Perturb::Apart => u64::MAX,
                Perturb::Rehash | Perturb::Stay => !(u64::MAX >> divisor.trailing_zeros()),
            },
            slots: Slots::new(divisor, options.quantum.clamp(1, 1 << 30) as i32),
            perturbations: 0,
            perturb_at: None,
            backlog: Backlog::default(),
            statistics: Statistics::default(),
        }
    }

    /// The hash after this many changes, to find out which flows share a bucket.
    #[must_use]
    pub fn hash(options: &Options, perturbations: u64) -> Hash {
        let divisor = options.divisor.clamp(1, 1 << 16).next_power_of_two();
        let seed = options.seed.wrapping_add(perturbations);
        Hash::new(options.keys, divisor, seed, 0)
    }

    /// The key of a packet's queue.
    #[inline]
    fn key(&self, pool: &Pool, id: Id) -> u64 {
        self.hash.value(pool.keys(id)) & self.known_by
    }

    /// Changes the hash if that is due.
    fn perturb(&mut self, pool: &mut Pool, now: Instant) {
        let period = self.options.period.as_nanos();
        if period == 0 {
            return;
        }
        let at = *self.perturb_at.get_or_insert(now + self.options.period);
        if now < at {
            return;
        }
        let late = now.since(at).as_nanos() / period;
        self.perturb_at = Some(at + self.options.period.saturating_mul(late + 1));
        self.perturbations += late + 1;
        self.hash = Self::hash(&self.options, self.perturbations);
        if self.options.perturb == Perturb::Stay {
            return;
        }
        let mut waiting = Vec::with_capacity(self.backlog.packets as usize);
        let turn = self.slots.turn();
        self.slots.drain(pool, &mut waiting);
        for id in waiting {
            let slot = self.slots.find(self.key(pool, id));
            self.slots.push(slot, pool, id);
        }
        // If a quantum takes longer than a period, a full quantum at each change would let the first flow send
        // without end.
        self.slots.set_turn(turn);
    }

    fn lose(&mut self, pool: &mut Pool, id: Id, reason: Reason) {
        self.backlog.remove(pool.length(id));
        self.statistics.dropped += 1;
        pool.discard(id, reason);
    }

    fn take_from(&mut self, slot: u32, pool: &mut Pool) -> Option<Id> {
        if self.options.head_drop {
            self.slots.pop(slot, pool)
        } else {
            self.slots.pop_last(slot, pool)
        }
    }
}

/// `perturb`: how often the hash changes, up to an hour.
pub static PERTURB: Setting = Setting {
    name: "perturb",
    takes: Takes::Time(0, 3_600_000_000_000),
    caution: Some([
        "each change of the hash moves waiting flows to other queues: a spike of latency once per period",
        "leave it out, or use template \"home\" or \"flows\", which need none",
    ]),
};

impl Declared for Options {
    const ABOUT: About<Self> = About {
        kinds: &["sfq"],
        queues: &[Queue {
            offer: Offer {
                name: "sfq",
                template: "sfq",
                settings: &[&QUANTUM, &FLOW_KEYS, &PERTURB],
                limit: LimitBy::Packets(127),
                bounds_delay: false,
            },
            plan: |given| Options {
                limit: given.packets(),
                depth: given.packets().min(127),
                quantum: given.quantum(),
                period: given.settings.time(&PERTURB).unwrap_or(Duration::ZERO),
                keys: given.flow_keys(),
                ..Options::default()
            },
        }],
        picture: Picture {
            has_flow_classes: true,
        },
    };
}

impl<S> Plan<S> for Options {
    fn kind(&self) -> &'static str {
        "sfq"
    }

    fn options(&self) -> String {
        let mut text = format!(
            "limit {}p quantum {} depth {} divisor {} keys {}",
            self.limit,
            Octets(self.quantum.into()),
            self.depth,
            self.divisor,
            self.keys
        );
        if self.period.as_nanos() > 0 {
            text += &format!(" perturb {}", Time(self.period));
        }
        text
    }

    fn packets_max(&self) -> u32 {
        self.limit
    }

    fn make(&self, make: Make) -> Result<Box<dyn Discipline>, Unfit> {
        Ok(Box::new(Sfq::new(Options {
            seed: self.seed ^ make.seed,
            ..*self
        })))
    }
}

impl Discipline for Sfq {
    fn kind(&self) -> &'static str {
        "sfq"
    }

    fn enqueue(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        self.perturb(pool, now);
        let slot = self.slots.find(self.key(pool, id));
        self.backlog.add(pool.length(id));
        self.slots.push(slot, pool, id);
        let mut kept = true;
        if self.slots.packets(slot) > self.options.depth
            && let Some(lost) = self.take_from(slot, pool)
        {
            kept = lost != id;
            self.lose(pool, lost, Reason::Full);
        }
        if self.backlog.packets > self.options.limit
            && let Some(longest) = self.slots.longest()
            && let Some(lost) = self.take_from(longest, pool)
        {
            kept &= lost != id;
            self.lose(pool, lost, Reason::Overlimit);
        }
        kept
    }

    fn restore(&mut self, pool: &mut Pool, id: Id, _: Instant) -> bool {
        let slot = self.slots.find(self.key(pool, id));
        self.backlog.add(pool.length(id));
        self.slots.push(slot, pool, id);
        true
    }

    fn dequeue(&mut self, pool: &mut Pool, now: Instant) -> Option<Id> {
        if self.backlog.packets == 0 {
            return None;
        }
        self.perturb(pool, now);
        let id = self.slots.next(pool)?;
        let length = pool.length(id);
        self.backlog.remove(length);
        self.statistics.count_sent(length);
        Some(id)
    }

    fn next_time(&self, now: Instant) -> Option<Instant> {
        (self.backlog.packets > 0).then_some(now)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut Vec<Id>) {
        self.slots.drain(pool, into);
        self.backlog = Backlog::default();
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("flows", self.slots.flows().into()),
            ("perturbations", self.perturbations),
        ]
    }
}
