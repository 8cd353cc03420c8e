//! pcapng: sections, interfaces, kinds of packet blocks, units of time.

use capfile::{Fault, Format, OpenError};
use wire::link::LinkType;

use crate::support::{BIG, Dribble, LITTLE, Order, SECOND_NS, read, read_strict, read_whole};

fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = 12 + padded as u32;
    let mut block = order.words(&[kind, length]);
    block.extend(body);
    block.resize(8 + padded, 0);
    block.extend(order.u32(length));
    block
}

pub(crate) fn section(order: Order) -> Vec<u8> {
    let mut body = order.u32(0x1a2b_3c4d).to_vec();
    body.extend(order.u16(1));
    body.extend(order.u16(0));
    body.extend([0xff; 8]);
    block(order, 0x0a0d_0d0a, &body)
}

fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let mut option = order.u16(code).to_vec();
    option.extend(order.u16(value.len() as u16));
    option.extend(value);
    option.resize(option.len().next_multiple_of(4), 0);
    option
}

pub(crate) fn interface(order: Order, link: u16, snaplen: u32, options: &[u8]) -> Vec<u8> {
    let mut body = order.u16(link).to_vec();
    body.extend([0, 0]);
    body.extend(order.u32(snaplen));
    body.extend(options);
    block(order, 1, &body)
}

pub(crate) fn enhanced(order: Order, interface: u32, ticks: u64, packet: &[u8]) -> Vec<u8> {
    let captured = packet.len() as u32;
    let ticks = [(ticks >> 32) as u32, ticks as u32];
    let mut body = order.words(&[interface, ticks[0], ticks[1], captured, captured + 100]);
    body.extend(packet);
    body.resize(body.len().next_multiple_of(4), 0);
    // An option: flags.
    body.extend(option(order, 2, &[0; 4]));
    body.extend(option(order, 0, &[]));
    block(order, 6, &body)
}

fn simple(order: Order, length: u32, packet: &[u8]) -> Vec<u8> {
    let mut body = order.u32(length).to_vec();
    body.extend(packet);
    block(order, 3, &body)
}

fn obsolete(order: Order, interface: u16, ticks: u64, packet: &[u8]) -> Vec<u8> {
    let mut body = order.u16(interface).to_vec();
    body.extend(order.u16(7));
    body.extend(order.words(&[(ticks >> 32) as u32, ticks as u32, packet.len() as u32, 99]));
    body.extend(packet);
    block(order, 2, &body)
}

#[test]
fn sections_of_either_byte_order_have_interfaces_of_their_own() {
    let mut file = Vec::new();
    for (order, link) in [(BIG, 1), (LITTLE, 113), (BIG, 101)] {
        file.extend(section(order));
        file.extend(interface(order, link, 0, &[]));
        file.extend(interface(order, 276, 0, &[]));
        file.extend(enhanced(order, 0, 5_000_000, b"abcde"));
        file.extend(enhanced(order, 1, 6_000_001, b"fgh"));
    }
    let whole = read_whole(&file);
    assert_eq!(whole.octets(), [&b"abcde"[..], b"fgh"].repeat(3));
    let links: Vec<u16> = whole.packets.iter().map(|packet| packet.link.0).collect();
    assert_eq!(links, [1, 276, 113, 276, 101, 276]);
    assert_eq!(
        whole.times_ns(),
        [5 * SECOND_NS, 6 * SECOND_NS + 1000].repeat(3)
    );
    assert_eq!(whole.packets[0].length, 105);
    assert_eq!(whole.packets[0].offset, 28 + 20 + 20);
    assert_eq!(whole.packets[1].interface, 1);
    assert_eq!(whole.first, None);
}

#[test]
fn every_kind_of_packet_block_gives_its_packet_and_others_are_passed_over() {
    for order in [BIG, LITTLE] {
        let mut file = section(order);
        file.extend(interface(order, 1, 4, &[]));
        // Name resolution, statistics, decryption secrets, custom, and an unknown kind.
        for kind in [4, 5, 10, 0x0bad, 0x4000_0bad, 0x7777] {
            file.extend(block(order, kind, &[0xee; 30]));
        }
        file.extend(enhanced(order, 0, 3, b"one"));
        file.extend(simple(order, 9, b"twos"));
        file.extend(simple(order, 2, b"2!"));
        file.extend(obsolete(order, 0, 5, b"three"));
        let whole = read_whole(&file);
        assert_eq!(whole.octets(), [&b"one"[..], b"twos", b"2!", b"three"]);
        // A simple packet block has no time: that of the packet before it.
        assert_eq!(whole.times_ns(), [3000, 3000, 3000, 5000]);
        let lengths: Vec<u32> = whole.packets.iter().map(|packet| packet.length).collect();
        assert_eq!(lengths, [103, 9, 2, 99]);
        assert_eq!(whole.first, None);
    }
}

