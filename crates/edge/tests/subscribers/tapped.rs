//! Captures of a single subscriber by an operator.

use core::net::Ipv4Addr;

use edge::{End, Passed, TAPS_MAX, TapId, Tapped};

use crate::packets::udp;
use crate::stage::{Stage, lns_config};

const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

fn on_line() -> (Stage, Ipv4Addr) {
    let mut stage = Stage::new(lns_config());
    stage.dial("alice", "sesame");
    let address = stage.lns.subscriber(stage.up[0]).unwrap().address.unwrap();
    (stage, address)
}

/// All queued copies.
fn taken(stage: &mut Stage) -> Vec<(Tapped, Vec<u8>)> {
    let mut copies = Vec::new();
    while stage.lns.has_tapped() {
        let mut octets = Vec::new();
        copies.push((stage.lns.poll_tapped(&mut octets).unwrap(), octets));
    }
    copies
}

fn tap(stage: &mut Stage, name: &str) -> TapId {
    let keys: Vec<_> = stage.lns.find(name.as_bytes()).collect();
    stage.lns.tap(keys, Some(name.as_bytes())).unwrap()
}

#[test]
fn a_packet_is_copied_inside_and_outside_with_its_way() {
    let (mut stage, address) = on_line();
    let id = tap(&mut stage, "alice");
    let up = udp(address, FAR, 100, true);
    stage.up_stream(&up);
    let down = udp(FAR, address, 700, true);
    stage.down_stream(&down);
    let copies = taken(&mut stage);
    let ways: Vec<_> = copies
        .iter()
        .map(|(tapped, _)| (tapped.passed == Passed::Inside, tapped.is_to))
        .collect();
    assert_eq!(
        ways,
        [(false, false), (true, false), (true, true), (false, true)]
    );
    assert!(copies.iter().all(|(tapped, _)| tapped.tap == id));
    assert_eq!((&copies[1].1, &copies[2].1), (&up, &down));
    // The datagram is the packet preceded by L2TP and PPP headers.
    assert!(copies[0].1.ends_with(&up) && copies[0].1.len() > up.len());
    assert!(copies[3].1.ends_with(&down) && copies[3].1.len() > down.len());
}

#[test]
fn what_is_dropped_is_seen_outside_alone() {
    let (mut stage, address) = on_line();
    tap(&mut stage, "alice");
    let spoofed = udp(Ipv4Addr::from_bits(address.to_bits() ^ 1), FAR, 10, true);
    stage.send_up_raw(&spoofed);
    let copies = taken(&mut stage);
    let from_it: Vec<_> = copies.iter().filter(|(tapped, _)| !tapped.is_to).collect();
    assert_eq!(from_it.len(), 1);
    assert!(from_it[0].0.passed != Passed::Inside);
}

#[test]
fn nobody_else_is_copied_and_nothing_once_the_tap_is_gone() {
    let (mut stage, address) = on_line();
    stage.dial("bob", "sesame");
    let id = tap(&mut stage, "bob");
    stage.up_stream(&udp(address, FAR, 100, true));
    assert!(taken(&mut stage).is_empty());
    stage.lns.untap(id);
    let id = tap(&mut stage, "alice");
    assert_eq!(stage.lns.tap_state(id), Some((1, [0; 2])));
    assert_eq!(stage.lns.untap(id), [0; 2]);
    stage.up_stream(&udp(address, FAR, 100, true));
    assert!(taken(&mut stage).is_empty());
    assert_eq!(stage.lns.tap_state(id), None);
}

#[test]
fn who_comes_by_the_name_later_is_copied_from_when_it_says_it() {
    let mut stage = Stage::new(lns_config());
    let id = tap(&mut stage, "alice");
    assert_eq!(stage.lns.tap_state(id), Some((0, [0; 2])));
    stage.dial("alice", "sesame");
    assert_eq!(stage.lns.tap_state(id), Some((1, [0; 2])));
    // Authentication and IPCP: everything exchanged from then on.
    let copies = taken(&mut stage);
    assert!(copies.len() > 4);
    assert!(
        copies
            .iter()
            .all(|(tapped, _)| tapped.passed != Passed::Inside)
    );
    let now = stage.now;
    let key = stage.up[0];
    assert!(stage.lns.drop_subscriber(key, End::Administrator, now));
    stage.settle();
    assert_eq!(stage.lns.tap_state(id), Some((0, [0; 2])));
}

#[test]
fn copies_that_nobody_takes_are_bounded_and_counted() {
    let (mut stage, address) = on_line();
    let id = tap(&mut stage, "alice");
    let packet = udp(address, FAR, 1_200, true);
    for _ in 0..4_000 {
        stage.send_up_raw(&packet);
    }
    let (_, [inside, outside]) = stage.lns.tap_state(id).unwrap();
    assert!(inside > 1_000 && outside > 1_000, "{inside} {outside}");
    let copies = taken(&mut stage);
    assert_eq!(copies.len() as u64, 8_000 - inside - outside);
    let octets: usize = copies.iter().map(|(_, octets)| octets.len()).sum();
    assert!(octets <= 4 << 20);
    // Forwarding does not depend on it.
    assert_eq!(stage.inside.0.len(), 4_000);
    stage.send_up_raw(&packet);
    assert_eq!(taken(&mut stage).len(), 2);
}

#[test]
fn there_is_a_limit_to_taps() {
    let (mut stage, _) = on_line();
    for _ in 0..TAPS_MAX {
        assert!(stage.lns.tap([], None).is_some());
    }
    assert_eq!(stage.lns.tap([], None), None);
}
