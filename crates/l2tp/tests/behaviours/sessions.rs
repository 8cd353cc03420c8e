//! Calls: RFC 2661 5.2, 6.6 to 6.14 and 7.4 to 7.5, in both roles of both
//! directions, and what ends them.

use base::{Duration, Redacted};
use l2tp::{
    Call, CallDetails, CallErrors, Config, Direction, Event, Limits, OutgoingCalls, Proxy,
    Pseudowire, SessionEnd, SessionState, TunnelEnd,
};
use wire::l2tp::{Attribute as A, MessageType as M, Version};

use crate::common::{Body, Peer, Stage, kinds, lac_config, lns_config, only, only_ack};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

fn outgoing() -> Call {
    Call {
        direction: Direction::Outgoing,
        details: CallDetails {
            called_number: Box::from(&b"5551234"[..]),
            ..CallDetails::default()
        },
        ..Call::default()
    }
}

/// RFC 2661 4.4.4: "permitting the peer to identify the appropriate tunnel even if CDN
/// is sent before an Assigned Session ID is received": the header has 0, the AVP our
/// own id.
#[test]
fn b21_our_cdn_before_the_peers_id_is_known_names_our_own() {
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        let tunnel = lns.answer(&mut stage);
        let session = stage.open_session(tunnel, Call::default());
        let request = only(&lns.hear(&mut stage), M::Icrq);
        stage.with(|lac, now| assert!(lac.close_session(session, now)));
        let cdn = only(&lns.hear(&mut stage), M::Cdn);
        assert_eq!(cdn.session, 0);
        assert_eq!(cdn.assigned_session(), request.assigned_session());
        if lns.version == Version::V3 {
            assert_eq!(cdn.u32(A::RemoteSessionId), 0);
        }
        assert_eq!(cdn.codes(), (3, None));
        assert_eq!(stage.session_end(), SessionEnd::Administrative);
        // The reply that crossed it finds no session: error 5, "the Session ID is
        // invalid in this context" (4.4.2).
        lns.ack(&mut stage);
        let reply = lns.reply(M::Icrp, 9, request.assigned_session());
        let got = lns.say_in(&mut stage, request.assigned_session() as u16, &reply);
        let cdn = only(&got, M::Cdn);
        assert_eq!(cdn.codes(), (2, Some(5)));
        assert_eq!(cdn.assigned_session(), request.assigned_session());
        assert_eq!(stage.counts().established, 1);
    }
}

/// The same from the peer: the session is found by the id that the peer gave it.
#[test]
fn b21_the_peers_cdn_before_it_knows_our_id_ends_the_right_session() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        for session in [5, 6, 7] {
            let request = lac.icrq(session);
            only(&lac.say(&mut stage, &request), M::Icrp);
            lac.ack(&mut stage);
        }
        let cdn = lac.cdn(6, 0, 3);
        only_ack(&lac.say(&mut stage, &cdn));
        assert_eq!(stage.counts().sessions, 2);
        let ended = stage.endpoint().ended_session(0).unwrap();
        assert_eq!(ended.remote_id, 6);
        let SessionEnd::Peer(notice) = &ended.reason else {
            panic!("{:?}", ended.reason);
        };
        assert_eq!((notice.result, notice.error), (3, None));
        // "Does not send back any indication of success or failure" (6.12), and a
        // CDN for what is gone is no harm.
        only_ack(&lac.say(&mut stage, &cdn));
        assert_eq!(stage.counts().sessions, 2);
        assert_eq!(stage.counter("session_strays"), 1);
    }
}

