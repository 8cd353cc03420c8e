//! Section 7, and the attributes that other RFCs handle in its way.

use super::*;

#[test]
fn s71_origin() {
    let source = "RFC 7606, section 7.1";
    for (attribute, what) in [
        ("40 01 00", What::Length),
        ("40 01 02 0000", What::Length),
        ("40 01 01 03", What::Origin),
        ("40 01 01 ff", What::Origin),
    ] {
        assert_withdrawn(attribute, what, source);
    }
    for attribute in ["40 01 01 00", "40 01 01 01", "40 01 01 02"] {
        assert_kept(attribute, &external());
    }
}

#[test]
fn s72_as_path() {
    let source = "RFC 7606, section 7.2";
    for (attribute, what) in [
        ("40 02 06 05 01 0000fbf0", What::SegmentKind),
        ("40 02 06 00 01 0000fbf0", What::SegmentKind),
        ("40 02 06 02 02 0000fbf0", What::SegmentPastEnd),
        ("40 02 04 02 01 fbf0", What::SegmentPastEnd),
        ("40 02 07 02 01 0000fbf0 02", What::SegmentCut),
        ("40 02 01 02", What::SegmentCut),
        ("40 02 02 02 00", What::SegmentEmpty),
        ("40 02 08 02 01 0000fbf0 01 00", What::SegmentEmpty),
    ] {
        assert_withdrawn(attribute, what, source);
    }
    assert_kept("40 02 0c 02 01 0000fbf0 01 01 0000fbff", &external());
    let narrow = UpdateContext {
        four_octet: false,
        ..external()
    };
    assert_withdrawn_by(
        "40 02 04 02 01 0000",
        What::ZeroAs,
        "RFC 7607, section 2",
        &narrow,
    );
    assert_withdrawn_by("40 02 05 02 01 fbf0 02", What::SegmentCut, source, &narrow);
}

#[test]
fn s72_a_path_that_does_not_begin_with_the_peer_withdraws_where_that_is_checked() {
    let checked = UpdateContext {
        first_as: Some(64_496),
        ..external()
    };
    assert_kept("40 02 0a 02 02 0000fbf0 0000fbff", &checked);
    let source = "RFC 7606, section 7.2";
    for path in [
        "40 02 06 02 01 0000fbff",
        "40 02 06 01 01 0000fbf0",
        "40 02 00",
    ] {
        assert_withdrawn_by(path, What::FirstAs, source, &checked);
        assert_kept(path, &external());
    }
    let narrow = UpdateContext {
        first_as: Some(65_536),
        four_octet: false,
        ..external()
    };
    assert_eq!(judge_one("40 02 04 02 01 5ba0", &narrow).faults, []);
}

#[test]
fn s73_next_hop() {
    for attribute in ["40 03 00", "40 03 03 c00002", "40 03 05 c000020100"] {
        assert_withdrawn(attribute, What::Length, "RFC 7606, section 7.3");
    }
    assert_kept(NEXT_HOP, &external());
}

#[test]
fn s74_multi_exit_disc() {
    for attribute in ["80 04 00", "80 04 03 000000", "80 04 05 0000000000"] {
        assert_withdrawn(attribute, What::Length, "RFC 7606, section 7.4");
    }
    assert_kept("80 04 04 00000001", &external());
}

#[test]
fn s75_local_pref() {
    let source = "RFC 7606, section 7.5";
    for attribute in [LOCAL_PREF, "40 05 00", "40 05 03 000000"] {
        assert_discarded(attribute, What::FromExternal, source, &external());
    }
    for attribute in ["40 05 00", "40 05 03 000000", "40 05 05 0000000000"] {
        assert_withdrawn_by(attribute, What::Length, source, &internal());
    }
    assert_kept(LOCAL_PREF, &internal());
}

