//! Peers with two-octet AS numbers (RFC 6793), receiving and sending.

use super::messages::hex;
use crate::bgp::attr::code;
use crate::bgp::*;

const NARROW: UpdateContext = UpdateContext {
    four_octet: false,
    peer: PeerKind::Internal,
    add_path: [false; 2],
    families: Families::ALL,
    first_as: None,
};

/// The path and the aggregator that result from these attributes of a two-octet peer, and the faults.
fn merged(attributes: &str) -> (String, Option<u32>, Vec<(u8, What)>) {
    let attributes = hex(&format!(
        "40 01 01 00 40 03 04 c0000201 40 05 04 00000064 {attributes}"
    ));
    let mut body = vec![0, 0];
    body.extend_from_slice(&(attributes.len() as u16).to_be_bytes());
    body.extend_from_slice(&attributes);
    body.extend_from_slice(&hex("18 cb0071"));
    let update = Update::read(&body, &NARROW).unwrap();
    assert_eq!(update.verdict(), Verdict::Accept);
    let attributes = update.attributes();
    assert_eq!(attr::find(attributes, code::AS4_PATH), None);
    assert_eq!(attr::find(attributes, code::AS4_AGGREGATOR), None);
    let faults = update.faults().iter().map(|f| (f.code, f.what)).collect();
    (
        attr::as_path(attributes).to_string(),
        attr::aggregator(attributes).map(|(asn, _)| asn),
        faults,
    )
}

fn path_of(attributes: &str) -> String {
    let (path, _, faults) = merged(attributes);
    assert_eq!(faults, []);
    path
}

#[test]
fn a_path_of_two_octets_becomes_one_of_four() {
    assert_eq!(path_of("40 02 06 02 02 fbf0 fbff"), "64496 64511");
    assert_eq!(path_of("40 02 08 02 01 fbf0 01 01 fbff"), "64496 {64511}");
    assert_eq!(path_of("40 02 00"), "");
}

#[test]
fn the_as4_path_replaces_the_end_of_the_path() {
    // Section 4.2.3: take as many leading AS numbers as the AS_PATH is longer.
    let path = "40 02 08 02 03 fbf0 5ba0 5ba0";
    let as4 = "c0 11 0a 02 02 00010000 00010001";
    assert_eq!(path_of(&format!("{path} {as4}")), "64496 65536 65537");
    assert_eq!(path_of(&format!("{as4} {path}")), "64496 65536 65537");
    let same = "c0 11 0e 02 03 0000fbf0 00010000 00010001";
    assert_eq!(path_of(&format!("{path} {same}")), "64496 65536 65537");
    // The sequence is joined again, as its sender had it.
    let attributes = hex(path);
    let as4_path = hex(as4);
    let value = crate::bgp::as4::merge_paths(&attributes[3..], Some(&as4_path[3..]));
    assert_eq!(value, hex("02 03 0000fbf0 00010000 00010001"));
}

#[test]
fn an_as4_path_that_is_longer_is_ignored() {
    let path = "40 02 04 02 01 fbf0";
    let as4 = "c0 11 0a 02 02 00010000 00010001";
    assert_eq!(path_of(&format!("{path} {as4}")), "64496");
}

#[test]
fn a_set_counts_as_one_as() {
    let path = "40 02 0c 02 02 fbf0 5ba0 01 02 5ba0 fbff";
    let as4 = "c0 11 10 02 01 00010000 01 02 00010001 0000fbff";
    assert_eq!(
        path_of(&format!("{path} {as4}")),
        "64496 65536 {65537,64511}"
    );
    let path = "40 02 0c 01 02 fbf0 fbf1 02 02 5ba0 5ba0";
    let as4 = "c0 11 0a 02 02 00010000 00010001";
    assert_eq!(
        path_of(&format!("{path} {as4}")),
        "{64496,64497} 65536 65537"
    );
}

#[test]
fn segments_of_a_confederation_at_the_front_stay() {
    let path = "40 02 0a 03 01 fc00 02 02 5ba0 5ba0";
    let as4 = "c0 11 0a 02 02 00010000 00010001";
    assert_eq!(path_of(&format!("{path} {as4}")), "(64512) 65536 65537");
    let path = "40 02 10 02 01 fbf0 03 02 fc00 fc01 02 02 5ba0 5ba0";
    assert_eq!(
        path_of(&format!("{path} {as4}")),
        "64496 (64512 64513) 65536 65537"
    );
}

#[test]
fn segments_of_a_confederation_in_the_as4_path_are_left_out() {
    // Section 6.
    let path = "40 02 06 02 02 5ba0 5ba0";
    let as4 = "c0 11 10 03 01 00010009 02 02 00010000 00010001";
    let (path, _, faults) = merged(&format!("{path} {as4}"));
    assert_eq!(path, "65536 65537");
    assert_eq!(faults, [(code::AS4_PATH, What::Confederation)]);
}

