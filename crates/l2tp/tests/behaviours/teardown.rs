//! How tunnels end, what is kept of them, and what the peer is told: RFC 2661 5.7, 6.4,
//! 7.2 and 7.6, RFC 3931 3.3.2, 7.2 and 7.5.

use base::Duration;
use l2tp::{Call, Config, Discard, Event, Limits, OpenError, SessionEnd, TunnelEnd};
use wire::l2tp::{Attribute as A, MessageType as M, Version};

use crate::common::{
    Body, Got, Peer, Stage, kinds, lac_config, lns_config, only, only_ack, to_peer,
};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

/// "The receiver of a StopCCN MUST send a ZLB ACK [...] and maintain enough control
/// connection state to properly accept StopCCN retransmissions over at least a full
/// retransmission cycle" (RFC 2661 5.7), 31 s.
#[test]
fn b20_a_stopccn_is_acknowledged_again_for_31_seconds() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        lac.call(&mut stage, 5);
        let stop = lac.packet(0, &lac.clone().stop_ccn(1));
        stage.send(&stop);
        let ack = only_ack(&lac.hear(&mut stage));
        assert_eq!((ack.nr, ack.connection), (lac.ns, lac.id));
        assert_eq!((stage.counts().tunnels, stage.counts().held), (0, 1));
        for _ in 0..30 {
            stage.run_secs(1);
            stage.send(&stop);
            assert_eq!(only_ack(&lac.hear(&mut stage)).nr, lac.ns);
        }
        // So is what else was still under way, and nothing comes of it.
        let call = lac.icrq(6);
        only_ack(&lac.say(&mut stage, &call));
        assert_eq!(stage.counts().sessions, 0);
        stage.run_secs(1);
        stage.send(&stop);
        assert!(stage.hear().is_empty());
        assert_eq!(stage.discarded(Discard::UnknownTunnel), 1);
        assert_eq!(stage.counts(), Default::default());
    }
}

/// "The reliable delivery mechanisms MUST be maintained and operated for the full
/// retransmission interval after the final message exchange" (RFC 2661 5.8).
#[test]
fn b20_our_own_stopccn_is_retransmitted_until_it_is_acknowledged() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let tunnel = stage.tunnel();
        stage.with(|lns, now| assert!(lns.close_tunnel(tunnel, now)));
        assert_eq!((stage.counts().tunnels, stage.counts().closing), (0, 1));
        stage.run_secs(8);
        let got = lac.hear(&mut stage);
        assert_eq!(kinds(&got), [Some(M::StopCcn); 4]);
        lac.ack(&mut stage);
        assert_eq!((stage.counts().closing, stage.counts().held), (0, 1));
        // "Late duplicates are still acked": the peer's SCCCN, say.
        let late = lac.packet_at(1, 0, 0, &Body::new(M::Scccn).bytes);
        stage.run_secs(30);
        stage.send(&late);
        assert_eq!(only_ack(&lac.hear(&mut stage)).nr, lac.ns);
        stage.run_secs(1);
        assert_eq!(stage.counts(), Default::default());
    }
}

#[test]
fn b20_our_own_stopccn_is_given_up_after_its_retransmissions() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    let tunnel = stage.tunnel();
    stage.with(|lns, now| lns.close_tunnel(tunnel, now));
    stage.run_for(Duration::from_millis(30_999));
    let got = lac.hear(&mut stage);
    let at: Vec<u64> = got
        .iter()
        .map(|g| g.at.as_nanos() / 1_000_000_000)
        .collect();
    assert_eq!(at, [0, 1, 3, 7, 15, 23]);
    assert_eq!(stage.counts().closing, 1);
    stage.run_for(Duration::from_millis(1));
    assert_eq!(stage.counts(), Default::default());
    assert_eq!(stage.tunnel_end(), TunnelEnd::Administrative, "as ever");
}

