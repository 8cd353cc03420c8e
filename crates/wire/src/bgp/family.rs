//! Address families (RFC 4760): which there are, and what sets one apart from another.
//!
//! A family is a type that implements [`Family`], in a file of its own. [`FamilyId`] names a family at run time, and
//! [`with_family!`](crate::with_family) goes from the name to the type. To add a family, write its file, name it with
//! `mod`, and add a line to the list below: the identifiers, the sets, the codec, the tables of the `bgp` crate and the
//! names in configuration files follow from that list.
//!
//! Left out: families whose routes are no prefixes (VPN, EVPN, FlowSpec). [`Prefix`] and [`Nlri`](super::Nlri) would
//! have to become wider for those.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::prefix::Prefix;
use super::update::NextHop;

mod ipv4_unicast;
mod ipv6_unicast;

/// Where an UPDATE message carries the routes of a family and their next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the fields of RFC 4271, section 4.3, with the next hop in NEXT_HOP. Only IPv4 unicast has this place.
    Fields,
    /// In MP_REACH_NLRI and MP_UNREACH_NLRI, with the next hop in MP_REACH_NLRI (RFC 4760).
    Multiprotocol,
}

/// What a table hashes of an NLRI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashWords {
    /// One word.
    One(u64),
    /// Three words.
    Three([u64; 3]),
}

/// An address family that this implementation carries.
pub trait Family: Copy + Default + fmt::Debug + Send + Sync + 'static {
    /// The destination of a route without its length in bits, as a table stores it.
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

    /// The stored form of a prefix of this family.
    fn split(prefix: Prefix) -> Self::Nlri;
    /// The prefix of a stored form and its length.
    fn join(nlri: Self::Nlri, len: u8) -> Prefix;
    /// What a table hashes.
    fn hash_words(nlri: Self::Nlri, len: u8) -> HashWords;
    /// Reads a prefix of `len` bits from the octets that follow its length. Octets after the prefix are ignored.
    fn read(octets: &[u8], len: u8) -> Prefix;
    /// Appends a prefix: its length, and at least the octets that the length needs. The caller cuts off the rest.
    fn write(prefix: Prefix, out: &mut Vec<u8>);
    /// The first address of a prefix.
    fn address(prefix: Prefix) -> IpAddr;

    /// Reads a next hop, which has one of [`NEXT_HOP_LENS`](Self::NEXT_HOP_LENS).
    fn read_next_hop(octets: &[u8]) -> Option<NextHop>;
    /// Whether routes of this family can have this next hop.
    fn takes(next_hop: NextHop) -> bool;
    /// The next hop towards a router that has these addresses.
    fn own_next_hop(v4: Option<Ipv4Addr>, v6: Option<Ipv6Addr>) -> Option<NextHop>;
}

/// Defines [`FamilyId`] and the macros that follow from the list of families.
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

        /// How many families there are: the length of arrays with an entry for each.
        pub const FAMILIES: usize = [$(stringify!($family)),+].len();

        /// Evaluates an expression with the type of a family whose [`FamilyId`](crate::bgp::FamilyId) is known at run
        /// time: `with_family!(id, F => F::BITS)`.
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

        /// Calls a macro with all families as `field_name: Type,`, for what is declared once for each family.
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
    /// The family whose routes stand in the fields of RFC 4271 ([`Place::Fields`]), and which a session carries that
    /// negotiates none.
    pub const IN_FIELDS: FamilyId = FamilyId::Ipv4Unicast;

    /// A number from 0 on, for arrays with an entry for each family.
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

    /// The family that follows in [`ALL`](Self::ALL).
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

    /// The next hop towards a router that has these addresses.
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

/// An address family as the wire names it (RFC 4760), whether it is carried here or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AfiSafi {
    /// Address Family Identifier.
    pub afi: u16,
    /// Subsequent Address Family Identifier.
    pub safi: u8,
}

impl AfiSafi {
    /// The family, if it is carried here.
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
    /// IPv4 unicast, which a session carries that negotiates no family (RFC 4760, section 8).
    pub const IPV4: Families = Families::NONE.with(FamilyId::IN_FIELDS);

    /// The set with one more family.
    #[must_use]
    pub const fn with(self, family: FamilyId) -> Self {
        Families(self.0 | 1 << family.index())
    }

    /// The set without a family.
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
