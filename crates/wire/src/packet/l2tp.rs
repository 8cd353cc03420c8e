//! L2TP data messages: version 2 (RFC 2661 3.1), and version 3 over UDP and IP (RFC 3931 4.1). The two ends of
//! a version 3 session agree at its start on what follows the session ID: a cookie of zero to eight octets, an
//! L2-specific sublayer of four octets or none, PPP or Ethernet. A capture does not show that agreement, so
//! this module tries which layout fits.

use super::{Frame, Layer, Packet, Skip, ethernet, guess, ppp};

/// Possible octets between session ID and payload: a cookie of 0, 4 or 8 octets and a sublayer of 0 or 4.
const BEFORE_PAYLOAD: [usize; 4] = [0, 4, 8, 12];

/// A UDP datagram on L2TP's port.
pub(super) fn over_udp<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    const CONTROL: u16 = 0x8000;
    let (flags, rest) = frame.split::<2>()?;
    let flags = u16::from_be_bytes(*flags);
    match (flags & CONTROL, flags & 0x000f) {
        (0, 2) => version_2(flags, rest, packet),
        (0, 3) => version_3(rest.skip(2)?, packet),
        _ => Err(Skip::BadHeader),
    }
}

/// An IP packet of protocol 115: a session ID, 0 for control messages.
pub(super) fn over_ip<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    version_3(frame, packet)
}

fn version_2<'a>(flags: u16, frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    let length = if flags & LENGTH != 0 { 2 } else { 0 };
    let (ids, mut rest) = frame.skip(length)?.split::<4>()?;
    packet.layers.push(Layer::L2tp {
        version: 2,
        tunnel: u32::from(u16::from_be_bytes([ids[0], ids[1]])),
        session: u32::from(u16::from_be_bytes([ids[2], ids[3]])),
    })?;
    if flags & SEQUENCE != 0 {
        rest = rest.skip(4)?;
    }
    if flags & OFFSET != 0 {
        let (size, after) = rest.split::<2>()?;
        rest = after.skip(usize::from(u16::from_be_bytes(*size)))?;
    }
    ppp::ppp(rest, packet)
}

/// A version 3 message from its session ID on.
fn version_3<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (session, rest) = frame.split::<4>()?;
    let session = u32::from_be_bytes(*session);
    if session == 0 {
        return Err(Skip::BadHeader);
    }
    packet.layers.push(Layer::L2tp {
        version: 3,
        tunnel: 0,
        session,
    })?;
    for before in BEFORE_PAYLOAD {
        let payload = rest.skip(before)?;
        if guess::is_ppp(payload) {
            packet.layers.push(Layer::Ppp)?;
            return ppp::ppp(payload, packet);
        }
        if guess::is_ethernet(payload) {
            return ethernet::ethernet(payload, packet);
        }
    }
    Err(Skip::BadHeader)
}
