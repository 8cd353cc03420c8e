//! IPv4 unicast: RFC 4271. Its routes are in the message's own fields.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Family, FamilyId, HashWords, Place};
use crate::bgp::prefix::Prefix;
use crate::bgp::update::NextHop;

/// IPv4 unicast (AFI 1, SAFI 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ipv4Unicast;

impl Family for Ipv4Unicast {
    type Nlri = u32;

    const ID: FamilyId = FamilyId::Ipv4Unicast;
    const AFI: u16 = 1;
    const SAFI: u8 = 1;
    const NAME: &'static str = "IPv4 unicast";
    const KEY: &'static str = "ipv4";
    const BITS: u8 = 32;
    const PLACE: Place = Place::Fields;
    const NEXT_HOP_LENS: &'static [usize] = &[4];

    #[inline]
    fn split(prefix: Prefix) -> u32 {
        (prefix.bits() >> 96) as u32
    }

    #[inline]
    fn join(nlri: u32, len: u8) -> Prefix {
        Prefix::v4(nlri, len)
    }

    #[inline]
    fn hash_words(nlri: u32, len: u8) -> HashWords {
        HashWords::One(u64::from(nlri) << 8 | u64::from(len))
    }

    #[inline]
    fn read(octets: &[u8], len: u8) -> Prefix {
        // More octets almost always follow, so four are read at once; Prefix::v4 clears the surplus bits.
        let word = octets.first_chunk().copied().unwrap_or_else(|| {
            let mut word = [0; 4];
            word[..octets.len()].copy_from_slice(octets);
            word
        });
        Prefix::v4(u32::from_be_bytes(word), len)
    }

    #[inline]
    fn write(prefix: Prefix, out: &mut Vec<u8>) {
        let [a, b, c, d] = Self::split(prefix).to_be_bytes();
        // Copying a fixed length takes only a few instructions.
        out.extend_from_slice(&[prefix.len(), a, b, c, d]);
    }

    fn address(prefix: Prefix) -> IpAddr {
        Ipv4Addr::from_bits(Self::split(prefix)).into()
    }

    #[inline]
    fn read_next_hop(octets: &[u8]) -> Option<NextHop> {
        let address: [u8; 4] = octets.try_into().ok()?;
        Some(NextHop::V4(address.into()))
    }

    #[inline]
    fn takes(next_hop: NextHop) -> bool {
        matches!(next_hop, NextHop::V4(_))
    }

    fn own_next_hop(v4: Option<Ipv4Addr>, _v6: Option<Ipv6Addr>) -> Option<NextHop> {
        v4.map(NextHop::V4)
    }
}
