//! HELLO: RFC 2661 5.5 and 6.5, RFC 3931 4.4.

use base::{Duration, Instant};
use l2tp::{Config, Discard, Event, TunnelEnd};
use wire::l2tp::{Attribute as A, Avps, DataV2, DataV3, MessageType as M, Version};

use crate::common::{Body, Peer, Stage, kinds, lns_config, only, only_ack};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

/// The HELLO that must come after 60 s of silence, less up to an eighth.
#[track_caller]
fn hello_after(stage: &mut Stage, peer: &mut Peer, silence_from: Instant) {
    let hello = peer.wait(stage, Duration::from_secs(60));
    assert_eq!(hello.kind(), M::Hello);
    let silence = hello.at.since(silence_from);
    assert!(silence >= Duration::from_millis(52_500), "{silence:?}");
    assert!(silence <= Duration::from_secs(60), "{silence:?}");
    assert_eq!(hello.session, 0, "\"MUST be 0\" (6.5)");
    assert_eq!(Avps::new(&hello.body).count(), 1);
}

/// "If a period of time (a recommended default is 60 seconds, but SHOULD be configurable)
/// has passed without receiving any message (data or control) from the peer" (6.5).
#[test]
fn b22_a_hello_is_sent_after_silence_only() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let mut heard = stage.world.now();
        for _ in 0..5 {
            hello_after(&mut stage, &mut lac, heard);
            lac.ack(&mut stage);
            heard = stage.world.now();
        }
        // A peer that sends something every 50 s never gets a HELLO.
        for _ in 0..20 {
            stage.run_secs(50);
            only_ack(&lac.say(&mut stage, &Body::new(M::Hello)));
        }
        let heard = stage.world.now();
        hello_after(&mut stage, &mut lac, heard);
    }
}

/// Messages that we send do not show that the peer is alive: only received ones count.
#[test]
fn b22_what_we_send_does_not_put_the_hello_off() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    let remote = lac.call(&mut stage, 5);
    assert_ne!(remote, 0);
    let session = stage.session();
    stage.run_secs(30);
    stage.with(|lns, _| lns.send_link_info(session, (0, 0), true));
    lac.hear(&mut stage);
    lac.ack(&mut stage);
    let heard = stage.world.now();
    hello_after(&mut stage, &mut lac, heard);
}

/// Data in the tunnel's own sessions from its own peer shows that the peer is alive; nothing else does.
#[test]
fn b22_data_puts_the_hello_off() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let remote = lac.call(&mut stage, 5);
        let session = stage.session();
        let cookie = stage.endpoint().session(session).unwrap().local_cookie;
        let data = |remote: u32, cookie: &[u8]| {
            let mut packet = Vec::new();
            match lac.version {
                Version::V2 => DataV2 {
                    tunnel: lac.remote as u16,
                    session: remote as u16,
                    payload: b"\xff\x03\xc0\x21",
                    ..DataV2::default()
                }
                .emit(&mut packet),
                Version::V3 => {
                    packet.extend_from_slice(&[0, 3, 0, 0]);
                    packet.extend_from_slice(&remote.to_be_bytes());
                    packet.extend_from_slice(cookie);
                    packet.extend_from_slice(b"\xff\x03\xc0\x21");
                }
            }
            packet
        };
        let good = data(remote, cookie.as_bytes());
        for _ in 0..20 {
            stage.run_secs(50);
            stage.send(&good);
            assert!(stage.hear().is_empty());
        }
        let heard = stage.world.now();
        let tunnel = stage.tunnel();
        let last = |stage: &Stage| stage.endpoint().tunnel(tunnel).unwrap().last_heard;
        assert_eq!(last(&stage), heard);
        // Another session's id, another cookie, another sender.
        stage.run_secs(10);
        stage.send(&data(remote ^ 1, cookie.as_bytes()));
        if lac.version == Version::V3 {
            stage.send(&data(remote, b"8 octets"));
            stage.send(&good[..15]);
        }
        stage.send_from(sim::addr("192.0.2.66:1701"), &good);
        assert_eq!(last(&stage), heard);
        let wrong = if lac.version == Version::V2 { 1 } else { 3 };
        assert_eq!(stage.discarded(Discard::UnknownSession), wrong);
        assert_eq!(stage.discarded(Discard::DataWrongSource), 1);
        hello_after(&mut stage, &mut lac, heard);
    }
}

/// `wire` tests data messages; this only checks that the test data parses as intended.
#[test]
fn b22_the_data_of_these_tests_is_data() {
    let packet = [0, 3, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4];
    let Ok(wire::l2tp::Packet::DataV3(DataV3 { session: 5, .. })) = wire::l2tp::parse(&packet)
    else {
        panic!("no data");
    };
}

