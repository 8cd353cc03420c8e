//! The timer store as configuration names it.

use core::fmt;
use core::str::FromStr;

use super::{Expired, OrderedTree, SortedList, TimerId, TimerStore, Wheel};
use crate::{Duration, Instant};

/// Which timer store to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimerKind {
    /// A [`SortedList`], written `list`.
    List,
    /// An [`OrderedTree`], written `tree`.
    Tree,
    /// A [`Wheel`], written `wheel`.
    #[default]
    Wheel,
}

impl TimerKind {
    /// Every kind, oldest design first.
    pub const ALL: [TimerKind; 3] = [TimerKind::List, TimerKind::Tree, TimerKind::Wheel];

    /// The word that configuration uses.
    pub const fn name(self) -> &'static str {
        match self {
            TimerKind::List => "list",
            TimerKind::Tree => "tree",
            TimerKind::Wheel => "wheel",
        }
    }
}

impl fmt::Display for TimerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TimerKind {
    type Err = UnknownTimerKind;

    fn from_str(word: &str) -> Result<Self, UnknownTimerKind> {
        TimerKind::ALL
            .into_iter()
            .find(|kind| kind.name() == word)
            .ok_or(UnknownTimerKind)
    }
}

/// The word names no timer store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownTimerKind;

impl fmt::Display for UnknownTimerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a timer store: use list, tree or wheel")
    }
}

impl core::error::Error for UnknownTimerKind {}

/// A timer store that was chosen at run time.
pub enum AnyTimers {
    /// See [`SortedList`].
    List(SortedList),
    /// See [`OrderedTree`].
    Tree(OrderedTree),
    /// See [`Wheel`].
    Wheel(Wheel),
}

impl AnyTimers {
    /// An empty store; `tick` is the wheel's, and the others have none.
    pub const fn new(kind: TimerKind, tick: Duration) -> Self {
        match kind {
            TimerKind::List => AnyTimers::List(SortedList::new()),
            TimerKind::Tree => AnyTimers::Tree(OrderedTree::new()),
            TimerKind::Wheel => AnyTimers::Wheel(Wheel::new(tick)),
        }
    }

    /// Which store this is.
    pub const fn kind(&self) -> TimerKind {
        match self {
            AnyTimers::List(_) => TimerKind::List,
            AnyTimers::Tree(_) => TimerKind::Tree,
            AnyTimers::Wheel(_) => TimerKind::Wheel,
        }
    }
}

impl TimerStore for AnyTimers {
    fn insert(&mut self, at: Instant, token: u32) -> TimerId {
        match self {
            AnyTimers::List(timers) => timers.insert(at, token),
            AnyTimers::Tree(timers) => timers.insert(at, token),
            AnyTimers::Wheel(timers) => timers.insert(at, token),
        }
    }

    fn cancel(&mut self, id: TimerId) -> bool {
        match self {
            AnyTimers::List(timers) => timers.cancel(id),
            AnyTimers::Tree(timers) => timers.cancel(id),
            AnyTimers::Wheel(timers) => timers.cancel(id),
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        match self {
            AnyTimers::List(timers) => timers.next_deadline(),
            AnyTimers::Tree(timers) => timers.next_deadline(),
            AnyTimers::Wheel(timers) => timers.next_deadline(),
        }
    }

    fn pop_due(&mut self, now: Instant) -> Option<Expired> {
        match self {
            AnyTimers::List(timers) => timers.pop_due(now),
            AnyTimers::Tree(timers) => timers.pop_due(now),
            AnyTimers::Wheel(timers) => timers.pop_due(now),
        }
    }

    fn len(&self) -> usize {
        match self {
            AnyTimers::List(timers) => timers.len(),
            AnyTimers::Tree(timers) => timers.len(),
            AnyTimers::Wheel(timers) => timers.len(),
        }
    }
}
