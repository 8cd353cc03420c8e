//! Packets in both directions.

use core::net::Ipv4Addr;

use aaa::Prefix;
use edge::Discard;
use wire::checksum;

use crate::stage::{Stage, lns_config};

/// A UDP packet with this many bytes of data.
pub(crate) fn udp(from: Ipv4Addr, to: Ipv4Addr, length: usize, dont_fragment: bool) -> Vec<u8> {
    let total = 28 + length;
    let mut packet = vec![0; total];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(total as u16).to_be_bytes());
    packet[6] = if dont_fragment { 0x40 } else { 0 };
    packet[8] = 64;
    packet[9] = 17;
    packet[12..16].copy_from_slice(&from.octets());
    packet[16..20].copy_from_slice(&to.octets());
    packet[20..24].copy_from_slice(&[0x30, 0x39, 0, 53]);
    packet[24..26].copy_from_slice(&((8 + length) as u16).to_be_bytes());
    let sum = !checksum::sum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn on_line() -> (Stage, Ipv4Addr) {
    let mut stage = Stage::new(lns_config());
    stage.dial("alice", "sesame");
    let address = stage.lns.subscriber(stage.up[0]).unwrap().address.unwrap();
    (stage, address)
}

pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

#[test]
fn packets_pass_both_ways_as_they_are_and_are_counted() {
    let (mut stage, address) = on_line();
    let up = udp(address, FAR, 100, true);
    stage.up_stream(&up);
    assert_eq!(stage.inside.0, [up]);
    let down = udp(FAR, address, 700, true);
    stage.down_stream(&down);
    assert_eq!(stage.client_inside.0, [down]);
    let traffic = stage.lns.subscriber(stage.up[0]).unwrap().traffic;
    assert_eq!((traffic.packets_in, traffic.octets_in), (1, 128));
    assert_eq!((traffic.packets_out, traffic.octets_out), (1, 728));
}

#[test]
fn a_packet_from_an_address_of_another_is_dropped_and_counted() {
    let (mut stage, address) = on_line();
    let other = Ipv4Addr::from_bits(address.to_bits() ^ 1);
    // The client's own edge would drop it, because the source address is unknown there.
    let packet = udp(other, FAR, 10, true);
    stage.up_stream(&packet);
    assert!(stage.inside.0.is_empty());
    let spoofed = Discard::Forward(forward::Discard::Spoofed);
    // So the test sends it on the peer's behalf.
    stage.send_up_raw(&packet);
    assert!(stage.inside.0.is_empty());
    assert_eq!(stage.lns.discarded(spoofed), 1);
}

#[test]
fn a_network_behind_a_subscriber_is_its_own() {
    let mut stage = Stage::new(lns_config());
    let network = Prefix::new("10.77.0.0".parse().unwrap(), 16).unwrap();
    stage.profile.routes = vec![network];
    stage.dial("alice", "sesame");
    let host = Ipv4Addr::new(10, 77, 3, 4);
    let packet = udp(host, FAR, 10, true);
    stage.send_up_raw(&packet);
    assert_eq!(stage.inside.0.len(), 1);
    let mut sent = crate::stage::Datagrams::default();
    let mut octets = vec![0; wire::virtio::LENGTH];
    octets.extend_from_slice(&udp(FAR, host, 10, true));
    stage.lns.forward(&mut octets, stage.now, &mut sent);
    assert_eq!(sent.sent.len(), 1);
}

/// One of two that is kept apart is enough, and one that is excepted from the default needs the other to be so too.
#[test]
fn a_profile_decides_about_isolation_before_the_default() {
    let mut config = lns_config();
    let mut stage = Stage::new(config.clone());
    let dial = |stage: &mut Stage, name, isolate| {
        stage.profile.isolate = isolate;
        stage.dial(name, "sesame");
        let view = stage.lns.subscriber(*stage.up.last().unwrap()).unwrap();
        (view.key, view.address.unwrap())
    };
    let (_, alice) = dial(&mut stage, "alice", Some(true));
    let (carl, of_carl) = dial(&mut stage, "carl", Some(false));
    let (_, of_dora) = dial(&mut stage, "dora", None);
    let isolated = |stage: &mut Stage, from, to| {
        let before = stage.lns.discarded(Discard::Isolated);
        stage.up_stream(&udp(from, to, 10, true));
        stage.lns.discarded(Discard::Isolated) > before
    };
    for other in [of_carl, of_dora] {
        assert!(isolated(&mut stage, alice, other));
        assert!(isolated(&mut stage, other, alice));
    }
    assert!(!isolated(&mut stage, of_carl, of_dora));
    assert!(!isolated(&mut stage, alice, FAR));
    config.isolate = true;
    stage.lns.set_config(config.clone(), stage.now);
    assert!(isolated(&mut stage, of_carl, of_dora) && isolated(&mut stage, of_dora, of_carl));
    let (_, of_emil) = dial(&mut stage, "emil", Some(false));
    assert!(!isolated(&mut stage, of_carl, of_emil));
    config.isolate = false;
    stage.lns.set_config(config, stage.now);
    let now = stage.now;
    stage
        .lns
        .drop_subscriber(carl, edge::End::Refused("by test".into()), now);
    stage.settle();
    assert!(isolated(&mut stage, of_dora, alice));
    assert!(!isolated(&mut stage, of_dora, of_emil));
}

