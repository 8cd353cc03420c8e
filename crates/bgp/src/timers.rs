//! The deadlines that are kept exactly: all except the KEEPALIVEs and hold timers of healthy sessions.
//!
//! A stopped timer leaves its entry in the heap; the owner says whether an entry still stands for a running timer. When
//! the heap has doubled, such entries are swept out.
//!
//! Implements parts of RFC 4271, section 10.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use base::Instant;

use crate::table::ConnId;

/// A timer: its name in the RFC, and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// HoldTimer of a connection.
    Hold(ConnId),
    /// DelayOpenTimer of a connection.
    DelayOpen(ConnId),
    /// SendHoldTimer of a connection (RFC 9687).
    SendHold(ConnId),
    /// ConnectRetryTimer of a peer.
    ConnectRetry(u32),
    /// IdleHoldTimer of a peer.
    IdleHold(u32),
    /// How long a peer's stale routes are kept (RFC 4724, section 4.2).
    Stale(u32),
    /// Selection_Deferral_Timer of the speaker (RFC 4724, section 4.1).
    Deferral,
}

impl Timer {
    /// The RFC's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Hold(_) => "HoldTimer",
            Self::DelayOpen(_) => "DelayOpenTimer",
            Self::SendHold(_) => "SendHoldTimer",
            Self::ConnectRetry(_) => "ConnectRetryTimer",
            Self::IdleHold(_) => "IdleHoldTimer",
            Self::Stale(_) => "Restart Time",
            Self::Deferral => "Selection_Deferral_Timer",
        }
    }
}

/// Deadlines, earliest first.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, Timer)>>,
    /// Swept when there are more entries than this.
    sweep_at: usize,
}

/// With fewer entries, a sweep is not worth its cost.
const SWEEP_MIN: usize = 64;

impl Timers {
    /// Arms a timer. The caller sweeps: see [`Timers::wants_sweep`].
    pub(crate) fn arm(&mut self, at: Instant, timer: Timer) {
        // As `reserve_some` in `table`.
        if self.heap.len() == self.heap.capacity() {
            self.heap.reserve_exact((self.heap.len() / 4).max(2));
        }
        self.heap.push(Reverse((at, timer)));
    }

    /// The earliest deadline. Its timer may have been stopped.
    pub(crate) fn next(&self) -> Option<(Instant, Timer)> {
        self.heap.peek().map(|Reverse(entry)| *entry)
    }

    /// Every entry, in no order. Some timers may have been stopped.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Instant, Timer)> + '_ {
        self.heap.iter().map(|Reverse(entry)| *entry)
    }

    /// Removes the earliest entry.
    pub(crate) fn pop(&mut self) -> Option<(Instant, Timer)> {
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// Whether entries have doubled since the last sweep.
    pub(crate) fn wants_sweep(&self) -> bool {
        self.heap.len() > self.sweep_at.max(SWEEP_MIN)
    }

    /// Removes the entries of stopped timers.
    pub(crate) fn sweep(&mut self, is_meant: impl Fn(Instant, Timer) -> bool) {
        self.heap
            .retain(|Reverse((at, timer))| is_meant(*at, *timer));
        self.heap.shrink_to(self.heap.len() * 2);
        self.sweep_at = self.heap.len() * 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_comes_before_stale_entries_are_many() {
        let mut timers = Timers::default();
        for at in 0..10_000 {
            timers.arm(Instant::from_nanos(at), Timer::ConnectRetry(0));
            if timers.wants_sweep() {
                timers.sweep(|when, _| when == Instant::from_nanos(at));
            }
            assert!(timers.heap.len() <= SWEEP_MIN);
        }
        assert!(timers.pop().is_some());
    }
}
