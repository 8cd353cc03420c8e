//! Errors that a router sends: ICMP (RFC 792, RFC 1812 sections 4.3 and 5.2.7, RFC 1191) and ICMPv6 (RFC 4443).
//!
//! [`write()`] writes an error, or returns why none is due. [`Sender`] adds a rate limit and counters. Left out: echo,
//! which is answered elsewhere; Redirect, Parameter Problem and Source Quench (RFC 6633), which are not sent;
//! extensions (RFC 4884); reversed source routes (RFC 1812 section 4.3.2.6).

mod rate;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, Ipv6Addr};

use base::Instant;
use wire::ip::Header;
use wire::packet::Fragment;
use wire::{checksum, icmp};

use crate::check;
use crate::discard::Discard;

pub use rate::{Bucket, Rate};

/// Octets of the longest message with its IP header: IPv6's least MTU (RFC 4443 section 2.4 c).
pub const LENGTH_MAX: usize = 1280;
/// Octets of the longest over IPv4 (RFC 1812 section 4.3.2.3).
pub const LENGTH_MAX_V4: usize = 576;

const HEADER: usize = 8;

/// The edge's own addresses, the sources of errors. Unspecified means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Local {
    /// IPv4 address.
    pub v4: Ipv4Addr,
    /// IPv6 address.
    pub v6: Ipv6Addr,
}

/// An ICMP error to a packet's sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Error {
    /// There is no route to the network.
    NetUnreachable,
    /// The network is here, but no subscriber has the address.
    HostUnreachable,
    /// A filter forbids it.
    Prohibited,
    /// The destination is beyond what a link-local source may reach; over IPv4, a host that is unreachable.
    BeyondScope,
    /// Its TTL or hop limit is used up.
    TimeExceeded,
    /// It does not fit, and may not be fragmented; the MTU that it has to fit.
    TooBig(u16),
}

impl Error {
    /// The error that the sender of a discarded packet gets, if any. There is none for an invalid packet or one with an
    /// impossible source or destination (RFC 1812 sections 5.2.2 and 4.3.2.7), nor for a spoofed source (section
    /// 5.3.8). For a packet that is too big, the caller makes [`Error::TooBig`], because it knows the MTU.
    #[must_use]
    pub const fn of(discard: Discard) -> Option<Self> {
        match discard {
            Discard::HopLimit => Some(Self::TimeExceeded),
            Discard::NoRoute => Some(Self::HostUnreachable),
            Discard::BeyondScope => Some(Self::BeyondScope),
            Discard::Truncated
            | Discard::Version
            | Discard::HeaderLength
            | Discard::TotalLength
            | Discard::Extensions
            | Discard::Checksum
            | Discard::FragmentEnd
            | Discard::MartianSource
            | Discard::MartianDestination
            | Discard::Multicast
            | Discard::Spoofed
            | Discard::TooBig => None,
        }
    }

    /// Type and code: RFC 792 and RFC 1812 section 5.2.7.1, or RFC 4443 section 3.
    const fn number(self, version: u8) -> [u8; 2] {
        match (self, version) {
            (Self::NetUnreachable, 4) => [3, 0],
            (Self::HostUnreachable | Self::BeyondScope, 4) => [3, 1],
            (Self::TooBig(_), 4) => [3, 4],
            (Self::Prohibited, 4) => [3, 13],
            (Self::TimeExceeded, 4) => [11, 0],
            (Self::NetUnreachable, _) => [1, 0],
            (Self::Prohibited, _) => [1, 1],
            (Self::BeyondScope, _) => [1, 2],
            (Self::HostUnreachable, _) => [1, 3],
            (Self::TooBig(_), _) => [2, 0],
            (Self::TimeExceeded, _) => [3, 0],
        }
    }

