//! The same segment in every supported encapsulation.

use wire::link::LinkType;
use wire::packet::{Fragment, Skip};
use wire::tcp::Tcp;

use crate::build::{ethernet, hex, ipv4, ipv6, join, outer, plain, segment, udp};
use crate::whole;

/// One way to encapsulate a packet.
pub(crate) struct Case {
    pub(crate) link: LinkType,
    pub(crate) frame: Vec<u8>,
    /// The expected text of the layers.
    layers: &'static str,
}

const OUTER: &str = "ip 192.0.2.1>192.0.2.2";

fn case(link: LinkType, head: &str, payload: &[u8], layers: &'static str) -> Case {
    let frame = join(&hex(head), payload);
    Case {
        link,
        frame,
        layers,
    }
}

/// An EtherType and its payload.
fn in_ethernet(ethertype: u16, head: &str, payload: &[u8], layers: &'static str) -> Case {
    let frame = ethernet(ethertype, &join(&hex(head), payload));
    Case {
        link: LinkType::ETHERNET,
        frame,
        layers,
    }
}

/// A tunnel over IPv4; `layers` are those inside the outer header.
fn in_ip(protocol: u8, head: &str, payload: &[u8], layers: &'static str) -> Case {
    let frame = ethernet(0x0800, &outer(protocol, &join(&hex(head), payload)));
    Case {
        link: LinkType::ETHERNET,
        frame,
        layers,
    }
}

fn in_udp(port: u16, head: &str, payload: &[u8], layers: &'static str) -> Case {
    in_ip(17, "", &udp(4000, port, &join(&hex(head), payload)), layers)
}

// long: a table of packets
fn links(ip: &[u8], ip6: &[u8]) -> Vec<Case> {
    let t = LinkType;
    vec![
        case(t(1), "020000000002 020000000001 0800", ip, ""),
        case(t(1), "020000000002 020000000001 86dd", ip6, ""),
        // IEEE 802.3: SNAP, SNAP of a bridge, and IP's own SAP.
        case(
            t(1),
            "020000000002 020000000001 004e aaaa03 000000 0800",
            ip,
            "",
        ),
        case(
            t(1),
            "020000000002 020000000001 004e aaaa03 0000f8 0800",
            ip,
            "",
        ),
        case(t(1), "020000000002 020000000001 004e 060603", ip, ""),
        // FabricPath: addresses and a tag before the frame.
        case(
            t(1),
            "020000000004 020000000003 8903 0001 020000000002 020000000001 0800",
            ip,
            "",
        ),
        case(
            t(6),
            "1040 020000000002 020000000001 aaaa03 000000 0800",
            ip,
            "",
        ),
        case(
            t(6),
            "1040 020000000002 820000000001 0430 0010 aaaa03 000000 0800",
            ip,
            "",
        ),
        case(
            t(10),
            "50 020000000002 020000000001 aaaa03 000000 0800",
            ip,
            "",
        ),
        case(t(12), "", ip, ""),
        case(t(14), "", ip6, ""),
        case(t(101), "", ip, ""),
        case(t(101), "", ip6, ""),
        case(t(228), "", ip, ""),
        case(t(229), "", ip6, ""),
        case(t(0), "02000000", ip, ""),
        case(t(0), "00000002", ip, ""),
        case(t(0), "0a000000", ip6, ""),
        case(t(0), "18000000", ip6, ""),
        case(t(0), "0000001c", ip6, ""),
        case(t(0), "1e000000", ip6, ""),
        case(t(108), "00000002", ip, ""),
        case(t(108), "00000018", ip6, ""),
        case(t(113), "0000 0001 0006 0200000000010000 0800", ip, ""),
        case(
            t(113),
            "0000 0001 0006 0200000000010000 0004 aaaa03 000000 0800",
            ip,
            "",
        ),
        case(
            t(113),
            "0000 0001 0006 0200000000010000 8100 0064 86dd",
            ip6,
            "vlan 100",
        ),
        case(
            t(276),
            "0800 0000 00000002 0001 00 06 0200000000010000",
            ip,
            "",
        ),
        case(
            t(276),
            "86dd 0000 00000002 0001 00 06 0200000000010000",
            ip6,
            "",
        ),
    ]
}

