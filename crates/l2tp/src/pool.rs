//! Queued control messages: unacknowledged, waiting for the window, or received
//! ahead of a missing one.
//!
//! All tunnels of an endpoint share one pool. A tunnel's queues are lists of
//! indices into it, and a freed slot keeps its buffer. So an idle tunnel holds
//! no buffer, and a busy endpoint allocates none.

use base::slab::Key;

pub(crate) const NIL: u32 = u32::MAX;

/// The largest buffer that a free slot keeps.
const KEEP_BYTES: usize = 512;

#[derive(Default)]
pub(crate) struct MessagePool {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Slot {
    next: u32,
    message: Message,
}

/// A message body, with those header fields that do not come from the tunnel.
#[derive(Default)]
pub(crate) struct Message {
    /// Session ID of the L2TPv2 header; 0 in L2TPv3.
    pub(crate) session: u16,
    /// The session of ours that this message connects.
    pub(crate) connects: Option<Key>,
    /// Ns, for a message that arrived early.
    pub(crate) ns: u16,
    /// The AVPs.
    pub(crate) body: Vec<u8>,
}

/// A first-in first-out list in a [`MessagePool`].
#[derive(Clone, Copy)]
pub(crate) struct Queue {
    pub(crate) head: u32,
    tail: u32,
    len: u32,
}

impl Queue {
    pub(crate) const EMPTY: Self = Self {
        head: NIL,
        tail: NIL,
        len: 0,
    };

    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl MessagePool {
    /// Takes an empty slot and returns its index.
    pub(crate) fn take(&mut self) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            u32::try_from(self.slots.len() - 1).expect("fewer messages than 2^32")
        });
        self.slots[index as usize].next = NIL;
        index
    }

    pub(crate) fn get(&self, index: u32) -> &Message {
        &self.slots[index as usize].message
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Message {
        &mut self.slots[index as usize].message
    }

    pub(crate) fn next(&self, index: u32) -> u32 {
        self.slots[index as usize].next
    }

    /// Frees a slot. It keeps its buffer unless that grew large.
    pub(crate) fn release(&mut self, index: u32) {
        let body = &mut self.slots[index as usize].message.body;
        body.clear();
        body.shrink_to(KEEP_BYTES);
        self.free.push(index);
    }

    pub(crate) fn push_back(&mut self, queue: &mut Queue, index: u32) {
        if queue.tail == NIL {
            queue.head = index;
        } else {
            self.slots[queue.tail as usize].next = index;
        }
        queue.tail = index;
        queue.len += 1;
    }

    pub(crate) fn pop_front(&mut self, queue: &mut Queue) -> Option<u32> {
        let index = queue.head;
        if index == NIL {
            return None;
        }
        queue.head = self.next(index);
        if queue.head == NIL {
            queue.tail = NIL;
        }
        queue.len -= 1;
        Some(index)
    }

    /// Clears the link of a message that was taken from a queue.
    pub(crate) fn detach(&mut self, index: u32) {
        self.slots[index as usize].next = NIL;
    }

    /// Removes the message with this `ns` from `queue`.
    pub(crate) fn remove_ns(&mut self, queue: &mut Queue, ns: u16) -> Option<u32> {
        let (mut before, mut at) = (NIL, queue.head);
        while at != NIL {
            if self.get(at).ns == ns {
                let next = self.next(at);
                if before == NIL {
                    queue.head = next;
                } else {
                    self.slots[before as usize].next = next;
                }
                if queue.tail == at {
                    queue.tail = before;
                }
                queue.len -= 1;
                return Some(at);
            }
            (before, at) = (at, self.next(at));
        }
        None
    }

    pub(crate) fn contains_ns(&self, queue: &Queue, ns: u16) -> bool {
        let mut at = queue.head;
        while at != NIL {
            if self.get(at).ns == ns {
                return true;
            }
            at = self.next(at);
        }
        false
    }

    pub(crate) fn clear(&mut self, queue: &mut Queue) {
        while let Some(index) = self.pop_front(queue) {
            self.release(index);
        }
    }

    /// Messages stored in all queues.
    pub(crate) fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_keep_their_order_and_give_every_slot_back() {
        let mut pool = MessagePool::default();
        let mut queue = Queue::EMPTY;
        for ns in [3, 1, 2] {
            let index = pool.take();
            pool.get_mut(index).ns = ns;
            pool.push_back(&mut queue, index);
        }
        assert!(pool.contains_ns(&queue, 1));
        let middle = pool.remove_ns(&mut queue, 1).unwrap();
        pool.release(middle);
        assert!(!pool.contains_ns(&queue, 1));
        let last = pool.remove_ns(&mut queue, 2).unwrap();
        pool.release(last);
        let index = pool.take();
        pool.get_mut(index).ns = 9;
        pool.push_back(&mut queue, index);
        let order: Vec<u16> = core::iter::from_fn(|| {
            let index = pool.pop_front(&mut queue)?;
            let ns = pool.get(index).ns;
            pool.release(index);
            Some(ns)
        })
        .collect();
        assert_eq!(order, [3, 9]);
        assert!(queue.is_empty());
        assert_eq!(pool.in_use(), 0);
    }
}
