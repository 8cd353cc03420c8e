//! Finds the packet behind a tunnel's header.
//!
//! The two ends of an L2TPv3 session agree at its start on what follows the session ID: a cookie of zero to
//! eight octets, an L2-specific sublayer of four octets or none, PPP or Ethernet. This module has not seen that
//! agreement, so it picks the layout that fits exactly.

use super::Flow;
use super::header::{GRE, IPV4, IPV6, L2TP, L2TP_PORT, UDP, VXLAN_PORT, be16};

pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// PPPoE's session stage (RFC 2516 5).
const ETHERTYPE_PPPOE: u16 = 0x8864;
/// Transparent Ethernet bridging: GRE's type for Ethernet frames.
const ETHERTYPE_BRIDGING: u16 = 0x6558;
/// PPP in GRE (RFC 2637 4.1).
const ETHERTYPE_PPTP: u16 = 0x880b;

/// How many VLAN tags are skipped.
const TAGS_MAX: usize = 4;

/// What a tunnel carries.
#[derive(Debug, Clone, Copy)]
pub(super) enum Inside<'a> {
    /// An IPv4 packet, according to the tunnel.
    Ipv4(&'a [u8]),
    /// An IPv6 packet, according to the tunnel.
    Ipv6(&'a [u8]),
    /// Something else, or not a tunnel.
    Other,
    /// The packet ends within the tunnel's own headers.
    Cut,
}

/// Whether a tunnel can follow this header.
#[inline(always)]
pub(super) fn may_be(flow: &Flow) -> bool {
    match flow.protocol {
        IPV4 | IPV6 | GRE | L2TP => true,
        UDP => {
            flow.source_port == L2TP_PORT || matches!(flow.destination_port, L2TP_PORT | VXLAN_PORT)
        }
        _ => false,
    }
}

/// Whether Linux's flow classifier looks behind this protocol: IP in IP and GRE.
pub(super) fn kernel_looks_into(protocol: u32) -> bool {
    matches!(protocol, IPV4 | IPV6 | GRE)
}

/// The content after a header that [`may_be`] followed by a tunnel.
#[inline]
pub(super) fn inside<'a>(flow: &Flow, content: &'a [u8]) -> Inside<'a> {
    match flow.protocol {
        IPV4 => Inside::Ipv4(content),
        IPV6 => Inside::Ipv6(content),
        GRE => gre(content),
        L2TP => l2tp_v3(content),
        UDP if flow.destination_port == VXLAN_PORT => vxlan(content),
        UDP => l2tp_over_udp(content),
        _ => Inside::Other,
    }
}

/// GRE version 0, or version 1 (PPTP).
fn gre(content: &[u8]) -> Inside<'_> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGMENT: u16 = 0x0080;
    const VERSION: u16 = 0x0007;
    let Some(head) = content.first_chunk::<4>() else {
        return Inside::Cut;
    };
    let (flags, kind) = (be16(head, 0), be16(head, 2));
    let optional = |flag: u16| usize::from(flags & flag != 0) * 4;
    let length = 4 + optional(CHECKSUM) + optional(KEY) + optional(SEQUENCE);
    match flags & VERSION {
        0 if flags & ROUTING == 0 => match content.get(length..) {
            Some(payload) => typed(kind, payload),
            None => Inside::Cut,
        },
        // Without a sequence number it is only an acknowledgment.
        1 if kind == ETHERTYPE_PPTP && flags & SEQUENCE != 0 => {
            match content.get(length + optional(ACKNOWLEDGMENT)..) {
                Some(payload) => ppp(payload),
                None => Inside::Cut,
            }
        }
        _ => Inside::Other,
    }
}

/// The content that an EtherType announces.
#[inline]
fn typed(kind: u16, payload: &[u8]) -> Inside<'_> {
    match kind {
        ETHERTYPE_IPV4 => Inside::Ipv4(payload),
        ETHERTYPE_IPV6 => Inside::Ipv6(payload),
        ETHERTYPE_BRIDGING => ethernet(payload, &mut None),
        _ => Inside::Other,
    }
}

/// An Ethernet frame; `vlan` is set to the identifier of its first tag.
pub(super) fn ethernet<'a>(frame: &'a [u8], vlan: &mut Option<u16>) -> Inside<'a> {
    let Some((head, mut rest)) = frame.split_first_chunk::<14>() else {
        return Inside::Cut;
    };
    let mut kind = be16(head, 12);
    for _ in 0..TAGS_MAX {
        // 802.1Q, 802.1ad, and two older values.
        if !matches!(kind, 0x8100 | 0x88a8 | 0x9100 | 0x9200) {
            break;
        }
        let Some((tag, payload)) = rest.split_first_chunk::<4>() else {
            return Inside::Cut;
        };
        vlan.get_or_insert(be16(tag, 0) & 0x0fff);
        kind = be16(tag, 2);
        rest = payload;
    }
    match kind {
        ETHERTYPE_IPV4 => Inside::Ipv4(rest),
        ETHERTYPE_IPV6 => Inside::Ipv6(rest),
        ETHERTYPE_PPPOE => match rest.split_first_chunk::<6>() {
            Some(([0x11, 0x00, ..], payload)) => ppp(payload),
            Some(_) => Inside::Other,
            None => Inside::Cut,
        },
        _ => Inside::Other,
    }
}