#[test]
fn s76_atomic_aggregate() {
    for context in [external(), internal()] {
        let source = "RFC 7606, section 7.6";
        assert_discarded("40 06 01 00", What::Length, source, &context);
        assert_kept("40 06 00", &context);
    }
}

#[test]
fn s77_aggregator() {
    let source = "RFC 7606, section 7.7";
    for attribute in [
        "c0 07 00",
        "c0 07 06 fbf0 c0000201",
        "c0 07 09 0000fbf0 c000020100",
    ] {
        assert_discarded(attribute, What::Length, source, &external());
    }
    assert_kept("c0 07 08 0000fbf0 c0000201", &external());
    let narrow = UpdateContext {
        four_octet: false,
        peer: PeerKind::Internal,
        ..external()
    };
    let judge = |aggregator: &str| {
        let attributes = [ORIGIN, "40 02 00", NEXT_HOP, LOCAL_PREF, aggregator];
        judge(&body("", &attributes, NLRI), &narrow).unwrap()
    };
    let judged = judge("c0 07 08 0000fbf0 c0000201");
    assert_eq!(judged.faults, [(code::AGGREGATOR, What::Length)]);
    assert_eq!(attr::find(&judged.attributes, code::AGGREGATOR), None);
    let judged = judge("c0 07 06 fbf0 c0000201");
    assert_eq!(judged.faults, []);
    let aggregator = attr::aggregator(&judged.attributes);
    assert_eq!(aggregator, Some((64_496, [192, 0, 2, 1].into())));
}

#[test]
fn s78_communities() {
    for attribute in ["c0 08 00", "c0 08 03 000000", "c0 08 05 0000000000"] {
        assert_withdrawn(attribute, What::Length, "RFC 7606, section 7.8");
    }
    assert_kept("c0 08 08 fbf0000e ffffff01", &external());
}

#[test]
fn s79_originator_id() {
    let source = "RFC 7606, section 7.9";
    for attribute in ["80 09 04 c0000201", "80 09 00", "80 09 03 c00002"] {
        assert_discarded(attribute, What::FromExternal, source, &external());
    }
    for attribute in ["80 09 00", "80 09 03 c00002", "80 09 05 c000020100"] {
        assert_withdrawn_by(attribute, What::Length, source, &internal());
    }
    assert_kept("80 09 04 c0000201", &internal());
}

#[test]
fn s710_cluster_list() {
    let source = "RFC 7606, section 7.10";
    for attribute in ["80 0a 04 c0000201", "80 0a 00", "80 0a 03 c00002"] {
        assert_discarded(attribute, What::FromExternal, source, &external());
    }
    for attribute in ["80 0a 00", "80 0a 03 c00002", "80 0a 05 c000020100"] {
        assert_withdrawn_by(attribute, What::Length, source, &internal());
    }
    assert_kept("80 0a 08 c0000201 c0000202", &internal());
}

#[test]
fn s711_a_next_hop_of_another_length_than_expected_resets_the_session() {
    for (family, lengths) in [
        ("0002 01", vec![0, 4, 12, 24, 33, 48]),
        ("0001 01", vec![0, 16]),
    ] {
        for len in lengths {
            let next_hop = "20".repeat(len);
            let reach = format!("80 0e {:02x} {family} {len:02x} {next_hop} 00", 5 + len);
            let octets = body("", &[&reach, ORIGIN, AS_PATH], "");
            assert_reset(&octets, &external(), 9, &hex(&reach));
        }
    }
    // Longer than the attribute.
    let reach = "80 0e 09 0002 01 10 20010db8 00";
    let octets = body("", &[reach, ORIGIN, AS_PATH], "");
    assert_reset(&octets, &external(), 9, &hex(reach));
}

#[test]
fn s714_extended_communities() {
    for attribute in [
        "c0 10 00",
        "c0 10 04 00000000",
        "c0 10 09 000000000000000000",
    ] {
        assert_withdrawn(attribute, What::Length, "RFC 7606, section 7.14");
    }
    // No community type is an error.
    assert_kept("c0 10 10 0002fbf00000000e ffffffffffffffff", &external());
}

