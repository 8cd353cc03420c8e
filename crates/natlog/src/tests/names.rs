//! Names across days, restarts, crashes and retention.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use super::*;

fn held(n: u64, at_ms: u64) -> Entry {
    entry(Kind::Allocated, at_ms, n, 0)
}

/// The name of the subscriber that has a block.
fn name(directory: &Path, block: u64, at_ms: u64) -> Option<String> {
    let near = held(block, at_ms);
    let found = Reader::new(directory).who_named(near.external, near.first, at_ms);
    let (_, name) = found.expect("readable")?;
    Some(String::from_utf8(name.expect("a name")).expect("a text"))
}

fn open(scratch: &Scratch) -> Store {
    Store::open(&scratch.0, settings()).expect("a directory")
}

fn append(store: &mut Store, block: u64, at_ms: u64, name: &str) {
    let record = [(held(block, at_ms), name.as_bytes())];
    store.append_named(&record).expect("room");
}

/// All octets of all files of names.
fn octets(directory: &Path) -> Vec<u8> {
    let files = std::fs::read_dir(directory).expect("a directory");
    let paths = files.map(|file| file.expect("a file").path());
    let names = paths.filter(|path| path.extension().is_some_and(|one| one == "names"));
    names
        .flat_map(|path| std::fs::read(path).expect("a file"))
        .collect()
}

fn has(directory: &Path, name: &str) -> bool {
    let octets = octets(directory);
    octets.windows(name.len()).any(|at| at == name.as_bytes())
}

#[test]
fn names_have_one_number_each_across_restarts_and_torn_writes() {
    let scratch = Scratch::new("numbers");
    let long = "x".repeat(300);
    let mut store = open(&scratch);
    for (block, name) in [(1, "ann"), (2, "bob@example.net"), (3, "ann"), (4, &*long)] {
        append(&mut store, block, START + block, name);
    }
    append(&mut store, 5, START + 5, "");
    let found = |block: u64| {
        let near = held(block, 0);
        let found = Reader::new(&scratch.0).who_named(near.external, near.first, START + 100);
        found.expect("readable").expect("held")
    };
    assert_eq!(found(1).0.tag, found(3).0.tag);
    assert_ne!(found(1).0.tag, found(2).0.tag);
    assert_eq!(found(4).1.as_deref(), Some(&long.as_bytes()[..255]));
    assert_eq!(found(5).1, None);
    drop(store);
    // A name is cut off in its middle, and the record that refers to it is not.
    let files = std::fs::read_dir(&scratch.0).expect("a directory");
    let mut paths = files.map(|file| file.expect("a file").path());
    let path = paths.find(|path| path.extension().is_some_and(|one| one == "names"));
    let path = path.expect("a file of names");
    let whole = std::fs::read(&path).expect("a file");
    std::fs::write(&path, &whole[..whole.len() - 10]).expect("a file");
    let mut store = open(&scratch);
    append(&mut store, 6, START + 6, "zed");
    append(&mut store, 7, START + 7, "ann");
    // Nobody gets the number of the name that was lost.
    let near = held(4, 0);
    let reader = Reader::new(&scratch.0);
    reader
        .who_named(near.external, near.first, START + 100)
        .expect_err("the name is lost");
    for (block, expected) in [(1, "ann"), (2, "bob@example.net"), (6, "zed"), (7, "ann")] {
        assert_eq!(
            name(&scratch.0, block, START + 100).as_deref(),
            Some(expected)
        );
    }
}

#[test]
fn names_go_with_the_last_day_that_refers_to_them() {
    let scratch = Scratch::new("gone");
    let mut store = open(&scratch);
    append(&mut store, 1, START, "held");
    append(&mut store, 2, START, "brief");
    let freed = [(entry(Kind::Freed, START + 1, 2, 0), &b"brief"[..])];
    store.append_named(&freed).expect("room");
    let mut longest = 0;
    for day in 1..20 {
        let now = START + day * DAY;
        append(&mut store, 100 + day, now, &format!("day-{day}"));
        let freed = [(
            entry(Kind::Freed, now + 1, 100 + day, 0),
            format!("day-{day}"),
        )];
        store.append_named(&freed).expect("room");
        store.retain(now).expect("deleted");
        assert_eq!(name(&scratch.0, 1, now).as_deref(), Some("held"));
        // Three days and today are kept, and a segment that answers for the first hours of them.
        assert_eq!(has(&scratch.0, "brief"), day <= 4, "day {day}");
        assert!(has(&scratch.0, &format!("day-{day}")));
        longest = longest.max(octets(&scratch.0).len());
    }
    assert!(!has(&scratch.0, "day-10"));
    assert!(longest < 200, "{longest} bytes of names");
    // Nothing refers to a name of another day, so a store without them is whole.
    drop(store);
    let store = open(&scratch);
    let now = START + 19 * DAY;
    for day in 16..20 {
        let at_ms = START + day * DAY;
        assert_eq!(
            name(&scratch.0, 100 + day, at_ms),
            Some(format!("day-{day}"))
        );
    }
    assert_eq!(name(&scratch.0, 1, now).as_deref(), Some("held"));
    drop(store);
}

