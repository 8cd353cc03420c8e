//! Blocks of bytes with their checksums.
//!
//! ```text
//! magic "\x89HEPART\n"                                     8 octets
//! then blocks: kind 1 octet | length 4 octets | body | XXH64 8 octets
//! ```
//! Numbers are little-endian. The hash is of kind, length and body, seeded with the hash of the block before, so that
//! no block can be taken out, doubled or moved either. A block of kind [`Kind::End`] is the last, and nothing follows.

use std::io::{self, BufReader, Read, Write};

use twox_hash::XxHash64;

const MAGIC: &[u8; 8] = b"\x89HEPART\n";

/// Longest body: a connection with as many segments in flight as are kept takes a tenth of it.
const BODY_MAX: usize = 1 << 28;

/// Room kept from block to block.
const KEPT: usize = 1 << 18;

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Header = 1,
    Records = 2,
    End = 3,
}

const KINDS: [Kind; 3] = [Kind::Header, Kind::Records, Kind::End];

/// Bytes of kind and length.
const HEAD: usize = 5;

pub(super) struct Writer<W> {
    out: W,
    hash: u64,
    frame: Vec<u8>,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(mut out: W) -> io::Result<Writer<W>> {
        out.write_all(MAGIC)?;
        Ok(Writer {
            out,
            hash: 0,
            frame: Vec::new(),
        })
    }

    pub(super) fn frame(&mut self, kind: Kind, body: &[u8]) -> io::Result<()> {
        if body.len() > BODY_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "this connection is too large for a part",
            ));
        }
        self.frame.clear();
        self.frame.push(kind as u8);
        self.frame
            .extend_from_slice(&(body.len() as u32).to_le_bytes());
        self.frame.extend_from_slice(body);
        self.hash = XxHash64::oneshot(self.hash, &self.frame);
        self.frame.extend_from_slice(&self.hash.to_le_bytes());
        self.out.write_all(&self.frame)
    }

    pub(super) fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Why there is no block.
#[derive(Debug)]
pub(super) enum Error {
    Io(io::Error),
    /// What is wrong, and at which byte.
    Octets(&'static str, u64),
}

pub(super) struct Reader<R> {
    input: BufReader<R>,
    hash: u64,
    /// Number of bytes read.
    offset: u64,
    /// Where the present block begins.
    start: u64,
    frame: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Reads the magic.
    pub(super) fn new(input: R) -> Result<Reader<R>, Error> {
        let mut reader = Reader {
            input: BufReader::new(input),
            hash: 0,
            offset: 0,
            start: 0,
            frame: Vec::new(),
        };
        reader.read(MAGIC.len())?;
        if reader.frame != MAGIC {
            return Err(Error::Octets("not a part of a run", 0));
        }
        Ok(reader)
    }

    /// Where the present block's body begins.
    pub(super) fn body_start(&self) -> u64 {
        self.start + HEAD as u64
    }

    /// The present block's body.
    pub(super) fn body(&self) -> &[u8] {
        let end = self.frame.len().saturating_sub(8);
        self.frame.get(HEAD..end).unwrap_or_default()
    }

    /// Reads the next block. After one of kind [`Kind::End`] there must not be another.
    pub(super) fn next(&mut self) -> Result<Kind, Error> {
        self.start = self.offset;
        self.frame.clear();
        self.frame.shrink_to(KEPT);
        self.read(HEAD)?;
        let corrupt = Error::Octets("corrupt in the block", self.start);
        let mut length = [0; 4];
        length.copy_from_slice(&self.frame[1..HEAD]);
        let length = u32::from_le_bytes(length) as usize;
        let kind = KINDS.iter().find(|&&kind| kind as u8 == self.frame[0]);
        let Some(&kind) = kind.filter(|_| length <= BODY_MAX) else {
            return Err(corrupt);
        };
        self.read(length + 8)?;
        let (hashed, hash) = self.frame.split_at(HEAD + length);
        self.hash = XxHash64::oneshot(self.hash, hashed);
        if hash != self.hash.to_le_bytes() {
            return Err(corrupt);
        }
        if kind == Kind::End {
            let mut more = [0];
            if self.input.read(&mut more).map_err(Error::Io)? > 0 {
                return Err(Error::Octets("something after the end", self.offset));
            }
        }
        Ok(kind)
    }

    /// Reads `length` more bytes into the frame. The frame grows with the bytes present and not
    /// with the claimed length, so that a false length cannot exhaust memory.
    fn read(&mut self, length: usize) -> Result<(), Error> {
        let input = self.input.by_ref().take(length as u64);
        let found = read_all(input, &mut self.frame).map_err(Error::Io)?;
        self.offset += found as u64;
        if found < length {
            return Err(Error::Octets("cut off", self.offset));
        }
        Ok(())
    }
}

fn read_all(mut input: impl Read, into: &mut Vec<u8>) -> io::Result<usize> {
    input.read_to_end(into)
}
