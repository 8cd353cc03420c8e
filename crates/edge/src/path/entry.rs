//! A subscriber's entry in a path: everything that forwarding its packets needs, and their counters.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use base::Instant;
use base::slab::Key;
use filter::FilterId;
use forward::icmp::Bucket;
use forward::source::Addresses;
use hqos::{Direction, SubId};
use wire::ppp::{Compression, protocol};

use crate::access::{Encapsulation, HEADER_MAX};
use crate::garden::GardenId;
use crate::key::{QueueLosses, SubscriberKey, Traffic};

/// About a second: 2^30 ns.
const HEARD_SHIFT: u32 = 30;

/// A subscriber whose packets may pass.
#[derive(Clone, Debug)]
pub(crate) struct Entry<E: Encapsulation> {
    pub(super) key: Key,
    pub(super) way: E,
    /// Whether packets of IPv4 (bit 0) and of IPv6 (bit 1) may pass. Whether it is kept apart from other subscribers (bit 2),
    /// if the path's default does not count (bit 3). Whether we are the client, and the peer the network (bit 4).
    flags: u8,
    /// The largest IP packet that goes to it unfragmented.
    pub(super) mtu: u16,
    pub(super) filter: Option<FilterId>,
    /// The walled garden that it is in, and whose filter it has.
    pub(super) garden: Option<GardenId>,
    /// Its queues, if they are on this path.
    queue: Option<SubId>,
    /// The path that has its queues, or [`NOWHERE`].
    home: u8,
    /// The path that translates its packets, if there is a NAT.
    pub(super) translator: u8,
    /// The addresses that it may send from. A client's are our own.
    pub(super) addresses: Addresses,
    /// When its last packet arrived, in units of 2^30 ns, modulo 2^16.
    heard: u16,
    /// The rate of ICMP errors that it causes.
    pub(super) bucket: Bucket,
    meters: Arc<[Meter]>,
    /// The head of an IPv4 packet: the access's header, then PPP's.
    head: [u8; HEAD_MAX],
    head_length: u8,
    /// Bytes of the head that are PPP's.
    ppp_length: u8,
}

/// Bytes of an access's header and of PPP's address, control and protocol fields.
const HEAD_MAX: usize = HEADER_MAX + 4;

/// The home of a subscriber without queues.
const NOWHERE: u8 = u8::MAX;

/// Where the queues of a shaped subscriber are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// On this path.
    Here(SubId),
    /// On the path with this number.
    There(u8),
}

/// What the edge knows of a subscriber whose packets may pass.
pub(crate) struct Facts {
    pub(crate) key: Key,
    /// Whether we are the client, and the peer the network.
    pub(crate) is_client: bool,
    /// Whether packets of IPv4 and of IPv6 may pass.
    pub(crate) is_open: [bool; 2],
    /// Whether it and other subscribers are kept apart; `None` for the path's default.
    pub(crate) isolate: Option<bool>,
    /// The largest IP packet that goes to the subscriber unfragmented.
    pub(crate) mtu: u16,
    /// How the heads of its frames may be shortened.
    pub(crate) compression: Compression,
    /// The filter that its packets pass.
    pub(crate) filter: Option<FilterId>,
    /// The walled garden that it is in.
    pub(crate) garden: Option<GardenId>,
    /// The addresses that it may send from. A client's are our own.
    pub(crate) addresses: Addresses,
    /// The path that has its queues, if it is shaped.
    pub(crate) home: Option<u8>,
    /// The path that translates its packets, if there is a NAT.
    pub(crate) translator: u8,
    /// Where each path counts its packets.
    pub(crate) meters: Arc<[Meter]>,
}

impl<E: Encapsulation> Entry<E> {
    /// Puts what the edge knows of a subscriber into the form that packets need.
    pub(crate) fn new(one: Facts, way: E, header: &[u8]) -> Self {
        let compression = Compression {
            address: one.compression.address || !E::has_address(&way.route()),
            ..one.compression
        };
        let (ppp, ppp_length) = compression.head(protocol::IPV4);
        let head_length = header.len() + ppp_length;
        let mut head = [0; HEAD_MAX];
        head[..header.len()].copy_from_slice(header);
        head[header.len()..head_length].copy_from_slice(&ppp[..ppp_length]);
        Self {
            key: one.key,
            way,
            flags: u8::from(one.is_open[0])
                | u8::from(one.is_open[1]) << 1
                | u8::from(one.isolate == Some(true)) << 2
                | u8::from(one.isolate.is_some()) << 3
                | u8::from(one.is_client) << 4,
            queue: None,
            home: one.home.unwrap_or(NOWHERE),
            translator: one.translator,
            mtu: one.mtu,
            filter: one.filter,
            garden: one.garden,
            addresses: one.addresses,
            heard: 0,
            bucket: Bucket::default(),
            meters: one.meters,
            head,
            head_length: head_length as u8,
            ppp_length: ppp_length as u8,
        }
    }

    /// Keeps what only the path knows of the same subscriber.
    pub(super) fn inherit(&mut self, before: &Self) {
        if self.key == before.key {
            (self.bucket, self.heard) = (before.bucket, before.heard);
        }
    }

    /// Distinguishes it from others at the same place.
    pub(super) fn generation(&self) -> u32 {
        self.key.generation
    }

