//! The journal's thread: what it writes and syncs without being asked, and disks that are full or fail.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::time;

use base::Duration;
use journal::{Host, Journal, Limits, Log, Moment, Opened, Options, Refused};
use reactor::faults::{self, Plan};
use sim::{Crash, CrashDisk, Rng};

const PATIENCE: Duration = Duration::from_secs(60);
const HOST: Host = Host {
    machine: [1; 16],
    boot: [2; 16],
};

fn open(disk: &CrashDisk, options: Options) -> (Journal, Opened) {
    let limits = options.limits.clone();
    let log = Log::open(disk.clone(), HOST, limits, b"", Moment::now());
    let (log, opened) = log.expect("a disk that works");
    (Journal::start(log, options, ()).expect("a thread"), opened)
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE.into(), "in vain: {what}");
        std::thread::sleep(time::Duration::from_millis(1));
    }
}

#[test]
fn entries_are_written_and_synced_without_being_asked() {
    let disk = CrashDisk::new(0);
    let (journal, _) = open(&disk, Options::default());
    let number = journal.put(1, 1, &[(0, b"one")]).expect("room");
    wait("a write", || journal.written() >= number);
    wait("a sync", || journal.synced() >= number);
    disk.crash(Crash::Power);
    drop(journal);
    let (_journal, opened) = open(&disk, Options::default());
    assert_eq!(opened.records.len(), 1);
}

#[test]
fn a_flush_does_not_wait_for_the_interval() {
    let options = Options {
        commit_interval: Duration::from_secs(3_600),
        ..Options::default()
    };
    let (journal, _) = open(&CrashDisk::new(0), options);
    journal.put(1, 1, &[(0, b"one")]).expect("room");
    assert!(journal.flush(PATIENCE));
}

#[test]
fn an_idle_journal_says_that_its_process_lives() {
    let disk = CrashDisk::new(0);
    let options = Options {
        mark_interval: Duration::from_millis(5),
        commit_interval: Duration::from_millis(1),
        ..Options::default()
    };
    let (journal, _) = open(&disk, options);
    let length = || disk.octets("000001.log").map_or(0, |octets| octets.len());
    let before = length();
    wait("five marks", || length() >= before + 5 * 52);
    assert_eq!(journal.stats().last, 0, "marks are no entries");
    drop(journal);
    let (_journal, opened) = open(&disk, Options::default());
    assert_eq!((opened.last, opened.cut_octets), (0, 0));
}

#[test]
fn a_full_disk_refuses_by_count_and_recovers() {
    let disk = CrashDisk::new(0);
    disk.set_room(10_000);
    let options = Options {
        memory_octets_max: 50_000,
        retry: Duration::from_millis(1),
        retry_max: Duration::from_millis(2),
        commit_interval: Duration::from_millis(1),
        ..Options::default()
    };
    let (journal, _) = open(&disk, options);
    let (mut accepted, mut refused) = (0, 0);
    wait("a refusal", || {
        let put = journal.put(1, accepted, &[(0, &[7; 1_000])]);
        match put {
            Ok(_) => accepted += 1,
            Err(why) => {
                assert_eq!(why, Refused::Behind);
                refused += 1;
            }
        }
        refused == 10
    });
    wait("a report", || journal.stats().failure.is_some());
    let stats = journal.stats();
    assert_eq!(stats.refused_behind, 10);
    assert!(stats.memory_octets <= 50_000 && stats.synced < accepted);
    disk.set_room(u64::MAX);
    wait("recovery", || journal.synced() == accepted);
    assert_eq!(journal.stats().failure, None);
    let last = journal.put(1, accepted, &[(0, b"again")]).expect("room");
    assert!(journal.flush(PATIENCE) && journal.synced() == last);
    journal.close().expect("a disk that works");
    let (_journal, opened) = open(&disk, Options::default());
    assert_eq!(opened.records.len() as u64, accepted + 1);
}

#[test]
fn a_record_that_is_too_long_is_refused() {
    let (journal, _) = open(&CrashDisk::new(0), Options::default());
    let long = vec![0; journal::RECORD_OCTETS_MAX + 1];
    assert_eq!(journal.put(1, 1, &[(0, &long)]), Err(Refused::TooLong));
    let many: Vec<(u8, &[u8])> = (0..300).map(|n| (n as u8, &b"x"[..])).collect();
    assert_eq!(journal.change(1, 1, &many), Err(Refused::TooLong));
    assert_eq!(journal.put(1, 1, &[(0, &long[1..])]), Ok(1));
    assert_eq!(journal.stats().refused_length, 2);
}

#[test]
fn what_a_close_loses_is_counted() {
    let disk = CrashDisk::new(0);
    let (journal, _) = open(&disk, Options::default());
    disk.set_room(0);
    for key in 0..3 {
        journal
            .put(1, key, &[(0, b"lost")])
            .expect("room in memory");
    }
    let error = journal.close().expect_err("there is no room").to_string();
    assert!(
        error.starts_with("3 changes of state are lost: "),
        "{error}"
    );
}

/// A directory on a real disk whose calls fail.
#[test]
fn calls_that_fail_lose_nothing_that_was_reported_as_synced() {
    let (mut failures, mut compactions, mut lost) = (0, 0, 0);
    for seed in 0..60 {
        let path: PathBuf =
            std::env::temp_dir().join(format!("journal-faults-{}-{seed}", std::process::id()));
        let options = || Options {
            commit_interval: Duration::from_millis(1),
            retry: Duration::from_millis(1),
            retry_max: Duration::from_millis(2),
            limits: Limits {
                compact_octets: 4_000,
                step_octets: 1_000,
                ..Limits::default()
            },
            ..Options::default()
        };
        faults::prepare();
        let (journal, _) = Journal::open(&path, b"", options()).expect("a disk that works");
        faults::arm(Plan {
            seed,
            one_in: [3, 10, 40][(seed % 3) as usize],
            burst_max: 3,
            part_in: 2,
            ..Plan::default()
        });
        let mut rng = Rng::new(seed);
        let mut values = Vec::new();
        for n in 1..=200_u64 {
            let value = vec![n as u8; 1 + rng.below(300) as usize];
            assert_eq!(journal.put(1, n % 5, &[(0, &value)]), Ok(n));
            values.push(value);
            if n % 20 == 0 {
                journal.flush(Duration::from_millis(4));
            }
        }
        if seed % 2 == 0 {
            drop(faults::disarm());
            assert!(journal.flush(PATIENCE), "seed {seed}");
        }
        let stats = journal.stats();
        failures += stats.failures;
        compactions += stats.compactions;
        let synced = stats.synced;
        lost += u64::from(journal.close().is_err());
        drop(faults::disarm());
        let (journal, opened) = Journal::open(&path, b"", options()).expect("it works again");
        assert_eq!(opened.damaged, None, "seed {seed}");
        assert!(opened.last >= synced, "seed {seed}");
        for key in 0..5 {
            let last = (1..=opened.last).rev().find(|n| n % 5 == key);
            let found = opened.records.get(1, key);
            let expected = last.map(|n| vec![(0, &values[n as usize - 1][..])]);
            assert_eq!(found.map(|record| record.sections), expected, "seed {seed}");
        }
        journal.close().expect("it works again");
        std::fs::remove_dir_all(&path).expect("ours");
    }
    println!("{failures} failures, {compactions} compactions, {lost} closes that lost entries");
    assert!(failures > 100 && compactions > 0);
}
