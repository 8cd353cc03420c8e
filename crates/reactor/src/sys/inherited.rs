//! Takes descriptors that were open when this process started.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of the first descriptor that a service manager passes on (sd_listen_fds(3)).
const FIRST: usize = 3;

/// Takes the descriptor at this place among those that the service manager passed on. `None` if one was taken already.
pub(crate) fn take(index: usize) -> io::Result<Option<OwnedFd>> {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    let number =
        i32::try_from(FIRST.saturating_add(index)).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: this only asks whether the number is in use; it takes no pointer.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(None);
    }
    // SAFETY: the descriptor is open, and the manager opened it before this process ran, so that nothing in the process
    // owns it. The flag lets this happen once.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(number) }))
}
