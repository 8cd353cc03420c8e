//! Timer stores: a sorted list, an ordered tree and a hierarchical wheel behind
//! one trait.
//!
//! The list and the tree are kept as baselines that the benchmarks re-run; the
//! wheel is what the daemon uses.

use crate::Instant;

mod list;
mod tree;
mod wheel;

pub use list::SortedList;
pub use tree::OrderedTree;
pub use wheel::Wheel;

/// Names one armed timer. A stale id (fired or cancelled) is recognised, also
/// after its slot was used again.
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

/// Timers by deadline. None fires before its deadline.
pub trait TimerStore {
    /// Arms a timer for `at`; a deadline in the past is due at once.
    fn insert(&mut self, at: Instant, token: u32) -> TimerId;

    /// Disarms a timer; `false` if it had fired or was cancelled before.
    fn cancel(&mut self, id: TimerId) -> bool;

    /// When `pop_due` will next have something: the earliest deadline, rounded
    /// up to the store's tick.
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
