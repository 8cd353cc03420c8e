//! The log as a capture file: pcapng (draft-ietf-opsawg-pcapng), raw IP, nanosecond
//! times, one interface.
//!
//! The format is pcapng because it has a comment for each packet: the file also contains lost datagrams, and the
//! comment says that they were lost.

use std::net::{IpAddr, SocketAddr};

use crate::{Fate, Record};

/// LINKTYPE_RAW: the packet begins with its IPv4 or IPv6 header.
const LINK_TYPE_RAW: u16 = 101;
const PROTOCOL_UDP: u8 = 17;
const HOP_LIMIT: u8 = 64;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const OPTION_TIME_RESOLUTION: u16 = 9;

/// The length of the IP and UDP headers before a payload.
pub(crate) fn header_bytes(to: SocketAddr) -> usize {
    if to.is_ipv4() { 28 } else { 48 }
}

/// The longest payload that fits: 65,535 is the longest UDP datagram, and for IPv4 the
/// longest packet.
pub(crate) fn payload_max(to: SocketAddr) -> usize {
    65_535 - if to.is_ipv4() { 28 } else { 8 }
}

/// The records as the bytes of a pcapng file, stamped with the time of sending.
///
/// Datagrams that never left their node ([`Fate::BadRoute`], [`Fate::TooLong`]) are left out.
pub(crate) fn pcapng<'a>(records: impl Iterator<Item = (&'a Record, String)>) -> Vec<u8> {
    let mut file = Vec::new();
    let mut body = Vec::new();
    body.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
    body.extend_from_slice(&1_u16.to_le_bytes()); // version 1.0
    body.extend_from_slice(&0_u16.to_le_bytes());
    body.extend_from_slice(&u64::MAX.to_le_bytes()); // section length not given
    block(&mut file, SECTION_HEADER, &body);

    body.clear();
    body.extend_from_slice(&LINK_TYPE_RAW.to_le_bytes());
    body.extend_from_slice(&[0; 2]);
    body.extend_from_slice(&0_u32.to_le_bytes()); // no snap length
    option(&mut body, OPTION_TIME_RESOLUTION, &[9]);
    option(&mut body, OPTION_END, &[]);
    block(&mut file, INTERFACE_DESCRIPTION, &body);

    for (record, comment) in records {
        if matches!(record.fate, Fate::BadRoute | Fate::TooLong) {
            continue;
        }
        let packet = ip_packet(record.from, record.to, &record.bytes);
        let len = (packet.len() as u32).to_le_bytes();
        let ns = record.sent.as_nanos();
        body.clear();
        body.extend_from_slice(&0_u32.to_le_bytes()); // interface
        body.extend_from_slice(&((ns >> 32) as u32).to_le_bytes());
        body.extend_from_slice(&(ns as u32).to_le_bytes());
        body.extend_from_slice(&len);
        body.extend_from_slice(&len);
        body.extend_from_slice(&packet);
        pad(&mut body);
        option(&mut body, OPTION_COMMENT, comment.as_bytes());
        option(&mut body, OPTION_END, &[]);
        block(&mut file, ENHANCED_PACKET, &body);
    }
    file
}

fn block(file: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let total = (body.len() as u32 + 12).to_le_bytes();
    file.extend_from_slice(&kind.to_le_bytes());
    file.extend_from_slice(&total);
    file.extend_from_slice(body);
    file.extend_from_slice(&total);
}

/// Appends an option; a value too long for its length field is cut.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let len = u16::try_from(value.len()).unwrap_or(u16::MAX);
    body.extend_from_slice(&code.to_le_bytes());
    body.extend_from_slice(&len.to_le_bytes());
    body.extend_from_slice(&value[..usize::from(len)]);
    pad(body);
}

/// Every block's body, options included, is padded to 32 bits.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

