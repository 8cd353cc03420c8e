//! All queued packets of a tree: what the queues read of each, in half a cache line.

use base::Instant;
use qos::codel::control::Store;
use qos::{Id, Reason};

/// No packet.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
struct Node {
    arrived: Instant,
    /// Names its host among those of its subscriber.
    host: u64,
    next: u32,
    handle: u32,
    length: u32,
    is_capable: bool,
    is_marked: bool,
}

const _: () = assert!(size_of::<Node>() == 32);

/// A packet before it has a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct New {
    /// The caller's name for its bytes.
    pub(crate) handle: u32,
    /// Bytes on the line.
    pub(crate) length: u32,
    pub(crate) arrived: Instant,
    /// Its host's name.
    pub(crate) host: u64,
    /// Whether its sender is ECN-capable.
    pub(crate) is_capable: bool,
    pub(crate) is_marked: bool,
}

/// The packets. The place freed last is used first.
#[derive(Debug)]
pub(crate) struct Packets {
    nodes: Vec<Node>,
    free: u32,
    used: u32,
    discarded: Vec<(u32, Reason)>,
}

impl Packets {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: NONE,
            used: 0,
            discarded: Vec::new(),
        }
    }

    /// Gives a packet a place. `None` at the end of numbers: the tree's own limit is far below.
    #[inline]
    pub(crate) fn insert(&mut self, new: New) -> Option<Id> {
        let node = Node {
            arrived: new.arrived,
            host: new.host,
            next: NONE,
            handle: new.handle,
            length: new.length,
            is_capable: new.is_capable,
            is_marked: new.is_marked,
        };
        let index = self.free;
        let index = match self.nodes.get_mut(index as usize) {
            Some(place) => {
                self.free = place.next;
                *place = node;
                index
            }
            None => {
                let index = u32::try_from(self.nodes.len()).ok();
                let index = index.filter(|&index| index < NONE)?;
                self.nodes.push(node);
                index
            }
        };
        self.used += 1;
        Some(Id::new(index))
    }

    #[inline]
    fn node(&self, id: Id) -> &Node {
        &self.nodes[id.index() as usize]
    }

    /// The name of a packet's host.
    #[inline]
    pub(crate) fn host(&self, id: Id) -> u64 {
        self.node(id).host
    }

    /// The caller's name for a packet's bytes.
    #[inline]
    pub(crate) fn handle(&self, id: Id) -> u32 {
        self.node(id).handle
    }

    /// Reads a packet, so that it is in the cache.
    #[inline]
    pub(crate) fn touch(&self, id: Id) -> u32 {
        self.nodes
            .get(id.index() as usize)
            .map_or(0, |node| node.length)
    }

    /// Removes a packet that is sent. Returns its handle and whether it is marked.
    #[inline]
    pub(crate) fn release_sent(&mut self, id: Id) -> (u32, bool) {
        let is_marked = self.node(id).is_marked;
        (self.release(id), is_marked)
    }

    #[inline]
    fn release(&mut self, id: Id) -> u32 {
        let node = &mut self.nodes[id.index() as usize];
        node.next = self.free;
        self.free = id.index();
        self.used -= 1;
        node.handle
    }

    /// The handles of the packets discarded since the last call, and the reasons.
    pub(crate) fn discarded(&mut self) -> std::vec::Drain<'_, (u32, Reason)> {
        self.discarded.drain(..)
    }

    /// Packets in it.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.used
    }
}

impl Store for Packets {
    #[inline]
    fn arrived(&self, id: Id) -> Instant {
        self.node(id).arrived
    }

    #[inline]
    fn length(&self, id: Id) -> u32 {
        self.node(id).length
    }

    fn mark(&mut self, id: Id) -> bool {
        let node = &mut self.nodes[id.index() as usize];
        node.is_marked |= node.is_capable;
        node.is_capable
    }

    fn discard(&mut self, id: Id, reason: Reason) {
        let handle = self.release(id);
        self.discarded.push((handle, reason));
    }
}

/// A list of packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain {
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
    /// Appends a packet that is in no other chain.
    #[inline]
    pub(crate) fn push(&mut self, packets: &mut Packets, id: Id) {
        match packets.nodes.get_mut(self.tail as usize) {
            Some(last) => last.next = id.index(),
            None => self.head = id.index(),
        }
        self.tail = id.index();
    }

    /// Removes the first packet.
    #[inline]
    pub(crate) fn pop(&mut self, packets: &Packets) -> Option<Id> {
        let index = self.head;
        if index == NONE {
            return None;
        }
        if index == self.tail {
            *self = Self::default();
        } else {
            self.head = packets.nodes[index as usize].next;
        }
        Some(Id::new(index))
    }

    /// The first packet.
    #[inline]
    pub(crate) fn first(&self) -> Option<Id> {
        (self.head != NONE).then_some(Id::new(self.head))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NONE
    }
}
