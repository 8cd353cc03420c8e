//! The SACK scoreboard and the pipe, as RFC 6675 section 4 defines them for the sender, from what the point of capture
//! has seen.
//!
//! Near the receiver, the capture knows of an ACK before the sender does. A retransmission counts as in the network
//! until it is acknowledged.

use crate::direction::Direction;
use crate::segment::Segment;
use crate::verdict::Verdict;

/// Ranges of selectively acknowledged data that are kept. Beyond it, the lowest one is forgotten.
pub(super) const RANGES_MAX: usize = 256;

/// Ranges, or full-sized segments, above data that counts as lost (RFC 6675 2: DupThresh).
const THRESHOLD: usize = 3;

/// What is selectively acknowledged of one end's data. Offsets are as in [`crate::segments`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Board {
    /// Ranges above the acknowledged edge, in order and apart: start and end.
    pub(super) ranges: Vec<(u64, u64)>,
    /// End of the highest retransmitted data (RFC 6675 2: HighRxt).
    pub(super) high_rxt: u64,
    /// Most ranges at a time.
    pub ranges_max: u64,
    /// Ranges that were forgotten because there were too many.
    pub forgotten: u64,
    /// Most bytes that counted as lost at a time.
    pub lost_max: u64,
    /// Bytes in the network after the last ACK with SACK blocks (RFC 6675: pipe).
    pub pipe: u64,
    /// The largest pipe.
    pub pipe_max: u64,
}

impl Board {
    pub(super) fn memory(&self) -> usize {
        self.ranges.len() * size_of::<(u64, u64)>()
    }

    /// The end sent a packet.
    pub(super) fn sent(&mut self, this: &Direction, segment: &Segment, verdict: &Verdict) {
        if verdict.retransmitted > 0 {
            let end = this.offset(segment.end());
            self.high_rxt = self.high_rxt.max(end);
        }
    }

    /// The other end acknowledged data of `this`.
    pub(super) fn acknowledged(&mut self, this: &Direction, segment: &Segment) {
        let acked = this.segments.acked();
        if !self.ranges.is_empty() {
            self.ranges.retain(|&(_, end)| end > acked);
        }
        let blocks = segment.options.sack();
        if blocks.is_empty() || !segment.ack() {
            return;
        }
        let top = this.segments.top();
        for &(left, right) in blocks {
            let (left, right) = (this.offset(left), this.offset(right));
            // A block below the edge reports a duplicate (RFC 2883).
            if left < right && left >= acked && right <= top {
                self.insert(left, right);
            }
        }
        self.measure(this, acked, top);
    }

    fn insert(&mut self, left: u64, right: u64) {
        let from = self.ranges.partition_point(|&(_, end)| end < left);
        let to = self.ranges.partition_point(|&(start, _)| start <= right);
        let mut range = (left, right);
        for &(start, end) in &self.ranges[from..to] {
            range = (range.0.min(start), range.1.max(end));
        }
        self.ranges.splice(from..to, [range]);
        if self.ranges.len() > RANGES_MAX {
            self.ranges.remove(0);
            self.forgotten += 1;
        }
        self.ranges_max = self.ranges_max.max(self.ranges.len() as u64);
    }

    /// Computes the pipe: each byte that is neither acknowledged nor lost is in the network once, and once more if it
    /// was retransmitted.
    fn measure(&mut self, this: &Direction, acked: u64, top: u64) {
        let segment = u64::from(this.segment_max.max(1));
        let (mut pipe, mut lost) = (0, 0);
        // From the top down: how many ranges and bytes are acknowledged above a gap.
        let (mut ranges, mut bytes, mut upper) = (0, 0, top);
        let mut gap = |from: u64, to: u64, ranges: usize, bytes: u64| {
            let length = to.saturating_sub(from);
            let is_lost = ranges >= THRESHOLD || bytes > (THRESHOLD as u64 - 1) * segment;
            match is_lost {
                true => lost += length,
                false => pipe += length,
            }
            pipe += self.high_rxt.min(to).saturating_sub(from);
        };
        for &(start, end) in self.ranges.iter().rev() {
            gap(end, upper, ranges, bytes);
            (ranges, bytes, upper) = (ranges + 1, bytes + (end - start), start);
        }
        gap(acked, upper, ranges, bytes);
        self.pipe = pipe;
        self.pipe_max = self.pipe_max.max(pipe);
        self.lost_max = self.lost_max.max(lost);
    }
}
