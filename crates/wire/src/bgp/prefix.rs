//! Address prefixes, and prefixes with a path identifier (RFC 7911).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::str::FromStr;

use super::family::{Family, FamilyId, HashWords};

/// An address prefix of any family, without host bits, in 20 octets.
///
/// Prefixes sort by family, then by address, then by length, so a prefix comes right before those it contains.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    family: FamilyId,
    /// From the address's first bit on; IPv4 uses only the first word.
    words: [u32; 4],
    len: u8,
}

impl Prefix {
    /// An IPv4 prefix; `len` above 32 is treated as 32, host bits are cleared.
    #[must_use]
    #[inline]
    pub const fn v4(address: u32, len: u8) -> Self {
        let len = if len > 32 { 32 } else { len };
        Prefix {
            family: FamilyId::Ipv4Unicast,
            words: [address & mask_v4(len), 0, 0, 0],
            len,
        }
    }

    /// An IPv6 prefix; `len` above 128 is treated as 128, host bits are cleared.
    #[must_use]
    #[inline]
    pub const fn v6(address: u128, len: u8) -> Self {
        let len = if len > 128 { 128 } else { len };
        Prefix {
            family: FamilyId::Ipv6Unicast,
            words: words(address & mask_v6(len)),
            len,
        }
    }

    /// The prefix of that length that contains an address.
    #[must_use]
    pub fn of(address: IpAddr, len: u8) -> Self {
        match address {
            IpAddr::V4(address) => Prefix::v4(address.to_bits(), len),
            IpAddr::V6(address) => Prefix::v6(address.to_bits(), len),
        }
    }

    /// Its family.
    #[must_use]
    #[inline]
    pub const fn family(self) -> FamilyId {
        self.family
    }

    /// Its length in bits.
    #[must_use]
    #[inline]
    #[allow(clippy::len_without_is_empty)] // A prefix of no bits is not empty: all addresses are in it.
    pub const fn len(self) -> u8 {
        self.len
    }

    /// The address's bits from the highest on, for both families: an IPv4 address fills the upper 32.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u128 {
        let [a, b, c, d] = self.words;
        (a as u128) << 96 | (b as u128) << 64 | (c as u128) << 32 | d as u128
    }

    /// The prefix's first address.
    #[must_use]
    pub fn address(self) -> IpAddr {
        with_family!(self.family, F => F::address(self))
    }

    /// Whether it contains all of `other`; a prefix contains itself.
    #[must_use]
    #[inline]
    pub fn contains(self, other: Prefix) -> bool {
        self.family == other.family
            && self.len <= other.len
            && other.bits() & mask_v6(self.len) == self.bits()
    }

    /// Whether it contains an address.
    #[must_use]
    pub fn contains_address(self, address: IpAddr) -> bool {
        self.contains(Prefix::of(address, 128))
    }

    /// The enclosing prefix of that shorter length; the prefix itself if `len` is no shorter.
    #[must_use]
    pub const fn truncated(self, len: u8) -> Self {
        let len = if len < self.len { len } else { self.len };
        Prefix {
            words: words(self.bits() & mask_v6(len)),
            len,
            ..self
        }
    }
}

#[inline]
const fn words(bits: u128) -> [u32; 4] {
    [
        (bits >> 96) as u32,
        (bits >> 64) as u32,
        (bits >> 32) as u32,
        bits as u32,
    ]
}

#[inline]
const fn mask_v4(len: u8) -> u32 {
    ((u32::MAX as u64) << (32 - len)) as u32
}

#[inline]
const fn mask_v6(len: u8) -> u128 {
    if len == 0 {
        0
    } else {
        u128::MAX << (128 - len)
    }
}

impl Hash for Prefix {
    /// Hashes one word of an IPv4 prefix, three of an IPv6 prefix.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match with_family!(self.family, F => F::hash_words(F::split(*self), self.len)) {
            HashWords::One(word) => state.write_u64(word),
            HashWords::Three(words) => words.into_iter().for_each(|word| state.write_u64(word)),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.width().is_some() {
            return f.pad(&format!("{}/{}", self.address(), self.len));
        }
        write!(f, "{}/{}", self.address(), self.len)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Why a text is not a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// There is no `/`.
    #[error("a prefix is ADDRESS/LENGTH")]
    NoLength,
    /// The part before `/` is not an address.
    #[error("not an IPv4 or IPv6 address before the /")]
    Address,
    /// The part after `/` is not a number, or exceeds the address's bits.
    #[error("not a length from 0 to {0}")]
    Length(u8),
}

