//! What the kernel knows about the system clock.

use std::io;
use std::mem::MaybeUninit;

use super::check;

/// `adjtimex(2)` that changes nothing: the status and values of the clock.
pub(crate) fn read_discipline() -> io::Result<libc::timex> {
    let mut timex = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: `modes` is zero, so the kernel only writes the structure, which lives until the call returns.
    check(unsafe { libc::adjtimex(timex.as_mut_ptr()) })?;
    // SAFETY: all bytes were zero, which is a value of each field, and the kernel wrote the rest.
    Ok(unsafe { timex.assume_init() })
}
