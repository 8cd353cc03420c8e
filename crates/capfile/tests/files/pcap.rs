//! pcap: byte orders, units, versions, and lengths that lie.

use capfile::{Fault, Format, OpenError, Reader};
use wire::link::LinkType;

use crate::support::{BIG, LITTLE, Order, SECOND_NS, read, read_whole};

const MICROS: u32 = 0xa1b2_c3d4;
const NANOS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

pub(crate) fn header(order: Order, magic: u32, version: (u16, u16), link: u32) -> Vec<u8> {
    let mut file = order.u32(magic).to_vec();
    file.extend(order.u16(version.0));
    file.extend(order.u16(version.1));
    file.extend(order.words(&[0, 0, 65_535, link]));
    file
}

pub(crate) fn record(order: Order, fields: [u32; 4], octets: &[u8]) -> Vec<u8> {
    let mut record = order.words(&fields);
    record.extend(octets);
    record
}

#[test]
fn both_byte_orders_and_both_units_read_the_same() {
    for order in [BIG, LITTLE] {
        for (magic, unit_ns) in [(MICROS, 1000), (NANOS, 1)] {
            let mut file = header(order, magic, (2, 4), 1);
            file.extend(record(order, [1_700_000_000, 7, 3, 1500], b"abc"));
            file.extend(record(order, [4_000_000_000, 999_999, 0, 60], b""));
            let whole = read_whole(&file);
            assert_eq!(whole.octets(), [&b"abc"[..], b""]);
            assert_eq!(
                whole.times_ns(),
                [
                    1_700_000_000 * SECOND_NS + 7 * unit_ns,
                    4_000_000_000 * SECOND_NS + 999_999 * unit_ns
                ]
            );
            let [first, second] = &whole.packets[..] else {
                panic!("two packets")
            };
            assert_eq!((first.length, second.length), (1500, 60));
            assert_eq!((first.offset, second.offset), (24, 43));
            assert_eq!(first.link, LinkType::ETHERNET);
            assert_eq!(whole.first, None);
        }
    }
}

#[test]
fn the_modified_format_has_longer_records_and_names_the_interface() {
    for order in [BIG, LITTLE] {
        let mut file = header(order, MODIFIED, (2, 4), 1);
        for interface in [3, 4] {
            file.extend(order.words(&[9, 8, 2, 2, interface]));
            // Protocol, packet type, a pad.
            file.extend([8, 0, 4, 0]);
            file.extend(b"xy");
        }
        let whole = read_whole(&file);
        assert_eq!(whole.octets(), [b"xy", b"xy"]);
        assert_eq!(whole.packets[0].interface, 3);
        assert_eq!(whole.packets[1].interface, 4);
        assert_eq!(whole.packets[1].offset, 24 + 26);
    }
}

#[test]
fn lengths_of_old_versions_are_the_other_way_round() {
    // What the two fields mean where the version swaps them always, by their size, never.
    for (version, fields, length) in [
        ((2, 2), [9, 2], 9),
        ((2, 2), [1, 2], 1),
        ((543, 0), [9, 2], 9),
        ((2, 3), [9, 2], 9),
        ((2, 3), [2, 9], 9),
        ((2, 4), [2, 9], 9),
        ((2, 4), [2, 1], 1),
    ] {
        let mut file = header(BIG, MICROS, version, 1);
        file.extend(record(BIG, [1, 1, fields[0], fields[1]], b"ab"));
        let whole = read_whole(&file);
        assert_eq!(whole.octets(), [b"ab"], "{version:?} {fields:?}");
        assert_eq!(whole.packets[0].length, length, "{version:?} {fields:?}");
    }
}

#[test]
fn versions_that_nobody_wrote_are_refused() {
    for version in [(1, 4), (2, 5), (3, 0), (543, 1)] {
        let file = header(LITTLE, MICROS, version, 1);
        let Err(OpenError::UnsupportedVersion {
            format: Format::Pcap,
            major,
            minor,
        }) = read(&file[..])
        else {
            panic!("{version:?} is refused")
        };
        assert_eq!((major, minor), (version.0.into(), version.1.into()));
    }
}

