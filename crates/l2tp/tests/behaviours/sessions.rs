//! How calls end in every state, and what they cannot do: RFC 2661 4.4.2, 6.12, 7.4 and 7.5, RFC 3931 7.3 and
//! 7.4.

use base::Duration;
use l2tp::{Call, Config, Limits, Pseudowire, SessionEnd, SessionState, TunnelEnd};
use wire::l2tp::{Attribute as A, MessageType as M, Version};

use crate::common::{Body, Peer, Stage, kinds, lac_config, lns_config, only, only_ack};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

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

/// The same from the peer: the session is found by the peer's id for it.
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
        // "Does not send back any indication of success or failure" (6.12), and a CDN for an ended session is
        // harmless.
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
            // A call that ends makes room, and the tunnel is unaffected.
            let cdn = lac.cdn(6, first, 1);
            only_ack(&lac.say_in(&mut stage, first as u16, &cdn));
            lac.call(&mut stage, 7);
        }
    }
}

/// The LAC gives up while its ICRQ is in flight twice: one copy is processed, the other arrives after the CDN.
/// No session may result.
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

        // The CDN first; it waits for the earlier request.
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

/// RFC 2661 7.4.2: an ICRQ, ICRP or second ICCN for an existing session is out of order: CDN, and the session
/// ends. The tunnel stays.
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
        // An id that another session of this tunnel already has.
        lns.take_call(&mut stage, tunnel, Call::default(), 11);
        stage.open_session(tunnel, Call::default());
        let remote = only(&lns.hear(&mut stage), M::Icrq).assigned_session();
        let reply = lns.reply(M::Icrp, 11, remote);
        let cdn = only(&lns.say_in(&mut stage, remote as u16, &reply), M::Cdn);
        assert_eq!(cdn.codes(), (2, Some(3)));
        assert_eq!(stage.counts().sessions, 1);
    }
}

/// An unanswered call ends in time: with code 10 of RFC 2661, 16 of RFC 3931.
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

/// A call opened before its tunnel is established waits for it, and ends with it.
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

/// A call before the tunnel is established is out of order (RFC 2661 7.1), StopCCN 7.
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
fn version_2_carries_ppp_only() {
    let (mut stage, mut lns) = (Stage::lac(), Peer::v2());
    let tunnel = lns.answer(&mut stage);
    let call = Call {
        pseudowire: Pseudowire::Ethernet,
        ..Call::default()
    };
    let refused = stage.with(|lac, now| lac.open_session(tunnel, call, now));
    assert_eq!(refused, Err(l2tp::OpenError::NotInV2));
}

/// A session's id is looked up only in its own tunnel.
#[test]
fn a_session_cannot_be_ended_through_another_tunnel() {
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
