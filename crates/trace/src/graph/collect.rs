//! Collects the packets that graphs show, within limits.

use super::bands::{Band, Divided};
use crate::connection::Connection;
use crate::segment::Segment;
use crate::text::letters;
use crate::verdict::{AckKind, Observer, Verdict};
use crate::xplot::places::{NOWHERE, Places};
use core::ops::RangeInclusive;

/// The connections to collect, and limits of memory.
#[derive(Debug, Clone)]
pub struct Options {
    /// Only these connections; empty for all.
    pub only: Vec<RangeInclusive<u64>>,
    /// Not these connections.
    pub ignore: Vec<RangeInclusive<u64>>,
    /// Limit of packets of one connection, [`Packet::SIZE`] bytes each. Later packets are only counted.
    pub packets_max: usize,
    /// Limit of packets of all connections together.
    pub packets_max_in_all: usize,
    /// Limit of connections at a time, about 500 bytes each in addition to their packets.
    pub connections_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            only: Vec::new(),
            ignore: Vec::new(),
            packets_max: 2 << 20,
            packets_max_in_all: 8 << 20,
            connections_max: 1 << 16,
        }
    }
}

/// Properties of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks(pub u16);

impl Marks {
    /// End `a` sent it.
    pub const FROM_A: Marks = Marks(1);
    /// It retransmits data.
    pub const RETRANSMITTED: Marks = Marks(1 << 1);
    /// It is out of order.
    pub const OUT_OF_ORDER: Marks = Marks(1 << 2);
    /// A zero-window probe.
    pub const PROBE: Marks = Marks(1 << 3);
    /// A keep-alive.
    pub const KEEP_ALIVE: Marks = Marks(1 << 4);
    /// A copy of another packet.
    pub const COPY: Marks = Marks(1 << 5);
    /// It advertises a zero window.
    pub const ZERO_WINDOW: Marks = Marks(1 << 6);
    /// It has SACK blocks.
    pub const SACK: Marks = Marks(1 << 7);
    /// The third duplicate ACK.
    pub const TRIPLE: Marks = Marks(1 << 8);
    /// A duplicate ACK.
    pub const DUPLICATE: Marks = Marks(1 << 9);

    /// All of `other` are set.
    #[must_use]
    pub const fn has(self, other: Marks) -> bool {
        self.0 & other.0 == other.0
    }

    fn set(&mut self, other: Marks, set: bool) {
        if set {
            self.0 |= other.0;
        }
    }
}

/// A packet.
#[derive(Debug, Clone, Copy)]
pub struct Packet {
    /// Nanoseconds since the connection's first packet; negative if the time stamps ran backwards.
    pub time: i64,
    /// Sequence number relative to the direction's first, without wrapping.
    pub sequence: i64,
    /// Acknowledgement number, relative to the other direction's first sequence number; valid only with ACK.
    pub acknowledgment: i64,
    /// Its number in the capture, counted from the connection's first packet.
    pub number: u32,
    /// Octets of payload.
    pub length: u32,
    /// Window in bytes; valid only with ACK or SYN.
    pub window: u32,
    /// Bytes in flight after it; [`u32::MAX`] if there is no sample.
    pub in_flight: u32,
    /// The round trip that its ACK measured, in milliseconds; NaN if it measured none.
    pub rtt: f32,
    /// TCP flags.
    pub flags: u16,
    /// Its properties.
    pub marks: Marks,
}

impl Packet {
    /// Bytes of memory for one.
    pub const SIZE: usize = core::mem::size_of::<Packet>();

    /// Octets of sequence space.
    #[must_use]
    pub const fn space(&self) -> i64 {
        self.length as i64 + (self.flags & 1) as i64 + (self.flags >> 1 & 1) as i64
    }

    /// It acknowledges: ACK is set, RST is not.
    #[must_use]
    pub const fn ack(&self) -> bool {
        self.flags & 0x14 == 0x10
    }

    /// End `a` sent it.
    #[must_use]
    pub const fn from_a(&self) -> bool {
        self.marks.has(Marks::FROM_A)
    }
}

