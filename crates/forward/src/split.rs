//! Makes packets for a link from what a TUN device returns (`linux/virtio_net.h`): splits large packets as a network
//! card does (TCP, RFC 9293 3.1; UDP, RFC 768; over IPv4 and IPv6), and completes partial checksums.
//!
//! Segments can be written one behind the other, each with headroom for the headers of a tunnel. All but the last have
//! one length, as the kernel expects of datagrams that are sent in one call (`UDP_SEGMENT`, udp(7)).
//!
//! Left out: packets in tunnels, and UDP datagrams in fragments (UFO), which TUN devices return only on request.

#[cfg(test)]
mod tests;

use std::ops::Range;

use wire::checksum::{fold, sum};
use wire::ip::{self, HeaderError};
use wire::packet::Fragment;
use wire::segment::complete_checksum;
use wire::virtio::{self, Gso};
use wire::{tcp, udp};

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Why a packet from a TUN device is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SplitError {
    /// There is no header before the packet.
    #[error("no virtio header")]
    NoHeader,
    /// It is not an IP packet.
    #[error("{0}")]
    Ip(#[from] HeaderError),
    /// It cannot be split, or is not of the kind that the header names.
    #[error("no TCP or UDP packet that can be cut")]
    Unsupported,
    /// The segment length is zero.
    #[error("segment size of 0")]
    Size,
    /// The partial checksum is not at the offset of the packet's checksum.
    #[error("open checksum out of place")]
    Checksum,
}

/// A packet from a TUN device.
#[derive(Debug)]
pub enum Opened<'a> {
    /// One packet, completed in place.
    One(&'a mut [u8]),
    /// A large packet, to be split.
    Several(Segments<'a>),
}

/// Reads the header before a packet from a TUN device: completes the packet, or returns how to split it.
///
/// # Errors
/// As [`SplitError`] says.
#[inline]
pub fn open(octets: &mut [u8]) -> Result<Opened<'_>, SplitError> {
    let header = virtio::Header::parse(octets).ok_or(SplitError::NoHeader)?;
    let packet = &mut octets[virtio::LENGTH..];
    if header.gso != Gso::None {
        return Segments::new(&header, packet).map(Opened::Several);
    }
    if header.needs_checksum() {
        let (start, offset) = (header.checksum_start, header.checksum_offset);
        if !complete_checksum(packet, start.into(), offset.into()) {
            return Err(SplitError::Checksum);
        }
    }
    Ok(Opened::One(packet))
}

/// A large packet, and how to split it.
#[derive(Debug, Clone)]
pub struct Segments<'a> {
    packet: &'a [u8],
    ip: ip::Header,
    is_tcp: bool,
    size: usize,
    count: usize,
    /// Start and end of the TCP or UDP header.
    transport: usize,
    payload: usize,
    /// The sum of what is the same in all segments: of an IPv4 header without length, identification and checksum; of
    /// the pseudo header and the transport's without lengths, checksum, and TCP's sequence number and flags.
    ip_sum: u16,
    transport_sum: u16,
}

/// The layout of segments, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of headroom before each segment.
    pub headroom: usize,
    /// Bytes of each segment but the last.
    pub length: usize,
    /// Bytes of the last one, at most as many.
    pub last_length: usize,
    /// Segments, at least one.
    pub count: usize,
}

impl Layout {
    /// Bytes of all, headroom included.
    #[must_use]
    pub fn octets(&self) -> usize {
        (self.count - 1) * (self.headroom + self.length) + self.headroom + self.last_length
    }

    /// The range of segment `n`, headroom included; `None` if there is no such segment.
    #[must_use]
    pub fn range(&self, n: usize) -> Option<Range<usize>> {
        let start = n.checked_mul(self.headroom + self.length)?;
        let length = match (n + 1).cmp(&self.count) {
            std::cmp::Ordering::Less => self.length,
            std::cmp::Ordering::Equal => self.last_length,
            std::cmp::Ordering::Greater => return None,
        };
        Some(start..start + self.headroom + length)
    }
}

impl<'a> Segments<'a> {
    /// Prepares to split an IP packet as its header says.
    ///
    /// # Errors
    /// As [`SplitError`] says.
    pub fn new(header: &virtio::Header, packet: &'a [u8]) -> Result<Self, SplitError> {
        let ip = ip::Header::read(packet)?;
        let packet = &packet[..ip.total_length as usize];
        let transport = usize::from(ip.header_length);
        let head = &packet[transport..];
        let (is_tcp, place) = match (header.gso, ip.version, ip.protocol) {
            (Gso::TcpV4, 4, tcp::PROTOCOL) | (Gso::TcpV6, 6, tcp::PROTOCOL) => (true, 16),
            (Gso::Udp, _, udp::PROTOCOL) => (false, 6),
            _ => return Err(SplitError::Unsupported),
        };
        let length = match is_tcp {
            true => head.get(12).map_or(0, |octet| usize::from(octet >> 4) * 4),
            false => 8,
        };
        let is_short = length > head.len() || (is_tcp && length < 20);
        // AH authenticates the whole packet (RFC 4302), so it cannot be split.
        let is_behind = ip.version == 4 && transport != usize::from(packet[0] & 15) * 4;
        if ip.fragment != Fragment::Whole || is_short || is_behind {
            return Err(SplitError::Unsupported);
        }
        if header.segment_size == 0 {
            return Err(SplitError::Size);
        }
        let is_in_place = usize::from(header.checksum_start) == transport
            && usize::from(header.checksum_offset) == place;
        if !header.needs_checksum() || !is_in_place {
            return Err(SplitError::Checksum);
        }
        let size = usize::from(header.segment_size);
        let payload = transport + length;
        Ok(Self {
            packet,
            ip,
            is_tcp,
            size,
            count: (packet.len() - payload).div_ceil(size).max(1),
            transport,
            payload,
            ip_sum: ip_sum(&packet[..transport]),
            transport_sum: transport_sum(head, length, is_tcp),
        })
    }