/// CDN 4: "lack of appropriate facilities being available (temporary condition)".
#[test]
fn b21_a_call_over_the_session_limit_gets_cdn_4() {
    let limited = [
        Limits {
            sessions: 2,
            ..Config::default().limits
        },
        Limits {
            sessions_per_tunnel: 2,
            ..Config::default().limits
        },
    ];
    for limits in limited {
        for peer in VERSIONS {
            let config = Config {
                limits,
                ..lns_config()
            };
            let (mut stage, mut lac) = (Stage::new(config), peer());
            lac.connect(&mut stage);
            lac.call(&mut stage, 5);
            let first = lac.call(&mut stage, 6);
            let request = lac.icrq(7);
            let cdn = only(&lac.say(&mut stage, &request), M::Cdn);
            assert_eq!(cdn.codes(), (4, None));
            match lac.version {
                Version::V2 => assert_eq!(cdn.session, 7),
                Version::V3 => assert_eq!(cdn.u32(A::RemoteSessionId), 7),
            }
            assert_ne!(cdn.assigned_session(), 0);
            assert_eq!(stage.session_end(), SessionEnd::NoFacilities);
            assert_eq!(stage.endpoint().ended_session(0).unwrap().remote_id, 7);
            assert_eq!(stage.counts().sessions, 2);
            // A call that goes makes room, and the tunnel is none the worse.
            let cdn = lac.cdn(6, first, 1);
            only_ack(&lac.say_in(&mut stage, first as u16, &cdn));
            lac.call(&mut stage, 7);
        }
    }
}

/// The LAC gives up while its ICRQ is under way twice: once processed, and once more
/// behind the CDN. No session may come of it.
#[test]
fn b21_a_cdn_that_races_a_retransmitted_icrq_leaves_no_session() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let request = lac.packet(0, &lac.clone().icrq(5));
        let cdn = lac.packet(0, &lac.clone().cdn(5, 0, 3));

        // In order, then the copy.
        stage.send(&request);
        stage.send(&cdn);
        stage.send(&request);
        assert_eq!(stage.counts().sessions, 0);
        let got = lac.hear(&mut stage);
        assert_eq!(kinds(&got), [Some(M::Icrp), None, None]);
        lac.ack(&mut stage);

        // The CDN first, which waits for the request before it.
        let request = lac.packet(0, &lac.clone().icrq(6));
        let cdn = lac.packet(0, &lac.clone().cdn(6, 0, 3));
        for packet in [&cdn, &request, &cdn, &request] {
            stage.send(packet);
        }
        assert_eq!(stage.counts().sessions, 0);
        assert_eq!(stage.counts().established, 1);
        lac.hear(&mut stage);
        lac.ack(&mut stage);
        lac.call(&mut stage, 5);
    }
}

/// RFC 2661 7.4.2: an ICRQ, ICRP or second ICCN for a session that is there is out of
/// order: CDN, and it is gone. The tunnel stays.
#[test]
fn b28_a_message_out_of_order_ends_the_session_with_a_cdn() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let wrong: [fn(&Peer, u32) -> Body; 4] = [
            |lac, _| lac.icrq(5),
            |lac, remote| lac.reply(M::Icrp, 5, remote),
            |lac, remote| lac.connected(M::Iccn, 5, remote),
            |lac, remote| lac.connected(M::Occn, 5, remote),
        ];
        for body in wrong {
            let remote = lac.call(&mut stage, 5);
            let body = body(&lac, remote);
            let header = if body.bytes[7] == 10 {
                0
            } else {
                remote as u16
            };
            let cdn = only(&lac.say_in(&mut stage, header, &body), M::Cdn);
            let expected = match lac.version {
                // RFC 2661 has no code for it; RFC 3931 5.4.2 has 16.
                Version::V2 => (2, Some(3)),
                Version::V3 => (16, None),
            };
            assert_eq!(cdn.codes(), expected);
            assert!(matches!(stage.session_end(), SessionEnd::StateMachine(_)));
            lac.ack(&mut stage);
        }
        assert_eq!(stage.counts().established, 1);
        assert_eq!(stage.counts().sessions, 0);
    }
}

