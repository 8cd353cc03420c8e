//! Texts for subscribers. A record has a number of 8 bytes for its subscriber: the place of its name in the file `names`.
//!
//! So a search reads one name by its place, without an index. A name is written once, as long as it is among the names that
//! are in memory; names are never removed.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::store::{StoreError, at};

/// Names in memory. Beyond it all are forgotten, and written again when they are needed.
const NAMES_MAX: usize = 1 << 20;
/// Bytes of the longest name: its length is one byte.
const NAME_MAX: usize = 255;
/// The file's first bytes. No name is at place 0, which stands for a subscriber without a name.
const MAGIC: &[u8; 8] = b"HNATNAM1";

/// The file of names, open for writing.
#[derive(Debug)]
pub struct Names {
    file: File,
    path: PathBuf,
    places: HashMap<Box<[u8]>, u64>,
    end: u64,
}

pub(crate) fn path(directory: &Path) -> PathBuf {
    directory.join("names")
}

impl Names {
    /// Opens the file in this directory, or makes it. A name that was not written whole is cut off.
    ///
    /// # Errors
    /// The file cannot be read or written, or is another one.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let path = path(directory);
        let opened = OpenOptions::new()
            .append(true)
            .read(true)
            .create(true)
            .open(&path);
        let mut file = opened.map_err(at(&path))?;
        let mut octets = Vec::new();
        file.read_to_end(&mut octets).map_err(at(&path))?;
        if octets.len() < MAGIC.len() {
            file.set_len(0).map_err(at(&path))?;
            file.write_all(MAGIC).map_err(at(&path))?;
            octets = MAGIC.to_vec();
        }
        if !octets.starts_with(MAGIC) {
            let error = io::Error::new(io::ErrorKind::InvalidData, "no file of names");
            return Err(at(&path)(error));
        }
        let mut names = Self {
            file,
            path,
            places: HashMap::new(),
            end: MAGIC.len() as u64,
        };
        let mut rest = &octets[MAGIC.len()..];
        while let Some((name, after)) = rest
            .split_first()
            .and_then(|(&length, rest)| rest.split_at_checked(usize::from(length)))
        {
            names.note(name);
            names.end += 1 + name.len() as u64;
            rest = after;
        }
        if !rest.is_empty() {
            names.file.set_len(names.end).map_err(at(&names.path))?;
        }
        Ok(names)
    }

    fn note(&mut self, name: &[u8]) {
        if self.places.len() >= NAMES_MAX {
            self.places = HashMap::new();
        }
        self.places.insert(name.into(), self.end);
    }

    /// The number of a name, which is written if it is new. An empty name has the number 0; of a long one the first 255
    /// bytes count.
    ///
    /// # Errors
    /// The file cannot be written. What was written in part is cut off again.
    pub fn number(&mut self, name: &[u8]) -> Result<u64, StoreError> {
        let name = &name[..name.len().min(NAME_MAX)];
        if name.is_empty() {
            return Ok(0);
        }
        if let Some(&place) = self.places.get(name) {
            return Ok(place);
        }
        let mut record = vec![name.len() as u8];
        record.extend_from_slice(name);
        if let Err(error) = self.file.write_all(&record) {
            let _ = self.file.set_len(self.end);
            return Err(at(&self.path)(error));
        }
        let place = self.end;
        self.note(name);
        self.end += record.len() as u64;
        Ok(place)
    }

    /// Makes all names durable.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(at(&self.path))
    }

    /// The name with this number in a directory; `None` for 0.
    ///
    /// # Errors
    /// The file cannot be read, or is too short.
    pub(crate) fn read(directory: &Path, number: u64) -> Result<Option<Vec<u8>>, StoreError> {
        if number == 0 {
            return Ok(None);
        }
        let path = path(directory);
        let file = File::open(&path).map_err(at(&path))?;
        let mut length = [0];
        file.read_exact_at(&mut length, number).map_err(at(&path))?;
        let mut name = vec![0; usize::from(length[0])];
        file.read_exact_at(&mut name, number + 1)
            .map_err(at(&path))?;
        Ok(Some(name))
    }
}
