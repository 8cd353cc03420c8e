//! Reads a source as blocks of records.

use std::io::{self, Read};

use crate::block::{Block, Sink};
use crate::fault::{Fault, Faults, OpenError};
use crate::format::{Format, HEAD_LEN, MAGIC_LEN, Walker};
use crate::source::{Compression, Pulled, Source};

/// Reads a capture file.
///
/// The source needs no buffer of its own, because it is read in large parts.
pub struct Reader<R> {
    source: Source<R>,
    walker: Walker,
    /// The bytes read but not yet processed, from offset `base`.
    carry: Vec<u8>,
    base: u64,
    /// The source has ended.
    drained: bool,
    /// There will be no more records.
    ended: bool,
    faults: Faults,
}

impl<R: Read> Reader<R> {
    /// Starts to read a source. Compression and format are detected by the first bytes, not by a name.
    ///
    /// This waits for 24 bytes of a pipe, or for 4,096 (or the end) if the format has no magic number: ERF, TSH and
    /// EtherPeek.
    ///
    /// # Errors
    /// The source cannot be read, or its compression or format is unknown.
    pub fn new(source: R) -> Result<Reader<R>, OpenError> {
        let mut source = Source::new(source)?;
        let mut head = Head::default();
        head.fill(&mut source, MAGIC_LEN)?;
        if !Walker::has_magic(&head.octets) {
            head.fill(&mut source, HEAD_LEN)?;
        }
        if head.octets.is_empty() {
            return Err(match (head.fault, source.compression()) {
                (Some(_), Some(compression)) => OpenError::Corrupt(compression),
                _ => OpenError::Empty,
            });
        }
        let (walker, header_len) = Walker::detect(&head.octets)?;
        let mut faults = Faults::default();
        if let Some(fault) = head.fault {
            faults.note(head.octets.len() as u64, fault);
        }
        head.octets.drain(..header_len);
        Ok(Reader {
            source,
            walker,
            carry: head.octets,
            base: header_len as u64,
            drained: head.drained,
            ended: false,
            faults,
        })
    }

    /// The file's format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.walker.format()
    }

    /// The file's compression.
    #[must_use]
    pub fn compression(&self) -> Option<Compression> {
        self.source.compression()
    }

    /// Bytes of the source that have been processed, before decompression. The bytes of a block count when it is read.
    #[must_use]
    pub fn consumed(&self) -> u64 {
        self.source.consumed()
    }

    /// The faults so far.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Replaces the contents of the block by the next records, at least one. False at the end of the file.
    ///
    /// A block is one read of the source, about 512 KiB, if that has a whole record. Records of a pipe are therefore
    /// returned as soon as they are written.
    ///
    /// # Errors
    /// The source cannot be read. All records before have been returned, and none follow. Faults of the contents are
    /// not errors, but [`faults`](Reader::faults).
    pub fn read_block(&mut self, block: &mut Block) -> io::Result<bool> {
        block.restart(&self.carry);
        self.carry.clear();
        // Offset in the block of the first byte that has not been processed.
        let mut used = 0;
        while !self.ended {
            let step = self.walker.walk(
                &block.buffer[..block.filled],
                used,
                &mut Sink {
                    records: &mut block.records,
                    faults: &mut self.faults,
                    base: self.base,
                },
            );
            used = step.used;
            self.ended |= step.ended;
            if self.ended || !block.records.is_empty() {
                break;
            }
            block.drop_front(used);
            self.base += used as u64;
            used = 0;
            if self.drained {
                self.finish(block.filled);
                break;
            }
            self.pull(block)?;
        }
        self.carry
            .extend_from_slice(&block.buffer[used..block.filled]);
        self.base += used as u64;
        Ok(!block.is_empty())
    }

    /// Adds bytes to the block, or notes the end of the source.
    fn pull(&mut self, block: &mut Block) -> io::Result<()> {
        match self.source.pull(block.room()) {
            Ok(Pulled::Octets(count)) => block.filled += count,
            Ok(Pulled::End) => self.drained = true,
            Ok(Pulled::Broken(fault)) => {
                self.drained = true;
                self.faults.note(self.base + block.filled as u64, fault);
            }
            Err(error) => {
                self.ended = true;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Ends the reading. `left` bytes of an incomplete record are left over.
    fn finish(&mut self, left: usize) {
        self.ended = true;
        // A corrupt stream has been counted already.
        let broken = [Fault::CompressionTruncated, Fault::CompressionCorrupt]
            .iter()
            .any(|&fault| self.faults.count(fault) > 0);
        if !broken && let Some(offset) = self.walker.unfinished() {
            self.faults.note(offset, Fault::Truncated);
        } else if !broken && left > 0 {
            self.faults.note(self.base, Fault::Truncated);
        }
    }
}

/// The first bytes of a file.
#[derive(Default)]
struct Head {
    octets: Vec<u8>,
    drained: bool,
    fault: Option<Fault>,
}

impl Head {
    /// Reads until there are `count` bytes or the file ends.
    fn fill<R: Read>(&mut self, source: &mut Source<R>, count: usize) -> io::Result<()> {
        let mut filled = self.octets.len();
        self.octets.resize(count, 0);
        while filled < count && !self.drained {
            match source.pull(&mut self.octets[filled..])? {
                Pulled::Octets(more) => filled += more,
                Pulled::End => self.drained = true,
                Pulled::Broken(fault) => {
                    self.drained = true;
                    self.fault = Some(fault);
                }
            }
        }
        self.octets.truncate(filled);
        Ok(())
    }
}

/// Time of the first packet of a file, in ns since 1970, for ordering files; `None` if there are no packets.
///
/// # Errors
/// The file cannot be read, or its format is unknown.
pub fn first_time<R: Read>(source: R) -> Result<Option<i64>, OpenError> {
    let mut reader = Reader::new(source)?;
    let mut block = Block::new();
    reader.read_block(&mut block)?;
    Ok(block.records().first().map(|record| record.time_ns))
}