    /// The MTU field of either version, in the low 16 bits.
    const fn rest(self) -> [u8; 4] {
        match self {
            Self::TooBig(mtu) => (mtu as u32).to_be_bytes(),
            Self::NetUnreachable
            | Self::HostUnreachable
            | Self::Prohibited
            | Self::BeyondScope
            | Self::TimeExceeded => [0; 4],
        }
    }
}

/// Why no error is sent (RFC 1812 section 4.3.2.7, RFC 4443 section 2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Silence {
    /// The packet is an ICMP error, or may be one.
    AboutAnError,
    /// The packet was not for one destination alone.
    Multicast,
    /// The packet's source names no one host, or names us.
    Source,
    /// The packet is a fragment other than the first of IPv4.
    Fragment,
    /// We have no address to send from.
    NoAddress,
    /// The rate limit is reached.
    Limited,
}

impl Silence {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::AboutAnError,
        Self::Multicast,
        Self::Source,
        Self::Fragment,
        Self::NoAddress,
        Self::Limited,
    ];

    /// Its name in counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AboutAnError => "about_an_error",
            Self::Multicast => "multicast",
            Self::Source => "source",
            Self::Fragment => "fragment",
            Self::NoAddress => "no_address",
            Self::Limited => "limited",
        }
    }
}

/// Whether an error of this kind about a packet with this header may be sent, apart from the rate.
///
/// # Errors
/// Why not.
pub fn may_send(error: Error, header: &Header, local: &Local) -> Result<(), Silence> {
    if header.version == 4 {
        may_send_v4(header, local)
    } else {
        may_send_v6(error, header, local)
    }
}

fn may_send_v4(header: &Header, local: &Local) -> Result<(), Silence> {
    let (source, destination) = (header.source as u32, header.destination as u32);
    if header.fragment == Fragment::Later {
        return Err(Silence::Fragment);
    }
    // Queries and replies (RFC 1122 section 3.2.2; RFC 8335). Unknown types may be errors.
    let queries = |kind: u8| matches!(kind, 0 | 8 | 9 | 10 | 13..=18 | 42 | 43);
    if header.protocol == icmp::PROTOCOL && !header.icmp().is_some_and(|(kind, _)| queries(kind)) {
        return Err(Silence::AboutAnError);
    }
    if matches!(destination >> 24, 0 | 224..) {
        return Err(Silence::Multicast);
    }
    if check::is_martian_v4(source) || source == local.v4.to_bits() {
        return Err(Silence::Source);
    }
    if local.v4.is_unspecified() {
        return Err(Silence::NoAddress);
    }
    Ok(())
}

fn may_send_v6(error: Error, header: &Header, local: &Local) -> Result<(), Silence> {
    const REDIRECT: u8 = 137;
    let informs = |kind: u8| kind >= 128 && kind != REDIRECT;
    if header.protocol == icmp::PROTOCOL_V6 && !header.icmp().is_some_and(|(kind, _)| informs(kind))
    {
        return Err(Silence::AboutAnError);
    }
    // RFC 4443 section 2.4 e.3: a Packet Too Big is sent about multicast too.
    if check::is_multicast_v6(header.destination) && !matches!(error, Error::TooBig(_)) {
        return Err(Silence::Multicast);
    }
    if check::is_martian_v6(header.source) || header.source == local.v6.to_bits() {
        return Err(Silence::Source);
    }
    if local.v6.is_unspecified() {
        return Err(Silence::NoAddress);
    }
    Ok(())
}