#[test]
fn an_as4_path_that_is_malformed_is_discarded() {
    // Section 6; AS 0: RFC 7607, section 2.
    for (as4, what) in [
        ("c0 11 00", What::Length),
        ("c0 11 04 02 01 0001", What::Length),
        ("c0 11 07 02 01 00010000 00", What::Length),
        ("c0 11 06 02 02 00010000", What::SegmentPastEnd),
        ("c0 11 06 02 00 02 00 02 00", What::SegmentEmpty),
        ("c0 11 06 09 01 00010000", What::SegmentKind),
        ("c0 11 06 02 01 00000000", What::ZeroAs),
    ] {
        let (path, _, faults) = merged(&format!("40 02 06 02 02 fbf0 5ba0 {as4}"));
        assert_eq!(path, "64496 23456", "{as4}");
        assert_eq!(faults, [(code::AS4_PATH, what)], "{as4}");
    }
}

#[test]
fn the_as4_aggregator_counts_beside_as_trans_only() {
    let path = "40 02 04 02 01 5ba0 c0 11 06 02 01 00010000";
    let as4 = "c0 12 08 00010000 c0000202";
    let (with_trans, aggregator, faults) = merged(&format!("{path} c0 07 06 5ba0 c0000202 {as4}"));
    assert_eq!((with_trans.as_str(), aggregator), ("65536", Some(65_536)));
    assert_eq!(faults, []);
    // Section 4.2.3: otherwise the AS4_PATH is ignored too.
    let (without, aggregator, faults) = merged(&format!("{path} c0 07 06 fbf0 c0000202 {as4}"));
    assert_eq!((without.as_str(), aggregator), ("23456", Some(64_496)));
    assert_eq!(faults, []);
    // Without an AGGREGATOR, the AS4_AGGREGATOR has nothing to extend.
    let (path, aggregator, _) = merged(&format!("{path} {as4}"));
    assert_eq!((path.as_str(), aggregator), ("65536", None));
}

#[test]
fn an_as4_aggregator_that_is_malformed_is_discarded() {
    for (as4, what) in [
        ("c0 12 06 0001 c0000202", What::Length),
        ("c0 12 00", What::Length),
        ("c0 12 08 00000000 c0000202", What::ZeroAs),
    ] {
        let attributes = format!("40 02 00 c0 07 06 5ba0 c0000202 {as4}");
        let (_, aggregator, faults) = merged(&attributes);
        assert_eq!(aggregator, Some(23_456));
        assert_eq!(faults, [(code::AS4_AGGREGATOR, what)]);
    }
}

fn narrowed(attributes: &str) -> Vec<u8> {
    let mut out = Vec::new();
    to_two_octet(&hex(attributes), &mut out);
    out
}

#[test]
fn numbers_that_fit_two_octets_need_no_as4_attributes() {
    // Section 4.2.2.
    assert_eq!(
        narrowed("40 01 01 00 40 02 0a 02 02 0000fbf0 0000fbff c0 07 08 0000fbf0 c0000201"),
        hex("40 01 01 00 40 02 06 02 02 fbf0 fbff c0 07 06 fbf0 c0000201")
    );
}

#[test]
fn numbers_that_do_not_are_as_trans_and_stand_in_the_as4_attributes() {
    assert_eq!(
        narrowed(
            "40 02 10 03 01 0000fc00 02 02 0000fbf0 00010000 c0 07 08 00010000 c0000201
             c0 08 04 fbf0000e c0 20 0c 0000fbf0 00000001 00000002"
        ),
        hex("40 02 0a 03 01 fc00 02 02 fbf0 5ba0 c0 07 06 5ba0 c0000201
             c0 08 04 fbf0000e c0 11 0a 02 02 0000fbf0 00010000
             c0 12 08 00010000 c0000201 c0 20 0c 0000fbf0 00000001 00000002")
    );
    // Only a confederation AS number is too large, and those never go into an AS4_PATH.
    assert_eq!(
        narrowed("40 02 06 03 01 00010000"),
        hex("40 02 04 03 01 5ba0")
    );
}

#[test]
fn what_is_narrowed_merges_to_what_it_was() {
    let attributes = hex(
        "40 01 01 00 40 02 18 02 03 00010000 0000fbf0 00010001 01 02 00010002 0000fbff
         40 03 04 c0000201 40 05 04 00000064 c0 07 08 00010000 c0000201",
    );
    let mut body = vec![0, 0, 0, 0];
    to_two_octet(&attributes, &mut body);
    let len = (body.len() - 4) as u16;
    body[2..4].copy_from_slice(&len.to_be_bytes());
    body.extend_from_slice(&hex("18 cb0071"));
    let update = Update::read(&body, &NARROW).unwrap();
    assert_eq!(update.attributes(), attributes);
    assert_eq!(update.faults(), []);
}
