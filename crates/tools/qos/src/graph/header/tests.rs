//! Tests what u32 keys say, and that the words have every bit.

use proptest::prelude::*;

use super::*;

fn key(value: u32, mask: u32, offset: i32) -> Key {
    Key {
        value,
        mask,
        offset,
        is_next: false,
    }
}

fn next(value: u32, mask: u32, offset: i32) -> Key {
    Key {
        is_next: true,
        ..key(value, mask, offset)
    }
}

fn words(protocol: &str, keys: &[Key]) -> String {
    Said::of(protocol, keys).words()
}

// long: a table of cases
#[test]
fn keys_that_tc_made_are_said_in_words() {
    // The keys as tc printed them for these matches.
    let tcp = key(0x0006_0000, 0x00ff_0000, 8);
    let cases: [(&str, &[Key], &str); 16] = [
        ("ip", &[key(0, 0, 0)], "all packets"),
        ("ip", &[key(0x16, 0xffff, 20)], "dst port 22"),
        ("ip", &[key(0x0a00_0000, 0xff00_0000, 12)], "src 10.0.0.0/8"),
        ("ip", &[key(0x0010_0000, 0x00ff_0000, 0)], "tos 0x10"),
        ("ip", &[key(0x00b8_0000, 0x00fc_0000, 0)], "dscp ef"),
        (
            "ip",
            &[key(0x0000_0400, 0x0000_fc00, 20)],
            "dst port 1024-2047",
        ),
        (
            "ip",
            &[next(0x0035_0050, u32::MAX, 0)],
            "src port 53, dst port 80",
        ),
        (
            "ip",
            &[
                tcp,
                key(0x0500_0000, 0x0f00_ffc0, 0),
                key(0x0010_0000, 0x00ff_0000, 32),
            ],
            "proto tcp, tcp flags ack alone, length 0-63, header 20 bytes",
        ),
        (
            "ip",
            &[
                key(0x0001_0000, 0x00ff_0000, 8),
                next(0x0800_0000, 0xff00_0000, 0),
            ],
            "proto icmp, icmp type 8",
        ),
        (
            "ip",
            &[tcp, next(0x0002_0000, 0x0012_0000, 12)],
            "proto tcp, tcp flags syn without ack",
        ),
        ("ip", &[key(0x05, 0xff, 12)], "src 0.0.0.5/0.0.0.255"),
        (
            "ipv6",
            &[
                key(0x2001_0db8, u32::MAX, 8),
                key(0x2001_0db8, u32::MAX, 24),
                key(0x0001_0000, u32::MAX, 28),
                key(0, u32::MAX, 32),
                key(5, u32::MAX, 36),
                key(0x0b80_0000, 0x0fc0_0000, 0),
                key(0x1100, 0xff00, 4),
                key(0x35, 0xffff, 40),
            ],
            "proto udp, src 2001:db8::/32, dst 2001:db8:1::5, dst port 53, dscp ef",
        ),
        (
            "802.1Q",
            &[
                key(0x0064_0800, 0x0fff_ffff, 0),
                key(0x0a00_0001, u32::MAX, 16),
            ],
            "vlan 100, inner type ip, src 10.0.0.1",
        ),
        (
            "all",
            &[
                key(0x11, 0xffff, -16),
                key(0x2233_4455, u32::MAX, -12),
                key(0x800, 0xffff, -4),
            ],
            "type ip, dst mac 00:11:22:33:44:55",
        ),
        (
            "ip",
            &[key(0x1200_5600, 0xff00_ff00, 60)],
            "match 12005600/ff00ff00 at 60",
        ),
        // Without a network protocol, an offset has no meaning.
        (
            "all",
            &[key(0x16, 0xffff, 20)],
            "match 00000016/0000ffff at 20",
        ),
    ];
    for (protocol, keys, expected) in cases {
        assert_eq!(words(protocol, keys), expected);
    }
}

#[test]
fn keys_that_contradict_each_other_stay_numbers() {
    let keys = [key(0x16, 0xffff, 20), key(0x17, 0xffff, 20)];
    assert_eq!(
        words("ip", &keys),
        "match 00000016/0000ffff at 20, match 00000017/0000ffff at 20"
    );
}

