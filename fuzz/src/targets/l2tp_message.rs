//! A control message's AVPs, compared with a second implementation of the rules that keeps a list instead of a
//! table.

use wire::l2tp::{Attribute, Avp, ConnectSpeed, Fault, Message, MessageType, Version, Writer};

/// Takes the body of a v2 control message.
///
/// # Panics
/// If the message disagrees with its list of AVPs.
pub fn target_v2(data: &[u8]) {
    check(Version::V2, data);
}

/// Takes the body of a v3 control message.
///
/// # Panics
/// If the message disagrees with its list of AVPs.
pub fn target_v3(data: &[u8]) {
    check(Version::V3, data);
}

fn check(version: Version, body: &[u8]) {
    let message = Message::parse(version, body);
    let avps: Vec<Avp<'_>> = message.avps().collect();
    let end = check_walk(body, &avps);
    check_fault(version, &message, &avps, end);
    check_kind(version, &message, &avps);
    check_values(version, &message, &avps);
    check_unrecognised(version, &message, &avps);
    if message.fault().is_none() {
        check_rewritten(version, &message, &avps);
    }
}

/// Checks that the AVPs are contiguous, up to the end or to an invalid one; returns why the walk ended early.
fn check_walk(body: &[u8], avps: &[Avp<'_>]) -> Option<Fault> {
    let mut offset = 0;
    for avp in avps {
        assert_eq!(avp.offset, offset);
        assert_eq!(avp.value, &body[offset + 6..offset + 6 + avp.value.len()]);
        offset += 6 + avp.value.len();
    }
    let rest = &body[offset..];
    if rest.is_empty() {
        None
    } else if rest.len() >= 6 && u16::from_be_bytes([rest[0], rest[1]]) & 0x3ff < 6 {
        Some(Fault::ShortAvp { offset })
    } else {
        Some(Fault::PastEnd { offset })
    }
}

/// The fault of each AVP by itself; the message reports the first.
fn check_fault(version: Version, message: &Message<'_>, avps: &[Avp<'_>], end: Option<Fault>) {
    let of = |avp: &Avp<'_>| {
        let legible = version == Version::V3 || avp.reserved == 0;
        if avp.offset == 0 && (avp.attribute != 0 || !legible) {
            return Some(Fault::NoMessageType);
        }
        let attribute = match avp.offset {
            0 => Attribute::MessageType,
            _ => recognised(version, avp)?,
        };
        let long_enough = attribute.allows_len(version, avp.value.len());
        if avp.hidden {
            Some(Fault::Hidden(attribute))
        } else if !long_enough && (avp.mandatory || avp.offset == 0) {
            Some(Fault::BadLength(attribute))
        } else {
            None
        }
    };
    let none_at_all = avps.is_empty().then_some(Fault::NoMessageType);
    let expected = avps.iter().find_map(of).or(end).or(none_at_all);
    assert_eq!(message.fault(), expected);
}

/// Whether the version's rules recognise the AVP.
fn recognised(version: Version, avp: &Avp<'_>) -> Option<Attribute> {
    let legible = version == Version::V3 || avp.reserved == 0;
    avp.known()
        .filter(|attribute| legible && attribute.defined_in(version))
}

fn check_kind(version: Version, message: &Message<'_>, avps: &[Avp<'_>]) {
    let first = avps.first().filter(|avp| avp.attribute == 0 && !avp.hidden);
    let first = first.filter(|avp| version == Version::V3 || avp.reserved == 0);
    let Some(avp) = first.filter(|avp| avp.value.len() == 2) else {
        assert_eq!(message.kind(), MessageType::Unknown(0));
        assert!(message.fault().is_some());
        return;
    };
    let number = u16::from_be_bytes([avp.value[0], avp.value[1]]);
    assert_eq!(message.kind().number(), number);
    assert_eq!(message.kind_mandatory(), avp.mandatory);
    assert!(avp.vendor == 0 || matches!(message.kind(), MessageType::Unknown(_)));
}

/// Checks that a value is that of the first AVP that may supply it.
fn check_values(version: Version, message: &Message<'_>, avps: &[Avp<'_>]) {
    for &attribute in Attribute::all() {
        let mut candidates = avps.iter().filter(|avp| {
            recognised(version, avp) == Some(attribute)
                && !avp.hidden
                && attribute.allows_len(version, avp.value.len())
        });
        let value = message.get(attribute);
        assert_eq!(
            value,
            candidates.next().map(|avp| avp.value),
            "{attribute:?}"
        );
        assert_eq!(message.has(attribute), value.is_some());
        let len = value.map(<[u8]>::len);
        assert_eq!(message.u16(attribute).is_some(), len == Some(2));
        assert_eq!(message.u32(attribute).is_some(), len == Some(4));
        assert_eq!(message.u64(attribute).is_some(), len == Some(8));
    }
    let speeds = avps.iter().filter(|avp| {
        let update = Attribute::ConnectSpeedUpdate;
        recognised(version, avp) == Some(update)
            && !avp.hidden
            && update.allows_len(version, avp.value.len())
    });
    let speeds = speeds.map(|avp| ConnectSpeed::parse(version, avp.value).unwrap());
    assert!(message.speeds().eq(speeds));
    let cause = message.disconnect_cause();
    assert_eq!(
        cause.is_some(),
        message.has(Attribute::PppDisconnectCauseCode)
    );
    let code = message.result_code();
    assert_eq!(code.is_some(), message.has(Attribute::ResultCode));
    assert!(code.is_none_or(|code| code.error.is_some() || code.message.is_empty()));
}

fn check_unrecognised(version: Version, message: &Message<'_>, avps: &[Avp<'_>]) {
    let excused = |avp: &Avp<'_>| {
        let of_v2 = avp
            .known()
            .is_some_and(|attribute| attribute.defined_in(Version::V2));
        version == Version::V3 && message.kind() == MessageType::Sccrq && of_v2
    };
    // The first AVP is a vendor's message type, which the type already shows.
    let of_vendor = |avp: &Avp<'_>| {
        let legible = version == Version::V3 || avp.reserved == 0;
        avp.offset == 0 && avp.attribute == 0 && legible
    };
    let mut unknown = avps.iter().filter(|avp| {
        avp.mandatory && recognised(version, avp).is_none() && !excused(avp) && !of_vendor(avp)
    });
    let expected = unknown.next().map(|avp| (avp.vendor, avp.attribute));
    assert_eq!(message.unrecognised_mandatory(), expected);
    let hidden = |avp: &&Avp<'_>| avp.hidden && recognised(version, avp).is_some();
    let hidden_type = avps
        .first()
        .is_some_and(|avp| avp.attribute == 0 && avp.hidden);
    assert!(message.has_hidden() == avps.iter().any(|avp| hidden(&avp)) || hidden_type);
}

/// Checks that the message, written again, holds the same values.
fn check_rewritten(version: Version, message: &Message<'_>, avps: &[Avp<'_>]) {
    let mut body = Vec::new();
    let mut writer = Writer::new(&mut body, version, message.kind());
    for avp in avps
        .iter()
        .skip(1)
        .filter(|avp| recognised(version, avp).is_some())
    {
        writer.raw(avp.mandatory, avp.vendor, avp.attribute, avp.value);
    }
    let again = Message::parse(version, &body);
    assert_eq!(
        (again.fault(), again.unrecognised_mandatory()),
        (None, None)
    );
    for &attribute in Attribute::all()
        .iter()
        .filter(|a| **a != Attribute::MessageType)
    {
        assert_eq!(
            again.get(attribute),
            message.get(attribute),
            "{attribute:?}"
        );
    }
}
