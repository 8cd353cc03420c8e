//! A lane: the larger packet of one flow that is being joined.

use wire::checksum::{pseudo_sum, sum};
use wire::virtio::{Gso, Header};
use wire::{tcp, udp};

use super::packet::{self, CWR, Candidate, FIN, Flow, PSH};
use super::{FRONT, PACKET_MAX};

/// UDP datagrams that Linux accepts in one packet (`UDP_MAX_SEGMENTS` before 6.9).
const DATAGRAMS_MAX: usize = 64;
/// Bytes of a joined packet, limited by IPv4's length field.
const LENGTH_MAX: usize = 65_535;

/// How IPv4's identification changes from packet to packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Unknown,
    /// It is constant, which only packets with "don't fragment" may have.
    Still,
    Up,
}

/// A packet that others may be joined to.
#[derive(Debug)]
pub(super) struct Lane {
    flow: Flow,
    transport: usize,
    payload: usize,
    /// Octets of payload of the first packet.
    size: usize,
    packets: usize,
    next_sequence: u32,
    identification: u16,
    step: Step,
    is_verified: bool,
    is_ended: bool,
    /// Octets used of `buffer`.
    length: usize,
    /// The header for the device, and the packet. Empty before the first packet.
    buffer: Box<[u8]>,
}

impl Lane {
    pub(super) fn new() -> Self {
        Self {
            flow: Flow::default(),
            transport: 0,
            payload: 0,
            size: 0,
            packets: 0,
            next_sequence: 0,
            identification: 0,
            step: Step::Unknown,
            is_verified: false,
            is_ended: false,
            length: 0,
            buffer: Box::default(),
        }
    }

    pub(super) fn flow(&self) -> &Flow {
        &self.flow
    }

    pub(super) fn packets(&self) -> usize {
        self.packets
    }

    /// Whether no packet can follow.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Starts with a packet.
    #[inline]
    pub(super) fn begin(&mut self, packet: &[u8], candidate: &Candidate) {
        self.flow = candidate.flow;
        self.transport = candidate.transport;
        self.payload = candidate.payload;
        self.size = packet.len() - candidate.payload;
        self.packets = 1;
        self.identification = identification(packet);
        self.step = Step::Unknown;
        self.is_verified = false;
        self.is_ended = candidate.ends;
        self.next_sequence = sequence(packet, candidate).wrapping_add(self.size as u32);
        self.length = FRONT + packet.len();
        self.make_room();
        self.buffer[FRONT..self.length].copy_from_slice(packet);
    }

