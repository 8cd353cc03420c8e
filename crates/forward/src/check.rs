//! Checks that a packet may be forwarded at all: RFC 1812 sections 5.2.2 and 5.3.7, RFC 4291 section 2.5.
//!
//! [`wire::ip::Header::read`] checks lengths and version; the other checks are here. Left out: directed broadcasts,
//! since a point-to-point link has none.

use wire::checksum;
use wire::ip::Header;
use wire::packet::Fragment;

use crate::discard::Discard;

/// Checks the IPv4 header checksum (RFC 1812 section 5.2.2, test 2); IPv6 has none. Packets from a kernel do not need
/// this, because the kernel checked them.
///
/// # Errors
/// [`Discard::Checksum`].
#[inline]
pub fn checksum(header: &Header, packet: &[u8]) -> Result<(), Discard> {
    if header.version == 6 {
        return Ok(());
    }
    let right = match packet.first_chunk::<20>() {
        Some(head) if head[0] == 0x45 => checksum::sum(head) == 0xffff,
        _ => checksum::ip_ok(packet) == Some(true),
    };
    right.then_some(()).ok_or(Discard::Checksum)
}

/// How far a destination reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// It may be forwarded.
    Any,
    /// It is on the link: IPv6's link-local addresses and multicast of that scope, which neighbour discovery uses.
    Link,
}

/// Checks that source and destination are possible on a network, and that a fragment ends within the longest datagram.
/// Returns how far the destination reaches.
///
/// # Errors
/// [`Discard::MartianSource`], [`Discard::MartianDestination`], [`Discard::Multicast`], [`Discard::FragmentEnd`].
#[inline]
pub fn addresses(header: &Header) -> Result<Reach, Discard> {
    if header.fragment == Fragment::Later {
        fragment_end(header)?;
    }
    if header.version == 4 {
        v4(header.source as u32, header.destination as u32)
    } else {
        v6(header.source, header.destination)
    }
}

fn fragment_end(header: &Header) -> Result<(), Discard> {
    let content = header.total_length - u32::from(header.header_length);
    let end = u32::from(header.fragment_offset) + content;
    (end <= 0xffff).then_some(()).ok_or(Discard::FragmentEnd)
}

/// Whether no packet on a network may have the source `address`: network 0 and 127, link-local (RFC 3927), multicast,
/// reserved, broadcast.
#[inline]
pub(crate) fn is_martian_v4(address: u32) -> bool {
    let [a, b, _, _] = address.to_be_bytes();
    matches!(a, 0 | 127 | 224..) || (a, b) == (169, 254)
}

/// Whether no packet on a network may have the source `address`: unspecified, loopback, and IPv4's in IPv6, which are
/// all in `::/64`, and multicast.
#[inline]
pub(crate) fn is_martian_v6(address: u128) -> bool {
    address >> 64 == 0 || is_multicast_v6(address)
}

#[inline]
pub(crate) fn is_multicast_v6(address: u128) -> bool {
    address >> 120 == 0xff
}

/// Whether an address is link-local (RFC 4291 section 2.5.6).
#[inline]
pub(crate) fn is_link_local_v6(address: u128) -> bool {
    address >> 118 == 0xfe80 >> 6
}

#[inline]
fn v4(source: u32, destination: u32) -> Result<Reach, Discard> {
    if is_martian_v4(source) {
        return Err(Discard::MartianSource);
    }
    if is_martian_v4(destination) {
        return Err(match destination >> 28 {
            0xe => Discard::Multicast,
            _ => Discard::MartianDestination,
        });
    }
    Ok(Reach::Any)
}

