//! Texts for subscribers. A record has a number of 8 bytes for its subscriber: the place of its name in a file of names.
//!
//! So a search reads one name by its place, without an index. Each day of the log has its own files of names, and the
//! records of a day refer to names of that day only: blocks that are carried on into a new day get new numbers. Files of
//! names are therefore deleted with the segments of their day, and no record is ever rewritten.
//!
//! A store that is opened again on the same day starts a further file. So no number is given twice, also if the end of a
//! file was lost in a crash and the records that refer to it were not.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::store::{StoreError, at, parse_name};

/// Names in memory. Beyond it all are forgotten, and written again when they are needed.
const NAMES_MAX: usize = 1 << 20;
/// Bytes of the longest name: its length is one byte.
const NAME_MAX: usize = 255;
/// The file's first bytes. No name is at place 0, which stands for a subscriber without a name.
const MAGIC: &[u8; 8] = b"HNATNAM1";
/// The last file of a day. A store that is opened more often than this on one day appends to it.
const LAST: u32 = 255;
/// Bits of a place in a file; above them are 8 bits of the file's number, and its day.
const PLACE_BITS: u32 = 36;

/// The file that has a name: its day and its number. Day 0 is the one file `names` of stores before version 0.2.
type FileId = (u64, u32);

fn split(number: u64) -> (FileId, u64) {
    let file = (number >> PLACE_BITS & u64::from(LAST)) as u32;
    let place = number & ((1 << PLACE_BITS) - 1);
    ((number >> (PLACE_BITS + 8), file), place)
}

fn path(directory: &Path, (day, number): FileId) -> PathBuf {
    directory.join(match day {
        0 => "names".to_owned(),
        _ => format!("{day:06}-{number:03}.names"),
    })
}

/// The file of names that is being written.
#[derive(Debug)]
struct Current {
    file: File,
    path: PathBuf,
    id: FileId,
    places: HashMap<Box<[u8]>, u64>,
    end: u64,
}

/// The names of a directory.
#[derive(Debug)]
pub(crate) struct Names {
    directory: PathBuf,
    current: Option<Current>,
    /// Whether there is something to make durable: names, and the entry of a new file.
    is_dirty: bool,
    is_new: bool,
}

