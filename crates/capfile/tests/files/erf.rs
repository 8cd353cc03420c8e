//! ERF: types, extension headers, time.

use capfile::Fault;
use wire::link::LinkType;

use crate::support::read_whole;

/// A record of a type, whose flags are 2 and whose time is 1,000,000,000.25 s; `wire` octets were on the wire.
pub(crate) fn record(kind: u8, wire: u16, body: &[u8]) -> Vec<u8> {
    let mut record = vec![0, 0, 0, 0x40];
    record.extend(1_000_000_000u32.to_le_bytes());
    record.extend([kind, 2]);
    record.extend((16 + body.len() as u16).to_be_bytes());
    record.extend([0, 0]);
    record.extend(wire.to_be_bytes());
    record.extend(body);
    record
}

#[test]
fn types_of_record_have_links_and_begin_where_they_should() {
    const CHECKSUM: u16 = 4;
    let body: Vec<u8> = (0..60).collect();
    for (kind, link, skipped, wire, length) in [
        (2, LinkType::ETHERNET, 2, 1500 + CHECKSUM, 1500),
        (11, LinkType::ETHERNET, 2, 40 + CHECKSUM, 40),
        (1, LinkType::C_HDLC, 0, 100 + CHECKSUM, 100),
        (5, LinkType::C_HDLC, 4, 104 + CHECKSUM, 100),
        (3, LinkType::ATM_RFC1483, 4, 52, 48),
        (7, LinkType::ATM_RFC1483, 8, 52, 48),
        (4, LinkType::ATM_RFC1483, 4, 204, 200),
        (9, LinkType::ATM_RFC1483, 8, 208, 200),
        (22, LinkType::IPV4, 0, 60, 60),
        (23, LinkType::IPV6, 0, 70, 70),
    ] {
        let whole = read_whole(&record(kind, wire, &body));
        let packet = &whole.packets[0];
        assert_eq!((packet.link, packet.length), (link, length), "type {kind}");
        let end = body.len().min(skipped + length as usize);
        assert_eq!(packet.octets, body[skipped..end], "type {kind}");
        assert_eq!(packet.interface, 2);
        assert_eq!(packet.time_ns, 1_000_000_000_250_000_000);
        assert_eq!(whole.first, None);
    }
}

#[test]
fn a_frame_that_begins_as_ppp_does_is_ppp() {
    let whole = read_whole(&record(1, 12, &[0xff, 3, 0, 0x21, 0x45, 0, 0, 0]));
    assert_eq!(whole.packets[0].link, LinkType::PPP_HDLC);
}

#[test]
fn extension_headers_are_passed_over() {
    let mut body = vec![0x81, 0, 0, 0, 0, 0, 0, 0];
    body.extend([0x03, 0, 0, 0, 0, 0, 0, 0]);
    body.extend([0, 0]);
    body.extend(b"ethernet frame");
    let whole = read_whole(&record(0x82, 18, &body));
    assert_eq!(whole.octets(), [b"ethernet frame"]);
    // The last one announces another that is missing.
    let mut file = record(2, 7, b"\0\0abc");
    file.extend(record(0x82, 18, &[0x80; 8]));
    let whole = read_whole(&file);
    assert_eq!(whole.octets(), [b"abc"]);
    assert_eq!(whole.first, Some((21, Fault::BadRecordLength)));
}

#[test]
fn records_without_a_packet_are_passed_over_and_unknown_ones_counted() {
    let mut file = record(2, 7, b"\0\0abc");
    file.extend(record(48, 0, &[0; 8]));
    file.extend(record(27, 0, &[0; 8]));
    file.extend(record(21, 40, &[0; 40]));
    file.extend(record(2, 7, b"\0\0def"));
    let whole = read_whole(&file);
    assert_eq!(whole.octets(), [b"abc", b"def"]);
    let unknown = 21 + 24 + 24;
    assert_eq!(whole.first, Some((unknown, Fault::UnknownRecordType)));
    assert_eq!(whole.faults, [(Fault::UnknownRecordType, 1)]);
}

#[test]
fn a_record_shorter_than_its_header_ends_the_file() {
    let mut file = [record(2, 7, b"\0\0abc"), record(2, 7, b"\0\0def")].concat();
    file.extend(record(2, 7, b"\0\0ghi"));
    let last = file.len();
    let mut bad = record(2, 7, b"\0\0jkl");
    bad[11] = 15;
    file.extend(bad);
    let whole = read_whole(&file);
    assert_eq!(whole.packets.len(), 3);
    assert_eq!(whole.first, Some((last as u64, Fault::BadRecordLength)));
}

#[test]
fn the_fraction_of_a_second_is_rounded_to_the_nearest_nanosecond() {
    for (fraction, nanos) in [
        (0u32, 0),
        (2, 0),
        (3, 1),
        (1 << 31, 500_000_000),
        (u32::MAX, 1_000_000_000),
    ] {
        let mut file = record(2, 7, b"\0\0abc");
        file[..4].copy_from_slice(&fraction.to_le_bytes());
        let time_ns = read_whole(&file).packets[0].time_ns;
        assert_eq!(time_ns - 1_000_000_000_000_000_000, nanos);
    }
}
