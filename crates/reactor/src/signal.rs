//! The signals that end a daemon or make it read its configuration, as a descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys::signal;

/// A signal that the daemon acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// SIGTERM: end in good order.
    Terminate,
    /// SIGINT: the same, from a terminal.
    Interrupt,
    /// SIGHUP: read the configuration again.
    Hangup,
}

/// SIGTERM, SIGINT and SIGHUP as a descriptor to be watched for reading. SIGPIPE is
/// ignored from then on.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// Blocks the signals and opens the descriptor. Call it before starting threads:
    /// those that run already would still be interrupted.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn new() -> io::Result<Self> {
        signal::ignore(libc::SIGPIPE);
        signal::open(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP]).map(Self)
    }

    /// The next signal that has come, `None` if there is none now.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn next_signal(&self) -> io::Result<Option<Signal>> {
        Ok(signal::next(&self.0)?.and_then(|number| match number {
            libc::SIGTERM => Some(Signal::Terminate),
            libc::SIGINT => Some(Signal::Interrupt),
            libc::SIGHUP => Some(Signal::Hangup),
            _ => None,
        }))
    }
}

/// SIGQUIT as a descriptor to be watched for reading: with it ping's users ask how things stand.
#[derive(Debug)]
pub struct StatusRequests(OwnedFd);

impl StatusRequests {
    /// Blocks the signal and opens the descriptor. Call it before starting threads, as [`Signals::new`].
    ///
    /// # Errors
    /// What the kernel said.
    pub fn new() -> io::Result<Self> {
        signal::open(&[libc::SIGQUIT]).map(Self)
    }

    /// Whether somebody has asked since the last call.
    ///
    /// # Errors
    /// What the kernel said.
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
