//! Columns over time: what each end did in an interval.

use super::folding::Merge;
use crate::direction::Direction;
use crate::segment::Segment;
use crate::verdict::Verdict;

/// What one end sent in an interval, and how it was acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IntervalSide {
    /// Packets.
    pub packets: u64,
    /// Bytes of payload.
    pub bytes: u64,
    /// Retransmitted packets.
    pub retransmitted_packets: u64,
    /// Retransmitted sequence space.
    pub retransmitted_bytes: u64,
    /// Packets out of order.
    pub out_of_order_packets: u64,
    /// Most bytes in flight after a packet; `None` if nothing was sampled.
    pub in_flight_max: Option<u64>,
    /// Round trips of its data that ended in the interval: how many.
    pub rtt_count: u64,
    /// Their sum, in nanoseconds.
    pub rtt_sum: u64,
    /// The shortest.
    pub rtt_min: i64,
    /// The longest.
    pub rtt_max: i64,
    /// Smallest window that it advertised, in bytes; `None` if it sent no ACK.
    pub window_min: Option<u64>,
    /// Packets marked "congestion experienced".
    pub ce_packets: u64,
}

/// Both ends in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interval {
    /// End `a`.
    pub a: IntervalSide,
    /// End `b`.
    pub b: IntervalSide,
}

impl Interval {
    /// What one packet adds.
    pub(super) fn of(
        segment: &Segment,
        verdict: &Verdict,
        this: &Direction,
        other: &Direction,
    ) -> Interval {
        let mine = IntervalSide {
            packets: 1,
            bytes: segment.payload.into(),
            retransmitted_packets: u64::from(verdict.retransmitted > 0),
            retransmitted_bytes: verdict.retransmitted.into(),
            out_of_order_packets: verdict.out_of_order.into(),
            in_flight_max: (segment.payload > 0).then_some(this.owin.last),
            window_min: segment.ack().then_some(verdict.window.into()),
            ce_packets: segment.ce().into(),
            ..IntervalSide::default()
        };
        let mut theirs = IntervalSide::default();
        if let Some(sample) = verdict.sample.filter(|sample| sample.time > 0) {
            theirs.rtt_count = 1;
            theirs.rtt_sum = sample.time.unsigned_abs();
            (theirs.rtt_min, theirs.rtt_max) = (sample.time, sample.time);
        }
        if segment.ack() && other.owin.count > 0 {
            theirs.in_flight_max = Some(other.owin.last);
        }
        match verdict.from_a {
            true => Interval { a: mine, b: theirs },
            false => Interval { a: theirs, b: mine },
        }
    }
}

impl Merge for Interval {
    fn merge(&mut self, other: &Interval) {
        self.a.merge(&other.a);
        self.b.merge(&other.b);
    }
}

impl IntervalSide {
    fn merge(&mut self, other: &IntervalSide) {
        for (mine, theirs) in [
            (&mut self.packets, other.packets),
            (&mut self.bytes, other.bytes),
            (&mut self.retransmitted_packets, other.retransmitted_packets),
            (&mut self.retransmitted_bytes, other.retransmitted_bytes),
            (&mut self.out_of_order_packets, other.out_of_order_packets),
            (&mut self.rtt_sum, other.rtt_sum),
            (&mut self.ce_packets, other.ce_packets),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        if other.rtt_count > 0 {
            self.rtt_min = match self.rtt_count {
                0 => other.rtt_min,
                _ => self.rtt_min.min(other.rtt_min),
            };
            self.rtt_max = self.rtt_max.max(other.rtt_max);
            self.rtt_count += other.rtt_count;
        }
        self.in_flight_max = self.in_flight_max.max(other.in_flight_max);
        self.window_min = match (self.window_min, other.window_min) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
    }
}
