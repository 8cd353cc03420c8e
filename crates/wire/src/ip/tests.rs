use super::*;
use crate::flow::Keys;
use crate::link::LinkType;
use crate::packet::{Packet, decode};

/// An IPv4 packet with the given octets 6 and 7 (flags and fragment offset), protocol and content.
fn v4(fragment: u16, protocol: u8, content: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0xb9, 0, 0, 0x12, 0x34];
    packet.extend_from_slice(&fragment.to_be_bytes());
    packet.extend_from_slice(&[63, protocol, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7]);
    packet.extend_from_slice(content);
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet
}

fn v6(next: u8, content: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x6b, 0x90, 0, 0];
    packet.extend_from_slice(&(content.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[next, 64]);
    packet.extend_from_slice(&"2001:db8::1".parse::<Ipv6Addr>().expect("one").octets());
    packet.extend_from_slice(&"2001:db8::2".parse::<Ipv6Addr>().expect("one").octets());
    packet.extend_from_slice(content);
    packet
}

/// A TCP header from port 1234 to 80 with the given flags.
fn tcp_header(flags: u8) -> [u8; 20] {
    let mut header = [0; 20];
    header[..4].copy_from_slice(&[0x04, 0xd2, 0, 80]);
    header[12..14].copy_from_slice(&[0x50, flags]);
    header
}

#[test]
fn an_ipv4_tcp_header_is_read() {
    let mut packet = v4(0x4000, 6, &tcp_header(0x12));
    packet.extend_from_slice(b"padding");
    let header = Header::read(&packet).expect("a packet");
    assert_eq!(header.source_address(), IpAddr::from([192, 0, 2, 1]));
    assert_eq!(
        header.destination_address(),
        IpAddr::from([198, 51, 100, 7])
    );
    assert_eq!((header.source_port, header.destination_port), (1234, 80));
    assert_eq!((header.version, header.protocol), (4, 6));
    assert_eq!((header.header_length, header.total_length), (20, 40));
    assert_eq!((header.traffic_class, header.hop_limit), (0xb9, 63));
    assert_eq!(header.tcp_flags, 0x12);
    assert_eq!(header.upper, Upper::Ports);
    assert_eq!(header.fragment, Fragment::Whole);
    assert!(header.dont_fragment);
}

#[test]
fn options_of_ipv4_are_stepped_over() {
    let mut packet = v4(0, 17, &[1, 1, 1, 1, 0, 53, 0, 54, 0, 8, 0, 0]);
    packet[0] = 0x46;
    let header = Header::read(&packet).expect("a packet");
    assert_eq!(header.header_length, 24);
    assert_eq!((header.source_port, header.destination_port), (53, 54));
    assert!(!header.dont_fragment);
}

#[test]
fn icmp_gives_type_and_code() {
    let header = Header::read(&v4(0, 1, &[3, 4, 0, 0, 0, 0, 0, 0])).expect("a packet");
    assert_eq!(header.icmp(), Some((3, 4)));
    let header = Header::read(&v6(58, &[128, 0, 0, 0])).expect("a packet");
    assert_eq!(header.icmp(), Some((128, 0)));
    let header = Header::read(&v4(0, 17, &[3, 4, 0, 0, 0, 8, 0, 0])).expect("a packet");
    assert_eq!(header.icmp(), None);
}

#[test]
fn fragments_are_told_apart_and_only_the_first_has_ports() {
    let first = Header::read(&v4(0x2000, 17, &[0, 53, 0, 54, 0, 99, 0, 0])).expect("a packet");
    assert_eq!(first.fragment, Fragment::First);
    assert_eq!((first.source_port, first.fragment_offset), (53, 0));
    for flags in [0x2000, 0] {
        let later = Header::read(&v4(flags | 185, 17, &[0, 53, 0, 54, 0, 99, 0, 0])).expect("one");
        assert_eq!(later.fragment, Fragment::Later);
        assert_eq!((later.source_port, later.fragment_offset), (0, 1480));
        assert_eq!(later.upper, Upper::Unread);
    }
}

#[test]
fn an_upper_header_that_does_not_fit_is_cut_and_no_error() {
    for (protocol, octets) in [(6, 15), (17, 7), (1, 3), (58, 3), (132, 7)] {
        let header = Header::read(&v4(0x2000, protocol, &vec![1; octets])).expect("a packet");
        assert_eq!(header.upper, Upper::Cut, "protocol {protocol}");
        assert_eq!((header.source_port, header.destination_port), (0, 0));
        let header = Header::read(&v4(0, protocol, &vec![1; octets + 1])).expect("a packet");
        assert_ne!(header.upper, Upper::Cut, "protocol {protocol}");
    }
}

