//! A list of retransmissions, with their causes.

use crate::direction::Direction;
use crate::segment::Segment;
use crate::verdict::Verdict;

/// Retransmissions that are listed for each direction. More are only counted.
pub(super) const LISTED_MAX: usize = 256;

/// Why data was sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LossCause {
    /// After three duplicate ACKs or with a SACK above it.
    Fast,
    /// Without either: a time-out, or a tail loss probe (RFC 8985).
    #[default]
    Timeout,
    /// All of it had been acknowledged: nothing was lost.
    Spurious,
}

impl LossCause {
    /// Its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LossCause::Fast => "fast",
            LossCause::Timeout => "timeout",
            LossCause::Spurious => "spurious",
        }
    }
}

/// A retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loss {
    /// When it was seen, in nanoseconds since 1970.
    pub time: i64,
    /// Number of its packet in the whole input.
    pub packet: u64,
    /// Its sequence number.
    pub sequence: u32,
    /// Retransmitted bytes of sequence space.
    pub length: u32,
    /// Why it was sent again.
    pub cause: LossCause,
}

/// The retransmissions of one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses {
    pub(super) list: Vec<Loss>,
    /// Further retransmissions, which are not listed.
    pub left_out: u64,
    pub(super) spurious: u64,
    pub(super) fast: u64,
}

impl Losses {
    /// The first ones.
    #[must_use]
    pub fn list(&self) -> &[Loss] {
        &self.list
    }

    pub(super) fn memory(&self) -> usize {
        self.list.len() * size_of::<Loss>()
    }

    /// The end sent a packet; `this` includes it.
    pub(super) fn packet(&mut self, segment: &Segment, verdict: &Verdict, this: &Direction) {
        if verdict.retransmitted == 0 {
            return;
        }
        let cause = if this.spurious_retransmissions > self.spurious {
            LossCause::Spurious
        } else if this.fast_retransmissions > self.fast {
            LossCause::Fast
        } else {
            LossCause::Timeout
        };
        self.spurious = this.spurious_retransmissions;
        self.fast = this.fast_retransmissions;
        if self.list.len() >= LISTED_MAX {
            self.left_out += 1;
            return;
        }
        self.list.push(Loss {
            time: segment.time,
            packet: segment.number,
            sequence: segment.sequence,
            length: verdict.retransmitted,
            cause,
        });
    }
}
