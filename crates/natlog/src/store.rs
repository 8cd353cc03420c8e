//! The directory: appending, sealing, searching, retention (RFC 6888 section 4).

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use crate::names::{Names, Renewal};
use crate::record::{Entry, Kind, RECORD};
use crate::runs;
use crate::seal::{self, Full};
use crate::segment::{Sealed, Segment};

const DAY_MS: u64 = 86_400_000;

/// A log has no record that is so much earlier than its first one: the clock was set back, and a new log starts. A search
/// for an earlier time leaves out the log.
pub(crate) const BACK_MS: u64 = 3_600_000;

/// Settings of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Records of a segment, from 16 on. They are in memory until the segment is sealed, 40 bytes each, and once more while
    /// it is sorted.
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
    runs: runs::Writer,
}

impl Log {
    fn own(&self) -> usize {
        self.entries.len() - self.carried
    }

    /// The earliest time of a further record.
    fn earliest_ms(&self) -> u64 {
        let first = self.entries.first().map_or(0, |first| first.at_ms);
        first.saturating_sub(BACK_MS)
    }
}

/// A directory with the log.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    settings: Settings,
    names: Names,
    /// Sorted segments by day and number.
    sealed: BTreeMap<(u64, u32), Sealed>,
    /// The log before this one, which is being sorted.
    full: Option<Full>,
    log: Option<Log>,
    /// Blocks that are allocated now, by external address and first port.
    live: BTreeMap<(u32, u16), Entry>,
    torn_octets: u64,
}

fn name(day: u64, number: u32, extension: &str) -> String {
    format!("{day:06}-{number:06}.{extension}")
}

/// A segment's name has its earliest time, so that a search opens only the segment that has the answer.
fn segment_name(day: u64, number: u32, first_ms: u64) -> String {
    format!("{day:06}-{number:06}-{first_ms:013}.seg")
}

pub(crate) fn parse_name(path: &Path) -> Option<(u64, u32, &str)> {
    let mut parts = path.file_stem()?.to_str()?.split('-');
    let (day, number) = (parts.next()?, parts.next()?);
    let extension = path.extension()?.to_str()?;
    Some((day.parse().ok()?, number.parse().ok()?, extension))
}

