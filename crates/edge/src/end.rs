//! Why a subscriber ended.

use core::fmt;

use aaa::accounting::TerminateCause;
use ppp::{Link, LinkEnd};

use crate::access::{Access, L2tp, Reason};

/// Why a subscriber ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End<R = <L2tp as Access>::Reason> {
    /// Its PPP link ended.
    Link(LinkEnd),
    /// The peer refused us as its client; its text, escaped and bounded.
    RefusedByPeer(Box<str>),
    /// Its session ended.
    Session(R),
    /// The LNS that had its session ended it, or is gone.
    Lns(R),
    /// It was not admitted; the text says why.
    Refused(Box<str>),
    /// There was no address for it; the text says why.
    NoAddress(Box<str>),
    /// It did not connect in time.
    SetupTimeout,
    /// Its Session-Timeout ran out.
    SessionTimeout,
    /// Its Idle-Timeout ran out: no data packets.
    IdleTimeout,
    /// An operator ended it.
    Administrator,
    /// A RADIUS server ended it (RFC 5176).
    Disconnected,
    /// The edge is shutting down.
    ShutDown,
    /// The limit on subscribers is reached.
    TooMany,
}

impl<R> End<R> {
    /// The end of a link that ended by itself.
    pub(crate) fn of_link(link: &Link, end: LinkEnd) -> Self {
        match link.refusal() {
            text if end == LinkEnd::RefusedByPeer && !text.is_empty() => {
                Self::RefusedByPeer(text.into())
            }
            _ => Self::Link(end),
        }
    }

    /// Whether the peer refused us as its client.
    #[must_use]
    pub fn is_by_refusal(&self) -> bool {
        matches!(
            self,
            Self::RefusedByPeer(_) | Self::Link(LinkEnd::RefusedByPeer | LinkEnd::UnprovenPeer)
        )
    }
}

impl<R: Reason> End<R> {
    /// Its Acct-Terminate-Cause (RFC 2866, section 5.10).
    #[must_use]
    pub fn terminate_cause(&self) -> TerminateCause {
        match self {
            Self::Link(end) => match end {
                LinkEnd::PeerTerminated => TerminateCause::UserRequest,
                LinkEnd::EchoTimeout | LinkEnd::NoAnswer => TerminateCause::LostCarrier,
                LinkEnd::Closed => TerminateCause::NasRequest,
                LinkEnd::AuthenticationFailed | LinkEnd::AuthenticationTimeout => {
                    TerminateCause::UserError
                }
                _ => TerminateCause::ServiceUnavailable,
            },
            Self::RefusedByPeer(_) => TerminateCause::ServiceUnavailable,
            Self::Session(end) | Self::Lns(end) => end.terminate_cause(),
            Self::Refused(_) => TerminateCause::UserError,
            Self::SetupTimeout => TerminateCause::LostCarrier,
            Self::NoAddress(_) | Self::TooMany => TerminateCause::NasError,
            Self::SessionTimeout => TerminateCause::SessionTimeout,
            Self::IdleTimeout => TerminateCause::IdleTimeout,
            Self::Administrator | Self::Disconnected => TerminateCause::AdminReset,
            Self::ShutDown => TerminateCause::AdminReboot,
        }
    }
}

impl<R: fmt::Display> fmt::Display for End<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(end) => end.fmt(f),
            Self::RefusedByPeer(text) => write!(f, "the peer refused us: \"{text}\""),
            Self::Session(end) => write!(f, "the session: {end}"),
            Self::Lns(end) => write!(f, "the LNS: {end}"),
            Self::Refused(why) => write!(f, "not let in: {why}"),
            Self::NoAddress(why) => write!(f, "no address: {why}"),
            Self::SetupTimeout => f.write_str("not connected in time"),
            Self::SessionTimeout => f.write_str("its time was over (Session-Timeout)"),
            Self::IdleTimeout => f.write_str("no data for too long (Idle-Timeout)"),
            Self::Administrator => f.write_str("an operator ended it"),
            Self::Disconnected => f.write_str("a RADIUS server ended it (Disconnect-Request)"),
            Self::ShutDown => f.write_str("this edge ends"),
            Self::TooMany => f.write_str("too many subscribers"),
        }
    }
}
