//! Tests invariants of every discipline under random input.

use std::collections::{BTreeMap, BTreeSet};

use base::{Duration, Instant};
use proptest::prelude::*;
use qos::classify::{Bands, Hash, Key, KeySet, Map};
use qos::codel::{self, Codel, Parameters};
use qos::drr::{self, Drr};
use qos::fifo::{Fifo, Limit};
use qos::fq_codel::{self, Floor, FqCodel};
use qos::pfifo_fast::{self, PfifoFast};
use qos::prio::{Band, Prio};
use qos::sfq::{self, Perturb, Sfq};
use qos::{Discipline, Pool};

use crate::harness::{insert, lost, send};

#[derive(Debug, Clone)]
enum Step {
    Enqueue {
        flow: u32,
        traffic_class: u8,
        length: u32,
    },
    Dequeue,
    Wait(u64),
    /// Dequeues all packets and enqueues them again.
    Change,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let enqueue = (0u32..12, any::<u8>(), prop_oneof![40u32..1515, 0u32..3])
        .prop_map(|(flow, traffic_class, length)| Step::Enqueue {
            flow,
            traffic_class,
            length,
        })
        .boxed();
    let step = prop_oneof![
        8 => enqueue,
        5 => Just(Step::Dequeue),
        3 => (0u64..60_000_000).prop_map(Step::Wait),
        1 => Just(Step::Change),
    ];
    prop::collection::vec(step, 1..400)
}

fn parameters() -> impl Strategy<Value = Parameters> {
    (
        0u64..10,
        1u64..100,
        any::<bool>(),
        prop::option::of(0u64..20),
    )
        .prop_map(|(target, interval, ecn, ce)| Parameters {
            target: Duration::from_millis(target),
            interval: Duration::from_millis(interval),
            mtu: 1514,
            ecn,
            ce_threshold: ce.map(Duration::from_millis),
        })
}

fn leaf() -> impl Strategy<Value = Box<dyn Discipline>> {
    let fifo = prop_oneof![
        (0u32..20).prop_map(Limit::Packets),
        (0u64..10_000).prop_map(Limit::Bytes),
    ]
    .prop_map(|limit| Box::new(Fifo::new(limit)) as Box<dyn Discipline>);
    let pfifo_fast = (0u32..20, any::<bool>()).prop_map(|(limit, linux)| {
        let bands = if linux { Bands::LINUX } else { Bands::DSCP };
        Box::new(PfifoFast::new(pfifo_fast::Options { limit, bands })) as Box<dyn Discipline>
    });
    let codel = (0u32..40, parameters()).prop_map(|(limit, parameters)| {
        Box::new(Codel::new(codel::Options { limit, parameters })) as Box<dyn Discipline>
    });
    let fq_codel = (
        0u32..40,
        1u32..20,
        1u32..3000,
        prop_oneof![Just(1u64 << 25), 0u64..10_000],
        0u32..10,
        parameters(),
        any::<bool>(),
    )
        .prop_map(
            |(limit, flows, quantum, memory_limit, drop_batch, parameters, all)| {
                Box::new(FqCodel::new(fq_codel::Options {
                    limit,
                    flows,
                    quantum,
                    memory_limit,
                    drop_batch,
                    parameters,
                    floor: if all { Floor::All } else { Floor::Flow },
                    ..fq_codel::Options::default()
                })) as Box<dyn Discipline>
            },
        );
    let sfq = sfq(prop_oneof![Just(Perturb::Apart), Just(Perturb::Rehash)].boxed());
    prop_oneof![fifo, pfifo_fast, codel, fq_codel, sfq]
}

fn sfq(perturb: BoxedStrategy<Perturb>) -> impl Strategy<Value = Box<dyn Discipline>> {
    (
        0u32..40,
        0u32..40,
        1u32..3000,
        1u32..20,
        any::<bool>(),
        0u64..300,
        perturb,
    )
        .prop_map(
            |(limit, depth, quantum, divisor, head_drop, period, perturb)| {
                Box::new(Sfq::new(sfq::Options {
                    limit,
                    depth,
                    quantum,
                    divisor,
                    head_drop,
                    period: Duration::from_millis(period),
                    perturb,
                    ..sfq::Options::default()
                })) as Box<dyn Discipline>
            },
        )
}

