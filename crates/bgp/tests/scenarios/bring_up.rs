//! Sessions are established in any order of events, and only one connection of a pair of peers stays.

use std::sync::Arc;

use base::Duration;
use bgp::PeerSettings;
use bgp::fsm::State;

use crate::net::{Net, router};

fn settings() -> PeerSettings {
    PeerSettings {
        hold_time_s: 3,
        connect_retry: Duration::from_secs(3),
        ..PeerSettings::default()
    }
}

fn pair(seed: u64, a: PeerSettings, b: PeerSettings) -> Net {
    Net::new(
        seed,
        vec![router(0, [1], &Arc::new(a)), router(1, [0], &Arc::new(b))],
    )
}

#[test]
fn both_sides_that_connect_end_with_one_session() {
    let mut collisions = 0;
    sim::seeds(300, |seed| {
        let mut net = pair(seed, settings(), settings());
        net.start(Duration::from_millis(8));
        net.run_for(Duration::from_secs(20));
        for (a, b) in [(0, 1), (1, 0)] {
            let view = net.view(a, b);
            assert_eq!(view.state, State::Established, "{view:?}");
            // One side may be Established on the connection that the other side drops, and then each closes the
            // connection that the other keeps. Both connect again: the RFC's rule allows this.
            assert!(view.counts.ups <= 2);
            assert_eq!(net.speakers[a].summary().connections, 1);
        }
        let (a, b) = (net.view(0, 1), net.view(1, 0));
        assert_ne!(a.outgoing, b.outgoing);
    });
    // At least some connections collided.
    for seed in 0..20 {
        let mut net = pair(seed, settings(), settings());
        net.start(Duration::ZERO);
        net.run_for(Duration::from_secs(20));
        collisions += net.view(0, 1).counts.collisions + net.view(1, 0).counts.collisions;
    }
    assert!(collisions > 0);
}

#[test]
fn a_passive_side_is_found_by_the_other() {
    sim::seeds(50, |seed| {
        let passive = PeerSettings {
            passive: true,
            ..settings()
        };
        let mut net = pair(seed, settings(), passive);
        net.start(Duration::from_secs(5));
        net.run_for(Duration::from_secs(10));
        assert_eq!(net.state(0, 1), State::Established);
        assert!(net.view(0, 1).outgoing);
        assert_eq!(net.view(1, 0).counts.collisions, 0);
    });
}

#[test]
fn two_passive_sides_wait_without_doing_anything() {
    let passive = PeerSettings {
        passive: true,
        ..settings()
    };
    let mut net = pair(1, passive.clone(), passive);
    net.start(Duration::ZERO);
    assert_eq!(net.speakers[0].poll_timeout(), None);
    assert_eq!(net.state(0, 1), State::Active);
}

#[test]
fn an_open_may_be_delayed() {
    sim::seeds(100, |seed| {
        let delayed = PeerSettings {
            delay_open: Some(Duration::from_secs(2)),
            ..settings()
        };
        let mut net = pair(seed, delayed.clone(), settings());
        net.start(Duration::from_millis(8));
        net.run_for(Duration::from_secs(20));
        assert_eq!(net.state(0, 1), State::Established);
        let mut net = pair(seed, delayed.clone(), delayed);
        net.start(Duration::from_millis(8));
        net.run_for(Duration::from_secs(30));
        assert_eq!(net.state(0, 1), State::Established);
        assert_eq!(net.state(1, 0), State::Established);
    });
}
