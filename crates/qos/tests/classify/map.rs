//! Tests maps, which compute a class from one key.

use core::net::Ipv4Addr;

use proptest::prelude::*;
use qos::classify::{Key, Map};
use wire::flow::Keys;

use crate::packets::{any_key, any_keys, flow, plain};

#[test]
fn the_maps_of_the_manual_do_what_it_says() {
    let from = |source: &str| Keys {
        outer: flow(source, "192.168.0.77", 6, (1, 2)),
        ..Keys::default()
    };
    let keys = from("10.0.0.1");
    // "Map destination IPs of 192.168.0.0/24 to classids 1-256".
    let addend = u32::from(Ipv4Addr::new(192, 168, 0, 0)).wrapping_neg();
    let map = Map {
        addend,
        divisor: 256,
        ..Map::new(Key::Dst)
    };
    assert_eq!(map.class(&keys), 1 + 77);
    // "Alternative to the above", and "the same, but in reverse order".
    assert_eq!(Map::new(Key::Dst).and(0xff).class(&keys), 1 + 77);
    assert_eq!(Map::new(Key::Dst).and(0xff).xor(0xff).class(&keys), 1 + 178);
}

#[test]
fn a_class_keeps_its_major_number_and_its_lower_half_wraps() {
    let mut keys = plain();
    keys.mark = 0x0003_0002;
    let map = Map {
        baseclass: 0x0001_ffff,
        ..Map::new(Key::Mark)
    };
    assert_eq!(map.class(&keys), 0x0001_0001);
    let none_left = Map {
        rshift: 32,
        addend: 5,
        ..map
    };
    assert_eq!(none_left.class(&keys), 0x0001_0004);
}

prop_compose! {
    fn any_map()(
        key in any_key(),
        mask in prop_oneof![Just(u32::MAX), any::<u32>()],
        xor in prop_oneof![Just(0), any::<u32>()],
        rshift in 0..32_u32,
        addend in prop_oneof![Just(0), any::<u32>()],
        divisor in prop_oneof![Just(0), 1..1025_u32, any::<u32>()],
        baseclass in any::<u32>(),
    ) -> Map {
        Map { key, mask, xor, rshift, addend, divisor, baseclass }
    }
}

/// The map as tc-flow(8) describes it, in numbers that are too wide to overflow.
fn map_model(map: &Map, keys: &Keys) -> u32 {
    let wide = |value: u32| u64::from(value);
    let mut value = wide(map.key.value(keys));
    value &= wide(map.mask);
    value ^= wide(map.xor);
    value /= 1 << map.rshift;
    value = (value + wide(map.addend)) % (1 << 32);
    if map.divisor != 0 {
        value %= wide(map.divisor);
    }
    let (major, minor) = (wide(map.baseclass) >> 16, wide(map.baseclass) % (1 << 16));
    ((major << 16) + (minor + value) % (1 << 16)) as u32
}

proptest! {
    #[test]
    fn a_map_is_what_the_manual_says_for_any_packet(map in any_map(), keys in any_keys()) {
        prop_assert_eq!(map.class(&keys), map_model(&map, &keys));
    }

    #[test]
    fn operations_on_bits_are_done_in_the_order_they_are_given(
        operations in prop::collection::vec((0..3_u8, any::<u32>()), 0..6),
        keys in any_keys(),
    ) {
        let mut map = Map { rshift: 16, baseclass: 0, ..Map::new(Key::Mark) };
        let mut value = keys.mark;
        for (operation, bits) in operations {
            (map, value) = match operation {
                0 => (map.and(bits), value & bits),
                1 => (map.or(bits), value | bits),
                _ => (map.xor(bits), value ^ bits),
            };
        }
        prop_assert_eq!(map.class(&keys), value >> 16);
    }

}
