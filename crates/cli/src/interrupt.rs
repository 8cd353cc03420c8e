//! Work that must be done when a signal ends a command: processes to kill, files to remove, results to print.
//!
//! One thread watches for SIGINT and SIGTERM for the whole process. It does all registered work, the newest first, and
//! ends the process with status 130.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use reactor::{Signal, Signals};
use rustix::event::{PollFd, PollFlags, poll};

/// The exit status after a signal.
pub const STATUS: i32 = 130;

/// The registered work, oldest first.
struct Registry {
    next: u64,
    work: Vec<(u64, Box<dyn FnOnce() + Send>)>,
    is_watched: bool,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    next: 0,
    work: Vec::new(),
    is_watched: false,
});

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Work that is registered until this is dropped. Once the process is ending, dropping it waits for the end of the
/// process: the failure of an interrupted command is not reported.
#[derive(Debug)]
#[must_use = "the work is no longer registered once this is dropped"]
pub struct AtEnd(u64);

/// Registers `work` for the case that a signal or [`end`] ends the process. Call this before starting threads: a thread
/// that runs already would still be interrupted.
///
/// # Errors
/// The signals cannot be blocked.
pub fn at_end(work: impl FnOnce() + Send + 'static) -> Result<AtEnd> {
    let mut registry = registry();
    if !registry.is_watched {
        let signals = Signals::new().context("cannot take signals")?;
        std::thread::spawn(move || {
            if wait_for(&signals).is_ok() {
                end(STATUS);
            }
        });
        registry.is_watched = true;
    }
    let number = registry.next;
    registry.next += 1;
    registry.work.push((number, Box::new(work)));
    Ok(AtEnd(number))
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        registry().work.retain(|(number, _)| *number != self.0);
    }
}

/// Does all registered work, the newest first, and ends the process with `status`.
pub fn end(status: i32) -> ! {
    // The lock is kept to the end, so that no more work is registered, and none is done twice.
    let mut registry = registry();
    while let Some((_, work)) = registry.work.pop() {
        work();
    }
    std::process::exit(status)
}

/// Waits for a signal that requests the end.
///
/// # Errors
/// The kernel's error.
pub fn wait_for(signals: &Signals) -> io::Result<()> {
    loop {
        let mut fds = [PollFd::new(signals, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(Signal::Terminate | Signal::Interrupt) = signals.next_signal()? {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_registered_until_its_guard_is_dropped() {
        let numbers =
            || -> Vec<u64> { registry().work.iter().map(|(number, _)| *number).collect() };
        let first = at_end(|| {}).unwrap();
        let second = at_end(|| {}).unwrap();
        assert_eq!(numbers(), [first.0, second.0]);
        drop(first);
        assert_eq!(numbers(), [second.0]);
        drop(second);
        assert!(numbers().is_empty() && registry().is_watched);
    }
}
