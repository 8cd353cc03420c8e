//! Reads a source as blocks of records.

use std::io::{self, Read};

use crate::block::{Block, Sink};
use crate::fault::{Fault, Faults, Gap, OpenError};
use crate::format::{Format, Found, HEAD_LEN, MAGIC_LEN, Statistics, Walker};
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
    /// Look for the next record after a fault.
    resync: bool,
    /// Offset of the faulty record, while the next one is looked for.
    seeking: Option<u64>,
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
            resync: true,
            seeking: None,
            faults,
        })
    }

    /// Whether to look for the next record after a fault in a pcap or pcapng file. This is the default; otherwise, the
    /// first such fault ends the reading.
    pub fn set_resync(&mut self, on: bool) {
        self.resync = on;
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

    /// What the capturing host counted, up to the last block that was read: only in pcapng files, mostly at their end.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.walker.statistics()
    }

    /// Reads no block of a pcapng file that begins at this offset or later. Has no effect on other formats.
    pub fn set_until(&mut self, offset: u64) {
        if let Some(walker) = self.walker.pcapng() {
            walker.until = offset;
        }
    }

    /// The state of a pcapng file after the last block that was read.
    pub fn division(&mut self) -> Option<Division> {
        let offset = self.base;
        let walker = self.walker.pcapng()?;
        Some(Division {
            preamble: walker.preamble(),
            end: walker.is_past(offset).then_some(offset),
            is_untimed: walker.untimed,
        })
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
            let again = match self.seeking {
                Some(fault) => self.seek(fault, block, &mut used),
                None => self.walk(block, &mut used),
            };
            if self.ended || !block.records.is_empty() {
                break;
            }
            if again {
                continue;
            }
            block.drop_front(used);
            self.base += used as u64;
            used = 0;
            if self.drained {
                self.finish(block, &mut used);
            } else {
                self.pull(block)?;
            }
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

    /// Finds the records from `used` on, up to a fault. True after a fault, if there is more to look at.
    fn walk(&mut self, block: &mut Block, used: &mut usize) -> bool {
        let step = self.walker.walk(
            &block.buffer[..block.filled],
            *used,
            &mut Sink {
                records: &mut block.records,
                faults: &mut self.faults,
                base: self.base,
                drained: self.drained,
            },
        );
        *used = step.used;
        if !step.ended {
            return false;
        }
        let offset = self.base + *used as u64;
        let is_past = (self.walker.pcapng()).is_some_and(|walker| walker.is_past(offset));
        if is_past || !self.resync || !self.walker.can_find() {
            self.ended = true;
            return false;
        }
        self.seeking = Some(self.base + *used as u64);
        true
    }

    /// Looks for the record after the fault at that offset. True if it was found.
    #[cold]
    fn seek(&mut self, fault: u64, block: &Block, used: &mut usize) -> bool {
        let octets = &block.buffer[..block.filled];
        match self.walker.find(octets, *used, self.drained) {
            Found::At(at) if self.base + at as u64 == fault => {
                *used = at + 1;
                true
            }
            Found::At(at) => {
                *used = at;
                self.resume(fault, at);
                true
            }
            Found::NotBefore(at) => {
                *used = at;
                false
            }
            Found::Nothing => {
                *used = block.filled;
                self.ended = true;
                false
            }
        }
    }

    /// The reading resumes at an offset in the block.
    fn resume(&mut self, fault: u64, at: usize) {
        self.seeking = None;
        self.faults.resumed(Gap {
            offset: fault,
            length: self.base + at as u64 - fault,
        });
    }

    /// The file has ended, and the block begins with an incomplete record. Its length may be wrong: if another record
    /// is found in it, the reading resumes there. Otherwise this ends the reading.
    fn finish(&mut self, block: &Block, used: &mut usize) {
        // A corrupt stream has been counted already.
        let broken = [Fault::CompressionTruncated, Fault::CompressionCorrupt]
            .iter()
            .any(|&fault| self.faults.count(fault) > 0);
        let unfinished = self.walker.unfinished();
        if self.resync && !broken && unfinished.is_none() && block.filled > 0 {
            let octets = &block.buffer[..block.filled];
            if let Found::At(at) = self.walker.find(octets, 1, true) {
                *used = at;
                self.faults.note(self.base, Fault::BadRecordLength);
                self.resume(self.base, at);
                return;
            }
        }
        self.ended = true;
        if broken {
            return;
        }
        if let Some(offset) = unfinished {
            self.faults.note(offset, Fault::Truncated);
        } else if block.filled > 0 {
            self.faults.note(self.base, Fault::Truncated);
        }
    }
}

/// What is needed to read a pcapng file from a place on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Division {
    /// Blocks that make the bytes after that place a file of their own: the section's header and its interfaces.
    pub preamble: Vec<u8>,
    /// Where the reading ended because of [`Reader::set_until`].
    pub end: Option<u64>,
    /// There were packets without time stamps, which have the time of the packet before.
    pub is_untimed: bool,
}

/// Offset of the first block of a pcapng file in a window from anywhere in it. `preamble` is that of a [`Division`].
/// `None` if there is none, or if the preamble is not that of a pcapng file.
#[must_use]
pub fn find_block(preamble: &[u8], window: &[u8]) -> Option<usize> {
    let mut reader = Reader::new(preamble).ok()?;
    reader.walker.pcapng()?;
    reader.read_block(&mut Block::new()).ok()?;
    // As if the file ended there: a length that points beyond the window is as wrong as any.
    match reader.walker.find(window, 0, true) {
        Found::At(at) => Some(at),
        Found::NotBefore(_) | Found::Nothing => None,
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
