//! UDP flows: packets and bytes between two ends, and when.
//!
//! RFC 768. A flow is all datagrams between two ends in both directions, however long it is silent. The payload is
//! analysed only if asked for.
//!
//! | file | what it has |
//! |---|---|
//! | `traffic` | what `why` keeps of a flow |
//! | `moves` | QUIC connections whose client has another address |
//! | `sequence` | sequence numbers that a payload shows: loss, reordering, jitter |
//! | `report` | the result for a flow in one sentence |
//! | `columns` | the results as a table |

pub mod columns;
mod moves;
pub mod report;
pub mod sequence;
pub mod traffic;

use crate::key::FlowKey;
use crate::quic::{Move, Quic};
use core::net::IpAddr;
use hashbrown::HashTable;
use moves::Homes;
use traffic::{Seen, TRAFFIC_MAX, Traffic};
use wire::packet::Packet;
use wire::udp::Udp;

/// Default limit of flows: about 200 MB.
pub const FLOWS_MAX: usize = 1 << 20;

/// Flows whose ClientHello may be incomplete at a time, each with up to 16 KiB of it. Further ones have no server name.
const READING_MAX: usize = 4096;

/// Packets and bytes that one end of a flow sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Datagrams.
    pub packets: u64,
    /// Bytes by their length fields, including 8 of UDP header each, as tcptrace counts them (data bytes sent).
    pub bytes: u64,
}

/// A UDP flow. End `a` sent its first datagram in the capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// Its number: 1 is the first flow of the input.
    pub number: u64,
    /// Number of its first packet in the whole input.
    pub first_packet: u64,
    /// Index of the file that its first packet is in.
    pub file: u32,
    /// Addresses and ports.
    pub key: FlowKey,
    /// End `a` is the lower end of the key.
    pub a_is_low: bool,
    /// Time of the first packet, in nanoseconds since 1970.
    pub first_time: i64,
    /// Time of the last packet.
    pub last_time: i64,
    /// The data sent by end `a`.
    pub a: Sent,
    /// The data sent by end `b`.
    pub b: Sent,
    /// The QUIC connection that its first datagram starts, if [`Flows::look_into`] was called.
    pub quic: Option<Box<Quic>>,
    /// What `why` needs, if [`Flows::explain`] was called.
    pub traffic: Option<Box<Traffic>>,
}

impl Flow {
    /// The flow of a first packet, with nothing counted.
    fn first(at: usize, file: u32, datagram: &Datagram) -> Flow {
        Flow {
            number: at as u64 + 1,
            first_packet: datagram.number,
            file,
            key: datagram.key,
            a_is_low: datagram.from_low,
            first_time: datagram.time,
            last_time: datagram.time,
            a: Sent::default(),
            b: Sent::default(),
            quic: None,
            traffic: None,
        }
    }

    /// Address and port of end `a`.
    #[must_use]
    pub fn a_end(&self) -> (IpAddr, u16) {
        self.key.end(self.a_is_low)
    }

    /// Address and port of end `b`.
    #[must_use]
    pub fn b_end(&self) -> (IpAddr, u16) {
        self.key.end(!self.a_is_low)
    }

    /// Time from its first packet to its last, in nanoseconds; 0 if the time stamps ran backwards.
    #[must_use]
    pub fn elapsed(&self) -> i64 {
        self.last_time.saturating_sub(self.first_time).max(0)
    }
}

/// One UDP packet, the input of [`Flows`].
#[derive(Debug, Clone, Copy)]
pub struct Datagram {
    /// Its number in the whole input, from 1.
    pub number: u64,
    /// When it was captured, in nanoseconds since 1970.
    pub time: i64,
    /// Addresses and ports.
    pub key: FlowKey,
    /// The lower end of the key sent it.
    pub from_low: bool,
    /// Bytes of header and payload.
    pub length: u32,
}

