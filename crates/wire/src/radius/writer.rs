//! Builds a RADIUS packet to be sent (RFC 2865, section 3).

use core::net::Ipv4Addr;

use super::attribute::MESSAGE_AUTHENTICATOR;
use super::{Authenticator, HEADER, LENGTH_MAX, List, secret};

/// Builds a packet at the end of a buffer. An attribute that does not fit is omitted, and [`Writer::finish`]
/// reports it.
#[derive(Debug)]
pub struct Writer<'a> {
    list: List<'a>,
    /// Position of the Message-Authenticator's value.
    signed: Option<usize>,
}

/// The packet's contents exceed 4096 octets (RFC 2865, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl core::fmt::Display for TooLong {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the packet has no room for all of its attributes")
    }
}

impl core::error::Error for TooLong {}

impl<'a> Writer<'a> {
    /// Starts a packet. `authenticator` is random for an Access-Request, the request's own for a reply, and
    /// zero for requests signed as a whole (RFC 2866, section 3; RFC 5176, section 2.3).
    pub fn new(
        out: &'a mut Vec<u8>,
        code: u8,
        identifier: u8,
        authenticator: &Authenticator,
    ) -> Self {
        let mut list = List::within(out, LENGTH_MAX);
        list.begin(&[code, identifier, 0, 0]);
        list.begin(authenticator);
        Self { list, signed: None }
    }

    /// Its attribute list, for appending any attribute.
    pub fn list(&mut self) -> &mut List<'a> {
        &mut self.list
    }

    /// Appends an attribute. A value longer than 253 octets does not fit.
    pub fn attribute(&mut self, kind: u8, value: &[u8]) -> &mut Self {
        self.list.attribute(kind, value);
        self
    }

    /// Appends a number.
    pub fn integer(&mut self, kind: u8, value: u32) -> &mut Self {
        self.list.integer(kind, value);
        self
    }

    /// Appends an IPv4 address.
    pub fn address(&mut self, kind: u8, value: Ipv4Addr) -> &mut Self {
        self.list.address(kind, value);
        self
    }

    /// Appends a Message-Authenticator, which is filled in at the end. It must precede all other attributes, so
    /// that none of them can be mistaken for part of another packet.
    pub fn message_authenticator(&mut self) -> &mut Self {
        if self.signed.is_none() {
            self.signed = Some(self.list.written() + 2);
            self.attribute(MESSAGE_AUTHENTICATOR, &[0; 16]);
        }
        self
    }

    /// Finishes an Access-Request: its authenticator stays unchanged.
    ///
    /// # Errors
    /// An attribute did not fit; the buffer is unchanged.
    pub fn finish(self, secret: &[u8]) -> Result<(), TooLong> {
        self.end(secret).map(drop)
    }

    /// Finishes a packet whose authenticator is a digest over the whole packet, computed with the initial
    /// `authenticator` in its place: replies, accounting requests, and requests of RFC 5176.
    ///
    /// # Errors
    /// An attribute did not fit; the buffer is unchanged.
    pub fn finish_signed(self, secret: &[u8]) -> Result<(), TooLong> {
        let octets = self.end(secret)?;
        let digest = secret::digest(octets, secret);
        octets[4..HEADER].copy_from_slice(&digest);
        Ok(())
    }

    fn end(self, secret: &[u8]) -> Result<&'a mut [u8], TooLong> {
        let Self { list, signed } = self;
        let octets = list.end()?;
        let length = (octets.len() as u16).to_be_bytes();
        octets[2..4].copy_from_slice(&length);
        if let Some(at) = signed {
            let signature = secret::message_authenticator(octets, secret);
            octets[at..at + 16].copy_from_slice(&signature);
        }
        Ok(octets)
    }
}
