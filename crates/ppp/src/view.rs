//! What an operator may see of a link.

use wire::ppp::Compression;

use crate::config::Authentication;
use crate::event::{Ipv4Settings, Ipv6Settings, LinkEnd};
use crate::fsm::State;

/// LCP's options of one side, as it asks for them, or as they were agreed once LCP is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LcpOptions {
    /// The largest packet that it takes, in octets.
    pub mru: u16,
    /// Its magic number; 0 where it has none.
    pub magic: u32,
    /// What it wants the other side to prove itself by.
    pub authentication: Option<Authentication>,
    /// How the other side may shorten the heads of frames to it.
    pub compression: Compression,
}

/// What an operator may see of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkView {
    /// LCP's state.
    pub lcp: State,
    /// Our options.
    pub local: LcpOptions,
    /// The peer's.
    pub peer: LcpOptions,
    /// IPCP's state and values; none where the link has no IPv4, or not yet.
    pub ipv4: Option<(State, Ipv4Settings)>,
    /// IPv6CP's; none where the link has no IPv6, or not yet.
    pub ipv6: Option<(State, Ipv6Settings)>,
    /// The owner has let the peer in; of a client, it asks for no proof or has seen it.
    pub is_authenticated: bool,
    /// Claims of the peer so far, modulo 256.
    pub claims: u8,
    /// Echo-Requests since the peer answered last.
    pub echoes_unanswered: u8,
    /// Why it ends or has ended.
    pub end: Option<LinkEnd>,
}
