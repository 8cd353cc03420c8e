//! Ethernet II and IEEE 802.3, VLAN tags, 802.2 LLC and SNAP (RFC 1042), and the payloads that an EtherType
//! announces: PPPoE sessions (RFC 2516), MPLS, FabricPath.

use super::{Frame, Layer, Packet, Skip, ip, mpls, ppp};

pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
/// Values up to this are an IEEE 802.3 length.
const LENGTH_MAX: u16 = 1500;
/// Cisco's FabricPath: its own MAC addresses and a tag, then the frame.
const FABRIC_PATH: u16 = 0x8903;

/// Whether an EtherType announces a VLAN tag: 802.1Q, 802.1ad, and two older values.
pub(super) fn is_vlan(ethertype: u16) -> bool {
    matches!(ethertype, 0x8100 | 0x88a8 | 0x9100 | 0x9200)
}

/// A frame that begins with the destination's MAC address.
pub(super) fn ethernet<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (head, rest) = frame.split::<14>()?;
    match u16::from_be_bytes([head[12], head[13]]) {
        FABRIC_PATH => {
            let (head, rest) = rest.split::<16>()?;
            length_or_type(u16::from_be_bytes([head[14], head[15]]), rest, packet)
        }
        value => length_or_type(value, rest, packet),
    }
}

/// The payload after the octets that are an EtherType or a length.
#[inline]
fn length_or_type<'a>(
    value: u16,
    mut frame: Frame<'a>,
    packet: &mut Packet<'a>,
) -> Result<(), Skip> {
    let mut value = value;
    while is_vlan(value) {
        let (tag, rest) = frame.split::<4>()?;
        packet.layers.push(Layer::Vlan {
            id: u16::from_be_bytes([tag[0], tag[1]]) & 0x0fff,
            tpid: value,
        })?;
        value = u16::from_be_bytes([tag[2], tag[3]]);
        frame = rest;
    }
    match value {
        0..=LENGTH_MAX => llc(frame, packet),
        _ => ethertype(value, frame, packet),
    }
}

/// The payload that an EtherType announces.
pub(super) fn ethertype<'a>(
    ethertype: u16,
    frame: Frame<'a>,
    packet: &mut Packet<'a>,
) -> Result<(), Skip> {
    match ethertype {
        IPV4 => ip::ipv4(frame, packet),
        IPV6 => ip::ipv6(frame, packet),
        0x8847 | 0x8848 => mpls::mpls(frame, packet),
        0x8864 => pppoe(frame, packet),
        _ if is_vlan(ethertype) => length_or_type(ethertype, frame, packet),
        _ => Err(Skip::NotIp { ethertype }),
    }
}

/// IEEE 802.2 LLC: SNAP with an EtherType (RFC 1042), or IP by its own SAP.
pub(super) fn llc<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (head, rest) = frame.split::<3>()?;
    match *head {
        [0xaa, 0xaa, 0x03] => {
            let (snap, rest) = rest.split::<5>()?;
            let [a, b, c, kind @ ..] = *snap;
            match [a, b, c] {
                // Plain EtherTypes, and those of bridges (IEEE 802.1H).
                [0, 0, 0] | [0, 0, 0xf8] => ethertype(u16::from_be_bytes(kind), rest, packet),
                _ => Err(Skip::NotIpLlc { dsap: 0xaa }),
            }
        }
        [0x06, 0x06, 0x03] => ip::ipv4(rest, packet),
        [dsap, ..] => Err(Skip::NotIpLlc { dsap }),
    }
}

/// A PPPoE session packet (RFC 2516 4).
pub(super) fn pppoe<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (head, rest) = frame.split::<6>()?;
    let [version_type, code, a, b, ..] = *head;
    if version_type != 0x11 || code != 0 {
        return Err(Skip::BadHeader);
    }
    let session = u16::from_be_bytes([a, b]);
    packet.layers.push(Layer::Pppoe { session })?;
    ppp::ppp(rest, packet)
}