#[test]
fn the_length_of_the_frame_check_sequence_is_no_part_of_the_link_type() {
    let mut file = header(LITTLE, MICROS, (2, 4), 0x2400_0000 | 276);
    file.extend(record(LITTLE, [1, 1, 1, 1], b"a"));
    assert_eq!(read_whole(&file).packets[0].link, LinkType::LINUX_SLL2);
}

#[test]
fn a_fraction_of_a_second_or_more_is_carried_over_and_counted() {
    for (magic, second) in [(MICROS, 1_000_000), (NANOS, 1_000_000_000)] {
        let mut file = header(LITTLE, magic, (2, 4), 1);
        for fraction in [second - 1, second, u32::MAX] {
            file.extend(record(LITTLE, [5, fraction, 1, 1], b"a"));
        }
        let whole = read_whole(&file);
        let unit_ns = SECOND_NS / i64::from(second);
        assert_eq!(
            whole.times_ns(),
            [
                6 * SECOND_NS - unit_ns,
                6 * SECOND_NS,
                5 * SECOND_NS + i64::from(u32::MAX) * unit_ns
            ]
        );
        assert_eq!(whole.first, Some((24 + 17, Fault::BadTime)));
        assert_eq!(whole.faults, [(Fault::BadTime, 2)]);
    }
}

#[test]
fn a_packet_longer_than_any_ends_the_file_unless_the_snapshot_length_allows_it() {
    let mut file = header(LITTLE, MICROS, (2, 4), 1);
    file.extend(record(LITTLE, [1, 1, 1, 1], b"a"));
    file.extend(record(LITTLE, [1, 1, 262_145, 262_145], &[7; 262_145]));
    let whole = read_whole(&file);
    assert_eq!(whole.octets(), [b"a"]);
    assert_eq!(whole.first, Some((41, Fault::RecordTooLong)));
    file[16..20].copy_from_slice(&262_145u32.to_le_bytes());
    let whole = read_whole(&file);
    assert_eq!(whole.first, None);
    assert_eq!(whole.packets[1].octets, [7; 262_145]);
}

#[test]
fn a_shortened_file_names_the_record_that_is_not_whole() {
    let mut file = header(LITTLE, MICROS, (2, 4), 1);
    file.extend(record(LITTLE, [1, 1, 4, 4], b"abcd"));
    file.extend(record(LITTLE, [2, 1, 4, 4], b"efg"));
    let whole = read_whole(&file);
    assert_eq!(whole.octets(), [b"abcd"]);
    assert_eq!(whole.first, Some((44, Fault::Truncated)));
}

#[test]
fn a_header_that_is_not_whole_is_an_error_and_a_header_alone_is_none() {
    let file = header(LITTLE, NANOS, (2, 4), 1);
    for len in 4..24 {
        let error = read(&file[..len]).expect_err("not whole");
        assert!(matches!(error, OpenError::HeaderTruncated(Format::Pcap)));
    }
    let whole = read_whole(&file);
    assert_eq!((whole.packets.len(), whole.first), (0, None));
    assert!(matches!(read(&b""[..]), Err(OpenError::Empty)));
}

#[test]
fn what_is_consumed_grows_to_the_length_of_the_file() {
    let mut file = header(LITTLE, MICROS, (2, 4), 1);
    for _ in 0..1000 {
        file.extend(record(LITTLE, [1, 1, 1000, 1000], &[0; 1000]));
    }
    let mut reader = Reader::new(&file[..]).expect("pcap");
    let mut block = capfile::Block::new();
    let mut before = 0;
    while reader.read_block(&mut block).expect("no error") {
        assert!(reader.consumed() > before);
        before = reader.consumed();
    }
    assert_eq!(reader.consumed(), file.len() as u64);
}
