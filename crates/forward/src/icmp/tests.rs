use super::*;
use crate::testing::{Builder, v4, v6};
use proptest::prelude::*;
use wire::link::LinkType;
use wire::packet::{Packet, decode};

const LOCAL: Local = Local {
    v4: Ipv4Addr::new(203, 0, 113, 254),
    v6: Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1),
};

fn answer(error: Error, packet: &[u8]) -> Result<Vec<u8>, Silence> {
    let header = Header::read(packet).expect("a packet");
    let mut out = [0xee; LENGTH_MAX];
    let length = write(error, &header, packet, &LOCAL, &mut out)?;
    Ok(out[..length].to_vec())
}

/// The checksum over message and pseudo header, reckoned another way than the code does.
fn is_right(answer: &[u8]) -> bool {
    if answer[0] >> 4 == 4 {
        return wire::checksum::ip_ok(answer) == Some(true)
            && wire::checksum::sum(&answer[20..]) == 0xffff;
    }
    let mut whole = answer[8..40].to_vec();
    whole.extend_from_slice(&(answer.len() as u32 - 40).to_be_bytes());
    whole.extend_from_slice(&[0, 0, 0, 58]);
    whole.extend_from_slice(&answer[40..]);
    wire::checksum::sum(&whole) == 0xffff
}

#[test]
fn an_error_over_ipv4_is_as_rfc_792_draws_it() {
    let packet = v4().hops(1).class(0xb9).udp(&[7; 30]);
    let answer = answer(Error::TimeExceeded, &packet).expect("due");
    assert_eq!(answer.len(), 20 + 8 + packet.len());
    // Precedence 6 (RFC 1812 section 4.3.2.5), the packet's TOS bits, no ECN.
    assert_eq!(answer[..2], [0x45, 0xd8]);
    assert_eq!(answer[4..10], [0, 0, 0x40, 0, 64, 1]);
    assert_eq!(answer[12..16], [203, 0, 113, 254]);
    assert_eq!(answer[16..20], [192, 0, 2, 1]);
    assert_eq!(answer[20..22], [11, 0]);
    assert_eq!(answer[24..28], [0; 4]);
    assert_eq!(answer[28..], packet);
    assert!(is_right(&answer));
}

#[test]
fn an_error_over_ipv6_is_as_rfc_4443_draws_it() {
    let packet = v6().hops(1).udp(&[7; 30]);
    let answer = answer(Error::TimeExceeded, &packet).expect("due");
    assert_eq!(answer.len(), 40 + 8 + packet.len());
    assert_eq!(answer[..4], [0x6c, 0, 0, 0]);
    assert_eq!(answer[4..8], [0, 86, 58, 64]);
    assert_eq!(answer[8..24], LOCAL.v6.octets());
    assert_eq!(answer[24..40], packet[8..24]);
    assert_eq!(answer[40..42], [3, 0]);
    assert_eq!(answer[44..48], [0; 4]);
    assert_eq!(answer[48..], packet);
    assert!(is_right(&answer));
}

#[test]
fn types_and_codes_are_those_of_the_rfcs() {
    // RFC 792; RFC 1812 section 5.2.7.1; RFC 4443 sections 3.1 to 3.3.
    for (error, ipv4, ipv6) in [
        (Error::NetUnreachable, [3, 0], [1, 0]),
        (Error::HostUnreachable, [3, 1], [1, 3]),
        (Error::Prohibited, [3, 13], [1, 1]),
        (Error::BeyondScope, [3, 1], [1, 2]),
        (Error::TimeExceeded, [11, 0], [3, 0]),
        (Error::TooBig(1400), [3, 4], [2, 0]),
    ] {
        assert_eq!(answer(error, &v4().udp(b"")).expect("due")[20..22], ipv4);
        assert_eq!(answer(error, &v6().udp(b"")).expect("due")[40..42], ipv6);
    }
}

