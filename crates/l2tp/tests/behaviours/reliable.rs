//! Reliable delivery of control messages, each once and in order: RFC 2661 5.8, RFC 3931 4.2.

use base::Duration;
use l2tp::{Call, Config, Discard, Event, Retransmit, TunnelEnd};
use wire::l2tp::{Attribute as A, MessageType as M, Version};

use crate::common::{Body, Got, Peer, Stage, kinds, lac_config, lns_config, only, only_ack};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

fn seconds(got: &[Got]) -> Vec<u64> {
    let at = |g: &Got| g.at.as_nanos() / 1_000_000_000;
    got.iter().map(at).collect()
}

#[test]
fn b09_a_retransmitted_sccrq_gets_the_same_tunnels_sccrp_again() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let request = lac.packet(0, &lac.clone().sccrq());
        stage.send(&request);
        let first = only(&lac.hear(&mut stage), M::Sccrp);
        for _ in 0..20 {
            stage.send(&request);
            let again = only(&lac.hear(&mut stage), M::Sccrp);
            assert_eq!(again.whole, first.whole);
            assert_eq!(stage.counts().tunnels, 1);
        }
        assert_eq!(stage.counter("duplicates"), 20);
        lac.take_sccrp(&first);
        only_ack(&lac.say(&mut stage, &Body::new(M::Scccn)));
        // A late copy, which the established tunnel only acknowledges.
        stage.send(&request);
        let ack = only_ack(&lac.hear(&mut stage));
        assert_eq!((ack.ns, ack.nr), (1, 2));
        assert_eq!(stage.counts().established, 1);
        assert_eq!(stage.counter("tunnels_opened"), 1);
    }
}

/// Once the tunnel is established, a duplicate of the request gets only an acknowledgement, whatever is queued:
/// it must not make us retransmit.
#[test]
fn b09_a_late_sccrq_does_not_make_an_established_tunnel_send_again() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    let request = lac.packet(0, &lac.clone().sccrq());
    stage.send(&request);
    let reply = only(&lac.hear(&mut stage), M::Sccrp);
    lac.take_sccrp(&reply);
    only_ack(&lac.say(&mut stage, &Body::new(M::Scccn)));
    let call = lac.icrq(5);
    only(&lac.say(&mut stage, &call), M::Icrp);
    stage.send(&request);
    only_ack(&lac.hear(&mut stage));
}

/// Two requests that differ in address, port or id open two tunnels.
#[test]
fn b09_requests_from_other_ports_or_with_other_ids_are_other_tunnels() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    let request = lac.packet(0, &lac.clone().sccrq());
    stage.send(&request);
    stage.send_from(sim::addr("192.0.2.1:1702"), &request);
    stage.send_from(sim::addr("192.0.2.9:1701"), &request);
    let mut other = Peer::new(Version::V2, 78);
    let request = other.packet(0, &other.clone().sccrq());
    stage.send(&request);
    assert_eq!(stage.counts().half_open, 4);
}

/// A restarted peer may choose the same id again. Its old tunnel is dead, and a StopCCN would hit the new one,
/// which has the same id.
#[test]
fn b09_another_request_with_the_same_id_begins_anew() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        lac.call(&mut stage, 5);
        let mut again = peer();
        let request = again.sccrq().avp(A::VendorName, b"restarted");
        again.connect_with(&mut stage, &request, &Body::new(M::Scccn));
        assert_ne!(again.remote, lac.remote);
        assert_eq!(stage.counts().tunnels, 1);
        assert_eq!(stage.counts().sessions, 0);
        assert_eq!(stage.tunnel_end(), TunnelEnd::PeerRestarted);
        again.call(&mut stage, 5);
    }
}

/// "Receipt of duplicate messages MUST be acknowledged" (RFC 2661 5.8).
#[test]
fn b10_a_duplicate_is_acknowledged_again_and_not_processed_again() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let request = lac.packet(0, &lac.clone().icrq(5));
        stage.send(&request);
        only(&lac.hear(&mut stage), M::Icrp);
        for _ in 0..5 {
            stage.send(&request);
            let ack = only_ack(&lac.hear(&mut stage));
            // A ZLB carries the Ns of the next message, and Nr as usual.
            assert_eq!((ack.ns, ack.nr), (2, 3));
        }
        assert_eq!(stage.counts().sessions, 1);
        assert_eq!(stage.counter("duplicates"), 5);
        assert_eq!(stage.counter("received_icrq"), 1);
    }
}

/// The range of RFC 2661 5.8: the last received number and the 32,767 before it.
#[test]
fn b10_the_last_32768_numbers_are_duplicates_and_those_ahead_are_not() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    let nr = lac.ns;
    let hello = Body::new(M::Hello).bytes;
    for back in [1, 2, 100, 32_767, 32_768] {
        let old = lac.packet_at(nr.wrapping_sub(back), lac.nr, 0, &hello);
        stage.send(&old);
        assert_eq!(only_ack(&lac.hear(&mut stage)).nr, nr, "{back} back");
    }
    assert_eq!(stage.counter("duplicates"), 5);
    for ahead in [32_767, 1_000, 32] {
        let new = lac.packet_at(nr.wrapping_add(ahead), lac.nr, 0, &hello);
        stage.send(&new);
        assert!(lac.hear(&mut stage).is_empty(), "{ahead} ahead");
    }
    assert_eq!(stage.discarded(Discard::BeyondWindow), 3);
    assert_eq!(stage.counter("received_hello"), 0);
}

