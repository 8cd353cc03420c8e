//! The cost of a packet in a discipline, or in a tree of disciplines.

use std::collections::VecDeque;

use anyhow::{Result, ensure};
use base::{Duration, Instant};
use qos::classify::{Bands, FlowMatch, Key, Map, Match, Ports};
use qos::fifo::Limit;
use qos::htb::ClassOptions;
use qos::tree::{Classifier, DrrClass, DrrSpec, HtbSpec, PrioSpec, Spec, TbfSpec, Tree};
use qos::{Discipline, Packet, Pool};
use wire::flow::Keys;

use super::packets::{self, Random};
use super::{Config, FLOOR, least};

/// Number of packets queued throughout.
pub(super) const WAITING: usize = 2_048;

/// Number of packets that are enqueued, and then dequeued, together.
const BATCH: u64 = 32;

/// Nanoseconds between two packets: short enough that no packet waits for longer than CoDel's
/// target.
const GAP_NS: u64 = 150;

/// Packets between two readings of the clock.
const ROUND: u64 = 1 << 15;

/// A rate above what leaves, so that no shaper ever holds a packet back.
const RATE_BPS: u64 = 90_000_000_000;
const BURST: u32 = 50_000_000;

/// Number of flows that have sent one packet, for each flow that continues.
pub(super) const IDLE: u32 = 100;

/// A tree and its name; the floor has no tree.
pub(super) struct Subject {
    pub(super) name: &'static str,
    spec: Option<Spec>,
}

fn fifo() -> Spec {
    Spec::Fifo(Limit::Packets(10_000))
}

fn fair() -> Spec {
    Spec::Fair(qos::fair::Options::default())
}

fn htb(leaf: Spec) -> Spec {
    let class = |minor, parent, rate_bps, priority| ClassOptions {
        minor,
        parent,
        rate_bps,
        ceil_bps: RATE_BPS,
        burst: BURST,
        cburst: BURST,
        priority,
        quantum: None,
    };
    let to = |port| Match {
        innermost: FlowMatch {
            proto: Some(6),
            proto_dst: Some(Ports::one(port)),
            ..FlowMatch::default()
        },
        ..Match::default()
    };
    Spec::Htb(HtbSpec {
        mtu: 1514,
        classes: vec![
            class(1, None, RATE_BPS, 0),
            class(0x10, Some(1), RATE_BPS / 3, 0),
            class(0x20, Some(1), RATE_BPS / 3 * 2, 1),
        ],
        leaves: vec![(0x10, fifo()), (0x20, leaf)],
        classifier: Some(Classifier::Rules(vec![(to(22), 0x10), (to(53), 0x10)])),
        default: Some(0x20),
        direct_limit: 10,
    })
}

fn drr() -> Spec {
    let class = |minor| DrrClass {
        minor,
        quantum: 1514,
        child: fifo(),
    };
    Spec::Drr(DrrSpec {
        classes: (1..=packets::HOSTS as u16).map(class).collect(),
        classifier: Classifier::Map(Map::new(Key::InnermostSrc).and(packets::HOSTS - 1)),
    })
}

/// The floor, each discipline alone, and trees as operators use them.
pub(super) fn subjects() -> Vec<Subject> {
    let limit = 10_000;
    let specs = [
        ("fifo", fifo()),
        (
            "pfifo_fast",
            Spec::PfifoFast(qos::pfifo_fast::Options {
                limit,
                ..Default::default()
            }),
        ),
        (
            "prio",
            Spec::Prio(PrioSpec {
                bands: vec![fifo(), fifo(), fifo()],
                classifier: None,
                priomap: Bands::DSCP,
            }),
        ),
        ("drr, a class for each host", drr()),
        (
            "sfq",
            Spec::Sfq(qos::sfq::Options {
                limit,
                ..Default::default()
            }),
        ),
        (
            "codel",
            Spec::Codel(qos::codel::Options {
                limit,
                ..Default::default()
            }),
        ),
        ("fq_codel", Spec::FqCodel(Default::default())),
        ("fair", fair()),
        (
            "tbf + fifo",
            Spec::Tbf(TbfSpec {
                options: qos::tbf::Options {
                    rate_bps: RATE_BPS,
                    burst: BURST,
                    peak: None,
                },
                child: Box::new(fifo()),
            }),
        ),
        ("htb + fifo", htb(fifo())),
        ("htb + fq_codel", htb(Spec::FqCodel(Default::default()))),
        ("htb + fair", htb(fair())),
    ];
    let floor = Subject {
        name: FLOOR,
        spec: None,
    };
    let others = specs.map(|(name, spec)| Subject {
        name,
        spec: Some(spec),
    });
    std::iter::once(floor).chain(others).collect()
}

