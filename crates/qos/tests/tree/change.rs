//! Tests trees that change while packets wait in them.

use base::{Duration, Instant};
use proptest::prelude::*;
use qos::classify::{Key, KeySet, Map};
use qos::fifo::Limit;
use qos::htb::ClassOptions;
use qos::tree::{Classifier, HtbSpec, Spec, TbfSpec, Tree};
use qos::{Discipline, codel, fair, fq_codel, pfifo_fast, sfq, tbf};

use crate::world::{World, assert_ceiling, keys};

const MTU: u32 = 1_514;
const BURST: u32 = 20_000;
const RATE_MAX: u64 = 50_000_000;

fn leaf() -> impl Strategy<Value = Spec> {
    let sets = prop::sample::select(vec![KeySet::FLOW, KeySet::HOST, KeySet::default()]);
    (0u8..7, 1u32..200, sets).prop_map(|(kind, limit, keys)| match kind {
        0 => Spec::Fifo(Limit::Packets(limit)),
        1 => Spec::Fifo(Limit::Bytes(u64::from(limit) * 1_000)),
        2 => Spec::PfifoFast(pfifo_fast::Options {
            limit,
            ..pfifo_fast::Options::default()
        }),
        3 => Spec::Sfq(sfq::Options {
            limit,
            keys,
            ..sfq::Options::default()
        }),
        4 => Spec::Codel(codel::Options {
            limit,
            ..codel::Options::default()
        }),
        5 => Spec::FqCodel(fq_codel::Options {
            limit,
            keys,
            flows: 16,
            ..fq_codel::Options::default()
        }),
        _ => Spec::Fair(fair::Options {
            limit,
            hosts: keys,
            hosts_max: 3,
            flows_max: 5,
            ..fair::Options::default()
        }),
    })
}

/// One rate for all packets, or one parent class with a class for each of three marks.
fn shaped() -> impl Strategy<Value = Spec> {
    let rate = 500_000u64..RATE_MAX;
    let one = (rate.clone(), MTU..BURST, leaf()).prop_map(|(rate_bps, burst, child)| {
        Spec::Tbf(TbfSpec {
            options: tbf::Options {
                rate_bps,
                burst,
                peak: None,
            },
            child: Box::new(child),
        })
    });
    let class = (rate.clone(), 0u8..3, leaf());
    let several =
        (rate, prop::collection::vec(class, 3), MTU..BURST).prop_map(|(root, below, burst)| {
            let class = |minor, parent, rate: u64, priority| ClassOptions {
                minor,
                parent,
                rate_bps: rate.min(root),
                ceil_bps: root,
                burst,
                cburst: burst,
                priority,
                quantum: None,
            };
            let mut classes = vec![class(0x100, None, root, 0)];
            let mut leaves = Vec::new();
            for (minor, (rate, priority, leaf)) in (1..).zip(below) {
                classes.push(class(minor, Some(0x100), rate / 3, priority));
                leaves.push((minor, leaf));
            }
            Spec::Htb(HtbSpec {
                mtu: MTU,
                classes,
                leaves,
                classifier: Some(Classifier::Map(Map::new(Key::Mark))),
                default: Some(1),
                direct_limit: 0,
            })
        });
    prop_oneof![one, several]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn a_change_under_load_loses_nothing_overtakes_nothing_and_passes_no_rate(
        first in shaped(),
        steps in prop::collection::vec(
            (prop::option::weighted(0.3, shaped()), 0u64..20_000_000, 0u32..4, 0u16..4, 1u32..15, 60u32..MTU),
            1..40,
        ),
    ) {
        let tree = Tree::new(&first, 5, Instant::ZERO).expect("it fits together");
        let mut world = World::new(tree);
        for (spec, wait, host, port, count, length) in steps {
            world.run_until(world.now + Duration::from_nanos(wait));
            for _ in 0..count {
                let mut own = keys(host, 99, port);
                own.mark = u32::from(port);
                world.offer(own, length);
            }
            if let Some(spec) = spec {
                let before = (world.discipline.backlog(), world.discipline.statistics());
                let World { discipline, pool, now, .. } = &mut world;
                discipline.change(&spec, pool, *now).expect("it fits together");
                prop_assert_eq!(pool.discarded().count(), 0);
                prop_assert_eq!((discipline.backlog(), discipline.statistics()), before);
                prop_assert_eq!(discipline.spec(), &spec);
            }
            world.check();
        }
        world.run_until(world.now + Duration::from_secs(100));
        prop_assert_eq!(world.discipline.backlog(), qos::Backlog::default());
        assert_ceiling(world.sent.iter(), RATE_MAX, BURST);
        prop_assert_eq!(world.discipline.statistics().sent_packets, world.sent.len() as u64);
        prop_assert_eq!(world.discipline.statistics().dropped, world.lost);
        for host in 0..4 {
            for port in 0..4 {
                let own = |packet: &qos::Packet| packet.keys.outer == keys(host, 99, port).outer;
                let of_flow = world.sent.iter().filter(|sent| own(&sent.packet));
                let handles: Vec<u32> = of_flow.map(|sent| sent.packet.handle).collect();
                prop_assert!(handles.is_sorted());
            }
        }
    }
}