/// "Messages arriving out of order may be queued for in-order delivery" (RFC 2661
/// 5.8).
#[test]
fn b11_messages_inside_the_window_are_queued_and_taken_in_order() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let packets: Vec<Vec<u8>> = (1..=5)
            .map(|n| lac.packet(0, &lac.clone().icrq(n)))
            .collect();
        for n in [4, 1, 3, 3, 1, 2] {
            stage.send(&packets[n]);
            // Each early message is answered at once with the missing Ns.
            let ack = only_ack(&lac.hear(&mut stage));
            assert_eq!(ack.nr, 2);
        }
        assert_eq!(stage.counts().sessions, 0);
        assert_eq!(stage.counter("out_of_order"), 6);
        stage.send(&packets[0]);
        // Three are sent at once: the window has opened twice during set-up.
        let mut sessions = Vec::new();
        while sessions.len() < 5 {
            for reply in lac.hear(&mut stage) {
                assert_eq!((reply.kind(), reply.nr), (M::Icrp, 7));
                sessions.push(match reply.version {
                    Version::V2 => u32::from(reply.session),
                    Version::V3 => reply.u32(A::RemoteSessionId),
                });
            }
            lac.ack(&mut stage);
        }
        assert_eq!(sessions, [1, 2, 3, 4, 5]);
        assert_eq!(stage.counts().sessions, 5);
        // All but the first arrive again and are duplicates by now.
        for packet in &packets {
            stage.send(packet);
            only_ack(&lac.hear(&mut stage));
        }
        assert_eq!(stage.counts().sessions, 5);
    }
}

#[test]
fn b11_messages_beyond_the_window_are_dropped_and_never_fatal() {
    let config = Config {
        receive_window: 4,
        ..lns_config()
    };
    let (mut stage, mut lac) = (Stage::new(config), Peer::v2());
    lac.connect(&mut stage);
    let packets: Vec<Vec<u8>> = (1..=5)
        .map(|n| lac.packet(0, &lac.clone().icrq(n)))
        .collect();
    stage.send(&packets[4]);
    assert!(lac.hear(&mut stage).is_empty());
    assert_eq!(stage.discarded(Discard::BeyondWindow), 1);
    for packet in packets[..4].iter().rev() {
        stage.send(packet);
    }
    assert_eq!(stage.counts().sessions, 4);
    stage.send(&packets[4]);
    assert_eq!(stage.counts().sessions, 5);
}

/// A StopCCN that overtook a call still ends it, in order.
#[test]
fn b11_an_early_stopccn_waits_for_what_was_said_before_it() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    let call = lac.packet(0, &lac.clone().icrq(5));
    let stop = lac.packet(0, &lac.clone().stop_ccn(1));
    stage.send(&stop);
    assert_eq!(stage.counts().established, 1);
    stage.send(&call);
    assert_eq!(stage.counts().tunnels, 0);
    assert!(matches!(stage.tunnel_end(), TunnelEnd::Peer(_)));
    assert_eq!(stage.counter("received_icrq"), 1);
}

/// RFC 2661 5.8: 1 s, then doubling, capped at no less than 8 s; five retransmissions by default. Then the
/// tunnel is cleared. A StopCCN follows the SCCRQ, for a peer that receives our messages but whose answers are
/// lost.
#[test]
fn b12_retransmissions_after_1_2_4_8_8_seconds_then_the_tunnel_goes() {
    for version in [Version::V2, Version::V3] {
        let (mut stage, mut peer) = (Stage::lac(), Peer::new(version, 9));
        stage.open_tunnel(version);
        stage.run_secs(30);
        let got = peer.hear(&mut stage);
        assert_eq!(seconds(&got), [0, 1, 3, 7, 15, 23]);
        assert!(got.iter().all(|g| g.whole == got[0].whole));
        assert_eq!(stage.counts().tunnels, 1);

        stage.run_secs(1);
        let got = peer.hear(&mut stage);
        assert_eq!(kinds(&got), [Some(M::Sccrq), Some(M::StopCcn)]);
        assert_eq!((got[0].ns, got[1].ns, got[1].connection), (0, 1, 0));
        assert_eq!(stage.tunnel_end(), TunnelEnd::Unanswered);
        let result = if version == Version::V2 { 1 } else { 7 };
        assert_eq!(got[1].codes(), (result, None));
        assert_eq!(stage.counts().tunnels, 0);

        // Nothing more is sent.
        stage.run_secs(100);
        assert!(stage.hear().is_empty());
        assert_eq!(stage.counts(), Default::default());
        let downs = stage.events();
        let is_down = |e: &&Event| matches!(e, Event::TunnelDown { .. });
        assert_eq!(downs.iter().filter(is_down).count(), 1);
    }
}

