//! Data messages of both versions, read from their golden bytes and written to the same bytes.

use wire::l2tp::data::{Sublayer, emit_data_v3};
use wire::l2tp::{DataV2, Packet, parse};

fn golden(name: &str) -> Vec<u8> {
    let all = super::golden::all();
    all.into_iter()
        .find(|golden| golden.name == name)
        .expect("the golden packet")
        .octets
}

const ECHO_REQUEST: &[u8] = &[0xff, 0x03, 0xc0, 0x21, 9, 1, 0, 8, 0x00, 0xc0, 0xff, 0xee];

fn plain() -> DataV2<'static> {
    DataV2 {
        tunnel: 0x3b02,
        session: 0x0d22,
        payload: ECHO_REQUEST,
        ..DataV2::default()
    }
}

fn check_v2(name: &str, expected: DataV2<'_>) {
    let octets = golden(name);
    assert_eq!(parse(&octets), Ok(Packet::DataV2(expected)), "{name} read");
    let mut out = Vec::new();
    expected.emit(&mut out);
    assert_eq!(out, octets, "{name} written");
    assert_eq!(
        expected.header_len() + ECHO_REQUEST.len(),
        octets.len(),
        "{name}"
    );
}

#[test]
fn v2_without_optional_fields() {
    check_v2("v2-data-1-plain", plain());
}

#[test]
fn v2_with_length() {
    check_v2(
        "v2-data-2-length",
        DataV2 {
            with_length: true,
            ..plain()
        },
    );
}

#[test]
fn v2_with_sequence_numbers() {
    check_v2(
        "v2-data-3-sequence",
        DataV2 {
            sequence: Some((41, 0)),
            ..plain()
        },
    );
}

#[test]
fn v2_with_offset() {
    check_v2(
        "v2-data-4-offset",
        DataV2 {
            offset: Some(4),
            ..plain()
        },
    );
}

#[test]
fn v2_with_priority() {
    check_v2(
        "v2-data-5-priority",
        DataV2 {
            priority: true,
            ..plain()
        },
    );
}

#[test]
fn v2_with_every_optional_field() {
    let all = DataV2 {
        with_length: true,
        priority: true,
        sequence: Some((42, 0)),
        offset: Some(2),
        ..plain()
    };
    check_v2("v2-data-6-all", all);
}

const FRAME: &[u8] = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x88\xb5hello, pseudowire";

fn check_v3(name: &str, session: u32, cookie: &[u8], sublayer: Option<Sublayer>) {
    let octets = golden(name);
    let Ok(Packet::DataV3(data)) = parse(&octets) else {
        panic!("{name} is a v3 data message");
    };
    assert_eq!(data.session, session, "{name}");
    let (got, rest) = data.cookie(cookie.len()).expect("long enough");
    assert_eq!(got, cookie, "{name}");
    let (got, frame) = match sublayer {
        Some(_) => Sublayer::parse(rest)
            .map(|(s, frame)| (Some(s), frame))
            .expect("long enough"),
        None => (None, rest),
    };
    assert_eq!((got, frame), (sublayer, FRAME), "{name}");
    let mut out = Vec::new();
    emit_data_v3(&mut out, session, cookie, sublayer, frame);
    assert_eq!(out, octets, "{name} written");
}

#[test]
fn v3_without_cookie_and_sublayer() {
    check_v3("v3-data-1-cookie-0", 0xb000_0004, &[], None);
}

#[test]
fn v3_with_a_cookie_of_four_octets_and_an_unsequenced_sublayer() {
    let sublayer = Sublayer { sequence: None };
    check_v3(
        "v3-data-2-cookie-4",
        0xb000_0002,
        b"\xaa\xbb\xcc\xdd",
        Some(sublayer),
    );
}

#[test]
fn v3_with_a_cookie_of_eight_octets_and_a_sequence_number() {
    let sublayer = Sublayer {
        sequence: Some(16_777_214),
    };
    let cookie = b"\x11\x22\x33\x44\x55\x66\x77\x88";
    check_v3("v3-data-3-cookie-8", 0xa000_0001, cookie, Some(sublayer));
}
