//! RFC 7606, case by case, with RFC 7607, 8092, 9234, 5065 and 6793 where they refer to it.

mod values;

use super::messages::hex;
use crate::bgp::attr::code;
use crate::bgp::*;

const ORIGIN: &str = "40 01 01 00";
const AS_PATH: &str = "40 02 06 02 01 0000fbf0";
const NEXT_HOP: &str = "40 03 04 c0000201";
const LOCAL_PREF: &str = "40 05 04 00000064";
const MP_REACH: &str = "80 0e 1a 0002 01 10 20010db8000000000000000000000001 00 20 20010db8";
const MP_UNREACH: &str = "80 0f 08 0002 01 20 20010db9";
const NLRI: &str = "18 cb0071";

fn external() -> UpdateContext {
    UpdateContext::default()
}

fn internal() -> UpdateContext {
    UpdateContext {
        peer: PeerKind::Internal,
        ..external()
    }
}

fn confederation() -> UpdateContext {
    UpdateContext {
        peer: PeerKind::Confederation,
        ..external()
    }
}

/// A message body with these fields.
fn body(withdrawn: &str, attributes: &[&str], nlri: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for field in [hex(withdrawn), hex(&attributes.concat())] {
        body.extend_from_slice(&(field.len() as u16).to_be_bytes());
        body.extend_from_slice(&field);
    }
    body.extend_from_slice(&hex(nlri));
    body
}

/// The result for a message: its verdict, the faults, the canonical attributes.
#[derive(Debug, PartialEq)]
struct Judged {
    verdict: Verdict,
    faults: Vec<(u8, What)>,
    attributes: Vec<u8>,
}

/// Reads a message, and checks the properties that hold for every message.
fn judge(body: &[u8], context: &UpdateContext) -> Result<Judged, Notification> {
    let update = Update::read(body, context)?;
    let strongest = update.faults().iter().map(Fault::treatment).max();
    let is_withdrawn = update.verdict() == Verdict::TreatAsWithdraw;
    assert_eq!(
        strongest == Some(Treatment::TreatAsWithdraw),
        is_withdrawn,
        "3 (h): the strongest is done"
    );
    assert!(!is_withdrawn || update.announced().is_empty());
    assert_eq!(update.faults().len(), update.fault_count());
    Ok(Judged {
        verdict: update.verdict(),
        faults: update.faults().iter().map(|f| (f.code, f.what)).collect(),
        attributes: update.attributes().to_vec(),
    })
}

/// Reads a message with an IPv4 route and the mandatory attributes; `attribute` replaces the mandatory one of
/// its type.
fn judge_one(attribute: &str, context: &UpdateContext) -> Judged {
    let kind = |text: &str| hex(text)[1];
    let mut attributes = vec![ORIGIN, AS_PATH, NEXT_HOP];
    if context.peer == PeerKind::Internal {
        attributes.push(LOCAL_PREF);
    }
    attributes.retain(|text| kind(text) != kind(attribute));
    attributes.push(attribute);
    judge(&body("", &attributes, NLRI), context).expect("the session stays")
}

fn assert_withdrawn(attribute: &str, what: What, source: &str) {
    for context in [external(), internal()] {
        assert_withdrawn_by(attribute, what, source, &context);
    }
}

fn assert_withdrawn_by(attribute: &str, what: What, source: &str, context: &UpdateContext) {
    let judged = judge_one(attribute, context);
    let code = hex(attribute)[1];
    assert_eq!(judged.faults, [(code, what)], "{attribute}");
    assert_eq!(judged.verdict, Verdict::TreatAsWithdraw, "{attribute}");
    let fault = Fault {
        code,
        what,
        octets: &[],
    };
    assert_eq!(fault.source(), source, "{attribute}");
}