/// Writes an error about a packet, IP header included, to `out` and returns its length. A caller that needs headroom
/// passes the part of its buffer behind it.
///
/// # Errors
/// Why none is sent; nothing was written. Only [`Sender`] returns [`Silence::Limited`].
pub fn write(
    error: Error,
    header: &Header,
    packet: &[u8],
    local: &Local,
    out: &mut [u8; LENGTH_MAX],
) -> Result<usize, Silence> {
    may_send(error, header, local)?;
    let packet = &packet[..packet.len().min(header.total_length as usize)];
    let (ip_length, most) = match header.version {
        4 => (20, LENGTH_MAX_V4),
        _ => (40, LENGTH_MAX),
    };
    let quoted = &packet[..packet.len().min(most - ip_length - HEADER)];
    let length = ip_length + HEADER + quoted.len();
    let (ip, message) = out[..length].split_at_mut(ip_length);
    message[..2].copy_from_slice(&error.number(header.version));
    message[2..4].fill(0);
    message[4..8].copy_from_slice(&error.rest());
    message[HEADER..].copy_from_slice(quoted);
    let addresses = if header.version == 4 {
        header_v4(ip, length, header, local);
        0
    } else {
        header_v6(ip, message.len(), header, local);
        let length = message.len() as u32 + u32::from(icmp::PROTOCOL_V6);
        u32::from(checksum::sum(&ip[8..40])) + length
    };
    let total = addresses + u32::from(checksum::sum(message));
    let total = (total >> 16) + (total & 0xffff);
    let sum = !((total >> 16) + total) as u16;
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    Ok(length)
}

const HOPS: u8 = 64;

/// The precedence of network control (RFC 1812 section 4.3.2.5) with the packet's type of service, but without its ECN
/// bits, which RFC 1812 did not know.
const fn traffic_class(header: &Header) -> u8 {
    0xc0 | header.traffic_class & 0x1c
}

/// An IPv4 header that needs no identification, since it may not be fragmented (RFC 6864 section 4).
fn header_v4(out: &mut [u8], length: usize, header: &Header, local: &Local) {
    out[..2].copy_from_slice(&[0x45, traffic_class(header)]);
    out[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    out[4..12].copy_from_slice(&[0, 0, 0x40, 0, HOPS, icmp::PROTOCOL, 0, 0]);
    out[12..16].copy_from_slice(&local.v4.octets());
    out[16..20].copy_from_slice(&(header.source as u32).to_be_bytes());
    let sum = !checksum::sum(&out[..20]);
    out[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn header_v6(out: &mut [u8], length: usize, header: &Header, local: &Local) {
    let first = 0x6000_0000 | u32::from(traffic_class(header)) << 20;
    out[..4].copy_from_slice(&first.to_be_bytes());
    out[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    out[6..8].copy_from_slice(&[icmp::PROTOCOL_V6, HOPS]);
    out[8..24].copy_from_slice(&local.v6.octets());
    out[24..40].copy_from_slice(&header.source.to_be_bytes());
}

/// Writes errors within a rate, and counts them.
#[derive(Debug, Clone)]
pub struct Sender {
    /// Their sources.
    pub local: Local,
    /// The rate for each [`Bucket`].
    pub rate: Rate,
    sent: u64,
    silent: [u64; Silence::ALL.len()],
}

impl Sender {
    /// A sender with all counters at zero.
    #[must_use]
    pub const fn new(local: Local, rate: Rate) -> Self {
        Self {
            local,
            rate,
            sent: 0,
            silent: [0; Silence::ALL.len()],
        }
    }

    /// As [`write()`], within the rate of `bucket`. With a bucket for each subscriber, none uses up the rate of others.
    ///
    /// # Errors
    /// Why none is sent; it was counted.
    pub fn write(
        &mut self,
        error: Error,
        header: &Header,
        packet: &[u8],
        bucket: &mut Bucket,
        now: Instant,
        out: &mut [u8; LENGTH_MAX],
    ) -> Result<usize, Silence> {
        let result = may_send(error, header, &self.local)
            .and_then(|()| {
                bucket
                    .take(&self.rate, now)
                    .then_some(())
                    .ok_or(Silence::Limited)
            })
            .and_then(|()| write(error, header, packet, &self.local, out));
        match result {
            Ok(_) => self.sent += 1,
            Err(why) => self.silent[why as usize] += 1,
        }
        result
    }

    /// Number of errors sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Number of errors not sent for this reason.
    #[must_use]
    pub const fn silent(&self, why: Silence) -> u64 {
        self.silent[why as usize]
    }
}
