//! Packets built from the RFCs' diagrams, and their keys.

use super::*;

mod build;
mod properties;

use build::*;

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [203, 0, 113, 9];

fn flow4(source: [u8; 4], destination: [u8; 4], protocol: u8, ports: (u16, u16)) -> Flow {
    let mapped = |[a, b, c, d]: [u8; 4]| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d];
    Flow {
        source: mapped(source),
        destination: mapped(destination),
        source_port: ports.0,
        destination_port: ports.1,
        protocol: u32::from(protocol),
    }
}

fn flow6(protocol: u8, ports: (u16, u16)) -> Flow {
    Flow {
        source: SOURCE6,
        destination: DESTINATION6,
        source_port: ports.0,
        destination_port: ports.1,
        protocol: u32::from(protocol),
    }
}

#[test]
fn udp_1000_to_2000_has_these_ports() {
    let datagram = udp(1000, 2000, b"hello");
    let keys = Keys::read(&ipv4(A, B, 17, &datagram));
    assert_eq!(keys.outer, flow4(A, B, 17, (1000, 2000)));
    assert_eq!((keys.inner, keys.is_tunnel()), (Flow::default(), false));
    assert_eq!(
        (keys.traffic_class, keys.vlan, keys.mark),
        (TRAFFIC_CLASS, 0, 0)
    );
    let keys = Keys::read(&ipv6(17, &datagram));
    assert_eq!(keys.outer, flow6(17, (1000, 2000)));
    assert_eq!(keys.traffic_class, TRAFFIC_CLASS);
}

#[test]
fn every_protocol_with_ports_has_them_at_its_first_octets() {
    for protocol in [6, 17, 33, 132, 136] {
        let packet = ipv4(A, B, protocol, &udp(7, 9, &[0; 32]));
        assert_eq!(Keys::read(&packet).outer, flow4(A, B, protocol, (7, 9)));
        let packet = ipv6(protocol, &udp(7, 9, &[0; 32]));
        assert_eq!(Keys::read(&packet).outer, flow6(protocol, (7, 9)));
    }
}

#[test]
fn protocols_without_ports_have_port_0() {
    // ICMP, ESP, EIGRP, ICMPv6, VRRP, an unassigned number, raw.
    for protocol in [1, 50, 88, 58, 112, 200, 255] {
        let payload = [0x11; 64];
        let keys = Keys::read(&ipv4(A, B, protocol, &payload));
        assert_eq!(keys.outer, flow4(A, B, protocol, (0, 0)));
        assert_eq!(keys.inner, Flow::default());
        let keys = Keys::read(&ipv6(protocol, &payload));
        assert_eq!(keys.outer, flow6(protocol, (0, 0)));
    }
}

#[test]
fn all_fragments_of_a_datagram_have_one_flow_without_ports() {
    let datagram = udp(1000, 2000, &[7; 64]);
    for offset_and_more in [0x2000, 0x2008, 0x0010] {
        let packet = fragment4(A, B, 17, offset_and_more, &datagram);
        assert_eq!(Keys::read(&packet).outer, flow4(A, B, 17, (0, 0)));
        // The "don't fragment" flag changes nothing.
        let packet = fragment4(A, B, 17, offset_and_more | 0x4000, &datagram);
        assert_eq!(Keys::read(&packet).outer, flow4(A, B, 17, (0, 0)));
    }
    for offset_and_more in [0x0001, 0x0041, 0x0080] {
        let packet = ipv6(44, &fragment_header(17, offset_and_more, &datagram));
        assert_eq!(Keys::read(&packet).outer, flow6(17, (0, 0)));
    }
}

#[test]
fn all_fragments_have_the_protocol_that_their_fragment_header_says() {
    let first = fragment_header(60, 1, &extension(17, 0, &udp(1000, 2000, &[0; 8])));
    let later = fragment_header(60, 0x40, &[0x55; 32]);
    let keys = Keys::read(&ipv6(44, &first));
    assert_eq!(keys, Keys::read(&ipv6(44, &later)));
    assert_eq!(keys.outer.protocol, 60);
}

#[test]
fn the_only_fragment_of_a_datagram_is_none() {
    let packet = ipv6(44, &fragment_header(17, 0, &udp(1000, 2000, &[])));
    assert_eq!(Keys::read(&packet).outer, flow6(17, (1000, 2000)));
}

