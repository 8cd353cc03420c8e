//! Why a subscriber's time on line ended.

use core::fmt;

use l2tp::SessionEnd;
use ppp::LinkEnd;

/// Why a subscriber is not on line any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Its PPP link ended.
    Link(LinkEnd),
    /// Its L2TP session ended.
    Session(SessionEnd),
    /// Whoever was asked did not let it in; the text says why.
    Refused(Box<str>),
    /// It may have no address: the text says why.
    NoAddress(Box<str>),
    /// It was on line for as long as it may be (Session-Timeout).
    SessionTimeout,
    /// It had no packet of data for too long (Idle-Timeout).
    IdleTimeout,
    /// An operator ended it.
    Administrator,
    /// A RADIUS server ended it (RFC 5176).
    Disconnected,
    /// This edge ends.
    ShutDown,
    /// There are as many subscribers as there may be.
    TooMany,
}

impl End {
    /// Acct-Terminate-Cause (RFC 2866, section 5.10).
    #[must_use]
    pub fn terminate_cause(&self) -> u32 {
        const USER_REQUEST: u32 = 1;
        const LOST_CARRIER: u32 = 2;
        const LOST_SERVICE: u32 = 3;
        const IDLE_TIMEOUT: u32 = 4;
        const SESSION_TIMEOUT: u32 = 5;
        const ADMIN_RESET: u32 = 6;
        const ADMIN_REBOOT: u32 = 7;
        const NAS_ERROR: u32 = 9;
        const NAS_REQUEST: u32 = 10;
        const SERVICE_UNAVAILABLE: u32 = 15;
        const USER_ERROR: u32 = 17;
        match self {
            Self::Link(end) => match end {
                LinkEnd::PeerTerminated => USER_REQUEST,
                LinkEnd::EchoTimeout | LinkEnd::NoAnswer => LOST_CARRIER,
                LinkEnd::Closed => NAS_REQUEST,
                LinkEnd::AuthenticationFailed | LinkEnd::AuthenticationTimeout => USER_ERROR,
                _ => SERVICE_UNAVAILABLE,
            },
            Self::Session(end) => match end {
                SessionEnd::Administrative => ADMIN_RESET,
                SessionEnd::Peer(_) => USER_REQUEST,
                SessionEnd::TunnelEnded => LOST_CARRIER,
                _ => LOST_SERVICE,
            },
            Self::Refused(_) => USER_ERROR,
            Self::NoAddress(_) | Self::TooMany => NAS_ERROR,
            Self::SessionTimeout => SESSION_TIMEOUT,
            Self::IdleTimeout => IDLE_TIMEOUT,
            Self::Administrator | Self::Disconnected => ADMIN_RESET,
            Self::ShutDown => ADMIN_REBOOT,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(end) => end.fmt(f),
            Self::Session(end) => write!(f, "the session: {end}"),
            Self::Refused(why) => write!(f, "not let in: {why}"),
            Self::NoAddress(why) => write!(f, "no address: {why}"),
            Self::SessionTimeout => f.write_str("its time was over (Session-Timeout)"),
            Self::IdleTimeout => f.write_str("no data for too long (Idle-Timeout)"),
            Self::Administrator => f.write_str("an operator ended it"),
            Self::Disconnected => f.write_str("a RADIUS server ended it (Disconnect-Request)"),
            Self::ShutDown => f.write_str("this edge ends"),
            Self::TooMany => f.write_str("too many subscribers"),
        }
    }
}
