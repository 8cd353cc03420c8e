//! Searches in a directory while another process writes to it. Nothing is changed, and nothing is kept in memory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::names::Names;
use crate::record::{Entry, Kind, RECORD};
use crate::runs;
use crate::segment::Segment;
use crate::store::{BACK_MS, StoreError, at, parse_first_ms, parse_name};

/// Records of an open log that are read at once.
const CHUNK: usize = 4096;
/// How often a search starts anew because the writer has sealed or deleted a file meanwhile.
const TRIES: usize = 5;

/// A record, and the name of its subscriber if it has one.
pub type Named = (Entry, Option<Vec<u8>>);

/// The segments and logs by day and number, each with whether it is sealed.
type Files = BTreeMap<(u64, u32), (PathBuf, bool)>;

/// A directory to search in.
#[derive(Debug, Clone)]
pub struct Reader {
    directory: PathBuf,
}

impl Reader {
    /// The directory, which need not exist yet.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    /// The record of the block that had a port at a time, as [`crate::Store::who`] finds it.
    ///
    /// # Errors
    /// A file that cannot be read, or a damaged record.
    pub fn who(
        &self,
        external: Ipv4Addr,
        port: u16,
        at_ms: u64,
    ) -> Result<Option<Entry>, StoreError> {
        self.while_files_go(|| self.search(external, port, at_ms))
    }

    /// As [`Reader::who`], with the name of the subscriber if it has one.
    ///
    /// # Errors
    /// A file that cannot be read, or a damaged record.
    pub fn who_named(
        &self,
        external: Ipv4Addr,
        port: u16,
        at_ms: u64,
    ) -> Result<Option<Named>, StoreError> {
        self.while_files_go(|| {
            let Some(entry) = self.search(external, port, at_ms)? else {
                return Ok(None);
            };
            Ok(Some((entry, Names::read(&self.directory, entry.tag)?)))
        })
    }

    /// The name with the number that a record has as its tag; `None` for 0.
    ///
    /// # Errors
    /// The file of names cannot be read.
    pub fn name(&self, tag: u64) -> Result<Option<Vec<u8>>, StoreError> {
        Names::read(&self.directory, tag)
    }

    /// Searches anew if the writer deletes a file meanwhile.
    fn while_files_go<T>(&self, find: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match find() {
                Err(gone) if gone.error.kind() == io::ErrorKind::NotFound && tries < TRIES => {}
                found => return found,
            }
        }
    }

    fn search(
        &self,
        external: Ipv4Addr,
        port: u16,
        at_ms: u64,
    ) -> Result<Option<Entry>, StoreError> {
        // The last file that starts before the time has all blocks of that time.
        for (path, is_sealed) in self.files()?.values().rev() {
            if parse_first_ms(path).is_some_and(|first_ms| first_ms > at_ms) {
                continue;
            }
            let found = match is_sealed {
                true => in_segment(path, external, port, at_ms),
                false => in_log(path, external, port, at_ms),
            };
            match found.map_err(at(path))? {
                Found::Starts => continue,
                Found::Entry(entry) => return Ok(Some(entry).filter(|one| one.kind.is_held())),
                Found::Nobody => return Ok(None),
            }
        }
        Ok(None)
    }

    fn files(&self) -> Result<Files, StoreError> {
        let mut files = Files::new();
        let directory = &self.directory;
        fs::metadata(directory).map_err(at(directory))?;
        for file in fs::read_dir(directory).map_err(at(directory))? {
            let path = file.map_err(at(directory))?.path();
            let Some((day, number, extension)) = parse_name(&path) else {
                continue;
            };
            let is_sealed = match extension {
                "seg" => true,
                "log" => false,
                _ => continue,
            };
            // A sealed segment has all records of a log that is not deleted yet.
            let known = files
                .entry((day, number))
                .or_insert((path.clone(), is_sealed));
            if is_sealed {
                *known = (path, true);
            }
        }
        Ok(files)
    }
}

