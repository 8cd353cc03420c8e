//! Address families (RFC 4760): the list of families, and what differs between them.
//!
//! A family is a type that implements [`Family`], in its own file. [`FamilyId`] names a family at run time, and
//! [`with_family!`](crate::with_family) maps the name to the type. To add a family, write its file, declare it
//! with `mod`, and add a line to the list below. The identifiers, the sets, the codec, the tables of the `bgp`
//! crate and the names in configuration files all follow from that list.
//!
//! Left out: families whose routes are not address prefixes (VPN, EVPN, FlowSpec). They would need a wider
//! [`Prefix`] and [`Nlri`](super::Nlri).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::prefix::Prefix;
use super::update::NextHop;

mod ipv4_unicast;
mod ipv6_unicast;

/// Where an UPDATE message carries a family's routes and their next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the fields of RFC 4271, section 4.3, with the next hop in NEXT_HOP. Only IPv4 unicast uses these.
    Fields,
    /// In MP_REACH_NLRI and MP_UNREACH_NLRI, with the next hop in MP_REACH_NLRI (RFC 4760).
    Multiprotocol,
}

/// The words of an NLRI that a hash table hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashWords {
    /// One word.
    One(u64),
    /// Three words.
    Three([u64; 3]),
}

/// An address family that this implementation supports.
pub trait Family: Copy + Default + fmt::Debug + Send + Sync + 'static {
    /// A route's destination without its prefix length, as a table stores it.
    type Nlri: Copy + Eq + fmt::Debug;

    /// The family's name at run time.
    const ID: FamilyId;
    /// Address Family Identifier.
    const AFI: u16;
    /// Subsequent Address Family Identifier.
    const SAFI: u8;
    /// The name in text, such as `IPv4 unicast`.
    const NAME: &'static str;
    /// The name in configuration files and in rows, such as `ipv4`.
    const KEY: &'static str;
    /// Bits of an address.
    const BITS: u8;
    /// Where messages carry the routes and the next hop.
    const PLACE: Place;
    /// The lengths that a next hop may have, in octets.
    const NEXT_HOP_LENS: &'static [usize];

    /// Converts a prefix of this family to its stored form.
    fn split(prefix: Prefix) -> Self::Nlri;
    /// Rebuilds the prefix from its stored form and length.
    fn join(nlri: Self::Nlri, len: u8) -> Prefix;
    /// The words that a table hashes.
    fn hash_words(nlri: Self::Nlri, len: u8) -> HashWords;
    /// Reads a prefix of `len` bits from the octets after its length octet. Later octets are ignored.
    fn read(octets: &[u8], len: u8) -> Prefix;
    /// Appends a prefix: its length octet, and at least as many octets as the length needs. The caller
    /// truncates the rest.
    fn write(prefix: Prefix, out: &mut Vec<u8>);
    /// The prefix's first address.
    fn address(prefix: Prefix) -> IpAddr;

    /// Reads a next hop, which has one of [`NEXT_HOP_LENS`](Self::NEXT_HOP_LENS).
    fn read_next_hop(octets: &[u8]) -> Option<NextHop>;
    /// Whether routes of this family can have this next hop.
    fn takes(next_hop: NextHop) -> bool;
    /// The next hop to advertise for a router with these addresses.
    fn own_next_hop(v4: Option<Ipv4Addr>, v6: Option<Ipv6Addr>) -> Option<NextHop>;
}

/// Defines [`FamilyId`] and the macros derived from the list of families.
macro_rules! families {
    ($d:tt: $($table:ident: $family:ident,)+) => {
        $(pub use $table::$family;)+

        /// The name of an address family at run time.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum FamilyId {
            $(
                #[doc = concat!("[`", stringify!($family), "`](struct@", stringify!($family), ").")]
                $family,
            )+
        }

        impl FamilyId {
            /// All families, in the order of their [index](Self::index).
            pub const ALL: [FamilyId; FAMILIES] = [$(FamilyId::$family),+];
        }

        /// The number of families: the length of per-family arrays.
        pub const FAMILIES: usize = [$(stringify!($family)),+].len();

        /// Evaluates an expression with the type of a family whose [`FamilyId`](crate::bgp::FamilyId) is known
        /// only at run time: `with_family!(id, F => F::BITS)`.
        #[macro_export]
        macro_rules! with_family {
            ($d id:expr, $d f:ident => $d body:expr) => {
                match $d id {
                    $($crate::bgp::FamilyId::$family => {
                        type $d f = $crate::bgp::$family;
                        $d body
                    })+
                }
            };
        }

        /// Calls a macro with every family as `field_name: Type,`, for per-family declarations.
        #[macro_export]
        macro_rules! for_each_family {
            ($d callback:ident) => {
                $d callback! { $($table: $family,)+ }
            };
        }
    };
}

// The list: one line for each family.
families! { $:
    ipv4_unicast: Ipv4Unicast,
    ipv6_unicast: Ipv6Unicast,
}

impl FamilyId {
    /// The family carried in the fields of RFC 4271 ([`Place::Fields`]). A session that negotiates no family
    /// uses it.
    pub const IN_FIELDS: FamilyId = FamilyId::Ipv4Unicast;

