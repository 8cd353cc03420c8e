//! Searches in a directory while another process writes to it. Nothing is changed, and nothing is kept in memory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::names::Names;
use crate::record::{Entry, Kind, RECORD};
use crate::segment::Segment;
use crate::store::{StoreError, at, parse_name};

/// Records of an open log that are read at once.
const CHUNK: usize = 4096;
/// How often a search starts anew because the writer has sealed or deleted a file meanwhile.
const TRIES: usize = 5;

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
        let mut tries = 0;
        loop {
            tries += 1;
            match self.search(external, port, at_ms) {
                Err(gone) if gone.error.kind() == io::ErrorKind::NotFound && tries < TRIES => {}
                found => return found,
            }
        }
    }

    /// The name with the number that a record has as its tag; `None` for 0.
    ///
    /// # Errors
    /// The file of names cannot be read.
    pub fn name(&self, tag: u64) -> Result<Option<Vec<u8>>, StoreError> {
        Names::read(&self.directory, tag)
    }

    fn search(
        &self,
        external: Ipv4Addr,
        port: u16,
        at_ms: u64,
    ) -> Result<Option<Entry>, StoreError> {
        let mut files: BTreeMap<(u64, u32), (PathBuf, bool)> = BTreeMap::new();
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
        // The last file that starts before the time has all blocks of that time.
        for (path, is_sealed) in files.values().rev() {
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

/// Reads a log from its end. Only records of the port are checked for damage.
fn in_log(path: &Path, external: Ipv4Addr, port: u16, at_ms: u64) -> io::Result<Found> {
    let file = File::open(path)?;
    let mut left = file.metadata()?.len() / RECORD as u64;
    let mut octets = vec![0; CHUNK * RECORD];
    // Records of blocks that were allocated before are the log's first ones, and have its time of start.
    let mut starts_before = false;
    while left > 0 {
        let count = left.min(CHUNK as u64);
        left -= count;
        let chunk = &mut octets[..count as usize * RECORD];
        file.read_exact_at(chunk, left * RECORD as u64)?;
        let (records, _) = chunk.as_chunks::<RECORD>();
        for record in records.iter().rev() {
            let record_ms = Entry::time_of(record);
            if record_ms > at_ms {
                continue;
            }
            starts_before = true;
            if !Entry::is_at(record, external, port) {
                continue;
            }
            if let Some(entry) = Entry::decode(record) {
                return Ok(Found::Entry(entry));
            }
        }
    }
    Ok(match starts_before {
        true => Found::Nobody,
        false => Found::Starts,
    })
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
