//! Hidden AVPs. The first octet of an input is the version, 2 or 3. The rest is a body, and parts of it also
//! serve as a value to hide and decrypt.

use wire::l2tp::{Attribute, Avps, HiddenError, MessageType, Version, Writer, hidden, unhide};

const SECRET: &[u8] = b"lantern";

/// Takes a version and a body.
///
/// # Panics
/// If anything but hidden values changes, or hiding is not reversible.
pub fn target(data: &[u8]) {
    let Some((&version, body)) = data.split_first() else {
        return;
    };
    let key = match version {
        3 => hidden::shared_key(SECRET).to_vec(),
        _ => SECRET.to_vec(),
    };
    let mut clear = Vec::new();
    match unhide(body, &key, &mut clear) {
        Ok(()) => check_clear(body, &clear, &key),
        Err(error) => check_error(body, &clear, error),
    }
    check_round_trip(body, &key);
}

fn check_clear(body: &[u8], clear: &[u8], key: &[u8]) {
    assert!(clear.len() <= body.len());
    let (mut before, mut after) = (Avps::new(body), Avps::new(clear));
    assert_eq!(before.clone().count(), after.clone().count());
    for (old, new) in before.by_ref().zip(after.by_ref()) {
        assert_eq!((old.vendor, old.attribute), (new.vendor, new.attribute));
        assert_eq!((old.mandatory, old.reserved), (new.mandatory, new.reserved));
        let unhidden = old.hidden && old.known().is_some_and(Attribute::may_hide);
        assert_eq!(new.hidden, old.hidden && !unhidden);
        if unhidden {
            assert!(new.value.len() + 2 <= old.value.len());
        } else {
            assert_eq!(new.value, old.value);
        }
    }
    assert_eq!((before.next(), after.next()), (None, None));
    assert_eq!(before.fault().is_some(), after.fault().is_some());
    let mut again = Vec::new();
    assert_eq!(unhide(clear, key, &mut again), Ok(()));
    assert_eq!(again, clear, "nothing is left to unhide");
}

fn check_error(body: &[u8], clear: &[u8], error: HiddenError) {
    assert!(clear.is_empty());
    let attribute = match error {
        HiddenError::NoRandomVector(attribute)
        | HiddenError::Short(attribute)
        | HiddenError::OriginalLength(attribute) => attribute,
    };
    assert!(attribute.may_hide());
    assert!(Avps::new(body).any(|avp| avp.hidden && avp.known() == Some(attribute)));
}

/// Hides parts of the input with other parts as key.
fn check_round_trip(octets: &[u8], key: &[u8]) {
    let cut = |n: usize, of: usize| &octets[octets.len() * (n - 1) / of..octets.len() * n / of];
    let (value, vector, padding) = (cut(1, 3), cut(2, 3), cut(3, 3));
    let value = &value[..value.len().min(1000)];
    let vector = &vector[..vector.len().min(1000)];
    let mut body = Vec::new();
    let mut writer = Writer::new(&mut body, Version::V2, MessageType::Iccn);
    writer.random_vector(vector);
    writer.hidden(Attribute::ProxyAuthenResponse, value, key, vector, padding);
    let mut clear = Vec::new();
    assert_eq!(unhide(&body, key, &mut clear), Ok(()));
    let found = Avps::new(&clear).last().expect("what was hidden");
    assert_eq!((found.value, found.hidden), (value, false));
}
