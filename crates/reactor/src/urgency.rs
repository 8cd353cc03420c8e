//! Waking threads up on time.
//!
//! An ordinary thread that wakes up waits until the running thread's time slice ends: some milliseconds on a busy
//! processor, whatever its nice value. A thread under SCHED_FIFO does not wait, and one with its own short slice
//! (Linux 6.12) hardly waits.

use std::num::NonZeroU64;

use crate::sys::schedule;

/// The kernel's shortest slice.
const SLICE_NS: u64 = 100_000;

/// What the kernel granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Urgency {
    /// The calling thread runs before all ordinary ones.
    RealTime,
    /// The thread is an ordinary one of the highest priority, with short slices.
    Preferred,
    /// The thread is unchanged, with short slices if the kernel has them.
    Ordinary,
}

/// Asks the kernel to wake the calling thread on time. It turns timer slack off and uses the best class that is
/// permitted: SCHED_FIFO if `real_time` is set; else an ordinary thread of the highest priority; else short slices
/// only. Threads that it starts later are ordinary.
///
/// Under SCHED_FIFO the thread should sleep most of the time: other threads on its processor wait for it.
pub fn hasten(real_time: bool) -> Urgency {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    if real_time && schedule::set(libc::SCHED_FIFO, 1, 0, 0).is_ok() {
        return Urgency::RealTime;
    }
    // Kernels before 6.12 have no slices per thread, and ignore the request.
    if schedule::set(libc::SCHED_OTHER, 0, -20, SLICE_NS).is_ok() {
        return Urgency::Preferred;
    }
    let nice = rustix::process::getpriority_process(None).unwrap_or(0);
    let _ = schedule::set(libc::SCHED_OTHER, 0, nice, SLICE_NS);
    Urgency::Ordinary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_hastened_and_those_it_starts_are_not() {
        let (own, child) = std::thread::spawn(|| {
            let granted = hasten(false);
            let nice = || rustix::process::getpriority_process(None).unwrap();
            let child = std::thread::spawn(nice).join().unwrap();
            assert_eq!(granted == Urgency::Preferred, nice() == -20);
            (nice(), child)
        })
        .join()
        .unwrap();
        assert!(own <= child, "{own} {child}");
        assert!(child >= 0, "{child}");
    }
}