fn assert_discarded(attribute: &str, what: What, source: &str, context: &UpdateContext) {
    let judged = judge_one(attribute, context);
    let code = hex(attribute)[1];
    assert_eq!(judged.faults, [(code, what)], "{attribute}");
    assert_eq!(judged.verdict, Verdict::Accept, "{attribute}");
    assert_eq!(attr::find(&judged.attributes, code), None, "{attribute}");
    let fault = Fault {
        code,
        what,
        octets: &[],
    };
    assert_eq!(fault.source(), source, "{attribute}");
}

fn assert_kept(attribute: &str, context: &UpdateContext) {
    let judged = judge_one(attribute, context);
    assert_eq!(judged.faults, [], "{attribute}");
    let octets = hex(attribute);
    let kept = attr::find(&judged.attributes, octets[1]).map(|attribute| attribute.octets);
    assert_eq!(kept, Some(&octets[..]), "{attribute}");
}

/// Checks that a message resets the session.
fn assert_reset(body: &[u8], context: &UpdateContext, subcode: u8, data: &[u8]) {
    assert_eq!(
        judge(body, context),
        Err(Notification::with_data(3, subcode, data))
    );
}

#[test]
fn s2_routes_treated_as_withdrawn_are_withdrawn_with_the_others() {
    let attributes = [
        MP_REACH,
        ORIGIN,
        AS_PATH,
        NEXT_HOP,
        MP_UNREACH,
        "c0 08 03 000000",
    ];
    let octets = body("08 0a", &attributes, NLRI);
    let update = Update::read(&octets, &external()).unwrap();
    assert!(update.announced().is_empty());
    let withdrawn: Vec<String> = update.withdrawn().map(|n| n.prefix.to_string()).collect();
    assert_eq!(
        withdrawn,
        [
            "10.0.0.0/8",
            "2001:db9::/32",
            "203.0.113.0/24",
            "2001:db8::/32"
        ]
    );
}

#[test]
fn s3b_lengths_that_exceed_the_message_reset_the_session() {
    for text in [
        "",
        "00",
        "0000",
        "0000 00",
        "0001 0000",
        "0000 0001",
        "0002 00 0000",
    ] {
        assert_reset(&hex(text), &external(), 1, &[]);
    }
}

#[test]
fn s3c_conflicting_flags_withdraw() {
    let source = "RFC 7606, section 3 (c)";
    for attribute in [
        "c0 01 01 00",
        "00 01 01 00",
        "80 02 06 02 01 0000fbf0",
        "80 03 04 c0000201",
        "c0 04 04 00000001",
        "40 04 04 00000001",
        "80 05 04 00000064",
        "80 06 00",
        "40 07 08 0000fbf0 c0000201",
        "40 08 04 fbf0000e",
        "c0 09 04 c0000201",
        "40 0a 04 c0000201",
        "80 10 08 0002fbf00000000e",
        "80 19 14 0002fbf00000000e00000000000000000000000e",
        "80 20 0c 0000fbf0 00000001 00000002",
        "80 23 04 0000fbf0",
    ] {
        assert_withdrawn(attribute, What::Flags, source);
    }
}

#[test]
fn s3c_other_flags_do_not_conflict() {
    // Partial and Extended Length. See also `flags_that_must_be_zero_are_cleared`.
    assert_kept("50 01 0001 00", &external());
    assert_kept("e0 08 04 fbf0000e", &external());
    for attribute in ["6f 01 01 00", "5f 01 0001 00"] {
        let judged = judge_one(attribute, &external());
        assert_eq!((judged.verdict, judged.faults), (Verdict::Accept, vec![]));
    }
}

