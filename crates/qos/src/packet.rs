//! Packets that wait, and the lists that hold them.

mod backlog;
mod list;

use base::Instant;
use wire::flow::Keys;

pub use backlog::Backlog;
pub use list::{Chain, List};

/// The fields of a packet that queues read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Packet {
    /// The caller's name for its bytes.
    pub handle: u32,
    /// Bytes on the line, including the link layer's overhead.
    pub length: u32,
    /// Addresses, ports, marks: the input of classifiers.
    pub keys: Keys,
    /// Its arrival time; disciplines measure its delay from here.
    pub arrived: Instant,
    /// Whether to mark it "congestion experienced" before it is sent (RFC 3168).
    pub marked: bool,
}

/// A packet's place in a [`Pool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u32);

impl Id {
    /// The packet with this index in its store.
    #[inline]
    #[must_use]
    pub fn new(index: u32) -> Self {
        Self(index)
    }

    /// Its index in its store.
    #[inline]
    #[must_use]
    pub fn index(self) -> u32 {
        self.0
    }
}

/// Why a packet was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The queue was at its limit.
    Full,
    /// The queues together were at their limit, and this packet's flow had the longest queue.
    Overlimit,
    /// Its queue's delay was too high for too long (RFC 8289).
    Late,
    /// No class matched.
    Unclassified,
}

/// A packet's place: two cache lines. The fields that every queue reads are in the first one; a place that becomes free
/// is the next to be used, and that line is in the cache then.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Node {
    arrived: Instant,
    next: u32,
    previous: u32,
    length: u32,
    handle: u32,
    marked: bool,
    /// Counts arrivals, so that packets can be put back in order.
    sequence: u64,
    keys: Keys,
}

const _: () = assert!(size_of::<Node>() == 128);

const NONE: u32 = u32::MAX;

/// All waiting packets of all queues of a tree.
///
/// Each packet has a place and links to its neighbours in its list, so moving one allocates nothing.
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
    /// Bytes of memory for a packet's place, without the bytes that the caller stores.
    pub const PLACE_BYTES: u32 = size_of::<Node>() as u32;

    /// A pool of at most `limit` packets. It allocates memory as packets arrive.
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

    /// Gives a packet a place. `None` if the pool is full: the caller keeps the packet.
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> Option<Id> {
        let node = Node {
            arrived: packet.arrived,
            next: NONE,
            previous: NONE,
            length: packet.length,
            handle: packet.handle,
            marked: packet.marked,
            sequence: self.arrivals,
            keys: packet.keys,
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

    /// The whole packet `id`. To read one field, use [`Pool::keys`] or [`Pool::length`].
    #[must_use]
    #[inline]
    pub fn get(&self, id: Id) -> Packet {
        let node = &self.nodes[id.0 as usize];
        Packet {
            handle: node.handle,
            length: node.length,
            keys: self.nodes[id.0 as usize].keys,
            arrived: node.arrived,
            marked: node.marked,
        }
    }

    /// The keys of packet `id`.
    #[must_use]
    #[inline]
    pub fn keys(&self, id: Id) -> &Keys {
        &self.nodes[id.0 as usize].keys
    }

    /// The bytes on the line of packet `id`.
    #[must_use]
    #[inline]
    pub fn length(&self, id: Id) -> u32 {
        self.nodes[id.0 as usize].length
    }

    /// The arrival time of packet `id`.
    #[must_use]
    #[inline]
    pub fn arrived(&self, id: Id) -> Instant {
        self.nodes[id.0 as usize].arrived
    }

    /// The TOS octet or traffic class of packet `id`.
    #[must_use]
    #[inline]
    pub fn traffic_class(&self, id: Id) -> u8 {
        self.nodes[id.0 as usize].keys.traffic_class
    }

    /// The arrival number of `id`: greater means later.
    #[must_use]
    pub fn sequence(&self, id: Id) -> u64 {
        self.nodes[id.0 as usize].sequence
    }

    /// Marks a packet "congestion experienced" if its sender is ECN-capable; returns whether it is.
    pub fn mark(&mut self, id: Id) -> bool {
        let node = &mut self.nodes[id.0 as usize];
        let capable = node.keys.traffic_class & 0b11 != 0;
        node.marked |= capable;
        capable
    }

    /// Removes a packet that is sent.
    #[inline]
    pub fn take(&mut self, id: Id) -> Packet {
        let packet = self.get(id);
        self.release(id);
        packet
    }

    /// Removes a packet that is sent, and returns its handle and whether it is marked. It does not read the keys.
    #[inline]
    pub fn release_sent(&mut self, id: Id) -> (u32, bool) {
        let marked = self.nodes[id.0 as usize].marked;
        (self.release(id), marked)
    }

    /// Removes a packet that is lost; its handle waits in [`Pool::discarded`].
    pub fn discard(&mut self, id: Id, reason: Reason) {
        let handle = self.release(id);
        self.discarded.push((handle, reason));
    }

    /// Frees a packet's place and returns its handle.
    #[inline]
    fn release(&mut self, id: Id) -> u32 {
        let node = &mut self.nodes[id.0 as usize];
        node.next = self.free;
        self.free = id.0;
        self.used -= 1;
        node.handle
    }

    /// The handles of the packets discarded since the last call, and the reasons.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(handle: u32) -> Packet {
        Packet {
            handle,
            length: 100 + handle,
            ..Packet::default()
        }
    }

    #[test]
    fn a_full_pool_leaves_the_packet_to_its_owner_and_places_are_used_again() {
        let mut pool = Pool::new(2);
        let first = pool.insert(packet(1)).expect("room");
        let second = pool.insert(packet(2)).expect("room");
        assert_eq!(pool.insert(packet(3)), None);
        assert_eq!(pool.take(first), packet(1));
        let third = pool.insert(packet(3)).expect("room again");
        assert_eq!(third, first);
        assert!(pool.sequence(third) > pool.sequence(second));
        pool.discard(second, Reason::Full);
        assert_eq!(pool.discarded().collect::<Vec<_>>(), [(2, Reason::Full)]);
        assert_eq!(pool.len(), 1);
    }

    #[test]
    fn only_a_capable_sender_s_packet_is_marked() {
        let mut pool = Pool::new(4);
        for ecn in 0..4u8 {
            let mut packet = packet(0);
            packet.keys.traffic_class = 0xb8 | ecn;
            let id = pool.insert(packet).expect("room");
            assert_eq!(pool.mark(id), ecn != 0);
            assert_eq!(pool.take(id).marked, ecn != 0);
        }
    }
}
