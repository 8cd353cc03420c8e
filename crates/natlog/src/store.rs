//! The directory: appending, sealing, searching, retention (RFC 6888 section 4).

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use crate::record::{Entry, Kind, RECORD};
use crate::segment::Segment;

const DAY_MS: u64 = 86_400_000;

/// Settings of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Records of a segment, from 16 on. They are in memory until the segment is sealed: 40 bytes each.
    pub segment_records: usize,
    /// Days to keep, besides today.
    pub days: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            segment_records: 1 << 20,
            days: 180,
        }
    }
}

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}")]
pub struct StoreError {
    /// The file.
    pub path: PathBuf,
    /// What failed.
    pub error: io::Error,
}

pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> StoreError + '_ {
    move |error| StoreError {
        path: path.to_owned(),
        error,
    }
}

/// The log of one day that is being written.
#[derive(Debug)]
struct Log {
    file: File,
    path: PathBuf,
    day: u64,
    number: u32,
    entries: Vec<Entry>,
    /// How many of them, at the start, are blocks of earlier segments.
    carried: usize,
    /// The earliest time of them; the clock may have been set back.
    first_ms: u64,
}

impl Log {
    fn own(&self) -> usize {
        self.entries.len() - self.carried
    }
}

/// A directory with the log.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    settings: Settings,
    /// Sorted segments by day and number.
    sealed: BTreeMap<(u64, u32), Segment>,
    log: Option<Log>,
    /// Blocks that are allocated now, by external address and first port.
    live: BTreeMap<(u32, u16), Entry>,
    torn_octets: u64,
}

fn name(day: u64, number: u32, extension: &str) -> String {
    format!("{day:06}-{number:06}.{extension}")
}

pub(crate) fn parse_name(path: &Path) -> Option<(u64, u32, &str)> {
    let (day, number) = path.file_stem()?.to_str()?.split_once('-')?;
    let extension = path.extension()?.to_str()?;
    Some((day.parse().ok()?, number.parse().ok()?, extension))
}

/// Follows which blocks are allocated.
fn note(live: &mut BTreeMap<(u32, u16), Entry>, entry: &Entry) {
    let key = (entry.external.to_bits(), entry.first);
    match entry.kind.is_held() {
        true => live.insert(key, *entry),
        false => live.remove(&key),
    };
}

impl Store {
    /// Opens a directory, or creates it. A torn record at a log's end is cut off.
    ///
    /// # Errors
    /// A file that cannot be read, or that is damaged.
    pub fn open(directory: &Path, settings: Settings) -> Result<Self, StoreError> {
        fs::create_dir_all(directory).map_err(at(directory))?;
        let mut store = Self {
            directory: directory.to_owned(),
            settings: Settings {
                segment_records: settings.segment_records.max(16),
                ..settings
            },
            sealed: BTreeMap::new(),
            log: None,
            live: BTreeMap::new(),
            torn_octets: 0,
        };
        let mut logs = BTreeMap::new();
        for file in fs::read_dir(directory).map_err(at(directory))? {
            let path = file.map_err(at(directory))?.path();
            match parse_name(&path) {
                Some((day, number, "seg")) => {
                    let segment = Segment::open(&path).map_err(at(&path))?;
                    store.sealed.insert((day, number), segment);
                }
                Some((day, number, "log")) => {
                    logs.insert((day, number), path);
                }
                // A segment that was not complete; its log is still there.
                Some((_, _, "new")) => fs::remove_file(&path).map_err(at(&path))?,
                Some(_) | None => {}
            }
        }
        if let Some(segment) = store.sealed.values().next_back() {
            let entries = segment.in_order_of_time().map_err(at(&segment.path))?;
            for entry in &entries {
                note(&mut store.live, entry);
            }
        }
        for ((day, number), path) in logs {
            if store.sealed.contains_key(&(day, number)) {
                // It was sealed, and not deleted yet.
                fs::remove_file(&path).map_err(at(&path))?;
                continue;
            }
            store.seal()?;
            store.recover(path, day, number)?;
        }
        Ok(store)
    }

