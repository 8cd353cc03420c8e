use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::{Refused, Routes};

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn host(n: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + n))
}

#[test]
fn the_longest_prefix_that_covers_an_address_wins() {
    let mut routes = Routes::new(10);
    for (address, length, slot) in [
        ("0.0.0.0", 0, 1),
        ("192.0.2.0", 24, 2),
        ("192.0.2.128", 25, 3),
        ("192.0.2.129", 32, 4),
        ("::", 0, 5),
        ("2001:db8::", 32, 6),
        ("2001:db8:0:1::", 64, 7),
        ("2001:db8:0:1::1", 128, 8),
    ] {
        assert_eq!(routes.insert(ip(address), length, slot), Ok(()));
    }
    for (address, slot) in [
        ("198.51.100.1", 1),
        ("192.0.2.1", 2),
        ("192.0.2.128", 3),
        ("192.0.2.129", 4),
        ("3fff::1", 5),
        ("2001:db8:0:2::1", 6),
        ("2001:db8:0:1::2", 7),
        ("2001:db8:0:1::1", 8),
    ] {
        assert_eq!(routes.lookup(ip(address)), Some(slot), "{address}");
    }
}

#[test]
fn a_prefix_that_is_held_is_refused_with_its_holder_and_replaced_only_where_asked() {
    let mut routes = Routes::new(10);
    assert_eq!(routes.insert(ip("192.0.2.1"), 32, 1), Ok(()));
    assert_eq!(routes.insert(ip("192.0.2.1"), 32, 2), Err(Refused::Held(1)));
    // 192.0.2.5/24 and 192.0.2.0/24 are one prefix.
    assert_eq!(routes.insert(ip("192.0.2.5"), 24, 3), Ok(()));
    assert_eq!(routes.insert(ip("192.0.2.0"), 24, 3), Err(Refused::Held(3)));
    assert_eq!(routes.replace(ip("192.0.2.1"), 32, 2), Ok(Some(1)));
    assert!(
        !routes.remove(ip("192.0.2.1"), 32, 1),
        "it is another's now"
    );
    assert_eq!(routes.lookup(ip("192.0.2.1")), Some(2));
    assert!(routes.remove(ip("192.0.2.1"), 32, 2));
    assert_eq!(routes.lookup(ip("192.0.2.1")), Some(3));
    assert_eq!(routes.len(), 1);
}

#[test]
fn a_full_table_takes_no_more_but_lets_what_it_has_be_replaced() {
    let mut routes = Routes::new(2);
    assert_eq!(routes.insert(host(1), 32, 1), Ok(()));
    assert_eq!(routes.insert(host(2), 32, 2), Ok(()));
    assert_eq!(routes.insert(host(3), 32, 3), Err(Refused::Full));
    assert_eq!(routes.replace(host(3), 32, 3), Err(Refused::Full));
    assert_eq!(routes.replace(host(2), 32, 3), Ok(Some(2)));
    assert!(routes.remove(host(1), 32, 1));
    assert_eq!(routes.insert(host(3), 32, 3), Ok(()));
}

#[test]
fn a_length_beyond_the_address_is_refused() {
    let mut routes = Routes::new(2);
    assert_eq!(routes.insert(ip("192.0.2.1"), 33, 1), Err(Refused::Length));
    assert_eq!(routes.insert(ip("::1"), 129, 1), Err(Refused::Length));
    assert!(!routes.remove(ip("::1"), 129, 1));
    assert!(routes.is_empty());
}

#[test]
fn a_million_connects_and_disconnects_leave_no_memory_taken() {
    let mut routes = Routes::new(20_000);
    let mut memory_early = 0;
    for n in 0..1_000_000_u32 {
        let framed = IpAddr::V6(Ipv6Addr::from_bits(u128::from(n) << 72));
        routes.insert(host(n), 32, n).expect("a free address");
        routes.insert(framed, 56, n).expect("a free prefix");
        if let Some(old) = n.checked_sub(5000) {
            let framed = IpAddr::V6(Ipv6Addr::from_bits(u128::from(old) << 72));
            assert!(routes.remove(host(old), 32, old));
            assert!(routes.remove(framed, 56, old));
        }
        if n == 100_000 {
            memory_early = routes.memory();
        }
    }
    assert_eq!(routes.len(), 10_000);
    assert_eq!(routes.memory(), memory_early);
    for n in 995_000..1_000_000 {
        let framed = IpAddr::V6(Ipv6Addr::from_bits(u128::from(n) << 72));
        assert!(routes.remove(host(n), 32, n) && routes.remove(framed, 56, n));
    }
    assert!(routes.is_empty());
    assert!(routes.memory() < 1000, "no table is left");
}

