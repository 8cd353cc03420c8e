//! Tests rules and their order.

use core::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use qos::classify::{Filter, FlowMatch, Mark, Match, Ports, Prefix};
use wire::flow::{Dscp, Flow, Keys};

use crate::packets::{any_keys, any_port, octets, plain, tunnelled};

fn any_prefix() -> impl Strategy<Value = Prefix> {
    let v4 = (prop_oneof![Just(0x0a00_0000), any::<u32>()], 0..=32_u8);
    let v4 = v4.prop_map(|(bits, length)| {
        let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
        Prefix::new(Ipv4Addr::from_bits(bits & mask).into(), length)
    });
    let bits = prop_oneof![
        Just(0),
        Just(0x2001_0db8 << 96),
        Just(0xffff_0a00_0000),
        any::<u128>()
    ];
    let v6 = (bits, 0..=128_u8).prop_map(|(bits, length)| {
        let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
        Prefix::new(Ipv6Addr::from_bits(bits & mask).into(), length)
    });
    prop_oneof![v4, v6].prop_map(|prefix| prefix.expect("no bits behind it"))
}

prop_compose! {
    fn any_flow_match()(
        src in prop::option::weighted(0.3, any_prefix()),
        dst in prop::option::weighted(0.3, any_prefix()),
        proto in prop::option::weighted(0.3, prop_oneof![Just(6), Just(17), any::<u8>()]),
        proto_src in prop::option::weighted(0.3, (any_port(), any_port())),
        proto_dst in prop::option::weighted(0.3, (any_port(), any_port())),
    ) -> FlowMatch {
        let ports = |(low, high)| Ports { low, high };
        FlowMatch { src, dst, proto, proto_src: proto_src.map(ports), proto_dst: proto_dst.map(ports) }
    }
}

prop_compose! {
    fn any_match()(
        outer in any_flow_match(),
        tunnel in prop_oneof![3 => Just(FlowMatch::default()), 1 => any_flow_match()],
        innermost in prop_oneof![3 => Just(FlowMatch::default()), 1 => any_flow_match()],
        dscp in prop::option::weighted(0.1, 0..64_u8),
        mark in prop::option::weighted(0.1, (any::<u32>(), prop_oneof![Just(0), Just(1), any::<u32>()])),
        vlan in prop::option::weighted(0.1, 0..3_u16),
    ) -> Match {
        let mark = mark.map(|(value, mask)| Mark { value, mask });
        Match { outer, tunnel, innermost, dscp: dscp.and_then(Dscp::new), mark, vlan }
    }
}

proptest! {
    #[test]
    fn a_filter_gives_the_class_of_the_first_rule_that_matches(
        rules in prop::collection::vec(any_match(), 0..6),
        keys in any_keys(),
    ) {
        let filter = Filter::new(rules.iter().copied().zip(100..));
        let expected = rules.iter().position(|rule| rule.matches(&keys));
        prop_assert_eq!(filter.class(&keys), expected.map(|index| 100 + index as u32));
        prop_assert_eq!(filter.len(), rules.len());
    }

    #[test]
    fn a_rule_made_of_a_packets_own_keys_matches_it(mut keys in any_keys(), lengths in [0..=32_u8, 0..=32_u8]) {
        keys.inner = Flow::default();
        prop_assume!(keys.outer.exists());
        let prefix = |address: [u8; 16], length: u8| {
            let bits = u128::from_be_bytes(address);
            match Ipv6Addr::from(address).to_ipv4_mapped() {
                Some(address) => {
                    let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                    Prefix::new(Ipv4Addr::from_bits(address.to_bits() & mask).into(), length)
                }
                None => {
                    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                    Prefix::new(Ipv6Addr::from_bits(bits & mask).into(), length)
                }
            }
        };
        let asked = FlowMatch {
            src: prefix(keys.outer.source, lengths[0]),
            dst: prefix(keys.outer.destination, lengths[1]),
            proto: Some(keys.outer.protocol as u8),
            proto_src: Some(Ports::one(keys.outer.source_port)),
            proto_dst: Some(Ports { low: 0, high: keys.outer.destination_port }),
        };
        let rule = Match {
            outer: asked,
            innermost: asked,
            dscp: Some(Dscp::of(keys.traffic_class)),
            mark: Some(Mark { value: keys.mark, mask: u32::MAX }),
            vlan: Some(keys.vlan),
            ..Match::default()
        };
        prop_assert!(rule.matches(&keys));
        let elsewhere = Match { tunnel: asked, ..rule };
        prop_assert!(!elsewhere.matches(&keys));
    }

    #[test]
    fn prefixes_and_ports_are_read_as_they_are_printed(prefix in any_prefix(), ports in (any_port(), any_port())) {
        prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
        let ports = Ports { low: ports.0.min(ports.1), high: ports.0.max(ports.1) };
        prop_assert_eq!(ports.to_string().parse(), Ok(ports));
    }
}

