//! EtherPeek's classic format, versions 5 to 7.

use capfile::{Fault, OpenError, UNKNOWN_LINK};
use wire::link::LinkType;

use crate::support::{BIG, SECOND_NS, read, read_whole};

/// The Macintosh's time at 1970.
const EPOCH_1970_S: u32 = 2_082_844_800;

pub(crate) fn header(version: u8, media: u32, medium: u32) -> Vec<u8> {
    let mut file = vec![version, 0];
    // Length, packets, date, first and last time, media, medium, version of the program, speed, reserved.
    let date = EPOCH_1970_S + 800_000_000;
    file.extend(BIG.words(&[0, 2, date, 0, 0, media, medium, 1, 2, 0, 0, 0]));
    file
}

pub(crate) fn record_5(length: u16, sliced: u16, millis: u32, octets: &[u8]) -> Vec<u8> {
    let mut record = [BIG.u16(length), BIG.u16(sliced)].concat();
    record.extend([0, 0]);
    record.extend(BIG.u32(millis));
    record.extend([0; 16]);
    record.extend(octets);
    record
}

pub(crate) fn record_7(length: u16, sliced: u16, micros: u64, octets: &[u8]) -> Vec<u8> {
    let mut record = [BIG.u16(9), BIG.u16(length), BIG.u16(sliced)].concat();
    record.extend([0, 0]);
    record.extend(micros.to_be_bytes());
    record.extend(octets);
    record
}

#[test]
fn versions_5_and_6_count_milliseconds_from_the_date_of_the_file() {
    for version in [5, 6] {
        let mut file = header(version, 0, 0);
        file.extend(record_5(1500, 3, 71_000_017, b"abc"));
        // Not sliced, and not padded.
        file.extend(record_5(4, 0, 71_000_018, b"defg"));
        let whole = read_whole(&file);
        assert_eq!(whole.octets(), [&b"abc"[..], b"defg"]);
        assert_eq!(whole.packets[0].length, 1500);
        assert_eq!(whole.packets[0].link, LinkType::ETHERNET);
        assert_eq!(whole.packets[1].offset, 50 + 29);
        assert_eq!(
            whole.times_ns(),
            [
                800_071_000 * SECOND_NS + 17_000_000,
                800_071_000 * SECOND_NS + 18_000_000
            ]
        );
        assert_eq!(whole.first, None);
    }
}

#[test]
fn version_7_counts_microseconds_from_1904_and_pads() {
    let micros = (u64::from(EPOCH_1970_S) + 1_000_000_000) * 1_000_000 + 7;
    let mut file = header(7, 0, 0);
    file.extend(record_7(1500, 3, micros, b"abc\0"));
    file.extend(record_7(4, 0, micros + 1, b"defg"));
    let whole = read_whole(&file);
    assert_eq!(whole.octets(), [&b"abc"[..], b"defg"]);
    assert_eq!(
        whole.times_ns(),
        [
            1_000_000_000 * SECOND_NS + 7000,
            1_000_000_000 * SECOND_NS + 8000
        ]
    );
}

#[test]
fn media_become_link_types() {
    for (media, medium, link) in [(1, 0, LinkType(6)), (0, 1, UNKNOWN_LINK)] {
        let mut file = header(6, media, medium);
        file.extend(record_5(1, 0, 0, b"a"));
        assert_eq!(read_whole(&file).packets[0].link, link);
    }
}

#[test]
fn a_header_with_other_things_in_it_is_of_no_known_format() {
    for (at, octet) in [(0, 8), (1, 1), (22, 1), (29, 7), (40, 1)] {
        let mut file = header(6, 0, 0);
        file[at] = octet;
        assert!(matches!(read(&file[..]), Err(OpenError::UnknownFormat)));
    }
}

#[test]
fn times_far_in_the_future_are_the_last_that_can_be_said() {
    let mut file = header(7, 0, 0);
    file.extend(record_7(1, 0, u64::MAX, b"a\0"));
    let whole = read_whole(&file);
    assert_eq!(whole.faults, [(Fault::BadTime, 1)]);
    assert_eq!(whole.times_ns(), [i64::MAX]);
}
