//! Rates of subscribers and links, weights and fairness, in virtual time.

use crate::world::{Random, World, jain, node, plan, shape, template};
use base::{Duration, Instant};
use hqos::spec::{Depth, Template};

/// Offers packets until the subscriber has a backlog of `packets`.
fn fill(world: &mut World, id: hqos::SubId, owner: u32, packets: u32, random: &mut Random) {
    for _ in 0..10_000 {
        if world.view(id, 0).unwrap().packets >= packets {
            return;
        }
        world.offer(id, owner, random.length(), (1, owner as u16));
    }
}

fn deep(weight: u32) -> Template {
    Template {
        name: format!("weight-{weight}"),
        weight,
        depth: Depth {
            packets: 50_000,
            octets: 64 << 20,
        },
        // The offered load does not react to drops.
        target: Duration::from_secs(10),
        ..Template::default()
    }
}

#[test]
fn a_subscriber_gets_its_rate_within_one_percent_from_1_mbit_to_5_gbit() {
    for (mbit, ms) in [
        (1, 30_000),
        (10, 5_000),
        (100, 2_000),
        (1_000, 500),
        (5_000, 300),
    ] {
        let bps = mbit * 1_000_000;
        let mut world = World::new(&plan(vec![deep(1)], Vec::new()));
        let id = world.tree.add(&shape(bps, 0, None), 0, world.now).unwrap();
        let mut random = Random(mbit);
        let backlog = (bps / 1_000_000 * 2 + 20) as u32;
        world.run(
            Duration::from_millis(ms),
            Duration::from_millis(1),
            |world| {
                fill(world, id, 0, backlog, &mut random);
            },
        );
        // The first burst counts as from before.
        let burst = (bps / 8 / 200).max(3_200);
        let measured = (world.octets(1)[0] - burst) as f64 * 8.0 / (ms as f64 / 1_000.0);
        let ratio = measured / bps as f64;
        assert!((0.99..1.01).contains(&ratio), "{mbit} Mbit/s: {ratio}");
    }
}

#[test]
fn late_calls_of_up_to_four_milliseconds_cost_no_rate() {
    let bps = 500_000_000;
    let mut world = World::new(&plan(vec![deep(1)], Vec::new()));
    let id = world.tree.add(&shape(bps, 0, None), 0, world.now).unwrap();
    let mut random = Random(1);
    for _ in 0..250 {
        fill(&mut world, id, 0, 1_200, &mut random);
        world.drain();
        world.now += Duration::from_millis(4);
    }
    let ratio = world.octets(1)[0] as f64 * 8.0 / bps as f64;
    assert!((0.99..1.02).contains(&ratio), "{ratio}");
}

#[test]
fn the_sum_of_a_link_exceeds_its_rate_in_no_window() {
    for seed in 0..20 {
        let (access, uplink) = (40_000_000, 60_000_000);
        let nodes = vec![
            node("uplink", None, uplink),
            node("olt-1", Some(0), access),
            node("olt-2", Some(0), access),
        ];
        let mut world = World::new(&plan(vec![deep(1)], nodes));
        let ids: Vec<_> = (0..8)
            .map(|n| {
                let bps = if n % 3 == 0 { 0 } else { 30_000_000 };
                let shape = shape(bps, 0, Some(1 + n % 2));
                world.tree.add(&shape, n, world.now).unwrap()
            })
            .collect();
        let mut random = Random(seed);
        world.run(
            Duration::from_millis(500),
            Duration::from_millis(2),
            |world| {
                for (owner, &id) in ids.iter().enumerate() {
                    // Silences and floods.
                    if random.below(4) > 0 {
                        let backlog = random.below(60) as u32;
                        fill(world, id, owner as u32, backlog, &mut random);
                    }
                }
            },
        );
        let link = |owner: u32| 1 + owner % 2;
        for (which, bps) in [(None, uplink), (Some(1), access), (Some(2), access)] {
            // A leaky bucket of the burst and a packet never overflows.
            let most = (bps as f64 * 0.005 / 8.0).max(3_200.0) + 1_500.0;
            let (mut level, mut at) = (0.0_f64, Instant::ZERO);
            for &(time, owner, octets, _) in &world.sent {
                if which.is_some_and(|which| which != link(owner)) {
                    continue;
                }
                let leaked = time.since(at).as_nanos() as f64 * bps as f64 / 8e9;
                level = (level - leaked).max(0.0) + f64::from(octets);
                at = time;
                assert!(
                    level <= most + 1.0,
                    "seed {seed}, {which:?}, {time:?}: {level} of {most}"
                );
            }
        }
    }
}

