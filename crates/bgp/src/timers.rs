//! The deadlines that are kept exactly: everything but the KEEPALIVEs and hold timers of sessions that are well.
//!
//! A heap whose entries are not taken out when their timer stops: its owner says whether an entry is still meant. Once
//! most are not, they are swept out.
//!
//! Implements parts of RFC 4271, section 10.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use base::Instant;

use crate::table::ConnId;

/// A timer, by the RFC's name and its owner.
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
    /// How long a peer's stale routes stay (RFC 4724, section 4.2).
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
    /// Swept when there are more than this many.
    sweep_at: usize,
}

/// Below this many entries no sweep is worth it.
const SWEEP_MIN: usize = 64;

impl Timers {
    /// Arms a timer. Sweeping is the caller's: see [`Timers::wants_sweep`].
    pub(crate) fn arm(&mut self, at: Instant, timer: Timer) {
        // As `reserve_some` of `table`.
        if self.heap.len() == self.heap.capacity() {
            self.heap.reserve_exact((self.heap.len() / 4).max(2));
        }
        self.heap.push(Reverse((at, timer)));
    }

    /// The earliest deadline, which may be one that is not meant any more.
    pub(crate) fn next(&self) -> Option<(Instant, Timer)> {
        self.heap.peek().map(|Reverse(entry)| *entry)
    }

    /// Takes out the earliest entry.
    pub(crate) fn pop(&mut self) -> Option<(Instant, Timer)> {
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// Whether entries have doubled since the last sweep.
    pub(crate) fn wants_sweep(&self) -> bool {
        self.heap.len() > self.sweep_at.max(SWEEP_MIN)
    }

    /// Takes out what is not meant any more.
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
