//! The store against a naive list, across days, restarts and crashes.

use std::path::{Path, PathBuf};

use crate::{Entry, Kind, Names, Reader, Settings, Store};

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
    let files = std::fs::read_dir(&scratch.0).expect("a directory").count();
    assert_eq!(
        files, 5,
        "the days that are kept, and one that answers for the first hour of them"
    );
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
    assert!(log.with_extension("seg").exists());
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
fn names_have_one_number_each_across_restarts_and_torn_writes() {
    let scratch = Scratch::new("names");
    std::fs::create_dir_all(&scratch.0).expect("a directory");
    let mut names = Names::open(&scratch.0).expect("a file");
    let long = [b'x'; 300];
    let ann = names.number(b"ann").expect("room");
    let bob = names.number(b"bob@example.net").expect("room");
    let other = names.number(&long).expect("room");
    assert_eq!(names.number(b"ann").expect("room"), ann);
    assert_eq!(names.number(b"").expect("room"), 0);
    names.sync().expect("a disk");
    drop(names);
    // A name is cut off in its middle.
    let path = scratch.0.join("names");
    let whole = std::fs::read(&path).expect("a file");
    let torn = [&whole[..], &[9, b't', b'o']].concat();
    std::fs::write(&path, torn).expect("a file");
    let mut names = Names::open(&scratch.0).expect("a file");
    assert_eq!(std::fs::read(&path).expect("a file"), whole);
    assert_eq!(names.number(b"bob@example.net").expect("room"), bob);
    let torn = names.number(b"tom").expect("room");
    let reader = Reader::new(&scratch.0);
    for (number, name) in [
        (ann, &b"ann"[..]),
        (bob, b"bob@example.net"),
        (torn, b"tom"),
    ] {
        assert_eq!(
            reader.name(number).expect("readable").as_deref(),
            Some(name)
        );
    }
    assert_eq!(
        reader.name(other).expect("readable").as_deref(),
        Some(&long[..255])
    );
    assert_eq!(reader.name(0).expect("readable"), None);
    reader.name(1 << 40).expect_err("beyond the file");
    std::fs::write(&path, b"something else").expect("a file");
    Names::open(&scratch.0).expect_err("another file");
}
