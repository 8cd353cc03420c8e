//! A token bucket (RFC 4443 section 2.4 f) in eight bytes.

use base::Instant;

/// A rate: tokens on average, and at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    interval_ns: u64,
    burst_ns: u64,
}

impl Rate {
    /// `per_s` tokens a second, and up to `burst` at once after a pause. No tokens if either is 0.
    #[must_use]
    pub const fn new(per_s: u32, burst: u32) -> Self {
        if per_s == 0 || burst == 0 {
            return Self {
                interval_ns: 0,
                burst_ns: 0,
            };
        }
        let interval_ns = 1_000_000_000_u64.div_ceil(per_s as u64);
        Self {
            interval_ns,
            burst_ns: interval_ns.saturating_mul(burst as u64),
        }
    }
}

/// Ten a second, ten at once: RFC 4443's values for small devices, and enough for a traceroute of one subscriber.
impl Default for Rate {
    fn default() -> Self {
        Self::new(10, 10)
    }
}

/// The use of a [`Rate`], as the time when the bucket is full again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bucket {
    full_at_ns: u64,
}

impl Bucket {
    /// Takes a token. `false` if there is none.
    #[must_use]
    pub fn take(&mut self, rate: &Rate, now: Instant) -> bool {
        let now = now.as_nanos();
        let full_at = self.full_at_ns.max(now).saturating_add(rate.interval_ns);
        let has = rate.interval_ns > 0 && full_at - now <= rate.burst_ns;
        if has {
            self.full_at_ns = full_at;
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Duration;
    use proptest::prelude::*;

    fn at_ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let rate = Rate::new(10, 3);
        let mut bucket = Bucket::default();
        let mut taken = |ms| bucket.take(&rate, at_ms(ms));
        assert_eq!([0, 0, 0, 0].map(&mut taken), [true, true, true, false]);
        assert_eq!(
            [99, 100, 150, 200].map(&mut taken),
            [false, true, false, true]
        );
        let rested = [9000, 9000, 9000, 9000].map(&mut taken);
        assert_eq!(rested, [true, true, true, false]);
    }

    #[test]
    fn a_rate_of_nothing_lets_none_pass() {
        for rate in [Rate::new(0, 5), Rate::new(5, 0)] {
            assert!(!Bucket::default().take(&rate, at_ms(5)));
        }
    }

    proptest! {
        #[test]
        fn no_span_of_time_has_more_than_burst_and_rate(
            per_s in 1..5000_u32,
            burst in 1..50_u32,
            steps in prop::collection::vec(0..50_000_000_u64, 1..300),
        ) {
            let rate = Rate::new(per_s, burst);
            let mut bucket = Bucket::default();
            let mut now = 1_000_000_000_u64;
            let mut passed = Vec::new();
            for step in steps {
                now += step;
                if bucket.take(&rate, Instant::from_nanos(now)) {
                    passed.push(now);
                }
            }
            for (n, first) in passed.iter().enumerate() {
                for (count, last) in passed[n..].iter().enumerate() {
                    let span_s = (last - first) as f64 / 1e9;
                    let most = f64::from(burst) + span_s * f64::from(per_s);
                    prop_assert!((count + 1) as f64 <= most + 1e-6);
                }
            }
        }
    }
}
