//! Output files that grow as packets are read. There may be far more files than descriptors: each is opened for a write
//! and the longest-open ones are closed.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use trace::xplot::{FileId, Sink};

use super::written::Written;

/// Limit of open files.
const OPEN_MAX: usize = 200;

/// A file by its name.
#[derive(Debug)]
struct Named {
    /// Empty once the file is complete.
    name: String,
    file: Option<File>,
}

/// The files. After the first error, nothing more is written.
#[derive(Debug, Default)]
pub(super) struct Files {
    directory: Option<PathBuf>,
    files: Vec<Named>,
    free: Vec<u32>,
    /// Those that are open, in the order they were opened.
    open: VecDeque<u32>,
    /// The files that are complete.
    written: Written,
    wrong: Option<(PathBuf, io::Error)>,
}

impl Files {
    pub(super) fn new(directory: Option<PathBuf>) -> Files {
        Files {
            directory,
            ..Files::default()
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        match &self.directory {
            Some(directory) => directory.join(name),
            None => PathBuf::from(name),
        }
    }

    fn fail(&mut self, name: &str, error: io::Error) {
        if self.wrong.is_none() {
            self.wrong = Some((self.path(name), error));
        }
    }

    /// The files written, including those that have not been closed.
    pub(super) fn written(&mut self) -> Written {
        let mut written = std::mem::take(&mut self.written);
        if self.wrong.is_none() {
            let open = self.files.iter().filter(|named| !named.name.is_empty());
            open.for_each(|named| written.add(&named.name));
        }
        written
    }

    /// The first error.
    pub(super) fn wrong(&mut self) -> Option<(PathBuf, io::Error)> {
        self.wrong.take()
    }

    /// The file of that number, opened; `None` after an error.
    fn get(&mut self, id: u32) -> Option<&File> {
        let at = id as usize;
        if self.wrong.is_some() {
            return None;
        }
        if self.files.get(at)?.file.is_none() {
            let path = self.path(&self.files[at].name);
            match OpenOptions::new().write(true).open(&path) {
                Ok(file) => self.keep(id, file),
                Err(error) => {
                    self.wrong = Some((path, error));
                    return None;
                }
            }
        }
        self.files[at].file.as_ref()
    }

    fn keep(&mut self, id: u32, file: File) {
        while self.open.len() >= OPEN_MAX
            && let Some(oldest) = self.open.pop_front()
        {
            self.files[oldest as usize].file = None;
        }
        self.files[id as usize].file = Some(file);
        self.open.push_back(id);
    }

    /// Writes bytes at an offset. Skipped bytes read as zeros.
    pub(super) fn write_at(&mut self, id: FileId, octets: &[u8], offset: u64) {
        if let Some(file) = self.get(id.0)
            && let Err(error) = file.write_all_at(octets, offset)
        {
            let name = self.files[id.0 as usize].name.clone();
            self.fail(&name, error);
        }
    }
}

impl Sink for Files {
    fn open(&mut self, name: &str) -> FileId {
        let named = Named {
            name: name.to_owned(),
            file: None,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.files[id as usize] = named;
                id
            }
            None => {
                self.files.push(named);
                (self.files.len() - 1) as u32
            }
        };
        if self.wrong.is_none() {
            match File::create(self.path(name)) {
                Ok(file) => self.keep(id, file),
                Err(error) => self.fail(name, error),
            }
        }
        FileId(id)
    }

    fn write(&mut self, id: FileId, octets: &[u8]) {
        use std::io::{Seek, SeekFrom};
        if let Some(mut file) = self.get(id.0) {
            // A file that was opened again is positioned at its beginning.
            let wrote = file
                .seek(SeekFrom::End(0))
                .and_then(|_| file.write_all(octets));
            if let Err(error) = wrote {
                let name = self.files[id.0 as usize].name.clone();
                self.fail(&name, error);
            }
        }
    }

    fn close(&mut self, id: FileId) {
        if let Some(named) = self.files.get_mut(id.0 as usize) {
            if named.file.take().is_some() {
                self.open.retain(|&open| open != id.0);
            }
            if !named.name.is_empty() && self.wrong.is_none() {
                self.written.add(&named.name);
            }
            named.name.clear();
            self.free.push(id.0);
        }
    }

    fn discard(&mut self, id: FileId) {
        if let Some(named) = self.files.get_mut(id.0 as usize) {
            let name = std::mem::take(&mut named.name);
            // It may never have been created.
            let _ = std::fs::remove_file(self.path(&name));
        }
        self.close(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::TemporaryDirectory;

    #[test]
    fn more_files_than_descriptors_are_written_in_turn() {
        let directory = TemporaryDirectory::new();
        let mut files = Files::new(Some(directory.path.clone()));
        let ids: Vec<FileId> = (0..2 * OPEN_MAX)
            .map(|number| files.open(&number.to_string()))
            .collect();
        for round in 0..3u8 {
            for &id in &ids {
                files.write(id, &[round; 3]);
            }
        }
        files.write_at(ids[1], b"x", 12);
        files.discard(ids[0]);
        for &id in &ids[1..] {
            files.close(id);
        }
        assert!(files.wrong().is_none());
        assert_eq!(
            std::fs::read_dir(&directory.path).unwrap().count(),
            ids.len() - 1
        );
        let content = std::fs::read(directory.path.join("399")).unwrap();
        assert_eq!(content, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
        let content = std::fs::read(directory.path.join("1")).unwrap();
        assert_eq!(content, b"\0\0\0\x01\x01\x01\x02\x02\x02\0\0\0x");
    }

    #[test]
    fn what_cannot_be_written_is_told_once() {
        let mut files = Files::new(Some("/nonexistent/directory".into()));
        let id = files.open("x");
        files.write(id, b"y");
        files.close(id);
        let (path, _) = files.wrong().unwrap();
        assert_eq!(path, PathBuf::from("/nonexistent/directory/x"));
        assert!(files.wrong().is_none());
    }
}
