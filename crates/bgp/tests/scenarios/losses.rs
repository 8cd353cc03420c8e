//! Streams break and peers stop sending: only the affected sessions end, and they are established again.

use std::sync::Arc;

use base::Duration;
use bgp::fsm::State;
use bgp::{CloseReason, Event, PeerSettings};

use crate::net::{Net, router};

fn mesh(seed: u64, routers: usize, settings: PeerSettings) -> Net {
    let settings = Arc::new(settings);
    let configs = (0..routers)
        .map(|number| {
            let others = (0..routers).filter(move |other| *other != number);
            router(number, others, &settings)
        })
        .collect();
    Net::new(seed, configs)
}

fn fast() -> PeerSettings {
    PeerSettings {
        hold_time_s: 3,
        connect_retry: Duration::from_secs(2),
        ..PeerSettings::default()
    }
}

fn assert_all_up(net: &Net) {
    for a in 0..net.speakers.len() {
        let expected = net.speakers.len() as u32 - 1;
        assert_eq!(net.speakers[a].established(), expected);
        assert_eq!(net.speakers[a].summary().connections, expected as usize);
    }
}

#[test]
fn a_broken_stream_is_made_again() {
    sim::seeds(50, |seed| {
        let mut net = mesh(seed, 5, fast());
        net.start(Duration::from_secs(1));
        net.run_for(Duration::from_secs(30));
        assert_all_up(&net);
        assert_eq!(net.break_streams(2), 4);
        assert_eq!(net.state(0, 1), State::Established);
        assert_ne!(net.state(0, 2), State::Established);
        net.run_for(Duration::from_secs(30));
        assert_all_up(&net);
        let downs = net.count(
            2,
            |event| matches!(event, Event::Down { reason, .. } if *reason == CloseReason::Closed),
        );
        assert!(downs >= 4);
    });
}

#[test]
fn who_falls_silent_is_given_up_after_the_hold_time_by_all_and_by_nobody_else() {
    sim::seeds(20, |seed| {
        let mut net = mesh(seed, 5, fast());
        net.start(Duration::from_secs(1));
        net.run_for(Duration::from_secs(30));
        net.mute[3] = true;
        let muted = net.now;
        net.run_for(Duration::from_secs(10));
        for other in [0, 1, 2, 4] {
            assert_ne!(net.state(other, 3), State::Established);
            let ended = net.events.iter().find(|(at, number, event)| {
                *at > muted && *number == other && matches!(event, Event::Down { .. })
            });
            let (at, _, event) = ended.expect("it ended");
            // The last message was received when the silence began; our own delays are a few milliseconds.
            assert!(*at >= muted + Duration::from_millis(1_400), "{at:?}");
            assert!(*at <= muted + Duration::from_millis(3_010), "{at:?}");
            assert!(
                matches!(event, Event::Down { reason, .. }
                    if matches!(reason, CloseReason::HoldTimer | CloseReason::Received(_) | CloseReason::Closed)),
                "{event:?}"
            );
            assert_eq!(net.speakers[other].established(), 3);
        }
        net.mute[3] = false;
        net.run_for(Duration::from_secs(60));
        assert_all_up(&net);
    });
}
