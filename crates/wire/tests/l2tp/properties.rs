//! Properties that hold for arbitrary bytes and values.

use proptest::prelude::*;
use wire::l2tp::{
    Attribute, CONTROL_HEADER_LEN, DataV2, DigestType, Fault, Message, MessageType, Packet,
    VALUE_LEN_MAX, Version, Writer, auth, digest, emit_control, hidden, parse,
};

fn versions() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V2), Just(Version::V3)]
}

fn kinds() -> impl Strategy<Value = MessageType> {
    let numbers = prop_oneof![1..=4_u16, 6..=12_u16, 14..=16_u16];
    numbers.prop_map(|number| MessageType::from_number(Version::V2, number))
}

/// An attribute of that version which no other part of a message writes, with a value of an allowed length.
fn avps(version: Version) -> impl Strategy<Value = (Attribute, Vec<u8>)> {
    let all: Vec<_> = Attribute::all()
        .iter()
        .copied()
        .filter(|a| a.defined_in(version) && *a != Attribute::MessageType)
        .collect();
    prop::sample::select(all).prop_flat_map(move |attribute| {
        let (min, max) = attribute.value_len();
        prop::collection::vec(any::<u8>(), min..=max.min(40))
            .prop_filter("a listed length", move |v| {
                attribute.allows_len(version, v.len())
            })
            .prop_map(move |value| (attribute, value))
    })
}

fn messages() -> impl Strategy<Value = (Version, MessageType, Vec<(Attribute, Vec<u8>)>)> {
    versions().prop_flat_map(|version| {
        (
            Just(version),
            kinds(),
            prop::collection::vec(avps(version), 0..12),
        )
    })
}

fn octets(max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..=max)
}

proptest! {
    #[test]
    fn a_control_message_reads_as_it_was_written(
        (version, kind, avps) in messages(),
        connection in any::<u32>(),
        (session, ns, nr) in any::<(u16, u16, u16)>(),
        trailer in octets(8),
    ) {
        let connection = if version == Version::V2 { connection & 0xffff } else { connection };
        let session = if version == Version::V2 { session } else { 0 };
        let mut body = Vec::new();
        let mut writer = Writer::new(&mut body, version, kind);
        for (attribute, value) in &avps {
            writer.bytes(*attribute, value);
        }
        let mut datagram = Vec::new();
        emit_control(&mut datagram, version, connection, session, ns, nr, &body);
        let len = datagram.len();
        datagram.extend(trailer);
        let Ok(Packet::Control(control)) = parse(&datagram) else {
            panic!("a control message");
        };
        prop_assert_eq!((control.connection, control.session), (connection, session));
        prop_assert_eq!((control.ns, control.nr, control.version), (ns, nr, version));
        prop_assert_eq!(control.whole, &datagram[..len]);
        let message = Message::parse(version, control.body);
        prop_assert_eq!((message.kind(), message.kind_mandatory()), (kind, true));
        prop_assert_eq!((message.fault(), message.unrecognised_mandatory()), (None, None));
        for (attribute, _) in &avps {
            let first = avps.iter().find(|(other, _)| other == attribute).expect("itself");
            prop_assert_eq!(message.get(*attribute), Some(&first.1[..]));
        }
        prop_assert_eq!(message.avps().count(), 1 + avps.len());
    }

    #[test]
    fn a_v2_data_message_reads_as_it_was_written(
        (tunnel, session) in any::<(u16, u16)>(),
        (with_length, priority) in any::<(bool, bool)>(),
        sequence in any::<Option<(u16, u16)>>(),
        offset in prop::option::of(0..100_u16),
        payload in octets(60),
    ) {
        let data =
            DataV2 { tunnel, session, with_length, priority, sequence, offset, payload: &payload };
        let mut datagram = Vec::new();
        data.emit(&mut datagram);
        prop_assert_eq!(parse(&datagram), Ok(Packet::DataV2(data)));
    }

    #[test]
    fn what_is_hidden_is_found_again(
        value in octets(VALUE_LEN_MAX - 2),
        secret in octets(40),
        vector in octets(40),
        padding in octets(70),
        version in versions(),
    ) {
        let mut body = Vec::new();
        let kind = MessageType::Iccn;
        let mut writer = Writer::new(&mut body, version, kind);
        writer.random_vector(&vector);
        writer.hidden(Attribute::VendorName, &value, &secret, &vector, &padding);
        prop_assert!(Message::parse(version, &body).has_hidden());
        let mut clear = Vec::new();
        hidden::unhide(&body, &secret, &mut clear).expect("it was hidden right");
        let message = Message::parse(version, &clear);
        prop_assert_eq!(message.fault(), None);
        prop_assert_eq!(message.get(Attribute::VendorName), Some(&value[..]));
        prop_assert_eq!(message.get(Attribute::RandomVector), Some(&vector[..]));
    }

    #[test]
    fn a_changed_octet_makes_a_digest_wrong(
        kind in prop_oneof![Just(DigestType::HmacMd5), Just(DigestType::HmacSha1)],
        (own, other) in (octets(24), octets(24)),
        secret in octets(24),
        (at, change) in (any::<prop::sample::Index>(), 1..=255_u8),
    ) {
        let mut body = Vec::new();
        let mut writer = Writer::new(&mut body, Version::V3, MessageType::Sccrp);
        digest::placeholder(&mut writer, kind);
        writer.bytes(Attribute::HostName, b"host");
        let mut message = Vec::new();
        emit_control(&mut message, Version::V3, 7, 0, 1, 2, &body);
        let key = digest::shared_key(&secret);
        prop_assert!(digest::sign(&mut message, kind, &key, &own, &other));
        prop_assert!(digest::verify(&message, &key, &other, &own));
        let at = at.index(message.len());
        message[at] ^= change;
        prop_assert!(!digest::verify(&message, &key, &other, &own), "octet {}", at);
    }

    #[test]
    fn any_octets_are_read_without_a_panic(datagram in octets(80), version in versions()) {
        let _ = parse(&datagram);
        let message = Message::parse(version, &datagram);
        let walked: usize = message.avps().map(|avp| 6 + avp.value.len()).sum();
        let ended = matches!(
            message.fault(),
            Some(Fault::ShortAvp { .. } | Fault::PastEnd { .. })
        );
        prop_assert!(walked == datagram.len() || ended || message.fault().is_some());
        let mut clear = Vec::new();
        let _ = hidden::unhide(&datagram, b"secret", &mut clear);
        prop_assert!(clear.len() <= datagram.len());
        let _ = digest::verify(&datagram, &digest::shared_key(&[]), &[], &[]);
        let _ = auth::verify_response(2, b"secret", b"challenge", &datagram);
    }

    #[test]
    fn a_cut_control_message_is_never_read(
        (version, kind, avps) in messages(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut body = Vec::new();
        let mut writer = Writer::new(&mut body, version, kind);
        for (attribute, value) in &avps {
            writer.bytes(*attribute, value);
        }
        let mut datagram = Vec::new();
        emit_control(&mut datagram, version, 1, 0, 0, 0, &body);
        prop_assert!(datagram.len() > CONTROL_HEADER_LEN);
        prop_assert!(parse(&datagram[..cut.index(datagram.len())]).is_err());
    }
}
