//! The kernel's resource counters of this process and of its children.

use std::mem::MaybeUninit;

/// `getrusage(RUSAGE_SELF)`.
pub(crate) fn usage() -> libc::rusage {
    usage_of(libc::RUSAGE_SELF)
}

/// `getrusage(RUSAGE_CHILDREN)`.
pub(crate) fn usage_of_children() -> libc::rusage {
    usage_of(libc::RUSAGE_CHILDREN)
}

fn usage_of(who: libc::c_int) -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one `rusage`. All zeros are one too, so that the
    // value is valid even if the call failed, which it cannot for these two.
    unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    }
}
