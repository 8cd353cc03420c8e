//! Converts kernel time stamps, which are of the real clock, to the monotonic clock of the schedules.

use base::{Duration, Instant};
use rustix::time::ClockId;

use crate::clock::{nanos, now};

/// When a packet left or arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stamp {
    /// On the clock of [`crate::clock::now`].
    pub at: Instant,
    /// `CLOCK_REALTIME` in nanoseconds since 1970.
    pub real_ns: u64,
    /// Whether the kernel took it as the packet passed. Otherwise this process did, right before sending or after
    /// receiving.
    pub by_kernel: bool,
}

impl Stamp {
    /// Time since `earlier`; zero if that is later.
    ///
    /// This is the difference of the real clock, exact to the nanosecond, unless that clock was set in between. Then
    /// it is the difference of the monotonic clock, to which each stamp was converted when it was read.
    #[must_use]
    pub fn since(&self, earlier: &Stamp) -> Duration {
        let monotonic = self.at.since(earlier.at);
        let real = Duration::from_nanos(self.real_ns.saturating_sub(earlier.real_ns));
        let apart = monotonic.as_nanos().abs_diff(real.as_nanos());
        if apart > tolerance(monotonic) {
            monotonic
        } else {
            real
        }
    }
}

/// How far the two clocks may diverge over `span`: slewing is limited to 500 ppm (adjtimex(2)), and reading both
/// clocks may be interrupted.
fn tolerance(span: Duration) -> u64 {
    100_000 + span.as_nanos() / 1_000
}

/// The offset of the real clock from the monotonic one.
#[derive(Debug)]
pub(super) struct RealClock {
    /// Real minus monotonic, in ns.
    offset: i128,
    measured: Instant,
    steps: u64,
}

impl RealClock {
    pub(super) fn new() -> Self {
        let (offset, measured) = measure();
        Self {
            offset,
            measured,
            steps: 0,
        }
    }

    /// Measures the offset again; call it before converting new stamps.
    pub(super) fn refresh(&mut self) {
        let (offset, measured) = measure();
        let apart = offset.abs_diff(self.offset);
        let allowed = tolerance(measured.since(self.measured));
        self.steps += u64::from(apart > u128::from(allowed));
        (self.offset, self.measured) = (offset, measured);
    }

    /// How often the real clock was found to have been set.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// A stamp of the kernel's.
    pub(super) fn convert(&self, real_ns: u64) -> Stamp {
        let at = i128::from(real_ns) - self.offset;
        Stamp {
            at: Instant::from_nanos(u64::try_from(at.max(0)).unwrap_or(u64::MAX)),
            real_ns,
            by_kernel: true,
        }
    }

    /// A stamp of our own.
    pub(super) fn own(&self, at: Instant) -> Stamp {
        let real = i128::from(at.as_nanos()) + self.offset;
        Stamp {
            at,
            real_ns: u64::try_from(real.max(0)).unwrap_or(u64::MAX),
            by_kernel: false,
        }
    }
}

/// Reads one clock between two readings of the other, and keeps the narrowest of a few tries.
fn measure() -> (i128, Instant) {
    let mut best = (u64::MAX, 0, Instant::ZERO);
    for _ in 0..3 {
        let before = now().as_nanos();
        let real = nanos(rustix::time::clock_gettime(ClockId::Realtime));
        let after = now().as_nanos();
        let width = after.saturating_sub(before);
        if width < best.0 {
            let middle = i128::from(before) + i128::from(width / 2);
            best = (width, i128::from(real) - middle, Instant::from_nanos(after));
        }
    }
    (best.1, best.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(at: u64, real_ns: u64) -> Stamp {
        Stamp {
            at: Instant::from_nanos(at),
            real_ns,
            by_kernel: true,
        }
    }

    #[test]
    fn a_span_is_that_of_the_real_clock_unless_it_was_set() {
        let sent = stamp(1_000_000_000, 50_000_000_000);
        let same = stamp(1_020_000_300, 50_020_000_000);
        assert_eq!(same.since(&sent), Duration::from_millis(20));
        let set_ahead = stamp(1_020_000_300, 90_020_000_000);
        assert_eq!(set_ahead.since(&sent), Duration::from_nanos(20_000_300));
        let set_back = stamp(1_020_000_300, 10_020_000_000);
        assert_eq!(set_back.since(&sent), Duration::from_nanos(20_000_300));
    }

    #[test]
    fn a_stamp_goes_to_the_monotonic_clock_and_back() {
        let clock = RealClock::new();
        let at = now();
        let own = clock.own(at);
        assert_eq!(clock.convert(own.real_ns).at, at);
        assert!(!own.by_kernel && own.real_ns > 1_500_000_000_000_000_000);
    }

    #[test]
    fn a_clock_that_was_set_is_noticed_once() {
        let mut clock = RealClock::new();
        clock.refresh();
        assert_eq!(clock.steps(), 0);
        clock.offset += 1_000_000_000;
        clock.refresh();
        clock.refresh();
        assert_eq!(clock.steps(), 1);
    }
}
