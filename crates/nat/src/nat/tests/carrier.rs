//! RFC 6888, RFC 7857 and RFC 7422, by requirement.

use super::*;
use crate::nat::testing::{ends, query, read, udp};
use crate::{Deterministic, Exempt, record};

fn one_address(ports: u16) -> Config {
    let mut config = config();
    config.externals = vec!["192.0.2.1".parse().expect("an address")];
    config.block_ports = ports;
    config
}

#[test]
fn rfc_6888_req_2_all_protocols_of_a_subscriber_share_its_address() {
    let mut world = world(config());
    let (one, _) = world.source(udp(ends((ANN, 1), (WEB, 80)), b"x"));
    let (two, _) = world.source(query(ends((ANN, 1), (WEB, 0)), 8));
    assert_eq!(one, two);
}

#[test]
fn rfc_6888_req_3_the_pool_may_have_gaps() {
    let mut config = config();
    config.externals = ["192.0.2.9", "192.0.2.1-192.0.2.2", "203.0.113.0/31"]
        .map(|text| text.parse().expect("a range"))
        .to_vec();
    let world = world(config);
    assert!(world.nat.owns(address("203.0.113.1")));
    assert!(!world.nat.owns(address("192.0.2.3")));
    let mut twice = super::config();
    twice.externals = vec![
        "192.0.2.0/30".parse().expect("a prefix"),
        "192.0.2.3".parse().expect("an address"),
    ];
    assert!(Nat::new(twice).is_err());
}

#[test]
fn rfc_6888_req_6_exempt_destinations_are_not_translated() {
    let mut config = config();
    config.exempt = vec![Exempt {
        addresses: "198.51.100.0/26".parse().expect("a prefix"),
        ports: Some((50, 60)),
    }];
    let mut world = world(config);
    let mut packet = udp(ends((ANN, 4000), (DNS, 53)), b"x");
    let before = packet.clone();
    assert_eq!(world.out(world.ann, &mut packet), Ok(Verdict::Untouched));
    assert_eq!(packet, before);
    world.source(udp(ends((ANN, 4000), (DNS, 80)), b"x"));
}

#[test]
fn rfc_6888_req_8_a_udp_port_and_a_block_wait_120_seconds() {
    let mut world = world(one_address(64_512));
    let external = world.source(udp(ends((ANN, 4000), (WEB, 80)), b"x"));
    world.wait(303);
    // Out of use, but nobody else's: its block is still Ann's.
    assert_eq!(world.nat.counters().mappings, 1);
    let mut packet = udp(ends((BOB, 4000), (WEB, 80)), b"x");
    assert_eq!(world.out(world.bob, &mut packet), Err(Discard::PoolUsedUp));
    // The inside endpoint itself may use it again.
    assert_eq!(
        world.source(udp(ends((ANN, 4000), (WEB, 80)), b"x")),
        external
    );
    world.wait(303);
    world.wait(122);
    assert_eq!(world.nat.counters().mappings, 0);
    // The block was freed with its last port, and waits in turn.
    let mut packet = udp(ends((BOB, 4000), (WEB, 80)), b"x");
    assert_eq!(world.out(world.bob, &mut packet), Err(Discard::PoolUsedUp));
    world.wait(122);
    assert_eq!(world.out(world.bob, &mut packet), Ok(Verdict::Translated));
}

#[test]
fn rfc_6888_req_8_the_number_of_waiting_ports_is_limited() {
    let mut config = config();
    config.limits.held_ports_max = 10;
    let mut world = world(config);
    for port in 0..30 {
        world.source(udp(ends((ANN, 4000 + port), (WEB, 80)), b"x"));
    }
    world.wait(303);
    assert_eq!(world.nat.counters().mappings, 10);
    assert_eq!(world.nat.counters().unheld_ports, 20);
}

#[test]
fn rfc_6888_req_11_a_used_up_pool_drops_new_mappings_and_keeps_old_ones() {
    let mut world = world(one_address(64_512));
    let external = world.source(udp(ends((ANN, 4000), (WEB, 80)), b"x"));
    for _ in 0..3 {
        let mut packet = udp(ends((BOB, 4000), (WEB, 80)), b"x");
        let before = packet.clone();
        assert_eq!(world.out(world.bob, &mut packet), Err(Discard::PoolUsedUp));
        assert_eq!(packet, before);
    }
    assert!(Discard::PoolUsedUp.is_shortage());
    let used_up = |event: &&Event| matches!(event, Event::PoolUsedUp { tag: 2, .. });
    assert_eq!(
        world.events().iter().filter(used_up).count(),
        1,
        "told once"
    );
    let mut answer = udp(between((address(WEB), 80), external), b"y");
    assert_eq!(world.back(&mut answer), Ok(Verdict::Translated));
}

