//! Tests that a flow that is always backlogged gets its share and is served within the bound set by the quanta.

use base::Instant;
use proptest::prelude::*;
use qos::classify::{Hash, Key, KeySet, Map};
use qos::drr::{self, Drr};
use qos::fifo::{Fifo, Limit};
use qos::fq_codel::{self, FqCodel};
use qos::sfq::{self, Sfq};
use qos::{Discipline, Pool};

use crate::harness::{Draw, insert, keys, send};

const LARGEST: u64 = 1514;

/// Keeps every flow backlogged, and checks shares and gaps. `quanta` are those of flows 0, 1, 2 ...
fn check(queue: &mut dyn Discipline, quanta: &[u32], seed: u64) {
    let mut draw = Draw(seed);
    let mut pool = Pool::new(10_000);
    let now = Instant::ZERO;
    let mut handle = 0;
    let mut put = |queue: &mut dyn Discipline, pool: &mut Pool, flow: u32| {
        // Odd flows send small packets.
        let spread = if flow.is_multiple_of(2) {
            LARGEST - 40
        } else {
            60
        };
        let length = 40 + draw.below(spread) as u32;
        let id = insert(pool, handle, flow, 0, length, now);
        assert!(queue.enqueue(pool, id, now));
        handle += 1;
    };
    let flows = quanta.len();
    for flow in (0..flows as u32).chain(0..flows as u32) {
        put(queue, &mut pool, flow);
    }
    let quanta: Vec<u64> = quanta.iter().map(|&quantum| quantum.into()).collect();
    // The most that a flow can send in one turn.
    let turns: u64 = quanta.iter().map(|quantum| quantum + LARGEST).sum();
    let mut sent = vec![0u64; flows];
    let mut gaps = vec![0u64; flows];
    for turn in 0..3000 {
        let packet = send(queue, &mut pool, now).expect("all have something to send");
        let flow = packet.keys.mark as usize;
        sent[flow] += u64::from(packet.length);
        put(queue, &mut pool, flow as u32);
        for (other, gap) in gaps.iter_mut().enumerate() {
            *gap = if other == flow {
                0
            } else {
                *gap + u64::from(packet.length)
            };
            let turns_needed = LARGEST.div_ceil(quanta[other]) + 1;
            assert!(
                *gap <= turns * turns_needed,
                "flow {other} waited for {gap} octets"
            );
        }
        if turn % 16 > 0 {
            continue;
        }
        // Flows differ by at most one turn, plus a quantum and a packet.
        for (one, quantum) in quanta.iter().enumerate() {
            for (other, other_quantum) in quanta.iter().enumerate() {
                let served = sent[one] * other_quantum;
                let other_served = sent[other] * quantum;
                let apart = 2 * quantum * other_quantum + LARGEST * (quantum + other_quantum);
                assert!(
                    served <= other_served + apart,
                    "after {sent:?} octets by quanta {quanta:?}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn sfq_serves_all_flows_alike(seed in any::<u64>(), quantum in 100u32..3000, flows in 1usize..12) {
        let mut queue = Sfq::new(sfq::Options { quantum, seed, ..sfq::Options::default() });
        check(&mut queue, &vec![quantum; flows], seed);
    }

    #[test]
    fn fq_codel_serves_all_flows_alike(seed in any::<u64>(), quantum in 100u32..3000, flows in 1usize..12) {
        let options = fq_codel::Options { quantum, seed, flows: 65_536, ..fq_codel::Options::default() };
        let hash = Hash::new(options.keys, options.flows, seed, 0);
        let mut buckets: Vec<u32> = (0..flows as u32).map(|flow| hash.bucket(&keys(flow, 0))).collect();
        buckets.sort_unstable();
        buckets.dedup();
        prop_assume!(buckets.len() == flows);
        check(&mut FqCodel::new(options), &vec![quantum; flows], seed);
    }

    #[test]
    fn drr_serves_classes_by_their_quanta(
        seed in any::<u64>(),
        quanta in prop::collection::vec(100u32..6000, 1..12),
    ) {
        let classes = (0u16..).zip(&quanta).map(|(number, &quantum)| drr::Class {
            name: format!("1:{number:x}"),
            number,
            quantum,
            child: Box::new(Fifo::new(Limit::Packets(10))),
        });
        let mut map = Map::new(Key::Mark);
        map.baseclass = 0;
        let mut queue = Drr::new(classes.collect(), Box::new(map));
        check(&mut queue, &quanta, seed);
    }
}

#[test]
fn keys_of_a_host_make_its_flows_one() {
    let mut pool = Pool::new(100);
    let mut queue = FqCodel::new(fq_codel::Options {
        keys: KeySet::of(&[Key::Dst]),
        ..fq_codel::Options::default()
    });
    for flow in 0..20 {
        let id = insert(&mut pool, flow, flow, 0, 1000, Instant::ZERO);
        queue.enqueue(&mut pool, id, Instant::ZERO);
    }
    assert!(queue.details().contains(&("new_flow_count", 1)));
}