    /// A zero-based number, for per-family arrays.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Bits of an address: 32 or 128.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u8 {
        with_family!(self, F => F::BITS)
    }

    /// Where messages carry the routes and the next hop.
    #[must_use]
    #[inline]
    pub const fn place(self) -> Place {
        with_family!(self, F => F::PLACE)
    }

    /// The name in configuration files and in rows, such as `ipv4`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        with_family!(self, F => F::KEY)
    }

    /// The family with that name in configuration files.
    #[must_use]
    pub fn from_key(key: &str) -> Option<Self> {
        FamilyId::ALL.into_iter().find(|family| family.key() == key)
    }

    /// The unicast family of an address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => FamilyId::Ipv4Unicast,
            IpAddr::V6(_) => FamilyId::Ipv6Unicast,
        }
    }

    /// The next family in [`ALL`](Self::ALL).
    #[must_use]
    pub fn next(self) -> Option<Self> {
        FamilyId::ALL.get(self.index() + 1).copied()
    }

    /// Reads a next hop of this family (RFC 4271, section 5.1.3; RFC 4760, section 3; RFC 2545, section 3).
    #[must_use]
    #[inline]
    pub fn read_next_hop(self, octets: &[u8]) -> Option<NextHop> {
        with_family!(self, F => F::read_next_hop(octets))
    }

    /// Whether routes of this family can have this next hop.
    #[must_use]
    #[inline]
    pub fn takes(self, next_hop: NextHop) -> bool {
        with_family!(self, F => F::takes(next_hop))
    }

    /// The next hop to advertise for a router with these addresses.
    #[must_use]
    pub fn own_next_hop(self, v4: Option<Ipv4Addr>, v6: Option<Ipv6Addr>) -> Option<NextHop> {
        with_family!(self, F => F::own_next_hop(v4, v6))
    }
}

impl fmt::Display for FamilyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(with_family!(*self, F => F::NAME))
    }
}

/// An address family by its numbers (RFC 4760), supported or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AfiSafi {
    /// Address Family Identifier.
    pub afi: u16,
    /// Subsequent Address Family Identifier.
    pub safi: u8,
}

impl AfiSafi {
    /// The family, if it is supported.
    #[must_use]
    #[inline]
    pub fn family(self) -> Option<FamilyId> {
        FamilyId::ALL
            .into_iter()
            .find(|&family| AfiSafi::from(family) == self)
    }

    /// Reads the first three octets of the multiprotocol attributes.
    pub(super) const fn from_octets(octets: [u8; 3]) -> Self {
        AfiSafi {
            afi: u16::from_be_bytes([octets[0], octets[1]]),
            safi: octets[2],
        }
    }
}

impl From<FamilyId> for AfiSafi {
    #[inline]
    fn from(family: FamilyId) -> Self {
        with_family!(family, F => AfiSafi { afi: F::AFI, safi: F::SAFI })
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

/// A set of families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Families(u8);

impl Families {
    /// No family.
    pub const NONE: Families = Families(0);
    /// Every family.
    pub const ALL: Families = Families(((1_u16 << FAMILIES) - 1) as u8);
    /// IPv4 unicast, used by a session that negotiates no family (RFC 4760, section 8).
    pub const IPV4: Families = Families::NONE.with(FamilyId::IN_FIELDS);

    /// The set plus one family.
    #[must_use]
    pub const fn with(self, family: FamilyId) -> Self {
        Families(self.0 | 1 << family.index())
    }

    /// The set minus one family.
    #[must_use]
    pub const fn without(self, family: FamilyId) -> Self {
        Families(self.0 & !(1 << family.index()))
    }

    /// The families that are in both sets.
    #[must_use]
    pub const fn and(self, other: Families) -> Self {
        Families(self.0 & other.0)
    }

    /// Whether a family is in the set.
    #[must_use]
    #[inline]
    pub const fn contains(self, family: FamilyId) -> bool {
        self.0 & 1 << family.index() != 0
    }

    /// Whether the set has no family.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each family of the set.
    pub fn iter(self) -> impl Iterator<Item = FamilyId> {
        FamilyId::ALL
            .into_iter()
            .filter(move |&family| self.contains(family))
    }
}

impl FromIterator<FamilyId> for Families {
    fn from_iter<I: IntoIterator<Item = FamilyId>>(families: I) -> Self {
        families.into_iter().fold(Families::NONE, Families::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_what_its_identifier_says() {
        for family in FamilyId::ALL {
            with_family!(family, F => {
                assert_eq!(F::ID, family);
                let AfiSafi { afi, safi } = family.into();
                assert_eq!(AfiSafi { afi, safi }.family(), Some(family));
                assert_eq!(FamilyId::from_key(F::KEY), Some(family));
                let in_fields = family == FamilyId::IN_FIELDS;
                assert_eq!(F::PLACE == Place::Fields, in_fields);
                let octets = [1; 64];
                for len in 0..octets.len() {
                    let next_hop = F::read_next_hop(&octets[..len]);
                    assert_eq!(next_hop.is_some(), F::NEXT_HOP_LENS.contains(&len));
                    assert!(next_hop.is_none_or(F::takes));
                }
            });
        }
        assert_eq!(AfiSafi { afi: 25, safi: 70 }.family(), None);
        assert_eq!(FamilyId::from_key("ipv5"), None);
    }

    #[test]
    fn a_prefix_survives_its_stored_form_and_its_octets() {
        for text in ["192.0.2.128/25", "0.0.0.0/0", "2001:db8:8000::/33", "::/0"] {
            let prefix: Prefix = text.parse().unwrap();
            with_family!(prefix.family(), F => {
                assert_eq!(F::join(F::split(prefix), prefix.len()), prefix);
                let mut octets = Vec::new();
                F::write(prefix, &mut octets);
                assert_eq!(F::read(&octets[1..], octets[0]), prefix);
            });
        }
    }
}
