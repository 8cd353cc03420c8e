//! The conditions of a rule.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

use wire::flow::{Dscp, Flow, Keys};

/// A rule: every condition that is set must hold. A rule without conditions matches every packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Match {
    /// Conditions on the outer header.
    pub outer: FlowMatch,
    /// Conditions on the header within the tunnel.
    pub tunnel: FlowMatch,
    /// Conditions on the header within the tunnel, or the only header.
    pub innermost: FlowMatch,
    /// Code point of the outer header; ECN bits do not count.
    pub dscp: Option<Dscp>,
    /// Bits of the mark.
    pub mark: Option<Mark>,
    /// VLAN identifier; 0 for untagged frames.
    pub vlan: Option<u16>,
}

/// Conditions on one IP header. A packet without this header matches only if no condition is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowMatch {
    /// The prefix that the source is in.
    pub src: Option<Prefix>,
    /// The prefix that the destination is in.
    pub dst: Option<Prefix>,
    /// Protocol number.
    pub proto: Option<u8>,
    /// Source port. Protocols without ports, and fragments, have port 0.
    pub proto_src: Option<Ports>,
    /// Destination port, as for the source.
    pub proto_dst: Option<Ports>,
}

/// Condition on a mark: its bits under `mask` equal those of `value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mark {
    /// The expected bits.
    pub value: u32,
    /// The bits that are compared.
    pub mask: u32,
}

/// A range of ports, both ends included; empty if `low` is above `high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ports {
    /// The lowest.
    pub low: u16,
    /// The highest.
    pub high: u16,
}

/// The addresses of one prefix. A prefix of IPv6 contains no IPv4 address, and the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Match {
    /// Whether a packet matches. For many rules a [`Filter`](super::Filter) is faster.
    #[must_use]
    pub fn matches(&self, keys: &Keys) -> bool {
        self.outer.matches(&keys.outer)
            && self.tunnel.matches(&keys.inner)
            && self.innermost.matches(keys.innermost())
            && self
                .dscp
                .is_none_or(|dscp| dscp == Dscp::of(keys.traffic_class))
            && self
                .mark
                .is_none_or(|mark| (keys.mark ^ mark.value) & mark.mask == 0)
            && self.vlan.is_none_or(|vlan| vlan == keys.vlan)
    }
}

impl FlowMatch {
    /// Whether it has no condition.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == FlowMatch::default()
    }

    /// Whether a header matches.
    #[must_use]
    pub fn matches(&self, flow: &Flow) -> bool {
        self.is_empty()
            || flow.exists()
                && self.src.is_none_or(|prefix| prefix.has(flow.source))
                && self.dst.is_none_or(|prefix| prefix.has(flow.destination))
                && self
                    .proto
                    .is_none_or(|proto| u32::from(proto) == flow.protocol)
                && self
                    .proto_src
                    .is_none_or(|ports| ports.has(flow.source_port))
                && self
                    .proto_dst
                    .is_none_or(|ports| ports.has(flow.destination_port))
    }
}

impl Ports {
    /// A range of one port.
    #[must_use]
    pub const fn one(port: u16) -> Ports {
        Ports {
            low: port,
            high: port,
        }
    }

    /// Whether the range is one port.
    pub(super) const fn is_one(self) -> bool {
        self.low == self.high
    }

    /// Whether a port is in the range.
    #[must_use]
    pub const fn has(self, port: u16) -> bool {
        self.low <= port && port <= self.high
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_one() {
            true => write!(f, "{}", self.low),
            false => write!(f, "{}-{}", self.low, self.high),
        }
    }
}

/// A text that is no range of ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadPorts(String);

impl fmt::Display for BadPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no ports {:?}: they are one from 0 to 65535, or two as in 5000-6000, the lower one first",
            self.0
        )
    }
}

impl core::error::Error for BadPorts {}

impl FromStr for Ports {
    type Err = BadPorts;

    /// Reads `443` or `5000-6000`.
    fn from_str(text: &str) -> Result<Self, BadPorts> {
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        let ports = digits(low).zip(digits(high));
        ports
            .map(|(low, high)| Ports { low, high })
            .filter(|ports| ports.low <= ports.high)
            .ok_or_else(|| BadPorts(text.to_owned()))
    }
}

