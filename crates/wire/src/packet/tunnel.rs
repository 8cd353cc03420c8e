//! What an IP packet carries that may be another.

use super::{Frame, Layer, Packet, Skip, ip};

const IPV4: u8 = 4;
const IPV6: u8 = 41;

/// Whether packets of this protocol may be tunnels.
#[inline]
pub(super) fn may_be(protocol: u8) -> bool {
    matches!(protocol, IPV4 | IPV6)
}

/// Reads what is inside.
///
/// # Errors
/// It is no tunnel, or what it carries cannot be read.
pub(super) fn inside<'a>(
    outer: Layer,
    protocol: u8,
    frame: Frame<'a>,
    packet: &mut Packet<'a>,
) -> Result<(), Skip> {
    packet.layers.push(outer)?;
    match protocol {
        IPV4 => ip::ipv4(frame, packet),
        IPV6 => ip::ipv6(frame, packet),
        _ => Err(Skip::BadHeader),
    }
}
