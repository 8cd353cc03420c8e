//! Signals as a descriptor.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::sys::check;
use crate::syscalls::{Call, enter};

/// Blocks `signals` in this thread and in threads that it starts later, and opens a non-blocking descriptor that
/// reports them.
pub(crate) fn open(signals: &[libc::c_int]) -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set, the other calls then only read it or
    // add to it; signalfd returns a descriptor that nobody else owns.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        let blocked = libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut());
        if blocked != 0 {
            return Err(io::Error::from_raw_os_error(blocked));
        }
        let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);
        check(fd)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Makes the process ignore a signal.
pub(crate) fn ignore(signal: libc::c_int) {
    // SAFETY: no handler is installed, so nothing runs in signal context.
    unsafe {
        libc::signal(signal, libc::SIG_IGN);
    }
}

/// The next signal's number; `None` if there is none now.
pub(crate) fn next(fd: &OwnedFd) -> io::Result<Option<libc::c_int>> {
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
    let size = size_of::<libc::signalfd_siginfo>();
    let entered = enter(Call::Read).map_err(io::Error::from);
    let read = entered.and_then(|()| {
        // SAFETY: the kernel writes at most `size` bytes into `info`.
        let read = unsafe { libc::read(fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        check(read as libc::c_int)
    });
    match read {
        Ok(read) if read == size => {
            // SAFETY: the kernel has written all of it.
            let info = unsafe { info.assume_init() };
            Ok(Some(info.ssi_signo.cast_signed()))
        }
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Interest, PollerKind, Reactor, Signal, Signals, StatusRequests, StoreKind};

    #[test]
    fn signals_arrive_as_readiness_in_their_order_of_number() {
        let signals = Signals::new().unwrap();
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab).unwrap();
        reactor.add(&signals, "signals", 0, Interest::READ).unwrap();
        assert_eq!(signals.next_signal().unwrap(), None);
        for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
            // SAFETY: the signal goes to this thread alone, which has it blocked.
            unsafe { libc::raise(signal) };
        }
        reactor.wait(None).unwrap();
        assert!(reactor.next_ready().is_some());
        let all: Vec<_> = std::iter::from_fn(|| signals.next_signal().unwrap()).collect();
        assert_eq!(all, [Signal::Hangup, Signal::Interrupt, Signal::Terminate]);
    }

    #[test]
    fn whoever_asks_how_things_stand_ends_nothing() {
        let requests = StatusRequests::new().unwrap();
        assert!(!requests.take().unwrap());
        // SAFETY: the signal goes to this thread alone, which has it blocked.
        unsafe { libc::raise(libc::SIGQUIT) };
        assert!(requests.take().unwrap());
        assert!(!requests.take().unwrap());
    }
}