#[test]
fn subscribers_share_a_full_link_by_weight_within_two_percent() {
    let templates: Vec<_> = [1, 2, 5, 10].into_iter().map(deep).collect();
    let mut world = World::new(&plan(templates, vec![node("olt", None, 180_000_000)]));
    let ids: Vec<_> = (0..4)
        .map(|n| {
            let shape = shape(150_000_000, n as u16, Some(0));
            world.tree.add(&shape, n, world.now).unwrap()
        })
        .collect();
    let mut random = Random(3);
    world.run(Duration::from_secs(4), Duration::from_millis(2), |world| {
        for (owner, &id) in ids.iter().enumerate() {
            fill(world, id, owner as u32, 300, &mut random);
        }
    });
    let octets = world.octets(4);
    for (octets, weight) in octets.iter().zip([1.0, 2.0, 5.0, 10.0]) {
        let wanted = weight / 18.0 * 180e6 / 8.0 * 4.0;
        let ratio = *octets as f64 / wanted;
        assert!((0.98..1.02).contains(&ratio), "weight {weight}: {ratio}");
    }
}

#[test]
fn what_a_limited_subscriber_leaves_is_shared_by_its_siblings() {
    let nodes = vec![node("uplink", None, 90_000_000), node("olt", Some(0), 0)];
    let mut world = World::new(&plan(vec![deep(1)], nodes));
    let rates = [10_000_000, 0, 0];
    let ids = rates.map(|bps| {
        world
            .tree
            .add(&shape(bps, 0, Some(1)), 0, world.now)
            .unwrap()
    });
    let mut random = Random(3);
    world.run(Duration::from_secs(2), Duration::from_millis(2), |world| {
        for (owner, &id) in ids.iter().enumerate() {
            fill(world, id, owner as u32, 300, &mut random);
        }
    });
    let counted = ids.map(|id| world.view(id, 0).unwrap().counts.octets);
    for (octets, mbit) in counted.into_iter().zip([10.0, 40.0, 40.0]) {
        let ratio = octets as f64 * 8.0 / 2.0 / (mbit * 1e6);
        assert!((0.98..1.02).contains(&ratio), "{mbit}: {ratio}");
    }
}

#[test]
fn a_host_with_one_flow_gets_as_much_as_a_host_with_nine() {
    let mut world = World::new(&plan(vec![template("home", 1)], Vec::new()));
    let id = world
        .tree
        .add(&shape(50_000_000, 0, None), 0, world.now)
        .unwrap();
    let mut random = Random(5);
    let mut hosts = [0u64; 2];
    world.run(Duration::from_secs(2), Duration::from_millis(1), |world| {
        for flow in 0..10 {
            for _ in 0..if flow == 9 { 12 } else { 3 } {
                world.offer(id, 0, random.length(), (u8::from(flow == 9), flow));
            }
        }
    });
    for &(_, _, octets, (host, _)) in &world.sent {
        hosts[usize::from(host)] += u64::from(octets);
    }
    assert!(jain(&hosts) >= 0.99, "{hosts:?}");
    let view = world.view(id, 8).unwrap();
    assert_eq!(view.hosts.len(), 2);
    assert!(view.counts.dropped > 0 && view.p99 >= view.p50);
}

#[test]
fn a_flow_below_its_share_waits_little_while_another_floods() {
    let mut world = World::new(&plan(vec![template("home", 1)], Vec::new()));
    let id = world
        .tree
        .add(&shape(10_000_000, 0, None), 0, world.now)
        .unwrap();
    let mut offered = Vec::new();
    world.run(Duration::from_secs(2), Duration::from_millis(20), |world| {
        for _ in 0..40 {
            world.offer(id, 0, 1_500, (0, 1));
        }
        offered.push(world.now);
        world.offer(id, 0, 100, (1, 2));
    });
    let calls = world.sent.iter().filter(|one| one.3 == (1, 2));
    let waits: Vec<_> = calls
        .zip(&offered)
        .map(|(one, &at)| one.0.since(at))
        .collect();
    assert!(waits.len() >= offered.len() - 1);
    let longest = waits.iter().max().unwrap();
    assert!(*longest <= Duration::from_millis(4), "{longest:?}");
}
