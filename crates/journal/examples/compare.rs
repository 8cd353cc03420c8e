//! Compares the journal with redb and with a bare loop of writes: `cargo run --release -p headend-journal --example
//! compare -- DIR [RECORDS...]`.
//!
//! Each store gets the same load: sessions of 500 bytes in three sections at 10,000 a second, changes of one section of
//! 40 bytes at 2,000 a second, five new values of every record, the start of a new process, and the end of all sessions.
//! Time is not waited for: a store writes after the entries of 1 ms, and syncs after those of 100 ms. The bare loop
//! copies the same bytes to a buffer, writes and syncs it, and keeps nothing by key.
//!
//! redb has a row for each section, in two ways: a durable commit each 100 ms, and a commit without durability each 10 ms
//! in addition. If the process is killed, both lose what came after the last durable commit; the other two lose 1 ms.
//!
//! Prints for each record: processor time (the kernel samples the part in user mode, so that one is rough), bytes passed
//! to `write`, and bytes of pages that went to the disk. The last part adds entries to a journal with its thread, at
//! 10,000 a second in real time.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use journal::{Batch, Host, Journal, Limits, Log, Moment, Options};
use reactor::disk::Directory;
use reactor::usage;
use redb::{Database, Durability, ReadableTable, TableDefinition};

type Done = Result<(), Box<dyn Error>>;

const SECTIONS: [usize; 3] = [120, 110, 270];
const CHANGE: usize = 40;
/// Sections changed and records put again, for each record.
const CHANGES: usize = 1;
const PUTS: usize = 5;
const TABLE: TableDefinition<'static, (u64, u8), &'static [u8]> = TableDefinition::new("state");

/// What is compared.
trait Store {
    fn put(&mut self, key: u64, sections: &[(u8, &[u8])]) -> Done;
    fn change(&mut self, key: u64, section: u8, octets: &[u8]) -> Done;
    fn remove(&mut self, key: u64) -> Done;
    /// 1 ms has passed.
    fn write(&mut self) -> Done;
    /// 100 ms have passed.
    fn sync(&mut self) -> Done;
    /// Reads everything as a new process does. Returns the number of sections.
    fn read(self: Box<Self>) -> Result<(Box<dyn Store>, usize), Box<dyn Error>>;
}

struct Bare {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
}

impl Bare {
    fn open(path: &Path) -> Result<Box<dyn Store>, Box<dyn Error>> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Box::new(Self {
            path: path.to_owned(),
            file,
            buffer: Vec::new(),
        }))
    }
}

impl Store for Bare {
    fn put(&mut self, _: u64, sections: &[(u8, &[u8])]) -> Done {
        for (_, octets) in sections {
            self.buffer.extend_from_slice(octets);
        }
        Ok(())
    }

    fn change(&mut self, _: u64, _: u8, octets: &[u8]) -> Done {
        self.buffer.extend_from_slice(octets);
        Ok(())
    }

    fn remove(&mut self, key: u64) -> Done {
        self.buffer.extend_from_slice(&key.to_le_bytes());
        Ok(())
    }

    fn write(&mut self) -> Done {
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn sync(&mut self) -> Done {
        Ok(self.file.sync_data()?)
    }

    fn read(self: Box<Self>) -> Result<(Box<dyn Store>, usize), Box<dyn Error>> {
        let mut octets = Vec::new();
        File::open(&self.path)?.read_to_end(&mut octets)?;
        std::hint::black_box(&octets);
        Ok((self, 0))
    }
}

struct Ours {
    path: PathBuf,
    log: Log<Directory>,
    batch: Batch,
}

impl Ours {
    fn open(path: &Path) -> Result<Box<dyn Store>, Box<dyn Error>> {
        fs::create_dir_all(path)?;
        Ok(Box::new(Self::load(path)?.0))
    }

    fn load(path: &Path) -> Result<(Self, usize), Box<dyn Error>> {
        let (disk, limits) = (Directory::new(path), Limits::default());
        let (log, opened) = Log::open(disk, Host::this(), limits, b"", Moment::now())?;
        let records = opened.records.iter();
        let count = records.map(|record| record.sections.len()).sum();
        let new = Self {
            path: path.to_owned(),
            log,
            batch: Batch::default(),
        };
        Ok((new, count))
    }
}

impl Store for Ours {
    fn put(&mut self, key: u64, sections: &[(u8, &[u8])]) -> Done {
        assert!(self.batch.put(1, key, sections));
        Ok(())
    }

    fn change(&mut self, key: u64, section: u8, octets: &[u8]) -> Done {
        assert!(self.batch.change(1, key, &[(section, octets)]));
        Ok(())
    }

    fn remove(&mut self, key: u64) -> Done {
        self.batch.remove(1, key);
        Ok(())
    }

    fn write(&mut self) -> Done {
        let now = Moment::now();
        self.log.add(&mut self.batch, now);
        self.log.write()?;
        Ok(self.log.step(now)?)
    }

    fn sync(&mut self) -> Done {
        Ok(self.log.sync()?)
    }