/// The earliest time in the name of a segment; `None` in a name of older versions.
pub(crate) fn parse_first_ms(path: &Path) -> Option<u64> {
    path.file_stem()?.to_str()?.split('-').nth(2)?.parse().ok()
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
            names: Names::new(directory),
            sealed: BTreeMap::new(),
            full: None,
            log: None,
            live: BTreeMap::new(),
            torn_octets: 0,
        };
        let mut logs = BTreeMap::new();
        for file in fs::read_dir(directory).map_err(at(directory))? {
            let path = file.map_err(at(directory))?.path();
            match parse_name(&path) {
                Some((day, number, "seg")) => {
                    let sealed = Sealed::find(&path, parse_first_ms(&path));
                    let sealed = sealed.map_err(at(&path))?;
                    store.sealed.insert((day, number), sealed);
                }
                Some((day, number, "log")) => {
                    logs.insert((day, number), path);
                }
                // A segment that was not complete; its log is still there. Runs are made anew.
                Some((_, _, "new" | "runs")) => fs::remove_file(&path).map_err(at(&path))?,
                Some(_) | None => {}
            }
        }
        if let Some(Sealed { path, .. }) = store.sealed.values().next_back() {
            let entries = Segment::open(path).and_then(|segment| segment.in_order_of_time());
            let entries = entries.map_err(at(path))?;
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
            store.seal();
            store.finish()?;
            store.recover(path, day, number)?;
            store.drop_if_incomplete()?;
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
            runs: runs::Writer::default(),
        });
        self.add_runs();
        Ok(())
    }

    /// Deletes a log that has no records of its own, because the process ended while it wrote those of earlier segments.
    /// The segment before it knows all that it has.
    fn drop_if_incomplete(&mut self) -> Result<(), StoreError> {
        let Some(log) = self.log.take_if(|log| log.own() == 0) else {
            return Ok(());
        };
        if self.sealed.is_empty() {
            self.log = Some(log);
            return Ok(());
        }
        fs::remove_file(&log.path).map_err(at(&log.path))
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
        self.append_tagged(&mut entries.to_vec(), |_, _, _| Ok(()))
    }

    /// Appends records with the names of their subscribers: sets their tags to numbers of the names, for
    /// [`Reader::name`](crate::Reader::name).
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn append_named<N: AsRef<[u8]>>(
        &mut self,
        records: &[(Entry, N)],
    ) -> Result<(), StoreError> {
        let mut entries: Vec<Entry> = records.iter().map(|(entry, _)| *entry).collect();
        self.append_tagged(&mut entries, |names, day, (from, now)| {
            for (entry, (_, name)) in now.iter_mut().zip(&records[from..]) {
                entry.tag = names.number(day, name.as_ref())?;
            }
            Ok(())
        })
    }

    /// Appends records that get their tags once the day of their log is known; `tag` is called with their first place.
    fn append_tagged(
        &mut self,
        entries: &mut [Entry],
        tag: impl Fn(&mut Names, u64, (usize, &mut [Entry])) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut from = 0;
        while let Some(first) = entries.get(from) {
            let day = self.day(first.at_ms);
            self.turn(day, first.at_ms)?;
            let Some(log) = &self.log else { break };
            let room = self.settings.segment_records.saturating_sub(log.own());
            let earliest_ms = log.earliest_ms();
            let is_of_log = |one: &&Entry| one.at_ms / DAY_MS <= day && one.at_ms >= earliest_ms;
            let same = entries[from..].iter().take_while(is_of_log);
            let count = same.take(room.max(1)).count().max(1);
            let now = &mut entries[from..from + count];
            tag(&mut self.names, day, (from, now))?;
            self.write(now)?;
            for entry in now {
                note(&mut self.live, entry);
            }
            self.add_runs();
            from += count;
        }
        Ok(())
    }

    fn add_runs(&mut self) {
        if let Some(log) = &mut self.log {
            log.runs.add(&log.path, &log.entries[log.carried..]);
        }
    }

    /// The day of the log for a time. The clock may have been set back: a day that is over stays over.
    fn day(&self, at_ms: u64) -> u64 {
        (at_ms / DAY_MS).max(self.log.as_ref().map_or(0, |log| log.day))
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
                let has_room = log.own() < self.settings.segment_records;
                if has_room && at_ms >= log.earliest_ms() {
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
        // At most one log is being sorted.
        self.finish()?;
        self.renew(day)?;
        self.seal();
        let path = self.directory.join(name(day, number, "log"));
        // A search must not find a log without all blocks that are carried on.
        let new = path.with_extension("new");
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        let file = options.open(&new).map_err(at(&new))?;
        file.set_len(0).map_err(at(&new))?;
        self.log = Some(Log {
            file,
            path: path.clone(),
            day,
            number,
            entries: Vec::new(),
            carried: 0,
            first_ms: u64::MAX,
            runs: runs::Writer::default(),
        });
        let carried = self.live.values().map(|&entry| Entry {
            kind: Kind::Carried,
            at_ms,
            ..entry
        });
        let carried: Vec<Entry> = carried.collect();
        let written = self.write(&carried);
        let started = written.and_then(|()| fs::rename(&new, &path).map_err(at(&path)));
        if let Err(error) = started {
            self.log = None;
            let _ = fs::remove_file(&new);
            return Err(error);
        }
        if let Some(log) = &mut self.log {
            log.carried = carried.len();
        }
        Ok(())
    }

    /// Gives the names of blocks that are carried on into this day numbers in its file.
    fn renew(&mut self, day: u64) -> Result<(), StoreError> {
        let mut renewal = Renewal::new(&mut self.names, day);
        for entry in self.live.values_mut() {
            entry.tag = renewal.number(entry.tag)?;
        }
        Ok(())
    }

    /// Starts to sort the log.
    fn seal(&mut self) {
        let Some(log) = self.log.take() else {
            return;
        };
        if log.entries.is_empty() {
            // A segment without records would say that all blocks are nobody's. The next log replaces the file.
            let _ = fs::remove_file(&log.path);
            return;
        }
        let segment = segment_name(log.day, log.number, log.first_ms);
        let files = (log.path, self.directory.join(segment));
        let key = (log.day, log.number);
        self.full = Some(Full::start(key, files, log.first_ms, log.entries));
    }

    /// Waits until the log before this one is sorted. If that fails, nothing is lost, and each call tries again.
    fn finish(&mut self) -> Result<(), StoreError> {
        let Some(full) = &mut self.full else {
            return Ok(());
        };
        let sealed = full.finish()?;
        self.sealed.insert(full.key, sealed);
        self.full = None;
        Ok(())
    }

    /// Makes all records and names durable.
    ///
    /// # Errors
    /// The log or the names cannot be written, or the log before this one cannot be sorted.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        // The names first, so that no record refers to a name that is not there.
        self.names.sync()?;
        if let Some(log) = &self.log {
            log.file.sync_data().map_err(at(&log.path))?;
        }
        match self.full.as_ref().is_some_and(|full| !full.is_running()) {
            true => self.finish(),
            false => Ok(()),
        }
    }

    /// Records that every block is nobody's: the NAT has started anew. Returns how many blocks were allocated.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn lose_all(&mut self, at_ms: u64) -> Result<usize, StoreError> {
        if self.live.is_empty() {
            return Ok(0);
        }
        // First, because the numbers of names may change.
        self.turn(self.day(at_ms), at_ms)?;
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
        let log = self.log.as_ref().filter(|log| log.first_ms <= at_ms);
        let full = self.full.as_ref().filter(|full| full.first_ms <= at_ms);
        let in_log = log.and_then(|log| seal::last(&log.entries, external, port, at_ms));
        let found = in_log.or_else(|| full?.find(external, port, at_ms));
        if let Some(entry) = found {
            return Ok(Some(entry).filter(|entry| entry.kind.is_held()));
        }
        // A segment starts with the state of all blocks, so the last one that starts before the time knows.
        let segments = self.sealed.values().rev();
        let mut segments = segments.skip_while(|segment| segment.first_ms > at_ms);
        let Some(segment) = segments.next() else {
            return Ok(None);
        };
        let open = Segment::open(&segment.path);
        let found = open.and_then(|open| open.find(external, port, at_ms));
        let found = found.map_err(at(&segment.path))?;
        Ok(found.filter(|entry| entry.kind.is_held()))
    }

    /// Keeps another number of days from the next call of [`Store::retain`] on.
    pub fn set_days(&mut self, days: u32) {
        self.settings.days = days;
    }

    /// Deletes the days before the last [`Settings::days`]: segments, and the names of days that have none any more. Returns
    /// how many files went.
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
        let kept = self.sealed.keys().next();
        let kept = kept.or_else(|| self.full.as_ref().map(|full| &full.key));
        let oldest = kept.map(|key| key.0);
        if let Some(oldest) = oldest.or_else(|| self.log.as_ref().map(|log| log.day)) {
            gone += self.names.retain(oldest)?;
        }
        Ok(gone)
    }

    /// Records on disk, and blocks that are allocated now.
    #[must_use]
    pub fn len(&self) -> (u64, usize) {
        let sealed: u64 = self.sealed.values().map(|segment| segment.records).sum();
        let open = self.log.as_ref().map_or(0, |log| log.entries.len());
        let open = open + self.full.as_ref().map_or(0, Full::len);
        (sealed + open as u64, self.live.len())
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len().0 == 0
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Another store may open the directory next. After a failure the log is still there for it.
        if let Some(full) = self.full.as_mut().filter(|full| full.is_running()) {
            let _ = full.finish();
        }
    }
}
