//! epoll, with timeouts in nanoseconds if the kernel has them.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use base::Duration;

use crate::sys::{check, timespec};
use crate::syscalls::{Call, enter};

/// A change to the set that an epoll descriptor watches.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    Add = libc::EPOLL_CTL_ADD as isize,
    Modify = libc::EPOLL_CTL_MOD as isize,
    Delete = libc::EPOLL_CTL_DEL as isize,
}

/// Changes the watched set. `fd` is a number, not a borrow: the kernel checks it.
pub(crate) fn change(
    epoll: &OwnedFd,
    change: Change,
    fd: RawFd,
    events: u32,
    data: u64,
) -> io::Result<()> {
    let mut event = libc::epoll_event { events, u64: data };
    enter(Call::EpollCtl)?;
    // SAFETY: `event` lives until the call returns and is only read by it.
    check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), change as i32, fd, &mut event) }).map(drop)
}

/// The buffer for the kernel's events.
pub(crate) struct EventBuffer {
    events: Vec<libc::epoll_event>,
    /// Whether the kernel has epoll_pwait2 (Linux 5.11).
    precise: bool,
}

impl EventBuffer {
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            events: vec![libc::epoll_event { events: 0, u64: 0 }; budget],
            precise: true,
        }
    }

    /// Waits; yields each ready descriptor's data and mask. A signal counts as no event.
    pub(crate) fn wait(
        &mut self,
        epoll: &OwnedFd,
        timeout: Option<Duration>,
    ) -> io::Result<impl Iterator<Item = (u64, u32)> + '_> {
        let mut result = if self.precise {
            self.wait_ns(epoll, timeout)
        } else {
            Ok(0)
        };
        if matches!(&result, Err(error) if error.raw_os_error() == Some(libc::ENOSYS)) {
            self.precise = false;
        }
        if !self.precise {
            result = self.wait_ms(epoll, timeout);
        }
        let ready = match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            result => result?,
        };
        Ok(self.events[..ready]
            .iter()
            .map(|event| (event.u64, event.events)))
    }

    fn wait_ns(&mut self, epoll: &OwnedFd, timeout: Option<Duration>) -> io::Result<usize> {
        let timeout = timeout.map(timespec);
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        enter(Call::EpollWait)?;
        // SAFETY: the pointer and the length are those of `events`; the timeout is
        // null or lives until the call returns; no signal mask is given.
        let result = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as libc::c_int,
                timeout,
                ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        check(result as libc::c_int)
    }

    /// In whole milliseconds, rounded up so that no wait ends early and spins.
    fn wait_ms(&mut self, epoll: &OwnedFd, timeout: Option<Duration>) -> io::Result<usize> {
        let timeout = timeout.map_or(-1, |span| {
            libc::c_int::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX)
        });
        enter(Call::EpollWait)?;
        // SAFETY: the pointer and the length are those of `events`.
        check(unsafe {
            libc::epoll_wait(
                epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as libc::c_int,
                timeout,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    /// The path for kernels without epoll_pwait2.
    #[test]
    fn a_wait_in_milliseconds_never_ends_early() {
        let epoll = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC);
        let epoll = epoll.unwrap();
        let mut buffer = EventBuffer {
            precise: false,
            ..EventBuffer::new(8)
        };
        let span = Duration::from_micros(1_100);
        let before = clock::now();
        assert_eq!(buffer.wait(&epoll, Some(span)).unwrap().count(), 0);
        assert!(clock::now().since(before) >= Duration::from_millis(2));
    }
}
