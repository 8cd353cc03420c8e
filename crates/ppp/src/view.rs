//! A link as `show` prints it.

use wire::ppp::Compression;

use crate::config::Authentication;
use crate::event::{Ipv4Settings, Ipv6Settings, LinkEnd};
use crate::fsm::State;

/// LCP's options of one side: those requested, or those agreed once LCP is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LcpOptions {
    /// The largest packet that this side accepts, in bytes.
    pub mru: u16,
    /// Its magic number; 0 if it has none.
    pub magic: u32,
    /// The authentication that this side requires of the other.
    pub authentication: Option<Authentication>,
    /// The header compression that this side accepts.
    pub compression: Compression,
}

/// A link as `show` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkView {
    /// LCP's state.
    pub lcp: State,
    /// Our options.
    pub local: LcpOptions,
    /// The peer's.
    pub peer: LcpOptions,
    /// IPCP's state and values. `None` before the link has IPv4.
    pub ipv4: Option<(State, Ipv4Settings)>,
    /// IPv6CP's state and values. `None` before the link has IPv6.
    pub ipv6: Option<(State, Ipv6Settings)>,
    /// Whether the owner accepted the peer. For a client: whether the peer accepted us or requires no authentication.
    pub is_authenticated: bool,
    /// Number of claims that the peer has made, modulo 256.
    pub claims: u8,
    /// Unanswered Echo-Requests since the last reply.
    pub echoes_unanswered: u8,
    /// The reason why the link is ending or has ended.
    pub end: Option<LinkEnd>,
}
