use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use redb::backends::FileBackend;
use redb::{Builder, StorageBackend};

use super::*;

/// A temporary directory, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ledger-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory for the test");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("records")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const LONG: Duration = Duration::from_secs(60);

fn open(path: &Path) -> (Ledger, Recovered) {
    Ledger::open(path, Options::default()).expect("it opens")
}

fn texts(ledger: &mut Ledger, after: u64, max: usize) -> Vec<String> {
    let waiting = ledger.waiting(RecordId(after), max).expect("it reads");
    let texts = waiting.into_iter();
    texts
        .map(|(_, record)| String::from_utf8(record).expect("text"))
        .collect()
}

#[test]
fn what_is_added_waits_over_restarts_until_it_is_acknowledged() {
    let scratch = Scratch::new("restarts");
    let (mut ledger, recovered) = open(&scratch.file());
    assert_eq!(recovered, Recovered::default());
    let ids: Vec<RecordId> = ["a", "b", "c", "d"]
        .iter()
        .map(|text| ledger.add(text.as_bytes()).expect("there is room"))
        .collect();
    assert!(ledger.flush(LONG));
    assert_eq!(texts(&mut ledger, 0, 10), ["a", "b", "c", "d"]);
    ledger.acknowledged(ids[1]);
    assert_eq!(texts(&mut ledger, 0, 2), ["a", "c"]);
    assert_eq!(texts(&mut ledger, ids[2].0, 2), ["d"]);
    ledger.close().expect("it closes");

    let (mut ledger, recovered) = open(&scratch.file());
    assert_eq!((recovered.records, recovered.octets), (3, 3));
    assert!(!recovered.repaired);
    let next = ledger.add(b"e").expect("there is room");
    assert!(next > ids[3]);
    drop(ledger);
    let (mut ledger, _) = open(&scratch.file());
    assert_eq!(texts(&mut ledger, 0, 10), ["a", "c", "d", "e"]);
}

#[test]
fn what_is_acknowledged_at_once_never_comes_back() {
    let scratch = Scratch::new("at-once");
    let (mut ledger, _) = open(&scratch.file());
    for round in 0..1_000_u32 {
        let id = ledger.add(&round.to_be_bytes()).expect("there is room");
        if round % 100 == 7 {
            assert!(ledger.flush(LONG));
        }
        if round != 500 {
            ledger.acknowledged(id);
            ledger.acknowledged(id);
        }
        ledger.acknowledged(RecordId(id.0 + 1));
        ledger.acknowledged(RecordId(0));
    }
    let before = ledger.waiting(RecordId(0), 10).expect("it reads");
    assert!(before.iter().all(|(id, _)| *id == RecordId(501)));
    assert!(ledger.flush(LONG));
    let stats = ledger.stats();
    assert_eq!(
        (stats.stored, stats.stored_octets, stats.pending),
        (1, 4, 0)
    );
    assert_eq!(stats.committed, RecordId(1_000));
    let left = ledger.waiting(RecordId(0), 10).expect("it reads");
    assert_eq!(left, [(RecordId(501), 500_u32.to_be_bytes().to_vec())]);
}

#[test]
fn more_than_may_wait_is_refused_and_counted() {
    let scratch = Scratch::new("limits");
    let options = Options {
        records_max: 3,
        octets_max: 100,
        ..Options::default()
    };
    let (mut ledger, _) = Ledger::open(&scratch.file(), options).expect("it opens");
    assert_eq!(ledger.add(&[0; 65_536]), Err(Refused::TooLong));
    assert_eq!(ledger.add(&[0; 101]), Err(Refused::Full));
    let first = ledger.add(&[1; 90]).expect("there is room");
    assert!(ledger.flush(LONG));
    assert_eq!(ledger.add(&[0; 11]), Err(Refused::Full));
    for _ in 0..2 {
        ledger.add(&[2; 5]).expect("there is room");
    }
    assert_eq!(ledger.add(&[]), Err(Refused::Full));
    ledger.acknowledged(first);
    assert!(ledger.flush(LONG));
    ledger.add(&[3; 90]).expect("there is room again");
    let stats = ledger.stats();
    assert_eq!((stats.refused_length, stats.refused_full), (1, 3));
}

/// A file whose writes fail while the switch is on, and wait while the lock is held.
#[derive(Debug)]
struct Failing {
    file: FileBackend,
    fails: Arc<AtomicBool>,
    hangs: Arc<Mutex<()>>,
}

