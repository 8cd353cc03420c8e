//! Segments in flight, and detection of lost ones: RACK, RFC 8985 section 6.
//!
//! A segment is lost when one sent later has arrived and a round trip has passed since it was sent.
//! This also detects lost retransmissions. Left out: reordering, which the queues of one flow do
//! not cause.

use std::collections::VecDeque;

use base::{Duration, Instant};

use super::Span;

/// Number of segments beyond a gap after which reordering is ruled out.
const DUPLICATES: usize = 3;

/// A segment that was sent and not acknowledged.
#[derive(Debug, Clone, Copy)]
struct Sent {
    from: u64,
    to: u64,
    /// When it was last sent.
    at: Instant,
    /// Whether it was sent more than once.
    again: bool,
    /// Whether the receiver reported it by SACK.
    sacked: bool,
    /// Whether it is considered lost and was not retransmitted yet.
    lost: bool,
}

/// All segments in flight, in order.
#[derive(Debug, Default)]
pub(super) struct Flight {
    segments: VecDeque<Sent>,
    /// The most recently sent segment that has arrived: sending time, end, and round-trip time.
    /// `RACK.segment` and `RACK.rtt`.
    newest: Option<(Instant, u64, Duration)>,
    /// The shortest round-trip time.
    least: Option<Duration>,
}

impl Flight {
    /// Adds a new segment.
    pub(super) fn push(&mut self, (from, to): Span, now: Instant) {
        self.segments.push_back(Sent {
            from,
            to,
            at: now,
            again: false,
            sacked: false,
            lost: false,
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The first byte that is not acknowledged.
    pub(super) fn first(&self) -> Option<u64> {
        self.segments.front().map(|first| first.from)
    }

    /// Estimated number of bytes in flight.
    pub(super) fn octets(&self) -> u64 {
        let on_its_way = self
            .segments
            .iter()
            .filter(|sent| !sent.sacked && !sent.lost);
        on_its_way.map(|sent| sent.to - sent.from).sum()
    }

    /// Whether data beyond a gap has arrived.
    pub(super) fn has_holes(&self) -> bool {
        self.segments.iter().any(|sent| sent.sacked)
    }

    pub(super) fn has_losses(&self) -> bool {
        self.segments.iter().any(|sent| sent.lost)
    }

    /// Handles an acknowledgement of everything below `to` and of the blocks in `sack`. Returns the
    /// round-trip time of the last of these that was sent only once (RFC 6298 section 3).
    pub(super) fn acknowledge(&mut self, to: u64, sack: &[Span], now: Instant) -> Option<Duration> {
        let mut sample = None;
        for at in 0..self.segments.len() {
            let sent = self.segments[at];
            let is_in = |&(left, right): &Span| left <= sent.from && sent.to <= right;
            if sent.sacked || !(sent.to <= to || sack.iter().any(is_in)) {
                continue;
            }
            self.segments[at].sacked = true;
            self.segments[at].lost = false;
            let round_trip = now.since(sent.at);
            if !sent.again {
                sample = Some(round_trip);
                self.least = Some(self.least.map_or(round_trip, |least| least.min(round_trip)));
            } else if self.least.is_some_and(|least| round_trip < least) {
                // The segment sent before it has arrived.
                continue;
            }
            if self
                .newest
                .is_none_or(|(at, end, _)| (sent.at, sent.to) > (at, end))
            {
                self.newest = Some((sent.at, sent.to, round_trip));
            }
        }
        while self.segments.front().is_some_and(|first| first.to <= to) {
            self.segments.pop_front();
        }
        sample
    }

    /// Marks lost segments. Returns when to check again, if more may be lost.
    pub(super) fn find_losses(&mut self, now: Instant, in_recovery: bool) -> Option<Instant> {
        let (newest, end, round_trip) = self.newest?;
        let arrived = self.segments.iter().filter(|sent| sent.sacked).count();
        let patience = if in_recovery || arrived >= DUPLICATES {
            Duration::ZERO
        } else {
            Duration::from_nanos(self.least.unwrap_or_default().as_nanos() / 4)
        };
        let mut look = None;
        for sent in &mut self.segments {
            let overtaken = (newest, end) > (sent.at, sent.to);
            if sent.sacked || sent.lost || !overtaken {
                continue;
            }
            let over = sent.at + round_trip + patience;
            sent.lost = over <= now;
            if !sent.lost {
                look = look.max(Some(over));
            }
        }
        look
    }

    /// The retransmission timer expired: the first segment is lost, and so is every segment whose
    /// time has passed (RFC 8985 6.3).
    pub(super) fn time_out(&mut self, now: Instant) {
        let round_trip = self.newest.map_or(Duration::ZERO, |newest| newest.2);
        let mut is_first = true;
        for sent in self.segments.iter_mut().filter(|sent| !sent.sacked) {
            sent.lost |= is_first || sent.at + round_trip <= now;
            is_first = false;
        }
    }

    /// The first lost segment, which is now marked as retransmitted.
    pub(super) fn resend_lost(&mut self, now: Instant) -> Option<Span> {
        let sent = self.segments.iter_mut().find(|sent| sent.lost)?;
        sent.lost = false;
        sent.again = true;
        sent.at = now;
        Some((sent.from, sent.to))
    }

    /// The last segment, which is now marked as retransmitted.
    pub(super) fn resend_last(&mut self, now: Instant) -> Option<Span> {
        let sent = self.segments.back_mut()?;
        sent.again = true;
        sent.at = now;
        Some((sent.from, sent.to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// One-byte segments sent at these times.
    fn flight(times: &[u64]) -> Flight {
        let mut flight = Flight::default();
        for (octet, &ms) in (0..).zip(times) {
            flight.push((octet, octet + 1), at(ms));
        }
        flight
    }

    #[test]
    fn what_was_overtaken_is_lost_a_quarter_of_a_round_trip_later() {
        let mut flight = flight(&[0, 1, 2]);
        assert_eq!(
            flight.acknowledge(0, &[(1, 2)], at(41)),
            Some(Duration::from_millis(40))
        );
        assert_eq!(flight.find_losses(at(41), false), Some(at(50)));
        assert!(!flight.has_losses());
        assert_eq!(flight.find_losses(at(50), false), None);
        // The third was sent after the segment that has arrived.
        assert_eq!(flight.resend_lost(at(50)), Some((0, 1)));
        assert_eq!(flight.resend_lost(at(50)), None);
        assert_eq!(flight.octets(), 2);
    }

    #[test]
    fn after_three_arrivals_beyond_a_hole_nothing_is_waited_for() {
        let mut flight = flight(&[0, 0, 0, 0]);
        flight.acknowledge(0, &[(1, 4)], at(40));
        flight.find_losses(at(40), false);
        assert!(flight.has_losses());
    }

    #[test]
    fn what_was_sent_again_and_lost_again_is_found() {
        let mut flight = flight(&[0, 0, 0, 0]);
        flight.acknowledge(0, &[(1, 4)], at(40));
        flight.find_losses(at(40), false);
        assert_eq!(flight.resend_lost(at(40)), Some((0, 1)));
        flight.push((4, 5), at(41));
        assert_eq!(flight.find_losses(at(60), true), None);
        flight.acknowledge(0, &[(1, 5)], at(81));
        flight.find_losses(at(81), true);
        assert_eq!(flight.resend_lost(at(81)), Some((0, 1)));
    }
}
