//! IPv6 on a subscriber's link: what the edge advertises and leases there. Values and rules only; the module `edge` has
//! the tables and sends the packets.
//!
//! | file | what it does |
//! |---|---|
//! | `family` | one subscriber's IPv6 state |
//! | `server` | a DHCPv6 server's answer to one message |
//! | `lease` | the state table of leases |
//! | `counts` | counters |
//! | `client` | the other side: what a client learns and asks for |
//!
//! Router Advertisements: RFC 4861, section 6.2; RFC 4862, section 5.5; RFC 8106. DHCPv6: RFC 8415. Left out: relays,
//! reconfiguration, authentication, temporary addresses.

mod client;
mod counts;
mod family;
mod lease;
mod server;

use core::net::Ipv6Addr;

use base::Duration;

pub use client::{
    Delegated, Formed, PrefixClient, PrefixEvent, PrefixWish, RouterClient, Unheeded, UplinkView,
};
pub(crate) use client::{Outgoing, Uplink};
pub use counts::{V6Count, V6Counts};
pub(crate) use family::{Family, Part, RATE};
pub use server::{Answer, Leases, Refused, Server, Stock, Wanted};

/// The most name servers that are advertised.
pub const SERVERS_MAX: usize = 3;
/// The most octets of the search list.
pub const SEARCH_OCTETS_MAX: usize = 256;

/// What an edge advertises and leases to its subscribers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether Router Advertisements are sent.
    pub advertise: bool,
    /// Whether DHCPv6 is served.
    pub dhcp: bool,
    /// The pool of link prefixes, for subscribers whose profile has none.
    pub pool: Option<Box<str>>,
    /// The pool of delegated prefixes.
    pub delegated_pool: Option<Box<str>>,
    /// The pool of addresses for DHCPv6.
    pub address_pool: Option<Box<str>>,
    /// Name servers, at most [`SERVERS_MAX`].
    pub dns: Vec<Ipv6Addr>,
    /// The search list in the wire format of names, at most [`SEARCH_OCTETS_MAX`].
    pub search: Box<[u8]>,
    /// The longest time between two unsolicited Router Advertisements (MaxRtrAdvInterval).
    pub interval: Duration,
    /// How long the edge is a default router after an advertisement, in seconds.
    pub router_lifetime_s: u16,
    /// How long prefixes and addresses are preferred, in seconds.
    pub preferred_s: u32,
    /// How long they are valid, in seconds.
    pub valid_s: u32,
    /// The server's preference (RFC 8415, section 21.8).
    pub preference: u8,
    /// Whether Rapid Commit is honoured (RFC 8415, section 21.14).
    pub rapid_commit: bool,
    /// The server's DUID (RFC 8415, section 11). It must not change.
    pub duid: Box<[u8]>,
    /// Whether a changed lease causes an interim accounting entry.
    pub interim_on_change: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            advertise: true,
            dhcp: true,
            pool: None,
            delegated_pool: None,
            address_pool: None,
            dns: Vec::new(),
            search: Box::default(),
            interval: Duration::from_secs(600),
            router_lifetime_s: 1_800,
            preferred_s: 43_200,
            valid_s: 86_400,
            preference: 0,
            rapid_commit: true,
            duid: duid([192, 0, 2, 1]),
            interim_on_change: false,
        }
    }
}

/// A DUID from the edge's own IPv4 address: DUID-LL (RFC 8415, section 11.4) of a locally administered Ethernet address.
/// The same configuration gives the same DUID after every start.
#[must_use]
pub fn duid(own: [u8; 4]) -> Box<[u8]> {
    let [a, b, c, d] = own;
    Box::new([0, 3, 0, 1, 0x02, 0x68, a, b, c, d])
}

/// fe80::/64 and an interface identifier (RFC 5072, section 5).
#[must_use]
pub const fn link_local(identifier: u64) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xfe80 << 112 | identifier as u128)
}

/// Whether the destination of an IPv6 packet is on the link: link-local, or multicast of that scope. Such packets are
/// for the edge, not for the data path.
#[inline]
pub(crate) fn is_on_link(packet: &[u8]) -> bool {
    match packet.get(24..26) {
        Some(&[0xff, scope]) => scope & 0x0f == 2,
        Some(&[0xfe, second]) => second & 0xc0 == 0x80,
        Some(_) | None => false,
    }
}
