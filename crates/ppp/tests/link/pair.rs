//! Negotiation between two ends over a lossless wire.

use base::Duration;
use ppp::{Authentication, Event, LinkEnd, State};

use crate::harness::{DNS, LOCAL, PEER, Pair, SECRET, Wire, client, network};

const QUIET: Duration = Duration::from_secs(20);

fn pair(authenticate: &[Authentication], secret: &[u8]) -> Pair {
    let mut pair = Pair::new(
        network(authenticate, 1),
        client(secret, 2),
        Wire::default(),
        3,
    );
    pair.up();
    pair
}

#[test]
fn a_client_comes_up_by_either_proof_or_none_and_learns_its_addresses() {
    for authenticate in [
        &[Authentication::Pap][..],
        &[Authentication::ChapMd5],
        &[Authentication::ChapMd5, Authentication::Pap],
        &[],
    ] {
        let mut pair = pair(authenticate, SECRET);
        pair.run(QUIET);
        for end in &pair.ends {
            assert_eq!(end.link.states(), [State::Opened; 3], "{authenticate:?}");
        }
        let settings = pair.ends[1].events.iter().find_map(|event| match event {
            Event::Ipv4Up(settings) => Some(*settings),
            _ => None,
        });
        let settings = settings.unwrap();
        assert_eq!((settings.local, settings.peer), (PEER, LOCAL));
        assert_eq!(settings.dns, [Some(DNS), None]);
        // Negotiation takes a few round trips and waits for no timer.
        assert!(
            pair.now < base::Instant::from_nanos(200_000_000),
            "{:?}",
            pair.now
        );
    }
}

#[test]
fn what_the_client_offers_to_take_shortened_is_sent_so() {
    let mut pair = pair(&[Authentication::ChapMd5], SECRET);
    pair.run(QUIET);
    let compression = pair.ends[0].link.compression();
    assert!(compression.protocol && compression.address);
    let compression = pair.ends[1].link.compression();
    assert!(!compression.protocol && !compression.address);
}

#[test]
fn a_wrong_secret_ends_both_sides_with_their_reasons() {
    for authenticate in [Authentication::Pap, Authentication::ChapMd5] {
        let mut pair = pair(&[authenticate], b"wrong");
        pair.run(QUIET);
        let last = |end: usize| pair.ends[end].events.last().cloned();
        assert_eq!(last(0), Some(Event::Ended(LinkEnd::AuthenticationFailed)));
        assert_eq!(last(1), Some(Event::Ended(LinkEnd::RefusedByPeer)));
        assert!(!pair.ends[1].events.contains(&Event::Authenticated));
    }
}

#[test]
fn closing_tells_the_peer() {
    let mut pair = pair(&[Authentication::ChapMd5], SECRET);
    pair.run(QUIET);
    let now = pair.now;
    pair.ends[0].call(now, |link, ctx| link.close(ctx));
    pair.run(QUIET);
    let last = |end: usize| pair.ends[end].events.last().cloned();
    assert_eq!(last(0), Some(Event::Ended(LinkEnd::Closed)));
    assert_eq!(last(1), Some(Event::Ended(LinkEnd::PeerTerminated)));
    assert!(pair.ends[0].events.contains(&Event::Ipv4Down));
    assert!(pair.ends[1].events.contains(&Event::Ipv6Down));
}

#[test]
fn a_peer_that_falls_silent_is_given_up_after_its_echoes() {
    let mut pair = pair(&[Authentication::ChapMd5], SECRET);
    pair.run(QUIET);
    let up = pair.now;
    pair.wire.loss = 100;
    // Two unanswered echoes, a third one, then the Terminate-Requests.
    pair.run(Duration::from_secs(100));
    let last = pair.ends[0].events.last().cloned();
    assert_eq!(last, Some(Event::Ended(LinkEnd::EchoTimeout)));
    assert!(pair.now.since(up) >= Duration::from_secs(240));
}

