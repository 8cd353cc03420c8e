//! A token bucket that is exact at any rate.
//!
//! Levels are stored in billionths of a bit. A rate in bits per second adds a whole number of these in each
//! nanosecond, so no rounding error accumulates.

use base::Instant;

/// One byte, in billionths of a bit.
const OCTET: i64 = 8_000_000_000;

/// The most bytes that a bucket can hold or owe.
pub const BURST_MAX: u32 = 1 << 28;

const DEBT_MAX: i64 = BURST_MAX as i64 * OCTET;

/// A bucket that `rate_bps` fills and packets empty. Its level may be below zero: then it owes tokens.
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    rate_bps: u64,
    size: i64,
    level: i64,
    /// The time at which `level` was computed.
    at: u64,
}

/// The tokens of a packet.
#[derive(Debug, Clone, Copy)]
pub struct Tokens(i64);

impl Tokens {
    /// The tokens for `octets` bytes, of at most [`BURST_MAX`].
    #[inline]
    #[must_use]
    pub fn of(octets: u32) -> Self {
        Self(units(octets))
    }
}

impl Bucket {
    /// A bucket of at most `size` bytes that holds `level` bytes at `now`.
    #[must_use]
    pub fn new(rate_bps: u64, size: u32, level: i64, now: Instant) -> Self {
        let size = units(size);
        let most = i64::from(BURST_MAX);
        Self {
            rate_bps: rate_bps.max(1),
            size,
            level: (level.clamp(-most, most) * OCTET).min(size),
            at: now.as_nanos(),
        }
    }

    /// Changes rate and size from `now` on. Tokens that do not fit are lost.
    pub fn change(&mut self, rate_bps: u64, size: u32, now: Instant) {
        self.fill(now);
        self.rate_bps = rate_bps.max(1);
        self.size = units(size);
        self.level = self.level.min(self.size);
    }

    /// The rate that fills it, in bits per second.
    #[must_use]
    pub fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    /// Adds the tokens for the time until `now`.
    #[inline]
    pub fn fill(&mut self, now: Instant) {
        // Many packets leave in the same instant: nothing to add.
        if now.as_nanos() > self.at {
            self.level = self.level_at(now);
            self.at = now.as_nanos();
        }
    }

    #[inline]
    fn level_at(&self, now: Instant) -> i64 {
        let elapsed = now.as_nanos().saturating_sub(self.at);
        let gained = u128::from(self.rate_bps) * u128::from(elapsed);
        // The difference is at most twice BURST_MAX, which is less than i64::MAX.
        if gained >= (self.size - self.level) as u128 {
            self.size
        } else {
            self.level + gained as i64
        }
    }

    /// Takes out tokens, even if the bucket holds fewer.
    #[inline]
    pub fn take(&mut self, tokens: Tokens) {
        self.level = (self.level - tokens.0).max(-DEBT_MAX);
    }

    /// Whether the level was zero or above at the last [`Bucket::fill`].
    #[inline]
    #[must_use]
    pub fn is_even(&self) -> bool {
        self.level >= 0
    }

    /// The time at which the bucket holds `octets`, or is full if it cannot hold that many; may be in the past.
    #[inline]
    #[must_use]
    pub fn holds_at(&self, octets: u32) -> Instant {
        let missing = units(octets).min(self.size) - self.level;
        if missing <= 0 {
            return Instant::from_nanos(self.at);
        }
        let wait = (missing as u64).div_ceil(self.rate_bps);
        Instant::from_nanos(self.at.saturating_add(wait))
    }

    /// Whole bytes in it at the last [`Bucket::fill`], rounded down; negative if it owes.
    #[must_use]
    pub fn octets(&self) -> i64 {
        self.level.div_euclid(OCTET)
    }

    /// Whole bytes in it at `now`.
    #[must_use]
    pub fn octets_at(&self, now: Instant) -> i64 {
        self.level_at(now).div_euclid(OCTET)
    }
}

#[inline]
fn units(octets: u32) -> i64 {
    i64::from(octets.min(BURST_MAX)) * OCTET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_rate_gives_an_octet_on_the_nanosecond() {
        let mut bucket = Bucket::new(1_000, 1_500, 0, Instant::ZERO);
        let due = bucket.holds_at(1);
        assert_eq!(due, Instant::from_nanos(8_000_000));
        bucket.fill(Instant::from_nanos(7_999_999));
        assert_eq!(bucket.octets(), 0);
        bucket.fill(due);
        assert_eq!(bucket.octets(), 1);
    }

    #[test]
    fn a_changed_rate_counts_from_the_change_on() {
        let mut bucket = Bucket::new(8_000, 2_000, 0, Instant::ZERO);
        let second = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        bucket.change(800, 1_500, second(1));
        assert_eq!(bucket.octets_at(second(2)), 1_100);
        bucket.change(8, 10, second(3));
        assert_eq!(bucket.octets_at(second(3)), 10);
        assert_eq!(bucket.rate_bps(), 8);
    }

    #[test]
    fn many_small_steps_fill_as_much_as_one() {
        for rate_bps in [1_000, 2_345_677, 999_999_999_937, 100_000_000_000] {
            let mut steps = Bucket::new(rate_bps, BURST_MAX, -1_000, Instant::ZERO);
            let whole = steps;
            let mut now = Instant::ZERO;
            for step in 0..10_000_u64 {
                now = Instant::from_nanos(now.as_nanos() + step % 7);
                steps.fill(now);
            }
            assert_eq!(steps.level, whole.level_at(now));
        }
    }

    #[test]
    fn the_ends_of_time_and_of_size_do_not_overflow() {
        let mut bucket = Bucket::new(u64::MAX, u32::MAX, i64::MIN, Instant::ZERO);
        bucket.take(Tokens::of(u32::MAX));
        bucket.fill(Instant::FAR_FUTURE);
        assert_eq!(bucket.octets(), i64::from(BURST_MAX));
        let mut slow = Bucket::new(0, 1, 0, Instant::FAR_FUTURE);
        slow.take(Tokens::of(u32::MAX));
        assert_eq!(slow.holds_at(u32::MAX), Instant::FAR_FUTURE);
    }

    #[test]
    fn what_it_can_never_hold_is_due_when_it_is_full() {
        let bucket = Bucket::new(8_000, 100, 0, Instant::ZERO);
        assert_eq!(bucket.holds_at(5_000), bucket.holds_at(100));
    }
}
