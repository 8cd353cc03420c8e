//! Reads a source as records.

use std::io::{self, Read};

use super::octets::Octets;
use super::parse;
use super::record::{Record, Time};
use super::{HEADER_LEN, kind};
use crate::fault::OpenError;
use crate::source::{Compression, Pulled, Source};

/// Limit of a record's length, in bytes; a table of 65,535 entries of some hundred bytes each is
/// well below it.
pub const RECORD_LEN_MAX: usize = 64 << 20;

/// Bytes read ahead.
const AHEAD: usize = 256 << 10;

/// A fault in a file, and its position.
#[derive(Debug, thiserror::Error)]
#[error("at octet {offset}: {what}")]
pub struct Fault {
    /// Offset of the record in the file, in bytes after decompression.
    pub offset: u64,
    /// The fault.
    pub what: What,
}

/// A fault in a record.
#[derive(Debug, thiserror::Error)]
pub enum What {
    /// Its lengths contradict each other; the next record is read.
    #[error("a record of type {kind}, subtype {subtype} that contradicts itself")]
    Malformed {
        /// Type.
        kind: u16,
        /// Subtype.
        subtype: u16,
    },
    /// It claims to be longer than [`RECORD_LEN_MAX`]; nothing more is read.
    #[error("a record of {0} octets, which is longer than any")]
    TooLong(u32),
    /// The file ends within this record.
    #[error("the file ends inside a record")]
    Truncated,
    /// The compressed data is truncated or corrupt; nothing more is read.
    #[error("{0}")]
    Compression(crate::Fault),
    /// The source cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A file of records that is being read.
///
/// The source is read in large parts, and needs no buffer of its own.
pub struct Reader<R> {
    source: Source<R>,
    /// Bytes of the file; those from `start` to `end` are still to be parsed.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Where `start` is in the file.
    offset: u64,
    is_ended: bool,
}

/// The common header (RFC 6396, section 2).
struct Header {
    time_s: u32,
    kind: u16,
    subtype: u16,
    len: u32,
}

impl<R: Read> Reader<R> {
    /// Opens a file, and detects its compression by the first bytes. An empty file is valid.
    ///
    /// # Errors
    /// The source cannot be read, or is compressed in a way that is not known here.
    pub fn open(source: R) -> Result<Self, OpenError> {
        Ok(Reader {
            source: Source::new(source)?,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            is_ended: false,
        })
    }

    /// How the file is compressed.
    #[must_use]
    pub fn compression(&self) -> Option<Compression> {
        self.source.compression()
    }

    /// Bytes read from the source before decompression, which is the progress in the file.
    #[must_use]
    pub fn consumed(&self) -> u64 {
        self.source.consumed()
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// A fault of one record, after which the next call goes on behind it; or one that ends the file, after which there
    /// is no record any more.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Fault> {
        let offset = self.offset;
        let fault = |what| Fault { offset, what };
        let header = match self.header() {
            Ok(Some(header)) => header,
            Ok(None) => return Ok(None),
            Err(what) => {
                self.is_ended = true;
                return Err(fault(what));
            }
        };
        if let Err(what) = self.take(HEADER_LEN + header.len as usize) {
            self.is_ended = true;
            return Err(fault(what));
        }
        let whole = HEADER_LEN + header.len as usize;
        let mut octets = Octets(&self.buffer[self.start + HEADER_LEN..self.start + whole]);
        self.start += whole;
        self.offset += whole as u64;
        let Header {
            time_s,
            kind,
            subtype,
            ..
        } = header;
        // RFC 6396, section 3.
        let us = (kind == kind::BGP4MP_ET).then(|| octets.u32());
        match (us, parse::body(kind, subtype, octets.0)) {
            (None | Some(Some(_)), Some(body)) => Ok(Some(Record {
                offset,
                time: Time {
                    s: time_s,
                    us: us.flatten(),
                },
                body,
            })),
            _ => Err(fault(What::Malformed { kind, subtype })),
        }
    }

    /// The header of the next record, which stays.
    fn header(&mut self) -> Result<Option<Header>, What> {
        if self.is_ended || !self.has_more()? {
            return Ok(None);
        }
        self.take(HEADER_LEN)?;
        let mut octets = Octets(&self.buffer[self.start..self.start + HEADER_LEN]);
        let header = || -> Option<Header> {
            Some(Header {
                time_s: octets.u32()?,
                kind: octets.u16()?,
                subtype: octets.u16()?,
                len: octets.u32()?,
            })
        }();
        match header {
            Some(header) if header.len as usize > RECORD_LEN_MAX => Err(What::TooLong(header.len)),
            header => Ok(header),
        }
    }

    fn has_more(&mut self) -> Result<bool, What> {
        Ok(self.start < self.end || self.pull(AHEAD)?)
    }

    /// Fills the buffer up to this many bytes.
    fn take(&mut self, count: usize) -> Result<(), What> {
        while self.end - self.start < count {
            if !self.pull(count.max(AHEAD))? {
                return Err(What::Truncated);
            }
        }
        Ok(())
    }

    /// Reads on, into a buffer that has room for `room` octets or at least twice of what is there:
    /// memory is allocated for data that is present, never for a length that the file claims. False
    /// at the end.
    fn pull(&mut self, room: usize) -> Result<bool, What> {
        if self.start > 0 && self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            let len = room.min(2 * self.end).max(AHEAD);
            self.buffer.resize(len, 0);
        }
        match self.source.pull(&mut self.buffer[self.end..])? {
            Pulled::Octets(count) => {
                self.end += count;
                Ok(true)
            }
            Pulled::End => Ok(false),
            Pulled::Broken(fault) => Err(What::Compression(fault)),
        }
    }
}
