//! The store against a naive list, across days, restarts and crashes.

use std::path::{Path, PathBuf};

mod names;

use crate::{Entry, Kind, Reader, Settings, Store};

const DAY: u64 = 86_400_000;
const START: u64 = 20_000 * DAY + 1000;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}

/// A directory that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("natlog-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn entry(kind: Kind, at_ms: u64, block: u64, tag: u64) -> Entry {
    let first = 1024 + (block % 126) as u16 * 512;
    Entry {
        kind,
        at_ms,
        external: (0xc000_0200 + (block / 126) as u32).into(),
        first,
        last: first + 511,
        inside: (0x6440_0000 + tag as u32).into(),
        tag,
    }
}

/// The same question by looking at everything.
fn naive(all: &[Entry], external: std::net::Ipv4Addr, port: u16, at_ms: u64) -> Option<u64> {
    let is_it = |one: &&Entry| one.at_ms <= at_ms && one.has(external, port);
    let last = all.iter().rev().find(is_it)?;
    last.kind.is_held().then_some(last.tag)
}

fn ask((store, directory): (&Store, &Path), all: &[Entry], random: &mut Random, until: u64) {
    for _ in 0..200 {
        let block = random.below(400);
        let near = entry(Kind::Allocated, 0, block, 0);
        let port = near.first + random.below(512) as u16;
        let at_ms = START + random.below(until - START + 1);
        let found = store.who(near.external, port, at_ms).expect("readable");
        let read = Reader::new(directory).who(near.external, port, at_ms);
        assert_eq!(read.expect("readable"), found, "{port} {at_ms}");
        let tag = found.map(|entry| entry.tag);
        assert_eq!(
            tag,
            naive(all, near.external, port, at_ms),
            "{port} {at_ms}"
        );
    }
}

fn settings() -> Settings {
    Settings {
        segment_records: 100,
        days: 3,
    }
}

#[test]
fn a_store_answers_as_a_list_does_over_days_and_restarts() {
    for seed in 1..12 {
        let scratch = Scratch::new(&format!("list-{seed}"));
        let mut random = Random(seed * 0x9e37_79b9);
        let mut store = Store::open(&scratch.0, settings()).expect("a directory");
        let mut all: Vec<Entry> = Vec::new();
        let mut owners = vec![None; 400];
        let mut now = START;
        for step in 0..900 {
            now += random.below(if step % 300 == 299 { DAY } else { 200_000 });
            let block = random.below(400);
            let one = match owners[block as usize].take() {
                Some(tag) => entry(Kind::Freed, now, block, tag),
                None => {
                    owners[block as usize] = Some(step);
                    entry(Kind::Allocated, now, block, step)
                }
            };
            store.append(&one).expect("room");
            all.push(one);
            if random.below(200) == 0 {
                drop(store);
                store = Store::open(&scratch.0, settings()).expect("its directory");
                assert_eq!(store.torn_octets(), 0);
            }
        }
        ask((&store, &scratch.0), &all, &mut random, now);
        let live = owners.iter().flatten().count();
        assert_eq!(store.len().1, live);
        let lost = store.lose_all(now + 1).expect("room");
        assert_eq!(lost, live);
        let nobody = entry(Kind::Allocated, 0, random.below(400), 0);
        let found = store.who(nobody.external, nobody.first, now + 1);
        assert_eq!(found.expect("readable"), None);
    }
}

