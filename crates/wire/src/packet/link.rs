//! The link layers other than Ethernet and PPP: Linux "cooked" frames, BSD loopback, token ring (IEEE 802.5),
//! FDDI (RFC 1390), and ATM with AAL5 (RFC 2684, RFC 2225, PPP by RFC 2364). The first cell of an AAL5 packet
//! suffices.

use super::{Frame, Packet, Skip, ethernet, ip, ppp};

/// Linux "cooked" frames (LINKTYPE_LINUX_SLL).
pub(super) fn sll<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (head, rest) = frame.split::<16>()?;
    cooked(u16::from_be_bytes([head[14], head[15]]), rest, packet)
}

/// Linux "cooked" frames, second version (LINKTYPE_LINUX_SLL2).
pub(super) fn sll2<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (head, rest) = frame.split::<20>()?;
    cooked(u16::from_be_bytes([head[0], head[1]]), rest, packet)
}

/// The payload of a protocol that is an EtherType or one of Linux's small numbers.
fn cooked<'a>(protocol: u16, frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    match protocol {
        4 => ethernet::llc(frame, packet),
        7 => ppp::ppp(frame, packet),
        _ => ethernet::ethertype(protocol, frame, packet),
    }
}

/// BSD loopback: a protocol family in either byte order. IPv6 has several numbers, in the BSDs and Linux.
pub(super) fn loopback<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (family, rest) = frame.split::<4>()?;
    let family = match u32::from_be_bytes(*family) {
        family @ 0..=0xffff => family,
        family => family.swap_bytes(),
    };
    match family {
        2 => ip::ipv4(rest, packet),
        10 | 24 | 28 | 30 => ip::ipv6(rest, packet),
        _ => Err(Skip::NotIpFamily { family }),
    }
}

/// FDDI: frame control and two addresses before LLC.
pub(super) fn fddi<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (head, rest) = frame.split::<13>()?;
    // CLFFZZZZ: format 01 is LLC; other formats are internal to the ring.
    match head[0] & 0x30 {
        0x10 => ethernet::llc(rest, packet),
        _ => Err(Skip::BadHeader),
    }
}

/// Token ring: access control, frame control, two addresses, and the route through bridges if the source
/// address announces one.
pub(super) fn token_ring<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (head, mut rest) = frame.split::<14>()?;
    if head[1] & 0xc0 != 0x40 {
        return Err(Skip::BadHeader);
    }
    if head[8] & 0x80 != 0 {
        let length = rest.octets.first().ok_or(Skip::Truncated)? & 0x1f;
        rest = rest.skip(usize::from(length))?;
    }
    ethernet::llc(rest, packet)
}

/// An AAL5 payload (RFC 2684): with LLC, or, judged by its first bytes, plain IP or PPP on its virtual circuit.
pub(super) fn atm<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    match *frame.octets {
        // Bridged Ethernet, with and without its FCS (RFC 2684 5.2).
        [0xaa, 0xaa, 0x03, 0x00, 0x80, 0xc2, 0x00, 0x01 | 0x07, ..] => {
            ethernet::ethernet(frame.skip(10)?, packet)
        }
        [0xaa, 0xaa, 0x03, ..] => ethernet::llc(frame, packet),
        // By ISO NLPID (RFC 2684 5.1, RFC 2364 5).
        [0xfe, 0xfe, 0x03, nlpid, ..] => {
            let rest = frame.skip(4)?;
            match nlpid {
                0xcc => ip::ipv4(rest, packet),
                0x8e => ip::ipv6(rest, packet),
                0xcf => ppp::ppp(rest, packet),
                _ => Err(Skip::NotIpLlc { dsap: 0xfe }),
            }
        }
        [0x45..=0x4f | 0x60..=0x6f, ..] => ip::ip(frame, packet),
        [0xff, 0x03, ..] | [0x00, 0x21 | 0x57, ..] => ppp::ppp(frame, packet),
        _ => ethernet::llc(frame, packet),
    }
}

/// SunATM: the kind of traffic and the virtual circuit before the payload.
pub(super) fn sunatm<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (head, rest) = frame.split::<4>()?;
    match head[0] & 0x0f {
        // LAN emulation: a LAN emulation client's number, then Ethernet.
        1 => ethernet::ethernet(rest.skip(2)?, packet),
        _ => atm(rest, packet),
    }
}
