use super::*;
use crate::l2tp::{VALUE_LEN_MAX, Writer};

const M: bool = true;

/// A message whose AVPs after the Message Type are appended by `write`.
fn body(version: Version, kind: MessageType, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut body = Vec::new();
    write(&mut Writer::new(&mut body, version, kind));
    body
}

fn sccrq(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    body(Version::V2, MessageType::Sccrq, write)
}

#[test]
fn a_zlb_has_no_message_type() {
    let message = Message::parse(Version::V2, &[]);
    assert_eq!(message.fault(), Some(Fault::NoMessageType));
    assert_eq!(message.kind(), MessageType::Unknown(0));
    assert_eq!(message.avps().count(), 0);
}

#[test]
fn a_message_type_that_is_not_first_is_none() {
    let mut body = sccrq(|w| _ = w.u16(Attribute::AssignedTunnelId, 7));
    body.rotate_left(8);
    let message = Message::parse(Version::V2, &body);
    assert_eq!(message.fault(), Some(Fault::NoMessageType));
    assert_eq!(message.kind(), MessageType::Unknown(0));
    assert_eq!(message.u16(Attribute::AssignedTunnelId), Some(7));
}

#[test]
fn an_unknown_message_type_says_whether_it_may_be_ignored() {
    for (m, number) in [(true, 13), (false, 999), (true, 5), (false, 0)] {
        let mut body = Vec::new();
        body.extend([if m { 0x80 } else { 0 }, 8, 0, 0, 0, 0]);
        body.extend(u16::to_be_bytes(number));
        let message = Message::parse(Version::V2, &body);
        assert_eq!(message.kind(), MessageType::Unknown(number));
        assert_eq!((message.kind_mandatory(), message.fault()), (m, None));
    }
}

#[test]
fn an_explicit_acknowledgement_is_of_v3_only() {
    let body = body(Version::V3, MessageType::Ack, |_| ());
    assert_eq!(Message::parse(Version::V3, &body).kind(), MessageType::Ack);
    assert_eq!(
        Message::parse(Version::V2, &body).kind(),
        MessageType::Unknown(20)
    );
}

#[test]
fn a_vendor_s_message_type_is_unknown_whatever_its_number() {
    let body = [0x80, 8, 0, 9, 0, 0, 0, 1];
    let message = Message::parse(Version::V3, &body);
    assert_eq!(message.kind(), MessageType::Unknown(1));
    assert!(message.kind_mandatory());
    assert_eq!(
        (message.fault(), message.unrecognised_mandatory()),
        (None, None)
    );
}

#[test]
fn a_message_type_of_a_wrong_length_is_a_fault_whatever_its_m_bit() {
    for body in [
        &[0x80, 7, 0, 0, 0, 0, 1][..],
        &[0, 9, 0, 0, 0, 0, 0, 1, 0],
        &[0, 6, 0, 0, 0, 0],
    ] {
        let message = Message::parse(Version::V2, body);
        assert_eq!(
            message.fault(),
            Some(Fault::BadLength(Attribute::MessageType))
        );
    }
}

#[test]
fn an_avp_length_below_six_ends_the_walk() {
    for len in 0..6 {
        let mut body = sccrq(|w| _ = w.u16(Attribute::AssignedTunnelId, 7));
        body.extend([0x80, len, 0, 0, 0, 10, 0, 4]);
        let message = Message::parse(Version::V2, &body);
        assert_eq!(message.fault(), Some(Fault::ShortAvp { offset: 16 }));
        assert_eq!(message.u16(Attribute::AssignedTunnelId), Some(7));
        assert_eq!(message.get(Attribute::ReceiveWindowSize), None);
    }
}

#[test]
fn an_avp_past_the_end_ends_the_walk() {
    let whole = sccrq(|w| {
        _ = w
            .u16(Attribute::AssignedTunnelId, 7)
            .u16(Attribute::ReceiveWindowSize, 4)
    });
    for cut in 1..8 {
        let message = Message::parse(Version::V2, &whole[..whole.len() - cut]);
        assert_eq!(
            message.fault(),
            Some(Fault::PastEnd { offset: 16 }),
            "{cut} octets less"
        );
        assert_eq!(message.u16(Attribute::AssignedTunnelId), Some(7));
    }
}

