//! The recent events that operators can look at: how many there are, and what becomes of the others.

use std::net::IpAddr;
use std::sync::Arc;

use bgp::event::What;
use bgp::{CloseReason, Discard, PeerConfig, RemoteAsn};

use crate::hand::{Hand, REMOTE, config, message, open, passive};

#[test]
fn what_happened_is_remembered_up_to_a_number() {
    let mut config = config(passive());
    config.limits.recent_events_max = Some(10);
    let mut hand = Hand::of(config);
    for _ in 0..5 {
        let conn = hand.up(&open());
        hand.speaker.closed(conn, hand.now);
        hand.drain();
    }
    assert_eq!(hand.speaker.recent_events().count(), 10);
    assert!(hand.speaker.summary().recent_events_dropped > 10);
    let last = hand.speaker.recent_events().next_back().unwrap();
    assert_eq!(last.remote, REMOTE);
}

#[test]
fn more_is_remembered_of_more_peers_and_what_is_lost_is_counted() {
    let refuse = |hand: &mut Hand, times: usize| {
        let stranger = IpAddr::from([198, 51, 100, 1]);
        for _ in 0..times {
            assert_eq!(hand.connect_from(stranger, 1), Err(Discard::UnknownPeer));
        }
    };
    for (peers, room) in [(1, 1_024), (64, 1_024), (100, 1_600)] {
        let mut config = config(passive());
        let settings = Arc::new(passive());
        for number in 1..peers {
            let address = IpAddr::from([10, 0, 1, number]);
            let peer = PeerConfig::new(address, RemoteAsn::Any, settings.clone());
            config.peers.push(peer);
        }
        let mut hand = Hand::of(config);
        let before = hand.speaker.recent_events().count();
        refuse(&mut hand, room - before);
        assert_eq!(hand.speaker.recent_events().count(), room);
        assert_eq!(hand.speaker.summary().recent_events_dropped, 0);
        refuse(&mut hand, 7);
        assert_eq!(hand.speaker.recent_events().count(), room);
        assert_eq!(hand.speaker.summary().recent_events_dropped, 7);
    }
}

#[test]
fn a_long_notification_is_not_remembered_whole() {
    let mut hand = Hand::new(passive());
    let conn = hand.up(&open());
    let mut body = vec![6, 2];
    body.resize(4_000, 7);
    hand.send(conn, &message(3, &body));
    let mut kept = Vec::new();
    for event in hand.speaker.recent_events() {
        if let What::Received(notification) = &event.what {
            kept.push(notification.data.len());
        }
        if let What::Ended(reason) = &event.what
            && let CloseReason::Received(notification) = &**reason
        {
            kept.push(notification.data.len());
        }
    }
    assert_eq!(kept, [256, 256]);
}
