//! The result of a comparison.

use std::collections::BTreeMap;

use crate::clock::{Clock, Way};
use crate::packet::{FlowKey, Point};
use crate::track::Counted;

/// Kinds of rewriting that are listed; packets of further kinds are only counted.
const REWRITES_MAX: usize = 256;

/// Translated flows that are listed.
pub const MAPPINGS_MAX: usize = 64;

/// A packet that one point saw and the other did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Which way it went.
    pub way: Way,
    /// The point that saw it.
    pub point: Point,
    /// Its number in that point's capture.
    pub number: u64,
    /// Its time there.
    pub time: i64,
    /// Bytes of payload that did not arrive; 0 for a packet without data.
    pub bytes: u64,
    /// The rest of its data arrived.
    pub is_partial: bool,
    /// Its flow there.
    pub key: FlowKey,
}

/// A packet at both points, or a part of one where segments were cut or joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Which way it went.
    pub way: Way,
    /// Numbers in A's and B's capture.
    pub numbers: (u64, u64),
    /// Times by A's and B's clock.
    pub times: (i64, i64),
    /// Bytes of payload.
    pub bytes: u64,
    /// Its flow at A and at B.
    pub keys: (FlowKey, FlowKey),
    /// Its segment was cut or joined on the way.
    pub is_part: bool,
}

/// Receives packets as they are matched or given up.
pub trait Sink {
    /// A packet that both points saw.
    fn pair(&mut self, _pair: &Pair) {}
    /// A packet that was lost between the points: the point nearer to its sender saw it.
    fn lost(&mut self, _lost: &Lost) {}
}

/// No interest.
impl Sink for () {}

/// A field that a path may rewrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// Hops between the points, from TTL or hop limit. `from` is 0, `to` the hops.
    Hops,
    /// Differentiated services code point.
    Dscp,
    /// ECN bits of the IP header.
    Ecn,
    /// ECN flags of a SYN.
    EcnSetup,
    /// Maximum segment size; 0 is absent.
    Mss,
    /// Window scale; 255 is absent.
    WindowScale,
    /// SACK permitted.
    SackPermitted,
    /// Time stamps.
    Timestamps,
}

impl Field {
    /// Its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Field::Hops => "hops",
            Field::Dscp => "dscp",
            Field::Ecn => "ecn",
            Field::EcnSetup => "ecn_setup",
            Field::Mss => "mss",
            Field::WindowScale => "window_scale",
            Field::SackPermitted => "sack_permitted",
            Field::Timestamps => "timestamps",
        }
    }
}

/// A kind of rewriting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Which way the packets went.
    pub way: Way,
    /// The field.
    pub field: Field,
    /// Its value at the point nearer to the sender.
    pub from: u32,
    /// Its value at the other point.
    pub to: u32,
}

/// How many packets were rewritten like this, and the numbers of the first one at A and B.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changed {
    /// Packets.
    pub packets: u64,
    /// The first one.
    pub first: (u64, u64),
}

/// What was rewritten.
#[derive(Debug, Clone, Default)]
pub struct Rewrites {
    /// By kind.
    pub changes: BTreeMap<Change, Changed>,
    last: Option<(Change, Changed)>,
    /// Changes of further kinds.
    pub beyond: u64,
}

impl Rewrites {
    #[inline]
    pub(crate) fn add(&mut self, change: Change, numbers: (u64, u64)) {
        match &mut self.last {
            Some((last, changed)) if *last == change => changed.packets += 1,
            _ => self.other(change, numbers),
        }
    }

    #[cold]
    fn other(&mut self, change: Change, first: (u64, u64)) {
        self.settle();
        self.last = Some((change, Changed { packets: 1, first }));
    }

    /// Enters the latest kind into the table.
    pub(crate) fn settle(&mut self) {
        let Some((change, changed)) = self.last.take() else {
            return;
        };
        if self.changes.len() >= REWRITES_MAX && !self.changes.contains_key(&change) {
            self.beyond += changed.packets;
            return;
        }
        let all = self.changes.entry(change).or_insert(Changed {
            packets: 0,
            ..changed
        });
        all.packets += changed.packets;
    }
}

/// A flow with other addresses, ports or sequence numbers at the other point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// The flow at A.
    pub a: FlowKey,
    /// The flow at B.
    pub b: FlowKey,
    /// B's sequence numbers less A's, modulo 2^32.
    pub moved: u32,
}

