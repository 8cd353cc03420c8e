//! Keeps finished connections, frozen: in memory, and beyond a limit in an unlinked temporary file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process;

use crate::analyzer::Finished;

/// Finished connections, in the order of their first packets once they are sorted.
///
/// For each connection, 16 bytes stay in memory: the number of its first packet and its place.
#[derive(Debug)]
pub(super) struct Store {
    /// Number of the first packet, and where in the file and then the buffer its length and its bytes are.
    connections: Vec<(u64, u64)>,
    /// Bytes that are not in the file yet, each piece with its place in the file.
    buffer: Vec<(u64, Vec<u8>)>,
    /// The place after them.
    end: u64,
    /// Limit of bytes in memory.
    limit: u64,
    file: Option<File>,
    /// Bytes in the file.
    written: u64,
}

/// Bytes of a connection's length.
const LENGTH: usize = 4;

/// Bytes that most connections fit in, their length included.
const MOST: usize = 512;

/// Bytes of the buffer, at least.
const BUFFER_MIN: u64 = 1 << 20;

/// Bytes of a piece of the buffer: few enough that pieces reuse the memory of the connections before them.
const PIECE: usize = 1 << 16;

impl Store {
    pub(super) fn new(limit: u64) -> Store {
        Store {
            connections: Vec::new(),
            buffer: Vec::new(),
            end: 0,
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
            self.connections.push((connection.first_packet, self.end));
            let length = LENGTH + connection.octets.len();
            let last = self.buffer.last();
            if last.is_none_or(|(_, piece)| piece.capacity() - piece.len() < length) {
                self.buffer
                    .push((self.end, Vec::with_capacity(PIECE.max(length))));
            }
            if let Some((_, piece)) = self.buffer.last_mut() {
                piece.extend_from_slice(&(connection.octets.len() as u32).to_le_bytes());
                piece.extend_from_slice(&connection.octets);
            }
            self.end += length as u64;
            let index = size_of_val(self.connections.as_slice()) as u64;
            let limit = self.limit.saturating_sub(index);
            if self.end - self.written > limit.max(self.limit.min(BUFFER_MIN)) {
                self.spill()?;
            }
        }
        Ok(())
    }

    #[cold]
    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(unnamed_file()?),
        };
        for (_, piece) in self.buffer.drain(..) {
            file.write_all(&piece)?;
        }
        self.written = self.end;
        Ok(())
    }

    /// Sorts them by their first packets.
    pub(super) fn sort(&mut self) {
        self.connections
            .sort_unstable_by_key(|connection| connection.0);
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
        let start = self.connections[at].1;
        if start >= self.written {
            let piece = self.buffer.partition_point(|(place, _)| *place <= start) - 1;
            let (place, piece) = &self.buffer[piece];
            let (length, octets) = piece[(start - place) as usize..].split_at(LENGTH);
            return Ok(&octets[..length_of(length)]);
        }
        let Some(file) = &self.file else {
            return Ok(&[]);
        };
        // One read gets most connections.
        room.resize(MOST.min((self.written - start) as usize), 0);
        file.read_exact_at(room, start)?;
        let end = LENGTH + length_of(room);
        let there = room.len();
        room.resize(end, 0);
        if there < end {
            file.read_exact_at(&mut room[there..], start + there as u64)?;
        }
        Ok(&room[LENGTH..])
    }
}

/// The length at the start of these bytes.
fn length_of(octets: &[u8]) -> usize {
    let length = octets.first_chunk().copied().unwrap_or_default();
    u32::from_le_bytes(length) as usize
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
                octets: vec![number; 7 + 100 * usize::from(number)].into(),
            };
            store.push(vec![finished]).unwrap();
        }
        assert!(store.written() > 0 && !store.buffer.is_empty());
        store.sort();
        let mut room = Vec::new();
        for number in 0..50u8 {
            let octets = store.get(usize::from(number), &mut room).unwrap();
            assert_eq!(octets, vec![number; 7 + 100 * usize::from(number)]);
        }
    }
}
