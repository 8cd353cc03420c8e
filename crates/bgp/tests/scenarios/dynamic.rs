//! Dynamic peers that are held back after their session, and what stays of those that are gone.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use base::Duration;
use bgp::config::PrefixLimit;
use bgp::fsm::State;
use bgp::policy::Policy;
use bgp::{CloseReason, ConnId, Discard, DynamicConfig, PeerSettings, RemoteAsn, SpeakerConfig};
use wire::bgp::KEEPALIVE;

use crate::hand::{Hand, OURS, THEIRS, announcement, message, open, restarting};

const TOO_MANY: [[u8; 3]; 3] = [[198, 51, 100], [198, 51, 101], [198, 51, 102]];

fn host(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

/// A speaker with one network of at most `peers_max` dynamic peers.
fn network(settings: PeerSettings, peers_max: u32) -> SpeakerConfig {
    let mut config = SpeakerConfig::new(OURS, Ipv4Addr::new(10, 0, 0, 1));
    config.dynamic = vec![DynamicConfig {
        prefix: "192.0.2.0/24".parse().unwrap(),
        remote_asn: RemoteAsn::Any,
        peers_max,
        settings: Arc::new(settings),
    }];
    config
}

fn limited(restart_after: Option<Duration>) -> PeerSettings {
    PeerSettings {
        import: Some(Policy::accept()),
        export: Some(Policy::accept()),
        prefix_limit: Some(PrefixLimit {
            prefixes_max: 2,
            restart_after,
        }),
        ..PeerSettings::default()
    }
}

fn up(hand: &mut Hand, remote: IpAddr) -> ConnId {
    let conn = hand.connect_from(remote, 40_000).expect("it is let in");
    hand.send_open(conn, &open());
    hand.send(conn, &KEEPALIVE);
    let peer = hand.speaker.peer(remote).expect("it is a peer");
    let view = hand.speaker.neighbor(peer, hand.now).unwrap();
    assert_eq!(view.state, State::Established);
    conn
}

/// Has a peer announce more prefixes than it may.
fn overdo(hand: &mut Hand, remote: IpAddr) {
    let conn = up(hand, remote);
    hand.send(conn, &announcement(&[THEIRS], &TOO_MANY));
    assert_eq!(hand.codes(conn), Some((6, 1)));
}

#[test]
fn a_dynamic_peer_over_its_limit_is_held_back_for_the_configured_time() {
    let mut hand = Hand::of(network(limited(Some(Duration::from_secs(60))), 1));
    overdo(&mut hand, host(7));
    assert_eq!(hand.connect_from(host(7), 1), Err(Discard::PeerIdle));
    // It does not use the place of another host, and it is shown.
    let other = up(&mut hand, host(8));
    let summary = hand.speaker.summary();
    assert_eq!((summary.dynamic, summary.held), (2, 1));
    hand.speaker.closed(other, hand.now);
    hand.drain();
    hand.pass(Duration::from_secs(44));
    assert_eq!(hand.connect_from(host(7), 1), Err(Discard::PeerIdle));
    hand.pass(Duration::from_secs(17));
    assert_eq!(hand.speaker.summary().held, 0);
    up(&mut hand, host(7));
}

#[test]
fn without_that_time_it_is_held_back_until_an_operator_starts_it() {
    let mut hand = Hand::of(network(limited(None), 1));
    overdo(&mut hand, host(7));
    hand.pass(Duration::from_secs(100_000));
    assert_eq!(hand.connect_from(host(7), 1), Err(Discard::PeerIdle));
    let peer = hand.speaker.peer(host(7)).expect("it is shown");
    hand.speaker.start_peer(peer, hand.now);
    hand.drain();
    assert_eq!(hand.speaker.peer(host(7)), None);
    up(&mut hand, host(7));
    assert_eq!(hand.speaker.summary().dynamic, 1);
}

#[test]
fn held_peers_are_limited_and_none_is_let_in_for_another() {
    let mut config = network(limited(None), 3);
    config.limits.held_peers_max = 2;
    let mut hand = Hand::of(config);
    // Two are held apart from the network. Three more use the network's places.
    (1..=5).for_each(|last| overdo(&mut hand, host(last)));
    assert_eq!(hand.connect_from(host(6), 1), Err(Discard::DynamicLimit));
    for last in 1..=5 {
        assert_eq!(hand.connect_from(host(last), 1), Err(Discard::PeerIdle));
    }
    let summary = hand.speaker.summary();
    assert_eq!((summary.dynamic, summary.held), (5, 2));
    // All of them are counted once when they are released.
    for last in 1..=5 {
        let peer = hand.speaker.peer(host(last)).unwrap();
        hand.speaker.reset_peer(peer, "", hand.now);
        hand.speaker.start_peer(peer, hand.now);
    }
    let summary = hand.speaker.summary();
    assert_eq!((summary.dynamic, summary.held), (0, 0));
    for last in 1..=3 {
        up(&mut hand, host(last));
    }
    assert_eq!(hand.connect_from(host(4), 1), Err(Discard::DynamicLimit));
}

#[test]
fn a_second_connection_does_not_get_around_the_limit() {
    let mut hand = Hand::of(network(limited(None), 1));
    let first = up(&mut hand, host(7));
    let second = hand.connect_from(host(7), 40_001).unwrap();
    hand.send(first, &announcement(&[THEIRS], &TOO_MANY));
    assert_eq!(hand.codes(first), Some((6, 1)));
    hand.send_open(second, &open());
    hand.send(second, &KEEPALIVE);
    assert_eq!(hand.speaker.established(), 0);
    assert_eq!(hand.speaker.summary().connections, 0);
    assert_eq!(hand.connect_from(host(7), 1), Err(Discard::PeerIdle));
}

#[test]
fn a_stopped_dynamic_peer_is_refused_until_it_is_started() {
    let mut hand = Hand::of(network(limited(Some(Duration::from_secs(1))), 1));
    let conn = up(&mut hand, host(7));
    let peer = hand.speaker.peer(host(7)).unwrap();
    hand.speaker.stop_peer(peer, "until noon", hand.now);
    hand.drain();
    assert_eq!(hand.codes(conn), Some((6, 2)));
    for _ in 0..10 {
        assert_eq!(hand.connect_from(host(7), 1), Err(Discard::PeerIdle));
        hand.pass(Duration::from_secs(3_600));
    }
    let view = hand.speaker.neighbor(peer, hand.now).unwrap();
    assert_eq!((view.state, view.is_started), (State::Idle, false));
    // Stopping it again and resetting it change nothing. Another host is not affected.
    hand.speaker.stop_peer(peer, "", hand.now);
    hand.speaker.reset_peer(peer, "", hand.now);
    assert_eq!(hand.connect_from(host(7), 1), Err(Discard::PeerIdle));
    up(&mut hand, host(8));
    hand.speaker.start_peer(peer, hand.now);
    hand.drain();
    assert_eq!(hand.speaker.summary().held, 0);
    assert_eq!(hand.connect_from(host(7), 1), Err(Discard::DynamicLimit));
}

#[test]
fn a_dynamic_peer_that_is_away_is_stopped_with_its_stale_routes() {
    let mut hand = Hand::of(network(limited(None), 1));
    let conn = hand.connect_from(host(7), 1).unwrap();
    hand.send_open(conn, &restarting());
    hand.send(conn, &KEEPALIVE);
    hand.send(conn, &announcement(&[THEIRS], &TOO_MANY[..1]));
    hand.speaker.closed(conn, hand.now);
    hand.drain();
    let peer = hand.speaker.peer(host(7)).expect("its routes are stale");
    hand.speaker.stop_peer(peer, "", hand.now);
    hand.drain();
    assert!(
        hand.speaker
            .rib()
            .best("198.51.100.0/24".parse().unwrap())
            .is_none()
    );
    hand.pass(Duration::from_secs(1_000));
    assert_eq!(hand.connect_from(host(7), 1), Err(Discard::PeerIdle));
    hand.speaker.start_peer(peer, hand.now);
    hand.drain();
    assert_eq!(hand.speaker.summary().dynamic, 0);
    up(&mut hand, host(7));
}

#[test]
fn a_reload_keeps_held_peers_in_their_count() {
    let mut config = network(limited(None), 1);
    let mut hand = Hand::of(config.clone());
    overdo(&mut hand, host(7));
    config.dynamic[0].peers_max = 2;
    hand.speaker.reload(config, hand.now);
    let summary = hand.speaker.summary();
    assert_eq!((summary.dynamic, summary.held), (1, 1));
    assert_eq!(hand.connect_from(host(7), 1), Err(Discard::PeerIdle));
    up(&mut hand, host(8));
    up(&mut hand, host(9));
}

#[test]
fn a_malformed_update_can_be_read_after_the_dynamic_peer_is_gone() {
    // ORIGIN 7; then a message whose lengths are wrong, which ends the session.
    let origin = message(2, &[0, 0, 0, 4, 0x40, 1, 1, 7, 24, 198, 51, 100]);
    let lengths = [0, 9, 0, 0];
    let mut hand = Hand::of(network(PeerSettings::default(), 100));
    let conn = up(&mut hand, host(7));
    hand.send(conn, &origin);
    hand.send(conn, &message(2, &lengths));
    assert_eq!(hand.codes(conn), Some((3, 1)));
    assert_eq!(hand.speaker.peer(host(7)), None);
    let past = |hand: &Hand| hand.speaker.past_neighbor(host(7), hand.now);
    let view = past(&hand).expect("it can be looked at");
    assert_eq!((view.state, view.counts.malformed), (State::Idle, 2));
    assert_eq!(*view.malformed.unwrap().octets, lengths);
    assert!(matches!(view.last_end, Some(CloseReason::Fault(_))));
    // When it is back, its own view has it, and again after a session without a fault.
    let conn = up(&mut hand, host(7));
    assert!(past(&hand).is_none());
    let peer = hand.speaker.peer(host(7)).unwrap();
    let view = hand.speaker.neighbor(peer, hand.now).unwrap();
    assert_eq!(*view.malformed.unwrap().octets, lengths);
    hand.speaker.closed(conn, hand.now);
    hand.drain();
    assert_eq!(past(&hand).unwrap().counts.malformed, 2);
    // The latest 64 stay. Peers without a fault are not among them.
    for last in 20..120 {
        let conn = up(&mut hand, host(last));
        if last < 83 {
            hand.send(conn, &origin);
        }
        hand.speaker.closed(conn, hand.now);
        hand.drain();
    }
    assert!(past(&hand).is_some());
    let conn = up(&mut hand, host(200));
    hand.send(conn, &origin);
    hand.speaker.closed(conn, hand.now);
    hand.drain();
    assert!(past(&hand).is_none());
    let one = |last| hand.speaker.past_neighbor(host(last), hand.now);
    assert!(one(20).is_some() && one(200).is_some() && one(100).is_none());
}