/// What a file has about a port.
enum Found {
    /// The file starts after the time.
    Starts,
    Entry(Entry),
    Nobody,
}

fn in_segment(path: &Path, external: Ipv4Addr, port: u16, at_ms: u64) -> io::Result<Found> {
    let segment = Segment::open(path)?;
    if segment.first_ms > at_ms {
        return Ok(Found::Starts);
    }
    let found = segment.find(external, port, at_ms)?;
    Ok(found.map_or(Found::Nobody, Found::Entry))
}

/// Searches in a log: from the end in the records behind its runs, then in its runs, and then in the records of blocks
/// that were allocated before, by their order. Only records of the port are checked for damage.
fn in_log(path: &Path, external: Ipv4Addr, port: u16, at_ms: u64) -> io::Result<Found> {
    let file = File::open(path)?;
    let records = file.metadata()?.len() / RECORD as u64;
    let read = |at: u64| {
        let mut octets = [0; RECORD];
        file.read_exact_at(&mut octets, at * RECORD as u64)?;
        io::Result::Ok(octets)
    };
    if records == 0 {
        return Ok(Found::Starts);
    }
    let first_ms = Entry::time_of(&read(0)?);
    if first_ms.saturating_sub(BACK_MS) > at_ms {
        return Ok(Found::Starts);
    }
    let carried = first_place(records, |at| Ok(!Entry::is_carried(&read(at)?)))?;
    let runs = runs::Reader::open(path, records - carried);
    let sorted = carried + runs.as_ref().map_or(0, runs::Reader::records);
    if let Some(entry) = in_records(&file, sorted..records, (external, port), at_ms)? {
        return Ok(Found::Entry(entry));
    }
    let in_runs = match runs.map(|runs| runs.find(external, port, at_ms)) {
        Some(Ok(found)) => found,
        // What a run has, the log has too.
        Some(Err(_)) => in_records(&file, carried..sorted, (external, port), at_ms)?,
        None => None,
    };
    if let Some(entry) = in_runs {
        return Ok(Found::Entry(entry));
    }
    if first_ms > at_ms {
        return Ok(Found::Starts);
    }
    let key = (external.to_bits(), port);
    let mut place = first_place(carried, |at| Ok(Entry::block_of(&read(at)?) > key))?;
    while place > 0 {
        place -= 1;
        let record = read(place)?;
        if Entry::block_of(&record).0 != key.0 {
            break;
        }
        if Entry::is_at(&record, external, port)
            && let Some(entry) = Entry::decode(&record)
        {
            return Ok(Found::Entry(entry));
        }
    }
    Ok(Found::Nobody)
}

/// The last of these records of a log that is of a port and not after a time.
fn in_records(
    file: &File,
    places: Range<u64>,
    (external, port): (Ipv4Addr, u16),
    at_ms: u64,
) -> io::Result<Option<Entry>> {
    let mut left = places.end;
    let mut octets = vec![0; CHUNK * RECORD];
    while left > places.start {
        let count = (left - places.start).min(CHUNK as u64);
        left -= count;
        let chunk = &mut octets[..count as usize * RECORD];
        file.read_exact_at(chunk, left * RECORD as u64)?;
        let (records, _) = chunk.as_chunks::<RECORD>();
        for record in records.iter().rev() {
            if Entry::is_at(record, external, port)
                && Entry::time_of(record) <= at_ms
                && let Some(entry) = Entry::decode(record)
            {
                return Ok(Some(entry));
            }
        }
    }
    Ok(None)
}

/// The first of `end` places for which a condition is true, if it is so from some place on; otherwise `end`.
fn first_place(end: u64, is_true: impl Fn(u64) -> io::Result<bool>) -> io::Result<u64> {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low + (high - low) / 2;
        match is_true(middle)? {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Ok(low)
}

impl Kind {
    /// A word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocated => "allocated",
            Self::Freed => "freed",
            Self::Carried => "carried",
            Self::Lost => "lost",
        }
    }
}
