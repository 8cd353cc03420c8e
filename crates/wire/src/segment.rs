//! Splits a frame that a local stack left for the network card to segment (generic segmentation offload) into
//! frames that fit the link, and completes a checksum left open: TCP (RFC 9293 3.1), UDP (RFC 768), over IPv4
//! (RFC 791) and IPv6 (RFC 8200), also for IP in IP (RFC 2003, 2473, 4213). Start reading at [`Segments`].
//!
//! Left out: GRE and UDP tunnels, fragments, and jumbograms (RFC 2675).

use crate::checksum;
use crate::{tcp, udp};

/// Octets of an Ethernet header without tags.
const ETHERNET: usize = 14;
/// How many VLAN tags and IP headers are skipped.
const TAGS_MAX: usize = 2;
const IP_MAX: usize = 3;

const CWR: u8 = 0x80;
const PSH: u8 = 0x08;
const FIN: u8 = 0x01;

/// What kind of frame is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One TCP segment into several.
    Tcp,
    /// One UDP datagram into several.
    Udp,
}

/// Why a frame cannot be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SegmentError {
    /// It ends within a header.
    #[error("truncated header")]
    Truncated,
    /// Its payload is not of the requested kind, or cannot be reached.
    #[error("no TCP or UDP packet that can be cut")]
    Unsupported,
    /// The segment size is zero.
    #[error("segment size of 0")]
    Size,
}

/// Offset of the IP packet in an Ethernet frame, after up to two VLAN tags. None if there is none.
#[must_use]
pub fn ip_offset(frame: &[u8]) -> Option<usize> {
    let mut at = ETHERNET;
    for _ in 0..=TAGS_MAX {
        match frame.get(at - 2..at)? {
            [0x08, 0x00] | [0x86, 0xdd] => return (at < frame.len()).then_some(at),
            [0x81, 0x00] | [0x88, 0xa8] => at += 4,
            _ => return None,
        }
    }
    None
}

/// The IP packet in an Ethernet frame, after up to two VLAN tags, without the frame's padding. None if there is
/// none, or if it is truncated within its header.
#[must_use]
pub fn ip_packet(frame: &[u8]) -> Option<&[u8]> {
    let packet = &frame[ip_offset(frame)?..];
    let length = match packet[0] >> 4 {
        4 if packet.len() >= 20 => usize::from(u16::from_be_bytes([packet[2], packet[3]])),
        6 if packet.len() >= 40 => 40 + usize::from(u16::from_be_bytes([packet[4], packet[5]])),
        _ => return None,
    };
    // A packet whose length field exceeds the frame or is below a header's size is used as it is.
    let padded = (20..packet.len()).contains(&length);
    Some(if padded { &packet[..length] } else { packet })
}

/// Completes a checksum: sums the octets from `start` on, including the pseudo header's sum already in the
/// checksum field, and stores the result `offset` octets after `start`. Returns whether the frame has such a
/// field.
pub fn complete_checksum(frame: &mut [u8], start: usize, offset: usize) -> bool {
    let Some(octets) = frame.get_mut(start..) else {
        return false;
    };
    let sum = !checksum::sum(octets);
    let Some(place) = offset
        .checked_add(2)
        .and_then(|end| octets.get_mut(offset..end))
    else {
        return false;
    };
    // A UDP checksum field of 0 means no checksum (RFC 768), so a sum of 0 is sent as 0xffff, its equal in
    // ones' complement.
    let sum = if sum == 0 { 0xffff } else { sum };
    place.copy_from_slice(&sum.to_be_bytes());
    true
}

/// An IP header of a frame.
#[derive(Debug, Clone, Copy, Default)]
struct Ip {
    at: usize,
    length: usize,
    is_v6: bool,
}

/// A frame and how it is split.
#[derive(Debug, Clone)]
pub struct Segments<'a> {
    frame: &'a [u8],
    kind: Kind,
    size: usize,
    ips: [Ip; IP_MAX],
    levels: usize,
    transport: usize,
    payload: usize,
    /// A UDP datagram without checksum; its segments have none either.
    unchecked: bool,
}

