//! Messages written AVP by AVP.

use wire::l2tp::{Attribute, Message, MessageType, Packet, parse};

/// A body, AVP by AVP.
#[derive(Clone)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
}

impl Body {
    pub(crate) fn new(kind: MessageType) -> Self {
        Self::empty().u16(Attribute::MessageType, kind.number())
    }

    pub(crate) fn empty() -> Self {
        Self { bytes: Vec::new() }
    }

    /// An AVP from raw octets: `bits` are M, H and the reserved ones.
    pub(crate) fn raw(mut self, bits: u8, vendor: u16, number: u16, value: &[u8]) -> Self {
        let len = 6 + value.len();
        assert!(len < 1024);
        self.bytes.push(bits | (len >> 8) as u8);
        self.bytes.push(len as u8);
        self.bytes.extend_from_slice(&vendor.to_be_bytes());
        self.bytes.extend_from_slice(&number.to_be_bytes());
        self.bytes.extend_from_slice(value);
        self
    }

    /// Octets that need not form an AVP.
    pub(crate) fn octets(mut self, octets: &[u8]) -> Self {
        self.bytes.extend_from_slice(octets);
        self
    }

    /// An AVP with M = 1.
    pub(crate) fn avp(self, attribute: Attribute, value: &[u8]) -> Self {
        self.raw(0x80, 0, attribute.number(), value)
    }

    pub(crate) fn u16(self, attribute: Attribute, value: u16) -> Self {
        self.avp(attribute, &value.to_be_bytes())
    }

    pub(crate) fn u32(self, attribute: Attribute, value: u32) -> Self {
        self.avp(attribute, &value.to_be_bytes())
    }

    pub(crate) fn u64(self, attribute: Attribute, value: u64) -> Self {
        self.avp(attribute, &value.to_be_bytes())
    }

    /// The same body without an attribute.
    pub(crate) fn without(self, attribute: Attribute) -> Self {
        let mut kept = Self::empty();
        for avp in wire::l2tp::Avps::new(&self.bytes) {
            if avp.vendor != 0 || avp.attribute != attribute.number() {
                let end = avp.offset + 6 + avp.value.len();
                kept.bytes.extend_from_slice(&self.bytes[avp.offset..end]);
            }
        }
        kept
    }

    /// The same body with every M bit inverted, except the Message Type's.
    pub(crate) fn with_wrong_m_bits(mut self) -> Self {
        let offsets: Vec<usize> = wire::l2tp::Avps::new(&self.bytes)
            .skip(1)
            .map(|avp| avp.offset)
            .collect();
        for offset in offsets {
            self.bytes[offset] ^= 0x80;
        }
        self
    }
}

/// Formats a datagram for the report of a failed run.
pub(crate) fn describe(bytes: &[u8]) -> String {
    let control = match parse(bytes) {
        Ok(Packet::Control(control)) => control,
        Ok(_) => return "data".into(),
        Err(error) => return format!("unreadable: {error}"),
    };
    let message = Message::parse(control.version, control.body);
    let kind = match (control.body.is_empty(), message.kind()) {
        (true, _) => "ZLB".into(),
        (false, MessageType::Unknown(number)) => format!("type {number}"),
        (false, kind) => kind.name().to_owned(),
    };
    let codes = message
        .result_code()
        .map(|c| format!(" {:?}", (c.result, c.error)));
    format!(
        "v{} {kind}{} to {}/{} Ns {} Nr {}",
        control.version.number(),
        codes.unwrap_or_default(),
        control.connection,
        control.session,
        control.ns,
        control.nr
    )
}
