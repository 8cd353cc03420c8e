//! Cookies, pseudowire types, sublayers and counters of version 3: RFC 3931 4.1, 4.5, 4.6 and
//! 5.4.4.

use l2tp::{Call, Config, Discard, Event, Pseudowire, SessionEnd};
use wire::l2tp::{Attribute as A, MessageType as M};

use crate::common::{Body, Peer, Stage, counter, lac_config, lns_config, only, only_ack};

/// "The Cookie MUST be set to the configured or signaled random value for this session"; its
/// length is that of the AVP (RFC 3931 4.1, 5.4.4).
#[test]
fn b24_cookies_of_0_4_and_8_octets_are_assigned_and_taken() {
    for len in [0, 4, 8] {
        let config = Config {
            cookie_len: len,
            ..lac_config()
        };
        for theirs in [&[][..], &[1, 2, 3, 4], &[1, 2, 3, 4, 5, 6, 7, 8]] {
            let (mut stage, mut lns) = (Stage::new(config.clone()), Peer::v3());
            let tunnel = lns.answer(&mut stage);
            let session = stage.open_session(tunnel, Call::default());
            let request = only(&lns.hear(&mut stage), M::Icrq);
            let ours = request.get(A::AssignedCookie).unwrap_or_default();
            assert_eq!(ours.len(), usize::from(len));
            let remote = request.assigned_session();
            let reply = lns.reply(M::Icrp, 9, remote).avp(A::AssignedCookie, theirs);
            only(&lns.say(&mut stage, &reply), M::Iccn);
            let view = stage.endpoint().session(session).unwrap();
            assert_eq!(view.local_cookie.as_bytes(), ours);
            assert_eq!(view.remote_cookie.as_bytes(), theirs);
        }
    }
    let config = Config {
        cookie_len: 5,
        ..lac_config()
    };
    assert_eq!(config.validate().unwrap_err().key, "cookie_len");
}

/// "The Length (before hiding) of this AVP may be 6, 10, or 14 octets" (RFC 3931 5.4.4).
#[test]
fn b24_a_cookie_of_another_length_is_refused_with_a_code() {
    for len in [1, 3, 5, 7, 9, 16] {
        let (mut stage, mut lac) = (Stage::lns(), Peer::v3());
        lac.connect(&mut stage);
        let request = lac.icrq(5).avp(A::AssignedCookie, &vec![1; len]);
        let cdn = only(&lac.say(&mut stage, &request), M::Cdn);
        assert_eq!(cdn.codes(), (2, Some(2)), "{len} octets");
    }
}

/// "Any received data packets that contain invalid Session IDs or associated Cookie values
/// MUST be dropped" (RFC 3931 4.5), and are counted.
#[test]
fn b24_data_with_a_wrong_cookie_or_session_is_dropped_and_counted() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v3());
    lac.connect(&mut stage);
    let remote = lac.call(&mut stage, 5);
    let session = stage.session();
    let cookie = stage.endpoint().session(session).unwrap().local_cookie;
    assert_eq!(cookie.as_bytes().len(), 8);
    let data = |session: u32, cookie: &[u8]| {
        [
            &[0, 3, 0, 0],
            &session.to_be_bytes()[..],
            cookie,
            b"\xff\x03",
        ]
        .concat()
    };
    stage.send(&data(remote, cookie.as_bytes()));
    assert_eq!(stage.counter("data_not_forwarded"), 1);
    let mut other = cookie.as_bytes().to_vec();
    other[7] ^= 1;
    let bad = [
        data(remote, &other),
        data(remote, &cookie.as_bytes()[..4]),
        data(remote, &[]),
        data(remote ^ 1, cookie.as_bytes()),
        data(5, cookie.as_bytes()),
        data(0, cookie.as_bytes()),
    ];
    for packet in &bad {
        stage.send(packet);
    }
    assert_eq!(stage.discarded(Discard::UnknownSession), bad.len() as u64);
    assert!(stage.hear().is_empty());
    // A cookie does not print.
    assert_eq!(format!("{cookie:?}"), "Cookie(8 octets)");
}

