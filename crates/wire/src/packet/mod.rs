//! Finds the innermost IP packet of a captured frame. Start reading at [`decode`].
//!
//! Link layers: Ethernet II, IEEE 802.3 with 802.2 LLC and SNAP (RFC 1042),
//! VLAN tags (802.1Q, 802.1ad), token ring (802.5), FDDI (RFC 1390), ATM (RFC 2684, formerly 1483;
//! RFC 2225; RFC 2364), PPP (RFC 1661, 1662), PPPoE (RFC 2516), Cisco HDLC,
//! MPLS (RFC 3032, 4448), Linux "cooked" frames, BSD loopback, raw IP.
//! Tunnels: IP in IP (RFC 2003, 2473, 4213), GRE (RFC 2784, 2890), PPTP
//! (RFC 2637), L2TP (RFC 2661, 3931), VXLAN (RFC 7348), Geneve (RFC 8926),
//! MPLS in IP and UDP (RFC 4023, 7510), EtherIP (RFC 3378), GTP-U (3GPP TS
//! 29.281). Network: IPv4 (RFC 791), IPv6 and its extension headers (RFC 8200,
//! 2675, 4302, 6275, 5533, 7401).
//!
//! Lengths are those of the innermost IP header, since a link pads frames, and a capture on a sending host
//! contains frames longer than any link allows.
//!
//! Left out: reassembly ([`Packet::piece`] says where a fragment belongs), IEEE 802.11, frame relay, ERSPAN,
//! Teredo, PPP multilink and Van Jacobson compression, and anything encrypted.

mod ethernet;
mod fragment;
mod guess;
mod ip;
mod l2tp;
mod layers;
mod link;
mod mpls;
mod ppp;
mod skip;
mod tunnel;

pub use fragment::Piece;
pub use layers::{LAYERS_MAX, Layer, Layers};
pub use skip::Skip;

use crate::link::LinkType;

/// Whether an IP packet is a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fragment {
    /// Not a fragment.
    Whole,
    /// The first of several; it has the transport header.
    First,
    /// A later one; it has no transport header.
    Later,
}

/// A frame's innermost IP packet. Create one and let [`decode`] refill it for each frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// IP version, 4 or 6.
    pub version: u8,
    /// The protocol of `transport`: an IP protocol number, after IPv6 extension headers and AH. If the capture
    /// ends inside an extension header, that header's number.
    pub protocol: u8,
    /// DSCP and ECN: the TOS octet of IPv4, the traffic class of IPv6.
    pub traffic_class: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// Identification of IPv4, 0 for IPv6.
    pub id: u16,
    /// Whether it is a fragment.
    pub fragment: Fragment,
    /// Octets of transport header and payload as sent, from the IP header's length. If that is 0, as in
    /// segments left for the network card (IPv4) and jumbograms without their option (IPv6), from the frame's
    /// length.
    pub transport_length: u32,
    /// Source address, an IPv4 one as `::ffff:a.b.c.d`.
    pub source: [u8; 16],
    /// Destination address, an IPv4 one as `::ffff:a.b.c.d`.
    pub destination: [u8; 16],
    /// The captured bytes from the IP header to the end of the IP packet, without the link's padding.
    pub network: &'a [u8],
    /// The captured bytes of the transport header and its payload.
    pub transport: &'a [u8],
    /// The encapsulations, outermost first; empty if the IP packet directly follows the link header.
    pub layers: Layers,
}

impl Packet<'_> {
    /// An empty packet, to be filled by [`decode`].
    #[must_use]
    pub const fn new() -> Self {
        Self {
            version: 0,
            protocol: 0,
            traffic_class: 0,
            hop_limit: 0,
            id: 0,
            fragment: Fragment::Whole,
            transport_length: 0,
            source: [0; 16],
            destination: [0; 16],
            network: &[],
            transport: &[],
            layers: Layers::new(),
        }
    }
}

impl Default for Packet<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// Finds the innermost IP packet of `frame`, a frame of the given link type with `length` octets as sent.
///
/// If a tunnel's content cannot be read or is not IP, the result is the packet that carries the tunnel. After
/// an error, the contents of `packet` are unspecified.
///
/// # Errors
/// Why the frame has no readable IP packet.
#[inline]
pub fn decode<'a>(
    link: LinkType,
    frame: &'a [u8],
    length: u32,
    packet: &mut Packet<'a>,
) -> Result<(), Skip> {
    packet.layers.clear();
    if link == LinkType::ETHERNET && plain_tcp(frame, packet) {
        return Ok(());
    }
    any_frame(link, Frame::new(frame, length), packet)
}

