//! Why a tunnel or a session ended, and the result codes for it (RFC 2661 4.4.2,
//! RFC 3931 5.4.2).

use core::fmt;

use wire::l2tp::{Attribute, Message, Version};

use crate::cause::{PppCause, printable};

/// The most octets of a peer's Error Message that are kept.
const MESSAGE_MAX: usize = 128;

/// Why a tunnel ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TunnelEnd {
    /// An operator closed it.
    Administrative,
    /// This endpoint is being shut down.
    ShutDown,
    /// The peer sent a StopCCN.
    Peer(Notice),
    /// The peer no longer acknowledges: all retransmissions went unanswered.
    Unanswered,
    /// It was not established in time.
    SetupTimeout,
    /// The peer's tunnel authentication is missing or wrong.
    NotAuthorized(&'static str),
    /// The peer's protocol version is not 1.0.
    ProtocolVersion(u16),
    /// An AVP that is mandatory and unknown.
    UnknownAvp {
        /// Vendor ID.
        vendor: u16,
        /// Attribute Type.
        attribute: u16,
    },
    /// A message type that is mandatory and unknown.
    UnknownMessage(u16),
    /// An AVP or a message whose length is wrong.
    BadLength(&'static str),
    /// A value out of range.
    BadValue(&'static str),
    /// A required AVP is missing.
    MissingAvp(Attribute),
    /// A message that is not allowed in the state.
    StateMachine(&'static str),
    /// A table is full.
    NoResources,
    /// The peer's simultaneous request won the tie.
    LostTie,
    /// The peer restarted with the same tunnel id.
    PeerRestarted,
    /// It had no session for longer than the configuration's `idle_tunnel`.
    NoSessions,
    /// It was opened for one session, which failed.
    SessionFailed,
}

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// An operator closed it.
    Administrative,
    /// Its payload ended: the PPP link closed, or the owner rejected the session.
    Payload,
    /// The peer sent a CDN.
    Peer(Notice),
    /// Its tunnel ended.
    TunnelEnded,
    /// It was not established in time.
    SetupTimeout,
    /// An AVP that is mandatory and unknown.
    UnknownAvp {
        /// Vendor ID.
        vendor: u16,
        /// Attribute Type.
        attribute: u16,
    },
    /// An AVP whose length is wrong.
    BadLength(&'static str),
    /// A value out of range.
    BadValue(&'static str),
    /// A required AVP is missing.
    MissingAvp(Attribute),
    /// A message that is not allowed in the state.
    StateMachine(&'static str),
    /// A limit on sessions is reached, or calls of this kind are not taken.
    NoFacilities,
    /// No such pseudowire type is offered.
    UnsupportedPseudowire(u16),
    /// Sequencing was requested without a sublayer that can carry sequence numbers.
    NoSublayer,
    /// The peer's simultaneous request for the same circuit won the tie.
    LostTie,
    /// The caller's line is gone: the other half of a switched call ended without a code.
    Carrier,
    /// The other half of a switched call ended with this code, which is passed on.
    Relayed(Notice),
}

/// A Result Code AVP of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Result Code.
    pub result: u16,
    /// Error Code, if there was one.
    pub error: Option<u16>,
    /// Error Message, truncated to 128 octets and made printable.
    pub message: Box<str>,
    /// Why PPP ended, if the peer of a session reported it (RFC 3145).
    pub cause: Option<Box<PppCause>>,
}

impl Notice {
    /// Parses a Result Code AVP from a peer.
    pub(crate) fn from_wire(code: Option<wire::l2tp::ResultCode<'_>>) -> Self {
        let Some(code) = code else {
            return Self {
                result: 0,
                error: None,
                message: "no Result Code".into(),
                cause: None,
            };
        };
        Self {
            result: code.result,
            error: code.error,
            message: printable(code.message, MESSAGE_MAX),
            cause: None,
        }
    }

    /// The notice of a CDN.
    pub(crate) fn of_cdn(message: &Message<'_>) -> Self {
        let cause = message.disconnect_cause().map(PppCause::from_wire);
        Self {
            cause: cause.map(Box::new),
            ..Self::from_wire(message.result_code())
        }
    }
}

/// The codes of a Result Code AVP that we send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Codes {
    /// Result Code.
    pub result: u16,
    /// Error Code.
    pub error: Option<u16>,
    /// Error Message.
    pub message: String,
}

impl Codes {
    fn new(result: u16, error: Option<u16>, message: impl Into<String>) -> Self {
        Self {
            result,
            error,
            message: message.into(),
        }
    }
}

/// General error codes, RFC 2661 4.4.2.
mod error {
    pub(super) const LENGTH: u16 = 2;
    pub(super) const VALUE: u16 = 3;
    pub(super) const RESOURCES: u16 = 4;
    pub(super) const UNKNOWN_AVP: u16 = 8;
}

impl TunnelEnd {
    /// The codes of the StopCCN for this end. `None` if we send none: the peer ended it, does not answer, or
    /// must not get one.
    pub fn codes(&self, version: Version) -> Option<Codes> {
        let text = self.to_string();
        Some(match self {
            Self::Administrative | Self::NoSessions | Self::SessionFailed => {
                Codes::new(1, None, "")
            }
            Self::ShutDown => Codes::new(6, None, ""),
            Self::Peer(_) | Self::LostTie | Self::PeerRestarted => return None,
            Self::NotAuthorized(_) => Codes::new(4, None, ""),
            Self::ProtocolVersion(_) => Codes::new(5, Some(0x0100), text),
            Self::UnknownAvp { .. } | Self::UnknownMessage(_) => {
                Codes::new(2, Some(error::UNKNOWN_AVP), text)
            }
            Self::BadLength(_) => Codes::new(2, Some(error::LENGTH), text),
            Self::BadValue(_) | Self::MissingAvp(_) => Codes::new(2, Some(error::VALUE), text),
            Self::StateMachine(_) => Codes::new(7, None, ""),
            // RFC 3931 has a code for the timeout, RFC 2661 has none.
            Self::SetupTimeout | Self::Unanswered if version == Version::V3 => {
                Codes::new(7, None, "")
            }
            Self::SetupTimeout | Self::Unanswered => Codes::new(1, None, ""),
            Self::NoResources => Codes::new(2, Some(error::RESOURCES), text),
        })
    }
}

impl SessionEnd {
    /// The codes of the CDN for this end; `None` if we send none.
    pub fn codes(&self, version: Version) -> Option<Codes> {
        let text = self.to_string();
        let v3 = matches!(version, Version::V3);
        Some(match self {
            Self::Peer(_) | Self::TunnelEnded => return None,
            Self::Administrative | Self::Payload => Codes::new(3, None, ""),
            Self::UnknownAvp { .. } => Codes::new(2, Some(error::UNKNOWN_AVP), text),
            Self::BadLength(_) => Codes::new(2, Some(error::LENGTH), text),
            Self::BadValue(_) | Self::MissingAvp(_) => Codes::new(2, Some(error::VALUE), text),
            Self::NoFacilities => Codes::new(4, None, ""),
            // RFC 3931 has codes that RFC 2661 lacks.
            Self::SetupTimeout if v3 => Codes::new(16, None, ""),
            Self::SetupTimeout => Codes::new(10, None, ""),
            Self::StateMachine(_) if v3 => Codes::new(16, None, text),
            Self::StateMachine(_) => Codes::new(2, Some(error::VALUE), text),
            Self::UnsupportedPseudowire(_) => Codes::new(14, None, ""),
            Self::NoSublayer => Codes::new(15, None, ""),
            Self::LostTie => Codes::new(13, None, ""),
            Self::Carrier => Codes::new(1, None, ""),
            Self::Relayed(notice) => Codes {
                // A peer that gave no code.
                result: notice.result.max(1),
                error: notice.error,
                message: notice.message.as_ref().into(),
            },
        })
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "result {}", self.result)?;
        if let Some(error) = self.error {
            write!(f, ", error {error}")?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        match &self.cause {
            Some(cause) => write!(f, "; {cause}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for TunnelEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Administrative => f.write_str("closed by the operator"),
            Self::ShutDown => f.write_str("shut down"),
            Self::Peer(notice) => write!(f, "closed by the peer, {notice}"),
            Self::Unanswered => f.write_str("the peer does not acknowledge"),
            Self::SetupTimeout => f.write_str("not established in time"),
            Self::NotAuthorized(why) => write!(f, "not authorized: {why}"),
            Self::ProtocolVersion(v) => {
                write!(
                    f,
                    "protocol version {}.{} is not supported",
                    v >> 8,
                    v & 0xff
                )
            }
            Self::UnknownAvp { vendor, attribute } => unknown_avp(f, *vendor, *attribute),
            Self::UnknownMessage(number) => write!(f, "unknown mandatory message type {number}"),
            Self::BadLength(what) => write!(f, "wrong length: {what}"),
            Self::BadValue(what) => write!(f, "value out of range: {what}"),
            Self::MissingAvp(attribute) => write!(f, "missing AVP: {}", attribute.name()),
            Self::StateMachine(what) => write!(f, "unexpected {what}"),
            Self::NoResources => f.write_str("insufficient resources"),
            Self::LostTie => f.write_str("the peer's request won the tie"),
            Self::PeerRestarted => f.write_str("the peer began anew with the same id"),
            Self::NoSessions => f.write_str("no session for too long (idle_tunnel_s)"),
            Self::SessionFailed => f.write_str("the session that it was opened for failed"),
        }
    }
}

impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Administrative => f.write_str("closed by the operator"),
            Self::Payload => f.write_str("what it carried ended"),
            Self::Peer(notice) => write!(f, "closed by the peer, {notice}"),
            Self::TunnelEnded => f.write_str("its tunnel ended"),
            Self::SetupTimeout => f.write_str("not established in time"),
            Self::UnknownAvp { vendor, attribute } => unknown_avp(f, *vendor, *attribute),
            Self::BadLength(what) => write!(f, "wrong length: {what}"),
            Self::BadValue(what) => write!(f, "value out of range: {what}"),
            Self::MissingAvp(attribute) => write!(f, "missing AVP: {}", attribute.name()),
            Self::StateMachine(what) => write!(f, "unexpected {what}"),
            Self::NoFacilities => f.write_str("no facilities for this call"),
            Self::UnsupportedPseudowire(number) => {
                write!(f, "pseudowire type {number} is not offered")
            }
            Self::NoSublayer => f.write_str("sequencing without a sublayer"),
            Self::LostTie => f.write_str("lost the tie for its circuit"),
            Self::Carrier => f.write_str("the caller's line is gone"),
            Self::Relayed(notice) => write!(f, "the other half ended, {notice}"),
        }
    }
}

fn unknown_avp(f: &mut fmt::Formatter<'_>, vendor: u16, attribute: u16) -> fmt::Result {
    write!(f, "unknown mandatory AVP {attribute}")?;
    if vendor == 0 {
        Ok(())
    } else {
        write!(f, " of vendor {vendor}")
    }
}
