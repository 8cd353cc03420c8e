//! The headers that distinguish control from data and v2 from v3: RFC 2661 3.1, RFC 3931 3.2.1 and 4.1.2.1.
//! Start reading at [`parse`].

use super::data::{DataV2, DataV3};

/// Octets of a control message header, the same in v2 and v3.
pub const CONTROL_HEADER_LEN: usize = 12;

/// The longest AVP body that the 16-bit Length field can express.
pub const CONTROL_BODY_LEN_MAX: usize = u16::MAX as usize - CONTROL_HEADER_LEN;

pub(super) const FLAG_T: u16 = 0x8000;
pub(super) const FLAG_L: u16 = 0x4000;
pub(super) const FLAG_S: u16 = 0x0800;
pub(super) const FLAG_O: u16 = 0x0200;
pub(super) const FLAG_P: u16 = 0x0100;
const VERSION_MASK: u16 = 0x000f;

/// The Ver field of a header: the packet's protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// L2TPv2, RFC 2661.
    V2,
    /// L2TPv3, RFC 3931.
    V3,
}

impl Version {
    /// The value of the Ver field.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Version::V2 => 2,
            Version::V3 => 3,
        }
    }
}

/// A received datagram with its header parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A control message of either version.
    Control(Control<'a>),
    /// A v2 data message, RFC 2661 3.1.
    DataV2(DataV2<'a>),
    /// A v3 data message over UDP, RFC 3931 4.1.2.1.
    DataV3(DataV3<'a>),
}

/// A control message: RFC 2661 3.1, RFC 3931 3.2.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control<'a> {
    /// The Ver field.
    pub version: Version,
    /// The recipient's Tunnel ID (v2, 16 bits) or Control Connection ID (v3).
    pub connection: u32,
    /// Session ID of a v2 header; 0 in v3, whose header has none.
    pub session: u16,
    /// Sequence number of this message.
    pub ns: u16,
    /// Sequence number expected next by the sender.
    pub nr: u16,
    /// The AVPs; empty for a Zero-Length Body message (ZLB).
    pub body: &'a [u8],
    /// Header and body up to the Length field's end: the bytes that a v3 digest covers.
    pub whole: &'a [u8],
}

/// Why a datagram is not a readable L2TP packet. All such datagrams must be discarded (RFC 2661 3.1 and 7.1,
/// RFC 3931 7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ParseError {
    /// The datagram ends within the header, or before the end that its Length gives.
    #[error("the datagram is shorter than its header says")]
    Truncated,
    /// Ver is neither 2 nor 3; 1 is L2F (RFC 2341).
    #[error("version {0} of the header is not supported")]
    UnsupportedVersion(u8),
    /// A control message without the L or S bit, or a v2 one with the O bit.
    #[error("the flags of a control message are wrong")]
    BadFlags,
    /// The Length field is smaller than the header it is part of.
    #[error("the Length field is smaller than the header")]
    BadLength,
    /// The offset padding of a v2 data message runs past its end.
    #[error("the Offset Size runs past the end of the message")]
    BadOffset,
}

/// Parses the header of a UDP payload.
///
/// The Ver field is checked first, as RFC 3931 4.1.2.1 requires. Reserved bits are ignored, as is the P bit of
/// a control message, which has no meaning there. Octets past the Length field are not part of the message.
///
/// # Errors
/// See [`ParseError`]; the caller discards and counts the datagram.
pub fn parse(datagram: &[u8]) -> Result<Packet<'_>, ParseError> {
    let Some(&[hi, lo]) = datagram.first_chunk() else {
        return Err(ParseError::Truncated);
    };
    let flags = u16::from_be_bytes([hi, lo]);
    let version = match flags & VERSION_MASK {
        2 => Version::V2,
        3 => Version::V3,
        other => return Err(ParseError::UnsupportedVersion(other as u8)),
    };
    if flags & FLAG_T != 0 {
        return parse_control(version, flags, datagram).map(Packet::Control);
    }
    match version {
        Version::V2 => DataV2::parse(flags, datagram).map(Packet::DataV2),
        Version::V3 => DataV3::parse(datagram).map(Packet::DataV3),
    }
}

fn parse_control(version: Version, flags: u16, datagram: &[u8]) -> Result<Control<'_>, ParseError> {
    if flags & (FLAG_L | FLAG_S) != FLAG_L | FLAG_S {
        return Err(ParseError::BadFlags);
    }
    if version == Version::V2 && flags & FLAG_O != 0 {
        return Err(ParseError::BadFlags);
    }
    let Some(header) = datagram.first_chunk::<CONTROL_HEADER_LEN>() else {
        return Err(ParseError::Truncated);
    };
    let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let length = usize::from(field(2));
    if length < CONTROL_HEADER_LEN {
        return Err(ParseError::BadLength);
    }
    let whole = datagram.get(..length).ok_or(ParseError::Truncated)?;
    let (connection, session) = match version {
        Version::V2 => (u32::from(field(4)), field(6)),
        Version::V3 => (u32::from(field(4)) << 16 | u32::from(field(6)), 0),
    };
    Ok(Control {
        version,
        connection,
        session,
        ns: field(8),
        nr: field(10),
        body: &whole[CONTROL_HEADER_LEN..],
        whole,
    })
}

/// Whether a message that we composed is an acknowledgement alone: a control message without a body (ZLB).
#[must_use]
pub fn is_zlb(message: &[u8]) -> bool {
    message.len() == CONTROL_HEADER_LEN && message[0] & (FLAG_T >> 8) as u8 != 0
}

