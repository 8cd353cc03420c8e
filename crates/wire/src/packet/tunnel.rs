//! Tunnels over IP and UDP: IP in IP (RFC 2003, 2473, 4213), GRE (RFC 2784,
//! 2890, and 2637 for PPTP), MPLS (RFC 4023, 7510), EtherIP (RFC 3378), VXLAN
//! (RFC 7348), Geneve (RFC 8926), GTP-U (3GPP TS 29.281).

use super::{Frame, Layer, Packet, Skip, ethernet, ip, l2tp, mpls, ppp};

const IPV4: u8 = 4;
const UDP: u8 = 17;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const ETHERIP: u8 = 97;
const L2TP: u8 = 115;
const MPLS: u8 = 137;
/// Transparent Ethernet bridging: GRE's and Geneve's type for Ethernet frames.
const BRIDGING: u16 = 0x6558;

/// Whether packets of this protocol can be tunnels.
#[inline]
pub(super) fn may_be(protocol: u8) -> bool {
    matches!(protocol, IPV4 | UDP | IPV6 | GRE | ETHERIP | L2TP | MPLS)
}

/// Reads the tunnel's content; `outer` is the header before `frame`.
///
/// # Errors
/// It is not a tunnel, or its content cannot be read.
pub(super) fn inside<'a>(
    outer: Layer,
    protocol: u8,
    frame: Frame<'a>,
    packet: &mut Packet<'a>,
) -> Result<(), Skip> {
    if protocol == UDP {
        return udp(outer, frame, packet);
    }
    packet.layers.push(outer)?;
    match protocol {
        IPV4 => ip::ipv4(frame, packet),
        IPV6 => ip::ipv6(frame, packet),
        GRE => gre(frame, packet),
        L2TP => l2tp::over_ip(frame, packet),
        MPLS => mpls::mpls(frame, packet),
        ETHERIP => {
            let (head, rest) = frame.split::<2>()?;
            if head[0] >> 4 != 3 {
                return Err(Skip::BadHeader);
            }
            packet.layers.push(Layer::EtherIp)?;
            ethernet::ethernet(rest, packet)
        }
        _ => Err(Skip::BadHeader),
    }
}

type Read = for<'a> fn(Frame<'a>, &mut Packet<'a>) -> Result<(), Skip>;

/// UDP, recognised as a tunnel by its ports. Most UDP is not a tunnel and must be cheap.
fn udp<'a>(outer: Layer, frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (head, rest) = frame.split::<8>()?;
    let source = u16::from_be_bytes([head[0], head[1]]);
    let destination = u16::from_be_bytes([head[2], head[3]]);
    let read: Read = match (destination, source) {
        // Linux's VXLAN has its own default port.
        (4789 | 8472, _) => vxlan,
        (6081, _) => geneve,
        (6635, _) => mpls::mpls,
        (1701, _) | (_, 1701) => l2tp::over_udp,
        (2152, _) | (_, 2152) => gtp,
        _ => return Err(Skip::BadHeader),
    };
    packet.layers.push(outer)?;
    read(rest, packet)
}

/// GRE version 0, or version 1 (PPTP).
fn gre<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const VERSION: u16 = 0x0007;
    let (head, mut rest) = frame.split::<4>()?;
    let flags = u16::from_be_bytes([head[0], head[1]]);
    let protocol = u16::from_be_bytes([head[2], head[3]]);
    if flags & VERSION == 1 {
        return pptp(flags, protocol, rest, packet);
    }
    if flags & (ROUTING | VERSION) != 0 {
        return Err(Skip::BadHeader);
    }
    if flags & CHECKSUM != 0 {
        rest = rest.skip(4)?;
    }
    let mut key = None;
    if flags & KEY != 0 {
        let (value, after) = rest.split::<4>()?;
        key = Some(u32::from_be_bytes(*value));
        rest = after;
    }
    if flags & SEQUENCE != 0 {
        rest = rest.skip(4)?;
    }
    packet.layers.push(Layer::Gre { key })?;
    bridged_or_typed(protocol, rest, packet)
}

/// The rest of an enhanced GRE header (RFC 2637 4.1), with a PPP frame if it has a sequence number.
fn pptp<'a>(
    flags: u16,
    protocol: u16,
    frame: Frame<'a>,
    packet: &mut Packet<'a>,
) -> Result<(), Skip> {
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGMENT: u16 = 0x0080;
    if flags & (KEY | SEQUENCE) != KEY | SEQUENCE || protocol != 0x880b {
        return Err(Skip::NotIp {
            ethertype: protocol,
        });
    }
    let (head, rest) = frame.split::<8>()?;
    let call = u16::from_be_bytes([head[2], head[3]]);
    let acknowledgment = if flags & ACKNOWLEDGMENT != 0 { 4 } else { 0 };
    packet.layers.push(Layer::Pptp { call })?;
    packet.layers.push(Layer::Ppp)?;
    ppp::ppp(rest.skip(acknowledgment)?, packet)
}

/// An Ethernet frame, or the payload that an EtherType announces.
fn bridged_or_typed<'a>(
    protocol: u16,
    frame: Frame<'a>,
    packet: &mut Packet<'a>,
) -> Result<(), Skip> {
    match protocol {
        BRIDGING => ethernet::ethernet(frame, packet),
        _ => ethernet::ethertype(protocol, frame, packet),
    }
}

fn vxlan<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (head, rest) = frame.split::<8>()?;
    // The I flag must be set (RFC 7348 5).
    if head[0] & 0x08 == 0 {
        return Err(Skip::BadHeader);
    }
    let vni = u32::from_be_bytes([0, head[4], head[5], head[6]]);
    packet.layers.push(Layer::Vxlan { vni })?;
    ethernet::ethernet(rest, packet)
}

fn geneve<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (head, rest) = frame.split::<8>()?;
    // Version 0, and not a control packet (RFC 8926 3.4).
    if head[0] >> 6 != 0 || head[1] & 0x80 != 0 {
        return Err(Skip::BadHeader);
    }
    let options = usize::from(head[0] & 0x3f) * 4;
    let vni = u32::from_be_bytes([0, head[4], head[5], head[6]]);
    packet.layers.push(Layer::Geneve { vni })?;
    let protocol = u16::from_be_bytes([head[2], head[3]]);
    bridged_or_typed(protocol, rest.skip(options)?, packet)
}

fn gtp<'a>(frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    let (head, mut rest) = frame.split::<8>()?;
    // Version 1, protocol type GTP, a G-PDU (3GPP TS 29.281 5.1).
    if head[0] & 0xf0 != 0x30 || head[1] != 0xff {
        return Err(Skip::BadHeader);
    }
    let teid = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    packet.layers.push(Layer::Gtp { teid })?;
    if head[0] & 0x07 != 0 {
        let (optional, after) = rest.split::<4>()?;
        rest = after;
        let mut next = if head[0] & 0x04 != 0 { optional[3] } else { 0 };
        while next != 0 {
            let length = usize::from(*rest.octets.first().ok_or(Skip::Truncated)?) * 4;
            if length == 0 {
                return Err(Skip::BadHeader);
            }
            next = *rest.octets.get(length - 1).ok_or(Skip::Truncated)?;
            rest = rest.skip(length)?;
        }
    }
    ip::ip(rest, packet)
}
