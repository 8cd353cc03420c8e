//! Packets of numbered flows, and numbers drawn from a seed.

use base::Instant;
use qos::{Discipline, Id, Packet, Pool};
use wire::flow::Keys;

/// SplitMix64.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// 0 to `bound - 1`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// The keys of flow `number`.
pub(crate) fn keys(number: u32, traffic_class: u8) -> Keys {
    let mut keys = Keys {
        traffic_class,
        mark: number,
        ..Keys::default()
    };
    keys.outer.source[10] = 0xff;
    keys.outer.source[11] = 0xff;
    keys.outer.source[12..].copy_from_slice(&(0x0a00_0000 + number).to_be_bytes());
    keys.outer.destination[10] = 0xff;
    keys.outer.destination[11] = 0xff;
    keys.outer.destination[12..].copy_from_slice(&[192, 0, 2, 1]);
    keys.outer.protocol = 17;
    keys.outer.source_port = 1000;
    keys.outer.destination_port = 2000;
    keys
}

/// Puts a packet in the pool.
pub(crate) fn insert(
    pool: &mut Pool,
    handle: u32,
    flow: u32,
    traffic_class: u8,
    length: u32,
    now: Instant,
) -> Id {
    pool.insert(Packet {
        handle,
        length,
        keys: keys(flow, traffic_class),
        arrived: now,
        marked: false,
    })
    .expect("the pool is large enough")
}

/// Dequeues the next packet.
pub(crate) fn send(queue: &mut dyn Discipline, pool: &mut Pool, now: Instant) -> Option<Packet> {
    let id = queue.dequeue(pool, now)?;
    Some(pool.take(id))
}

/// The handles of the dropped packets.
pub(crate) fn lost(pool: &mut Pool) -> Vec<u32> {
    pool.discarded().map(|(handle, _)| handle).collect()
}
