//! Copies of a packet that the capture has twice, for example from a mirror of two switch ports.
//!
//! RFC 9293, RFC 6864 (IP identification). `docs/trace-differences.md` explains the rule under "copies".

use crate::direction::{Direction, REMEMBERED};
use crate::segment::Segment;

/// The longest time between two copies of a packet, in nanoseconds: 20 ms. The copies before and after a router in
/// `hardware_dups.dmp.gz` are up to 19.0 ms apart. No usual retransmission timer is shorter: at least 1 s in RFC 6298
/// 2.4, 200 ms in Linux, 30 ms in FreeBSD.
const COPY: i64 = 20_000_000;

/// The same if the identification is 0 or does not change: 1 ms. A retransmission is then as equal as a copy. Linux's
/// shortest timer, of a tail loss probe (RFC 8985 7), is 2 ms; sooner retransmissions answer ACKs.
const COPY_WITHOUT_ID: i64 = 1_000_000;

/// Times of remembered packets count units of 2^13 ns, in 16 bits: 537 ms. That is enough, since a silence of more than
/// [`COPY`] forgets them, so that the oldest of eight is at most 160 ms old.
pub(crate) const TICK: u32 = 13;

impl Direction {
    /// Whether the packet is a copy of one of the last few, which the capture has twice.
    ///
    /// A copy has the same IP identification, sequence and acknowledgement numbers, length, window, flags, SACK block
    /// and checksum, and comes soon. A sender may keep the identification when it retransmits (RFC 1122 3.2.1.5), so
    /// equal fields alone prove nothing.
    #[inline]
    pub(crate) fn is_copy(&mut self, other: &Direction, segment: &Segment) -> bool {
        let mix = |hash: u32, word: u32| (hash ^ word).wrapping_mul(0x9e37_79b1).rotate_left(13);
        let mut print = mix(
            u32::from(segment.id) << 16 | u32::from(segment.checksum),
            segment.sequence,
        );
        print = mix(print, segment.acknowledgment);
        if let Some(&(left, right)) = segment.options.sack().first() {
            print = mix(mix(print, left), right);
        }
        print = mix(
            print,
            segment.payload << 8 ^ u32::from(segment.flags) << 16 ^ u32::from(segment.window),
        )
        .max(1 << 4)
            >> 4;
        // A copy has no new data, so a packet with new data is none.
        let brings = segment.payload > 0 && self.offset(segment.end()) > self.segments.top()
            || segment.ack()
                && self
                    .ack
                    .is_none_or(|ack| (segment.acknowledgment.wrapping_sub(ack) as i32) > 0);
        let tick = (segment.time >> TICK) as u16;
        if !brings && self.remembered.contains(&print) && self.is_close(other, segment, print) {
            return true;
        }
        let at = self.packets as usize % REMEMBERED;
        self.remembered[at] = print;
        self.remembered_ticks[at] = tick;
        if self.top_id == 0 {
            self.top_id = segment.id;
        }
        self.counts_ids |= (segment.id != self.top_id) & (segment.id != 0);
        false
    }

    /// Whether a packet with that fingerprint was so near in time that this one is no retransmission.
    #[cold]
    fn is_close(&self, other: &Direction, segment: &Segment, print: u32) -> bool {
        let tick = segment.time >> TICK;
        let ages = self.remembered.iter().zip(self.remembered_ticks);
        let mut ages = ages
            .filter(|(old, _)| **old == print)
            .map(|(_, old)| i64::from((tick as u16).wrapping_sub(old) as i16));
        if self.counts_ids && segment.id != 0 || segment.syn() {
            return ages.any(|age| age.abs() <= COPY >> TICK) && !self.is_asked_for(segment);
        }
        // The identification says nothing. Only ACKs cause a retransmission this soon, and only their SACK blocks tell
        // the duplicate ACKs of one burst apart.
        let distinct = segment.payload > 0 || segment.fin() || self.asked_sack && other.asked_sack;
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

    /// After a silence, no packet before it can have a copy.
    #[inline]
    pub(crate) fn forget_after(&mut self, silence: i64) {
        let mask = if silence.unsigned_abs() <= COPY as u64 {
            u32::MAX
        } else {
            0
        };
        for print in &mut self.remembered {
            *print &= mask;
        }
    }
}
