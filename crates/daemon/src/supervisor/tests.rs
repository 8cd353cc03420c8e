//! The messages in virtual time; a socket of the test is the manager.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A manager, and the daemon's side.
fn manager(watchdog_us: Option<&str>) -> (UnixDatagram, Supervisor) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("headend-supervisor-{}-{number}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let manager = UnixDatagram::bind_addr(&address).unwrap();
    manager.set_nonblocking(true).unwrap();
    let supervisor = Supervisor::from(&Variables {
        socket: Some(format!("@{name}").into()),
        watchdog_us: watchdog_us.map(Into::into),
        watchdog_pid: None,
    });
    assert!(supervisor.is_there());
    (manager, supervisor)
}

/// The messages that have arrived.
fn messages(manager: &UnixDatagram) -> Vec<String> {
    let mut octets = [0; 512];
    std::iter::from_fn(|| {
        let length = manager.recv(&mut octets).ok()?;
        Some(String::from_utf8_lossy(&octets[..length]).into_owned())
    })
    .collect()
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(1_000_000 + ms)
}

fn facts(subscribers: u32) -> Facts {
    Facts {
        subscribers,
        ..Facts::default()
    }
}

#[test]
fn the_watchdog_is_fed_at_half_its_time_and_only_by_turns() {
    let (manager, mut supervisor) = manager(Some("2000000"));
    supervisor.ready(facts(0), at(0));
    assert_eq!(messages(&manager), ["READY=1\nSTATUS=0 subscribers"]);
    supervisor.turn(facts(0), at(0));
    assert_eq!(messages(&manager), ["WATCHDOG=1"]);
    assert_eq!(supervisor.due(), Some(at(1000)));
    supervisor.turn(facts(0), at(999));
    assert!(messages(&manager).is_empty());
    supervisor.turn(facts(0), at(1000));
    assert_eq!(messages(&manager), ["WATCHDOG=1"]);
    // A turn that hung for long is one message late, not many at once.
    supervisor.turn(facts(0), at(60_000));
    assert_eq!(messages(&manager), ["WATCHDOG=1"]);
    assert_eq!(supervisor.due(), Some(at(61_000)));
}

#[test]
fn without_a_watchdog_an_idle_loop_is_never_woken() {
    for watchdog in [None, Some("0"), Some("soon"), Some("")] {
        let (manager, mut supervisor) = manager(watchdog);
        supervisor.ready(facts(3), at(0));
        supervisor.turn(facts(3), at(1));
        assert_eq!(supervisor.due(), None, "{watchdog:?}");
        assert_eq!(messages(&manager).len(), 1);
    }
    let other = Variables {
        socket: Some("@x".into()),
        watchdog_us: Some("2000000".into()),
        watchdog_pid: Some("1".into()),
    };
    assert_eq!(watchdog(&other), None, "it is for another process");
}

#[test]
fn the_state_is_sent_when_it_changed_and_at_most_every_five_seconds() {
    let (manager, mut supervisor) = manager(None);
    let with_peers = |subscribers, peers| Facts {
        peers: Some(peers),
        ..facts(subscribers)
    };
    supervisor.ready(with_peers(0, 0), at(0));
    messages(&manager);
    for ms in 1..5_000 {
        supervisor.turn(with_peers(ms as u32, 1), at(ms));
    }
    assert!(messages(&manager).is_empty());
    assert_eq!(supervisor.due(), Some(at(5_000)));
    supervisor.turn(with_peers(1, 1), at(5_000));
    let status = "STATUS=1 subscriber, 1 BGP peer established";
    assert_eq!(messages(&manager), [status]);
    // A change that is gone when its time comes needs no message.
    supervisor.turn(with_peers(2, 1), at(6_000));
    supervisor.turn(with_peers(1, 1), at(7_000));
    assert_eq!(supervisor.due(), None);
}

#[test]
fn a_reload_starts_and_ends_and_its_refusal_is_shown() {
    let (manager, mut supervisor) = manager(None);
    supervisor.ready(facts(2), at(0));
    messages(&manager);
    let before = clock::now().as_nanos() / 1_000;
    supervisor.reloading();
    supervisor.reloaded(
        Some("headend.toml: lns: wrong\nheadend.toml: lac: wrong"),
        at(1),
    );
    supervisor.reloaded(None, at(2));
    let sent = messages(&manager);
    let micros = sent[0]
        .strip_prefix("RELOADING=1\nMONOTONIC_USEC=")
        .unwrap();
    assert!(micros.parse::<u64>().unwrap() >= before, "{micros}");
    assert_eq!(
        sent[1..],
        [
            "READY=1\nSTATUS=2 subscribers; the last reload changed nothing: headend.toml: lns: wrong",
            "READY=1\nSTATUS=2 subscribers"
        ]
    );
}

#[test]
fn the_shutdown_is_announced_once_with_its_time_and_no_reload_follows() {
    let (manager, mut supervisor) = manager(None);
    supervisor.ready(facts(2), at(0));
    messages(&manager);
    let stopping = Facts {
        stops_within: Some(Duration::from_secs(3)),
        ..facts(2)
    };
    supervisor.turn(stopping, at(1));
    supervisor.turn(stopping, at(2));
    supervisor.reloading();
    supervisor.reloaded(None, at(3));
    assert_eq!(
        messages(&manager),
        [
            "STOPPING=1\nEXTEND_TIMEOUT_USEC=8000000\nSTATUS=2 subscribers; shutting down: notifying every peer"
        ]
    );
}

#[test]
fn a_manager_that_does_not_read_gets_the_oldest_messages_later() {
    let (manager, mut supervisor) = manager(Some("20000"));
    supervisor.ready(facts(0), at(0));
    // Far more than the kernel and the daemon keep.
    for turn in 0..2_000 {
        supervisor.turn(facts(0), at(10 * turn));
    }
    let first = messages(&manager);
    assert!(first[0].starts_with("READY=1"));
    let due = supervisor.due().unwrap();
    supervisor.turn(facts(0), due.max(at(30_000)));
    let later = messages(&manager);
    assert!(
        (1..=UNSENT_MAX + 1).contains(&later.len()),
        "{}",
        later.len()
    );
}

#[test]
fn a_manager_that_is_gone_is_forgotten() {
    let (manager, mut supervisor) = manager(Some("2000000"));
    drop(manager);
    supervisor.ready(facts(0), at(0));
    supervisor.turn(facts(0), at(1));
    assert_eq!(supervisor.due(), Some(at(1_001)), "only the next watchdog");
}