/// A SACK block, in sequence numbers of the direction that it acknowledges.
#[derive(Debug, Clone, Copy)]
pub struct Sack {
    /// Index of its packet among the collected packets.
    pub packet: u32,
    /// First octet.
    pub left: i64,
    /// After its last octet.
    pub right: i64,
}

/// The collected packets of a connection.
#[derive(Debug, Clone, Default)]
pub struct ConnectionGraph {
    /// Its number.
    pub number: u64,
    /// The letters of its ends.
    pub letters: (String, String),
    /// Address and port of end `a`, or another name to show for it.
    pub a: String,
    /// The same for end `b`.
    pub b: String,
    /// Time of its first packet, in nanoseconds since 1970.
    pub first_time: i64,
    /// Number of its first packet.
    pub first_packet: u64,
    /// Its packets.
    pub packets: Vec<Packet>,
    /// SACK blocks, in the order of packets.
    pub sacks: Vec<Sack>,
    /// What both senders waited for, if the analysis says so. The band ends with the last span that was decided.
    pub bands: Vec<Band>,
    /// Packets beyond the limits.
    pub dropped: u64,
    pub(super) divided: Divided,
    /// The first and the latest sequence number of each direction.
    pub(super) bases: [Base; 2],
}

/// What sequence numbers of a direction count from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Base {
    first: Option<u32>,
    latest: i64,
}

impl Base {
    /// A sequence number, counted from the first.
    fn offset(&self, sequence: u32) -> i64 {
        let first = self.first.unwrap_or(sequence);
        let delta = sequence.wrapping_sub(first.wrapping_add(self.latest as u32)) as i32;
        self.latest.saturating_add(i64::from(delta))
    }

    /// The same, which is the latest then.
    fn advance(&mut self, sequence: u32) -> i64 {
        let offset = self.offset(sequence);
        self.first.get_or_insert(sequence);
        self.latest = self.latest.max(offset);
        offset
    }
}

impl ConnectionGraph {
    fn new(connection: &Connection, number: u64, pair: u64) -> ConnectionGraph {
        let end = |(address, port): (core::net::IpAddr, u16)| match address {
            core::net::IpAddr::V4(address) => format!("{address}:{port}"),
            core::net::IpAddr::V6(address) => format!("[{address}]:{port}"),
        };
        ConnectionGraph {
            number,
            letters: letters(pair),
            a: end(connection.a_end()),
            b: end(connection.b_end()),
            first_time: connection.first_time,
            first_packet: connection.first_packet,
            ..ConnectionGraph::default()
        }
    }

    /// Takes in a packet.
    fn push(&mut self, segment: &Segment, verdict: &Verdict) {
        let (own, other) = if verdict.from_a { (0, 1) } else { (1, 0) };
        let sequence = self.bases[own].advance(segment.sequence);
        let acknowledgment = if segment.ack() && !segment.rst() {
            self.bases[other].advance(segment.acknowledgment)
        } else {
            0
        };
        let mut marks = Marks::default();
        let zero = segment.ack() && !segment.rst() && verdict.window == 0;
        for (mark, set) in [
            (Marks::FROM_A, verdict.from_a),
            (Marks::RETRANSMITTED, verdict.retransmitted > 0),
            (Marks::OUT_OF_ORDER, verdict.out_of_order),
            (Marks::PROBE, verdict.probe),
            (Marks::KEEP_ALIVE, verdict.keep_alive),
            (Marks::COPY, verdict.hardware_duplicate),
            (Marks::ZERO_WINDOW, zero),
            (Marks::SACK, !segment.options.sack().is_empty()),
            (Marks::TRIPLE, verdict.ack == AckKind::Triple),
            (
                Marks::DUPLICATE,
                segment.payload == 0
                    && verdict.ack == AckKind::Cumulative
                    && verdict.ack_before == Some(segment.acknowledgment),
            ),
        ] {
            marks.set(mark, set);
        }
        for &(left, right) in segment.options.sack() {
            self.sacks.push(Sack {
                packet: self.packets.len() as u32,
                left: self.bases[other].offset(left),
                right: self.bases[other].offset(right),
            });
        }
        let in_flight = verdict.in_flight.map_or(u32::MAX, |octets| {
            u32::try_from(octets).unwrap_or(u32::MAX - 1)
        });
        let rtt = match verdict.sample {
            Some(sample) if sample.time > 0 => (sample.time as f64 / 1e6) as f32,
            _ => f32::NAN,
        };
        self.packets.push(Packet {
            time: segment.time.saturating_sub(self.first_time),
            sequence,
            acknowledgment,
            number: u32::try_from(segment.number.saturating_sub(self.first_packet))
                .unwrap_or(u32::MAX),
            length: segment.payload,
            window: verdict.window,
            in_flight,
            rtt,
            flags: segment.flags,
            marks,
        });
    }
}

