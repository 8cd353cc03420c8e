//! Reads all AVPs of a control message in one pass: RFC 2661 4, RFC 3931 5.
//!
//! The pass fills a table indexed by attribute, so a look-up takes constant time and nothing is allocated. The
//! rules it applies:
//!
//! - An attribute is recognised if the version's RFC defines it. In v2 an AVP with a reserved bit set is
//!   unrecognised (RFC 2661 4.1); in v3 reserved bits are ignored (RFC 3931 5.1). v2-only attributes in an
//!   SCCRQ read as v3 are ignored whatever their M bit (RFC 3931 4.7.3).
//! - An unrecognised AVP with M = 0 is ignored; [`Message::unrecognised_mandatory`] returns the first one with
//!   M = 1. The M bit of a recognised AVP matters only if its length is wrong: with M = 0 the AVP is treated as
//!   absent (RFC 2661 7.1, RFC 3931 7.1), with M = 1 it is a [`Fault::BadLength`].
//! - A hidden AVP is a fault whatever its M bit: without a secret none may occur (RFC 2661 4.3), and with a
//!   secret [`super::unhide`] must decrypt it first.
//! - Neither RFC defines the meaning of repeated AVPs, except for Random Vector, Message Digest and Extended
//!   Vendor ID, which may repeat. This module uses the first one; [`Message::avps`] returns them all.

use super::attribute::{Attribute, COUNT};
use super::avp::{AVP_HEADER_LEN, Avp, Avps};
use super::disconnect::DisconnectCause;
use super::header::{CONTROL_BODY_LEN_MAX, Version};
use super::message_type::MessageType;
use super::speed::ConnectSpeed;
use crate::pppoe::ADSL_FORUM;

/// A fault in a message's AVPs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// The Message Type AVP is absent, not first, or unrecognised.
    #[error("the first AVP is not a Message Type")]
    NoMessageType,
    /// An AVP's Length is below 6; reading ends there.
    #[error("the AVP at octet {offset} says it is shorter than its header")]
    ShortAvp {
        /// Octets from the start of the body.
        offset: usize,
    },
    /// An AVP runs past the message's end; reading ends there.
    #[error("the AVP at octet {offset} runs past the end of the message")]
    PastEnd {
        /// Octets from the start of the body.
        offset: usize,
    },
    /// The attribute does not allow a value of this length, and M is set.
    #[error("the length of {} is wrong", .0.name())]
    BadLength(Attribute),
    /// The AVP is hidden: not yet decrypted, or its attribute must not be hidden.
    #[error("{} is hidden", .0.name())]
    Hidden(Attribute),
}

/// The value of a Result Code AVP: RFC 2661 4.4.2, RFC 3931 5.4.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultCode<'a> {
    /// Result Code; its meaning depends on the message, StopCCN or CDN.
    pub result: u16,
    /// Error Code, if present.
    pub error: Option<u16>,
    /// Error Message, supposedly UTF-8; empty if absent.
    pub message: &'a [u8],
}

/// Position of a value in the body; offset 0 means no value.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    offset: u16,
    len: u16,
}

/// The AVPs of a control message, indexed by attribute.
#[derive(Debug, Clone)]
pub struct Message<'a> {
    version: Version,
    body: &'a [u8],
    kind: MessageType,
    kind_mandatory: bool,
    has_hidden: bool,
    has_line: bool,
    fault: Option<Fault>,
    unrecognised: Option<(u16, u16)>,
    ignored: Option<Attribute>,
    ignored_avps: u16,
    slots: [Slot; COUNT],
}