    /// Reads a log, up to its first damaged record.
    fn recover(&mut self, path: PathBuf, day: u64, number: u32) -> Result<(), StoreError> {
        let octets = fs::read(&path).map_err(at(&path))?;
        let (records, _) = octets.as_chunks::<RECORD>();
        let mut entries = Vec::new();
        entries.extend(records.iter().map_while(Entry::decode));
        let good = (entries.len() * RECORD) as u64;
        let file = OpenOptions::new().append(true).open(&path);
        let file = file.map_err(at(&path))?;
        if good < octets.len() as u64 {
            self.torn_octets += octets.len() as u64 - good;
            file.set_len(good).map_err(at(&path))?;
            file.sync_all().map_err(at(&path))?;
        }
        for entry in &entries {
            note(&mut self.live, entry);
        }
        let carried = entries.iter();
        let carried = carried.take_while(|one| one.kind == Kind::Carried).count();
        let first_ms = entries.iter().map(|one| one.at_ms).min();
        self.log = Some(Log {
            first_ms: first_ms.unwrap_or(u64::MAX),
            file,
            path,
            day,
            number,
            entries,
            carried,
        });
        Ok(())
    }

    /// Octets that were cut off torn logs when the store was opened.
    #[must_use]
    pub fn torn_octets(&self) -> u64 {
        self.torn_octets
    }

    /// Appends a record. The first one of a day or segment
    /// follows a record of each block that is still allocated. Records are
    /// written at once, and durable after [`Store::sync`].
    ///
    /// # Errors
    /// A file that cannot be written. What was written in part is cut off again.
    pub fn append(&mut self, entry: &Entry) -> Result<(), StoreError> {
        self.append_all(core::slice::from_ref(entry))
    }

