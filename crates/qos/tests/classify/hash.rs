//! Tests hashing of several keys to buckets.

use proptest::prelude::*;
use qos::classify::{Hash, Key, KeySet};
use wire::flow::{Flow, Keys};

use crate::packets::{any_key, any_keys, octets, tunnelled};

proptest! {
    #[test]
    fn equal_keys_have_one_bucket_and_what_is_not_asked_for_does_not_matter(
        keys in prop::collection::vec(any_key(), 1..6),
        packet in any_keys(),
        other in any_keys(),
        divisor in prop_oneof![Just(0), 1..2000_u32],
        seed in any::<u64>(),
    ) {
        let set = KeySet::of(&keys);
        let hash = Hash::new(set, divisor, seed, 0x0001_0010);
        prop_assert_eq!(hash.bucket(&packet), Hash::new(set, divisor, seed, 1).bucket(&packet));
        prop_assert!(divisor == 0 || hash.bucket(&packet) < divisor);
        prop_assert_eq!(hash.class(&packet) >> 16, 1);
        // All keys that the hash does not use come from another packet.
        let mut mixed = other;
        for key in set.iter() {
            take(key, &mut mixed, &packet);
        }
        let asks_innermost = set.iter().any(|key| key.name().starts_with("innermost"));
        if !asks_innermost {
            prop_assert_eq!(hash.value(&packet), hash.value(&mixed));
        }
    }

}

/// Copies the value of one key from `from` to `keys`.
fn take(key: Key, keys: &mut Keys, from: &Keys) {
    match key {
        Key::Src => keys.outer.source = from.outer.source,
        Key::Dst => keys.outer.destination = from.outer.destination,
        Key::Proto => keys.outer.protocol = from.outer.protocol,
        Key::ProtoSrc => keys.outer.source_port = from.outer.source_port,
        Key::ProtoDst => keys.outer.destination_port = from.outer.destination_port,
        Key::Dscp => keys.traffic_class = from.traffic_class & 0xfc | keys.traffic_class & 0x03,
        Key::Mark => keys.mark = from.mark,
        Key::Vlan => keys.vlan = from.vlan,
        Key::TunnelSrc => keys.inner.source = from.inner.source,
        Key::TunnelDst => keys.inner.destination = from.inner.destination,
        Key::TunnelProto => keys.inner.protocol = from.inner.protocol,
        Key::TunnelProtoSrc => keys.inner.source_port = from.inner.source_port,
        Key::TunnelProtoDst => keys.inner.destination_port = from.inner.destination_port,
        _ => {}
    }
}

/// Packets that differ in one key only, as those of a home or an attacker do.
fn packets(key: Key, count: u32) -> impl Iterator<Item = Keys> {
    (0..count).map(move |number| {
        let mut keys = tunnelled();
        let last = number.to_be_bytes();
        match key {
            Key::Src => keys.outer.source[12..].copy_from_slice(&last),
            Key::Dst => keys.outer.destination[12..].copy_from_slice(&last),
            Key::TunnelSrc | Key::InnermostSrc => keys.inner.source[12..].copy_from_slice(&last),
            Key::TunnelDst => keys.inner.destination[4..8].copy_from_slice(&last),
            Key::ProtoSrc => keys.outer.source_port = number as u16,
            Key::ProtoDst => keys.outer.destination_port = number as u16,
            Key::TunnelProtoSrc => keys.inner.source_port = number as u16,
            Key::TunnelProtoDst => keys.inner.destination_port = number as u16,
            _ => keys.mark = number << 8,
        }
        keys
    })
}

/// The statistic of a chi-square test for an even spread over `buckets`.
fn chi_square(counts: &[u32]) -> f64 {
    let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    let square = |&count: &u32| (f64::from(count) - expected).powi(2) / expected;
    counts.iter().map(square).sum()
}

/// The deviation from an even spread, in standard deviations of a random one; negative if more even.
fn deviations(hash: &Hash, divisor: u32, packets: impl Iterator<Item = Keys>) -> f64 {
    let mut counts = vec![0; divisor as usize];
    for keys in packets {
        counts[hash.bucket(&keys) as usize] += 1;
    }
    // Normal approximation with Wilson and Hilferty's cube root.
    let freedom = f64::from(divisor - 1);
    let spread = 2.0 / (9.0 * freedom);
    let cube = (chi_square(&counts) / freedom).cbrt();
    (cube - (1.0 - spread)) / spread.sqrt()
}

/// Counts spreads, and those in the worst twentieth of random ones.
#[derive(Default)]
struct Spreads {
    tests: u32,
    above: u32,
}

impl Spreads {
    /// One in 30,000 random spreads deviates by more than 4. A spread more even than random is allowed.
    fn add(&mut self, deviations: f64, what: &str) {
        assert!(deviations < 4.0, "{what}: {deviations}");
        self.tests += 1;
        self.above += u32::from(deviations > 1.645);
    }

