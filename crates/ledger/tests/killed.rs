//! Kills a process with SIGKILL at random moments while it adds and acknowledges records, and compares the file
//! with the process's own log.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ledger::{Ledger, Options, RecordId};

const PLACE: &str = "LEDGER_TEST_PLACE";
const INTERVAL: Duration = Duration::from_millis(20);
/// Extra delay allowed on a busy machine, beyond the interval and two commits.
const SLACK_US: u64 = 1_000_000;

/// What the process had logged at some moment.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    at_us: u64,
    added: u64,
    acknowledged: u64,
    committed: u64,
    commit_longest_us: u64,
}

fn record(id: u64) -> Vec<u8> {
    format!("record {id} {}", "x".repeat(150)).into_bytes()
}

/// Even records are acknowledged some time after they were added; odd ones never.
fn is_acknowledged(id: u64, up_to: u64) -> bool {
    id.is_multiple_of(2) && id <= up_to
}

/// The process to be killed; an ordinary test run skips it.
#[test]
fn the_process_that_is_killed() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    let options = Options {
        commit_interval: INTERVAL,
        ..Options::default()
    };
    let (mut ledger, _) = Ledger::open(&place.join("records"), options).expect("it opens");
    let mut log = fs::File::create(place.join("log")).expect("a log");
    let start = Instant::now();
    let mut moment = Moment::default();
    while start.elapsed() < Duration::from_secs(60) {
        for _ in 0..20 {
            let id = ledger
                .add(&record(moment.added + 1))
                .expect("there is room");
            assert_eq!(id, RecordId(moment.added + 1));
            moment.added = id.0;
        }
        while moment.acknowledged + 300 < moment.added {
            moment.acknowledged += 1;
            if is_acknowledged(moment.acknowledged, moment.acknowledged) {
                ledger.acknowledged(RecordId(moment.acknowledged));
            }
        }
        let stats = ledger.stats();
        moment.at_us = start.elapsed().as_micros() as u64;
        moment.committed = stats.committed.0;
        moment.commit_longest_us = stats.commit_longest.as_micros() as u64;
        let line = format!(
            "{} {} {} {} {}\n",
            moment.at_us,
            moment.added,
            moment.acknowledged,
            moment.committed,
            moment.commit_longest_us
        );
        log.write_all(line.as_bytes()).expect("the log is written");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn moments(log: &Path) -> Vec<Moment> {
    let text = fs::read_to_string(log).expect("the log is there");
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let moment = |line: &str| {
        let numbers = line
            .split(' ')
            .map(|number| number.parse().expect("a number"));
        let numbers: Vec<u64> = numbers.collect();
        Moment {
            at_us: numbers[0],
            added: numbers[1],
            acknowledged: numbers[2],
            committed: numbers[3],
            commit_longest_us: numbers[4],
        }
    };
    whole.lines().map(moment).collect()
}

fn run_and_kill(place: &Path, after: Duration) -> Vec<Moment> {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "the_process_that_is_killed"])
        .env(PLACE, place)
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let log = place.join("log");
    while fs::metadata(&log).map_or(0, |meta| meta.len()) == 0 {
        assert_eq!(child.try_wait().expect("it is ours"), None, "it runs");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(after);
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    moments(&log)
}

fn check(place: &Path, moments: &[Moment]) {
    let last = *moments.last().expect("it ran");
    let (mut ledger, recovered) =
        Ledger::open(&place.join("records"), Options::default()).expect("it opens");
    assert_eq!(recovered.damaged, None);
    let waiting = ledger.waiting(RecordId(0), usize::MAX).expect("it reads");
    let found: HashMap<u64, Vec<u8>> = waiting
        .into_iter()
        .map(|(id, octets)| (id.0, octets))
        .collect();
    for (id, octets) in &found {
        assert_eq!(octets, &record(*id));
    }
    let is_there = |id: u64| found.contains_key(&id);
    let expected = |up_to: u64| (1..=up_to).filter(|&id| !is_acknowledged(id, last.acknowledged));
    // Records reported as on disk are there, whatever the time.
    let missing: Vec<u64> = expected(last.committed)
        .filter(|&id| !is_there(id))
        .collect();
    assert_eq!(missing, [0_u64; 0], "of {last:?}");
    // Records older than the bound are on disk, and those acknowledged before it are not.
    let bound_us = INTERVAL.as_micros() as u64 + 2 * last.commit_longest_us + SLACK_US;
    let old = moments
        .iter()
        .rev()
        .find(|moment| moment.at_us + bound_us < last.at_us);
    if let Some(old) = old {
        let missing: Vec<u64> = expected(old.added).filter(|&id| !is_there(id)).collect();
        assert_eq!(missing, [0_u64; 0], "added by {old:?}, killed at {last:?}");
        let back: Vec<u64> = (1..=old.acknowledged)
            .filter(|&id| is_acknowledged(id, old.acknowledged) && is_there(id))
            .collect();
        assert_eq!(
            back, [0_u64; 0],
            "acknowledged by {old:?}, killed at {last:?}"
        );
    }
    let lost = expected(last.added).filter(|&id| !is_there(id)).count();
    println!(
        "killed at {} us: {} added, {lost} of the last lost, longest commit {} us",
        last.at_us, last.added, last.commit_longest_us
    );
}

#[test]
fn a_killed_process_loses_no_more_than_the_bound_says() {
    for (round, after_ms) in [3, 40, 111, 290, 700, 1_500, 1_800, 2_200]
        .into_iter()
        .enumerate()
    {
        let name = format!("ledger-killed-{}-{round}", std::process::id());
        let place = std::env::temp_dir().join(name);
        fs::create_dir_all(&place).expect("a directory for the test");
        let moments = run_and_kill(&place, Duration::from_millis(after_ms));
        check(&place, &moments);
        fs::remove_dir_all(&place).expect("it is ours");
    }
}
