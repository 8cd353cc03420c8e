//! TCP headers and options: RFC 9293, RFC 7323 (window scale, timestamps),
//! RFC 2018 (SACK), RFC 3168 and 9768 (the ECN flags).
//!
//! Left out: the content of other options (MPTCP, MD5, AO, Fast Open), which
//! are stepped over, and urgent data's place.

mod options;

pub use options::Options;

use crate::packet::{Fragment, Packet};

/// TCP's IP protocol number.
pub const PROTOCOL: u8 = 6;

/// The nine flags of a TCP header, FIN lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x001);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x002);
    /// Reset.
    pub const RST: Flags = Flags(0x004);
    /// Push.
    pub const PSH: Flags = Flags(0x008);
    /// The acknowledgment number counts.
    pub const ACK: Flags = Flags(0x010);
    /// The urgent pointer counts.
    pub const URG: Flags = Flags(0x020);
    /// ECN echo (RFC 3168).
    pub const ECE: Flags = Flags(0x040);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Flags = Flags(0x080);
    /// Accurate ECN (RFC 9768), once the nonce sum.
    pub const AE: Flags = Flags(0x100);

    /// Whether all flags of `other` are set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any flag of `other` is set.
    #[inline]
    #[must_use]
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;

    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// A TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp<'a> {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number, whether or not [`Flags::ACK`] is set.
    pub acknowledgment: u32,
    /// Octets of header and options, 20 to 60.
    pub header_length: u8,
    /// Flags.
    pub flags: Flags,
    /// Window as sent, not scaled.
    pub window: u16,
    /// Checksum as sent; see [`tcp_ok`](crate::checksum::tcp_ok).
    pub checksum: u16,
    /// Urgent pointer, whether or not [`Flags::URG`] is set.
    pub urgent: u16,
    /// Options.
    pub options: Options,
    /// What was captured of the payload.
    pub payload: &'a [u8],
    /// Octets of payload as sent.
    pub payload_length: u32,
}

/// Why a packet has no TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TcpError {
    /// It carries another protocol.
    #[error("not TCP")]
    NotTcp,
    /// It is a fragment after the first.
    #[error("a later fragment")]
    LaterFragment,
    /// Fewer than 20 octets of it were captured, or sent.
    #[error("truncated TCP header")]
    Truncated,
    /// The data offset is below 20 octets or beyond the packet.
    #[error("bad TCP data offset")]
    BadOffset,
}

impl<'a> Tcp<'a> {
    /// Reads the segment that `packet` carries. Options that were not captured
    /// whole are an [`Options::cut`].
    ///
    /// # Errors
    /// As [`TcpError`] says.
    #[inline]
    pub fn parse(packet: &Packet<'a>) -> Result<Self, TcpError> {
        if packet.protocol != PROTOCOL {
            return Err(TcpError::NotTcp);
        }
        if packet.fragment == Fragment::Later {
            return Err(TcpError::LaterFragment);
        }
        let Some((head, rest)) = packet.transport.split_first_chunk::<20>() else {
            return Err(TcpError::Truncated);
        };
        let header_length = (head[12] >> 4) * 4;
        if header_length < 20 || u32::from(header_length) > packet.transport_length {
            return Err(TcpError::BadOffset);
        }
        let (options, payload) = match rest.split_at_checked(usize::from(header_length) - 20) {
            Some((octets, payload)) => (Options::parse(octets), payload),
            None => (Options::parse_cut(rest), &[][..]),
        };
        Ok(Self {
            source_port: u16::from_be_bytes([head[0], head[1]]),
            destination_port: u16::from_be_bytes([head[2], head[3]]),
            sequence: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
            acknowledgment: u32::from_be_bytes([head[8], head[9], head[10], head[11]]),
            header_length,
            flags: Flags(u16::from_be_bytes([head[12], head[13]]) & 0x01ff),
            window: u16::from_be_bytes([head[14], head[15]]),
            checksum: u16::from_be_bytes([head[16], head[17]]),
            urgent: u16::from_be_bytes([head[18], head[19]]),
            options,
            payload,
            payload_length: packet.transport_length - u32::from(header_length),
        })
    }
}

#[cfg(test)]
mod tests;