/// The time of the hold is configuration, and what is waited for in it is not new work.
#[test]
fn b20_a_closing_tunnel_acknowledges_and_does_nothing_else() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    let tunnel = stage.tunnel();
    stage.with(|lns, now| lns.close_tunnel(tunnel, now));
    stage.hear();
    // Crossed our StopCCN.
    for body in [lac.icrq(5), Body::new(M::Hello), lac.sccrq()] {
        let packet = lac.packet_at(lac.ns, 1, 0, &body.bytes);
        lac.ns += 1;
        stage.send(&packet);
        assert_eq!(only_ack(&lac.hear(&mut stage)).nr, lac.ns);
    }
    assert_eq!((stage.counts().sessions, stage.counts().closing), (0, 1));
    // And a StopCCN of the peer's, which crossed ours as well, ends the matter.
    let stop = lac.packet_at(lac.ns, 1, 0, &lac.stop_ccn(6).bytes);
    stage.send(&stop);
    only_ack(&stage.hear());
    assert_eq!((stage.counts().closing, stage.counts().held), (0, 1));
    stage.run_secs(30);
    assert!(stage.hear().is_empty(), "ours is not sent again");
    assert_eq!(stage.tunnel_end(), TunnelEnd::Administrative);
}

#[test]
fn b20_held_tunnels_have_a_limit_and_the_oldest_is_forgotten_and_counted() {
    let config = Config {
        limits: Limits {
            held: 2,
            ..Config::default().limits
        },
        ..lns_config()
    };
    let mut stage = Stage::new(config);
    let mut stops = Vec::new();
    for id in 1..=4 {
        let mut lac = Peer::new(Version::V2, id);
        lac.connect(&mut stage);
        let stop = lac.packet(0, &lac.clone().stop_ccn(1));
        stage.send(&stop);
        only_ack(&stage.hear());
        stops.push(stop);
        stage.run_secs(1);
    }
    assert_eq!(stage.counts().held, 2);
    assert_eq!(stage.counter("held_forgotten"), 2);
    let answers = |stage: &mut Stage, stop: &[u8]| {
        stage.send(stop);
        stage.hear().len()
    };
    let answered: Vec<usize> = stops.iter().map(|s| answers(&mut stage, s)).collect();
    assert_eq!(answered, [0, 0, 1, 1]);
    stage.run_secs(31);
    assert_eq!(stage.counts(), Default::default());
}

/// RFC 2661 4.4.3: the Assigned Tunnel ID in a StopCCN permits "the peer to identify the
/// appropriate tunnel even if a StopCCN is sent before an Assigned Tunnel ID is received".
#[test]
fn b20_a_stopccn_before_the_ids_are_known_finds_its_tunnel() {
    for peer in VERSIONS {
        // Ours.
        let (mut stage, mut lns) = (Stage::lac(), peer());
        let tunnel = stage.open_tunnel(lns.version);
        let request = only(&lns.hear(&mut stage), M::Sccrq);
        stage.with(|lac, now| lac.close_tunnel(tunnel, now));
        let stop = only(&lns.hear(&mut stage), M::StopCcn);
        assert_eq!((stop.connection, stop.ns), (0, 1));
        assert_eq!(stop.assigned_connection(), request.assigned_connection());
        // Neither waits for the other, in case one of them was lost.
        stage.run_secs(1);
        let got = lns.hear(&mut stage);
        assert_eq!(kinds(&got), [Some(M::Sccrq), Some(M::StopCcn)]);
        lns.ack_to(request.assigned_connection(), &mut stage);
        stage.run_secs(60);
        assert!(stage.hear().is_empty());
        assert_eq!(stage.counts(), Default::default());

        // The peer's.
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let request = lac.sccrq();
        only(&lac.say(&mut stage, &request), M::Sccrp);
        let stop = lac.stop_ccn(1);
        lac.nr = 0;
        let ack = only_ack(&lac.say(&mut stage, &stop));
        assert_eq!(ack.nr, 2);
        assert_eq!((stage.counts().half_open, stage.counts().held), (0, 1));
        assert!(matches!(stage.tunnel_end(), TunnelEnd::Peer(_)));
    }
}

/// A refusal is the first message to bring the peer's id. Without it, our acknowledgement
/// would find no tunnel there, and the peer would send its StopCCN five times more.
#[test]
fn b20_the_acknowledgement_of_a_refusal_is_addressed_to_who_refused() {
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        stage.open_tunnel(lns.version);
        lns.take_sccrq(&mut stage);
        let refusal = lns.stop_ccn(4);
        let ack = only_ack(&lns.say(&mut stage, &refusal));
        assert_eq!((ack.connection, ack.nr), (lns.id, 1));
        let TunnelEnd::Peer(notice) = stage.tunnel_end() else {
            panic!("{:?}", stage.tunnel_end());
        };
        assert_eq!((notice.result, notice.error), (4, None));
    }
}

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

