//! Classifiers of every kind.

use proptest::prelude::*;
use qos::classifier::Classifier;
use qos::classify::{Bands, FlowMatch, Key, KeySet, Map, Mark, Match, Ports, Prefix};
use wire::flow::Dscp;

pub(crate) fn hash(keys: KeySet, divisor: u32, seed: u64) -> Classifier {
    Classifier::Hash {
        keys,
        divisor,
        seed,
        baseclass: 0x1_0001,
    }
}

/// One classifier for each key and set of keys, and bands.
pub(crate) fn fixed() -> Vec<Classifier> {
    let maps = Key::ALL.map(|key| Classifier::Map(Map::new(key)));
    let hashes = Key::ALL.map(|key| hash(KeySet::of(&[key]), 0, 7));
    let sets = KeySet::NAMED.map(|(_, keys)| hash(keys, 0, 2005));
    let more = [
        hash(KeySet::of(&Key::ALL), 0, 1),
        hash(KeySet::HOST, 1024, 3),
        Classifier::Bands(Bands::LINUX),
        Classifier::Bands(Bands::DSCP),
    ];
    let mut all: Vec<Classifier> = maps.into();
    all.extend(hashes);
    all.extend(sets);
    all.extend(more);
    all
}

/// The address of a host: some below 128.0.0.0 and some above.
pub(crate) fn address(host: u16) -> [u8; 4] {
    let [high, low] = host.to_be_bytes();
    [if host.is_multiple_of(3) { 10 } else { 200 }, 9, high, low]
}

/// SSH first, then a class for each host, of the innermost headers.
pub(crate) fn hosts(hosts: u16) -> Classifier {
    let innermost = |innermost| Match {
        innermost,
        ..Match::default()
    };
    let ssh = FlowMatch {
        proto: Some(6),
        proto_dst: Some(Ports::one(22)),
        ..FlowMatch::default()
    };
    let of_host = |host: u16| FlowMatch {
        src: Some(prefix(
            &core::net::Ipv4Addr::from(address(host)).to_string(),
        )),
        ..FlowMatch::default()
    };
    let udp = FlowMatch {
        proto: Some(17),
        ..FlowMatch::default()
    };
    let of_hosts = (0..hosts).map(|host| (innermost(of_host(host)), 2 + u32::from(host)));
    let first = [(innermost(ssh), 1)].into_iter();
    // The first rule for a host counts, and what no host has goes on to the rules after.
    let again = [(innermost(of_host(0)), 0x7fff), (innermost(udp), 0x7ffe)];
    Classifier::Rules(first.chain(of_hosts).chain(again).collect())
}

/// A class for each of 16 hosts with neighbouring addresses.
pub(crate) fn neighbours() -> Classifier {
    let rule = |host: u32| Match {
        innermost: FlowMatch {
            src: Some(prefix(&format!("10.9.0.{host}"))),
            ..FlowMatch::default()
        },
        ..Match::default()
    };
    Classifier::Rules((0..16).map(|host| (rule(host), 2 + host)).collect())
}

fn prefix(text: &str) -> Prefix {
    text.parse().expect("a prefix")
}

fn flow_match() -> impl Strategy<Value = FlowMatch> {
    let prefixes = [
        "0.0.0.0/0",
        "192.168.0.0/16",
        "192.0.2.1",
        "203.0.113.9",
        "198.51.100.0/24",
        "::/0",
        "::/96",
        "::",
        "2001:db8::/32",
        "2001:db8::1",
        "2001:db8::2/127",
    ];
    let some = move || proptest::option::weighted(0.3, prop::sample::select(prefixes.to_vec()));
    let numbers = vec![0_u16, 53, 443, 1000, 1701, 2000, 4000, 40000, 50000, 65535];
    let ports = move || {
        let one = prop::sample::select(numbers.clone());
        let other = prop::sample::select(numbers.clone());
        let ports = (one, other, any::<bool>()).prop_map(|(low, high, single)| match single {
            true => Ports::one(low),
            false => Ports { low, high },
        });
        proptest::option::weighted(0.3, ports)
    };
    let protocols = vec![0_u8, 1, 4, 6, 17, 41, 44, 47, 51, 59, 60, 115, 200];
    let proto = proptest::option::weighted(0.4, prop::sample::select(protocols));
    (some(), some(), proto, ports(), ports()).prop_map(|(src, dst, proto, source, destination)| {
        FlowMatch {
            src: src.map(prefix),
            dst: dst.map(prefix),
            proto,
            proto_src: source,
            proto_dst: destination,
        }
    })
}

fn rule() -> impl Strategy<Value = Match> {
    let header = || prop_oneof![2 => Just(FlowMatch::default()), 1 => flow_match()];
    let dscp = proptest::option::weighted(0.1, prop::sample::select(vec![0_u8, 34, 46]));
    let mark = proptest::option::weighted(
        0.1,
        (
            0_u32..4,
            prop::sample::select(vec![u32::MAX, 1, 0x8000_0003]),
        ),
    );
    let vlan = proptest::option::weighted(0.1, prop::sample::select(vec![0_u16, 100, 7]));
    (header(), header(), header(), dscp, mark, vlan).prop_map(
        |(outer, tunnel, innermost, dscp, mark, vlan)| Match {
            outer,
            tunnel,
            innermost,
            dscp: dscp.and_then(Dscp::new),
            mark: mark.map(|(value, mask)| Mark { value, mask }),
            vlan,
        },
    )
}

fn map() -> impl Strategy<Value = Map> {
    let key = prop::sample::select(Key::ALL.to_vec());
    let numbers = any::<(u32, u32, u32, u32)>();
    (key, numbers, 0_u32..40, prop::bool::ANY).prop_map(|(key, numbers, rshift, whole)| {
        let (mask, xor, addend, other) = numbers;
        Map {
            key,
            mask,
            xor,
            rshift,
            addend,
            divisor: if whole { 0 } else { other >> 20 },
            baseclass: other,
        }
    })
}

/// Any classifier.
pub(crate) fn any_classifier() -> impl Strategy<Value = Classifier> {
    let rules = proptest::collection::vec(rule(), 0..12);
    let rules = rules.prop_map(|rules| {
        let numbered = rules.into_iter().zip(1..);
        Classifier::Rules(numbered.collect())
    });
    let keys = proptest::collection::vec(prop::sample::select(Key::ALL.to_vec()), 0..6);
    let hashes = (keys, any::<(u32, u64, u32)>()).prop_map(|(keys, (divisor, seed, baseclass))| {
        Classifier::Hash {
            keys: KeySet::of(&keys),
            divisor: divisor >> (seed & 31),
            seed,
            baseclass,
        }
    });
    let bands = prop::array::uniform32(0_u8..5).prop_map(|half| {
        let octet = |dscp: usize| half[dscp / 2] + (dscp & 1) as u8;
        Classifier::Bands(Bands::new(core::array::from_fn(octet)))
    });
    prop_oneof![
        4 => rules,
        2 => map().prop_map(Classifier::Map),
        2 => hashes,
        1 => bands,
    ]
}
