//! The data that one end has sent: each segment in flight, and below the acknowledged edge only the gaps.
//!
//! Offsets are sequence numbers counted in 64 bits, so they never wrap: their low 32 bits are the sequence number.
//! A segment costs O(1) amortised if it is sent and acknowledged in order, and O(log n) if it fills a gap or is
//! retransmitted. The cost does not depend on the length of the connection.
//!
//! ```text
//!      never seen | seen, but for the gaps | segments in flight, each with its time | nothing yet
//!               floor                    acked                                     top
//! ```

mod flight;
mod gaps;

use flight::Flight;
use gaps::Gaps;

/// Limit of segments in flight: 6 MB. In a capture of one direction nothing is acknowledged; at 10 Gbit/s the limit is
/// reached in 0.3 s.
pub const FLIGHT_MAX: usize = 1 << 18;

/// Limit of gaps below the acknowledged edge.
pub const GAPS_MAX: usize = 1 << 16;

/// The largest window, scaled.
const WINDOW_MAX: u64 = 1 << 30;

/// A segment in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Offset of its first octet.
    pub first: u64,
    /// When it was last sent, in nanoseconds.
    pub time: i64,
    /// Octets.
    pub length: u32,
    /// How often it was retransmitted.
    pub again: u32,
}

impl Sent {
    /// Offset after its last octet.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.first + self.length as u64
    }
}

/// How a segment relates to the data before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Insertion {
    /// Bytes that had been seen before.
    pub overlap: u32,
    /// Bytes of these that had been acknowledged.
    pub acknowledged: u32,
    /// It has new bytes below bytes that had been seen before.
    pub fills: bool,
    /// It starts and ends before another segment does: tcptrace calls that out of order.
    pub before_another: bool,
    /// When the segment above the gap that it fills was sent; 0 if that is no longer known.
    pub above_time: i64,
    /// The first segment in flight that it retransmits: when that was sent, and how often it has been retransmitted.
    pub again: Option<Again>,
}

/// A retransmitted segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again {
    /// When it was sent before, in nanoseconds.
    pub time: i64,
    /// How often it has been retransmitted, including this time.
    pub count: u32,
}

/// The segments that an acknowledgement covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Acknowledged {
    /// Segments that it covers and no earlier one did.
    pub segments: u64,
    /// The segment that ends where the acknowledgement does.
    pub exact: Option<Sent>,
    /// A segment below that one was sent after it.
    pub waited: bool,
}

/// The data that one end has sent, and how much of it the other end has acknowledged.
#[derive(Debug, Clone, Default)]
pub struct Segments {
    /// The highest acknowledgement; 0 before the first.
    acked: u64,
    /// Below this no segment is in flight: the end of the last acknowledged or forgotten segment.
    edge: u64,
    /// Latest time that an acknowledged segment was sent.
    acked_time: i64,
    /// The offset after the highest byte seen; 0 before the first.
    top: u64,
    flight: Flight,
    gaps: Gaps,
    /// Segments that were forgotten because there were too many.
    forgotten: u64,
}

impl Segments {
    /// The offset after the highest byte seen; 0 before the first.
    #[must_use]
    pub const fn top(&self) -> u64 {
        self.top
    }

    /// The sequence number after the highest octet seen.
    pub(crate) const fn top_sequence(&self) -> u32 {
        self.top as u32
    }

    /// The highest acknowledgement; 0 before the first.
    #[must_use]
    pub const fn acked(&self) -> u64 {
        self.acked
    }

