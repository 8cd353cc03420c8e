use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

const LOCATION: &str = "http://portal.example/pay";
const CLIENT_PORT: u16 = 40_000;

/// The fields of a segment that a test sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent<'a> {
    flags: u8,
    sequence: u32,
    acknowledgment: u32,
    data: &'a [u8],
}

fn sent(flags: u8, sequence: u32, acknowledgment: u32, data: &[u8]) -> Sent<'_> {
    Sent {
        flags,
        sequence,
        acknowledgment,
        data,
    }
}

fn portal() -> Portal {
    Portal::new(LOCATION).unwrap()
}

/// A packet of the subscriber with this segment. The addresses are those of `write`'s peer, so `write` makes it.
fn packet(version: u8, port: u16, one: Sent<'_>) -> Vec<u8> {
    let (near, far): (u128, u128) = match version {
        4 => (
            Ipv4Addr::new(10, 0, 0, 7).to_bits().into(),
            Ipv4Addr::new(198, 51, 100, 1).to_bits().into(),
        ),
        _ => (
            "2001:db8::7".parse::<Ipv6Addr>().unwrap().to_bits(),
            "2001:db8:1::1".parse::<Ipv6Addr>().unwrap().to_bits(),
        ),
    };
    let mapped = |address: u128| match version {
        4 => 0xffff_0000_0000 | address,
        _ => address,
    };
    // The header of a packet in the other direction.
    let reverse = Header {
        source: mapped(far),
        destination: mapped(near),
        total_length: 0,
        header_length: 0,
        source_port: port,
        destination_port: CLIENT_PORT,
        fragment_offset: 0,
        version,
        protocol: tcp::PROTOCOL,
        traffic_class: 0,
        hop_limit: 64,
        tcp_flags: 0,
        fragment: Fragment::Whole,
        upper: Upper::Ports,
        dont_fragment: true,
    };
    let mut out = [0; LENGTH_MAX];
    let numbers = [one.sequence, one.acknowledgment];
    match write(&reverse, numbers, one.flags, one.data, &mut out) {
        Answer::Reply(length) => out[..length].to_vec(),
        other => panic!("{other:?}"),
    }
}

/// The answer to a packet. A reply is checked: its checksums, its addresses and ports, its length.
fn answer(portal: &Portal, packet: &[u8]) -> (Answer, Vec<u8>) {
    let header = Header::read(packet).unwrap();
    let mut out = [0; LENGTH_MAX];
    let answer = portal.answer(7, &header, packet, &mut out);
    let Answer::Reply(length) = answer else {
        return (answer, Vec::new());
    };
    let bytes = out[..length].to_vec();
    let reply = Header::read(&bytes).unwrap();
    assert_eq!(reply.total_length as usize, length);
    assert_eq!(
        (reply.source, reply.destination),
        (header.destination, header.source)
    );
    assert_eq!(
        (reply.source_port, reply.destination_port),
        (header.destination_port, header.source_port)
    );
    if reply.version == 4 {
        assert_eq!(checksum::sum(&bytes[..20]), 0xffff);
    }
    assert!(Segment::read(&reply, &bytes).is_some(), "its checksum");
    (answer, bytes)
}

/// The reply to a segment of the subscriber.
fn reply(version: u8, port: u16, one: Sent<'_>) -> Option<(u8, u32, u32, Vec<u8>)> {
    let (_, bytes) = answer(&portal(), &packet(version, port, one));
    if bytes.is_empty() {
        return None;
    }
    let header = Header::read(&bytes).unwrap();
    let segment = Segment::read(&header, &bytes).unwrap();
    let data = bytes[bytes.len() - segment.data as usize..].to_vec();
    Some((
        segment.flags,
        segment.sequence,
        segment.acknowledgment,
        data,
    ))
}

/// A whole connection as a browser makes it (RFC 9293, figures 6 and 12).
#[test]
fn a_browser_gets_the_address_of_the_portal_and_the_connection_closes_in_order() {
    for version in [4, 6] {
        let isn = 0xffff_fff0;
        let (flags, first, acknowledged, _) = reply(version, 80, sent(SYN, isn, 0, b"")).unwrap();
        assert_eq!(flags, SYN | ACK);
        assert_eq!(acknowledged, isn.wrapping_add(1));
        let (ours, theirs) = (first.wrapping_add(1), isn.wrapping_add(1));
        // The third segment of the handshake needs no reply.
        assert_eq!(reply(version, 80, sent(ACK, theirs, ours, b"")), None);
        let get = b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n";
        let request = sent(PSH | ACK, theirs, ours, get);
        let (flags, sequence, acknowledged, data) = reply(version, 80, request).unwrap();
        assert_eq!(flags, PSH | FIN | ACK);
        assert_eq!(sequence, ours);
        assert_eq!(acknowledged, theirs.wrapping_add(get.len() as u32));
        let text = String::from_utf8(data.clone()).unwrap();
        assert!(text.starts_with("HTTP/1.1 302 Found\r\n"), "{text}");
        assert!(text.contains(&format!("\r\nLocation: {LOCATION}\r\n")));
        assert!(text.ends_with("\r\n\r\n"));
        // The request again, because the reply was lost: the same reply.
        assert_eq!(reply(version, 80, request).unwrap().3, data);
        // It acknowledges data and FIN, and closes.
        let end = ours.wrapping_add(data.len() as u32 + 1);
        let sent_all = theirs.wrapping_add(get.len() as u32);
        assert_eq!(reply(version, 80, sent(ACK, sent_all, end, b"")), None);
        let fin = sent(FIN | ACK, sent_all, end, b"");
        let last = reply(version, 80, fin).unwrap();
        assert_eq!(last, (ACK, end, sent_all.wrapping_add(1), Vec::new()));
    }
}