impl<'a> Segments<'a> {
    /// Splits an Ethernet frame into segments with up to `size` octets of payload each.
    ///
    /// # Errors
    /// The frame is truncated, or not of this kind.
    pub fn new(frame: &'a [u8], kind: Kind, size: u16) -> Result<Self, SegmentError> {
        if size == 0 {
            return Err(SegmentError::Size);
        }
        let mut segments = Self {
            frame,
            kind,
            size: size.into(),
            ips: [Ip::default(); IP_MAX],
            levels: 0,
            transport: 0,
            payload: 0,
            unchecked: false,
        };
        let wanted = match kind {
            Kind::Tcp => tcp::PROTOCOL,
            Kind::Udp => udp::PROTOCOL,
        };
        let mut at = ip_offset(frame).ok_or(SegmentError::Unsupported)?;
        loop {
            let (ip, protocol) = read_ip(frame, at)?;
            *segments
                .ips
                .get_mut(segments.levels)
                .ok_or(SegmentError::Unsupported)? = ip;
            segments.levels += 1;
            at += ip.length;
            match protocol {
                4 | 41 => {}
                _ if protocol == wanted => break,
                _ => return Err(SegmentError::Unsupported),
            }
        }
        segments.transport = at;
        let head = frame.get(at..).ok_or(SegmentError::Truncated)?;
        let length = match kind {
            Kind::Tcp => usize::from(*head.get(12).ok_or(SegmentError::Truncated)? >> 4) * 4,
            Kind::Udp => 8,
        };
        if length < 8 || (kind == Kind::Tcp && length < 20) {
            return Err(SegmentError::Unsupported);
        }
        if head.len() < length {
            return Err(SegmentError::Truncated);
        }
        segments.payload = at + length;
        segments.unchecked = kind == Kind::Udp && head[6..8] == [0, 0];
        Ok(segments)
    }

    /// The number of segments; at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        (self.frame.len() - self.payload).div_ceil(self.size).max(1)
    }

    /// Octets of the longest segment, with all headers.
    #[must_use]
    pub fn length_max(&self) -> usize {
        self.frame.len().min(self.payload + self.size)
    }

    /// Octets of segment `n`, with all headers.
    #[must_use]
    pub fn length(&self, n: usize) -> usize {
        let start = n
            .saturating_mul(self.size)
            .min(self.frame.len() - self.payload);
        self.payload + (self.frame.len() - self.payload - start).min(self.size)
    }

    /// Whether several segments can be written as one frame, which the kernel or the card segments: there is one IP
    /// header, no VLAN tag, and a checksum.
    #[must_use]
    pub fn has_pieces(&self) -> bool {
        self.levels == 1 && self.ips[0].at == ETHERNET && !self.unchecked
    }

    /// Writes `count` segments from `first` on as one frame that is to be segmented later, to the start of `out`. Its
    /// checksum holds the pseudo header's sum. `None` if there are no such segments, they do not fit, or this frame
    /// has no pieces.
    pub fn write_piece(&self, first: usize, count: usize, out: &mut [u8]) -> Option<Piece> {
        let start = self.payload + first.checked_mul(self.size)?;
        let end = start + count.checked_mul(self.size)?;
        let is_last = first.checked_add(count)? >= self.count();
        let end = self.frame.len().min(end);
        if start >= end || !self.has_pieces() {
            return None;
        }
        let length = self.payload + (end - start);
        let out = out.get_mut(..length)?;
        out[..self.payload].copy_from_slice(&self.frame[..self.payload]);
        out[self.payload..].copy_from_slice(&self.frame[start..end]);
        let ip = self.ips[0];
        write_ip(&mut out[ip.at..], &ip, first as u16);
        let place = self.write_transport(out, first, is_last);
        let (head, transport) = out.split_at_mut(self.transport);
        let sum = pseudo_sum(&head[ip.at..], &ip, self.kind, transport.len());
        transport[place..place + 2].copy_from_slice(&sum.to_be_bytes());
        Some(Piece {
            length,
            headers: self.payload,
            is_v6: ip.is_v6,
            has_cwr: self.kind == Kind::Tcp && transport[13] & CWR != 0,
            transport: self.transport,
            checksum: place,
        })
    }

    /// Writes the fields of the TCP or UDP header that depend on the place of a segment, except the checksum; returns
    /// the checksum's offset.
    fn write_transport(&self, out: &mut [u8], n: usize, is_last: bool) -> usize {
        let transport = &mut out[self.transport..];
        match self.kind {
            Kind::Tcp => {
                write_tcp(transport, (n * self.size) as u32, n == 0, is_last);
                16
            }
            Kind::Udp => {
                let length = transport.len() as u16;
                transport[4..6].copy_from_slice(&length.to_be_bytes());
                6
            }
        }
    }

    /// Writes segment `n`, a frame with all checksums filled in, to the start of `out`. Returns its length;
    /// `None` if there is no such segment, or it does not fit.
    pub fn write(&self, n: usize, out: &mut [u8]) -> Option<usize> {
        let count = self.count();
        let start = self.payload + n.checked_mul(self.size)?;
        let end = self.frame.len().min(start + self.size);
        if n >= count {
            return None;
        }
        let length = self.payload + (end - start);
        let out = out.get_mut(..length)?;
        out[..self.payload].copy_from_slice(&self.frame[..self.payload]);
        out[self.payload..].copy_from_slice(&self.frame[start..end]);
        for ip in &self.ips[..self.levels] {
            write_ip(&mut out[ip.at..], ip, n as u16);
        }
        let ip = self.ips[self.levels - 1];
        let place = self.write_transport(out, n, n + 1 == count);
        let (head, transport) = out.split_at_mut(self.transport);
        if !self.unchecked {
            let sum = pseudo_sum(&head[ip.at..], &ip, self.kind, transport.len());
            transport[place..place + 2].copy_from_slice(&sum.to_be_bytes());
            complete_checksum(transport, 0, place);
        }
        Some(length)
    }
}

