//! The details of calls, incoming and outgoing, in both roles: RFC 2661 5.2, 6.6 to 6.14 and 7.5.

use base::{Duration, Redacted};
use l2tp::{
    Call, CallDetails, CallErrors, Config, Direction, Event, OutgoingCalls, Proxy, SessionEnd,
    SessionState,
};
use wire::l2tp::{Attribute as A, MessageType as M, Version};

use crate::common::{Body, Peer, Stage, kinds, lac_config, only, only_ack};

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

/// Details of an incoming call, with a value for every AVP.
fn details_with_proxy() -> CallDetails {
    CallDetails {
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
    }
}

/// RFC 2661 6.6 to 6.8: the details of an incoming call arrive unchanged.
#[test]
fn the_details_of_an_incoming_call_and_its_proxy_avps_arrive_unchanged() {
    let details = details_with_proxy();
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

/// RFC 2661 5.2.2 and 7.5.2: OCRQ, OCRP, OCCN, at the LNS.
#[test]
fn an_outgoing_call_is_asked_for_with_the_avps_it_must_have() {
    for peer in VERSIONS {
        // The LNS of the call may have opened the tunnel.
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
fn an_outgoing_call_is_answered_at_once_where_the_configuration_says_so() {
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

/// RFC 2661 7.5.1 with an owner that places the call, and answers, fails or does nothing.
#[test]
fn an_outgoing_call_waits_for_the_owners_answer_where_the_owner_is_asked() {
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
        stage.with(|lac, _| assert!(lac.answer_call(session)));
        only(&lns.hear(&mut stage), M::Occn);
        lns.ack(&mut stage);
        assert_eq!(stage.counts().sessions_established, 1);
        stage.with(|lac, _| assert!(!lac.answer_call(session)));

        // "Bearer failure: Send CDN".
        let session = ask(&mut stage, &mut lns, 10);
        stage.with(|lac, now| assert!(lac.close_session(session, now)));
        assert_eq!(only(&lns.hear(&mut stage), M::Cdn).codes(), (3, None));
        lns.ack(&mut stage);
        stage.with(|lac, _| assert!(!lac.answer_call(session)));

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
fn a_wen_carries_the_calls_error_counters() {
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
        // An AVP that is too short is malformed and mandatory.
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
fn an_sli_carries_the_accms_or_the_circuits_status() {
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
fn sequencing_required_is_carried_in_the_iccn() {
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
