//! Part files, with which several machines analyse one capture: `--part K/N` writes one, `--merge` joins them.
//!
//! Each machine reads the whole capture and keeps the flows whose hash, with seed 0, is K modulo N. A part file holds
//! these flows frozen, in the order of their first packets. A merge repeatedly takes the lowest of the N next packet
//! numbers, and keeps one block of each part in memory. `docs/trace-partitions.md` specifies the file.
//!
//! | module | what it does |
//! |---|---|
//! | `frame` | blocks of bytes with their checksums |
//! | `header` | the header of a part, and the check that parts belong together |
//! | `reader` | reads a part file record by record |
//! | `merge` | joins all parts |
//! | `flow` | encodes UDP flows |
//!
//! Start reading at [`Writer`] and [`Merge`].

mod flow;
mod frame;
mod header;
mod merge;
mod reader;

use std::io::{self, Write};
use std::path::PathBuf;

use crate::udp::Flow;

pub use header::{Header, PARTS_MAX};
pub use merge::{Item, Merge};

use frame::Kind;

/// Whether a flow with that hash belongs to part `part`, from 0, of `parts`.
#[must_use]
pub fn is_mine(hash: u64, part: u32, parts: u32) -> bool {
    hash % u64::from(parts.max(1)) == u64::from(part)
}

/// A part file that cannot be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It cannot be read.
    #[error("{}: cannot be read: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        error: io::Error,
    },
    /// Its bytes are not a valid part.
    #[error("{}: {what} at octet {offset}", path.display())]
    Octets {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
        /// Where, in bytes.
        offset: u64,
    },
    /// It does not belong to the same run as the first part, or another version of the program wrote it.
    #[error("{}: {what}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Some parts are missing.
    #[error("{given} of {parts} parts are given; missing: {missing}")]
    Missing {
        /// How many parts are given.
        given: usize,
        /// How many parts the run has.
        parts: u32,
        /// The missing ones.
        missing: String,
    },
}

/// Bytes of records gathered before they are written as a block.
const GATHERED: usize = 1 << 16;

/// Writes a part.
pub struct Writer<W: Write> {
    out: frame::Writer<W>,
    block: Vec<u8>,
    records: u64,
}

const CONNECTION: u8 = 1;
const FLOW: u8 = 2;

impl<W: Write> Writer<W> {
    /// Starts a part with its header.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(out: W, header: &Header) -> io::Result<Writer<W>> {
        let mut out = frame::Writer::new(out)?;
        out.frame(Kind::Header, &serde_json::to_vec(header)?)?;
        Ok(Writer {
            out,
            block: Vec::with_capacity(GATHERED + (GATHERED >> 2)),
            records: 0,
        })
    }

    /// Adds a frozen connection. Connections and flows must be added in the order of their first packets.
    ///
    /// # Errors
    /// Those of the output.
    pub fn connection(&mut self, first_packet: u64, octets: &[u8]) -> io::Result<()> {
        self.record(CONNECTION, first_packet, octets)
    }

    /// Adds a UDP flow.
    ///
    /// # Errors
    /// Those of the output.
    pub fn flow(&mut self, flow: &Flow) -> io::Result<()> {
        self.record(FLOW, flow.first_packet, &flow::freeze(flow))
    }

    fn record(&mut self, kind: u8, first_packet: u64, octets: &[u8]) -> io::Result<()> {
        let block = &mut self.block;
        block.push(kind);
        block.extend_from_slice(&first_packet.to_le_bytes());
        block.extend_from_slice(&(octets.len() as u32).to_le_bytes());
        block.extend_from_slice(octets);
        self.records += 1;
        if block.len() >= GATHERED {
            self.out.frame(Kind::Records, block)?;
            block.clear();
        }
        Ok(())
    }

    /// Writes the rest and the end. A part without its end counts as truncated.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.block.is_empty() {
            self.out.frame(Kind::Records, &self.block)?;
        }
        self.out.frame(Kind::End, &self.records.to_le_bytes())?;
        self.out.finish()
    }
}

#[cfg(test)]
pub(crate) mod temporary;
#[cfg(test)]
mod tests;
