//! The content of a golden control message, stated once and checked both ways: read from its bytes, and written
//! to the same bytes.

use wire::l2tp::{
    Attribute, Control, DigestType, Message, MessageType, Packet, Version, Writer, digest,
    emit_control, hidden, parse,
};

/// An AVP's value.
#[derive(Clone, Copy)]
pub(crate) enum Value {
    U16(u16),
    U32(u32),
    U64(u64),
    Bytes(&'static [u8]),
    Flag,
    Result(u16, Option<u16>, &'static str),
    /// A value and the padding it is hidden with.
    Hidden(&'static [u8], &'static [u8]),
}

/// A message's digests: each one's type and secret, and the nonces of the sender and the receiver.
pub(crate) struct Signed {
    pub(crate) digests: &'static [(DigestType, &'static [u8])],
    pub(crate) sender_nonce: &'static [u8],
    pub(crate) receiver_nonce: &'static [u8],
}

/// A control message as its golden file describes it.
pub(crate) struct Expected {
    pub(crate) name: &'static str,
    pub(crate) version: Version,
    pub(crate) connection: u32,
    pub(crate) session: u16,
    pub(crate) ns: u16,
    pub(crate) nr: u16,
    /// `None` is a ZLB.
    pub(crate) kind: Option<MessageType>,
    pub(crate) signed: Option<Signed>,
    pub(crate) avps: &'static [(Attribute, Value)],
}

pub(crate) const SECRET: &[u8] = b"lantern";

impl Expected {
    /// Reads the golden packet and writes it again.
    pub(crate) fn check(&self) {
        let golden = super::golden::all()
            .into_iter()
            .find(|golden| golden.name == self.name);
        let octets = golden
            .unwrap_or_else(|| panic!("{} is there", self.name))
            .octets;
        self.check_read(&octets);
        assert_eq!(self.written(), octets, "{} written", self.name);
    }

    fn hiding_key(&self) -> Vec<u8> {
        match self.version {
            Version::V2 => SECRET.to_vec(),
            Version::V3 => hidden::shared_key(SECRET).to_vec(),
        }
    }

    fn check_read(&self, octets: &[u8]) {
        let name = self.name;
        let Ok(Packet::Control(control)) = parse(octets) else {
            panic!("{name} is a control message");
        };
        let Control {
            version,
            connection,
            session,
            ns,
            nr,
            body,
            whole,
        } = control;
        assert_eq!(
            (version, connection, session),
            (self.version, self.connection, self.session),
            "{name}"
        );
        assert_eq!((ns, nr, whole), (self.ns, self.nr, octets), "{name}");
        let Some(kind) = self.kind else {
            assert!(body.is_empty(), "{name} is a ZLB");
            return;
        };
        if let Some(signed) = &self.signed {
            self.check_digests(whole, signed);
        }
        let received = Message::parse(version, body);
        let is_hidden = self
            .avps
            .iter()
            .any(|(_, value)| matches!(value, Value::Hidden(..)));
        assert_eq!(received.has_hidden(), is_hidden, "{name}");
        let mut clear = Vec::new();
        hidden::unhide(body, &self.hiding_key(), &mut clear).expect("every hidden AVP is right");
        let message = Message::parse(version, &clear);
        assert_eq!(
            (message.kind(), message.kind_mandatory()),
            (kind, kind.mandatory()),
            "{name}"
        );
        assert_eq!(
            (message.fault(), message.unrecognised_mandatory()),
            (None, None),
            "{name}"
        );
        assert!(!message.has_hidden(), "{name}");
        let digests = self
            .signed
            .as_ref()
            .map_or(0, |signed| signed.digests.len());
        assert_eq!(
            message.avps().count(),
            1 + digests + self.avps.len(),
            "{name}"
        );
        for (attribute, value) in self.avps {
            self.check_value(&message, *attribute, *value);
        }
    }