#[test]
fn s715_ipv6_extended_communities() {
    let source = "RFC 7606, section 7.15";
    for attribute in [
        "c0 19 00".to_owned(),
        format!("c0 19 15 {}", "00".repeat(21)),
    ] {
        assert_withdrawn(&attribute, What::Length, source);
    }
    let attribute = format!("c0 19 14 {}", "ff".repeat(20));
    assert_kept(&attribute, &external());
}

#[test]
fn s8_what_is_not_known_goes_by_its_flags() {
    // RFC 4271, section 5: transitive ones are kept, others dropped; types 24 and 128 are unknown here.
    assert_kept("c0 63 02 0102", &external());
    assert_kept("e0 80 00", &external());
    assert_kept("d0 63 0001 ff", &external());
    for attribute in ["80 63 02 0102", "80 18 01 00"] {
        let judged = judge_one(attribute, &external());
        assert_eq!(judged.faults, []);
        assert_eq!(
            judged.attributes,
            hex(&[ORIGIN, AS_PATH, NEXT_HOP].concat())
        );
    }
    // RFC 4271, section 6.3: an unknown well-known attribute is an error.
    for attribute in ["40 63 01 00", "00 63 01 00"] {
        let octets = body("", &[ORIGIN, AS_PATH, NEXT_HOP, attribute], NLRI);
        assert_reset(&octets, &external(), 2, &hex(attribute));
    }
}

#[test]
fn an_unknown_attribute_is_partial_when_we_pass_it_on() {
    // RFC 4271, section 5.
    let octets = hex("c0 63 01 07 c0 08 04 fbf0000e d0 64 0001 07");
    let mut out = Vec::new();
    for attribute in attr::iter(&octets) {
        attr::pass_on(&attribute, &mut out);
    }
    assert_eq!(out, hex("e0 63 01 07 c0 08 04 fbf0000e f0 64 0001 07"));
}

/// RFC 4271, section 4.3: the Partial bit of well-known and non-transitive attributes is zero, and so are the lower four
/// bits; a receiver ignores the latter.
#[test]
fn flags_that_must_be_zero_are_cleared() {
    for (received, kept) in [
        ("c0 08 04 fbf0000e", "c0 08 04 fbf0000e"),
        ("cf 08 04 fbf0000e", "c0 08 04 fbf0000e"),
        ("e1 08 04 fbf0000e", "e0 08 04 fbf0000e"),
        ("df 08 0004 fbf0000e", "d0 08 0004 fbf0000e"),
        ("a0 04 04 00000001", "80 04 04 00000001"),
        ("4f 06 00", "40 06 00"),
        ("60 06 00", "40 06 00"),
        ("c8 63 02 0102", "c0 63 02 0102"),
        ("e8 63 02 0102", "e0 63 02 0102"),
    ] {
        let judged = judge_one(received, &external());
        assert_eq!(judged.faults, [], "{received}");
        let all = [ORIGIN, AS_PATH, NEXT_HOP, kept].concat();
        assert_eq!(judged.attributes, hex(&all), "{received}");
    }
    for flags in 0x40..=0x6f {
        if flags & 0x10 == 0 {
            let origin = format!("{flags:02x}{}", &ORIGIN[2..]);
            let octets = body("", &[&origin, AS_PATH, NEXT_HOP], NLRI);
            let judged = judge(&octets, &external()).expect("the session stays");
            let all = [ORIGIN, AS_PATH, NEXT_HOP].concat();
            assert_eq!(judged.attributes, hex(&all), "{origin}");
        }
    }
}

