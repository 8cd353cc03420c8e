//! How long peers and their routes are kept: hold timers, stale routes, waits after a restart.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use base::Duration;
use bgp::fsm::State;
use bgp::{CloseReason, PeerConfig, PeerSettings, RemoteAsn};
use wire::bgp::KEEPALIVE;

use crate::hand::{Hand, REMOTE, THEIRS, config, open, passive, restarting};

#[test]
fn the_peer_is_given_up_when_the_hold_time_is_over_and_not_before() {
    let settings = PeerSettings {
        hold_time_s: 3,
        ..passive()
    };
    let mut hand = Hand::new(settings);
    let conn = hand.up(&open());
    for _ in 0..20 {
        hand.pass(Duration::from_millis(2_900));
        assert_eq!(hand.view().state, State::Established);
        hand.send(conn, &KEEPALIVE);
    }
    hand.pass(Duration::from_millis(2_999));
    assert_eq!(hand.view().state, State::Established);
    hand.pass(Duration::from_millis(2));
    assert_eq!(hand.codes(conn), Some((4, 0)));
    assert!(matches!(hand.view().last_end, Some(CloseReason::HoldTimer)));
}

#[test]
fn a_keepalive_that_is_noted_later_counts_like_one_that_is_taken_at_once() {
    let settings = PeerSettings {
        hold_time_s: 3,
        ..passive()
    };
    let mut plain = Hand::new(settings.clone());
    let mut later = Hand::new(settings);
    let (conn, other) = (plain.up(&open()), later.up(&open()));
    let same = |plain: &Hand, later: &Hand| {
        let (plain, later) = (plain.view(), later.view());
        assert_eq!(plain.counts, later.counts);
        assert_eq!(
            (plain.heard, plain.hold_left),
            (later.heard, later.hold_left)
        );
        assert_eq!((plain.state, plain.last_end), (later.state, later.last_end));
    };
    // More than are stored, at intervals up to nearly the hold time.
    for step in 0..3_000 {
        let span = Duration::from_millis(if step % 40 == 0 { 2_900 } else { step % 7 });
        plain.pass(span);
        later.pass(span);
        plain.send(conn, &KEEPALIVE);
        later.speaker.receive_keepalive(other, later.now);
        same(&plain, &later);
    }
    assert_eq!(later.view().counts.keepalives_in, 3_001);
    for _ in 0..4 {
        plain.pass(Duration::from_millis(999));
        later.pass(Duration::from_millis(999));
        same(&plain, &later);
        assert_eq!(plain.codes(conn), later.codes(other));
    }
    assert_eq!(later.codes(other), Some((4, 0)));
    // The connection is gone: the KEEPALIVE is counted as ignored when something else happens.
    plain
        .speaker
        .receive(conn, &KEEPALIVE, plain.now)
        .unwrap_err();
    later.speaker.receive_keepalive(other, later.now);
    plain.connect();
    later.connect();
    assert_eq!(
        plain.speaker.summary().discards,
        later.speaker.summary().discards
    );
    same(&plain, &later);
}

#[test]
fn the_margin_is_the_least_time_left_of_the_last_complete_second_or_that_of_a_silent_peer() {
    let settings = PeerSettings {
        hold_time_s: 9,
        ..passive()
    };
    for is_late in [false, true] {
        let mut hand = Hand::new(settings.clone());
        assert_eq!(hand.speaker.hold_margin(hand.now), None);
        let conn = hand.up(&open());
        let keepalive = |hand: &mut Hand, ms| {
            hand.pass(Duration::from_millis(ms));
            match is_late {
                true => hand.speaker.receive_keepalive(conn, hand.now),
                false => hand.send(conn, &KEEPALIVE),
            }
        };
        keepalive(&mut hand, 2_000);
        hand.pass(Duration::from_millis(1_000));
        let margin = hand.speaker.hold_margin(hand.now);
        assert_eq!(margin, Some(Duration::from_millis(7_000)));
        keepalive(&mut hand, 3_000);
        hand.pass(Duration::from_millis(1_000));
        let margin = hand.speaker.hold_margin(hand.now);
        assert_eq!(margin, Some(Duration::from_millis(5_000)));
        // Silence: the timer shows it before the session ends.
        hand.pass(Duration::from_millis(7_500));
        let left = hand.view().hold_left;
        assert_eq!(left, Some(Duration::from_millis(500)));
        assert_eq!(hand.speaker.hold_margin(hand.now), left);
        hand.pass(Duration::from_millis(600));
        assert_ne!(hand.view().state, State::Established);
        assert_eq!(hand.speaker.hold_margin(hand.now), None);
    }
}