impl FromStr for Prefix {
    type Err = PrefixError;

    /// Reads `192.0.2.0/24` or `2001:db8::/32`; host bits are cleared.
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address, len) = text.split_once('/').ok_or(PrefixError::NoLength)?;
        let address = address
            .parse::<IpAddr>()
            .map_err(|_| PrefixError::Address)?;
        let len_max = FamilyId::of(address).bits();
        let is_plain = len.bytes().all(|octet| octet.is_ascii_digit());
        match len.parse::<u8>() {
            Ok(len) if is_plain && len <= len_max => Ok(Prefix::of(address, len)),
            _ => Err(PrefixError::Length(len_max)),
        }
    }
}

/// A prefix as announced or withdrawn, with its path identifier (RFC 7911).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nlri {
    /// The prefix.
    pub prefix: Prefix,
    /// Path identifier; 0 if none is used.
    pub path_id: u32,
}

impl From<Prefix> for Nlri {
    fn from(prefix: Prefix) -> Self {
        Nlri { prefix, path_id: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_prefix_is_small() {
        assert_eq!(size_of::<Prefix>(), 20);
        assert_eq!(size_of::<Nlri>(), 24);
    }

    #[test]
    fn host_bits_are_cleared() {
        let prefix: Prefix = "192.0.2.255/25".parse().unwrap();
        assert_eq!(prefix.to_string(), "192.0.2.128/25");
        let prefix: Prefix = "2001:db8:ffff::1/33".parse().unwrap();
        assert_eq!(prefix.to_string(), "2001:db8:8000::/33");
        assert_eq!(Prefix::v4(u32::MAX, 0).to_string(), "0.0.0.0/0");
        assert_eq!(Prefix::v6(u128::MAX, 0).to_string(), "::/0");
        assert_eq!(Prefix::v4(1, 200), Prefix::v4(1, 32));
    }

    #[test]
    fn a_text_that_is_no_prefix_says_why() {
        let error = |text: &str| text.parse::<Prefix>().unwrap_err();
        assert_eq!(error("192.0.2.0"), PrefixError::NoLength);
        assert_eq!(error("192.0.2/24"), PrefixError::Address);
        assert_eq!(error("192.0.2.0/33"), PrefixError::Length(32));
        assert_eq!(error("192.0.2.0/+3"), PrefixError::Length(32));
        assert_eq!(error("192.0.2.0/"), PrefixError::Length(32));
        assert_eq!(error("::/129"), PrefixError::Length(128));
    }

    #[test]
    fn containment_needs_one_family_and_the_same_bits() {
        let prefix = |text: &str| text.parse::<Prefix>().unwrap();
        assert!(prefix("10.0.0.0/8").contains(prefix("10.255.0.0/16")));
        assert!(prefix("10.0.0.0/8").contains(prefix("10.0.0.0/8")));
        assert!(!prefix("10.0.0.0/8").contains(prefix("0.0.0.0/0")));
        assert!(!prefix("10.0.0.0/8").contains(prefix("11.0.0.0/16")));
        assert!(!prefix("0.0.0.0/0").contains(prefix("::/0")));
        assert!(prefix("::/0").contains_address("2001:db8::1".parse().unwrap()));
        assert!(prefix("192.0.2.0/24").contains_address("192.0.2.7".parse().unwrap()));
        assert!(!prefix("192.0.2.0/24").contains_address("192.0.3.7".parse().unwrap()));
    }

    #[test]
    fn a_prefix_sorts_before_what_it_contains() {
        let mut prefixes: Vec<Prefix> = ["::/0", "10.1.0.0/16", "10.0.0.0/8", "9.0.0.0/8"]
            .map(|text| text.parse().unwrap())
            .into();
        prefixes.sort_unstable();
        let texts: Vec<String> = prefixes.iter().map(Prefix::to_string).collect();
        assert_eq!(texts, ["9.0.0.0/8", "10.0.0.0/8", "10.1.0.0/16", "::/0"]);
    }

    proptest! {
        #[test]
        fn a_prefix_reads_what_it_writes(address: u128, len in 0u8..=128, is_v4: bool) {
            let prefix = if is_v4 {
                Prefix::v4(address as u32, len % 33)
            } else {
                Prefix::v6(address, len)
            };
            prop_assert_eq!(prefix.to_string().parse::<Prefix>(), Ok(prefix));
            prop_assert_eq!(Prefix::of(prefix.address(), prefix.len()), prefix);
            prop_assert!(prefix.truncated(len / 2).contains(prefix));
        }
    }
}
