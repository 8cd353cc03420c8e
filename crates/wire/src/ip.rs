//! Reads an IP packet's header once, with everything that routing, filtering and forwarding need. Start reading
//! at [`Header::read`].
//!
//! IPv4 (RFC 791), IPv6 and its extension headers (RFC 8200), AH (RFC 4302); behind them the ports of TCP, UDP,
//! SCTP, DCCP and UDP-Lite, TCP's flags, ICMP's type and code. Fragments are classified as filters need it (RFC
//! 1858, RFC 3128, RFC 6946).
//!
//! The packet comes from a tunnel or a TUN device, so its first byte is the IP header's. [`flow`](crate::flow)
//! computes the keys of queues, which look into tunnels; [`packet`](crate::packet) reads captured frames. Left
//! out: checksums, the content of options, jumbograms (RFC 2675), which no PPP link carries.

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::packet::Fragment;
use crate::{icmp, tcp, udp};

/// DCCP's IP protocol number (RFC 4340).
pub const DCCP: u8 = 33;
/// SCTP's IP protocol number (RFC 9260).
pub const SCTP: u8 = 132;
/// UDP-Lite's IP protocol number (RFC 3828).
pub const UDP_LITE: u8 = 136;

pub(crate) const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
pub(crate) const FRAGMENT: u8 = 44;
pub(crate) const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
const HIP: u8 = 139;
const SHIM6: u8 = 140;

/// How many extension headers are skipped. RFC 8200 4.1 lists seven that can sensibly occur together.
pub const EXTENSIONS_MAX: usize = 8;

/// Which fields of an upper protocol are read, and how. A table instead of branches, so that reading does not
/// branch on the protocol.
#[derive(Clone, Copy)]
struct Kind {
    upper: Upper,
    /// Octets that must be present: for TCP, TMIN of RFC 1858 3; otherwise what every fragment but the last has
    /// room for.
    octets: u8,
    /// How far the first four octets are shifted to yield two ports: ICMP has type and code in the first two.
    shift: u8,
    /// Which of those bits are kept.
    mask: u32,
    /// Which TCP flags are kept.
    flags: u8,
}

/// By protocol.
static KINDS: [Kind; 256] = {
    const fn kind(upper: Upper, octets: u8, shift: u8, mask: u32, flags: u8) -> Kind {
        Kind {
            upper,
            octets,
            shift,
            mask,
            flags,
        }
    }
    let mut kinds = [kind(Upper::Unread, 0, 0, 0, 0); 256];
    let mut protocol = 0;
    while protocol < 256 {
        if has_ports(protocol as u8) {
            kinds[protocol] = kind(Upper::Ports, 8, 0, u32::MAX, 0);
        }
        protocol += 1;
    }
    kinds[tcp::PROTOCOL as usize] = kind(Upper::Ports, 16, 0, u32::MAX, u8::MAX);
    kinds[icmp::PROTOCOL as usize] = kind(Upper::Icmp, 4, 16, u32::MAX, 0);
    kinds[icmp::PROTOCOL_V6 as usize] = kind(Upper::Icmp, 4, 16, u32::MAX, 0);
    kinds
};

/// What follows the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Upper {
    /// Nothing that is read: another protocol, or a fragment after the first.
    Unread,
    /// A protocol with ports: [`Header::source_port`] and [`Header::destination_port`] are valid, and
    /// [`Header::tcp_flags`] for TCP.
    Ports,
    /// ICMP or ICMPv6: [`Header::icmp`] is valid.
    Icmp,
    /// One of those protocols, but the packet or the first fragment ends inside its header.
    Cut,
}

/// The fields of an IP packet's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Source address as a number; IPv4 as `::ffff:a.b.c.d`, so its low 32 bits are the address. Check
    /// `version` too: an IPv6 packet can carry such a source address.
    pub source: u128,
    /// Destination address, likewise.
    pub destination: u128,
    /// The packet's length in octets according to its header; later bytes in the buffer are padding.
    pub total_length: u32,
    /// Octets before the upper protocol: the IP header with its options, IPv6 extension headers, AH. In a later
    /// fragment, only those of the unfragmentable part.
    pub header_length: u16,
    /// Source port; 0 unless `upper` is [`Upper::Ports`].
    pub source_port: u16,
    /// Destination port; for ICMP the type in the upper and the code in the lower octet, as in flow records;
    /// otherwise 0.
    pub destination_port: u16,
    /// Offset of this fragment within the datagram, in octets.
    pub fragment_offset: u16,
    /// 4 or 6.
    pub version: u8,
    /// The upper protocol's number, after extension headers and AH; in a later fragment, the number in its
    /// fragment header.
    pub protocol: u8,
    /// TOS octet or traffic class: DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// The lower eight TCP flags, FIN lowest; 0 unless `upper` is [`Upper::Ports`] of TCP.
    pub tcp_flags: u8,
    /// Whether the packet is a fragment, and which.
    pub fragment: Fragment,
    /// What was read of the upper protocol.
    pub upper: Upper,
    /// IPv4's "don't fragment" flag; always true for IPv6.
    pub dont_fragment: bool,
}

