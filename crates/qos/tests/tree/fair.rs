//! Tests the shares of hosts and flows on a link in virtual time.

use crate::world::{World, keys, time_of};
use base::{Duration, Instant};
use proptest::prelude::*;
use qos::Discipline;
use qos::classify::KeySet;
use qos::fair::{Fair, Options};

/// Jain's index of fairness.
fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    sum * sum / (shares.len() as f64 * squares)
}

/// Keeps each flow backlogged for a second at 10 Mbit/s: each packet that leaves is replaced by two.
fn saturate(world: &mut World<Fair>, flows: &[(u32, u16)]) {
    for &(host, port) in flows {
        world.offer(keys(host, 99, port), 1_514);
    }
    let end = world.now + Duration::from_secs(1);
    while world.now < end {
        let packet = world.take().expect("backlogged");
        world.now += time_of(packet.length, 10_000_000);
        world.offer(packet.keys, packet.length);
        world.offer(packet.keys, packet.length);
    }
    world.check();
}

fn host_of(packet: &qos::Packet) -> u8 {
    packet.keys.outer.source[15]
}

#[test]
fn nine_flows_of_one_host_and_one_of_another_share_by_host() {
    let mut world = World::new(Fair::new(&Options::default(), 7));
    let mut flows: Vec<(u32, u16)> = (0..9).map(|port| (1, port)).collect();
    flows.push((2, 100));
    saturate(&mut world, &flows);
    let shares =
        [1, 2].map(|host| world.bytes(Instant::ZERO, world.now, |packet| host_of(packet) == host));
    assert!(jain(&shares) >= 0.99, "{shares:?}");
    let own: Vec<u64> = (0..9)
        .map(|port| {
            world.bytes(Instant::ZERO, world.now, |packet| {
                packet.keys.outer.source_port == port && host_of(packet) == 1
            })
        })
        .collect();
    assert!(jain(&own) >= 0.99, "{own:?}");
}

#[test]
fn without_hosts_the_nine_flows_get_nine_tenths() {
    let options = Options {
        hosts: KeySet::default(),
        ..Options::default()
    };
    let mut world = World::new(Fair::new(&options, 7));
    let mut flows: Vec<(u32, u16)> = (0..9).map(|port| (1, port)).collect();
    flows.push((2, 100));
    saturate(&mut world, &flows);
    let shares =
        [1, 2].map(|host| world.bytes(Instant::ZERO, world.now, |packet| host_of(packet) == host));
    assert!(jain(&shares) <= 0.70, "{shares:?}");
}

#[test]
fn a_sparse_host_waits_for_one_packet_though_another_floods() {
    let mut world = World::new(Fair::new(&Options::default(), 7));
    let mut longest = Duration::ZERO;
    for turn in 0..2_000_u32 {
        world.offer(keys(1, 99, turn as u16 % 50), 1_514);
        world.offer(keys(1, 99, turn as u16 % 50), 1_514);
        if turn % 40 == 0 {
            world.offer(keys(2, 99, 5), 100);
        }
        if let Some(packet) = world.take() {
            if host_of(&packet) == 2 {
                longest = longest.max(world.now - packet.arrived);
            }
            world.now += time_of(packet.length, 10_000_000);
        }
    }
    world.check();
    assert!(longest <= time_of(1_514, 10_000_000), "{longest:?}");
}

#[test]
fn a_standing_queue_is_marked_where_marks_are_understood_and_else_dropped() {
    for (traffic_class, marks) in [(0x02, true), (0x00, false)] {
        let mut world = World::new(Fair::new(&Options::default(), 7));
        let mut packet_keys = keys(1, 99, 5);
        packet_keys.traffic_class = traffic_class;
        for _ in 0..3_000 {
            world.offer(packet_keys, 1_514);
            world.offer(packet_keys, 1_514);
            let now = world.now + time_of(1_514, 10_000_000);
            world.link_until(10_000_000, now);
        }
        let statistics = world.discipline.statistics();
        let marked = world.sent.iter().filter(|sent| sent.packet.marked).count() as u64;
        assert_eq!(marked, statistics.ecn_mark);
        assert_eq!(statistics.ecn_mark > 10, marks);
        assert_eq!(statistics.dropped > 10, !marks);
        assert_eq!(world.lost, statistics.dropped);
    }
}

proptest! {
    #[test]
    fn packets_are_conserved_flows_keep_their_order_and_all_leave(
        limit in 5u32..200,
        hosts_max in 1u32..10,
        flows_max in 1u32..30,
        quantum in 1u32..3_000,
        load in prop::collection::vec((0u32..12, 0u16..6, 40u32..9_000, 0u8..4), 1..600),
    ) {
        let options = Options { limit, hosts_max, flows_max, quantum, ..Options::default() };
        let mut world = World::new(Fair::new(&options, 3));
        for (host, port, length, takes) in load {
            world.offer(keys(host, 99, port), length);
            for _ in 1..takes {
                world.take();
            }
            world.now += Duration::from_millis(1);
            world.check();
            prop_assert!(world.discipline.backlog().packets <= limit);
        }
        while world.take().is_some() {}
        world.check();
        prop_assert_eq!(world.discipline.backlog(), qos::Backlog::default());
        for host in 0..12 {
            for port in 0..6 {
                let own = keys(host, 99, port);
                let mut of_flow = world.sent.iter().filter(|sent| sent.packet.keys == own).map(|sent| sent.packet.handle);
                let mut last = None;
                prop_assert!(of_flow.all(|handle| last.replace(handle) < Some(handle)));
            }
        }
    }
}
