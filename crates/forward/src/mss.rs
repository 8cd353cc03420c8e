//! Lowers the maximum segment size in TCP's SYN (RFC 9293 section 3.7.1) to the MTU of a subscriber's link.
//!
//! Path MTU discovery (RFC 1191) fails where a firewall drops ICMP (RFC 2923 section 2.1). So access networks with an
//! MTU below Ethernet's lower the option in both directions. It is never raised or added: without it a segment has at
//! most 536 or 1220 bytes anyway.

use wire::ip::Header;
use wire::tcp;

use crate::checksum;

/// The state of a packet's transport checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sum {
    /// Complete, as on a wire.
    Complete,
    /// Of the pseudo header only, to be completed by the sender. A TUN device may return such packets.
    Partial,
}

/// The largest segment that fits into one packet of `mtu` octets without options of IP and TCP: RFC 9293 section 3.7.1,
/// RFC 6691. MTUs below the IP minimum (68 for IPv4, RFC 791; 1280 for IPv6, RFC 8200) are treated as the minimum.
#[inline]
#[must_use]
pub const fn segment_max(version: u8, mtu: u16) -> u16 {
    match version {
        4 if mtu < 68 => 68 - 40,
        4 => mtu - 40,
        _ if mtu < 1280 => 1280 - 60,
        _ => mtu - 60,
    }
}

/// Whether [`clamp`] handles a packet: a SYN or SYN+ACK, whole or a first fragment.
#[inline]
#[must_use]
pub const fn is_syn(header: &Header) -> bool {
    const SYN: u8 = tcp::Flags::SYN.0 as u8;
    // The flags are 0 unless it is TCP and its header was read.
    header.tcp_flags & SYN != 0
}

/// Lowers the maximum segment size of a SYN or SYN+ACK to fit `mtu` bytes, and updates the checksum. Returns whether it
/// changed the packet. Any other packet costs one comparison.
#[inline]
pub fn clamp(header: &Header, packet: &mut [u8], mtu: u16, sum: Sum) -> bool {
    is_syn(header) && clamp_syn(header, packet, mtu, sum)
}

#[cold]
fn clamp_syn(header: &Header, packet: &mut [u8], mtu: u16, sum: Sum) -> bool {
    let content = usize::from(header.header_length)..header.total_length as usize;
    let Some(segment) = packet.get_mut(content) else {
        return false;
    };
    let Some(&offset) = segment.get(12) else {
        return false;
    };
    // A first fragment may end inside of the options.
    let end = (usize::from(offset >> 4) * 4).min(segment.len());
    let most = segment_max(header.version, mtu);
    let mut lowered = false;
    let mut at = 20;
    while at < end {
        let length = match (segment[at], segment[..end].get(at + 1)) {
            (0, _) => break,
            (1, _) => 1,
            (_, Some(&length)) if length >= 2 => usize::from(length),
            _ => break,
        };
        if segment[at] == 2 && length == 4 && at + 4 <= end {
            lowered |= lower(segment, at + 2, most, sum);
        }
        at += length;
    }
    lowered
}

/// Lowers the value at octet `at` of a segment.
fn lower(segment: &mut [u8], at: usize, most: u16, sum: Sum) -> bool {
    let value = u16::from_be_bytes([segment[at], segment[at + 1]]);
    if value <= most {
        return false;
    }
    segment[at..at + 2].copy_from_slice(&most.to_be_bytes());
    if sum == Sum::Complete {
        // At an odd place a value's octets are halves of two words, each in the other's place; sums do not mind the
        // order of octets (RFC 1071 section 2, B).
        let place = |value: u16| {
            if at.is_multiple_of(2) {
                value
            } else {
                value.swap_bytes()
            }
        };
        let before = u16::from_be_bytes([segment[16], segment[17]]);
        let after = checksum::changed(before, place(value), place(most));
        segment[16..18].copy_from_slice(&after.to_be_bytes());
    }
    true
}

#[cfg(test)]
mod tests;