    fn check_value(&self, message: &Message<'_>, attribute: Attribute, value: Value) {
        let what = format!("{}: {}", self.name, attribute.name());
        let foreign = !attribute.defined_in(self.version);
        if foreign {
            assert_eq!(message.get(attribute), None, "{what} is not this version's");
            return;
        }
        assert!(message.has(attribute), "{what}");
        match value {
            Value::U16(value) => assert_eq!(message.u16(attribute), Some(value), "{what}"),
            Value::U32(value) => assert_eq!(message.u32(attribute), Some(value), "{what}"),
            Value::U64(value) => assert_eq!(message.u64(attribute), Some(value), "{what}"),
            Value::Flag => assert_eq!(message.get(attribute), Some(&[][..]), "{what}"),
            Value::Hidden(value, _) => assert_eq!(message.get(attribute), Some(value), "{what}"),
            Value::Result(result, error, text) => {
                let code = message.result_code().expect("a Result Code");
                assert_eq!((code.result, code.error), (result, error), "{what}");
                assert_eq!(code.message, text.as_bytes(), "{what}");
            }
            // A message may contain two Random Vectors.
            Value::Bytes(value) => {
                let mut all = message.avps().filter(|avp| avp.known() == Some(attribute));
                assert!(all.any(|avp| avp.value == value), "{what}");
            }
        }
    }

    /// Each digest is valid on its own; none verifies under another secret or with swapped nonces.
    fn check_digests(&self, whole: &[u8], signed: &Signed) {
        let (sender, receiver) = (signed.sender_nonce, signed.receiver_nonce);
        assert!(digest::present(whole), "{}", self.name);
        for (_, secret) in signed.digests {
            let key = digest::shared_key(secret);
            assert!(
                digest::verify(whole, &key, receiver, sender),
                "{}",
                self.name
            );
            if sender != receiver {
                assert!(
                    !digest::verify(whole, &key, sender, receiver),
                    "{}",
                    self.name
                );
            }
        }
        let other = digest::shared_key(b"torch");
        assert!(
            !digest::verify(whole, &other, receiver, sender),
            "{}",
            self.name
        );
    }

    fn written(&self) -> Vec<u8> {
        let mut body = Vec::new();
        if let Some(kind) = self.kind {
            self.write_body(&mut body, kind);
        }
        let mut out = Vec::new();
        emit_control(
            &mut out,
            self.version,
            self.connection,
            self.session,
            self.ns,
            self.nr,
            &body,
        );
        if let Some(signed) = &self.signed {
            for (digest, secret) in signed.digests {
                let key = digest::shared_key(secret);
                let (sender, receiver) = (signed.sender_nonce, signed.receiver_nonce);
                assert!(
                    digest::sign(&mut out, *digest, &key, sender, receiver),
                    "{}",
                    self.name
                );
            }
        }
        out
    }

    fn write_body(&self, body: &mut Vec<u8>, kind: MessageType) {
        let key = self.hiding_key();
        let mut vector: &[u8] = &[];
        let mut writer = Writer::new(body, self.version, kind);
        for (digest, _) in self.signed.iter().flat_map(|signed| signed.digests) {
            digest::placeholder(&mut writer, *digest);
        }
        for &(attribute, value) in self.avps {
            match value {
                Value::U16(value) => writer.u16(attribute, value),
                Value::U32(value) => writer.u32(attribute, value),
                Value::U64(value) => writer.u64(attribute, value),
                Value::Flag => writer.flag(attribute),
                Value::Result(result, error, text) => writer.result_code(result, error, text),
                Value::Hidden(value, padding) => {
                    writer.hidden(attribute, value, &key, vector, padding)
                }
                Value::Bytes(value) if attribute == Attribute::RandomVector => {
                    vector = value;
                    writer.random_vector(value)
                }
                Value::Bytes(value) => writer.bytes(attribute, value),
            };
        }
    }
}