    /// The header of the large packet, from which the segments' headers are made.
    #[must_use]
    pub fn ip(&self) -> &ip::Header {
        &self.ip
    }

    /// Number of segments; at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes of segment `n`; `None` if there is no such segment.
    #[must_use]
    pub fn length(&self, n: usize) -> Option<usize> {
        self.part(n).map(|part| self.payload + part.len())
    }

    /// Bytes of the longest segment, which is the first.
    #[must_use]
    pub fn length_max(&self) -> usize {
        self.packet.len().min(self.payload + self.size)
    }

    /// The layout that [`Segments::write_all`] writes.
    #[must_use]
    pub fn layout(&self, headroom: usize) -> Layout {
        let last = self.packet.len() - (self.count - 1) * self.size;
        Layout {
            headroom,
            length: self.length_max(),
            last_length: last,
            count: self.count,
        }
    }

    /// Writes segment `n` to the start of `out`. Returns its length; `None` if there is no such segment, or it does not
    /// fit.
    pub fn write(&self, n: usize, out: &mut [u8]) -> Option<usize> {
        let part = self.part(n)?;
        let length = self.payload + part.len();
        let out = out.get_mut(..length)?;
        out[..self.payload].copy_from_slice(&self.packet[..self.payload]);
        out[self.payload..].copy_from_slice(part);
        self.patch(n, out);
        Some(length)
    }

    /// Appends segment `n`. Returns its length; `None` if there is no such segment.
    pub fn append(&self, n: usize, out: &mut Vec<u8>) -> Option<usize> {
        let part = self.part(n)?;
        let start = out.len();
        out.extend_from_slice(&self.packet[..self.payload]);
        out.extend_from_slice(part);
        self.patch(n, &mut out[start..]);
        Some(self.payload + part.len())
    }

    /// Writes all segments to `out`, each behind `headroom` bytes that stay unchanged. Returns the layout; `None` if
    /// they do not fit.
    pub fn write_all(&self, headroom: usize, out: &mut [u8]) -> Option<Layout> {
        let layout = self.layout(headroom);
        let out = out.get_mut(..layout.octets())?;
        for (n, place) in out.chunks_mut(headroom + layout.length).enumerate() {
            self.write(n, &mut place[headroom..])?;
        }
        Some(layout)
    }

    /// The payload of segment `n`.
    #[inline]
    fn part(&self, n: usize) -> Option<&'a [u8]> {
        if n >= self.count {
            return None;
        }
        let start = self.payload + n * self.size;
        let end = self.packet.len().min(start + self.size);
        Some(&self.packet[start..end])
    }

    /// Makes the headers of segment `n` from those of the large packet.
    #[inline]
    fn patch(&self, n: usize, segment: &mut [u8]) {
        if self.ip.version == 4 {
            let length = segment.len() as u16;
            let identification =
                u16::from_be_bytes([segment[4], segment[5]]).wrapping_add(n as u16);
            let total = u64::from(self.ip_sum) + u64::from(length) + u64::from(identification);
            segment[2..4].copy_from_slice(&length.to_be_bytes());
            segment[4..6].copy_from_slice(&identification.to_be_bytes());
            segment[10..12].copy_from_slice(&(!fold(total)).to_be_bytes());
        } else {
            let length = (segment.len() - 40) as u16;
            segment[4..6].copy_from_slice(&length.to_be_bytes());
        }
        let (head, payload) = segment[self.transport..].split_at_mut(self.payload - self.transport);
        let length = (head.len() + payload.len()) as u16;
        let total = u64::from(self.transport_sum) + u64::from(length) + u64::from(sum(payload));
        if self.is_tcp {
            let sequence = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
            let sequence = sequence.wrapping_add((n * self.size) as u32);
            head[4..8].copy_from_slice(&sequence.to_be_bytes());
            // Flags that belong to the first byte (RFC 3168 6.1.2), and to the last one.
            if n > 0 {
                head[13] &= !CWR;
            }
            if n + 1 < self.count {
                head[13] &= !(FIN | PSH);
            }
            let total = total + u64::from(sequence) + u64::from(head[13]);
            head[16..18].copy_from_slice(&(!fold(total)).to_be_bytes());
        } else {
            head[4..6].copy_from_slice(&length.to_be_bytes());
            // 0 would mean "no checksum" (RFC 768).
            let sum = match !fold(total + u64::from(length)) {
                0 => 0xffff,
                sum => sum,
            };
            head[6..8].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

/// The sum of an IPv4 header without length, identification and checksum; of an IPv6 header, nothing of use.
fn ip_sum(head: &[u8]) -> u16 {
    let words = [&head[..2], &head[6..10], &head[12..]];
    fold(words.iter().map(|words| u64::from(sum(words))).sum())
}

/// The sum of the pseudo header and of the transport's, without what differs between segments. The pseudo header's is
/// in the checksum's place already, but with the length of all.
fn transport_sum(segment: &[u8], length: usize, is_tcp: bool) -> u16 {
    let place = if is_tcp { 16 } else { 6 };
    let pseudo = u16::from_be_bytes([segment[place], segment[place + 1]]);
    let without_length = u64::from(pseudo) + u64::from(!(segment.len() as u16));
    let rest = if is_tcp {
        let offset = u64::from(segment[12]) << 8;
        offset
            + u64::from(sum(&segment[8..12]))
            + u64::from(sum(&segment[14..16]))
            + u64::from(sum(&segment[18..length]))
    } else {
        0
    };
    fold(u64::from(sum(&segment[..4])) + without_length + rest)
}
