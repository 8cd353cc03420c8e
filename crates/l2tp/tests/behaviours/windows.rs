//! Receive windows, slow start and congestion avoidance: RFC 2661 5.8 and appendix A, RFC 3931
//! 4.2 and appendix A.

use l2tp::{Call, Config, TunnelKey};
use wire::l2tp::{Attribute as A, MessageType as M};

use crate::common::{Peer, Stage, lac_config, only};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

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

/// Opens `calls` sessions and acknowledges one message at a time until the window is fully open; returns the
/// most that were ever in flight.
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

/// Appendix A: "During slow start, CWND is increased by one packet each time an ACK
/// [...] is received", and it "is never allowed to exceed" the peer's window.
#[test]
fn b13_slow_start_adds_one_for_each_acknowledgement_up_to_the_peers_window() {
    for window in [1_u16, 2, 4, 7, 20, 100] {
        let (mut stage, mut lns) = (Stage::lac(), Peer::v2());
        let reply = lns.sccrp().u16(A::ReceiveWindowSize, window);
        let tunnel = lns.answer_with(&mut stage, &reply);
        let cwnd = |stage: &Stage| stage.endpoint().tunnel(tunnel).unwrap().cwnd;
        // Two acknowledgements during set-up: of the SCCRQ and of the SCCCN.
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

/// Messages in flight when the window collapsed are retransmitted only as it opens, and an acknowledgement of
/// all of them takes effect at once.
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