#[test]
fn options_and_extension_headers_are_stepped_over() {
    let datagram = udp(1000, 2000, &[1, 2, 3]);
    let packet = options4(A, B, 17, &[1; 12], &datagram);
    assert_eq!(Keys::read(&packet).outer, flow4(A, B, 17, (1000, 2000)));
    let hop_by_hop = extension(43, 0, &extension(60, 2, &extension(17, 1, &datagram)));
    let packet = ipv6(0, &hop_by_hop);
    assert_eq!(Keys::read(&packet).outer, flow6(17, (1000, 2000)));
    // AH's length counts units of four octets, minus two (RFC 4302 2.2).
    let mut ah = vec![17, 4];
    ah.resize(24, 0);
    ah.extend(&datagram);
    let packet = ipv6(51, &ah);
    assert_eq!(Keys::read(&packet).outer, flow6(17, (1000, 2000)));
    let packet = ipv4(A, B, 51, &ah);
    assert_eq!(Keys::read(&packet).outer, flow4(A, B, 17, (1000, 2000)));
}

#[test]
fn endless_extension_headers_end() {
    let mut headers = udp(1000, 2000, &[]);
    let mut last = 17;
    for _ in 0..8 {
        headers = extension(last, 0, &headers);
        last = 60;
    }
    let keys = Keys::read(&ipv6(60, &headers));
    assert_eq!(keys.outer, flow6(17, (1000, 2000)));
    let keys = Keys::read(&ipv6(60, &extension(60, 0, &headers)));
    assert_eq!(keys.outer, flow6(60, (0, 0)));
}

#[test]
fn ports_lie_within_the_length_that_the_header_gives() {
    let mut packet = ipv4(A, B, 17, &[]);
    packet.extend(udp(1000, 2000, &[0; 26]));
    assert_eq!(Keys::read(&packet).outer, flow4(A, B, 17, (0, 0)));
    let mut packet = ipv6(17, &[9, 9]);
    packet.extend(udp(1000, 2000, &[0; 26]));
    assert_eq!(Keys::read(&packet).outer, flow6(17, (0, 0)));
}

#[test]
fn every_tunnel_gives_outer_and_inner_flow() {
    for (name, packet, outer) in tunnels(&inner4(), 4) {
        let keys = Keys::read(&packet);
        let (outer, inner) = (
            (u32::from(outer.0), outer.1, outer.2),
            flow4([192, 168, 1, 5], B, 6, (50000, 443)),
        );
        assert_eq!(
            (
                keys.outer.protocol,
                keys.outer.source_port,
                keys.outer.destination_port
            ),
            outer,
            "{name}"
        );
        assert_eq!(keys.inner, inner, "{name}");
        assert_eq!(keys.innermost(), &keys.inner, "{name}");
        assert_eq!(keys.traffic_class, TRAFFIC_CLASS, "{name}");
    }
    for (name, packet, _) in tunnels(&inner6(), 6) {
        assert_eq!(Keys::read(&packet).inner, flow6(17, (53, 4000)), "{name}");
    }
}

#[test]
fn gre_has_its_optional_fields_in_any_combination() {
    let inner = flow4([192, 168, 1, 5], B, 6, (50000, 443));
    let bridged = ethernet(&[(0x88a8, 7), (0x8100, 9)], 0x0800, &inner4());
    for flags in [
        0x0000, 0x1000, 0x2000, 0x3000, 0x8000, 0x9000, 0xa000, 0xb000,
    ] {
        // Checksum and its neighbour, key, sequence number (RFC 2784 2.1, RFC 2890 2).
        let length = 4 * u16::count_ones(flags) as usize;
        for (kind, content) in [(0x0800, inner4()), (0x6558, bridged.clone())] {
            let packet = ipv4(A, B, 47, &gre(&vec![8; length], flags, kind, &content));
            assert_eq!(Keys::read(&packet).inner, inner, "{flags:#x} {kind:#x}");
        }
    }
}

/// Frames that Linux's own device sent.
#[test]
fn vxlan_of_linux_has_the_flow_of_the_frame_inside() {
    let (near, far) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    let (host, server) = ([10, 9, 0, 1], [10, 9, 0, 2]);
    for (name, port, inner) in [
        ("tcp", 58558, flow4(host, server, 6, (50000, 443))),
        ("tagged", 39451, flow4(host, server, 17, (4000, 53))),
        ("arp", 39989, Flow::default()),
    ] {
        let keys = Keys::read_frame(&captured(name));
        assert_eq!(keys.outer, flow4(near, far, 17, (port, 4789)), "{name}");
        assert_eq!((keys.inner, keys.vlan), (inner, 0), "{name}");
    }
    let keys = Keys::read_frame(&captured("ipv6"));
    assert_eq!(keys.outer, flow6(17, (43857, 4789)));
    let address = |last| {
        let mut address = [0; 16];
        [address[0], address[3], address[15]] = [0xfd, 9, last];
        address
    };
    let inner = Flow {
        source: address(1),
        destination: address(2),
        ..flow6(17, (4000, 53))
    };
    assert_eq!(keys.inner, inner);
}

