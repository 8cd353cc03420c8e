//! Whose directory it is: locks, modes, other machines and formats.
#![forbid(unsafe_code)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base::{Duration, Instant};
use journal::{Batch, Host, Journal, Limits, Log, Moment, OpenError, Options};
use sim::CrashDisk;

/// A directory of its own for each test, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let id = std::process::id();
        Self(std::env::temp_dir().join(format!("journal-{name}-{id}")))
    }

    fn open(&self) -> Result<Journal, OpenError> {
        Journal::open(&self.0, b"", Options::default()).map(|(journal, _)| journal)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o7777
}

#[test]
fn only_its_owner_may_read_the_state() {
    let place = Place::new("modes");
    let journal = place.open().expect("it is created");
    journal.put(1, 1, &[(0, b"secret")]).expect("room");
    journal.close().expect("a disk that works");
    assert_eq!(mode(&place.0), 0o700);
    for entry in fs::read_dir(&place.0).expect("ours") {
        assert_eq!(mode(&entry.expect("ours").path()), 0o600);
    }
    for (path, wrong, right) in [
        (place.0.clone(), 0o750, 0o700),
        (place.0.join("000001.log"), 0o640, 0o600),
    ] {
        fs::set_permissions(&path, Permissions::from_mode(wrong)).expect("ours");
        let error = place.open().expect_err("others may read it").to_string();
        let path_text = path.display();
        let text = format!(
            "{path_text}: has mode {wrong:03o}; others may not read the state: chmod {right:03o} {path_text}"
        );
        assert_eq!(error, text);
        fs::set_permissions(&path, Permissions::from_mode(right)).expect("ours");
    }
    assert!(place.open().is_ok());
}

const HOLDS: &str = "JOURNAL_TEST_HOLDS";

/// The other process; an ordinary run skips it.
#[test]
fn the_process_that_has_the_directory() {
    let Some(path) = std::env::var_os(HOLDS) else {
        return;
    };
    let opened = Journal::open(Path::new(&path), b"", Options::default());
    let _journal = opened.expect("it is free");
    fs::write(Path::new(&path).join("ready"), "").expect("ours");
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
fn two_processes_do_not_share_a_directory() {
    let place = Place::new("two");
    let mut other = Command::new(std::env::current_exe().expect("this program"))
        .args(["the_process_that_has_the_directory", "--exact"])
        .env(HOLDS, &place.0)
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    while !place.0.join("ready").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    fs::remove_file(place.0.join("ready")).expect("ours");
    let error = place.open().expect_err("it is in use").to_string();
    let start = format!("another headend (pid {}, version ", other.id());
    assert!(error.starts_with(&start), "{error}");
    assert!(
        error.ends_with(&format!(") uses {}", place.0.display())),
        "{error}"
    );
    other.kill().expect("it is ours");
    other.wait().expect("it is ours");
    assert!(place.open().is_ok(), "the lock goes with its process");
}

#[test]
fn a_missing_parent_is_an_error() {
    let place = Place::new("missing");
    let path = place.0.join("state");
    let error = Journal::open(&path, b"", Options::default()).expect_err("there is no parent");
    assert!(
        error
            .to_string()
            .starts_with(&format!("{}: ", path.display())),
        "{error}"
    );
}

#[test]
fn a_segment_of_another_machine_or_format_is_refused_and_left() {
    let disk = CrashDisk::new(0);
    let open = |disk: &CrashDisk, machine| {
        let host = Host {
            machine: [machine; 16],
            boot: [0; 16],
        };
        let now = Moment {
            clock: Instant::from_nanos(1),
            wall_ns: 1,
        };
        Log::open(disk.clone(), host, Limits::default(), b"", now)
    };
    let (mut log, _) = open(&disk, 1).expect("a new one");
    let mut batch = Batch::default();
    assert!(batch.put(0, 0, &[(0, b"mine")]));
    log.add(
        &mut batch,
        Moment {
            clock: Instant::from_nanos(2),
            wall_ns: 2,
        },
    );
    log.sync().expect("a disk that works");
    let name = "000001.log";
    let octets = disk.octets(name).expect("it is there");

    let error = open(&disk, 2).expect_err("another machine").to_string();
    assert!(
        error.starts_with("000001.log: was written on another machine"),
        "{error}"
    );
    assert_eq!(disk.octets(name), Some(octets.clone()));

    let newer = CrashDisk::new(0);
    let mut changed = octets.clone();
    changed[8] = 9;
    newer.put(name, &changed);
    let error = open(&newer, 1).expect_err("another format").to_string();
    assert_eq!(
        error,
        "000001.log: has format 9; this program reads format 1 only"
    );
    assert_eq!(newer.octets(name), Some(changed));
    // Even a segment that was never finished does not hide it.
    let (_, opened) = open(&disk, 1).expect("ours");
    assert_eq!(opened.records.len(), 1);
    assert_eq!(opened.elapsed, Duration::ZERO);
}
