//! A journal on a disk that crashes, fails and fills up, compared with a list of what was added.
//!
//! Whatever happens, the records are those after some entry: no older one than the last that was synced (or written, if
//! the process was killed), and no newer one than the last that was added.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use base::{Duration, Instant};
use journal::{Batch, Host, Limits, Log, Moment, OpenError, Opened};
use sim::{Crash, CrashDisk, Rng};

type Sections = BTreeMap<u8, Vec<u8>>;
type State = BTreeMap<(u8, u64), Sections>;

#[derive(Clone, Debug)]
enum Entry {
    Put(u8, u64, Sections),
    Change(u8, u64, Sections),
    Remove(u8, u64),
}

impl Entry {
    fn random(rng: &mut Rng) -> Self {
        let (kind, key) = (rng.below(3) as u8, rng.below(12));
        let mut sections = Sections::new();
        for _ in 0..rng.below(4) {
            let mut octets = vec![0; [0, 1, 7, 60, 300, 900][rng.below(6) as usize]];
            rng.fill(&mut octets);
            sections.insert(rng.below(5) as u8, octets);
        }
        match rng.below(6) {
            0..3 => Self::Put(kind, key, sections),
            3..5 => Self::Change(kind, key, sections),
            _ => Self::Remove(kind, key),
        }
    }

    fn add(&self, batch: &mut Batch) {
        let list = |sections: &'_ Sections| -> Vec<(u8, Vec<u8>)> {
            sections.clone().into_iter().collect()
        };
        let done = match self {
            Self::Put(kind, key, sections) => {
                let list = list(sections);
                let list: Vec<_> = list.iter().map(|(n, octets)| (*n, &octets[..])).collect();
                batch.put(*kind, *key, &list)
            }
            Self::Change(kind, key, sections) => {
                let list = list(sections);
                let list: Vec<_> = list.iter().map(|(n, octets)| (*n, &octets[..])).collect();
                batch.change(*kind, *key, &list)
            }
            Self::Remove(kind, key) => {
                batch.remove(*kind, *key);
                true
            }
        };
        assert!(done);
    }

    fn apply(&self, to: &mut State) {
        match self {
            Self::Put(kind, key, sections) => {
                let mut sections = sections.clone();
                sections.retain(|_, octets| !octets.is_empty());
                to.insert((*kind, *key), sections);
            }
            Self::Change(kind, key, sections) => {
                let record = to.entry((*kind, *key)).or_default();
                record.extend(sections.clone());
                record.retain(|_, octets| !octets.is_empty());
            }
            Self::Remove(kind, key) => drop(to.remove(&(*kind, *key))),
        }
    }
}

fn state(entries: &[Entry]) -> State {
    let mut state = State::new();
    entries.iter().for_each(|entry| entry.apply(&mut state));
    state
}

fn records(opened: &Opened) -> State {
    let records = opened.records.iter().map(|record| {
        let sections = record.sections.into_iter();
        let sections = sections.map(|(number, octets)| (number, octets.to_vec()));
        ((record.kind, record.key), sections.collect())
    });
    records.collect()
}