/// Reads by far the most frequent kind of frame in one go: Ethernet with unfragmented IPv4 without options,
/// carrying TCP. Returns false for any other frame and changes nothing. Does not touch [`Packet::layers`],
/// since such a frame has none.
///
/// [`decode`] tries this first. A hot path calls it directly with a packet of its own, which the compiler can
/// then keep in registers.
#[inline(always)]
pub fn plain_tcp<'a>(frame: &'a [u8], packet: &mut Packet<'a>) -> bool {
    let Some((_, ip)) = frame.split_first_chunk::<14>() else {
        return false;
    };
    let Some(head) = frame.first_chunk::<34>() else {
        return false;
    };
    let total = u16::from_be_bytes([head[16], head[17]]);
    let plain = head[12..15] == [0x08, 0x00, 0x45]
        && u16::from_be_bytes([head[20], head[21]]) & 0x3fff == 0
        && head[23] == 6
        && total >= 20;
    if !plain {
        return false;
    }
    let network = ip.get(..usize::from(total)).unwrap_or(ip);
    let Some((head, transport)) = network.split_first_chunk::<20>() else {
        return false;
    };
    packet.version = 4;
    packet.protocol = 6;
    packet.traffic_class = head[1];
    packet.hop_limit = head[8];
    packet.id = u16::from_be_bytes([head[4], head[5]]);
    packet.fragment = Fragment::Whole;
    packet.transport_length = u32::from(total) - 20;
    packet.source = ip::mapped([head[12], head[13], head[14], head[15]]);
    packet.destination = ip::mapped([head[16], head[17], head[18], head[19]]);
    packet.network = network;
    packet.transport = transport;
    true
}

/// Every other kind of frame.
#[inline(never)]
fn any_frame<'a>(link: LinkType, frame: Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
    match link {
        LinkType::ETHERNET => ethernet::ethernet(frame, packet),
        LinkType::RAW | LinkType::RAW_OLD | LinkType::RAW_OPENBSD => ip::ip(frame, packet),
        LinkType::IPV4 => ip::ipv4(frame, packet),
        LinkType::IPV6 => ip::ipv6(frame, packet),
        LinkType::LINUX_SLL => link::sll(frame, packet),
        LinkType::LINUX_SLL2 => link::sll2(frame, packet),
        LinkType::NULL | LinkType::LOOP => link::loopback(frame, packet),
        LinkType::PPP | LinkType::PPP_HDLC => ppp::ppp_or_chdlc(frame, packet),
        LinkType::PPP_PPPD | LinkType::PPP_WITH_DIR => ppp::ppp(frame.skip(1)?, packet),
        LinkType::PPP_ETHER => ethernet::pppoe(frame, packet),
        LinkType::C_HDLC => ppp::chdlc(frame, packet),
        LinkType::C_HDLC_WITH_DIR => ppp::chdlc(frame.skip(1)?, packet),
        LinkType::IEEE802_5 => link::token_ring(frame, packet),
        LinkType::FDDI => link::fddi(frame, packet),
        LinkType::ATM_RFC1483
        | LinkType::ATM_RFC1483_OLD
        | LinkType::ATM_CLIP
        | LinkType::ATM_CLIP_OLD => link::atm(frame, packet),
        LinkType::SUNATM => link::sunatm(frame, packet),
        _ => Err(Skip::UnknownLink(link)),
    }
}

/// The rest of a frame, from some header on.
#[derive(Clone, Copy)]
struct Frame<'a> {
    /// Its captured bytes.
    octets: &'a [u8],
    /// Its length in octets as sent, never less than captured.
    length: u32,
}

impl<'a> Frame<'a> {
    #[inline]
    fn new(octets: &'a [u8], length: u32) -> Self {
        let captured = u32::try_from(octets.len()).unwrap_or(u32::MAX);
        Self {
            octets,
            length: length.max(captured),
        }
    }

    /// The first `N` octets and the rest.
    #[inline]
    fn split<const N: usize>(self) -> Result<(&'a [u8; N], Frame<'a>), Skip> {
        let (head, octets) = self.octets.split_first_chunk().ok_or(Skip::Truncated)?;
        let length = self.length.saturating_sub(N as u32);
        Ok((head, Frame { octets, length }))
    }

    /// The frame without its first `n` octets.
    #[inline]
    fn skip(self, n: usize) -> Result<Frame<'a>, Skip> {
        let octets = self.octets.get(n..).ok_or(Skip::Truncated)?;
        let length = self.length.saturating_sub(n as u32);
        Ok(Frame { octets, length })
    }
}
