//! A block of a file and the packets in it.

use wire::link::LinkType;

use crate::fault::{Fault, Faults};

/// The most bytes of the file read at once, and the length of a block unless a record is longer.
///
/// Long, because threads hand over connections once a block. Short enough that a block, its records and the segments
/// decoded from it stay in the cache of a processor core.
const READ_LEN: usize = 512 << 10;

/// The bytes of a part of a file, and the packets' places in them.
///
/// Reuse it: it keeps its memory between calls of [`Reader::read_block`].
///
/// [`Reader::read_block`]: crate::Reader::read_block
#[derive(Debug, Default)]
pub struct Block {
    pub(crate) buffer: Vec<u8>,
    /// Length of the file's bytes in the buffer.
    pub(crate) filled: usize,
    pub(crate) records: Vec<Record>,
}

/// One packet of a [`Block`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    pub(crate) start: u32,
    /// Captured length in bytes. In a few old files it is greater than [`length`](Record::length).
    pub captured: u32,
    /// Length of the packet as sent, in bytes.
    pub length: u32,
    /// When it was captured, in ns since 1970.
    pub time_ns: i64,
    /// Its link type; [`UNKNOWN_LINK`](crate::UNKNOWN_LINK) if there is no number for it.
    pub link: LinkType,
    /// The interface, as the file numbers them (in pcapng, within a section); 0 if the format has none.
    pub interface: u16,
    /// Where its record begins in the file, after decompression.
    pub offset: u64,
}

impl Block {
    /// A block that holds nothing yet.
    #[must_use]
    pub fn new() -> Block {
        Block::default()
    }

    /// The packets, in the order of the file.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The captured bytes of a packet of this block.
    ///
    /// # Panics
    /// The record is of another block, or of earlier contents of this one, and its range is beyond the present
    /// contents.
    #[must_use]
    #[inline]
    pub fn bytes(&self, record: &Record) -> &[u8] {
        let start = record.start as usize;
        &self.buffer[start..start + record.captured as usize]
    }

    /// Whether there is no packet in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Removes all packets, to add those of a source that is no file.
    pub fn clear(&mut self) {
        self.records.clear();
        self.filled = 0;
    }

    /// Bytes of all packets that were added.
    #[must_use]
    pub fn length(&self) -> usize {
        self.filled
    }

    /// Adds a packet whose captured bytes are in `pieces`: `length` bytes long as sent, captured at `time_ns`. False if
    /// the block is full, at 4 GiB.
    pub fn push(&mut self, time_ns: i64, length: u32, link: LinkType, pieces: &[&[u8]]) -> bool {
        let captured: usize = pieces.iter().map(|piece| piece.len()).sum();
        let start = self.filled;
        let Some(end) = start.checked_add(captured) else {
            return false;
        };
        let (Ok(place), Ok(_)) = (u32::try_from(start), u32::try_from(end)) else {
            return false;
        };
        if end > self.buffer.len() {
            self.buffer.resize(READ_LEN.max(2 * end), 0);
        }
        let mut at = start;
        for piece in pieces {
            self.buffer[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        }
        self.filled = end;
        self.records.push(Record {
            start: place,
            captured: captured as u32,
            length,
            time_ns,
            link,
            interface: 0,
            offset: start as u64,
        });
        true
    }

    /// Starts a block with the rest of the last one.
    pub(crate) fn restart(&mut self, carry: &[u8]) {
        self.records.clear();
        // The rest was really in the file, so allocating twice its length is safe.
        let room = READ_LEN.max(2 * carry.len());
        if self.buffer.len() < room {
            // Zeroed memory from the allocator costs nothing until it is written.
            self.buffer = vec![0; room];
        }
        self.buffer[..carry.len()].copy_from_slice(carry);
        self.filled = carry.len();
    }

    /// Removes the first `count` bytes. There must be no records.
    pub(crate) fn drop_front(&mut self, count: usize) {
        debug_assert!(self.records.is_empty());
        self.buffer.copy_within(count..self.filled, 0);
        self.filled -= count;
    }

    /// The room for the next bytes. A full buffer is doubled first.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.filled == self.buffer.len() {
            self.buffer.resize(2 * self.filled, 0);
        }
        let end = self.buffer.len().min(self.filled + READ_LEN);
        &mut self.buffer[self.filled..end]
    }
}

/// The records and faults found in a block's bytes.
pub(crate) struct Sink<'a> {
    pub(crate) records: &'a mut Vec<Record>,
    pub(crate) faults: &'a mut Faults,
    /// Offset of the bytes in the file.
    pub(crate) base: u64,
    /// No more bytes follow.
    pub(crate) drained: bool,
}

impl Sink<'_> {
    /// Counts a fault at that offset in the bytes.
    #[cold]
    #[inline(never)]
    pub(crate) fn fault(&mut self, at: usize, fault: Fault) {
        self.faults.note(self.base + at as u64, fault);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_put_together_from_pieces() {
        let mut block = Block::new();
        let long = vec![7; 2 * READ_LEN];
        for round in 0..2 {
            block.clear();
            assert!(block.is_empty());
            assert!(block.push(round, 60, LinkType::ETHERNET, &[b"ab", b"", b"c"]));
            assert!(block.push(2, 9, LinkType::RAW, &[]));
            assert!(block.push(3, u32::MAX, LinkType::RAW, &[&long]));
            let [first, second, third] = block.records() else {
                panic!("three packets");
            };
            assert_eq!((block.bytes(first), first.length), (&b"abc"[..], 60));
            assert_eq!((first.time_ns, first.link), (round, LinkType::ETHERNET));
            assert_eq!((block.bytes(second), second.captured), (&[][..], 0));
            assert_eq!(block.bytes(third), long);
            assert_eq!(block.length(), 3 + long.len());
        }
    }
}
