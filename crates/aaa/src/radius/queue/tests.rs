use proptest::prelude::*;

use super::*;

/// The value of a Vendor-Specific attribute.
fn specific(vendor: u32, attributes: &[(u8, &[u8])]) -> Vec<u8> {
    let mut value = vendor.to_be_bytes().to_vec();
    for (kind, octets) in attributes {
        value.push(*kind);
        value.push(octets.len() as u8 + 2);
        value.extend_from_slice(octets);
    }
    value
}

fn read(values: &[Vec<u8>]) -> (Queue, Vec<String>) {
    let mut reader = Reader::new(QueueAttributes::default());
    for value in values {
        reader.vendor_specific(value);
    }
    let left_out = reader.left_out.iter().map(ToString::to_string).collect();
    (reader.finish(), left_out)
}

fn wispr_rates(up: u32, down: u32) -> Vec<u8> {
    let (up, down) = (up.to_be_bytes(), down.to_be_bytes());
    specific(vendor::WISPR, &[(7, &up), (8, &down)])
}

fn mikrotik_limit(text: &str) -> Vec<u8> {
    specific(vendor::MIKROTIK, &[(8, text.as_bytes())])
}

fn avpair(text: &str) -> Vec<u8> {
    specific(vendor::CISCO, &[(1, text.as_bytes())])
}

#[test]
fn wispr_gives_rates_in_bits_per_second() {
    let (queue, left_out) = read(&[wispr_rates(2_000_000, 20_000_000)]);
    assert_eq!(queue.rates_bps, [Some(20_000_000), Some(2_000_000)]);
    assert_eq!(left_out, [""; 0]);
    let (queue, _) = read(&[wispr_rates(0, 20_000_000)]);
    assert_eq!(queue.rates_bps, [Some(20_000_000), Some(0)]);
    let (queue, left_out) = read(&[specific(
        vendor::WISPR,
        &[(7, &[1, 2, 3]), (8, &[0, 0, 0, 9])],
    )]);
    assert!(queue.is_empty());
    assert_eq!(
        left_out[0],
        "WISPr-Bandwidth-Max-Up: has 3 octets; it must have 4"
    );
    assert!(
        left_out[1].contains("9 bit/s is too little"),
        "{left_out:?}"
    );
}

#[test]
fn mikrotiks_first_rate_is_up_because_the_router_receives_it() {
    for (text, down, up) in [
        ("128k", 128_000, 128_000),
        ("64k/128M", 128_000_000, 64_000),
        ("64000/128000", 128_000, 64_000),
        ("1G/2G", 2_000_000_000, 1_000_000_000),
        ("0/10M", 10_000_000, 0),
        ("64k/64k 256k/256k 128k/128k 10/10", 64_000, 64_000),
        ("64k 256k", 64_000, 64_000),
        ("5M/20M 8M/30M 4M/16M 10/10 8 1M/4M", 20_000_000, 5_000_000),
    ] {
        let (queue, left_out) = read(&[mikrotik_limit(text)]);
        assert_eq!(
            queue.rates_bps,
            [Some(down), Some(up)],
            "{text}: {left_out:?}"
        );
    }
    for (text, told) in [
        ("", "is empty; it must be such as \"5M/20M\""),
        ("fast", "\"fast\" is no number, with k or M behind it"),
        ("5M/", "\"\" is no number, with k or M behind it"),
        ("+5M", "\"+5M\" is no number, with k or M behind it"),
        ("1.5M", "\"1.5M\" is no number, with k or M behind it"),
        (
            "99999999G",
            "\"99999999G\" is no number, with k or M behind it",
        ),
        ("5M 8x", "\"8x\" is no burst rate"),
        ("5M 8M 4M 10 9", "\"9\" is no priority"),
        ("5M 8M 4M 10 8 1M 7", "has more than 6 parts, from \"7\" on"),
        (
            "100/20M",
            "100 bit/s is too little; the lowest rate is 8 kbit/s; is the unit missing, as in \"20mbit\"?",
        ),
    ] {
        let (queue, left_out) = read(&[mikrotik_limit(text)]);
        assert!(queue.is_empty(), "{text}");
        assert_eq!(left_out, [format!("Mikrotik-Rate-Limit: {told}")]);
    }
}