/// A copy of a directory as it is now.
fn copy(from: &Path, name: &str) -> Scratch {
    let to = Scratch::new(name);
    std::fs::create_dir_all(&to.0).expect("a directory");
    for file in std::fs::read_dir(from).expect("a directory") {
        let path = file.expect("a file").path();
        let target = to.0.join(path.file_name().expect("a name"));
        std::fs::copy(&path, target).expect("a copy");
    }
    to
}

#[test]
fn a_kill_between_the_steps_of_the_clean_up_is_made_good_by_the_next_one() {
    let scratch = Scratch::new("steps");
    let mut store = open(&scratch);
    append(&mut store, 1, START, "held");
    for day in 1..9 {
        append(
            &mut store,
            100 + day,
            START + day * DAY,
            &format!("day-{day}"),
        );
    }
    drop(store);
    let now = START + 8 * DAY;
    let done = copy(&scratch.0, "steps-done");
    let mut store = open(&done);
    let all = store.retain(now).expect("deleted");
    drop(store);
    let mut left: Vec<_> = std::fs::read_dir(&done.0)
        .expect("a directory")
        .map(|file| file.expect("a file").file_name())
        .collect();
    left.sort();
    // The files go in this order: segments from the oldest on, then names from the oldest on.
    let mut order: Vec<PathBuf> = std::fs::read_dir(&scratch.0)
        .expect("a directory")
        .map(|file| file.expect("a file").path())
        .filter(|path| !left.contains(&path.file_name().expect("a name").to_owned()))
        .collect();
    order.sort_by_key(|path| {
        (
            path.extension().is_some_and(|one| one == "names"),
            path.clone(),
        )
    });
    assert_eq!(order.len(), all);
    assert!(all >= 8, "{all} files");
    for kill in 0..all {
        let cut = copy(&scratch.0, "steps-cut");
        for path in &order[..kill] {
            let name = path.file_name().expect("a name");
            std::fs::remove_file(cut.0.join(name)).expect("ours");
        }
        let check = |when: &str| {
            assert_eq!(
                name(&cut.0, 1, now).as_deref(),
                Some("held"),
                "{when} {kill}"
            );
            for day in 5..9 {
                let found = name(&cut.0, 100 + day, START + day * DAY);
                assert_eq!(found, Some(format!("day-{day}")), "{when} {kill}");
            }
        };
        check("before the next start");
        let mut store = open(&cut);
        assert_eq!(store.retain(now).expect("deleted"), all - kill);
        check("after the next clean-up");
        drop(store);
        let mut found: Vec<_> = std::fs::read_dir(&cut.0)
            .expect("a directory")
            .map(|file| file.expect("a file").file_name())
            .collect();
        found.sort();
        assert_eq!(found, left, "{kill}");
    }
}

#[test]
fn a_reader_finds_the_right_name_while_days_turn_and_files_go() {
    let scratch = Scratch::new("meanwhile");
    let mut store = open(&scratch);
    append(&mut store, 1, START, "held");
    let is_over = AtomicBool::new(false);
    // After all records: the newest file has the answer.
    let at_ms = START + 1000 * DAY;
    std::thread::scope(|scope| {
        let asks = scope.spawn(|| {
            let mut asked = 0;
            while !is_over.load(SeqCst) {
                assert_eq!(name(&scratch.0, 1, at_ms).as_deref(), Some("held"));
                asked += 1;
            }
            asked
        });
        for step in 1..300 {
            let at_ms = START + step * DAY;
            let records: Vec<(Entry, String)> = (0..130)
                .map(|n| (held(2 + n, at_ms + n), format!("{step}-{n}")))
                .collect();
            store.append_named(&records).expect("room");
            store.retain(at_ms).expect("deleted");
        }
        is_over.store(true, SeqCst);
        assert!(asks.join().expect("no panic") > 0);
    });
}

#[test]
fn names_of_older_versions_are_carried_on_and_their_file_goes() {
    let scratch = Scratch::new("old-names");
    std::fs::create_dir_all(&scratch.0).expect("a directory");
    // One file for all days, whose places are the numbers.
    let file = [&b"HNATNAM1"[..], b"\x03ann", b"\x03bob"].concat();
    std::fs::write(scratch.0.join("names"), file).expect("room");
    let mut store = open(&scratch);
    let old = [(8, 1), (12, 2)].map(|(tag, block)| Entry {
        tag,
        ..held(block, START)
    });
    store.append_all(&old).expect("room");
    assert_eq!(name(&scratch.0, 1, START).as_deref(), Some("ann"));
    for day in 1..9 {
        let now = START + day * DAY;
        append(&mut store, 100 + day, now, "carol");
        store.retain(now).expect("deleted");
        assert_eq!(name(&scratch.0, 1, now).as_deref(), Some("ann"));
        assert_eq!(name(&scratch.0, 2, now).as_deref(), Some("bob"));
    }
    assert!(!scratch.0.join("names").exists());
    let dead = name(&scratch.0, 1, START);
    assert_eq!(dead, None, "beyond the days that are kept");
}