/// Why bytes are not an IP packet that can be forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum HeaderError {
    /// Fewer octets than the smallest header of its version.
    #[error("shorter than an IP header")]
    Truncated,
    /// Neither IPv4 nor IPv6.
    #[error("IP version {0}")]
    Version(u8),
    /// IPv4's header length is below 20, or exceeds the packet.
    #[error("IPv4 header of {0} octets")]
    HeaderLength(u8),
    /// The total length is less than the header's, or exceeds the available bytes.
    #[error("IP length {0}")]
    TotalLength(u32),
    /// An extension header or AH runs past the packet's end.
    #[error("extension header cut short")]
    Extension,
    /// More than [`EXTENSIONS_MAX`] extension headers.
    #[error("too many extension headers")]
    TooManyExtensions,
}

impl Header {
    /// Reads the header of the packet that starts at the first byte; bytes after the packet's end are ignored.
    ///
    /// # Errors
    /// See [`HeaderError`]. Damage to the upper protocol alone is not an error: see [`Upper::Cut`].
    #[inline]
    pub fn read(packet: &[u8]) -> Result<Self, HeaderError> {
        let first = *packet.first().ok_or(HeaderError::Truncated)?;
        match first >> 4 {
            4 => Self::ipv4(packet),
            6 => Self::ipv6(packet),
            version => Err(HeaderError::Version(version)),
        }
    }

    #[inline]
    fn ipv4(packet: &[u8]) -> Result<Self, HeaderError> {
        let head = packet.first_chunk::<20>().ok_or(HeaderError::Truncated)?;
        let header_length = usize::from(head[0] & 0x0f) * 4;
        let total = usize::from(u16::from_be_bytes([head[2], head[3]]));
        if header_length < 20 {
            return Err(HeaderError::HeaderLength(header_length as u8));
        }
        let whole = packet
            .get(..total)
            .ok_or(HeaderError::TotalLength(total as u32))?;
        let Some(content) = whole.get(header_length..) else {
            return Err(match total {
                0..20 => HeaderError::TotalLength(total as u32),
                _ => HeaderError::HeaderLength(header_length as u8),
            });
        };
        let fragment = u16::from_be_bytes([head[6], head[7]]);
        let mut header = Header {
            source: mapped([head[12], head[13], head[14], head[15]]),
            destination: mapped([head[16], head[17], head[18], head[19]]),
            total_length: total as u32,
            header_length: header_length as u16,
            source_port: 0,
            destination_port: 0,
            fragment_offset: fragment << 3,
            version: 4,
            protocol: head[9],
            traffic_class: head[1],
            hop_limit: head[8],
            tcp_flags: 0,
            fragment: match fragment & 0x3fff {
                0 => Fragment::Whole,
                0x2000 => Fragment::First,
                _ => Fragment::Later,
            },
            upper: Upper::Unread,
            dont_fragment: fragment & 0x4000 != 0,
        };
        if header.fragment == Fragment::Later {
            return Ok(header);
        }
        if header.protocol == AUTHENTICATION {
            return header.extensions(content);
        }
        header.upper(content);
        Ok(header)
    }

    #[inline]
    fn ipv6(packet: &[u8]) -> Result<Self, HeaderError> {
        let (head, content) = packet
            .split_first_chunk::<40>()
            .ok_or(HeaderError::Truncated)?;
        let length = u16::from_be_bytes([head[4], head[5]]);
        let total_length = u32::from(length) + 40;
        let content = content
            .get(..usize::from(length))
            .ok_or(HeaderError::TotalLength(total_length))?;
        let mut header = Header {
            source: address::<8>(head),
            destination: address::<24>(head),
            total_length,
            header_length: 40,
            source_port: 0,
            destination_port: 0,
            fragment_offset: 0,
            version: 6,
            protocol: head[6],
            traffic_class: head[0] << 4 | head[1] >> 4,
            hop_limit: head[7],
            tcp_flags: 0,
            fragment: Fragment::Whole,
            upper: Upper::Unread,
            dont_fragment: true,
        };
        if is_extension(header.protocol) {
            return header.extensions(content);
        }
        header.upper(content);
        Ok(header)
    }

