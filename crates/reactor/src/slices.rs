//! Time slices of the event loop: the time budget of a handler, and a record of the calls that took too long.
//!
//! A handler with much work does the work in pieces. After each piece, it asks its [`Slice`], which reads the clock.
//! When the slice is over, the handler stops. The rest of the work waits for the next turn, so that timers and other
//! descriptors come in between. A call that takes too long is recorded as an [`Overrun`], with the descriptors that
//! were ready meanwhile.

use std::collections::VecDeque;

use base::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};

use crate::clock;

/// How many overruns are kept.
const KEPT: usize = 64;
/// How many owners of ready descriptors an overrun names.
const OWNERS: usize = 6;
/// The oldest reading of the thread's CPU clock that is still used. A reading is a system call of about a microsecond.
const READING_MAX: Duration = Duration::from_millis(1);

/// The time that a handler may take before it lets others have their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice(Instant);

impl Slice {
    /// A slice that is over at `until`.
    #[must_use]
    pub const fn until(until: Instant) -> Self {
        Self(until)
    }

    /// Whether the time is used up. Reads the clock.
    #[must_use]
    pub fn is_over(&self) -> bool {
        clock::now() >= self.0
    }
}

/// A call of a handler that took longer than it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overrun {
    /// The handler.
    pub handler: &'static str,
    /// When it ended.
    pub at: Instant,
    /// The time from the handler's start to its end.
    pub wall: Duration,
    /// The time of these that the thread ran. The rest is time in which the kernel ran something else. Short calls
    /// before, in the same millisecond, may be included.
    pub cpu: Duration,
    /// Pieces of work that the handler did.
    pub calls: u64,
    /// Descriptors that were ready when the next wait looked, or not yet delivered: their owners, each with a count.
    pub waiting: Vec<(&'static str, u32)>,
    /// The timer that was latest after it, and by how much.
    pub timer: Option<(&'static str, Duration)>,
}

impl Overrun {
    /// The owners of descriptors that waited, as text: `bgp 12, control 1`.
    #[must_use]
    pub fn waiting_text(&self) -> String {
        let waiting = self.waiting.iter();
        let each: Vec<String> = waiting
            .map(|(owner, count)| format!("{owner} {count}"))
            .collect();
        each.join(", ")
    }
}

/// Watches how long handlers take.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) limit: Duration,
    /// A reading of the thread's CPU clock, and when it was made.
    reading: (Instant, Duration),
    recent: VecDeque<Overrun>,
    count: u64,
    /// How many of the last entries are of this turn or the one before: who waited for them is not yet known.
    open: usize,
    /// Whether a wait has named the descriptors that were ready meanwhile.
    is_named: bool,
}

impl Watch {
    pub(crate) fn new(limit: Duration, now: Instant) -> Self {
        Self {
            limit,
            reading: (now, thread_cpu()),
            recent: VecDeque::new(),
            count: 0,
            open: 0,
            is_named: false,
        }
    }

    /// A turn starts at `now`, and the owners of the descriptors that are `ready` are known.
    pub(crate) fn begin(&mut self, now: Instant, ready: impl Iterator<Item = &'static str>) {
        if now.since(self.reading.0) > READING_MAX {
            self.reading = (now, thread_cpu());
        }
        if self.open == 0 {
            return;
        }
        if self.is_named {
            self.open = 0;
        } else {
            ready.for_each(|owner| self.kept_waiting(owner));
        }
        self.is_named = !self.is_named;
    }

    /// A handler took longer than the limit.
    #[cold]
    pub(crate) fn overran(
        &mut self,
        handler: &'static str,
        calls: u64,
        (wall, at): (Duration, Instant),
    ) {
        let before = self.reading.1;
        let now = thread_cpu();
        self.reading = (at, now);
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(Overrun {
            handler,
            at,
            wall,
            cpu: Duration::from_nanos(now.as_nanos().saturating_sub(before.as_nanos())).min(wall),
            calls,
            waiting: Vec::new(),
            timer: None,
        });
        self.count += 1;
        if self.is_named {
            (self.open, self.is_named) = (0, false);
        }
        self.open = (self.open + 1).min(KEPT);
    }

    fn kept_waiting(&mut self, owner: &'static str) {
        for overrun in self.recent.iter_mut().rev().take(self.open) {
            let mut names = overrun.waiting.iter();
            let known = names.position(|(name, _)| *name == owner);
            match known {
                Some(at) => overrun.waiting[at].1 += 1,
                None if overrun.waiting.len() < OWNERS => overrun.waiting.push((owner, 1)),
                None => {}
            }
        }
    }

    /// A timer fired late.
    pub(crate) fn late(&mut self, timer: &'static str, late: Duration) {
        if let Some(overrun) = self.recent.back_mut().filter(|_| self.open > 0)
            && overrun.timer.is_none_or(|(_, most)| most < late)
        {
            overrun.timer = Some((timer, late));
        }
    }

    pub(crate) fn recent(&self) -> impl DoubleEndedIterator<Item = &Overrun> {
        self.recent.iter()
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

/// The CPU time of the calling thread.
fn thread_cpu() -> Duration {
    Duration::from_nanos(clock::nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overrun_names_who_waited_in_the_next_turn_and_no_later() {
        let now = clock::now();
        let mut watch = Watch::new(Duration::from_millis(2), now);
        watch.begin(now, ["control"].into_iter());
        let took = Duration::from_millis(30);
        watch.overran("bgp write", 7, (took, now + took));
        watch.begin(now + took, ["bgp", "udp", "bgp"].into_iter());
        watch.late("KeepaliveTimer", Duration::from_millis(4));
        watch.late("HoldTimer", Duration::from_millis(3));
        watch.begin(now + took, ["udp"].into_iter());
        watch.late("KeepaliveTimer", Duration::from_secs(1));
        let overrun = watch.recent().next().unwrap();
        assert_eq!(
            (overrun.handler, overrun.calls, overrun.wall),
            ("bgp write", 7, took)
        );
        assert_eq!(overrun.waiting, [("bgp", 2), ("udp", 1)]);
        assert_eq!(
            overrun.timer,
            Some(("KeepaliveTimer", Duration::from_millis(4)))
        );
    }

    #[test]
    fn time_in_which_the_thread_did_not_run_is_wall_time_alone() {
        let mut watch = Watch::new(Duration::from_millis(2), clock::now());
        let asleep = Duration::from_millis(30);
        clock::sleep(asleep);
        watch.overran("sleeper", 1, (asleep, clock::now()));
        let overrun = watch.recent().next().unwrap();
        assert!(overrun.cpu < Duration::from_millis(15), "{:?}", overrun.cpu);
        assert_eq!(overrun.wall, asleep);
    }

    #[test]
    fn old_overruns_leave_and_stay_counted() {
        let now = clock::now();
        let mut watch = Watch::new(Duration::ZERO, now);
        for n in 0..100 {
            watch.overran("busy", n, (Duration::from_millis(1), now));
        }
        assert_eq!((watch.count(), watch.recent().count()), (100, KEPT));
        assert_eq!(watch.recent().next().unwrap().calls, 100 - KEPT as u64);
    }
}
