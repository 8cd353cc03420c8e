//! The commands that name the client's address and port: PORT (RFC 959 section 4.1.2) and EPRT (RFC 2428 section 2).

use core::fmt::Write;
use core::ops::Range;

/// Which command, with what has to stay as the client wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Port,
    /// EPRT, with its delimiter.
    Extended(u8),
}

/// A command's argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) form: Form,
    /// Where in the line the argument is.
    pub(crate) at: Range<usize>,
    pub(crate) address: u32,
    pub(crate) port: u16,
}

/// What a line of the client is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// One of the two commands, with an IPv4 address.
    Named(Command),
    /// One of the two commands, but with another argument.
    Unclear,
    Other,
}

/// Whether a line that may go on starts as one of the commands does.
pub(crate) fn is_start(line: &[u8]) -> bool {
    let starts = |verb: &[u8]| {
        let common = line.len().min(verb.len());
        common > 0 && line[..common].eq_ignore_ascii_case(&verb[..common])
    };
    starts(b"PORT ") || starts(b"EPRT ")
}

/// Reads a line, with or without its end. Verbs are in letters of either case (RFC 959 section 5.3).
pub(crate) fn read(line: &[u8]) -> Line {
    let content = line.strip_suffix(b"\n").unwrap_or(line);
    let content = content.strip_suffix(b"\r").unwrap_or(content);
    let Some((verb, argument)) = content.split_at_checked(5) else {
        return Line::Other;
    };
    let is_port = verb.eq_ignore_ascii_case(b"PORT ");
    if !is_port && !verb.eq_ignore_ascii_case(b"EPRT ") {
        return Line::Other;
    }
    let read = match is_port {
        true => port(argument).map(|ends| (Form::Port, ends)),
        false => extended(argument),
    };
    match read {
        Some((form, (address, port))) => Line::Named(Command {
            form,
            at: 5..content.len(),
            address,
            port,
        }),
        None => Line::Unclear,
    }
}

/// `h1,h2,h3,h4,p1,p2`
fn port(argument: &[u8]) -> Option<(u32, u16)> {
    let mut fields = argument.split(|&octet| octet == b',');
    let mut octets = [0; 6];
    for octet in &mut octets {
        *octet = u8::try_from(number(fields.next()?)?).ok()?;
    }
    let [a, b, c, d, high, low] = octets;
    let ends = (
        u32::from_be_bytes([a, b, c, d]),
        u16::from_be_bytes([high, low]),
    );
    fields.next().is_none().then_some(ends)
}

/// `|1|a.b.c.d|port|` with any delimiter.
fn extended(argument: &[u8]) -> Option<(Form, (u32, u16))> {
    let &delimiter = argument.first()?;
    // RFC 2428 section 2: ASCII 33 to 126. A digit or a dot would make it ambiguous.
    if !(33..=126).contains(&delimiter) || delimiter.is_ascii_digit() || delimiter == b'.' {
        return None;
    }
    let mut fields = argument[1..].split(|&octet| octet == delimiter);
    let (kind, address, port) = (fields.next()?, fields.next()?, fields.next()?);
    let is_end = fields.next() == Some(b"") && fields.next().is_none();
    if kind != b"1" || !is_end {
        return None;
    }
    let mut octets = address.split(|&octet| octet == b'.');
    let mut value = 0;
    for _ in 0..4 {
        value = value << 8 | u32::from(u8::try_from(number(octets.next()?)?).ok()?);
    }
    if octets.next().is_some() {
        return None;
    }
    Some((Form::Extended(delimiter), (value, number(port)?)))
}

/// A decimal number of one to five digits.
fn number(digits: &[u8]) -> Option<u16> {
    if digits.is_empty() || digits.len() > 5 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = digits.iter().map(|digit| u32::from(digit - b'0'));
    u16::try_from(digits.fold(0, |value, digit| value * 10 + digit)).ok()
}

