//! The ordered tree: what replaced the sorted list in the published benchmark.

use std::collections::BTreeMap;

use super::{Expired, TimerId, TimerStore};
use crate::Instant;
use crate::slab::{Key, Slab};

/// Timers in a B-tree by deadline, then by the order in which they were armed:
/// insert, cancel and expire are O(log n).
pub struct OrderedTree {
    by_deadline: BTreeMap<(Instant, u64), Key>,
    armed: Slab<Armed>,
    sequence: u64,
}

struct Armed {
    at: Instant,
    sequence: u64,
    token: u32,
}

impl OrderedTree {
    /// A tree without timers.
    pub const fn new() -> Self {
        Self {
            by_deadline: BTreeMap::new(),
            armed: Slab::new(),
            sequence: 0,
        }
    }
}

impl Default for OrderedTree {
    fn default() -> Self {
        Self::new()
    }
}

impl TimerStore for OrderedTree {
    fn insert(&mut self, at: Instant, token: u32) -> TimerId {
        let sequence = self.sequence;
        self.sequence += 1;
        let key = self.armed.insert(Armed {
            at,
            sequence,
            token,
        });
        self.by_deadline.insert((at, sequence), key);
        TimerId {
            slot: key.index,
            generation: key.generation,
        }
    }

    fn cancel(&mut self, id: TimerId) -> bool {
        let key = Key {
            index: id.slot,
            generation: id.generation,
        };
        let Some(timer) = self.armed.remove(key) else {
            return false;
        };
        self.by_deadline.remove(&(timer.at, timer.sequence));
        true
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.by_deadline.first_key_value().map(|(&(at, _), _)| at)
    }

    fn pop_due(&mut self, now: Instant) -> Option<Expired> {
        let first = self.by_deadline.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let timer = self
            .armed
            .remove(first.remove())
            .expect("the tree names armed timers only");
        Some(Expired {
            token: timer.token,
            at: timer.at,
        })
    }

    fn len(&self) -> usize {
        self.by_deadline.len()
    }
}
