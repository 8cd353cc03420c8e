//! UDP headers: RFC 768, RFC 2675 4 (a length of 0).

use crate::packet::{Fragment, Packet};

/// UDP's IP protocol number.
pub const PROTOCOL: u8 = 17;

/// A UDP datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Udp<'a> {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// RFC 768; RFC 8200 section 8.1.
    pub length: u16,
    /// Checksum as sent, 0 if there is none; see [`udp_ok`](crate::checksum::udp_ok).
    pub checksum: u16,
    /// The captured bytes of the payload.
    pub payload: &'a [u8],
    /// Payload octets in this packet: fewer than `length` states in the first of several fragments.
    pub payload_length: u32,
}

/// Why a packet has no UDP datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum UdpError {
    /// It carries another protocol.
    #[error("not UDP")]
    NotUdp,
    /// It is a fragment after the first.
    #[error("a later fragment")]
    LaterFragment,
    /// Fewer than 8 octets of it were captured, or sent.
    #[error("truncated UDP header")]
    Truncated,
    /// The length is below 8 octets but not 0.
    #[error("bad UDP length")]
    BadLength,
}

impl<'a> Udp<'a> {
    /// Reads the datagram in `packet`.
    ///
    /// # Errors
    /// See [`UdpError`].
    #[inline]
    pub fn parse(packet: &Packet<'a>) -> Result<Self, UdpError> {
        if packet.protocol != PROTOCOL {
            return Err(UdpError::NotUdp);
        }
        if packet.fragment == Fragment::Later {
            return Err(UdpError::LaterFragment);
        }
        let Some((head, rest)) = packet.transport.split_first_chunk::<8>() else {
            return Err(UdpError::Truncated);
        };
        let length = u16::from_be_bytes([head[4], head[5]]);
        let sent = match length {
            0 => packet.transport_length,
            1..8 => return Err(UdpError::BadLength),
            _ => packet.transport_length.min(u32::from(length)),
        };
        let payload_length = sent.saturating_sub(8);
        Ok(Self {
            source_port: u16::from_be_bytes([head[0], head[1]]),
            destination_port: u16::from_be_bytes([head[2], head[3]]),
            length,
            checksum: u16::from_be_bytes([head[6], head[7]]),
            payload: rest.get(..payload_length as usize).unwrap_or(rest),
            payload_length,
        })
    }
}

#[cfg(test)]
mod tests;
