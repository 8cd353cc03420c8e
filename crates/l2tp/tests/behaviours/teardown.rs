//! How tunnels close, and how long they are held: RFC 2661 5.7, 5.8 and 7.6, RFC 3931 3.3.2 and 7.5.

use base::Duration;
use l2tp::{Discard, TunnelEnd};
use wire::l2tp::MessageType as M;

use crate::common::{Body, Peer, Stage, kinds, only, only_ack};

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
        // So are other messages still in flight, without further effect.
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
        // "Late duplicates are still acked": for example the peer's SCCCN.
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

/// The hold time is configurable, and a message awaited during it is not new work.
#[test]
fn b20_a_closing_tunnel_acknowledges_and_does_nothing_else() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    let tunnel = stage.tunnel();
    stage.with(|lns, now| lns.close_tunnel(tunnel, now));
    stage.hear();
    // These crossed our StopCCN.
    for body in [lac.icrq(5), Body::new(M::Hello), lac.sccrq()] {
        let packet = lac.packet_at(lac.ns, 1, 0, &body.bytes);
        lac.ns += 1;
        stage.send(&packet);
        assert_eq!(only_ack(&lac.hear(&mut stage)).nr, lac.ns);
    }
    assert_eq!((stage.counts().sessions, stage.counts().closing), (0, 1));
    // A StopCCN from the peer that crossed ours completes the exchange.
    let stop = lac.packet_at(lac.ns, 1, 0, &lac.stop_ccn(6).bytes);
    stage.send(&stop);
    only_ack(&stage.hear());
    assert_eq!((stage.counts().closing, stage.counts().held), (0, 1));
    stage.run_secs(30);
    assert!(stage.hear().is_empty(), "ours is not sent again");
    assert_eq!(stage.tunnel_end(), TunnelEnd::Administrative);
}

/// RFC 2661 4.4.3: the Assigned Tunnel ID in a StopCCN permits "the peer to identify the
/// appropriate tunnel even if a StopCCN is sent before an Assigned Tunnel ID is received".
#[test]
fn b20_a_stopccn_before_the_ids_are_known_finds_its_tunnel() {
    for peer in VERSIONS {
        // Our StopCCN.
        let (mut stage, mut lns) = (Stage::lac(), peer());
        let tunnel = stage.open_tunnel(lns.version);
        let request = only(&lns.hear(&mut stage), M::Sccrq);
        stage.with(|lac, now| lac.close_tunnel(tunnel, now));
        let stop = only(&lns.hear(&mut stage), M::StopCcn);
        assert_eq!((stop.connection, stop.ns), (0, 1));
        assert_eq!(stop.assigned_connection(), request.assigned_connection());
        // Neither end waits for the other, in case one StopCCN was lost.
        stage.run_secs(1);
        let got = lns.hear(&mut stage);
        assert_eq!(kinds(&got), [Some(M::Sccrq), Some(M::StopCcn)]);
        lns.ack_to(request.assigned_connection(), &mut stage);
        stage.run_secs(60);
        assert!(stage.hear().is_empty());
        assert_eq!(stage.counts(), Default::default());

        // The peer's StopCCN.
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

/// A refusal is the first message to carry the peer's id. Without storing it, our acknowledgement would find no
/// tunnel there, and the peer would retransmit its StopCCN five times.
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
