//! Being woken in time.
//!
//! An ordinary thread that wakes up waits until the slice of the one that runs is over, some milliseconds on a busy
//! processor, whatever its nice value. A thread under SCHED_FIFO does not wait, and one with a short slice of its own
//! (Linux 6.12) hardly.

use std::num::NonZeroU64;

use crate::sys::schedule;

/// The shortest slice that the kernel takes.
const SLICE_NS: u64 = 100_000;

/// What the kernel granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Urgency {
    /// The calling thread runs before all ordinary ones.
    RealTime,
    /// It is an ordinary one of the highest priority, with short slices.
    Preferred,
    /// It is as it was, with short slices where the kernel has them.
    Ordinary,
}

/// Asks for the calling thread to be woken in time: without timer slack, under SCHED_FIFO if `real_time` is wished, else
/// or where that is not permitted as an ordinary thread of the highest priority, and where that is not permitted either
/// with short slices. Threads that it starts are ordinary.
///
/// Under SCHED_FIFO it should sleep most of the time: what else runs on its processor waits for it.
pub fn hasten(real_time: bool) -> Urgency {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    if real_time && schedule::set(libc::SCHED_FIFO, 1, 0, 0).is_ok() {
        return Urgency::RealTime;
    }
    // Kernels before 6.12 have no slices of one's own, and take no notice of the wish.
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