/// "Attempts to do so MUST result in the call being rejected via a CDN with the Result Code
/// set to 14" (RFC 3931 5.4.4).
#[test]
fn b24_a_pseudowire_type_that_is_not_offered_gets_cdn_14() {
    let config = Config {
        pseudowires: vec![Pseudowire::Ppp, Pseudowire::Ethernet],
        ..lns_config()
    };
    let (mut stage, mut lac) = (Stage::new(config), Peer::v3());
    let request = lac.sccrq();
    let reply = only(&lac.say(&mut stage, &request), M::Sccrp);
    let list = reply.get(A::PseudowireCapabilitiesList).unwrap();
    assert_eq!(list, [0, 7, 0, 5]);
    lac.take_sccrp(&reply);
    only_ack(&lac.say(&mut stage, &Body::new(M::Scccn)));
    for (number, offered) in [
        (4, false),
        (5, true),
        (7, true),
        (6, false),
        (0xffff, false),
    ] {
        let request = lac
            .icrq(u32::from(number))
            .without(A::PseudowireType)
            .u16(A::PseudowireType, number);
        let got = lac.say(&mut stage, &request);
        lac.ack(&mut stage);
        if offered {
            only(&got, M::Icrp);
            continue;
        }
        assert_eq!(only(&got, M::Cdn).codes(), (14, None));
        assert_eq!(
            stage.session_end(),
            SessionEnd::UnsupportedPseudowire(number)
        );
    }
    let types: Vec<u16> = (0..2).map(|n| nth_pseudowire(&stage, n)).collect();
    assert!(types.contains(&5) && types.contains(&7));
}

fn nth_pseudowire(stage: &Stage, n: usize) -> u16 {
    let mut cursor = 0;
    let mut rows = core::iter::from_fn(|| {
        let (next, view) = stage.endpoint().next_session(cursor)?;
        cursor = next;
        Some(view.pseudowire)
    });
    rows.nth(n).expect("a session")
}

/// "A peer MUST NOT request an incoming or outgoing call with a PW Type AVP specifying a
/// value not advertised in the PW Capabilities List AVP it received" (RFC 3931 5.4.4).
#[test]
fn b24_we_do_not_ask_for_a_pseudowire_that_the_peer_does_not_offer() {
    let lists: [(&[u8], [bool; 3]); 4] = [
        (&[0, 4, 0, 5, 0, 7], [true, true, true]),
        (&[0, 7], [false, false, true]),
        (&[0, 5, 0x11, 0x22], [false, true, false]),
        (&[], [false, false, false]),
    ];
    for (list, offered) in lists {
        let (mut stage, mut lns) = (Stage::lac(), Peer::v3());
        let mut reply = lns.sccrp().without(A::PseudowireCapabilitiesList);
        if !list.is_empty() {
            reply = reply.avp(A::PseudowireCapabilitiesList, list);
        }
        let tunnel = lns.answer_with(&mut stage, &reply);
        let kinds = [Pseudowire::Vlan, Pseudowire::Ethernet, Pseudowire::Ppp];
        for (pseudowire, offered) in kinds.into_iter().zip(offered) {
            let call = Call {
                pseudowire,
                ..Call::default()
            };
            stage.events();
            stage.open_session(tunnel, call);
            let got = lns.hear(&mut stage);
            lns.ack(&mut stage);
            if offered {
                let request = only(&got, M::Icrq);
                assert_eq!(request.u16(A::PseudowireType), pseudowire.number());
                continue;
            }
            assert!(got.is_empty());
            let number = pseudowire.number();
            let reason = SessionEnd::UnsupportedPseudowire(number);
            assert_eq!(stage.session_end(), reason);
            assert!(matches!(stage.events()[..], [Event::SessionDown { .. }]));
        }
    }
}

/// "If sequencing is requested without requesting a L2-Specific Sublayer AVP, the session
/// MUST be disconnected with a Result Code of 15" (RFC 3931 5.4.4).
#[test]
fn b24_sequencing_without_a_sublayer_gets_cdn_15() {
    for level in [1, 2] {
        let (mut stage, mut lac) = (Stage::lns(), Peer::v3());
        lac.connect(&mut stage);
        for sublayer in [None, Some(0)] {
            let mut request = lac.icrq(5).u16(A::DataSequencing, level);
            if let Some(sublayer) = sublayer {
                request = request.u16(A::L2SpecificSublayer, sublayer);
            }
            let cdn = only(&lac.say(&mut stage, &request), M::Cdn);
            assert_eq!(cdn.codes(), (15, None));
            assert_eq!(stage.session_end(), SessionEnd::NoSublayer);
            lac.ack(&mut stage);
        }
        // In the ICCN, the sublayer requested in the ICRQ still applies.
        let request = lac.icrq(6).u16(A::L2SpecificSublayer, 1);
        let remote = only(&lac.say(&mut stage, &request), M::Icrp).assigned_session();
        let connected = lac
            .connected(M::Iccn, 6, remote)
            .u16(A::DataSequencing, level);
        only_ack(&lac.say(&mut stage, &connected));
        let session = stage.session();
        let view = stage.endpoint().session(session).unwrap();
        assert!(view.sublayer && view.sequencing);
    }
}

/// Values that RFC 3931 5.4.4 does not define.
#[test]
fn b24_an_unknown_sublayer_or_sequencing_level_gets_cdn_2_3() {
    let changes: [fn(Body) -> Body; 2] = [
        |body| body.u16(A::L2SpecificSublayer, 2),
        |body| body.u16(A::L2SpecificSublayer, 1).u16(A::DataSequencing, 3),
    ];
    for change in changes {
        let (mut stage, mut lac) = (Stage::lns(), Peer::v3());
        lac.connect(&mut stage);
        let request = change(lac.icrq(5));
        let cdn = only(&lac.say(&mut stage, &request), M::Cdn);
        assert_eq!(cdn.codes(), (2, Some(3)));
    }
}

