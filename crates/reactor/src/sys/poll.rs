//! poll(2) with a timeout in nanoseconds.

use std::io;
use std::os::fd::RawFd;
use std::ptr;

use base::Duration;

use crate::sys::{check, timespec};
use crate::syscalls::{Call, enter};
use crate::token::{Interest, Readiness};

/// One descriptor of a set, and its readiness.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct PollFd(libc::pollfd);

impl PollFd {
    pub(crate) fn new(fd: RawFd, interest: Interest) -> Self {
        Self(libc::pollfd {
            fd,
            events: interest.mask() as i16,
            revents: 0,
        })
    }

    pub(crate) fn readiness(&self) -> Readiness {
        Readiness::from_mask(u32::from(self.0.revents as u16))
    }
}

/// Waits for one of `set`. Returns how many are ready; a signal counts as none.
pub(crate) fn poll(set: &mut [PollFd], timeout: Option<Duration>) -> io::Result<usize> {
    let timeout = timeout.map(timespec);
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    let entered = enter(Call::Poll).map_err(io::Error::from);
    let result = entered.and_then(|()| {
        // SAFETY: `PollFd` is a transparent `pollfd`, so the pointer and the length are
        // those of a valid array; the timeout is null or lives until the call returns.
        check(unsafe {
            libc::ppoll(
                set.as_mut_ptr().cast(),
                set.len() as libc::nfds_t,
                timeout,
                ptr::null(),
            )
        })
    });
    match result {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            // The readiness in the set is from the wait before.
            set.iter_mut().for_each(|slot| slot.0.revents = 0);
            Ok(0)
        }
        result => result,
    }
}
