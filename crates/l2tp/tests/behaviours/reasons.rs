//! Why tunnels end, what the peer is sent, and what is kept: RFC 2661 4.4.2, 6.4 and 7.2, RFC 3931 5.4.2 and
//! 7.2.

use base::Duration;
use l2tp::{Call, Discard, Event, OpenError, SessionEnd, TunnelEnd};
use wire::l2tp::{Attribute as A, MessageType as M, Version};

use crate::common::{Body, Got, Peer, Stage, lac_config, only, only_ack, to_peer};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

/// Table 7.2.1: "established: Receive SCCRQ, SCCRP, SCCCN: Send StopCCN", and 4.4.2: 7 is
/// "Finite State Machine error".
#[test]
fn b28_a_message_out_of_order_clears_the_tunnel_with_stopccn_7() {
    for peer in VERSIONS {
        let wrong: [fn(&Peer) -> Body; 3] = [|p| p.sccrq(), |p| p.sccrp(), |_| Body::new(M::Scccn)];
        for body in wrong {
            let (mut stage, mut lac) = (Stage::lns(), peer());
            lac.connect(&mut stage);
            lac.call(&mut stage, 5);
            let body = body(&lac);
            let stop = only(&lac.say(&mut stage, &body), M::StopCcn);
            assert_eq!(stop.codes(), (7, None));
            assert!(matches!(stage.tunnel_end(), TunnelEnd::StateMachine(_)));
            assert_eq!(stage.session_end(), SessionEnd::TunnelEnded);
        }
        // "wait-ctl-conn: Receive SCCRP: Send StopCCN".
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let request = lac.sccrq();
        let reply = only(&lac.say(&mut stage, &request), M::Sccrp);
        lac.take_sccrp(&reply);
        let body = lac.sccrp();
        let stop = only(&lac.say(&mut stage, &body), M::StopCcn);
        assert_eq!(stop.codes(), (7, None));
        // "wait-ctl-reply: Receive SCCCN: Send StopCCN".
        let (mut stage, mut lns) = (Stage::lac(), peer());
        stage.open_tunnel(lns.version);
        lns.take_sccrq(&mut stage);
        let stop = only(&lns.say(&mut stage, &Body::new(M::Scccn)), M::StopCcn);
        assert_eq!(stop.codes(), (7, None));
        assert_eq!(stop.connection, 0);
    }
}

/// "Idle: Receive SCCRP: Send StopCCN" (RFC 2661 7.2.1, RFC 3931 7.2): a peer that answers a tunnel which no
/// longer exists need not wait for an SCCCN.
#[test]
fn b28_an_sccrp_for_a_tunnel_that_is_not_there_gets_a_stopccn() {
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        lns.remote = 4242;
        lns.nr = 1;
        let reply = lns.sccrp();
        let stop = only(&lns.say(&mut stage, &reply), M::StopCcn);
        assert_eq!(stop.codes(), (7, None));
        // In the peer's sequence: after the SCCRQ that it received.
        assert_eq!((stop.connection, stop.ns, stop.nr), (lns.id, 1, 1));
        assert_eq!(stage.discarded(Discard::UnknownTunnel), 1);
        assert_eq!(stage.counts(), Default::default());
        // Any other message for an unknown tunnel is dropped and counted.
        for body in [Body::new(M::Hello), Body::new(M::Scccn), lns.stop_ccn(1)] {
            assert!(lns.say(&mut stage, &body).is_empty());
        }
        assert_eq!(stage.discarded(Discard::UnknownTunnel), 4);
    }
}

#[test]
fn what_is_no_request_is_dropped_where_there_is_no_tunnel() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let bodies = [lac.sccrp(), Body::new(M::Scccn), Body::new(M::Hello)];
        for body in &bodies {
            lac.ns = 0;
            assert!(lac.say(&mut stage, body).is_empty());
        }
        // A request with sequence numbers of an existing exchange.
        for (ns, nr) in [(1, 0), (0, 1), (65_535, 0)] {
            let packet = lac.packet_at(ns, nr, 0, &lac.sccrq().bytes);
            stage.send(&packet);
            assert!(stage.hear().is_empty());
        }
        assert_eq!(stage.discarded(Discard::NotARequest), 6);
        // A LAC accepts no request.
        let (mut stage, mut lac) = (Stage::lac(), peer());
        let request = lac.sccrq();
        assert!(lac.say(&mut stage, &request).is_empty());
        assert_eq!(stage.discarded(Discard::NotAccepting), 1);
    }
}

