//! Checks shared by the targets that join and split packets.

use std::ops::Range;

use forward::split::{Opened, open};
use wire::checksum::{fold, pseudo_sum, sum};
use wire::ip::Header;
use wire::packet::Fragment;
use wire::{tcp, udp};

/// Offsets in a complete TCP or UDP packet.
pub(super) struct Places {
    addresses: Range<usize>,
    protocol: u8,
    pub(super) transport: usize,
    /// Offset of TCP's or UDP's checksum.
    pub(super) checksum: usize,
    pub(super) payload: usize,
}

/// `None` if there is no checksum that could be verified.
pub(super) fn places(packet: &[u8]) -> Option<Places> {
    let header = Header::read(packet).ok()?;
    if header.fragment != Fragment::Whole || header.total_length as usize != packet.len() {
        return None;
    }
    let transport = usize::from(header.header_length);
    let (checksum, length) = match header.protocol {
        tcp::PROTOCOL => (16, usize::from(packet.get(transport + 12)? >> 4) * 4),
        udp::PROTOCOL => (6, 8),
        _ => return None,
    };
    let payload = transport + length;
    let is_there = payload <= packet.len() && length > checksum;
    is_there.then_some(Places {
        addresses: if header.version == 4 { 12..20 } else { 8..40 },
        protocol: header.protocol,
        transport,
        checksum: transport + checksum,
        payload,
    })
}

impl Places {
    pub(super) fn is_tcp(&self) -> bool {
        self.protocol == tcp::PROTOCOL
    }

    /// The sum of the pseudo header.
    fn pseudo(&self, packet: &[u8]) -> u16 {
        let length = packet.len() - self.transport;
        pseudo_sum(&packet[self.addresses.clone()], self.protocol, length)
    }

    /// Whether the checksum is right; an absent UDP checksum is not.
    fn is_right(&self, packet: &[u8]) -> bool {
        let is_there = self.is_tcp() || packet[self.checksum..self.checksum + 2] != [0, 0];
        let total = u64::from(self.pseudo(packet)) + u64::from(sum(&packet[self.transport..]));
        is_there && fold(total) == 0xffff
    }
}

/// Whether the checksum of an IPv4 header is right; IPv6 has none.
pub(super) fn is_head_right(packet: &[u8]) -> bool {
    match packet.first().map(|octet| octet >> 4) {
        Some(4) => {
            let length = usize::from(packet[0] & 15) * 4;
            packet.get(..length).is_some_and(|head| sum(head) == 0xffff)
        }
        _ => true,
    }
}

/// Whether all checksums of a packet of TCP or UDP are right.
pub(super) fn is_right(packet: &[u8]) -> bool {
    is_head_right(packet) && places(packet).is_some_and(|places| places.is_right(packet))
}

/// Sets the lengths of IP and UDP to those of the packet.
pub(super) fn repair_lengths(packet: &mut [u8]) {
    let length = packet.len();
    match packet.first().map(|octet| octet >> 4) {
        Some(4) if length >= 20 => packet[2..4].copy_from_slice(&(length as u16).to_be_bytes()),
        Some(6) if length >= 40 => {
            packet[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
        }
        _ => return,
    }
    if let Some(places) = places(packet).filter(|places| !places.is_tcp()) {
        let length = (length - places.transport) as u16;
        packet[places.checksum - 2..places.checksum].copy_from_slice(&length.to_be_bytes());
    }
}

/// Corrects the header checksum.
pub(super) fn repair_head(packet: &mut [u8]) {
    let length = usize::from(packet.first().map_or(0, |octet| octet & 15)) * 4;
    if packet.first().is_some_and(|octet| octet >> 4 == 4) && (20..=packet.len()).contains(&length)
    {
        packet[10..12].fill(0);
        let sum = !sum(&packet[..length]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Corrects all checksums.
pub(super) fn repair_checksums(packet: &mut [u8]) {
    repair_head(packet);
    if let Some(places) = places(packet) {
        let at = places.checksum..places.checksum + 2;
        packet[at.clone()].fill(0);
        let total = u64::from(places.pseudo(packet)) + u64::from(sum(&packet[places.transport..]));
        let checksum = match !fold(total) {
            0 if !places.is_tcp() => 0xffff,
            checksum => checksum,
        };
        packet[at].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Leaves the checksum open, as a device does: its field holds the sum of the pseudo header.
pub(super) fn open_checksum(packet: &mut [u8]) -> Option<Places> {
    repair_head(packet);
    let places = places(packet)?;
    let pseudo = places.pseudo(packet).to_be_bytes();
    packet[places.checksum..places.checksum + 2].copy_from_slice(&pseudo);
    Some(places)
}

/// A packet without the fields that may change when it is joined with others and split again: which of ones'
/// complement's two zeros the checksum is, and the identification of a packet that must not be fragmented (RFC
/// 6864 4.1).
pub(super) fn normal(packet: &[u8]) -> Vec<u8> {
    let mut normal = packet.to_vec();
    if !is_right(packet) {
        return normal;
    }
    if let Some(places) = places(packet) {
        normal[places.checksum..places.checksum + 2].fill(0);
    }
    if packet[0] >> 4 == 4 {
        normal[10..12].fill(0);
        if packet[6] & 0x40 != 0 {
            normal[4..6].fill(0);
        }
    }
    normal
}

/// The packets that a device makes of what is written to it, and whether it had to split.
///
/// # Panics
/// If the device would refuse it.
pub(super) fn cut(octets: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let mut octets = octets.to_vec();
    match open(&mut octets).expect("what is joined can be cut") {
        Opened::One(packet) => (vec![packet.to_vec()], false),
        Opened::Several(segments) => {
            let piece = |n| {
                let mut piece = Vec::new();
                segments.append(n, &mut piece).expect("it is one of them");
                piece
            };
            ((0..segments.count()).map(piece).collect(), true)
        }
    }
}
