//! Recognizes copies of a packet that a capture contains twice, for example from a mirror of two switch ports.
//!
//! RFC 9293, RFC 6864 (IP identification). `docs/trace-differences.md` explains the rule under "copies". Start reading
//! at [`Direction::is_copy`].

use crate::direction::Direction;
use crate::prints::{Print, TICK};
use crate::segment::Segment;

/// The longest time between two copies of a packet, in nanoseconds: 20 ms. The copies before and after a router in
/// `hardware_dups.dmp.gz` are up to 19.0 ms apart. No usual retransmission timer is shorter: at least 1 s in RFC 6298
/// 2.4, 200 ms in Linux, 30 ms in FreeBSD.
const COPY: i64 = 20_000_000;

/// The same if the identification is 0 or does not change: 1 ms. A retransmission is then as equal as a copy. Linux's
/// shortest timer, of a tail loss probe (RFC 8985 7), is 2 ms; sooner retransmissions answer ACKs.
const COPY_WITHOUT_ID: i64 = 1_000_000;

impl Direction {
    /// Whether the packet is a copy of one of the last few, which the capture has twice.
    ///
    /// A copy has the same IP identification, sequence and acknowledgement numbers, length, window, flags, SACK block
    /// and checksum, and comes soon. A sender may keep the identification when it retransmits (RFC 1122 3.2.1.5), so
    /// equal fields alone prove nothing.
    #[inline(always)]
    pub(crate) fn is_copy(&mut self, other: &Direction, segment: &Segment) -> bool {
        let print = Print::new(segment);
        // A copy has no new data, so a packet with new data is none.
        let above = |end: u32, top: u32| end.wrapping_sub(top) as i32 > 0;
        let top = self.segments.top();
        let brings = segment.payload > 0 && (top == 0 || above(segment.end(), top as u32))
            || segment.ack()
                && self
                    .ack
                    .is_none_or(|ack| above(segment.acknowledgment, ack));
        if !brings && self.repeats(other, segment, print) {
            return true;
        }
        self.prints.push(self.packets, print);
        false
    }

    /// Whether an equal packet was so near in time that this one is no retransmission.
    #[inline(never)]
    fn repeats(&self, other: &Direction, segment: &Segment, print: Print) -> bool {
        if !self.prints.has(print) {
            return false;
        }
        let mut ages = self.prints.equal_to(print).map(|old| old.age(segment));
        if segment.syn() || self.prints.counts_ids(print) {
            return ages.any(|age| age.abs() <= COPY >> TICK) && !self.is_asked_for(segment);
        }
        // The identification says nothing. Only ACKs cause a retransmission this soon, and only their SACK blocks tell
        // the duplicate ACKs of one burst apart.
        let distinct = segment.payload > 0 || segment.fin() || self.asked_sack && other.asked_sack;
        let tick = segment.time >> TICK;
        let answered = other.last_time.map_or(i64::MAX, |last| last >> TICK);
        distinct && ages.any(|age| age.abs() <= COPY_WITHOUT_ID >> TICK && answered <= tick - age)
    }

    /// Whether three duplicate ACKs ask for exactly this segment, and nothing has answered them yet.
    fn is_asked_for(&self, segment: &Segment) -> bool {
        let lowest = self.segments.lowest();
        self.duplicates_in_row >= 4
            && self.offset(segment.sequence) == self.segments.acked()
            && lowest.is_some_and(|sent| sent.again == 0)
    }
}