/// Appends a control message: a header with the correct Length, then `body`.
///
/// `connection` is the recipient's Tunnel ID (v2, only the low 16 bits are sent) or Control Connection ID (v3);
/// `session` is sent in v2 only. A body longer than [`CONTROL_BODY_LEN_MAX`] is truncated.
pub fn emit_control(
    out: &mut Vec<u8>,
    version: Version,
    connection: u32,
    session: u16,
    ns: u16,
    nr: u16,
    body: &[u8],
) {
    debug_assert!(body.len() <= CONTROL_BODY_LEN_MAX);
    let body = &body[..body.len().min(CONTROL_BODY_LEN_MAX)];
    let length = (CONTROL_HEADER_LEN + body.len()) as u16;
    let flags = FLAG_T | FLAG_L | FLAG_S | u16::from(version.number());
    let target = match version {
        Version::V2 => connection << 16 | u32::from(session),
        Version::V3 => connection,
    };
    let mut header = [0; CONTROL_HEADER_LEN];
    header[0..2].copy_from_slice(&flags.to_be_bytes());
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[4..8].copy_from_slice(&target.to_be_bytes());
    header[8..10].copy_from_slice(&ns.to_be_bytes());
    header[10..12].copy_from_slice(&nr.to_be_bytes());
    out.reserve(usize::from(length));
    out.extend_from_slice(&header);
    out.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A v2 ZLB on tunnel 0x0102, session 0x0304, Ns 5, Nr 6.
    const ZLB: [u8; 12] = [0xc8, 2, 0, 12, 1, 2, 3, 4, 0, 5, 0, 6];

    /// The ZLB with some octets changed.
    fn with(changes: &[(usize, u8)]) -> [u8; 12] {
        let mut packet = ZLB;
        for &(at, octet) in changes {
            packet[at] = octet;
        }
        packet
    }

    #[test]
    fn ids_are_of_16_bits_in_v2_and_of_32_in_v3() {
        assert!(is_zlb(&ZLB) && !is_zlb(&ZLB[..11]));
        let Ok(Packet::Control(v2)) = parse(&ZLB) else {
            panic!("a control message")
        };
        assert_eq!(
            (v2.connection, v2.session, v2.ns, v2.nr),
            (0x0102, 0x0304, 5, 6)
        );
        let zlb = with(&[(1, 3)]);
        let Ok(Packet::Control(v3)) = parse(&zlb) else {
            panic!("a control message")
        };
        assert_eq!(
            (v3.connection, v3.session, v3.ns, v3.nr),
            (0x0102_0304, 0, 5, 6)
        );
    }

    #[test]
    fn every_part_of_a_header_is_truncated() {
        for len in 0..ZLB.len() {
            assert_eq!(
                parse(&ZLB[..len]),
                Err(ParseError::Truncated),
                "{len} octets"
            );
        }
    }

    #[test]
    fn l2f_and_unknown_versions_are_told_apart_from_l2tp() {
        for version in [0, 1, 4, 15] {
            assert_eq!(
                parse(&with(&[(1, version)])),
                Err(ParseError::UnsupportedVersion(version))
            );
            assert_eq!(
                parse(&with(&[(0, 0), (1, version)])),
                Err(ParseError::UnsupportedVersion(version))
            );
        }
    }

    #[test]
    fn a_control_message_needs_length_and_sequence_numbers() {
        for version in [2, 3] {
            for flags in [0x80, 0xc0, 0x88] {
                assert_eq!(
                    parse(&with(&[(0, flags), (1, version)])),
                    Err(ParseError::BadFlags)
                );
            }
        }
    }

    #[test]
    fn a_control_message_with_an_offset_is_of_v3_only_where_the_bit_is_reserved() {
        assert_eq!(parse(&with(&[(0, 0xca)])), Err(ParseError::BadFlags));
        assert!(parse(&with(&[(0, 0xca), (1, 3)])).is_ok());
    }

    #[test]
    fn reserved_bits_and_the_priority_bit_of_control_are_ignored() {
        for (b0, b1) in [(0xf8, 0xf2), (0xcd, 0x02), (0xff, 0xf3)] {
            assert!(
                matches!(parse(&with(&[(0, b0), (1, b1)])), Ok(Packet::Control(_))),
                "{b0:02x}{b1:02x}"
            );
        }
    }

    #[test]
    fn length_is_at_least_the_header_and_at_most_the_datagram() {
        assert_eq!(parse(&with(&[(3, 11)])), Err(ParseError::BadLength));
        assert_eq!(parse(&with(&[(3, 13)])), Err(ParseError::Truncated));
        assert_eq!(
            parse(&with(&[(2, 255), (3, 255)])),
            Err(ParseError::Truncated)
        );
    }

    #[test]
    fn octets_past_the_length_are_no_part_of_the_message() {
        let datagram = [&ZLB[..], &[1, 2, 3]].concat();
        let Ok(Packet::Control(control)) = parse(&datagram) else {
            panic!("a control message")
        };
        assert_eq!((control.body, control.whole), (&[][..], &ZLB[..]));
    }

    #[test]
    fn data_is_told_from_control_by_the_type_bit() {
        assert!(matches!(parse(&with(&[(0, 0)])), Ok(Packet::DataV2(_))));
        assert!(matches!(
            parse(&with(&[(0, 0), (1, 3)])),
            Ok(Packet::DataV3(_))
        ));
        // In v3 data messages, the bits that v2 calls L, S, O and P are reserved.
        assert!(matches!(
            parse(&with(&[(0, 0x7f), (1, 0xf3)])),
            Ok(Packet::DataV3(_))
        ));
    }
}
