//! The sending half of a connection: congestion window and retransmission.

use base::{Duration, Instant};

use super::flight::Flight;
use super::{MSS, Span};

/// Initial window in segments (RFC 6928).
const INITIAL: u64 = 10;

/// Limits of the time-out: RFC 6298 starts at one second, and Linux's minimum is a fifth of a
/// second.
const RTO_FIRST: Duration = Duration::from_secs(1);
const RTO_MIN: Duration = Duration::from_millis(200);
const RTO_MAX: Duration = Duration::from_secs(60);

/// The purpose of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timer {
    /// When it expires, segments that may have been reordered count as lost.
    Reordering,
    /// Nothing was received for two round trips: a probe makes the other end reply (RFC 8985
    /// section 7).
    Probe,
    /// The retransmission time-out of RFC 6298.
    Retransmission,
}

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct Sender {
    flight: Flight,
    next: u64,
    /// End of the application's data; the SYN counts as one byte.
    end: u64,
    window: u64,
    threshold: u64,
    /// Loss recovery ends when this offset is acknowledged.
    recover: Option<u64>,
    /// The end of the data sent before the probe in flight.
    probed: Option<u64>,
    timer: Option<(Instant, Timer)>,
    /// Start of the retransmission timer.
    since: Instant,
    /// Number of consecutive expiries without new data being acknowledged.
    backoff: u32,
    /// RFC 6298's SRTT and RTTVAR in nanoseconds.
    smoothed: Option<(u64, u64)>,
    /// Set after the window was reduced for a mark, until the receiver is informed (CWR).
    pub(super) reduced: bool,
    /// Spans to be sent now.
    pub(super) due: Vec<Span>,
}

impl Sender {
    pub(super) fn new() -> Self {
        Self {
            flight: Flight::default(),
            next: 0,
            end: 1,
            window: INITIAL * MSS,
            threshold: u64::MAX,
            recover: None,
            probed: None,
            timer: None,
            since: Instant::ZERO,
            backoff: 0,
            smoothed: None,
            reduced: false,
            due: Vec::new(),
        }
    }

    /// Adds bytes to the data to send.
    pub(super) fn write(&mut self, octets: u64) {
        self.end = self.end.saturating_add(octets);
    }

    /// The first byte that was never sent.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The first byte that is not acknowledged.
    fn acknowledged(&self) -> u64 {
        self.flight.first().unwrap_or(self.next)
    }