#[test]
fn too_big_names_the_mtu_where_each_version_has_it() {
    // RFC 1191 section 4: the low 16 bits of the second word, the others zero; RFC 4443 section 3.2: all 32.
    let answer_v4 = answer(Error::TooBig(1400), &v4().udp(b"")).expect("due");
    assert_eq!(answer_v4[24..28], [0, 0, 0x05, 0x78]);
    let answer_v6 = answer(Error::TooBig(1400), &v6().udp(b"")).expect("due");
    assert_eq!(answer_v6[44..48], [0, 0, 0x05, 0x78]);
}

#[test]
fn as_much_is_quoted_as_the_message_may_be_long() {
    // RFC 1812 section 4.3.2.3: 576 octets; RFC 4443 section 2.4 c: the least MTU.
    for (packet, most) in [(v4().udp(&[7; 1400]), 576), (v6().udp(&[7; 1400]), 1280)] {
        let answer = answer(Error::NetUnreachable, &packet).expect("due");
        assert_eq!(answer.len(), most);
        let quoted = if most == 576 {
            &answer[28..]
        } else {
            &answer[48..]
        };
        assert_eq!(quoted, &packet[..quoted.len()]);
        assert!(is_right(&answer));
    }
    // What is behind the packet's end in its buffer is not quoted.
    let mut packet = v4().udp(b"");
    packet.extend_from_slice(b"padding");
    let answer = answer(Error::NetUnreachable, &packet).expect("due");
    assert_eq!(answer.len(), 28 + packet.len() - 7);
}

fn silence(error: Error, packet: &[u8]) -> Option<Silence> {
    answer(error, packet).err()
}

#[test]
fn no_error_is_sent_about_an_error() {
    let v4_message = |kind| v4().protocol(1).content(&[kind, 0, 0, 0, 0, 0, 0, 0]);
    let v6_message = |kind| v6().protocol(58).content(&[kind, 0, 0, 0, 0, 0, 0, 0]);
    // RFC 1122 section 3.2.2 says which are errors; RFC 4443 section 2.4 e.1 and e.2.
    for kind in [3, 4, 5, 11, 12, 7, 200] {
        let silent = silence(Error::TimeExceeded, &v4_message(kind));
        assert_eq!(silent, Some(Silence::AboutAnError), "{kind}");
    }
    for kind in [0, 8, 13, 14] {
        assert_eq!(silence(Error::TimeExceeded, &v4_message(kind)), None);
    }
    for kind in [1, 2, 3, 4, 127, 137] {
        let silent = silence(Error::TooBig(1280), &v6_message(kind));
        assert_eq!(silent, Some(Silence::AboutAnError), "{kind}");
    }
    for kind in [128, 129, 133] {
        assert_eq!(silence(Error::TimeExceeded, &v6_message(kind)), None);
    }
    // One whose type is cut off, or in another fragment, may be an error.
    let cut = v4().protocol(1).content(&[8]);
    assert_eq!(
        silence(Error::TimeExceeded, &cut),
        Some(Silence::AboutAnError)
    );
    let later = v6()
        .protocol(44)
        .content(&[58, 0, 0x05, 0xa8, 0, 0, 0, 1, 128, 0, 0, 0]);
    assert_eq!(
        silence(Error::TooBig(1280), &later),
        Some(Silence::AboutAnError)
    );
}

#[test]
fn no_error_is_sent_about_fragments_of_ipv4_but_the_first() {
    let error = Error::TimeExceeded;
    let later = v4().fragment(3).content(&[0; 8]);
    assert_eq!(silence(error, &later), Some(Silence::Fragment));
    assert_eq!(silence(error, &v4().more_fragments().udp(b"")), None);
    // RFC 4443 has no such rule, and path MTU discovery needs it not.
    let later = v6().protocol(44).content(&[17, 0, 0x05, 0xa8, 0, 0, 0, 1]);
    assert_eq!(silence(error, &later), None);
}