/// RFC 2661 7.4.1: the LAC's wait-reply.
#[test]
fn b28_what_the_lac_waits_for_ends_as_the_table_has_it() {
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        let tunnel = lns.answer(&mut stage);
        // "wait-reply: Receive ICRP, not acceptable: Send CDN".
        stage.open_session(tunnel, Call::default());
        let remote = only(&lns.hear(&mut stage), M::Icrq).assigned_session();
        let reply = lns.reply(M::Icrp, 0, remote);
        let cdn = only(&lns.say_in(&mut stage, remote as u16, &reply), M::Cdn);
        assert_eq!(cdn.codes(), (2, Some(3)));
        lns.ack(&mut stage);
        // "wait-reply: Receive CDN, ICCN: Clean up", without a CDN.
        stage.open_session(tunnel, Call::default());
        let remote = only(&lns.hear(&mut stage), M::Icrq).assigned_session();
        let connected = lns.connected(M::Iccn, 9, remote);
        only_ack(&lns.say_in(&mut stage, remote as u16, &connected));
        assert_eq!(stage.counts().sessions, 0);
        // An id that another session of this tunnel has.
        lns.take_call(&mut stage, tunnel, Call::default(), 11);
        stage.open_session(tunnel, Call::default());
        let remote = only(&lns.hear(&mut stage), M::Icrq).assigned_session();
        let reply = lns.reply(M::Icrp, 11, remote);
        let cdn = only(&lns.say_in(&mut stage, remote as u16, &reply), M::Cdn);
        assert_eq!(cdn.codes(), (2, Some(3)));
        assert_eq!(stage.counts().sessions, 1);
    }
}

/// A call that nobody answers ends in time: RFC 2661's code 10, RFC 3931's 16.
#[test]
fn b28_a_call_that_is_not_established_in_time_ends_with_its_code() {
    for peer in VERSIONS {
        let config = Config {
            hello_interval: Duration::ZERO,
            ..lac_config()
        };
        let (mut stage, mut lns) = (Stage::new(config), peer());
        let tunnel = lns.answer(&mut stage);
        stage.open_session(tunnel, Call::default());
        only(&lns.hear(&mut stage), M::Icrq);
        lns.ack(&mut stage);
        stage.run_secs(59);
        assert!(stage.hear().is_empty());
        stage.run_secs(1);
        let expected = match lns.version {
            Version::V2 => (10, None),
            Version::V3 => (16, None),
        };
        assert_eq!(only(&lns.hear(&mut stage), M::Cdn).codes(), expected);
        assert_eq!(stage.session_end(), SessionEnd::SetupTimeout);
    }
}

/// A call opened before its tunnel is up waits for it, and ends with it.
#[test]
fn b28_calls_wait_for_their_tunnel_and_end_with_it() {
    let (mut stage, mut lns) = (Stage::lac(), Peer::v2());
    let tunnel = stage.open_tunnel(Version::V2);
    let session = stage.open_session(tunnel, Call::default());
    let view = stage.endpoint().session(session).unwrap();
    assert_eq!(view.state, SessionState::WaitTunnel);
    lns.take_sccrq(&mut stage);
    let stop = lns.stop_ccn(2);
    only_ack(&lns.say(&mut stage, &stop));
    assert_eq!(stage.session_end(), SessionEnd::TunnelEnded);
    assert_eq!(stage.counts().sessions, 0);
    assert!(stage.endpoint().session(session).is_none());
}

