//! What a loop does at the moment, for a thread that watches the loop from outside.
//!
//! A loop that hangs in a handler cannot report that itself. It publishes the start, the name and the work of the
//! present handler with relaxed stores, which cost about a nanosecond each. The watching thread looks at them some
//! times a second while the loop works, and sleeps while the loop waits: an idle loop causes no wake-ups. The loop wakes
//! it, at most once for each look, when it starts to work.
//!
//! Start with [`Pulse::look`] for the watcher, and with [`crate::Reactor::enter`] for the loop.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

use base::{Duration, Instant};

/// Set in the number of a handler that has finished while the next one is not named yet.
const FINISHED: u32 = 1 << 31;
/// No handler has been named since the last wait.
const NONE: u32 = u32::MAX;

/// The present state of a loop.
#[derive(Debug, Default)]
pub struct Pulse {
    /// When the present handler started, in nanoseconds; 0 while the loop waits.
    since: AtomicU64,
    /// Its number, perhaps with [`FINISHED`], or [`NONE`].
    handler: AtomicU32,
    /// The owner's number for what it works on.
    work: AtomicU64,
    /// Whether it carries out `request`.
    has_request: AtomicBool,
    request: Mutex<&'static str>,
    names: Mutex<Vec<&'static str>>,
    /// Whether the watcher sleeps until the loop works.
    is_asleep: AtomicBool,
    has_ended: AtomicBool,
    watcher: OnceLock<Thread>,
}

/// A handler that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// When it started.
    pub since: Instant,
    /// Its name, or that of the handler before it if `is_after`; `None` if the loop has just started its turn.
    pub handler: Option<&'static str>,
    /// Whether `handler` has finished: what runs now comes after it.
    pub is_after: bool,
    /// The owner's number for what it works on, 0 if there is none.
    pub work: u64,
    /// What it was asked for.
    pub request: Option<&'static str>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pulse {
    /// A handler has got the next number.
    pub(crate) fn name(&self, name: &'static str) {
        locked(&self.names).push(name);
    }

    /// The loop starts to wait.
    pub(crate) fn waits(&self) {
        self.since.store(0, Release);
    }

    /// The loop starts a turn.
    pub(crate) fn starts(&self, now: Instant) {
        self.handler.store(NONE, Relaxed);
        // Either this thread sees that the watcher sleeps, or the watcher sees that the loop works.
        self.since.store(now.as_nanos(), SeqCst);
        if self.is_asleep.load(SeqCst) {
            self.wake();
        }
    }

    /// A handler has finished, and whatever is next starts.
    pub(crate) fn lap(&self, handler: u8, now: Instant) {
        self.since.store(now.as_nanos(), Relaxed);
        self.handler.store(u32::from(handler) | FINISHED, Relaxed);
    }

    /// A handler starts to work on something.
    pub(crate) fn enter(&self, handler: u8, work: u64) {
        self.handler.store(u32::from(handler), Relaxed);
        self.work.store(work, Relaxed);
        self.has_request.store(false, Relaxed);
    }

    /// The present handler goes on with a request.
    pub(crate) fn carry_out(&self, work: u64, request: &'static str) {
        *locked(&self.request) = request;
        self.work.store(work, Relaxed);
        self.has_request.store(true, Relaxed);
    }

    #[cold]
    fn wake(&self) {
        self.is_asleep.store(false, Release);
        if let Some(watcher) = self.watcher.get() {
            watcher.unpark();
        }
    }

    /// What the loop does now; `None` while it waits.
    #[must_use]
    pub fn look(&self) -> Option<Running> {
        let since = self.since.load(Acquire);
        if since == 0 {
            return None;
        }
        let number = self.handler.load(Relaxed);
        let is_named = number != NONE;
        let index = (number & !FINISHED) as usize;
        let name = locked(&self.names).get(index).copied();
        let is_after = number & FINISHED != 0;
        let has_work = is_named && !is_after;
        Some(Running {
            since: Instant::from_nanos(since),
            handler: name.filter(|_| is_named),
            is_after: is_named && is_after,
            work: if has_work { self.work.load(Relaxed) } else { 0 },
            request: (has_work && self.has_request.load(Relaxed)).then(|| *locked(&self.request)),
        })
    }

    /// Sleeps until the loop works or [`Pulse::end`] was called. Only the first thread that calls this may watch.
    pub fn sleep_while_idle(&self) {
        self.watcher.get_or_init(std::thread::current);
        self.is_asleep.store(true, SeqCst);
        if self.since.load(SeqCst) != 0 || self.has_ended() {
            self.is_asleep.store(false, Relaxed);
        }
        // The turn that woke this thread may be over again.
        while self.is_asleep.load(Acquire) {
            std::thread::park();
        }
    }

    /// Sleeps for a while, or until [`Pulse::end`] was called.
    pub fn sleep(&self, span: Duration) {
        self.watcher.get_or_init(std::thread::current);
        if !self.has_ended() {
            std::thread::park_timeout(std::time::Duration::from_nanos(span.as_nanos()));
        }
    }

    /// Ends the watch.
    pub fn end(&self) {
        self.has_ended.store(true, SeqCst);
        self.wake();
    }

    /// Whether the watch is over.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(SeqCst)
    }

    /// Whether the watcher sleeps until the loop works.
    #[must_use]
    pub fn is_asleep(&self) -> bool {
        self.is_asleep.load(SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn it_names_what_runs_and_what_ran_before() {
        let pulse = Pulse::default();
        pulse.name("udp read");
        pulse.name("control");
        assert_eq!(pulse.look(), None);
        let at = |ns| Instant::from_nanos(ns);
        pulse.starts(at(10));
        let seen = |pulse: &Pulse| {
            let seen = pulse.look().unwrap();
            (seen.since, seen.handler, seen.is_after, seen.work)
        };
        assert_eq!(seen(&pulse), (at(10), None, false, 0));
        pulse.enter(1, 77);
        assert_eq!(pulse.look().unwrap().request, None);
        pulse.carry_out(78, "show.tunnels");
        assert_eq!(seen(&pulse), (at(10), Some("control"), false, 78));
        assert_eq!(pulse.look().unwrap().request, Some("show.tunnels"));
        pulse.lap(1, at(20));
        assert_eq!(seen(&pulse), (at(20), Some("control"), true, 0));
        assert_eq!(pulse.look().unwrap().request, None);
        pulse.enter(0, 3);
        assert_eq!(seen(&pulse), (at(20), Some("udp read"), false, 3));
        pulse.waits();
        assert_eq!(pulse.look(), None);
    }

    #[test]
    fn the_watcher_sleeps_until_the_loop_works_or_it_ends() {
        let pulse = Arc::new(Pulse::default());
        let watched = Arc::clone(&pulse);
        let watcher = std::thread::spawn(move || {
            let mut woken = 0;
            while !watched.has_ended() {
                watched.sleep_while_idle();
                woken += u32::from(watched.look().is_some());
                while watched.look().is_some() && !watched.has_ended() {
                    std::thread::yield_now();
                }
            }
            woken
        });
        for turn in 1..=3 {
            while !pulse.is_asleep() {
                std::thread::yield_now();
            }
            pulse.starts(Instant::from_nanos(turn));
            // Woken once for each turn that starts while it sleeps.
            while pulse.is_asleep() {
                std::thread::yield_now();
            }
            pulse.waits();
        }
        while !pulse.is_asleep() {
            std::thread::yield_now();
        }
        pulse.end();
        assert!(watcher.join().unwrap() <= 3);
    }
}
