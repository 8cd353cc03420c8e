//! What a packet's header says to a NAT.

use wire::icmp;
use wire::ip::{Header, Upper};
use wire::packet::Fragment;
use wire::{tcp, udp};

use crate::discard::Discard;
use crate::pool::Protocol;
use crate::rewrite::word;

/// The ends of a packet of TCP, UDP or an ICMP query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) protocol: Protocol,
    pub(crate) source: u32,
    pub(crate) destination: u32,
    /// The identifier, for a query.
    pub(crate) source_port: u16,
    /// The identifier, for a query.
    pub(crate) destination_port: u16,
    /// TCP's flags.
    pub(crate) flags: u8,
}

/// What a packet is to a NAT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// TCP, UDP, or an ICMP query. `is_reply` only for ICMP.
    Flow { flow: Flow, is_reply: bool },
    /// An ICMP error that quotes a packet.
    Error,
    /// A fragment without a transport header.
    Later,
}

/// What an ICMP message is: RFC 5508 REQ-10.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Echo, timestamp or address mask request.
    Request,
    /// Their replies.
    Reply,
    /// Destination unreachable, time exceeded, parameter problem.
    Error,
    /// Source quench, redirect, router discovery, information messages and all others.
    Other,
}

impl Kind {
    pub(crate) const fn of(kind: u8) -> Self {
        match kind {
            8 | 13 | 17 => Self::Request,
            0 | 14 | 18 => Self::Reply,
            3 | 11 | 12 => Self::Error,
            _ => Self::Other,
        }
    }
}

/// Octets of the IPv4 header with its options.
#[inline]
pub(crate) fn header_length(packet: &[u8]) -> usize {
    packet
        .first()
        .map_or(0, |first| usize::from(first & 15) * 4)
}

impl Content {
    /// Classifies a packet. `header` is that of `packet`.
    #[inline]
    pub(crate) fn of(header: &Header, packet: &[u8]) -> Result<Self, Discard> {
        if header.version != 4 {
            return Err(Discard::Version);
        }
        // Not `header.protocol`, which is behind an authentication header: that covers the addresses, so it would be
        // wrong after a translation (RFC 3022 section 5.3).
        let protocol = match packet.get(9).copied() {
            Some(tcp::PROTOCOL) => Protocol::Tcp,
            Some(udp::PROTOCOL) => Protocol::Udp,
            Some(icmp::PROTOCOL) => Protocol::Icmp,
            _ => return Err(Discard::Protocol),
        };
        if header.fragment == Fragment::Later {
            return Ok(Self::Later);
        }
        let transport = packet.get(header_length(packet)..).unwrap_or_default();
        let flow = Flow {
            protocol,
            source: header.source as u32,
            destination: header.destination as u32,
            source_port: header.source_port,
            destination_port: header.destination_port,
            flags: header.tcp_flags,
        };
        let is_reply = false;
        match (protocol, header.upper) {
            // A first fragment may end before the checksum, which then could not be updated.
            (Protocol::Tcp, Upper::Ports) if transport.len() >= 18 => {
                Ok(Self::Flow { flow, is_reply })
            }
            (Protocol::Udp, Upper::Ports) if transport.len() >= 8 => {
                Ok(Self::Flow { flow, is_reply })
            }
            (Protocol::Icmp, Upper::Icmp) => Self::icmp(header, flow, transport),
            _ => Err(Discard::Cut),
        }
    }

    fn icmp(header: &Header, flow: Flow, transport: &[u8]) -> Result<Self, Discard> {
        let (kind, _) = header.icmp().ok_or(Discard::Cut)?;
        let id = word(transport, 4).filter(|_| transport.len() >= 8);
        let id = id.ok_or(Discard::Cut)?;
        let flow = Flow {
            source_port: id,
            destination_port: id,
            ..flow
        };
        match Kind::of(kind) {
            Kind::Request => Ok(Self::Flow {
                flow,
                is_reply: false,
            }),
            Kind::Reply => Ok(Self::Flow {
                flow,
                is_reply: true,
            }),
            Kind::Error => Ok(Self::Error),
            Kind::Other => Err(Discard::IcmpType),
        }
    }
}