#[test]
fn a_route_takes_at_most_forty_octets_whatever_their_number() {
    for count in [1_000, 28_673, 57_345, 100_000] {
        let mut routes = Routes::new(usize::MAX);
        for n in 0..count {
            let v6 = IpAddr::V6(Ipv6Addr::from_bits(u128::from(n) << 64));
            routes.insert(host(n), 32, n).expect("free");
            routes.insert(v6, 64, n).expect("free");
        }
        // Two routes each.
        let each = routes.memory() as f64 / f64::from(count);
        assert!(each < 80.0, "{count}: {each:.1}");
    }
}

/// Few addresses and lengths, so that prefixes meet.
fn prefixes() -> impl Strategy<Value = (IpAddr, u8)> {
    let v4 = (any::<u32>(), 0..=32_u8)
        .prop_map(|(bits, length)| (IpAddr::V4(Ipv4Addr::from_bits(bits & 0xc000_0003)), length));
    let v6 = (any::<u128>(), 0..=128_u8).prop_map(|(bits, length)| {
        let bits = bits & 0xc000_0000_0000_0003_8000_0000_0000_0003;
        (IpAddr::V6(Ipv6Addr::from_bits(bits)), length)
    });
    prop_oneof![v4, v6]
}

fn cut(address: IpAddr, length: u8) -> IpAddr {
    let rest = |bits: u8| u32::from(bits - length);
    match address {
        IpAddr::V4(a) => {
            Ipv4Addr::from_bits((u64::from(a.to_bits()) >> rest(32) << rest(32)) as u32).into()
        }
        IpAddr::V6(_) if length == 0 => Ipv6Addr::UNSPECIFIED.into(),
        IpAddr::V6(a) => Ipv6Addr::from_bits(a.to_bits() >> rest(128) << rest(128)).into(),
    }
}

proptest! {
    #[test]
    fn it_answers_as_a_list_of_prefixes_does(
        steps in prop::collection::vec((prefixes(), 0..4_u32, 0..3), 1..200),
        asked in prop::collection::vec(prefixes(), 1..50),
    ) {
        let mut routes = Routes::new(60);
        let mut list = BTreeMap::new();
        for ((address, length), slot, action) in steps {
            let name = (cut(address, length), length);
            let held = list.get(&name).copied();
            let room = list.len() < 60;
            match action {
                0 => {
                    let due = match held {
                        Some(holder) => Err(Refused::Held(holder)),
                        None if room => Ok(()),
                        None => Err(Refused::Full),
                    };
                    prop_assert_eq!(routes.insert(address, length, slot), due);
                    if due.is_ok() {
                        list.insert(name, slot);
                    }
                }
                1 => {
                    let due = if held.is_some() || room { Ok(held) } else { Err(Refused::Full) };
                    prop_assert_eq!(routes.replace(address, length, slot), due);
                    if due.is_ok() {
                        list.insert(name, slot);
                    }
                }
                _ => {
                    prop_assert_eq!(routes.remove(address, length, slot), held == Some(slot));
                    if held == Some(slot) {
                        list.remove(&name);
                    }
                }
            }
            prop_assert_eq!(routes.len(), list.len());
        }
        for (address, _) in asked {
            let due = list
                .iter()
                .filter(|((prefix, length), _)| {
                    prefix.is_ipv4() == address.is_ipv4() && cut(address, *length) == *prefix
                })
                .max_by_key(|((_, length), _)| *length)
                .map(|(_, slot)| *slot);
            prop_assert_eq!(routes.lookup(address), due);
        }
    }
}
