//! Tests the names and values of keys.

use qos::classify::{Key, KeySet};
use wire::flow::Keys;

use crate::packets::{plain, tunnelled};

#[test]
fn a_key_of_a_packet_has_its_value_and_one_that_it_lacks_is_0() {
    // The value of an IPv6 address is the XOR of its words.
    let expected = [
        (Key::Src, 0xc000_0201),
        (Key::Dst, 0xc633_6407),
        (Key::Proto, 47),
        (Key::ProtoSrc, 0),
        (Key::ProtoDst, 0),
        (Key::Dscp, 46),
        (Key::Mark, 0x1234_5678),
        (Key::Vlan, 100),
        (Key::TunnelSrc, 0x2001_0db8 ^ 1),
        (Key::TunnelDst, 0x2001_0db8 ^ 1 ^ 0x0002_0003 ^ 0x0004_0005),
        (Key::TunnelProto, 17),
        (Key::TunnelProtoSrc, 53),
        (Key::TunnelProtoDst, 4000),
        (Key::InnermostSrc, 0x2001_0db8 ^ 1),
        (Key::InnermostProtoDst, 4000),
    ];
    for (key, value) in expected {
        assert_eq!(key.value(&tunnelled()), value, "{key}");
    }
    for key in Key::ALL {
        assert_eq!(key.value(&Keys::default()), 0, "{key}");
        let value = key.value(&plain());
        match key.name().strip_prefix("innermost-") {
            Some(name) => {
                let outer: Key = name.parse().expect("a key of the outer header");
                assert_eq!(value, outer.value(&plain()), "{key}");
            }
            None if key.name().starts_with("tunnel-") => assert_eq!(value, 0, "{key}"),
            None => {}
        }
    }
}

#[test]
fn keys_have_tcs_names_both_ways_and_errors_say_what_there_is() {
    for key in Key::ALL {
        assert_eq!(key.to_string().parse(), Ok(key));
    }
    assert_eq!("vlan-tag".parse(), Ok(Key::Vlan));
    let error = "sport".parse::<Key>().expect_err("no key");
    assert_eq!(
        error.to_string(),
        "no key \"sport\": there are src, dst, proto, proto-src, proto-dst, dscp, mark, vlan, tunnel-src, tunnel-dst, \
         tunnel-proto, tunnel-proto-src, tunnel-proto-dst, innermost-src, innermost-dst, innermost-proto, \
         innermost-proto-src, innermost-proto-dst"
    );
    let set: KeySet = "src, dst,proto".parse().expect("keys");
    assert_eq!(set, KeySet::of(&[Key::Proto, Key::Dst, Key::Src]));
    assert_eq!(set.to_string(), "src,dst,proto");
    for (name, set) in KeySet::NAMED {
        assert_eq!(name.parse(), Ok(set));
        assert_eq!(set.to_string().parse(), Ok(set));
    }
    for text in ["", "src,", "src;dst", "hosts"] {
        let error = text.parse::<KeySet>().expect_err("no keys").to_string();
        assert!(
            error.contains("tunnel-src") && error.contains("host-dst"),
            "{error}"
        );
    }
}
