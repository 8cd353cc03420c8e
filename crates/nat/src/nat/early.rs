//! Loads of a batch's records before they are needed.
//!
//! A translation reads two records, each of which is probably in no cache at a million mappings, and the second needs the
//! first. For one packet after the other that is two waits a packet. [`Nat::touch`] reads the first record of all packets
//! of a batch, then the second of all, so that the processor waits for many at once. Each stage is a loop of its own, and
//! as short as can be: how many loads are under way is limited by the instructions between them.
//!
//! The mappings that were found are kept, so that the translation does not search again. It compares a mapping with its
//! packet in any case, so a mapping that changed in between does no harm.

use core::hint::black_box;

use wire::{tcp, udp};

use super::{Direction, Nat};
use crate::pool::{NONE, Protocol};
use crate::subscribers::SubscriberId;
use crate::table::Table;

/// Packets of a batch whose records are loaded.
const AHEAD: usize = 64;
/// Packets of a batch that the caller may leave out in a row.
const SKIPPED_MAX: usize = 8;

/// Protocol, address and port of the end that is translated; never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key(u64);

impl Key {
    const NONE: Self = Self(0);

    #[inline]
    pub(super) fn new(direction: Direction, protocol: Protocol, address: u32, port: u16) -> Self {
        let kind = (direction as u64) << 2 | protocol as u64 | 8;
        Self(kind << 48 | u64::from(address) << 16 | u64::from(port))
    }

    /// That of a whole TCP or UDP packet without IP options.
    #[inline]
    fn of(direction: Direction, packet: &[u8]) -> Self {
        let Some(head) = packet.first_chunk::<24>() else {
            return Self::NONE;
        };
        let is_part = u16::from_be_bytes([head[6], head[7]]) & 0x3fff != 0;
        let protocol = match head[9] {
            tcp::PROTOCOL => Protocol::Tcp,
            udp::PROTOCOL => Protocol::Udp,
            _ => return Self::NONE,
        };
        if head[0] != 0x45 || is_part {
            return Self::NONE;
        }
        let (address, port) = match direction {
            Direction::Out => (
                [head[12], head[13], head[14], head[15]],
                [head[20], head[21]],
            ),
            Direction::In => (
                [head[16], head[17], head[18], head[19]],
                [head[22], head[23]],
            ),
        };
        let (address, port) = (u32::from_be_bytes(address), u16::from_be_bytes(port));
        Self::new(direction, protocol, address, port)
    }

    #[inline]
    fn parts(self) -> Option<(Protocol, u32, u16)> {
        let protocol = match self.0 >> 48 & 3 {
            _ if self == Self::NONE => return None,
            0 => Protocol::Tcp,
            _ => Protocol::Udp,
        };
        Some((protocol, (self.0 >> 16) as u32, self.0 as u16))
    }
}

/// The mappings of the packets that come next, in their order.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Behind the batch is [`Key::NONE`].
    keys: [Key; AHEAD + 1],
    mappings: [u32; AHEAD + 1],
    /// The random numbers by which ports of new mappings were looked for; 0 for none.
    randoms: [u32; AHEAD + 1],
    /// The one of the packet that was taken last.
    random: u32,
    next: usize,
    count: usize,
}

impl Ahead {
    pub(super) const fn new() -> Self {
        Self {
            keys: [Key::NONE; AHEAD + 1],
            mappings: [NONE; AHEAD + 1],
            randoms: [0; AHEAD + 1],
            random: 0,
            next: 0,
            count: 0,
        }
    }

    /// The mapping that was found for the next packet; [`NONE`] without one.
    #[inline]
    pub(super) fn take(&mut self, key: Key) -> u32 {
        let at = self.next;
        if at <= AHEAD && self.keys[at] == key {
            self.next = at + 1;
            self.random = self.randoms[at];
            return self.mappings[at];
        }
        self.search(key)
    }

    /// The random number by which a port of the new mapping was looked for, once.
    #[inline]
    pub(super) fn take_random(&mut self) -> Option<u32> {
        match core::mem::take(&mut self.random) {
            0 => None,
            random => Some(random),
        }
    }

    /// The same, if the caller left out some packets.
    #[inline(never)]
    fn search(&mut self, key: Key) -> u32 {
        let keys = self.keys.get(self.next..self.count).unwrap_or_default();
        let skipped = keys.iter().take(SKIPPED_MAX).position(|&one| one == key);
        let Some(skipped) = skipped else { return NONE };
        self.next += skipped + 1;
        self.random = self.randoms[self.next - 1];
        self.mappings[self.next - 1]
    }
}