/// Where packets wait.
enum Queue {
    /// In a ring of packet ids.
    Floor(VecDeque<qos::Id>),
    Tree(Box<Tree>),
}

impl Queue {
    #[inline]
    fn enqueue(&mut self, pool: &mut Pool, id: qos::Id, now: Instant) {
        match self {
            Self::Floor(ring) => ring.push_back(id),
            Self::Tree(tree) => {
                tree.enqueue(pool, id, now);
            }
        }
    }

    #[inline]
    fn dequeue(&mut self, pool: &mut Pool, now: Instant) -> Option<qos::Id> {
        match self {
            Self::Floor(ring) => ring.pop_front(),
            Self::Tree(tree) => tree.dequeue(pool, now),
        }
    }
}

/// A queue, its packets, and the flows that they belong to.
struct Load {
    queue: Queue,
    pool: Pool,
    keys: Vec<Keys>,
    random: Random,
    now: Instant,
    lost: u64,
}

impl Load {
    fn new(subject: &Subject, flows: u32) -> Result<Self> {
        let now = Instant::from_nanos(1);
        let queue = match &subject.spec {
            None => Queue::Floor(VecDeque::new()),
            Some(spec) => Queue::Tree(Box::new(Tree::new(spec, 42, now)?)),
        };
        Ok(Self {
            queue,
            pool: Pool::new(16_384),
            keys: packets::keys(flows),
            random: Random::new(1),
            now,
            lost: 0,
        })
    }

    #[inline]
    fn come(&mut self, keys: Keys) {
        let packet = Packet {
            handle: 0,
            length: 64,
            keys,
            arrived: self.now,
            marked: false,
        };
        match self.pool.insert(packet) {
            Some(id) => self.queue.enqueue(&mut self.pool, id, self.now),
            None => self.lost += 1,
        }
    }

    #[inline]
    fn leave(&mut self) {
        match self.queue.dequeue(&mut self.pool, self.now) {
            Some(id) => {
                self.pool.take(id);
            }
            None => self.lost += 1,
        }
    }

    /// Each of these other flows sends one packet, which leaves.
    fn pass(&mut self, others: &[Keys]) {
        for &keys in others {
            self.now += Duration::from_nanos(GAP_NS);
            self.come(keys);
            self.leave();
        }
    }

    fn one_of_them(&mut self) -> Keys {
        self.keys[self.random.below(self.keys.len())]
    }

    fn fill(&mut self) {
        for _ in 0..WAITING {
            let keys = self.one_of_them();
            self.come(keys);
        }
    }

    fn round(&mut self) {
        for _ in 0..ROUND / BATCH {
            self.now += Duration::from_nanos(BATCH * GAP_NS);
            for _ in 0..BATCH {
                let keys = self.one_of_them();
                self.come(keys);
            }
            for _ in 0..BATCH {
                self.leave();
            }
            self.lost += self.pool.discarded().count() as u64;
        }
    }
}

/// Nanoseconds from a packet's enqueue to its dequeue, with that many flows. With `idle`, [`IDLE`]
/// times as many other flows have sent a packet before.
///
/// # Errors
/// A packet was lost or held back, so the measurement is not valid.
pub(super) fn run(config: &Config, subject: &Subject, flows: u32, idle: bool) -> Result<f64> {
    let mut load = Load::new(subject, flows)?;
    if idle {
        let all = packets::keys(flows * (IDLE + 1));
        load.pass(&all[flows as usize..]);
    }
    load.fill();
    let ns = least(config, ROUND, || load.round());
    let lost = load.lost;
    ensure!(lost == 0, "{}: {lost} packets did not pass", subject.name);
    Ok(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_passes_every_queue() {
        let config = Config::new(true);
        for subject in subjects() {
            for idle in [false, true] {
                run(&config, &subject, 64, idle).unwrap();
            }
        }
    }
}
