//! Sequence numbers that wrap, that are impossible, that are never acknowledged: RFC 2661 5.8, RFC 3931 4.2.

use base::Duration;
use l2tp::{Call, CallErrors, Discard, Event, TunnelEnd};
use sim::{Link, Pair};
use wire::l2tp::{Attribute as A, MessageType as M, Version};

use crate::common::{Body, Peer, Stage, counter, lac_config, lns_config, only, only_ack, open_to};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

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

/// The same for our messages, with the window full throughout, over a lossy link.
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
        // The Ns is still unused, and an old Nr is harmless.
        let good = lac.packet_at(lac.ns, 0, 0, &hello);
        stage.send(&good);
        assert_eq!(only_ack(&lac.hear(&mut stage)).nr, lac.ns + 1);
        stage.run_secs(1);
        only(&lac.hear(&mut stage), M::Icrp);
    }
}

/// If a peer never acknowledges but keeps sending requests, we process only a bounded number of them, and the
/// tunnel ends when its retransmissions run out.
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

/// Sequence numbers are compared over half their range, so no window may be larger.
#[test]
fn b15_a_peers_window_of_65535_does_not_outgrow_the_sequence_numbers() {
    let (mut stage, mut lns) = (Stage::lac(), Peer::v2());
    let reply = lns.sccrp().u16(A::ReceiveWindowSize, 65_535);
    let tunnel = lns.answer_with(&mut stage, &reply);
    let view = stage.endpoint().tunnel(tunnel).unwrap();
    assert_eq!(view.peer_window, 32_767);
}
