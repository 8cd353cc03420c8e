//! Parts of a run that several machines share: `--part K/N` writes one, `--merge` joins them.
//!
//! Each machine reads the whole capture and keeps the flows whose hash, with seed 0, is K modulo N. A part file holds
//! them frozen, in the order of their first packets, so that merging is taking the lowest of N numbers; it needs one
//! block of each part at a time. `docs/trace-partitions.md` is the contract and describes the file.
//!
//! | module | what it is |
//! |---|---|
//! | `frame` | blocks of octets with their checksums |
//! | `header` | what a part says of itself, and whether parts belong together |
//! | `reader` | a part file, record by record |
//! | `merge` | all parts as one |
//! | `flow` | UDP flows as octets |

mod flow;
mod frame;
mod header;
mod merge;
mod reader;

use std::io::{self, Write};
use std::path::PathBuf;

use trace::udp::Flow;

pub(super) use header::{Header, PARTS_MAX};
pub(super) use merge::{Item, Merge};

use frame::Kind;

/// Whether a flow with that hash belongs to part `part` of `parts`.
pub(super) fn is_mine(hash: u64, part: u32, parts: u32) -> bool {
    hash % u64::from(parts.max(1)) == u64::from(part)
}

/// A part file that cannot be merged.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// It cannot be read.
    #[error("{}: cannot be read: {error}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    /// Its octets are not those of a part, from that one on.
    #[error("{}: {what} at octet {offset}", path.display())]
    Octets {
        path: PathBuf,
        what: &'static str,
        offset: u64,
    },
    /// It does not go with the first part, or not with this program.
    #[error("{}: {what}", path.display())]
    Other { path: PathBuf, what: String },
    /// Some parts are not there.
    #[error("{given} of {parts} parts are given; missing: {missing}")]
    Missing {
        given: usize,
        parts: u32,
        missing: String,
    },
}

/// Octets of records gathered before they become a block.
const GATHERED: usize = 1 << 16;

/// Writes a part.
pub(super) struct Writer<W: Write> {
    out: frame::Writer<W>,
    block: Vec<u8>,
    records: u64,
}

const CONNECTION: u8 = 1;
const FLOW: u8 = 2;

impl<W: Write> Writer<W> {
    /// Begins a part, with all that is said of it before its connections.
    ///
    /// # Errors
    /// Those of the output.
    pub(super) fn new(out: W, header: &Header) -> io::Result<Writer<W>> {
        let mut out = frame::Writer::new(out)?;
        out.frame(Kind::Header, &serde_json::to_vec(header)?)?;
        Ok(Writer {
            out,
            block: Vec::with_capacity(GATHERED + (GATHERED >> 2)),
            records: 0,
        })
    }

    /// Adds a connection, frozen. Connections and flows come in the order of their first packets.
    ///
    /// # Errors
    /// Those of the output.
    pub(super) fn connection(&mut self, first_packet: u64, octets: &[u8]) -> io::Result<()> {
        self.record(CONNECTION, first_packet, octets)
    }

    /// Adds a UDP flow.
    ///
    /// # Errors
    /// Those of the output.
    pub(super) fn flow(&mut self, flow: &Flow) -> io::Result<()> {
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

    /// Writes what is left and the end, without which the part counts as cut.
    ///
    /// # Errors
    /// Those of the output.
    pub(super) fn finish(mut self) -> io::Result<W> {
        if !self.block.is_empty() {
            self.out.frame(Kind::Records, &self.block)?;
        }
        self.out.frame(Kind::End, &self.records.to_le_bytes())?;
        self.out.finish()
    }
}

#[cfg(test)]
mod tests;