    /// Notes which queues of this path it has, if they are here.
    pub(super) fn settle(&mut self, path: usize, seat: Option<SubId>) {
        if usize::from(self.home) == path {
            self.queue = seat;
            self.home = NOWHERE;
        }
    }

    /// Where its queues are, if it is shaped.
    #[inline]
    pub(super) fn lane(&self) -> Option<Lane> {
        match self.queue {
            Some(id) => Some(Lane::Here(id)),
            None if self.home == NOWHERE => None,
            None => Some(Lane::There(self.home)),
        }
    }

    pub(super) fn subscriber(&self) -> SubscriberKey {
        SubscriberKey(self.key)
    }

    #[inline]
    pub(crate) fn is_open(&self, version: u8) -> bool {
        self.flags >> u8::from(version != 4) & 1 != 0
    }

    /// Whether we are the client, and the peer the network.
    #[inline]
    pub(super) fn is_client(&self) -> bool {
        self.flags & 16 != 0
    }

    /// Whether it and other subscribers are kept apart; `None` for the path's default.
    #[inline]
    pub(super) fn isolate(&self) -> Option<bool> {
        (self.flags & 8 != 0).then_some(self.flags & 4 != 0)
    }

    /// Whether all its frames have the same header.
    pub(crate) fn is_fixed(&self) -> bool {
        self.way.is_fixed()
    }

    /// Notes that a packet arrived. `true` at most about once a second.
    #[inline]
    pub(super) fn hear(&mut self, now: Instant) -> bool {
        let second = (now.as_nanos() >> HEARD_SHIFT) as u16;
        let second = second.wrapping_add(1);
        core::mem::replace(&mut self.heard, second) != second
    }

    /// Appends the head of a packet: `header` of the access, or the stored one, then PPP's.
    #[inline]
    pub(super) fn append_head(&self, version: u8, header: Option<&[u8]>, out: &mut Vec<u8>) {
        let length = usize::from(self.head_length);
        match header {
            None => out.extend_from_slice(&self.head[..length]),
            Some(header) => {
                let ppp = length - usize::from(self.ppp_length);
                out.extend_from_slice(header);
                out.extend_from_slice(&self.head[ppp..length]);
            }
        }
        if version != 4
            && let Some(last) = out.last_mut()
        {
            *last = protocol::IPV6 as u8;
        }
    }

    /// Its counters on one path.
    #[inline]
    pub(super) fn meter(&self, path: usize) -> &Meter {
        &self.meters[path]
    }
}

/// A subscriber's counters on one path. Only that path writes them; others read them meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    packets_in: AtomicU64,
    octets_in: AtomicU64,
    packets_out: AtomicU64,
    octets_out: AtomicU64,
    dropped: AtomicU64,
    /// Of its queues down and up: packets that they dropped, and packets that they marked.
    queue_dropped: [AtomicU64; 2],
    queue_marked: [AtomicU64; 2],
}

impl Meter {
    /// One for each path.
    pub(crate) fn of_paths(paths: usize) -> Arc<[Self]> {
        (0..paths).map(|_| Self::default()).collect()
    }

    #[inline]
    pub(super) fn pass_in(&self, octets: usize) {
        add(&self.packets_in, 1);
        add(&self.octets_in, octets as u64);
    }

    #[inline]
    pub(super) fn pass_out(&self, packets: u64, octets: u64) {
        add(&self.packets_out, packets);
        add(&self.octets_out, octets);
    }

    /// Reads it, so that it is in the cache.
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        self.packets_in.load(Relaxed) ^ self.octets_out.load(Relaxed)
    }

    pub(super) fn drop_one(&self) {
        add(&self.dropped, 1);
    }

    /// Counts a packet that its queue dropped.
    pub(super) fn drop_queued(&self, direction: Direction) {
        add(&self.queue_dropped[direction as usize], 1);
    }

    /// Counts a packet that its queue marked.
    pub(super) fn mark(&self, direction: Direction) {
        add(&self.queue_marked[direction as usize], 1);
    }

    /// What its queues down and up dropped and marked, on all paths.
    pub(crate) fn losses(meters: &[Self]) -> [QueueLosses; 2] {
        [0, 1].map(|way| {
            let mut sum = QueueLosses::default();
            for meter in meters {
                sum.dropped += meter.queue_dropped[way].load(Relaxed);
                sum.marked += meter.queue_marked[way].load(Relaxed);
            }
            sum
        })
    }

    /// The sum over all paths.
    pub(crate) fn sum(meters: &[Self]) -> Traffic {
        let mut sum = Traffic::default();
        for meter in meters {
            sum.packets_in += meter.packets_in.load(Relaxed);
            sum.octets_in += meter.octets_in.load(Relaxed);
            sum.packets_out += meter.packets_out.load(Relaxed);
            sum.octets_out += meter.octets_out.load(Relaxed);
            sum.dropped += meter.dropped.load(Relaxed);
        }
        sum
    }
}

/// Adds to a number that no other thread writes. Costs no more than an addition.
#[inline]
pub(super) fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Relaxed).wrapping_add(more), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Access, L2tp};

    type Way = <L2tp as Access>::Encapsulation;

    #[test]
    fn an_entry_fits_into_176_octets() {
        // A packet reads this much of a subscriber, and each core has a copy.
        let size = size_of::<Option<Entry<Way>>>();
        assert!(size <= 176, "{size}");
    }
}
