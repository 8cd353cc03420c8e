//! The settings of an authenticated subscriber's session, from the users file or a RADIUS server's
//! Access-Accept (RFC 2865).

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::Duration;

use crate::queue::Queue;
use crate::tunnel::Tunnelled;

/// Which IPv4 address a subscriber gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Address {
    /// An address from a pool (Framed-IP-Address 255.255.255.254, or absent).
    #[default]
    FromPool,
    /// The address that the subscriber requests, if it is free (Framed-IP-Address 255.255.255.255).
    ItsOwn,
    /// This address.
    Fixed(Ipv4Addr),
}

/// A network: an address and its prefix length. The host bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// A network; `None` if the length exceeds the address, or a host bit is set.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let (bits, width) = match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        let beyond = bits.checked_shl(u32::from(length)).unwrap_or(0);
        (length <= width && beyond == 0).then_some(Self { address, length })
    }

    /// Its first address.
    #[must_use]
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// Whether an address is in it.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        let differ = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                u128::from(own.to_bits() ^ other.to_bits()) << 96
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => own.to_bits() ^ other.to_bits(),
            _ => return false,
        };
        differ
            .checked_shr(128 - u32::from(self.length))
            .unwrap_or(0)
            == 0
    }

    /// The prefix length in bits.
    #[must_use]
    pub fn length(self) -> u8 {
        self.length
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// A subscriber's IPv6 prefixes; a missing one comes from the pool, a missing pool is the edge's default.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Ipv6 {
    /// The prefix of its link (Framed-IPv6-Prefix, RFC 3162, section 2.3).
    pub prefix: Option<Prefix>,
    /// The prefix that it gets for its own network (Delegated-IPv6-Prefix, RFC 4818, section 3).
    pub delegated: Option<Prefix>,
    /// The address that it gets by DHCPv6 (Framed-IPv6-Address, RFC 6911, section 3.1), as a prefix of 128 bits.
    pub address: Option<Prefix>,
    /// The pool of link prefixes (Framed-IPv6-Pool, RFC 3162, section 2.6).
    pub pool: Option<Box<str>>,
    /// The pool of delegated prefixes (Delegated-IPv6-Prefix-Pool, RFC 6911, section 3.4).
    pub delegated_pool: Option<Box<str>>,
    /// The pool of addresses (Stateful-IPv6-Address-Pool, RFC 6911, section 3.5).
    pub address_pool: Option<Box<str>>,
    /// The interface identifier that it must use (Framed-Interface-Id, RFC 3162, section 2.2).
    pub interface: Option<core::num::NonZeroU64>,
    /// Name servers in place of the edge's (DNS-Server-IPv6-Address, RFC 6911, section 3.2).
    pub dns: Vec<Ipv6Addr>,
}

/// The settings of a subscriber's session; a missing one means the edge's default.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Profile {
    /// Its IPv4 address.
    pub address: Address,
    /// The pool to lease from (Framed-Pool); `None` for the edge's first.
    pub pool: Option<Box<str>>,
    /// Its IPv6 prefixes; `None` for the edge's defaults.
    pub ipv6: Option<Box<Ipv6>>,
    /// Networks routed to the subscriber (Framed-Route, Framed-IPv6-Route).
    pub routes: Vec<Prefix>,
    /// The filter for its packets (Filter-Id).
    pub filter: Option<Box<str>>,
    /// The walled garden that it starts in.
    pub garden: Option<Box<str>>,
    /// Whether it and other subscribers are kept apart; `None` for the edge's default.
    pub isolate: Option<bool>,
    /// Rates, templates and link of its queues.
    pub queue: Queue,
    /// Maximum length of the session (Session-Timeout).
    pub session_timeout: Option<Duration>,
    /// The session ends after this long without a data packet (Idle-Timeout).
    pub idle_timeout: Option<Duration>,
    /// Interval of Interim-Updates while connected (Acct-Interim-Interval).
    pub interim_interval: Option<Duration>,
    /// Class attributes to send in each record, in order.
    pub class: Vec<Box<[u8]>>,
    /// The user name for accounting, if it differs from the claimed one (User-Name in an Access-Accept).
    pub name: Option<Box<str>>,
    /// The session is handed over to an LNS; the other settings but the name, the times and Class have no effect then.
    pub tunnel: Option<Box<Tunnelled>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_the_addresses_that_share_its_bits() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        for (network, length, other, inside) in [
            ("10.0.0.0", 8, "10.255.0.1", true),
            ("10.0.0.0", 8, "11.0.0.0", false),
            ("10.0.0.1", 32, "10.0.0.1", true),
            ("10.0.0.1", 32, "10.0.0.0", false),
            ("0.0.0.0", 0, "203.0.113.7", true),
            ("0.0.0.0", 0, "::", false),
            ("2001:db8::", 32, "2001:db8:ffff::1", true),
            ("2001:db8::", 32, "2001:db9::", false),
            ("::", 0, "2001:db8::", true),
        ] {
            let network = Prefix::new(address(network), length).expect("a network");
            assert_eq!(
                network.contains(address(other)),
                inside,
                "{network} {other}"
            );
        }
    }

    #[test]
    fn a_network_has_no_bits_behind_its_length() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        for (text, length, good) in [
            ("10.0.0.0", 8, true),
            ("10.0.0.1", 8, false),
            ("10.0.0.1", 32, true),
            ("10.0.0.1", 33, false),
            ("0.0.0.0", 0, true),
            ("2001:db8::", 32, true),
            ("2001:db8::1", 127, false),
            ("2001:db8::1", 128, true),
            ("::", 129, false),
        ] {
            let network = Prefix::new(address(text), length);
            assert_eq!(network.is_some(), good, "{text}/{length}");
        }
    }
}
