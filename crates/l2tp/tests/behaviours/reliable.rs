//! Reliable delivery of control messages: RFC 2661 5.8 and appendix A, RFC 3931
//! 4.2 and appendix A.

use base::Duration;
use l2tp::{Call, CallErrors, Config, Discard, Event, Retransmit, TunnelEnd, TunnelKey};
use sim::{Link, Pair};
use wire::l2tp::{Attribute as A, MessageType as M, Version};

use crate::common::{
    Body, Got, Peer, Stage, counter, kinds, lac_config, lns_config, only, only_ack, open_to,
};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

fn seconds(got: &[Got]) -> Vec<u64> {
    let at = |g: &Got| g.at.as_nanos() / 1_000_000_000;
    got.iter().map(at).collect()
}

/// "If absent, the peer must assume a Window Size of 4" (RFC 2661 4.4.3).
#[test]
fn b08_an_absent_receive_window_means_4() {
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        let tunnel = lns.answer(&mut stage);
        let view = stage.endpoint().tunnel(tunnel).unwrap();
        assert_eq!(view.peer_window, 4);
        assert_eq!(fill(&mut stage, &mut lns, tunnel, 30), 4);
    }
}

/// Opens `calls` sessions and acknowledges one message at a time until the window
/// has opened; returns the most that were ever in flight.
fn fill(stage: &mut Stage, lns: &mut Peer, tunnel: TunnelKey, calls: u16) -> u16 {
    stage.with(|lac, now| {
        for _ in 0..calls {
            lac.open_session(tunnel, Call::default(), now)
                .expect("nothing is full");
        }
    });
    let mut acked = lns.nr;
    let mut most = 0;
    loop {
        lns.hear(stage);
        let heard = lns.nr;
        most = most.max(heard.wrapping_sub(acked));
        if heard == acked {
            return most;
        }
        acked = acked.wrapping_add(1);
        let mut one = lns.clone();
        one.nr = acked;
        one.ack(stage);
    }
}

/// "A value of 0 for the Receive Window Size AVP is invalid" (RFC 2661 5.8).
#[test]
fn b08_a_receive_window_of_0_is_refused_with_a_code() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let request = lac.sccrq().u16(A::ReceiveWindowSize, 0);
        let got = lac.say(&mut stage, &request);
        assert_eq!(only(&got, M::StopCcn).codes(), (2, Some(3)));

        let (mut stage, mut lns) = (Stage::lac(), peer());
        stage.open_tunnel(lns.version);
        lns.take_sccrq(&mut stage);
        let reply = lns.sccrp().u16(A::ReceiveWindowSize, 0);
        let got = lns.say(&mut stage, &reply);
        assert_eq!(only(&got, M::StopCcn).codes(), (2, Some(3)));
    }
}

#[test]
fn b08_our_own_receive_window_is_told_and_is_never_0() {
    let config = Config {
        receive_window: 9,
        ..lac_config()
    };
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::new(config.clone()), peer());
        stage.open_tunnel(lns.version);
        let request = lns.take_sccrq(&mut stage);
        assert_eq!(request.u16(A::ReceiveWindowSize), 9);
    }
    let config = Config {
        receive_window: 0,
        ..lac_config()
    };
    assert_eq!(config.validate().unwrap_err().key, "receive_window");
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

/// A duplicate of the request gets no more than an acknowledgement once the tunnel
/// is up, whatever waits there: it must not make us repeat ourselves.
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

/// Two requests that differ in address, port or id are two tunnels.
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

/// A peer that restarted may choose the same id again. Its old tunnel is dead, and
/// a StopCCN would hit the new one, whose id is the same.
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
            // A ZLB has the Ns of the message to come, Nr as ever.
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
            // Each early one is answered at once with what is missing.
            let ack = only_ack(&lac.hear(&mut stage));
            assert_eq!(ack.nr, 2);
        }
        assert_eq!(stage.counts().sessions, 0);
        assert_eq!(stage.counter("out_of_order"), 6);
        stage.send(&packets[0]);
        // Three go at once: the window has opened twice in set-up.
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
        // All but the first come again: duplicates by now.
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

