//! The end of sessions: RFC 2516, section 5.5.

use base::{Duration, Machine};
use pppoe::{Discard, EndReason, Event, Phase, Vlans};
use wire::pppoe::{Code, tag};

use crate::common::{Bench, config, data, host, packet, padi, padr};

#[test]
fn a_termination_ends_its_session_and_is_not_answered() {
    let mut bench = Bench::new(config());
    let (key, id) = bench.open(host(1), &[]);
    let text = packet(Code::PADT, id, &[(tag::GENERIC_ERROR, b"line\ndown\0")]);
    assert_eq!(bench.send(host(1), &text), Ok(()));
    let reason = EndReason::Peer("line down".into());
    assert_eq!(reason.to_string(), "the peer sent PADT: line down");
    assert_eq!(bench.down(), (key, id, reason));
    assert_eq!(bench.sent(), []);
    for _ in 0..3 {
        bench.ignored(host(1), &text, Discard::UnknownSession);
    }
}

#[test]
fn a_termination_of_another_host_vlan_or_port_changes_nothing() {
    let mut bench = Bench::new(config());
    bench.endpoint.add_port(1, pppoe::PortConfig::default());
    let (key, id) = bench.open(host(1), &[]);
    let padt = packet(Code::PADT, id, &[]);
    let (mut tagged, mut other_port) = (host(1), host(1));
    tagged.vlans = Vlans::one(3);
    other_port.port = 1;
    bench.ignored(host(2), &padt, Discard::UnknownSession);
    bench.ignored(other_port, &padt, Discard::UnknownSession);
    bench.ignored(tagged, &padt, Discard::WrongVlans);
    bench.ignored(
        host(1),
        &packet(Code::PADT, 0, &[]),
        Discard::SessionReserved,
    );
    assert!(bench.endpoint.session(key).is_some());
}

#[test]
fn a_termination_whose_tags_cannot_be_read_ends_the_session_all_the_same() {
    let mut bench = Bench::new(config());
    let (_, id) = bench.open(host(1), &[]);
    let [hi, lo] = id.to_be_bytes();
    let cut = [0x11, 0xa7, hi, lo, 0, 5, 2, 3, 0, 9, 1];
    assert_eq!(bench.send(host(1), &cut), Ok(()));
    assert_eq!(bench.down().2, EndReason::Peer("".into()));
}

#[test]
fn the_owner_s_end_waits_and_frames_flow_until_then() {
    let mut bench = Bench::new(config());
    let (key, id) = bench.open(host(1), &[]);
    bench.endpoint.end(key, Duration::from_secs(3), bench.now);
    assert_eq!(bench.endpoint.session(key).unwrap().phase, Phase::Ending);
    assert!(bench.endpoint.header(key).is_some());
    bench.wait(Duration::from_millis(2_999));
    assert_eq!(bench.sent(), []);
    assert_eq!(bench.send(host(1), &data(id)), Ok(()));
    // A second call changes nothing.
    bench.endpoint.end(key, Duration::from_secs(3), bench.now);
    bench.no_event();
    bench.wait(Duration::from_millis(1));
    let padt = bench.one();
    assert_eq!((padt.code, padt.session), (Code::PADT, id));
    assert_eq!(bench.down(), (key, id, EndReason::Payload));
    // A stale key.
    bench.endpoint.end(key, Duration::ZERO, bench.now);
    bench.endpoint.close(key, bench.now);
    bench.endpoint.heard(key, bench.now);
    bench.no_event();
}

#[test]
fn the_peer_may_agree_before_the_wait_is_over() {
    let mut bench = Bench::new(config());
    let (key, id) = bench.open(host(1), &[]);
    bench.endpoint.end(key, Duration::from_secs(3), bench.now);
    bench.send(host(1), &packet(Code::PADT, id, &[])).unwrap();
    assert_eq!(bench.down(), (key, id, EndReason::Payload));
    bench.wait(Duration::from_secs(9));
    assert_eq!(bench.sent(), []);
    bench.no_event();
}

#[test]
fn a_port_that_is_gone_ends_its_sessions_without_a_packet() {
    let mut bench = Bench::new(config());
    bench.endpoint.add_port(1, pppoe::PortConfig::default());
    let mut other = host(3);
    other.port = 1;
    let (kept, _) = bench.open(other, &[]);
    for n in 0..5 {
        bench.open(host(n), &[]);
    }
    bench.endpoint.remove_port(0, bench.now);
    bench.wait(Duration::ZERO);
    for _ in 0..5 {
        assert_eq!(bench.down().2, EndReason::PortLost);
    }
    bench.endpoint.remove_port(0, bench.now);
    bench.no_event();
    assert_eq!(bench.sent(), []);
    assert_eq!(bench.endpoint.count(), 1);
    assert!(bench.endpoint.session(kept).is_some());
    bench.ignored(host(1), &padi(), Discard::UnknownPort);
    bench.endpoint.add_port(0, pppoe::PortConfig::default());
    bench.open(host(1), &[]);
}