    fn read(self: Box<Self>) -> Result<(Box<dyn Store>, usize), Box<dyn Error>> {
        let path = self.path.clone();
        drop(self);
        let (new, count) = Self::load(&path)?;
        Ok((Box::new(new), count))
    }
}

/// What redb does in a commit.
enum Row {
    Set(u64, u8, Vec<u8>),
    Remove(u64),
}

struct Redb {
    path: PathBuf,
    database: Database,
    rows: Vec<Row>,
    /// Milliseconds between commits without durability; 0 for none.
    often_ms: u32,
    ms: u32,
}

impl Redb {
    fn open(path: &Path, often_ms: u32) -> Result<Box<dyn Store>, Box<dyn Error>> {
        Ok(Box::new(Self::load(path, often_ms)?))
    }

    fn load(path: &Path, often_ms: u32) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            path: path.to_owned(),
            database: Database::builder().set_cache_size(64 << 20).create(path)?,
            rows: Vec::new(),
            often_ms,
            ms: 0,
        })
    }

    fn commit(&mut self, durability: Durability) -> Done {
        let mut writing = self.database.begin_write()?;
        writing.set_durability(durability);
        {
            let mut table = writing.open_table(TABLE)?;
            for row in self.rows.drain(..) {
                match row {
                    Row::Set(key, section, octets) => {
                        table.insert((key, section), &octets[..])?;
                    }
                    Row::Remove(key) => {
                        for section in 0..SECTIONS.len() as u8 {
                            table.remove((key, section))?;
                        }
                    }
                }
            }
        }
        Ok(writing.commit()?)
    }
}

impl Store for Redb {
    fn put(&mut self, key: u64, sections: &[(u8, &[u8])]) -> Done {
        for (section, octets) in sections {
            self.change(key, *section, octets)?;
        }
        Ok(())
    }

    fn change(&mut self, key: u64, section: u8, octets: &[u8]) -> Done {
        self.rows.push(Row::Set(key, section, octets.to_vec()));
        Ok(())
    }

    fn remove(&mut self, key: u64) -> Done {
        self.rows.push(Row::Remove(key));
        Ok(())
    }

    fn write(&mut self) -> Done {
        self.ms += 1;
        match self.often_ms > 0 && self.ms.is_multiple_of(self.often_ms) {
            true => self.commit(Durability::None),
            false => Ok(()),
        }
    }

    fn sync(&mut self) -> Done {
        self.commit(Durability::Immediate)
    }

    fn read(self: Box<Self>) -> Result<(Box<dyn Store>, usize), Box<dyn Error>> {
        let (path, often_ms) = (self.path.clone(), self.often_ms);
        drop(self);
        let new = Self::load(&path, often_ms)?;
        let mut rows = Vec::new();
        let reading = new.database.begin_read()?;
        for row in reading.open_table(TABLE)?.iter()? {
            let (key, octets) = row?;
            rows.push((key.value(), octets.value().to_vec()));
        }
        Ok((Box::new(new), rows.len()))
    }
}

/// Bytes that this process passed to `write`, and bytes of pages that went to the disk.
fn written() -> Result<[u64; 2], Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/io")?;
    let of = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line?.trim().parse().ok()
    };
    let (write, disk) = (of("wchar:"), of("write_bytes:"));
    Ok([write.unwrap_or(0), disk.unwrap_or(0)])
}

