//! Waking a loop from another thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use crate::syscalls::{Call, SysCounts};

/// A descriptor that is readable from [`Waker::wake`] until [`Waker::clear`].
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// Opens a waker that is not awake.
    ///
    /// # Errors
    /// The kernel's error, for example that no descriptor is left.
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(
            0,
            EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC,
        )?))
    }

    /// Makes it readable; a second wake before the next clear changes nothing.
    pub fn wake(&self) {
        SysCounts::note(Call::Write);
        // Fails only after 2^64 - 2 wake-ups without a clear: it is readable then.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Makes it unreadable. Returns whether it was readable.
    pub fn clear(&self) -> bool {
        SysCounts::note(Call::Read);
        rustix::io::read(&self.0, &mut [0_u8; 8]).is_ok()
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interest, PollerKind, Reactor, StoreKind};

    #[test]
    fn another_thread_ends_a_wait_without_deadline() {
        let waker = Waker::new().unwrap();
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab).unwrap();
        reactor.add(&waker, "waker", 7, Interest::READ).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake());
            reactor.wait(None).unwrap();
        });
        assert_eq!(reactor.next_ready().map(|ready| ready.user), Some(7));
        waker.wake();
        assert!(waker.clear());
        assert!(!waker.clear());
    }
}
