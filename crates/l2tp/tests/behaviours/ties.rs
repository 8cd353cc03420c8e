//! Two crossing requests: RFC 2661 4.4.3, RFC 3931 5.4.3, and for calls RFC 3931 5.4.4.

use base::Duration;
use l2tp::{Call, CallDetails, Config, Discard, Endpoint, SessionEnd, TunnelEnd};
use sim::{Link, Pair};
use wire::l2tp::{Attribute as A, MessageType as M, Version};

use crate::common::{Body, Got, Peer, Stage, kinds, lns_config, only, open_to};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

fn config(tie_breaker: bool) -> Config {
    Config {
        tie_breaker,
        ..lns_config()
    }
}

/// The peer has received our SCCRQ and sends its own with a tie breaker that `choose` derives from ours;
/// returns our answer.
fn cross(
    peer: fn() -> Peer,
    ours: bool,
    choose: impl FnOnce(Option<u64>) -> Option<u64>,
) -> (Stage, Peer, Vec<Got>) {
    let (mut stage, mut peer) = (Stage::new(config(ours)), peer());
    stage.open_tunnel(peer.version);
    let sccrq = only(&stage.hear(), M::Sccrq);
    let tie = sccrq.message().u64(A::TieBreaker);
    assert_eq!(tie.is_some(), ours);
    // The peer's own request has a different id from the tunnel that we will open.
    let mut request = peer.sccrq();
    if let Some(tie) = choose(tie) {
        request = request.u64(A::TieBreaker, tie);
    }
    let got = peer.say(&mut stage, &request);
    peer.ns = 0;
    (stage, peer, got)
}

/// "The lower value 'wins', and the 'loser' MUST silently discard its tunnel" (RFC 2661
/// 4.4.3); RFC 3931 7.2: "lose tie breaker, SCCRQ acceptable: Send SCCRP".
#[test]
fn b17_the_peers_lower_tie_breaker_wins_and_our_tunnel_goes_in_silence() {
    for peer in VERSIONS {
        let (mut stage, _, got) = cross(peer, true, |ours| ours.map(|tie| tie - 1));
        only(&got, M::Sccrp);
        assert_eq!(stage.tunnel_end(), TunnelEnd::LostTie);
        assert_eq!(stage.counts().tunnels, 1);
        assert_eq!(stage.counts().half_open, 1);
        // Our SCCRQ is never sent again.
        stage.run_secs(20);
        let later = stage.hear();
        assert!(later.iter().all(|g| g.kind() == M::Sccrp), "{later:?}");
    }
}

/// In version 2 the loser's request goes unanswered; in version 3 "a StopCCN SHOULD be
/// sent by the winner as an explicit rejection for the losing SCCRQ".
#[test]
fn b17_our_lower_tie_breaker_wins_and_the_peers_request_is_dropped() {
    for peer in VERSIONS {
        let (mut stage, mut peer, got) = cross(peer, true, |ours| ours.map(|tie| tie + 1));
        match peer.version {
            Version::V2 => assert!(got.is_empty()),
            Version::V3 => {
                let stop = only(&got, M::StopCcn);
                // "Control connection already exists" (RFC 3931 5.4.2).
                assert_eq!(stop.codes(), (3, None));
                assert_eq!((stop.connection, stop.ns, stop.nr), (peer.id, 0, 1));
                peer.nr = 0;
            }
        }
        assert_eq!(stage.discarded(Discard::LostTie), 1);
        assert_eq!((stage.counts().tunnels, stage.counts().half_open), (1, 0));
        // Our tunnel continues.
        stage.run_secs(1);
        peer.remote = only(&peer.hear(&mut stage), M::Sccrq).assigned_connection();
        peer.id += 1;
        let reply = peer.sccrp();
        only(&peer.say(&mut stage, &reply), M::Scccn);
        assert_eq!(stage.counts().established, 1);
    }
}

/// "In the case where a tie breaker is present on both sides, and the value is equal, both
/// sides MUST discard their tunnels."
#[test]
fn b17_equal_tie_breakers_discard_both_tunnels() {
    for peer in VERSIONS {
        let (mut stage, _, got) = cross(peer, true, |ours| ours);
        assert!(got.is_empty(), "{got:?}");
        assert_eq!(stage.tunnel_end(), TunnelEnd::LostTie);
        assert_eq!(stage.discarded(Discard::LostTie), 1);
        assert_eq!(stage.counts().tunnels, 0);
        stage.run_secs(60);
        assert!(stage.hear().is_empty());
        assert_eq!(stage.counts(), Default::default());
    }
}

