//! Ranges of IPv4 addresses (RFC 6888 REQ-3).

use core::fmt;
use core::str::FromStr;
use std::net::Ipv4Addr;

/// Addresses from a first to a last one.
///
/// ```
/// use nat::Range;
///
/// let range: Range = "198.51.100.0/28".parse().expect("a prefix");
/// assert_eq!(range.len(), 16);
/// assert_eq!("192.0.2.1-192.0.2.9".parse::<Range>().expect("a range").len(), 9);
/// assert_eq!("192.0.2.1".parse::<Range>().expect("an address").to_string(), "192.0.2.1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    first: u32,
    last: u32,
}

impl Range {
    /// The addresses from `first` to `last`; `None` if `last` is before `first`.
    #[must_use]
    pub const fn new(first: Ipv4Addr, last: Ipv4Addr) -> Option<Self> {
        let (first, last) = (first.to_bits(), last.to_bits());
        if last < first {
            return None;
        }
        Some(Self { first, last })
    }

    /// The first address.
    #[must_use]
    pub const fn first(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first)
    }

    /// The last address.
    #[must_use]
    pub const fn last(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.last)
    }

    /// How many addresses; never 0.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a range is never empty")]
    pub const fn len(&self) -> u64 {
        (self.last - self.first) as u64 + 1
    }

    /// The place of an address in the range.
    #[inline]
    #[must_use]
    pub const fn position(&self, address: u32) -> Option<u32> {
        if address < self.first || address > self.last {
            return None;
        }
        Some(address - self.first)
    }

    /// The networks that cover exactly these addresses, in order, each with the length of its prefix.
    pub fn networks(&self) -> impl Iterator<Item = (Ipv4Addr, u8)> + use<> {
        let (mut next, last) = (u64::from(self.first), u64::from(self.last));
        core::iter::from_fn(move || {
            let left = last.checked_sub(next)? + 1;
            let aligned = next.trailing_zeros().min(32);
            let bits = aligned.min(left.ilog2());
            let network = Ipv4Addr::from_bits(next as u32);
            next += 1 << bits;
            Some((network, (32 - bits) as u8))
        })
    }

    /// Whether all addresses of the other are addresses of this one.
    #[must_use]
    pub const fn contains(&self, other: &Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// Whether the two share an address.
    #[must_use]
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => self.first().fmt(f),
            false => write!(f, "{}-{}", self.first(), self.last()),
        }
    }
}

/// A text that is no range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("neither an IPv4 address, nor ADDRESS/LENGTH, nor FIRST-LAST")]
pub struct RangeError;

impl FromStr for Range {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        let address = |text: &str| text.trim().parse::<Ipv4Addr>().map_err(|_| RangeError);
        if let Some((first, last)) = text.split_once('-') {
            return Self::new(address(first)?, address(last)?).ok_or(RangeError);
        }
        let Some((network, length)) = text.split_once('/') else {
            let one = address(text)?;
            return Self::new(one, one).ok_or(RangeError);
        };
        let first = address(network)?.to_bits();
        let length: u32 = length.parse().map_err(|_| RangeError)?;
        if length > 32 {
            return Err(RangeError);
        }
        let rest = u32::MAX.checked_shr(length).unwrap_or(0);
        match first & rest {
            0 => Ok(Self {
                first,
                last: first | rest,
            }),
            _ => Err(RangeError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_cover_a_range_exactly() {
        for (range, expected) in [
            ("0.0.0.0/0", &["0.0.0.0/0"][..]),
            ("192.0.2.0/30", &["192.0.2.0/30"]),
            (
                "192.0.2.1-192.0.2.4",
                &["192.0.2.1/32", "192.0.2.2/31", "192.0.2.4/32"],
            ),
            ("255.255.255.254-255.255.255.255", &["255.255.255.254/31"]),
        ] {
            let range: Range = range.parse().expect("a range");
            let networks = range.networks();
            let networks: Vec<_> = networks
                .map(|(at, length)| format!("{at}/{length}"))
                .collect();
            assert_eq!(networks, expected);
        }
    }
}
