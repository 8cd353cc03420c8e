//! Parses the text of Framed-Route (RFC 2865, section 5.22) and of Framed-IPv6-Route (RFC 3162, section 2.5).

use core::net::{IpAddr, Ipv4Addr};

use crate::Prefix;

/// The network in the text of a Framed-Route, such as `10.1.0.0/16 0.0.0.0 1`. Without a length, an IPv4
/// network has that of its class. A length may also be a mask, after the slash or in place of the gateway, as
/// some servers send it. Host bits are cleared. Gateway and metrics do not matter on a point-to-point link, but
/// must be valid addresses and numbers if present.
#[must_use]
pub fn parse_route(text: &str) -> Option<Prefix> {
    let mut words = text.split_ascii_whitespace().peekable();
    let destination = words.next()?;
    let (address, length) = match destination.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (destination, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let length = match (length, address) {
        (Some(length), _) => parse_length(length, address)?,
        (None, IpAddr::V6(_)) => 128,
        (None, IpAddr::V4(address)) => match words.peek().and_then(|word| mask_length(word)) {
            Some(length) => {
                words.next();
                length
            }
            None => class_length(address),
        },
    };
    let rest_is_right = match words.next() {
        None => true,
        Some(gateway) => {
            let family = gateway.parse::<IpAddr>();
            family.is_ok_and(|gateway| gateway.is_ipv4() == address.is_ipv4())
                && words.all(|metric| metric.parse::<u32>().is_ok())
        }
    };
    rest_is_right.then(|| cleared(address, length)).flatten()
}

fn parse_length(text: &str, address: IpAddr) -> Option<u8> {
    match text.parse() {
        Ok(length) => Some(length),
        Err(_) if address.is_ipv4() => mask_length(text),
        Err(_) => None,
    }
}

/// The length of a valid mask other than 0.0.0.0.
fn mask_length(text: &str) -> Option<u8> {
    let mask = text.parse::<Ipv4Addr>().ok()?.to_bits();
    let length = mask.leading_ones();
    (length > 0 && mask.count_ones() == length).then_some(length as u8)
}

/// Eight bits for a class A network, 16 for B, 24 for C; any other address is one host.
fn class_length(address: Ipv4Addr) -> u8 {
    match address.octets()[0] {
        0..=127 => 8,
        128..=191 => 16,
        192..=223 => 24,
        224..=255 => 32,
    }
}

/// The network of that length that contains an address.
fn cleared(address: IpAddr, length: u8) -> Option<Prefix> {
    let address = match address {
        IpAddr::V4(address) => {
            let behind = u32::MAX.checked_shr(u32::from(length)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & !behind).into()
        }
        IpAddr::V6(address) => {
            let behind = u128::MAX.checked_shr(u32::from(length)).unwrap_or(0);
            core::net::Ipv6Addr::from_bits(address.to_bits() & !behind).into()
        }
    };
    Prefix::new(address, length)
}

/// The network in a Framed-IPv6-Prefix or Delegated-IPv6-Prefix (RFC 3162, section 2.3; RFC 4818, section 3): a
/// reserved octet, a length, and at least as many octets as that needs.
#[must_use]
pub fn parse_ipv6_prefix(value: &[u8]) -> Option<Prefix> {
    let &[_, length, ref octets @ ..] = value else {
        return None;
    };
    if octets.len() > 16 || usize::from(length) > octets.len() * 8 {
        return None;
    }
    let mut address = [0; 16];
    address[..octets.len()].copy_from_slice(octets);
    // Bits after the prefix length must be zero; `Prefix::new` checks that.
    Prefix::new(IpAddr::from(address), length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_a_route_that_servers_send_are_read() {
        for (text, network) in [
            ("10.1.0.0/16 0.0.0.0 1", "10.1.0.0/16"),
            ("192.168.1.0/24 192.168.1.1 1 2 -1", ""),
            ("192.168.1.0/24 192.168.1.1 1 2 3", "192.168.1.0/24"),
            ("192.168.1.0 192.168.1.1 1", "192.168.1.0/24"),
            ("172.16.0.0", "172.16.0.0/16"),
            ("10.0.0.0", "10.0.0.0/8"),
            ("10.1.0.0 255.255.0.0 0.0.0.0 1", "10.1.0.0/16"),
            ("10.1.0.0/255.255.0.0", "10.1.0.0/16"),
            ("10.1.2.3/16", "10.1.0.0/16"),
            ("0.0.0.0/0 0.0.0.0 1", "0.0.0.0/0"),
            ("  203.0.113.7/32\t0.0.0.0  ", "203.0.113.7/32"),
            ("2001:db8:0:106::/64 2001:db8::1 1", "2001:db8:0:106::/64"),
            ("2001:db8::1", "2001:db8::1/128"),
            ("2001:db8::/129", ""),
            ("2001:db8::/64 10.0.0.1", ""),
            ("10.1.0.0/33", ""),
            ("10.1.0.0/255.0.255.0", ""),
            ("10.1.0.0/16 gateway", ""),
            ("10.1.0.0/16 0.0.0.0 many", ""),
            ("10.1.0/16", ""),
            ("", ""),
        ] {
            let read = parse_route(text).map(|network| network.to_string());
            assert_eq!(read.as_deref().unwrap_or(""), network, "{text}");
        }
    }

    #[test]
    fn the_octets_of_an_ipv6_prefix_are_read() {
        let read = |value: &[u8]| parse_ipv6_prefix(value).map(|network| network.to_string());
        let network = Some("2001:db8::/32".to_owned());
        assert_eq!(read(&[0, 32, 0x20, 0x01, 0x0d, 0xb8]), network);
        assert_eq!(read(&[9, 32, 0x20, 0x01, 0x0d, 0xb8, 0, 0]), network);
        assert_eq!(read(&[0, 0]).as_deref(), Some("::/0"));
        assert_eq!(read(&[0, 33, 0x20, 0x01, 0x0d, 0xb8]), None);
        assert_eq!(read(&[0, 16, 0x20, 0x01, 0x0d, 0xb8]), None);
        assert_eq!(read(&[0, 129]), None);
        assert_eq!(read(&[0]), None);
        assert_eq!(read(&[0; 19]), None);
    }
}
