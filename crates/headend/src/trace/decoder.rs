//! From a record of a file to a TCP segment: all that needs to know no connection.

use capfile::{Block, Record};
use trace::{Clock, Segment};
use wire::packet::{self, Fragment, Packet};
use wire::tcp::Tcp;

use super::pipeline::{Plan, realm_of};
use super::tally::Tally;

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It has an IP packet.
    Packet,
    /// It has none, or it comes before those that count.
    Nothing,
    /// The last one that counts has passed.
    Past,
}

/// Decodes records in the order of the capture, and counts them.
pub(super) struct Decoder {
    plan: Plan,
    pub(super) tally: Tally,
    /// IP packets so far: the number of the last one.
    pub(super) number: u64,
    /// The capture's clock, by records of any kind.
    pub(super) clock: Clock,
    /// Time stamp of the last record.
    pub(super) last: i64,
}

impl Decoder {
    pub(super) fn new(plan: Plan) -> Decoder {
        Decoder {
            plan,
            tally: Tally::default(),
            number: 0,
            clock: Clock::default(),
            last: i64::MIN,
        }
    }

    /// Finds the IP packet of a record.
    #[inline(always)]
    pub(super) fn record<'p>(
        &mut self,
        block: &'p Block,
        record: &Record,
        packet: &mut Packet<'p>,
    ) -> Step {
        let frame = block.bytes(record);
        let decoded = packet::decode(record.link, frame, record.length, packet);
        if decoded.is_ok() && self.number >= self.plan.last {
            return Step::Past;
        }
        self.tally.records += 1;
        let backwards = record.time_ns < self.last;
        self.last = record.time_ns;
        self.clock.tick(record.time_ns);
        if let Err(skip) = decoded {
            self.tally.skip(skip);
            return Step::Nothing;
        }
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

    /// Makes `place` the segment and the hash of its flow. False when it belongs to another part.
    #[inline(always)]
    pub(super) fn segment(
        &mut self,
        packet: &Packet<'_>,
        tcp: &Tcp<'_>,
        place: &mut (u64, Segment),
    ) -> bool {
        let realm = realm_of(&self.plan, packet.layers.as_slice());
        let (hash, segment) = place;
        segment.set(self.number, self.last, self.clock.now(), packet, tcp, realm);
        *hash = segment.key.hash(self.plan.config.seed);
        self.tally.tcp_seen += 1;
        self.tally.too_short += u64::from(tcp.options.cut || tcp.options.malformed);
        let own = self.plan.has(*hash);
        self.tally.tcp += u64::from(own);
        own
    }
}