#[test]
fn vxlan_carries_frames_with_tags_and_sessions() {
    let inner = flow4([192, 168, 1, 5], B, 6, (50000, 443));
    for frame in [
        ethernet(&[], 0x0800, &inner4()),
        ethernet(&[(0x8100, 9)], 0x0800, &inner4()),
        ethernet(&[(0x88a8, 7), (0x8100, 9)], 0x0800, &inner4()),
        ethernet(&[(0x8100, 9); 4], 0x0800, &inner4()),
        ethernet(&[(0x8100, 9)], 0x8864, &pppoe(&inner4())),
    ] {
        let packet = ipv4(A, B, 17, &udp(50001, 4789, &vxlan(8, &frame)));
        let keys = Keys::read_frame(&ethernet(&[(0x8100, 5)], 0x0800, &packet));
        assert_eq!((keys.inner, keys.vlan), (inner, 5));
        for cut in 28..packet.len() - inner4().len() {
            assert_eq!(Keys::read(&packet[..cut]).inner, Flow::default(), "{cut}");
        }
    }
    let five = ethernet(&[(0x8100, 9); 5], 0x0800, &inner4());
    let packet = ipv4(A, B, 17, &udp(50001, 4789, &vxlan(8, &five)));
    assert!(!Keys::read(&packet).is_tunnel());
}

#[test]
fn an_inner_packet_without_ports_has_port_0() {
    for inner in [
        ipv4(A, B, 1, &[8, 0, 0, 0, 0, 1, 0, 1]),
        ipv4(A, B, 200, &[0x11; 40]),
        fragment4(A, B, 1, 0x2000, &[0x11; 40]),
    ] {
        let keys = Keys::read(&ipv4([192, 0, 2, 1], [192, 0, 2, 2], 4, &inner));
        assert_eq!(keys.inner, flow4(A, B, inner[9], (0, 0)));
    }
}

#[test]
fn a_fragmented_tunnel_packet_has_no_inner_flow() {
    for offset_and_more in [0x2000, 0x0040] {
        let packet = fragment4(A, B, 4, offset_and_more, &inner4());
        let keys = Keys::read(&packet);
        assert_eq!(keys.outer, flow4(A, B, 4, (0, 0)));
        assert_eq!(keys.inner, Flow::default());
    }
}

#[test]
fn what_is_no_tunnel_has_no_inner_flow() {
    let arp = [0, 1, 8, 0, 6, 4, 0, 1];
    let packets = [
        ("GRE with ARP", ipv4(A, B, 47, &gre(&[], 0, 0x0806, &arp))),
        (
            "GRE with routing",
            ipv4(A, B, 47, &gre(&[], 0x4000, 0x0800, &inner4())),
        ),
        (
            "GRE version 2",
            ipv4(A, B, 47, &gre(&[], 2, 0x0800, &inner4())),
        ),
        (
            "PPTP acknowledgment",
            ipv4(A, B, 47, &gre(&[0; 8], 0x2081, 0x880b, &[])),
        ),
        ("IPIP with IPv6", ipv4(A, B, 4, &inner6())),
        ("6in4 with IPv4", ipv4(A, B, 41, &inner4())),
        (
            "L2TP control",
            ipv4(
                A,
                B,
                17,
                &udp(1701, 1701, &[0xc8, 2, 0, 12, 0, 1, 0, 0, 0, 0, 0, 0]),
            ),
        ),
        (
            "L2TPv3 control",
            ipv4(A, B, 115, &[0, 0, 0, 0, 0xc8, 3, 0, 12]),
        ),
        (
            "LCP in L2TP",
            ipv4(
                A,
                B,
                17,
                &udp(
                    1701,
                    1701,
                    &l2tp_v2(&[0xff, 3, 0xc0, 0x21, 9, 1, 0, 8, 1, 2, 3, 4]),
                ),
            ),
        ),
        ("another port", ipv4(A, B, 17, &udp(1700, 1702, &inner4()))),
    ];
    for (name, packet) in packets {
        has_no_inner_flow(name, &packet);
    }
}

fn has_no_inner_flow(name: &str, packet: &[u8]) {
    let keys = Keys::read(packet);
    assert_eq!(keys.inner, Flow::default(), "{name}");
    assert_eq!(keys.outer.protocol, u32::from(packet[9]), "{name}");
    assert_eq!(keys.as_kernel(), keys, "{name}");
}

