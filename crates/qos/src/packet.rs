//! Packets that wait, and the lists they wait in.

use base::Instant;
use wire::flow::Keys;

/// What a queue knows of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Packet {
    /// Where its owner has its bytes.
    pub handle: u32,
    /// Octets that it costs on the line, the link layer's share included.
    pub length: u32,
    /// Whose it is.
    pub keys: Keys,
    /// When it came; disciplines measure its wait from here.
    pub arrived: Instant,
    /// To be marked "congestion experienced" before it is sent (RFC 3168).
    pub marked: bool,
}

/// A packet's place in a [`Pool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u32);

/// Why a packet was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The queue had as many packets or bytes as it may have.
    Full,
    /// Another flow's packet gave way, since that flow had the longest queue.
    Overlimit,
    /// It had waited too long for too long (RFC 8289).
    Late,
    /// No class takes it.
    Unclassified,
}

#[derive(Debug, Clone, Copy, Default)]
struct Node {
    packet: Packet,
    /// Counts arrivals, so that packets can be put back in order.
    sequence: u64,
    next: u32,
}

const NONE: u32 = u32::MAX;

/// All packets that wait, of all queues of a tree.
///
/// Each has a place and a link to the next of its list, so that moving one allocates nothing.
#[derive(Debug)]
pub struct Pool {
    nodes: Vec<Node>,
    limit: u32,
    free: u32,
    used: u32,
    arrivals: u64,
    discarded: Vec<(u32, Reason)>,
}

impl Pool {
    /// A pool of at most `limit` packets. Memory is taken as they come.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self {
            nodes: Vec::new(),
            limit: limit.min(NONE - 1),
            free: NONE,
            used: 0,
            arrivals: 0,
            discarded: Vec::new(),
        }
    }

    /// Gives a packet its place; `None` when the pool is full: the packet is the caller's still.
    pub fn insert(&mut self, packet: Packet) -> Option<Id> {
        let sequence = self.arrivals;
        let node = Node {
            packet,
            sequence,
            next: NONE,
        };
        let index = if self.free == NONE {
            let index = u32::try_from(self.nodes.len())
                .ok()
                .filter(|&index| index < self.limit)?;
            self.nodes.push(node);
            index
        } else {
            let index = self.free;
            let place = &mut self.nodes[index as usize];
            self.free = place.next;
            *place = node;
            index
        };
        self.used += 1;
        self.arrivals += 1;
        Some(Id(index))
    }

    /// The packet of `id`.
    #[must_use]
    pub fn get(&self, id: Id) -> &Packet {
        &self.nodes[id.0 as usize].packet
    }

    /// When `id` was inserted, relative to others: greater is later.
    #[must_use]
    pub fn sequence(&self, id: Id) -> u64 {
        self.nodes[id.0 as usize].sequence
    }

    /// Marks a packet "congestion experienced" if its sender understands that; says whether it does.
    pub fn mark(&mut self, id: Id) -> bool {
        let packet = &mut self.nodes[id.0 as usize].packet;
        let capable = packet.keys.traffic_class & 0b11 != 0;
        packet.marked |= capable;
        capable
    }

    /// Takes a packet out: it is sent.
    pub fn take(&mut self, id: Id) -> Packet {
        let node = &mut self.nodes[id.0 as usize];
        node.next = self.free;
        self.free = id.0;
        self.used -= 1;
        node.packet
    }

    /// Takes a packet out: it is lost, and its handle waits in [`Pool::discarded`].
    pub fn discard(&mut self, id: Id, reason: Reason) {
        let packet = self.take(id);
        self.discarded.push((packet.handle, reason));
    }

    /// The handles of what was discarded since the last call, and why.
    pub fn discarded(&mut self) -> std::vec::Drain<'_, (u32, Reason)> {
        self.discarded.drain(..)
    }

    /// Packets in it.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.used
    }

    /// Whether no packet is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }
}

/// Packets one behind the other.
#[derive(Debug, Clone, Copy)]
pub struct List {
    head: u32,
    tail: u32,
    packets: u32,
    bytes: u64,
}

impl Default for List {
    fn default() -> Self {
        Self {
            head: NONE,
            tail: NONE,
            packets: 0,
            bytes: 0,
        }
    }
}

impl List {
    /// Appends a packet that is in no other list.
    pub fn push(&mut self, pool: &mut Pool, id: Id) {
        let node = &mut pool.nodes[id.0 as usize];
        node.next = NONE;
        self.bytes += u64::from(node.packet.length);
        self.packets += 1;
        if self.tail == NONE {
            self.head = id.0;
        } else {
            pool.nodes[self.tail as usize].next = id.0;
        }
        self.tail = id.0;
    }

    /// Takes the first.
    pub fn pop(&mut self, pool: &Pool) -> Option<Id> {
        let index = self.head;
        let node = pool.nodes.get(index as usize)?;
        self.head = node.next;
        if self.head == NONE {
            self.tail = NONE;
        }
        self.packets -= 1;
        self.bytes -= u64::from(node.packet.length);
        Some(Id(index))
    }

    /// The first, which stays.
    #[must_use]
    pub fn first(&self) -> Option<Id> {
        (self.head != NONE).then_some(Id(self.head))
    }

    /// Packets in it.
    #[must_use]
    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// Their octets on the line.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }
}
