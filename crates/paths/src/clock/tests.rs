//! Offset, drift, steps and delays of clocks whose truth is known.

use proptest::prelude::*;

use super::*;

const MS: i64 = 1_000_000;

/// A path's packets: `(way, time at A, time at B)`. The least delays are 10 ms there and 4 ms back, and queues add to
/// them. B's clock is off by `offset`, runs faster by `ppm`, and is stepped by `step` after half of the time.
fn packets(seed: u64, count: i64, offset: i64, ppm: f64, step: i64) -> Vec<(Way, i64, i64)> {
    let mut state = seed;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64
    };
    let at_b = |time: i64| {
        let stepped = if time > count / 2 * MS { step } else { 0 };
        time + offset + stepped + (time as f64 * ppm * 1e-6) as i64
    };
    let mut packets = Vec::new();
    for at in 0..count {
        let time = at * MS;
        // Every tenth packet finds the queue empty.
        let queue = if random() % 10 == 0 {
            0
        } else {
            random() % (20 * MS)
        };
        let pair = match random() % 2 {
            0 => (Way::AToB, time, at_b(time + 10 * MS + queue)),
            _ => (Way::BToA, time + 4 * MS + queue, at_b(time)),
        };
        packets.push(pair);
    }
    packets
}

fn fit(packets: &[(Way, i64, i64)]) -> Clock {
    let mut times = Times::default();
    for &(way, a, b) in packets {
        times.add(way, a, b);
    }
    times.fit(None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn offset_and_drift_are_within_their_bounds(
        seed in any::<u64>(),
        offset in -400_000_000_000_000_000i64..400_000_000_000_000_000,
        ppm in -80.0f64..80.0,
    ) {
        let clock = fit(&packets(seed, 20_000, offset, ppm, 0));
        prop_assert_eq!(clock.pieces.len(), 1);
        let piece = &clock.pieces[0];
        let start = piece.time.0 as f64;
        let truth = offset as f64 + start * ppm * 1e-6;
        // Numbers of this size are exact to 64 ns.
        prop_assert!(piece.offset.0.unwrap() <= truth + 1_000.0);
        prop_assert!(piece.offset.1.unwrap() >= truth - 1_000.0);
        let (low, high) = piece.drift_bounds;
        prop_assert!(low * 1e6 <= ppm && ppm <= high * 1e6, "{} {} {}", low, ppm, high);
        prop_assert!((piece.drift * 1e6 - ppm).abs() < 30.0, "{} for {}", piece.drift * 1e6, ppm);
        // 10 ms and 4 ms: the sum is known, the division is not.
        let sum = clock.round_trip.unwrap();
        prop_assert!((sum - 14e6).abs() < 0.3e6, "{}", sum);
        let there = &clock.delays[0];
        prop_assert!(there.least.0 <= 10e6 && 10e6 <= there.least.1.unwrap());
        prop_assert!((there.longest - 20e6).abs() < 1e6, "{}", there.longest);
        prop_assert!((there.ranks[1] - 9e6).abs() < 1e6, "{}", there.ranks[1]);
    }

    #[test]
    fn a_step_is_found_with_its_size_and_time(
        seed in any::<u64>(),
        step in prop_oneof![-5_000 * MS..-8 * MS, 8 * MS..5_000 * MS],
    ) {
        let clock = fit(&packets(seed, 20_000, 3_000 * MS, 50.0, step));
        prop_assert_eq!(clock.steps.len(), 1, "{:?}", clock.steps);
        let found = &clock.steps[0];
        prop_assert!((found.by - step as f64).abs() <= found.error + 1e6, "{:?} for {}", found, step);
        prop_assert!(found.time.0 <= 10_100 * MS && found.time.1 >= 9_900 * MS);
        prop_assert!((clock.delays[0].longest - 20e6).abs() < 1.5e6);
    }
}

#[test]
fn one_direction_alone_bounds_nothing_but_the_variation() {
    let packets = packets(7, 20_000, 0, 20.0, 0);
    let there: Vec<_> = packets
        .into_iter()
        .filter(|packet| packet.0 == Way::AToB)
        .collect();
    let clock = fit(&there);
    assert_eq!(clock.round_trip, None);
    assert_eq!(clock.delays[0].least.1, None);
    assert!((clock.delays[0].longest - 20e6).abs() < 1e6);
    assert!((clock.pieces[0].drift * 1e6 - 20.0).abs() < 20.0);
}

#[test]
fn one_clock_gives_the_delay_itself() {
    let mut times = Times::default();
    for at in 0..100 {
        times.add(Way::AToB, at * MS, at * MS + 10 * MS + at % 3 * MS);
        times.add(Way::BToA, at * MS + 4 * MS, at * MS);
    }
    let clock = times.fit(Some(0));
    assert_eq!(clock.delays[0].least, (10e6, Some(10e6)));
    assert_eq!(clock.delays[1].least, (4e6, Some(4e6)));
    assert_eq!(clock.delays[0].longest, 2e6);
}

#[test]
fn few_packets_show_no_drift_and_a_known_offset_leaves_no_delay() {
    let packets = [
        (Way::BToA, 0, 5 * MS),
        (Way::AToB, 3 * MS, 8 * MS),
        (Way::BToA, 7 * MS, 12 * MS),
    ];
    let clock = fit(&packets);
    assert_eq!(clock.pieces[0].drift, 0.0);
    let (least, most) = clock.pieces[0].drift_bounds;
    assert!(least <= 0.0 && 0.0 <= most);
    let mut times = Times::default();
    for (way, a, b) in packets {
        times.add(way, a, b);
    }
    let clock = times.fit(Some(5 * MS));
    assert_eq!(clock.pieces[0].offset, (Some(5e6), Some(5e6)));
    assert_eq!(clock.round_trip, Some(0.0));
    assert!(clock.steps.is_empty() && !clock.is_one);
    for delay in clock.delays {
        assert_eq!((delay.least, delay.longest), ((0.0, Some(0.0)), 0.0));
    }
}
