//! Checks that a source address is the subscriber's (RFC 2827, RFC 3704 section 2.2). A packet from a session is
//! forwarded only if packets to its source would be routed to that session.

use wire::ip::Header;

use crate::check::{self, Reach};
use crate::discard::Discard;
use crate::routes::Routes;

/// A subscriber's own addresses, the sources of nearly all its packets. 0 means none; [`check::addresses`] has dropped
/// packets with such a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Addresses {
    /// IPv4 address, as a number.
    pub v4: u32,
    /// The upper half of its IPv6 addresses: its /64.
    pub v6: [u8; 8],
    /// Interface identifier that IPv6CP settled (RFC 5072 section 5): the lower half of its link-local address.
    pub interface: [u8; 8],
}

/// Checks the source of a packet from the session `slot`. The session's own addresses cost a comparison, its framed
/// routes a look-up. A link-local source must have the session's interface identifier, and a destination on the link
/// (`reach`).
///
/// # Errors
/// [`Discard::Spoofed`] and [`Discard::BeyondScope`].
#[inline]
pub fn check(
    addresses: &Addresses,
    slot: u32,
    routes: &Routes,
    header: &Header,
    reach: Reach,
) -> Result<(), Discard> {
    if header.version == 4 {
        let source = header.source as u32;
        if source == addresses.v4 || routes.lookup_v4(source) == Some(slot) {
            return Ok(());
        }
        return Err(Discard::Spoofed);
    }
    if (header.source >> 64) as u64 == u64::from_be_bytes(addresses.v6) {
        return Ok(());
    }
    if check::is_link_local_v6(header.source) {
        return link_local(addresses, header, reach);
    }
    if routes.lookup_v6(header.source) == Some(slot) {
        return Ok(());
    }
    Err(Discard::Spoofed)
}

#[cold]
fn link_local(addresses: &Addresses, header: &Header, reach: Reach) -> Result<(), Discard> {
    let own = 0xfe80 << 112 | u128::from(u64::from_be_bytes(addresses.interface));
    if header.source != own {
        return Err(Discard::Spoofed);
    }
    match reach {
        Reach::Link => Ok(()),
        Reach::Any => Err(Discard::BeyondScope),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{v4, v6};

    fn checked(packet: &[u8]) -> Result<(), Discard> {
        let mut routes = Routes::new(10);
        for (address, length, slot) in [
            ("192.0.2.1", 32, 7),
            ("192.0.2.2", 32, 8),
            ("203.0.113.0", 24, 7),
            ("203.0.113.9", 32, 8),
            ("2001:db8::", 64, 7),
            ("2001:db8:7::", 48, 7),
        ] {
            let address = address.parse().expect("an address");
            routes.insert(address, length, slot).expect("a new prefix");
        }
        let addresses = Addresses {
            v4: 0xc000_0201,
            v6: [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0],
            interface: [0, 0, 0, 0, 0, 0, 0, 0x2a],
        };
        let header = Header::read(packet).expect("a packet");
        let reach = check::addresses(&header)?;
        check(&addresses, 7, &routes, &header, reach)
    }

    #[test]
    fn own_addresses_and_framed_routes_may_send_and_no_others() {
        for (source, due) in [
            ("192.0.2.1", Ok(())),
            ("203.0.113.1", Ok(())),
            ("192.0.2.2", Err(Discard::Spoofed)),
            ("203.0.113.9", Err(Discard::Spoofed)),
            ("198.51.100.1", Err(Discard::Spoofed)),
        ] {
            assert_eq!(checked(&v4().from(source).udp(b"")), due, "{source}");
        }
        for (source, due) in [
            ("2001:db8::1", Ok(())),
            ("2001:db8::ffff:1:2:3", Ok(())),
            ("2001:db8:7:8::1", Ok(())),
            ("2001:db8:0:1::1", Err(Discard::Spoofed)),
            // An IPv4 address in IPv6 is not the subscriber's IPv4 address.
            ("::ffff:192.0.2.1", Err(Discard::MartianSource)),
        ] {
            assert_eq!(checked(&v6().from(source).udp(b"")), due, "{source}");
        }
    }

    #[test]
    fn a_link_local_source_is_the_interface_identifiers_and_stays_on_the_link() {
        for (source, destination, due) in [
            ("fe80::2a", "ff02::2", Ok(())),
            ("fe80::2a", "fe80::1", Ok(())),
            ("fe80::2a", "2001:db8:1::7", Err(Discard::BeyondScope)),
            ("fe80::2b", "ff02::2", Err(Discard::Spoofed)),
            ("fe80:0:0:1::2a", "ff02::2", Err(Discard::Spoofed)),
            ("2001:db8::1", "ff02::2", Ok(())),
        ] {
            let packet = v6().from(source).to(destination).udp(b"");
            assert_eq!(checked(&packet), due, "{source} {destination}");
        }
    }

    #[test]
    fn who_has_no_address_may_send_from_none() {
        let routes = Routes::new(1);
        for packet in [v4().udp(b""), v6().udp(b""), v6().from("fe80::1").udp(b"")] {
            let header = Header::read(&packet).expect("a packet");
            let none = Addresses::default();
            let result = check(&none, 0, &routes, &header, Reach::Link);
            assert_eq!(result, Err(Discard::Spoofed));
        }
    }
}
