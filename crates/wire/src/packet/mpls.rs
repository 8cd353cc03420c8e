//! MPLS label stacks (RFC 3032). They do not state their payload: IP, or an Ethernet pseudowire with or without
//! control word (RFC 4448, RFC 4385).

use super::{Frame, Layer, Packet, Skip, ethernet, guess, ip};

/// A label stack and its payload, recognised by its first nibble as in RFC 4928; MAC addresses that begin with
/// the same nibble are recognised by content.
pub(super) fn mpls<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let mut frame = frame;
    loop {
        let (entry, rest) = frame.split::<4>()?;
        let entry = u32::from_be_bytes(*entry);
        packet.layers.push(Layer::Mpls { label: entry >> 12 })?;
        frame = rest;
        if entry & 0x100 != 0 {
            break;
        }
    }
    match frame.octets.first().ok_or(Skip::Truncated)? >> 4 {
        4 | 6 if guess::is_ip(frame, u32::MAX) || !guess::is_ethernet(frame) => {
            ip::ip(frame, packet)
        }
        0 if !guess::is_ethernet(frame) => ethernet::ethernet(frame.skip(4)?, packet),
        // A control channel of the pseudowire (RFC 5586).
        1 if !guess::is_ethernet(frame) => Err(Skip::NotIp { ethertype: 0x8847 }),
        _ => ethernet::ethernet(frame, packet),
    }
}