/// "Idle: Receive SCCRP: Send StopCCN" (RFC 2661 7.2.1, RFC 3931 7.2): a peer that answers
/// a tunnel which is not there any more need not wait for an SCCCN.
#[test]
fn b28_an_sccrp_for_a_tunnel_that_is_not_there_gets_a_stopccn() {
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        lns.remote = 4242;
        lns.nr = 1;
        let reply = lns.sccrp();
        let stop = only(&lns.say(&mut stage, &reply), M::StopCcn);
        assert_eq!(stop.codes(), (7, None));
        // In the peer's sequence: after the SCCRQ that it has seen.
        assert_eq!((stop.connection, stop.ns, stop.nr), (lns.id, 1, 1));
        assert_eq!(stage.discarded(Discard::UnknownTunnel), 1);
        assert_eq!(stage.counts(), Default::default());
        // Anything else for no tunnel is dropped and counted.
        for body in [Body::new(M::Hello), Body::new(M::Scccn), lns.stop_ccn(1)] {
            assert!(lns.say(&mut stage, &body).is_empty());
        }
        assert_eq!(stage.discarded(Discard::UnknownTunnel), 4);
    }
}

#[test]
fn b28_what_is_no_request_is_dropped_where_there_is_no_tunnel() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let bodies = [lac.sccrp(), Body::new(M::Scccn), Body::new(M::Hello)];
        for body in &bodies {
            lac.ns = 0;
            assert!(lac.say(&mut stage, body).is_empty());
        }
        // A request that claims a history.
        for (ns, nr) in [(1, 0), (0, 1), (65_535, 0)] {
            let packet = lac.packet_at(ns, nr, 0, &lac.sccrq().bytes);
            stage.send(&packet);
            assert!(stage.hear().is_empty());
        }
        assert_eq!(stage.discarded(Discard::NotARequest), 6);
        // A LAC answers no request.
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
        // Once, and only once.
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

/// A tunnel that is closed before its SCCRQ left is no business of the peer's.
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
    // Half open, and one of ours.
    let mut half = Peer::new(Version::V2, 5);
    let request = half.sccrq();
    half.say(&mut stage, &request);
    stage.open_tunnel(Version::V2);
    only(&stage.hear(), M::Sccrq);
    stage.with(|lns, now| lns.shut_down(now));
    let got = stage.hear();
    // Those with an unacknowledged message before it, too.
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

/// A peer that acknowledges but does not go on: neither forever half open, nor forever
/// waiting for a reply.
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

/// StopCCN 2, error 4, "insufficient resources to handle this operation now", without a
/// record of who asked.
#[test]
fn b28_a_request_over_the_limit_of_tunnels_gets_stopccn_2_4() {
    for peer in VERSIONS {
        let config = Config {
            limits: Limits {
                tunnels: 3,
                ..Config::default().limits
            },
            ..lns_config()
        };
        let mut stage = Stage::new(config);
        for id in 1..=3 {
            let mut lac = peer();
            lac.id += id;
            lac.connect(&mut stage);
        }
        let mut lac = peer();
        for _ in 0..3 {
            (lac.ns, lac.nr) = (0, 0);
            let request = lac.sccrq();
            let stop = only(&lac.say(&mut stage, &request), M::StopCcn);
            assert_eq!(stop.codes(), (2, Some(4)));
            assert_eq!((stop.connection, stop.ns, stop.nr), (lac.id, 0, 1));
            assert_ne!(stop.assigned_connection(), 0);
        }
        assert_eq!(stage.discarded(Discard::TunnelLimit), 3);
        assert_eq!(stage.counter("stateless_refusals"), 3);
        assert_eq!((stage.counts().tunnels, stage.counts().closing), (3, 0));
        let refused = stage.with(|lns, now| lns.open_tunnel(to_peer(Version::V2), now));
        assert_eq!(refused, Err(OpenError::TunnelLimit));
        // A peer that begins anew needs no more room than it had.
        let mut lac = peer();
        lac.id += 3;
        let request = lac.sccrq().avp(A::VendorName, b"restarted");
        lac.connect_with(&mut stage, &request, &Body::new(M::Scccn));
        assert_eq!(stage.tunnel_end(), TunnelEnd::PeerRestarted);
        // One that goes makes room at once, held as it is.
        let tunnel = stage.endpoint().next_tunnel(0).unwrap().1.key;
        stage.with(|lns, now| lns.close_tunnel(tunnel, now));
        stage.hear();
        let mut lac = peer();
        lac.connect(&mut stage);
    }
}