#[test]
fn ciscos_policies_are_templates_by_direction() {
    let pairs = [
        avpair("ip:sub-qos-policy-out=gold"),
        avpair("sub-qos-policy-in=slow"),
        avpair("ip:addr-pool=home"),
    ];
    let (queue, left_out) = read(&pairs);
    assert_eq!(queue.templates, [Some("gold".into()), Some("slow".into())]);
    assert_eq!(left_out, [""; 0]);
    let by_number = specific(vendor::CISCO, &[(37, b"slow"), (38, b"gold")]);
    assert_eq!(read(&[by_number]).0.templates, queue.templates);
    let (_, left_out) = read(&[avpair("ip:sub-qos-policy-in=two words")]);
    assert!(left_out[0].starts_with("Cisco-AVPair: \"two words\" is no name"));
}

#[test]
fn the_strongest_attribute_decides_whatever_their_order() {
    let ours = specific(
        vendor::EXAMPLE,
        &[(1, b"gold"), (2, b"30mbit"), (4, b"access-7")],
    );
    let mut all = vec![
        wispr_rates(1_000_000, 1_000_000),
        mikrotik_limit("2M/3M"),
        avpair("ip:sub-qos-policy-out=slow"),
        ours,
    ];
    let expected = Queue {
        rates_bps: [Some(30_000_000), Some(2_000_000)],
        link: Some("access-7".into()),
        ..Queue::default().with_template(Some("gold"))
    };
    for _ in 0..all.len() {
        all.rotate_left(1);
        assert_eq!(read(&all).0, expected);
    }
}

#[test]
fn our_number_is_the_configurations() {
    let config = QueueAttributes {
        vendor: 4_242,
        strict: false,
    };
    let mut reader = Reader::new(config);
    assert_eq!(
        reader.vendor_specific(&specific(vendor::EXAMPLE, &[(2, b"9mbit")])),
        1
    );
    assert_eq!(
        reader.vendor_specific(&specific(4_242, &[(3, b"none"), (9, b"x")])),
        1
    );
    assert_eq!(reader.finish().rates_bps, [None, Some(0)]);
}

#[test]
fn a_filter_id_with_the_prefix_is_a_template() {
    let mut reader = Reader::new(QueueAttributes::default());
    assert!(!reader.filter_id("residential"));
    assert!(reader.filter_id("queue:gold"));
    assert!(reader.filter_id("queue:"));
    assert_eq!(reader.left_out.len(), 1);
    let queue = reader.finish();
    assert_eq!(queue.templates, [Some("gold".into()), Some("gold".into())]);
}

#[test]
fn many_bad_values_are_reported_up_to_a_limit() {
    let bad = vec![mikrotik_limit("fast"); 50];
    assert_eq!(read(&bad).1.len(), LEFT_OUT_MAX);
}

proptest! {
    #[test]
    fn no_octets_make_a_reader_panic_and_what_is_read_is_in_range(
        vendor in prop::sample::select(vec![9_u32, 14_122, 14_988, 32_473, 7]),
        kind in prop::sample::select(vec![1_u8, 2, 3, 4, 7, 8, 37, 38]),
        octets in prop::collection::vec(any::<u8>(), 0..60),
        text in "[0-9kMG/ .x=:a-]{0,40}",
        raw in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let values = [
            specific(vendor, &[(kind, &octets)]),
            specific(vendor, &[(kind, text.as_bytes())]),
            [vendor.to_be_bytes().to_vec(), raw].concat(),
        ];
        let (queue, _) = read(&values);
        for rate in queue.rates_bps.into_iter().flatten() {
            prop_assert!(rate == 0 || (queue::RATE_MIN..=RATE_MAX).contains(&rate));
        }
        for name in queue.templates.iter().flatten().chain(&queue.link) {
            prop_assert!((1..=queue::NAME_OCTETS_MAX).contains(&name.len()));
        }
    }

    #[test]
    fn a_rate_limit_that_is_written_is_read(
        rx in 8_000_u64..1_000_000_000_000, tx in 8_000_u64..1_000_000_000_000, burst in 0_u64..1_000_000
    ) {
        let text = format!("{rx}/{tx} {burst}k/{burst}k");
        let (queue, left_out) = read(&[mikrotik_limit(&text)]);
        prop_assert_eq!(queue.rates_bps, [Some(tx), Some(rx)], "{:?}", left_out);
    }
}