/// RFC 2661 6.6 to 6.8: what an incoming call says of itself arrives as it was given.
#[test]
fn b28_the_details_of_an_incoming_call_arrive_unchanged() {
    let details = CallDetails {
        serial: 0x0102_0304,
        called_number: Box::from(&b"0800"[..]),
        calling_number: Box::from(&b"0123456"[..]),
        sub_address: Box::from(&b"7"[..]),
        tx_speed_bps: 56_000,
        rx_speed_bps: 33_600,
        physical_channel: Some(0xdead_beef),
        private_group: Box::from(&b"customer"[..]),
        bearer_type: 2,
        framing_type: 3,
        proxy: Some(Box::new(Proxy {
            initial_received_confreq: Box::from(&[1, 4, 5, 0xdc][..]),
            last_sent_confreq: Box::from(&[3, 5, 0xc2, 0x23, 5][..]),
            last_received_confreq: Box::from(&[1, 4, 5, 0xd4][..]),
            authen_type: Some(2),
            authen_name: Redacted::new(Box::from(&b"user"[..])),
            authen_challenge: Box::from(&[9; 16][..]),
            authen_id: Some(7),
            authen_response: Redacted::new(Box::from(&[8; 16][..])),
        })),
        ..CallDetails::default()
    };
    let call = Call {
        details: details.clone(),
        ..Call::default()
    };
    // The AVPs on the wire.
    let (mut stage, mut lns) = (Stage::lac(), Peer::v2());
    let tunnel = lns.answer(&mut stage);
    stage.open_session(tunnel, call.clone());
    let request = only(&lns.hear(&mut stage), M::Icrq);
    assert_eq!(request.u32(A::CallSerialNumber), 0x0102_0304);
    assert_eq!(request.u32(A::BearerType), 2);
    assert_eq!(request.u32(A::PhysicalChannelId), 0xdead_beef);
    assert_eq!(request.get(A::CalledNumber).unwrap(), b"0800");
    assert_eq!(request.get(A::CallingNumber).unwrap(), b"0123456");
    assert_eq!(request.get(A::SubAddress).unwrap(), b"7");
    let remote = request.assigned_session();
    let reply = lns.reply(M::Icrp, 9, remote);
    let connected = only(&lns.say_in(&mut stage, remote as u16, &reply), M::Iccn);
    assert_eq!(connected.session, 9);
    assert_eq!(connected.u32(A::TxConnectSpeed), 56_000);
    assert_eq!(connected.u32(A::RxConnectSpeed), 33_600);
    assert_eq!(connected.u32(A::FramingType), 3);
    assert_eq!(connected.u16(A::ProxyAuthenType), 2);
    assert_eq!(connected.u16(A::ProxyAuthenId), 7);
    let bytes = [
        (A::PrivateGroupId, &b"customer"[..]),
        (A::InitialReceivedLcpConfreq, &[1, 4, 5, 0xdc]),
        (A::LastSentLcpConfreq, &[3, 5, 0xc2, 0x23, 5]),
        (A::LastReceivedLcpConfreq, &[1, 4, 5, 0xd4]),
        (A::ProxyAuthenName, b"user"),
        (A::ProxyAuthenChallenge, &[9; 16]),
        (A::ProxyAuthenResponse, &[8; 16]),
    ];
    for (attribute, value) in bytes {
        assert_eq!(connected.get(attribute).unwrap(), value, "{attribute:?}");
    }
    // The same AVPs at an LNS.
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    let icrq = request_of(&request.body);
    let got = lac.say(&mut stage, &icrq);
    let id = only(&got, M::Icrp).assigned_session();
    only_ack(&lac.say_in(&mut stage, id as u16, &request_of(&connected.body)));
    let session = stage.session();
    let view = stage.endpoint().session(session).unwrap();
    assert_eq!(view.details, Some(&details));
    let shown = format!("{view:?}");
    assert!(
        !shown.contains("117, 115, 101, 114"),
        "a name prints: {shown}"
    );
}

fn request_of(body: &[u8]) -> Body {
    Body::empty().octets(body)
}

/// RFC 2661 5.2.2 and 7.5.2: OCRQ, OCRP, OCCN, as the LNS sees it.
#[test]
fn b28_an_outgoing_call_is_asked_for_with_the_avps_it_must_have() {
    for peer in VERSIONS {
        // The LNS of the call may well have dialled the tunnel.
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let tunnel = stage.tunnel();
        let session = stage.open_session(tunnel, outgoing());
        let request = only(&lac.hear(&mut stage), M::Ocrq);
        if lac.version == Version::V2 {
            // 6.9: all of these "MUST be present".
            for attribute in [A::CallSerialNumber, A::MinimumBps, A::MaximumBps] {
                request.u32(attribute);
            }
            assert_eq!(request.u32(A::BearerType), 0);
            assert_eq!(request.u32(A::FramingType), 1);
            assert_eq!(request.get(A::CalledNumber).unwrap(), b"5551234");
        } else {
            assert_eq!(request.u16(A::PseudowireType), 7);
            assert!(request.get(A::RemoteEndId).is_some());
        }
        let remote = request.assigned_session();
        let reply = lac.reply(M::Ocrp, 9, remote);
        only_ack(&lac.say_in(&mut stage, remote as u16, &reply));
        let state = |stage: &Stage| stage.endpoint().session(session).unwrap().state;
        assert_eq!(state(&stage), SessionState::WaitConnect);
        let connected = lac.connected(M::Occn, 9, remote);
        only_ack(&lac.say_in(&mut stage, remote as u16, &connected));
        assert_eq!(state(&stage), SessionState::Established);
        assert_eq!(stage.counts().sessions_established, 1);
        // 7.5.2: "wait-reply: Receive OCCN: Send CDN".
        stage.open_session(tunnel, outgoing());
        let remote = only(&lac.hear(&mut stage), M::Ocrq).assigned_session();
        let connected = lac.connected(M::Occn, 10, remote);
        let got = lac.say_in(&mut stage, remote as u16, &connected);
        assert_eq!(kinds(&got), [Some(M::Cdn)]);
    }
}