/// At the limit of half-open tunnels a request costs the oldest of them its place, so that a
/// flood leaves its own behind and a genuine peer needs no more than a round trip; requests
/// that are refused count as well until their sender has taken the refusal.
#[test]
fn b28_half_open_tunnels_have_a_limit_and_the_oldest_makes_room() {
    let config = Config {
        limits: Limits {
            half_open: 4,
            ..Config::default().limits
        },
        ..lns_config()
    };
    for good in [true, false] {
        let mut stage = Stage::new(config.clone());
        for id in 1..=4 {
            let mut flood = Peer::new(Version::V2, id);
            let request = match good {
                true => flood.sccrq(),
                false => flood.sccrq().raw(0x80, 0, 9999, b""),
            };
            flood.say(&mut stage, &request);
        }
        assert_eq!(stage.counts().half_open, 4);
        let mut late = Peer::new(Version::V2, 5);
        let request = late.packet(0, &late.clone().sccrq());
        stage.send(&request);
        // The oldest is told, where it was not refused already; the new one is served.
        let heard = stage.hear();
        let refused = heard.iter().filter(|got| got.kind() == M::StopCcn).count();
        assert_eq!(refused, usize::from(good));
        assert_eq!(heard.iter().filter(|got| got.kind() == M::Sccrp).count(), 1);
        assert_eq!(stage.counts().half_open, 4);
        assert_eq!(stage.discarded(Discard::HalfOpenLimit), 0);
        stage.run_secs(100);
        assert_eq!(stage.counts().half_open, 0);
    }
}

/// The tunnel that a peer begins anew may be the one that has to make room for it.
#[test]
fn b28_a_peer_that_begins_anew_at_the_limit_of_half_open_tunnels_is_answered() {
    let config = Config {
        limits: Limits {
            half_open: 1,
            ..Config::default().limits
        },
        ..lns_config()
    };
    for peer in VERSIONS {
        let mut stage = Stage::new(config.clone());
        for name in [&b"first"[..], b"second", b"third"] {
            let mut lac = peer();
            let request = lac.sccrq().avp(A::VendorName, name);
            let got = lac.say(&mut stage, &request);
            assert_eq!(got.last().map(Got::kind), Some(M::Sccrp));
            assert_eq!(stage.counts().half_open, 1);
        }
        // One that cannot be taken costs nobody's place.
        let mut lac = peer();
        let request = lac.sccrq().u16(A::ReceiveWindowSize, 0);
        assert!(lac.say(&mut stage, &request).is_empty());
        assert_eq!(stage.discarded(Discard::NotARequest), 1);
        assert_eq!((stage.counts().half_open, stage.counts().closing), (1, 0));
    }
}

#[test]
fn b28_the_history_of_ends_has_a_limit_and_the_latest_is_first() {
    let config = Config {
        limits: Limits {
            history: 3,
            ..Config::default().limits
        },
        ..lns_config()
    };
    let mut stage = Stage::new(config);
    for id in 1..=5 {
        let mut lac = Peer::new(Version::V2, id);
        lac.connect(&mut stage);
        let stop = lac.stop_ccn(id as u16);
        lac.say(&mut stage, &stop);
    }
    let ids: Vec<u32> = (0..)
        .map_while(|n| stage.endpoint().ended_tunnel(n))
        .map(|ended| ended.remote_id)
        .collect();
    assert_eq!(ids, [5, 4, 3]);
    let TunnelEnd::Peer(notice) = stage.tunnel_end() else {
        panic!("{:?}", stage.tunnel_end());
    };
    assert_eq!(notice.result, 5);
}

/// What a peer says in a Result Code is kept, whatever it is, and fit to be printed.
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
    // Without one, the tunnel is closed all the same.
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    only_ack(&lac.say(&mut stage, &Body::new(M::StopCcn)));
    assert!(matches!(stage.tunnel_end(), TunnelEnd::Peer(_)));
    // A malformed StopCCN is one, too: nothing else could be done but close.
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    let stop = lac.stop_ccn(1).raw(0x80, 0, 9999, b"").octets(&[0x80]);
    only_ack(&lac.say(&mut stage, &stop));
    assert!(matches!(stage.tunnel_end(), TunnelEnd::Peer(_)));
}