/// The operator's close is 1, "general request to clear control connection"; the sessions
/// are "implicitly cleared (without sending any explicit call control messages)" (6.4).
#[test]
fn b28_an_operators_close_sends_stopccn_1_and_no_cdn() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        lac.call(&mut stage, 5);
        lac.call(&mut stage, 6);
        stage.events();
        let tunnel = stage.tunnel();
        let id = stage.endpoint().tunnel(tunnel).unwrap().id;
        stage.with(|lns, now| assert!(lns.close_tunnel(tunnel, now)));
        let stop = only(&lac.hear(&mut stage), M::StopCcn);
        assert_eq!(stop.codes(), (1, None));
        assert_eq!(stop.assigned_connection(), id);
        assert_eq!(stage.tunnel_end(), TunnelEnd::Administrative);
        for n in 0..2 {
            let ended = stage.endpoint().ended_session(n).unwrap();
            assert_eq!(ended.reason, SessionEnd::TunnelEnded);
            assert_eq!(ended.tunnel_id, id);
        }
        let events = stage.events();
        assert_eq!(events.len(), 3);
        // Exactly once.
        stage.with(|lns, now| assert!(!lns.close_tunnel(tunnel, now)));
        let call = stage.with(|lns, now| lns.open_session(tunnel, Call::default(), now));
        assert_eq!(call, Err(OpenError::NoSuchTunnel));
        let ended = stage.endpoint().ended_tunnel(0).unwrap();
        assert_eq!((ended.id, ended.remote_id), (id, lac.id));
        assert_eq!((&*ended.host_name, ended.version), ("peer", lac.version));
        assert!(ended.up.is_some());
        lac.ack(&mut stage);
        stage.run_secs(31);
        let gone = stage.events();
        assert_eq!(gone, [Event::TunnelGone { tunnel, socket: 0 }]);
    }
}

/// If a tunnel is closed before its SCCRQ is sent, the peer receives nothing.
#[test]
fn b28_a_tunnel_that_no_peer_knows_of_ends_in_silence() {
    let mut stage = Stage::new(lac_config());
    stage.with(|lac, now| {
        let tunnel = lac.open_tunnel(to_peer(Version::V2), now);
        lac.close_tunnel(tunnel.expect("nothing is full"), now);
    });
    assert!(stage.hear().is_empty());
    assert_eq!(stage.tunnel_end(), TunnelEnd::Administrative);
    assert_eq!(stage.counts(), Default::default());
}

/// A session's close is 3, "administrative reasons".
#[test]
fn b28_an_operators_close_of_a_session_sends_cdn_3() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let remote = lac.call(&mut stage, 5);
        let session = stage.session();
        stage.with(|lns, now| assert!(lns.close_session(session, now)));
        let cdn = only(&lac.hear(&mut stage), M::Cdn);
        assert_eq!((cdn.codes(), cdn.assigned_session()), ((3, None), remote));
        assert_eq!(stage.session_end(), SessionEnd::Administrative);
        stage.with(|lns, now| assert!(!lns.close_session(session, now)));
        assert_eq!(stage.counts().established, 1);
    }
}

