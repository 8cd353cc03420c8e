//! Who sends to whom: the keys of an IP packet's flow, outside of a tunnel and inside of it.

mod dscp;

pub use dscp::{Dscp, UnknownDscp};

/// Addresses, protocol and ports of one IP header. What is unknown is 0: ports of a protocol without ports, and of
/// every fragment, the first one included, so that all pieces of a datagram are one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flow {
    /// Source address, an IPv4 one as `::ffff:a.b.c.d`; all zeros when there is no such header.
    pub source: [u8; 16],
    /// Destination address, likewise.
    pub destination: [u8; 16],
    /// IP protocol number after IPv6 extension headers; 0 when there is no such header.
    pub protocol: u8,
    /// Source port of TCP, UDP, SCTP, DCCP and UDP-Lite; else 0.
    pub source_port: u16,
    /// Destination port, likewise.
    pub destination_port: u16,
}

/// What a classifier may ask of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Keys {
    /// The header that routers see.
    pub outer: Flow,
    /// The innermost header of a tunnel; all zeros when the packet is no tunnel's.
    pub inner: Flow,
    /// TOS octet or traffic class of the outer header: DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// VLAN identifier, 0 when untagged. Not in the IP packet: whoever reads the frame fills it in.
    pub vlan: u16,
    /// Mark, as set by whoever took the packet in.
    pub mark: u32,
}
