//! Domain names in the wire format of RFC 1035, section 3.1, as options of DHCPv6 (RFC 8415, section 10) and Router
//! Advertisements (RFC 8106, section 5.2) carry them: without compression.

/// Octets of the longest name.
pub const NAME_MAX: usize = 255;

/// Why a text is no domain name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NameError {
    /// A label is empty, or has more than 63 octets.
    #[error("a label of {0} octets; a label has 1 to 63")]
    Label(usize),
    /// The whole name is too long.
    #[error("longer than {NAME_MAX} octets")]
    Length,
    /// A character that no host name has.
    #[error("the character {0:?}; a name has letters, digits, '-' and '_'")]
    Character(char),
}

/// Appends a name such as `example.net`, with or without a dot at its end.
///
/// # Errors
/// See [`NameError`]; `out` is unchanged then.
pub fn encode(name: &str, out: &mut Vec<u8>) -> Result<(), NameError> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.len() + 2 > NAME_MAX {
        return Err(NameError::Length);
    }
    for label in name.split('.') {
        if !(1..=63).contains(&label.len()) {
            return Err(NameError::Label(label.len()));
        }
        let is_wrong = |one: &char| !one.is_ascii_alphanumeric() && !matches!(one, '-' | '_');
        if let Some(wrong) = label.chars().find(is_wrong) {
            return Err(NameError::Character(wrong));
        }
    }
    for label in name.split('.') {
        out.push(label.len() as u8);
        out.extend_from_slice(label.as_bytes());
    }
    out.push(0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_labels_and_wrong_ones_are_named() {
        let mut out = vec![9];
        encode("example.net.", &mut out).unwrap();
        assert_eq!(out, b"\x09\x07example\x03net\x00");
        let long = "a.".repeat(128);
        for (name, why) in [
            ("", NameError::Label(0)),
            ("a..b", NameError::Label(0)),
            (&"x".repeat(64), NameError::Label(64)),
            ("a b", NameError::Character(' ')),
            (&long, NameError::Length),
        ] {
            assert_eq!(encode(name, &mut out), Err(why), "{name}");
        }
        assert_eq!(out.len(), 14);
    }
}
