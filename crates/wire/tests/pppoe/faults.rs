//! Packets that do not follow the RFC.

use wire::pppoe::{
    Code, Discovery, HEADER_LEN, Mac, NotAMac, ParseError, Vlans, Writer, complete, parse, tag,
};

#[test]
fn a_header_must_be_whole_of_version_one_and_within_the_frame() {
    let packet = [0x11, 0x09, 0, 0, 0, 4, 1, 1, 0, 0];
    for len in 0..HEADER_LEN {
        assert_eq!(parse(&packet[..len]), Err(ParseError::Short));
    }
    for len in HEADER_LEN..packet.len() {
        assert_eq!(parse(&packet[..len]), Err(ParseError::Length));
    }
    for ver_type in [0x10, 0x01, 0x21, 0x12, 0] {
        let mut other = packet;
        other[0] = ver_type;
        assert_eq!(parse(&other), Err(ParseError::Version));
    }
    let unknown = parse(&[0x11, 0x42, 0xff, 0xff, 0, 0, 9]).unwrap();
    assert_eq!((unknown.code, unknown.session), (Code(0x42), 0xffff));
    assert_eq!(unknown.payload, []);
    assert_eq!(unknown.code.to_string(), "code 0x42");
}

#[test]
fn a_tag_must_be_within_the_packet() {
    for payload in [
        &[1][..],
        &[1, 1, 0],
        &[1, 1, 0, 1],
        &[1, 1, 0, 0, 1, 3, 0, 2, 9],
        &[1, 1, 0xff, 0xff, 9],
    ] {
        assert_eq!(Discovery::parse(payload), Err(ParseError::TagLength));
    }
    let empty = Discovery::parse(&[]).unwrap();
    assert_eq!(empty, Discovery::default());
}

#[test]
fn values_of_a_wrong_length_or_vendor_are_ignored_and_the_first_tag_counts() {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, Code::PADI, 0);
    writer
        .tag(tag::PPP_MAX_PAYLOAD, &[1])
        .tag(tag::PPP_MAX_PAYLOAD, &[5, 0xdc])
        .tag(tag::PPP_MAX_PAYLOAD, &[6, 0])
        .tag(tag::VENDOR_SPECIFIC, &[0, 0, 1])
        .tag(tag::VENDOR_SPECIFIC, &[0, 0, 0, 9, 1, 1, b'x'])
        .tag(tag::HOST_UNIQ, b"first")
        .tag(tag::HOST_UNIQ, b"second")
        .tag_if(tag::AC_NAME, None);
    writer.finish();
    let tags = Discovery::parse(parse(&out).unwrap().payload).unwrap();
    assert_eq!(tags.max_payload, Some(1500));
    assert_eq!(tags.line, None);
    assert_eq!(tags.host_uniq, Some(&b"first"[..]));
    assert_eq!(tags.ac_name, None);
    assert_eq!(tags.services, 0);
}

#[test]
fn completing_what_is_no_packet_changes_nothing() {
    let mut out = [9; 5];
    complete(&mut out, 0);
    complete(&mut out, 3);
    complete(&mut out, 77);
    assert_eq!(out, [9; 5]);
}

#[test]
fn addresses_are_read_as_they_are_printed() {
    let mac = Mac([0, 0x53, 0, 0xab, 0xcd, 0xef]);
    assert_eq!(mac.to_string(), "00:53:00:ab:cd:ef");
    assert_eq!("00:53:00:ab:cd:ef".parse(), Ok(mac));
    assert_eq!("00-53-00-AB-CD-EF".parse(), Ok(mac));
    for wrong in [
        "",
        "00:53:00:ab:cd",
        "00:53:00:ab:cd:ef:00",
        "0:53:00:ab:cd:ef",
        "00:53:00:ab:cd:+f",
    ] {
        assert_eq!(wrong.parse::<Mac>(), Err(NotAMac), "{wrong}");
    }
    assert!(mac.is_unicast() && !Mac::BROADCAST.is_unicast());
    assert!(!Mac([1, 0, 0x5e, 0, 0, 1]).is_unicast() && !Mac([0; 6]).is_unicast());
}

#[test]
fn vlan_ids_have_twelve_bits_and_differ_by_their_number() {
    let (none, one, two) = (Vlans::NONE, Vlans::one(0xf123), Vlans::two(10, 20));
    assert_eq!((none.outer(), none.inner()), (None, None));
    assert_eq!((one.outer(), one.inner()), (Some(0x123), None));
    assert_eq!((two.outer(), two.inner()), (Some(10), Some(20)));
    assert_eq!(none.to_string(), "untagged");
    assert_eq!(
        (one.to_string(), two.to_string()),
        ("291".into(), "10.20".into())
    );
    assert_ne!(Vlans::one(0), none);
    assert_ne!(Vlans::one(10).bits(), Vlans::two(10, 0).bits());
}
