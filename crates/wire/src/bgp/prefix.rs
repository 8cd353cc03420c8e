//! Address families, prefixes, and prefixes with a path identifier.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address family as the wire names it (RFC 4760), whether it is carried here or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AfiSafi {
    /// Address Family Identifier.
    pub afi: u16,
    /// Subsequent Address Family Identifier.
    pub safi: u8,
}

impl AfiSafi {
    /// The family, if it is one that is carried here.
    #[must_use]
    #[inline]
    pub const fn family(self) -> Option<Family> {
        match (self.afi, self.safi) {
            (1, 1) => Some(Family::Ipv4Unicast),
            (2, 1) => Some(Family::Ipv6Unicast),
            _ => None,
        }
    }

    /// As it stands in the first three octets of the multiprotocol attributes.
    pub(super) const fn from_octets(octets: [u8; 3]) -> Self {
        AfiSafi {
            afi: u16::from_be_bytes([octets[0], octets[1]]),
            safi: octets[2],
        }
    }
}

impl From<Family> for AfiSafi {
    fn from(family: Family) -> Self {
        let afi = match family {
            Family::Ipv4Unicast => 1,
            Family::Ipv6Unicast => 2,
        };
        AfiSafi { afi, safi: 1 }
    }
}

impl fmt::Display for AfiSafi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.family() {
            Some(family) => family.fmt(f),
            None => write!(f, "AFI {} SAFI {}", self.afi, self.safi),
        }
    }
}

/// A family of routes that is carried here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Family {
    /// AFI 1, SAFI 1.
    Ipv4Unicast = 0,
    /// AFI 2, SAFI 1.
    Ipv6Unicast = 1,
}

impl Family {
    /// Both, in the order of their [index](Self::index).
    pub const ALL: [Family; 2] = [Family::Ipv4Unicast, Family::Ipv6Unicast];

    /// 0 or 1, for tables with an entry for each family.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Bits of an address: 32 or 128.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u8 {
        match self {
            Family::Ipv4Unicast => 32,
            Family::Ipv6Unicast => 128,
        }
    }

    /// The family of an address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Family::Ipv4Unicast,
            IpAddr::V6(_) => Family::Ipv6Unicast,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Family::Ipv4Unicast => "IPv4 unicast",
            Family::Ipv6Unicast => "IPv6 unicast",
        })
    }
}

/// A set of families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Families(u8);

impl Families {
    /// None.
    pub const NONE: Families = Families(0);
    /// Both.
    pub const ALL: Families = Families(3);
    /// IPv4 unicast, which a session carries that says nothing of families (RFC 4760, section 8).
    pub const IPV4: Families = Families(1);

    /// With one more.
    #[must_use]
    pub const fn with(self, family: Family) -> Self {
        Families(self.0 | 1 << family.index())
    }

    /// Without one.
    #[must_use]
    pub const fn without(self, family: Family) -> Self {
        Families(self.0 & !(1 << family.index()))
    }

    /// Those that are in both.
    #[must_use]
    pub const fn and(self, other: Families) -> Self {
        Families(self.0 & other.0)
    }

    /// Whether it is among them.
    #[must_use]
    #[inline]
    pub const fn contains(self, family: Family) -> bool {
        self.0 & 1 << family.index() != 0
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Family> {
        Family::ALL
            .into_iter()
            .filter(move |&family| self.contains(family))
    }
}

impl FromIterator<Family> for Families {
    fn from_iter<I: IntoIterator<Item = Family>>(families: I) -> Self {
        families.into_iter().fold(Families::NONE, Families::with)
    }
}

/// An address prefix of either family, without host bits, in 20 octets.
///
/// Order: family, then address, then length; so a prefix stands right before what it contains.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    family: Family,
    /// From the address's first bit on; of IPv4 only the first is used.
    words: [u32; 4],
    len: u8,
}

impl Prefix {
    /// An IPv4 prefix; `len` over 32 means 32, host bits are cleared.
    #[must_use]
    #[inline]
    pub const fn v4(address: u32, len: u8) -> Self {
        let len = if len > 32 { 32 } else { len };
        Prefix {
            family: Family::Ipv4Unicast,
            words: [address & mask_v4(len), 0, 0, 0],
            len,
        }
    }

    /// An IPv6 prefix; `len` over 128 means 128, host bits are cleared.
    #[must_use]
    #[inline]
    pub const fn v6(address: u128, len: u8) -> Self {
        let len = if len > 128 { 128 } else { len };
        let address = address & mask_v6(len);
        Prefix {
            family: Family::Ipv6Unicast,
            words: [
                (address >> 96) as u32,
                (address >> 64) as u32,
                (address >> 32) as u32,
                address as u32,
            ],
            len,
        }
    }

    /// The prefix of that length that an address lies in.
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
    pub const fn family(self) -> Family {
        self.family
    }

    /// Its length in bits.
    #[must_use]
    #[inline]
    #[allow(clippy::len_without_is_empty)] // A prefix of no bits is not empty: all addresses are in it.
    pub const fn len(self) -> u8 {
        self.len
    }

    /// The address's bits from the highest on, of either family: an IPv4 address fills the upper 32.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u128 {
        let [a, b, c, d] = self.words;
        (a as u128) << 96 | (b as u128) << 64 | (c as u128) << 32 | d as u128
    }

    /// The first address in it.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        match self.family {
            Family::Ipv4Unicast => IpAddr::V4(Ipv4Addr::from_bits(self.words[0])),
            Family::Ipv6Unicast => IpAddr::V6(Ipv6Addr::from_bits(self.bits())),
        }
    }

    /// Whether all of `other` lies in it; so it does of itself.
    #[must_use]
    #[inline]
    pub fn contains(self, other: Prefix) -> bool {
        self.family == other.family
            && self.len <= other.len
            && other.bits() & mask_v6(self.len) == self.bits()
    }

    /// Whether an address lies in it.
    #[must_use]
    pub fn contains_address(self, address: IpAddr) -> bool {
        self.contains(Prefix::of(address, 128))
    }

    /// The shorter prefix of that length around it; itself when `len` is no shorter.
    #[must_use]
    pub const fn truncated(self, len: u8) -> Self {
        let len = if len < self.len { len } else { self.len };
        match self.family {
            Family::Ipv4Unicast => Prefix::v4(self.words[0], len),
            Family::Ipv6Unicast => Prefix::v6(self.bits(), len),
        }
    }
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
    /// One word of an IPv4 prefix, three of an IPv6 one.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [a, b, c, d] = self.words.map(u64::from);
        match self.family {
            Family::Ipv4Unicast => state.write_u64(a << 32 | u64::from(self.len)),
            Family::Ipv6Unicast => {
                state.write_u64(a << 32 | b);
                state.write_u64(c << 32 | d);
                state.write_u64(u64::from(self.len));
            }
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

/// Why a text is no prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// There is no `/`.
    #[error("a prefix is ADDRESS/LENGTH")]
    NoLength,
    /// What stands before `/` is no address.
    #[error("not an IPv4 or IPv6 address before the /")]
    Address,
    /// What stands after `/` is no number, or more than the address has bits.
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
        let len_max = Family::of(address).bits();
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
    /// Path identifier; 0 where there are none.
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
