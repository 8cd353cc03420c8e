//! Reads IP headers and the ports behind them.

use super::Flow;
use crate::ip;

/// Why nothing can be read after a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// A header is truncated or contradictory.
    Cut,
    /// The header is a fragment's, so the next header may be absent.
    Fragment,
}

/// The bytes after a header, up to the end that the header states.
pub(super) type Content<'a> = Result<&'a [u8], End>;

pub(super) const IPV4: u32 = 4;
const TCP: u32 = 6;
pub(super) const UDP: u32 = 17;
pub(super) const IPV6: u32 = 41;
pub(super) const GRE: u32 = 47;
pub(super) const L2TP: u32 = 115;

const FRAGMENT: u32 = ip::FRAGMENT as u32;
const AUTHENTICATION: u32 = ip::AUTHENTICATION as u32;

/// L2TP's UDP port (RFC 2661 8.1), where tunnels begin.
pub(super) const L2TP_PORT: u16 = 1701;
/// VXLAN's destination port (RFC 7348 5); the source port is a hash of the frame inside.
pub(super) const VXLAN_PORT: u16 = 4789;

/// The 16-bit number at an octet that exists.
#[inline(always)]
pub(super) fn be16<const N: usize>(octets: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

/// Whether a packet can be read in one go: complete IPv4 without options, carrying TCP, or UDP that is not a
/// tunnel.
#[inline(always)]
pub(super) fn is_plain(head: &[u8; 24]) -> bool {
    head[0] == 0x45
        && be16(head, 6) & 0x3fff == 0
        && be16(head, 2) >= 24
        && (u32::from(head[9]) == TCP
            || u32::from(head[9]) == UDP
                && be16(head, 20) != L2TP_PORT
                && !matches!(be16(head, 22), L2TP_PORT | VXLAN_PORT))
}

/// Reads a packet that [`is_plain`].
#[inline(always)]
pub(super) fn plain(head: &[u8; 24], flow: &mut Flow) {
    flow.protocol = u32::from(head[9]);
    flow.source = mapped([head[12], head[13], head[14], head[15]]);
    flow.destination = mapped([head[16], head[17], head[18], head[19]]);
    set_ports([head[20], head[21], head[22], head[23]], flow);
}

/// Writes both ports in one store: a read directly after stores of a different width stalls.
#[inline(always)]
fn set_ports(ports: [u8; 4], flow: &mut Flow) {
    let ports = u32::from_be_bytes(ports);
    flow.source_port = (ports >> 16) as u16;
    flow.destination_port = ports as u16;
}

/// An IPv4 address as an IPv6 one (RFC 4291 2.5.5.2).
#[inline(always)]
fn mapped(address: [u8; 4]) -> [u8; 16] {
    // One number in one store, for the same reason.
    let low = u64::from(u32::from_le_bytes(address)) << 32 | 0xffff_0000;
    let mut mapped = [0; 16];
    mapped[8..].copy_from_slice(&low.to_le_bytes());
    mapped
}

/// Reads an IPv4 header into `flow`, as far as it is valid.
#[inline]
pub(super) fn ipv4<'a>(packet: &'a [u8], flow: &mut Flow, traffic_class: &mut u8) -> Content<'a> {
    let head = packet.first_chunk::<20>().ok_or(End::Cut)?;
    let header_length = usize::from(head[0] & 0x0f) * 4;
    let total = match be16(head, 2) {
        // A segment that the network card will split.
        0 => packet.len(),
        total => usize::from(total),
    };
    if head[0] >> 4 != 4 || header_length < 20 || total < header_length {
        return Err(End::Cut);
    }
    *traffic_class = head[1];
    *flow = Flow {
        source: mapped([head[12], head[13], head[14], head[15]]),
        destination: mapped([head[16], head[17], head[18], head[19]]),
        source_port: 0,
        destination_port: 0,
        protocol: u32::from(head[9]),
    };
    if be16(head, 6) & 0x3fff != 0 {
        return Err(End::Fragment);
    }
    let content = packet
        .get(header_length..total.min(packet.len()))
        .ok_or(End::Cut)?;
    if flow.protocol == AUTHENTICATION {
        return extensions(4, content, flow);
    }
    ports(content, flow)
}

/// Reads an IPv6 header and its extension headers into `flow`, as far as they are valid.
#[inline]
pub(super) fn ipv6<'a>(packet: &'a [u8], flow: &mut Flow, traffic_class: &mut u8) -> Content<'a> {
    let (head, content) = packet.split_first_chunk::<40>().ok_or(End::Cut)?;
    if head[0] >> 4 != 6 {
        return Err(End::Cut);
    }
    let length = match be16(head, 4) {
        // A jumbogram (RFC 2675), or a segment that the network card will split.
        0 => content.len(),
        length => usize::from(length),
    };
    *traffic_class = head[0] << 4 | head[1] >> 4;
    *flow = Flow {
        source: address::<8>(head),
        destination: address::<24>(head),
        source_port: 0,
        destination_port: 0,
        protocol: u32::from(head[6]),
    };
    let content = content.get(..length).unwrap_or(content);
    if is_extension(flow.protocol) {
        return extensions(6, content, flow);
    }
    ports(content, flow)
}

/// The address at octet `AT` of an IPv6 header.
#[inline(always)]
fn address<const AT: usize>(head: &[u8; 40]) -> [u8; 16] {
    let mut address = [0; 16];
    address.copy_from_slice(&head[AT..AT + 16]);
    address
}

#[inline(always)]
fn is_extension(protocol: u32) -> bool {
    ip::is_extension(protocol as u8)
}

/// Skips AH, and in IPv6 extension headers. A fragment's protocol is the one in its fragment header, so that the first
/// fragment, which alone has further headers, matches the others.
fn extensions<'a>(version: u8, mut content: &'a [u8], flow: &mut Flow) -> Content<'a> {
    for _ in 0..ip::EXTENSIONS_MAX {
        let head = content.first_chunk::<4>().ok_or(End::Cut)?;
        let length = ip::extension_length(flow.protocol as u8, head[1]);
        let rest = content.get(length..).ok_or(End::Cut)?;
        // An atomic fragment, the only one of its datagram (RFC 6946), is not treated as a fragment.
        let is_fragment = flow.protocol == FRAGMENT && be16(head, 2) & 0xfff9 != 0;
        flow.protocol = u32::from(head[0]);
        if is_fragment {
            return Err(End::Fragment);
        }
        if !ip::is_skipped(version, flow.protocol as u8) {
            return ports(rest, flow);
        }
        content = rest;
    }
    Err(End::Cut)
}

/// Reads the ports, if the protocol has any.
#[inline(always)]
fn ports<'a>(content: &'a [u8], flow: &mut Flow) -> Content<'a> {
    if ip::has_ports(flow.protocol as u8) {
        let head = content.first_chunk::<4>().ok_or(End::Cut)?;
        set_ports(*head, flow);
    }
    Ok(content)
}