/// RFC 2661 6.9: "An LNS MUST have received a Bearer Capabilities AVP [...] in order to
/// request an outgoing call".
#[test]
fn b28_no_outgoing_call_is_asked_of_a_lac_that_places_none() {
    let requests: [fn(Body) -> Body; 2] = [
        |body| body.without(A::BearerCapabilities),
        |body| {
            body.without(A::BearerCapabilities)
                .u32(A::BearerCapabilities, 0)
        },
    ];
    for change in requests {
        let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
        let request = change(lac.sccrq());
        lac.connect_with(&mut stage, &request, &Body::new(M::Scccn));
        let tunnel = stage.tunnel();
        stage.open_session(tunnel, outgoing());
        assert!(stage.hear().is_empty());
        assert_eq!(stage.session_end(), SessionEnd::NoFacilities);
        let downs = stage.events();
        assert!(matches!(downs.last(), Some(Event::SessionDown { .. })));
    }
}

fn ocrq(lac: &Peer, session: u32) -> Body {
    let base = lac.icrq(session);
    let mut body = Body::new(M::Ocrq).octets(&base.bytes[8..]);
    if lac.version == Version::V2 {
        body = body
            .u32(A::MinimumBps, 0)
            .u32(A::MaximumBps, 64_000)
            .u32(A::BearerType, 1)
            .u32(A::FramingType, 2)
            .avp(A::CalledNumber, b"5551234");
    }
    body
}

/// A LAC without bearers refuses: CDN 4.
#[test]
fn b28_an_outgoing_call_is_refused_with_cdn_4_where_none_are_taken() {
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        lns.answer(&mut stage);
        let request = ocrq(&lns, 9);
        let cdn = only(&lns.say(&mut stage, &request), M::Cdn);
        assert_eq!(cdn.codes(), (4, None));
        assert_eq!(stage.session_end(), SessionEnd::NoFacilities);
    }
}

/// RFC 2661 7.5.1 with the bearer's answer at once.
#[test]
fn b28_an_outgoing_call_is_answered_at_once_where_the_configuration_says_so() {
    let config = Config {
        outgoing_calls: OutgoingCalls::Answer,
        ..lac_config()
    };
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::new(config.clone()), peer());
        let tunnel = stage.open_tunnel(lns.version);
        let request = lns.take_sccrq(&mut stage);
        if lns.version == Version::V2 {
            // 4.4.3: "MUST be present if the sender can place outgoing calls".
            assert_eq!(request.u32(A::BearerCapabilities), 3);
        }
        let reply = lns.sccrp();
        only(&lns.say(&mut stage, &reply), M::Scccn);
        lns.ack(&mut stage);
        let request = ocrq(&lns, 9);
        let got = lns.say(&mut stage, &request);
        assert_eq!(kinds(&got), [Some(M::Ocrp), Some(M::Occn)]);
        if lns.version == Version::V2 {
            assert_eq!((got[0].session, got[1].session), (9, 9));
            assert_eq!(got[1].u32(A::FramingType), 2);
            got[1].u32(A::TxConnectSpeed);
        }
        assert_eq!(stage.counts().sessions_established, 1);
        assert_eq!(stage.endpoint().tunnel(tunnel).unwrap().sessions, 1);
    }
}

