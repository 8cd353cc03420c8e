//! Ethernet II, VLAN tags, and what an EtherType announces.

use super::{Frame, Layer, Packet, Skip, ip};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// A frame that begins with the destination's MAC address.
pub(super) fn ethernet<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (head, rest) = frame.split::<14>()?;
    ethertype(u16::from_be_bytes([head[12], head[13]]), rest, packet)
}

/// What follows an EtherType.
pub(super) fn ethertype<'a>(
    ethertype: u16,
    mut frame: Frame<'a>,
    packet: &mut Packet<'a>,
) -> Result<(), Skip> {
    let mut ethertype = ethertype;
    while let 0x8100 | 0x88a8 | 0x9100 | 0x9200 = ethertype {
        let (tag, rest) = frame.split::<4>()?;
        let id = u16::from_be_bytes([tag[0], tag[1]]) & 0x0fff;
        packet.layers.push(Layer::Vlan {
            id,
            tpid: ethertype,
        })?;
        ethertype = u16::from_be_bytes([tag[2], tag[3]]);
        frame = rest;
    }
    match ethertype {
        IPV4 => ip::ipv4(frame, packet),
        IPV6 => ip::ipv6(frame, packet),
        _ => Err(Skip::NotIp { ethertype }),
    }
}
