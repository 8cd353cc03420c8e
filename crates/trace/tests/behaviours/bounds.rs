//! Whatever the traffic: no value below its bounds, none above, none that wrapped.

use crate::support::{End, End::*, FIN, MS, RST, SYN, Script, connections, options};
use proptest::prelude::*;
use trace::Direction;

/// One packet of a conversation that keeps no rules.
#[derive(Debug, Clone)]
enum Step {
    Data(bool, u32),
    Octets(bool, u32, u32),
    AckOf(bool, u32, u16),
    Sack(bool, u32, u32, u32),
    Flags(bool, u16),
    Wait(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (any::<bool>(), 1u32..3_000).prop_map(|(a, length)| Step::Data(a, length)),
        (any::<bool>(), 0u32..9_000, 1u32..3_000).prop_map(|(a, at, n)| Step::Octets(
            a,
            at,
            at + n
        )),
        (any::<bool>(), 0u32..9_000, 0u16..3).prop_map(|(a, at, w)| Step::AckOf(a, at, w * 4_000)),
        (any::<bool>(), 0u32..9_000, 0u32..9_000, 1u32..2_000)
            .prop_map(|(a, at, left, n)| Step::Sack(a, at, left, left + n)),
        (any::<bool>(), 0u16..32).prop_map(|(a, flags)| Step::Flags(a, flags)),
        (-3_000i64..10_000).prop_map(Step::Wait),
    ]
}

fn script(steps: &[Step], isn: u32) -> Script {
    let end = |a: bool| -> End { if a { A } else { B } };
    let mut script = Script::starting_at(isn, isn.wrapping_add(77));
    for step in steps {
        match *step {
            Step::Data(a, length) => {
                script.data(end(a), length);
            }
            Step::Octets(a, first, last) => {
                script.octets(end(a), first, last);
            }
            Step::AckOf(a, offset, window) => script.ack_of(end(a), offset).window = window,
            Step::Sack(a, offset, left, right) => {
                script.sack(end(a), offset, &[(left, right)]);
            }
            Step::Flags(a, flags) => {
                let segment = script.flags(end(a), flags);
                segment.options = options(&[3, 3, 2]);
            }
            Step::Wait(milliseconds) => script.wait(milliseconds),
        }
    }
    script
}

/// The least, the mean and the most of each statistic that has these.
fn bounds(d: &Direction) -> Vec<(&'static str, f64, f64, f64)> {
    let mean = |sum: f64, count: u64| sum / count as f64;
    let mut all = Vec::new();
    for (name, times) in crate::statistics::times(d) {
        if times.count > 0 {
            all.push((name, times.min as f64, times.mean(), times.max as f64));
        }
    }
    if d.data_packets > 0 {
        let average = mean(d.data_bytes as f64, d.data_packets);
        all.push((
            "segment",
            d.segment_min.into(),
            average,
            d.segment_max.into(),
        ));
    }
    if d.owin.count > 0 {
        let average = mean(d.owin.total as f64, d.owin.count);
        all.push(("owin", d.owin.min as f64, average, d.owin.max as f64));
    }
    if d.windows.count > 0 {
        let average = mean(d.windows.total as f64, d.windows.count);
        all.push(("window", 0.0, average, d.windows.max.into()));
    }
    if let Some(length) = d.stream_length() {
        let missed = d.missed().unwrap();
        all.push(("missed", 0.0, missed as f64, length as f64));
    }
    all
}

proptest! {
    #[test]
    fn the_mean_lies_between_the_bounds_and_nothing_underflows(
        steps in prop::collection::vec(step(), 1..150),
        isn in prop_oneof![Just(5u32), Just(0xffff_f000), Just(0x7fff_f000)],
    ) {
        let script = script(&steps, isn);
        for connection in connections(&script.segments) {
            let packets = connection.packets;
            for direction in [&connection.a, &connection.b] {
                for (name, min, mean, max) in bounds(direction) {
                    let slack = max * 1e-9;
                    prop_assert!(min <= mean + slack && mean <= max + slack, "{name}: {min} {mean} {max}");
                }
                // What wrapped below 0 would be larger than all that was sent.
                for (name, value) in crate::statistics::of(&connection) {
                    let squares = name.ends_with("squares") || name.ends_with("weight");
                    let times = packets as i128 * 10_000 * i128::from(MS);
                    prop_assert!(squares || (-1..=times.max(1 << 40)).contains(&value), "{name} is {value}");
                }
                prop_assert!(direction.unique_bytes <= direction.data_bytes);
            }
        }
    }

    #[test]
    fn a_segment_with_syn_fin_or_rst_is_never_a_duplicate_ack(
        steps in prop::collection::vec(step(), 1..100),
    ) {
        let mut script = script(&steps, 1_000);
        for segment in &mut script.segments {
            if segment.payload == 0 && segment.flags & (SYN | FIN | RST) == 0 {
                segment.flags |= FIN;
            }
        }
        for connection in connections(&script.segments) {
            prop_assert_eq!(connection.a.duplicate_acks + connection.b.duplicate_acks, 0);
        }
    }
}