fn tbf(rate_bps: u64, child: Spec) -> Spec {
    Spec::Tbf(TbfSpec {
        options: tbf::Options {
            rate_bps,
            burst: 3_000,
            peak: None,
        },
        child: Box::new(child),
    })
}

#[test]
fn a_bucket_keeps_its_level_over_a_hundred_changes() {
    let spec = |limit| tbf(1_000_000, Spec::Fifo(Limit::Packets(limit)));
    let mut world = World::new(Tree::new(&spec(500), 1, Instant::ZERO).expect("fits"));
    for _ in 0..400 {
        world.offer(keys(1, 2, 3), 1_500);
    }
    for turn in 0..100 {
        world.run_until(world.now + Duration::from_millis(30));
        let World {
            discipline,
            pool,
            now,
            ..
        } = &mut world;
        discipline
            .change(&spec(100 + turn), pool, *now)
            .expect("fits");
    }
    assert_ceiling(world.sent.iter(), 1_000_000, 3_000);
    let bytes = world.bytes(Instant::ZERO, world.now, |_| true);
    assert!(bytes * 8 >= 2_910_000, "97 % of three seconds: {bytes}");
}

#[test]
fn above_a_smaller_limit_all_that_waits_leaves_and_nothing_comes_in() {
    let mut world =
        World::new(Tree::new(&Spec::Fifo(Limit::Packets(100)), 1, Instant::ZERO).expect("fits"));
    for _ in 0..100 {
        assert!(world.offer(keys(1, 2, 3), 100));
    }
    let World {
        discipline,
        pool,
        now,
        ..
    } = &mut world;
    let small = Spec::Fifo(Limit::Packets(10));
    discipline.change(&small, pool, *now).expect("fits");
    assert_eq!(discipline.backlog().packets, 100);
    assert!(!world.offer(keys(1, 2, 3), 100));
    for _ in 0..91 {
        world.take().expect("backlogged");
    }
    assert!(world.offer(keys(1, 2, 3), 100));
    world.check();
}

#[test]
fn a_change_that_does_not_fit_together_changes_nothing() {
    let spec = Spec::Fifo(Limit::Packets(10));
    let mut world = World::new(Tree::new(&spec, 1, Instant::ZERO).expect("fits"));
    world.offer(keys(1, 2, 3), 100);
    let World {
        discipline,
        pool,
        now,
        ..
    } = &mut world;
    let wrong = Spec::Htb(HtbSpec {
        mtu: MTU,
        classes: Vec::new(),
        leaves: Vec::new(),
        classifier: None,
        default: Some(7),
        direct_limit: 0,
    });
    let error = discipline.change(&wrong, pool, *now).expect_err("no class");
    assert_eq!(
        error.to_string(),
        "htb 1: class 7 is no leaf, or has a discipline already"
    );
    assert_eq!(
        (discipline.spec(), discipline.backlog().packets),
        (&spec, 1)
    );
    let deep = (0..20).fold(spec, |child, _| tbf(1, child));
    assert!(discipline.change(&deep, pool, *now).is_err());
}
