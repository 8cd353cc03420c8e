//! One schedule of packets through two translators of addresses: Linux's conntrack in a guest, and the crate `nat`.
//!
//! ```text
//! inside hosts 100.64.0.1-4 ---- translator, 203.0.113.1 ---- outside hosts 198.51.100.1-9
//! ```
//!
//! A schedule is made of conversations ([`conversation`]), which run interleaved ([`run`]). Each step gives a packet to the
//! translator and takes what it lets out. A packet from outside is sent to the external port that the translator has shown
//! before, so both translators get the same packets but for that port. Each step becomes a line of text; the external port
//! is written as the inside endpoint that has it. The lines of both are then compared ([`compare`]).
//!
//! | file | what it has |
//! |---|---|
//! | `packet` | packets, and a text for each |
//! | `conversation` | what hosts say to each other |
//! | `patience` | conversations with pauses of minutes and hours |
//! | `run` | the steps of a schedule, on either translator |
//! | `kernel` | Linux's conntrack |
//! | `ours` | the crate `nat` |
//! | `compare` | the lines of both, and the differences that the RFCs require |

pub(crate) mod compare;
mod conversation;
mod kernel;
mod ours;
mod packet;
mod patience;
mod run;

use anyhow::Result;

pub(crate) use kernel::{flood, play};
pub(crate) use ours::play as play_ours;

/// The one external address.
pub(crate) const EXTERNAL: [u8; 4] = [203, 0, 113, 1];

/// Inside hosts.
const INSIDE_HOSTS: u8 = 4;

/// An address, with a port or the identifier of an ICMP query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct End {
    pub(crate) address: [u8; 4],
    pub(crate) port: u16,
}

const fn inside(host: u8, port: u16) -> End {
    End {
        address: [100, 64, 0, host],
        port,
    }
}

const fn outside(host: u8, port: u16) -> End {
    End {
        address: [198, 51, 100, host],
        port,
    }
}

/// Where a packet is on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Inside,
    Outside,
}

/// A NAT, seen from both of its sides.
pub(crate) trait Translator {
    /// Gives it a packet from a side, this many microseconds after the start, and returns what it lets out, each with the
    /// side where it leaves.
    ///
    /// # Errors
    /// The packet cannot be sent.
    fn pass(&mut self, at_us: u64, from: Side, packet: &[u8]) -> Result<Vec<(Side, Vec<u8>)>>;
}

/// A step and what became of its packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The packet's number and what the step is about.
    pub(crate) step: String,
    /// The difference that the step shows, if the two are to differ.
    pub(crate) difference: String,
    /// The packets that the translator let out, sorted; `-` for none.
    pub(crate) outcome: String,
}

/// Which schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// Random conversations, interleaved; with time-outs as ours.
    Mixed(u64),
    /// Pauses that test time-outs; with time-outs as ours.
    Patient,
    /// Pauses, with the kernel's own time-outs.
    Defaults,
}

impl Schedule {
    /// All that the test runs.
    pub(crate) const ALL: [Self; 6] = [
        Self::Mixed(1),
        Self::Mixed(2),
        Self::Mixed(3),
        Self::Mixed(4),
        Self::Patient,
        Self::Defaults,
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Self::Mixed(seed) => format!("mixed-{seed}"),
            Self::Patient => "patient".to_owned(),
            Self::Defaults => "defaults".to_owned(),
        }
    }

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}