/// Collects connections.
#[derive(Debug)]
pub struct Collector {
    options: Options,
    graphs: Vec<Option<Box<ConnectionGraph>>>,
    free: Vec<u32>,
    places: Places,
    connections: u64,
    pairs: u64,
    held: usize,
    left_out: u64,
}

impl Collector {
    /// Has collected nothing.
    #[must_use]
    pub fn new(options: Options) -> Collector {
        Collector {
            options,
            graphs: Vec::new(),
            free: Vec::new(),
            places: Places::new(),
            connections: 0,
            pairs: 0,
            held: 0,
            left_out: 0,
        }
    }

    /// A UDP flow that is reported too takes the next pair of letters.
    pub fn skip_letters(&mut self) {
        self.pairs += 1;
    }

    /// Connections that were not collected because there were too many.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Removes and returns the finished connection whose first packet has this number.
    pub fn take(&mut self, first_packet: u64) -> Option<ConnectionGraph> {
        let place = self.places.remove(first_packet)?;
        let graph = self.graphs.get_mut(place as usize)?.take()?;
        self.free.push(place);
        self.held -= graph.packets.len();
        Some(*graph)
    }

    /// The remaining connections, in their order.
    #[must_use]
    pub fn finish(self) -> Vec<ConnectionGraph> {
        let mut graphs: Vec<_> = self
            .graphs
            .into_iter()
            .flatten()
            .map(|graph| *graph)
            .collect();
        graphs.sort_by_key(|graph| graph.first_packet);
        graphs
    }

    #[inline(never)]
    fn begin(&mut self, connection: &Connection) -> u32 {
        self.connections += 1;
        self.pairs += 1;
        let (number, pair) = match connection.number {
            0 => (self.connections, self.pairs),
            number => (number, number),
        };
        let wanted = crate::xplot::wants(&self.options.only, &self.options.ignore, number);
        let full = self.graphs.len() - self.free.len() >= self.options.connections_max;
        self.left_out += u64::from(wanted && full);
        let place = if wanted && !full {
            let graph = Box::new(ConnectionGraph::new(connection, number, pair));
            match self.free.pop() {
                Some(place) => {
                    self.graphs[place as usize] = Some(graph);
                    place
                }
                None => {
                    self.graphs.push(Some(graph));
                    (self.graphs.len() - 1) as u32
                }
            }
        } else {
            NOWHERE
        };
        self.places.insert(connection.first_packet, place);
        place
    }
}

impl Observer for Collector {
    fn observe(&mut self, connection: &Connection, segment: &Segment, verdict: &Verdict) {
        let place = match self.places.get(connection.first_packet) {
            Some(place) => place,
            None => self.begin(connection),
        };
        let Some(Some(graph)) = self.graphs.get_mut(place as usize) else {
            return;
        };
        if graph.packets.len() >= self.options.packets_max
            || self.held >= self.options.packets_max_in_all
        {
            graph.dropped += 1;
            return;
        }
        self.held += 1;
        graph.push(segment, verdict);
        if let Some(why) = &connection.why {
            let ConnectionGraph {
                divided,
                bands,
                first_time,
                ..
            } = &mut **graph;
            divided.append(why, *first_time, bands);
        }
    }
}