#[test]
fn isolated_subscribers_do_not_reach_each_other() {
    let mut config = lns_config();
    let mut stage = Stage::new(config.clone());
    stage.dial("alice", "sesame");
    let alice = stage.lns.subscriber(stage.up[0]).unwrap().address.unwrap();
    stage.profile.routes = vec![Prefix::new("10.77.0.0".parse().unwrap(), 16).unwrap()];
    stage.dial("bob", "sesame");
    let bob = stage.lns.subscriber(stage.up[1]).unwrap().address.unwrap();
    let behind = Ipv4Addr::new(10, 77, 3, 4);
    // Without isolation the packets pass through the host: nothing leads past it.
    for to in [bob, behind, FAR] {
        stage.send_up_raw(&udp(alice, to, 10, true));
    }
    assert_eq!(stage.inside.0.len(), 3);
    config.isolate = true;
    stage.lns.set_config(config.clone(), stage.now);
    for to in [bob, behind, FAR, alice] {
        stage.send_up_raw(&udp(alice, to, 10, true));
    }
    assert_eq!(stage.lns.discarded(Discard::Isolated), 2);
    // The network and the gateway are reached, and so is the subscriber.
    assert_eq!(stage.inside.0.len(), 5);
    stage.down_stream(&udp(FAR, alice, 10, true));
    assert_eq!(stage.client_inside.0.len(), 1);
    config.isolate = false;
    stage.lns.set_config(config, stage.now);
    stage.send_up_raw(&udp(alice, bob, 10, true));
    assert_eq!(stage.inside.0.len(), 6);
}

#[test]
fn a_packet_for_nobody_is_dropped_and_counted() {
    let (mut stage, _) = on_line();
    stage.down_stream(&udp(FAR, Ipv4Addr::new(10, 9, 9, 9), 10, true));
    let why = Discard::Forward(forward::Discard::NoRoute);
    assert_eq!(stage.lns.discarded(why), 1);
    // Its sender receives destination unreachable, host unreachable.
    assert_eq!(stage.inside.0.len(), 1);
    assert_eq!(stage.inside.0[0][20..22], [3, 1]);
}

#[test]
fn what_does_not_fit_is_fragmented_or_refused() {
    let (mut stage, address) = on_line();
    stage.down_stream(&udp(FAR, address, 1_472, false));
    assert_eq!(stage.client_inside.0.len(), 2);
    let mtu = usize::from(stage.lns.subscriber(stage.up[0]).unwrap().mtu);
    assert!(
        stage
            .client_inside
            .0
            .iter()
            .all(|packet| packet.len() <= mtu)
    );
    stage.down_stream(&udp(FAR, address, 1_472, true));
    assert_eq!(stage.client_inside.0.len(), 2);
    let why = Discard::Forward(forward::Discard::TooBig);
    assert_eq!(stage.lns.discarded(why), 1);
    // RFC 1191, section 4: type 3, code 4, and the next hop's MTU.
    let told = &stage.inside.0[0];
    assert_eq!(told[12..16], crate::stage::GATEWAY.octets());
    assert_eq!(told[16..20], FAR.octets());
    assert_eq!(told[20..22], [3, 4]);
    assert_eq!(usize::from(u16::from_be_bytes([told[26], told[27]])), mtu);
}

#[test]
fn nothing_passes_before_or_after() {
    let (mut stage, address) = on_line();
    let subscriber = stage.up[0];
    stage
        .lns
        .drop_subscriber(subscriber, edge::End::Administrator, stage.now);
    stage.send_up_raw(&udp(address, FAR, 10, true));
    assert!(stage.inside.0.is_empty());
    stage.down_stream(&udp(FAR, address, 10, true));
    assert!(stage.client_inside.0.is_empty());
}
