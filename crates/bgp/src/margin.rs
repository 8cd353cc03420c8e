//! How near sessions come to the end of their hold time (RFC 4271, section 4.4): a number that a session of a busy speaker
//! shows before it ends.

use base::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// The least time that was left on a hold timer when a message of its peer was received. Noting a message costs two
/// comparisons.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HoldMargin {
    /// When the present second ends.
    ends: Instant,
    /// The least in the present second; the maximum if no message was noted.
    least: Duration,
    /// The least in the last second before it in which a message was noted.
    before: Option<Duration>,
}

impl Default for HoldMargin {
    fn default() -> Self {
        Self {
            ends: Instant::ZERO,
            least: Duration::MAX,
            before: None,
        }
    }
}

impl HoldMargin {
    /// Notes a message that was received at `at` with so much time left.
    #[inline]
    pub(crate) fn note(&mut self, left: Duration, at: Instant) {
        if at >= self.ends {
            self.turn(at);
        }
        if left < self.least {
            self.least = left;
        }
    }

    #[cold]
    fn turn(&mut self, at: Instant) {
        self.before = self.of_complete(at);
        self.least = Duration::MAX;
        let second = at.as_nanos() / SECOND.as_nanos();
        self.ends = Instant::from_nanos(second.saturating_mul(SECOND.as_nanos())) + SECOND;
    }

    /// The least in the last complete second with a message.
    pub(crate) fn of_complete(&self, now: Instant) -> Option<Duration> {
        if now >= self.ends && self.least != Duration::MAX {
            Some(self.least)
        } else {
            self.before
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_a_second_is_shown_from_its_end_on() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let ms = Duration::from_millis;
        let mut margin = HoldMargin::default();
        assert_eq!(margin.of_complete(at(5_000)), None);
        margin.note(ms(60), at(5_100));
        margin.note(ms(40), at(5_200));
        margin.note(ms(70), at(5_999));
        assert_eq!(margin.of_complete(at(5_999)), None);
        assert_eq!(margin.of_complete(at(6_000)), Some(ms(40)));
        margin.note(ms(90), at(6_000));
        assert_eq!(margin.of_complete(at(6_500)), Some(ms(40)));
        assert_eq!(margin.of_complete(at(7_000)), Some(ms(90)));
        assert_eq!(margin.of_complete(at(60_000)), Some(ms(90)));
        margin.note(ms(10), at(60_000));
        assert_eq!(margin.of_complete(at(60_000)), Some(ms(90)));
    }
}
