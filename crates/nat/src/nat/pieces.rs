//! Fragments (RFC 4787 REQ-14).
//!
//! The first fragment has the ports, and is translated as a whole packet is; its translation is noted by addresses,
//! protocol and identification for the datagram's other fragments. A fragment that arrives before the first one waits, as a
//! copy. Both tables are small and have limits of their own, so a flood of fragments costs other fragmented datagrams, and
//! nothing else (REQ-14a). When the table of datagrams is full, the oldest gives way: fragments of a datagram arrive
//! within milliseconds, so the oldest is probably complete. This is the only table that evicts.

use std::collections::VecDeque;

use base::Instant;
use hashbrown::HashMap;
use wire::ip::Header;

use super::{Direction, Nat, Verdict, tick};
use crate::config::Limits;
use crate::discard::Discard;
use crate::pool::Protocol;
use crate::rewrite::{self, Side};

/// How long a datagram's translation is kept: 30 ticks, within the 15 s to 120 s of RFC 791 and RFC 1122.
const KEPT: u32 = 30;
/// How long a fragment waits for its first one.
const WAITS: u32 = 4;

/// Names a fragmented datagram, before its translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    direction: Direction,
    protocol: Protocol,
    identification: u16,
    source: u32,
    destination: u32,
}

impl Key {
    /// A key of source, destination and identification.
    pub(super) fn new(
        direction: Direction,
        (source, destination, identification): (u32, u32, Option<u16>),
        protocol: Protocol,
    ) -> Self {
        Self {
            direction,
            protocol,
            identification: identification.unwrap_or_default(),
            source,
            destination,
        }
    }

    /// Its addresses as a number.
    pub(super) fn ends(&self) -> u64 {
        u64::from(self.source) << 32 | u64::from(self.destination)
    }

    /// The rest of it as a number.
    pub(super) fn rest(&self) -> u64 {
        u64::from(self.identification) << 8 | self.protocol as u64
    }
}

/// What changes in each fragment of a datagram.
#[derive(Debug, Clone, Copy)]
pub(super) struct Translation {
    pub(super) source: Option<u32>,
    pub(super) destination: Option<u32>,
    pub(super) identification: Option<u16>,
}

impl Translation {
    fn apply(self, packet: &mut [u8]) -> Verdict {
        if let Some(source) = self.source {
            rewrite::address(packet, Side::Source, source);
        }
        if let Some(destination) = self.destination {
            rewrite::address(packet, Side::Destination, destination);
        }
        if let Some(identification) = self.identification {
            rewrite::identification(packet, identification);
        }
        match (self.source, self.destination) {
            (Some(_), Some(_)) => Verdict::Hairpin,
            _ => Verdict::Translated,
        }
    }
}

#[derive(Debug)]
struct Waiting {
    key: Key,
    until: u32,
    packet: Vec<u8>,
}

/// Fragmented datagrams.
#[derive(Debug)]
pub(crate) struct Pieces {
    known: HashMap<Key, (u32, Translation), foldhash::fast::RandomState>,
    /// In order of expiry. A datagram that was noted again is here twice; the later one counts.
    order: VecDeque<(u32, Key)>,
    known_max: usize,
    waiting: VecDeque<Waiting>,
    waiting_max: usize,
    released: VecDeque<(Direction, Verdict, Vec<u8>)>,
}

impl Pieces {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            known: HashMap::default(),
            order: VecDeque::new(),
            known_max: limits.fragmented_max as usize,
            waiting: VecDeque::new(),
            waiting_max: limits.waiting_fragments_max as usize,
            released: VecDeque::new(),
        }
    }

    /// Removes what is too old. Returns how many fragments waited in vain.
    pub(super) fn expire(&mut self, tick: u32) -> u64 {
        while self.order.front().is_some_and(|&(until, _)| until <= tick) {
            self.forget_oldest();
        }
        let mut lost = 0;
        while self.waiting.front().is_some_and(|one| one.until <= tick) {
            self.waiting.pop_front();
            lost += 1;
        }
        lost
    }

    /// The earliest tick at which something is too old.
    pub(super) fn next_expiry(&self) -> Option<u32> {
        let known = self.order.front().map(|&(until, _)| until);
        let waiting = self.waiting.front().map(|one| one.until);
        known.into_iter().chain(waiting).min()
    }

    /// Returns whether a datagram's entry went.
    fn forget_oldest(&mut self) -> bool {
        let Some((until, key)) = self.order.pop_front() else {
            return false;
        };
        let is_latest = self.known.get(&key).is_some_and(|&(at, _)| at == until);
        if is_latest {
            self.known.remove(&key);
        }
        is_latest
    }
}

impl Nat {
    /// A fragment that waited and whose first fragment has arrived: appends it to `out`. `None` means drained. Call it
    /// after each first fragment; it costs a comparison.
    #[inline]
    pub fn poll_released(&mut self, out: &mut Vec<u8>) -> Option<(Direction, Verdict)> {
        let (direction, verdict, packet) = self.pieces.released.pop_front()?;
        out.extend_from_slice(&packet);
        Some((direction, verdict))
    }

    /// Notes how the first fragment of a datagram was translated, and translates those that wait for it.
    pub(super) fn note_first(&mut self, key: Key, translation: Translation, tick: u32) {
        let pieces = &mut self.pieces;
        if pieces.known_max == 0 {
            return;
        }
        while pieces.order.len() >= pieces.known_max {
            self.counters.fragmented_evicted += u64::from(pieces.forget_oldest());
        }
        pieces.known.insert(key, (tick + KEPT, translation));
        pieces.order.push_back((tick + KEPT, key));
        let mut at = 0;
        while at < pieces.waiting.len() {
            if pieces.waiting[at].key != key || pieces.waiting[at].until <= tick {
                at += 1;
                continue;
            }
            let Some(mut one) = pieces.waiting.remove(at) else {
                break;
            };
            let verdict = translation.apply(&mut one.packet);
            match (key.direction, verdict) {
                (Direction::In, _) => self.counters.inbound += 1,
                (Direction::Out, Verdict::Hairpin) => self.counters.hairpinned += 1,
                (Direction::Out, _) => self.counters.outbound += 1,
            }
            pieces
                .released
                .push_back((key.direction, verdict, one.packet));
        }
    }

    /// A fragment after the first one.
    pub(super) fn later(
        &mut self,
        direction: Direction,
        header: &Header,
        packet: &mut [u8],
        now: Instant,
    ) -> Result<Verdict, Discard> {
        let tick = tick(now);
        let protocol = Protocol::of(header.protocol);
        let ends = (header.source as u32, header.destination as u32);
        let key = Key::new(
            direction,
            (ends.0, ends.1, rewrite::word(packet, 4)),
            protocol,
        );
        match self.pieces.known.get(&key) {
            Some(&(until, translation)) if until > tick => Ok(translation.apply(packet)),
            _ => self.wait(key, packet, tick),
        }
    }

    fn wait(&mut self, key: Key, packet: &[u8], tick: u32) -> Result<Verdict, Discard> {
        self.counters.fragments_lost += self.pieces.expire(tick);
        let waiting = self.pieces.waiting.len() + self.pieces.released.len();
        if waiting >= self.pieces.waiting_max {
            return Err(Discard::FragmentsFull);
        }
        self.pieces.waiting.push_back(Waiting {
            key,
            until: tick + WAITS,
            packet: packet.to_vec(),
        });
        Ok(Verdict::Held)
    }
}