#[test]
fn s3d_a_missing_mandatory_attribute_withdraws() {
    let all = [ORIGIN, AS_PATH, NEXT_HOP, LOCAL_PREF];
    for (index, code) in [
        code::ORIGIN,
        code::AS_PATH,
        code::NEXT_HOP,
        code::LOCAL_PREF,
    ]
    .into_iter()
    .enumerate()
    {
        let mut attributes = all.to_vec();
        attributes.remove(index);
        let judged = judge(&body("", &attributes, NLRI), &internal()).unwrap();
        assert_eq!(judged.faults, [(code, What::Missing)]);
        assert_eq!(judged.verdict, Verdict::TreatAsWithdraw);
    }
    let judged = judge(&body("", &[], NLRI), &external()).unwrap();
    assert_eq!(judged.faults.len(), 3);
    // RFC 4760, section 3: MP_REACH_NLRI needs no NEXT_HOP, but still ORIGIN and AS_PATH.
    let judged = judge(&body("", &[MP_REACH, ORIGIN, AS_PATH], ""), &external()).unwrap();
    assert_eq!(judged.faults, []);
    let judged = judge(&body("", &[MP_REACH], ""), &external()).unwrap();
    assert_eq!(
        judged.faults,
        [
            (code::ORIGIN, What::Missing),
            (code::AS_PATH, What::Missing)
        ]
    );
    assert_eq!(judged.verdict, Verdict::TreatAsWithdraw);
}

#[test]
fn s3d_routes_that_are_withdrawn_need_no_attributes() {
    let judged = judge(&body("18 cb0071", &[MP_UNREACH], ""), &internal()).unwrap();
    assert_eq!(judged.faults, []);
    assert!(judged.attributes.is_empty());
}

#[test]
fn s3e_a_next_hop_that_is_no_host_withdraws() {
    let source = "RFC 7606, section 3 (e)";
    for address in ["00000000", "e0000001", "f0000001", "ffffffff"] {
        let attribute = format!("40 03 04 {address}");
        assert_withdrawn(&attribute, What::NextHop, source);
    }
    assert_kept("40 03 04 7f000001", &external());
    for address in ["0000000000000000", "ff02000000000000"] {
        let reach = format!("80 0e 1a 0002 01 10 {address} 0000000000000000 00 20 20010db8");
        let judged = judge(&body("", &[&reach, ORIGIN, AS_PATH], ""), &external()).unwrap();
        assert_eq!(judged.faults, [(code::MP_REACH, What::NextHop)]);
        assert_eq!(judged.verdict, Verdict::TreatAsWithdraw);
    }
}

#[test]
fn s3f_what_is_wrong_with_an_aggregate_is_discarded() {
    let context = external();
    let length = What::Length;
    assert_discarded("40 06 01 00", length, "RFC 7606, section 7.6", &context);
    assert_discarded("c0 07 00", length, "RFC 7606, section 7.7", &context);
}

#[test]
fn s3g_a_second_multiprotocol_attribute_resets_the_session() {
    for twice in [MP_REACH, MP_UNREACH] {
        let octets = body("", &[twice, ORIGIN, AS_PATH, twice], "");
        assert_reset(&octets, &external(), 1, &[]);
    }
}

#[test]
fn s3g_of_other_attributes_the_first_counts() {
    // Known ones, ones that are malformed the second time, and unknown ones.
    for (first, second) in [
        ("c0 08 04 fbf0000e", "c0 08 04 fbf0000f"),
        ("c0 08 04 fbf0000e", "c0 08 01 00"),
        ("c0 63 01 01", "c0 63 01 02"),
    ] {
        let attributes = [ORIGIN, AS_PATH, first, NEXT_HOP, second];
        let judged = judge(&body("", &attributes, NLRI), &external()).unwrap();
        assert_eq!(judged.faults, [(hex(first)[1], What::Repeated)]);
        assert_eq!(judged.verdict, Verdict::Accept);
        assert_eq!(judged.attributes, hex(&attributes[..4].concat()));
    }
    // One copy does not suffice for an attribute that is discarded anyway.
    let attributes = [ORIGIN, AS_PATH, NEXT_HOP, LOCAL_PREF, LOCAL_PREF];
    let judged = judge(&body("", &attributes, NLRI), &external()).unwrap();
    assert_eq!(judged.attributes, hex(&attributes[..3].concat()));
}

