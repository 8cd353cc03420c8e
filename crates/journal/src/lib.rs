//! State that outlives its process: an append log of records by key. Start reading at [`Journal`], or at [`Log`], which
//! is the same without a thread.
//!
//! A record has a kind, a key and numbered sections of octets; the last write of a section wins. A record is put as a
//! whole, some of its sections are changed, or it is removed. Each of these is an entry with a number.
//!
//! ```text
//! DIR/lock         the process that has the directory
//! DIR/000017.log   the segment: a header, then groups of entries, each with its CRC
//! ```
//!
//! The owner's thread adds entries; it never waits for the disk. The journal's thread writes them when it wakes up, and
//! syncs them within [`Options::commit_interval`]. SIGKILL may lose entries after [`Journal::written`], a power
//! cut those after [`Journal::synced`]. No other entry is lost, and the records found are those after one of the entries.
//! If the disk is full or fails, entries stay in memory and are written later; beyond [`Options::memory_octets_max`], further ones are refused.
//!
//! When less than half of a large segment is live, the thread copies the live part to a new one ([`Limits`]).
//!
//! After a start, [`Opened`] has the records and the time that passed since the last process wrote. That time is by the
//! monotonic clock if the machine is still up, and by the wall clock otherwise. A torn end is cut off and counted. If
//! octets that were synced are damaged, the segment is moved aside and none of it is believed. Damage behind the
//! last group that reports a sync looks like a torn end; see [`Options::mark_interval`].
//!
//! Assumed of a disk: a write changes no bytes outside of its range, and a sync that succeeds is true. After a sync that
//! failed, the process writes the same bytes again; if it is killed before that succeeds and the power fails later, the
//! next process cannot know that bytes are missing, and moves the segment aside.
//!
//! Left out: encryption, several writers, compression.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod batch;
mod directory;
mod file;
mod format;
mod inbox;
mod index;
mod journal;
mod log;
mod records;
mod segment;
mod writer;

use base::Instant;

pub use batch::{Batch, RECORD_OCTETS_MAX, SECTIONS_MAX};
pub use journal::{Journal, Options, Refused, Stats};
pub use log::{Limits, Log, OpenError, Opened};
pub use records::{Record, Records};

/// A moment, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The process's clock.
    pub clock: Instant,
    /// Nanoseconds since 1970.
    pub wall_ns: u64,
}

/// Where the process runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Identifies the machine.
    pub machine: [u8; 16],
    /// Identifies the start of its kernel.
    pub boot: [u8; 16],
}
