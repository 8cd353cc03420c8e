use super::*;
use crate::testing::{Builder, tcp_ok, v4, v6};
use proptest::prelude::*;

fn clamped(packet: &mut [u8], mtu: u16, sum: Sum) -> bool {
    let header = Header::read(packet).expect("a packet");
    clamp(&header, packet, mtu, sum)
}

fn syn(to: Builder, flags: u8, options: &[u8]) -> Vec<u8> {
    to.tcp(flags, options, b"")
}

const MSS_1460: [u8; 4] = [2, 4, 0x05, 0xb4];

#[test]
fn a_syn_and_its_answer_are_lowered_to_what_the_mtu_carries() {
    for flags in [0x02, 0x12, 0xc2] {
        let mut packet = syn(v4(), flags, &MSS_1460);
        assert!(clamped(&mut packet, 1492, Sum::Complete));
        // 1492 less 40 (RFC 9293 section 3.7.1).
        assert_eq!(packet, syn(v4(), flags, &[2, 4, 0x05, 0xac]));
        let mut packet = syn(v6(), flags, &MSS_1460);
        assert!(clamped(&mut packet, 1492, Sum::Complete));
        assert_eq!(packet, syn(v6(), flags, &[2, 4, 0x05, 0x98]));
    }
}

#[test]
fn it_is_never_raised_or_added_and_others_are_left_alone() {
    let alone = [
        (syn(v4(), 0x02, &[2, 4, 0x05, 0xac]), "fits"),
        (syn(v4(), 0x02, &[2, 4, 0, 0]), "zero"),
        (syn(v4(), 0x02, &[]), "no option"),
        (syn(v4(), 0x10, &MSS_1460), "no SYN"),
        (syn(v4(), 0x14, &MSS_1460), "RST"),
        (syn(v4(), 0x02, &[2, 3, 0x05, 1]), "length 3"),
        (syn(v4(), 0x02, &[2, 0, 0x05, 0xb4]), "length 0"),
        (
            syn(v4(), 0x02, &[0, 2, 4, 0x05, 0xb4, 0, 0, 0]),
            "after the end",
        ),
        (
            syn(v4(), 0x02, &[3, 6, 2, 4, 0x05, 0xb4, 0, 0]),
            "inside of another",
        ),
        (syn(v4(), 0x02, &[1, 1, 1, 2]), "cut after its kind"),
        (syn(v4(), 0x02, &[1, 2, 4, 0xff]), "cut inside of its value"),
        (v4().udp(&[0x02; 40]), "UDP"),
        (
            v4().fragment(1).content(&syn(v4(), 2, &MSS_1460)[20..]),
            "later fragment",
        ),
    ];
    for (packet, why) in alone {
        let mut after = packet.clone();
        assert!(!clamped(&mut after, 1492, Sum::Complete), "{why}");
        assert_eq!(after, packet, "{why}");
    }
}

#[test]
fn it_is_found_behind_other_options_also_at_an_odd_place() {
    for options in [
        &[1, 2, 4, 0x05, 0xb4, 0, 0, 0][..],
        &[8, 10, 0, 1, 2, 3, 4, 5, 6, 7, 2, 4, 0x05, 0xb4, 4, 2],
        &[3, 3, 7, 2, 4, 0x05, 0xb4, 0],
        &[2, 4, 0x05, 0xb4, 2, 4, 0x23, 0x28],
    ] {
        let mut packet = syn(v4().options(&[7, 7, 4, 0, 0, 0, 0, 0]), 0x02, options);
        assert!(clamped(&mut packet, 1400, Sum::Complete), "{options:?}");
        assert_eq!(tcp_ok(&packet), Some(true), "{options:?}");
        assert!(!clamped(&mut packet, 1400, Sum::Complete));
    }
}

#[test]
fn a_checksum_that_is_still_to_be_made_is_left_for_that() {
    let mut packet = syn(v4(), 0x02, &MSS_1460);
    packet[36..38].copy_from_slice(&[0x12, 0x34]);
    assert!(clamped(&mut packet, 1492, Sum::Partial));
    assert_eq!(packet[36..38], [0x12, 0x34]);
    assert_eq!(packet[42..44], [0x05, 0xac]);
}

#[test]
fn an_mtu_below_the_least_that_is_allowed_counts_as_that() {
    assert_eq!(segment_max(4, 0), 28);
    assert_eq!(segment_max(4, 1500), 1460);
    assert_eq!(segment_max(6, 576), 1220);
    assert_eq!(segment_max(6, 1500), 1440);
}

proptest! {
    #[test]
    fn any_options_keep_the_checksum_right_and_no_value_above_the_most(
        options in prop::collection::vec(prop_oneof![0..5_u8, any::<u8>()], 0..10)
            .prop_map(|some| some.repeat(4)),
        mtu: u16,
        ipv6: bool,
    ) {
        let options = &options[..options.len().min(40)];
        let packet = syn(if ipv6 { v6() } else { v4() }, 0x02, options);
        let mut after = packet.clone();
        let lowered = clamped(&mut after, mtu, Sum::Complete);
        prop_assert_eq!(tcp_ok(&after), Some(true));
        prop_assert_eq!(lowered, after != packet);
        prop_assert!(!clamped(&mut after, mtu, Sum::Complete));
    }
}