    /// Appends records with one write for each segment that they touch.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn append_all(&mut self, entries: &[Entry]) -> Result<(), StoreError> {
        let mut rest = entries;
        while let Some(first) = rest.first() {
            // The clock may have been set back: a day that is over stays over.
            let day = (first.at_ms / DAY_MS).max(self.log.as_ref().map_or(0, |log| log.day));
            self.turn(day, first.at_ms)?;
            let Some(log) = &self.log else { break };
            let room = self.settings.segment_records.saturating_sub(log.own());
            let same = rest.iter().take_while(|one| one.at_ms / DAY_MS <= day);
            let count = same.take(room.max(1)).count();
            let (now, later) = rest.split_at(count);
            self.write(now)?;
            for entry in now {
                note(&mut self.live, entry);
            }
            rest = later;
        }
        Ok(())
    }

    fn write(&mut self, entries: &[Entry]) -> Result<(), StoreError> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let octets: Vec<u8> = entries.iter().flat_map(Entry::encode).collect();
        if let Err(error) = log.file.write_all(&octets) {
            let good = (log.entries.len() * RECORD) as u64;
            let _ = log.file.set_len(good);
            return Err(at(&log.path)(error));
        }
        log.entries.extend_from_slice(entries);
        let first_ms = entries.iter().map(|one| one.at_ms).min();
        log.first_ms = log.first_ms.min(first_ms.unwrap_or(u64::MAX));
        Ok(())
    }

    /// Makes sure that there is a log for this day with room in it.
    fn turn(&mut self, day: u64, at_ms: u64) -> Result<(), StoreError> {
        let number = match &self.log {
            Some(log) if log.day == day => {
                if log.own() < self.settings.segment_records {
                    return Ok(());
                }
                log.number + 1
            }
            Some(_) => 0,
            None => {
                let last = self.sealed.range((day, 0)..=(day, u32::MAX)).next_back();
                last.map_or(0, |(&(_, number), _)| number + 1)
            }
        };
        self.seal()?;
        let path = self.directory.join(name(day, number, "log"));
        let file = OpenOptions::new().append(true).create(true).open(&path);
        self.log = Some(Log {
            file: file.map_err(at(&path))?,
            path: path.clone(),
            day,
            number,
            entries: Vec::new(),
            carried: 0,
            first_ms: u64::MAX,
        });
        let carried = self.live.values().map(|&entry| Entry {
            kind: Kind::Carried,
            at_ms,
            ..entry
        });
        let carried: Vec<Entry> = carried.collect();
        if let Err(error) = self.write(&carried) {
            // Without them the log would say that the blocks are nobody's.
            self.log = None;
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        if let Some(log) = &mut self.log {
            log.carried = carried.len();
        }
        Ok(())
    }

    /// Sorts the log and puts a sealed segment in its place. Nothing is lost if this fails or is cut off.
    fn seal(&mut self) -> Result<(), StoreError> {
        let Some(mut log) = self.log.take() else {
            return Ok(());
        };
        let path = self.directory.join(name(log.day, log.number, "seg"));
        match Segment::write(&path, &mut log.entries) {
            Ok(segment) => {
                self.sealed.insert((log.day, log.number), segment);
                fs::remove_file(&log.path).map_err(at(&log.path))
            }
            Err(error) => {
                self.log = Some(log);
                Err(at(&path)(error))
            }
        }
    }

    /// Makes all records durable.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        match &self.log {
            Some(log) => log.file.sync_data().map_err(at(&log.path)),
            None => Ok(()),
        }
    }

    /// Records that every block is nobody's: the NAT has started anew. Returns how many blocks were allocated.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn lose_all(&mut self, at_ms: u64) -> Result<usize, StoreError> {
        let lost = self.live.values().map(|&entry| Entry {
            kind: Kind::Lost,
            at_ms,
            ..entry
        });
        let lost: Vec<Entry> = lost.collect();
        self.append_all(&lost)?;
        Ok(lost.len())
    }

    /// The record of the block that had a port at a time; `None` if no subscriber had it then.
    ///
    /// A block that was allocated in an earlier segment is returned with [`Kind::Carried`] and the time at which its segment
    /// starts.
    ///
    /// # Errors
    /// A file that cannot be read, or a damaged record.
    pub fn who(
        &self,
        external: Ipv4Addr,
        port: u16,
        at_ms: u64,
    ) -> Result<Option<Entry>, StoreError> {
        if let Some(log) = &self.log
            && log.first_ms <= at_ms
        {
            let is_it = |one: &&Entry| one.at_ms <= at_ms && one.has(external, port);
            if let Some(entry) = log.entries.iter().rev().find(is_it) {
                return Ok(Some(*entry).filter(|entry| entry.kind.is_held()));
            }
        }
        // A segment starts with the state of all blocks, so the last one that starts before the time knows.
        let segments = self.sealed.values().rev();
        let mut segments = segments.skip_while(|segment| segment.first_ms > at_ms);
        let Some(segment) = segments.next() else {
            return Ok(None);
        };
        let found = segment.find(external, port, at_ms);
        let found = found.map_err(at(&segment.path))?;
        Ok(found.filter(|entry| entry.kind.is_held()))
    }

    /// Keeps another number of days from the next call of [`Store::retain`] on.
    pub fn set_days(&mut self, days: u32) {
        self.settings.days = days;
    }

    /// Deletes the days before the last [`Settings::days`]. Returns how many files went.
    ///
    /// # Errors
    /// A file that cannot be deleted.
    pub fn retain(&mut self, now_ms: u64) -> Result<usize, StoreError> {
        let days = u64::from(self.settings.days);
        let oldest_ms = (now_ms / DAY_MS).saturating_sub(days) * DAY_MS;
        let mut gone = 0;
        // A segment answers for the time until the next one starts.
        while self
            .sealed
            .values()
            .nth(1)
            .is_some_and(|next| next.first_ms <= oldest_ms)
        {
            let Some((_, segment)) = self.sealed.pop_first() else {
                break;
            };
            fs::remove_file(&segment.path).map_err(at(&segment.path))?;
            gone += 1;
        }
        Ok(gone)
    }

    /// Records on disk, and blocks that are allocated now.
    #[must_use]
    pub fn len(&self) -> (u64, usize) {
        let sealed: u64 = self.sealed.values().map(|segment| segment.records).sum();
        let open = self.log.as_ref().map_or(0, |log| log.entries.len());
        (sealed + open as u64, self.live.len())
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len().0 == 0
    }
}
