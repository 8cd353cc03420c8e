use super::{fold, ip_ok, is_partial, pseudo_sum, sum, tcp_ok, udp_ok};
use crate::link::LinkType;
use crate::packet::{Fragment, Packet, decode};

/// The example of RFC 1071 section 3.
#[test]
fn sums_as_the_rfc_does() {
    let octets = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(sum(&octets), 0xddf2);
    assert_eq!(sum(&octets[..7]), 0xdcfb);
    assert_eq!(sum(&[]), 0);
    assert_eq!(sum(&[0xff; 65_535]), 0xff00);
}

proptest::proptest! {
    /// The sum as RFC 1071 section 1 defines it, one word at a time.
    #[test]
    fn sums_any_octets_as_word_by_word(octets in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200), at in 0_usize..9) {
        let octets = octets.get(at..).unwrap_or_default();
        let mut expected = 0_u32;
        for pair in octets.chunks(2) {
            let word = u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]);
            expected += u32::from(word);
            expected = (expected & 0xffff) + (expected >> 16);
        }
        proptest::prop_assert_eq!(u32::from(sum(octets)), expected);
    }
}

#[test]
fn a_fold_carries_to_the_end() {
    for total in [
        0xffff,
        0x1_0000,
        0x1_fffe,
        0xffff_0001,
        u64::MAX,
        u64::MAX - 1,
    ] {
        let expected = match total % 0xffff {
            0 => 0xffff,
            rest => rest as u16,
        };
        assert_eq!(fold(total), expected, "{total:#x}");
    }
    assert_eq!(fold(0), 0);
}

#[test]
fn a_pseudo_header_sums_as_its_octets_do() {
    let addresses = [0xa5; 32];
    let mut octets = addresses.to_vec();
    octets.extend(70_000_u32.to_be_bytes());
    octets.extend([0, 0, 0, 17]);
    assert_eq!(pseudo_sum(&addresses, 17, 70_000), sum(&octets));
    assert_eq!(pseudo_sum(&[0; 8], 0, 0), 0);
}

/// IPv4 and TCP with an odd payload length, summed by another program.
const TCP4: [u8; 43] = [
    0x45, 0x00, 0x00, 0x2b, 0x00, 0x01, 0x40, 0x00, 0x40, 0x06, 0x26, 0xca, 0x0a, 0x00, 0x00, 0x01,
    0x0a, 0x00, 0x00, 0x02, 0x00, 0x50, 0x00, 0x51, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02,
    0x50, 0x10, 0x20, 0x00, 0xa7, 0xc6, 0x00, 0x00, 0x6f, 0x64, 0x64,
];

/// IPv4 and UDP, summed by another program.
const UDP4: [u8; 33] = [
    0x45, 0x00, 0x00, 0x21, 0x00, 0x01, 0x40, 0x00, 0x40, 0x11, 0x26, 0xc9, 0x0a, 0x00, 0x00, 0x01,
    0x0a, 0x00, 0x00, 0x02, 0x00, 0x35, 0x0f, 0xa0, 0x00, 0x0d, 0x98, 0x2a, 0x68, 0x65, 0x6c, 0x6c,
    0x6f,
];

/// IPv6 and UDP, summed by another program.
const UDP6: [u8; 53] = [
    0x60, 0x00, 0x00, 0x00, 0x00, 0x0d, 0x11, 0x40, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x35, 0x0f, 0xa0, 0x00, 0x0d, 0x50, 0xb8,
    0x68, 0x65, 0x6c, 0x6c, 0x6f,
];

fn raw(frame: &[u8]) -> Packet<'_> {
    let mut packet = Packet::new();
    decode(LinkType::RAW, frame, frame.len() as u32, &mut packet).expect("IP");
    packet
}

#[test]
fn right_checksums_are_right_and_any_bit_makes_them_wrong() {
    assert_eq!(ip_ok(&TCP4), Some(true));
    assert_eq!(tcp_ok(&raw(&TCP4)), Some(true));
    assert_eq!(udp_ok(&raw(&UDP4)), Some(true));
    assert_eq!(udp_ok(&raw(&UDP6)), Some(true));
    for bit in 0..8 {
        let mut octets = TCP4;
        octets[8] ^= 1 << bit;
        assert_eq!(ip_ok(&octets), Some(false));
        let mut octets = TCP4;
        octets[42] ^= 1 << bit;
        assert_eq!(tcp_ok(&raw(&octets)), Some(false));
        let mut octets = UDP6;
        octets[39] ^= 1 << bit;
        assert_eq!(udp_ok(&raw(&octets)), Some(false));
    }
}

#[test]
fn what_is_not_all_there_cannot_be_checked() {
    assert_eq!(ip_ok(&TCP4[..19]), None);
    assert_eq!(ip_ok(&UDP6), None);
    assert_eq!(ip_ok(&[]), None);
    assert_eq!(tcp_ok(&raw(&TCP4[..42])), None);
    assert_eq!(udp_ok(&raw(&UDP6[..50])), None);
    assert_eq!(tcp_ok(&raw(&UDP4)), None);
    assert_eq!(udp_ok(&raw(&TCP4)), None);
    let mut first = raw(&TCP4);
    first.fragment = Fragment::First;
    assert_eq!(tcp_ok(&first), None);
}

/// RFC 768; RFC 8200 section 8.1.
#[test]
fn a_datagram_may_go_without_checksum_over_ipv4_only() {
    let mut octets = UDP4;
    octets[26..28].copy_from_slice(&[0, 0]);
    assert_eq!(udp_ok(&raw(&octets)), None);
    let mut octets = UDP6;
    octets[46..48].copy_from_slice(&[0, 0]);
    assert_eq!(udp_ok(&raw(&octets)), Some(false));
}

/// The sums of these pseudo headers, added up by hand: 0a00 + 0001 + 0a00 + 0002 + protocol + length.
#[test]
fn a_checksum_that_is_the_pseudo_headers_alone_is_partial() {
    for (sum, partial) in [(0x1420, true), (0x1409, true), (0x1421, false), (0, false)] {
        let mut octets = TCP4;
        octets[36..38].copy_from_slice(&u16::to_be_bytes(sum));
        assert_eq!(is_partial(&raw(&octets)), partial, "{sum:x}");
        assert_eq!(tcp_ok(&raw(&octets)), Some(false));
    }
    let mut octets = UDP4;
    octets[26..28].copy_from_slice(&[0x14, 0x21]);
    assert!(is_partial(&raw(&octets)));
    // 2 * (2001 + 0db8) + 1 + 2 + 11 + d
    let mut octets = UDP6;
    octets[46..48].copy_from_slice(&[0x5b, 0x93]);
    assert!(is_partial(&raw(&octets)));
    for whole in [raw(&TCP4), raw(&UDP4), raw(&UDP6)] {
        assert!(!is_partial(&whole));
    }
    let mut first = raw(&octets);
    first.fragment = Fragment::First;
    assert!(!is_partial(&first));
    assert!(!is_partial(&Packet::new()));
}