/// "The initiator which included the Tie Breaker AVP 'wins'."
#[test]
fn b17_a_tie_breaker_wins_over_none() {
    for peer in VERSIONS {
        let (stage, _, got) = cross(peer, false, |_| Some(u64::MAX));
        only(&got, M::Sccrp);
        assert_eq!(stage.tunnel_end(), TunnelEnd::LostTie);
        assert_eq!(stage.counts().tunnels, 1);

        let (stage, peer, got) = cross(peer, true, |_| None);
        assert_eq!(got.is_empty(), peer.version == Version::V2);
        assert_eq!(stage.discarded(Discard::LostTie), 1);
        assert_eq!(stage.counts().half_open, 0);
    }
}

/// "If neither side issues a tie breaker, then two separate tunnels are opened."
#[test]
fn b17_without_tie_breakers_two_tunnels_are_opened() {
    for peer in VERSIONS {
        let (mut stage, mut peer, got) = cross(peer, false, |_| None);
        only(&got, M::Sccrp);
        assert_eq!((stage.counts().tunnels, stage.counts().half_open), (2, 1));
        peer.hear(&mut stage);
    }
}

/// A tie breaker has no effect if no request of ours is unanswered.
#[test]
fn b17_a_tie_breaker_does_not_touch_an_established_tunnel() {
    for peer in VERSIONS {
        let (mut stage, mut first) = (Stage::new(config(true)), peer());
        first.answer(&mut stage);
        let mut second = peer();
        second.id += 1;
        let request = second.sccrq().u64(A::TieBreaker, 0);
        second.connect_with(&mut stage, &request, &Body::new(M::Scccn));
        assert_eq!(stage.counts().established, 2);
    }
}

/// A tie is between two peers: a third peer that redials does not affect it.
#[test]
fn b17_a_tie_is_between_two_peers_only() {
    let (mut stage, mut peer) = (Stage::new(config(true)), Peer::v2());
    stage.open_tunnel(Version::V2);
    stage.hear();
    let request = peer.packet(0, &peer.clone().sccrq().u64(A::TieBreaker, 0));
    stage.send_from(sim::addr("192.0.2.77:1701"), &request);
    assert_eq!((stage.counts().tunnels, stage.counts().half_open), (2, 1));
}

/// Two of our endpoints dial each other at once, over links that lose and reorder: one tunnel is left,
/// whichever was first.
#[test]
fn b17_two_endpoints_that_dial_each_other_are_left_with_one_tunnel() {
    sim::seeds(100, |seed| {
        let endpoint = |octet| Endpoint::new(config(true), [octet; 32]);
        let (a, b) = (endpoint(seed as u8), endpoint(seed as u8 ^ 0xff));
        let link = Link {
            loss: 0.05,
            ..Link::ROUGH
        };
        let mut pair = Pair::new(seed, link, a, b);
        let version = [Version::V2, Version::V3][seed as usize % 2];
        pair.with_a(|a, now| a.open_tunnel(open_to(sim::ADDRESS_B, version), now))
            .expect("nothing is full");
        pair.with_b(|b, now| b.open_tunnel(open_to(sim::ADDRESS_A, version), now))
            .expect("nothing is full");
        pair.run_for(Duration::from_secs(60));
        let counts = (pair.a().counts(), pair.b().counts());
        assert_eq!(counts.0.established, counts.1.established);
        // A request may be lost until the other tunnel is established: then there is no tie.
        assert!(matches!(counts.0.established, 1 | 2), "{counts:?}");
        assert_eq!(
            (counts.0.tunnels, counts.1.tunnels),
            (counts.0.established, counts.1.established)
        );
    });
}

fn circuit(name: &[u8]) -> Call {
    Call {
        details: CallDetails {
            remote_end_id: name.into(),
            ..CallDetails::default()
        },
        ..Call::default()
    }
}

