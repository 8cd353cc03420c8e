//! Appends AVPs to a control message's body: RFC 2661 4.1, RFC 3931 5.1.

use super::attribute::Attribute;
use super::avp::{AVP_HEADER_LEN, BIT_HIDDEN, BIT_MANDATORY, VALUE_LEN_MAX};
use super::disconnect::DisconnectCause;
use super::header::Version;
use super::hidden;
use super::message_type::MessageType;

/// Writes the AVPs of one message, in call order.
///
/// Emitting cannot fail: a value longer than [`VALUE_LEN_MAX`] is truncated. A debug build asserts that the
/// attribute allows the value's length.
#[derive(Debug)]
pub struct Writer<'b> {
    out: &'b mut Vec<u8>,
    version: Version,
}

impl<'b> Writer<'b> {
    /// Appends the Message Type AVP to `out`, with the M bit of the message.
    #[must_use]
    pub fn new(out: &'b mut Vec<u8>, version: Version, kind: MessageType) -> Self {
        let mut writer = Writer { out, version };
        let number = Attribute::MessageType.number();
        writer.raw(kind.mandatory(), 0, number, &kind.number().to_be_bytes());
        writer
    }

    /// Appends a two-octet value.
    pub fn u16(&mut self, attribute: Attribute, value: u16) -> &mut Self {
        self.bytes(attribute, &value.to_be_bytes())
    }

    /// Appends a four-octet value.
    pub fn u32(&mut self, attribute: Attribute, value: u32) -> &mut Self {
        self.bytes(attribute, &value.to_be_bytes())
    }

    /// Appends an eight-octet value.
    pub fn u64(&mut self, attribute: Attribute, value: u64) -> &mut Self {
        self.bytes(attribute, &value.to_be_bytes())
    }

    /// Appends an attribute without a value, such as Sequencing Required.
    pub fn flag(&mut self, attribute: Attribute) -> &mut Self {
        self.bytes(attribute, &[])
    }

    /// Appends a value as it is.
    pub fn bytes(&mut self, attribute: Attribute, value: &[u8]) -> &mut Self {
        debug_assert!(
            attribute.allows_len(self.version, value.len()),
            "{attribute:?}"
        );
        let mandatory = attribute.mandatory(self.version);
        self.raw(mandatory, 0, attribute.number(), value)
    }

    /// Appends a Result Code AVP. An Error Message requires an Error Code before it: without `error`, `message`
    /// is omitted.
    pub fn result_code(&mut self, result: u16, error: Option<u16>, message: &str) -> &mut Self {
        let message = error.map_or("", |_| cut_at_char(message, VALUE_LEN_MAX - 4));
        let len = 2 + error.map_or(0, |_| 2 + message.len());
        let mandatory = Attribute::ResultCode.mandatory(self.version);
        self.header(mandatory, false, 0, Attribute::ResultCode.number(), len);
        self.out.extend_from_slice(&result.to_be_bytes());
        if let Some(error) = error {
            self.out.extend_from_slice(&error.to_be_bytes());
            self.out.extend_from_slice(message.as_bytes());
        }
        self
    }

    /// Appends a PPP Disconnect Cause Code AVP. Its text is cut to what fits.
    pub fn disconnect_cause(&mut self, cause: &DisconnectCause<'_>) -> &mut Self {
        let room = VALUE_LEN_MAX - DisconnectCause::FIXED_LEN;
        let message = &cause.message[..cause.message.len().min(room)];
        let attribute = Attribute::PppDisconnectCauseCode;
        let len = DisconnectCause::FIXED_LEN + message.len();
        self.header(
            attribute.mandatory(self.version),
            false,
            0,
            attribute.number(),
            len,
        );
        self.out.extend_from_slice(&cause.code.to_be_bytes());
        self.out.extend_from_slice(&cause.protocol.to_be_bytes());
        self.out.push(cause.direction);
        self.out.extend_from_slice(message);
        self
    }

    /// Appends a Random Vector AVP, which applies to the hidden AVPs after it.
    pub fn random_vector(&mut self, vector: &[u8]) -> &mut Self {
        self.bytes(Attribute::RandomVector, vector)
    }

