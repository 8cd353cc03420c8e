//! Decodes a record of a capture file into a TCP segment. This needs no connection's state, so that several threads can
//! decode blocks at the same time.

use capfile::{Block, Record};
use wire::link::LinkType;
use wire::packet::{self, Fragment, Packet};
use wire::tcp::Tcp;

use super::decoded::Decoded;
use super::fragments::{Fragments, Part, Whole};
use super::plan::Plan;
use super::realms::Realms;
use super::tally::Tally;
use crate::clock::Clock;
use crate::key::FlowKey;
use crate::segment::Segment;

/// The outcome of decoding a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It holds an IP packet.
    Packet,
    /// It holds no packet, or one before the first to be analysed.
    Nothing,
    /// The last packet to be analysed has passed.
    Past,
}

/// Decodes records in the order of the capture, and counts them.
pub(crate) struct Decoder {
    plan: Plan,
    pub(crate) tally: Tally,
    /// IP packets so far: the number of the last one.
    pub(crate) number: u64,
    /// The capture's clock, by records of any kind.
    pub(crate) clock: Clock,
    /// Time stamp of the last record.
    pub(crate) last: i64,
    /// The packets whose fragments are arriving. `None` if several threads decode: then `parts` has the fragments of
    /// the block, to be put together in the order of the capture.
    pub(crate) fragments: Option<Fragments>,
    pub(crate) parts: Vec<Part>,
    /// The realms of sessions, if flows in different tunnels are kept apart.
    realms: Realms,
}

impl Decoder {
    pub(crate) fn new(plan: Plan) -> Decoder {
        Decoder {
            plan,
            tally: Tally::default(),
            number: 0,
            clock: Clock::default(),
            last: i64::MIN,
            fragments: Some(Fragments::default()),
            parts: Vec::new(),
            realms: Realms::default(),
        }
    }

