//! Reports handlers of the loop that took too long, at most once per interval.

use base::{Duration, Instant};
use reactor::Reactor;

/// Minimum interval between two reports.
const INTERVAL: Duration = Duration::from_secs(10);

/// The overruns that are reported already.
pub(super) struct Watchdog {
    reported: u64,
    not_before: Instant,
}

impl Watchdog {
    pub(super) fn new() -> Self {
        Self {
            reported: 0,
            not_before: Instant::ZERO,
        }
    }

    /// Logs the longest overrun since the last report.
    pub(super) fn look(&mut self, reactor: &Reactor, now: Instant) {
        let count = reactor.overrun_count();
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
}
