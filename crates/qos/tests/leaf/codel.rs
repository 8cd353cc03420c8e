//! CoDel against RFC 8289's pseudocode, packet by packet.

use base::{Duration, Instant};
use proptest::prelude::*;
use qos::codel::{Codel, Options, Parameters};
use qos::{Discipline, Pool};

use crate::harness::{Draw, insert, lost, send};
use crate::reference::{CodelQueue, Constants, Outcome, Sample};

const MS: u64 = 1_000_000;

/// Alternates overload and quiet on a link where a packet takes some milliseconds.
fn compare(seed: u64, parameters: Parameters, capable_percent: u64) -> u64 {
    let constants = Constants {
        target: parameters.target.as_nanos() as i64,
        interval: parameters.interval.as_nanos() as i64,
        maxpacket: parameters.mtu.into(),
        ecn: parameters.ecn,
    };
    let mut draw = Draw(seed);
    let mut pool = Pool::new(100_000);
    let mut queue = Codel::new(Options {
        limit: 100_000,
        parameters,
    });
    let mut reference = CodelQueue::default();
    let mut now = 0;
    let mut arrivals = 0;
    let mut acted = 0;
    for _ in 0..40 {
        let load = draw.below(130);
        for _ in 0..200 {
            now += draw.below(3 * MS);
            while draw.chance(load.min(58)) {
                let capable = draw.chance(capable_percent);
                let length = 60 + draw.below(1455) as u32;
                let id = insert(
                    &mut pool,
                    arrivals,
                    0,
                    capable.into(),
                    length,
                    Instant::from_nanos(now),
                );
                assert!(queue.enqueue(&mut pool, id, Instant::from_nanos(now)));
                reference.push(Sample {
                    handle: arrivals,
                    length,
                    tstamp: now as i64,
                    capable,
                });
                arrivals += 1;
            }
            let expected = reference.dequeue(&constants, now as i64, 0);
            let sent = send(&mut queue, &mut pool, Instant::from_nanos(now));
            let outcome = Outcome::of(sent, lost(&mut pool));
            assert_eq!(outcome, expected, "seed {seed} at {now} ns");
            assert_eq!(queue.backlog().bytes, reference.bytes());
            acted += outcome.dropped.len() as u64 + u64::from(outcome.marked);
        }
    }
    let statistics = queue.statistics();
    assert_eq!(statistics.dropped + statistics.ecn_mark, acted);
    acted
}

#[test]
fn drops_are_those_of_the_pseudocode() {
    let acted: u64 = (0..40)
        .map(|seed| compare(seed, Parameters::default(), 50))
        .sum();
    assert!(acted > 10_000, "{acted} drops");
}

#[test]
fn marks_take_the_place_of_drops() {
    let parameters = Parameters {
        ecn: true,
        ..Parameters::default()
    };
    for percent in [0, 50, 100] {
        let acted: u64 = (0..20).map(|seed| compare(seed, parameters, percent)).sum();
        assert!(acted > 1_000, "{acted} marks and drops");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_parameters_give_what_the_pseudocode_gives(
        seed in any::<u64>(),
        target_us in 0u64..50_000,
        interval_us in 1u64..1_000_000,
        mtu in 0u32..20_000,
        ecn in any::<bool>(),
        capable_percent in 0u64..=100,
    ) {
        compare(
            seed,
            Parameters {
                target: Duration::from_micros(target_us),
                interval: Duration::from_micros(interval_us),
                mtu,
                ecn,
                ce_threshold: None,
            },
            capable_percent,
        );
    }
}

#[test]
fn all_that_waits_above_the_threshold_is_marked_and_nothing_else() {
    let mut pool = Pool::new(10);
    let mut queue = Codel::new(Options {
        parameters: Parameters {
            ce_threshold: Some(Duration::from_millis(1)),
            ..Parameters::default()
        },
        ..Options::default()
    });
    let at = |us: u64| Instant::from_nanos(us * 1000);
    for (handle, traffic_class) in [(0, 1), (1, 2), (2, 0), (3, 1)] {
        let id = insert(&mut pool, handle, 0, traffic_class, 100, at(0));
        queue.enqueue(&mut pool, id, at(0));
    }
    let marks: Vec<bool> = [1000, 1001, 2000, 2000]
        .map(|us| send(&mut queue, &mut pool, at(us)).is_some_and(|packet| packet.marked))
        .to_vec();
    assert_eq!(marks, [false, true, false, true]);
    assert!(queue.details().contains(&("ce_mark", 2)));
    assert_eq!(queue.statistics().ecn_mark, 0);
}

#[test]
fn a_full_queue_discards_what_comes() {
    let mut pool = Pool::new(10);
    let mut queue = Codel::new(Options {
        limit: 2,
        ..Options::default()
    });
    let taken: Vec<bool> = (0..3)
        .map(|handle| {
            let id = insert(&mut pool, handle, 0, 0, 100, Instant::ZERO);
            queue.enqueue(&mut pool, id, Instant::ZERO)
        })
        .collect();
    assert_eq!(taken, [true, true, false]);
    assert_eq!(lost(&mut pool), [2]);
    assert!(queue.details().contains(&("drop_overlimit", 1)));
}
