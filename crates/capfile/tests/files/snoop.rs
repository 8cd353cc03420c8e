//! snoop (RFC 1761).

use capfile::{Fault, Format, OpenError, UNKNOWN_LINK};
use wire::link::LinkType;

use crate::support::{BIG, SECOND_NS, read, read_whole};

pub(crate) fn header(version: u32, datalink: u32) -> Vec<u8> {
    let mut file = b"snoop\0\0\0".to_vec();
    file.extend(BIG.words(&[version, datalink]));
    file
}

pub(crate) fn record(length: u32, seconds: u32, micros: u32, octets: &[u8]) -> Vec<u8> {
    let captured = octets.len() as u32;
    let whole = 24 + captured.next_multiple_of(4);
    let mut record = BIG.words(&[length, captured, whole, 0, seconds, micros]);
    record.extend(octets);
    record.resize(whole as usize, 0);
    record
}

#[test]
fn records_are_padded_as_their_length_says() {
    let mut file = header(2, 4);
    file.extend(record(1500, 900_000_000, 250_000, b"abcde"));
    file.extend(record(4, 900_000_001, 0, b"fghi"));
    let whole = read_whole(&file);
    assert_eq!(whole.octets(), [&b"abcde"[..], b"fghi"]);
    assert_eq!(
        whole.times_ns(),
        [
            900_000_000 * SECOND_NS + 250_000_000,
            900_000_001 * SECOND_NS
        ]
    );
    assert_eq!(whole.packets[0].length, 1500);
    assert_eq!(whole.packets[1].offset, 16 + 32);
    assert_eq!(whole.first, None);
}

#[test]
fn data_link_types_become_link_types() {
    for (datalink, link) in [
        (0, LinkType::ETHERNET),
        (2, LinkType(6)),
        (4, LinkType::ETHERNET),
        (8, LinkType::FDDI),
        (18, LinkType::SUNATM),
        (9, UNKNOWN_LINK),
        (0x0001_0004, UNKNOWN_LINK),
    ] {
        let mut file = header(2, datalink);
        file.extend(record(1, 1, 1, b"a"));
        assert_eq!(read_whole(&file).packets[0].link, link, "{datalink}");
    }
}

#[test]
fn lengths_that_contradict_each_other_end_the_file() {
    for (fields, fault) in [
        ([5, 5, 28], Fault::BadRecordLength),
        ([5, 5, 0], Fault::BadRecordLength),
        ([5, 5, 1 << 20], Fault::BadRecordLength),
        ([5, 262_145, 262_172], Fault::RecordTooLong),
    ] {
        let mut file = header(2, 4);
        file.extend(record(1, 1, 1, b"a"));
        file.extend(BIG.words(&fields));
        file.extend([0; 100]);
        let whole = read_whole(&file);
        assert_eq!(whole.octets(), [b"a"]);
        assert_eq!(whole.first, Some((44, fault)));
    }
}

#[test]
fn microseconds_past_a_second_are_carried_over_and_counted() {
    let mut file = header(2, 4);
    file.extend(record(1, 1, 1_500_000, b"a"));
    let whole = read_whole(&file);
    assert_eq!(whole.times_ns(), [2_500_000_000]);
    assert_eq!(whole.first, Some((16, Fault::BadTime)));
}

#[test]
fn other_versions_and_headers_that_are_not_whole_are_refused() {
    assert!(matches!(
        read(&header(1, 4)[..]),
        Err(OpenError::UnsupportedVersion {
            format: Format::Snoop,
            major: 1,
            ..
        })
    ));
    assert!(matches!(
        read(&header(2, 4)[..12]),
        Err(OpenError::HeaderTruncated(Format::Snoop))
    ));
}
