//! Subscribers behind a NAT.

use core::net::Ipv4Addr;

use aaa::Prefix;
use base::Duration;
use edge::Discard;
use nat::{Config, Event, Forward, ForwardError, ForwardRequest};
use wire::checksum;

use crate::packets::{FAR, udp};
use crate::stage::{LAC, Stage, lns_config, route};

const EXTERNAL: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

/// An edge that translates all IPv4 addresses but FAR's network.
fn stage(config: edge::Config) -> (Stage, Ipv4Addr) {
    let mut stage = Stage::new(config);
    let external = EXTERNAL.to_string().parse().unwrap();
    let nat = Config::new(vec![external], [1, 2, 3]);
    let inside = vec!["0.0.0.0-198.51.99.255".parse().unwrap()];
    stage.lns.set_nat(nat, inside, |_, _| ()).unwrap();
    stage.dial("alice", "sesame");
    let address = stage.lns.subscriber(stage.up[0]).unwrap().address.unwrap();
    (stage, address)
}

fn source(packet: &[u8]) -> (Ipv4Addr, u16) {
    let address = Ipv4Addr::new(packet[12], packet[13], packet[14], packet[15]);
    (address, u16::from_be_bytes([packet[20], packet[21]]))
}

/// A packet to an external port.
fn to_port(port: u16, length: usize, dont_fragment: bool) -> Vec<u8> {
    let mut packet = udp(FAR, EXTERNAL, length, dont_fragment);
    packet[20..22].copy_from_slice(&53_u16.to_be_bytes());
    packet[22..24].copy_from_slice(&port.to_be_bytes());
    packet
}

#[test]
fn isolated_subscribers_do_not_meet_behind_the_nat_either() {
    let config = edge::Config {
        isolate: true,
        ..lns_config()
    };
    let (mut stage, address) = stage(config);
    stage.send_up_raw(&udp(address, EXTERNAL, 10, true));
    assert!(stage.inside.0.is_empty());
    assert_eq!(stage.lns.discarded(Discard::Isolated), 1);
    stage.send_up_raw(&udp(address, FAR, 10, true));
    assert_eq!(stage.inside.0.len(), 1);
}

#[test]
fn a_packet_leaves_with_an_external_source_and_its_answer_arrives() {
    let (mut stage, address) = stage(lns_config());
    stage.up_stream(&udp(address, FAR, 10, true));
    let sent = stage.inside.0[0].clone();
    let (from, port) = source(&sent);
    assert_eq!(from, EXTERNAL);
    assert!(port >= 1024);
    assert_eq!(checksum::ip_ok(&sent), Some(true));
    stage.down_stream(&to_port(port, 100, true));
    let got = &stage.client_inside.0[0];
    assert_eq!(got[16..20], address.octets());
    assert_eq!(got[22..24], 0x3039_u16.to_be_bytes());
    assert_eq!(checksum::ip_ok(got), Some(true));
    // Nobody has the next port.
    stage.down_stream(&to_port(port ^ 1, 100, true));
    assert_eq!(stage.client_inside.0.len(), 1);
    assert_eq!(stage.lns.discarded(Discard::Nat), 1);
}

#[test]
fn an_error_about_a_packet_that_is_too_big_names_the_external_port() {
    let (mut stage, address) = stage(lns_config());
    stage.up_stream(&udp(address, FAR, 10, true));
    let (_, port) = source(&stage.inside.0[0]);
    stage.inside.0.clear();
    let packet = to_port(port, 1_472, true);
    stage.down_stream(&packet);
    let error = &stage.inside.0[0];
    assert_eq!(error[20..22], [3, 4]);
    assert_eq!(error[12..16], EXTERNAL.octets());
    assert_eq!(error[16..20], FAR.octets());
    // The sender finds its own packet in it (RFC 5508 REQ-5a).
    assert_eq!(error[40..48], packet[12..20]);
    assert_eq!(error[48..52], packet[20..24]);
    assert_eq!(checksum::sum(&error[20..]), 0xffff);
}

