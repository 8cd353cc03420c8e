//! Reads a source as blocks of records.

use std::io::{self, Read};

use crate::block::{Block, Sink};
use crate::fault::{Fault, Faults, OpenError};
use crate::format::{Format, HEAD_LEN, MAGIC_LEN, Walker};
use crate::source::{Compression, Pulled, Source};

/// Reads a capture file.
///
/// The source is read in large parts, and needs no buffer of its own.
pub struct Reader<R> {
    source: Source<R>,
    walker: Walker,
    /// The octets of the file read but not yet dealt with, from `base` on.
    carry: Vec<u8>,
    base: u64,
    /// The source has no more.
    drained: bool,
    /// There will be no more records.
    ended: bool,
    faults: Faults,
}

impl<R: Read> Reader<R> {
    /// Begins to read: tells compression and format by the first octets, not by a name.
    ///
    /// From a pipe, 24 octets are waited for, or 4,096 (or the end) where the format has no magic number: ERF, TSH and
    /// EtherPeek.
    ///
    /// # Errors
    /// The source cannot be read, or it is of no compression or format known here.
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

    /// How many octets of the source have been dealt with, before decompression; those of a block count once it is
    /// read.
    #[must_use]
    pub fn consumed(&self) -> u64 {
        self.source.consumed()
    }

    /// What has been found wrong so far.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Replaces what the block holds by the next records, at least one; false at the end of the file.
    ///
    /// A block comes from one read of the source, about 512 KiB, as long as a whole record was in it: from a pipe,
    /// records come as they are written.
    ///
    /// # Errors
    /// The source cannot be read; the records before that have been given, and nothing follows. What is wrong with the
    /// octets is no error but one of the [`faults`](Reader::faults).
    pub fn read_block(&mut self, block: &mut Block) -> io::Result<bool> {
        block.restart(&self.carry);
        self.carry.clear();
        // Where in the block the first octet not dealt with is.
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

    /// Adds octets to the block, or learns that there are no more.
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

    /// Ends the reading; `left` octets of a record that is not whole are left over.
    fn finish(&mut self, left: usize) {
        self.ended = true;
        // A broken stream has been counted as such.
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

/// The first octets of a file.
#[derive(Default)]
struct Head {
    octets: Vec<u8>,
    drained: bool,
    fault: Option<Fault>,
}

impl Head {
    /// Reads on until there are `count` octets or the file ends.
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

/// When the first packet of a file was captured, in ns since 1970, to order files by; `None` when there is none.
///
/// # Errors
/// The file cannot be read or is of no known format.
pub fn first_time<R: Read>(source: R) -> Result<Option<i64>, OpenError> {
    let mut reader = Reader::new(source)?;
    let mut block = Block::new();
    reader.read_block(&mut block)?;
    Ok(block.records().first().map(|record| record.time_ns))
}