/// A StopCCN that overtook a call ends it all the same, in order.
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

/// RFC 2661 5.8: 1 s, then doubling, capped at no less than 8 s; five
/// retransmissions by default. Then the tunnel is cleared, with a StopCCN that
/// follows the SCCRQ for a peer that hears us but cannot be heard.
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

        // And not a word more.
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

/// "If no peer response is detected [...] the tunnel and all sessions within MUST be
/// cleared" (RFC 2661 5.8): for the LNS, too, and for what is established.
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
    // The reply was lost, and the peer says something else.
    let hello = lac.packet_at(lac.ns, 1, 0, &Body::new(M::Hello).bytes);
    stage.send(&hello);
    only_ack(&lac.hear(&mut stage));
    stage.run_secs(1);
    let again = only(&lac.hear(&mut stage), M::Icrp);
    assert_eq!((again.ns, again.nr), (1, 4));
    assert_eq!(again.body, first.body);
}

/// An acknowledgement starts the next message's time anew: one second again.
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

/// Appendix A: "During slow start, CWND is increased by one packet each time an ACK
/// [...] is received", and it "is never allowed to exceed" the peer's window.
#[test]
fn b13_slow_start_adds_one_for_each_acknowledgement_up_to_the_peers_window() {
    for window in [1_u16, 2, 4, 7, 20, 100] {
        let (mut stage, mut lns) = (Stage::lac(), Peer::v2());
        let reply = lns.sccrp().u16(A::ReceiveWindowSize, window);
        let tunnel = lns.answer_with(&mut stage, &reply);
        let cwnd = |stage: &Stage| stage.endpoint().tunnel(tunnel).unwrap().cwnd;
        // Two acknowledgements in set-up: of the SCCRQ and of the SCCCN.
        let mut expected = 3.min(window);
        assert_eq!(cwnd(&stage), expected);
        stage.with(|lac, now| {
            for _ in 0..300 {
                lac.open_session(tunnel, Call::default(), now)
                    .expect("nothing is full");
            }
        });
        let mut acked = lns.nr;
        for _ in 0..150 {
            let got = lns.hear(&mut stage);
            assert!(got.iter().all(|g| g.kind() == M::Icrq));
            assert_eq!(lns.nr.wrapping_sub(acked), expected, "in flight");
            acked = acked.wrapping_add(1);
            let mut one = lns.clone();
            one.nr = acked;
            one.ack(&mut stage);
            expected = (expected + 1).min(window);
            assert_eq!(cwnd(&stage), expected);
        }
    }
}

/// Appendix A: on a retransmission "one half of the CWND is saved in SSTHRESH, and
/// CWND is set to one"; from SSTHRESH on it grows by one in CWND acknowledgements.
#[test]
fn b13_a_retransmission_collapses_the_window_which_then_grows_slowly_from_half() {
    let (mut stage, mut lns) = (Stage::lac(), Peer::v2());
    let reply = lns.sccrp().u16(A::ReceiveWindowSize, 16);
    let tunnel = lns.answer_with(&mut stage, &reply);
    assert_eq!(fill(&mut stage, &mut lns, tunnel, 60), 16);
    stage.with(|lac, now| {
        for _ in 0..300 {
            lac.open_session(tunnel, Call::default(), now)
                .expect("nothing is full");
        }
    });
    assert_eq!(lns.hear(&mut stage).len(), 16);
    let mut acked = lns.nr.wrapping_sub(16);
    stage.run_secs(1);
    let got = lns.hear(&mut stage);
    assert_eq!(got.len(), 1, "only the oldest is sent again");
    assert_eq!(got[0].ns, acked);
    let cwnd = |stage: &Stage| stage.endpoint().tunnel(tunnel).unwrap().cwnd;
    assert_eq!(cwnd(&stage), 1);
    let mut seen = Vec::new();
    for _ in 0..50 {
        acked = acked.wrapping_add(1);
        let mut one = lns.clone();
        one.nr = acked;
        one.ack(&mut stage);
        seen.push(cwnd(&stage));
    }
    // Slow start to 8, then 8, 9, 10 and 11 acknowledgements for one more each.
    let mut expected: Vec<u16> = (2..=8).collect();
    for window in 8_u16..=11 {
        expected.extend(core::iter::repeat_n(window, usize::from(window) - 1));
        expected.push(window + 1);
    }
    assert_eq!(seen[..expected.len()], expected);
}

