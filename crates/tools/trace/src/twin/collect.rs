//! Reads the flows of a capture: an observer of the analyser feeds each direction's packets to a tap.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use trace::{Connection, Error, Seen, Segment, Verdict, Watch};
use twin::tap::Trip;
use twin::{Flow, Tap};
use wire::flow::Keys;
use wire::tcp::Tcp;

/// Connections that are collected. Further ones are counted.
const CONNECTIONS_MAX: usize = 20_000;

/// Packets that are collected.
pub(super) const PACKETS_MAX: u64 = 4_000_000;

/// Time stamps of ACKs that wait for their echo.
const ECHOES_MAX: usize = 4096;

/// Bytes of TCP's time stamps, with padding.
const TIMESTAMPS: u32 = 12;

/// Used until a SYN or a full segment shows a better value (RFC 9293 3.7.1).
const MSS: u32 = 536;

/// Segments are not larger than this if no SYN shows their size.
const MSS_MAX: u32 = 1460;

/// The window where no SYN shows its scale.
const UNKNOWN_WINDOW: u64 = 1 << 40;

/// Round trips between the tap and the sender must vary by this much more than those to the receiver, and by at least
/// this time, if the queue is between tap and sender.
const MORE: f64 = 1.5;
const NEAR_MIN: u64 = 5_000_000;

/// One direction of a connection.
pub(super) struct Found {
    pub(super) connection: u64,
    pub(super) from: (IpAddr, u16),
    pub(super) to: (IpAddr, u16),
    pub(super) flow: Flow,
    pub(super) keys: Keys,
    /// The queue is between the sender and the point of capture.
    pub(super) is_behind: bool,
}

/// One direction while it is read.
struct Side {
    tap: Tap,
    zero: Option<u32>,
    keys: Keys,
    has_header: bool,
    has_mss: bool,
    /// Time stamps of the receiver's ACKs, and when each first passed.
    stamps: VecDeque<(u32, u64)>,
    /// Round trips between the tap and the sender.
    near: Vec<Trip>,
}

struct Pair {
    number: u64,
    a: Side,
    b: Side,
    ends: [(IpAddr, u16); 2],
    handshakes: [i64; 2],
}

/// Collects flows.
#[derive(Default)]
pub(super) struct Collector {
    pairs: Vec<Pair>,
    index: HashMap<u64, usize>,
    start: Option<i64>,
    pub(super) packets: u64,
    /// Packets of connections beyond the limits.
    pub(super) beyond: u64,
}

impl Side {
    fn new(mss: u32, keys: Keys) -> Side {
        Side {
            tap: Tap::new(mss, 40 + 14),
            zero: None,
            keys,
            has_header: false,
            has_mss: false,
            stamps: VecDeque::new(),
            near: Vec::new(),
        }
    }

    /// The offset of a sequence number; `None` if it is before the flow's first byte.
    fn offset(&self, sequence: u32) -> Option<u64> {
        let top = self.tap.top();
        let ahead = sequence.wrapping_sub(self.zero?).wrapping_sub(top as u32) as i32;
        top.checked_add_signed(ahead.into())
    }

    /// Data of this side's sender.
    fn data(&mut self, at: u64, segment: &Segment, echo: Option<u32>) {
        if !self.has_mss {
            // Offloads join segments, so that larger packets show no larger segment.
            self.tap.raise_mss(segment.payload.min(MSS_MAX));
        }
        let first = segment.sequence.wrapping_add(u32::from(segment.syn()));
        self.zero.get_or_insert(first);
        let Some(start) = self.offset(first) else {
            return;
        };
        if self.tap.in_flight() > 0
            && let Some(echo) = echo
        {
            self.echo(at, echo);
        }
        self.tap.data(at, start, segment.payload);
    }

    /// The sender returns a time stamp: it has received an ACK.
    fn echo(&mut self, at: u64, echo: u32) {
        while let Some(&(stamp, passed)) = self.stamps.front() {
            let behind = echo.wrapping_sub(stamp) as i32;
            if behind < 0 {
                break;
            }
            self.stamps.pop_front();
            if behind == 0 {
                self.tap.set_trip(at - passed);
                self.near.push(Trip {
                    at,
                    time: at - passed,
                    bytes: 0,
                });
            }
        }
    }

    /// An ACK of the other end.
    fn ack(&mut self, at: u64, segment: &Segment, window: u64, stamp: Option<u32>) {
        if let Some(stamp) = stamp {
            let is_new = |&(last, _): &(u32, u64)| stamp.wrapping_sub(last) as i32 > 0;
            if self.stamps.back().is_none_or(is_new) {
                self.stamps.push_back((stamp, at));
            }
            if self.stamps.len() > ECHOES_MAX {
                self.stamps.pop_front();
            }
        }
        let Some(to) = self.offset(segment.acknowledgment) else {
            return;
        };
        let mut blocks = [(0, 0); 4];
        let mut count = 0;
        for &(left, right) in segment.options.sack() {
            if let (Some(left), Some(right)) = (self.offset(left), self.offset(right)) {
                blocks[count] = (left, right);
                count += 1;
            }
        }
        self.tap.ack(at, to, window, &blocks[..count]);
    }