#[test]
fn time_stamps_count_in_the_units_and_from_the_time_their_interface_names() {
    // if_tsresol, if_tsoffset, the time stamp, ns since 1970.
    let cases: [(Option<u8>, i64, u64, i64); 12] = [
        (None, 0, 1_500_000, 1_500_000_000),
        (Some(0), 0, 12, 12 * SECOND_NS),
        (Some(3), 0, 1_234, 1_234_000_000),
        (Some(6), 10, 1, 10 * SECOND_NS + 1000),
        (
            Some(9),
            0,
            1_700_000_000_123_456_789,
            1_700_000_000_123_456_789,
        ),
        (Some(9), -1, 5, 5 - SECOND_NS),
        (Some(12), 0, 1_999, 1),
        (Some(127), 0, u64::MAX, 0),
        (Some(0x80), 2, 3, 5 * SECOND_NS),
        (Some(0x80 | 10), 0, 1024 + 512, 1_500_000_000),
        (Some(0x80 | 32), 0, 7 << 32 | 1 << 31, 7_500_000_000),
        (Some(0xff), 0, u64::MAX, 0),
    ];
    for order in [BIG, LITTLE] {
        for (resolution, offset, ticks, time_ns) in cases {
            // An option that is not read, of a length to be padded, comes first.
            let mut options = option(order, 2, b"eth0!");
            if let Some(resolution) = resolution {
                options.extend(option(order, 9, &[resolution]));
            }
            let offset_octets = if order.0 {
                offset.to_be_bytes()
            } else {
                offset.to_le_bytes()
            };
            options.extend(option(order, 14, &offset_octets));
            options.extend(option(order, 0, &[]));
            let mut file = section(order);
            file.extend(interface(order, 1, 0, &options));
            file.extend(enhanced(order, 0, ticks, b"p"));
            let whole = read_whole(&file);
            assert_eq!(
                whole.times_ns(),
                [time_ns],
                "{resolution:?} {offset} {ticks}"
            );
            assert_eq!(whole.first, None);
        }
    }
}

#[test]
fn times_past_what_nanoseconds_can_say_are_the_nearest_that_can_and_counted() {
    for (offset, resolution, ticks, time_ns) in [
        (0i64, 0u8, u64::MAX, i64::MAX),
        (i64::MAX, 6, 1, i64::MAX),
        (i64::MIN, 6, 1, i64::MIN),
        (0, 9, 1 << 63, i64::MAX),
    ] {
        let mut options = option(BIG, 9, &[resolution]);
        options.extend(option(BIG, 14, &offset.to_be_bytes()));
        let mut file = section(BIG);
        file.extend(interface(BIG, 1, 0, &options));
        file.extend(enhanced(BIG, 0, ticks, b"p"));
        let whole = read_whole(&file);
        assert_eq!(whole.times_ns(), [time_ns]);
        assert_eq!(whole.faults, [(Fault::BadTime, 1)]);
    }
}

#[test]
fn blocks_that_hold_no_packet_are_passed_over_and_counted() {
    let mut file = section(BIG);
    let no_interface = file.len() as u64;
    file.extend(enhanced(BIG, 0, 1, b"nowhere"));
    file.extend(simple(BIG, 1, b"x"));
    file.extend(interface(BIG, 1, 0, &[]));
    file.extend(enhanced(BIG, 1, 1, b"elsewhere"));
    // The packet claims to be longer than its block.
    file.extend(block(BIG, 6, &BIG.words(&[0, 0, 0, 5, 5, 0])));
    // Blocks without room for their fields.
    file.extend(block(BIG, 6, &[0; 16]));
    file.extend(block(BIG, 2, &[0; 16]));
    file.extend(block(BIG, 3, &[]));
    file.extend(block(BIG, 1, &[0; 4]));
    file.extend(enhanced(BIG, 0, 1, b"here"));
    let whole = read_whole(&file);
    assert_eq!(whole.octets(), [b"here"]);
    assert_eq!(whole.first, Some((no_interface, Fault::UnknownInterface)));
    assert_eq!(
        whole.faults,
        [(Fault::BadBlock, 5), (Fault::UnknownInterface, 3)]
    );
}

#[test]
fn options_that_reach_past_their_block_are_counted_and_those_before_count() {
    let mut options = option(LITTLE, 9, &[9]);
    options.extend(LITTLE.u16(14));
    options.extend(LITTLE.u16(800));
    let mut file = section(LITTLE);
    file.extend(interface(LITTLE, 1, 0, &options));
    file.extend(enhanced(LITTLE, 0, 77, b"p"));
    let whole = read_whole(&file);
    assert_eq!(whole.times_ns(), [77]);
    assert_eq!(whole.first, Some((28, Fault::BadOptions)));
}