    /// When [`Sender::handle_timeout`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timer.map(|(at, _)| at)
    }

    /// Handles an acknowledgement; `marked` is its ECE flag.
    pub(super) fn take(&mut self, to: u64, sack: &[Span], marked: bool, now: Instant) {
        let before = self.acknowledged();
        let to = to.min(self.next);
        if let Some(round_trip) = self.flight.acknowledge(to, sack, now) {
            self.sample(round_trip);
        }
        if to > before {
            self.advance(to, to - before, now);
        }
        if marked && self.recover.is_none() {
            self.reduce();
            self.reduced = true;
        }
        self.look_for_losses(now);
    }

    fn advance(&mut self, to: u64, octets: u64, now: Instant) {
        self.since = now;
        self.backoff = 0;
        if self.probed.is_some_and(|probed| to >= probed) {
            self.probed = None;
        }
        if self.recover.is_some_and(|recover| to >= recover) {
            self.recover = None;
        }
        // The SYN's byte carries no data.
        if to == 1 {
            return;
        }
        if self.window < self.threshold {
            self.window += octets.min(2 * MSS);
        } else if self.recover.is_none() {
            self.window += (MSS * octets / self.window).max(1);
        }
    }

    /// Detects losses, reduces the window at most once per round trip, and sets the timer.
    fn look_for_losses(&mut self, now: Instant) {
        let look = self.flight.find_losses(now, self.recover.is_some());
        if self.flight.has_losses() && self.recover.is_none() {
            self.reduce();
        }
        let look = look.map(|at| (at, Timer::Reordering));
        self.timer = look.or_else(|| self.quiet_timer(now));
    }

    /// Halves the window.
    fn reduce(&mut self) {
        self.threshold = ((self.next - self.acknowledged()) / 2).max(2 * MSS);
        self.window = self.threshold;
        self.recover = Some(self.next);
    }

    /// The timer for the case that no more acknowledgements arrive.
    fn quiet_timer(&self, now: Instant) -> Option<(Instant, Timer)> {
        if self.flight.is_empty() {
            return None;
        }
        let rto = self
            .rto()
            .saturating_mul(1 << self.backoff.min(10))
            .min(RTO_MAX);
        let retransmission = (self.since + rto, Timer::Retransmission);
        let may_probe = self.recover.is_none() && self.probed.is_none() && !self.flight.has_holes();
        match self.smoothed {
            // Receivers here do not delay acknowledgements.
            Some((smoothed, _)) if may_probe => {
                let probe = (now + Duration::from_nanos(2 * smoothed), Timer::Probe);
                Some(if probe.0 < retransmission.0 {
                    probe
                } else {
                    retransmission
                })
            }
            _ => Some(retransmission),
        }
    }

    /// Updates the RTT estimate of RFC 6298, in nanoseconds.
    fn sample(&mut self, round_trip: Duration) {
        let sample = round_trip.as_nanos();
        self.smoothed = Some(match self.smoothed {
            None => (sample, sample / 2),
            Some((smoothed, deviation)) => (
                smoothed - smoothed / 8 + sample / 8,
                deviation - deviation / 4 + smoothed.abs_diff(sample) / 4,
            ),
        });
    }

    fn rto(&self) -> Duration {
        let computed = |(smoothed, deviation)| Duration::from_nanos(smoothed + 4 * deviation);
        let rto = self.smoothed.map_or(RTO_FIRST, computed);
        rto.clamp(RTO_MIN, RTO_MAX)
    }

    /// Handles expired timers.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let Some((_, timer)) = self.timer.filter(|(at, _)| *at <= now) else {
            return;
        };
        self.timer = None;
        match timer {
            Timer::Reordering => self.look_for_losses(now),
            Timer::Probe => self.probe(now),
            Timer::Retransmission => {
                if self.backoff == 0 {
                    self.reduce();
                }
                self.window = MSS;
                self.recover = Some(self.next);
                self.flight.time_out(now);
                self.backoff += 1;
                self.since = now;
                self.timer = self.quiet_timer(now);
            }
        }
    }

    /// Sends new data if there is any, otherwise the last segment again.
    fn probe(&mut self, now: Instant) {
        let probe = match self.take_new(now) {
            None => self.flight.resend_last(now),
            new => new,
        };
        self.due.extend(probe);
        self.probed = Some(self.next);
        self.since = now;
        self.timer = self.quiet_timer(now);
    }

    /// Sends as much as the window permits: lost segments first, then new data.
    pub(super) fn fill(&mut self, now: Instant) {
        let mut octets = self.flight.octets();
        while octets + MSS <= self.window {
            let was_empty = self.flight.is_empty();
            let lost = self.flight.resend_lost(now);
            let Some(span) = lost.or_else(|| self.take_new(now)) else {
                break;
            };
            octets += span.1 - span.0;
            self.due.push(span);
            if was_empty {
                self.since = now;
            }
            let is_reordering = self
                .timer
                .is_some_and(|(_, timer)| timer == Timer::Reordering);
            if !is_reordering {
                self.timer = self.quiet_timer(now);
            }
        }
    }

    /// The next new segment. The SYN comes first, and no data is sent before it is acknowledged.
    fn take_new(&mut self, now: Instant) -> Option<Span> {
        let from = self.next;
        let to = match from {
            0 => 1,
            _ if self.acknowledged() == 0 => return None,
            _ => self.end.min(from + MSS),
        };
        if to <= from {
            return None;
        }
        self.next = to;
        self.flight.push((from, to), now);
        Some((from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// A connection with a round trip of 40 ms that sent that many full segments at 40 ms, and the
    /// spans of these.
    fn opened(segments: u64) -> (Sender, Vec<Span>) {
        let mut sender = Sender::new();
        sender.fill(at(0));
        assert_eq!(std::mem::take(&mut sender.due), [(0, 1)]);
        sender.take(1, &[], false, at(40));
        sender.write(segments * MSS);
        sender.fill(at(40));
        let sent = std::mem::take(&mut sender.due);
        (sender, sent)
    }

    #[test]
    fn a_connection_begins_with_ten_segments() {
        assert_eq!(opened(100).1.len(), 10);
    }

    #[test]
    fn a_lost_tail_is_probed_after_two_round_trips_and_not_after_a_time_out() {
        let (mut sender, sent) = opened(3);
        sender.take(sent[1].1, &[], false, at(80));
        assert_eq!(sender.deadline(), Some(at(160)));
        sender.handle_timeout(at(160));
        assert_eq!(sender.due, [sent[2]]);
        // Next is the time-out, counted from the probe: probes do not repeat.
        assert_eq!(sender.deadline(), Some(at(360)));
    }

    #[test]
    fn a_loss_halves_the_window_once_and_is_sent_again_before_new_data() {
        let (mut sender, sent) = opened(100);
        sender.take(1, &[(sent[1].0, sent[3].1)], false, at(80));
        sender.take(1, &[(sent[1].0, sent[4].1)], false, at(80));
        assert_eq!(sender.window, 5 * MSS);
        sender.take(1, &[(sent[1].0, sent[6].1)], false, at(81));
        sender.fill(at(81));
        assert_eq!(sender.due.first(), Some(&sent[0]));
        assert_eq!(sender.window, 5 * MSS);
        sender.take(sent[9].1, &[], false, at(121));
        assert_eq!(sender.recover, None);
    }

    #[test]
    fn a_time_out_sends_the_first_again_and_doubles() {
        let (mut sender, sent) = opened(1);
        sender.handle_timeout(at(120));
        sender.due.clear();
        let first = sender.deadline().expect("the time-out");
        sender.handle_timeout(first);
        sender.fill(first);
        assert_eq!(std::mem::take(&mut sender.due), sent);
        let second = sender.deadline().expect("the next");
        assert_eq!(second.since(first), first.since(at(120)).saturating_mul(2));
    }
}
