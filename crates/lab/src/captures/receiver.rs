//! The receiving end of a transfer: what it acknowledges, and when (RFC 9293, RFC 5681 4.2, RFC
//! 2018, RFC 2883).
//!
//! It counts in segments, not bytes: in these transfers every retransmission repeats a whole
//! segment. The window never closes, and no acknowledgement waits for a timer.

/// Limit of blocks in a SACK option, beside timestamps.
const BLOCKS_MAX: usize = 3;

/// The state of a receiver.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// The first segment that is missing.
    next: u32,
    /// Segments received beyond it as `from..to`, latest arrival first.
    held: Vec<(u32, u32)>,
    /// Segments in order since the last acknowledgement.
    unacknowledged: u32,
    acknowledged: u32,
    /// The timestamp to echo (RFC 7323 4.3).
    timestamp: u32,
}

/// An acknowledgement, in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acknowledgement {
    /// The first segment that is missing.
    pub(super) next: u32,
    /// The timestamp to echo.
    pub(super) timestamp: u32,
    blocks: [(u32, u32); BLOCKS_MAX],
    count: usize,
}

impl Acknowledgement {
    /// SACK blocks `from..to`, the latest first; a block for a duplicate precedes all others (RFC
    /// 2883).
    pub(super) fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..self.count]
    }
}

impl Receiver {
    /// Receives segment `index`; returns the acknowledgement that it triggers, if any.
    pub(super) fn receive(&mut self, index: u32, timestamp: u32) -> Option<Acknowledgement> {
        if index <= self.acknowledged {
            self.timestamp = timestamp;
        }
        let known = |&(from, to): &(u32, u32)| from <= index && index < to;
        if index < self.next || self.held.iter().any(known) {
            return Some(self.acknowledge(Some((index, index + 1))));
        }
        if index > self.next {
            self.hold(index);
            return Some(self.acknowledge(None));
        }
        self.next += 1;
        self.unacknowledged += 1;
        let mut is_late = !self.held.is_empty();
        while let Some(i) = self.held.iter().position(|held| held.0 == self.next) {
            self.next = self.held.swap_remove(i).1;
            is_late = true;
        }
        (is_late || self.unacknowledged >= 2).then(|| self.acknowledge(None))
    }

    /// Acknowledges everything in order so far, at the end of the transfer.
    pub(super) fn acknowledge(&mut self, duplicate: Option<(u32, u32)>) -> Acknowledgement {
        self.unacknowledged = 0;
        self.acknowledged = self.next;
        let mut blocks = [(0, 0); BLOCKS_MAX];
        let all = duplicate.iter().chain(&self.held);
        let mut count = 0;
        for (slot, block) in blocks.iter_mut().zip(all) {
            *slot = *block;
            count += 1;
        }
        Acknowledgement {
            next: self.next,
            timestamp: self.timestamp,
            blocks,
            count,
        }
    }

    /// Merges `index` with adjacent blocks, and moves the result to the front.
    fn hold(&mut self, index: u32) {
        let mut joined = (index, index + 1);
        self.held.retain(|&(from, to)| {
            let touches = from == joined.1 || to == joined.0;
            if touches {
                joined = (joined.0.min(from), joined.1.max(to));
            }
            !touches
        });
        self.held.insert(0, joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(receiver: &mut Receiver, index: u32) -> Option<(u32, Vec<(u32, u32)>)> {
        let ack = receiver.receive(index, index + 100)?;
        Some((ack.next, ack.blocks().to_vec()))
    }

    #[test]
    fn every_second_segment_in_order_is_acknowledged() {
        let mut receiver = Receiver::default();
        assert_eq!(seen(&mut receiver, 0), None);
        assert_eq!(seen(&mut receiver, 1), Some((2, vec![])));
        assert_eq!(seen(&mut receiver, 2), None);
        assert_eq!(receiver.acknowledge(None).next, 3);
        assert_eq!(
            receiver.acknowledge(None).timestamp,
            102,
            "the first since the last ACK"
        );
    }

    #[test]
    fn a_gap_is_told_at_once_with_the_latest_block_first() {
        let mut receiver = Receiver::default();
        assert_eq!(seen(&mut receiver, 2), Some((0, vec![(2, 3)])));
        assert_eq!(seen(&mut receiver, 5), Some((0, vec![(5, 6), (2, 3)])));
        assert_eq!(seen(&mut receiver, 3), Some((0, vec![(2, 4), (5, 6)])));
        assert_eq!(seen(&mut receiver, 4), Some((0, vec![(2, 6)])));
        assert_eq!(seen(&mut receiver, 0), Some((1, vec![(2, 6)])));
        assert_eq!(seen(&mut receiver, 1), Some((6, vec![])));
    }

    #[test]
    fn a_duplicate_is_told_before_all_else() {
        let mut receiver = Receiver::default();
        receiver.receive(0, 0);
        receiver.receive(2, 0);
        assert_eq!(seen(&mut receiver, 0), Some((1, vec![(0, 1), (2, 3)])));
        assert_eq!(seen(&mut receiver, 2), Some((1, vec![(2, 3), (2, 3)])));
    }
}