impl<'a> Message<'a> {
    /// Reads the AVPs of `body`, the octets after the header.
    ///
    /// Always returns a message. A fault may end reading early; the AVPs before it stay readable. An empty body
    /// (ZLB) yields a message with [`Fault::NoMessageType`]. The body must be no longer than a control message
    /// allows, 65,523 octets.
    #[must_use]
    pub fn parse(version: Version, body: &'a [u8]) -> Message<'a> {
        let body = body.get(..CONTROL_BODY_LEN_MAX).unwrap_or(body);
        let mut message = Message {
            version,
            body,
            kind: MessageType::Unknown(0),
            kind_mandatory: false,
            has_hidden: false,
            has_line: false,
            fault: None,
            unrecognised: None,
            ignored: None,
            ignored_avps: 0,
            slots: [Slot::default(); COUNT],
        };
        let mut avps = Avps::new(body);
        match avps.next() {
            Some(first) => message.take_first(&first),
            None => message.set_fault(avps.fault().unwrap_or(Fault::NoMessageType)),
        }
        for avp in avps.by_ref() {
            message.take(&avp);
        }
        if let Some(fault) = avps.fault() {
            message.set_fault(fault);
        }
        message
    }

    fn take_first(&mut self, avp: &Avp<'a>) {
        let readable = self.version == Version::V3 || avp.reserved == 0;
        if avp.attribute != Attribute::MessageType.number() || !readable {
            self.set_fault(Fault::NoMessageType);
            return self.take(avp);
        }
        self.kind_mandatory = avp.mandatory;
        if avp.hidden {
            self.has_hidden = true;
            return self.set_fault(Fault::Hidden(Attribute::MessageType));
        }
        let Ok(number) = avp.value.try_into().map(u16::from_be_bytes) else {
            return self.set_fault(Fault::BadLength(Attribute::MessageType));
        };
        if avp.vendor != 0 {
            self.kind = MessageType::Unknown(number);
            return;
        }
        self.kind = MessageType::from_number(self.version, number);
        self.put(Attribute::MessageType, avp);
    }

    #[inline]
    fn take(&mut self, avp: &Avp<'a>) {
        let known = avp
            .known()
            .filter(|_| self.version == Version::V3 || avp.reserved == 0);
        let Some(attribute) = known else {
            return self.skip(avp);
        };
        if !attribute.defined_in(self.version) {
            if self.version == Version::V2 || self.kind != MessageType::Sccrq {
                self.skip(avp);
            }
            return;
        }
        if avp.hidden {
            self.has_hidden = true;
            return self.set_fault(Fault::Hidden(attribute));
        }
        if attribute.allows_len(self.version, avp.value.len()) {
            self.put(attribute, avp);
        } else if avp.mandatory {
            self.set_fault(Fault::BadLength(attribute));
        } else {
            self.ignored = self.ignored.or(Some(attribute));
            self.ignored_avps += 1;
        }
    }

    /// Records an unrecognised AVP.
    fn skip(&mut self, avp: &Avp<'a>) {
        if is_line(avp) {
            self.has_line = true;
        } else if !avp.mandatory {
            self.ignored_avps += 1;
        } else if self.unrecognised.is_none() {
            self.unrecognised = Some((avp.vendor, avp.attribute));
        }
    }

    #[inline]
    fn put(&mut self, attribute: Attribute, avp: &Avp<'a>) {
        let slot = &mut self.slots[attribute as usize];
        if slot.offset == 0 {
            // Both casts are lossless: a body is shorter than 2^16 octets, a value than 2^10.
            slot.offset = (avp.offset + AVP_HEADER_LEN) as u16;
            slot.len = avp.value.len() as u16;
        }
    }

    fn set_fault(&mut self, fault: Fault) {
        self.fault = self.fault.or(Some(fault));
    }

    /// The version it was read as.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Message Type; [`MessageType::Unknown`] for a vendor's type, and `Unknown(0)` if [`Message::fault`]
    /// reports that it is missing.
    #[must_use]
    pub fn kind(&self) -> MessageType {
        self.kind
    }

    /// M bit of the Message Type AVP: whether an unknown type clears the
    /// control connection (RFC 2661 4.4.1).
    #[must_use]
    pub fn kind_mandatory(&self) -> bool {
        self.kind_mandatory
    }

    /// The first fault, in the order of the AVPs.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Vendor ID and Attribute Type of the first unrecognised AVP with M = 1.
    #[must_use]
    pub fn unrecognised_mandatory(&self) -> Option<(u16, u16)> {
        self.unrecognised
    }

    /// The first recognised AVP that was ignored because its length is wrong and its M bit is 0; RFC 2661 7.1
    /// suggests logging it.
    #[must_use]
    pub fn ignored_malformed(&self) -> Option<Attribute> {
        self.ignored
    }

    /// The number of AVPs that were ignored because their M bit is 0 and they are unrecognised or have a wrong length
    /// (RFC 2661 4.1).
    #[must_use]
    pub fn ignored_avps(&self) -> u16 {
        self.ignored_avps
    }

    /// Whether a recognised AVP is hidden.
    #[must_use]
    pub fn has_hidden(&self) -> bool {
        self.has_hidden
    }

    /// Whether there are AVPs about the caller's access line (RFC 5515, section 5).
    #[must_use]
    pub fn has_line(&self) -> bool {
        self.has_line
    }

    /// The AVPs about the caller's access line: Attribute Type and value.
    pub fn line(&self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let all = Avps::new(self.body).filter(is_line);
        all.map(|avp| (avp.attribute, avp.value))
    }

    /// The value of an attribute; the first one if it is repeated.
    #[must_use]
    #[inline]
    pub fn get(&self, attribute: Attribute) -> Option<&'a [u8]> {
        let slot = self.slots[attribute as usize];
        if slot.offset == 0 {
            return None;
        }
        let start = usize::from(slot.offset);
        self.body.get(start..start + usize::from(slot.len))
    }

