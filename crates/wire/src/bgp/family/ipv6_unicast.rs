//! IPv6 unicast: RFC 2545. Its routes are in the multiprotocol attributes of RFC 4760.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Family, FamilyId, HashWords, Place};
use crate::bgp::prefix::Prefix;
use crate::bgp::update::NextHop;

/// IPv6 unicast (AFI 2, SAFI 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ipv6Unicast;

impl Family for Ipv6Unicast {
    /// Four words rather than a `u128`, which would align table entries to 16 octets.
    type Nlri = [u32; 4];

    const ID: FamilyId = FamilyId::Ipv6Unicast;
    const AFI: u16 = 2;
    const SAFI: u8 = 1;
    const NAME: &'static str = "IPv6 unicast";
    const KEY: &'static str = "ipv6";
    const BITS: u8 = 128;
    const PLACE: Place = Place::Multiprotocol;
    /// The global address alone, or the global and the link-local address (RFC 2545, section 3).
    const NEXT_HOP_LENS: &'static [usize] = &[16, 32];

    #[inline]
    fn split(prefix: Prefix) -> [u32; 4] {
        let bits = prefix.bits();
        [96, 64, 32, 0].map(|shift| (bits >> shift) as u32)
    }

    #[inline]
    fn join(nlri: [u32; 4], len: u8) -> Prefix {
        let bits = nlri
            .iter()
            .fold(0, |bits, &word| bits << 32 | u128::from(word));
        Prefix::v6(bits, len)
    }

    #[inline]
    fn hash_words(nlri: [u32; 4], len: u8) -> HashWords {
        let [a, b, c, d] = nlri.map(u64::from);
        HashWords::Three([a << 32 | b, c << 32 | d, len.into()])
    }

    #[inline]
    fn read(octets: &[u8], len: u8) -> Prefix {
        // More octets almost always follow, so sixteen are read at once; Prefix::v6 clears the surplus bits.
        let word = octets.first_chunk().copied().unwrap_or_else(|| {
            let mut word = [0; 16];
            word[..octets.len()].copy_from_slice(octets);
            word
        });
        Prefix::v6(u128::from_be_bytes(word), len)
    }

    #[inline]
    fn write(prefix: Prefix, out: &mut Vec<u8>) {
        let mut octets = [0; 17];
        octets[0] = prefix.len();
        octets[1..].copy_from_slice(&prefix.bits().to_be_bytes());
        // Copying a fixed length takes only a few instructions.
        out.extend_from_slice(&octets);
    }

    fn address(prefix: Prefix) -> IpAddr {
        Ipv6Addr::from_bits(prefix.bits()).into()
    }

    #[inline]
    fn read_next_hop(octets: &[u8]) -> Option<NextHop> {
        let (global, link_local) = octets.split_first_chunk::<16>()?;
        let link_local = match link_local {
            [] => None,
            octets => Some(Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?)),
        };
        Some(NextHop::V6(Ipv6Addr::from(*global), link_local))
    }

    #[inline]
    fn takes(next_hop: NextHop) -> bool {
        matches!(next_hop, NextHop::V6(..))
    }

    fn own_next_hop(_v4: Option<Ipv4Addr>, v6: Option<Ipv6Addr>) -> Option<NextHop> {
        v6.map(|address| NextHop::V6(address, None))
    }
}