#[test]
fn the_round_trip_of_an_echo_is_that_of_the_line() {
    let mut pair = pair(&[Authentication::ChapMd5], SECRET);
    for end in &mut pair.ends {
        end.config.echo_interval = Duration::ZERO;
    }
    pair.run_for(QUIET);
    pair.retime(0);
    assert_eq!(pair.ends[0].link.echo_rtt_us(), None, "no echo yet");
    pair.ends[0].config.echo_interval = Duration::from_secs(10);
    pair.retime(0);
    pair.run_for(Duration::from_secs(20));
    // The wire takes 10 ms each way.
    assert_eq!(pair.ends[0].link.echo_rtt_us(), Some(20_000));
    assert_eq!(pair.ends[1].link.echo_rtt_us(), None, "it sends no echoes");
}

#[test]
fn an_idle_link_only_asks_whether_the_peer_is_there() {
    let mut pair = pair(&[Authentication::ChapMd5], SECRET);
    pair.run(QUIET);
    let (up, events) = (pair.now, pair.ends[0].events.len());
    pair.run(Duration::from_secs(100));
    assert!(pair.now.since(up) >= Duration::from_secs(500));
    assert_eq!(pair.ends[0].events.len(), events);
    assert_eq!(pair.ends[0].link.states(), [State::Opened; 3]);
}

#[test]
fn a_peer_that_is_up_is_challenged_again_where_that_is_asked_for() {
    let mut pair = pair(&[Authentication::ChapMd5], SECRET);
    pair.ends[0].config.rechallenge_interval = Duration::from_secs(45);
    pair.run(QUIET);
    let events = pair.ends[0].events.len();
    pair.run(Duration::from_secs(50));
    // Each claim is answered, and no layer goes down meanwhile.
    assert!(pair.ends[0].events.len() >= events + 8);
    assert!(!pair.ends[0].events.contains(&Event::Ipv4Down));
    assert_eq!(pair.ends[1].link.states(), [State::Opened; 3]);
}

/// Each interval is set while the link is up: from none, and to none.
#[test]
fn new_intervals_apply_to_a_link_that_is_up() {
    let mut pair = pair(&[Authentication::ChapMd5], SECRET);
    for end in &mut pair.ends {
        end.config.echo_interval = Duration::ZERO;
    }
    pair.run_for(QUIET);
    pair.retime(0);
    pair.retime(1);
    let claims = |pair: &Pair| pair.ends[0].link.view().claims;
    let before = claims(&pair);
    pair.ends[0].config.rechallenge_interval = Duration::from_secs(45);
    pair.retime(0);
    pair.run_for(Duration::from_secs(46));
    assert!(claims(&pair) > before);
    pair.ends[0].config.rechallenge_interval = Duration::ZERO;
    pair.retime(0);
    let before = claims(&pair);
    pair.run_for(Duration::from_secs(300));
    assert_eq!(claims(&pair), before);

    // Nobody notices that the peer is gone until there are echoes.
    pair.wire.loss = 100;
    pair.run_for(Duration::from_secs(1_000));
    assert_eq!(pair.ends[0].link.states(), [State::Opened; 3]);
    pair.ends[0].config.echo_interval = Duration::from_secs(10);
    pair.retime(0);
    pair.run_for(Duration::from_secs(60));
    let last = pair.ends[0].events.last().cloned();
    assert_eq!(last, Some(Event::Ended(LinkEnd::EchoTimeout)));
}

/// An echo that was due under the old configuration does not repeat itself at once.
#[test]
fn echoes_stop_when_their_interval_becomes_none() {
    let mut pair = pair(&[Authentication::ChapMd5], SECRET);
    pair.run_for(QUIET);
    pair.ends[0].config.echo_interval = Duration::ZERO;
    pair.run_for(Duration::from_secs(1_000));
    assert_eq!(pair.ends[0].link.states(), [State::Opened; 3]);
    assert_eq!(pair.ends[0].link.view().echoes_unanswered, 0);
}