#[test]
fn rules_of_a_policy_have_the_same_words() {
    for (what, words) in [
        (
            "innermost-proto 6 innermost-proto-dst 22",
            "proto tcp, dst port 22",
        ),
        (
            "src 10.0.0.0/8 tunnel-proto 99",
            "outer src 10.0.0.0/8, tunnel proto 99",
        ),
        ("dscp ef", "dscp ef"),
        ("mark 0x7/0xff vlan 5", "mark 0x7/0xff, vlan 5"),
        ("hash src,dst", "hash src,dst"),
        ("all", "all"),
        ("else", "else"),
        ("", ""),
    ] {
        assert_eq!(rule(what), words);
    }
}

#[test]
fn buckets_and_headers_of_tables_are_said_in_words() {
    assert_eq!(bucket("ip", 0xff, 12), "bucket by src & 0.0.0.255");
    assert_eq!(bucket("ip", 0xff, 20), "bucket by dst port & 0xff");
    assert_eq!(bucket("all", 0xff, 12), "hash mask 000000ff at 12");
    assert_eq!(
        next_header(0x0f00, 6, 0),
        "nexthdr: the end of the IP header"
    );
    assert_eq!(next_header(0xff, 2, 4), "nexthdr: 00ff>>2 at 4");
}

#[test]
fn a_gap_in_a_mask_is_shown() {
    assert_eq!(
        words("ip", &[key(0x10, 0xf0ff, 20)]),
        "dst port 0x10/0xf0ff"
    );
    assert_eq!(
        words("ip", &[key(0x1000, 0x3fff, 4)]),
        "fragment 0x1000/0x3fff"
    );
    assert_eq!(words("ip", &[key(0x0063_0000, 0x00ff_0000, 8)]), "proto 99");
}

fn any_key() -> impl Strategy<Value = Key> {
    let offset = prop_oneof![-16..64_i32, any::<i32>()];
    let mask = prop_oneof![
        any::<u32>(),
        (0..33_u32).prop_map(|n| u32::MAX.checked_shl(n).unwrap_or(0))
    ];
    (any::<u32>(), mask, offset, any::<bool>()).prop_map(|(value, mask, offset, is_next)| Key {
        value,
        mask,
        offset,
        is_next,
    })
}

fn any_protocol() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "ip", "ipv6", "all", "802.1Q", "802.1ad", "ppp_ses", "arp", "",
    ])
}

proptest! {
    /// Fields and rest together are the same bits as the keys: nothing is lost, nothing invented.
    #[test]
    fn words_cover_exactly_the_bits_of_the_keys(protocol in any_protocol(), keys in prop::collection::vec(any_key(), 0..8)) {
        let said = Said::of(protocol, &keys);
        let Some(merged) = Header::of(&keys) else {
            prop_assert_eq!(said.rest, keys);
            return Ok(());
        };
        let mut again = Header::of(&said.rest).expect("no contradiction");
        for Compared { field, value, mask } in &said.fields {
            for bit in 0..field.width {
                let at = field.start + i64::from(field.width - 1 - bit);
                let one = 0x80 >> at.rem_euclid(8);
                if mask >> bit & 1 == 1 {
                    let byte = again.0.entry((field.is_next, at.div_euclid(8))).or_default();
                    prop_assert_eq!(byte.1 & one, 0, "a bit is said twice");
                    byte.1 |= one;
                    byte.0 |= if value >> bit & 1 == 1 { one } else { 0 };
                }
            }
        }
        prop_assert_eq!(again, merged);
        prop_assert!(!said.words().is_empty());
    }

    /// Two filters with the same words compare the same bits.
    #[test]
    fn different_bits_have_different_words(protocol in any_protocol(), key in any_key(), bit in 0..32_u32) {
        let other = Key { value: key.value ^ 1 << bit, ..key };
        let is_same = Header::of(&[key]) == Header::of(&[other]);
        let (one, two) = (Said::of(protocol, &[key]), Said::of(protocol, &[other]));
        prop_assert_eq!(one.words() == two.words(), is_same);
    }
}
