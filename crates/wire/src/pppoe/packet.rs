//! The PPPoE header: RFC 2516, section 4.

use core::fmt;

/// Octets of the header.
pub const HEADER_LEN: usize = 6;
/// EtherType of Discovery packets (RFC 2516, section 4).
pub const ETHER_TYPE_DISCOVERY: u16 = 0x8863;
/// EtherType of session data (RFC 2516, section 4).
pub const ETHER_TYPE_SESSION: u16 = 0x8864;
/// The session id that must not be used (RFC 2516, section 4).
pub const SESSION_RESERVED: u16 = 0xffff;

/// VER and TYPE, both 1.
pub(super) const VER_TYPE: u8 = 0x11;

/// The CODE field: the kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u8);

impl Code {
    /// Session data (RFC 2516, section 6).
    pub const DATA: Code = Code(0x00);
    /// PPPoE Active Discovery Offer (section 5.2).
    pub const PADO: Code = Code(0x07);
    /// PPPoE Active Discovery Initiation (section 5.1).
    pub const PADI: Code = Code(0x09);
    /// PPPoE Active Discovery Request (section 5.3).
    pub const PADR: Code = Code(0x19);
    /// PPPoE Active Discovery Session-confirmation (section 5.4).
    pub const PADS: Code = Code(0x65);
    /// PPPoE Active Discovery Terminate (section 5.5).
    pub const PADT: Code = Code(0xa7);

    /// The EtherType of packets with this code.
    #[must_use]
    pub const fn ether_type(self) -> u16 {
        match self {
            Self::DATA => ETHER_TYPE_SESSION,
            _ => ETHER_TYPE_DISCOVERY,
        }
    }

    /// The RFC's name, if the code is known.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let known = CODE_NAMES.iter().find(|(code, _)| *code == self);
        known.map(|(_, name)| *name)
    }
}

/// The known codes with their names.
pub const CODE_NAMES: [(Code, &str); 6] = [
    (Code::DATA, "session data"),
    (Code::PADI, "PADI"),
    (Code::PADO, "PADO"),
    (Code::PADR, "PADR"),
    (Code::PADS, "PADS"),
    (Code::PADT, "PADT"),
];

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "code {:#04x}", self.0),
        }
    }
}

/// A packet, without the padding that Ethernet may have appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its kind.
    pub code: Code,
    /// SESSION_ID.
    pub session: u16,
    /// LENGTH octets after the header: tags, or a PPP frame that starts with the protocol field.
    pub payload: &'a [u8],
}

/// Why bytes are not a PPPoE packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Fewer octets than a header.
    #[error("shorter than the header")]
    Short,
    /// VER or TYPE is not 1 (RFC 2516, section 4).
    #[error("VER or TYPE is not 1")]
    Version,
    /// LENGTH is more than the octets after the header.
    #[error("LENGTH is beyond the frame's end")]
    Length,
    /// A tag's TAG_LENGTH is more than the octets after its header, or the header itself is cut.
    #[error("a tag is beyond the packet's end")]
    TagLength,
}

/// Parses a packet from its header on.
///
/// # Errors
/// The header is cut, of another version, or its LENGTH is more than the octets that follow.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Packet<'_>, ParseError> {
    let (header, rest) = bytes
        .split_first_chunk::<HEADER_LEN>()
        .ok_or(ParseError::Short)?;
    let [ver_type, code, s0, s1, l0, l1] = *header;
    if ver_type != VER_TYPE {
        return Err(ParseError::Version);
    }
    let length = usize::from(u16::from_be_bytes([l0, l1]));
    Ok(Packet {
        code: Code(code),
        session: u16::from_be_bytes([s0, s1]),
        payload: rest.get(..length).ok_or(ParseError::Length)?,
    })
}