/// RFC 2661 7.5.1 with an owner that places the call, and answers, fails or forgets.
#[test]
fn b28_an_outgoing_call_waits_for_the_owners_answer_where_the_owner_is_asked() {
    let config = Config {
        outgoing_calls: OutgoingCalls::Ask,
        hello_interval: Duration::ZERO,
        ..lac_config()
    };
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::new(config.clone()), peer());
        lns.answer(&mut stage);
        let ask = |stage: &mut Stage, lns: &mut Peer, id: u32| {
            stage.events();
            let request = ocrq(lns, id);
            only(&lns.say(stage, &request), M::Ocrp);
            lns.ack(stage);
            match stage.events()[..] {
                [Event::CallRequested { session }] => session,
                ref other => panic!("{other:?}"),
            }
        };
        let session = ask(&mut stage, &mut lns, 9);
        let view = stage.endpoint().session(session).unwrap();
        assert_eq!(view.state, SessionState::WaitCsAnswer);
        if lns.version == Version::V2 {
            let details = view.details.unwrap();
            assert_eq!(&*details.called_number, b"5551234");
            assert_eq!((details.bearer_type, details.framing_type), (1, 2));
        }
        stage.with(|lac, now| assert!(lac.answer_call(session, now)));
        only(&lns.hear(&mut stage), M::Occn);
        lns.ack(&mut stage);
        assert_eq!(stage.counts().sessions_established, 1);
        stage.with(|lac, now| assert!(!lac.answer_call(session, now)));

        // "Bearer failure: Send CDN".
        let session = ask(&mut stage, &mut lns, 10);
        stage.with(|lac, now| assert!(lac.close_session(session, now)));
        assert_eq!(only(&lns.hear(&mut stage), M::Cdn).codes(), (3, None));
        lns.ack(&mut stage);
        stage.with(|lac, now| assert!(!lac.answer_call(session, now)));

        // "A timer expires waiting for the call to complete: send a CDN".
        ask(&mut stage, &mut lns, 11);
        stage.run_secs(60);
        let code = only(&lns.hear(&mut stage), M::Cdn).codes().0;
        assert_eq!(code, if lns.version == Version::V2 { 10 } else { 16 });
        assert_eq!(stage.session_end(), SessionEnd::SetupTimeout);
        assert_eq!(stage.counts().sessions, 1);
    }
}

/// RFC 2661 4.4.6: two reserved octets, then six counters.
#[test]
fn b28_a_wen_carries_the_calls_error_counters() {
    let errors = CallErrors {
        crc: 1,
        framing: 0x0102_0304,
        hardware_overruns: 3,
        buffer_overruns: u32::MAX,
        timeouts: 5,
        alignment: 6,
    };
    let value = [
        0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 0, 0, 0, 3, 255, 255, 255, 255, 0, 0, 0, 5, 0, 0, 0, 6,
    ];
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        let tunnel = lns.answer(&mut stage);
        let (session, remote) = lns.take_call(&mut stage, tunnel, Call::default(), 9);
        stage.with(|lac, _| assert!(lac.send_wan_errors(session, errors)));
        let wen = only(&lns.hear(&mut stage), M::Wen);
        assert_eq!(wen.get(A::CallErrors).unwrap(), value);
        match lns.version {
            Version::V2 => assert_eq!(wen.session, 9),
            Version::V3 => assert_eq!(wen.u32(A::RemoteSessionId), 9),
        }
        lns.ack(&mut stage);
        stage.events();
        let wen = lns.of_session(M::Wen, 9, remote).avp(A::CallErrors, &value);
        only_ack(&lns.say_in(&mut stage, remote as u16, &wen));
        assert_eq!(stage.events(), [Event::WanErrors { session, errors }]);
        // One that is too short is malformed and mandatory.
        let wen = lns
            .of_session(M::Wen, 9, remote)
            .avp(A::CallErrors, &[0; 8]);
        let got = lns.say_in(&mut stage, remote as u16, &wen);
        assert_eq!(only(&got, M::Cdn).codes(), (2, Some(2)));
        stage.with(|lac, _| assert!(!lac.send_wan_errors(session, errors)));
    }
}

