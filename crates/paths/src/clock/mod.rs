//! Offset and drift of two clocks from packets in both directions, and the delays that follow.
//!
//! For a packet from A to B, `time at B - time at A` is the offset of B's clock plus the delay. For one from B to A it
//! is the offset less the delay. A delay is not negative: so the offset, a straight line over time, lies below all
//! points of the first kind and above all of the second (lower hulls: Moon, Skelly, Towsley 1999; Zhang, Liu, Xia
//! 2002). The line is not known better than that: the sum of both directions' least delays is known, its division is
//! not.
//!
//! Points are kept as hulls of short spans of time. Where no line passes between the points of consecutive spans, a
//! clock was stepped.

mod fit;
mod hull;
#[cfg(test)]
mod tests;

pub use fit::{Clock, Delay, Piece, Step};

use hull::Hull;

/// Spans kept at most: when there are more, each two become one.
const SPANS_MAX: usize = 4096;

/// The width of a span at the start, in nanoseconds.
const WIDTH: i64 = 100_000_000;

/// Samples of delays kept at most in each direction. When there are more, every second one leaves.
const SAMPLES_MAX: usize = 1 << 17;

/// Which way a packet went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// From A to B.
    AToB,
    /// From B to A.
    BToA,
}

impl Way {
    /// Both.
    pub const ALL: [Way; 2] = [Way::AToB, Way::BToA];

    /// The other way.
    #[must_use]
    pub const fn reversed(self) -> Way {
        match self {
            Way::AToB => Way::BToA,
            Way::BToA => Way::AToB,
        }
    }
}

/// The points of a span of time.
#[derive(Debug, Clone, Default)]
struct Span {
    /// Number of the first sample.
    first: u64,
    start: i64,
    end: i64,
    /// By direction: the hull below the values and, negated, the one above.
    low: [Hull; 2],
    high: [Hull; 2],
}

impl Span {
    fn join(&mut self, next: &Span) {
        self.start = self.start.min(next.start);
        self.end = self.end.max(next.end);
        for way in 0..2 {
            self.low[way].join(&next.low[way]);
            self.high[way].join(&next.high[way]);
        }
    }
}

/// A packet's times: its number among all samples, the time at A, and the difference with the sign of its direction.
#[derive(Debug, Clone, Copy)]
struct Sample {
    order: u64,
    time: i64,
    value: i64,
}

/// Evenly spaced samples of one direction.
#[derive(Debug, Clone)]
struct Samples {
    kept: Vec<Sample>,
    /// One of so many is kept.
    stride: u64,
    count: u64,
}

impl Samples {
    fn add(&mut self, sample: Sample) {
        if self.count.is_multiple_of(self.stride) {
            if self.kept.len() == SAMPLES_MAX {
                let mut index = 0u64;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride *= 2;
            }
            self.kept.push(sample);
        }
        self.count += 1;
    }
}

/// Collects the times of matched packets.
#[derive(Debug, Clone)]
pub struct Times {
    spans: Vec<Span>,
    width: i64,
    samples: [Samples; 2],
    order: u64,
    /// The first difference: all others are kept as distances from it, which are small.
    base: Option<i64>,
}

impl Default for Times {
    fn default() -> Times {
        let samples = || Samples {
            kept: Vec::new(),
            stride: 1,
            count: 0,
        };
        Times {
            spans: Vec::new(),
            width: WIDTH,
            samples: [samples(), samples()],
            order: 0,
            base: None,
        }
    }
}

impl Times {
    /// Adds a packet that went that way, by its times at both points.
    pub fn add(&mut self, way: Way, at_a: i64, at_b: i64) {
        let difference = at_b.saturating_sub(at_a);
        let base = *self.base.get_or_insert(difference);
        let distance = difference.saturating_sub(base);
        let value = match way {
            Way::AToB => distance,
            Way::BToA => distance.saturating_neg(),
        };
        let fits = self.spans.last().is_some_and(|span| {
            at_a.saturating_sub(span.start) < self.width
                && at_a >= span.start.saturating_sub(self.width)
        });
        if !fits {
            self.start_span(at_a);
        }
        let order = self.order;
        self.order += 1;
        if let Some(span) = self.spans.last_mut() {
            span.end = span.end.max(at_a);
            span.low[way as usize].add(at_a, value);
            span.high[way as usize].add(at_a, value.saturating_neg());
        }
        self.samples[way as usize].add(Sample {
            order,
            time: at_a,
            value,
        });
    }

    fn start_span(&mut self, time: i64) {
        if self.spans.len() >= SPANS_MAX {
            let mut joined: Vec<Span> = Vec::with_capacity(SPANS_MAX);
            for pair in self.spans.chunks(2) {
                let mut span = pair[0].clone();
                if let Some(next) = pair.get(1) {
                    span.join(next);
                }
                joined.push(span);
            }
            self.spans = joined;
            self.width = self.width.saturating_mul(2);
        }
        self.spans.push(Span {
            first: self.order,
            start: time,
            end: time,
            ..Span::default()
        });
    }

    /// Packets that were added, of that direction.
    #[must_use]
    pub fn count(&self, way: Way) -> u64 {
        self.samples[way as usize].count
    }
}