fn serial_links(ip: &[u8], ip6: &[u8]) -> Vec<Case> {
    let t = LinkType;
    vec![
        case(t(9), "0021", ip, ""),
        case(t(9), "ff03 0057", ip6, ""),
        case(t(9), "21", ip, ""),
        case(t(50), "ff03 21", ip, ""),
        case(t(50), "ff03 0021", ip, ""),
        case(t(50), "0f00 0800", ip, ""),
        case(t(50), "ff03 0281 00010140", ip, "mpls 16"),
        case(t(51), "1100 0011 004c 0021", ip, "pppoe 17"),
        case(t(166), "01 ff03 0021", ip, ""),
        case(t(204), "00 0021", ip, ""),
        case(t(104), "0f00 0800", ip, ""),
        case(t(104), "8f00 86dd", ip6, ""),
        case(t(205), "01 0f00 0800", ip, ""),
        case(t(100), "aaaa03 000000 0800", ip, ""),
        case(t(11), "aaaa03 000000 86dd", ip6, ""),
        case(t(100), "", ip, ""),
        case(t(100), "fefe03 cc", ip, ""),
        case(t(100), "fefe03 8e", ip6, ""),
        case(t(100), "fefe03 cf 0021", ip, ""),
        case(t(100), "0021", ip, ""),
        case(
            t(100),
            "aaaa03 0080c2 0007 0000 020000000002 020000000001 0800",
            ip,
            "",
        ),
        case(t(19), "aaaa03 000000 0800", ip, ""),
        case(t(106), "", ip, ""),
        case(t(123), "02 00 0020 aaaa03 000000 0800", ip, ""),
        case(
            t(123),
            "01 00 0020 0003 020000000002 020000000001 0800",
            ip,
            "",
        ),
    ]
}

fn tags(ip: &[u8], ip6: &[u8]) -> Vec<Case> {
    let frame = ethernet(0x0800, ip);
    // A frame to an address that looks like IPv4, and one to an address that looks like a control word.
    let like_ipv4 = join(&hex("450000000002 020000000001 0800"), ip);
    let like_word = join(&hex("000000000002 020000000001 0800"), ip);
    vec![
        in_ethernet(0x8100, "0064 0800", ip, "vlan 100"),
        in_ethernet(0x8100, "e064 86dd", ip6, "vlan 100"),
        in_ethernet(0x8100, "0064 004e aaaa03 000000 0800", ip, "vlan 100"),
        in_ethernet(0x88a8, "0007 8100 0064 0800", ip, "vlan 7, vlan 100"),
        in_ethernet(0x9100, "0007 8100 0064 0800", ip, "vlan 7, vlan 100"),
        in_ethernet(0x8100, "0007 8100 0064 0800", ip, "vlan 7, vlan 100"),
        in_ethernet(0x8847, "00010140", ip, "mpls 16"),
        in_ethernet(0x8848, "00010040 00011140", ip6, "mpls 16, mpls 17"),
        in_ethernet(0x8847, "00010140", &frame, "mpls 16"),
        in_ethernet(0x8847, "00010140 00000000", &frame, "mpls 16"),
        in_ethernet(0x8847, "00010140", &like_ipv4, "mpls 16"),
        in_ethernet(0x8847, "00010140", &like_word, "mpls 16"),
        in_ethernet(0x8847, "00010140 00000001", &like_word, "mpls 16"),
        in_ethernet(0x8864, "1100 0011 004c 0021", ip, "pppoe 17"),
        in_ethernet(0x8864, "1100 0011 004c 0057", ip6, "pppoe 17"),
        in_ethernet(
            0x8100,
            "0064 8864 1100 0011 004c 0021",
            ip,
            "vlan 100, pppoe 17",
        ),
    ]
}

