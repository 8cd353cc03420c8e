//! Kills a process with SIGKILL at random moments while it writes, and compares the journal with what the process
//! reported as written.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use journal::{Journal, Limits, Options};
use sim::Rng;

const PLACE: &str = "JOURNAL_TEST_PLACE";
const KEYS: u64 = 50;

fn options() -> Options {
    Options {
        limits: Limits {
            compact_octets: 30_000,
            step_octets: 4_000,
            ..Limits::default()
        },
        ..Options::default()
    }
}

/// The octets that the entry of a number has, and its key.
fn entry(number: u64) -> (u64, Vec<u8>) {
    let octets = number.to_be_bytes().repeat(1 + (number % 40) as usize);
    (number % KEYS, octets)
}

/// The process to be killed; an ordinary test run skips it.
#[test]
fn the_process_that_is_killed() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    let (journal, opened) = Journal::open(&place, b"", options()).expect("it opens");
    let mut out = std::io::stdout();
    for number in opened.last + 1.. {
        let (key, octets) = entry(number);
        journal.put(1, key, &[(0, &octets)]).expect("room");
        if number % 7 == 0 {
            let written = journal.written();
            writeln!(out, "written {written} {number}").expect("a reader");
        }
        if number % 50 == 0 {
            std::thread::sleep(Duration::from_micros(300));
        }
    }
}

#[test]
fn a_killed_process_loses_nothing_that_was_written() {
    let place = std::env::temp_dir().join(format!("journal-killed-{}", std::process::id()));
    let mut rng = Rng::new(1);
    let mut last = 0;
    for round in 0..12 {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["the_process_that_is_killed", "--exact", "--nocapture"])
            .env(PLACE, &place)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let reports = child.stdout.take().expect("a pipe");
        let reading = std::thread::spawn(move || {
            let mut known = (0, 0);
            for line in BufReader::new(reports).lines().map_while(Result::ok) {
                let mut words = line.split(' ');
                let mut number = || words.next()?.parse::<u64>().ok();
                if let (None, Some(written), Some(added)) = (number(), number(), number()) {
                    known = (written, added);
                }
            }
            known
        });
        std::thread::sleep(Duration::from_micros(20_000 + rng.below(150_000)));
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        let (written, _) = reading.join().expect("it reads");
        let opened = Journal::open(&place, b"", options());
        let (journal, opened) = opened.expect("the lock went with its process");
        assert_eq!(opened.damaged, None);
        assert!(
            opened.last >= written.max(last),
            "round {round}: {} of {written}",
            opened.last
        );
        for key in 0..KEYS {
            let number = (1..=opened.last).rev().find(|number| number % KEYS == key);
            let found = opened.records.get(1, key).map(|record| record.sections);
            let octets = number.map(|number| entry(number).1);
            assert_eq!(found, octets.as_ref().map(|octets| vec![(0, &octets[..])]));
        }
        last = opened.last;
        journal.close().expect("a disk that works");
    }
    assert!(last > 1_000, "{last}");
    fs::remove_dir_all(&place).expect("ours");
}