#[test]
fn extension_headers_lead_to_the_upper_protocol() {
    let mut content = vec![43, 0, 0, 0, 0, 0, 0, 0];
    content.extend_from_slice(&[60, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    content.extend_from_slice(&[51, 0, 0, 0, 0, 0, 0, 0]);
    content.extend_from_slice(&[6, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    content.extend_from_slice(&[0; 12]);
    content.extend_from_slice(&tcp_header(2));
    let header = Header::read(&v6(0, &content)).expect("a packet");
    assert_eq!((header.protocol, header.destination_port), (6, 80));
    assert_eq!(header.header_length, 40 + 8 + 16 + 8 + 24);
    assert_eq!(header.traffic_class, 0xb9);
    assert!(header.dont_fragment);
}

#[test]
fn ah_in_ipv4_is_stepped_over() {
    let mut content = vec![17, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    content.extend_from_slice(&[0; 12]);
    content.extend_from_slice(&[0, 53, 0, 54, 0, 8, 0, 0]);
    let header = Header::read(&v4(0, 51, &content)).expect("a packet");
    assert_eq!((header.protocol, header.source_port), (17, 53));
    assert_eq!(header.header_length, 44);
}

#[test]
fn a_number_of_an_ipv6_extension_is_an_upper_protocol_behind_ah_in_ipv4() {
    // RFC 8200, section 4.1, and HIP and shim6: none of them is a header of IPv4.
    for number in [0, 43, 44, 60, 135, 139, 140] {
        let mut content = vec![number, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        content.extend_from_slice(&[0; 12]);
        // As a fragment header: TCP, offset 65,528.
        content.extend_from_slice(&[6, 0, 0xff, 0xf8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        let header = Header::read(&v4(0, 51, &content)).expect("a packet");
        assert_eq!((header.protocol, header.header_length), (number, 44));
        assert_eq!(
            (header.fragment, header.fragment_offset),
            (Fragment::Whole, 0)
        );
        let mut packet = crate::packet::Packet::new();
        let octets = v4(0, 51, &content);
        let length = octets.len() as u32;
        // Skipped or decoded, it is not a fragment of IPv6.
        let decoded =
            crate::packet::decode(crate::link::LinkType::RAW, &octets, length, &mut packet);
        assert!(
            decoded.is_err() || packet.protocol == number,
            "{number}: {decoded:?}"
        );
    }
}

#[test]
fn fragments_of_ipv6_are_told_apart() {
    let piece = |field: u16| {
        let mut content = vec![17, 0];
        content.extend_from_slice(&field.to_be_bytes());
        content.extend_from_slice(&[0, 0, 0, 9, 0, 53, 0, 54, 0, 8, 0, 0]);
        Header::read(&v6(44, &content)).expect("a packet")
    };
    assert_eq!(piece(0).fragment, Fragment::Whole);
    assert_eq!(piece(0).source_port, 53);
    assert_eq!(piece(1).fragment, Fragment::First);
    assert_eq!(piece(1).source_port, 53);
    assert_eq!(piece(1480).fragment, Fragment::Later);
    assert_eq!(piece(1481).fragment_offset, 1480);
    assert_eq!(
        (piece(1481).source_port, piece(1481).protocol),
        (0, udp::PROTOCOL)
    );
}

#[test]
fn what_is_no_packet_says_why() {
    let good = v4(0, 6, &tcp_header(2));
    let read = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut packet = good.clone();
        change(&mut packet);
        Header::read(&packet).expect_err("no packet")
    };
    assert_eq!(read(&|packet| packet.clear()), HeaderError::Truncated);
    assert_eq!(read(&|packet| packet.truncate(19)), HeaderError::Truncated);
    assert_eq!(read(&|packet| packet[0] = 0x55), HeaderError::Version(5));
    assert_eq!(
        read(&|packet| packet[0] = 0x44),
        HeaderError::HeaderLength(16)
    );
    assert_eq!(
        read(&|packet| packet[0] = 0x4f),
        HeaderError::HeaderLength(60)
    );
    assert_eq!(read(&|packet| packet[3] = 41), HeaderError::TotalLength(41));
    assert_eq!(read(&|packet| packet[3] = 19), HeaderError::TotalLength(19));
    assert_eq!(read(&|packet| packet[3] = 0), HeaderError::TotalLength(0));
    let cut = v6(60, &[6, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(Header::read(&cut), Err(HeaderError::Extension));
    assert_eq!(Header::read(&cut[..47]), Err(HeaderError::TotalLength(48)));
    let endless = [60, 0, 0, 0, 0, 0, 0, 0].repeat(EXTENSIONS_MAX + 1);
    let endless = Header::read(&v6(60, &endless));
    assert_eq!(endless, Err(HeaderError::TooManyExtensions));
}

#[test]
fn no_octets_panic_and_what_is_read_agrees_with_the_other_readers() {
    let mut state = 1_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let mut read = 0;
    for round in 0..60_000 {
        let protocol = [6, 17, 1, 58, 51, 50][round % 6];
        let mut packet = if round % 2 == 0 {
            v4(0, protocol, &tcp_header(0x18))
        } else {
            v6([0, 6, 17, 43, 44, 58, 60][round % 7], &tcp_header(0x10))
        };
        for _ in 0..random() % 6 {
            let at = usize::from(random()) % packet.len();
            packet[at] = random();
        }
        packet.truncate(usize::from(random()) % 48 + 24);
        let Ok(header) = Header::read(&packet) else {
            continue;
        };
        read += 1;
        let mut seen = Packet::new();
        let length = packet.len() as u32;
        if decode(LinkType::RAW, &packet, length, &mut seen).is_ok() && seen.layers.is_empty() {
            assert_eq!(header.source.to_be_bytes(), seen.source);
            assert_eq!(header.fragment, seen.fragment);
            assert_eq!(header.hop_limit, seen.hop_limit);
            assert_eq!(header.traffic_class, seen.traffic_class);
            assert_eq!(header.protocol, seen.protocol);
        }
        let keys = Keys::read(&packet);
        assert_eq!(header.destination.to_be_bytes(), keys.outer.destination);
        if header.upper == Upper::Ports && header.fragment == Fragment::Whole {
            assert_eq!(header.source_port, keys.outer.source_port);
            assert_eq!(header.destination_port, keys.outer.destination_port);
        }
    }
    assert!(read > 10_000, "only {read} were packets");
}
