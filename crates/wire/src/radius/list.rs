//! Writes and reads lists of attributes.

use core::net::{IpAddr, Ipv4Addr};

use super::attribute::VENDOR_SPECIFIC;
use super::{Attributes, HEADER, LENGTH_MAX, ParseError, TooLong};

/// Appends attributes to a buffer, up to the size of a packet. An attribute that does not fit is omitted, and
/// [`List::finish`] reports it.
#[derive(Debug)]
pub struct List<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    room_octets: usize,
    overflow: bool,
}

impl<'a> List<'a> {
    /// A list limited to a packet's size minus its header.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self::within(out, LENGTH_MAX - HEADER)
    }

    /// A list of at most that many octets.
    pub fn within(out: &'a mut Vec<u8>, room_octets: usize) -> Self {
        let start = out.len();
        Self {
            out,
            start,
            room_octets,
            overflow: false,
        }
    }

    /// Appends an attribute. A value longer than 253 octets does not fit.
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

    /// Appends one Vendor-Specific attribute with these attributes of a vendor (RFC 2865, section 5.26).
    pub fn vendor_specific(&mut self, vendor: u32, attributes: &[(u8, &[u8])]) -> &mut Self {
        let mut value = vendor.to_be_bytes().to_vec();
        for (kind, octets) in attributes {
            self.overflow |= octets.len() > 253;
            value.extend_from_slice(&[*kind, octets.len() as u8 + 2]);
            value.extend_from_slice(octets);
        }
        self.attribute(VENDOR_SPECIFIC, &value)
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

    /// Appends a three-octet number with tag 0, for no particular tunnel (RFC 2868, section 3.1).
    pub fn tagged_integer(&mut self, kind: u8, value: u32) -> &mut Self {
        self.integer(kind, value & 0x00ff_ffff)
    }

    /// Appends octets with tag 0, for no particular tunnel (RFC 2868, section 3.3).
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

    /// Appends already encoded attributes.
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

    /// Octets written so far.
    pub(super) fn written(&self) -> usize {
        self.out.len() - self.start
    }

    fn has_room(&self, octets: usize) -> bool {
        self.written() + octets <= self.room_octets
    }

    /// Finishes the list; its octets are the last of the buffer.
    ///
    /// # Errors
    /// An attribute did not fit; the buffer is unchanged.
    pub fn finish(self) -> Result<(), TooLong> {
        self.end().map(drop)
    }

    /// The list's octets, for changes.
    pub(super) fn end(self) -> Result<&'a mut [u8], TooLong> {
        if self.overflow {
            self.out.truncate(self.start);
            return Err(TooLong);
        }
        Ok(&mut self.out[self.start..])
    }
}

impl<'a> Attributes<'a> {
    /// Reads bytes that consist only of attributes.
    ///
    /// # Errors
    /// A length is invalid, or there are more octets than a packet can hold.
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

    /// The octets not yet visited.
    #[must_use]
    pub fn octets(&self) -> &'a [u8] {
        self.rest
    }

    /// How many octets are left where iteration ends.
    pub(super) fn unreadable(mut self) -> usize {
        while self.next().is_some() {}
        self.rest.len()
    }
}
