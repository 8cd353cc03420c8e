//! Tests fair queuing with CoDel against RFC 8290, packet by packet, and its guarantees.

use base::{Duration, Instant};
use proptest::prelude::*;
use qos::classify::Hash;
use qos::codel::Parameters;
use qos::fq_codel::{Floor, FqCodel, Options};
use qos::{Discipline, Pool};

use crate::harness::{Draw, insert, keys, lost, send};
use crate::reference::{CodelQueue, Constants, FqCodelQueue, Outcome, Sample};

fn reference(options: &Options) -> FqCodelQueue {
    let parameters = options.parameters;
    FqCodelQueue {
        constants: Constants {
            target: parameters.target.as_nanos() as i64,
            interval: parameters.interval.as_nanos() as i64,
            maxpacket: parameters.mtu.into(),
            ecn: parameters.ecn,
        },
        limit: options.limit as usize,
        quantum: options.quantum.into(),
        floor_is_all: options.floor == Floor::All,
        queues: (0..options.flows)
            .map(|_| (CodelQueue::default(), 0))
            .collect(),
        new: Default::default(),
        old: Default::default(),
    }
}

/// Some flows, of which the first send most; overload and quiet alternate.
fn compare(seed: u64, options: Options, flows: u64) -> u64 {
    let mut draw = Draw(seed);
    let mut pool = Pool::new(100_000);
    let mut queue = FqCodel::new(options);
    let hash = Hash::new(options.keys, options.flows, options.seed, 0);
    let mut reference = reference(&options);
    let mut now = 0;
    let mut arrivals = 0;
    let mut dropped = 0;
    for _ in 0..20 {
        let load = draw.below(76);
        for _ in 0..200 {
            now += draw.below(2_000_000);
            let instant = Instant::from_nanos(now);
            while draw.chance(load) {
                let flow = draw.below(flows).min(draw.below(flows)) as u32;
                let length = 60 + draw.below(1455) as u32;
                let capable = flow.is_multiple_of(3);
                let sample = Sample {
                    handle: arrivals,
                    length,
                    tstamp: now as i64,
                    capable,
                };
                let index = hash.bucket(&keys(flow, capable.into()));
                let expected = reference.enqueue(index as usize, sample);
                let id = insert(&mut pool, arrivals, flow, capable.into(), length, instant);
                let taken = queue.enqueue(&mut pool, id, instant);
                assert_eq!(taken, !expected.contains(&arrivals));
                assert_eq!(lost(&mut pool), expected, "seed {seed} at {now} ns");
                dropped += expected.len() as u64;
                arrivals += 1;
            }
            let expected = reference.dequeue(now as i64);
            let sent = send(&mut queue, &mut pool, instant);
            let outcome = Outcome::of(sent, lost(&mut pool));
            assert_eq!(outcome, expected, "seed {seed} at {now} ns");
            assert_eq!(queue.backlog().packets as usize, reference.packets());
            dropped += outcome.dropped.len() as u64;
        }
    }
    let details = queue.details();
    assert!(details.contains(&("old_flows_len", reference.old.len() as u64)));
    assert!(details.contains(&("new_flows_len", reference.new.len() as u64)));
    assert_eq!(queue.statistics().dropped, dropped);
    dropped
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn packets_leave_and_are_dropped_as_the_rfc_s_text_has_it(
        seed in any::<u64>(),
        limit in prop_oneof![Just(10_240u32), 1u32..200],
        flows in 1u32..64,
        quantum in prop_oneof![Just(1514u32), 1u32..4000],
        target_us in 0u64..20_000,
        interval_us in 1u64..200_000,
        mtu in prop_oneof![Just(1514u32), 0u32..4000],
        ecn in any::<bool>(),
        all in any::<bool>(),
        senders in 1u64..40,
    ) {
        let options = Options {
            limit,
            flows,
            quantum,
            parameters: Parameters {
                target: Duration::from_micros(target_us),
                interval: Duration::from_micros(interval_us),
                mtu,
                ecn,
                ce_threshold: None,
            },
            floor: if all { Floor::All } else { Floor::Flow },
            seed,
            ..Options::default()
        };
        compare(seed, options, senders);
    }
}

#[test]
fn the_defaults_are_those_of_the_rfc_and_drop_under_load() {
    let dropped: u64 = (0..4)
        .map(|seed| compare(seed, Options::default(), 3))
        .sum();
    assert!(dropped > 100, "{dropped} drops");
}

#[test]
fn a_flow_that_comes_goes_before_those_that_have_a_queue() {
    let mut pool = Pool::new(100);
    let mut queue = FqCodel::new(Options::default());
    let now = Instant::ZERO;
    for handle in 0..20 {
        let id = insert(&mut pool, handle, handle % 2, 0, 1514, now);
        queue.enqueue(&mut pool, id, now);
    }
    for _ in 0..4 {
        send(&mut queue, &mut pool, now);
    }
    let id = insert(&mut pool, 100, 7, 0, 100, now);
    queue.enqueue(&mut pool, id, now);
    let next = send(&mut queue, &mut pool, now);
    assert_eq!(next.map(|packet| packet.handle), Some(100));
}

#[test]
fn memory_has_a_limit_of_its_own() {
    let mut pool = Pool::new(1000);
    let place = u64::from(Pool::PLACE_BYTES);
    let mut queue = FqCodel::new(Options {
        memory_limit: 10 * (1000 + place),
        ..Options::default()
    });
    for handle in 0..100 {
        let id = insert(&mut pool, handle, 0, 0, 1000, Instant::ZERO);
        assert!(queue.enqueue(&mut pool, id, Instant::ZERO));
        assert!(queue.backlog().packets <= 10);
    }
    let details = queue.details();
    let lost = lost(&mut pool).len() as u64;
    assert!(lost >= 90);
    assert!(details.contains(&("drop_overmemory", lost)));
    assert!(details.contains(&("drop_overlimit", lost)));
    let used = u64::from(queue.backlog().packets) * (1000 + place);
    assert!(details.contains(&("memory_used", used)));
}

#[test]
fn what_cannot_fit_at_all_is_not_taken() {
    let mut pool = Pool::new(1000);
    for options in [
        Options {
            limit: 0,
            ..Options::default()
        },
        Options {
            memory_limit: 0,
            ..Options::default()
        },
    ] {
        let mut queue = FqCodel::new(options);
        for length in [0, 1, u32::MAX] {
            let id = insert(&mut pool, 0, 0, 0, length, Instant::ZERO);
            assert!(!queue.enqueue(&mut pool, id, Instant::ZERO));
        }
        assert!(pool.is_empty());
        assert_eq!(send(&mut queue, &mut pool, Instant::ZERO), None);
    }
}
