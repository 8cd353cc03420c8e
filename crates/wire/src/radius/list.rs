//! Attributes one after the other.

use core::net::{IpAddr, Ipv4Addr};

use super::{Attributes, HEADER, LENGTH_MAX, ParseError, TooLong};

/// Appends attributes to a buffer, as many octets as a packet has room for. What has no more room is left out, and
/// [`List::finish`] says so.
#[derive(Debug)]
pub struct List<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    room_octets: usize,
    overflow: bool,
}

impl<'a> List<'a> {
    /// A list that fills a packet, but for its header.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self::within(out, LENGTH_MAX - HEADER)
    }

    /// A list of at most so many octets.
    pub fn within(out: &'a mut Vec<u8>, room_octets: usize) -> Self {
        let start = out.len();
        Self {
            out,
            start,
            room_octets,
            overflow: false,
        }
    }

    /// Appends an attribute. A value longer than 253 octets is one that has no room.
    pub fn attribute(&mut self, kind: u8, value: &[u8]) -> &mut Self {
        if value.len() > 253 || !self.has_room(2 + value.len()) {
            self.overflow = true;
        } else {
            self.out.extend_from_slice(&[kind, value.len() as u8 + 2]);
            self.out.extend_from_slice(value);
        }
        self
    }

    /// Appends a number.
    pub fn integer(&mut self, kind: u8, value: u32) -> &mut Self {
        self.attribute(kind, &value.to_be_bytes())
    }

    /// Appends an IPv4 address.
    pub fn address(&mut self, kind: u8, value: Ipv4Addr) -> &mut Self {
        self.attribute(kind, &value.octets())
    }

    /// Appends an address as the attribute of its family.
    pub fn address_of(&mut self, ipv4: u8, ipv6: u8, value: IpAddr) -> &mut Self {
        match value {
            IpAddr::V4(value) => self.attribute(ipv4, &value.octets()),
            IpAddr::V6(value) => self.attribute(ipv6, &value.octets()),
        }
    }

    /// Appends a number of three octets behind the tag of no tunnel in particular (RFC 2868, section 3.1).
    pub fn tagged_integer(&mut self, kind: u8, value: u32) -> &mut Self {
        self.integer(kind, value & 0x00ff_ffff)
    }

    /// Appends octets behind the tag of no tunnel in particular (RFC 2868, section 3.3).
    pub fn tagged_string(&mut self, kind: u8, value: &[u8]) -> &mut Self {
        if value.len() > 252 || !self.has_room(3 + value.len()) {
            self.overflow = true;
        } else {
            self.out
                .extend_from_slice(&[kind, value.len() as u8 + 3, 0]);
            self.out.extend_from_slice(value);
        }
        self
    }

    /// Appends attributes that are encoded already.
    pub fn encoded(&mut self, attributes: Attributes<'_>) -> &mut Self {
        let octets = attributes.octets();
        if self.has_room(octets.len()) {
            self.out.extend_from_slice(octets);
        } else {
            self.overflow = true;
        }
        self
    }

    /// Appends a part of a packet's header.
    pub(super) fn begin(&mut self, octets: &[u8]) {
        self.out.extend_from_slice(octets);
    }

    /// Octets so far.
    pub(super) fn written(&self) -> usize {
        self.out.len() - self.start
    }

    fn has_room(&self, octets: usize) -> bool {
        self.written() + octets <= self.room_octets
    }

    /// Ends the list; its octets are the last of the buffer.
    ///
    /// # Errors
    /// Something had no room; the buffer is as it was.
    pub fn finish(self) -> Result<(), TooLong> {
        self.end().map(drop)
    }

    /// Its octets, to change them.
    pub(super) fn end(self) -> Result<&'a mut [u8], TooLong> {
        if self.overflow {
            self.out.truncate(self.start);
            return Err(TooLong);
        }
        Ok(&mut self.out[self.start..])
    }
}

impl<'a> Attributes<'a> {
    /// Reads octets that are nothing but attributes.
    ///
    /// # Errors
    /// A length is impossible, or there are more octets than a packet has room for.
    pub fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        if octets.len() > LENGTH_MAX - HEADER {
            let length = u16::try_from(octets.len()).unwrap_or(u16::MAX);
            return Err(ParseError::Length(length));
        }
        let attributes = Self { rest: octets };
        match attributes.unreadable() {
            0 => Ok(attributes),
            left => Err(ParseError::Attribute(octets.len() - left)),
        }
    }

    /// The octets of those that are still to come.
    #[must_use]
    pub fn octets(&self) -> &'a [u8] {
        self.rest
    }

    /// How many octets are left where the walk ends.
    pub(super) fn unreadable(mut self) -> usize {
        while self.next().is_some() {}
        self.rest.len()
    }
}