impl Names {
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            current: None,
            is_dirty: false,
            is_new: false,
        }
    }

    /// The file for a day, which is made at the day's first name.
    fn current(&mut self, day: u64) -> Result<&mut Current, StoreError> {
        let is_of_day = self.current.as_ref().is_some_and(|one| one.id.0 == day);
        if !is_of_day {
            self.sync()?;
            self.current = Some(self.start(day)?);
            self.is_new = true;
        }
        let current = self.current.as_mut();
        Ok(current.expect("the file was opened above"))
    }

    fn start(&self, day: u64) -> Result<Current, StoreError> {
        for number in 0..=LAST {
            let id = (day, number);
            let path = path(&self.directory, id);
            let mut options = OpenOptions::new();
            options.append(true).create(true);
            let opened = options.create_new(number < LAST).open(&path);
            let mut file = match opened {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => opened.map_err(at(&path))?,
            };
            let mut end = file.metadata().map_err(at(&path))?.len();
            if end < MAGIC.len() as u64 {
                file.set_len(0).map_err(at(&path))?;
                file.write_all(MAGIC).map_err(at(&path))?;
                end = MAGIC.len() as u64;
            }
            return Ok(Current {
                file,
                path,
                id,
                places: HashMap::new(),
                end,
            });
        }
        let error = io::Error::other("too many files of names");
        Err(at(&self.directory)(error))
    }

    /// The number of a name for records of a day. An empty name has the number 0; of a long one the first 255 bytes count.
    ///
    /// # Errors
    /// The file cannot be written. What was written in part is cut off again.
    pub(crate) fn number(&mut self, day: u64, name: &[u8]) -> Result<u64, StoreError> {
        let name = &name[..name.len().min(NAME_MAX)];
        if name.is_empty() {
            return Ok(0);
        }
        let current = self.current(day.max(1))?;
        if let Some(&number) = current.places.get(name) {
            return Ok(number);
        }
        let mut record = vec![name.len() as u8];
        record.extend_from_slice(name);
        if let Err(error) = current.file.write_all(&record) {
            let _ = current.file.set_len(current.end);
            return Err(at(&current.path)(error));
        }
        let (day, file) = current.id;
        let number = (day << 8 | u64::from(file)) << PLACE_BITS | current.end;
        current.end += record.len() as u64;
        if current.places.len() >= NAMES_MAX {
            current.places = HashMap::new();
        }
        current.places.insert(name.into(), number);
        self.is_dirty = true;
        Ok(number)
    }

    /// Makes all names durable.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn sync(&mut self) -> Result<(), StoreError> {
        let Some(current) = self.current.as_ref().filter(|_| self.is_dirty) else {
            return Ok(());
        };
        current.file.sync_data().map_err(at(&current.path))?;
        if self.is_new {
            let directory = File::open(&self.directory).and_then(|one| one.sync_all());
            directory.map_err(at(&self.directory))?;
        }
        (self.is_dirty, self.is_new) = (false, false);
        Ok(())
    }

    /// Deletes the files of days before `oldest`, the day of the oldest segment that is kept. Returns how many.
    ///
    /// # Errors
    /// A file that cannot be deleted.
    pub(crate) fn retain(&self, oldest: u64) -> Result<usize, StoreError> {
        let directory = &self.directory;
        let mut files = Vec::new();
        for file in fs::read_dir(directory).map_err(at(directory))? {
            let path = file.map_err(at(directory))?.path();
            if let Some((day, _, "names")) = parse_name(&path) {
                files.push((day, path));
            }
        }
        files.sort();
        // From the day after that of the first of these files on, no record refers to the file `names` of older versions.
        let old = path(directory, (0, 0));
        let is_unused = files.first().is_some_and(|(first, _)| *first < oldest);
        let mut gone = 0;
        if is_unused && old.exists() {
            fs::remove_file(&old).map_err(at(&old))?;
            gone += 1;
        }
        for (day, path) in files {
            if day < oldest {
                fs::remove_file(&path).map_err(at(&path))?;
                gone += 1;
            }
        }
        Ok(gone)
    }

    /// The name with this number in a directory; `None` for 0.
    ///
    /// # Errors
    /// The file cannot be read, or is too short.
    pub(crate) fn read(directory: &Path, number: u64) -> Result<Option<Vec<u8>>, StoreError> {
        if number == 0 {
            return Ok(None);
        }
        let (id, place) = split(number);
        let path = path(directory, id);
        let file = File::open(&path).map_err(at(&path))?;
        let mut length = [0];
        file.read_exact_at(&mut length, place).map_err(at(&path))?;
        let mut name = vec![0; usize::from(length[0])];
        file.read_exact_at(&mut name, place + 1)
            .map_err(at(&path))?;
        Ok(Some(name))
    }
}

/// Gives the names of blocks that are carried on into a day new numbers. Each file of names is read once.
pub(crate) struct Renewal<'a> {
    names: &'a mut Names,
    day: u64,
    files: HashMap<FileId, Vec<u8>>,
}

impl<'a> Renewal<'a> {
    pub(crate) fn new(names: &'a mut Names, day: u64) -> Self {
        Self {
            names,
            day,
            files: HashMap::new(),
        }
    }

    /// The number, in this day's file, of the name that has another one. A number of no name stays as it is.
    ///
    /// # Errors
    /// The day's file cannot be written.
    pub(crate) fn number(&mut self, number: u64) -> Result<u64, StoreError> {
        let (id, place) = split(number);
        if number == 0 || id.0 == self.day {
            return Ok(number);
        }
        let directory = &self.names.directory;
        let file = self.files.entry(id);
        let octets = file.or_insert_with(|| fs::read(path(directory, id)).unwrap_or_default());
        let rest = usize::try_from(place).ok().and_then(|at| octets.get(at..));
        let Some((length, rest)) = rest.and_then(<[u8]>::split_first) else {
            return Ok(number);
        };
        match rest.get(..usize::from(*length)) {
            Some(name) => self.names.number(self.day, name),
            None => Ok(number),
        }
    }
}