#[test]
fn b12_first_interval_cap_and_tries_are_configurable() {
    let config = Config {
        retransmit: Retransmit {
            first: Duration::from_secs(2),
            cap: Duration::from_secs(20),
            tries: 7,
        },
        setup_timeout: Duration::from_secs(1_000),
        ..lac_config()
    };
    let mut stage = Stage::new(config);
    stage.open_tunnel(Version::V2);
    stage.run_secs(109);
    let expected = [0, 2, 6, 14, 30, 50, 70, 90];
    assert_eq!(seconds(&stage.hear()), expected);
    stage.run_secs(1);
    assert_eq!(kinds(&stage.hear()), [Some(M::Sccrq), Some(M::StopCcn)]);
}

/// "If no peer response is detected [...] the tunnel and all sessions within MUST be cleared" (RFC 2661 5.8):
/// also at the LNS, and for an established tunnel.
#[test]
fn b12_an_unacknowledged_icrp_clears_the_tunnel_and_its_sessions() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        lac.call(&mut stage, 5);
        let call = lac.icrq(6);
        only(&lac.say(&mut stage, &call), M::Icrp);
        stage.run_for(Duration::from_millis(30_999));
        let got = lac.hear(&mut stage);
        assert_eq!(kinds(&got), [Some(M::Icrp); 5]);
        assert_eq!(seconds(&got), [1, 3, 7, 15, 23]);
        assert_eq!(stage.counts().sessions, 2);
        stage.run_for(Duration::from_millis(1));
        assert_eq!(stage.tunnel_end(), TunnelEnd::Unanswered);
        assert_eq!(stage.counts().sessions, 0);
        let got = lac.hear(&mut stage);
        assert_eq!(kinds(&got), [Some(M::Icrp), Some(M::StopCcn)]);
    }
}

/// "The retransmitted message contains the same Ns value, but the Nr value MUST be
/// updated" (RFC 2661 5.8).
#[test]
fn b12_a_retransmission_has_the_same_ns_and_the_new_nr() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    let call = lac.icrq(5);
    let first = only(&lac.say(&mut stage, &call), M::Icrp);
    assert_eq!((first.ns, first.nr), (1, 3));
    // The reply was lost, and the peer sends another message.
    let hello = lac.packet_at(lac.ns, 1, 0, &Body::new(M::Hello).bytes);
    stage.send(&hello);
    only_ack(&lac.hear(&mut stage));
    stage.run_secs(1);
    let again = only(&lac.hear(&mut stage), M::Icrp);
    assert_eq!((again.ns, again.nr), (1, 4));
    assert_eq!(again.body, first.body);
}

/// An acknowledgement restarts the next message's interval at one second.
#[test]
fn b12_an_acknowledgement_resets_the_interval() {
    let (mut stage, mut lns) = (Stage::lac(), Peer::v2());
    let tunnel = lns.answer(&mut stage);
    stage.open_session(tunnel, Call::default());
    stage.run_secs(10);
    assert_eq!(seconds(&lns.hear(&mut stage)), [0, 1, 3, 7]);
    stage.open_session(tunnel, Call::default());
    assert!(stage.hear().is_empty(), "the window has shrunk to one");
    lns.ack(&mut stage);
    stage.run_secs(4);
    assert_eq!(seconds(&lns.hear(&mut stage)), [10, 11, 13]);
}

/// "Ns is not incremented after a ZLB message is sent", and Nr "is not be updated by
/// the Ns of the ZLB" (RFC 2661 5.8).
#[test]
fn b14_a_zlb_consumes_no_ns_in_either_direction() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        for n in 0..10 {
            let ack = only_ack(&lac.say(&mut stage, &Body::new(M::Hello)));
            assert_eq!((ack.ns, ack.nr), (1, 3 + n));
            // Whatever Ns the peer's ZLBs have, our sequence is unaffected, and we do not answer.
            for ns in [0, 1, 500, u16::MAX, lac.ns] {
                let zlb = lac.packet_at(ns, lac.nr, 0, &[]);
                stage.send(&zlb);
                assert!(stage.hear().is_empty());
            }
        }
        let call = lac.icrq(5);
        let reply = only(&lac.say(&mut stage, &call), M::Icrp);
        assert_eq!((reply.ns, reply.nr), (1, lac.ns));
    }
}

/// RFC 2661 5.8: an acknowledgement may be "piggybacked on a message in queue".
#[test]
fn b14_acknowledgements_ride_on_replies_of_the_same_batch() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let hello = lac.packet(0, &Body::new(M::Hello));
        let call = lac.packet(0, &lac.clone().icrq(5));
        let more = lac.packet(0, &Body::new(M::Hello));
        stage.send_batch(&[hello, call, more]);
        let reply = only(&lac.hear(&mut stage), M::Icrp);
        assert_eq!(reply.nr, lac.ns);

        // Ten messages that need no reply: one ZLB.
        let hellos: Vec<Vec<u8>> = (0..10)
            .map(|_| lac.packet(0, &Body::new(M::Hello)))
            .collect();
        stage.send_batch(&hellos);
        assert_eq!(only_ack(&lac.hear(&mut stage)).nr, lac.ns);
    }
}