#[test]
fn no_error_is_sent_about_multicast_but_that_it_is_too_big_for_ipv6() {
    for destination in ["224.0.0.1", "239.1.1.1", "255.255.255.255", "0.0.0.0"] {
        let packet = v4().to(destination).udp(b"");
        for error in [Error::TimeExceeded, Error::TooBig(1400)] {
            assert_eq!(silence(error, &packet), Some(Silence::Multicast));
        }
    }
    let packet = v6().to("ff0e::1").udp(b"");
    assert_eq!(
        silence(Error::TimeExceeded, &packet),
        Some(Silence::Multicast)
    );
    assert_eq!(silence(Error::TooBig(1400), &packet), None);
}

#[test]
fn no_error_is_sent_to_who_is_nobody() {
    for source in [
        "0.0.0.0",
        "0.1.1.1",
        "127.0.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "203.0.113.254",
    ] {
        let packet = v4().from(source).udp(b"");
        assert_eq!(
            silence(Error::TimeExceeded, &packet),
            Some(Silence::Source),
            "{source}"
        );
    }
    for source in ["::", "::1", "ff02::1", "2001:db8:ffff::1"] {
        let packet = v6().from(source).udp(b"");
        assert_eq!(
            silence(Error::TimeExceeded, &packet),
            Some(Silence::Source),
            "{source}"
        );
    }
}

#[test]
fn without_an_address_of_the_version_none_is_sent() {
    let local = Local {
        v4: Ipv4Addr::UNSPECIFIED,
        v6: Ipv6Addr::UNSPECIFIED,
    };
    for packet in [v4().udp(b""), v6().udp(b"")] {
        let header = Header::read(&packet).expect("a packet");
        let mut out = [0; LENGTH_MAX];
        let result = write(Error::TimeExceeded, &header, &packet, &local, &mut out);
        assert_eq!(result, Err(Silence::NoAddress));
    }
}

#[test]
fn a_sender_counts_what_it_sent_and_what_not() {
    let mut sender = Sender::new(LOCAL, Rate::new(1, 2));
    let (mut one, mut other) = (Bucket::default(), Bucket::default());
    let mut out = [0; LENGTH_MAX];
    let mut send = |bucket: &mut Bucket, packet: Builder| {
        let packet = packet.udp(b"");
        let header = Header::read(&packet).expect("a packet");
        sender.write(
            Error::TimeExceeded,
            &header,
            &packet,
            bucket,
            Instant::ZERO,
            &mut out,
        )
    };
    // What none is due for uses nothing up.
    assert_eq!(send(&mut one, v4().fragment(1)), Err(Silence::Fragment));
    assert_eq!(send(&mut one, v4()), Ok(56));
    assert_eq!(send(&mut one, v6()), Ok(96));
    assert_eq!(send(&mut one, v4()), Err(Silence::Limited));
    assert_eq!(send(&mut other, v4()), Ok(56));
    assert_eq!(sender.sent(), 3);
    assert_eq!(sender.silent(Silence::Limited), 1);
    assert_eq!(sender.silent(Silence::Fragment), 1);
    assert_eq!(sender.silent(Silence::Source), 0);
}

#[test]
fn reasons_stand_in_the_order_of_their_numbers() {
    for (number, reason) in Silence::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, number, "{}", reason.name());
    }
}

proptest! {
    #[test]
    fn whatever_it_is_about_an_error_is_a_packet_that_is_right_and_brings_forth_no_other(
        content in prop::collection::vec(any::<u8>(), 0..1400),
        ipv6: bool,
        mtu: u16,
    ) {
        let packet = if ipv6 { v6() } else { v4() }.udp(&content);
        for error in [Error::HostUnreachable, Error::TooBig(mtu)] {
            let first = answer(error, &packet).expect("due");
            prop_assert!(is_right(&first));
            let mut read = Packet::new();
            let result = decode(LinkType::RAW, &first, first.len() as u32, &mut read);
            prop_assert!(result.is_ok());
            prop_assert_eq!(silence(error, &first), Some(Silence::AboutAnError));
        }
    }
}
