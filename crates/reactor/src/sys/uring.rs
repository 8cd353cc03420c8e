//! An io_uring that is used for polling only.

use std::io;
use std::os::fd::RawFd;

use base::Duration;
use io_uring::{EnterFlags, IoUring, opcode, squeue, types};

use crate::syscalls::{Call, enter};

const SUBMISSIONS: u32 = 256;
const COMPLETIONS: u32 = 4096;

/// How long to stay in the kernel.
#[derive(Clone, Copy)]
pub(crate) enum Wait {
    /// Only submit, and process the completions that are due.
    No,
    /// Until a completion.
    Forever,
    /// Until a completion, but no longer.
    Timeout(Duration),
}

/// A completion: the poll, the result, and whether more will follow.
#[derive(Clone, Copy)]
pub(crate) struct Completion {
    pub(crate) user_data: u64,
    pub(crate) result: i32,
    pub(crate) more: bool,
}

pub(crate) struct Ring(IoUring);

impl Ring {
    /// Opens a ring for the thread that will use it.
    pub(crate) fn new() -> io::Result<Self> {
        let deferred = IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            .setup_submit_all()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(SUBMISSIONS);
        let ring = match deferred {
            // Linux before 6.1 lacks these flags.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::builder()
                .setup_cqsize(COMPLETIONS)
                .build(SUBMISSIONS),
            result => result,
        };
        let ring = ring.map_err(unsupported)?;
        let params = ring.params();
        if !params.is_feature_ext_arg() || !params.is_feature_nodrop() {
            return Err(unsupported(io::Error::other("it has no timed wait")));
        }
        Ok(Self(ring))
    }

    /// Queues a multishot poll. The next [`Ring::enter`] submits it, or an earlier call if the queue is full.
    pub(crate) fn poll_add(&mut self, fd: RawFd, mask: u32, user_data: u64) -> io::Result<()> {
        let entry = opcode::PollAdd::new(types::Fd(fd), mask)
            .multi(true)
            .build();
        self.push(&entry.user_data(user_data))
    }

    /// Queues the end of a poll; its own completion carries `user_data`.
    pub(crate) fn poll_remove(&mut self, target: u64, user_data: u64) -> io::Result<()> {
        self.push(&opcode::PollRemove::new(target).build().user_data(user_data))
    }

    /// `entry` must be a poll operation: these hold no pointer.
    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        if self.0.submission().is_full() {
            self.enter(Wait::No)?;
        }
        // SAFETY: poll operations hold no pointer that would have to stay valid, and
        // the kernel checks the descriptor.
        unsafe { self.0.submission().push(entry) }
            .map_err(|_| io::Error::new(io::ErrorKind::ResourceBusy, "io_uring's queue is full"))
    }

    /// Submits the queue and waits. A signal or a timeout is `Ok`.
    pub(crate) fn enter(&mut self, wait: Wait) -> io::Result<()> {
        let queued = self.0.submission().len() as u32;
        let span = match wait {
            Wait::Timeout(span) => types::Timespec::from(core::time::Duration::from(span)),
            Wait::No | Wait::Forever => types::Timespec::new(),
        };
        let args = types::SubmitArgs::new();
        let args = if matches!(wait, Wait::Timeout(_)) {
            args.timespec(&span)
        } else {
            args
        };
        let complete = u32::from(!matches!(wait, Wait::No));
        let flags = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
        let entered = enter(Call::UringEnter).map_err(io::Error::from);
        let result = entered.and_then(|()| {
            // SAFETY: `args` is what EXT_ARG says it is, and it and `span`, which it
            // points to, live until the call returns.
            unsafe {
                self.0
                    .submitter()
                    .enter(queued, complete, flags.bits(), Some(&args))
            }
        });
        match result {
            Ok(_) => Ok(()),
            // EBUSY and EAGAIN: completions have to be taken first.
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Whether a completion is waiting.
    pub(crate) fn has_completion(&mut self) -> bool {
        !self.0.completion().is_empty()
    }

    /// Takes the oldest completion.
    pub(crate) fn next_completion(&mut self) -> Option<Completion> {
        self.0.completion().next().map(|entry| Completion {
            user_data: entry.user_data(),
            result: entry.result(),
            more: io_uring::cqueue::more(entry.flags()),
        })
    }
}

/// Adds what to do about a kernel without io_uring, or one that forbids it.
fn unsupported(error: io::Error) -> io::Error {
    let text = format!(
        "io_uring cannot be had here (Linux 5.11 or later, kernel.io_uring_disabled = 0, no \
         seccomp filter against it): {error}"
    );
    io::Error::new(io::ErrorKind::Unsupported, text)
}