/// Two ICRQs for one circuit have crossed, the peer's with a tie breaker that `choose` derives from ours.
fn cross_calls(
    ours: bool,
    choose: impl FnOnce(Option<u64>) -> Option<u64>,
) -> (Stage, Peer, u32, Vec<Got>) {
    let (mut stage, mut peer) = (Stage::new(config(ours)), Peer::v3());
    let tunnel = peer.answer(&mut stage);
    stage.open_session(tunnel, circuit(b"circuit 1"));
    let icrq = only(&peer.hear(&mut stage), M::Icrq);
    assert_eq!(icrq.get(A::RemoteEndId).unwrap(), b"circuit 1");
    let tie = icrq.message().u64(A::TieBreaker);
    assert_eq!(tie.is_some(), ours);
    let mut request = peer
        .icrq(5)
        .without(A::RemoteEndId)
        .avp(A::RemoteEndId, b"circuit 1");
    if let Some(tie) = choose(tie) {
        request = request.u64(A::TieBreaker, tie);
    }
    peer.ack(&mut stage);
    let got = peer.say(&mut stage, &request);
    (stage, peer, icrq.assigned_session(), got)
}

/// "The LCCE with the lower value 'wins' and MUST send a CDN with result code set to 13 [...]
/// in response to the losing ICRQ" (RFC 3931 5.4.4).
#[test]
fn b17_the_lower_session_tie_breaker_wins_and_sends_cdn_13() {
    let (mut stage, mut peer, ours, got) = cross_calls(true, |tie| tie.map(|tie| tie + 1));
    let cdn = only(&got, M::Cdn);
    assert_eq!((cdn.codes(), cdn.u32(A::RemoteSessionId)), ((13, None), 5));
    assert_eq!(stage.session_end(), SessionEnd::LostTie);
    peer.ack(&mut stage);
    let reply = peer.reply(M::Icrp, 6, ours);
    only(&peer.say(&mut stage, &reply), M::Iccn);
    assert_eq!(stage.counts().sessions_established, 1);
}

/// "Lose tie breaker: Process as ICRQ Recipient" (RFC 3931 7.3.1).
#[test]
fn b17_a_session_that_loses_its_tie_makes_way_for_the_peers() {
    let (stage, _, ours, got) = cross_calls(true, |tie| tie.map(|tie| tie - 1));
    assert_eq!(kinds(&got), [Some(M::Cdn), Some(M::Icrp)]);
    assert_eq!(got[0].codes(), (13, None));
    assert_eq!(got[0].assigned_session(), ours);
    assert_eq!(stage.counts().sessions, 1);
    let session = stage.session();
    assert_eq!(stage.endpoint().session(session).unwrap().remote_id, 5);
}

/// "The tie breaker values are equal, both sides MUST discard their sessions"; "if neither
/// side issues a tie breaker, then both sides MUST tear down the session"; "the session
/// initiator that included the Session Tie Breaker AVP 'wins'".
#[test]
fn b17_equal_or_absent_session_tie_breakers_end_both_calls() {
    let (stage, _, _, got) = cross_calls(true, |tie| tie);
    assert_eq!(kinds(&got), [Some(M::Cdn), Some(M::Cdn)]);
    assert!(got.iter().all(|cdn| cdn.codes() == (13, None)));
    assert_eq!(stage.counts().sessions, 0);

    let (stage, _, _, got) = cross_calls(false, |_| None);
    assert_eq!(kinds(&got), [Some(M::Cdn), Some(M::Cdn)]);
    assert_eq!(stage.counts().sessions, 0);

    let (stage, _, _, got) = cross_calls(true, |_| None);
    only(&got, M::Cdn);
    assert_eq!(stage.counts().sessions, 1);

    let (stage, _, _, got) = cross_calls(false, |_| Some(u64::MAX));
    assert_eq!(kinds(&got), [Some(M::Cdn), Some(M::Icrp)]);
    assert_eq!(stage.counts().sessions, 1);
}

/// Calls for different circuits, and version 2 calls, do not tie.
#[test]
fn b17_calls_for_different_circuits_do_not_tie() {
    let (mut stage, mut peer) = (Stage::new(config(true)), Peer::v3());
    let tunnel = peer.answer(&mut stage);
    stage.open_session(tunnel, circuit(b"circuit 1"));
    stage.open_session(tunnel, Call::default());
    stage.open_session(tunnel, Call::default());
    peer.hear(&mut stage);
    peer.ack(&mut stage);
    let request = peer.icrq(5).u64(A::TieBreaker, 0);
    only(&peer.say(&mut stage, &request), M::Icrp);
    assert_eq!(stage.counts().sessions, 4);
}