impl Nat {
    /// Loads the records of the packets that the caller translates next in this direction, in this order, of which it may
    /// leave out some. Of a long batch only the first 64 packets are loaded. With its subscriber, a packet that will make a
    /// mapping finds its port's records loaded too. It changes no mapping; it is worth its time for batches of four packets
    /// and more.
    pub fn touch<'a>(
        &mut self,
        direction: Direction,
        packets: impl IntoIterator<Item = (Option<SubscriberId>, &'a [u8])>,
    ) {
        let mut count = 0;
        let mut subscribers = [NONE; AHEAD];
        let places = self.ahead.keys.iter_mut().zip(&mut subscribers);
        for ((key, to), (subscriber, packet)) in places.zip(packets) {
            *key = Key::of(direction, packet);
            *to = subscriber.map_or(NONE, |one| one.index);
            count += 1;
        }
        self.ahead.keys[count] = Key::NONE;
        self.ahead.count = count;
        self.ahead.next = 0;
        match direction {
            Direction::Out => self.touch_out(count, &subscribers),
            Direction::In => self.touch_in(count),
        }
        let mut last = 0;
        for &mapping in &self.ahead.mappings[..count] {
            if let Some(mapping) = self.mappings.get(mapping as usize) {
                last ^= mapping.last;
            }
        }
        black_box(last);
    }

    fn touch_out(&mut self, count: usize, subscribers: &[u32; AHEAD]) {
        let count = count.min(AHEAD);
        let mut hashes = [0; AHEAD];
        for (to, key) in hashes.iter_mut().zip(&self.ahead.keys[..count]) {
            if let Some((protocol, address, port)) = key.parts() {
                *to = self.hash(address, port, protocol);
            }
        }
        let mut slots = [0; AHEAD];
        for (to, &hash) in slots.iter_mut().zip(&hashes[..count]) {
            *to = self.by_inside.first(hash);
        }
        let found = self.ahead.mappings.iter_mut().zip(&hashes).zip(&slots);
        let mut is_any_new = false;
        for ((to, &hash), &slot) in found.take(count) {
            // A mapping whose hash agrees is the right one, but for one in 2^32.
            *to = match Table::index(slot, hash) {
                Some(index) => index,
                None if slot == 0 => NONE,
                None => self.by_inside.find(hash, |_| true).unwrap_or(NONE),
            };
            is_any_new |= *to == NONE;
        }
        if is_any_new {
            self.touch_new(count, subscribers);
        }
    }

    /// Loads what a new mapping needs: its subscriber, the newest block, the block's page, and the place of a free port.
    fn touch_new(&mut self, count: usize, subscribers: &[u32; AHEAD]) {
        let (mut blocks, mut slots) = ([NONE; AHEAD], [NONE; AHEAD]);
        self.ahead.randoms[..count].fill(0);
        for (at, to) in blocks.iter_mut().enumerate().take(count) {
            if self.ahead.mappings[at] == NONE && self.ahead.keys[at] != Key::NONE {
                let subscriber = self.subscribers.at(subscribers[at]);
                *to = subscriber.map_or(NONE, |one| one.block);
            }
        }
        let mut owner = 0;
        for &block in &blocks[..count] {
            owner ^= self.pool.get(block).map_or(0, |one| one.owner);
        }
        black_box(owner);
        for at in 0..count {
            let Some((protocol, _, _)) = self.ahead.keys[at].parts() else {
                continue;
            };
            if self.pool.get(blocks[at]).is_none() {
                continue;
            }
            let random = (self.random() >> 32) as u32 | 1;
            self.ahead.randoms[at] = random;
            let (_, ports) = self.pool.ports_of(blocks[at]);
            let place = self.pool.find_port(blocks[at], ports, protocol, random);
            let slot = place.and_then(|place| self.pool.page(blocks[at], protocol).slot(place));
            slots[at] = slot.unwrap_or(NONE);
        }
        let mut last = 0;
        for &slot in &slots[..count] {
            last ^= self.pool.pages.mapping(slot).unwrap_or(0);
        }
        black_box(last);
    }

    fn touch_in(&mut self, count: usize) {
        let count = count.min(AHEAD);
        let mut slots = [NONE; AHEAD];
        for (to, key) in slots.iter_mut().zip(&self.ahead.keys[..count]) {
            let Some((protocol, address, port)) = key.parts() else {
                continue;
            };
            let address = self.pool.index_of(address);
            let slot = address.and_then(|address| self.pool.slot(address, port, protocol));
            *to = slot.unwrap_or(NONE);
        }
        for (to, &slot) in self.ahead.mappings.iter_mut().zip(&slots[..count]) {
            *to = self.pool.pages.mapping(slot).unwrap_or(NONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_are_left_out_do_not_lose_the_others() {
        let mut ahead = Ahead::new();
        let key = |port| Key::new(Direction::Out, Protocol::Udp, 7, port);
        for at in 0..20 {
            ahead.keys[at] = key(at as u16);
            ahead.mappings[at] = 100 + at as u32;
        }
        ahead.count = 20;
        ahead.keys[7] = Key::NONE;
        let taken = [0, 1, 4, 99, 5, 19, 6, 8, 4].map(|port| ahead.take(key(port)));
        assert_eq!(taken, [100, 101, 104, NONE, 105, NONE, 106, 108, NONE]);
        assert_eq!(Ahead::new().take(key(0)), NONE);
    }
}