    /// The flow, with the round trips that pass the queue.
    fn finish(self, handshakes: (i64, i64)) -> (Flow, bool) {
        let mut flow = self.tap.finish();
        let (far, near) = handshakes;
        let time = |time: i64| u64::try_from(time).unwrap_or(0);
        if far > 0 {
            let at = time(far);
            let bytes = 0;
            flow.handshake = Some(Trip {
                at,
                time: at,
                bytes,
            });
        }
        flow.near = match near {
            0 => self.near.iter().map(|trip| trip.time).min().unwrap_or(0),
            near => time(near),
        };
        let varied = |trips: &[Trip]| {
            let mut times: Vec<u64> = trips.iter().map(|trip| trip.time).collect();
            times.sort_unstable();
            let last = times.len().saturating_sub(1);
            times.get(last * 3 / 4).copied().unwrap_or(0) - times.first().copied().unwrap_or(0)
        };
        let (of_far, of_near) = (varied(&flow.trips), varied(&self.near));
        let is_behind = of_near > NEAR_MIN && of_near as f64 > MORE * of_far as f64;
        if is_behind {
            let shortest = flow.trips.iter().map(|trip| trip.time).min().unwrap_or(0);
            flow.handshake = (near > 0).then_some(Trip {
                at: time(near),
                time: time(near),
                bytes: 0,
            });
            flow.near = if far > 0 {
                shortest.min(time(far))
            } else {
                shortest
            };
            flow.trips = self.near;
            // Only the sender's side shows its window.
            flow.reductions.clear();
            flow.initial = 0;
        } else if flow.near * 8 < handshakes.0.max(0) as u64 {
            flow.near = 0;
        }
        (flow, is_behind)
    }
}

impl Collector {
    /// The flows, `a` to `b` and back, of every connection.
    pub(super) fn finish(self) -> Vec<Found> {
        let mut found = Vec::new();
        for pair in self.pairs {
            let [a, b] = pair.ends;
            let [of_a, of_b] = pair.handshakes;
            for (side, from, to, times) in
                [(pair.a, a, b, (of_a, of_b)), (pair.b, b, a, (of_b, of_a))]
            {
                let keys = side.keys;
                let (flow, is_behind) = side.finish(times);
                if !flow.sent.is_empty() {
                    found.push(Found {
                        connection: pair.number,
                        from,
                        to,
                        flow,
                        keys,
                        is_behind,
                    });
                }
            }
        }
        found
    }

    fn pair(&mut self, connection: &Connection, segment: &Segment) -> Option<&mut Pair> {
        let key = connection.first_packet;
        if let Some(&at) = self.index.get(&key) {
            return self.pairs.get_mut(at);
        }
        if self.pairs.len() >= CONNECTIONS_MAX {
            return None;
        }
        let ends = [connection.a_end(), connection.b_end()];
        let keys = |from: (IpAddr, u16), to: (IpAddr, u16)| {
            let mut keys = Keys::default();
            keys.outer.source = octets(from.0);
            keys.outer.destination = octets(to.0);
            (keys.outer.source_port, keys.outer.destination_port) = (from.1, to.1);
            keys.outer.protocol = 6;
            keys.traffic_class = segment.traffic_class;
            keys
        };
        self.index.insert(key, self.pairs.len());
        self.pairs.push(Pair {
            number: 0,
            a: Side::new(MSS, keys(ends[0], ends[1])),
            b: Side::new(MSS, keys(ends[1], ends[0])),
            ends,
            handshakes: [0, 0],
        });
        self.pairs.last_mut()
    }

    /// Sets the numbers of the connections.
    pub(super) fn number(&mut self, first_packet: u64, number: u64) {
        if let Some(&at) = self.index.get(&first_packet) {
            self.pairs[at].number = number;
        }
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

impl Watch for Collector {
    type Error = Error;

    fn segment(
        &mut self,
        seen: &Seen<'_, '_>,
        tcp: &Tcp<'_>,
        connection: &Connection,
        segment: &Segment,
        verdict: &Verdict,
    ) {
        if self.packets >= PACKETS_MAX || verdict.hardware_duplicate {
            self.beyond += u64::from(!verdict.hardware_duplicate);
            return;
        }
        let start = *self.start.get_or_insert(segment.time);
        let at = u64::try_from(segment.time - start).unwrap_or(0);
        let Some(pair) = self.pair(connection, segment) else {
            self.beyond += 1;
            return;
        };
        pair.handshakes = [connection.a.rtt_handshake, connection.b.rtt_handshake];
        let (this, other) = match verdict.from_a {
            true => (&mut pair.a, &mut pair.b),
            false => (&mut pair.b, &mut pair.a),
        };
        let stamps = tcp.options.timestamps;
        if segment.syn() {
            this.zero = Some(segment.sequence.wrapping_add(1));
            let padding = if stamps.is_some() { TIMESTAMPS } else { 0 };
            // The peer's data may not be larger than this.
            let mss = segment.options.mss.map_or(MSS, u32::from);
            other.has_mss = true;
            other.tap.raise_mss(mss.saturating_sub(padding).max(64));
        } else if segment.payload > 0 {
            if !this.has_header {
                this.has_header = true;
                let header = seen.record.length.saturating_sub(segment.payload);
                this.tap.set_header(header.clamp(20, 400));
            }
            let echo = stamps.map(|(_, echo)| echo);
            this.data(at, segment, echo);
        }
        if segment.ack() && !segment.rst() {
            let window = match connection.syns() {
                2 => u64::from(verdict.window),
                _ => UNKNOWN_WINDOW,
            };
            other.ack(at, segment, window, stamps.map(|(value, _)| value));
        }
        self.packets += 1;
    }
}