/// Packets of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneWay {
    /// Packets that both points saw; of cut and joined segments, their parts.
    pub pairs: u64,
    /// Bytes of their payload.
    pub bytes: u64,
    /// Parts of segments that were cut or joined, among `pairs`.
    pub parts: u64,
    /// Lost between the points.
    pub lost: Counted,
    /// Segments of which only a part was lost, among `lost`.
    pub lost_in_part: u64,
    /// Seen only at the far point: the capture at the near one missed them, or they began between the points.
    pub extra: Counted,
    /// Packets that the far point saw twice and the near one once.
    pub duplicated: Counted,
    /// Packets that the near point captured twice.
    pub copies: u64,
    /// Packets that arrived after one that was sent later (RFC 4737).
    pub reordered: Counted,
    /// Losses before the near point: retransmissions of data that the near point had not seen.
    pub lost_before: Counted,
    /// Data that was late at the near point without a retransmission.
    pub late_before: Counted,
    /// Retransmissions, at the far point, of data that had passed it and that no ACK had covered.
    pub lost_after: Counted,
    /// Retransmissions, at the far point, of data that an ACK had covered or a D-SACK reported.
    pub needless: Counted,
    /// The flow with the most packets, at A and at B, and its packets.
    pub main: Option<(FlowKey, FlowKey, u64)>,
    /// Flows.
    pub flows: u64,
}

/// What was seen at one point.
#[derive(Debug, Clone, Copy, Default)]
pub struct AtPoint {
    /// Packets with an IP header that could be read.
    pub packets: u64,
    /// Times of the first and the last one.
    pub time: Option<(i64, i64)>,
    /// Flows, each in one direction.
    pub flows: u64,
    /// Flows that the other point did not see.
    pub only_flows: u64,
    /// Packets of these.
    pub only: Counted,
    /// The largest of these.
    pub only_main: Option<(FlowKey, u64)>,
    /// Packets without counterpart, but at a time that the other capture may not cover.
    pub at_edges: u64,
    /// Packets that left before their time because too many waited.
    pub given_up: u64,
    /// Packets of flows beyond the limit of flows.
    pub beyond: u64,
}

/// The result of a comparison.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// By point.
    pub points: [AtPoint; 2],
    /// By direction.
    pub ways: [OneWay; 2],
    /// Clocks and delays.
    pub clock: Clock,
    /// Rewritten fields.
    pub rewrites: Rewrites,
    /// Flows with other addresses, ports or sequence numbers; at most [`MAPPINGS_MAX`].
    pub mappings: Vec<Mapping>,
    /// How many there are.
    pub mapped: u64,
    /// Flows whose time stamps were rewritten.
    pub stamps_rewritten: u64,
    /// The directions rest on the assumption that both clocks are nearly right, since nothing else tells them apart.
    pub is_way_assumed: bool,
    /// The difference of the times (B less A) of all matched packets, if they have only one.
    pub only_difference: Option<i64>,
    /// Most packets that waited at a time.
    pub waiting_max: u64,
}

impl Findings {
    /// The difference of the times (B less A) if both captures are of one point, or parts of one capture: all matched
    /// packets have the same one and no field is rewritten.
    ///
    /// No path gives the packets of both directions one difference, because both have a delay. In one direction alone, a
    /// constant delay does that too, so that only a difference of 0 counts there.
    #[must_use]
    pub fn one_point(&self) -> Option<i64> {
        let is_unchanged = self.rewrites.changes.is_empty()
            && self.rewrites.beyond == 0
            && self.mapped == 0
            && self.stamps_rewritten == 0;
        let is_both = self.ways.iter().all(|way| way.pairs > 0);
        self.only_difference
            .filter(|&difference| is_unchanged && (is_both || difference == 0))
    }

    /// Packets of that point that have no counterpart.
    #[must_use]
    pub fn alone(&self, point: Point) -> u64 {
        let found = &self.points[point as usize];
        let ways = Way::ALL.map(|way| {
            let own = &self.ways[way as usize];
            let is_near = (way == Way::AToB) == (point == Point::A);
            let (copies, duplicated) = (own.copies, own.duplicated.packets);
            match is_near {
                true => own.lost.packets + copies.saturating_sub(duplicated),
                false => own.extra.packets + duplicated.saturating_sub(copies),
            }
        });
        ways.iter().sum::<u64>()
            + found.only.packets
            + found.at_edges
            + found.given_up
            + found.beyond
    }
}
