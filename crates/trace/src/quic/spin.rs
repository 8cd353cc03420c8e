//! Round trips by the latency spin bit (RFC 9000 17.4, RFC 9312 3.8).

use serde::{Deserialize, Serialize};

use crate::rtt::Times;

/// Edges of the spin bit after which its round trips count: an end that does not spin keeps it constant, or sets it at
/// random for each packet.
const PACKETS_PER_EDGE_MIN: u64 = 2;

/// Times between two changes of the spin bit that are kept for their median. Beyond it, every second one is dropped.
pub(super) const KEPT_MAX: usize = 64;

/// Changes of the spin bit from which its round trips are believed, and packets per change: an end that sets the bit at
/// random for each packet changes it with every second one.
const BELIEVED_EDGES: u64 = 4;
const BELIEVED_PACKETS_PER_EDGE: u64 = 3;

/// The spin bit of one end's packets (RFC 9000 17.4).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spin {
    pub(super) kept: Vec<i64>,
    /// Every that many-th time is kept.
    stride: u64,
    last: Option<bool>,
    edge: Option<i64>,
    /// Packets with a short header.
    pub packets: u64,
    /// Changes of the bit.
    pub edges: u64,
    /// Number, shortest, longest and sum of the times between two changes, in nanoseconds.
    count: u64,
    min: i64,
    max: i64,
    sum: i64,
}

impl Spin {
    pub(super) fn packet(&mut self, spin: bool, time: i64) {
        self.packets += 1;
        if self.last.replace(spin).is_none_or(|last| last == spin) {
            return;
        }
        self.edges += 1;
        if let Some(edge) = self.edge.replace(time) {
            let passed = time.saturating_sub(edge).max(0);
            self.min = if self.count == 0 {
                passed
            } else {
                self.min.min(passed)
            };
            self.max = self.max.max(passed);
            self.sum = self.sum.saturating_add(passed);
            self.keep(passed);
            self.count += 1;
        }
    }

    fn keep(&mut self, passed: i64) {
        self.stride = self.stride.max(1);
        if !self.count.is_multiple_of(self.stride) {
            return;
        }
        if self.kept.len() == KEPT_MAX {
            let mut odd = true;
            self.kept.retain(|_| {
                odd = !odd;
                !odd
            });
            self.stride = self.stride.saturating_mul(2);
            if !self.count.is_multiple_of(self.stride) {
                return;
            }
        }
        self.kept.push(passed);
    }

    /// Median time between two changes, and how many times were much shorter. `None` unless the end seems to spin:
    /// enough changes, enough packets between them, and at most a quarter of the times shorter than a quarter of the
    /// median. Packets out of order add short times (RFC 9312 4.2).
    #[must_use]
    pub fn median(&self) -> Option<(i64, u64)> {
        let packets = self.edges.saturating_mul(BELIEVED_PACKETS_PER_EDGE);
        if self.edges < BELIEVED_EDGES || self.packets < packets {
            return None;
        }
        let mut kept = self.kept.clone();
        kept.sort_unstable();
        let median = *kept.get(kept.len() / 2)?;
        let short = kept.iter().filter(|&&time| time < median / 4).count();
        (short <= kept.len() / 4).then_some((median, short as u64))
    }

    /// Round trips between changes of the bit. None if it changes so often that the end sets it at random.
    #[must_use]
    pub fn round_trips(&self) -> Times {
        let spins = self.packets >= self.edges * PACKETS_PER_EDGE_MIN;
        match spins {
            true => Times {
                count: self.count,
                min: self.min,
                max: self.max,
                sum: self.sum,
                squares: 0.0,
            },
            false => Times::default(),
        }
    }
}