/// The argument of a command with this address and port.
pub(crate) fn argument(form: Form, address: u32, port: u16) -> Text {
    let mut text = Text::default();
    let [a, b, c, d] = address.to_be_bytes();
    let done = match form {
        Form::Port => write!(text, "{a},{b},{c},{d},{},{}", port >> 8, port & 0xff),
        Form::Extended(delimiter) => {
            let bar = char::from(delimiter);
            write!(text, "{bar}1{bar}{a}.{b}.{c}.{d}{bar}{port}{bar}")
        }
    };
    debug_assert!(done.is_ok(), "no argument is longer than a text");
    text
}

/// A short text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Text {
    octets: [u8; 31],
    length: u8,
}

impl Text {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.octets[..usize::from(self.length)]
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let start = usize::from(self.length);
        let end = start + text.len();
        let to = self.octets.get_mut(start..end).ok_or(core::fmt::Error)?;
        to.copy_from_slice(text.as_bytes());
        self.length = end as u8;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(line: &str) -> Option<(Form, u32, u16)> {
        match read(line.as_bytes()) {
            Line::Named(one) => Some((one.form, one.address, one.port)),
            Line::Unclear | Line::Other => None,
        }
    }

    #[test]
    fn rfc_959_section_4_1_2_port_names_six_decimal_numbers() {
        let wanted = Some((Form::Port, 0x6440_0001, 5 * 256 + 1));
        assert_eq!(named("PORT 100,64,0,1,5,1\r\n"), wanted);
        assert_eq!(named("port 100,64,0,1,5,1\r\n"), wanted);
        for wrong in [
            "PORT 100,64,0,1,5\r\n",
            "PORT 100,64,0,1,5,1,2\r\n",
            "PORT 100,64,0,256,5,1\r\n",
            "PORT 100, 64,0,1,5,1\r\n",
            "PORT \r\n",
            "PORT -1,64,0,1,5,1\r\n",
        ] {
            assert_eq!(read(wrong.as_bytes()), Line::Unclear, "{wrong}");
        }
        for other in [
            "PORTER 1\r\n",
            "PASV\r\n",
            "PORT",
            "",
            "\r\n",
            "STOR PORT 1\r\n",
        ] {
            assert_eq!(read(other.as_bytes()), Line::Other, "{other}");
        }
    }

    #[test]
    fn rfc_2428_section_2_eprt_names_a_family_an_address_and_a_port() {
        // The section's first example.
        let wanted = Some((Form::Extended(b'|'), 0x84eb_0102, 6275));
        assert_eq!(named("EPRT |1|132.235.1.2|6275|\r\n"), wanted);
        let wanted = Some((Form::Extended(b'!'), 0x84eb_0102, 6275));
        assert_eq!(named("eprt !1!132.235.1.2!6275!\n"), wanted);
        for wrong in [
            // The second example: IPv6.
            "EPRT |2|1080::8:800:200C:417A|5282|\r\n",
            "EPRT |1|132.235.1|6275|\r\n",
            "EPRT |1|132.235.1.2|66275|\r\n",
            "EPRT |1|132.235.1.2|6275\r\n",
            "EPRT |1|132.235.1.2|6275||\r\n",
            "EPRT 111132.235.1.2162751\r\n",
            "EPRT \r\n",
        ] {
            assert_eq!(read(wrong.as_bytes()), Line::Unclear, "{wrong}");
        }
    }

    #[test]
    fn the_start_of_a_command_is_known() {
        assert!(is_start(b"P") && is_start(b"epr") && is_start(b"PORT 1,2"));
        assert!(!is_start(b"") && !is_start(b"PASV") && !is_start(b"QUIT"));
    }

    proptest! {
        #[test]
        fn an_argument_is_read_as_it_was_written(address: u32, port: u16, bar in 33_u8..=126) {
            prop_assume!(!bar.is_ascii_digit() && bar != b'.');
            for (verb, form) in [("PORT ", Form::Port), ("EPRT ", Form::Extended(bar))] {
                let text = argument(form, address, port);
                let line = [verb.as_bytes(), text.as_bytes(), b"\r\n"].concat();
                let at = 5..5 + text.as_bytes().len();
                prop_assert_eq!(read(&line), Line::Named(Command { form, at, address, port }));
            }
        }
    }
}
