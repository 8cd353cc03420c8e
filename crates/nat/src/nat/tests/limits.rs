//! Limits, and that nothing is leaked: RFC 6888 REQ-4 and REQ-5.

use super::*;
use crate::nat::testing::{SYN, ends, tcp, udp};

fn used(world: &mut World, host: &str, port: u16) -> Result<Verdict, Discard> {
    let id = if host == ANN { world.ann } else { world.bob };
    world.out(id, &mut udp(ends((host, port), (WEB, 80)), b"x"))
}

#[test]
fn rfc_6888_req_4_ports_of_a_subscriber_are_limited_by_mappings_and_by_blocks() {
    let mut config = config();
    config.limits.mappings_per_subscriber = 100;
    let mut world = world(config);
    for port in 0..100 {
        used(&mut world, ANN, port).expect("room");
    }
    let over = used(&mut world, ANN, 100);
    assert_eq!(over, Err(Discard::SubscriberMappings));
    used(&mut world, BOB, 1).expect("others are not concerned");

    let mut config = super::config();
    config.block_ports = 16;
    config.limits.blocks_per_subscriber = 3;
    let mut world = super::world(config);
    for port in 0..48 {
        used(&mut world, ANN, port).expect("room");
    }
    for port in 48..52 {
        let over = used(&mut world, ANN, port);
        assert_eq!(over, Err(Discard::SubscriberBlocks));
    }
    let told = |event: &&Event| matches!(event, Event::SubscriberLimit { tag: 1, .. });
    assert_eq!(world.events().iter().filter(told).count(), 1, "told once");
}

#[test]
fn rfc_6888_req_4c_new_mappings_of_a_subscriber_are_limited_by_rate() {
    let mut config = config();
    config.limits.new_per_second = 10;
    let mut world = world(config);
    let mut made = 0;
    for port in 0..100 {
        made += u32::from(used(&mut world, ANN, port).is_ok());
    }
    assert_eq!(made, 10);
    world.wait(1);
    for port in 100..200 {
        made += u32::from(used(&mut world, ANN, port).is_ok());
    }
    assert_eq!(made, 20);
    // Old mappings are not new ones.
    used(&mut world, ANN, 0).expect("it has a mapping");
}

#[test]
fn rfc_6888_req_5_tables_have_limits_and_say_so() {
    let mut config = config();
    config.limits.mappings_max = 50;
    config.limits.sessions_max = 5;
    config.limits.subscribers_max = 2;
    let mut world = world(config);
    assert_eq!(world.nat.join(3, address("100.64.0.3")), None);
    for port in 1..=6 {
        let mut packet = tcp(ends((ANN, 9), (WEB, port)), SYN);
        world.out(world.ann, &mut packet).expect("room");
    }
    let mut packet = tcp(ends((ANN, 9), (WEB, 7)), SYN);
    assert_eq!(
        world.out(world.ann, &mut packet),
        Err(Discard::SessionsFull)
    );
    for port in 0..49 {
        used(&mut world, ANN, port).expect("room");
    }
    let over = used(&mut world, ANN, 50);
    assert_eq!(over, Err(Discard::MappingsFull));
    let counters = world.nat.counters();
    assert_eq!(counters.mappings, 50);
    assert_eq!(counters.discards[Discard::MappingsFull as usize], 1);
    assert_eq!(counters.discards[Discard::SessionsFull as usize], 1);
}

#[test]
fn no_block_is_allocated_that_the_log_would_miss() {
    let mut config = config();
    config.limits.events_max = 1;
    let mut world = world(config);
    used(&mut world, ANN, 1).expect("room");
    let over = used(&mut world, BOB, 1);
    assert_eq!(over, Err(Discard::LogBehind));
    assert_eq!(world.events().len(), 1);
    used(&mut world, BOB, 1).expect("the log has caught up");
}

#[test]
fn a_subscriber_that_left_has_nothing_and_its_id_is_worth_nothing() {
    let mut world = world(config());
    for port in 0..700 {
        used(&mut world, ANN, port).expect("room");
        let mut packet = tcp(ends((ANN, port % 7), (WEB, port)), SYN);
        let _ = world.out(world.ann, &mut packet);
    }
    world.nat.leave(world.ann, world.now);
    world.nat.leave(world.ann, world.now);
    let counters = world.nat.counters();
    assert_eq!((counters.mappings, counters.sessions), (0, 0));
    assert_eq!(counters.subscribers, 1);
    let (free, waiting, all) = world.nat.blocks();
    assert_eq!((free + waiting, waiting), (all, 2));
    let over = used(&mut world, ANN, 1);
    assert_eq!(over, Err(Discard::Subscriber));
    world.wait(125);
    assert_eq!(world.nat.blocks(), (all, 0, all));
    assert_eq!(world.nat.poll_timeout(), None);
}

#[test]
fn an_idle_mapping_costs_no_timer_but_its_own() {
    let mut world = world(config());
    used(&mut world, ANN, 1).expect("room");
    let (at, name) = world.nat.poll_timeout().expect("one timer");
    assert_eq!(name, "mapping");
    assert!(at - world.now >= Duration::from_secs(300));
    assert!(at - world.now <= Duration::from_secs(303));
}

#[test]
fn a_mapping_takes_at_most_64_bytes() {
    let mut config = config();
    config.limits.mappings_max = 1_000_000;
    let nat = Nat::new(config).expect("good settings");
    // Per port of a block 4 bytes and a bit: a block that is a third full still fits.
    assert!(
        nat.bytes_per_mapping() + 13 <= 64,
        "{}",
        nat.bytes_per_mapping()
    );
}
