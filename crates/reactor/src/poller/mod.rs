//! Pollers: find the ready descriptors among the watched ones.

mod epoll;
mod poll_kept;
mod poll_rebuilt;
mod uring;

use std::fmt;
use std::io;
use std::str::FromStr;

use base::Duration;

use crate::descriptors::Descriptors;
use crate::token::{Interest, Readiness, Token, UnknownName};

/// The most events taken from the kernel in one wait; the next turn takes the rest.
pub(crate) const BUDGET: usize = 1024;

/// How the reactor asks the kernel for ready descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum PollerKind {
    /// poll(2) with its set rebuilt from the descriptor store on each wait.
    PollRebuilt,
    /// poll(2) with its set kept between waits.
    PollKept,
    /// Level-triggered epoll.
    #[default]
    Epoll,
    /// io_uring's multishot poll.
    IoUring,
}

impl PollerKind {
    /// Every kind.
    pub const ALL: [PollerKind; 4] = [
        PollerKind::PollRebuilt,
        PollerKind::PollKept,
        PollerKind::Epoll,
        PollerKind::IoUring,
    ];

    /// Its name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            PollerKind::PollRebuilt => "poll-rebuilt",
            PollerKind::PollKept => "poll-kept",
            PollerKind::Epoll => "epoll",
            PollerKind::IoUring => "io_uring",
        }
    }
}

impl fmt::Display for PollerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PollerKind {
    type Err = UnknownName;

    fn from_str(given: &str) -> Result<Self, UnknownName> {
        PollerKind::ALL
            .into_iter()
            .find(|k| k.name() == given)
            .ok_or_else(|| UnknownName {
                what: "poller",
                allowed: &["poll-rebuilt", "poll-kept", "epoll", "io_uring"],
                given: given.to_owned(),
            })
    }
}

/// A way to ask the kernel. Readiness is level-triggered: each wait reports a descriptor while it is ready.
pub(crate) trait Poller: Send {
    /// Starts watching a descriptor whose number is not being watched.
    fn register(&mut self, token: Token, interest: Interest) -> io::Result<()>;

    /// Changes the events of a watched descriptor.
    fn modify(&mut self, token: Token, interest: Interest) -> io::Result<()>;

    /// Stops watching a descriptor, which may have been closed already.
    fn deregister(&mut self, token: Token);

    /// Appends the ready descriptors to `out`. Waits for at most `timeout`, and ends earlier only if a descriptor is
    /// ready or a signal arrives.
    fn wait(
        &mut self,
        watched: &Descriptors,
        timeout: Option<Duration>,
        out: &mut Vec<(Token, Readiness)>,
    ) -> io::Result<()>;

    /// The descriptor was read or written until it would block, so it need not be checked before the kernel reports
    /// it again.
    fn drained(&mut self, token: Token) {
        let _ = token;
    }
}

/// Makes a poller.
///
/// # Errors
/// The kernel's error; `Unsupported` if it lacks io_uring.
pub(crate) fn open(kind: PollerKind) -> io::Result<Box<dyn Poller>> {
    Ok(match kind {
        PollerKind::PollRebuilt => Box::new(poll_rebuilt::PollRebuilt::default()),
        PollerKind::PollKept => Box::new(poll_kept::PollKept::default()),
        PollerKind::Epoll => Box::new(epoll::Epoll::new()?),
        PollerKind::IoUring => Box::new(uring::Uring::new()?),
    })
}