    /// Skips AH, and in IPv6 extension headers, stopping at a later fragment's content.
    #[cold]
    fn extensions(mut self, mut content: &[u8]) -> Result<Self, HeaderError> {
        for _ in 0..EXTENSIONS_MAX {
            let head = content.first_chunk::<4>().ok_or(HeaderError::Extension)?;
            let length = extension_length(self.protocol, head[1]);
            let rest = content.get(length..).ok_or(HeaderError::Extension)?;
            if self.protocol == FRAGMENT {
                let fragment = u16::from_be_bytes([head[2], head[3]]);
                self.fragment_offset = fragment & 0xfff8;
                self.fragment = match fragment & 0xfff9 {
                    0 => Fragment::Whole,
                    1 => Fragment::First,
                    _ => Fragment::Later,
                };
            }
            self.protocol = head[0];
            self.header_length += length as u16;
            content = rest;
            if self.fragment == Fragment::Later {
                return Ok(self);
            }
            if !is_skipped(self.version, self.protocol) {
                self.upper(content);
                return Ok(self);
            }
        }
        Err(HeaderError::TooManyExtensions)
    }

    /// Reads the upper protocol's fields. It does not branch on the kind of protocol: with mixed traffic, one
    /// branch misprediction costs more than the rest of the header.
    #[inline(always)]
    fn upper(&mut self, content: &[u8]) {
        let kind = &KINDS[usize::from(self.protocol)];
        self.upper = kind.upper;
        let padded;
        let head = match content.first_chunk::<16>() {
            Some(head) => head,
            None if content.len() < usize::from(kind.octets) => {
                self.upper = Upper::Cut;
                return;
            }
            None => {
                padded = pad(content);
                &padded
            }
        };
        let first = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let ports = first >> kind.shift & kind.mask;
        self.source_port = (ports >> 16) as u16;
        self.destination_port = ports as u16;
        self.tcp_flags = head[13] & kind.flags;
    }

    /// ICMP's type and code, if there is such a header.
    #[must_use]
    #[inline]
    pub fn icmp(&self) -> Option<(u8, u8)> {
        let [kind, code] = self.destination_port.to_be_bytes();
        (self.upper == Upper::Icmp).then_some((kind, code))
    }

    /// The source address as an [`IpAddr`], for display.
    #[must_use]
    pub fn source_address(&self) -> IpAddr {
        self.address_of(self.source)
    }

    /// The destination address as an [`IpAddr`], for display.
    #[must_use]
    pub fn destination_address(&self) -> IpAddr {
        self.address_of(self.destination)
    }

    fn address_of(&self, number: u128) -> IpAddr {
        match self.version {
            4 => Ipv4Addr::from_bits(number as u32).into(),
            _ => Ipv6Addr::from_bits(number).into(),
        }
    }
}

/// Fewer than 16 bytes, padded with zeros.
#[cold]
fn pad(content: &[u8]) -> [u8; 16] {
    let mut padded = [0; 16];
    for (to, from) in padded.iter_mut().zip(content) {
        *to = *from;
    }
    padded
}

/// Whether a protocol's header begins with two 16-bit ports.
#[must_use]
#[inline(always)]
pub const fn has_ports(protocol: u8) -> bool {
    matches!(
        protocol,
        tcp::PROTOCOL | udp::PROTOCOL | DCCP | SCTP | UDP_LITE
    )
}

/// Whether this number is an extension header's: those of RFC 8200 4.1, AH, mobility (RFC 6275), HIP (RFC
/// 7401), shim6 (RFC 5533).
#[inline(always)]
pub(crate) const fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        HOP_BY_HOP
            | ROUTING
            | FRAGMENT
            | AUTHENTICATION
            | DESTINATION_OPTIONS
            | MOBILITY
            | HIP
            | SHIM6
    )
}

/// Whether a header of this number leads to a further header. In IPv4 only AH does: the other numbers are those of
/// IPv6's extension headers.
#[inline(always)]
pub(crate) const fn is_skipped(version: u8, protocol: u8) -> bool {
    match version {
        4 => protocol == AUTHENTICATION,
        _ => is_extension(protocol),
    }
}

/// Octets of an extension header whose second octet is `units`.
#[inline(always)]
pub(crate) const fn extension_length(protocol: u8, units: u8) -> usize {
    match protocol {
        FRAGMENT => 8,
        AUTHENTICATION => units as usize * 4 + 8,
        _ => units as usize * 8 + 8,
    }
}

/// An IPv4 address as an IPv6 one (RFC 4291 2.5.5.2), as a number.
#[must_use]
#[inline(always)]
pub const fn mapped(address: [u8; 4]) -> u128 {
    0xffff_0000_0000 | u32::from_be_bytes(address) as u128
}

/// The address at octet `AT` of an IPv6 header.
#[inline(always)]
fn address<const AT: usize>(head: &[u8; 40]) -> u128 {
    let mut address = [0; 16];
    address.copy_from_slice(&head[AT..AT + 16]);
    u128::from_be_bytes(address)
}