struct Run {
    disk: CrashDisk,
    rng: Rng,
    limits: Limits,
    host: Host,
    now: Moment,
    entries: Vec<Entry>,
    /// The last entries that were synced and written.
    synced: u64,
    written: u64,
    /// The last sync failed. The next process cannot know, so nothing is promised if the power fails only then.
    sync_failed: bool,
    compactions: u64,
    cuts: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, &["run"]);
        Self {
            disk: CrashDisk::new(seed),
            limits: Limits {
                compact_octets: [600, 3_000, 12_000][rng.below(3) as usize],
                step_octets: [64, 500, 4_000][rng.below(3) as usize],
                age_max: Duration::from_secs(300),
            },
            rng,
            host: Host {
                machine: [7; 16],
                boot: [0; 16],
            },
            now: Moment {
                clock: Instant::from_nanos(1_000),
                wall_ns: 1_700_000_000_000_000_000,
            },
            entries: Vec::new(),
            synced: 0,
            written: 0,
            sync_failed: false,
            compactions: 0,
            cuts: 0,
        }
    }

    fn pass(&mut self) {
        let ns = self.rng.below(1_000_000_000);
        self.now.clock += Duration::from_nanos(ns);
        self.now.wall_ns += ns;
    }

    fn open(&mut self) -> Result<(Log<CrashDisk>, Opened), OpenError> {
        let (disk, limits) = (self.disk.clone(), self.limits.clone());
        Log::open(disk, self.host, limits, b"names", self.now)
    }

    /// Ends the process, if it has not died by itself.
    fn crash(&mut self) {
        self.disk.set_room(u64::MAX);
        let power = self.sync_failed || self.rng.chance(0.5);
        self.sync_failed = false;
        if power {
            self.disk.crash(Crash::Power);
            self.host.boot[0] += 1;
            self.written = self.synced;
        } else {
            self.disk.crash(Crash::Killed);
        }
    }

    /// Checks what was found, which is where the next process goes on.
    fn check(&mut self, opened: &Opened) {
        assert_eq!(opened.damaged, None);
        let last = opened.last;
        assert!(
            last >= self.written.max(self.synced),
            "{last} of {}",
            self.written
        );
        assert!(last <= self.entries.len() as u64);
        self.entries.truncate(last as usize);
        assert_eq!(records(opened), state(&self.entries));
        self.cuts += u64::from(opened.cut_octets > 0);
        (self.synced, self.written) = (last, last);
    }

    /// A process, from its start to its death.
    fn live(&mut self) {
        self.pass();
        if self.rng.chance(0.8) {
            let calls = self.rng.below(120);
            self.disk.die_after(calls);
        }
        let (mut log, opened) = match self.open() {
            Ok(found) => found,
            Err(error) => {
                assert!(self.disk.is_dead(), "{error}");
                return self.crash();
            }
        };
        self.check(&opened);
        match self.rng.below(4) {
            0 => self.disk.fail_one_in(3 + self.rng.below(20)),
            1 => self.disk.set_room(self.rng.below(30_000)),
            _ => {}
        }
        for _ in 0..self.rng.below(100) {
            self.step(&mut log);
            if self.disk.is_dead() {
                break;
            }
        }
        if !self.disk.is_dead() && self.rng.chance(0.3) {
            self.recover(&mut log);
        }
        self.compactions += log.compactions();
        drop(log);
        self.crash();
    }

    fn step(&mut self, log: &mut Log<CrashDisk>) {
        self.pass();
        let mut batch = Batch::default();
        match self.rng.below(10) {
            0..4 => {
                for _ in 0..=self.rng.below(4) {
                    let entry = Entry::random(&mut self.rng);
                    entry.add(&mut batch);
                    self.entries.push(entry);
                }
                log.add(&mut batch, self.now);
                assert!(batch.is_empty());
                if log.write().is_ok() {
                    assert_eq!(log.written(), log.last());
                }
            }
            4 => log.add_mark(self.now),
            5 | 6 => {
                self.sync_failed = log.sync().is_err();
                if !self.sync_failed {
                    assert!(log.is_synced() && log.held() == 0);
                }
            }
            // An error is tried again.
            _ => drop(log.step(self.now)),
        }
        assert_eq!(log.last(), self.entries.len() as u64);
        assert!(log.written() >= self.written && log.synced() >= self.synced);
        (self.written, self.synced) = (log.written(), log.synced());
    }

    /// Once the disk works, everything gets to it.
    fn recover(&mut self, log: &mut Log<CrashDisk>) {
        self.disk.fail_one_in(0);
        self.disk.set_room(u64::MAX);
        self.sync_failed = true;
        let done = log.sync().and_then(|()| {
            while log.wants_step() {
                log.step(self.now)?;
            }
            log.sync()
        });
        if !self.disk.is_dead() {
            self.sync_failed = false;
            done.expect("the disk works");
            assert_eq!(log.synced(), self.entries.len() as u64);
        }
        (self.written, self.synced) = (log.written(), log.synced());
    }
}

fn scenario(seed: u64) -> (u64, u64) {
    let mut run = Run::new(seed);
    for _ in 0..8 {
        run.live();
    }
    let (log, opened) = run.open().expect("the disk works");
    run.check(&opened);
    drop(log);
    let (log, again) = run.open().expect("the disk works");
    assert_eq!(records(&again), records(&opened), "reopened");
    assert_eq!((again.last, again.cut_octets), (opened.last, 0));
    drop(log);
    (run.compactions, run.cuts)
}

#[test]
fn a_crash_loses_nothing_that_was_synced_and_invents_nothing() {
    let totals = std::cell::Cell::new((0, 0));
    sim::seeds(500, |seed| {
        let (compactions, cuts) = scenario(seed);
        let (all, torn) = totals.get();
        totals.set((all + compactions, torn + cuts));
    });
    let (compactions, cuts) = totals.get();
    println!("{compactions} compactions, {cuts} torn ends");
}