#[test]
fn a_block_that_is_held_for_days_is_found_on_each_and_after_retention() {
    let scratch = Scratch::new("carried");
    let mut store = Store::open(&scratch.0, settings()).expect("a directory");
    store
        .append(&entry(Kind::Allocated, START, 1, 77))
        .expect("room");
    let block = entry(Kind::Allocated, 0, 1, 0);
    for day in 1..10 {
        let now = START + day * DAY;
        store
            .append(&entry(Kind::Allocated, now, 100 + day, day))
            .expect("room");
        store.retain(now).expect("deleted");
        let found = store
            .who(block.external, block.first, now)
            .expect("readable");
        assert_eq!(found.map(|entry| entry.tag), Some(77));
        assert_eq!(found.map(|entry| entry.kind), Some(Kind::Carried));
    }
    let old = store.who(block.external, block.first, START + DAY);
    assert_eq!(
        old.expect("readable"),
        None,
        "beyond the days that are kept"
    );
    // Until then the last full log is being sorted.
    drop(store);
    let files = std::fs::read_dir(&scratch.0).expect("a directory").count();
    assert_eq!(
        files, 5,
        "the days that are kept, and one that answers for the first hour of them"
    );
}

/// How many files have this extension.
fn count(directory: &Path, extension: &str) -> usize {
    let files = std::fs::read_dir(directory).expect("a directory");
    let paths = files.map(|file| file.expect("a file").path());
    paths
        .filter(|path| path.extension().is_some_and(|one| one == extension))
        .count()
}

fn only_log(directory: &Path) -> PathBuf {
    let files = std::fs::read_dir(directory).expect("a directory");
    let mut logs = files.map(|file| file.expect("a file").path());
    logs.find(|path| path.extension().is_some_and(|one| one == "log"))
        .expect("a log")
}

#[test]
fn a_log_that_is_cut_anywhere_keeps_every_whole_record() {
    let scratch = Scratch::new("torn");
    let all: Vec<Entry> = (0..20)
        .map(|n| entry(Kind::Allocated, START + n, n, n))
        .collect();
    for cut in 0..=640 {
        let _ = std::fs::remove_dir_all(&scratch.0);
        let mut store = Store::open(&scratch.0, settings()).expect("a directory");
        store.append_all(&all).expect("room");
        store.sync().expect("durable");
        drop(store);
        let path = only_log(&scratch.0);
        let octets = std::fs::read(&path).expect("a log");
        std::fs::write(&path, &octets[..cut]).expect("room");
        let mut store = Store::open(&scratch.0, settings()).expect("its directory");
        assert_eq!(store.len().0, cut as u64 / 32);
        assert_eq!(store.torn_octets(), cut as u64 % 32);
        // It goes on where it was cut.
        let next = entry(Kind::Allocated, START + 100, 50, 99);
        store.append(&next).expect("room");
        drop(store);
        let store = Store::open(&scratch.0, settings()).expect("its directory");
        assert_eq!(store.torn_octets(), 0);
        let found = store.who(next.external, next.first, START + 200);
        assert_eq!(found.expect("readable"), Some(next));
    }
}

#[test]
fn octets_that_changed_in_a_log_end_it_and_in_a_segment_are_reported() {
    let scratch = Scratch::new("damaged");
    let all: Vec<Entry> = (0..100)
        .map(|n| entry(Kind::Allocated, START + n, n, n))
        .collect();
    let mut store = Store::open(&scratch.0, settings()).expect("a directory");
    store.append_all(&all[..10]).expect("room");
    drop(store);
    let path = only_log(&scratch.0);
    let mut octets = std::fs::read(&path).expect("a log");
    octets[32 * 7 + 3] ^= 1;
    std::fs::write(&path, &octets).expect("room");
    let mut store = Store::open(&scratch.0, settings()).expect("its directory");
    assert_eq!(store.len().0, 7);
    store.append_all(&all).expect("room");
    store.append_all(&all[..50]).expect("room");
    drop(store);
    let files = std::fs::read_dir(&scratch.0).expect("a directory");
    let mut paths = files.map(|file| file.expect("a file").path());
    let segment = paths.find(|path| path.extension().is_some_and(|one| one == "seg"));
    let segment = segment.expect("a sealed segment");
    let good = std::fs::read(&segment).expect("a segment");
    for at in [0, 9, 62, good.len() - 1] {
        let mut octets = good.clone();
        octets[at] ^= 1;
        std::fs::write(&segment, &octets).expect("room");
        let failed = match Store::open(&scratch.0, settings()) {
            Err(_) => true,
            Ok(store) => (0..100).any(|n| {
                let one = &all[n];
                store.who(one.external, one.first, START + DAY / 2).is_err()
            }),
        };
        assert!(failed, "octet {at}");
    }
    std::fs::write(&segment, &good[..good.len() - 5]).expect("room");
    assert!(Store::open(&scratch.0, settings()).is_err(), "cut short");
}

