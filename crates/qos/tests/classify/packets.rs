//! Packets for the classifier tests.

use core::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;
use qos::classify::Key;
use wire::flow::{Flow, Keys};

/// An address in the format of flow keys.
pub(crate) fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

pub(crate) fn flow(source: &str, destination: &str, protocol: u32, ports: (u16, u16)) -> Flow {
    Flow {
        source: octets(source.parse().expect("an address")),
        destination: octets(destination.parse().expect("an address")),
        source_port: ports.0,
        destination_port: ports.1,
        protocol,
    }
}

pub(crate) fn tunnelled() -> Keys {
    Keys {
        mark: 0x1234_5678,
        vlan: 100,
        traffic_class: 0xba,
        outer: flow("192.0.2.1", "198.51.100.7", 47, (0, 0)),
        inner: flow("2001:db8::1", "2001:db8:0:1:2:3:4:5", 17, (53, 4000)),
    }
}

pub(crate) fn plain() -> Keys {
    Keys {
        outer: flow("10.1.2.3", "203.0.113.9", 6, (50000, 443)),
        ..Keys::default()
    }
}

pub(crate) fn any_address() -> impl Strategy<Value = [u8; 16]> {
    prop_oneof![
        Just([0; 16]),
        any::<u32>().prop_map(|bits| octets(Ipv4Addr::from_bits(bits).into())),
        (0..4_u8).prop_map(|last| octets(Ipv4Addr::new(10, 0, 0, last).into())),
        any::<u128>().prop_map(u128::to_be_bytes),
        (0..4_u8).prop_map(|last| [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]),
    ]
}

pub(crate) fn any_port() -> impl Strategy<Value = u16> {
    prop_oneof![0..4_u16, any::<u16>()]
}

pub(crate) fn any_flow() -> impl Strategy<Value = Flow> {
    let protocol = prop_oneof![Just(0), Just(6), Just(17), 0..256_u32];
    let header = (
        any_address(),
        any_address(),
        protocol,
        any_port(),
        any_port(),
    );
    let header = header.prop_map(|(source, destination, protocol, a, b)| Flow {
        source,
        destination,
        source_port: a,
        destination_port: b,
        protocol,
    });
    prop_oneof![1 => Just(Flow::default()), 4 => header]
}

prop_compose! {
    pub(crate) fn any_keys()(
        outer in any_flow(),
        inner in any_flow(),
        mark in any::<u32>(),
        vlan in prop_oneof![0..3_u16, 0..4096_u16],
        traffic_class in any::<u8>(),
    ) -> Keys {
        Keys { mark, vlan, traffic_class, outer, inner }
    }
}

pub(crate) fn any_key() -> impl Strategy<Value = Key> {
    prop::sample::select(Key::ALL.to_vec())
}
