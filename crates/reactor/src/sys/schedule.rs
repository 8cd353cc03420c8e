//! How the scheduler treats the calling thread.

use std::io;

use super::check;

/// `SCHED_FLAG_RESET_ON_FORK`: threads and processes started later are ordinary again.
const RESET_ON_FORK: u64 = 1;

/// `sched_setattr(2)` for the calling thread: policy, priority within SCHED_FIFO, nice value, and the time slice of
/// an ordinary thread in ns (0 for the kernel's default).
pub(crate) fn set(policy: libc::c_int, priority: u32, nice: i32, slice_ns: u64) -> io::Result<()> {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: policy.cast_unsigned(),
        sched_flags: RESET_ON_FORK,
        sched_nice: nice,
        sched_priority: priority,
        sched_runtime: slice_ns,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the pointer is to a structure that says its own size, lives until the call returns, and is only read.
    check(unsafe {
        libc::syscall(
            libc::SYS_sched_setattr,
            0,
            std::ptr::from_ref(&attributes),
            0_u32,
        )
    } as libc::c_int)
    .map(drop)
}