/// Runs a part of the load and prints its cost for each of `count` records.
fn part(name: &str, count: usize, work: impl FnOnce() -> Done) -> Done {
    let costs = || (usage::process_cpu(), usage::of_this_process().user);
    let ((cpu, user), io, start) = (costs(), written()?, Instant::now());
    work()?;
    let ((cpu_after, user_after), io_after) = (costs(), written()?);
    let us = |later: base::Duration, earlier: base::Duration| {
        (later.as_nanos() - earlier.as_nanos()) as f64 / 1e3 / count as f64
    };
    println!(
        "    {name:10} cpu {:6.2} us, of it user {:6.2} us, write {:7.0} bytes, disk {:7.0} bytes; all in {:.2} s",
        us(cpu_after, cpu),
        us(user_after, user),
        (io_after[0] - io[0]) as f64 / count as f64,
        (io_after[1] - io[1]) as f64 / count as f64,
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Calls `add` for each of `count` entries, of which there are so many in 1 ms.
fn paced(
    store: &mut dyn Store,
    count: usize,
    in_ms: usize,
    mut add: impl FnMut(&mut dyn Store, usize) -> Done,
) -> Done {
    for n in 0..count {
        add(store, n)?;
        if (n + 1) % in_ms == 0 {
            store.write()?;
        }
        if (n + 1) % (100 * in_ms) == 0 {
            store.sync()?;
        }
    }
    store.write()?;
    store.sync()
}

fn load(mut store: Box<dyn Store>, path: &Path, records: usize) -> Done {
    let octets: Vec<u8> = (0..1_024_u32).map(|n| (n * 7 + n / 256) as u8).collect();
    let put = |store: &mut dyn Store, n: usize| {
        let from = n % 256;
        let [a, b, c] = SECTIONS;
        let sections = [
            (0, &octets[from..from + a]),
            (1, &octets[from..from + b]),
            (2, &octets[from..from + c]),
        ];
        store.put((n % records) as u64, &sections)
    };
    let store_ref = &mut *store;
    part("set up", records, || paced(store_ref, records, 10, put))?;
    let changes = records * CHANGES;
    part("change", changes, || {
        paced(store_ref, changes, 2, |store, n| {
            let key = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % records as u64;
            store.change(key, (n % 3) as u8, &octets[n % 900..n % 900 + CHANGE])
        })
    })?;
    let puts = records * PUTS;
    part("put again", puts, || paced(store_ref, puts, 10, put))?;
    let mut sections = 0;
    let mut again = None;
    part("start", records, || {
        let (store, count) = store.read()?;
        (sections, again) = (count, Some(store));
        Ok(())
    })?;
    let mut store = again.ok_or("it was read")?;
    part("end", records, || {
        paced(&mut *store, records, 10, |store, n| store.remove(n as u64))
    })?;
    println!(
        "    {sections} sections read; {:.1} MB on disk at the end",
        size(path)? as f64 / 1e6
    );
    Ok(())
}

fn size(path: &Path) -> Result<u64, Box<dyn Error>> {
    let metadata = fs::metadata(path)?;
    if metadata.is_file() {
        return Ok(metadata.len());
    }
    let mut sum = 0;
    for entry in fs::read_dir(path)? {
        sum += entry?.metadata()?.len();
    }
    Ok(sum)
}

/// Adds entries to a journal with its thread, at 10,000 a second in real time.
fn threaded(path: &Path) -> Done {
    let (journal, _) = Journal::open(path, b"", Options::default())?;
    let sections: Vec<Vec<u8>> = SECTIONS.iter().map(|length| vec![0x42; *length]).collect();
    let sections: Vec<(u8, &[u8])> = (0..).zip(sections.iter().map(|one| &one[..])).collect();
    let (all, mine) = (usage::process_cpu(), usage::thread_cpu());
    let (mut adding, mut lags) = (Duration::ZERO, [Vec::new(), Vec::new()]);
    let mut waiting = [
        std::collections::VecDeque::new(),
        std::collections::VecDeque::new(),
    ];
    let start = Instant::now();
    let count = 30_000;
    let mut done = 0;
    while done < count {
        let due = (start.elapsed().as_micros() as u64 / 100).min(count);
        let before = usage::thread_cpu();
        let mut last = 0;
        while done < due {
            last = journal.put(1, done % 10_000, &sections)?;
            done += 1;
        }
        adding += Duration::from_nanos(usage::thread_cpu().as_nanos() - before.as_nanos());
        let seen = [journal.written(), journal.synced()];
        for ((waiting, lags), seen) in waiting.iter_mut().zip(&mut lags).zip(seen) {
            waiting.push_back((last, Instant::now()));
            while waiting.front().is_some_and(|(number, _)| *number <= seen) {
                lags.extend(
                    waiting
                        .pop_front()
                        .map(|(_, at): (u64, Instant)| at.elapsed()),
                );
            }
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    journal.flush(base::Duration::from_secs(60));
    let (all, mine) = (
        usage::process_cpu().as_nanos() - all.as_nanos(),
        usage::thread_cpu().as_nanos() - mine.as_nanos(),
    );
    println!(
        "thread, {count} records at 10,000/s: {:.2} us to add, {:.2} us on the journal's thread, each with system time",
        adding.as_secs_f64() * 1e6 / count as f64,
        (all - mine) as f64 / 1e3 / count as f64
    );
    for (name, lags) in ["written", "synced"].into_iter().zip(&mut lags) {
        lags.sort_unstable();
        let of = |share: f64| lags[((lags.len() - 1) as f64 * share) as usize];
        println!(
            "    {name}: p50 {:.1?}, p99 {:.1?}, longest {:.1?}",
            of(0.5),
            of(0.99),
            of(1.0)
        );
    }
    Ok(journal.close()?)
}

fn main() -> Done {
    let mut arguments = std::env::args_os().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("give a DIR that does not exist")?);
    let mut sizes: Vec<usize> = Vec::new();
    for argument in arguments {
        sizes.push(
            argument
                .to_str()
                .ok_or("give numbers of records")?
                .parse()?,
        );
    }
    if sizes.is_empty() {
        sizes = vec![10_000, 20_000, 40_000];
    }
    fs::create_dir(&directory)?;
    for records in sizes {
        for name in ["bare loop", "journal", "redb 100 ms", "redb 10 ms"] {
            println!("{name}, {records} records");
            let path = directory.join("store");
            let store = match name {
                "bare loop" => Bare::open(&path)?,
                "journal" => Ours::open(&path)?,
                "redb 100 ms" => Redb::open(&path, 0)?,
                _ => Redb::open(&path, 10)?,
            };
            load(store, &path, records)?;
            match path.is_dir() {
                true => fs::remove_dir_all(&path)?,
                false => fs::remove_file(&path)?,
            }
        }
    }
    threaded(&directory.join("threaded"))?;
    Ok(fs::remove_dir_all(&directory)?)
}