fn any_discipline() -> impl Strategy<Value = Box<dyn Discipline>> {
    let leaf = leaf().boxed();
    let drr = prop::collection::vec((1u32..3000, leaf.clone()), 1..5).prop_map(|children| {
        // There is one class fewer than there are buckets, so some packets have no class.
        let divisor = children.len() as u32 + 1;
        let classes = (0u16..)
            .zip(children)
            .map(|(number, (quantum, child))| drr::Class {
                name: format!("1:{number:x}"),
                number,
                quantum,
                child,
            });
        let hash = Hash::new(KeySet::FLOW, divisor, 1, 0);
        Box::new(Drr::new(classes.collect(), Box::new(hash))) as Box<dyn Discipline>
    });
    let prio = (prop::collection::vec(leaf.clone(), 0..4), any::<bool>()).prop_map(
        |(children, with_filter)| {
            let bands = (1..).zip(children).map(|(number, child): (u32, _)| Band {
                name: format!("1:{number:x}"),
                child,
            });
            let filter = Map::new(Key::Mark);
            Box::new(Prio::new(
                bands.collect(),
                with_filter.then(|| Box::new(filter) as _),
                Bands::LINUX,
            )) as Box<dyn Discipline>
        },
    );
    prop_oneof![5 => leaf, 2 => drr, 2 => prio]
}

/// The test's own account.
#[derive(Default)]
struct Ledger {
    inserted: u64,
    inserted_bytes: u64,
    sent: u64,
    sent_bytes: u64,
    lost: u64,
    lost_bytes: u64,
    lengths: BTreeMap<u32, u32>,
    /// Last handle sent, by flow and traffic class.
    last: BTreeMap<(u32, u8), u32>,
}

impl Ledger {
    fn count_lost(&mut self, handles: &[u32]) {
        for handle in handles {
            self.lost += 1;
            self.lost_bytes += u64::from(self.lengths[handle]);
        }
    }

    fn check(&self, queue: &dyn Discipline, pool: &Pool, now: Instant) {
        let backlog = queue.backlog();
        let statistics = queue.statistics();
        let waiting = u64::from(backlog.packets);
        assert_eq!(waiting, u64::from(pool.len()));
        assert_eq!(self.inserted, self.sent + self.lost + waiting);
        assert_eq!(
            self.inserted_bytes,
            self.sent_bytes + self.lost_bytes + backlog.bytes
        );
        assert_eq!(statistics.sent_packets, self.sent);
        assert_eq!(statistics.sent_bytes, self.sent_bytes);
        assert_eq!(statistics.dropped, self.lost);
        assert_eq!(queue.next_time(now), (waiting > 0).then_some(now));
        for class in queue.classes() {
            assert!(class.backlog.packets <= backlog.packets);
        }
    }
}

fn run(queue: &mut dyn Discipline, steps: Vec<Step>, in_order: bool) {
    let mut pool = Pool::new(1000);
    let mut ledger = Ledger::default();
    let mut now = Instant::ZERO;
    for step in steps {
        match step {
            Step::Enqueue {
                flow,
                traffic_class,
                length,
            } => {
                let handle = ledger.inserted as u32;
                let id = insert(&mut pool, handle, flow, traffic_class, length, now);
                ledger.inserted += 1;
                ledger.inserted_bytes += u64::from(length);
                ledger.lengths.insert(handle, length);
                let taken = queue.enqueue(&mut pool, id, now);
                let lost = lost(&mut pool);
                assert_eq!(taken, !lost.contains(&handle));
                ledger.count_lost(&lost);
            }
            Step::Dequeue => {
                let waiting = queue.backlog().packets;
                let sent = send(queue, &mut pool, now);
                assert_eq!(sent.is_some(), waiting > 0, "work is conserved");
                ledger.count_lost(&lost(&mut pool));
                if let Some(packet) = sent {
                    ledger.sent += 1;
                    ledger.sent_bytes += u64::from(packet.length);
                    let flow = (packet.keys.mark, packet.keys.traffic_class);
                    let before = ledger.last.insert(flow, packet.handle);
                    assert!(!in_order || before < Some(packet.handle));
                }
            }
            Step::Wait(ns) => now += Duration::from_nanos(ns),
            Step::Change => {
                let waiting = queue.backlog().packets as usize;
                let mut out = Vec::new();
                queue.drain(&mut pool, &mut out);
                assert_eq!(out.iter().collect::<BTreeSet<_>>().len(), waiting);
                assert_eq!((out.len(), queue.backlog().bytes), (waiting, 0));
                assert_eq!(queue.next_time(now), None);
                out.sort_by_key(|&id| pool.sequence(id));
                for id in out {
                    assert!(queue.restore(&mut pool, id, now));
                }
                assert_eq!(lost(&mut pool), []);
            }
        }
        ledger.check(queue, &pool, now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn packets_are_conserved_and_flows_stay_in_order(
        mut queue in any_discipline(),
        steps in steps(),
    ) {
        run(&mut *queue, steps, true);
    }

    #[test]
    fn the_old_sfq_conserves_packets_but_not_their_order(
        mut queue in sfq(Just(Perturb::Stay).boxed()),
        steps in steps(),
    ) {
        run(&mut *queue, steps, false);
    }
}
