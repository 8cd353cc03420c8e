//! Tests HTB in virtual time: guarantees, borrowing and ceilings.

use crate::world::{World, assert_ceiling, keys};
use base::{Duration, Instant};
use proptest::prelude::*;
use qos::fifo::{Fifo, Limit};
use qos::htb::{ClassOptions, Htb, Levels, Options};
use qos::tbf::{self, Tbf};
use qos::{Classify, Discipline, Packet};
use wire::flow::Keys;

const MTU: u32 = 1_514;

/// Classifies packets by their mark.
#[derive(Debug)]
struct ByMark;

impl Classify for ByMark {
    fn class(&self, keys: &Keys) -> Option<u32> {
        Some(keys.mark)
    }
}

fn class(minor: u16, parent: u16, rate_bps: u64, ceil_bps: u64) -> ClassOptions {
    ClassOptions {
        minor,
        parent: (parent > 0).then_some(parent),
        rate_bps,
        ceil_bps,
        burst: 2 * MTU,
        cburst: 2 * MTU,
        priority: 0,
        quantum: None,
    }
}

fn is_leaf(classes: &[ClassOptions], minor: u16) -> bool {
    classes.iter().all(|class| class.parent != Some(minor))
}

fn world_of(classes: &[ClassOptions], leaf: impl Fn(u16) -> Box<dyn Discipline>) -> World<Htb> {
    let options = Options {
        major: 1,
        mtu: MTU,
        classes: classes.to_vec(),
        default: None,
        direct_limit: 100,
    };
    let minors = classes.iter().map(|class| class.minor);
    let leaves = minors
        .filter(|&minor| is_leaf(classes, minor))
        .map(|minor| (minor, leaf(minor)))
        .collect();
    let classifier = Some(Box::new(ByMark) as Box<dyn Classify>);
    let htb = Htb::new(&options, leaves, classifier, &Levels::Full, Instant::ZERO);
    World::new(htb.expect("the classes fit together"))
}

fn world(classes: &[ClassOptions]) -> World<Htb> {
    world_of(classes, |_| Box::new(Fifo::new(Limit::Packets(100))))
}

fn marked(mark: u16) -> Keys {
    Keys {
        mark: mark.into(),
        ..keys(1, 2, 3)
    }
}

/// Keeps the leaves backlogged for this long; returns the bits per second that each got.
fn share(world: &mut World<Htb>, leaves: &[u16], span: Duration) -> Vec<u64> {
    let start = world.now;
    let step = Duration::from_millis(5);
    while world.now < start + span {
        for &leaf in leaves {
            for _ in 0..50 {
                world.offer(marked(leaf), MTU);
            }
        }
        world.run_until(world.now + step);
    }
    let bits = |&leaf: &u16| {
        let bytes = world.bytes(start, world.now, |packet| packet.keys.mark == leaf.into());
        (u128::from(bytes) * 8_000_000_000 / u128::from((world.now - start).as_nanos())) as u64
    };
    leaves.iter().map(bits).collect()
}

fn assert_near(actual: u64, expected: u64) {
    let (low, high) = (expected * 97 / 100, expected * 103 / 100);
    assert!((low..=high).contains(&actual), "{actual} is not {expected}");
}

#[test]
fn a_backlogged_class_gets_its_rate_and_no_more_than_its_ceiling() {
    let classes = [
        class(1, 0, 10_000_000, 10_000_000),
        class(10, 1, 3_000_000, 3_000_000),
        class(11, 1, 2_000_000, 10_000_000),
    ];
    let got = share(&mut world(&classes), &[10, 11], Duration::from_secs(2));
    assert_near(got[0], 3_000_000);
    assert_near(got[1], 7_000_000);
}

#[test]
fn an_idle_class_lends_all_it_has() {
    let classes = [
        class(1, 0, 10_000_000, 10_000_000),
        class(10, 1, 9_000_000, 10_000_000),
        class(11, 1, 1_000_000, 10_000_000),
    ];
    let got = share(&mut world(&classes), &[11], Duration::from_secs(2));
    assert_near(got[0], 10_000_000);
}

#[test]
fn what_is_lent_is_shared_by_quantum() {
    let mut classes = [
        class(1, 0, 10_000_000, 10_000_000),
        class(10, 1, 1_000_000, 10_000_000),
        class(11, 1, 1_000_000, 10_000_000),
    ];
    classes[1].quantum = Some(6_000);
    classes[2].quantum = Some(2_000);
    let got = share(&mut world(&classes), &[10, 11], Duration::from_secs(4));
    assert_near(got[0], 7_000_000);
    assert_near(got[1], 3_000_000);
}

