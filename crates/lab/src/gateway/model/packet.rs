//! The model's packets. They have real IPv4, TCP, UDP and ICMP headers, so that queues and
//! classifiers work as usual.

use std::net::SocketAddrV4;

use wire::link::LinkType;
use wire::packet::{Packet, decode as decode_frame};
use wire::tcp::{Flags, Tcp};

/// Bytes of an IPv4 header without options.
const IPV4: usize = 20;

/// IP protocol numbers.
pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// The contents of a packet before it is encoded.
#[derive(Debug, Clone, Default)]
pub(super) struct Segment {
    /// Offset of its first octet from the start of the connection; the SYN has offset 0.
    pub(super) sequence: u64,
    /// Next octet expected, where ACK is set.
    pub(super) acknowledgment: u64,
    pub(super) flags: u16,
    /// Bytes of payload.
    pub(super) length: u32,
    /// Blocks received beyond the acknowledgement (RFC 2018), at most three.
    pub(super) sack: Vec<(u64, u64)>,
    /// It arrived marked Congestion Experienced.
    pub(super) marked: bool,
}

fn ipv4(from: SocketAddrV4, to: SocketAddrV4, protocol: u8, class: u8, content: usize) -> Vec<u8> {
    let length = u16::try_from(IPV4 + content).expect("the model's packets fit a link's MTU");
    let mut packet = vec![0; usize::from(length)];
    packet[0] = 0x45;
    packet[1] = class;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[6] = 0x40;
    packet[8] = 64;
    packet[9] = protocol;
    packet[12..16].copy_from_slice(&from.ip().octets());
    packet[16..20].copy_from_slice(&to.ip().octets());
    packet
}

/// Bytes of a TCP header with its options.
fn header_of(segment: &Segment) -> usize {
    let sack = if segment.sack.is_empty() {
        0
    } else {
        4 + 8 * segment.sack.len()
    };
    20 + sack
}

/// Encodes a segment. `ecn` means that the sender supports ECN (RFC 3168), so the packet is ECT(0).
pub(super) fn tcp(from: SocketAddrV4, to: SocketAddrV4, segment: &Segment, ecn: bool) -> Vec<u8> {
    let header = header_of(segment);
    let class = if ecn && segment.length > 0 { 0b10 } else { 0 };
    let mut packet = ipv4(from, to, TCP, class, header + segment.length as usize);
    let out = &mut packet[IPV4..];
    out[0..2].copy_from_slice(&from.port().to_be_bytes());
    out[2..4].copy_from_slice(&to.port().to_be_bytes());
    out[4..8].copy_from_slice(&low(segment.sequence));
    out[8..12].copy_from_slice(&low(segment.acknowledgment));
    let words = u16::try_from(header / 4).expect("at most 60 octets");
    out[12..14].copy_from_slice(&(words << 12 | segment.flags).to_be_bytes());
    out[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
    if !segment.sack.is_empty() {
        let length = u8::try_from(2 + 8 * segment.sack.len()).expect("at most three blocks");
        out[20..24].copy_from_slice(&[1, 1, 5, length]);
        for (block, (left, right)) in out[24..header].chunks_exact_mut(8).zip(&segment.sack) {
            block[..4].copy_from_slice(&low(*left));
            block[4..].copy_from_slice(&low(*right));
        }
    }
    packet
}

/// Parses a segment. `sent` and `received` are the connection's present offsets, which the 32-bit
/// sequence numbers are relative to.
pub(super) fn read_tcp(packet: &[u8], sent: u64, received: u64) -> Option<(Segment, u16, u16)> {
    let packet = decode(packet)?;
    let tcp = Tcp::parse(&packet).ok()?;
    let segment = Segment {
        sequence: near(received, tcp.sequence),
        acknowledgment: near(sent, tcp.acknowledgment),
        flags: tcp.flags.0,
        length: tcp.payload_length,
        sack: tcp
            .options
            .sack()
            .iter()
            .map(|&(left, right)| (near(sent, left), near(sent, right)))
            .collect(),
        marked: packet.traffic_class & 0b11 == 0b11,
    };
    Some((segment, tcp.source_port, tcp.destination_port))
}

/// A datagram whose payload starts with `head`.
pub(super) fn udp(from: SocketAddrV4, to: SocketAddrV4, payload: usize, head: &[u8]) -> Vec<u8> {
    let mut packet = ipv4(from, to, UDP, 0, 8 + payload);
    let out = &mut packet[IPV4..];
    out[0..2].copy_from_slice(&from.port().to_be_bytes());
    out[2..4].copy_from_slice(&to.port().to_be_bytes());
    let length = u16::try_from(8 + payload).expect("fits an MTU");
    out[4..6].copy_from_slice(&length.to_be_bytes());
    out[8..8 + head.len()].copy_from_slice(head);
    packet
}

/// An echo request; its payload contains its full number.
pub(super) fn echo(from: SocketAddrV4, to: SocketAddrV4, class: u8, number: u64) -> Vec<u8> {
    let mut packet = ipv4(from, to, ICMP, class, 64);
    let out = &mut packet[IPV4..];
    out[0] = 8;
    out[16..24].copy_from_slice(&number.to_be_bytes());
    packet
}

/// The innermost IP packet.
pub(super) fn decode(octets: &[u8]) -> Option<Packet<'_>> {
    let mut packet = Packet::default();
    let length = u32::try_from(octets.len()).ok()?;
    decode_frame(LinkType::RAW, octets, length, &mut packet).ok()?;
    Some(packet)
}

/// Sets Congestion Experienced in an IPv4 packet.
pub(super) fn mark(packet: &mut [u8]) {
    packet[1] |= 0b11;
}

fn low(offset: u64) -> [u8; 4] {
    // The low 32 bits of an offset are its sequence number.
    #[allow(clippy::cast_possible_truncation)]
    (offset as u32).to_be_bytes()
}

/// The offset nearest to `reference` whose low 32 bits are `sequence`.
fn near(reference: u64, sequence: u32) -> u64 {
    #[allow(clippy::cast_possible_truncation)]
    let distance = sequence.wrapping_sub(reference as u32).cast_signed();
    reference.wrapping_add_signed(i64::from(distance))
}

pub(super) const SYN: u16 = Flags::SYN.0;
pub(super) const RST: u16 = Flags::RST.0;
pub(super) const ACK: u16 = Flags::ACK.0;
pub(super) const ECE: u16 = Flags::ECE.0;
pub(super) const CWR: u16 = Flags::CWR.0;