    /// Adds the segment of a record, if it holds one, to its flow's shard. `packet` is scratch room.
    #[inline(always)]
    pub(crate) fn decode<'p>(
        &mut self,
        block: &'p Block,
        record: &Record,
        packet: &mut Packet<'p>,
        to: &mut [Decoded],
    ) -> Step {
        // For the most frequent packets, only the segment is ever written to memory.
        let mut plain = Packet::new();
        if record.link == LinkType::ETHERNET
            && packet::plain_tcp(block.bytes(record), &mut plain)
            && let Some(tcp) = Tcp::plain(&plain)
        {
            let step = self.count(record, &plain);
            if step == Step::Packet {
                self.segment(&plain, &tcp, to);
            }
            return step;
        }
        self.decode_any(block, record, packet, to)
    }

    /// Like [`Decoder::decode`], for less frequent packets.
    #[inline(never)]
    fn decode_any<'p>(
        &mut self,
        block: &'p Block,
        record: &Record,
        packet: &mut Packet<'p>,
        to: &mut [Decoded],
    ) -> Step {
        let step = self.record(block, record, packet);
        if step != Step::Packet {
            return step;
        }
        if packet.fragment != Fragment::Whole
            && let Some(part) = self.part(packet)
        {
            match &mut self.fragments {
                Some(fragments) => {
                    let whole = fragments.add(part, &mut self.tally);
                    self.joined(whole, to);
                }
                None => self.parts.push(part),
            }
            return step;
        }
        if let Some(tcp) = Tcp::plain(packet) {
            self.segment(packet, &tcp, to);
            return step;
        }
        match Tcp::parse(packet) {
            Ok(ref tcp) => {
                self.segment(packet, tcp, to);
            }
            Err(error) => self.tally.not_tcp(packet, error),
        }
        step
    }

    /// The last packet as a fragment of a TCP segment.
    #[cold]
    pub(crate) fn part(&self, packet: &Packet<'_>) -> Option<Part> {
        let realm = self.plan.realm_of(packet.layers.as_slice());
        let mut part = Part::of(packet, realm)?;
        (part.number, part.time, part.clock) = (self.number, self.last, self.clock.now());
        Some(part)
    }

    /// Adds a segment that was put together, if there is one.
    #[cold]
    fn joined(&mut self, whole: Option<Whole>, to: &mut [Decoded]) {
        let Some(whole) = whole else {
            return;
        };
        let packet = whole.packet();
        match Tcp::parse(&packet) {
            Ok(ref tcp) => {
                self.segment(&packet, tcp, to);
            }
            Err(error) => self.tally.not_tcp(&packet, error),
        }
    }

    /// Puts the fragments of a block together, and adds the segments to their flows' shards.
    #[cold]
    pub(crate) fn join(&mut self, fragments: &mut Fragments, to: &mut [Decoded]) {
        let (number, last) = (self.number, self.last);
        let mut late: Vec<Decoded> = to.iter().map(|_| Decoded::default()).collect();
        for part in core::mem::take(&mut self.parts) {
            (self.number, self.last) = (part.number, part.time);
            let clock = part.clock;
            let whole = fragments.add(part, &mut self.tally);
            let before: Vec<usize> = late.iter().map(Decoded::len).collect();
            self.joined(whole, &mut late);
            for (late, before) in late.iter_mut().zip(before) {
                late.set_clock(before, clock);
            }
        }
        (self.number, self.last) = (number, last);
        for (to, late) in to.iter_mut().zip(&late) {
            to.merge(late);
        }
    }

    /// Finds the IP packet of a record.
    #[inline]
    pub(crate) fn record<'p>(
        &mut self,
        block: &'p Block,
        record: &Record,
        packet: &mut Packet<'p>,
    ) -> Step {
        match packet::decode(record.link, block.bytes(record), record.length, packet) {
            Ok(()) => self.count(record, packet),
            Err(skip) => {
                self.tick(record);
                self.tally.skip(skip);
                Step::Nothing
            }
        }
    }

    /// Counts a record with an IP packet.
    #[inline(always)]
    fn count(&mut self, record: &Record, packet: &Packet<'_>) -> Step {
        if self.number >= self.plan.last {
            return Step::Past;
        }
        let backwards = record.time_ns < self.last;
        self.tick(record);
        self.number += 1;
        self.tally.packets += 1;
        if self.number < self.plan.first {
            return Step::Nothing;
        }
        self.tally.backwards += u64::from(backwards);
        if self.tally.first_time.is_none() {
            self.tally.first_time = Some(record.time_ns);
        }
        self.tally.last_time = record.time_ns;
        if packet.fragment != Fragment::Whole {
            self.tally.fragment(packet.fragment);
        }
        if !packet.layers.is_empty() {
            self.tally.layers.add(packet.layers.as_slice());
        }
        Step::Packet
    }

    /// Counts a record of any kind and advances the clock.
    #[inline(always)]
    fn tick(&mut self, record: &Record) {
        self.tally.records += 1;
        self.last = record.time_ns;
        self.clock.tick(record.time_ns);
    }

    /// A number that keeps flows in different tunnels and sessions apart; 0 outside of tunnels, and for all unless that
    /// is asked for.
    #[inline(always)]
    pub(crate) fn realm(&mut self, packet: &Packet<'_>, tcp: Option<&Tcp<'_>>) -> u32 {
        let layers = packet.layers.as_slice();
        match self.plan.realm_of(layers) {
            0 => 0,
            tunnel => self.realms.of(tunnel, layers, packet, tcp),
        }
    }

    /// Adds a segment to its flow's shard and returns it. `None` if the flow belongs to another part.
    #[inline(always)]
    pub(crate) fn segment<'t>(
        &mut self,
        packet: &Packet<'_>,
        tcp: &Tcp<'_>,
        to: &'t mut [Decoded],
    ) -> Option<&'t (u64, Segment)> {
        self.tally.tcp_seen += 1;
        self.tally.too_short += u64::from(tcp.options.cut || tcp.options.malformed);
        let realm = self.realm(packet, Some(tcp));
        let (source, destination) = (tcp.source_port, tcp.destination_port);
        let (key, _) = FlowKey::new(
            &packet.source,
            source,
            &packet.destination,
            destination,
            realm,
        );
        let hash = key.hash(self.plan.config.seed);
        if !self.plan.has_hash(hash) {
            return None;
        }
        self.tally.tcp += 1;
        let shards = to.len();
        let decoded = &mut to[shard(hash, shards)];
        let place = decoded.place();
        place.0 = hash;
        place
            .1
            .set(self.number, self.last, self.clock.now(), packet, tcp, realm);
        decoded.add(packet);
        decoded.last()
    }
}

/// The shard, of `shards`, of a flow with that hash. The analyser's table uses the lowest and the
/// highest bits.
#[inline(always)]
fn shard(hash: u64, shards: usize) -> usize {
    (((hash >> 24 & 0xffff_ffff) * shards as u64) >> 32) as usize
}