#[test]
fn the_first_priority_borrows_before_the_second_but_not_out_of_its_guarantee() {
    let mut classes = [
        class(1, 0, 10_000_000, 10_000_000),
        class(10, 1, 1_000_000, 10_000_000),
        class(11, 1, 4_000_000, 10_000_000),
    ];
    classes[2].priority = 1;
    let got = share(&mut world(&classes), &[10, 11], Duration::from_secs(2));
    assert_near(got[0], 6_000_000);
    assert_near(got[1], 4_000_000);
}

#[test]
fn an_inner_class_keeps_its_guarantee_and_its_ceiling_for_those_below() {
    let classes = [
        class(1, 0, 20_000_000, 20_000_000),
        class(2, 1, 5_000_000, 8_000_000),
        class(3, 1, 15_000_000, 20_000_000),
        class(20, 2, 1_000_000, 20_000_000),
        class(21, 2, 1_000_000, 20_000_000),
        class(30, 3, 1_000_000, 20_000_000),
    ];
    let mut alone = world(&classes);
    let got = share(&mut alone, &[20, 21], Duration::from_secs(2));
    assert_near(got[0], 4_000_000);
    assert_near(got[1], 4_000_000);
    let got = share(&mut world(&classes), &[20, 21, 30], Duration::from_secs(2));
    assert_near(got[0] + got[1], 5_000_000);
    assert_near(got[2], 15_000_000);
}

#[test]
fn guarantees_that_add_up_to_more_than_the_link_do_not_pass_its_ceiling() {
    let classes = [
        class(1, 0, 5_000_000, 5_000_000),
        class(10, 1, 5_000_000, 5_000_000),
        class(11, 1, 5_000_000, 5_000_000),
    ];
    let mut world = world(&classes);
    let got = share(&mut world, &[10, 11], Duration::from_secs(1));
    assert_near(got[0] + got[1], 5_000_000);
    assert_ceiling(world.sent.iter(), 5_000_000, 2 * MTU);
}

#[test]
fn several_classes_stand_side_by_side_at_the_top() {
    let classes = [
        class(1, 0, 1_000_000, 2_000_000),
        class(2, 0, 3_000_000, 3_000_000),
    ];
    let got = share(&mut world(&classes), &[1, 2], Duration::from_secs(2));
    assert_near(got[0], 1_000_000);
    assert_near(got[1], 3_000_000);
}

#[test]
fn a_leaf_that_holds_packets_back_itself_stops_nobody() {
    let classes = [
        class(1, 0, 10_000_000, 10_000_000),
        class(10, 1, 5_000_000, 10_000_000),
        class(11, 1, 5_000_000, 10_000_000),
    ];
    let slow = tbf::Options {
        rate_bps: 1_000_000,
        burst: 2 * MTU,
        peak: None,
    };
    let mut world = world_of(&classes, |minor| {
        let fifo = Box::new(Fifo::new(Limit::Packets(100)));
        match minor {
            10 => Box::new(Tbf::new(&slow, fifo, None, Instant::ZERO)),
            _ => fifo,
        }
    });
    for _ in 0..200 {
        for minor in [10, 11] {
            for _ in 0..20 {
                world.offer(marked(minor), MTU);
            }
        }
        let end = world.now + Duration::from_millis(10);
        while let Some(next) = world
            .discipline
            .next_time(world.now)
            .filter(|next| *next <= end)
        {
            world.now = world.now.max(next);
            if world.take().is_none() {
                // The filter below has dequeued its next packet and learns only now how long it is.
                let again = world.discipline.next_time(world.now).expect("backlogged");
                assert!(again > world.now);
            }
        }
        world.now = end;
        world.check();
    }
    let rate_of = |mark: u32| {
        let bytes = world.bytes(Instant::ZERO, world.now, |packet| packet.keys.mark == mark);
        bytes * 8 / 2
    };
    assert_near(rate_of(10), 1_000_000);
    assert_near(rate_of(11), 9_000_000);
}

#[test]
fn four_thousand_classes_that_are_idle_are_not_asked() {
    let mut classes = vec![class(1, 0, 100_000_000, 100_000_000)];
    classes.extend((10..4_106).map(|minor| class(minor, 1, 20_000, 100_000_000)));
    let mut world = world(&classes);
    let all: Vec<u16> = (10..4_106).collect();
    for &minor in &all {
        world.offer(marked(minor), MTU);
    }
    world.run_until(Instant::from_nanos(1_000_000_000));
    assert_eq!(world.sent.len(), 4_096);
    let got = share(&mut world, &[77], Duration::from_millis(50));
    assert!(got[0] > 97_000_000, "{got:?}");
}

