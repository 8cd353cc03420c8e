//! Captures made to be hard to analyse, the same octets for the same arguments on every machine.
//!
//! They are pcap files (microseconds, Ethernet) in which packets are held up to a few octets beyond their headers, as
//! in the capture of 302 MB and 2.87 million packets whose account (tcptrace, 2005) is the reason for them. Each
//! is of connections simulated in virtual time from [`SEED`]; checksums are right.
//!
//! | module | what it is |
//! |---|---|
//! | `frame` | packets and records as octets |
//! | `receiver` | what the receiving end acknowledges |
//! | `flow` | one connection in time |
//! | `schedule` | many of them in one file |
//! | `bulk`, `short`, `mixed` | which connections each kind of capture has |
//!
//! Left out: link layers other than Ethernet with a VLAN tag, tunnels, fragments; the tests of the readers have those.

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

/// Seeds every capture.
pub const SEED: u64 = 2005;

/// The largest [`Scale`]: above it, long connections would pass 2^32 octets.
pub const SCALE_MAX: f64 = 8.0;

/// The time of the first packet, in nanoseconds since 1970: 1 July 2005, midnight UTC.
const EPOCH_NS: u64 = 1_120_176_000 * 1_000_000_000;

/// A kind of capture.
pub struct Kind {
    /// What it is asked for by, and what its file is called, without `.pcap`.
    pub name: &'static str,
    /// What is in it, as a sentence without its full stop.
    pub what: &'static str,
    /// What an analyser that is fast on it shows: "that ..." or "what ...".
    pub proves: &'static str,
    /// How many packets there are at scale 1, to a hundredth part.
    pub packets: u64,
    /// How much of each packet is held.
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

/// What a capture holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Written {
    /// Records.
    pub packets: u64,
    /// Octets of the file.
    pub bytes: u64,
}

impl Kind {
    /// About how many packets there are at `scale`.
    pub fn packets_at(&self, scale: Scale) -> u64 {
        scale.of(self.packets)
    }

    /// Writes the capture; `progress` hears now and then how many packets there are.
    ///
    /// The long connections of the first four kinds grow with the scale; of the others there are more.
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

/// How large a capture is, against the size it was described with: above 0, at most [`SCALE_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Scale(f64);

impl Scale {
    /// The size of the descriptions.
    pub const ONE: Self = Self(1.0);

    /// The scale `factor`, if there is such.
    pub fn new(factor: f64) -> Option<Self> {
        (factor > 0.0 && factor <= SCALE_MAX).then_some(Self(factor))
    }

    /// So many times `count`, at least 1.
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

/// What is no [`Scale`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a scale is a number above 0, at most {SCALE_MAX}")]
pub struct ScaleError;