    fn end(&self) {
        let Spreads { tests, above } = *self;
        assert!(
            above <= tests / 20 * 3,
            "{above} of {tests} are above the 95th percentile"
        );
    }
}

#[test]
fn keys_that_differ_in_little_are_spread_evenly() {
    let varied = [
        Key::Src,
        Key::Dst,
        Key::ProtoSrc,
        Key::ProtoDst,
        Key::TunnelSrc,
        Key::TunnelDst,
        Key::TunnelProtoSrc,
        Key::TunnelProtoDst,
        Key::Mark,
    ];
    let mut spreads = Spreads::default();
    for divisor in [16, 127, 1024] {
        for key in varied {
            for (set, seed) in [
                (KeySet::of(&[key]), 1),
                (KeySet::of(&Key::ALL), 2),
                (KeySet::of(&[key, Key::TunnelProto, Key::Dst]), 3),
            ] {
                let hash = Hash::new(set, divisor, seed, 1);
                let deviations = deviations(&hash, divisor, packets(key, 16_384));
                spreads.add(deviations, &format!("{key} in {set} over {divisor}"));
            }
        }
    }
    spreads.end();
}

fn of(source: [u8; 16], destination: [u8; 16], ports: (u32, u32)) -> Flow {
    Flow {
        source,
        destination,
        source_port: ports.0 as u16,
        destination_port: ports.1 as u16,
        protocol: 6,
    }
}

fn four(bits: u32) -> [u8; 16] {
    octets(std::net::Ipv4Addr::from_bits(bits).into())
}

fn six(high: u64, low: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

fn plain(outer: Flow) -> Keys {
    Keys {
        outer,
        ..Keys::default()
    }
}

/// What they are, and the n-th of them.
type Population = (&'static str, fn(u32) -> Keys);

/// Flows of homes, of an office, of subscribers behind carrier-grade NAT, of delegated prefixes, of interface
/// identifiers made from Ethernet addresses, and of tunnels between a few routers.
fn populations() -> [Population; 8] {
    [
        ("a home: 16 hosts, consecutive ports, one server", |n| {
            let host = four(0xc0a8_0102 + n % 16);
            plain(of(host, four(0xcb71_0009), (49_152 + n / 16, 443)))
        }),
        ("an office: 250 hosts, few servers, even ports", |n| {
            let server = four(0xc633_6401 + n / 250 % 4);
            let ports = (32_768 + n / 1_000 * 2, 443);
            plain(of(four(0x0a00_0001 + n % 250), server, ports))
        }),
        ("carrier-grade NAT: every fourth address", |n| {
            plain(of(
                four(0x6440_0000 + n * 4),
                four(0x0101_0101),
                (5_060, 5_060),
            ))
        }),
        ("names: one host, many resolvers", |n| {
            plain(of(
                four(0xc0a8_0102),
                four(n.wrapping_mul(0x0001_0101)),
                (53, 53),
            ))
        }),
        ("delegated prefixes of 56 bits", |n| {
            let high = 0x2001_0db8_0000_0000 + (u64::from(n) << 8);
            plain(of(six(high, 1), six(0x2606_4700, 0x1111), (443, 443)))
        }),
        ("Ethernet addresses of one maker in one subnet", |n| {
            let low = 0x0211_22ff_fe00_0000 + u64::from(n);
            plain(of(
                six(0x2001_0db8_0000_0001, low),
                six(0x2606_4700, 0x1111),
                (443, 443),
            ))
        }),
        ("both addresses and both ports count alike", |n| {
            let ports = (1_024 + n, 1_024 + n);
            plain(of(four(0x0a00_0000 + n), four(0x0a80_0000 + n), ports))
        }),
        ("tunnels between 4 routers, 64 users in each", |n| {
            let router = four(0xc000_0201 + n % 4);
            Keys {
                inner: of(
                    four(0x0a00_0000 + n % 64),
                    four(0x0808_0808),
                    (40_000 + n / 64, 53),
                ),
                ..plain(Flow {
                    protocol: 4,
                    ..of(router, four(0xc000_02ff), (0, 0))
                })
            }
        }),
    ]
}

#[test]
fn addresses_as_networks_give_them_are_spread_evenly() {
    let mut spreads = Spreads::default();
    for (name, packet) in populations() {
        for divisor in [16, 127, 1024, 4096] {
            for seed in 1..9 {
                for set in [KeySet::FLOW, KeySet::INNERMOST] {
                    let hash = Hash::new(set, divisor, seed, 1);
                    let deviations = deviations(&hash, divisor, (0..16_384).map(packet));
                    spreads.add(
                        deviations,
                        &format!("{name}, {set} over {divisor}, seed {seed}"),
                    );
                }
            }
        }
        let hash = Hash::new(KeySet::FLOW, 0, 1, 1);
        let mut values: Vec<u64> = (0..16_384).map(|n| hash.value(&packet(n))).collect();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), 16_384, "{name}");
    }
    spreads.end();
}