#[test]
fn a_connection_that_closes_without_a_request_is_closed() {
    let (_, first, _, _) = reply(4, 80, sent(SYN, 100, 0, b"")).unwrap();
    let ours = first.wrapping_add(1);
    let closed = reply(4, 80, sent(FIN | ACK, 101, ours, b"")).unwrap();
    assert_eq!(closed, (FIN | ACK, ours, 102, Vec::new()));
    let last = ours.wrapping_add(1);
    assert_eq!(reply(4, 80, sent(ACK, 102, last, b"")), None);
}

/// RFC 9293, section 3.10.7.1: to a segment without ACK, a reset that acknowledges it; to one with ACK, a reset with that
/// number; to a reset, nothing.
#[test]
fn what_belongs_to_no_connection_of_ours_is_reset() {
    // A connection from before the garden.
    let old = sent(PSH | ACK, 5_000, 77, b"more");
    assert_eq!(reply(4, 80, old), Some((RST, 77, 0, Vec::new())));
    let both = sent(SYN | ACK, 5_000, 77, b"");
    assert_eq!(reply(4, 80, both), Some((RST, 77, 0, Vec::new())));
    let neither = sent(FIN, 5_000, 0, b"abc");
    assert_eq!(
        reply(4, 80, neither),
        Some((RST | ACK, 0, 5_004, Vec::new()))
    );
    assert_eq!(reply(4, 80, sent(RST, 5_000, 0, b"")), None);
    assert_eq!(reply(4, 80, sent(RST | ACK, 5_000, 77, b"")), None);
}

#[test]
fn tls_is_reset_and_everything_else_refused() {
    for version in [4, 6] {
        let syn = sent(SYN, 9, 0, b"");
        assert_eq!(
            reply(version, 443, syn),
            Some((RST | ACK, 0, 10, Vec::new()))
        );
        for port in [22, 81, 8_080] {
            let packet = packet(version, port, syn);
            assert_eq!(answer(&portal(), &packet).0, Answer::Refused, "{port}");
        }
    }
    // QUIC.
    let mut udp = packet(4, 443, sent(SYN, 9, 0, b""));
    udp[9] = wire::udp::PROTOCOL;
    assert_eq!(answer(&portal(), &udp).0, Answer::Refused);
}

#[test]
fn damaged_segments_get_no_reply() {
    let good = packet(4, 80, sent(SYN, 9, 0, b""));
    let mut bad = good.clone();
    bad[37] ^= 1;
    assert_eq!(answer(&portal(), &bad).0, Answer::Silent);
    let mut fragment = good;
    fragment[6] |= 0x20;
    assert_eq!(answer(&portal(), &fragment).0, Answer::Refused);
}

#[test]
fn the_longest_address_fits_into_a_segment_of_536_octets() {
    let longest = "x".repeat(LOCATION_OCTETS_MAX);
    let portal = Portal::new(&longest).unwrap();
    assert!(portal.response.len() <= RESPONSE_OCTETS_MAX);
    for (bad, why) in [
        ("", BadLocation::Length),
        (&*"x".repeat(LOCATION_OCTETS_MAX + 1), BadLocation::Length),
        ("http://a b/", BadLocation::Character),
        ("http://a/\r\nSet-Cookie: x", BadLocation::Character),
        ("http://ä/", BadLocation::Character),
    ] {
        assert_eq!(Portal::new(bad), Err(why), "{bad}");
    }
}

proptest! {
    /// Any segment gets at most one reply, which is valid, and never more than the redirect.
    #[test]
    fn any_segment_gets_at_most_one_valid_reply(
        flags: u8,
        sequence: u32,
        offset in -2_i64..700,
        is_ours: bool,
        data in proptest::collection::vec(any::<u8>(), 0..500),
    ) {
        let portal = portal();
        let (_, first, _, _) = reply(4, 80, sent(SYN, 0, 0, b"")).unwrap();
        let acknowledgment = match is_ours {
            true => first.wrapping_add(offset as u32),
            false => offset as u32,
        };
        let packet = packet(4, 80, sent(flags, sequence, acknowledgment, &data));
        let (answer, bytes) = answer(&portal, &packet);
        prop_assert!(answer != Answer::Refused);
        prop_assert!(bytes.len() <= 40 + portal.response.len());
        if flags & RST != 0 {
            prop_assert_eq!(answer, Answer::Silent);
        }
    }
}
