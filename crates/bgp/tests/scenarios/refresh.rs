//! Refreshes (RFC 2918, 7313): what becomes of a peer's routes while it sends them again, and what it is sent.

use base::Duration;
use bgp::PeerSettings;
use bgp::policy::Policy;
use wire::bgp::{Capability, Families, FamilyId, GracefulRestart, KEEPALIVE, Open, Prefix};

use crate::hand::{Hand, THEIRS, announcement, message, open, passive, restarting};

const BEGIN: [u8; 4] = [0, 1, 1, 1];
const END: [u8; 4] = [0, 1, 2, 1];
const END_OF_RIB: [u8; 4] = [0, 0, 0, 0];
const ROUTES: [[u8; 3]; 3] = [[198, 51, 100], [198, 51, 101], [198, 51, 102]];

fn taking() -> PeerSettings {
    PeerSettings {
        import: Some(Policy::accept()),
        export: Some(Policy::accept()),
        ..passive()
    }
}

fn routes(hand: &Hand) -> usize {
    let all = ROUTES.map(|[a, b, c]| format!("{a}.{b}.{c}.0/24").parse::<Prefix>().unwrap());
    all.into_iter()
        .filter(|prefix| hand.speaker.rib().best(*prefix).is_some())
        .count()
}

#[test]
fn a_peer_that_dies_in_the_middle_of_a_refresh_keeps_its_routes() {
    let mut hand = Hand::new(taking());
    let conn = hand.up(&restarting());
    hand.send(conn, &announcement(&[THEIRS], &ROUTES));
    hand.send(conn, &message(2, &END_OF_RIB));
    hand.send(conn, &message(5, &BEGIN));
    hand.send(conn, &announcement(&[THEIRS], &ROUTES[..1]));
    hand.speaker.closed(conn, hand.now);
    hand.drain();
    assert_eq!(routes(&hand), 3);
    // It is back in time, with two of its routes: the third one is removed at its End-of-RIB.
    hand.pass(Duration::from_secs(5));
    let conn = hand.up(&restarting());
    hand.send(conn, &announcement(&[THEIRS], &ROUTES[1..]));
    assert_eq!(routes(&hand), 3);
    hand.send(conn, &message(2, &END_OF_RIB));
    assert_eq!(routes(&hand), 2);
    // It dies in the middle of a refresh again, and is not back in time.
    hand.send(conn, &message(5, &BEGIN));
    hand.speaker.closed(conn, hand.now);
    hand.drain();
    hand.pass(Duration::from_secs(29));
    assert_eq!(routes(&hand), 2);
    hand.pass(Duration::from_secs(2));
    assert_eq!(routes(&hand), 0);
}

#[test]
fn a_refresh_is_ignored_before_the_end_of_rib_of_a_graceful_peer() {
    let mut hand = Hand::new(taking());
    let conn = hand.up(&restarting());
    hand.send(conn, &announcement(&[THEIRS], &ROUTES));
    hand.speaker.closed(conn, hand.now);
    hand.drain();
    hand.pass(Duration::from_secs(5));
    let conn = hand.up(&restarting());
    // RFC 7313, section 4: these do not take the stale routes away.
    hand.send(conn, &message(5, &BEGIN));
    hand.send(conn, &message(5, &END));
    assert_eq!(routes(&hand), 3);
    hand.send(conn, &message(2, &END_OF_RIB));
    assert_eq!(routes(&hand), 0);
    // An end without a start is ignored too; both together remove what was not sent again.
    hand.send(conn, &announcement(&[THEIRS], &ROUTES));
    hand.send(conn, &message(5, &END));
    assert_eq!(routes(&hand), 3);
    hand.send(conn, &message(5, &BEGIN));
    hand.send(conn, &announcement(&[THEIRS], &ROUTES[..1]));
    hand.send(conn, &message(5, &END));
    assert_eq!(routes(&hand), 1);
}

#[test]
fn the_stale_timer_of_one_family_does_not_end_the_refresh_of_another() {
    let both = || -> Open {
        let mut open = open();
        for family in FamilyId::ALL {
            let family = family.into();
            open.capabilities.push(Capability::Multiprotocol(family));
        }
        open.capabilities
            .push(Capability::GracefulRestart(GracefulRestart {
                restarted: false,
                notification: false,
                time_s: 30,
                families: FamilyId::ALL.map(|f| (f.into(), true)).to_vec(),
            }));
        open
    };
    let mut hand = Hand::new(PeerSettings {
        families: Families::ALL,
        ..taking()
    });
    let conn = hand.up(&both());
    hand.send(conn, &announcement(&[THEIRS], &ROUTES));
    hand.speaker.closed(conn, hand.now);
    hand.drain();
    hand.pass(Duration::from_secs(5));
    let conn = hand.up(&both());
    hand.send(conn, &announcement(&[THEIRS], &ROUTES));
    // The end of IPv4 is marked, that of IPv6 is not. A refresh of IPv4 is open when the time of stale routes is over.
    hand.send(conn, &message(2, &END_OF_RIB));
    hand.send(conn, &message(5, &BEGIN));
    assert!(hand.view().stale_until.is_some());
    for _ in 0..20 {
        hand.pass(Duration::from_secs(20));
        hand.send(conn, &KEEPALIVE);
    }
    assert_eq!(hand.view().stale_until, None);
    assert_eq!(routes(&hand), 3);
}