    /// Appends a hidden AVP. Its value is masked with `secret` (v2) or [`hidden::shared_key`] of it (v3), and
    /// with `random_vector`, the value of the last Random Vector AVP. `padding` conceals the value's length.
    pub fn hidden(
        &mut self,
        attribute: Attribute,
        value: &[u8],
        secret: &[u8],
        random_vector: &[u8],
        padding: &[u8],
    ) -> &mut Self {
        debug_assert!(attribute.may_hide());
        debug_assert!(
            attribute.allows_len(self.version, value.len()),
            "{attribute:?}"
        );
        let value = &value[..value.len().min(VALUE_LEN_MAX - 2)];
        let padding = &padding[..padding.len().min(VALUE_LEN_MAX - 2 - value.len())];
        let mandatory = attribute.mandatory(self.version);
        let len = 2 + value.len() + padding.len();
        self.header(mandatory, true, 0, attribute.number(), len);
        hidden::hide_value(
            attribute.number(),
            value,
            secret,
            random_vector,
            padding,
            self.out,
        );
        self
    }

    /// Appends any AVP, such as a vendor's or one missing from the table.
    pub fn raw(&mut self, mandatory: bool, vendor: u16, number: u16, value: &[u8]) -> &mut Self {
        debug_assert!(value.len() <= VALUE_LEN_MAX);
        let value = &value[..value.len().min(VALUE_LEN_MAX)];
        self.header(mandatory, false, vendor, number, value.len());
        self.out.extend_from_slice(value);
        self
    }

    fn header(&mut self, mandatory: bool, hidden: bool, vendor: u16, number: u16, len: usize) {
        let mut bits = (AVP_HEADER_LEN + len) as u16;
        bits |= if mandatory { BIT_MANDATORY } else { 0 };
        bits |= if hidden { BIT_HIDDEN } else { 0 };
        let [b0, b1] = bits.to_be_bytes();
        let [v0, v1] = vendor.to_be_bytes();
        let [a0, a1] = number.to_be_bytes();
        self.out.extend_from_slice(&[b0, b1, v0, v1, a0, a1]);
    }
}

/// The longest prefix of `text` that fits into `max` octets without splitting a character.
fn cut_at_char(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::l2tp::Message;

    /// RFC 5515 4: "The Mandatory (M) bit within the Message Type AVP SHOULD be clear".
    #[test]
    fn the_type_of_a_speed_update_is_not_mandatory() {
        let mut body = Vec::new();
        let _ = Writer::new(&mut body, Version::V2, MessageType::Csun);
        assert_eq!(body, [0, 8, 0, 0, 0, 0, 0, 28]);
    }

    #[test]
    fn the_message_type_comes_first_and_is_mandatory() {
        let mut body = vec![0xee];
        let _ = Writer::new(&mut body, Version::V2, MessageType::Hello);
        assert_eq!(body, [0xee, 0x80, 8, 0, 0, 0, 0, 0, 6]);
    }

    #[test]
    fn a_v3_attribute_in_a_v2_message_goes_without_m() {
        let mut body = Vec::new();
        Writer::new(&mut body, Version::V2, MessageType::Sccrq).u32(Attribute::RouterId, 1);
        assert_eq!(body[8..], [0, 10, 0, 0, 0, 60, 0, 0, 0, 1]);
    }

    #[test]
    fn an_error_message_is_cut_between_characters() {
        // 1,013 octets fit after the two codes; each character takes two.
        let text = "\u{e9}".repeat(600);
        let mut body = Vec::new();
        let mut writer = Writer::new(&mut body, Version::V2, MessageType::StopCcn);
        writer.result_code(2, Some(6), &text);
        let message = Message::parse(Version::V2, &body);
        let code = message.result_code().expect("a Result Code");
        assert_eq!(message.fault(), None);
        assert_eq!(str::from_utf8(code.message), Ok(&text[..1012]));
    }

    #[test]
    fn an_error_message_without_an_error_code_is_left_out() {
        let mut body = Vec::new();
        let mut writer = Writer::new(&mut body, Version::V2, MessageType::StopCcn);
        writer.result_code(6, None, "bye");
        assert_eq!(body[8..], [0x80, 8, 0, 0, 0, 1, 0, 6]);
    }

    #[test]
    fn a_hidden_value_leaves_room_for_its_length_and_cuts_its_padding() {
        let mut body = Vec::new();
        let mut writer = Writer::new(&mut body, Version::V2, MessageType::Iccn);
        writer.random_vector(b"vector");
        let (value, padding) = ([1; VALUE_LEN_MAX - 10], [2; 100]);
        writer.hidden(
            Attribute::VendorName,
            &value,
            b"secret",
            b"vector",
            &padding,
        );
        let mut clear = Vec::new();
        crate::l2tp::unhide(&body, b"secret", &mut clear).expect("hidden right");
        let message = Message::parse(Version::V2, &clear);
        assert_eq!(message.get(Attribute::VendorName), Some(&value[..]));
    }
}
