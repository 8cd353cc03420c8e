//! The real clock.

use base::{Duration, Instant};
use rustix::time::{ClockId, Timespec};

use crate::syscalls::{Call, SysCounts};

/// `CLOCK_MONOTONIC` in nanoseconds since boot. No system call where the kernel
/// maps its clock into the process.
pub fn now() -> Instant {
    Instant::from_nanos(nanos(rustix::time::clock_gettime(ClockId::Monotonic)))
}

/// Lets waits of the calling thread end as early as the kernel can. By default the kernel may delay them by 50 us to
/// wake several threads at once.
///
/// # Errors
/// The kernel's error; waits are as before.
pub fn wake_precisely() -> std::io::Result<()> {
    let least = std::num::NonZeroU64::new(1);
    Ok(rustix::thread::set_current_timer_slack(least)?)
}

/// Sleeps for `span`, or until a signal.
pub(crate) fn sleep(span: Duration) {
    let request = Timespec {
        tv_sec: i64::try_from(span.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (span.as_nanos() % 1_000_000_000) as i64,
    };
    SysCounts::note(Call::Nanosleep);
    // The caller checks the time, so an interruption does no harm.
    let _ = rustix::thread::clock_nanosleep_relative(ClockId::Monotonic, &request);
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

    #[test]
    fn a_thread_asks_to_be_woken_in_time() {
        std::thread::spawn(|| {
            wake_precisely().unwrap();
            assert_eq!(rustix::thread::current_timer_slack().unwrap(), 1);
        })
        .join()
        .unwrap();
    }
}