#[test]
fn a_crash_while_sealing_loses_nothing() {
    let scratch = Scratch::new("sealing");
    let all: Vec<Entry> = (0..100)
        .map(|n| entry(Kind::Allocated, START + n, n, n))
        .collect();
    let mut store = Store::open(&scratch.0, settings()).expect("a directory");
    store.append_all(&all).expect("room");
    drop(store);
    let log = only_log(&scratch.0);
    let octets = std::fs::read(&log).expect("a log");
    // Cut off while the segment is written.
    std::fs::write(log.with_extension("new"), &octets[..77]).expect("room");
    let mut store = Store::open(&scratch.0, settings()).expect("its directory");
    assert!(!log.with_extension("new").exists());
    // Sealed, and the log not deleted yet.
    store
        .append(&entry(Kind::Allocated, START + 500, 200, 200))
        .expect("room");
    drop(store);
    assert_eq!(count(&scratch.0, "seg"), 1);
    std::fs::write(&log, &octets).expect("room");
    let store = Store::open(&scratch.0, settings()).expect("its directory");
    assert!(!log.exists());
    assert_eq!(store.len(), (201, 101));
    for one in &all {
        let found = store.who(one.external, one.last, START + 400);
        assert_eq!(found.expect("readable"), Some(*one));
    }
}

#[test]
fn a_crash_while_a_log_starts_loses_nothing() {
    let scratch = Scratch::new("starting");
    let mut store = Store::open(&scratch.0, settings()).expect("a directory");
    let all: Vec<Entry> = (0..100)
        .map(|n| entry(Kind::Allocated, START + n, n, n))
        .collect();
    store.append_all(&all).expect("room");
    let next = entry(Kind::Allocated, START + 500, 200, 200);
    store.append(&next).expect("room");
    drop(store);
    let log = only_log(&scratch.0);
    let octets = std::fs::read(&log).expect("a log");
    assert_eq!(octets.len(), 101 * 32);
    // Cut off before, between and after the blocks that are carried on.
    for kept in [0, 1, 99, 100] {
        std::fs::write(&log, &octets[..kept * 32]).expect("room");
        let mut store = Store::open(&scratch.0, settings()).expect("its directory");
        assert_eq!(store.len(), (100, 100), "{kept}");
        for at_ms in [START + 400, START + 900] {
            let found = store.who(all[99].external, all[99].first, at_ms);
            assert_eq!(found.expect("readable"), Some(all[99]), "{kept}");
        }
        store.append(&next).expect("room");
        assert_eq!(store.len(), (201, 101));
    }
}

#[test]
fn a_clock_that_is_set_back_starts_a_new_log_after_an_hour() {
    let hour = 3_600_000;
    for (back, logs) in [(hour - 1, 1), (hour + 1, 2)] {
        let scratch = Scratch::new(&format!("back-{back}"));
        let mut store = Store::open(&scratch.0, settings()).expect("a directory");
        let mut all = Vec::new();
        for (n, at_ms) in [START + 2 * hour, START + 2 * hour - back, START + 3 * hour]
            .into_iter()
            .enumerate()
        {
            let one = entry(Kind::Allocated, at_ms, n as u64, n as u64);
            store.append(&one).expect("room");
            all.push(one);
        }
        let files = || count(&scratch.0, "log") + count(&scratch.0, "seg");
        assert!((logs..=logs + 1).contains(&files()), "{back}");
        let reader = Reader::new(&scratch.0);
        for one in &all {
            let found = reader.who(one.external, one.first, START + 4 * hour);
            assert_eq!(
                found.expect("readable").map(|entry| entry.tag),
                Some(one.tag)
            );
        }
        // What the log has is found at its own time.
        let early = reader.who(all[1].external, all[1].first, all[1].at_ms);
        assert_eq!(early.expect("readable"), Some(all[1]));
        drop(store);
        assert_eq!(files(), logs, "{back}");
    }
}