#[test]
fn nobody_is_given_up_because_we_are_late() {
    let settings = PeerSettings {
        hold_time_s: 3,
        ..passive()
    };
    let mut hand = Hand::new(settings);
    let conn = hand.up(&open());
    // The driver is stopped for ten seconds. Then timers fire before the stream is read.
    hand.now += Duration::from_secs(10);
    hand.speaker.handle_timeout(hand.now);
    hand.speaker.handle_timeout(hand.now);
    hand.drain();
    assert_eq!(hand.view().state, State::Established);
    hand.send(conn, &KEEPALIVE);
    hand.speaker.drained(hand.now);
    hand.drain();
    assert_eq!(hand.view().state, State::Established);
    // If there was nothing to read, the session ends.
    hand.now += Duration::from_secs(10);
    hand.speaker.handle_timeout(hand.now);
    hand.drain();
    if hand.view().state == State::Established {
        assert!(hand.speaker.wants_drained());
        hand.speaker.drained(hand.now);
        hand.drain();
    }
    assert_eq!(hand.codes(conn), Some((4, 0)));
}

#[test]
fn who_sends_more_than_is_read_puts_off_its_own_hold_timer_and_no_other() {
    let settings = PeerSettings {
        hold_time_s: 3,
        ..passive()
    };
    let mut config = config(settings.clone());
    let silent = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 3));
    let asn = RemoteAsn::Exactly(THEIRS);
    let settings = Arc::new(settings);
    config.peers.push(PeerConfig::new(silent, asn, settings));
    let mut hand = Hand::of(config);
    let flood = hand.up(&open());
    let other = hand.connect_from(silent, 40_000).expect("it is let in");
    hand.send_open(other, &open());
    hand.send(other, &KEEPALIVE);
    // The first peer is in the middle of a message, and always has more input than is read.
    hand.send(flood, &[0xff; 16]);
    let turn = |hand: &mut Hand, is_read_in_full: bool| {
        hand.now += Duration::from_secs(1);
        if !is_read_in_full {
            hand.speaker.unread(flood, hand.now);
        }
        hand.speaker.drained(hand.now);
        hand.speaker.handle_timeout(hand.now);
        hand.speaker.drained(hand.now);
        hand.drain();
    };
    (0..4).for_each(|_| turn(&mut hand, false));
    assert_eq!(hand.codes(other), Some((4, 0)));
    assert_eq!(hand.codes(flood), None);
    turn(&mut hand, true);
    assert_eq!(hand.codes(flood), Some((4, 0)));
}

#[test]
fn stale_routes_do_not_outlive_an_operator_s_stop() {
    let mut hand = Hand::new(passive());
    let conn = hand.up(&restarting());
    hand.speaker.closed(conn, hand.now);
    hand.drain();
    assert!(hand.view().stale_until.is_some());
    let peer = hand.speaker.peer(REMOTE).unwrap();
    hand.speaker.stop_peer(peer, "", hand.now);
    hand.drain();
    assert_eq!(hand.view().stale_until, None);
}

#[test]
fn after_a_restart_nobody_waits_for_a_peer_that_marks_no_end() {
    let mut config = config(passive());
    config.restarted = Some(Duration::from_secs(120));
    let mut hand = Hand::of(config);
    assert!(hand.speaker.summary().deferring);
    // A peer without graceful restart sends no End-of-RIB (RFC 4724, section 4.1).
    hand.up(&open());
    assert!(!hand.speaker.summary().deferring);
}
