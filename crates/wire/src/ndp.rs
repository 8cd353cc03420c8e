//! Neighbour discovery: Router and Neighbour Solicitations and Advertisements (RFC 4861, section 4), with the options
//! Prefix Information, MTU, and the name servers and search list of RFC 8106.
//!
//! [`Message::read`] checks what sections 6.1 and 7.1 require of a valid message. [`write_packet`] writes a whole IPv6
//! packet. Left out: Redirect (a point-to-point link needs none), link-layer addresses (PPP has none, RFC 5072,
//! section 6).

#[cfg(test)]
mod tests;

use core::net::Ipv6Addr;

use crate::checksum;
use crate::icmp::PROTOCOL_V6;
use crate::ip::Header;
use crate::packet::Fragment;

/// Router Solicitation (section 4.1).
pub const ROUTER_SOLICITATION: u8 = 133;
/// Router Advertisement (section 4.2).
pub const ROUTER_ADVERTISEMENT: u8 = 134;
/// Neighbour Solicitation (section 4.3).
pub const NEIGHBOR_SOLICITATION: u8 = 135;
/// Neighbour Advertisement (section 4.4).
pub const NEIGHBOR_ADVERTISEMENT: u8 = 136;
/// All nodes on the link (RFC 4291, section 2.7.1).
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// All routers on the link.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// Octets of an IPv6 header.
pub const IPV6_HEADER: usize = 40;

/// Hop limit of every message of neighbour discovery: a router would have lowered it.
const HOP_LIMIT: u8 = 255;

/// Why a packet is no valid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NdpError {
    /// Not ICMPv6, or a fragment.
    #[error("no whole ICMPv6 message")]
    NotIcmp,
    /// The hop limit is not 255.
    #[error("hop limit {0}")]
    HopLimit(u8),
    /// The ICMPv6 checksum is wrong.
    #[error("wrong ICMPv6 checksum")]
    Checksum,
    /// The ICMPv6 code is not 0.
    #[error("code {0}")]
    Code(u8),
    /// Another ICMPv6 type.
    #[error("type {0}")]
    Type(u8),
    /// Shorter than its fixed part.
    #[error("truncated message")]
    Truncated,
    /// An option has length 0, or runs past the end.
    #[error("bad option length")]
    OptionLength,
    /// Its source, destination or target is impossible.
    #[error("bad address")]
    Address,
}

/// A message of neighbour discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// A host asks for a Router Advertisement.
    RouterSolicitation,
    /// A router announces itself.
    RouterAdvertisement(Router, Options<'a>),
    /// A node asks for the link-layer address of the target.
    NeighborSolicitation {
        /// The wanted address.
        target: Ipv6Addr,
    },
    /// A node has the target address.
    NeighborAdvertisement {
        /// Its address.
        target: Ipv6Addr,
        /// The flags Router, Solicited and Override, in the upper three bits.
        flags: u8,
    },
}

/// The fixed part of a Router Advertisement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Router {
    /// The hop limit for hosts; 0: not given.
    pub hop_limit: u8,
    /// Whether addresses are available by DHCPv6 (M).
    pub managed: bool,
    /// Whether other configuration is (O).
    pub other: bool,
    /// How long the router is a default router, in seconds; 0: it is none.
    pub lifetime_s: u16,
}

/// A Prefix Information option (section 4.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// Its address.
    pub address: Ipv6Addr,
    /// Its length in bits.
    pub length: u8,
    /// Whether its addresses are on the link (L).
    pub on_link: bool,
    /// Whether hosts may form addresses in it (A; RFC 4862).
    pub autonomous: bool,
    /// How long it is valid, in seconds.
    pub valid_s: u32,
    /// How long its addresses are preferred, in seconds.
    pub preferred_s: u32,
}