#[test]
fn rfc_6888_req_14_an_event_per_block_and_none_per_mapping() {
    let mut world = world(config());
    for port in 0..600 {
        world.source(udp(ends((ANN, 4000 + port), (WEB, 80)), b"x"));
    }
    let events = world.events();
    assert_eq!(events.len(), 2);
    for event in events {
        let Event::BlockAllocated(block, at) = event else {
            panic!("{event:?}");
        };
        assert_eq!((block.tag, block.inside), (1, address(ANN)));
        assert_eq!(block.last - block.first, 511);
        assert_eq!(at, world.now);
    }
    world.nat.leave(world.ann, world.now);
    let freed = world.events();
    assert!(matches!(
        freed[..],
        [Event::BlockFreed(..), Event::BlockFreed(..)]
    ));
}

#[test]
fn rfc_6888_req_15_rfc_7857_section_9_ports_are_hard_to_guess() {
    let mut world = world(config());
    let ports: Vec<u16> = (0..200)
        .map(|port| {
            world
                .source(udp(ends((ANN, 4000 + port), (WEB, 80)), b"x"))
                .1
        })
        .collect();
    let follows = ports.windows(2).filter(|pair| pair[1] == pair[0] + 1);
    assert!(follows.count() < 20, "{ports:?}");
}

#[test]
fn rfc_7857_section_4_a_subscriber_keeps_its_address_unless_pairing_is_soft() {
    for soft in [false, true] {
        let mut config = config();
        config.externals = vec!["192.0.2.0/31".parse().expect("a prefix")];
        config.block_ports = 64_512;
        config.soft_pairing = soft;
        let mut world = world(config);
        world.source(udp(ends((ANN, 1), (WEB, 80)), b"x"));
        // The one block of the address is Ann's; fill it for UDP.
        let mut left = None;
        world.nat.config.limits.mappings_per_subscriber = u32::MAX;
        for port in 2..5000 {
            let mut packet = udp(ends((ANN, port), (WEB, 80)), b"x");
            left = Some(world.out(world.ann, &mut packet));
        }
        assert_eq!(left, Some(Ok(Verdict::Translated)));
        let next = world.nat.allocate(world.ann, world.now);
        assert_eq!(next.is_ok(), soft);
    }
}

fn deterministic() -> Config {
    let mut config = one_address(100);
    config.deterministic = Some(Deterministic {
        inside: vec!["198.51.100.1-198.51.100.14".parse().expect("a range")],
        dynamic: 2,
    });
    config.limits.blocks_per_subscriber = 10;
    config
}

#[test]
fn rfc_7422_section_2_3_the_example_has_these_ports() {
    let nat = Nat::new(deterministic()).expect("good settings");
    let external = address("192.0.2.1");
    for (host, first, last) in [(1, 1024, 5055), (2, 5056, 9087), (14, 53_440, 57_471)] {
        let inside = Ipv4Addr::new(198, 51, 100, host);
        let ports = nat.deterministic_ports(inside);
        assert_eq!(ports, Some((external, first, last)));
        for port in [first, last] {
            assert_eq!(nat.deterministic_inside(external, port), Some(inside));
        }
    }
    assert_eq!(nat.deterministic_inside(external, 57_472), None);
    assert_eq!(nat.deterministic_inside(external, 1023), None);
    let text = record(&deterministic()).expect("deterministic");
    assert_eq!(text, "198.51.100.1-198.51.100.14:192.0.2.1:2:5032:0:0-1023");
}

#[test]
fn rfc_7422_section_2_a_share_needs_no_log_and_blocks_beyond_it_do() {
    let mut world = world(deterministic());
    world.nat.config.limits.mappings_per_subscriber = u32::MAX;
    let inside = "198.51.100.2";
    let id = world.nat.join(9, address(inside)).expect("room");
    let mut seen = Vec::new();
    for port in 0..4032 {
        let mut packet = udp(ends((inside, 2000 + port), (WEB, 80)), b"x");
        assert_eq!(world.out(id, &mut packet), Ok(Verdict::Translated));
        seen.push(read(&packet).from.1);
    }
    assert!(seen.iter().all(|port| (5056..=9087).contains(port)));
    assert!(world.events().is_empty());
    let mut packet = udp(ends((inside, 1999), (WEB, 80)), b"x");
    assert_eq!(world.out(id, &mut packet), Ok(Verdict::Translated));
    assert!(read(&packet).from.1 >= 57_472);
    assert_eq!(world.events().len(), 1);
    // The share is the same after a restart or another visit.
    world.nat.leave(id, world.now);
    let id = world.nat.join(9, address(inside)).expect("room");
    let mut packet = udp(ends((inside, 1999), (WEB, 80)), b"x");
    assert_eq!(world.out(id, &mut packet), Ok(Verdict::Translated));
    assert!((5056..=9087).contains(&read(&packet).from.1));
}
