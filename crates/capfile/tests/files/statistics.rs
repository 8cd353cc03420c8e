//! pcapng's Interface Statistics Blocks (draft-ietf-opsawg-pcapng 4.6): what the capturing host counted.

use capfile::{Block, PcapngWriter, Reader, Statistics};
use wire::link::LinkType;

use crate::pcapng::{enhanced, interface, section};
use crate::support::{BIG, LITTLE, read_whole};

fn statistics(file: &[u8]) -> Statistics {
    let mut reader = Reader::new(file).expect("pcapng");
    let mut block = Block::new();
    while reader.read_block(&mut block).expect("memory") {}
    reader.statistics()
}

/// A block of interface 0 with isb_starttime (2), isb_ifrecv (4), isb_ifdrop (5), isb_filteraccept (6) and isb_osdrop (7).
#[rustfmt::skip]
const COUNTED: [u8; 88] = [
    0x05, 0, 0, 0, 88, 0, 0, 0,
    0, 0, 0, 0, 0x97, 0xc3, 0x04, 0x00, 0xaa, 0x47, 0xca, 0x64,
    2, 0, 8, 0, 0x97, 0xc3, 0x04, 0x00, 0xaa, 0x47, 0xca, 0x01,
    4, 0, 8, 0, 0x39, 0x30, 0, 0, 0, 0, 0, 0,
    5, 0, 8, 0, 2, 0, 0, 0, 1, 0, 0, 0,
    6, 0, 8, 0, 0x30, 0x30, 0, 0, 0, 0, 0, 0,
    7, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0,
    88, 0, 0, 0,
];

#[test]
fn the_counters_of_a_block_are_those_that_its_bytes_say() {
    let mut file = section(LITTLE);
    file.extend(interface(LITTLE, 1, 0, &[]));
    file.extend(enhanced(LITTLE, 0, 3, b"one"));
    file.extend(COUNTED);
    let read = statistics(&file);
    let counts = Statistics {
        received: Some(0x3039),
        dropped_by_interface: Some(0x1_0000_0002),
        accepted: Some(0x3030),
        dropped_by_system: Some(3),
    };
    assert_eq!((read, read.dropped()), (counts, 0x1_0000_0005));
    let whole = read_whole(&file);
    assert_eq!((whole.octets(), whole.first), (vec![&b"one"[..]], None));
}

#[test]
fn a_file_without_counters_has_none() {
    let mut file = section(BIG);
    file.extend(interface(BIG, 1, 0, &[]));
    file.extend(enhanced(BIG, 0, 3, b"one"));
    assert!(statistics(&file).is_empty());
    // The statistics of an interface that the section lacks.
    let mut other = section(LITTLE);
    other.extend(COUNTED);
    assert!(statistics(&other).is_empty());
}

/// A block in big-endian order: isb_ifdrop, if any, and isb_osdrop.
fn big(number: u8, interface_dropped: Option<u64>, system_dropped: u64) -> Vec<u8> {
    let counters = match interface_dropped {
        Some(count) => [&[0, 5, 0, 8][..], &count.to_be_bytes()].concat(),
        None => Vec::new(),
    };
    let length = 40 + counters.len() as u8;
    [
        &[0, 0, 0, 5, 0, 0, 0, length, 0, 0, 0, number][..],
        &[0; 8],
        &counters,
        &[0, 7, 0, 8],
        &system_dropped.to_be_bytes(),
        &[0, 0, 0, 0, 0, 0, 0, length][..],
    ]
    .concat()
}

#[test]
fn a_later_block_of_an_interface_replaces_an_earlier_one_and_interfaces_and_sections_add_up() {
    let mut file = section(BIG);
    file.extend(interface(BIG, 1, 0, &[]));
    file.extend(interface(BIG, 1, 0, &[]));
    file.extend(big(0, Some(4), 1));
    file.extend(big(1, Some(50), 0));
    file.extend(enhanced(BIG, 0, 3, b"one"));
    file.extend(big(0, Some(6), 2));
    // Another section: its interface 0 is another one.
    file.extend(section(LITTLE));
    file.extend(interface(LITTLE, 1, 0, &[]));
    file.extend(enhanced(LITTLE, 0, 3, b"two"));
    file.extend(COUNTED);
    let read = statistics(&file);
    assert_eq!(read.dropped_by_interface, Some(6 + 50 + 0x1_0000_0002));
    assert_eq!(read.dropped_by_system, Some(2 + 3));
    assert_eq!(read.received, Some(0x3039));
}

#[test]
fn an_unknown_counter_is_absent_and_damage_is_no_fault() {
    let mut file = section(BIG);
    file.extend(interface(BIG, 1, 0, &[]));
    file.extend(big(0, Some(u64::MAX), 9));
    let read = statistics(&file);
    assert_eq!((read.dropped_by_interface, read.dropped()), (None, 9));
    let mut counted = big(0, Some(7), 9);
    // An option that reaches past the block, after isb_ifdrop.
    counted[35] = 200;
    let damaged = [&file[..], &counted].concat();
    assert_eq!(statistics(&damaged).dropped(), 7 + 9);
    assert_eq!(read_whole(&damaged).first, None);
    // Counters add up to no more than fits.
    let most = [&file[..], &big(0, Some(u64::MAX - 1), u64::MAX - 1)].concat();
    assert_eq!(statistics(&most).dropped(), u64::MAX);
}

#[test]
fn the_writers_own_block_reads_back() {
    let mut writer = PcapngWriter::new(Vec::new(), "test").expect("to memory");
    let number = writer.interface(LinkType::RAW, "one", "", 0);
    let number = number.expect("to memory");
    writer.statistics(number, 7, 90, 2).expect("to memory");
    let read = statistics(writer.get_mut());
    assert_eq!((read.received, read.dropped()), (Some(90), 2));
    assert_eq!(read.dropped_by_system, None);
}