#[test]
fn a_store_of_older_names_of_files_is_read() {
    let scratch = Scratch::new("older");
    let all: Vec<Entry> = (0..200)
        .map(|n| entry(Kind::Allocated, START + n, n, n))
        .collect();
    let mut store = Store::open(&scratch.0, settings()).expect("a directory");
    store.append_all(&all).expect("room");
    drop(store);
    // The names of segments had no time.
    for file in std::fs::read_dir(&scratch.0).expect("a directory") {
        let path = file.expect("a file").path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some((name, _)) = name.and_then(|name| name.rsplit_once('-'))
            && path.extension().is_some_and(|one| one == "seg")
        {
            let older = path.with_file_name(format!("{name}.seg"));
            std::fs::rename(&path, older).expect("ours");
        }
    }
    let store = Store::open(&scratch.0, settings()).expect("its directory");
    let reader = Reader::new(&scratch.0);
    for one in &all {
        for found in [
            store.who(one.external, one.first, one.at_ms),
            reader.who(one.external, one.first, one.at_ms),
        ] {
            assert_eq!(found.expect("readable"), Some(*one));
        }
    }
}

#[test]
fn a_log_is_searched_by_its_runs_and_without_them() {
    let scratch = Scratch::new("runs");
    let settings = Settings::default();
    let mut random = Random(77);
    let mut store = Store::open(&scratch.0, settings).expect("a directory");
    let mut owners = vec![None; 3000];
    let mut batch = Vec::new();
    // Two runs and a half. Few blocks have most of the records.
    for step in 0..160_000_u64 {
        let of = [3000, 40][(random.below(4) > 0) as usize];
        let block = random.below(of);
        let at_ms = START + step;
        batch.push(match owners[block as usize].take() {
            Some(tag) => entry(Kind::Freed, at_ms, block, tag),
            None => {
                owners[block as usize] = Some(step);
                entry(Kind::Allocated, at_ms, block, step)
            }
        });
    }
    store.append_all(&batch).expect("room");
    let check = |store: &Store, what: &str| {
        let mut random = Random(99);
        let reader = Reader::new(&scratch.0);
        for _ in 0..150 {
            let near = entry(Kind::Allocated, 0, random.below(3001), 0);
            let port = near.first + random.below(512) as u16;
            let at_ms = START - 100 + random.below(165_000);
            let found = reader.who(near.external, port, at_ms).expect("readable");
            let known = store.who(near.external, port, at_ms).expect("readable");
            assert_eq!(found, known, "{what}: {port} {at_ms}");
        }
    };
    check(&store, "with runs");
    assert_eq!(count(&scratch.0, "runs"), 1);
    let runs = only_log(&scratch.0).with_extension("runs");
    let octets = std::fs::read(&runs).expect("runs");
    // Damaged records, and a run that is not whole.
    let damaged: Vec<u8> = octets.iter().map(|octet| octet ^ 1).collect();
    std::fs::write(&runs, damaged).expect("room");
    check(&store, "damaged");
    std::fs::write(&runs, &octets[..octets.len() - 1]).expect("room");
    check(&store, "cut");
    std::fs::remove_file(&runs).expect("ours");
    check(&store, "without runs");
    drop(store);
    // A store that is opened again makes them anew.
    let mut store = Store::open(&scratch.0, settings).expect("its directory");
    assert_eq!(std::fs::read(&runs).expect("runs"), octets);
    check(&store, "opened again");
    // Sealed, they are gone.
    let next = entry(Kind::Allocated, START + DAY, 2999, 5);
    store.append(&next).expect("room");
    drop(store);
    assert_eq!(count(&scratch.0, "runs"), 0);
}