#[test]
fn rfc7607_as_0() {
    let source = "RFC 7607, section 2";
    for path in [
        "40 02 06 02 01 00000000",
        "40 02 0e 02 03 0000fbf0 00000000 0000fbf0",
        "40 02 0c 02 01 0000fbf0 01 01 00000000",
    ] {
        assert_withdrawn(path, What::ZeroAs, source);
    }
    let aggregator = "c0 07 08 00000000 c0000201";
    assert_discarded(aggregator, What::ZeroAs, source, &external());
}

#[test]
fn rfc8092_large_communities() {
    for attribute in [
        "c0 20 00",
        "c0 20 04 00000000",
        "c0 20 0d 00000000000000000000000000",
    ] {
        assert_withdrawn(attribute, What::Length, "RFC 8092, section 6");
    }
    // Duplicates and reserved numbers are not errors.
    let twice = "00000000 00000001 00000002".repeat(2);
    assert_kept(&format!("c0 20 18 {twice}"), &external());
}

#[test]
fn rfc9234_only_to_customer() {
    for attribute in ["c0 23 00", "c0 23 02 fbf0", "c0 23 05 0000fbf000"] {
        assert_withdrawn(attribute, What::Length, "RFC 9234, section 5");
    }
    assert_kept("c0 23 04 0000fbf0", &external());
}

#[test]
fn rfc5065_confederations() {
    let source = "RFC 5065, section 5";
    let inside = "40 02 0c 03 01 0000fc00 02 01 0000fbf0";
    for path in [inside, "40 02 06 04 01 0000fc00"] {
        assert_withdrawn_by(path, What::Confederation, source, &external());
    }
    for path in [
        "40 02 00",
        "40 02 06 02 01 0000fbf0",
        "40 02 06 04 01 0000fc00",
    ] {
        assert_withdrawn_by(path, What::Confederation, source, &confederation());
    }
    assert_kept(inside, &confederation());
    assert_kept(inside, &internal());
}

#[test]
fn rfc6793_as4_attributes_from_a_peer_that_needs_none_are_discarded() {
    let source = "RFC 6793, section 6";
    for attribute in [
        "c0 11 06 02 01 00010000",
        "c0 11 00",
        "c0 12 08 00010000 c0000201",
    ] {
        assert_discarded(attribute, What::FromFourOctet, source, &external());
    }
}

#[test]
fn families_that_were_not_agreed_on_are_passed_over() {
    let only_v6 = UpdateContext {
        families: Families::NONE.with(FamilyId::Ipv6Unicast),
        ..external()
    };
    let octets = body("08 0a", &[ORIGIN, AS_PATH, NEXT_HOP, MP_REACH], NLRI);
    let update = Update::read(&octets, &only_v6).unwrap();
    assert_eq!(update.faults()[0].what, What::Family);
    assert_eq!(update.announced().count(), 1);
    assert!(update.withdrawn().is_empty());
    let only_v4 = UpdateContext {
        families: Families::IPV4,
        ..external()
    };
    let attributes = [ORIGIN, AS_PATH, NEXT_HOP, MP_REACH, MP_UNREACH];
    let octets = body("08 0a", &attributes, NLRI);
    let update = Update::read(&octets, &only_v4).unwrap();
    assert_eq!(update.fault_count(), 2);
    assert_eq!(update.verdict(), Verdict::Accept);
    assert_eq!(update.announced().count(), 1);
    assert_eq!(update.withdrawn().count(), 1);
    // For an unsupported family, only the part before its routes is read.
    let vpn = "80 0e 0d 0001 80 04 c0000201 00 ff ffffff";
    let octets = body("", &[vpn, ORIGIN, AS_PATH], "");
    let update = Update::read(&octets, &external()).unwrap();
    assert_eq!(update.faults()[0].what, What::Family);
    assert!(update.announced().is_empty());
    let vpn = "80 0f 05 0001 80 ff ff";
    let octets = body("", &[vpn], "");
    assert_eq!(Update::read(&octets, &external()).unwrap().fault_count(), 1);
}
