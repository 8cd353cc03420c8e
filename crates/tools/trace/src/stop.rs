//! Signals end the reading, not the report.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reactor::Signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a pipe may be silent after a signal before it counts as ended. The writer of the pipe, which the same Ctrl-C
/// ends, can write its rest in this time.
const GRACE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 300_000_000,
};

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The source has something to read.
    Ready,
    /// The source has an error.
    Fault,
    /// A signal has come, perhaps.
    Signal,
    /// The time is over.
    Late,
}

/// Whether a signal has come.
pub(crate) struct Stop {
    signals: Signals,
    stopped: AtomicBool,
}

impl Stop {
    /// Takes SIGINT, SIGTERM and SIGHUP from here on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn new() -> io::Result<Stop> {
        Ok(Stop {
            signals: Signals::new()?,
            stopped: AtomicBool::new(false),
        })
    }

    /// Whether another signal has come since the first.
    pub(crate) fn again(&self) -> bool {
        matches!(self.signals.next_signal(), Ok(Some(_)))
    }

    /// Waits for a socket or a signal, for at most `limit`. With `signals` false, signals are left for later.
    ///
    /// # Errors
    /// The operating system cannot wait.
    pub(crate) fn wait_for(
        &self,
        source: &impl AsFd,
        limit: Duration,
        signals: bool,
    ) -> io::Result<Woken> {
        let limit = Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: limit.subsec_nanos().into(),
        };
        let mut watched = [
            PollFd::new(source, PollFlags::IN),
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
        ];
        let count = if signals { 2 } else { 1 };
        match poll(&mut watched[..count], Some(&limit)) {
            Ok(0) => return Ok(Woken::Late),
            Err(rustix::io::Errno::INTR) => return Ok(Woken::Signal),
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        let source = watched[0].revents();
        if source.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) {
            return Ok(Woken::Fault);
        }
        Ok(match source.is_empty() {
            true => Woken::Signal,
            false => Woken::Ready,
        })
    }

    fn take(&self) {
        if let Ok(Some(_)) = self.signals.next_signal() {
            self.stopped.store(true, Ordering::Relaxed);
        }
    }
}

impl trace::capture::Stop for Stop {
    fn is_set(&self) -> bool {
        if !self.stopped.load(Ordering::Relaxed) {
            self.take();
        }
        self.stopped.load(Ordering::Relaxed)
    }

    fn wait(&self, source: &File) -> io::Result<bool> {
        loop {
            let stopped = self.stopped.load(Ordering::Relaxed);
            let mut watched = [
                PollFd::new(source, PollFlags::IN),
                PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            ];
            match poll(&mut watched, stopped.then_some(&GRACE)) {
                Ok(0) => return Ok(false),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            let ready = !watched[0].revents().is_empty();
            let signal = !watched[1].revents().is_empty();
            if signal && stopped && self.again() {
                return Ok(false);
            }
            if signal {
                self.take();
            }
            if ready {
                return Ok(true);
            }
        }
    }
}