/// IP and UDP headers with their checksums, and the payload.
fn ip_packet(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let udp_len = (payload.len() + 8) as u16;
    let mut packet = Vec::with_capacity(payload.len() + header_bytes(to));
    // The addresses, protocol and length that the UDP checksum covers (RFC 768, RFC 8200 8.1).
    let mut pseudo = Vec::with_capacity(36);
    match (from.ip(), to.ip()) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            packet.extend_from_slice(&[0x60, 0, 0, 0]);
            packet.extend_from_slice(&udp_len.to_be_bytes());
            packet.extend_from_slice(&[PROTOCOL_UDP, HOP_LIMIT]);
            packet.extend_from_slice(&source.octets());
            packet.extend_from_slice(&destination.octets());
            pseudo.extend_from_slice(&packet[8..40]);
        }
        (source, destination) => {
            let octets = |ip| {
                if let IpAddr::V4(ip) = ip {
                    ip.octets()
                } else {
                    [0; 4]
                }
            };
            packet.extend_from_slice(&[0x45, 0]);
            packet.extend_from_slice(&(udp_len + 20).to_be_bytes());
            packet.extend_from_slice(&[0, 0, 0, 0, HOP_LIMIT, PROTOCOL_UDP, 0, 0]);
            packet.extend_from_slice(&octets(source));
            packet.extend_from_slice(&octets(destination));
            let sum = checksum(&[&packet]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            pseudo.extend_from_slice(&packet[12..20]);
        }
    }
    pseudo.extend_from_slice(&[0, PROTOCOL_UDP]);
    pseudo.extend_from_slice(&udp_len.to_be_bytes());
    let mut udp = Vec::with_capacity(8);
    udp.extend_from_slice(&from.port().to_be_bytes());
    udp.extend_from_slice(&to.port().to_be_bytes());
    udp.extend_from_slice(&udp_len.to_be_bytes());
    // 0 would say that there is no checksum (RFC 768).
    let sum = match checksum(&[&pseudo, &udp, payload]) {
        0 => 0xffff,
        sum => sum,
    };
    udp.extend_from_slice(&sum.to_be_bytes());
    packet.extend_from_slice(&udp);
    packet.extend_from_slice(payload);
    packet
}

/// The Internet checksum (RFC 1071) over `parts`, all but the last of even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let sum: u64 = words
        .map(|w| u64::from(w[0]) << 8 | w.get(1).map_or(0, |b| u64::from(*b)))
        .sum();
    let mut folded = sum;
    while folded > 0xffff {
        folded = (folded & 0xffff) + (folded >> 16);
    }
    !(folded as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr;

    #[test]
    fn headers_are_as_the_rfcs_write_them() {
        // By hand: the 16-bit words of the IP header add up to 0x20932, folded 0x0934; those of
        // the pseudo-header and the datagram to 0x1f9db, folded 0xf9dc.
        let packet = ip_packet(addr("192.0.2.1:1701"), addr("192.0.2.2:1701"), b"hi");
        assert_eq!(
            packet,
            [
                0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0xf6, 0xcb, 192, 0, 2, 1, 192, 0, 2, 2, //
                0x06, 0xa5, 0x06, 0xa5, 0, 10, 0x06, 0x23, b'h', b'i',
            ]
        );
        // A receiver's sum over all of it, checksum included, is 0xffff.
        assert_eq!(checksum(&[&packet[..20]]), 0);
        let pseudo = [&packet[12..20], &[0, 17, 0, 10]].concat();
        assert_eq!(checksum(&[&pseudo, &packet[20..]]), 0);

        let packet = ip_packet(addr("[2001:db8::1]:1701"), addr("[2001:db8::2]:9"), b"odd");
        assert_eq!(packet[..8], [0x60, 0, 0, 0, 0, 11, 17, 64]);
        let pseudo = [&packet[8..40], &[0, 17, 0, 11]].concat();
        assert_eq!(checksum(&[&pseudo, &packet[40..]]), 0);
    }
}