/// An option of a Router Advertisement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Option<'a> {
    /// A prefix.
    Prefix(Prefix),
    /// The link's MTU.
    Mtu(u32),
    /// Name servers (RFC 8106, section 5.1): seconds, and the octets of their addresses.
    Servers(u32, &'a [[u8; 16]]),
    /// Another option, or one of a known type with an impossible length: type and content.
    Other(u8, &'a [u8]),
}

/// The options of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options<'a>(&'a [u8]);

impl<'a> Iterator for Options<'a> {
    type Item = Option<'a>;

    fn next(&mut self) -> core::option::Option<Option<'a>> {
        let &[kind, units, ..] = self.0 else {
            return None;
        };
        let (option, rest) = self.0.split_at_checked(usize::from(units) * 8)?;
        self.0 = rest;
        Some(Option::read(kind, option.get(2..)?))
    }
}

impl<'a> Option<'a> {
    fn read(kind: u8, content: &'a [u8]) -> Self {
        let word = |at: usize| {
            let octets = content.get(at..at + 4).and_then(|part| part.first_chunk());
            octets.map(|octets| u32::from_be_bytes(*octets))
        };
        match (kind, content.len()) {
            (3, 30) => {
                let address = content.last_chunk::<16>().copied().unwrap_or_default();
                Self::Prefix(Prefix {
                    address: address.into(),
                    length: content[0],
                    on_link: content[1] & 0x80 != 0,
                    autonomous: content[1] & 0x40 != 0,
                    valid_s: word(2).unwrap_or(0),
                    preferred_s: word(6).unwrap_or(0),
                })
            }
            (5, 6) => Self::Mtu(word(2).unwrap_or(0)),
            (25, 22..) if (content.len() - 6).is_multiple_of(16) => {
                let (servers, _) = content[6..].as_chunks();
                Self::Servers(word(2).unwrap_or(0), servers)
            }
            _ => Self::Other(kind, content),
        }
    }
}

impl<'a> Message<'a> {
    /// Reads a packet whose header was read.
    ///
    /// # Errors
    /// See [`NdpError`].
    pub fn read(header: &Header, packet: &'a [u8]) -> Result<Self, NdpError> {
        let icmp = icmp(header, packet)?;
        if header.hop_limit != HOP_LIMIT {
            return Err(NdpError::HopLimit(header.hop_limit));
        }
        let &[kind, code, ..] = icmp else {
            return Err(NdpError::Truncated);
        };
        let fixed = match kind {
            ROUTER_SOLICITATION => 8,
            ROUTER_ADVERTISEMENT => 16,
            NEIGHBOR_SOLICITATION | NEIGHBOR_ADVERTISEMENT => 24,
            other => return Err(NdpError::Type(other)),
        };
        if code != 0 {
            return Err(NdpError::Code(code));
        }
        let (head, options) = icmp.split_at_checked(fixed).ok_or(NdpError::Truncated)?;
        let has_link_address = check_options(options)?;
        let message = match kind {
            ROUTER_SOLICITATION => Self::RouterSolicitation,
            ROUTER_ADVERTISEMENT => {
                let router = Router {
                    hop_limit: head[4],
                    managed: head[5] & 0x80 != 0,
                    other: head[5] & 0x40 != 0,
                    lifetime_s: u16::from_be_bytes([head[6], head[7]]),
                };
                Self::RouterAdvertisement(router, Options(options))
            }
            _ => {
                let target = head.last_chunk::<16>().copied().unwrap_or_default().into();
                match kind {
                    NEIGHBOR_SOLICITATION => Self::NeighborSolicitation { target },
                    _ => Self::NeighborAdvertisement {
                        target,
                        flags: head[4] & 0xe0,
                    },
                }
            }
        };
        message.check_addresses(header, has_link_address)?;
        Ok(message)
    }

