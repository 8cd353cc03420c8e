//! The receiver: cumulative ACKs, delayed or at once.

use std::collections::BTreeSet;

/// Linux acknowledges the first segments of a connection one by one, so that slow start is not slowed down.
const QUICK: u32 = 16;

/// How long an ACK may be delayed, in nanoseconds: Linux's bounds. RFC 5681 4.2 allows 500 ms.
const DELAY: u64 = 40_000_000;
const DELAY_MAX: u64 = 200_000_000;

/// An ACK. The model's ACKs are never lost, so one selective acknowledgement is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// Number of the segment that is expected next.
    pub next: u64,
    /// A segment above it that has arrived.
    pub sacked: Option<u64>,
}

/// A receiver.
#[derive(Debug, Clone)]
pub struct Receiver {
    next: u64,
    /// Segments that arrived above a gap. The sender's window bounds it.
    above: BTreeSet<u64>,
    unacked: u32,
    every: u32,
    quick: u32,
    deadline: Option<u64>,
    /// The delay of an ACK, which follows the time between segments, as in Linux.
    delay: u64,
    last: u64,
}

impl Receiver {
    /// A receiver that acknowledges every `every`th segment.
    #[must_use]
    pub fn new(every: u32) -> Receiver {
        Receiver {
            next: 0,
            above: BTreeSet::new(),
            unacked: 0,
            every: every.max(1),
            quick: QUICK,
            deadline: None,
            delay: DELAY,
            last: 0,
        }
    }

    /// A segment arrives. Returns the ACK that is sent at once.
    pub fn receive(&mut self, segment: u64, now: u64) -> Option<Ack> {
        let gap = now - self.last;
        self.last = now;
        if gap <= DELAY / 2 {
            self.delay = self.delay / 2 + DELAY / 2;
        } else if gap < self.delay {
            self.delay = (self.delay / 2 + gap).min(DELAY_MAX);
        }
        if segment != self.next {
            let sacked = (segment > self.next).then_some(segment);
            if sacked.is_some() {
                self.above.insert(segment);
            }
            return Some(self.ack(sacked));
        }
        self.next += 1;
        let had_gap = !self.above.is_empty();
        while self.above.remove(&self.next) {
            self.next += 1;
        }
        self.unacked += 1;
        self.quick = self.quick.saturating_sub(1);
        if had_gap || self.quick > 0 || self.unacked >= self.every {
            return Some(self.ack(None));
        }
        self.deadline.get_or_insert(now + self.delay);
        None
    }

    /// When a delayed ACK is due.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// The delayed ACK, if it is due.
    pub fn expire(&mut self, now: u64) -> Option<Ack> {
        let is_due = self.deadline.is_some_and(|deadline| deadline <= now);
        is_due.then(|| self.ack(None))
    }

    fn ack(&mut self, sacked: Option<u64>) -> Ack {
        self.unacked = 0;
        self.deadline = None;
        let next = self.next;
        Ack { next, sacked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_segment_is_acknowledged_and_gaps_at_once() {
        let mut receiver = Receiver::new(2);
        for segment in 0..15 {
            assert!(receiver.receive(segment, 0).is_some(), "a quick ACK");
        }
        assert!(receiver.receive(15, 0).is_none());
        assert_eq!(receiver.deadline(), Some(DELAY));
        let ack = |next, sacked| Some(Ack { next, sacked });
        assert_eq!(receiver.receive(16, 1), ack(17, None));
        // RFC 5681 4.2: out of order at once, and at once when a gap is filled.
        assert_eq!(receiver.receive(18, 2), ack(17, Some(18)));
        assert_eq!(receiver.receive(19, 2), ack(17, Some(19)));
        assert_eq!(receiver.receive(17, 3), ack(20, None));
        assert!(receiver.receive(20, 4).is_none());
        assert_eq!(receiver.expire(DELAY + 3), None);
        assert_eq!(receiver.expire(DELAY + 4), ack(21, None));
    }
}
