//! A link as `show` prints it.

use wire::ppp::Compression;

use crate::config::Authentication;
use crate::event::{Ipv4Settings, Ipv6Settings, LinkEnd};
use crate::fsm::State;

/// LCP's options of one side: requested, or agreed once LCP is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LcpOptions {
    /// The largest packet that it accepts, in bytes.
    pub mru: u16,
    /// Its magic number; 0 if it has none.
    pub magic: u32,
    /// The authentication that it asks of the other side.
    pub authentication: Option<Authentication>,
    /// The compression of frame heads that it accepts.
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
    /// IPCP's state and values; none before the link has IPv4.
    pub ipv4: Option<(State, Ipv4Settings)>,
    /// IPv6CP's state and values; none before the link has IPv6.
    pub ipv6: Option<(State, Ipv6Settings)>,
    /// Whether the owner accepted the peer; for a client, whether the peer accepted us or asks for nothing.
    pub is_authenticated: bool,
    /// Claims of the peer so far, modulo 256.
    pub claims: u8,
    /// Unanswered Echo-Requests since the last reply.
    pub echoes_unanswered: u8,
    /// Why it is ending or ended.
    pub end: Option<LinkEnd>,
}