/// What was in flight when the window collapsed is sent again only as it opens, and
/// an acknowledgement of all of it is taken at once.
#[test]
fn b13_an_acknowledgement_after_a_collapse_frees_all_that_was_in_flight() {
    let (mut stage, mut lns) = (Stage::lac(), Peer::v2());
    let reply = lns.sccrp().u16(A::ReceiveWindowSize, 16);
    let tunnel = lns.answer_with(&mut stage, &reply);
    fill(&mut stage, &mut lns, tunnel, 60);
    stage.with(|lac, now| {
        for _ in 0..16 {
            lac.open_session(tunnel, Call::default(), now)
                .expect("nothing is full");
        }
    });
    assert_eq!(lns.hear(&mut stage).len(), 16);
    stage.run_secs(3);
    assert_eq!(lns.hear(&mut stage).len(), 2);
    lns.ack(&mut stage);
    let view = stage.endpoint().tunnel(tunnel).unwrap();
    assert_eq!(view.outstanding, 0);
    stage.run_secs(20);
    assert!(stage.hear().is_empty());
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
            // Whatever Ns theirs have, ours do not care, and say nothing back.
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

        // Ten messages with nothing to say to them: one ZLB.
        let hellos: Vec<Vec<u8>> = (0..10)
            .map(|_| lac.packet(0, &Body::new(M::Hello)))
            .collect();
        stage.send_batch(&hellos);
        assert_eq!(only_ack(&lac.hear(&mut stage)).nr, lac.ns);
    }
}

/// Sequence numbers are "represented modulo 65536" (RFC 2661 5.8): 70,000 HELLOs.
#[test]
fn b15_what_we_receive_wraps_at_65536() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    stage.world.set_log_limit(16);
    lac.connect(&mut stage);
    let hello = Body::new(M::Hello);
    for _ in 0..700 {
        let batch: Vec<Vec<u8>> = (0..100).map(|_| lac.packet(0, &hello)).collect();
        stage.send_batch(&batch);
        assert_eq!(only_ack(&lac.hear(&mut stage)).nr, lac.ns);
    }
    assert_eq!(stage.counter("received_hello"), 70_000);
    assert_eq!(lac.ns, ((70_000 + 2) % 65_536) as u16);
    assert_eq!(stage.counter("duplicates"), 0);
    lac.call(&mut stage, 5);
}

