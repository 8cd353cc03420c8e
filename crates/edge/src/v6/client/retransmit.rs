//! When a client's message is sent again (RFC 8415, sections 7.6 and 15).

use base::{Duration, Instant};

/// The parameters of one kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// IRT, in seconds.
    pub(super) first_s: u32,
    /// MRT, in seconds; 0: none.
    pub(super) most_s: u32,
    /// MRC; 0: none.
    pub(super) count: u8,
    /// Whether the first time is longer than IRT, never shorter (section 18.2.1).
    pub(super) only_longer: bool,
}

impl Limits {
    const fn new(first_s: u32, most_s: u32, count: u8) -> Self {
        Self {
            first_s,
            most_s,
            count,
            only_longer: false,
        }
    }

    /// SOL_TIMEOUT, and SOL_MAX_RT as a server may have set it.
    pub(super) const fn solicit(most_s: u32) -> Self {
        Self {
            only_longer: true,
            ..Self::new(1, most_s, 0)
        }
    }

    pub(super) const REQUEST: Self = Self::new(1, 30, 10);
    pub(super) const RENEW: Self = Self::new(10, 600, 0);
    pub(super) const REBIND: Self = Self::new(10, 600, 0);
    pub(super) const RELEASE: Self = Self::new(1, 0, 4);
}

/// The course of one exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    limits: Limits,
    started: Instant,
    time: Duration,
    sent: u8,
}

impl Course {
    /// An exchange whose first message is sent now. `random` is any number.
    pub(super) fn new(limits: Limits, random: u64, now: Instant) -> Self {
        let first = Duration::from_secs(limits.first_s.into());
        let time = match limits.only_longer {
            // RAND is more than 0: at least one step of 16 bits.
            true => first + part(first, (random >> 49) as u16 | 1),
            false => shifted(first, random),
        };
        Self {
            limits,
            started: now,
            time,
            sent: 1,
        }
    }

    /// The wait for an answer to the latest message.
    pub(super) fn time(&self) -> Duration {
        self.time
    }

    /// Whether the latest message was the first one.
    pub(super) fn is_first(&self) -> bool {
        self.sent == 1
    }

    /// The value of Elapsed Time: hundredths of a second since the first message (section 21.9).
    pub(super) fn elapsed(&self, now: Instant) -> u16 {
        let hundredths = now.since(self.started).as_nanos() / 10_000_000;
        hundredths.try_into().unwrap_or(u16::MAX)
    }

    /// Counts another message; `false` if no further one may be sent.
    pub(super) fn again(&mut self, random: u64) -> bool {
        if self.limits.count != 0 && self.sent >= self.limits.count {
            return false;
        }
        self.sent = self.sent.saturating_add(1);
        let before = self.time;
        let time = before + shifted(before, random);
        let most = Duration::from_secs(self.limits.most_s.into());
        self.time = match most != Duration::ZERO && time > most {
            true => shifted(most, random),
            false => time,
        };
        true
    }
}

/// A duration with a tenth of itself added or taken away: RAND.
fn shifted(span: Duration, random: u64) -> Duration {
    let bits = (random >> 48) as u16;
    let most = span.as_nanos() / 10;
    Duration::from_nanos(span.as_nanos() - most) + part(span, bits) + part(span, bits)
}

/// A share of a tenth: all of it at 65,535.
fn part(span: Duration, bits: u16) -> Duration {
    Duration::from_nanos(span.as_nanos() / 10 / 65_535 * u64::from(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    #[test]
    fn the_first_solicit_s_time_is_more_than_a_second_and_others_are_within_a_tenth() {
        let (mut low, mut high) = (Duration::MAX, Duration::ZERO);
        for n in 0..1_000_u64 {
            let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let solicit = Course::new(Limits::solicit(3_600), random, NOW).time();
            assert!(solicit > Duration::from_secs(1) && solicit <= Duration::from_millis(1_100));
            let renew = Course::new(Limits::RENEW, random, NOW).time();
            (low, high) = (low.min(renew), high.max(renew));
        }
        assert!(low >= Duration::from_millis(8_999) && low < Duration::from_millis(9_050));
        assert!(high <= Duration::from_secs(11) && high > Duration::from_millis(10_950));
    }

    #[test]
    fn times_double_up_to_the_most_and_the_count_ends_them() {
        // The middle of the range: RAND is 0.
        let middle = 0x7fff_u64 << 48;
        let mut course = Course::new(Limits::REQUEST, middle, NOW);
        let mut seconds = vec![course.time().as_secs_f64().round()];
        while course.again(middle) {
            seconds.push(course.time().as_secs_f64().round());
        }
        assert_eq!(
            seconds,
            [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0, 30.0]
        );
        let mut course = Course::new(Limits::RELEASE, middle, NOW);
        let again = (0..9).filter(|_| course.again(middle)).count();
        assert_eq!(again, 3, "REL_MAX_RC counts the first one");
        let mut endless = Course::new(Limits::solicit(3_600), middle, NOW);
        assert!((0..1_000).all(|_| endless.again(middle)));
        assert!(endless.time() <= Duration::from_secs(3_960));
    }

    #[test]
    fn the_elapsed_time_is_in_hundredths_of_seconds_and_stops_at_its_most() {
        let course = Course::new(Limits::REQUEST, 0, NOW);
        assert_eq!(course.elapsed(NOW), 0);
        assert_eq!(course.elapsed(NOW + Duration::from_millis(1_239)), 123);
        assert_eq!(course.elapsed(NOW + Duration::from_secs(100_000)), u16::MAX);
    }
}