#[test]
fn s3h_the_strongest_treatment_is_done() {
    let attributes = [ORIGIN, AS_PATH, NEXT_HOP, "40 06 01 00", "80 04 01 00"];
    let judged = judge(&body("", &attributes, NLRI), &external()).unwrap();
    assert_eq!(
        judged.faults,
        [
            (code::ATOMIC_AGGREGATE, What::Length),
            (code::MED, What::Length)
        ]
    );
    assert_eq!(judged.verdict, Verdict::TreatAsWithdraw);
    // A reset outranks both, wherever it occurs.
    let attributes = ["80 04 01 00", MP_REACH, MP_REACH];
    assert_reset(&body("", &attributes, ""), &external(), 1, &[]);
}

#[test]
fn s3i_withdrawn_routes_are_checked_like_announced_ones() {
    for routes in ["21 00000000 00", "18 cb00", "18", "00 09 0a"] {
        assert_reset(&body(routes, &[], ""), &external(), 10, &[]);
    }
}

#[test]
fn s4_an_attribute_that_reaches_past_the_list_withdraws() {
    for cut in ["c0 08 05 fbf0000e", "d0 08 0005 fbf0000e", "80 04 ff"] {
        let octets = body("", &[ORIGIN, AS_PATH, NEXT_HOP, cut], NLRI);
        let judged = judge(&octets, &external()).unwrap();
        assert_eq!(judged.faults, [(0, What::PastEnd)]);
        assert_eq!(judged.verdict, Verdict::TreatAsWithdraw);
        // The total length is trusted.
        let update = Update::read(&octets, &external()).unwrap();
        assert_eq!(update.faults()[0].octets, hex(cut));
        let withdrawn: Vec<String> = update.withdrawn().map(|n| n.prefix.to_string()).collect();
        assert_eq!(withdrawn, ["203.0.113.0/24"]);
    }
}

#[test]
fn s4_too_little_for_an_attribute_withdraws() {
    for cut in ["c0", "c0 08", "d0 08 00"] {
        let octets = body("", &[ORIGIN, AS_PATH, NEXT_HOP, cut], NLRI);
        let judged = judge(&octets, &external()).unwrap();
        assert_eq!(judged.faults, [(0, What::PastEnd)]);
        assert_eq!(judged.verdict, Verdict::TreatAsWithdraw);
    }
}

#[test]
fn s4_a_length_of_zero_is_for_as_path_and_atomic_aggregate_only() {
    assert_kept("40 06 00", &external());
    assert_kept("40 02 00", &internal());
    for (attribute, source) in [
        ("40 01 00", "RFC 7606, section 7.1"),
        ("40 03 00", "RFC 7606, section 7.3"),
        ("80 04 00", "RFC 7606, section 7.4"),
        ("c0 08 00", "RFC 7606, section 7.8"),
        ("c0 10 00", "RFC 7606, section 7.14"),
        ("c0 19 00", "RFC 7606, section 7.15"),
        ("c0 20 00", "RFC 8092, section 6"),
        ("c0 23 00", "RFC 9234, section 5"),
    ] {
        assert_withdrawn(attribute, What::Length, source);
    }
}

#[test]
fn s51_multiprotocol_attributes_may_stand_anywhere() {
    let attributes = [ORIGIN, MP_UNREACH, AS_PATH, MP_REACH, "80 04 04 00000001"];
    let octets = body("", &attributes, "");
    let update = Update::read(&octets, &external()).unwrap();
    let routes =
        |routes: Nlris<'_>| -> Vec<String> { routes.map(|n| n.prefix.to_string()).collect() };
    assert_eq!(routes(update.announced()), ["2001:db8::/32"]);
    assert_eq!(routes(update.withdrawn()), ["2001:db9::/32"]);
    let expected = hex(&[ORIGIN, AS_PATH, "80 04 04 00000001"].concat());
    assert_eq!(update.attributes(), expected);
}

