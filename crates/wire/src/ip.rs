//! One reading of an IP packet's header: what routing, filtering and forwarding ask of it.
//!
//! IPv4 (RFC 791), IPv6 and its extension headers (RFC 8200), AH (RFC 4302); behind them the ports of TCP, UDP, SCTP,
//! DCCP and UDP-Lite, TCP's flags, ICMP's type and code. Fragments as filters need them told apart (RFC 1858, RFC 3128,
//! RFC 6946).
//!
//! The packet is one that came alone, from a tunnel or a TUN device, with nothing in front of its IP header.
//! [`flow`](crate::flow) gives the keys of queues, which look into tunnels; [`packet`](crate::packet) reads captured
//! frames. Left out: checksums, the content of options, jumbograms (RFC 2675), which no PPP link carries.

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

/// Extension headers that are stepped over. RFC 8200 4.1 knows seven that make sense at once.
pub const EXTENSIONS_MAX: usize = 8;

/// What of an upper protocol is read, and how: nothing that follows from it is a branch.
#[derive(Clone, Copy)]
struct Kind {
    upper: Upper,
    /// Octets that must be there. Of TCP, TMIN of RFC 1858 3; else what all but a last fragment have room for.
    octets: u8,
    /// How far the first four octets are shifted to be two ports: ICMP has a type and a code in the first two.
    shift: u8,
    /// Which bits of those are kept.
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

/// What was found behind the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Upper {
    /// Nothing that is read: another protocol, or a later fragment.
    Unread,
    /// A protocol with ports: [`Header::source_port`] and [`Header::destination_port`] hold, and
    /// [`Header::tcp_flags`] if it is TCP.
    Ports,
    /// ICMP or ICMPv6: [`Header::icmp`] holds.
    Icmp,
    /// It should be one of those, but the packet, or the first fragment, ends inside of its header.
    Cut,
}

/// The header of an IP packet, read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Source address as a number; an IPv4 one is that of `::ffff:a.b.c.d`, so its low 32 bits are the address. Look
    /// at `version` too: an IPv6 packet may claim to come from there.
    pub source: u128,
    /// Destination address, likewise.
    pub destination: u128,
    /// Octets of the packet by its header: what is behind them in the buffer is padding.
    pub total_length: u32,
    /// Octets in front of the upper protocol: the IP header with its options, IPv6 extension headers, AH. Of an
    /// unfragmentable part only, in later fragments.
    pub header_length: u16,
    /// Source port; 0 unless `upper` is [`Upper::Ports`].
    pub source_port: u16,
    /// Destination port; of ICMP its type in the upper and its code in the lower octet, as flow records have it;
    /// else 0.
    pub destination_port: u16,
    /// Octets of the datagram in front of this fragment.
    pub fragment_offset: u16,
    /// 4 or 6.
    pub version: u8,
    /// The upper protocol's number, after extension headers and AH; of a later fragment, what its header says.
    pub protocol: u8,
    /// TOS octet or traffic class: DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// The lower eight TCP flags, FIN lowest; 0 unless `upper` is [`Upper::Ports`] of TCP.
    pub tcp_flags: u8,
    /// Whether it is a fragment, and which.
    pub fragment: Fragment,
    /// What of the upper protocol was read.
    pub upper: Upper,
    /// IPv4's "don't fragment"; in IPv6 always true.
    pub dont_fragment: bool,
}

/// Why octets are no IP packet that may be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum HeaderError {
    /// Fewer octets than the smallest header of its version.
    #[error("shorter than an IP header")]
    Truncated,
    /// Neither IPv4 nor IPv6.
    #[error("IP version {0}")]
    Version(u8),
    /// IPv4's header length is below 20, or more than the packet.
    #[error("IPv4 header of {0} octets")]
    HeaderLength(u8),
    /// The length in the header is below the header's own, or more than there is.
    #[error("IP length {0}")]
    TotalLength(u32),
    /// An extension header or AH goes past the packet's end.
    #[error("extension header cut short")]
    Extension,
    /// More than [`EXTENSIONS_MAX`] extension headers.
    #[error("too many extension headers")]
    TooManyExtensions,
}

impl Header {
    /// Reads the header of the packet that begins at the first octet; what follows its end is ignored.
    ///
    /// # Errors
    /// As [`HeaderError`] says. A packet whose upper protocol alone is damaged is none: see [`Upper::Cut`].
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

    /// Steps over extension headers and AH, up to a later fragment's content.
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
            if !is_extension(self.protocol) {
                self.upper(content);
                return Ok(self);
            }
        }
        Err(HeaderError::TooManyExtensions)
    }

    /// Reads what of the upper protocol is asked for. What kind of protocol it is is not guessed: in a mix, a wrong
    /// guess costs more than all the rest of a header.
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

    /// ICMP's type and code, where there is such a header.
    #[must_use]
    #[inline]
    pub fn icmp(&self) -> Option<(u8, u8)> {
        let [kind, code] = self.destination_port.to_be_bytes();
        (self.upper == Upper::Icmp).then_some((kind, code))
    }

    /// The source address, for people.
    #[must_use]
    pub fn source_address(&self) -> IpAddr {
        self.address_of(self.source)
    }

    /// The destination address, for people.
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

/// Fewer octets than 16, and zeros behind them.
#[cold]
fn pad(content: &[u8]) -> [u8; 16] {
    let mut padded = [0; 16];
    for (to, from) in padded.iter_mut().zip(content) {
        *to = *from;
    }
    padded
}

/// Whether a protocol begins with two ports of 16 bits.
#[must_use]
#[inline(always)]
pub const fn has_ports(protocol: u8) -> bool {
    matches!(
        protocol,
        tcp::PROTOCOL | udp::PROTOCOL | DCCP | SCTP | UDP_LITE
    )
}

/// Whether a header of this number leads to another one: RFC 8200 4.1's, AH, mobility (RFC 6275), HIP (RFC 7401),
/// shim6 (RFC 5533).
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