impl Datagram {
    /// The datagram of a decoded packet. `realm` keeps flows with the same addresses and ports in different tunnels
    /// apart.
    #[must_use]
    pub fn new(number: u64, time: i64, packet: &Packet<'_>, udp: &Udp<'_>, realm: u32) -> Datagram {
        let (key, from_low) = FlowKey::new(
            &packet.source,
            udp.source_port,
            &packet.destination,
            udp.destination_port,
            realm,
        );
        let length = match udp.length {
            // RFC 2675 4: the length of a jumbogram is that of its packet.
            0 => udp.payload_length.saturating_add(8),
            length => u32::from(length),
        };
        Datagram {
            number,
            time,
            key,
            from_low,
            length,
        }
    }
}

/// The flows of a capture, in the order of their first packets.
///
/// The number of flows is limited. Packets of flows beyond the limit are counted together in [`Flows::beyond`]; packets
/// of the flows before still count for these.
#[derive(Debug)]
pub struct Flows {
    seed: u64,
    limit: usize,
    table: HashTable<u32>,
    flows: Vec<Flow>,
    packets: u64,
    beyond: u64,
    file: u32,
    looks: bool,
    explains: bool,
    /// Flows that keep pieces of a ClientHello.
    reading: usize,
    /// Where clients of QUIC may have moved to.
    homes: Homes,
}

impl Flows {
    /// No flows yet, and at most `limit`. The seed of the hashes should be unpredictable.
    #[must_use]
    pub fn new(seed: u64, limit: usize) -> Flows {
        Flows {
            seed,
            limit: limit.min(u32::MAX as usize),
            table: HashTable::new(),
            flows: Vec::new(),
            packets: 0,
            beyond: 0,
            file: 0,
            looks: false,
            explains: false,
            reading: 0,
            homes: Homes::new(seed),
        }
    }

    /// The following packets are from this file, counted from 0.
    pub fn set_file(&mut self, file: u32) {
        self.file = file;
    }

    /// The flows, by number.
    #[must_use]
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// The flows, by number, without the table to find them.
    #[must_use]
    pub fn into_flows(self) -> Vec<Flow> {
        self.flows
    }

    /// Packets counted.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Packets of flows beyond the limit.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// From now on, [`Flows::packet_with`] looks for QUIC.
    pub fn look_into(&mut self) {
        self.looks = true;
    }

    /// From now on, [`Flows::packet_with`] looks for QUIC and for what [`report::Report`] needs.
    pub fn explain(&mut self) {
        (self.looks, self.explains) = (true, true);
    }

    /// Like [`Flows::packet`], with the payload, as far as it was captured, and the ECN codepoint.
    pub fn packet_with(
        &mut self,
        datagram: &Datagram,
        payload: &[u8],
        codepoint: u8,
    ) -> Option<u64> {
        let before = self.flows.len();
        let (at, from_a) = self.place(datagram, payload)?;
        if self.looks {
            self.look(at, at == before, from_a, (datagram, payload), codepoint);
        }
        if self.explains && (self.flows[at].traffic.is_some() || before < TRAFFIC_MAX) {
            let flow = &mut self.flows[at];
            let seen = Seen {
                from_a,
                ports: [flow.a_end().1, flow.b_end().1],
                payload,
                length: datagram.length.saturating_sub(8) as usize,
                time: datagram.time,
                packet: datagram.number,
                is_quic: flow.quic.is_some(),
            };
            flow.traffic.get_or_insert_default().packet(&seen);
        }
        Some(at as u64 + 1)
    }

    /// Looks for QUIC in a datagram of the flow with that index.
    fn look(
        &mut self,
        at: usize,
        is_first: bool,
        from_a: bool,
        (datagram, payload): (&Datagram, &[u8]),
        codepoint: u8,
    ) {
        let flow = &mut self.flows[at];
        if is_first {
            let length = datagram.length.saturating_sub(8) as usize;
            flow.quic = Quic::start(payload, length, datagram.time).map(Box::new);
            if let Some(quic) = &mut flow.quic {
                self.reading += 1;
                if self.reading > READING_MAX {
                    quic.stop_reading();
                    self.reading -= 1;
                }
            }
        }
        let Some(quic) = &mut flow.quic else {
            return;
        };
        let (reading, has_id) = (quic.is_reading(), !quic.server_id.is_empty());
        quic.datagram(from_a, payload, codepoint, datagram.time);
        self.reading -= usize::from(reading && !quic.is_reading());
        if self.explains && !has_id && !quic.server_id.is_empty() {
            let id = quic.server_connection_id();
            self.homes.learn(at, &flow.key, !flow.a_is_low, &id);
        }
    }

