//! IPv4 address ranges in an operator's notation.

use core::fmt;
use core::net::Ipv4Addr;
use core::str::FromStr;

use crate::profile::Prefix;

/// The addresses from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    first: u32,
    last: u32,
}

impl Range {
    /// The range from `first` to `last`; `None` if `last` is before `first`.
    #[must_use]
    pub fn new(first: Ipv4Addr, last: Ipv4Addr) -> Option<Self> {
        (first <= last).then_some(Self {
            first: first.to_bits(),
            last: last.to_bits(),
        })
    }

    /// The number of addresses.
    #[must_use]
    pub fn count(self) -> u64 {
        u64::from(self.last - self.first) + 1
    }

    /// Whether an address is in the range.
    #[must_use]
    pub fn contains(self, address: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&address.to_bits())
    }

    /// The fewest networks that together cover exactly this range.
    pub fn networks(self) -> impl Iterator<Item = Prefix> {
        let mut next = Some(self.first);
        core::iter::from_fn(move || {
            let first = next?;
            let aligned = first.trailing_zeros();
            let left = u64::from(self.last - first) + 1;
            let bits = aligned.min(left.ilog2());
            let span = 1_u64 << bits;
            next = (span < left).then(|| first + span as u32);
            Prefix::new(Ipv4Addr::from_bits(first).into(), 32 - bits as u8)
        })
    }

    pub(super) fn bits(self) -> (u32, u32) {
        (self.first, self.last)
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

impl FromStr for Range {
    type Err = String;

    /// `10.0.0.0/24`, `10.0.0.10-10.0.0.99` or `10.0.0.7`.
    fn from_str(text: &str) -> Result<Self, String> {
        let address = |part: &str| {
            let part = part.trim();
            part.parse::<Ipv4Addr>().map_err(|_| {
                format!(
                    "\"{part}\" is no IPv4 address; write \"10.0.0.0/24\", \"10.0.0.10-10.0.0.99\" or \"10.0.0.7\""
                )
            })
        };
        if let Some((network, length)) = text.split_once('/') {
            let network = address(network)?.to_bits();
            let length: u32 = length
                .parse()
                .ok()
                .filter(|length| *length <= 32)
                .ok_or_else(|| {
                    format!("\"{length}\" is no prefix length; it must be from 0 to 32")
                })?;
            let hosts = u32::MAX.checked_shr(length).unwrap_or(0);
            if network & hosts != 0 {
                let right = Ipv4Addr::from_bits(network & !hosts);
                return Err(format!(
                    "\"{text}\" has bits behind its length; did you mean \"{right}/{length}\"?"
                ));
            }
            return Ok(Self {
                first: network,
                last: network | hosts,
            });
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (address(first)?, address(last)?);
        Self::new(first, last).ok_or_else(|| {
            format!("\"{text}\" ends before it begins; did you mean \"{last}-{first}\"?")
        })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (
            Ipv4Addr::from_bits(self.first),
            Ipv4Addr::from_bits(self.last),
        );
        let hosts = self.first ^ self.last;
        if self.first == self.last {
            write!(f, "{first}")
        } else if hosts & hosts.wrapping_add(1) == 0 && self.first & hosts == 0 {
            write!(f, "{first}/{}", hosts.leading_zeros())
        } else {
            write!(f, "{first}-{last}")
        }
    }
}

/// Whether a host can have the address: it is not in "this network", loopback, multicast or reserved space (RFC
/// 1122, section 3.2.1.3).
pub(crate) fn is_host(address: Ipv4Addr) -> bool {
    let first = address.octets()[0];
    first != 0 && first != 127 && first < 224
}

/// Networks without valid host addresses.
pub(super) const NO_HOSTS: [Range; 3] = [
    Range {
        first: 0,
        last: 0x00ff_ffff,
    },
    Range {
        first: 0x7f00_0000,
        last: 0x7fff_ffff,
    },
    Range {
        first: 0xe000_0000,
        last: u32::MAX,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_a_range_have_its_addresses_and_no_others() {
        for (text, expected) in [
            ("10.0.0.0/24", &["10.0.0.0/24"][..]),
            ("10.0.0.7", &["10.0.0.7/32"]),
            (
                "10.0.0.10-10.0.0.20",
                &[
                    "10.0.0.10/31",
                    "10.0.0.12/30",
                    "10.0.0.16/30",
                    "10.0.0.20/32",
                ],
            ),
            ("0.0.0.0-255.255.255.255", &["0.0.0.0/0"]),
            ("255.255.255.254-255.255.255.255", &["255.255.255.254/31"]),
        ] {
            let range: Range = text.parse().unwrap();
            let networks: Vec<_> = range.networks().map(|one| one.to_string()).collect();
            assert_eq!(networks, expected, "{text}");
        }
    }
}
