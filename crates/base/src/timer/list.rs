//! The sorted linked list: the simplest store. Inserting becomes slow with a few thousand timers.

use super::nodes::{Chain, NIL, Nodes};
use super::{Expired, TimerId, TimerStore};
use crate::Instant;

/// Timers in one linked list, earliest first: insert walks from the head and is
/// O(n), cancel and expire are O(1).
///
/// A baseline for the benchmarks: the published benchmark's first builds used it.
pub struct SortedList {
    nodes: Nodes,
    chain: Chain,
}

impl SortedList {
    /// A list without timers.
    pub const fn new() -> Self {
        Self {
            nodes: Nodes::new(),
            chain: Chain::EMPTY,
        }
    }
}

impl Default for SortedList {
    fn default() -> Self {
        Self::new()
    }
}

impl TimerStore for SortedList {
    fn insert(&mut self, at: Instant, token: u32) -> TimerId {
        let mut later = self.chain.head;
        while later != NIL {
            let node = self.nodes.get(later);
            if node.at > at {
                break;
            }
            later = node.next;
        }
        let index = self.nodes.allocate(at, token);
        self.nodes.link_before(&mut self.chain, later, index);
        self.nodes.id(index)
    }

    fn cancel(&mut self, id: TimerId) -> bool {
        let Some(index) = self.nodes.find(id) else {
            return false;
        };
        self.nodes.unlink(&mut self.chain, index);
        self.nodes.release(index);
        true
    }

    fn next_deadline(&self) -> Option<Instant> {
        (!self.chain.is_empty()).then(|| self.nodes.get(self.chain.head).at)
    }

    fn pop_due(&mut self, now: Instant) -> Option<Expired> {
        if self.next_deadline()? > now {
            return None;
        }
        let index = self.chain.head;
        let node = *self.nodes.get(index);
        self.nodes.unlink(&mut self.chain, index);
        self.nodes.release(index);
        Some(Expired {
            token: node.token,
            at: node.at,
        })
    }

    fn len(&self) -> usize {
        self.nodes.armed()
    }
}