/// "If the Hello message is not reliably delivered then the tunnel is declared down" (5.5).
#[test]
fn b22_an_unacknowledged_hello_clears_the_tunnel_and_its_sessions() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        lac.call(&mut stage, 5);
        lac.call(&mut stage, 6);
        stage.events();
        let first = lac.wait(&mut stage, Duration::from_secs(60)).at;
        stage.world.run_until(first + Duration::from_millis(30_990));
        let again = lac.hear(&mut stage);
        assert_eq!(kinds(&again), [Some(M::Hello); 5]);
        let waits: Vec<u64> = again
            .iter()
            .map(|g| g.at.since(first).as_millis())
            .collect();
        // Within one tick of the timer store, 8 ms.
        for (wait, expected) in waits.iter().zip([1_000, 3_000, 7_000, 15_000, 23_000]) {
            assert!((expected..expected + 50).contains(wait), "{waits:?}");
        }
        assert_eq!(stage.counts().sessions, 2);
        stage.run_secs(1);
        assert_eq!(stage.tunnel_end(), TunnelEnd::Unanswered);
        assert_eq!(stage.counts().sessions, 0);
        let mut downs: Vec<Event> = stage.events();
        downs.retain(|e| matches!(e, Event::SessionDown { .. } | Event::TunnelDown { .. }));
        assert_eq!(downs.len(), 3);
        assert!(matches!(downs[2], Event::TunnelDown { .. }));
        stage.run_secs(60);
        assert_eq!(stage.counts(), Default::default());
    }
}

/// One unanswered message is enough: its retransmissions probe the peer as a HELLO would.
#[test]
fn b22_no_hello_is_added_to_what_is_unanswered() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    lac.connect(&mut stage);
    stage.run_secs(45);
    let call = lac.icrq(5);
    only(&lac.say(&mut stage, &call), M::Icrp);
    stage.run_secs(30);
    let got = lac.hear(&mut stage);
    assert!(got.iter().all(|g| g.kind() == M::Icrp), "{got:?}");
}

#[test]
fn b22_the_interval_is_configurable_and_zero_sends_none() {
    for seconds in [1, 10, 600] {
        let config = Config {
            hello_interval: Duration::from_secs(seconds),
            ..lns_config()
        };
        let (mut stage, mut lac) = (Stage::new(config), Peer::v2());
        lac.connect(&mut stage);
        stage.run_for(Duration::from_millis(seconds * 1000 * 7 / 8 - 1));
        assert!(stage.hear().is_empty());
        let hello = lac.wait(&mut stage, Duration::from_millis(seconds * 125 + 9));
        assert_eq!(hello.kind(), M::Hello);
    }
    let config = Config {
        hello_interval: Duration::ZERO,
        ..lns_config()
    };
    let (mut stage, mut lac) = (Stage::new(config), Peer::v2());
    lac.connect(&mut stage);
    stage.run_secs(100_000);
    assert!(stage.hear().is_empty());
    assert_eq!(stage.counts().established, 1);
}

/// RFC 3931 4.4: Hello messages of several control connections to one peer "MUST employ a
/// jittered timer mechanism to prevent grouping".
#[test]
fn b22_hellos_of_tunnels_that_came_up_together_do_not_come_together() {
    let mut stage = Stage::lns();
    for id in 1..=64 {
        let mut lac = Peer::new(Version::V3, 0x1000_0000 + id);
        lac.connect(&mut stage);
    }
    stage.run_secs(60);
    let got = stage.hear();
    let mut times: Vec<Instant> = got
        .iter()
        .filter(|g| g.kind() == M::Hello && g.ns == 1)
        .map(|g| g.at)
        .collect();
    times.dedup();
    assert!(times.len() > 50, "64 HELLOs at {} instants", times.len());
}

/// "A peer MUST NOT expect HELLO messages at any time or interval": it need not receive ours.
#[test]
fn b22_a_hello_is_acknowledged_in_every_state_and_changes_nothing() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let request = lac.sccrq();
        let reply = only(&lac.say(&mut stage, &request), M::Sccrp);
        lac.take_sccrp(&reply);
        only_ack(&lac.say(&mut stage, &Body::new(M::Hello)));
        assert_eq!(stage.counts().half_open, 1);
        only_ack(&lac.say(&mut stage, &Body::new(M::Scccn)));
        only_ack(&lac.say(
            &mut stage,
            &Body::new(M::Hello).raw(0, 0, A::HostName.number(), b"x"),
        ));
        assert_eq!(stage.counts().established, 1);
    }
}

/// A new interval holds for tunnels that are open: shorter, none, and one where there was none.
#[test]
fn a_new_interval_applies_to_open_tunnels() {
    let with = |seconds| Config {
        hello_interval: Duration::from_secs(seconds),
        ..lns_config()
    };
    for (before, after) in [(3_600, 60), (0, 60), (60, 3_600)] {
        let (mut stage, mut lac) = (Stage::new(with(before)), Peer::v2());
        lac.connect(&mut stage);
        stage.run_secs(10);
        stage.with(|lns, now| lns.set_config(with(after), now));
        let heard = stage.world.now();
        if after == 60 {
            let hello = lac.wait(&mut stage, Duration::from_secs(60));
            assert_eq!(hello.kind(), M::Hello);
            lac.ack(&mut stage);
            let heard = stage.world.now();
            hello_after(&mut stage, &mut lac, heard);
        } else {
            // The wait that had started ends; the next one is as long as the new interval.
            stage.run_secs(3_000);
            assert!(stage.world.now().since(heard) >= Duration::from_secs(3_000));
            assert!(lac.hear(&mut stage).len() <= 1);
        }
    }
    let (mut stage, mut lac) = (Stage::new(with(60)), Peer::v2());
    lac.connect(&mut stage);
    stage.with(|lns, now| lns.set_config(with(0), now));
    stage.run_secs(10_000);
    assert!(lac.hear(&mut stage).is_empty());
    assert_eq!(stage.counts().established, 1);
}
