//! PPP (RFC 1661), with or without HDLC-like framing (RFC 1662), and Cisco HDLC.

use super::{Frame, Packet, Skip, ethernet, ip, mpls};

/// Skips the address and control octets, if present.
pub(super) fn without_address(frame: Frame<'_>) -> Frame<'_> {
    match frame.octets {
        [0xff, 0x03, ..] => frame.skip(2).unwrap_or(frame),
        _ => frame,
    }
}

/// The protocol number, one octet if compressed (RFC 1661 6.5), and the rest.
pub(super) fn protocol(frame: Frame<'_>) -> Result<(u16, Frame<'_>), Skip> {
    let first = *frame.octets.first().ok_or(Skip::Truncated)?;
    if first & 1 == 1 {
        return Ok((u16::from(first), frame.skip(1)?));
    }
    let (number, rest) = frame.split::<2>()?;
    Ok((u16::from_be_bytes(*number), rest))
}

/// A PPP frame, starting at its address or its protocol.
pub(super) fn ppp<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (protocol, rest) = protocol(without_address(frame))?;
    match protocol {
        0x0021 => ip::ipv4(rest, packet),
        0x0057 => ip::ipv6(rest, packet),
        0x0281 | 0x0283 => mpls::mpls(rest, packet),
        _ => Err(Skip::NotIpPpp { protocol }),
    }
}

/// PPP, or Cisco HDLC, whose address octets no PPP frame begins with.
pub(super) fn ppp_or_chdlc<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    match frame.octets {
        [0x0f | 0x8f, 0x00, ..] => chdlc(frame, packet),
        _ => ppp(frame, packet),
    }
}

/// Cisco HDLC: address, control, and an EtherType.
pub(super) fn chdlc<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (head, rest) = frame.split::<4>()?;
    ethernet::ethertype(u16::from_be_bytes([head[2], head[3]]), rest, packet)
}
