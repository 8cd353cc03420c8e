//! Throttling of logins: after some failures in a row, a name or a line has to wait before its next attempt is looked at,
//! twice as long after each further one.
//!
//! The table has room for [`ENTRIES_MAX`] names and lines. It is divided into sets of four; in a full set, the entry
//! that failed longest ago makes room, and is counted. So a flood of new names costs no more than this table.

use core::hash::BuildHasher;

use base::{Duration, Instant};
use foldhash::fast::FixedState;

/// Entries of a set.
const WAYS: usize = 4;
/// The most names and lines that are remembered.
pub const ENTRIES_MAX: usize = 1 << 16;

/// When and how long logins wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottleConfig {
    /// Failures in a row after which the next attempt waits.
    pub failures: u16,
    /// The first wait; each further failure doubles it.
    pub delay: Duration,
    /// The longest wait.
    pub delay_max: Duration,
    /// Failures are forgotten after this long without another one.
    pub forget: Duration,
}

impl Default for ThrottleConfig {
    fn default() -> Self {
        Self {
            failures: 5,
            delay: Duration::from_secs(2),
            delay_max: Duration::from_secs(300),
            forget: Duration::from_secs(900),
        }
    }
}

/// What logins are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject<'a> {
    /// The claimed name.
    Name(&'a [u8]),
    /// The line that it comes from.
    Line(&'a [u8]),
}

/// Counters of a [`Throttle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ThrottleCounters {
    /// Attempts that had to wait.
    pub throttled: u64,
    /// Names and lines with failures that made room for others before they were forgotten.
    pub evicted: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    /// The subject's hash.
    tag: u64,
    /// 0: the entry is free.
    failures: u16,
    last: Instant,
    until: Instant,
}

const FREE: Entry = Entry {
    tag: 0,
    failures: 0,
    last: Instant::ZERO,
    until: Instant::ZERO,
};

/// The names and lines that failed lately.
pub struct Throttle {
    config: ThrottleConfig,
    entries: Box<[Entry]>,
    hasher: FixedState,
    counters: ThrottleCounters,
}

impl Throttle {
    /// An empty table. Who knows `seed` can find names that share a set.
    #[must_use]
    pub fn new(config: ThrottleConfig, seed: u64) -> Self {
        Self {
            config,
            entries: vec![FREE; ENTRIES_MAX].into(),
            hasher: FixedState::with_seed(seed),
            counters: ThrottleCounters::default(),
        }
    }

    /// Replaces the configuration. Waits that have started stay.
    pub fn set_config(&mut self, config: ThrottleConfig) {
        self.config = config;
    }

    /// Counters.
    #[must_use]
    pub fn counters(&self) -> ThrottleCounters {
        self.counters
    }