#[inline]
fn v6(source: u128, destination: u128) -> Result<Reach, Discard> {
    if is_martian_v6(source) {
        return Err(Discard::MartianSource);
    }
    if is_multicast_v6(destination) {
        // The scope is the low half of the second octet: interface-local 1, link-local 2 (RFC 4291 section 2.7).
        return match (destination >> 112) as u8 & 0x0f {
            2 => Ok(Reach::Link),
            _ => Err(Discard::Multicast),
        };
    }
    if is_martian_v6(destination) {
        return Err(Discard::MartianDestination);
    }
    Ok(if is_link_local_v6(destination) {
        Reach::Link
    } else {
        Reach::Any
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{v4, v6};

    fn reach(packet: &[u8]) -> Result<Reach, Discard> {
        addresses(&Header::read(packet).expect("a packet"))
    }

    #[test]
    fn a_wrong_header_checksum_is_found_with_and_without_options() {
        for options in [&[][..], &[1, 1, 1, 0]] {
            let mut packet = v4().options(options).udp(b"data");
            let header = Header::read(&packet).expect("a packet");
            assert_eq!(checksum(&header, &packet), Ok(()));
            packet[8] ^= 1;
            assert_eq!(checksum(&header, &packet), Err(Discard::Checksum));
        }
        let packet = v6().udp(b"data");
        let header = Header::read(&packet).expect("a packet");
        assert_eq!(checksum(&header, &packet), Ok(()));
    }

    #[test]
    fn addresses_that_rfc_1812_5_3_7_calls_invalid_go_no_further() {
        for source in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "169.254.7.7",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            let packet = v4().from(source).udp(b"");
            assert_eq!(reach(&packet), Err(Discard::MartianSource), "{source}");
        }
        for (destination, due) in [
            ("0.0.0.0", Discard::MartianDestination),
            ("127.0.0.1", Discard::MartianDestination),
            ("169.254.1.1", Discard::MartianDestination),
            ("224.0.0.5", Discard::Multicast),
            ("239.255.255.255", Discard::Multicast),
            ("240.0.0.1", Discard::MartianDestination),
            ("255.255.255.255", Discard::MartianDestination),
        ] {
            assert_eq!(
                reach(&v4().to(destination).udp(b"")),
                Err(due),
                "{destination}"
            );
        }
        for usual in [
            "1.0.0.1",
            "10.0.0.1",
            "126.9.9.9",
            "128.0.0.0",
            "223.255.255.255",
        ] {
            assert_eq!(reach(&v4().from(usual).udp(b"")), Ok(Reach::Any), "{usual}");
            assert_eq!(reach(&v4().to(usual).udp(b"")), Ok(Reach::Any), "{usual}");
        }
    }

    #[test]
    fn addresses_of_ipv6_without_a_network_go_no_further() {
        for source in ["::", "::1", "::ffff:192.0.2.1", "::192.0.2.1", "ff02::1"] {
            let packet = v6().from(source).udp(b"");
            assert_eq!(reach(&packet), Err(Discard::MartianSource), "{source}");
        }
        for (destination, due) in [
            ("::", Err(Discard::MartianDestination)),
            ("::1", Err(Discard::MartianDestination)),
            ("::ffff:192.0.2.1", Err(Discard::MartianDestination)),
            ("ff01::1", Err(Discard::Multicast)),
            ("ff02::2", Ok(Reach::Link)),
            ("ff02::1:ff00:1", Ok(Reach::Link)),
            ("ff05::2", Err(Discard::Multicast)),
            ("ff0e::1", Err(Discard::Multicast)),
            ("fe80::1", Ok(Reach::Link)),
            ("febf::1", Ok(Reach::Link)),
            ("fec0::1", Ok(Reach::Any)),
            ("64:ff9b::192.0.2.1", Ok(Reach::Any)),
            ("2001:db8::1", Ok(Reach::Any)),
        ] {
            assert_eq!(reach(&v6().to(destination).udp(b"")), due, "{destination}");
        }
    }

    #[test]
    fn a_fragment_beyond_the_longest_datagram_goes_no_further() {
        // 8,189 units of eight octets and 23 more end at 65,535.
        let packet = v4().fragment(8189).content(&[0; 23]);
        assert_eq!(reach(&packet), Ok(Reach::Any));
        let packet = v4().fragment(8189).content(&[0; 24]);
        assert_eq!(reach(&packet), Err(Discard::FragmentEnd));
    }
}
