//! Tests the way from a packet's bytes to a key's value and a hash's bucket.

use qos::classify::{Hash, Key, KeySet, Map};
use wire::flow::Keys;

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [203, 0, 113, 9];
const PORTS: KeySet = KeySet::of(&[Key::ProtoSrc, Key::ProtoDst]);

/// RFC 791 3.1.
fn ipv4(tos: u8, fragment: u16, protocol: u8, content: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, tos];
    packet.extend((20 + content.len() as u16).to_be_bytes());
    packet.extend([0x12, 0x34]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0]);
    packet.extend(A);
    packet.extend(B);
    packet.extend(content);
    packet
}

/// RFC 8200 3.
fn ipv6(class: u8, protocol: u8, content: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60 | class >> 4, class << 4, 0, 0];
    packet.extend((content.len() as u16).to_be_bytes());
    packet.extend([protocol, 64]);
    packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    packet.extend(content);
    packet
}

/// RFC 768, 1000 to 2000.
fn udp() -> Vec<u8> {
    [&[3, 0xe8, 7, 0xd0, 0, 40, 0, 0][..], &[0x55; 32]].concat()
}

fn value(key: &str, packet: &[u8]) -> u32 {
    let key: Key = key.parse().expect("a key");
    key.value(&Keys::read(packet))
}

/// Packets of protocols without ports, with data where other protocols have ports: name, packet.
fn without_ports(tos: u8) -> Vec<(&'static str, Vec<u8>)> {
    // RFC 8200 4.5: the first fragment, a middle one and the last.
    let piece = |offset_and_more: u16| {
        let head = [[17, 0], offset_and_more.to_be_bytes(), [0; 2], [0, 9]].concat();
        ipv6(tos, 44, &[&head[..], &udp()].concat())
    };
    vec![
        ("ICMP", ipv4(tos, 0, 1, &[8, 0, 0x77, 0x88, 1, 2, 3, 4])),
        ("ICMPv6", ipv6(tos, 58, &[128, 0, 0x77, 0x88, 1, 2, 3, 4])),
        ("protocol 200", ipv4(tos, 0, 200, &udp())),
        ("protocol 200 in IPv6", ipv6(tos, 200, &udp())),
        ("the first fragment", ipv4(tos, 0x2000, 17, &udp())),
        ("a fragment", ipv4(tos, 0x2010, 17, &udp())),
        ("the last fragment", ipv4(tos, 0x0010, 17, &udp())),
        ("the first fragment in IPv6", piece(0x0001)),
        ("a fragment in IPv6", piece(0x0041)),
        ("the last fragment in IPv6", piece(0x0040)),
    ]
}

#[test]
fn udp_1000_to_2000_has_1000_and_2000() {
    for packet in [ipv4(0, 0, 17, &udp()), ipv6(0, 17, &udp())] {
        assert_eq!(value("proto-src", &packet), 1000);
        assert_eq!(value("proto-dst", &packet), 2000);
        assert_eq!(value("tunnel-proto-src", &packet), 0);
    }
}

#[test]
fn what_has_no_ports_has_port_0_in_one_bucket_whatever_its_tos() {
    let hash = Hash::new(PORTS, 1024, 0x5eed, 0x0001_0001);
    let mut classes = Vec::new();
    for tos in 0..=255 {
        for (name, packet) in without_ports(tos) {
            for key in ["proto-src", "proto-dst", "tunnel-proto-src"] {
                assert_eq!(value(key, &packet), 0, "{key} of {name}, TOS {tos:#x}");
            }
            let map = Map::new(Key::ProtoSrc).class(&Keys::read(&packet));
            assert_eq!(map, 1, "{name}");
            classes.push(hash.class(&Keys::read(&packet)));
        }
    }
    classes.sort_unstable();
    classes.dedup();
    // The class does not depend on the process: an earlier run of another program computed the same one.
    assert_eq!(classes, [0x0001_0276]);
}

#[test]
fn pings_that_differ_in_tos_and_number_alone_are_one_flow() {
    let flow = |tos, number| {
        let packet = ipv4(tos, 0, 1, &[8, 0, number, 0, 1, 2, 3, number]);
        Hash::new(KeySet::FLOW, 0, 7, 1).value(&Keys::read(&packet))
    };
    for tos in 0..=255 {
        assert_eq!(flow(tos, tos), flow(0, 0), "{tos:#x}");
    }
}

#[test]
fn both_headers_of_a_tunnel_have_their_keys_at_once() {
    let inner4 = ipv4(0, 0, 17, &udp());
    let inner6 = ipv6(0, 17, &udp());
    let gre = [&[0, 0, 8, 0][..], &inner4].concat();
    // RFC 2661 3.1 over port 1701: version 2, tunnel 7, session 8, PPP with IPv4.
    let head = [
        &[
            6, 0xa5, 6, 0xa5, 0, 0, 0, 0, 0, 2, 0, 7, 0, 8, 0xff, 3, 0, 0x21,
        ][..],
        &inner4,
    ];
    let mut l2tp = head.concat();
    let length = l2tp.len() as u16;
    l2tp[4..6].copy_from_slice(&length.to_be_bytes());
    for (name, packet, outer) in [
        ("IPIP", ipv4(0, 0, 4, &inner4), (4, 0, 0)),
        ("6in4", ipv4(0, 0, 41, &inner6), (41, 0, 0)),
        ("4in6", ipv6(0, 4, &inner4), (4, 0, 0)),
        ("6in6", ipv6(0, 41, &inner6), (41, 0, 0)),
        ("GRE", ipv4(0, 0, 47, &gre), (47, 0, 0)),
        ("L2TP", ipv4(0, 0, 17, &l2tp), (17, 1701, 1701)),
    ] {
        let of = |key: &str| value(key, &packet);
        let plain = (of("proto"), of("proto-src"), of("proto-dst"));
        assert_eq!(plain, outer, "{name}");
        let within = ["proto", "proto-src", "proto-dst"].map(|key| of(&format!("tunnel-{key}")));
        assert_eq!(within, [17, 1000, 2000], "{name}");
        assert_ne!((of("tunnel-src"), of("tunnel-dst")), (0, 0), "{name}");
        // The kernel's reading uses the inner headers in place of the outer ones; it does not know L2TP.
        let kernel = Keys::read(&packet).as_kernel();
        let as_kernel = ["proto", "proto-src", "proto-dst"].map(|key| {
            let key: Key = key.parse().expect("a key");
            key.value(&kernel)
        });
        let expected = if name == "L2TP" {
            [17, 1701, 1701]
        } else {
            [17, 1000, 2000]
        };
        assert_eq!(as_kernel, expected, "{name}");
        for key in Key::ALL {
            let is_tunnels = key.name().starts_with("tunnel-");
            assert!(!is_tunnels || key.value(&kernel) == 0, "{name}: {key}");
        }
        // A truncated packet yields all of the tunnel's keys or none.
        for end in 0..packet.len() {
            let keys = Keys::read(&packet[..end]);
            let within = [Key::TunnelProto, Key::TunnelProtoSrc, Key::TunnelProtoDst];
            let within = within.map(|key| key.value(&keys));
            assert!([[17, 1000, 2000], [0; 3]].contains(&within), "{name} {end}");
        }
    }
}
