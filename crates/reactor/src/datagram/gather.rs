//! Reorders the datagrams of a batch by peer, so that those to one peer can leave as one message.
//!
//! A server composes datagrams for each peer in turn, so those to one peer are apart in the batch. The order between
//! peers may change; the order of the datagrams to one peer does not, except that late ones go after the others.

use std::mem;
use std::net::{IpAddr, SocketAddr};

/// No datagram.
const NONE: u32 = u32::MAX;
/// A datagram that has its new place already.
const PLACED: u32 = u32::MAX - 1;

/// A datagram that waits in a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub(super) start: usize,
    pub(super) length: usize,
    pub(super) peer: SocketAddr,
    pub(super) local: Option<IpAddr>,
    /// Whether it may leave after later datagrams to the same peer.
    pub(super) is_late: bool,
}

impl Queued {
    /// Whether it has the same two ends as another.
    pub(super) fn has_ends_of(&self, other: &Self) -> bool {
        self.peer == other.peer && self.local == other.local
    }
}

/// The tables that gathering needs, kept for the next time.
#[derive(Default)]
pub(super) struct Gather {
    /// The latest datagram of each hash. A datagram replaced here has no successor.
    latest: Vec<u32>,
    /// The next datagram to the same peer.
    next: Vec<u32>,
    queue: Vec<Queued>,
    payload: Vec<u8>,
    /// The late datagrams of a peer.
    late: Vec<Queued>,
}

impl Gather {
    /// Reorders `queue` from `head` on, if that allows merging. Then `queue` and `payload` hold only these datagrams,
    /// and `head` is 0.
    pub(super) fn run(&mut self, queue: &mut Vec<Queued>, payload: &mut Vec<u8>, head: &mut usize) {
        let pending = &queue[*head..];
        if pending.len() < 2 || !self.link(pending) {
            return;
        }
        self.queue.clear();
        self.payload.clear();
        for first in 0..pending.len() {
            let mut at = first;
            while self.next[at] != PLACED {
                let one = pending[at];
                if one.is_late {
                    self.late.push(one);
                } else {
                    place(one, payload, (&mut self.queue, &mut self.payload));
                }
                match mem::replace(&mut self.next[at], PLACED) {
                    NONE => break,
                    next => at = next as usize,
                }
            }
            for one in self.late.drain(..) {
                place(one, payload, (&mut self.queue, &mut self.payload));
            }
        }
        mem::swap(&mut self.queue, queue);
        mem::swap(&mut self.payload, payload);
        *head = 0;
    }

    /// Finds for each datagram the next one to the same peer; returns whether that allows merging.
    fn link(&mut self, pending: &[Queued]) -> bool {
        let bits = (pending.len() * 4).next_power_of_two().trailing_zeros();
        self.latest.clear();
        self.latest.resize(1 << bits, NONE);
        self.next.clear();
        self.next.resize(pending.len(), NONE);
        let mut has_any = false;
        for (at, one) in pending.iter().enumerate() {
            let before = mem::replace(&mut self.latest[hash(one, bits)], at as u32) as usize;
            if let Some(earlier) = pending.get(before)
                && earlier.peer == one.peer
            {
                self.next[before] = at as u32;
                let fits = earlier.has_ends_of(one) && one.length <= earlier.length;
                has_any |= before + 1 < at && fits || earlier.is_late && !one.is_late;
            }
        }
        has_any
    }
}

/// Appends a datagram to another queue and its payload.
fn place(one: Queued, payload: &[u8], (queue, bytes): (&mut Vec<Queued>, &mut Vec<u8>)) {
    let start = bytes.len();
    bytes.extend_from_slice(&payload[one.start..one.start + one.length]);
    queue.push(Queued { start, ..one });
}

/// A hash of the peer, of `bits` bits.
fn hash(one: &Queued, bits: u32) -> usize {
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => {
            let number = address.to_bits();
            (number >> 64) as u64 ^ number as u64
        }
    };
    let ends = number(one.peer.ip()).rotate_left(32) ^ u64::from(one.peer.port());
    // The golden ratio spreads neighbouring values.
    (ends.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
}