fn tunnels(ip: &[u8], ip6: &[u8]) -> Vec<Case> {
    let frame = ethernet(0x0800, ip);
    let in_ip6 = |next, inner: &[u8]| ethernet(0x86dd, &ipv6(next, inner));
    let case6 = |frame: Vec<u8>| Case {
        link: LinkType::ETHERNET,
        frame,
        layers: "ip 2001:db8::1>2001:db8::2",
    };
    vec![
        in_ip(4, "", ip, ""),
        in_ip(41, "", ip6, ""),
        case6(in_ip6(4, ip)),
        case6(in_ip6(41, ip6)),
        in_ip(47, "0000 0800", ip, "gre"),
        in_ip(47, "0000 86dd", ip6, "gre"),
        in_ip(47, "8000 0800 12340000", ip, "gre"),
        in_ip(47, "b000 0800 12340000 00000005 00000001", ip, "gre 5"),
        in_ip(47, "2000 6558 00000005", &frame, "gre 5"),
        in_ip(47, "0000 8847 00010140", ip, "gre, mpls 16"),
        in_ip(
            47,
            "3001 880b 00500011 00000001 ff03 0021",
            ip,
            "pptp 17, ppp",
        ),
        in_ip(
            47,
            "3081 880b 00500011 00000001 00000002 21",
            ip,
            "pptp 17, ppp",
        ),
        in_ip(97, "3000", &frame, "etherip"),
        in_ip(137, "00010140", ip, "mpls 16"),
        in_udp(6635, "00010140", ip, "mpls 16"),
        in_udp(4789, "08000000 00002a00", &frame, "vxlan 42"),
        in_udp(8472, "08000000 00002a00", &frame, "vxlan 42"),
        in_udp(6081, "0000 6558 00002a00", &frame, "geneve 42"),
        in_udp(6081, "0240 0800 00002a00 0102000100000000", ip, "geneve 42"),
        in_udp(2152, "30ff 004c 00000011", ip, "gtp 17"),
        in_udp(2152, "34ff 0054 00000011 00000085 01000000", ip6, "gtp 17"),
        // AH over IPv4.
        Case {
            link: LinkType::RAW,
            frame: ipv4(
                51,
                &join(
                    &hex("0604 0000 00000001 00000001 000000000000000000000000"),
                    &segment(),
                ),
            ),
            layers: "",
        },
    ]
}

fn l2tp(ip: &[u8], ip6: &[u8]) -> Vec<Case> {
    let frame = ethernet(0x0800, ip);
    let tagged = ethernet(0x8100, &join(&hex("0064 0800"), ip));
    let cookie = "1111111122222222";
    let mut cases = vec![
        in_udp(1701, "0002 0003 0005 ff03 0021", ip, "l2tp 3/5"),
        in_udp(1701, "0002 0003 0005 0021", ip, "l2tp 3/5"),
        in_udp(1701, "0002 0003 0005 57", ip6, "l2tp 3/5"),
        in_udp(1701, "4002 0058 0003 0005 ff03 0021", ip, "l2tp 3/5"),
        in_udp(
            1701,
            "4802 005c 0003 0005 00010000 ff03 0021",
            ip,
            "l2tp 3/5",
        ),
        in_udp(1701, "0202 0003 0005 0002 dead ff03 0021", ip, "l2tp 3/5"),
    ];
    for before in [
        "",
        "00000000",
        "11111111",
        cookie,
        "111111112222222240000001",
    ] {
        let head = format!("0003 0000 00000005 {before}");
        cases.push(in_udp(
            1701,
            &format!("{head} ff03 0021"),
            ip,
            "l2tpv3 5, ppp",
        ));
        cases.push(in_udp(1701, &format!("{head} 0057"), ip6, "l2tpv3 5, ppp"));
        cases.push(in_udp(1701, &head, &frame, "l2tpv3 5"));
        cases.push(in_udp(1701, &head, &tagged, "l2tpv3 5, vlan 100"));
        let over_ip = format!("00000005 {before}");
        cases.push(in_ip(115, &over_ip, &frame, "l2tpv3 5"));
        cases.push(in_ip(115, &format!("{over_ip} 0021"), ip, "l2tpv3 5, ppp"));
    }
    cases
}

/// Every case.
pub(crate) fn all() -> Vec<Case> {
    let (ip, ip6) = (ipv4(6, &segment()), ipv6(6, &segment()));
    [links, serial_links, tags, tunnels, l2tp]
        .iter()
        .flat_map(|cases| cases(&ip, &ip6))
        .collect()
}

#[test]
fn a_segment_is_the_same_in_every_encapsulation() {
    let plain = plain();
    let expected = whole(LinkType::ETHERNET, &plain).expect("plain");
    let expected = Tcp::parse(&expected).expect("a segment");
    for case in all() {
        let shown = format!("{} {:02x?}", case.link, case.frame);
        let packet = whole(case.link, &case.frame).expect(&shown);
        assert_eq!(Tcp::parse(&packet), Ok(expected), "{shown}");
        let layers = packet.layers.to_string();
        let layers = layers.trim_start_matches(OUTER).trim_start_matches(", ");
        assert_eq!(layers, case.layers, "{shown}");
        assert_eq!(
            (packet.traffic_class, packet.hop_limit),
            (0x10, 63),
            "{shown}"
        );
        assert_eq!(packet.id, if packet.version == 4 { 0x1234 } else { 0 });
        assert_eq!(packet.fragment, Fragment::Whole);
    }
}