/// A frame of several segments: what is needed to segment it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Octets of the frame.
    pub length: usize,
    /// Octets of all its headers.
    pub headers: usize,
    /// Whether its IP header is IPv6's.
    pub is_v6: bool,
    /// Whether its first segment has TCP's flag CWR, and the others have not.
    pub has_cwr: bool,
    /// Offset of the TCP or UDP header in the frame.
    pub transport: usize,
    /// Offset of the checksum in that header.
    pub checksum: usize,
}

fn read_ip(frame: &[u8], at: usize) -> Result<(Ip, u8), SegmentError> {
    let head = frame.get(at..).ok_or(SegmentError::Truncated)?;
    match head.first().ok_or(SegmentError::Truncated)? >> 4 {
        4 => {
            let length = usize::from(head[0] & 0x0f) * 4;
            if head.len() < length.max(20) {
                return Err(SegmentError::Truncated);
            }
            let is_fragment = u16::from_be_bytes([head[6], head[7]]) & 0x3fff != 0;
            if length < 20 || is_fragment {
                return Err(SegmentError::Unsupported);
            }
            let is_v6 = false;
            Ok((Ip { at, length, is_v6 }, head[9]))
        }
        6 => {
            let mut next = *head.get(6).ok_or(SegmentError::Truncated)?;
            let mut length = 40;
            // Hop-by-hop options, routing, destination options.
            while matches!(next, 0 | 43 | 60) {
                let extension = head
                    .get(length..length + 2)
                    .ok_or(SegmentError::Truncated)?;
                next = extension[0];
                length += usize::from(extension[1]) * 8 + 8;
            }
            if head.len() < length {
                return Err(SegmentError::Truncated);
            }
            let is_v6 = true;
            Ok((Ip { at, length, is_v6 }, next))
        }
        _ => Err(SegmentError::Unsupported),
    }
}

/// Writes the fields that differ in the IP header of segment `n`: lengths, IPv4's identification and checksum.
fn write_ip(packet: &mut [u8], ip: &Ip, n: u16) {
    if ip.is_v6 {
        let length = (packet.len() - 40) as u16;
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        return;
    }
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    let identification = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(n);
    packet[4..6].copy_from_slice(&identification.to_be_bytes());
    packet[10..12].fill(0);
    let sum = !checksum::sum(&packet[..ip.length]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Writes the fields that differ in the TCP header: the sequence number, and the flags that belong to the first
/// octet (CWR, RFC 3168 6.1.2) or to the last one (FIN, PSH).
fn write_tcp(segment: &mut [u8], offset: u32, is_first: bool, is_last: bool) {
    let sequence = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
    segment[4..8].copy_from_slice(&sequence.wrapping_add(offset).to_be_bytes());
    if !is_first {
        segment[13] &= !CWR;
    }
    if !is_last {
        segment[13] &= !(FIN | PSH);
    }
}

/// The sum of the pseudo header: addresses, protocol and length.
fn pseudo_sum(packet: &[u8], ip: &Ip, kind: Kind, length: usize) -> u16 {
    let addresses = if ip.is_v6 {
        &packet[8..40]
    } else {
        &packet[12..20]
    };
    let protocol = match kind {
        Kind::Tcp => tcp::PROTOCOL,
        Kind::Udp => udp::PROTOCOL,
    };
    let mut total = u32::from(checksum::sum(addresses)) + u32::from(protocol) + length as u32;
    while total > 0xffff {
        total = (total >> 16) + (total & 0xffff);
    }
    total as u16
}

#[cfg(test)]
mod tests;