    /// Checks the addresses: sections 6.1.1, 6.1.2, 7.1.1 and 7.1.2.
    fn check_addresses(&self, header: &Header, has_link_address: bool) -> Result<(), NdpError> {
        let to_multicast = header.destination >> 120 == 0xff;
        let right = match *self {
            Self::RouterSolicitation => header.source != 0 || !has_link_address,
            Self::RouterAdvertisement(..) => header.source >> 118 == 0xfe80 >> 6,
            Self::NeighborSolicitation { target } => {
                let low = 0xffffff & target.to_bits();
                let solicited = 0xff02_0000_0000_0000_0000_0001_ff00_0000 | low;
                let from_nobody = header.destination == solicited && !has_link_address;
                !target.is_multicast() && (header.source != 0 || from_nobody)
            }
            Self::NeighborAdvertisement { target, flags } => {
                !target.is_multicast() && (!to_multicast || flags & 0x40 == 0)
            }
        };
        right.then_some(()).ok_or(NdpError::Address)
    }
}

/// The ICMPv6 message of a packet, whose checksum is right.
///
/// # Errors
/// [`NdpError::NotIcmp`] and [`NdpError::Checksum`].
pub fn icmp<'a>(header: &Header, packet: &'a [u8]) -> Result<&'a [u8], NdpError> {
    let is_icmp =
        header.version == 6 && header.protocol == PROTOCOL_V6 && header.fragment == Fragment::Whole;
    let range = usize::from(header.header_length)..header.total_length as usize;
    let icmp = packet.get(range).filter(|_| is_icmp);
    let icmp = icmp.ok_or(NdpError::NotIcmp)?;
    match sum(header.source, header.destination, PROTOCOL_V6, icmp) {
        0xffff => Ok(icmp),
        _ => Err(NdpError::Checksum),
    }
}

/// The sum of an upper-layer packet with its pseudo header (RFC 8200, section 8.1).
fn sum(source: u128, destination: u128, protocol: u8, content: &[u8]) -> u16 {
    let mut addresses = [0; 32];
    addresses[..16].copy_from_slice(&source.to_be_bytes());
    addresses[16..].copy_from_slice(&destination.to_be_bytes());
    let pseudo = checksum::pseudo_sum(&addresses, protocol, content.len());
    checksum::fold(u64::from(pseudo) + u64::from(checksum::sum(content)))
}

/// Checks the lengths of all options (section 4.6). Returns whether one has a source link-layer address.
fn check_options(mut options: &[u8]) -> Result<bool, NdpError> {
    let mut has = false;
    while !options.is_empty() {
        let &[kind, units, ..] = options else {
            return Err(NdpError::OptionLength);
        };
        if units == 0 {
            return Err(NdpError::OptionLength);
        }
        has |= kind == 1;
        let rest = options.get(usize::from(units) * 8..);
        options = rest.ok_or(NdpError::OptionLength)?;
    }
    Ok(has)
}

/// Appends an IPv6 packet with the upper-layer content that `write` appends. Fills in lengths and the checksum, which is
/// at this offset of the content; UDP's own length is the caller's.
pub fn write_packet(
    [source, destination]: [Ipv6Addr; 2],
    (protocol, checksum_at, hop_limit): (u8, usize, u8),
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    out.extend_from_slice(&[0x60, 0, 0, 0, 0, 0, protocol, hop_limit]);
    out.extend_from_slice(&source.octets());
    out.extend_from_slice(&destination.octets());
    write(out);
    let length = out.len() - start - IPV6_HEADER;
    let length = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    out[start + 4..start + 6].copy_from_slice(&length);
    let content = &out[start + IPV6_HEADER..];
    let sum = !sum(source.to_bits(), destination.to_bits(), protocol, content);
    // UDP's 0 means none (RFC 8200, section 8.1); ones' complement has another zero.
    let sum = if sum == 0 { 0xffff } else { sum };
    if let Some(place) = out.get_mut(start + IPV6_HEADER + checksum_at..)
        && let Some(place) = place.first_chunk_mut::<2>()
    {
        *place = sum.to_be_bytes();
    }
}