/// The mandatory AVPs of a version 3 ICRQ (RFC 3931 6.6), and sequencing when it is requested.
#[test]
fn b24_our_icrq_has_the_avps_it_must_have() {
    let (mut stage, mut lns) = (Stage::lac(), Peer::v3());
    let tunnel = lns.answer(&mut stage);
    let call = Call {
        sequencing: true,
        pseudowire: Pseudowire::Vlan,
        ..Call::default()
    };
    stage.open_session(tunnel, call);
    let request = only(&lns.hear(&mut stage), M::Icrq);
    assert_ne!(request.u32(A::LocalSessionId), 0);
    assert_eq!(request.u32(A::RemoteSessionId), 0);
    assert_ne!(request.u32(A::CallSerialNumber), 0);
    assert_eq!(request.u16(A::PseudowireType), 4);
    assert!(!request.get(A::RemoteEndId).unwrap().is_empty());
    // New and active (5.4.5).
    assert_eq!(request.u16(A::CircuitStatus), 3);
    assert_eq!(request.u16(A::L2SpecificSublayer), 1);
    assert_eq!(request.u16(A::DataSequencing), 2);
}

/// The counters match the exchange, each message counted once.
#[test]
fn b24_the_counters_match_what_was_said() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v3());
    lac.connect(&mut stage);
    let remote = lac.call(&mut stage, 5);
    let call = lac.packet(0, &lac.clone().icrq(6));
    stage.send(&call);
    stage.send(&call);
    stage.run_secs(1);
    lac.hear(&mut stage);
    lac.ack(&mut stage);
    let cdn = lac.cdn(5, remote, 1);
    only_ack(&lac.say(&mut stage, &cdn));
    for _ in 0..3 {
        only_ack(&lac.say(&mut stage, &Body::new(M::Hello)));
    }
    let stop = lac.stop_ccn(1);
    only_ack(&lac.say(&mut stage, &stop));
    let expected = [
        ("received_sccrq", 1),
        ("received_scccn", 1),
        ("received_icrq", 2),
        ("received_iccn", 1),
        ("received_cdn", 1),
        ("received_hello", 3),
        ("received_stopccn", 1),
        ("received_other", 0),
        ("sent_sccrp", 1),
        ("sent_icrp", 2),
        ("sent_stopccn", 0),
        ("zlb_received", 1),
        // SCCCN, ICCN, the second ICRQ, CDN, three HELLOs, StopCCN.
        ("zlb_sent", 8),
        ("retransmissions", 1),
        ("duplicates", 1),
        ("tunnels_opened", 1),
        ("tunnels_established", 1),
        ("tunnels_ended", 1),
        ("sessions_established", 1),
        ("sessions_ended", 2),
    ];
    for (name, value) in expected {
        assert_eq!(stage.counter(name), value, "{name}");
    }
    let discards: u64 = Discard::ALL.iter().map(|&why| stage.discarded(why)).sum();
    assert_eq!(discards, 0);
    for why in Discard::ALL {
        assert_eq!(counter(stage.endpoint(), why.name()), 0);
    }
}

/// Frames of other types would reach nobody, so that their calls are refused from both ends.
#[test]
fn b24_by_default_only_ppp_is_offered_taken_and_asked_for() {
    let config = Config {
        accept: true,
        ..Config::default()
    };
    let (mut stage, mut lac) = (Stage::new(config), Peer::v3());
    let request = lac.sccrq();
    let reply = only(&lac.say(&mut stage, &request), M::Sccrp);
    assert_eq!(reply.get(A::PseudowireCapabilitiesList).unwrap(), [0, 7]);
    lac.take_sccrp(&reply);
    only_ack(&lac.say(&mut stage, &Body::new(M::Scccn)));
    for number in [4, 5] {
        let request = lac
            .icrq(5)
            .without(A::PseudowireType)
            .u16(A::PseudowireType, number);
        let cdn = only(&lac.say(&mut stage, &request), M::Cdn);
        assert_eq!(cdn.codes(), (14, None));
        lac.ack(&mut stage);
    }
    let (mut stage, mut lns) = (Stage::new(Config::default()), Peer::v3());
    let tunnel = lns.answer(&mut stage);
    for pseudowire in [Pseudowire::Vlan, Pseudowire::Ethernet] {
        let call = Call {
            pseudowire,
            ..Call::default()
        };
        let refused = stage.with(|lac, now| lac.open_session(tunnel, call, now));
        assert_eq!(refused, Err(l2tp::OpenError::NotCarried(pseudowire)));
    }
}
