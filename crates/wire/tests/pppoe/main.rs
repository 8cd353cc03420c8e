//! Tests PPPoE encoding against the golden packets of `testdata/pppoe`, which were derived by hand from RFC 2516, RFC
//! 4638 and RFC 4679, and against faults.
#![forbid(unsafe_code)]

mod faults;
mod golden;
mod line;

use golden::golden;
use wire::pppoe::{
    Code, Discovery, Fault, FaultKind, Tag, Tags, Writer, complete, header, parse, tag,
};

/// A golden packet that no test reads would verify nothing.
#[test]
fn every_golden_packet_is_named_by_a_test() {
    let sources = [include_str!("main.rs"), include_str!("line.rs")];
    for name in golden::names() {
        let quoted = format!("\"{name}\"");
        let is_named = sources.iter().any(|source| source.contains(&quoted));
        assert!(is_named, "{quoted}");
    }
}

/// Writes the tags of a packet again.
fn rewritten(bytes: &[u8]) -> Vec<u8> {
    let packet = parse(bytes).unwrap();
    let mut out = vec![0xee];
    let mut writer = Writer::new(&mut out, packet.code, packet.session);
    for tag in Tags::new(packet.payload) {
        let Tag { kind, value } = tag.unwrap();
        writer.tag(kind, value);
    }
    let len = writer.finish();
    assert_eq!(len, out.len() - 1);
    out.split_off(1)
}

#[test]
fn the_rfc_s_initiation_asks_for_any_service() {
    let bytes = golden("01-padi");
    let packet = parse(&bytes).unwrap();
    assert_eq!((packet.code, packet.session), (Code::PADI, 0));
    assert_eq!(packet.code.ether_type(), 0x8863);
    let tags = Discovery::parse(packet.payload).unwrap();
    assert_eq!(tags.service_name, Some(&b""[..]));
    assert_eq!(tags.services, 1);
    assert_eq!(tags.host_uniq, None);
    assert_eq!(rewritten(&bytes), bytes);
}

#[test]
fn the_rfc_s_offer_names_its_access_concentrator() {
    let bytes = golden("02-pado");
    let packet = parse(&bytes).unwrap();
    assert_eq!((packet.code, packet.session), (Code::PADO, 0));
    let tags = Discovery::parse(packet.payload).unwrap();
    assert_eq!(tags.ac_name, Some(&b"Go RedBack - eshsheshoot"[..]));
    assert_eq!(tags.service_names().collect::<Vec<_>>(), [b""]);
    assert_eq!(rewritten(&bytes), bytes);
}

#[test]
fn session_data_ends_where_length_says() {
    let bytes = golden("03-lcp");
    let packet = parse(&bytes).unwrap();
    assert_eq!((packet.code, packet.session), (Code::DATA, 0x1234));
    assert_eq!(packet.code.ether_type(), 0x8864);
    let frame = [0xc0, 0x21, 9, 1, 0, 8, 0, 0xc0, 0xff, 0xee];
    assert_eq!(packet.payload, frame);

    let mut out = vec![0xee; 3];
    out.extend_from_slice(&header(Code::DATA, 0x1234));
    out.extend_from_slice(&frame);
    complete(&mut out, 3);
    assert_eq!(out[3..], bytes[..16]);
}

#[test]
fn an_offer_lists_its_services() {
    let bytes = golden("05-pado-services");
    let tags = Discovery::parse(parse(&bytes).unwrap().payload).unwrap();
    assert_eq!(tags.ac_name, Some(&b"edge-1"[..]));
    assert_eq!(tags.service_name, Some(&b"gold"[..]));
    let names: Vec<&[u8]> = tags.service_names().collect();
    assert_eq!(names, [&b"gold"[..], b"silver"]);
    assert_eq!(tags.services, 2);
    assert_eq!(tags.ac_cookie, Some(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9][..]));
    let uniq = [0xde, 0xad, 0xbe, 0xef, 0, 1, 2, 3];
    assert_eq!(tags.host_uniq, Some(&uniq[..]));
    assert_eq!(rewritten(&bytes), bytes);
}

#[test]
fn unknown_tags_are_ignored_and_end_of_list_ends() {
    let bytes = golden("06-padr");
    let packet = parse(&bytes).unwrap();
    assert_eq!(packet.code, Code::PADR);
    let tags = Discovery::parse(packet.payload).unwrap();
    assert_eq!(tags.service_name, Some(&b"gold"[..]));
    assert_eq!(tags.ac_cookie, Some(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9][..]));
    assert_eq!(tags.ac_name, None, "it is after the End-Of-List");
    assert_eq!(Tags::new(packet.payload).count(), 4);
}

#[test]
fn a_confirmation_has_the_session_and_the_payload() {
    let bytes = golden("07-pads");
    let packet = parse(&bytes).unwrap();
    assert_eq!((packet.code, packet.session), (Code::PADS, 0x1234));
    let tags = Discovery::parse(packet.payload).unwrap();
    assert_eq!(tags.max_payload, Some(1500));
    assert_eq!(tags.fault, None);
    assert_eq!(rewritten(&bytes), bytes);
}

#[test]
fn errors_have_their_text_without_a_nul() {
    for (name, code, session, kind, text) in [
        (
            "08-pads-refused",
            Code::PADS,
            0,
            FaultKind::ServiceName,
            &b"not found"[..],
        ),
        (
            "09-padt",
            Code::PADT,
            0x1234,
            FaultKind::Generic,
            b"good bye",
        ),
    ] {
        let bytes = golden(name);
        let packet = parse(&bytes).unwrap();
        assert_eq!((packet.code, packet.session), (code, session));
        let tags = Discovery::parse(packet.payload).unwrap();
        assert_eq!(tags.fault, Some(Fault { kind, text }));
        assert_eq!(rewritten(&bytes), bytes);
    }
    assert_eq!(FaultKind::System.tag(), tag::AC_SYSTEM_ERROR);
}