#[test]
fn a_vlan_that_is_gone_ends_its_sessions_alone() {
    let mut bench = Bench::new(config());
    let tagged = |n: u32, vlans| {
        let mut route = host(n);
        route.vlans = vlans;
        route
    };
    let (lost, lost_id) = bench.open(tagged(1, Vlans::two(5, 1)), &[]);
    let (kept, _) = bench.open(tagged(2, Vlans::two(5, 2)), &[]);
    let gone = |route: &pppoe::Route| route.vlans == Vlans::two(5, 1);
    bench.endpoint.lose(gone, bench.now);
    bench.wait(Duration::ZERO);
    assert_eq!(bench.down(), (lost, lost_id, EndReason::VlanLost));
    bench.no_event();
    assert_eq!(bench.sent(), []);
    assert!(bench.endpoint.session(kept).is_some());
}

/// Ends all sessions by calls that may each do `most`, and returns the number of ends that each call reported.
fn ends_of_each_call(bench: &mut Bench, most: usize) -> Vec<usize> {
    let mut counts = Vec::new();
    while bench
        .endpoint
        .poll_timeout()
        .is_some_and(|(at, _)| at <= bench.now)
    {
        let worked = bench.endpoint.handle_timeouts(bench.now, most);
        let mut ends = 0;
        while bench.endpoint.poll_event().is_some() {
            ends += 1;
        }
        assert!(worked <= most && ends <= worked, "{worked} {ends}");
        counts.push(ends);
    }
    counts
}

#[test]
fn the_end_of_many_sessions_is_done_in_calls_of_bounded_work() {
    const SESSIONS: u32 = 60_000;
    let limits = pppoe::Limits {
        half_open_max: 0,
        ..crate::common::limits()
    };
    let config = pppoe::Config { limits, ..config() };
    let losses: [fn(&mut Bench); 3] = [
        |bench| bench.endpoint.remove_port(0, bench.now),
        |bench| {
            bench
                .endpoint
                .lose(|route| route.vlans.is_none(), bench.now)
        },
        |bench| bench.endpoint.shut_down(bench.now),
    ];
    for lose in losses {
        let mut bench = Bench::new(config.clone());
        for n in 0..SESSIONS {
            bench.open(host(n), &[]);
        }
        lose(&mut bench);
        bench.no_event();
        assert!(!bench.endpoint.is_quiet());
        assert_eq!(bench.endpoint.count(), SESSIONS as usize);
        let counts = ends_of_each_call(&mut bench, 64);
        assert_eq!(counts.iter().sum::<usize>(), SESSIONS as usize);
        assert!(counts.iter().all(|count| *count <= 64));
        assert_eq!(bench.endpoint.count(), 0);
        assert_eq!(bench.endpoint.poll_timeout(), None);
    }
}

#[test]
fn a_host_that_is_back_before_its_lost_session_ended_keeps_the_new_one() {
    let mut bench = Bench::new(config());
    for n in 0..9 {
        bench.open(host(n), &[]);
    }
    bench.endpoint.remove_port(0, bench.now);
    bench.endpoint.add_port(0, pppoe::PortConfig::default());
    let pads = bench.request(host(4), &[(tag::HOST_UNIQ, b"new")]);
    assert_ne!(pads.session, 0);
    bench.wait(Duration::ZERO);
    assert_eq!(bench.endpoint.count(), 1);
    let kept = bench.endpoint.sessions().next().unwrap();
    assert_eq!(kept.id, pads.session);
}

#[test]
fn timers_fire_as_many_as_the_caller_asks_for() {
    let mut bench = Bench::new(config());
    for n in 0..5 {
        bench.open(host(n), &[]);
    }
    bench.now += Duration::from_secs(60);
    let mut fire = |most| bench.endpoint.handle_timeouts(bench.now, most);
    assert_eq!((fire(3), fire(3), fire(3)), (3, 2, 0));
    assert_eq!(bench.endpoint.count(), 0);
}

#[test]
fn a_shutdown_terminates_every_session_and_refuses_new_ones() {
    let mut bench = Bench::new(config());
    let cookie = bench.cookie(host(9));
    let mut ids: Vec<u16> = (0..5).map(|n| bench.open(host(n), &[]).1).collect();
    assert!(bench.endpoint.is_quiet());
    bench.endpoint.shut_down(bench.now);
    assert!(!bench.endpoint.is_quiet());
    bench.wait(Duration::ZERO);
    let sent = bench.sent();
    assert!(sent.iter().all(|sent| sent.code == Code::PADT));
    let mut terminated: Vec<u16> = sent.iter().map(|sent| sent.session).collect();
    ids.sort_unstable();
    terminated.sort_unstable();
    assert_eq!(terminated, ids);
    assert!(bench.endpoint.is_quiet());
    while let Some(event) = bench.endpoint.poll_event() {
        let Event::SessionDown { reason, .. } = event else {
            panic!("{event:?}")
        };
        assert_eq!(reason, EndReason::ShutDown);
    }
    bench.ignored(host(1), &padi(), Discard::ShuttingDown);
    let pads = bench.answer(host(9), &padr(&cookie, &[]));
    assert_eq!(pads.session, 0);
    assert_eq!(pads.one(tag::AC_SYSTEM_ERROR), b"shutting down");
}