impl Failing {
    fn check(&self) -> io::Result<()> {
        drop(self.hangs.lock());
        match self.fails.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }
}

impl StorageBackend for Failing {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.file.read(offset, len)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.file.set_len(len)
    }
    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        self.check()?;
        self.file.sync_data(eventual)
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        self.file.write(offset, data)
    }
}

fn on_failing(path: PathBuf, fails: &Arc<AtomicBool>, options: Options) -> Ledger {
    on_hanging(path, (fails, &Arc::default()), options)
}

fn on_hanging(
    path: PathBuf,
    (fails, hangs): (&Arc<AtomicBool>, &Arc<Mutex<()>>),
    options: Options,
) -> Ledger {
    let (fails, hangs) = (Arc::clone(fails), Arc::clone(hangs));
    let opener = move || {
        let mut options = fs::File::options();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = FileBackend::new(file.open(&path)?).map_err(io::Error::other)?;
        let (fails, hangs) = (Arc::clone(&fails), Arc::clone(&hangs));
        let backend = Failing { file, fails, hangs };
        let database = Builder::new().create_with_backend(backend);
        database.map_err(io::Error::other)
    };
    let (ledger, _) = Ledger::start(Box::new(opener), options).expect("it opens");
    ledger
}

#[test]
fn a_full_disk_is_told_bounds_memory_and_loses_nothing_that_was_taken() {
    let scratch = Scratch::new("full");
    let fails = Arc::new(AtomicBool::new(false));
    let options = Options {
        memory_octets_max: 10_000,
        ..Options::default()
    };
    let mut ledger = on_failing(scratch.file(), &fails, options);
    let mut taken = vec![ledger.add(b"before").expect("there is room")];
    assert!(ledger.flush(LONG));
    fails.store(true, Ordering::Relaxed);
    let mut refused = 0;
    while refused < 10 || ledger.stats().failures == 0 {
        match ledger.add(&[0; 100]) {
            Ok(id) => taken.push(id),
            Err(reason) => {
                assert_eq!(reason, Refused::Behind);
                refused += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
    let stats = ledger.stats();
    assert!(stats.failure.is_some());
    assert_eq!(stats.refused_behind, refused);
    assert_eq!(stats.pending, taken.len() as u64 - 1);
    assert!(stats.pending_octets <= 10_000);
    fails.store(false, Ordering::Relaxed);
    assert!(ledger.flush(LONG));
    assert_eq!(ledger.stats().failure, None);
    let waiting = ledger.waiting(RecordId(0), 1_000).expect("it reads");
    let ids: Vec<RecordId> = waiting.into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, taken);
}

#[test]
fn what_cannot_be_written_at_the_end_is_told() {
    let scratch = Scratch::new("end");
    let fails = Arc::new(AtomicBool::new(false));
    let mut ledger = on_failing(scratch.file(), &fails, Options::default());
    fails.store(true, Ordering::Relaxed);
    ledger.add(b"lost").expect("there is room");
    let error = ledger.close().expect_err("the disk is full");
    assert!(
        error.to_string().starts_with("1 records are lost: "),
        "{error}"
    );
    // An acknowledgement that is lost gives a duplicate after the next start, and a draft is a session's Stop.
    fails.store(false, Ordering::Relaxed);
    let mut ledger = on_failing(scratch.file(), &fails, Options::default());
    let id = ledger.add(b"stored").expect("there is room");
    assert!(ledger.flush(LONG));
    fails.store(true, Ordering::Relaxed);
    ledger.acknowledged(id);
    ledger.keep(7, b"open").expect("there is room");
    let error = ledger.close().expect_err("the disk is full").to_string();
    let expected = "1 acknowledgements, 1 drafts are lost: ";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_second_owner_a_missing_directory_and_a_directory_in_its_place_are_refused() {
    let scratch = Scratch::new("refused");
    let (_ledger, _) = open(&scratch.file());
    let refusal = |path: &Path| match Ledger::open(path, Options::default()) {
        Ok(_) => panic!("it opened {}", path.display()),
        Err(error) => error,
    };
    let error = refusal(&scratch.file());
    assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
    assert!(
        error
            .to_string()
            .ends_with("another process has the file open"),
        "{error}"
    );
    let error = refusal(&scratch.0.join("missing/records"));
    assert!(
        error.to_string().ends_with("; its directory must be there"),
        "{error}"
    );
    refusal(&scratch.0);
}

#[test]
fn a_file_that_is_mostly_empty_is_small_after_the_next_start() {
    let scratch = Scratch::new("rewrite");
    let (mut ledger, _) = open(&scratch.file());
    for n in 0..300_u64 {
        ledger.add(&[n as u8; 60_000]).expect("there is room");
    }
    assert!(ledger.flush(LONG));
    for id in (1..=300).filter(|id| id % 100 != 0) {
        ledger.acknowledged(RecordId(id));
    }
    ledger.close().expect("it closes");
    let size = || fs::metadata(scratch.file()).expect("it is there").len();
    let before = size();
    assert!(before > 16 << 20);
    fs::write(
        scratch.0.join("records.new"),
        "of a start that was cut short",
    )
    .expect("it is ours");
    let (mut ledger, recovered) = open(&scratch.file());
    assert!(size() < before / 4, "{} of {before}", size());
    assert_eq!((recovered.records, recovered.octets), (3, 180_000));
    let waiting = ledger.waiting(RecordId(0), 10).expect("it reads");
    let ids: Vec<u64> = waiting.iter().map(|(id, _)| id.0).collect();
    assert_eq!(ids, [100, 200, 300]);
    let added = ledger.add(b"next").expect("there is room");
    assert_eq!(added, RecordId(301));
}

#[test]
fn the_file_is_for_its_owner_alone() {
    let scratch = Scratch::new("mode");
    drop(open(&scratch.file()));
    let mode = || fs::metadata(scratch.file()).expect("it is there").mode() & 0o777;
    assert_eq!(mode(), 0o600);
    fs::set_permissions(scratch.file(), fs::Permissions::from_mode(0o644)).expect("it is ours");
    drop(open(&scratch.file()));
    assert_eq!(mode(), 0o600);
}

#[test]
fn a_damaged_file_is_moved_aside_and_told() {
    let scratch = Scratch::new("damaged");
    for (number, content) in [
        &b"no ledger at all"[..],
        &[0; 5_000],
        b"redb\x1a\x0a\xa9\x0d\x0a",
    ]
    .iter()
    .enumerate()
    {
        fs::write(scratch.file(), content).expect("it is ours");
        let (mut ledger, recovered) = open(&scratch.file());
        let (aside, why) = recovered.damaged.expect("it was damaged");
        assert_eq!(
            aside,
            scratch.0.join(format!("records.damaged-{}", number + 1))
        );
        assert_eq!(fs::read(aside).expect("it is kept"), *content);
        assert!(!why.is_empty());
        ledger.add(b"new").expect("there is room");
        ledger.close().expect("it closes");
    }
}

#[test]
fn damage_anywhere_is_repaired_or_told_and_never_gives_other_records() {
    let scratch = Scratch::new("damage");
    let record = |n: u32| format!("record {n} {}", "x".repeat(100)).into_bytes();
    let (mut ledger, _) = open(&scratch.file());
    for n in 0..200 {
        ledger.add(&record(n)).expect("there is room");
    }
    ledger.close().expect("it closes");
    let whole = fs::read(scratch.file()).expect("it is ours");
    let used = whole.iter().rposition(|&octet| octet != 0).unwrap_or(0);
    for round in 0..40 {
        let mut damaged = whole.clone();
        let at = round * 977 % used;
        match round % 3 {
            0 => damaged.truncate(at),
            1 => damaged[at] ^= 0x40,
            _ => damaged[at..(at + 512).min(used)].fill(0xff),
        }
        fs::write(scratch.file(), damaged).expect("it is ours");
        let (mut ledger, recovered) = match Ledger::open(&scratch.file(), Options::default()) {
            Ok(opened) => opened,
            // The damage may also hit the version field.
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}");
                continue;
            }
        };
        let waiting = ledger.waiting(RecordId(0), 1_000).expect("it reads");
        assert_eq!(waiting.len() as u64, recovered.records);
        for (id, octets) in waiting {
            assert_eq!(octets, record(id.0 as u32 - 1), "round {round}");
        }
        if let Some((aside, _)) = recovered.damaged {
            fs::remove_file(aside).expect("it is ours");
        }
    }
}

#[test]
fn the_last_draft_of_a_key_survives_until_it_is_discarded() {
    let scratch = Scratch::new("drafts");
    let (mut ledger, _) = open(&scratch.file());
    let high = u128::MAX - 7;
    for (key, draft) in [(7, "old"), (high, "other"), (8, "third"), (7, "new")] {
        ledger.keep(key, draft.as_bytes()).expect("there is room");
    }
    assert!(ledger.flush(LONG));
    assert_eq!(ledger.stats().drafts, 3);
    ledger.keep(8, b"later").expect("there is room");
    ledger.discard(high);
    ledger.discard(99);
    ledger.close().expect("it closes");

    let (mut ledger, recovered) = open(&scratch.file());
    assert_eq!((recovered.records, recovered.drafts), (0, 2));
    let all = [(7, b"new".to_vec()), (8, b"later".to_vec())];
    assert_eq!(ledger.drafts(0, 10).expect("it reads"), all);
    assert_eq!(ledger.drafts(0, 1).expect("it reads"), all[..1]);
    assert_eq!(ledger.drafts(8, 10).expect("it reads"), all[1..]);
    // A draft that became due: it is a record now.
    let id = ledger.add(b"new").expect("there is room");
    ledger.discard(7);
    assert!(ledger.flush(LONG));
    assert_eq!(ledger.stats().drafts, 1);
    assert_eq!(
        ledger.waiting(RecordId(0), 9).expect("it reads"),
        [(id, b"new".to_vec())]
    );
}

#[test]
fn a_draft_of_any_length_takes_the_place_of_an_earlier_one() {
    let scratch = Scratch::new("drafts-replaced");
    let options = Options {
        commit_interval: LONG,
        ..Options::default()
    };
    let (mut ledger, _) = Ledger::open(&scratch.file(), options).expect("it opens");
    let drafts: [(u128, &[u8]); 6] = [
        (2, b"second"),
        (1, b"long, then short"),
        (1, b"short"),
        (3, b"third"),
        (2, b"longer than before"),
        (1, b"again"),
    ];
    for (key, draft) in drafts {
        ledger.keep(key, draft).expect("there is room");
    }
    ledger.discard(3);
    assert!(ledger.flush(LONG));
    let all = [(1, b"again".to_vec()), (2, b"longer than before".to_vec())];
    assert_eq!(ledger.drafts(0, 9).expect("it reads"), all);
}

#[test]
fn drafts_count_as_memory_and_are_refused_when_the_disk_is_behind() {
    let scratch = Scratch::new("drafts-behind");
    let options = Options {
        commit_interval: LONG,
        memory_octets_max: 1_000,
        ..Options::default()
    };
    let (mut ledger, _) = Ledger::open(&scratch.file(), options).expect("it opens");
    ledger.keep(1, &[1; 300]).expect("there is room");
    // The same key takes its place and no more.
    for _ in 0..10 {
        ledger.keep(1, &[2; 300]).expect("there is room");
    }
    let refused = ledger.keep(2, &[3; 700]);
    assert_eq!(refused, Err(Refused::Behind));
    assert_eq!(ledger.stats().refused_behind, 1);
}

#[test]
fn a_disk_that_hangs_holds_up_neither_the_owner_nor_the_end() {
    let scratch = Scratch::new("hangs");
    let (fails, hangs) = (Arc::default(), Arc::default());
    let options = Options {
        commit_interval: Duration::from_millis(1),
        memory_octets_max: 1_000,
        close_wait: Duration::from_millis(50),
        ..Options::default()
    };
    let mut ledger = on_hanging(scratch.file(), (&fails, &hangs), options);
    let first = ledger.add(b"before").expect("there is room");
    assert!(ledger.flush(LONG));
    ledger.request(RecordId(0), 10);
    let answer = core::iter::repeat_with(|| ledger.answer()).find_map(|answer| answer);
    let records = answer.expect("there is one").expect("it reads");
    assert_eq!(records, [(first, b"before".to_vec())]);
    let disk = hangs.lock().expect("nobody panics");
    // Each of these returns, although no write does.
    let mut refused = 0;
    while refused < 10 {
        refused += u64::from(ledger.add(&[0; 100]).is_err());
        let _ = ledger.keep(refused.into(), &[1; 10]);
        ledger.discard(0);
        ledger.request(RecordId(0), 10);
    }
    let early = ledger.answer();
    assert!(early.is_none_or(|answer| answer.is_ok()));
    assert!(!ledger.flush(Duration::from_millis(5)));
    assert!(ledger.stats().refused_behind >= refused);
    assert_eq!(ledger.failure(), None);
    ledger.acknowledged(first);
    let error = ledger.close().expect_err("the disk hangs").to_string();
    assert!(
        error.ends_with(" are lost: the disk does not answer"),
        "{error}"
    );
    drop(disk);
}
