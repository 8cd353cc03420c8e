//! Values that operators write in rules: each is refused with a reason, or printed with the same meaning.

use core::fmt::Display;
use core::str::FromStr;

use qos::classify::{Key, KeySet, Ports, Prefix};
use wire::flow::Dscp;

/// Takes a text.
///
/// # Panics
/// If a parsed value prints differently, or an error has no text.
pub fn target(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else {
        return;
    };
    round::<Key>(text);
    round::<KeySet>(text);
    round::<Prefix>(text);
    round::<Ports>(text);
    round::<Dscp>(text);
}

fn round<T: FromStr<Err: Display> + Display + PartialEq>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            let again = printed.parse::<T>().ok();
            assert!(again == Some(value), "{text:?} became {printed:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
