//! Rests a moment before the next wait while datagrams arrive one by one at a high rate, so that
//! one turn answers several. Network cards moderate interrupts in the same way.
//!
//! Resting must not slow down peers that send only after a reply. It is therefore tried first, and
//! kept only while the arrival rate is as high as without it. A failed try is repeated after one
//! second at the earliest, then with growing intervals.

use base::{Duration, Instant};

/// Length of one rest.
const SPAN: Duration = Duration::from_micros(500);
/// Turns closer together than this, with few datagrams each, count as a trickle.
const GAP: Duration = Duration::from_micros(300);
const FEW: u64 = 4;
/// Number of turns of a trickle before a try, and of turns in a try before it is judged.
const STREAK: u32 = 64;
const TRIAL: u32 = 8;
/// Wait before the next try.
const AGAIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(64);

/// Decides whether to rest, from measurements of past turns.
pub(super) struct Rest {
    resting: bool,
    /// Start of the stretch of turns being measured.
    began: Instant,
    turns: u32,
    datagrams: u64,
    last: Instant,
    /// Datagrams per second before the try.
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

    /// How long to rest now, if other work is due at `deadline`.
    pub(super) fn span(&self, now: Instant, deadline: Option<Instant>) -> Option<Duration> {
        let free = deadline.is_none_or(|deadline| deadline.since(now) >= SPAN);
        (self.resting && free).then_some(SPAN)
    }

    /// Records a turn: how many datagrams arrived, and whether it had other work.
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

    /// Runs turns until `seconds` have passed. In each turn, `arrive` returns the datagrams that
    /// arrived since the previous turn. Returns how many turns rested, and how many turns ran.
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
        // The next datagram arrives 30 us after the reply, so there is one in each turn.
        let mut answered = 0;
        let (rested, _) = run(10, |span| {
            answered += 1;
            (span + Duration::from_micros(30), 1)
        });
        // Without rests there would be 333,333.
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
