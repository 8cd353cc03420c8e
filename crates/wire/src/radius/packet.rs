//! A received RADIUS packet (RFC 2865, sections 3 and 5): its validation, and access to its attributes.

use core::fmt;
use core::net::Ipv4Addr;

use super::{Authenticator, HEADER, LENGTH_MAX};

/// Why bytes are not a RADIUS packet; such a packet is silently discarded (RFC 2865, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParseError {
    /// Fewer octets than its Length states, or than a header has.
    Truncated,
    /// A Length below 20 or above 4096.
    Length(u16),
    /// The length of the attribute at this offset is below two, or runs past the packet.
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

/// A packet with valid lengths throughout.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    octets: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a datagram; octets past the packet's Length are padding.
    ///
    /// # Errors
    /// A length is invalid.
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

    /// Its code.
    #[must_use]
    pub fn code(&self) -> u8 {
        self.octets[0]
    }

    /// Matches a reply to its request, together with the port.
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

    /// The whole packet.
    #[must_use]
    pub fn octets(&self) -> &'a [u8] {
        self.octets
    }

    /// Its attributes, in order.
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

/// Iterates over a packet's attributes.
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
