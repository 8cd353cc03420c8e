//! Delays the next wait briefly while single datagrams arrive at a high rate, so that one turn answers several. Network
//! cards moderate interrupts in the same way.
//!
//! This must not slow down peers that send only after a reply. So the delay is tried, and kept only while as many
//! datagrams arrive with it as without. A failed try is repeated after a second at the earliest, then ever more rarely.

use base::{Duration, Instant};

/// How long a rest takes.
const SPAN: Duration = Duration::from_micros(500);
/// Turns closer together than this, with few datagrams each, are a trickle.
const GAP: Duration = Duration::from_micros(300);
const FEW: u64 = 4;
/// Turns of a trickle before a try, and turns of a try before it is judged.
const STREAK: u32 = 64;
const TRIAL: u32 = 8;
/// Waits before the next try.
const AGAIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(64);

/// Whether to rest, learned from turn to turn.
pub(super) struct Rest {
    resting: bool,
    /// Counts of the turns that are being measured.
    began: Instant,
    turns: u32,
    datagrams: u64,
    last: Instant,
    /// Datagrams in a second before the try.
    rate_before: f64,
    not_before: Instant,
    again: Duration,
}

impl Rest {
    pub(super) fn new() -> Self {
        Self {
            resting: false,
            began: Instant::ZERO,
            turns: 0,
            datagrams: 0,
            last: Instant::ZERO,
            rate_before: 0.0,
            not_before: Instant::ZERO,
            again: AGAIN,
        }
    }

    /// How long to rest now, if something else is due at `deadline`.
    pub(super) fn span(&self, now: Instant, deadline: Option<Instant>) -> Option<Duration> {
        let free = deadline.is_none_or(|deadline| deadline.since(now) >= SPAN);
        (self.resting && free).then_some(SPAN)
    }

    /// Takes note of a turn: the datagrams that came, and whether it had anything
    /// else to do.
    pub(super) fn note(&mut self, now: Instant, datagrams: u64, other_work: bool) {
        let gap = now.since(core::mem::replace(&mut self.last, now));
        if other_work || datagrams == 0 {
            return self.start_over(now);
        }
        if !self.resting && (gap > GAP || datagrams > FEW) {
            return self.start_over(now);
        }
        self.turns += 1;
        self.datagrams += datagrams;
        let rate = self.datagrams as f64 / now.since(self.began).as_secs_f64().max(1e-9);
        if !self.resting {
            if self.turns >= STREAK && now >= self.not_before {
                self.start_over(now);
                self.resting = true;
                self.rate_before = rate;
            }
        } else if self.turns >= TRIAL {
            self.start_over(now);
            if rate > 0.75 * self.rate_before {
                self.resting = true;
                self.again = AGAIN;
            } else {
                self.not_before = now + self.again;
                self.again = self.again.saturating_mul(2).min(AGAIN_MAX);
            }
        }
    }

    fn start_over(&mut self, now: Instant) {
        self.resting = false;
        self.began = now;
        self.turns = 0;
        self.datagrams = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns until `seconds` have passed; each asks `arrive` what came since the
    /// one before. Returns how many turns rested and how many there were.
    fn run(seconds: u64, mut arrive: impl FnMut(Duration) -> (Duration, u64)) -> (u64, u64) {
        let (mut rest, mut now) = (Rest::new(), Instant::ZERO);
        let (mut rested, mut turns) = (0, 0);
        while now < Instant::ZERO + Duration::from_secs(seconds) {
            let span = rest.span(now, None).unwrap_or_default();
            let (passed, datagrams) = arrive(span);
            now += passed;
            rest.note(now, datagrams, false);
            rested += u64::from(span > Duration::ZERO);
            turns += 1;
        }
        (rested, turns)
    }

    #[test]
    fn what_comes_by_itself_at_a_high_rate_is_gathered() {
        // One datagram every 100 us, independent of our replies.
        let (rested, turns) = run(10, |span| match span {
            Duration::ZERO => (Duration::from_micros(100), 1),
            span => (span, span.as_nanos() / 100_000),
        });
        assert!(rested * 100 > turns * 99, "{rested} of {turns}");
    }

    #[test]
    fn a_peer_that_waits_for_answers_is_not_slowed_down() {
        // The next datagram comes 30 us after the reply, so each turn has one.
        let mut answered = 0;
        let (rested, _) = run(10, |span| {
            answered += 1;
            (span + Duration::from_micros(30), 1)
        });
        // Without rests it would be 333,333.
        assert!(answered > 330_000, "{answered}");
        assert!(rested < 100, "{rested}");
    }

    #[test]
    fn what_is_rare_or_comes_in_batches_never_rests() {
        let (rested, _) = run(10, |span| (span + Duration::from_millis(1), 1));
        assert_eq!(rested, 0);
        let (rested, _) = run(1, |span| (span + Duration::from_micros(100), 64));
        assert_eq!(rested, 0);
    }

    #[test]
    fn other_work_and_deadlines_are_not_kept_waiting() {
        let mut rest = Rest::new();
        let mut now = Instant::ZERO;
        for _ in 0..100 {
            now += Duration::from_micros(100);
            rest.note(now, 1, false);
        }
        assert_eq!(rest.span(now, None), Some(SPAN));
        assert_eq!(rest.span(now, Some(now + Duration::from_micros(10))), None);
        rest.note(now, 1, true);
        assert_eq!(rest.span(now, None), None);
    }
}
