//! TCP headers and options: RFC 9293, RFC 7323 (window scale, timestamps),
//! RFC 2018 (SACK), RFC 3168 and 9768 (the ECN flags).
//!
//! Left out: the content of other options (MPTCP, MD5, AO, Fast Open), which are skipped, and the position of
//! urgent data.

mod options;

pub use options::Options;

use crate::packet::{Fragment, Packet};

/// TCP's IP protocol number.
pub const PROTOCOL: u8 = 6;

/// Octets of a header up to and including the window: some capture formats store no more.
const NEEDED: usize = 16;

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
    /// The acknowledgment number is valid.
    pub const ACK: Flags = Flags(0x010);
    /// The urgent pointer is valid.
    pub const URG: Flags = Flags(0x020);
    /// ECN echo (RFC 3168).
    pub const ECE: Flags = Flags(0x040);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Flags = Flags(0x080);
    /// Accurate ECN (RFC 9768), formerly the nonce sum.
    pub const AE: Flags = Flags(0x100);

    /// Whether all flags of `other` are set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
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
    /// Checksum as sent, 0 if not captured; see [`tcp_ok`](crate::checksum::tcp_ok).
    pub checksum: u16,
    /// Urgent pointer, whether or not [`Flags::URG`] is set; 0 if not captured.
    pub urgent: u16,
    /// Options.
    pub options: Options,
    /// The captured bytes of the payload.
    pub payload: &'a [u8],
    /// Payload length in octets, as sent.
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
    /// Fewer than 16 octets of it were captured, or sent.
    #[error("truncated TCP header")]
    Truncated,
    /// The data offset is below 20 octets, or exceeds an unfragmented packet.
    #[error("bad TCP data offset")]
    BadOffset,
}

impl<'a> Tcp<'a> {
    /// Reads the segment in `packet`. Incomplete options set [`Options::cut`]; the checksum and urgent pointer
    /// may also be missing, and are then 0. On a hot path, try [`Tcp::plain`] first, whose result the compiler
    /// can keep in registers.
    ///
    /// # Errors
    /// See [`TcpError`].
    #[inline]
    pub fn parse(packet: &Packet<'a>) -> Result<Self, TcpError> {
        match Self::plain(packet) {
            Some(tcp) => Ok(tcp),
            None => Self::parse_any(packet),
        }
    }

    /// Reads the most frequent segments: complete header, no options or only timestamps. `None` for any other
    /// packet, which [`parse`](Tcp::parse) handles.
    #[inline(always)]
    #[must_use]
    pub fn plain(packet: &Packet<'a>) -> Option<Self> {
        if packet.protocol != PROTOCOL || packet.fragment == Fragment::Later {
            return None;
        }
        // The struct is built where its options are known, so that they need not be copied.
        let (head, rest) = packet.transport.split_first_chunk::<20>()?;
        let header_length = (head[12] >> 4) * 4;
        let payload_length = packet.transport_length.checked_sub(header_length.into())?;
        if header_length == 20 {
            return Some(Self::assemble(head, Options::NONE, rest, payload_length));
        }
        if header_length == 32
            && let Some((octets, payload)) = rest.split_first_chunk()
            && let Some(options) = Options::aligned_timestamps(octets)
        {
            return Some(Self::assemble(head, options, payload, payload_length));
        }
        None
    }

    /// Reads any segment.
    #[inline(never)]
    fn parse_any(packet: &Packet<'a>) -> Result<Self, TcpError> {
        if packet.protocol != PROTOCOL {
            return Err(TcpError::NotTcp);
        }
        if packet.fragment == Fragment::Later {
            return Err(TcpError::LaterFragment);
        }
        let Some((head, rest)) = packet.transport.split_first_chunk::<20>() else {
            return Self::parse_cut(packet);
        };
        let header_length = usize::from(head[12] >> 4) * 4;
        let Some(payload_length) = packet.transport_length.checked_sub(header_length as u32) else {
            return Self::parse_cut(packet);
        };
        let options_length = header_length.checked_sub(20).ok_or(TcpError::BadOffset)?;
        let Some((octets, payload)) = rest.split_at_checked(options_length) else {
            return Self::parse_cut(packet);
        };
        let options = Options::parse(octets);
        Ok(Self::assemble(head, options, payload, payload_length))
    }

    /// Reads a segment with an incomplete header: one truncated by the capture, or one that continues in the
    /// next fragment.
    #[cold]
    #[inline(never)]
    fn parse_cut(packet: &Packet<'a>) -> Result<Self, TcpError> {
        let captured = packet.transport;
        if captured.len() < NEEDED {
            return Err(TcpError::Truncated);
        }
        let mut head = [0; 20];
        let taken = captured.len().min(head.len());
        head[..taken].copy_from_slice(&captured[..taken]);
        let header_length = (head[12] >> 4) * 4;
        let beyond = u32::from(header_length) > packet.transport_length;
        if header_length < 20 || (beyond && packet.fragment != Fragment::First) {
            return Err(TcpError::BadOffset);
        }
        let options = match header_length {
            20 => Options::NONE,
            _ => Options::parse_cut(&captured[taken..]),
        };
        let payload_length = packet.transport_length.saturating_sub(header_length.into());
        Ok(Self::assemble(&head, options, &[], payload_length))
    }

    #[inline(always)]
    fn assemble(head: &[u8; 20], options: Options, payload: &'a [u8], payload_length: u32) -> Self {
        Self {
            source_port: u16::from_be_bytes([head[0], head[1]]),
            destination_port: u16::from_be_bytes([head[2], head[3]]),
            sequence: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
            acknowledgment: u32::from_be_bytes([head[8], head[9], head[10], head[11]]),
            header_length: (head[12] >> 4) * 4,
            flags: Flags(u16::from_be_bytes([head[12], head[13]]) & 0x01ff),
            window: u16::from_be_bytes([head[14], head[15]]),
            checksum: u16::from_be_bytes([head[16], head[17]]),
            urgent: u16::from_be_bytes([head[18], head[19]]),
            options,
            payload,
            payload_length,
        }
    }
}

#[cfg(test)]
mod tests;
