//! Whether an external peer's paths have to start with its AS (RFC 4271, section 6.3): a key of each peer.

use bgp::PeerSettings;
use bgp::policy::Policy;
use wire::bgp::{Families, Prefix};

use crate::hand::{Hand, THEIRS, announcement, config, open, passive};

/// A collector's AS is not the first one of the paths that it sends.
const PATH: [u32; 2] = [64_999, 64_998];

fn taking(enforce_first_as: bool) -> PeerSettings {
    PeerSettings {
        enforce_first_as,
        import: Some(Policy::accept()),
        export: Some(Policy::deny()),
        ..passive()
    }
}

fn has_route(hand: &Hand) -> bool {
    let prefix: Prefix = "198.51.100.0/24".parse().unwrap();
    hand.speaker.rib().best(prefix).is_some()
}

#[test]
fn a_collector_s_table_is_taken_only_if_the_check_is_off() {
    for enforces in [true, false] {
        let mut hand = Hand::new(taking(enforces));
        let conn = hand.up(&open());
        hand.send(conn, &announcement(&PATH, &[[198, 51, 100]]));
        assert_eq!(has_route(&hand), !enforces);
        assert_eq!(hand.view().counts.malformed, u64::from(enforces));
        // The peer's own AS in front is right in both cases.
        hand.send(conn, &announcement(&[THEIRS, 64_998], &[[198, 51, 100]]));
        assert!(has_route(&hand));
    }
}

#[test]
fn a_reload_turns_the_check_off_and_the_session_goes_on() {
    let mut hand = Hand::new(taking(true));
    let conn = hand.up(&open());
    let routes = announcement(&PATH, &[[198, 51, 100]]);
    hand.send(conn, &routes);
    assert!(!has_route(&hand));
    let reload = hand.speaker.reload(config(taking(false)), hand.now);
    assert_eq!((reload.kept, reload.replaced), (1, 0));
    // What was refused before is asked for again.
    let peer = hand.speaker.peer(crate::hand::REMOTE).unwrap();
    assert!(hand.speaker.refresh_in(peer, Families::IPV4, hand.now));
    hand.send(conn, &routes);
    assert!(has_route(&hand));
}