/// A tree of random classes: a root, up to three inner classes, and up to four leaves below each.
fn classes() -> impl Strategy<Value = Vec<ClassOptions>> {
    let rate = 100_000u64..20_000_000;
    let leaf = (rate.clone(), rate.clone(), 0u8..4, 0u32..3, MTU..20_000);
    let inner = (
        rate.clone(),
        rate.clone(),
        prop::collection::vec(leaf, 0..4),
    );
    (rate, prop::collection::vec(inner, 1..4)).prop_map(|(root, inner)| {
        let mut classes = vec![class(1, 0, root, root)];
        for (number, (a, b, leaves)) in (2..).zip(inner) {
            classes.push(class(number, 1, a.min(b), a.max(b)));
            for (place, (a, b, priority, extra, burst)) in (0..).zip(leaves) {
                classes.push(ClassOptions {
                    priority,
                    burst: burst + extra * MTU,
                    cburst: burst,
                    ..class(number * 16 + place, number, a.min(b), a.max(b))
                });
            }
        }
        classes
    })
}

/// Whether `minor` is `class` or a descendant of it.
fn is_below(classes: &[ClassOptions], minor: u32, class: u16) -> bool {
    let own = classes.iter().find(|class| u32::from(class.minor) == minor);
    own.is_some_and(|own| {
        own.minor == class
            || own
                .parent
                .is_some_and(|up| is_below(classes, up.into(), class))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_ceiling_is_passed_none_is_lost_and_next_time_is_exact(
        classes in classes(),
        load in prop::collection::vec((0u64..4_000_000, 0usize..16, 40u32..=MTU, 1u32..20), 1..150),
    ) {
        let leaves: Vec<u16> = classes.iter().map(|class| class.minor)
            .filter(|&minor| is_leaf(&classes, minor)).collect();
        let mut world = world(&classes);
        for (wait, leaf, length, count) in load {
            // It also polls exactly when a packet leaves, and shortly before.
            world.run_until(world.now + Duration::from_nanos(wait));
            for _ in 0..count {
                world.offer(marked(leaves[leaf % leaves.len()]), length);
            }
        }
        world.run_until(world.now + Duration::from_secs(300));
        prop_assert_eq!(world.discipline.backlog().packets, 0);
        for class in &classes {
            let below = world.sent.iter()
                .filter(|sent| is_below(&classes, sent.packet.keys.mark, class.minor));
            assert_ceiling(below, class.ceil_bps, class.cburst);
        }
        let in_order = |leaf: u16| {
            let of_leaf = world.sent.iter().filter(|sent| sent.packet.keys.mark == leaf.into());
            let handles: Vec<u32> = of_leaf.map(|sent| sent.packet.handle).collect();
            handles.is_sorted()
        };
        prop_assert!(leaves.iter().all(|&leaf| in_order(leaf)));
    }

    #[test]
    fn whoever_is_backlogged_gets_its_rate_if_the_rates_fit_and_the_link_is_full(
        rates in prop::collection::vec(1u64..100, 1..8),
        priorities in prop::collection::vec(0u8..3, 8),
    ) {
        let whole: u64 = rates.iter().sum();
        let bits = |parts: u64| parts * 20_000_000 / whole;
        let mut classes = vec![class(1, 0, 20_000_000, 20_000_000)];
        for (index, &rate) in rates.iter().enumerate() {
            classes.push(ClassOptions {
                priority: priorities[index],
                // Waiting for other classes' packets must not cost tokens.
                burst: 10 * MTU,
                ..class(10 + index as u16, 1, bits(rate), 20_000_000)
            });
        }
        let leaves: Vec<u16> = classes[1..].iter().map(|class| class.minor).collect();
        let mut world = world(&classes);
        // By then the initial burst from full buckets has ended.
        share(&mut world, &leaves, Duration::from_millis(500));
        let got = share(&mut world, &leaves, Duration::from_secs(2));
        for (got, &rate) in got.iter().zip(&rates) {
            // A guarantee may be late by the burst.
            let late = 10 * u64::from(MTU) * 8 / 2;
            prop_assert!(got + late >= bits(rate) * 97 / 100, "{} of {}", got, bits(rate));
        }
        let total: u64 = got.iter().sum();
        prop_assert!(total >= 20_000_000 * 97 / 100);
        let rate_of = |packet: &Packet| u64::from(packet.length);
        let bytes: u64 = world.sent.iter().map(|sent| rate_of(&sent.packet)).sum();
        prop_assert_eq!(bytes, world.discipline.statistics().sent_bytes);
    }
}
