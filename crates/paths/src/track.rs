//! What a sender's data at one point says about losses before that point and after it.
//!
//! RFC 9293, RFC 2018, RFC 2883. Data missing at a point that comes later was lost before it, or reordered. Data that
//! comes again was lost after the point, or did not need to be sent again: an ACK had covered it, or a D-SACK says so.

/// Gaps, and retransmissions without an answer, that are kept for a flow. The oldest leaves.
const KEPT: usize = 16;

/// Without time stamps and identification, a gap that is filled sooner than this counts as reordering.
const REORDERING: i64 = 3_000_000;

/// Packets and bytes, and the first packets' numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Packets.
    pub packets: u64,
    /// Bytes of their payload.
    pub bytes: u64,
    /// Number of the first one; 0 if there is none.
    pub first: u64,
}

impl Counted {
    /// Adds a packet.
    pub(crate) fn add(&mut self, number: u64, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
        if self.first == 0 {
            self.first = number;
        }
    }

    /// Adds the counts of another.
    pub(crate) fn join(&mut self, other: &Counted) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        if self.first == 0 || (other.first > 0 && other.first < self.first) {
            self.first = other.first;
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Gap {
    from: u32,
    to: u32,
    /// The packet that showed it.
    sent: Sent,
}

/// What orders a sender's packets.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sent {
    pub(crate) number: u64,
    pub(crate) time: i64,
    /// Time stamp value.
    pub(crate) stamp: Option<u32>,
    /// Identification of IPv4; 0 if unknown.
    pub(crate) id: u16,
}

impl Sent {
    /// Whether it was sent after that packet, and not only arrived after it.
    fn is_after(&self, other: &Sent) -> bool {
        match (self.stamp, other.stamp) {
            (Some(own), Some(before)) if own != before => past(own, before),
            // Senders number the packets of a connection.
            _ if self.id != 0 && other.id != 0 => self.id.wrapping_sub(other.id) as i16 > 0,
            _ => self.time.saturating_sub(other.time) > REORDERING,
        }
    }
}

/// One direction's data at one point.
#[derive(Debug, Clone, Default)]
pub(crate) struct Track {
    top: Option<u32>,
    acknowledged: Option<u32>,
    gaps: Vec<Gap>,
    again: Vec<(u32, u32, u64)>,
    /// Retransmissions of data that was missing here.
    pub(crate) lost_before: Counted,
    /// Data that came late without being sent again.
    pub(crate) late_before: Counted,
    /// Retransmissions of data that had passed.
    pub(crate) lost_after: Counted,
    /// Those that were not needed.
    pub(crate) needless: Counted,
}

fn past(value: u32, bound: u32) -> bool {
    value.wrapping_sub(bound) as i32 > 0
}

impl Track {
    /// A packet with data.
    #[inline]
    pub(crate) fn data(&mut self, sent: Sent, range: (u32, u32)) {
        let (from, to) = range;
        match self.top {
            Some(top) if top == from => self.top = Some(to),
            None => self.top = Some(to),
            Some(top) => self.out_of_line(sent, range, top),
        }
    }

    #[cold]
    fn out_of_line(&mut self, sent: Sent, range: (u32, u32), top: u32) {
        let (from, to) = range;
        if past(to, top) {
            self.top = Some(to);
        }
        if past(from, top) {
            if self.gaps.len() == KEPT {
                self.gaps.remove(0);
            }
            self.gaps.push(Gap {
                from: top,
                to: from,
                sent,
            });
            return;
        }
        if self.fill(&sent, range) {
            return;
        }
        let end = if past(to, top) { top } else { to };
        let bytes = u64::from(end.wrapping_sub(from));
        let known = self.acknowledged.is_some_and(|acked| !past(end, acked));
        if known {
            self.needless.add(sent.number, bytes);
            return;
        }
        self.lost_after.add(sent.number, bytes);
        if self.again.len() == KEPT {
            self.again.remove(0);
        }
        self.again.push((from, end, sent.number));
    }

    /// Takes a range out of the gaps. Whether it was in one.
    fn fill(&mut self, sent: &Sent, range: (u32, u32)) -> bool {
        let (from, to) = range;
        let Some(at) = self
            .gaps
            .iter()
            .position(|gap| past(to, gap.from) && past(gap.to, from))
        else {
            return false;
        };
        let gap = self.gaps.remove(at);
        let low = if past(from, gap.from) { from } else { gap.from };
        let high = if past(gap.to, to) { to } else { gap.to };
        let bytes = u64::from(high.wrapping_sub(low));
        match sent.is_after(&gap.sent) {
            true => self.lost_before.add(sent.number, bytes),
            false => self.late_before.add(sent.number, bytes),
        }
        for (from, to) in [(gap.from, low), (high, gap.to)] {
            if past(to, from) && self.gaps.len() < KEPT {
                self.gaps.push(Gap { from, to, ..gap });
            }
        }
        true
    }

    /// An ACK of the data, with its first SACK block.
    #[inline]
    pub(crate) fn acknowledge(&mut self, number: u32, block: Option<(u32, u32)>) {
        if self.acknowledged.is_none_or(|acked| past(number, acked)) {
            self.acknowledged = Some(number);
        }
        if let Some((from, to)) = block
            && !self.again.is_empty()
            && !past(to, number)
        {
            // A D-SACK: its first block is below the ACK (RFC 2883 4).
            let within = |range: &(u32, u32, u64)| past(to, range.0) && past(range.1, from);
            if let Some(at) = self.again.iter().position(within) {
                let (from, to, number) = self.again.remove(at);
                let bytes = u64::from(to.wrapping_sub(from));
                self.lost_after.packets -= 1;
                self.lost_after.bytes -= bytes;
                self.needless.add(number, bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(number: u64, time: i64, stamp: Option<u32>, id: u16) -> Sent {
        Sent {
            number,
            time,
            stamp,
            id,
        }
    }

    #[test]
    fn a_gap_filled_by_a_later_transmission_was_lost_before_the_point() {
        for (stamps, ids) in [([Some(6), Some(9)], [0, 0]), ([None, None], [65_535, 2])] {
            let mut track = Track::default();
            track.data(sent(1, 0, Some(5), 65_530), (0, 100));
            track.data(sent(2, 10, stamps[0], ids[0]), (200, 300));
            track.data(sent(3, 20, stamps[1], ids[1]), (100, 200));
            assert_eq!((track.lost_before.packets, track.lost_before.first), (1, 3));
            assert_eq!(track.late_before.packets + track.lost_after.packets, 0);
        }
    }

    #[test]
    fn a_gap_filled_by_an_older_transmission_was_reordered() {
        let mut track = Track::default();
        track.data(sent(1, 0, Some(5), 1), (0, 100));
        track.data(sent(2, 10, Some(6), 3), (200, 300));
        track.data(sent(3, 90_000_000, Some(6), 2), (100, 200));
        assert_eq!(track.late_before.packets, 1);
    }

    #[test]
    fn data_sent_again_was_lost_after_the_point_unless_an_ack_says_otherwise() {
        let mut track = Track::default();
        let plain = |number, time| sent(number, time, None, 0);
        track.data(plain(1, 0), (0, 100));
        track.data(plain(2, 0), (100, 200));
        track.data(plain(3, 300), (0, 100));
        track.acknowledge(200, None);
        track.data(plain(4, 400), (100, 200));
        assert_eq!((track.lost_after.packets, track.needless.packets), (1, 1));
        track.acknowledge(200, Some((0, 100)));
        assert_eq!((track.lost_after.packets, track.needless.packets), (0, 2));
    }
}