#[test]
fn a_frame_cut_anywhere_has_the_segment_s_start_or_none() {
    for case in all() {
        let length = case.frame.len() as u32;
        for cut in 0..case.frame.len() {
            let mut packet = wire::packet::Packet::new();
            let done = wire::packet::decode(case.link, &case.frame[..cut], length, &mut packet);
            let Ok(tcp) = done.map(|()| Tcp::parse(&packet)) else {
                continue;
            };
            if let Ok(tcp) = tcp {
                assert_eq!(tcp.payload_length, 18);
                assert_eq!(tcp.sequence, 0x0102_0304);
            }
        }
    }
}

#[test]
fn a_tunnel_that_cannot_be_read_is_its_carrier() {
    let ports = [4789, 8472, 6081, 1701, 2152, 6635];
    for port in ports {
        for payload in [
            "",
            "00",
            "0800000000002a00",
            "ffffffffffffffffffffffffffffffffff",
        ] {
            let frame = outer(17, &udp(4000, port, &hex(payload)));
            let packet = whole(LinkType::RAW, &frame).expect("UDP");
            assert!(packet.layers.is_empty());
            assert_eq!((packet.protocol, packet.source[12]), (17, 192));
            assert_eq!(packet.transport.len(), packet.transport_length as usize);
        }
    }
    for protocol in [4, 41, 47, 97, 115, 137] {
        let frame = outer(protocol, &hex("ffffffffffff"));
        let packet = whole(LinkType::RAW, &frame).expect("IP");
        assert_eq!((packet.protocol, packet.layers.len()), (protocol, 0));
    }
    // LCP over PPP, in L2TP; ARP in VXLAN.
    let lcp = udp(1701, 1701, &hex("0002 0003 0005 ff03 c021 0101 0004"));
    let arp = udp(
        4000,
        4789,
        &join(&hex("0800000000002a00"), &ethernet(0x0806, &[0; 28])),
    );
    for payload in [lcp, arp] {
        let frame = outer(17, &payload);
        let packet = whole(LinkType::RAW, &frame).expect("UDP");
        assert_eq!((packet.protocol, packet.layers.len()), (17, 0));
    }
}

#[test]
fn what_is_no_ip_says_what_it_is() {
    let e = LinkType::ETHERNET;
    let skip = |link, octets: &str| whole(link, &hex(octets)).expect_err("no IP");
    let macs = "020000000002 020000000001";
    let ethertype = |ethertype| Skip::NotIp { ethertype };
    assert_eq!(skip(e, &format!("{macs} 0806 0001")), ethertype(0x0806));
    assert_eq!(
        skip(e, &format!("{macs} 8100 0064 88cc")),
        ethertype(0x88cc)
    );
    assert_eq!(
        skip(e, &format!("{macs} 0026 424203")),
        Skip::NotIpLlc { dsap: 0x42 }
    );
    assert_eq!(skip(e, macs), Skip::Truncated);
    assert_eq!(skip(e, ""), Skip::Truncated);
    assert_eq!(
        skip(LinkType::PPP, "c021 01"),
        Skip::NotIpPpp { protocol: 0xc021 }
    );
    assert_eq!(
        skip(LinkType::NULL, "1a000000"),
        Skip::NotIpFamily { family: 26 }
    );
    assert_eq!(skip(LinkType(129), "00"), Skip::UnknownLink(LinkType(129)));
    assert_eq!(skip(LinkType::RAW, "55"), Skip::BadHeader);
    assert_eq!(
        Skip::UnknownLink(LinkType(129)).to_string(),
        "unknown link type 129"
    );
    assert_eq!(ethertype(0x0806).to_string(), "not IP: EtherType 0x0806");
}

#[test]
fn eight_encapsulations_are_looked_through_and_nine_are_not() {
    let nested = |depth| (0..depth).fold(ipv4(6, &segment()), |inner, _| ipv4(4, &inner));
    let eight = nested(8);
    let packet = whole(LinkType::RAW, &eight).expect("eight");
    assert_eq!((packet.protocol, packet.layers.len()), (6, 8));
    assert_eq!(whole(LinkType::RAW, &nested(9)), Err(Skip::TooDeep));
}
