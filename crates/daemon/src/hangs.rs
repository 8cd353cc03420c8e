//! Reports a handler of the loop while it hangs, from a thread of its own.
//!
//! `watchdog` reports a handler that took too long after it has returned. A handler that waits for a disk or a lock, or
//! that is in an endless loop, may never return: this thread reports it after `[event] hang_ms`, once, with what the
//! kernel says about the thread of the loop. `watchdog` logs when it has returned.
//!
//! The thread looks four times within `hang_ms`, and only while the loop works: see [`reactor::Pulse`]. Start with
//! [`Hangs::start`].

use std::fmt;
use std::io;
use std::sync::Arc;

use base::{Duration, Instant};
use reactor::usage::{self, Standing};
use reactor::{Pulse, clock};

use super::source::Source;

/// Looks within the time after which a hang is reported.
const LOOKS: u64 = 4;

/// A handler that has not returned for long.
#[derive(Debug)]
pub(super) struct Hang {
    /// The handler, or that before it.
    pub(super) handler: String,
    /// What it works on.
    pub(super) work: String,
    pub(super) so_far: Duration,
    /// The time of the last `watched` in which the thread ran.
    pub(super) cpu: Duration,
    pub(super) watched: Duration,
    pub(super) standing: Standing,
}

impl fmt::Display for Hang {
    /// Whether the thread is busy or waits, and for what.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Standing { state, call, place } = &self.standing;
        let is_busy = self.cpu.as_nanos() >= self.watched.as_nanos() / 2;
        match (is_busy, state) {
            (true, _) => f.write_str("it keeps the processor busy")?,
            (false, Some('R')) => f.write_str("it waits for a processor")?,
            (false, Some('D')) => f.write_str("it waits for a device")?,
            (false, Some('T' | 't')) => f.write_str("it was stopped")?,
            (false, _) => f.write_str("it waits")?,
        }
        if let Some(call) = call {
            write!(f, " in {call}")?;
        }
        if let Some(place) = place {
            write!(f, " ({place})")?;
        }
        Ok(())
    }
}

/// The thread that watches the loop. It ends when this is dropped; nobody waits for it, since it may hang in the log.
pub(super) struct Hangs(Arc<Pulse>);

impl Hangs {
    /// Watches the loop of the calling thread. Handlers that take longer than `limit` are passed to `tell`.
    ///
    /// # Errors
    /// The kernel starts no thread.
    pub(super) fn start(
        pulse: Arc<Pulse>,
        limit: Duration,
        tell: impl FnMut(Hang) + Send + 'static,
    ) -> io::Result<Self> {
        let (watched, thread) = (Arc::clone(&pulse), usage::this_thread());
        std::thread::Builder::new()
            .name("watchdog".into())
            .spawn(move || watch(&watched, thread, limit, tell))?;
        Ok(Self(pulse))
    }
}

impl Drop for Hangs {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Logs a hang.
pub(super) fn log(hang: Hang) {
    tracing::error!(
        handler = hang.handler,
        work = hang.work,
        so_far_ms = hang.so_far.as_millis(),
        cpu_ms = hang.cpu.as_millis(),
        watched_ms = hang.watched.as_millis(),
        "a handler does not return, and the event loop stands still: {hang}"
    );
}

/// The first look at a handler.
struct First {
    since: Instant,
    at: Instant,
    cpu: Duration,
    told: bool,
}

fn watch(pulse: &Pulse, thread: i32, limit: Duration, mut tell: impl FnMut(Hang)) {
    let span = Duration::from_nanos((limit.as_nanos() / LOOKS).max(1));
    let cpu = || usage::cpu_of(thread).unwrap_or(Duration::ZERO);
    let mut first: Option<First> = None;
    while !pulse.has_ended() {
        let Some(running) = pulse.look() else {
            first = None;
            pulse.sleep_while_idle();
            // Most turns are over by then.
            pulse.sleep(span);
            continue;
        };
        let now = clock::now();
        match &mut first {
            Some(first) if first.since == running.since => {
                let so_far = now.since(running.since);
                if so_far >= limit && !first.told {
                    first.told = true;
                    let cpu = cpu().as_nanos().saturating_sub(first.cpu.as_nanos());
                    tell(Hang {
                        handler: name(&running),
                        work: work(&running),
                        so_far,
                        cpu: Duration::from_nanos(cpu),
                        watched: now.since(first.at),
                        standing: usage::standing_of(thread),
                    });
                }
            }
            _ => {
                first = Some(First {
                    since: running.since,
                    at: now,
                    cpu: cpu(),
                    told: false,
                });
            }
        }
        pulse.sleep(span);
    }
}

fn name(running: &reactor::Running) -> String {
    match (running.handler, running.is_after) {
        (None, _) => "start of a turn".into(),
        (Some(name), false) => name.into(),
        (Some(name), true) => format!("after {name}"),
    }
}

fn work(running: &reactor::Running) -> String {
    let source = match running.work {
        0 => "-".to_owned(),
        bits => Source::from_bits(bits - 1).to_string(),
    };
    match running.request {
        Some(request) => format!("{source}: {request}"),
        None => source,
    }
}

#[cfg(test)]
mod tests;
