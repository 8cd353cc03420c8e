//! The Extensible Authentication Protocol (RFC 3748), as far as an authenticator reads it that passes it through to a
//! server: code, identifier, length and type. Its packets have the format of [`super::control::Control`].

use super::control::{Control, HEADER};

/// Codes of RFC 3748, section 4.
pub mod code {
    /// Request.
    pub const REQUEST: u8 = 1;
    /// Response.
    pub const RESPONSE: u8 = 2;
    /// Success.
    pub const SUCCESS: u8 = 3;
    /// Failure.
    pub const FAILURE: u8 = 4;
}

/// Types of RFC 3748, section 5.
pub mod kind {
    /// Identity.
    pub const IDENTITY: u8 = 1;
    /// Nak (of a Response only).
    pub const NAK: u8 = 3;
}

/// The largest packet that is passed on: the attributes beside it must fit the same RADIUS packet (RFC 3579, section
/// 3.1).
pub const LENGTH_MAX: usize = 3_000;

/// A Request or a Response (RFC 3748, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its code.
    pub code: u8,
    /// Matches a Response to its Request.
    pub identifier: u8,
    /// The type.
    pub kind: u8,
    /// The data of the type.
    pub data: &'a [u8],
    /// The whole packet, without padding.
    pub octets: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a Request or a Response. `None` if it is neither, has no type, is longer than [`LENGTH_MAX`], or its length
    /// exceeds the octets.
    #[must_use]
    pub fn parse(octets: &'a [u8]) -> Option<Self> {
        let Control {
            code,
            identifier,
            data,
        } = Control::parse(octets).ok()?;
        let (&kind, typed) = data.split_first()?;
        let length = HEADER + data.len();
        let is_right = matches!(code, code::REQUEST | code::RESPONSE) && length <= LENGTH_MAX;
        is_right.then(|| Self {
            code,
            identifier,
            kind,
            data: typed,
            octets: &octets[..length],
        })
    }
}

/// A Request for the peer's identity (RFC 3748, section 5.1).
#[must_use]
pub fn identity_request(identifier: u8) -> [u8; 5] {
    [code::REQUEST, identifier, 0, 5, kind::IDENTITY]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_read_without_its_padding() {
        let octets = [2, 7, 0, 10, 1, b'a', b'l', b'i', b'c', b'e', 0, 0];
        let packet = Packet::parse(&octets).expect("a packet");
        assert_eq!((packet.code, packet.identifier, packet.kind), (2, 7, 1));
        assert_eq!((packet.data, packet.octets), (&b"alice"[..], &octets[..10]));
    }

    #[test]
    fn what_is_neither_request_nor_response_is_refused() {
        let long = [&[1, 1, 0x0b, 0xb9, 13][..], &[0; 3_000]].concat();
        for octets in [
            &[][..],
            &[2, 7, 0, 4],
            &[2, 7, 0, 3, 1],
            &[2, 7, 0, 6, 1],
            &[3, 7, 0, 5, 1],
            &[0, 7, 0, 5, 1],
            &long,
        ] {
            assert_eq!(Packet::parse(octets), None);
        }
        assert!(Packet::parse(&identity_request(3)).is_some());
    }
}