/// StopCCN 6: "Requester is being shut down", to every peer, and no new work.
#[test]
fn b28_a_shutdown_sends_stopccn_6_to_every_peer() {
    let mut stage = Stage::lns();
    let mut peers: Vec<Peer> = (1..=9)
        .map(|id| {
            Peer::new(
                if id % 2 == 0 {
                    Version::V2
                } else {
                    Version::V3
                },
                id << 8,
            )
        })
        .collect();
    for peer in &mut peers {
        peer.connect(&mut stage);
    }
    // One half-open, and one that we opened.
    let mut half = Peer::new(Version::V2, 5);
    let request = half.sccrq();
    half.say(&mut stage, &request);
    stage.open_tunnel(Version::V2);
    only(&stage.hear(), M::Sccrq);
    stage.with(|lns, now| lns.shut_down(now));
    let got = stage.hear();
    // Including those with an earlier unacknowledged message.
    assert_eq!(got.len(), 11);
    let all_6 = |got: &[Got]| {
        got.iter()
            .all(|g| g.kind() == M::StopCcn && g.codes().0 == 6)
    };
    assert!(all_6(&got));
    assert!(!stage.endpoint().is_quiet());
    let refused = stage.with(|lns, now| lns.open_tunnel(to_peer(Version::V2), now));
    assert_eq!(refused, Err(OpenError::ShuttingDown));
    let mut late = Peer::new(Version::V2, 6);
    let request = late.sccrq();
    assert!(late.say(&mut stage, &request).is_empty());
    assert_eq!(stage.discarded(Discard::NotAccepting), 1);
    for peer in &mut peers {
        peer.nr = 2;
        peer.ack(&mut stage);
    }
    assert!(!stage.endpoint().is_quiet(), "two have not answered");
    stage.run_secs(31);
    assert!(stage.endpoint().is_quiet());
    for n in 0..11 {
        let ended = stage.endpoint().ended_tunnel(n).unwrap();
        assert_eq!(ended.reason, TunnelEnd::ShutDown);
    }
    stage.run_secs(60);
    assert_eq!(stage.counts(), Default::default());
}

/// A peer that acknowledges but does not continue: the tunnel is neither half-open nor waiting for a reply
/// without limit.
#[test]
fn b28_a_tunnel_that_is_not_established_in_time_gets_a_stopccn() {
    for peer in VERSIONS {
        let result = if peer().version == Version::V2 { 1 } else { 7 };
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let request = lac.sccrq();
        let reply = only(&lac.say(&mut stage, &request), M::Sccrp);
        lac.take_sccrp(&reply);
        lac.ack(&mut stage);
        stage.run_for(Duration::from_millis(59_999));
        assert!(stage.hear().is_empty());
        stage.run_for(Duration::from_millis(9));
        let stop = only(&lac.hear(&mut stage), M::StopCcn);
        assert_eq!((stop.codes(), stop.connection), ((result, None), lac.id));
        assert_eq!(stage.tunnel_end(), TunnelEnd::SetupTimeout);

        let (mut stage, mut lns) = (Stage::lac(), peer());
        stage.open_tunnel(lns.version);
        lns.take_sccrq(&mut stage);
        lns.ack(&mut stage);
        let stop = lns.wait(&mut stage, Duration::from_secs(61));
        assert_eq!(stop.kind(), M::StopCcn);
        assert_eq!((stop.codes(), stop.connection), ((result, None), 0));
        assert_eq!(stage.tunnel_end(), TunnelEnd::SetupTimeout);
    }
}

/// A peer's Result Code is kept, whatever its text, and made printable.
#[test]
fn b28_a_peers_reason_is_kept_with_its_codes_and_text() {
    let text: &[u8] = b"no \x1b[31m more \xff rooms";
    let value = [&[0, 2, 0, 4][..], text].concat();
    for (value, result, error) in [
        (&value[..], 2, Some(4)),
        (&[0, 1], 1, None),
        (&[0xff, 0xff, 0xff, 0xff], 0xffff, Some(0xffff)),
    ] {
        let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
        lac.connect(&mut stage);
        let stop = lac
            .stop_ccn(1)
            .without(A::ResultCode)
            .avp(A::ResultCode, value);
        only_ack(&lac.say(&mut stage, &stop));
        let TunnelEnd::Peer(notice) = stage.tunnel_end() else {
            panic!("{:?}", stage.tunnel_end());
        };
        assert_eq!((notice.result, notice.error), (result, error));
        assert!(!notice.message.chars().any(char::is_control));
        assert!(!stage.tunnel_end().to_string().chars().any(char::is_control));
    }
    // Without a Result Code, the tunnel is closed all the same.
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    only_ack(&lac.say(&mut stage, &Body::new(M::StopCcn)));
    assert!(matches!(stage.tunnel_end(), TunnelEnd::Peer(_)));
    // A malformed StopCCN is accepted, because closing is the only possible reaction.
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    let stop = lac.stop_ccn(1).raw(0x80, 0, 9999, b"").octets(&[0x80]);
    only_ack(&lac.say(&mut stage, &stop));
    assert!(matches!(stage.tunnel_end(), TunnelEnd::Peer(_)));
}
