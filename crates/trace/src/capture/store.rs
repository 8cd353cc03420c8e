//! Keeps finished connections, frozen: in memory, and beyond a limit in an unlinked temporary file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process;

use crate::analyzer::Finished;

/// The place of a frozen connection.
#[derive(Debug)]
enum Place {
    Memory(Box<[u8]>),
    File { start: u64, length: u32 },
}

/// Finished connections, in the order of their first packets once they are sorted.
#[derive(Debug)]
pub(super) struct Store {
    /// Number of the first packet, and the rest.
    connections: Vec<(u64, Place)>,
    /// How many of them are in the file; these are the first ones until all are sorted.
    spilled: usize,
    /// Bytes in memory.
    held: u64,
    /// Limit of bytes in memory.
    limit: u64,
    file: Option<File>,
    /// Bytes in the file.
    written: u64,
}

impl Store {
    pub(super) fn new(limit: u64) -> Store {
        Store {
            connections: Vec::new(),
            spilled: 0,
            held: 0,
            limit,
            file: None,
            written: 0,
        }
    }

    /// Number of connections.
    pub(super) fn len(&self) -> usize {
        self.connections.len()
    }

    /// Bytes in the file.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Adds connections.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn push(&mut self, finished: Vec<Finished>) -> io::Result<()> {
        for connection in finished {
            self.held += connection.octets.len() as u64;
            let place = Place::Memory(connection.octets);
            self.connections.push((connection.first_packet, place));
            if self.held > self.limit {
                self.spill()?;
            }
        }
        Ok(())
    }

    #[cold]
    fn spill(&mut self) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => unnamed_file()?,
        };
        let mut out = BufWriter::with_capacity(1 << 20, file);
        for (_, place) in &mut self.connections[self.spilled..] {
            if let Place::Memory(octets) = place {
                out.write_all(octets)?;
                let (start, length) = (self.written, octets.len() as u32);
                self.written += u64::from(length);
                *place = Place::File { start, length };
            }
        }
        self.file = Some(out.into_inner().map_err(io::IntoInnerError::into_error)?);
        self.spilled = self.connections.len();
        self.held = 0;
        Ok(())
    }

    /// Sorts them by their first packets.
    pub(super) fn sort(&mut self) {
        self.connections
            .sort_unstable_by_key(|connection| connection.0);
        self.spilled = 0;
    }

    /// Number of the first packet of the `at`th.
    pub(super) fn first_packet(&self, at: usize) -> u64 {
        self.connections[at].0
    }

    /// The bytes of the `at`th. They are read into `room` if they are in the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn get<'a>(&'a self, at: usize, room: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        match &self.connections[at].1 {
            Place::Memory(octets) => Ok(octets),
            &Place::File { start, length } => {
                room.resize(length as usize, 0);
                if let Some(file) = &self.file {
                    file.read_exact_at(room, start)?;
                }
                Ok(room)
            }
        }
    }
}

/// An unlinked file: only this process can use it, and it disappears when the process ends.
fn unnamed_file() -> io::Result<File> {
    let mut attempt = 0;
    loop {
        let name = format!("headend-trace-{}-{attempt}", process::id());
        let path: PathBuf = std::env::temp_dir().join(name);
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        match opened {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => {
                attempt += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_to_a_file_comes_back_in_order() {
        let mut store = Store::new(100);
        for number in (0..50u8).rev() {
            let finished = Finished {
                first_packet: u64::from(number),
                octets: vec![number; 7 + usize::from(number)].into(),
            };
            store.push(vec![finished]).unwrap();
        }
        assert!(store.written() > 0 && store.held > 0);
        store.sort();
        let mut room = Vec::new();
        for number in 0..50u8 {
            let octets = store.get(usize::from(number), &mut room).unwrap();
            assert_eq!(octets, vec![number; 7 + usize::from(number)]);
        }
    }
}
