//! A packet that came.

use core::fmt;
use core::net::Ipv4Addr;

use super::{Authenticator, HEADER, LENGTH_MAX};

/// Why octets are no RADIUS packet; it is silently discarded (RFC 2865, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParseError {
    /// Fewer octets than its Length says, or than a header has.
    Truncated,
    /// A Length below 20 or above 4096.
    Length(u16),
    /// An attribute's length is below two, or beyond the packet: the attribute at this octet.
    Attribute(usize),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the datagram is shorter than the packet in it"),
            Self::Length(length) => write!(f, "a packet of {length} octets cannot be"),
            Self::Attribute(at) => {
                write!(f, "the attribute at octet {at} has an impossible length")
            }
        }
    }
}

impl core::error::Error for ParseError {}

/// A packet whose lengths are right, all of them.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    octets: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a datagram; octets beyond the packet's Length are padding.
    ///
    /// # Errors
    /// A length is impossible.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let header = datagram.first_chunk::<HEADER>();
        let header = header.ok_or(ParseError::Truncated)?;
        let length = u16::from_be_bytes([header[2], header[3]]);
        if !(HEADER..=LENGTH_MAX).contains(&usize::from(length)) {
            return Err(ParseError::Length(length));
        }
        let octets = datagram.get(..usize::from(length));
        let octets = octets.ok_or(ParseError::Truncated)?;
        let packet = Self { octets };
        match packet.attributes().unreadable() {
            0 => Ok(packet),
            left => Err(ParseError::Attribute(octets.len() - left)),
        }
    }

    /// What it is.
    #[must_use]
    pub fn code(&self) -> u8 {
        self.octets[0]
    }

    /// What a reply is matched by, beside its port.
    #[must_use]
    pub fn identifier(&self) -> u8 {
        self.octets[1]
    }

    /// The authenticator.
    #[must_use]
    pub fn authenticator(&self) -> Authenticator {
        let mut authenticator = [0; 16];
        authenticator.copy_from_slice(&self.octets[4..HEADER]);
        authenticator
    }

    /// All of it.
    #[must_use]
    pub fn octets(&self) -> &'a [u8] {
        self.octets
    }

    /// Its attributes, in their order.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes {
            rest: &self.octets[HEADER..],
        }
    }

    /// The first attribute of a type.
    #[must_use]
    pub fn find(&self, kind: u8) -> Option<Attribute<'a>> {
        self.attributes().find(|attribute| attribute.kind == kind)
    }
}

/// An attribute (RFC 2865, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Its type.
    pub kind: u8,
    /// Its value, at most 253 octets.
    pub value: &'a [u8],
}

impl Attribute<'_> {
    /// The value as a number, if it has four octets.
    #[must_use]
    pub fn integer(&self) -> Option<u32> {
        self.value.try_into().ok().map(u32::from_be_bytes)
    }

    /// The value as an IPv4 address, if it has four octets.
    #[must_use]
    pub fn address(&self) -> Option<Ipv4Addr> {
        self.integer().map(Ipv4Addr::from_bits)
    }

    /// The value as text, if it is UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        core::str::from_utf8(self.value).ok()
    }
}

/// The attributes of a packet, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;

    fn next(&mut self) -> Option<Attribute<'a>> {
        let &[kind, length, ..] = self.rest else {
            return None;
        };
        let (octets, rest) = self.rest.split_at_checked(usize::from(length))?;
        let value = octets.get(2..)?;
        self.rest = rest;
        Some(Attribute { kind, value })
    }
}
