//! Timer stores: a sorted list, an ordered tree and a hierarchical wheel behind
//! one trait.
//!
//! The list and the tree are baselines for the benchmarks; the daemon uses the wheel.

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

/// Names one armed timer of the store that returned it. A stale id (fired or cancelled) is recognised, even after its
/// slot is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerId {
    slot: u32,
    generation: u32,
}

/// A timer that fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The owner's number for it.
    pub token: u32,
    /// When it was due.
    pub at: Instant,
}

/// Timers by deadline. None fires before its deadline. Timers that fire together fire by deadline (to the store's
/// tick), then in the order of arming.
///
/// The caller reads `next_deadline`, waits until then or until another event, and calls `pop_due` until it returns
/// `None`. `now` never goes back between calls.
pub trait TimerStore {
    /// Arms a timer for `at`; a deadline in the past is due at once.
    fn insert(&mut self, at: Instant, token: u32) -> TimerId;

    /// Disarms a timer; `false` if it had fired or was cancelled before.
    fn cancel(&mut self, id: TimerId) -> bool;

    /// When to call `pop_due` next: the earliest deadline, rounded up to the store's tick. [`Wheel`] documents when
    /// it may be earlier.
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
