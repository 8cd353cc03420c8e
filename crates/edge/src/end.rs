//! Why a subscriber ended.

use core::fmt;

use aaa::accounting::TerminateCause;
use ppp::{Authentication, Link, LinkEnd};
use wire::l2tp::disconnect::{code, direction};
use wire::ppp::protocol;

use crate::access::{Access, L2tp, LinkCause, Reason};

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

impl<R> End<R> {
    /// What the peer of the session reads about this end of a link (RFC 3145, section 3); `None` if there is no code for
    /// it.
    pub(crate) fn disconnect_cause(&self, link: &Link) -> Option<LinkCause> {
        let global = |code, direction| Some((code, 0, direction));
        let lcp = |code| Some((code, protocol::LCP, direction::GLOBAL));
        let proof = |code, direction| {
            let required = link.view().local.authentication?;
            let protocol = match required {
                Authentication::Pap => protocol::PAP,
                Authentication::ChapMd5 | Authentication::MsChapV2 => protocol::CHAP,
                Authentication::Eap => protocol::EAP,
            };
            Some((code, protocol, direction))
        };
        let (code, protocol, direction) = match self {
            Self::Administrator | Self::Disconnected | Self::ShutDown => {
                global(code::ADMINISTRATIVE, direction::GLOBAL)
            }
            Self::SessionTimeout | Self::IdleTimeout | Self::Link(LinkEnd::Closed) => {
                global(code::TERMINATE_REQUEST, direction::LOCAL)
            }
            Self::Link(LinkEnd::PeerTerminated) => global(code::TERMINATE_REQUEST, direction::PEER),
            Self::Link(LinkEnd::NoAnswer) => lcp(code::LCP_TIMEOUT),
            Self::Link(LinkEnd::EchoTimeout) => lcp(code::ECHO_TIMEOUT),
            Self::Link(LinkEnd::Looped) => lcp(code::LOOPED),
            Self::Link(LinkEnd::AuthenticationRejected) => {
                proof(code::NO_AUTHENTICATION_PROTOCOL, direction::PEER)
            }
            Self::Link(LinkEnd::AuthenticationTimeout) => {
                proof(code::AUTHENTICATION_TIMEOUT, direction::GLOBAL)
            }
            Self::Link(LinkEnd::AuthenticationFailed) | Self::Refused(_) => {
                proof(code::AUTHENTICATION_FAILED, direction::PEER)
            }
            Self::Link(LinkEnd::NoNetwork) => {
                Some((code::NO_NCP, protocol::IPCP, direction::GLOBAL))
            }
            Self::Link(
                LinkEnd::Rejected
                | LinkEnd::RefusedByPeer
                | LinkEnd::UnprovenPeer
                | LinkEnd::NoCredentials,
            )
            | Self::RefusedByPeer(_)
            | Self::Session(_)
            | Self::Lns(_)
            | Self::NoAddress(_)
            | Self::SetupTimeout
            | Self::TooMany => None,
        }?;
        Some(LinkCause {
            code,
            protocol,
            direction,
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use ppp::{Config, Side};

    struct Sevens;

    impl ppp::Random for Sevens {
        fn fill(&mut self, octets: &mut [u8]) {
            octets.fill(7);
        }
    }

    /// RFC 3145, section 3: Disconnect Code, Control Protocol Number, Direction.
    #[test]
    fn each_end_of_a_link_has_the_code_of_the_rfc() {
        let config = Config {
            authenticate: vec![Authentication::Pap],
            ..Config::default()
        };
        let link = Link::new(Side::Network, &config, &mut Sevens);
        let of = |end: End| {
            let cause = end.disconnect_cause(&link)?;
            Some((cause.code, cause.protocol, cause.direction))
        };
        for (end, expected) in [
            (End::Administrator, Some((1, 0, 0))),
            (End::Disconnected, Some((1, 0, 0))),
            (End::SessionTimeout, Some((3, 0, 2))),
            (End::Link(LinkEnd::PeerTerminated), Some((3, 0, 1))),
            (End::Link(LinkEnd::NoAnswer), Some((5, 0xc021, 0))),
            (End::Link(LinkEnd::Looped), Some((7, 0xc021, 0))),
            (End::Link(LinkEnd::EchoTimeout), Some((8, 0xc021, 0))),
            (
                End::Link(LinkEnd::AuthenticationTimeout),
                Some((13, 0xc023, 0)),
            ),
            (
                End::Link(LinkEnd::AuthenticationRejected),
                Some((15, 0xc023, 1)),
            ),
            (End::Refused("wrong password".into()), Some((16, 0xc023, 1))),
            (End::Link(LinkEnd::NoNetwork), Some((18, 0x8021, 0))),
            (End::SetupTimeout, None),
        ] {
            assert_eq!(of(end.clone()), expected, "{end:?}");
        }
    }
}
