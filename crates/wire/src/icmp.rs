//! ICMP echo requests and replies: RFC 792 (IPv4) and RFC 4443 4.1 and 4.2 (IPv6).
//!
//! Left out: every other ICMP message. [`Echo::parse`] rejects those as not being an echo message.

use crate::checksum;

/// ICMP's IP protocol number.
pub const PROTOCOL: u8 = 1;
/// ICMPv6's next-header number.
pub const PROTOCOL_V6: u8 = 58;
/// Octets before an echo message's data.
pub const HEADER: usize = 8;

/// Which of the two protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// ICMP, under IPv4.
    V4,
    /// ICMPv6, under IPv6.
    V6,
}

/// Which of the two messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Echo request: type 8, or 128 in ICMPv6.
    Request,
    /// Echo reply: type 0, or 129 in ICMPv6.
    Reply,
}

/// An echo request or reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo<'a> {
    /// Request or reply.
    pub kind: Kind,
    /// Identifies the sender: the same in all its requests.
    pub identifier: u16,
    /// Sequence number of the request.
    pub sequence: u16,
    /// Data that a reply returns unchanged.
    pub data: &'a [u8],
}

/// Why bytes are not an echo message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum EchoError {
    /// Fewer than 8 octets.
    #[error("truncated ICMP header")]
    Truncated,
    /// Another type, or a code other than 0.
    #[error("no echo message")]
    NotEcho,
    /// ICMP's checksum is wrong. ICMPv6's covers the addresses, and the kernel checks it.
    #[error("wrong ICMP checksum")]
    Checksum,
}

impl Kind {
    const fn number(self, version: Version) -> u8 {
        match (self, version) {
            (Kind::Request, Version::V4) => 8,
            (Kind::Reply, Version::V4) => 0,
            (Kind::Request, Version::V6) => 128,
            (Kind::Reply, Version::V6) => 129,
        }
    }
}

impl<'a> Echo<'a> {
    /// Reads a message that starts with the ICMP header. The ICMPv6 checksum is not verified, because it covers
    /// the addresses.
    ///
    /// # Errors
    /// See [`EchoError`].
    pub fn parse(version: Version, octets: &'a [u8]) -> Result<Self, EchoError> {
        let echo = Self::parse_quoted(version, octets)?;
        if version == Version::V4 && checksum::sum(octets) != 0xffff {
            return Err(EchoError::Checksum);
        }
        Ok(echo)
    }

    /// Reads a message as quoted in an ICMP error: its data may be truncated, and its checksum is not verified.
    ///
    /// # Errors
    /// See [`EchoError`].
    pub fn parse_quoted(version: Version, octets: &'a [u8]) -> Result<Self, EchoError> {
        let Some((head, data)) = octets.split_first_chunk::<HEADER>() else {
            return Err(EchoError::Truncated);
        };
        let kind = [Kind::Request, Kind::Reply]
            .into_iter()
            .find(|kind| kind.number(version) == head[0] && head[1] == 0)
            .ok_or(EchoError::NotEcho)?;
        Ok(Self {
            kind,
            identifier: u16::from_be_bytes([head[4], head[5]]),
            sequence: u16::from_be_bytes([head[6], head[7]]),
            data,
        })
    }

    /// Appends the message to `out`. The ICMPv6 checksum is left 0: the kernel fills it in for every ICMPv6
    /// socket (RFC 3542 3.1).
    pub fn emit(&self, version: Version, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[self.kind.number(version), 0, 0, 0]);
        out.extend_from_slice(&self.identifier.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(self.data);
        if version == Version::V4 {
            let sum = !checksum::sum(&out[start..]);
            out[start + 2..start + 4].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The request that ping of iputils 20221126 sent for `-c 1 -s 4 -p 2a`.
    const REQUEST: [u8; 12] = [
        0x08, 0x00, 0x96, 0xd4, 0x37, 0x2a, 0x00, 0x01, 0x2a, 0x00, 0x00, 0x00,
    ];

    #[test]
    fn a_request_of_another_program_is_read_and_written_alike() {
        let echo = Echo::parse(Version::V4, &REQUEST).unwrap();
        assert_eq!((echo.kind, echo.identifier), (Kind::Request, 0x372a));
        assert_eq!((echo.sequence, echo.data), (1, &[0x2a, 0, 0, 0][..]));
        let mut out = Vec::new();
        echo.emit(Version::V4, &mut out);
        assert_eq!(out, REQUEST);
    }

    #[test]
    fn a_wrong_checksum_another_type_and_a_short_header_are_told_apart() {
        let mut wrong = REQUEST;
        wrong[11] ^= 1;
        assert_eq!(Echo::parse(Version::V4, &wrong), Err(EchoError::Checksum));
        let unreachable = [3, 1, 0xfc, 0xfe, 0, 0, 0, 0];
        let read = Echo::parse(Version::V4, &unreachable);
        assert_eq!(read, Err(EchoError::NotEcho));
        let read = Echo::parse(Version::V4, &REQUEST[..7]);
        assert_eq!(read, Err(EchoError::Truncated));
        let read = Echo::parse(Version::V6, &REQUEST);
        assert_eq!(read, Err(EchoError::NotEcho));
    }

    #[test]
    fn a_quoted_message_is_read_as_far_as_it_is_there() {
        let quoted = Echo::parse_quoted(Version::V4, &REQUEST[..9]).unwrap();
        assert_eq!((quoted.sequence, quoted.data), (1, &[0x2a][..]));
        let quoted = Echo::parse_quoted(Version::V4, &REQUEST[..7]);
        assert_eq!(quoted, Err(EchoError::Truncated));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            identifier: u16, sequence: u16, reply: bool, six: bool, data: Vec<u8>,
        ) {
            let version = if six { Version::V6 } else { Version::V4 };
            let kind = if reply { Kind::Reply } else { Kind::Request };
            let echo = Echo { kind, identifier, sequence, data: &data };
            let mut out = vec![1, 2, 3];
            echo.emit(version, &mut out);
            prop_assert_eq!(Echo::parse(version, &out[3..]), Ok(echo));
        }

        #[test]
        fn no_bytes_make_it_panic(octets: Vec<u8>) {
            let _ = Echo::parse(Version::V4, &octets);
            let _ = Echo::parse(Version::V6, &octets);
            let _ = Echo::parse_quoted(Version::V4, &octets);
        }
    }
}
