//! What the kernel has booked on this process.

use std::mem::MaybeUninit;

/// `getrusage(RUSAGE_SELF)`.
pub(crate) fn usage() -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one `rusage`. All zeros are one too, so that the
    // value is valid even if the call failed, which it cannot for this process.
    unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    }
}