/// RFC 2661 6.14: the ACCMs; RFC 3931 6.14: the circuit's status.
#[test]
fn b28_an_sli_carries_the_accms_or_the_circuits_status() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let remote = lac.call(&mut stage, 5);
        let session = stage.session();
        let accm = (0x000a_0000, 0xffff_ffff);
        stage.with(|lns, _| assert!(lns.send_link_info(session, accm, false)));
        let sli = only(&lac.hear(&mut stage), M::Sli);
        lac.ack(&mut stage);
        stage.events();
        let base = lac.of_session(M::Sli, 5, remote);
        let (body, accm, circuit_status) = match lac.version {
            Version::V2 => {
                let value = [0, 0, 0, 0x0a, 0, 0, 255, 255, 255, 255];
                assert_eq!(sli.get(A::Accm).unwrap(), value);
                (base.avp(A::Accm, &value), Some(accm), None)
            }
            Version::V3 => {
                assert_eq!(sli.u16(A::CircuitStatus), 0);
                (base.u16(A::CircuitStatus, 1), None, Some(1))
            }
        };
        only_ack(&lac.say_in(&mut stage, remote as u16, &body));
        let told = Event::LinkInfo {
            session,
            accm,
            circuit_status,
        };
        assert_eq!(stage.events(), [told]);
    }
}

/// RFC 2661 4.4.4: Sequencing Required is a flag.
#[test]
fn b28_sequencing_required_is_carried_in_the_iccn() {
    let (mut stage, mut lns) = (Stage::lac(), Peer::v2());
    let tunnel = lns.answer(&mut stage);
    let call = Call {
        sequencing: true,
        ..Call::default()
    };
    stage.open_session(tunnel, call);
    let remote = only(&lns.hear(&mut stage), M::Icrq).assigned_session();
    let reply = lns.reply(M::Icrp, 9, remote);
    let connected = only(&lns.say_in(&mut stage, remote as u16, &reply), M::Iccn);
    assert!(connected.message().has(A::SequencingRequired));

    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    let got = lac.say(&mut stage, &lac.clone().icrq(5));
    let remote = only(&got, M::Icrp).assigned_session();
    let connected = lac
        .connected(M::Iccn, 5, remote)
        .avp(A::SequencingRequired, &[]);
    only_ack(&lac.say_in(&mut stage, remote as u16, &connected));
    let session = stage.session();
    assert!(stage.endpoint().session(session).unwrap().sequencing);
}

/// A call before the tunnel is up is out of order (RFC 2661 7.1), StopCCN 7.
#[test]
fn b28_a_call_before_the_tunnel_is_up_clears_the_tunnel() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let request = lac.sccrq();
        let reply = only(&lac.say(&mut stage, &request), M::Sccrp);
        lac.take_sccrp(&reply);
        let call = lac.icrq(5);
        let stop = only(&lac.say(&mut stage, &call), M::StopCcn);
        assert_eq!(stop.codes(), (7, None));
        assert!(matches!(stage.tunnel_end(), TunnelEnd::StateMachine(_)));
    }
}

#[test]
fn b28_version_2_carries_ppp_only() {
    let (mut stage, mut lns) = (Stage::lac(), Peer::v2());
    let tunnel = lns.answer(&mut stage);
    let call = Call {
        pseudowire: Pseudowire::Ethernet,
        ..Call::default()
    };
    let refused = stage.with(|lac, now| lac.open_session(tunnel, call, now));
    assert_eq!(refused, Err(l2tp::OpenError::NotInV2));
}

/// A session's id is looked for in its own tunnel only.
#[test]
fn b28_a_session_cannot_be_ended_through_another_tunnel() {
    for peer in VERSIONS {
        let mut stage = Stage::lns();
        let (mut first, mut second) = (peer(), peer());
        second.id += 1;
        first.connect(&mut stage);
        second.connect(&mut stage);
        let remote = first.call(&mut stage, 5);
        let cdn = second.cdn(5, remote, 1);
        only_ack(&second.say_in(&mut stage, remote as u16, &cdn));
        let cdn = second.cdn(5, 0, 1);
        only_ack(&second.say(&mut stage, &cdn));
        assert_eq!(stage.counts().sessions, 1);
        assert_eq!(stage.counter("session_strays"), 2);
    }
}
