//! Pollers: which of the watched descriptors are ready.

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

/// Events taken from the kernel at most in one wait; what is left comes next turn.
pub(crate) const BUDGET: usize = 1024;

/// How the kernel is asked what is ready.
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

/// A way to ask the kernel. Readiness is by level: a descriptor that is ready and
/// stays ready is reported by each wait.
pub(crate) trait Poller: Send {
    /// Starts to watch a descriptor whose number is not being watched.
    fn register(&mut self, token: Token, interest: Interest) -> io::Result<()>;

    /// Watches a registered descriptor for something else.
    fn modify(&mut self, token: Token, interest: Interest) -> io::Result<()>;

    /// Stops to watch a descriptor, which may have been closed already.
    fn deregister(&mut self, token: Token);

    /// Appends what is ready to `out`; waits for it no longer than `timeout`, and
    /// not less when nothing is ready and no signal comes.
    fn wait(
        &mut self,
        watched: &Descriptors,
        timeout: Option<Duration>,
        out: &mut Vec<(Token, Readiness)>,
    ) -> io::Result<()>;

    /// The descriptor was read, or written, until it would block, so that it need
    /// not be looked at again before the kernel says so.
    fn drained(&mut self, token: Token) {
        let _ = token;
    }
}

/// Makes a poller.
///
/// # Errors
/// What the kernel said; `Unsupported` where it has no io_uring.
pub(crate) fn open(kind: PollerKind) -> io::Result<Box<dyn Poller>> {
    Ok(match kind {
        PollerKind::PollRebuilt => Box::new(poll_rebuilt::PollRebuilt::default()),
        PollerKind::PollKept => Box::new(poll_kept::PollKept::default()),
        PollerKind::Epoll => Box::new(epoll::Epoll::new()?),
        PollerKind::IoUring => Box::new(uring::Uring::new()?),
    })
}
