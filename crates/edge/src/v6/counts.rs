//! Counters of IPv6 on the links.

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum V6Count {
    /// Router Advertisements sent.
    Advertisements,
    /// Router Solicitations received.
    Solicitations,
    /// Neighbour Advertisements sent.
    Neighbors,
    /// Echo Requests answered on the link.
    Echoes,
    /// DHCPv6 messages answered.
    DhcpAnswers,
    /// DHCPv6 messages that the rules of RFC 8415 make the server discard.
    DhcpDiscards,
    /// Leases made by DHCPv6.
    Leases,
    /// Leases extended.
    Extensions,
    /// Leases given back by Release or Decline.
    Releases,
    /// Addresses that a client declined.
    Declines,
    /// Leases that ran out.
    Expiries,
    /// Prefixes and addresses that could not be leased: the pool is used up or unknown, or another subscriber holds
    /// them.
    Unavailable,
    /// Subscribers that were admitted without an IPv4 address.
    WithoutIpv4,
}

impl V6Count {
    /// Every counter, in the order of its value.
    pub const ALL: [Self; 13] = [
        Self::Advertisements,
        Self::Solicitations,
        Self::Neighbors,
        Self::Echoes,
        Self::DhcpAnswers,
        Self::DhcpDiscards,
        Self::Leases,
        Self::Extensions,
        Self::Releases,
        Self::Declines,
        Self::Expiries,
        Self::Unavailable,
        Self::WithoutIpv4,
    ];

    /// A stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Advertisements => "router_advertisements",
            Self::Solicitations => "router_solicitations",
            Self::Neighbors => "neighbor_advertisements",
            Self::Echoes => "echoes",
            Self::DhcpAnswers => "dhcp_answers",
            Self::DhcpDiscards => "dhcp_discards",
            Self::Leases => "leases",
            Self::Extensions => "extensions",
            Self::Releases => "releases",
            Self::Declines => "declines",
            Self::Expiries => "expiries",
            Self::Unavailable => "unavailable",
            Self::WithoutIpv4 => "without_ipv4",
        }
    }
}

/// The counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct V6Counts([u64; V6Count::ALL.len()]);

impl V6Counts {
    pub(crate) fn count(&mut self, what: V6Count) {
        self.0[what as usize] += 1;
    }

    /// One counter.
    #[must_use]
    pub fn of(&self, what: V6Count) -> u64 {
        self.0[what as usize]
    }
}
