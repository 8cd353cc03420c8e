//! Tests hashing of several keys to buckets.

use proptest::prelude::*;
use qos::classify::{Hash, Key, KeySet};
use wire::flow::Keys;

use crate::packets::{any_key, any_keys, tunnelled};

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
    let (mut tests, mut above) = (0, 0);
    for divisor in [16, 127, 1024] {
        for key in varied {
            for (set, seed) in [
                (KeySet::of(&[key]), 1),
                (KeySet::of(&Key::ALL), 2),
                (KeySet::of(&[key, Key::TunnelProto, Key::Dst]), 3),
            ] {
                let hash = Hash::new(set, divisor, seed, 1);
                let mut counts = vec![0; divisor as usize];
                for keys in packets(key, 16_384) {
                    counts[hash.bucket(&keys) as usize] += 1;
                }
                // Normal approximation with Wilson and Hilferty's cube root.
                let freedom = f64::from(divisor - 1);
                let spread = 2.0 / (9.0 * freedom);
                let cube = (chi_square(&counts) / freedom).cbrt();
                let deviations = (cube - (1.0 - spread)) / spread.sqrt();
                // One in 30,000 is above 4. A spread more even than random is allowed.
                assert!(
                    deviations < 4.0,
                    "{key} in {set} over {divisor}: {deviations}"
                );
                tests += 1;
                above += u32::from(deviations > 1.645);
            }
        }
    }
    // Of one in twenty.
    assert!(
        above <= tests / 20 * 3,
        "{above} of {tests} are above the 95th percentile"
    );
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
    let values = [KeySet::HOST, KeySet::PLAIN, KeySet::INNERMOST, KeySet::FLOW].map(value);
    assert_eq!(values, RECORDED);
}

/// Expected values computed by another program from the function's description.
const RECORDED: [u64; 4] = [
    12_681_694_110_409_717_854,
    357_811_180_952_217_323,
    5_506_789_414_423_268_802,
    11_997_962_493_036_249_845,
];
