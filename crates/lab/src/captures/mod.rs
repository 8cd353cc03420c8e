//! Captures that are hard to analyse. The same arguments give the same bytes on every machine.
//!
//! They are pcap files (microseconds, Ethernet) that hold little more than each packet's headers.
//! They resemble a published capture of 302 MB and 2.87 million packets (tcptrace, 2005). Each
//! contains connections that are simulated in virtual time from [`SEED`]; checksums are right.
//!
//! Start with [`KINDS`].
//!
//! | module | contents |
//! |---|---|
//! | `frame` | encoding of packets and records |
//! | `receiver` | acknowledgements of the receiving end |
//! | `flow` | one connection over time |
//! | `schedule` | many connections in one file |
//! | `bulk`, `short`, `mixed` | the connections of each kind of capture |
//!
//! Left out: link layers other than Ethernet with a VLAN tag, tunnels, fragments; the tests of the
//! readers cover those.

mod bulk;
mod flow;
mod frame;
mod mixed;
mod receiver;
mod schedule;
mod short;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use serde::Serialize;
use sim::Rng;

use frame::Capture;
use schedule::Load;

/// The seed of every capture.
pub const SEED: u64 = 2005;

/// The largest [`Scale`]; above it, long connections would exceed 2^32 bytes.
pub const SCALE_MAX: f64 = 8.0;

/// The time of the first packet, in nanoseconds since 1970: 1 July 2005, midnight UTC.
const EPOCH_NS: u64 = 1_120_176_000 * 1_000_000_000;

/// A kind of capture.
pub struct Kind {
    /// Its name on the command line, and the name of its file without `.pcap`.
    pub name: &'static str,
    /// Its contents, as a sentence without the full stop.
    pub what: &'static str,
    /// What it tests in an analyser: "that ..." or "what ...".
    pub proves: &'static str,
    /// Number of packets at scale 1, to within a hundredth.
    pub packets: u64,
    /// Captured bytes of each packet.
    snap: usize,
    load: fn(Scale) -> Box<dyn Load>,
}

/// All kinds.
pub const KINDS: [Kind; 6] = [
    Kind {
        name: "clean",
        what: "9 two-way connections without a fault, interleaved: data, an ACK for every two segments, time stamps",
        proves: "what a packet costs when nothing is the matter",
        packets: 2_900_000,
        snap: 98,
        load: bulk::clean,
    },
    Kind {
        name: "oneway-loss",
        what: "The senders' packets alone of 9 connections without SACK, each with a retransmission near its packet 100 and rare ones from there on",
        proves: "that being in recovery without an end does not walk over all segments for each packet",
        packets: 2_876_000,
        snap: 89,
        load: bulk::oneway_loss,
    },
    Kind {
        name: "oneway-sack",
        what: "The senders' packets and both ends' SYNs of 8 connections with SACK, 1 % of the segments sent again after a round trip",
        proves: "that a retransmission finds its segment without walking over all that were never seen acknowledged",
        packets: 2_800_000,
        snap: 96,
        load: bulk::oneway_sack,
    },
    Kind {
        name: "twoway-drops",
        what: "8 two-way connections of which the capture missed 0.5 % of the packets",
        proves: "that an ACK does not walk over the holes that misses left in what it acknowledges",
        packets: 2_800_000,
        snap: 98,
        load: bulk::twoway_drops,
    },
    Kind {
        name: "short",
        what: "1,000,000 connections of about 10 packets, some 10,000 of them open at once: a tenth reset, a tenth of SYNs alone",
        proves: "what a connection costs in time and memory",
        packets: 9_550_000,
        snap: 96,
        load: short::load,
    },
    Kind {
        name: "mixed",
        what: "300,000 connections of all sizes up to 130,000 segments, over IPv4, IPv6 and VLANs, lossy and reordered, among UDP, ICMP and ARP",
        proves: "what ordinary traffic costs",
        packets: 5_700_000,
        snap: 128,
        load: mixed::load,
    },
];

/// The kind of that name.
pub fn named(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// The size of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Written {
    /// Number of records.
    pub packets: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
}

impl Kind {
    /// Approximate number of packets at `scale`.
    pub fn packets_at(&self, scale: Scale) -> u64 {
        scale.of(self.packets)
    }

    /// Writes the capture; `progress` is called at intervals with the number of packets so far.
    ///
    /// In the first four kinds, the scale lengthens the connections; in the others it adds
    /// connections.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(
        &self,
        scale: Scale,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> io::Result<Written> {
        let mut rng = Rng::stream(SEED, &["captures", self.name]);
        let mut load = (self.load)(scale);
        let mut capture = Capture::new(out, self.snap)?;
        schedule::run(&mut *load, &mut rng, &mut capture, progress)?;
        capture.finish()
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Size of a capture relative to its description: above 0, at most [`SCALE_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Scale(f64);

impl Scale {
    /// The scale `factor`, if it is valid.
    pub fn new(factor: f64) -> Option<Self> {
        (factor > 0.0 && factor <= SCALE_MAX).then_some(Self(factor))
    }

    /// `count` times the scale, at least 1.
    pub fn of(self, count: u64) -> u64 {
        ((count as f64 * self.0).round() as u64).max(1)
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Scale {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Self, ScaleError> {
        let factor = text.parse().map_err(|_| ScaleError)?;
        Self::new(factor).ok_or(ScaleError)
    }
}

/// The value is not a valid [`Scale`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a scale is a number above 0, at most {SCALE_MAX}")]
pub struct ScaleError;
