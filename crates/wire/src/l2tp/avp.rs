//! One AVP as encoded in a message: RFC 2661 4.1, RFC 3931 5.1.

use super::attribute::Attribute;
use super::message::Fault;

/// Octets of an AVP before its value.
pub const AVP_HEADER_LEN: usize = 6;

/// The longest value that the 10-bit Length field can express.
pub const VALUE_LEN_MAX: usize = 1023 - AVP_HEADER_LEN;

pub(super) const BIT_MANDATORY: u16 = 0x8000;
pub(super) const BIT_HIDDEN: u16 = 0x4000;
const RESERVED_MASK: u16 = 0x3c00;
const LENGTH_MASK: u16 = 0x03ff;

/// A received AVP, with a known attribute or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avp<'a> {
    /// M bit.
    pub mandatory: bool,
    /// H bit: the value is hidden.
    pub hidden: bool,
    /// The four reserved bits, as a number from 0 to 15.
    pub reserved: u8,
    /// Vendor ID; 0 is the IETF.
    pub vendor: u16,
    /// Attribute Type under that vendor.
    pub attribute: u16,
    /// Attribute Value, at most [`VALUE_LEN_MAX`] octets.
    pub value: &'a [u8],
    /// Offset of the AVP from the start of the body, in octets.
    pub offset: usize,
}

impl Avp<'_> {
    /// The attribute, if the table has it (vendor 0).
    #[must_use]
    pub fn known(&self) -> Option<Attribute> {
        if self.vendor == 0 {
            Attribute::from_number(self.attribute)
        } else {
            None
        }
    }

    /// Octets of the whole AVP.
    pub(super) fn len(&self) -> usize {
        AVP_HEADER_LEN + self.value.len()
    }
}

/// Iterates over the AVPs of a body; ends at the body's end or at the first AVP with an invalid Length.
#[derive(Debug, Clone)]
pub struct Avps<'a> {
    body: &'a [u8],
    at: usize,
    fault: Option<Fault>,
}

impl<'a> Avps<'a> {
    /// Iterates over `body`, the octets after a control message header.
    #[must_use]
    pub fn new(body: &'a [u8]) -> Self {
        Avps {
            body,
            at: 0,
            fault: None,
        }
    }

    /// Why iteration ended before the end of the body, if it did: [`Fault::ShortAvp`] or [`Fault::PastEnd`].
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// The octets not yet visited.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.body[self.at..]
    }

    #[cold]
    fn stop(&mut self, fault: Fault) -> Option<Avp<'a>> {
        self.fault = Some(fault);
        None
    }
}

impl<'a> Iterator for Avps<'a> {
    type Item = Avp<'a>;

    #[inline]
    fn next(&mut self) -> Option<Avp<'a>> {
        let offset = self.at;
        let rest = &self.body[offset..];
        if rest.is_empty() || self.fault.is_some() {
            return None;
        }
        let Some(header) = rest.first_chunk::<AVP_HEADER_LEN>() else {
            return self.stop(Fault::PastEnd { offset });
        };
        let bits = u16::from_be_bytes([header[0], header[1]]);
        let len = usize::from(bits & LENGTH_MASK);
        if len < AVP_HEADER_LEN {
            return self.stop(Fault::ShortAvp { offset });
        }
        let Some(avp) = rest.get(..len) else {
            return self.stop(Fault::PastEnd { offset });
        };
        self.at += len;
        Some(Avp {
            mandatory: bits & BIT_MANDATORY != 0,
            hidden: bits & BIT_HIDDEN != 0,
            reserved: ((bits & RESERVED_MASK) >> 10) as u8,
            vendor: u16::from_be_bytes([header[2], header[3]]),
            attribute: u16::from_be_bytes([header[4], header[5]]),
            value: &avp[AVP_HEADER_LEN..],
            offset,
        })
    }
}
