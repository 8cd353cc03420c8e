//! Reports handlers of the loop that took too long, at most once per interval, and each one that hung and has returned.
//! `hangs` reports a handler that has not returned yet.

use base::{Duration, Instant};
use reactor::Reactor;

/// Minimum interval between two reports.
const INTERVAL: Duration = Duration::from_secs(10);

/// The overruns that are reported already.
pub(super) struct Watchdog {
    /// Those among which a hang was looked for.
    seen: u64,
    reported: u64,
    /// From when on a handler hangs; `None` if that is not watched.
    hang: Option<Duration>,
    not_before: Instant,
}

impl Watchdog {
    pub(super) fn new(hang: Option<Duration>) -> Self {
        Self {
            seen: 0,
            reported: 0,
            hang,
            not_before: Instant::ZERO,
        }
    }

    /// Logs the longest overrun since the last report.
    pub(super) fn look(&mut self, reactor: &Reactor, now: Instant) {
        let count = reactor.overrun_count();
        if count > self.seen {
            self.returned(reactor, count - self.seen);
            self.seen = count;
        }
        if count == self.reported || now < self.not_before {
            return;
        }
        let new = count - self.reported;
        let recent = reactor.overruns().rev();
        let longest = recent.take(new as usize).max_by_key(|one| one.wall);
        let Some(longest) = longest else { return };
        self.reported = count;
        self.not_before = now + INTERVAL;
        tracing::warn!(
            handler = longest.handler,
            wall_ms = longest.wall.as_nanos() / 1_000_000,
            cpu_ms = longest.cpu.as_nanos() / 1_000_000,
            calls = longest.calls,
            kept_waiting = longest.waiting_text(),
            overruns = new,
            "a handler kept the event loop too long"
        );
    }
    /// Logs those of the last `new` overruns that hung.
    fn returned(&self, reactor: &Reactor, new: u64) {
        let Some(hang) = self.hang else { return };
        let recent = reactor.overruns().rev().take(new as usize);
        for overrun in recent.filter(|overrun| overrun.wall >= hang) {
            tracing::error!(
                handler = overrun.handler,
                wall_ms = overrun.wall.as_millis(),
                cpu_ms = overrun.cpu.as_millis(),
                kept_waiting = overrun.waiting_text(),
                "a handler that hung has returned"
            );
        }
    }
}