    /// Whether the attribute is present with a value of an allowed length.
    #[must_use]
    pub fn has(&self, attribute: Attribute) -> bool {
        self.slots[attribute as usize].offset != 0
    }

    fn array<const N: usize>(&self, attribute: Attribute) -> Option<[u8; N]> {
        self.get(attribute)?.try_into().ok()
    }

    /// A two-octet value.
    #[must_use]
    pub fn u16(&self, attribute: Attribute) -> Option<u16> {
        self.array(attribute).map(u16::from_be_bytes)
    }

    /// A four-octet value.
    #[must_use]
    pub fn u32(&self, attribute: Attribute) -> Option<u32> {
        self.array(attribute).map(u32::from_be_bytes)
    }

    /// An eight-octet value.
    #[must_use]
    pub fn u64(&self, attribute: Attribute) -> Option<u64> {
        self.array(attribute).map(u64::from_be_bytes)
    }

    /// The Result Code AVP of a StopCCN or CDN.
    #[must_use]
    pub fn result_code(&self) -> Option<ResultCode<'a>> {
        let value = self.get(Attribute::ResultCode)?;
        let (&result, rest) = value.split_first_chunk()?;
        let (error, message) = match rest.split_first_chunk() {
            Some((&error, message)) => (Some(u16::from_be_bytes(error)), message),
            None => (None, rest),
        };
        Some(ResultCode {
            result: u16::from_be_bytes(result),
            error,
            message,
        })
    }

    /// The PPP Disconnect Cause Code AVP of a CDN (RFC 3145).
    #[must_use]
    pub fn disconnect_cause(&self) -> Option<DisconnectCause<'a>> {
        DisconnectCause::parse(self.get(Attribute::PppDisconnectCauseCode)?)
    }

    /// The Connect Speed Update AVPs of a CSUN or CSURQ, of which there may be several (RFC 5515 4.1). Malformed ones
    /// and those that are still hidden are left out.
    pub fn speeds(&self) -> impl Iterator<Item = ConnectSpeed> + use<'a> {
        let version = self.version;
        let all = Avps::new(self.body).filter(move |avp| {
            avp.known() == Some(Attribute::ConnectSpeedUpdate)
                && !avp.hidden
                && (version == Version::V3 || avp.reserved == 0)
        });
        all.filter_map(move |avp| ConnectSpeed::parse(version, avp.value))
    }

    /// Every AVP as encoded in the message, up to where reading ended.
    #[must_use]
    pub fn avps(&self) -> Avps<'a> {
        Avps::new(self.body)
    }
}

/// Whether an AVP is about the caller's access line: RFC 5515, section 5. Hidden ones are ignored.
fn is_line(avp: &Avp<'_>) -> bool {
    let known = matches!(avp.attribute, 0x01 | 0x02 | 0x81..=0x8e | 0x90 | 0xfe);
    u32::from(avp.vendor) == ADSL_FORUM && known && !avp.hidden && avp.reserved == 0
}

#[cfg(test)]
mod tests;