    /// Whether none of the subjects has to wait. If one has, the attempt is counted.
    pub fn may_try(&mut self, subjects: &[Subject<'_>], now: Instant) -> bool {
        let waits = subjects.iter().any(|subject| {
            let tag = self.hasher.hash_one(subject);
            self.set_of(tag)
                .iter()
                .any(|one| one.failures > 0 && one.tag == tag && now < one.until)
        });
        self.counters.throttled += u64::from(waits);
        !waits
    }

    /// Notes a failure of each subject.
    pub fn fail(&mut self, subjects: &[Subject<'_>], now: Instant) {
        for subject in subjects {
            self.fail_one(self.hasher.hash_one(subject), now);
        }
    }

    fn fail_one(&mut self, tag: u64, now: Instant) {
        let config = self.config;
        let is_old = |one: &Entry| one.failures == 0 || one.last + config.forget <= now;
        let set = self.set_of(tag);
        let found = set
            .iter()
            .position(|one| one.failures > 0 && one.tag == tag);
        let at = found.unwrap_or_else(|| {
            let oldest = (0..WAYS).min_by_key(|&at| (set[at].failures > 0, set[at].last));
            oldest.unwrap_or(0)
        });
        let before = set[at];
        let failures = match found {
            Some(_) if !is_old(&before) => before.failures.saturating_add(1),
            Some(_) | None => 1,
        };
        let over = failures.checked_sub(config.failures.max(1));
        let until = over.map_or(now, |over| {
            let factor = 1_u64.checked_shl(over.into()).unwrap_or(u64::MAX);
            now + config.delay.saturating_mul(factor).min(config.delay_max)
        });
        set[at] = Entry {
            tag,
            failures,
            last: now,
            until,
        };
        self.counters.evicted += u64::from(found.is_none() && !is_old(&before));
    }

    /// Forgets the failures of each subject: it proved itself.
    pub fn succeed(&mut self, subjects: &[Subject<'_>]) {
        for subject in subjects {
            let tag = self.hasher.hash_one(subject);
            for one in self.set_of(tag) {
                if one.tag == tag {
                    *one = FREE;
                }
            }
        }
    }

    fn set_of(&mut self, tag: u64) -> &mut [Entry] {
        let sets = self.entries.len() / WAYS;
        let start = (tag as usize % sets) * WAYS;
        &mut self.entries[start..start + WAYS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    const ANN: &[Subject<'_>] = &[Subject::Name(b"ann"), Subject::Line(b"port 7")];

    #[test]
    fn the_wait_starts_after_some_failures_and_doubles_up_to_its_limit() {
        let mut throttle = Throttle::new(ThrottleConfig::default(), 1);
        let mut now = at(10);
        for _ in 0..5 {
            assert!(throttle.may_try(ANN, now));
            throttle.fail(ANN, now);
        }
        for wait in [2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            let last = now + Duration::from_millis(1_000 * wait - 1);
            assert!(!throttle.may_try(ANN, last), "{wait}");
            now += Duration::from_secs(wait);
            assert!(throttle.may_try(ANN, now), "{wait}");
            throttle.fail(ANN, now);
        }
        assert_eq!(throttle.counters().throttled, 10);
    }

    #[test]
    fn another_name_on_the_line_waits_and_on_another_line_does_not() {
        let mut throttle = Throttle::new(ThrottleConfig::default(), 1);
        for _ in 0..5 {
            throttle.fail(ANN, at(1));
        }
        assert!(!throttle.may_try(&[Subject::Name(b"bob"), Subject::Line(b"port 7")], at(1)));
        assert!(!throttle.may_try(&[Subject::Name(b"ann"), Subject::Line(b"port 8")], at(1)));
        assert!(throttle.may_try(&[Subject::Name(b"bob"), Subject::Line(b"port 8")], at(1)));
        // A name is no line.
        assert!(throttle.may_try(&[Subject::Line(b"ann")], at(1)));
    }

    #[test]
    fn a_success_and_a_long_pause_forget_the_failures() {
        let mut throttle = Throttle::new(ThrottleConfig::default(), 1);
        for _ in 0..5 {
            throttle.fail(ANN, at(1));
        }
        throttle.succeed(ANN);
        assert!(throttle.may_try(ANN, at(1)));
        for _ in 0..4 {
            throttle.fail(ANN, at(2));
        }
        throttle.fail(ANN, at(902));
        assert!(throttle.may_try(ANN, at(902)));
    }

    #[test]
    fn a_flood_of_names_costs_no_more_than_the_table_and_is_counted() {
        let mut throttle = Throttle::new(ThrottleConfig::default(), 1);
        for number in 0..4 * ENTRIES_MAX as u64 {
            let name = number.to_be_bytes();
            throttle.fail(&[Subject::Name(&name)], at(1 + number / 10_000));
        }
        let evicted = throttle.counters().evicted;
        assert!(
            evicted >= 3 * ENTRIES_MAX as u64 - ENTRIES_MAX as u64 / 8,
            "{evicted}"
        );
        assert!(evicted < 4 * ENTRIES_MAX as u64);
    }

    #[test]
    fn no_sequence_makes_anybody_wait_longer_than_the_limit() {
        for seed in 0..200 {
            let mut throttle = Throttle::new(ThrottleConfig::default(), seed);
            let (mut random, mut now) = (seed, at(0));
            for _ in 0..300 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                now += Duration::from_secs(random >> 58);
                let name = [(random >> 40 & 7) as u8];
                let subject = [Subject::Name(&name)];
                match random >> 32 & 3 {
                    0 => throttle.succeed(&subject),
                    _ => throttle.fail(&subject, now),
                }
                assert!(throttle.may_try(&subject, now + Duration::from_secs(300)));
            }
        }
    }
}
