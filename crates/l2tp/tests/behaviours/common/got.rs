//! Messages sent by the endpoint under test.

use core::net::SocketAddr;

use base::Instant;
use wire::l2tp::{Attribute, Message, MessageType, Packet, Version, parse};

/// A control message sent by the endpoint under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) at: Instant,
    pub(crate) from: SocketAddr,
    pub(crate) version: Version,
    pub(crate) connection: u32,
    pub(crate) session: u16,
    pub(crate) ns: u16,
    pub(crate) nr: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) whole: Vec<u8>,
}

impl Got {
    pub(crate) fn read(at: Instant, from: SocketAddr, bytes: &[u8]) -> Self {
        let Ok(Packet::Control(control)) = parse(bytes) else {
            panic!("the endpoint sent no control message: {bytes:02x?}");
        };
        Self {
            at,
            from,
            version: control.version,
            connection: control.connection,
            session: control.session,
            ns: control.ns,
            nr: control.nr,
            body: control.body.to_vec(),
            whole: bytes.to_vec(),
        }
    }

    pub(crate) fn message(&self) -> Message<'_> {
        let message = Message::parse(self.version, &self.body);
        if !self.body.is_empty() && !message.has_hidden() {
            assert_eq!(message.fault(), None, "{self:?}");
        }
        message
    }

    /// ZLB or ACK: consumes no sequence number.
    pub(crate) fn is_ack(&self) -> bool {
        self.body.is_empty() || self.kind() == MessageType::Ack
    }

    pub(crate) fn kind(&self) -> MessageType {
        Message::parse(self.version, &self.body).kind()
    }

    /// Result Code and Error Code.
    pub(crate) fn codes(&self) -> (u16, Option<u16>) {
        let code = self.message().result_code().map(|c| (c.result, c.error));
        code.unwrap_or_else(|| panic!("no Result Code: {self:?}"))
    }

    /// The Error Message.
    pub(crate) fn error_text(&self) -> String {
        let message = self.message();
        let code = message.result_code().expect("a Result Code");
        String::from_utf8(code.message.to_vec()).expect("UTF-8 (RFC 2661 4.4.2)")
    }

    pub(crate) fn u16(&self, attribute: Attribute) -> u16 {
        let value = self.message().u16(attribute);
        value.unwrap_or_else(|| panic!("no {attribute:?} in {self:?}"))
    }

    pub(crate) fn u32(&self, attribute: Attribute) -> u32 {
        let value = self.message().u32(attribute);
        value.unwrap_or_else(|| panic!("no {attribute:?} in {self:?}"))
    }

    pub(crate) fn get(&self, attribute: Attribute) -> Option<Vec<u8>> {
        self.message().get(attribute).map(<[u8]>::to_vec)
    }

    /// The id that the endpoint assigned to a control connection.
    pub(crate) fn assigned_connection(&self) -> u32 {
        match self.version {
            Version::V2 => self.u16(Attribute::AssignedTunnelId).into(),
            Version::V3 => self.u32(Attribute::AssignedControlConnectionId),
        }
    }

    /// The id that the endpoint assigned to a session.
    pub(crate) fn assigned_session(&self) -> u32 {
        match self.version {
            Version::V2 => self.u16(Attribute::AssignedSessionId).into(),
            Version::V3 => self.u32(Attribute::LocalSessionId),
        }
    }
}

/// The types of messages, in order; `None` is an acknowledgement.
pub(crate) fn kinds(got: &[Got]) -> Vec<Option<MessageType>> {
    let kind = |g: &Got| (!g.is_ack()).then(|| g.kind());
    got.iter().map(kind).collect()
}

/// The only message in `got`, which must be of that type.
#[track_caller]
pub(crate) fn only(got: &[Got], kind: MessageType) -> Got {
    assert_eq!(kinds(got), [Some(kind)], "{got:?}");
    got[0].clone()
}

/// The only acknowledgement in `got`.
#[track_caller]
pub(crate) fn only_ack(got: &[Got]) -> Got {
    assert_eq!(kinds(got), [None], "{got:?}");
    got[0].clone()
}
