//! The Internet checksum (RFC 1071) of IPv4 headers (RFC 791), TCP (RFC 9293
//! 3.1, RFC 8200 8.1) and UDP (RFC 768).
//!
//! A packet captured on its sender often has no valid checksum yet, because the network card fills it in
//! ([`is_partial`]). The destination is taken from the IP header, even if a routing header or source route names
//! another one.

use crate::packet::{Fragment, Packet};
use crate::{tcp, udp};

/// The ones' complement sum of `octets` as 16-bit words in network byte order, with the last octet zero-padded;
/// `0xffff` over data with a valid checksum.
///
/// The sum does not depend on byte order, except that its own bytes swap (RFC 1071 2 B). So this adds 64-bit
/// words in native order, with all their carries.
#[inline]
#[must_use]
pub fn sum(octets: &[u8]) -> u16 {
    let (words, rest) = octets.as_chunks::<8>();
    let mut total = 0_u128;
    for word in words {
        total += u128::from(u64::from_ne_bytes(*word));
    }
    total += u128::from(match octets.last_chunk::<8>() {
        // The remaining octets are at the end of the last word; its other octets are shifted out.
        Some(last) if !rest.is_empty() => {
            (u64::from_le_bytes(*last) >> (64 - 8 * rest.len())).to_le()
        }
        Some(_) => 0,
        None => {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            u64::from_ne_bytes(last)
        }
    });
    let (high, low) = ((total >> 64) as u64, total as u64);
    u16::from_be(fold((low & 0xffff_ffff) + (low >> 32) + high))
}

/// Folds a sum of such sums, or of words, into one. The result is 0 only if every summand is.
#[inline]
#[must_use]
pub const fn fold(total: u64) -> u16 {
    // Each step leaves fewer carries: 33 bits, 18, 17, 16.
    let total = (total >> 32) + (total & 0xffff_ffff);
    let total = (total >> 16) + (total & 0xffff);
    let total = (total >> 16) + (total & 0xffff);
    ((total >> 16) + (total & 0xffff)) as u16
}

/// The sum of the pseudo header for an upper-layer packet of `length` octets. IPv4 (RFC 9293 3.1) and IPv6 (RFC
/// 8200 8.1) differ only in address length.
#[inline]
#[must_use]
pub fn pseudo_sum(addresses: &[u8], protocol: u8, length: usize) -> u16 {
    fold(
        u64::from(sum(addresses))
            + u64::from(protocol)
            + (length as u64 >> 16)
            + (length as u64 & 0xffff),
    )
}

/// Whether an IPv4 header's checksum is right. None if `network` does not hold the whole header, or is not
/// IPv4.
#[must_use]
pub fn ip_ok(network: &[u8]) -> Option<bool> {
    let first = *network.first()?;
    let length = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || length < 20 {
        return None;
    }
    Some(sum(network.get(..length)?) == 0xffff)
}

/// Whether a TCP segment's checksum is right. None for another protocol, a fragment, or a segment not captured
/// whole.
#[must_use]
pub fn tcp_ok(packet: &Packet<'_>) -> Option<bool> {
    if packet.protocol != tcp::PROTOCOL || packet.transport.len() < 20 {
        return None;
    }
    whole(packet).map(|octets| transport_sum(packet, octets) == 0xffff)
}

/// Whether a UDP datagram's checksum is right. None for another protocol, a fragment, a datagram not captured
/// whole, or one over IPv4 without a checksum. Over IPv6 the checksum is mandatory, so a missing one is wrong.
#[must_use]
pub fn udp_ok(packet: &Packet<'_>) -> Option<bool> {
    if packet.protocol != udp::PROTOCOL {
        return None;
    }
    let octets = whole(packet)?;
    let head = octets.first_chunk::<8>()?;
    if head[6..] == [0, 0] {
        return (packet.version == 6).then_some(false);
    }
    let octets = match u16::from_be_bytes([head[4], head[5]]) {
        0 => octets,
        length => octets.get(..usize::from(length))?,
    };
    Some(transport_sum(packet, octets) == 0xffff)
}

/// Whether the checksum of a TCP or UDP packet is only the sum of its pseudo header. A system that leaves the checksum
/// to its network card writes this sum, and the card adds that of header and payload. For large segments that the card
/// splits, some drivers sum a length of 0.
#[must_use]
pub fn is_partial(packet: &Packet<'_>) -> bool {
    let at = match packet.protocol {
        tcp::PROTOCOL => 16,
        udp::PROTOCOL => 6,
        _ => return false,
    };
    let Some([high, low]) = packet.transport.get(at..).and_then(<[u8]>::first_chunk) else {
        return false;
    };
    let found = u16::from_be_bytes([*high, *low]);
    let length = packet.transport_length as usize;
    packet.fragment == Fragment::Whole
        && [length, 0]
            .iter()
            .any(|&length| addresses_sum(packet, length) == found)
}

/// The transport header and payload, if complete.
fn whole<'a>(packet: &Packet<'a>) -> Option<&'a [u8]> {
    let all = packet.fragment == Fragment::Whole
        && packet.transport.len() == packet.transport_length as usize;
    all.then_some(packet.transport)
}

/// The sum over `octets` and the pseudo header.
fn transport_sum(packet: &Packet<'_>, octets: &[u8]) -> u16 {
    fold(u64::from(addresses_sum(packet, octets.len())) + u64::from(sum(octets)))
}

/// The sum over the pseudo header.
fn addresses_sum(packet: &Packet<'_>, length: usize) -> u16 {
    let addresses = if packet.version == 4 { 12 } else { 0 };
    let source = u64::from(sum(&packet.source[addresses..]));
    let rest = pseudo_sum(&packet.destination[addresses..], packet.protocol, length);
    fold(source + u64::from(rest))
}

#[cfg(test)]
mod tests;