/// A number that is nothing but digits.
fn digits<T: FromStr>(text: &str) -> Option<T> {
    let only = text.bytes().all(|octet| octet.is_ascii_digit());
    only.then(|| text.parse().ok()).flatten()
}

impl Prefix {
    /// The addresses that share the first `length` bits of `address`. `None` if the address has fewer bits, or if
    /// other bits are set.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Option<Prefix> {
        let prefix = Prefix { address, length };
        let fits = length <= prefix.length_max() && prefix.first() == address;
        fits.then_some(prefix)
    }

    /// A prefix of this address alone.
    #[must_use]
    pub const fn host(address: IpAddr) -> Prefix {
        let length = if address.is_ipv4() { 32 } else { 128 };
        Prefix { address, length }
    }

    /// The first address of the prefix.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// The prefix length.
    #[must_use]
    pub const fn length(self) -> u8 {
        self.length
    }

    /// Whether the prefix is one address.
    #[must_use]
    pub const fn is_single(self) -> bool {
        self.length == if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// Whether the prefix contains an address; an IPv4 address is given as `::ffff:a.b.c.d`.
    #[must_use]
    pub fn has(self, address: [u8; 16]) -> bool {
        let (mask, value) = self.bits();
        let bits = u128::from_be_bytes(address);
        bits & mask == value && (self.address.is_ipv4() || bits >> 32 != 0xffff)
    }

    /// The bits that are compared and their values, for an address as in [`Flow`].
    #[must_use]
    pub fn bits(self) -> (u128, u128) {
        let (value, length) = match self.address {
            IpAddr::V4(address) => (
                address.to_ipv6_mapped().to_bits(),
                u32::from(self.length) + 96,
            ),
            IpAddr::V6(address) => (address.to_bits(), u32::from(self.length)),
        };
        (leading(length), value)
    }

    fn length_max(self) -> u8 {
        Prefix::host(self.address).length
    }

    /// The address without the bits after the prefix.
    fn first(self) -> IpAddr {
        let length = u32::from(self.length);
        match self.address {
            IpAddr::V4(address) => {
                let mask = (leading(length) >> 96) as u32;
                IpAddr::V4((address.to_bits() & mask).into())
            }
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() & leading(length)).into()),
        }
    }
}

/// A number with that many leading ones.
fn leading(ones: u32) -> u128 {
    u128::MAX.checked_shl(128 - ones.min(128)).unwrap_or(0)
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self == Prefix::host(self.address) {
            true => write!(f, "{}", self.address),
            false => write!(f, "{}/{}", self.address, self.length),
        }
    }
}

/// Why a text is no prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadPrefix {
    /// It has no IPv4 or IPv6 address.
    Address(String),
    /// Its length is above the address's bits, or is no number.
    Length(String),
    /// Bits after the prefix are set.
    Bits {
        /// The text.
        text: String,
        /// The prefix with these bits cleared.
        prefix: Prefix,
    },
}

impl fmt::Display for BadPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadPrefix::Address(text) => write!(
                f,
                "no address {text:?}: they are as in 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32"
            ),
            BadPrefix::Length(text) => write!(
                f,
                "no prefix {text:?}: it has 0 to 32 bits of an IPv4 address, or 0 to 128 of an IPv6 address"
            ),
            BadPrefix::Bits { text, prefix } => {
                let host = Prefix::host(prefix.address);
                write!(f, "{text} names a host and a network: ")?;
                write!(f, "the network is {}/{}, ", host.address, prefix.length)?;
                write!(f, "the host has no /{}", prefix.length)
            }
        }
    }
}

impl core::error::Error for BadPrefix {}

impl FromStr for Prefix {
    type Err = BadPrefix;

    /// Reads an address, or an address and a prefix length: `10.0.0.0/8`.
    fn from_str(text: &str) -> Result<Self, BadPrefix> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| BadPrefix::Address(text.to_owned()))?;
        let host = Prefix::host(address);
        let Some(length) = length else {
            return Ok(host);
        };
        let length = digits(length)
            .filter(|&length| length <= host.length)
            .ok_or_else(|| BadPrefix::Length(text.to_owned()))?;
        let prefix = Prefix { address, length };
        Prefix::new(address, length).ok_or_else(|| BadPrefix::Bits {
            text: text.to_owned(),
            prefix: Prefix {
                address: prefix.first(),
                length,
            },
        })
    }
}