/// A PPP frame (RFC 1661), starting at its address field or its protocol field, which may be compressed to one
/// octet (6.5).
#[inline]
fn ppp(frame: &[u8]) -> Inside<'_> {
    let frame = frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame);
    match frame {
        [0x21, packet @ ..] | [0x00, 0x21, packet @ ..] => Inside::Ipv4(packet),
        [0x57, packet @ ..] | [0x00, 0x57, packet @ ..] => Inside::Ipv6(packet),
        [] | [0x00] | [0xff] => Inside::Cut,
        _ => Inside::Other,
    }
}

/// A UDP datagram to VXLAN's port: eight octets of header, then an Ethernet frame (RFC 7348 5).
#[inline]
fn vxlan(datagram: &[u8]) -> Inside<'_> {
    /// The identifier of the network is valid; a receiver ignores the other bits, which are reserved.
    const IDENTIFIER: u8 = 0x08;
    let Some((head, frame)) = datagram.split_first_chunk::<16>() else {
        return Inside::Cut;
    };
    match head[8] & IDENTIFIER {
        0 => Inside::Other,
        _ => ethernet(frame, &mut None),
    }
}

/// A UDP datagram on L2TP's port.
#[inline]
fn l2tp_over_udp(datagram: &[u8]) -> Inside<'_> {
    const CONTROL: u16 = 0x8000;
    const VERSION: u16 = 0x000f;
    let Some((head, rest)) = datagram.split_first_chunk::<10>() else {
        return Inside::Cut;
    };
    let flags = be16(head, 8);
    match flags & (CONTROL | VERSION) {
        2 => l2tp_v2(flags, rest),
        3 => rest.get(2..).map_or(Inside::Cut, l2tp_v3),
        _ => Inside::Other,
    }
}

/// A data message of version 2, after its flags (RFC 2661 3.1).
#[inline]
fn l2tp_v2(flags: u16, message: &[u8]) -> Inside<'_> {
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    let mut length = 4;
    if flags & LENGTH != 0 {
        length += 2;
    }
    if flags & SEQUENCE != 0 {
        length += 4;
    }
    if flags & OFFSET != 0 {
        match message.get(length..length + 2) {
            Some(&[a, b]) => length += 2 + usize::from(u16::from_be_bytes([a, b])),
            _ => return Inside::Cut,
        }
    }
    message.get(length..).map_or(Inside::Cut, ppp)
}

/// A version 3 message from its session ID on; control messages have 0 there (RFC 3931 4.1).
fn l2tp_v3(message: &[u8]) -> Inside<'_> {
    /// A cookie of 0, 4 or 8 octets and a sublayer of 0 or 4.
    const BEFORE_PAYLOAD: [usize; 4] = [0, 4, 8, 12];
    let Some((session, rest)) = message.split_first_chunk::<4>() else {
        return Inside::Cut;
    };
    if *session == [0; 4] {
        return Inside::Other;
    }
    for before in BEFORE_PAYLOAD {
        let Some(payload) = rest.get(before..) else {
            break;
        };
        let inside = ppp(payload);
        if fits(inside, 0) {
            return inside;
        }
        // A short frame may be padded to 64 octets; a longer one may still have its FCS.
        let padding_max = if payload.len() <= 64 { 46 } else { 4 };
        let inside = ethernet(payload, &mut None);
        if fits(inside, padding_max) {
            return inside;
        }
    }
    Inside::Other
}

/// Whether it is a packet of the announced version, with at most `padding_max` octets after it.
#[inline]
fn fits(inside: Inside<'_>, padding_max: usize) -> bool {
    let (packet, length) = match inside {
        Inside::Ipv4(packet) => match packet.first_chunk::<20>() {
            Some(head) if head[0] >> 4 == 4 && head[0] & 0x0f >= 5 => {
                (packet, usize::from(be16(head, 2)))
            }
            _ => return false,
        },
        Inside::Ipv6(packet) => match packet.first_chunk::<40>() {
            Some(head) if head[0] >> 4 == 6 => (packet, usize::from(be16(head, 4)) + 40),
            _ => return false,
        },
        Inside::Other | Inside::Cut => return false,
    };
    packet
        .len()
        .checked_sub(length)
        .is_some_and(|padding| padding <= padding_max)
}