    /// Allocates the buffer once.
    #[inline]
    fn make_room(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = vec![0; FRONT + PACKET_MAX].into_boxed_slice();
        }
    }

    /// Whether the first packet's checksums are right. Those of the others were verified before.
    pub(super) fn is_right(&mut self) -> bool {
        let first = Candidate {
            flow: self.flow,
            transport: self.transport,
            payload: self.payload,
            ends: false,
        };
        self.is_verified =
            self.is_verified || packet::is_right(&self.buffer[FRONT..self.length], &first);
        self.is_verified
    }

    /// Whether a packet of the same flow continues this one, with the headers that a network card would write.
    #[inline]
    pub(super) fn is_continued_by(&self, packet: &[u8], candidate: &Candidate) -> bool {
        let added = packet.len() - candidate.payload;
        if candidate.payload != self.payload
            || added > self.size
            || self.length - FRONT + added > LENGTH_MAX
        {
            return false;
        }
        let first = &self.buffer[FRONT..FRONT + self.payload];
        let ip_is_same = match self.transport {
            20 => {
                // Version and TOS, flags and TTL.
                first[..2] == packet[..2]
                    && first[6..9] == packet[6..9]
                    && self.step_to(packet).is_some()
            }
            // Version, traffic class and flow label, hop limit.
            _ => first[..4] == packet[..4] && first[7] == packet[7],
        };
        let (ours, theirs) = (
            &first[self.transport..],
            &packet[self.transport..self.payload],
        );
        ip_is_same
            && match self.flow.gso {
                Gso::Udp => self.packets < DATAGRAMS_MAX,
                _ => {
                    let changed = ours[13] ^ theirs[13];
                    sequence(packet, candidate) == self.next_sequence
                        && ours[8..13] == theirs[8..13]
                        && changed & !(CWR | FIN | PSH) == 0
                        && theirs[13] & CWR == 0
                        // The window.
                        && ours[14..16] == theirs[14..16]
                        // The urgent pointer and options.
                        && ours[18..] == theirs[18..]
                }
            }
    }

    /// How the identification changes with this IPv4 packet; `None` if a network card would write another one.
    fn step_to(&self, packet: &[u8]) -> Option<Step> {
        let must_stay_whole = packet[6] & 0x40 != 0;
        let step = match identification(packet).wrapping_sub(self.identification) {
            0 if must_stay_whole => Step::Still,
            1 => Step::Up,
            _ => return None,
        };
        (self.step == Step::Unknown || self.step == step).then_some(step)
    }

    /// Appends a packet that continues this one.
    #[inline]
    pub(super) fn append(&mut self, packet: &[u8], candidate: &Candidate) {
        if !candidate.flow.gso.eq(&Gso::Udp) {
            // Flags that belong to the last byte.
            let flags = packet[self.transport + 13] & (FIN | PSH);
            self.buffer[FRONT + self.transport + 13] |= flags;
        }
        if self.transport == 20 {
            self.step = self.step_to(packet).unwrap_or(self.step);
            self.identification = identification(packet);
        }
        let payload = &packet[self.payload..];
        let end = self.length + payload.len();
        self.buffer[self.length..end].copy_from_slice(payload);
        self.length = end;
        self.packets += 1;
        self.next_sequence = self.next_sequence.wrapping_add(payload.len() as u32);
        let is_full = self.flow.gso == Gso::Udp && self.packets == DATAGRAMS_MAX;
        self.is_ended = candidate.ends || payload.len() < self.size || is_full;
    }

    /// The bytes to write: a header, and the packet with the lengths and the partial checksum of all.
    #[inline]
    pub(super) fn finish(&mut self) -> &[u8] {
        let (front, packet) = self.buffer[..self.length].split_at_mut(FRONT);
        if self.packets < 2 {
            front.fill(0);
            return &self.buffer[..self.length];
        }
        let length = packet.len();
        let (ip, transport) = packet.split_at_mut(self.transport);
        let addresses = if let Some(ip) = ip.first_chunk_mut::<40>() {
            ip[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
            &ip[8..40]
        } else {
            ip[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            ip[10..12].fill(0);
            let sum = !sum(ip);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            &ip[12..20]
        };
        let (protocol, place) = match self.flow.gso {
            Gso::Udp => (udp::PROTOCOL, 6),
            _ => (tcp::PROTOCOL, 16),
        };
        let sum = pseudo_sum(addresses, protocol, transport.len());
        if protocol == udp::PROTOCOL {
            let length = (transport.len() as u16).to_be_bytes();
            transport[4..6].copy_from_slice(&length);
        }
        transport[place..place + 2].copy_from_slice(&sum.to_be_bytes());
        let header = Header {
            gso: self.flow.gso,
            ecn: protocol == tcp::PROTOCOL && transport[13] & CWR != 0,
            header_length: self.payload as u16,
            segment_size: self.size as u16,
            ..Header::default()
        };
        let header = header.with_open_checksum(self.transport as u16, place as u16);
        front.copy_from_slice(&header.emit());
        &self.buffer[..self.length]
    }

    /// A packet unchanged, behind an empty header.
    #[inline]
    pub(super) fn alone(&mut self, packet: &[u8]) -> &[u8] {
        let end = FRONT + packet.len();
        self.make_room();
        self.buffer[FRONT..end].copy_from_slice(packet);
        &self.buffer[..end]
    }
}

/// IPv4's identification; meaningless for IPv6.
#[inline]
fn identification(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[4], packet[5]])
}

/// TCP's sequence number; meaningless for UDP.
#[inline]
fn sequence(packet: &[u8], candidate: &Candidate) -> u32 {
    let at = candidate.transport + 4;
    u32::from_be_bytes(std::array::from_fn(|n| packet[at + n]))
}