#[test]
fn an_unknown_avp_with_m_is_named() {
    let body = sccrq(|w| {
        w.raw(!M, 0, 99, b"ignored")
            .raw(M, 0, 1234, b"")
            .raw(M, 0, 77, b"later");
        w.u16(Attribute::AssignedTunnelId, 7);
    });
    let message = Message::parse(Version::V2, &body);
    assert_eq!(message.unrecognised_mandatory(), Some((0, 1234)));
    assert_eq!(
        (message.fault(), message.u16(Attribute::AssignedTunnelId)),
        (None, Some(7))
    );
}

#[test]
fn a_vendor_s_avp_is_unknown_whatever_its_number() {
    let number = Attribute::AssignedTunnelId.number();
    let ignored = sccrq(|w| _ = w.raw(!M, 9, number, &[0, 1]));
    let message = Message::parse(Version::V2, &ignored);
    assert_eq!(
        (
            message.unrecognised_mandatory(),
            message.get(Attribute::AssignedTunnelId)
        ),
        (None, None)
    );
    let fatal = sccrq(|w| _ = w.raw(M, 9, number, &[0, 1]));
    assert_eq!(
        Message::parse(Version::V2, &fatal).unrecognised_mandatory(),
        Some((9, number))
    );
}

#[test]
fn a_known_avp_with_the_wrong_m_bit_is_accepted() {
    let body = sccrq(|w| {
        w.raw(M, 0, Attribute::VendorName.number(), b"cisco");
        w.raw(!M, 0, Attribute::AssignedTunnelId.number(), &[0, 7]);
    });
    let message = Message::parse(Version::V2, &body);
    assert_eq!(
        (message.fault(), message.unrecognised_mandatory()),
        (None, None)
    );
    assert_eq!(message.get(Attribute::VendorName), Some(&b"cisco"[..]));
    assert_eq!(message.u16(Attribute::AssignedTunnelId), Some(7));
}

#[test]
fn a_reserved_bit_makes_a_known_avp_unrecognised_in_v2_and_is_ignored_in_v3() {
    for bit in [0x20, 0x10, 0x08, 0x04] {
        let mut body = sccrq(|w| _ = w.u16(Attribute::ReceiveWindowSize, 4));
        body[8] |= bit;
        let v2 = Message::parse(Version::V2, &body);
        assert_eq!(
            (v2.fault(), v2.unrecognised_mandatory()),
            (None, Some((0, 10)))
        );
        assert_eq!(v2.get(Attribute::ReceiveWindowSize), None);
        let v3 = Message::parse(Version::V3, &body);
        assert_eq!((v3.fault(), v3.unrecognised_mandatory()), (None, None));
        assert_eq!(v3.u16(Attribute::ReceiveWindowSize), Some(4));
        body[8] &= 0x7f;
        assert_eq!(
            Message::parse(Version::V2, &body).unrecognised_mandatory(),
            None
        );
    }
}

#[test]
fn a_reserved_bit_in_the_message_type_leaves_a_v2_message_without_one() {
    let mut body = sccrq(|_| ());
    body[0] |= 0x04;
    let v2 = Message::parse(Version::V2, &body);
    assert_eq!(
        (v2.kind(), v2.fault()),
        (MessageType::Unknown(0), Some(Fault::NoMessageType))
    );
    assert_eq!(
        Message::parse(Version::V3, &body).kind(),
        MessageType::Sccrq
    );
}

#[test]
fn a_v3_avp_in_v2_is_unrecognised() {
    let ignored = sccrq(|w| _ = w.u32(Attribute::RouterId, 1));
    let message = Message::parse(Version::V2, &ignored);
    assert_eq!(
        (
            message.unrecognised_mandatory(),
            message.get(Attribute::RouterId)
        ),
        (None, None)
    );
    let fatal = sccrq(|w| _ = w.raw(M, 0, Attribute::RouterId.number(), &[0; 4]));
    assert_eq!(
        Message::parse(Version::V2, &fatal).unrecognised_mandatory(),
        Some((0, 60))
    );
}

