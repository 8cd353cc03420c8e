//! Linked lists of a pool's packets.

use super::{Backlog, Id, NONE, Pool};

/// A linked list without a count: 8 bytes, for queues of which there are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    head: u32,
    tail: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Self {
            head: NONE,
            tail: NONE,
        }
    }
}

impl Chain {
    /// Appends a packet that is in no other chain or list.
    #[inline]
    pub fn push(&mut self, pool: &mut Pool, id: Id) {
        let node = &mut pool.nodes[id.0 as usize];
        node.next = NONE;
        node.previous = self.tail;
        if self.tail == NONE {
            self.head = id.0;
        } else {
            pool.nodes[self.tail as usize].next = id.0;
        }
        self.tail = id.0;
    }

    /// Removes the first packet.
    #[inline]
    pub fn pop(&mut self, pool: &Pool) -> Option<Id> {
        let index = self.head;
        let node = pool.nodes.get(index as usize)?;
        self.head = node.next;
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(Id(index))
    }

    /// Removes the last packet.
    pub fn pop_last(&mut self, pool: &mut Pool) -> Option<Id> {
        if self.head == self.tail {
            return self.pop(pool);
        }
        let last = self.tail;
        self.tail = pool.nodes[last as usize].previous;
        pool.nodes[self.tail as usize].next = NONE;
        Some(Id(last))
    }

    /// The first packet, without removing it.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Option<Id> {
        (self.head != NONE).then_some(Id(self.head))
    }

    /// Whether it is empty.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }
}

/// A linked list with its number of packets and bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct List {
    chain: Chain,
    packets: u32,
    bytes: u64,
}

impl List {
    /// Appends a packet that is in no other list.
    #[inline]
    pub fn push(&mut self, pool: &mut Pool, id: Id) {
        self.chain.push(pool, id);
        self.packets += 1;
        self.bytes += u64::from(pool.length(id));
    }

    /// Removes the first packet.
    #[inline]
    pub fn pop(&mut self, pool: &Pool) -> Option<Id> {
        let id = self.chain.pop(pool)?;
        self.packets -= 1;
        self.bytes -= u64::from(pool.length(id));
        Some(id)
    }

    /// Removes the last packet.
    pub fn pop_last(&mut self, pool: &mut Pool) -> Option<Id> {
        let id = self.chain.pop_last(pool)?;
        self.packets -= 1;
        self.bytes -= u64::from(pool.length(id));
        Some(id)
    }

    /// Moves all packets to `into`, in order.
    pub fn drain(&mut self, pool: &Pool, into: &mut Vec<Id>) {
        while let Some(id) = self.pop(pool) {
            into.push(id);
        }
    }

    /// The first packet, without removing it.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Option<Id> {
        self.chain.first()
    }

    /// Packets in it.
    #[must_use]
    #[inline]
    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// Their bytes on the line.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets and bytes.
    #[must_use]
    #[inline]
    pub fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.packets,
            bytes: self.bytes,
        }
    }

    /// Whether it is empty.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;

    fn packet(handle: u32) -> Packet {
        Packet {
            handle,
            length: 100 + handle,
            ..Packet::default()
        }
    }

    #[test]
    fn a_list_gives_from_both_ends() {
        let mut pool = Pool::new(8);
        let mut list = List::default();
        let ids: Vec<Id> = (0..4)
            .map(|handle| pool.insert(packet(handle)).expect("room"))
            .collect();
        for &id in &ids {
            list.push(&mut pool, id);
        }
        assert_eq!(list.bytes(), 406);
        assert_eq!(list.pop(&pool), Some(ids[0]));
        assert_eq!(list.pop_last(&mut pool), Some(ids[3]));
        list.push(&mut pool, ids[0]);
        assert_eq!(list.pop_last(&mut pool), Some(ids[0]));
        assert_eq!(list.pop_last(&mut pool), Some(ids[2]));
        assert_eq!(list.first(), Some(ids[1]));
        assert_eq!(list.pop_last(&mut pool), Some(ids[1]));
        assert_eq!(list.pop_last(&mut pool), None);
        assert_eq!(list.pop(&pool), None);
        assert_eq!((list.packets(), list.bytes()), (0, 0));
        list.push(&mut pool, ids[2]);
        assert_eq!(list.pop(&pool), Some(ids[2]));
    }
}
