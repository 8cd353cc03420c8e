//! Decrements TTL (RFC 1812 section 5.3.1) and hop limit (RFC 8200 section 3).

use wire::ip::Header;

use crate::checksum;
use crate::discard::Discard;

/// Decrements the TTL and updates the header checksum, or decrements the hop limit. `header` keeps the old value.
///
/// # Errors
/// [`Discard::HopLimit`] if it would become zero. The packet is unchanged then, because an ICMP error quotes it.
#[inline]
pub fn decrement(header: &Header, packet: &mut [u8]) -> Result<(), Discard> {
    if header.hop_limit <= 1 {
        return Err(Discard::HopLimit);
    }
    if header.version == 6 {
        if let Some(head) = packet.first_chunk_mut::<40>() {
            head[7] = header.hop_limit - 1;
        }
    } else if let Some(head) = packet.first_chunk_mut::<20>() {
        head[8] = header.hop_limit - 1;
        let word = |hops| u16::from_be_bytes([hops, head[9]]);
        let sum = u16::from_be_bytes([head[10], head[11]]);
        let sum = checksum::changed(sum, word(header.hop_limit), word(header.hop_limit - 1));
        head[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{v4, v6};
    use proptest::prelude::*;

    #[test]
    fn the_last_hop_is_not_passed_on_and_the_packet_stays_as_it_was() {
        for hops in [0, 1] {
            for packet in [v4().hops(hops).udp(b"x"), v6().hops(hops).udp(b"x")] {
                let mut after = packet.clone();
                let header = Header::read(&packet).expect("a packet");
                assert_eq!(decrement(&header, &mut after), Err(Discard::HopLimit));
                assert_eq!(after, packet);
            }
        }
    }

    #[test]
    fn ipv6_loses_a_hop_and_nothing_else() {
        let packet = v6().hops(64).udp(b"x");
        let mut after = packet.clone();
        let header = Header::read(&packet).expect("a packet");
        assert_eq!(decrement(&header, &mut after), Ok(()));
        assert_eq!(after, v6().hops(63).udp(b"x"));
    }

    proptest! {
        #[test]
        fn the_header_checksum_is_that_of_the_whole_header(
            hops in 2_u8..,
            source: [u8; 4],
            identification: u16,
        ) {
            let build = |hops| v4().identification(identification).source_bits(source).hops(hops).udp(b"x");
            let mut packet = build(hops);
            let header = Header::read(&packet).expect("a packet");
            prop_assert_eq!(decrement(&header, &mut packet), Ok(()));
            prop_assert_eq!(packet, build(hops - 1));
        }
    }
}