    /// Counts a packet. Returns its flow's number, or `None` if the flow is beyond the limit.
    pub fn packet(&mut self, datagram: &Datagram) -> Option<u64> {
        let (at, _) = self.place(datagram, &[])?;
        Some(at as u64 + 1)
    }

    /// Counts a packet. Returns its flow's index, and whether end `a` sent it.
    fn place(&mut self, datagram: &Datagram, payload: &[u8]) -> Option<(usize, bool)> {
        self.packets += 1;
        let (flows, seed) = (&mut self.flows, self.seed);
        let hash = datagram.key.hash(seed);
        let found = self
            .table
            .find(hash, |&at| flows[at as usize].key == datagram.key);
        let (at, from_a) = match found {
            Some(&at) => {
                let at = at as usize;
                (at, datagram.from_low == flows[at].a_is_low)
            }
            None => match self.homes.find(datagram, payload) {
                Some(found) => {
                    if found.is_first {
                        note_move(&mut flows[found.flow], datagram);
                    }
                    (found.flow, found.from_client)
                }
                None if flows.len() >= self.limit => {
                    self.beyond += 1;
                    return None;
                }
                None => {
                    let at = flows.len();
                    flows.push(Flow::first(at, self.file, datagram));
                    self.table
                        .insert_unique(hash, at as u32, |&at| flows[at as usize].key.hash(seed));
                    (at, true)
                }
            },
        };
        let flow = &mut flows[at];
        flow.last_time = datagram.time;
        let sent = if from_a { &mut flow.a } else { &mut flow.b };
        sent.packets += 1;
        sent.bytes += u64::from(datagram.length);
        Some((at, from_a))
    }
}

/// The client of a flow sends from another address or port, first with this datagram.
fn note_move(flow: &mut Flow, datagram: &Datagram) {
    let since = |time: i64| datagram.time.saturating_sub(time).max(0);
    let (address, port) = datagram.key.end(datagram.from_low);
    let moved = Move {
        address,
        port,
        packet: datagram.number,
        after: since(flow.first_time),
        silence: since(flow.last_time),
    };
    if let Some(quic) = &mut flow.quic {
        quic.note_move(moved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(number: u64, from: u8, to: u8, length: u32) -> Datagram {
        let address = |last| {
            let mut address = [0; 16];
            address[15] = last;
            address
        };
        let (key, from_low) = FlowKey::new(&address(from), 1000, &address(to), 1000, 0);
        Datagram {
            number,
            time: number as i64 * 1000,
            key,
            from_low,
            length,
        }
    }

    #[test]
    fn both_ways_are_one_flow_whose_a_end_began_it() {
        let mut flows = Flows::new(7, 10);
        flows.packet(&datagram(1, 9, 2, 100));
        flows.packet(&datagram(2, 2, 9, 30));
        flows.packet(&datagram(3, 9, 2, 10));
        let [flow] = flows.flows() else {
            panic!("{:?}", flows.flows())
        };
        assert_eq!(
            flow.a,
            Sent {
                packets: 2,
                bytes: 110
            }
        );
        assert_eq!(
            flow.b,
            Sent {
                packets: 1,
                bytes: 30
            }
        );
        assert_eq!(flow.a_end().0, "::9".parse::<IpAddr>().unwrap());
        assert_eq!(flow.elapsed(), 2000);
    }

    #[test]
    fn beyond_the_limit_packets_of_new_flows_are_only_counted() {
        let mut flows = Flows::new(7, 2);
        for (number, to) in [(1, 1), (2, 2), (3, 3), (4, 1), (5, 3)] {
            flows.packet(&datagram(number, 9, to, 8));
        }
        assert_eq!((flows.packets(), flows.beyond()), (5, 2));
        let packets: Vec<u64> = flows.flows().iter().map(|flow| flow.a.packets).collect();
        assert_eq!(packets, [2, 1]);
    }
}
