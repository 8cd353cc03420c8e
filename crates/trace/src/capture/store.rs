//! Keeps finished connections, frozen: in memory, and beyond a limit in an unlinked temporary file.

use std::fs::File;
use std::io;

use super::os;
use crate::analyzer::Finished;
use crate::frozen::shelf::{self, LENGTH, Shelf, Ticket};

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
    /// The place after those in the file.
    written: u64,
    /// Bytes in the buffer, and in the file.
    buffered: u64,
    spilled: u64,
    /// Beyond the limit, forget the oldest connections.
    newest_only: bool,
    /// Connections that were forgotten.
    forgotten: u64,
}

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
            buffered: 0,
            spilled: 0,
            newest_only: false,
            forgotten: 0,
        }
    }

    /// A store that never writes a file: beyond the limit, it forgets the connections that finished first.
    pub(super) fn of_newest(limit: u64) -> Store {
        Store {
            newest_only: true,
            ..Store::new(limit)
        }
    }

    /// Number of connections that were forgotten.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Number of connections.
    pub(super) fn len(&self) -> usize {
        self.connections.len()
    }

    /// Bytes in the file.
    pub(super) fn spilled(&self) -> u64 {
        self.spilled
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
            if last.is_none_or(|(start, piece)| {
                let next = *start + piece.len() as u64 == self.end;
                !next || piece.capacity() - piece.len() < length
            }) {
                self.buffer
                    .push((self.end, Vec::with_capacity(PIECE.max(length))));
            }
            if let Some((_, piece)) = self.buffer.last_mut() {
                piece.extend_from_slice(&(connection.octets.len() as u32).to_le_bytes());
                piece.extend_from_slice(&connection.octets);
            }
            self.end += length as u64;
            self.buffered += length as u64;
            self.spill_beyond_limit()?;
        }
        Ok(())
    }

    /// Adds `count` connections where they are: the number of the first packet of each, and its entry.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn adopt(
        &mut self,
        count: usize,
        entries: impl Iterator<Item = (u64, Ticket)>,
        shelf: Shelf,
    ) -> io::Result<()> {
        let (pieces, place) = shelf.into_pieces(self.end);
        let Some((start, last)) = pieces.last() else {
            return Ok(());
        };
        self.end = start + last.len() as u64;
        self.buffered += (pieces.iter())
            .map(|(_, piece)| piece.len() as u64)
            .sum::<u64>();
        self.buffer.extend(pieces);
        self.connections.reserve_exact(count);
        self.connections
            .extend(entries.map(|(first_packet, ticket)| (first_packet, place(ticket))));
        // These are in memory already, and as many as the analyser's own limit permits.
        match self.newest_only {
            true => Ok(()),
            false => self.spill_beyond_limit(),
        }
    }

    fn spill_beyond_limit(&mut self) -> io::Result<()> {
        let index = size_of_val(self.connections.as_slice()) as u64;
        let limit = self.limit.saturating_sub(index);
        let limit = limit.max(self.limit.min(BUFFER_MIN));
        if self.buffered > limit {
            match self.newest_only {
                true => self.forget_oldest(limit - limit / 8),
                false => self.spill()?,
            }
        }
        Ok(())
    }

    /// Forgets whole pieces until no more than `target` bytes are left. An eighth of the limit at a time, so that the walk
    /// over the list of connections is rare.
    #[cold]
    fn forget_oldest(&mut self, target: u64) {
        let mut left = self.buffered;
        let length = |piece: &(u64, Vec<u8>)| piece.1.len() as u64;
        let old = self.buffer.iter().take_while(|piece| {
            let old = left > target;
            left -= if old { length(piece) } else { 0 };
            old
        });
        // The newest connection stays, however long it is.
        let count = old.count().min(self.buffer.len().saturating_sub(1));
        self.buffered -= self
            .buffer
            .drain(..count)
            .map(|piece| length(&piece))
            .sum::<u64>();
        let first = self.buffer.first().map_or(self.end, |piece| piece.0);
        let before = self.connections.len();
        self.connections.retain(|(_, place)| *place >= first);
        self.forgotten += (before - self.connections.len()) as u64;
    }

    #[cold]
    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(os::unnamed_file()?),
        };
        for (start, piece) in self.buffer.drain(..) {
            os::write_all_at(file, &piece, start)?;
        }
        self.written = self.end;
        self.spilled += std::mem::take(&mut self.buffered);
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
            return Ok(shelf::entry(&piece[(start - place) as usize..]));
        }
        let Some(file) = &self.file else {
            return Ok(&[]);
        };
        // One read gets most connections.
        room.resize(MOST.min((self.written - start) as usize), 0);
        os::read_exact_at(file, room, start)?;
        let end = LENGTH + length_of(room);
        let there = room.len();
        room.resize(end, 0);
        if there < end {
            os::read_exact_at(file, &mut room[there..], start + there as u64)?;
        }
        Ok(&room[LENGTH..])
    }
}

/// The length at the start of these bytes.
fn length_of(octets: &[u8]) -> usize {
    let length = octets.first_chunk().copied().unwrap_or_default();
    u32::from_le_bytes(length) as usize
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
        assert!(store.spilled() > 0 && !store.buffer.is_empty());
        store.sort();
        let mut room = Vec::new();
        for number in 0..50u8 {
            let octets = store.get(usize::from(number), &mut room).unwrap();
            assert_eq!(octets, vec![number; 7 + 100 * usize::from(number)]);
        }
    }

    #[test]
    fn what_was_shelved_is_kept_among_the_others() {
        for limit in [100, u64::MAX] {
            let mut store = Store::new(limit);
            let finished = |number: u8| Finished {
                first_packet: u64::from(number),
                octets: vec![number; 10].into(),
            };
            store.push(vec![finished(3)]).unwrap();
            let mut shelf = Shelf::default();
            let lengths = [100, 100_000, 7, 0];
            let entries: Vec<(u64, Ticket)> = (lengths.into_iter().zip(4..))
                .map(|(length, number)| (number, shelf.put(&vec![number as u8; length])))
                .collect();
            store.adopt(4, entries.into_iter(), shelf).unwrap();
            store.push(vec![finished(2)]).unwrap();
            store.sort();
            assert_eq!(store.spilled() > 0, limit == 100);
            let mut room = Vec::new();
            for (at, length) in [10, 10, 100, 100_000, 7, 0].into_iter().enumerate() {
                let octets = store.get(at, &mut room).unwrap();
                assert_eq!(octets, vec![at as u8 + 2; length]);
            }
        }
    }

    #[test]
    fn a_store_of_the_newest_forgets_the_oldest_and_counts_them() {
        let mut store = Store::of_newest(2 << 20);
        for number in 0..5_000_u64 {
            let octets = vec![number as u8; 1_000].into();
            let finished = Finished {
                first_packet: number,
                octets,
            };
            store.push(vec![finished]).unwrap();
        }
        let left = store.len() as u64;
        assert_eq!((left + store.forgotten(), store.spilled()), (5_000, 0));
        assert!((1_000..2_100).contains(&left), "{left}");
        store.sort();
        let mut room = Vec::new();
        for at in 0..left {
            let number = store.first_packet(at as usize);
            assert_eq!(number, at + store.forgotten());
            let octets = store.get(at as usize, &mut room).unwrap();
            assert_eq!(octets, vec![number as u8; 1_000]);
        }
    }
}