/// The same of what we send, with the window full all the way, over a link that
/// loses some.
#[test]
fn b15_what_we_send_wraps_at_65536_over_a_lossy_link() {
    let lac = l2tp::Endpoint::new(lac_config(), [1; 32]);
    let lns = l2tp::Endpoint::new(lns_config(), [2; 32]);
    let link = Link {
        loss: 0.001,
        duplicate: 0.01,
        ..Link::CLEAN
    };
    let mut pair = Pair::new(15, link, lac, lns);
    pair.set_log_limit(64);
    let session = pair.with_a(|lac, now| {
        let open = open_to(sim::ADDRESS_B, Version::V2);
        let tunnel = lac.open_tunnel(open, now).expect("nothing is full");
        lac.open_session(tunnel, Call::default(), now)
            .expect("nothing is full")
    });
    pair.run_for(Duration::from_secs(5));
    let mut sent = 0;
    while sent < 70_000 {
        pair.with_a(|lac, _| {
            for _ in 0..2_000 {
                let errors = CallErrors {
                    crc: sent,
                    ..CallErrors::default()
                };
                assert!(lac.send_wan_errors(session, errors));
                sent += 1;
            }
        });
        let idle = |world: &sim::World| {
            let tunnel = world[pair.a].next_tunnel(0).expect("it lives").1;
            tunnel.outstanding == 0
        };
        let world = &mut pair.world;
        world.expect("all is acknowledged", Duration::from_secs(900), idle);
    }
    let crc = |event: &Event| match event {
        Event::WanErrors { errors, .. } => Some(errors.crc),
        _ => None,
    };
    let told: Vec<u32> = pair.events_b().iter().filter_map(crc).collect();
    assert!(told.iter().copied().eq(0..70_000), "each once, in order");
    assert!(counter(pair.a(), "retransmissions") > 0);
    assert!(counter(pair.b(), "duplicates") > 0);
}

/// RFC 3931 4.2: an Nr "greater than the last Ns sent plus 1 modulo 65536" makes the
/// message "clearly invalid".
#[test]
fn b15_an_impossible_nr_is_ignored_and_counted() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let call = lac.icrq(5);
        only(&lac.say(&mut stage, &call), M::Icrp);
        let hello = Body::new(M::Hello).bytes;
        for nr in [lac.nr + 1, lac.nr + 2, 1_000, 32_000] {
            for body in [&hello[..], &[]] {
                let bad = lac.packet_at(lac.ns, nr, 0, body);
                stage.send(&bad);
                assert!(lac.hear(&mut stage).is_empty(), "nr {nr}");
            }
        }
        assert_eq!(stage.discarded(Discard::ImpossibleNr), 8);
        let tunnel = stage.tunnel();
        let view = stage.endpoint().tunnel(tunnel).unwrap();
        assert_eq!(view.outstanding, 1, "the ICRP still waits");
        // The Ns is still free, and an old Nr is no harm.
        let good = lac.packet_at(lac.ns, 0, 0, &hello);
        stage.send(&good);
        assert_eq!(only_ack(&lac.hear(&mut stage)).nr, lac.ns + 1);
        stage.run_secs(1);
        only(&lac.hear(&mut stage), M::Icrp);
    }
}

/// A peer that acknowledges nothing but asks on and on is heard no further than a
/// bounded number of answers, and the tunnel goes when its time is over.
#[test]
fn b15_a_peer_that_never_acknowledges_cannot_make_us_keep_answers_without_end() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    stage.world.set_log_limit(16);
    lac.connect(&mut stage);
    let refused = lac.icrq(0);
    let acked = lac.nr;
    for _ in 0..20_000 {
        let packet = lac.packet_at(lac.ns, acked, 0, &refused.bytes);
        stage.send(&packet);
        let got = lac.hear(&mut stage);
        lac.ns = got.last().map_or(lac.ns, |answer| answer.nr);
    }
    let tunnel = stage.tunnel();
    let view = stage.endpoint().tunnel(tunnel).unwrap();
    assert!(view.outstanding < 20_000, "{}", view.outstanding);
    assert!(stage.discarded(Discard::Backlog) > 3_000);
    stage.run_secs(31);
    assert_eq!(stage.tunnel_end(), TunnelEnd::Unanswered);
    stage.run_secs(100);
    assert_eq!(stage.counts(), Default::default());
}

/// Numbers are compared over half their range, so no window may be larger.
#[test]
fn b15_a_peers_window_of_65535_does_not_outgrow_the_sequence_numbers() {
    let (mut stage, mut lns) = (Stage::lac(), Peer::v2());
    let reply = lns.sccrp().u16(A::ReceiveWindowSize, 65_535);
    let tunnel = lns.answer_with(&mut stage, &reply);
    let view = stage.endpoint().tunnel(tunnel).unwrap();
    assert_eq!(view.peer_window, 32_767);
}