#[test]
fn fragments_that_arrive_before_their_first_one_follow_it() {
    let (mut stage, address) = stage(lns_config());
    let whole = udp(address, FAR, 32, false);
    let piece = |range: core::ops::Range<usize>, flags: u16| {
        let mut packet = whole[..20].to_vec();
        packet.extend_from_slice(&whole[range]);
        let total = packet.len() as u16;
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        packet[6..8].copy_from_slice(&flags.to_be_bytes());
        packet[10..12].fill(0);
        let sum = !checksum::sum(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    };
    stage.up_stream(&piece(44..60, 3));
    assert!(stage.inside.0.is_empty());
    stage.up_stream(&piece(20..44, 0x2000));
    assert_eq!(stage.inside.0.len(), 2);
    for packet in &stage.inside.0 {
        assert_eq!(packet[12..16], EXTERNAL.octets());
        assert_eq!(checksum::ip_ok(packet), Some(true));
    }
    assert_eq!(stage.inside.0[0][4..6], stage.inside.0[1][4..6]);
}

#[test]
fn a_subscriber_that_leaves_gives_its_ports_back() {
    let (mut stage, address) = stage(lns_config());
    stage.up_stream(&udp(address, FAR, 10, true));
    assert!(matches!(
        stage.lns.poll_nat_event(),
        Some(Event::BlockAllocated(block, _)) if block.inside == address && block.external == EXTERNAL
    ));
    // A Terminate-Request of the client.
    let client = stage.lac.next_subscriber(0).unwrap().1.session;
    let header = stage.lac.endpoint_mut().data_header(client).unwrap();
    let request = [header.as_bytes(), &[0xff, 3, 0xc0, 0x21, 5, 9, 0, 4]].concat();
    let mut none = crate::stage::Packets::default();
    let from = crate::stage::route(crate::stage::LAC);
    stage.lns.receive(from, &request, stage.now, &mut none);
    stage.settle();
    assert_eq!(stage.ended.len(), 1);
    stage.pass(Duration::from_secs(1));
    let freed = stage.lns.poll_nat_event();
    assert!(matches!(freed, Some(Event::BlockFreed(..))));
    let nat = stage.lns.nat().unwrap();
    assert_eq!(nat.counters().mappings, 0);
    assert_eq!(nat.counters().subscribers, 0);
}

/// Forwards a port. An edge with one path answers at once.
fn forward(stage: &mut Stage, wish: &ForwardRequest) -> Result<Forward, ForwardError> {
    let asked = stage.lns.forward_port(wish, stage.now).unwrap();
    asked.answer().unwrap()
}

#[test]
fn a_port_of_a_subscriber_is_forwarded_until_it_leaves() {
    let (mut stage, address) = stage(lns_config());
    let key = stage.up[0];
    let wish = ForwardRequest {
        protocol: nat::Protocol::Udp,
        inside: address,
        inside_port: 7777,
        external: None,
        subscriber: None,
        lifetime: None,
    };
    let forwarded = forward(&mut stage, &wish).unwrap();
    assert_eq!(
        (forwarded.external, forwarded.tag),
        (EXTERNAL, key.to_token())
    );
    stage.down_stream(&to_port(forwarded.external_port, 100, true));
    let got = &stage.client_inside.0[0];
    assert_eq!(got[22..24], 7777_u16.to_be_bytes());
    // Nobody has the next address.
    let inside = Ipv4Addr::from_bits(address.to_bits() ^ 1);
    let wish = ForwardRequest { inside, ..wish };
    let refused = forward(&mut stage, &wish);
    assert_eq!(refused, Err(nat::ForwardError::Nobody));
    // But a port below the blocks needs no subscriber.
    let external = Some((EXTERNAL, 80));
    let wish = ForwardRequest { external, ..wish };
    let forwarded = forward(&mut stage, &wish).unwrap();
    assert_eq!((forwarded.external_port, forwarded.tag), (80, 0));
}

#[test]
fn a_network_that_is_not_translated_keeps_its_addresses() {
    let mut stage = Stage::new(lns_config());
    stage.profile.routes = vec![Prefix::new("198.51.101.0".parse().unwrap(), 24).unwrap()];
    let external = EXTERNAL.to_string().parse().unwrap();
    let nat = Config::new(vec![external], [1, 2, 3]);
    let inside = vec!["10.0.0.0/8".parse().unwrap()];
    stage.lns.set_nat(nat, inside, |_, _| ()).unwrap();
    stage.dial("alice", "sesame");
    let packet = udp("198.51.101.7".parse().unwrap(), FAR, 10, true);
    stage.send_up_raw(&packet);
    assert_eq!(stage.inside.0, [packet]);
}

/// Alice's packet from this port.
fn from_port(address: Ipv4Addr, port: u16) -> Vec<u8> {
    let mut packet = udp(address, FAR, 10, true);
    packet[20..22].copy_from_slice(&port.to_be_bytes());
    packet[26..28].fill(0);
    packet
}

#[test]
fn a_batch_whose_mappings_were_loaded_ahead_keeps_them() {
    let mut stage = Stage::new(lns_config());
    let mut config = Config::new(vec![EXTERNAL.to_string().parse().unwrap()], [1, 2, 3]);
    config.limits.blocks_per_subscriber = 100;
    config.limits.mappings_per_subscriber = 20_000;
    let inside = vec!["0.0.0.0-198.51.99.255".parse().unwrap()];
    stage.lns.set_nat(config, inside, |_, _| ()).unwrap();
    stage.dial("alice", "sesame");
    let address = stage.lns.subscriber(stage.up[0]).unwrap().address.unwrap();
    // As many as are loaded ahead.
    for port in 10_000..18_100 {
        stage.up_stream(&from_port(address, port));
    }
    assert_eq!(stage.lns.nat().unwrap().mappings(), 8_100);
    let first: Vec<_> = stage.inside.0.drain(..).map(|one| source(&one)).collect();
    // Known mappings, and new ones.
    let known = (10_000..10_030).map(|port| from_port(address, port));
    let new = (20_000..20_020).map(|port| from_port(address, port));
    let packets = known.chain(new);
    let datagrams: Vec<Vec<u8>> = packets.flat_map(|one| stage.datagrams_up(&one)).collect();
    stage
        .lns
        .touch(|| datagrams.iter().map(|one| (route(LAC), &one[..])));
    for datagram in &datagrams {
        stage
            .lns
            .receive(route(LAC), datagram, stage.now, &mut stage.inside);
    }
    let second: Vec<_> = stage.inside.0.iter().map(|one| source(one)).collect();
    assert_eq!(second[..30], first[..30]);
    assert_eq!(second.len(), 50);
    assert_eq!(stage.lns.nat().unwrap().mappings(), 8_120);
}
