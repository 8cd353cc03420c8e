//! What is on its way, and what of it is lost: RACK, RFC 8985 section 6.
//!
//! A segment is lost when one that was sent later has arrived, and a round trip has passed since it was sent. That finds
//! segments lost again after they were sent again, too. Left out: reordering, which queues of one flow do not do.

use std::collections::VecDeque;

use base::{Duration, Instant};

use super::Span;

/// Arrivals beyond a hole after which nothing is taken for reordered any more.
const DUPLICATES: usize = 3;

/// A segment that was sent and is not acknowledged.
#[derive(Debug, Clone, Copy)]
struct Sent {
    from: u64,
    to: u64,
    /// When it was sent the last time.
    at: Instant,
    /// It was sent more than once.
    again: bool,
    /// The other end has it, beyond a hole.
    sacked: bool,
    /// It is believed lost, and was not sent again yet.
    lost: bool,
}

/// All of them, in order.
#[derive(Debug, Default)]
pub(super) struct Flight {
    segments: VecDeque<Sent>,
    /// Of what has arrived, what was sent last: when, its end, and how long it took. `RACK.segment` and `RACK.rtt`.
    newest: Option<(Instant, u64, Duration)>,
    /// The shortest round trip.
    least: Option<Duration>,
}

impl Flight {
    /// Books a new segment.
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

    /// The first octet that the other end has not acknowledged.
    pub(super) fn first(&self) -> Option<u64> {
        self.segments.front().map(|first| first.from)
    }

    /// Octets that are believed to be on their way.
    pub(super) fn octets(&self) -> u64 {
        let on_its_way = self
            .segments
            .iter()
            .filter(|sent| !sent.sacked && !sent.lost);
        on_its_way.map(|sent| sent.to - sent.from).sum()
    }

    /// Whether something beyond a hole has arrived.
    pub(super) fn has_holes(&self) -> bool {
        self.segments.iter().any(|sent| sent.sacked)
    }

    pub(super) fn has_losses(&self) -> bool {
        self.segments.iter().any(|sent| sent.lost)
    }

    /// Everything below `to` has arrived, and the blocks of `sack`. The round trip of the last of it that was sent only
    /// once (RFC 6298 section 3).
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
                // The one that was sent before it has arrived.
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

    /// Finds what is lost. When to look again, if something may be.
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

    /// The timer ran out: what was sent first is lost, and what has had its time (RFC 8985 6.3).
    pub(super) fn time_out(&mut self, now: Instant) {
        let round_trip = self.newest.map_or(Duration::ZERO, |newest| newest.2);
        let mut is_first = true;
        for sent in self.segments.iter_mut().filter(|sent| !sent.sacked) {
            sent.lost |= is_first || sent.at + round_trip <= now;
            is_first = false;
        }
    }

    /// The first that is lost, which is sent again now.
    pub(super) fn resend_lost(&mut self, now: Instant) -> Option<Span> {
        let sent = self.segments.iter_mut().find(|sent| sent.lost)?;
        sent.lost = false;
        sent.again = true;
        sent.at = now;
        Some((sent.from, sent.to))
    }

    /// The last, which is sent again now.
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

    /// Segments of one octet, sent at these times.
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
        // The third was sent after what has arrived.
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