#[test]
fn every_key_of_a_set_matters_and_another_seed_is_another_spread() {
    let mut hash = Hash::new(KeySet::FLOW, 0, 1, 1);
    for key in [
        Key::Src,
        Key::Dst,
        Key::ProtoSrc,
        Key::ProtoDst,
        Key::TunnelSrc,
        Key::TunnelProtoDst,
    ] {
        let mut values: Vec<u64> = packets(key, 1000).map(|keys| hash.value(&keys)).collect();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), 1000, "{key}");
    }
    let swapped = |keys: Keys| Keys {
        outer: keys.inner,
        inner: keys.outer,
        ..keys
    };
    assert_ne!(hash.value(&tunnelled()), hash.value(&swapped(tunnelled())));
    let before: Vec<u64> = packets(Key::Src, 100)
        .map(|keys| hash.value(&keys))
        .collect();
    hash.perturb(2);
    let after: Vec<u64> = packets(Key::Src, 100)
        .map(|keys| hash.value(&keys))
        .collect();
    assert!(
        before
            .iter()
            .zip(&after)
            .all(|(before, after)| before != after)
    );
    hash.perturb(1);
    let again: Vec<u64> = packets(Key::Src, 100)
        .map(|keys| hash.value(&keys))
        .collect();
    assert_eq!(before, again);
}

#[test]
fn keys_that_meet_under_one_seed_do_not_under_another() {
    let set = KeySet::of(&[Key::Src]);
    let hash = Hash::new(set, 64, 1, 1);
    let met: Vec<Keys> = packets(Key::Src, 65_536)
        .filter(|keys| hash.bucket(keys) == 0)
        .collect();
    let other = Hash::new(set, 64, 2, 1);
    let mut counts = [0_u32; 64];
    for keys in &met {
        counts[other.bucket(keys) as usize] += 1;
    }
    assert!(met.len() > 900);
    assert!(counts.iter().all(|&count| count < 50), "{counts:?}");
}

#[test]
fn a_hosts_packets_have_one_bucket_within_tunnels_and_without() {
    let hash = Hash::new(KeySet::HOST, 1024, 5, 1);
    let bare = Keys {
        outer: tunnelled().inner,
        ..Keys::default()
    };
    assert_eq!(hash.value(&tunnelled()), hash.value(&bare));
    let hash = Hash::new(KeySet::INNERMOST, 1024, 5, 1);
    assert_eq!(hash.value(&tunnelled()), hash.value(&bare));
    let hash = Hash::new(KeySet::FLOW, 1024, 5, 1);
    assert_ne!(hash.value(&tunnelled()), hash.value(&bare));
}

#[test]
fn a_hash_over_the_same_keys_and_seed_is_the_same_on_every_machine() {
    let value = |set| Hash::new(set, 0, 0x5eed, 1).value(&tunnelled());
    let all = KeySet::of(&Key::ALL);
    let sets = [
        KeySet::HOST,
        KeySet::PLAIN,
        KeySet::INNERMOST,
        KeySet::FLOW,
        all,
    ];
    assert_eq!(sets.map(value), RECORDED);
}

/// Expected values computed by another program from the function's description.
const RECORDED: [u64; 5] = [
    12_185_589_985_863_757_973,
    15_161_340_968_239_960_675,
    693_906_281_053_285_643,
    15_820_295_651_364_420_859,
    8_652_850_347_748_640_369,
];

#[test]
fn keys_that_others_determine_are_not_read_again() {
    let all = KeySet::of(&Key::ALL);
    let without = all.without_determined();
    assert_eq!(
        without.to_string(),
        "src,dst,proto,proto-src,proto-dst,dscp,mark,vlan,tunnel-src,tunnel-dst,tunnel-proto,tunnel-proto-src,tunnel-proto-dst"
    );
    for text in [
        "src,tunnel-src,innermost-src",
        "dst,tunnel-src,innermost-src",
        "src,tunnel-src,tunnel-dst,innermost-dst,innermost-proto",
        "innermost",
        "flow",
    ] {
        let set: KeySet = text.parse().expect("keys");
        assert_eq!(set.without_determined(), set, "{text}");
    }
    // Without the other address within the tunnel, a source of zeros may be no tunnel's or that of one.
    let set: KeySet = "src,tunnel-src,innermost-src".parse().expect("keys");
    let hash = Hash::new(set, 0, 1, 1);
    let mut with = tunnelled();
    with.inner.source = [0; 16];
    let mut bare = with;
    bare.inner = Flow::default();
    assert_ne!(hash.value(&with), hash.value(&bare));
}
