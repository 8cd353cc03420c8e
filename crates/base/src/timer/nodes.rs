//! Timers in one slab, chained into doubly linked lists by index.

use super::TimerId;
use crate::Instant;

/// No node.
pub(super) const NIL: u32 = u32::MAX;

/// One timer, armed or free.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) at: Instant,
    pub(super) prev: u32,
    pub(super) next: u32,
    pub(super) token: u32,
    /// Counts how often the node was freed, so that ids of earlier uses do not match (until 2^32 uses later).
    generation: u32,
    /// The chain that holds the node, in the store's own numbering.
    pub(super) chain: u16,
}

const _: () = assert!(size_of::<Node>() <= 32);

/// The two ends of a list of nodes.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    pub(super) head: u32,
    pub(super) tail: u32,
}

impl Chain {
    pub(super) const EMPTY: Chain = Chain {
        head: NIL,
        tail: NIL,
    };

    pub(super) const fn is_empty(self) -> bool {
        self.head == NIL
    }
}

/// The slab of nodes. The node freed last is reused first.
pub(super) struct Nodes {
    nodes: Vec<Node>,
    /// The free nodes. Linking them through the nodes would save this memory, but each insert would wait for the
    /// previous node to be loaded: twice the time with a million timers.
    free: Vec<u32>,
    armed: usize,
}

impl Nodes {
    pub(super) const fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: Vec::new(),
            armed: 0,
        }
    }

    pub(super) const fn armed(&self) -> usize {
        self.armed
    }

    pub(super) fn get(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    pub(super) fn get_mut(&mut self, index: u32) -> &mut Node {
        &mut self.nodes[index as usize]
    }

    /// A node for a new timer, not yet in a chain.
    pub(super) fn allocate(&mut self, at: Instant, token: u32) -> u32 {
        self.armed += 1;
        let Some(index) = self.free.pop() else {
            let index = u32::try_from(self.nodes.len()).expect("memory ends before 2^32 timers");
            self.nodes.push(Node {
                at,
                prev: NIL,
                next: NIL,
                token,
                generation: 0,
                chain: 0,
            });
            return index;
        };
        let node = &mut self.nodes[index as usize];
        node.at = at;
        node.token = token;
        index
    }

    /// Frees a node that is in no chain; its id is stale from now on.
    pub(super) fn release(&mut self, index: u32) {
        let node = self.get_mut(index);
        node.generation = node.generation.wrapping_add(1);
        self.free.push(index);
        self.armed -= 1;
    }

    /// The id of an armed node.
    pub(super) fn id(&self, index: u32) -> TimerId {
        TimerId {
            slot: index,
            generation: self.get(index).generation,
        }
    }

    /// The armed node that `id` names.
    pub(super) fn find(&self, id: TimerId) -> Option<u32> {
        let node = self.nodes.get(id.slot as usize)?;
        (node.generation == id.generation).then_some(id.slot)
    }

    /// Links a node in front of `before`, or as the last one for `NIL`.
    pub(super) fn link_before(&mut self, chain: &mut Chain, before: u32, index: u32) {
        let prev = if before == NIL {
            core::mem::replace(&mut chain.tail, index)
        } else {
            core::mem::replace(&mut self.get_mut(before).prev, index)
        };
        if prev == NIL {
            chain.head = index;
        } else {
            self.get_mut(prev).next = index;
        }
        let node = self.get_mut(index);
        node.prev = prev;
        node.next = before;
    }

    /// Takes a node out of the chain that holds it.
    pub(super) fn unlink(&mut self, chain: &mut Chain, index: u32) {
        let Node { prev, next, .. } = *self.get(index);
        if prev == NIL {
            chain.head = next;
        } else {
            self.get_mut(prev).next = next;
        }
        if next == NIL {
            chain.tail = prev;
        } else {
            self.get_mut(next).prev = prev;
        }
    }
}