#[test]
fn s51_routes_of_both_families_may_stand_in_one_message() {
    let attributes = [ORIGIN, AS_PATH, NEXT_HOP, MP_REACH, MP_UNREACH];
    let octets = body("08 0a", &attributes, NLRI);
    let update = Update::read(&octets, &external()).unwrap();
    let count = update.announced().count() + update.withdrawn().count();
    assert_eq!(count, 4);
    assert_eq!(update.faults(), []);
    let v4 = NextHop::V4([192, 0, 2, 1].into());
    assert_eq!(update.next_hop(FamilyId::Ipv4Unicast), Some(v4));
    let v6 = NextHop::V6("2001:db8::1".parse().unwrap(), None);
    assert_eq!(update.next_hop(FamilyId::Ipv6Unicast), Some(v6));
    // RFC 4760, section 3: without IPv4 routes the NEXT_HOP is ignored, whatever its value.
    for next_hop in [NEXT_HOP, "40 03 04 00000000", "40 03 01 00"] {
        let octets = body("", &[ORIGIN, AS_PATH, next_hop, MP_REACH], "");
        let judged = judge(&octets, &external()).unwrap();
        assert_eq!(judged.faults, []);
        assert_eq!(judged.attributes, hex(&[ORIGIN, AS_PATH].concat()));
    }
}

#[test]
fn s51_ipv4_routes_may_be_in_the_multiprotocol_attributes() {
    let reach = "80 0e 0d 0001 01 04 c0000201 00 18 cb0071";
    let expected = hex(&[ORIGIN, AS_PATH, NEXT_HOP, "80 04 04 00000001"].concat());
    for attributes in [
        [reach, ORIGIN, AS_PATH, "80 04 04 00000001"],
        [ORIGIN, AS_PATH, "80 04 04 00000001", reach],
    ] {
        let octets = body("", &attributes, "");
        let update = Update::read(&octets, &external()).unwrap();
        assert_eq!(update.announced().count(), 1);
        assert_eq!(update.attributes(), expected);
    }
    // If both fields carry IPv4 routes, their next hops must be equal.
    let judge = |next_hop: &str| {
        let octets = body("", &[reach, ORIGIN, AS_PATH, next_hop], "08 0a");
        judge(&octets, &external()).unwrap()
    };
    assert_eq!(judge(NEXT_HOP).faults, []);
    let other = judge("40 03 04 c0000202");
    assert_eq!(other.faults, [(code::NEXT_HOP, What::TwoNextHops)]);
    assert_eq!(other.verdict, Verdict::TreatAsWithdraw);
}

#[test]
fn s52_without_a_route_an_error_resets_the_session() {
    for (attribute, subcode) in [
        ("c0 01 01 00", 4),
        ("40 01 02 0000", 5),
        ("40 01 01 03", 6),
        ("40 02 01 02", 11),
        ("40 02 06 02 01 00000000", 11),
        ("40 03 04 00000000", 8),
        ("c0 08 01 00", 5),
    ] {
        let octets = hex(attribute);
        assert_reset(&body("", &[attribute], ""), &external(), subcode, &octets);
        // Withdrawn routes do not change that.
        let withdrawing = body("08 0a", &[MP_UNREACH, attribute], "");
        assert_reset(&withdrawing, &external(), subcode, &octets);
    }
    assert_reset(&body("", &[ORIGIN, "c0"], ""), &external(), 1, &[0xc0]);
    // An MP_REACH_NLRI without routes does not count.
    let reach = "80 0e 15 0002 01 10 20010db8000000000000000000000001 00";
    let octets = body("", &[reach, "40 01 01 03"], "");
    assert_reset(&octets, &external(), 6, &hex("40 01 01 03"));
}

#[test]
fn s52_without_a_route_a_discarded_attribute_does_not() {
    let judged = judge(&body("", &[ORIGIN, "40 06 01 00"], ""), &external()).unwrap();
    assert_eq!(judged.faults, [(code::ATOMIC_AGGREGATE, What::Length)]);
    // RFC 4271, section 6.3: attributes without routes are valid.
    let judged = judge(&body("", &[ORIGIN, AS_PATH], ""), &external()).unwrap();
    assert_eq!(judged.faults, []);
}

