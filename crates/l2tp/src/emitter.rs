//! Writes the AVPs of a message, and hides them if configured.

use wire::l2tp::{Attribute, MessageType, Version, Writer};
use wire::pppoe::ADSL_FORUM;

/// The longest value that can be hidden: hiding adds two octets for its length.
pub(crate) const HIDDEN_MAX: usize = wire::l2tp::VALUE_LEN_MAX - 2;

/// A [`Writer`] that hides every AVP that may be hidden (RFC 2661 4.3, RFC 3931 5.3).
pub(crate) struct Emitter<'a> {
    writer: Writer<'a>,
    hide: Option<Hide<'a>>,
}

/// The inputs of hiding.
pub(crate) struct Hide<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) vector: [u8; 16],
}

impl<'a> Emitter<'a> {
    /// Starts a message; with `digest`, reserves space for a Message Digest.
    pub(crate) fn new(
        body: &'a mut Vec<u8>,
        version: Version,
        kind: MessageType,
        digest: Option<wire::l2tp::DigestType>,
        hide: Option<Hide<'a>>,
    ) -> Self {
        let mut writer = Writer::new(body, version, kind);
        if let Some(digest) = digest {
            wire::l2tp::digest::placeholder(&mut writer, digest);
        }
        if let Some(hide) = &hide {
            writer.random_vector(&hide.vector);
        }
        Self { writer, hide }
    }

    pub(crate) fn bytes(&mut self, attribute: Attribute, value: &[u8]) -> &mut Self {
        match &self.hide {
            Some(hide) if attribute.may_hide() && value.len() <= HIDDEN_MAX => {
                self.writer
                    .hidden(attribute, value, hide.key, &hide.vector, &[]);
            }
            _ => {
                self.writer.bytes(attribute, value);
            }
        }
        self
    }

    /// Like `bytes`, but an empty value writes nothing.
    pub(crate) fn optional(&mut self, attribute: Attribute, value: &[u8]) -> &mut Self {
        if value.is_empty() {
            self
        } else {
            self.bytes(attribute, value)
        }
    }

    /// An AVP about the caller's line: of the ADSL Forum, without the M bit (RFC 5515, section 5).
    pub(crate) fn line(&mut self, number: u16, value: &[u8]) -> &mut Self {
        self.writer.raw(false, ADSL_FORUM as u16, number, value);
        self
    }

    /// Why PPP ended (RFC 3145); it is not hidden.
    pub(crate) fn disconnect_cause(
        &mut self,
        cause: &wire::l2tp::DisconnectCause<'_>,
    ) -> &mut Self {
        self.writer.disconnect_cause(cause);
        self
    }

    pub(crate) fn u16(&mut self, attribute: Attribute, value: u16) -> &mut Self {
        self.bytes(attribute, &value.to_be_bytes())
    }

    pub(crate) fn u32(&mut self, attribute: Attribute, value: u32) -> &mut Self {
        self.bytes(attribute, &value.to_be_bytes())
    }

    pub(crate) fn u64(&mut self, attribute: Attribute, value: u64) -> &mut Self {
        self.bytes(attribute, &value.to_be_bytes())
    }

    pub(crate) fn result_code(&mut self, codes: &crate::end::Codes) -> &mut Self {
        self.writer
            .result_code(codes.result, codes.error, &codes.message);
        self
    }
}
