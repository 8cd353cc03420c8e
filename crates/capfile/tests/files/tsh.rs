//! TSH: 44 bytes per packet.

use capfile::{Fault, OpenError};
use wire::link::LinkType;

use crate::support::{SECOND_NS, read, read_whole};

pub(crate) fn record(seconds: u32, interface: u8, micros: u32, length: u16) -> Vec<u8> {
    let mut record = seconds.to_be_bytes().to_vec();
    record.extend((u32::from(interface) << 24 | micros).to_be_bytes());
    record.extend([0x45, 0]);
    record.extend(length.to_be_bytes());
    record.extend([0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    record.extend([0x5a; 16]);
    record
}

#[test]
fn a_record_is_a_time_an_interface_and_the_beginning_of_an_ip_packet() {
    let first = record(1_058_228_109, 3, 51_650, 370);
    let second = record(1_058_228_110, 0xff, 999_999, 28);
    let whole = read_whole(&[first.clone(), second.clone()].concat());
    assert_eq!(whole.octets(), [&first[8..], &second[8..36]]);
    let [one, two] = &whole.packets[..] else {
        panic!("two packets")
    };
    assert_eq!((one.interface, two.interface), (3, 255));
    assert_eq!((one.length, two.length), (370, 28));
    assert_eq!((one.offset, two.offset), (0, 44));
    assert_eq!(one.link, LinkType::IPV4);
    assert_eq!(one.time_ns, 1_058_228_109 * SECOND_NS + 51_650_000);
    assert_eq!(whole.first, None);
}

#[test]
fn past_the_first_records_anything_is_taken_and_odd_times_are_counted() {
    let mut file: Vec<u8> = (0..100).flat_map(|n| record(1000 + n, 1, 5, 60)).collect();
    file.extend(record(3, 1, 1_000_001, 0));
    let whole = read_whole(&file);
    assert_eq!(whole.packets.len(), 101);
    let last = &whole.packets[100];
    assert_eq!((last.length, last.octets.len()), (36, 36));
    assert_eq!(last.time_ns, 4 * SECOND_NS + 1000);
    assert_eq!(whole.faults, [(Fault::BadTime, 1)]);
}

#[test]
fn what_does_not_look_like_it_is_of_no_known_format() {
    for change in [
        // The version, the header's length, the fraction, the packet's length.
        |file: &mut Vec<u8>| file[8] = 0x65,
        |file: &mut Vec<u8>| file[8] = 0x44,
        |file: &mut Vec<u8>| file[5] = 0x10,
        |file: &mut Vec<u8>| file[10..12].copy_from_slice(&[0, 19]),
        // The second record is a year after the first.
        |file: &mut Vec<u8>| file[44] += 2,
        |file: &mut Vec<u8>| file.truncate(43),
    ] {
        let mut file = [record(1000, 1, 5, 60), record(1000, 1, 5, 60)].concat();
        change(&mut file);
        assert!(matches!(read(&file[..]), Err(OpenError::UnknownFormat)));
    }
}
