//! Texts of an untrusted peer, made safe for a log line or a terminal.

/// The longest part of a peer's text that is kept, in bytes.
const TEXT_MAX: usize = 128;

/// The longest result of [`shown`], in bytes: each byte of the text takes six at most, as `\u{1b}` does.
pub(crate) const SHOWN_MAX: usize = 6 * TEXT_MAX + "...".len();

/// A peer's text on one line: control characters, invalid UTF-8, quotes and backslashes are escaped, and the text is
/// cut after 128 bytes.
pub(crate) fn shown(text: &[u8]) -> Box<str> {
    let cut = &text[..text.len().min(TEXT_MAX)];
    let is_cut = cut.len() < text.len();
    let mut out = String::with_capacity(cut.len());
    let mut chunks = cut.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        for c in chunk.valid().chars() {
            match c {
                '\'' => out.push(c),
                c => out.extend(c.escape_debug()),
            }
        }
        // The last character may be cut in half.
        if !(is_cut && chunks.peek().is_none()) {
            out.extend(chunk.invalid().escape_ascii().map(char::from));
        }
    }
    if is_cut {
        out.push_str("...");
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_bounded_line_of_visible_characters() {
        let cases: [(&[u8], &str); 6] = [
            (b"", ""),
            (
                "no address for Zo\u{eb}".as_bytes(),
                "no address for Zo\u{eb}",
            ),
            (b"two\r\nlines\x1b[2J\0", r"two\r\nlines\u{1b}[2J\0"),
            ("\u{202e}drawkcab".as_bytes(), r"\u{202e}drawkcab"),
            (b"\xff\"\\\xc3", r#"\xff\"\\\xc3"#),
            (b"can't\tb", r"can't\tb"),
        ];
        for (text, expected) in cases {
            assert_eq!(&*shown(text), expected);
        }
        let long = "\u{eb}".repeat(100);
        assert_eq!(
            *shown(long.as_bytes()),
            *format!("{}...", "\u{eb}".repeat(64))
        );
        let odd = format!("x{long}");
        assert_eq!(
            *shown(odd.as_bytes()),
            *format!("x{}...", "\u{eb}".repeat(63))
        );
        assert!(shown(&[0xff; 60_000]).len() <= 4 * TEXT_MAX + 3);
        assert_eq!(shown(&[0x1b; 60_000]).len(), SHOWN_MAX);
    }
}
