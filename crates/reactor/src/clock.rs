//! The real clock.

use base::Instant;
use rustix::time::{ClockId, Timespec};

/// `CLOCK_MONOTONIC` in nanoseconds since boot. No system call where the kernel
/// maps its clock into the process.
pub fn now() -> Instant {
    Instant::from_nanos(nanos(rustix::time::clock_gettime(ClockId::Monotonic)))
}

/// Seconds and nanoseconds as nanoseconds; zero before the origin.
pub(crate) fn nanos(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec)
        .unwrap_or(0)
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_goes_back() {
        let readings: Vec<_> = (0..1000).map(|_| now()).collect();
        assert!(readings.is_sorted());
    }
}