#[test]
fn lengths_that_contradict_each_other_end_the_file_or_the_next_block_is_found() {
    let mut start = section(LITTLE);
    start.extend(interface(LITTLE, 1, 0, &[]));
    start.extend(enhanced(LITTLE, 0, 1, b"kept"));
    let at = start.len() as u64;
    let expect = |bad: Vec<u8>, fault: Fault| {
        let mut file = start.clone();
        file.extend(bad);
        file.extend(enhanced(LITTLE, 0, 1, b"lost"));
        let strict = read_strict(&file);
        assert_eq!(strict.octets(), [b"kept"]);
        let whole = read_whole(&file);
        assert_eq!(whole.octets(), [b"kept", b"lost"]);
        for whole in [strict, whole] {
            assert_eq!(whole.first, Some((at, fault)));
            assert_eq!(whole.faults, [(fault, 1)]);
        }
    };
    for kind in [6, 5] {
        let mut differ = block(LITTLE, kind, &[0; 40]);
        let end = differ.len() - 4;
        differ[end] = 48;
        expect(differ, Fault::BlockLengthMismatch);
        for length in [0, 8, 11, 53] {
            let mut short = block(LITTLE, kind, &[0; 40]);
            short[4] = length;
            expect(short, Fault::BadRecordLength);
        }
    }
    let mut huge = block(LITTLE, 6, &[0; 40]);
    huge[4..8].copy_from_slice(&0x7fff_fff0u32.to_le_bytes());
    expect(huge, Fault::RecordTooLong);
    let mut order = section(LITTLE);
    order[8] ^= 1;
    expect(order, Fault::BadSection);
    let mut version = section(BIG);
    version[13] = 2;
    expect(version, Fault::BadSection);
}

#[test]
fn a_block_to_be_passed_over_may_claim_any_length_and_is_not_held_in_memory() {
    let mut file = section(BIG);
    let at = file.len() as u64;
    file.extend(BIG.words(&[5, 0xffff_fffc]));
    file.extend(vec![0; 700_000]);
    let whole = read_whole(&file);
    assert_eq!(whole.first, Some((at, Fault::Truncated)));
    // One that is longer than a block of the reader, and whole.
    let mut file = section(BIG);
    file.extend(interface(BIG, 1, 0, &[]));
    file.extend(block(BIG, 5, &vec![0; 700_000]));
    file.extend(enhanced(BIG, 0, 1, b"after"));
    for step in [usize::MAX, 4099] {
        let octets = &file[..];
        let whole = read(Dribble { octets, step }).expect("pcapng");
        assert_eq!(whole.octets(), [b"after"]);
        assert_eq!(whole.first, None);
    }
}

#[test]
fn a_packet_longer_than_a_block_of_the_reader_is_whole() {
    let long: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
    let mut file = section(LITTLE);
    file.extend(interface(LITTLE, 1, 0, &[]));
    file.extend(enhanced(LITTLE, 0, 1, b"before"));
    file.extend(enhanced(LITTLE, 0, 1, &long));
    file.extend(enhanced(LITTLE, 0, 1, b"after"));
    let whole = read_whole(&file);
    assert_eq!(whole.octets(), [&b"before"[..], &long, b"after"]);
}

#[test]
fn only_so_many_interfaces_are_numbered() {
    let mut file = section(LITTLE);
    for _ in 0..=1 << 16 {
        file.extend(interface(LITTLE, 1, 0, &[]));
    }
    file.extend(enhanced(LITTLE, 65_535, 1, b"last"));
    file.extend(enhanced(LITTLE, 65_536, 1, b"none"));
    let whole = read_whole(&file);
    assert_eq!(whole.octets(), [b"last"]);
    assert_eq!(whole.packets[0].interface, 65_535);
    assert_eq!(whole.packets[0].link, LinkType::ETHERNET);
    assert_eq!(
        whole.faults,
        [(Fault::UnknownInterface, 1), (Fault::TooManyInterfaces, 1)]
    );
}

#[test]
fn a_first_section_that_cannot_be_read_is_an_error() {
    let mut file = section(BIG);
    assert!(matches!(
        read(&file[..14]),
        Err(OpenError::HeaderTruncated(Format::PcapNg))
    ));
    file[13] = 2;
    assert!(matches!(
        read(&file[..]),
        Err(OpenError::UnsupportedVersion { major: 2, .. })
    ));
    file[8] = 0;
    assert!(matches!(read(&file[..]), Err(OpenError::UnknownFormat)));
}