#[test]
fn a_v2_avp_in_a_v3_sccrq_is_ignored_whatever_its_m_bit_and_length() {
    let of = |kind| {
        body(Version::V3, kind, |w| {
            w.raw(M, 0, Attribute::FramingCapabilities.number(), &[1]);
        })
    };
    let sccrq = of(MessageType::Sccrq);
    let message = Message::parse(Version::V3, &sccrq);
    assert_eq!(
        (message.fault(), message.unrecognised_mandatory()),
        (None, None)
    );
    assert_eq!(message.get(Attribute::FramingCapabilities), None);
    let sccrp = of(MessageType::Sccrp);
    assert_eq!(
        Message::parse(Version::V3, &sccrp).unrecognised_mandatory(),
        Some((0, 3))
    );
}

#[test]
fn a_wrong_length_is_a_fault_with_m_and_ignored_without() {
    let number = Attribute::RxConnectSpeed.number();
    let ignored = body(Version::V2, MessageType::Iccn, |w| {
        _ = w.raw(!M, 0, number, &[0, 1])
    });
    let message = Message::parse(Version::V2, &ignored);
    assert_eq!(
        (message.fault(), message.get(Attribute::RxConnectSpeed)),
        (None, None)
    );
    assert_eq!(message.ignored_malformed(), Some(Attribute::RxConnectSpeed));
    assert_eq!(message.ignored_avps(), 1);
    let fatal = body(Version::V2, MessageType::Iccn, |w| {
        _ = w.raw(M, 0, number, &[0, 1])
    });
    let message = Message::parse(Version::V2, &fatal);
    assert_eq!(
        message.fault(),
        Some(Fault::BadLength(Attribute::RxConnectSpeed))
    );
    assert_eq!(message.ignored_avps(), 0);
}

#[test]
fn the_walk_goes_on_after_a_wrong_length() {
    let body = sccrq(|w| {
        w.raw(M, 0, Attribute::ReceiveWindowSize.number(), &[4]);
        w.u16(Attribute::AssignedTunnelId, 7);
    });
    let message = Message::parse(Version::V2, &body);
    assert_eq!(
        message.fault(),
        Some(Fault::BadLength(Attribute::ReceiveWindowSize))
    );
    assert_eq!(message.u16(Attribute::AssignedTunnelId), Some(7));
}

#[test]
fn a_hidden_avp_is_a_fault_until_it_is_unhidden() {
    let body = sccrq(|w| {
        w.random_vector(b"0123456789abcdef");
        w.hidden(
            Attribute::VendorName,
            b"x",
            b"secret",
            b"0123456789abcdef",
            b"",
        );
    });
    let message = Message::parse(Version::V2, &body);
    assert_eq!(message.fault(), Some(Fault::Hidden(Attribute::VendorName)));
    assert!(message.has_hidden());
    assert_eq!(message.get(Attribute::VendorName), None);
}

#[test]
fn an_unknown_hidden_avp_is_unknown_and_not_hidden() {
    let mut body = sccrq(|w| _ = w.raw(!M, 0, 99, b"whatever"));
    body[8] |= 0x40;
    let message = Message::parse(Version::V2, &body);
    assert_eq!((message.fault(), message.has_hidden()), (None, false));
}

#[test]
fn a_hidden_message_type_is_a_fault() {
    let mut body = sccrq(|_| ());
    body[0] |= 0x40;
    let message = Message::parse(Version::V2, &body);
    assert_eq!(message.fault(), Some(Fault::Hidden(Attribute::MessageType)));
    assert_eq!(message.kind(), MessageType::Unknown(0));
}

#[test]
fn the_first_of_repeated_avps_counts() {
    let body = sccrq(|w| {
        w.u16(Attribute::AssignedTunnelId, 7)
            .u16(Attribute::AssignedTunnelId, 8);
        w.u16(Attribute::MessageType, 2);
    });
    let message = Message::parse(Version::V2, &body);
    assert_eq!(message.u16(Attribute::AssignedTunnelId), Some(7));
    assert_eq!(
        (message.kind(), message.fault()),
        (MessageType::Sccrq, None)
    );
    assert_eq!(message.avps().count(), 4);
}

