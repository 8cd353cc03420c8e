//! Whether a packet can be joined, and its flow.

use wire::checksum::{fold, pseudo_sum, sum};
use wire::virtio::Gso;
use wire::{tcp, udp};

pub(super) const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
pub(super) const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const URG: u8 = 0x20;
pub(super) const CWR: u8 = 0x80;

/// Source and destination address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Addresses {
    source: u128,
    destination: u128,
}

impl Addresses {
    /// `None` if the packet is shorter than the smallest header of its version.
    #[inline]
    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => packet.first_chunk().map(Self::v4),
            6 => packet.first_chunk().map(Self::v6),
            _ => None,
        }
    }

    /// A hash whose upper bits are well mixed.
    #[inline]
    pub(super) fn hash(self) -> u64 {
        let fold = |address: u128| address as u64 ^ (address >> 64) as u64;
        let both = fold(self.source).rotate_left(29) ^ fold(self.destination);
        // The golden ratio spreads neighbouring addresses.
        both.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[inline]
    fn v4(head: &[u8; 20]) -> Self {
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|n| head[at + n]));
        Self {
            source: word(12).into(),
            destination: word(16).into(),
        }
    }

    #[inline]
    fn v6(head: &[u8; 40]) -> Self {
        let word = |at: usize| u128::from_ne_bytes(std::array::from_fn(|n| head[at + n]));
        Self {
            source: word(8),
            destination: word(24),
        }
    }
}

/// The fields that packets of one flow share, compared first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Flow {
    pub(super) addresses: Addresses,
    /// Source and destination port, as in the packet.
    ports: u32,
    pub(super) gso: Gso,
    is_v6: bool,
}

/// A packet that may be joined with others of its flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) flow: Flow,
    /// Start and end of the TCP or UDP header.
    pub(super) transport: usize,
    pub(super) payload: usize,
    /// No packet can follow it in a joined packet; it may be the last one.
    pub(super) ends: bool,
}

impl Candidate {
    /// `None` if it must pass unchanged.
    #[inline]
    pub(super) fn read(packet: &[u8], with_udp: bool) -> Option<Self> {
        let (addresses, protocol, transport, is_v6) = read_ip(packet)?;
        let head = packet.get(transport..)?;
        let (gso, length, ends) = match protocol {
            tcp::PROTOCOL => {
                let head = head.first_chunk::<20>()?;
                let flags = head[13];
                // Other flags are rare, and have a meaning of their own.
                if flags & (SYN | RST | URG | ACK) != ACK {
                    return None;
                }
                let gso = if is_v6 { Gso::TcpV6 } else { Gso::TcpV4 };
                let length = usize::from(head[12] >> 4) * 4;
                (gso, length, flags & (FIN | PSH) != 0)
            }
            udp::PROTOCOL if with_udp => {
                let octets = head.first_chunk::<8>()?;
                let length = usize::from(u16::from_be_bytes([octets[4], octets[5]]));
                if length != head.len() || octets[6..] == [0, 0] {
                    return None;
                }
                (Gso::Udp, 8, false)
            }
            _ => return None,
        };
        // An acknowledgement without payload passes too, because senders count acknowledgements.
        if length < 8 || (protocol == tcp::PROTOCOL && length < 20) || head.len() <= length {
            return None;
        }
        Some(Self {
            flow: Flow {
                addresses,
                ports: u32::from_ne_bytes(*head.first_chunk()?),
                gso,
                is_v6,
            },
            transport,
            payload: transport + length,
            ends,
        })
    }
}

/// Addresses, protocol, length of the header, version; of a whole packet with a plain header.
#[inline]
fn read_ip(packet: &[u8]) -> Option<(Addresses, u8, usize, bool)> {
    match packet.first()? {
        0x45 => {
            let head = packet.first_chunk::<20>()?;
            let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
            // Fragments, and the bit that must be 0.
            let is_odd = u16::from_be_bytes([head[6], head[7]]) & 0xbfff != 0;
            let is_whole = length == packet.len() && !is_odd;
            is_whole.then(|| (Addresses::v4(head), head[9], 20, false))
        }
        0x60..=0x6f => {
            let head = packet.first_chunk::<40>()?;
            let length = usize::from(u16::from_be_bytes([head[4], head[5]]));
            let is_whole = 40 + length == packet.len();
            is_whole.then(|| (Addresses::v6(head), head[6], 40, true))
        }
        _ => None,
    }
}

/// Whether a candidate's checksums are right: IPv4's header, and TCP's or UDP's.
pub(super) fn is_right(packet: &[u8], candidate: &Candidate) -> bool {
    let (addresses, protocol) = if candidate.flow.is_v6 {
        (&packet[8..40], packet[6])
    } else {
        (&packet[12..20], packet[9])
    };
    let transport = &packet[candidate.transport..];
    let total = u64::from(pseudo_sum(addresses, protocol, transport.len()));
    let head_is_right = candidate.flow.is_v6 || sum(&packet[..20]) == 0xffff;
    head_is_right && fold(total + u64::from(sum(transport))) == 0xffff
}
