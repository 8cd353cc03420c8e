//! The time that passes while no process runs.
#![forbid(unsafe_code)]

use base::{Duration, Instant};
use journal::{Batch, Host, Limits, Log, Moment, Opened};
use sim::CrashDisk;

const S: u64 = 1_000_000_000;

fn host(boot: u8) -> Host {
    Host {
        machine: [1; 16],
        boot: [boot; 16],
    }
}

/// A moment in seconds by the process's clock and by the wall clock.
fn at(clock: u64, wall: u64) -> Moment {
    Moment {
        clock: Instant::from_nanos(clock * S),
        wall_ns: wall * S,
    }
}

/// A process that starts at one moment and writes last at another one.
fn live(disk: &CrashDisk, boot: u8, start: Moment, end: Moment) -> (Log<CrashDisk>, Opened) {
    let limits = Limits::default();
    let (mut log, opened) =
        Log::open(disk.clone(), host(boot), limits, b"", start).expect("a disk");
    let mut batch = Batch::default();
    batch.remove(0, 0);
    log.add(&mut batch, end);
    log.sync().expect("a disk");
    (log, opened)
}

/// Where a moment of the process's clock is on the timeline, in milliseconds.
fn ms(log: &Log<CrashDisk>, clock: u64) -> u64 {
    let timeline = log.timeline();
    timeline.of(Instant::from_nanos(clock * S)) - timeline.of(Instant::from_nanos(1))
}

#[test]
fn on_the_same_boot_the_monotonic_clock_counts() {
    let disk = CrashDisk::new(0);
    let (first, _) = live(&disk, 1, at(100, 5_000), at(150, 5_050));
    // The wall clock jumped back by an hour.
    let (second, opened) = live(&disk, 1, at(170, 1_470), at(180, 1_480));
    assert_eq!(opened.elapsed, Duration::from_secs(20));
    assert!(opened.is_same_boot && !opened.is_long);
    assert_eq!(first.timeline(), second.timeline());
    let (_, opened) = live(&disk, 1, at(500, 1_800), at(500, 1_800));
    assert_eq!(opened.elapsed, Duration::from_secs(320));
    assert!(opened.is_long);
}

#[test]
fn on_another_boot_the_wall_clock_counts_within_bounds() {
    let disk = CrashDisk::new(0);
    let (first, _) = live(&disk, 1, at(100, 5_000), at(150, 5_050));
    let moment = first.timeline().of(Instant::from_nanos(150 * S));
    let (second, opened) = live(&disk, 2, at(10, 5_080), at(20, 5_090));
    assert_eq!(opened.elapsed, Duration::from_secs(30));
    assert!(!opened.is_same_boot && !opened.is_long);
    // What the first process called 150 s is 30 s before the second one's start at 10 s.
    assert_eq!(
        second.timeline().of(Instant::from_nanos(10 * S)),
        moment + 30_000
    );

    let (_, opened) = live(&disk, 3, at(10, 4_000), at(20, 4_010));
    assert_eq!(opened.elapsed, Duration::ZERO, "the wall clock went back");
    assert!(!opened.is_long);
    let (_, opened) = live(&disk, 4, at(10, 9_000_000), at(20, 9_000_010));
    assert_eq!(opened.elapsed, Duration::from_secs(300));
    assert!(opened.is_long);
}

#[test]
fn the_timeline_never_goes_back() {
    let disk = CrashDisk::new(0);
    let (first, _) = live(&disk, 1, at(100, 5_000), at(150, 5_050));
    let last = first.timeline().of(Instant::from_nanos(150 * S));
    // The same boot id, but a clock that began anew, as in a container.
    let (second, opened) = live(&disk, 1, at(7, 5_060), at(8, 5_061));
    assert_eq!(opened.elapsed, Duration::ZERO);
    assert_eq!(second.timeline().of(Instant::from_nanos(7 * S)), last);
    assert_eq!(ms(&second, 8) - ms(&second, 7), 1_000);
}

#[test]
fn a_compaction_keeps_the_timeline_and_the_numbers() {
    let disk = CrashDisk::new(0);
    let limits = Limits {
        compact_octets: 1_000,
        ..Limits::default()
    };
    let open = |boot, now| {
        let log = Log::open(disk.clone(), host(boot), limits.clone(), b"mine", now);
        log.expect("a disk")
    };
    let (mut log, _) = open(1, at(100, 5_000));
    for n in 0..50_u8 {
        let mut batch = Batch::default();
        assert!(batch.put(1, 1, &[(0, &[n; 100])]));
        log.add(&mut batch, at(100 + u64::from(n), 5_000 + u64::from(n)));
        log.sync().expect("a disk");
        while log.wants_step() {
            log.step(at(100 + u64::from(n), 5_000 + u64::from(n)))
                .expect("a disk");
        }
    }
    assert!(log.compactions() > 2 && log.octets() < 2_000);
    let (timeline, last) = (log.timeline(), log.last());
    drop(log);
    let (log, opened) = open(1, at(159, 5_059));
    assert_eq!(opened.elapsed, Duration::from_secs(10));
    assert_eq!((log.timeline(), opened.last), (timeline, last));
    assert_eq!(opened.names, [b"mine".to_vec()]);
    let record = opened.records.get(1, 1).expect("it is live");
    assert_eq!(record.sections, [(0, &[49; 100][..])]);
}

#[test]
fn names_of_earlier_processes_are_found_once_each() {
    let disk = CrashDisk::new(0);
    let open = |names: &[u8]| {
        let log = Log::open(disk.clone(), host(1), Limits::default(), names, at(1, 1));
        log.map(|(_, opened)| opened.names)
    };
    assert_eq!(open(b"old").expect("a disk"), [[0; 0]; 0]);
    assert_eq!(open(b"new").expect("a disk"), [b"old"]);
    assert_eq!(open(b"new").expect("a disk"), [b"new", b"old"]);
    assert_eq!(open(b"").expect("a disk"), [b"new", b"old"]);
    let longest = vec![1; journal::RECORD_OCTETS_MAX];
    assert!(open(&longest).is_ok());
    assert_eq!(open(b"").expect("a disk")[0], longest);
    let error = open(&[&longest[..], &[1]].concat()).expect_err("too long");
    assert_eq!(
        error.to_string(),
        "the names have 65536 bytes; at most 65535 are written"
    );
}
