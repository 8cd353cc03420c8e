//! Events that an endpoint reports to its owner.

use core::fmt;

use wire::pppoe::{Fault, FaultKind};

use crate::route::Route;
use crate::session::SessionKey;

/// The longest text of a peer that is kept, in characters.
const TEXT_MAX: usize = 200;

/// An event that an endpoint reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A session is established: PPP frames may flow.
    SessionUp {
        /// The session.
        session: SessionKey,
    },
    /// A session ended, also one that a client could not establish. Its key is no longer valid.
    SessionDown {
        /// The session.
        session: SessionKey,
        /// Where it was.
        place: Place,
        /// Why.
        reason: EndReason,
    },
}

/// Where a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// SESSION_ID; 0 if a client got none.
    pub id: u16,
    /// The peer.
    pub route: Route,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pppoe {} {}", self.id, self.route.peer)
    }
}

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// An operator closed it.
    Administrative,
    /// The endpoint is being shut down.
    ShutDown,
    /// Its payload ended: the PPP link closed, or the owner rejected the session.
    Payload,
    /// The peer sent a PADT, with this text or none.
    Peer(Box<str>),
    /// Its port was removed.
    PortLost,
    /// Its VLAN is not served any more.
    VlanLost,
    /// Its host started another session and may have only so many.
    Replaced,
    /// The host sent no PPP frame after the PADS.
    SetupTimeout,
    /// No access concentrator offered what a client asked for.
    NoPado,
    /// The access concentrator did not answer the PADR.
    NoPads,
    /// The access concentrator refused the request.
    Refused(Refusal),
}

/// A refusal, with the text that the access concentrator sent or an empty one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The kind of the error tag; `None` if a PADS without a session had none.
    pub kind: Option<FaultKind>,
    /// Its text, without control characters and cut after 200 characters.
    pub text: Box<str>,
}

impl Refusal {
    pub(crate) fn new(fault: Option<Fault<'_>>) -> Self {
        Self {
            kind: fault.map(|fault| fault.kind),
            text: text(fault.map_or(b"", |fault| fault.text)),
        }
    }
}

/// A peer's text, fit for a log line.
pub(crate) fn text(bytes: &[u8]) -> Box<str> {
    let text = String::from_utf8_lossy(bytes);
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(TEXT_MAX).map(printable).collect()
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Administrative => f.write_str("closed by an operator"),
            Self::ShutDown => f.write_str("shutting down"),
            Self::Payload => f.write_str("the PPP link ended"),
            Self::Peer(text) if text.is_empty() => f.write_str("the peer sent PADT"),
            Self::Peer(text) => write!(f, "the peer sent PADT: {text}"),
            Self::PortLost => f.write_str("the interface is gone"),
            Self::VlanLost => f.write_str("the VLAN is not served any more"),
            Self::Replaced => f.write_str("replaced by a newer session of the same host"),
            Self::SetupTimeout => f.write_str("the host sent no PPP frame after PADS"),
            Self::NoPado => f.write_str("no access concentrator offered the service"),
            Self::NoPads => f.write_str("the access concentrator did not answer PADR"),
            Self::Refused(refusal) => write!(f, "refused: {refusal}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.map_or("no session id", FaultKind::name);
        match self.text.is_empty() {
            true => f.write_str(kind),
            false => write!(f, "{kind}: {}", self.text),
        }
    }
}
