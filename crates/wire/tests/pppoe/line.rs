//! The line tags: RFC 4679 and RFC 5515.

use wire::pppoe::{Discovery, LineAvp, LineInfo, line, parse};

use crate::golden::golden;

fn golden_line() -> LineInfo {
    let bytes = golden("04-padi-relayed");
    let tags = Discovery::parse(parse(&bytes).unwrap().payload).unwrap();
    assert_eq!(tags.service_name, Some(&b"gold"[..]));
    assert_eq!(tags.max_payload, Some(1500));
    assert_eq!(tags.host_uniq.map(<[u8]>::len), Some(8));
    assert_eq!(tags.relay_session_id.map(<[u8]>::len), Some(12));
    LineInfo::parse(tags.line.unwrap()).unwrap()
}

#[test]
fn a_line_has_its_ids_rates_and_delays() {
    let found = golden_line();
    assert_eq!(found.circuit_id(), Some(&b"dslam1 atm 3/0:100.33"[..]));
    assert_eq!(found.remote_id(), Some(&b"0555012345"[..]));
    assert_eq!(found.word(line::ACTUAL_RATE_UP), Some(1_000_000));
    assert_eq!(found.word(line::ACTUAL_RATE_DOWN), Some(50_000_000));
    assert_eq!(found.word(line::LAST_DELAY), Some(8));
    assert_eq!(found.get(line::ENCAPSULATION), Some(&[1, 2, 0][..]));
    assert_eq!(found.get(line::IWF_SESSION), Some(&[][..]));
    assert_eq!(found.word(line::MAXIMUM_RATE_UP), None);
    assert_eq!(LineInfo::parse(found.as_bytes()), Some(found.clone()));
    assert!(format!("{found:?}").contains("dslam1 atm"));
}

#[test]
fn a_line_s_radius_attributes_are_those_of_rfc_4679() {
    let found = golden_line();
    let numbers: Vec<(u8, usize)> = found.radius().map(|(n, value)| (n, value.len())).collect();
    // Vendor-Type, and Vendor-Length less 2 (RFC 4679, sections 3.3.1 to 3.3.18).
    let expected = [
        (1, 21),
        (2, 10),
        (0x81, 4),
        (0x82, 4),
        (0x8e, 4),
        (0x90, 3),
        (0xfe, 0),
    ];
    assert_eq!(numbers, expected);
}

#[test]
fn a_line_s_avps_are_those_of_rfc_5515() {
    let found = golden_line();
    let avps: Vec<(u16, LineAvp<'_>)> = found.avps().collect();
    let expected = [
        (1, LineAvp::Bytes(b"dslam1 atm 3/0:100.33")),
        (2, LineAvp::Bytes(b"0555012345")),
        // "The Actual-Data-Rate-Upstream is an 8-octet value" (section 5.3).
        (129, LineAvp::Rate(1_000_000)),
        (130, LineAvp::Rate(50_000_000)),
        // "a 4-octet unsigned integer" (section 5.16).
        (142, LineAvp::Word(8)),
        (144, LineAvp::Bytes(&[1, 2, 0])),
        // "0x01 IWF performed" (section 5.19).
        (254, LineAvp::Word(1)),
    ];
    assert_eq!(avps, expected);
}

#[test]
fn values_that_the_rfc_does_not_allow_are_ignored() {
    let long = [&[1, 64][..], &[b'a'; 64]].concat();
    let cases: [&[u8]; 9] = [
        &[],
        &[1],
        &[1, 0],
        &long,
        // A number that is not defined, a rate of 3 octets, an encapsulation of 4.
        &[3, 1, b'x'],
        &[0x81, 3, 1, 2, 3],
        &[0x90, 4, 1, 2, 3, 4],
        // Beyond the end.
        &[1, 4, b'a', b'b'],
        &[0xfe, 1, 1],
    ];
    for case in cases {
        assert_eq!(LineInfo::parse(case), None, "{case:?}");
    }
    let longest = [&[1, 63][..], &[b'a'; 63]].concat();
    assert!(LineInfo::parse(&longest).is_some());
    // The first of two, and what is before a sub-option beyond the end.
    let found = LineInfo::parse(&[2, 1, b'a', 2, 1, b'b', 1, 9, b'c']).unwrap();
    assert_eq!(found.remote_id(), Some(&b"a"[..]));
    assert_eq!(found.circuit_id(), None);
}

#[test]
fn a_line_is_the_same_after_radius_and_after_l2tp() {
    let found = golden_line();
    assert_eq!(LineInfo::collect(found.radius()), Some(found.clone()));
    let avps: Vec<(u16, Vec<u8>)> = found
        .avps()
        .map(|(attribute, value)| match value {
            LineAvp::Bytes(bytes) => (attribute, bytes.to_vec()),
            LineAvp::Rate(rate) => (attribute, rate.to_be_bytes().to_vec()),
            LineAvp::Word(word) => (attribute, word.to_be_bytes().to_vec()),
        })
        .collect();
    let avps = || {
        avps.iter()
            .map(|(attribute, value)| (*attribute, &value[..]))
    };
    assert_eq!(LineInfo::from_avps(avps()), Some(found));

    let ten_gigabits = 10_000_000_000_u64.to_be_bytes();
    let fast = LineInfo::from_avps([(130, &ten_gigabits[..])]).unwrap();
    assert_eq!(fast.word(line::ACTUAL_RATE_DOWN), Some(u32::MAX));
    let long = [b'a'; 300];
    let unusable: [(u16, &[u8]); 6] = [
        // Not a rate of 64 bits, no IWF, too long, and other attributes.
        (129, &[0, 0, 0, 1]),
        (254, &[0, 0, 0, 0]),
        (1, &long),
        (145, &[1, 0, 0, 0]),
        (98, &[]),
        (257, b"x"),
    ];
    assert_eq!(LineInfo::from_avps(unusable), None);
}