#[test]
fn what_is_no_vxlan_has_no_inner_flow() {
    let arp = [0, 1, 8, 0, 6, 4, 0, 1];
    let bridged = ethernet(&[], 0x0800, &inner4());
    let packets = [
        (
            "VXLAN without a network",
            ipv4(A, B, 17, &udp(1, 4789, &vxlan(0xf7, &bridged))),
        ),
        (
            "an answer from VXLAN's port",
            ipv4(A, B, 17, &udp(4789, 1, &vxlan(8, &bridged))),
        ),
        (
            "Linux's own port for VXLAN",
            ipv4(A, B, 17, &udp(1, 8472, &vxlan(8, &bridged))),
        ),
        (
            "ARP in VXLAN",
            ipv4(
                A,
                B,
                17,
                &udp(1, 4789, &vxlan(8, &ethernet(&[], 0x0806, &arp))),
            ),
        ),
        (
            "IEEE 802.3 in VXLAN",
            ipv4(A, B, 17, &udp(1, 4789, &vxlan(8, &ethernet(&[], 38, &arp)))),
        ),
    ];
    for (name, packet) in packets {
        has_no_inner_flow(name, &packet);
    }
}

#[test]
fn four_tunnels_in_one_another_are_looked_through_and_five_are_not() {
    let mut packet = inner4();
    for level in 1..=6 {
        packet = match level % 2 {
            0 => ipv6(
                47,
                &gre(&[], 0, if level == 1 { 0x0800 } else { 0x86dd }, &packet),
            ),
            _ => ipv6(if packet[0] >> 4 == 4 { 4 } else { 41 }, &packet),
        };
        let keys = Keys::read(&packet);
        assert!(keys.outer.exists());
        let expected = match level {
            1..=4 => flow4([192, 168, 1, 5], B, 6, (50000, 443)),
            _ => Flow::default(),
        };
        assert_eq!(keys.inner, expected, "{level} tunnels");
    }
}

#[test]
fn a_tunnel_that_carries_no_ip_in_another_tunnel_is_its_innermost_header() {
    let arp = gre(&[], 0, 0x0806, &[0; 28]);
    let packet = ipv4([192, 0, 2, 1], [192, 0, 2, 2], 4, &ipv4(A, B, 47, &arp));
    assert_eq!(Keys::read(&packet).inner, flow4(A, B, 47, (0, 0)));
}

#[test]
fn the_kernels_reading_has_inner_keys_in_the_place_of_outer_ones() {
    for (name, packet, (protocol, ..)) in tunnels(&inner4(), 4) {
        let keys = Keys::read(&packet);
        let kernel = keys.as_kernel();
        assert_eq!(kernel.inner, Flow::default(), "{name}");
        // For L2TP it sees only the UDP datagram.
        let expected = match protocol {
            17 | 115 => keys.outer,
            _ => keys.inner,
        };
        assert_eq!(kernel.outer, expected, "{name}");
        assert_eq!(kernel.traffic_class, keys.traffic_class);
    }
    let plain = Keys::read(&inner4());
    assert_eq!(plain.as_kernel(), plain);
}

#[test]
fn a_frame_has_its_packets_keys_and_its_first_tag() {
    for packet in [inner4(), inner6()] {
        let kind = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
        let bare = Keys::read(&packet);
        assert_eq!(Keys::read_frame(&ethernet(&[], kind, &packet)), bare);
        for (tags, vlan) in [
            (&[(0x8100, 0x0064)][..], 100),
            (&[(0x8100, 0xe064)], 100),
            (&[(0x88a8, 7), (0x8100, 100)], 7),
            (&[(0x8100, 0xa000), (0x8100, 100)], 0),
        ] {
            let frame = ethernet(tags, kind, &packet);
            assert_eq!(Keys::read_frame(&frame), Keys { vlan, ..bare }, "{tags:?}");
        }
        let frame = ethernet(&[], 0x8864, &pppoe(&packet));
        assert_eq!(Keys::read_frame(&frame), bare);
    }
}

#[test]
fn a_frame_without_ip_has_its_tag_alone() {
    let frame = ethernet(&[(0x8100, 100)], 0x0806, &[0; 28]);
    let expected = Keys {
        vlan: 100,
        ..Keys::default()
    };
    assert_eq!(Keys::read_frame(&frame), expected);
    assert_eq!(Keys::read_frame(&[]), Keys::default());
    let frame = ethernet(&[(0x8100, 1); 5], 0x0800, &inner4());
    assert_eq!(Keys::read_frame(&frame).outer, Flow::default());
}

#[test]
fn what_a_tunnel_in_a_frame_is_tagged_with_is_not_the_frames_tag() {
    let inside = ethernet(&[(0x8100, 9)], 0x0800, &inner4());
    let outside = ipv4(A, B, 47, &gre(&[], 0, 0x6558, &inside));
    let keys = Keys::read_frame(&ethernet(&[], 0x0800, &outside));
    assert_eq!((keys.vlan, keys.is_tunnel()), (0, true));
}