#[test]
fn a_prefix_of_one_version_has_no_address_of_the_other() {
    let prefix = |text: &str| text.parse::<Prefix>().expect("a prefix");
    let mapped = octets("10.1.2.3".parse().expect("an address"));
    let native = octets("2001:db8::1".parse().expect("an address"));
    assert!(prefix("0.0.0.0/0").has(mapped) && !prefix("0.0.0.0/0").has(native));
    assert!(prefix("::/0").has(native) && !prefix("::/0").has(mapped));
    assert!(prefix("10.0.0.0/8").has(mapped) && !prefix("11.0.0.0/8").has(mapped));
    assert!(prefix("10.1.2.3").has(mapped) && !prefix("10.1.2.2").has(mapped));
    assert!(prefix("2001:db8::/32").has(native) && !prefix("2001:db9::/32").has(native));
}

#[test]
fn a_rule_about_a_tunnel_does_not_match_what_is_none() {
    let any6 = FlowMatch {
        src: Some("::/0".parse().expect("a prefix")),
        ..FlowMatch::default()
    };
    let low_ports = FlowMatch {
        proto_src: Some(Ports { low: 0, high: 1023 }),
        ..FlowMatch::default()
    };
    for asked in [any6, low_ports] {
        let rule = Match {
            tunnel: asked,
            ..Match::default()
        };
        let filter = Filter::new([(rule, 7)]);
        assert_eq!(filter.class(&tunnelled()), Some(7));
        assert_eq!(filter.class(&plain()), None);
        assert_eq!(filter.class(&Keys::default()), None);
    }
}

#[test]
fn a_filter_without_rules_knows_no_class_and_a_rule_without_anything_takes_all() {
    assert!(Filter::default().is_empty());
    assert_eq!(Filter::default().class(&plain()), None);
    let mut filter = Filter::default();
    filter.push(&Match::default(), 9);
    filter.push(&Match::default(), 10);
    assert_eq!(filter.class(&plain()), Some(9));
    assert_eq!(filter.class(&Keys::default()), Some(9));
}

#[test]
fn texts_that_are_no_prefix_and_no_ports_are_refused_with_a_reason() {
    let error = |text: &str| text.parse::<Prefix>().expect_err("no prefix").to_string();
    assert!(error("10.0.0").starts_with("no address \"10.0.0\""));
    assert!(error("host/8").starts_with("no address"));
    assert!(error("10.0.0.0/33").contains("0 to 32 bits"));
    assert!(error("::/129").contains("0 to 128"));
    assert!(error("10.0.0.0/+8").starts_with("no prefix"));
    assert_eq!(
        error("10.1.2.3/8"),
        "10.1.2.3/8 names a host and a network: the network is 10.0.0.0/8, the host has no /8"
    );
    for text in [
        "", "-", "1-", "-1", "2-1", "65536", "1-2-3", "+1", "0x10", "1 - 2",
    ] {
        let error = text.parse::<Ports>().expect_err("no ports").to_string();
        assert!(error.contains("5000-6000"), "{error}");
    }
}