#[test]
fn the_first_fault_is_the_one_reported() {
    let mut body = sccrq(|w| {
        w.raw(M, 0, Attribute::ReceiveWindowSize.number(), &[4]);
        w.raw(M, 0, Attribute::HostName.number(), b"");
    });
    body.push(0x80);
    let message = Message::parse(Version::V2, &body);
    assert_eq!(
        message.fault(),
        Some(Fault::BadLength(Attribute::ReceiveWindowSize))
    );
}

/// Figure 5.2 of RFC 3931: Vendor ID 0, Attribute Type 58, then a 32-bit Vendor ID, an attribute of that
/// vendor, and its value.
#[test]
fn an_extended_vendor_id_is_known_and_harmless() {
    let body = body(Version::V3, MessageType::Sccrp, |w| {
        w.bytes(Attribute::ExtendedVendorId, b"\0\x01\x23\x45\0\x01hi");
    });
    assert_eq!(body[8..], *b"\0\x0e\0\0\0\x3a\0\x01\x23\x45\0\x01hi");
    let message = Message::parse(Version::V3, &body);
    assert_eq!(
        (message.fault(), message.unrecognised_mandatory()),
        (None, None)
    );
    assert!(message.has(Attribute::ExtendedVendorId));
}

#[test]
fn a_result_code_has_no_two_or_more_octets_of_error() {
    for (value, expected) in [
        (&[0, 6][..], Some((6, None, &b""[..]))),
        (&[0, 2, 0, 8], Some((2, Some(8), b""))),
        (b"\0\x02\0\x06why", Some((2, Some(6), b"why"))),
        (&[0, 2, 0], None),
        (&[0], None),
        (&[], None),
    ] {
        let body = body(Version::V2, MessageType::StopCcn, |w| {
            _ = w.raw(M, 0, 1, value)
        });
        let message = Message::parse(Version::V2, &body);
        let code = message
            .result_code()
            .map(|c| (c.result, c.error, c.message));
        assert_eq!(code, expected, "{value:?}");
        let fault = expected
            .is_none()
            .then_some(Fault::BadLength(Attribute::ResultCode));
        assert_eq!(message.fault(), fault, "{value:?}");
    }
}

#[test]
fn numbers_are_read_at_their_own_width_only() {
    let body = sccrq(|w| {
        _ = w
            .u64(Attribute::TieBreaker, 5)
            .u16(Attribute::AssignedTunnelId, 7)
    });
    let message = Message::parse(Version::V2, &body);
    assert_eq!(message.u64(Attribute::TieBreaker), Some(5));
    assert_eq!(
        (
            message.u16(Attribute::TieBreaker),
            message.u32(Attribute::TieBreaker)
        ),
        (None, None)
    );
    assert_eq!(message.u32(Attribute::AssignedTunnelId), None);
}

#[test]
fn a_body_of_the_greatest_length_is_read_to_its_end() {
    let body = sccrq(|w| {
        for len in [VALUE_LEN_MAX; 63].into_iter().chain([494, 552]) {
            w.raw(!M, 0, 99, &vec![0; len]);
        }
        w.u16(Attribute::AssignedTunnelId, 0x0102);
    });
    assert_eq!(body.len(), CONTROL_BODY_LEN_MAX);
    let message = Message::parse(Version::V2, &body);
    assert_eq!(
        (message.fault(), message.u16(Attribute::AssignedTunnelId)),
        (None, Some(0x0102))
    );
}

/// RFC 5515 4.1: "more than one may be present".
#[test]
fn every_speed_of_a_message_is_read() {
    let mut body = Vec::new();
    let mut writer = Writer::new(&mut body, Version::V2, MessageType::Csun);
    let speeds = [(7, 100_000_000), (9, 0)].map(|(session, tx_bps)| ConnectSpeed {
        session,
        tx_bps,
        rx_bps: 1,
    });
    for speed in speeds {
        let mut value = Vec::new();
        speed.emit(Version::V2, &mut value);
        writer.bytes(Attribute::ConnectSpeedUpdate, &value);
        // One of the other version, which is malformed here and not mandatory.
        writer.raw(false, 0, 97, &[0; 20]);
    }
    let message = Message::parse(Version::V2, &body);
    assert_eq!(message.kind(), MessageType::Csun);
    assert!(!message.kind_mandatory());
    assert_eq!(message.speeds().collect::<Vec<_>>(), speeds);
}