/// Appends an IPv6 packet with an ICMPv6 message whose checksum `write` leaves 0.
pub fn write_icmp(
    addresses: [Ipv6Addr; 2],
    hop_limit: u8,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) {
    write_packet(addresses, (PROTOCOL_V6, 2, hop_limit), out, write);
}

/// The content of a Router Advertisement that we send.
#[derive(Debug, Clone, Copy, Default)]
pub struct Advertisement<'a> {
    /// The fixed part.
    pub router: Router,
    /// The link's MTU.
    pub mtu: core::option::Option<u32>,
    /// Prefixes.
    pub prefixes: &'a [Prefix],
    /// Name servers; of these, the first 127.
    pub servers: &'a [Ipv6Addr],
    /// The search list, in the wire format of names ([`crate::dns::encode`]).
    pub search: &'a [u8],
    /// How long servers and search list are valid, in seconds.
    pub names_s: u32,
}

/// Appends a Router Advertisement as an IPv6 packet.
pub fn write_advertisement(addresses: [Ipv6Addr; 2], one: &Advertisement<'_>, out: &mut Vec<u8>) {
    write_icmp(addresses, HOP_LIMIT, out, |out| {
        let Router {
            hop_limit,
            managed,
            other,
            lifetime_s,
        } = one.router;
        let flags = u8::from(managed) << 7 | u8::from(other) << 6;
        out.extend_from_slice(&[ROUTER_ADVERTISEMENT, 0, 0, 0, hop_limit, flags]);
        out.extend_from_slice(&lifetime_s.to_be_bytes());
        // Reachable time and retransmit timer are not given.
        out.extend_from_slice(&[0; 8]);
        if let Some(mtu) = one.mtu {
            out.extend_from_slice(&[5, 1, 0, 0]);
            out.extend_from_slice(&mtu.to_be_bytes());
        }
        for prefix in one.prefixes {
            let flags = u8::from(prefix.on_link) << 7 | u8::from(prefix.autonomous) << 6;
            out.extend_from_slice(&[3, 4, prefix.length, flags]);
            out.extend_from_slice(&prefix.valid_s.to_be_bytes());
            out.extend_from_slice(&prefix.preferred_s.to_be_bytes());
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&prefix.address.octets());
        }
        let servers = &one.servers[..one.servers.len().min(127)];
        if !servers.is_empty() {
            out.extend_from_slice(&[25, 1 + 2 * servers.len() as u8, 0, 0]);
            out.extend_from_slice(&one.names_s.to_be_bytes());
            for server in servers {
                out.extend_from_slice(&server.octets());
            }
        }
        let units = 1 + one.search.len().div_ceil(8);
        if !one.search.is_empty() && units <= 255 {
            out.extend_from_slice(&[31, units as u8, 0, 0]);
            out.extend_from_slice(&one.names_s.to_be_bytes());
            out.extend_from_slice(one.search);
            out.resize(out.len() + (units - 1) * 8 - one.search.len(), 0);
        }
    });
}

/// Appends a Router Solicitation as an IPv6 packet (section 4.1).
pub fn write_solicitation(source: Ipv6Addr, out: &mut Vec<u8>) {
    write_icmp([source, ALL_ROUTERS], HOP_LIMIT, out, |out| {
        out.extend_from_slice(&[ROUTER_SOLICITATION, 0, 0, 0, 0, 0, 0, 0]);
    });
}

/// Appends a Neighbour Advertisement about `target` as an IPv6 packet, with the Router flag and these flags (section
/// 4.4).
pub fn write_neighbor(
    addresses: [Ipv6Addr; 2],
    target: Ipv6Addr,
    solicited: bool,
    out: &mut Vec<u8>,
) {
    write_icmp(addresses, HOP_LIMIT, out, |out| {
        let flags = 0x80 | u8::from(solicited) << 6 | 0x20;
        out.extend_from_slice(&[NEIGHBOR_ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0]);
        out.extend_from_slice(&target.octets());
    });
}