#[test]
fn s53_announced_routes_that_are_malformed_reset_the_session() {
    for routes in ["21 00000000 00", "ff", "18 cb00", "00 20 0a0000"] {
        let octets = body("", &[ORIGIN, AS_PATH, NEXT_HOP], routes);
        assert_reset(&octets, &external(), 10, &[]);
    }
    let with_ids = UpdateContext {
        add_path: [true, false],
        ..external()
    };
    let octets = body("", &[ORIGIN, AS_PATH, NEXT_HOP], "00000001 18 cb0071 0000");
    assert_reset(&octets, &with_ids, 10, &[]);
}

#[test]
fn s53_multiprotocol_routes_that_are_malformed_reset_the_session() {
    let next_hop = "20010db8000000000000000000000001";
    for reach in [
        // A prefix of 129 bits, a truncated one, an IPv4 prefix of 33 bits.
        format!("80 0e 16 0002 01 10 {next_hop} 00 81"),
        format!("80 0e 18 0002 01 10 {next_hop} 00 20 2001"),
        "80 0e 0e 0001 01 04 c0000201 00 21 00000000".to_owned(),
        // Flags.
        format!("c0 0e 1a 0002 01 10 {next_hop} 00 20 20010db8"),
        format!("40 0e 1a 0002 01 10 {next_hop} 00 20 20010db8"),
        // Lengths.
        "80 0e 00".to_owned(),
        "80 0e 04 0002 01 00".to_owned(),
    ] {
        let octets = body("", &[&reach, ORIGIN, AS_PATH], "");
        assert_reset(&octets, &external(), 9, &hex(&reach));
    }
    for unreach in [
        "80 0f 05 0002 01 81 00",
        "80 0f 06 0002 01 20 2001",
        "80 0f 08 0001 01 21 00000000",
        "c0 0f 08 0002 01 20 20010db9",
        "40 0f 08 0002 01 20 20010db9",
        "80 0f 00",
        "80 0f 02 0002",
    ] {
        let octets = body("", &[unreach], "");
        assert_reset(&octets, &external(), 9, &hex(unreach));
    }
}

#[test]
fn s53_bits_behind_a_prefix_do_not_matter() {
    let octets = body("", &[ORIGIN, AS_PATH, NEXT_HOP], "0f 0aff 01 ff");
    let update = Update::read(&octets, &external()).unwrap();
    let routes: Vec<String> = update.announced().map(|n| n.prefix.to_string()).collect();
    assert_eq!(routes, ["10.254.0.0/15", "128.0.0.0/1"]);
}

#[test]
fn s6_a_fault_says_what_where_and_with_which_octets() {
    let octets = body("", &[ORIGIN, AS_PATH, NEXT_HOP, "c0 08 03 fbf000"], NLRI);
    let update = Update::read(&octets, &external()).unwrap();
    let [fault] = update.faults() else {
        panic!("one fault");
    };
    assert_eq!(fault.octets, hex("c0 08 03 fbf000"));
    assert_eq!(
        fault.to_string(),
        "attribute 8 (COMMUNITIES): a length that it cannot have (RFC 7606, section 7.8: treat-as-withdraw)"
    );
}

#[test]
fn faults_beyond_those_that_are_kept_are_counted() {
    let many = "c0 63 01 01".repeat(40);
    let octets = body("", &[ORIGIN, AS_PATH, NEXT_HOP, &many, "80 04 00"], NLRI);
    let update = Update::read(&octets, &external()).unwrap();
    assert_eq!(update.fault_count(), 40);
    assert_eq!(update.faults().len(), FAULTS_MAX);
    let last = update.faults().last().unwrap();
    assert_eq!((last.code, last.what), (code::MED, What::Length));
    assert_eq!(update.verdict(), Verdict::TreatAsWithdraw);
}