    /// Segments in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flight.len()
    }

    /// The lowest segment in flight.
    pub(crate) fn lowest(&self) -> Option<&Sent> {
        self.flight.lowest()
    }

    /// Bytes at or above `first` that were acknowledged and are not among the segments seen.
    #[must_use]
    pub fn unseen_above(&self, first: u64) -> u64 {
        self.gaps.bytes_above(first)
    }

    /// Segments and gaps that were forgotten because there were too many. Their retransmissions are still counted, but
    /// not timed.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten + self.gaps.forgotten()
    }

    /// Reads the memory that most packets need.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.top.wrapping_add(self.flight.touch())
    }

    /// Adds a segment of `length` bytes, at least one, sent at `time`.
    ///
    /// Its new pieces become segments in flight. Segments in flight that it repeats count as retransmitted now, except
    /// a last one that it repeats only in part.
    pub fn insert(&mut self, first: u64, length: u32, time: i64) -> Insertion {
        let end = first + u64::from(length);
        if first >= self.top && first >= self.edge {
            self.top = end;
            self.flight.push(Sent {
                first,
                time,
                length,
                again: 0,
            });
            if self.flight.len() > FLIGHT_MAX {
                self.forget_flight();
            }
            return Insertion::default();
        }
        self.insert_below(first, end, time)
    }

    #[inline(never)]
    fn insert_below(&mut self, first: u64, end: u64, time: i64) -> Insertion {
        let mut found = Insertion::default();
        let split = self.edge.clamp(first, end);
        if first < split {
            let (new, lowest) = self.gaps.fill(first, split);
            let seen = (split - first) as u32 - new;
            found.overlap = seen;
            found.acknowledged = if split <= self.acked { seen } else { 0 };
            if lowest < self.top {
                found.fills = true;
                found.before_another = end < self.top;
            }
            if seen > 0 {
                self.acked_time = self.acked_time.max(time);
            }
        }
        if split < end {
            self.flight.insert(split, end, time, &mut found);
        }
        self.top = self.top.max(end);
        if self.flight.len() > FLIGHT_MAX {
            self.forget_flight();
        }
        found
    }

    /// Adds an acknowledgement of all bytes below `ack`, unless it is impossible.
    #[inline]
    pub fn acknowledge(&mut self, ack: u64) -> Acknowledged {
        let mut covered = Acknowledged::default();
        if ack <= self.acked || (ack > self.top && self.is_absurd(ack)) {
            return covered;
        }
        self.acked = ack;
        let mut edge = self.edge;
        let mut latest = self.acked_time;
        let mut last = Sent::default();
        while let Some(sent) = self.flight.pop_below(ack) {
            covered.segments += 1;
            if sent.first > edge {
                self.gaps.add(edge, sent.first);
            }
            edge = edge.max(sent.end());
            latest = latest.max(sent.time);
            last = sent;
        }
        // Only the last one can end where the acknowledgement does.
        if last.end() == ack {
            covered.waited = latest > last.time;
            covered.exact = Some(last);
        }
        if edge < ack {
            self.gaps.add(edge, ack);
            edge = ack;
        }
        self.acked_time = latest;
        self.edge = edge;
        covered
    }

    /// Whether `ack` is farther above the data sent than any window reaches (RFC 7323 2.3): the packet is corrupt, or
    /// of another connection.
    #[cold]
    fn is_absurd(&self, ack: u64) -> bool {
        self.top > 0 && ack - self.top > WINDOW_MAX
    }

    /// Marks the segment in flight at `first` as a retransmission of one that the capture lacks.
    pub(crate) fn mark_again(&mut self, first: u64) {
        if first >= self.edge {
            self.flight.mark_again(first);
        }
    }

    /// Whether every byte from `first` to `end` has been seen.
    #[must_use]
    pub fn has(&self, first: u64, end: u64) -> bool {
        if end > self.top {
            return false;
        }
        let split = self.edge.clamp(first, end);
        self.gaps.is_clear(first, split) && self.flight.has(split, end)
    }

    /// Segments in flight and gaps beyond the few for which every connection has room.
    #[must_use]
    #[inline]
    pub(crate) fn many(&self) -> usize {
        self.flight.in_tree() + self.gaps.len()
    }

    /// Memory is short: forgets the older half of the flight and of the gaps.
    #[cold]
    pub(crate) fn forget(&mut self) {
        self.forget_flight();
        self.gaps.forget();
    }

    /// Forgets the older half of the flight. Its bytes still count as sent, without times.
    #[cold]
    fn forget_flight(&mut self) {
        let mut edge = self.edge;
        for _ in 0..self.flight.len() / 2 {
            let Some(sent) = self.flight.pop_below(u64::MAX) else {
                break;
            };
            if sent.first > edge {
                self.gaps.add(edge, sent.first);
            }
            edge = edge.max(sent.end());
            self.forgotten += 1;
        }
        self.edge = edge;
    }

    /// Removes everything and keeps the allocated room.
    pub fn clear(&mut self) {
        (self.acked, self.edge, self.acked_time, self.top) = (0, 0, 0, 0);
        self.flight.clear();
        self.gaps.clear();
        self.forgotten = 0;
    }

    /// Shows its numbers to a codec, which reads or writes them.
    #[inline(always)]
    pub(crate) fn exchange<C: crate::frozen::Codec>(&mut self, codec: &mut C) {
        codec.offset(&mut self.top);
        codec.guessed(&mut self.acked, self.top);
        codec.guessed(&mut self.edge, self.acked);
        codec.time(&mut self.acked_time);
        codec.unsigned(&mut self.forgotten);
    }

    /// The same for its lists, after its numbers.
    #[inline(always)]
    pub(crate) fn exchange_lists<C: crate::frozen::Codec>(&mut self, codec: &mut C) {
        self.flight.exchange(codec);
        self.gaps.exchange(codec);
    }
}

#[cfg(test)]
mod tests;
