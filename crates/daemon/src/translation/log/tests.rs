//! The thread with a real directory and real sockets.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nat::Block;
use natlog::Reader;
use reactor::clock;
use wire::ipfix::Message;

use super::*;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("headend-natlog-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const EXTERNAL: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);

fn block(n: u16) -> Block {
    Block {
        tag: u64::from(n) + 1,
        inside: (0x6440_0000 + u32::from(n)).into(),
        external: EXTERNAL,
        first: 1024 + n * 512,
        last: 1535 + n * 512,
    }
}

fn allocated(n: u16, name: &str) -> Item {
    Item {
        event: Event::BlockAllocated(block(n), clock::now()),
        name: name.as_bytes().into(),
    }
}

/// The subscriber has left before its block is freed, so the event has no name.
fn freed(n: u16) -> Item {
    Item {
        event: Event::BlockFreed(block(n), clock::now()),
        name: Box::default(),
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_millis() as u64
}

#[track_caller]
fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn name(store: &std::path::Path, port: u16, at_ms: u64) -> Option<String> {
    let reader = Reader::new(store);
    let entry = reader.who(EXTERNAL, port, at_ms).expect("readable")?;
    let name = reader.name(entry.tag).expect("readable").expect("a name");
    Some(String::from_utf8(name).expect("a text"))
}

#[test]
fn a_start_after_a_crash_ends_the_blocks_of_the_run_before() {
    let scratch = Scratch::new("crash");
    let settings = NatLog {
        store: Some(scratch.0.clone()),
        days: 3,
        ..NatLog::default()
    };
    let mut log = Log::start(&settings).expect("a directory");
    log.push(vec![allocated(0, "ann"), allocated(1, "bob")]);
    wait("stored", || log.counts().stored == 2);
    let during = now_ms();
    assert_eq!(name(&scratch.0, 1100, during).as_deref(), Some("ann"));
    assert_eq!(name(&scratch.0, 1600, during).as_deref(), Some("bob"));
    log.push(vec![freed(0)]);
    wait("stored", || log.counts().stored == 3);
    // The process is killed: nothing of the thread's end happens.
    let copy = Scratch::new("crash-copy");
    std::fs::create_dir_all(&copy.0).expect("a directory");
    for file in std::fs::read_dir(&scratch.0).expect("a directory") {
        let path = file.expect("a file").path();
        let to = copy.0.join(path.file_name().expect("a name"));
        std::fs::copy(&path, to).expect("a copy");
    }
    assert_eq!(name(&copy.0, 1600, now_ms()).as_deref(), Some("bob"));
    let settings = NatLog {
        store: Some(copy.0.clone()),
        ..settings
    };
    let mut next = Log::start(&settings).expect("a directory");
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(name(&copy.0, 1600, now_ms()), None);
    assert_eq!(
        name(&copy.0, 1600, during).as_deref(),
        Some("bob"),
        "its past is still known"
    );
    next.push(vec![allocated(1, "carol")]);
    // An end in order does the same.
    next.end();
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(name(&copy.0, 1600, now_ms()), None);
    log.end();
}

#[test]
fn records_wait_in_memory_while_the_store_cannot_be_written() {
    let scratch = Scratch::new("full");
    let settings = NatLog {
        store: Some(scratch.0.clone()),
        ..NatLog::default()
    };
    let mut log = Log::start(&settings).expect("a directory");
    // No file can be made any more, as on a full disk.
    std::fs::remove_dir_all(&scratch.0).expect("our directory");
    log.push((0..100).map(|n| allocated(n, "ann")).collect());
    wait("tried", || log.counts().unstored == 100);
    log.push((0..100).map(freed).collect());
    let counts = log.counts();
    assert_eq!((counts.stored, counts.lost, counts.store_lost), (0, 0, 0));
    // There is room again.
    std::fs::create_dir_all(&scratch.0).expect("a directory");
    wait("stored", || log.counts().stored == 200);
    assert_eq!(log.counts().unstored, 0);
    log.end();
}

#[test]
fn collectors_get_templates_records_and_lines_and_one_that_is_gone_costs_its_datagrams() {
    let here = (Ipv4Addr::LOCALHOST, 0);
    let ipfix = UdpSocket::bind(here).expect("a socket");
    let syslog = UdpSocket::bind(here).expect("a socket");
    for socket in [&ipfix, &syslog] {
        let limit = Some(Duration::from_secs(20));
        socket.set_read_timeout(limit).expect("a limit");
    }
    let settings = NatLog {
        ipfix: ipfix.local_addr().ok(),
        ipfix_domain: 9,
        syslog: syslog.local_addr().ok(),
        host: "edge1".into(),
        ..NatLog::default()
    };
    let mut log = Log::start(&settings).expect("sockets");
    let mut octets = [0; 2000];
    let length = ipfix.recv(&mut octets).expect("templates at the start");
    let (message, _) = Message::parse(&octets[..length]).expect("a message");
    assert_eq!(
        (message.domain, message.sequence, message.sets().count()),
        (9, 0, 1)
    );
    log.push(vec![allocated(0, "ann"), freed(0)]);
    let length = ipfix.recv(&mut octets).expect("records within a second");
    let (message, _) = Message::parse(&octets[..length]).expect("a message");
    let sets: Vec<_> = message.sets().map(|set| set.expect("whole")).collect();
    assert_eq!(sets.len(), 1, "no template again");
    assert_eq!(sets[0].records(nat::log::TEMPLATES[0].1).count(), 2);
    for what in ["allocated", "freed"] {
        let length = syslog.recv(&mut octets).expect("a line");
        let line = String::from_utf8_lossy(&octets[..length]).into_owned();
        assert!(line.contains(" edge1 headend - NATBLK - "), "{line}");
        assert!(
            line.contains(what) && line.ends_with("subscriber=ann"),
            "{line}"
        );
    }
    drop((ipfix, syslog));
    for n in 0..20 {
        log.push(vec![allocated(n, "bob")]);
        std::thread::sleep(Duration::from_millis(1));
    }
    wait("failures are counted", || log.counts().syslog_failed > 0);
    wait("the queue is empty", || log.counts().waiting == 0);
    assert_eq!(log.counts().lost, 0);
    log.end();
}

#[test]
fn a_thread_that_is_too_far_behind_costs_events_which_are_counted() {
    let mut log = Log::start(&NatLog::default()).expect("a thread");
    log.shared.waiting.store(WAITING_MAX, Relaxed);
    log.push(vec![allocated(0, "ann"), freed(0)]);
    assert_eq!(log.counts().lost, 2);
    assert!(log.is_losing);
    log.shared.waiting.store(0, Relaxed);
    log.push(vec![allocated(0, "ann")]);
    assert_eq!(log.counts().lost, 2);
    assert!(!log.is_losing);
    wait("written", || log.counts().waiting == 0);
    log.end();
}
