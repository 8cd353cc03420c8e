//! Timer stores: a sorted list, an ordered tree and a hierarchical wheel behind
//! one trait.
//!
//! The list and the tree are kept as baselines that the benchmarks re-run; the
//! wheel is what the daemon uses.

use crate::Instant;

mod kind;
mod list;
mod nodes;
#[cfg(test)]
mod tests;
mod tree;
mod wheel;

pub use kind::{AnyTimers, TimerKind, UnknownTimerKind};
pub use list::SortedList;
pub use tree::OrderedTree;
pub use wheel::Wheel;

/// Names one armed timer of the store that gave it out. A stale id (fired or
/// cancelled) is recognised, also after its slot was used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerId {
    slot: u32,
    generation: u32,
}

/// A timer that fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// What the owner armed it with.
    pub token: u32,
    /// When it was due.
    pub at: Instant,
}

/// Timers by deadline. None fires before its deadline, and timers that fire
/// together come out by deadline (to the store's tick), then as they were armed.
///
/// The caller asks `next_deadline`, waits until then or until there is something
/// else to do, and calls `pop_due` until it answers `None`. The `now` of later
/// calls is never earlier.
pub trait TimerStore {
    /// Arms a timer for `at`; a deadline in the past is due at once.
    fn insert(&mut self, at: Instant, token: u32) -> TimerId;

    /// Disarms a timer; `false` if it had fired or was cancelled before.
    fn cancel(&mut self, id: TimerId) -> bool;

    /// When to call `pop_due` next: the earliest deadline, rounded up to the
    /// store's tick. [`Wheel`] says when it may be earlier.
    fn next_deadline(&self) -> Option<Instant>;

    /// Takes one timer that is due at `now`, or `None`.
    fn pop_due(&mut self, now: Instant) -> Option<Expired>;

    /// Timers armed.
    fn len(&self) -> usize;

    /// Whether no timer is armed.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
