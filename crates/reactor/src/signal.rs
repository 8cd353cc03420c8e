//! Signals as a descriptor: those that end a daemon or make it reload its configuration.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys::signal;

/// A signal that the daemon acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// SIGTERM: shut down in order.
    Terminate,
    /// SIGINT: the same, from a terminal.
    Interrupt,
    /// SIGHUP: reload the configuration.
    Hangup,
}

/// SIGTERM, SIGINT and SIGHUP as a readable descriptor. SIGPIPE is ignored from then on.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// Blocks the signals and opens the descriptor. Call it before starting threads: a thread that runs already would
    /// still be interrupted.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new() -> io::Result<Self> {
        signal::ignore(libc::SIGPIPE);
        signal::open(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP]).map(Self)
    }

    /// The next signal; `None` if there is none now.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn next_signal(&self) -> io::Result<Option<Signal>> {
        Ok(signal::next(&self.0)?.and_then(|number| match number {
            libc::SIGTERM => Some(Signal::Terminate),
            libc::SIGINT => Some(Signal::Interrupt),
            libc::SIGHUP => Some(Signal::Hangup),
            _ => None,
        }))
    }
}

/// SIGQUIT as a readable descriptor: ping's users request the statistics so far with it.
#[derive(Debug)]
pub struct StatusRequests(OwnedFd);

impl StatusRequests {
    /// Blocks the signal and opens the descriptor. Call it before starting threads, as [`Signals::new`].
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new() -> io::Result<Self> {
        signal::open(&[libc::SIGQUIT]).map(Self)
    }

    /// Whether the signal arrived since the last call.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn take(&self) -> io::Result<bool> {
        Ok(signal::next(&self.0)?.is_some())
    }
}

impl AsFd for StatusRequests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
