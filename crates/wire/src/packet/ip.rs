//! IPv4 (RFC 791), IPv6 (RFC 8200) and the headers between IPv6 and what it
//! carries: jumbo payload (RFC 2675), AH (RFC 4302), mobility (RFC 6275), HIP
//! (RFC 7401), shim6 (RFC 5533).

use super::{Fragment, Frame, Layer, Packet, Skip, tunnel};
use crate::ip::{AUTHENTICATION, FRAGMENT, HOP_BY_HOP, extension_length, is_skipped};

const NO_NEXT_HEADER: u8 = 59;
/// The IPv6 option that holds a jumbogram's length (RFC 2675 2).
const JUMBO_PAYLOAD: u8 = 0xc2;

/// An IPv4 address as an IPv6 one (RFC 4291 2.5.5.2).
#[inline]
pub(super) fn mapped(address: [u8; 4]) -> [u8; 16] {
    crate::ip::mapped(address).to_be_bytes()
}

/// An IP packet of either version.
pub(super) fn ip<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    match frame.octets.first().ok_or(Skip::Truncated)? >> 4 {
        4 => ipv4(frame, packet),
        6 => ipv6(frame, packet),
        _ => Err(Skip::BadHeader),
    }
}

/// The payload of an IP header.
struct Content<'a> {
    protocol: u8,
    fragment: Fragment,
    frame: Frame<'a>,
}

/// An IPv4 packet.
pub(super) fn ipv4<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let head = frame.octets.first_chunk::<20>().ok_or(Skip::Truncated)?;
    let header_length = u32::from(head[0] & 0x0f) * 4;
    let total = match u16::from_be_bytes([head[2], head[3]]) {
        0 => frame.length,
        total => u32::from(total),
    };
    if head[0] >> 4 != 4 || header_length < 20 || total < header_length {
        return Err(Skip::BadHeader);
    }
    let network = up_to(frame.octets, total);
    let mut content = Content {
        protocol: head[9],
        fragment: match u16::from_be_bytes([head[6], head[7]]) & 0x3fff {
            0 => Fragment::Whole,
            0x2000 => Fragment::First,
            _ => Fragment::Later,
        },
        frame: Frame {
            octets: network.get(header_length as usize..).unwrap_or(&[]),
            length: total - header_length,
        },
    };
    if content.protocol == AUTHENTICATION && content.fragment != Fragment::Later {
        extension_headers(4, &mut content)?;
    }
    let source = [head[12], head[13], head[14], head[15]];
    let destination = [head[16], head[17], head[18], head[19]];
    let outer = Layer::Ipv4 {
        source,
        destination,
    };
    if inside(outer, &content, packet)? {
        return Ok(());
    }
    packet.version = 4;
    packet.traffic_class = head[1];
    packet.hop_limit = head[8];
    packet.id = u16::from_be_bytes([head[4], head[5]]);
    packet.source = mapped(source);
    packet.destination = mapped(destination);
    packet.network = network;
    finish(&content, packet);
    Ok(())
}

/// An IPv6 packet.
pub(super) fn ipv6<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (head, rest) = frame.split::<40>()?;
    if head[0] >> 4 != 6 {
        return Err(Skip::BadHeader);
    }
    let protocol = head[6];
    let length = match u16::from_be_bytes([head[4], head[5]]) {
        0 => jumbo_length(protocol, rest),
        length => u32::from(length),
    };
    let network = up_to(frame.octets, length.saturating_add(40));
    let mut content = Content {
        protocol,
        fragment: Fragment::Whole,
        frame: Frame {
            octets: up_to(rest.octets, length),
            length,
        },
    };
    extension_headers(6, &mut content)?;
    let source = address::<8>(head);
    let destination = address::<24>(head);
    let outer = Layer::Ipv6 {
        source,
        destination,
    };
    if inside(outer, &content, packet)? {
        return Ok(());
    }
    packet.version = 6;
    packet.traffic_class = head[0] << 4 | head[1] >> 4;
    packet.hop_limit = head[7];
    packet.id = 0;
    packet.source = source;
    packet.destination = destination;
    packet.network = network;
    finish(&content, packet);
    Ok(())
}

/// The address at octet `AT` of an IPv6 header.
#[inline]
fn address<const AT: usize>(head: &[u8; 40]) -> [u8; 16] {
    let mut address = [0; 16];
    address.copy_from_slice(&head[AT..AT + 16]);
    address
}

/// At most `length` octets.
#[inline]
fn up_to(octets: &[u8], length: u32) -> &[u8] {
    octets.get(..length as usize).unwrap_or(octets)
}

#[inline]
fn finish<'a>(content: &Content<'a>, packet: &mut Packet<'a>) {
    packet.protocol = content.protocol;
    packet.fragment = content.fragment;
    packet.transport = content.frame.octets;
    packet.transport_length = content.frame.length;
}

/// Looks through a tunnel: true if it carries an IP packet, which is then in `packet`.
#[inline]
fn inside<'a>(outer: Layer, content: &Content<'a>, packet: &mut Packet<'a>) -> Result<bool, Skip> {
    if !tunnel::may_be(content.protocol) || content.fragment == Fragment::Later {
        return Ok(false);
    }
    let depth = packet.layers.len();
    match tunnel::inside(outer, content.protocol, content.frame, packet) {
        Ok(()) => Ok(true),
        Err(Skip::TooDeep) => Err(Skip::TooDeep),
        Err(_) => {
            packet.layers.truncate(depth);
            Ok(false)
        }
    }
}

/// The length of the payload after an IPv6 header with payload length 0: from the jumbo payload option,
/// otherwise the rest of the frame.
#[cold]
fn jumbo_length(protocol: u8, rest: Frame<'_>) -> u32 {
    match protocol {
        NO_NEXT_HEADER => 0,
        HOP_BY_HOP => jumbo_option(rest.octets).unwrap_or(rest.length),
        _ => rest.length,
    }
}

/// The value of the jumbo payload option in a hop-by-hop options header.
fn jumbo_option(header: &[u8]) -> Option<u32> {
    let length = usize::from(*header.get(1)?) * 8 + 8;
    let mut options = header.get(2..length).or(header.get(2..))?;
    loop {
        let (&kind, rest) = options.split_first()?;
        if kind == 0 {
            options = rest;
            continue;
        }
        let (&length, rest) = rest.split_first()?;
        if kind == JUMBO_PAYLOAD && length == 4 {
            return rest.first_chunk().map(|value| u32::from_be_bytes(*value));
        }
        options = rest.get(usize::from(length)..)?;
    }
}

/// Skips AH, and in IPv6 extension headers, stopping at the first other header, one that was not captured whole, or the
/// content of a later fragment.
///
/// # Errors
/// [`Skip::BadHeader`] if they are longer than the packet.
#[inline]
fn extension_headers(version: u8, content: &mut Content<'_>) -> Result<(), Skip> {
    while is_skipped(version, content.protocol) {
        let Some(head) = content.frame.octets.first_chunk::<4>() else {
            break;
        };
        let length = extension_length(content.protocol, head[1]) as u32;
        if length > content.frame.length {
            return Err(Skip::BadHeader);
        }
        let Ok(rest) = content.frame.skip(length as usize) else {
            break;
        };
        if content.protocol == FRAGMENT {
            content.fragment = match u16::from_be_bytes([head[2], head[3]]) & 0xfff9 {
                0 => Fragment::Whole,
                1 => Fragment::First,
                _ => Fragment::Later,
            };
        }
        content.protocol = head[0];
        content.frame = rest;
        if content.fragment == Fragment::Later {
            break;
        }
    }
    Ok(())
}
