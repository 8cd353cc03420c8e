//! What a source says about a subscriber's queues: rates, templates and the shared link. The sources are the
//! configuration, the users file, a RADIUS server and an operator's command; the crate `edge` combines them.
//!
//! Start reading at [`Queue`].

use core::fmt;

pub use settings::units::BitsPerSecond;

/// The longest name of a template or of a link, in bytes.
pub const NAME_OCTETS_MAX: usize = 64;
/// The lowest rate, in bits per second: below it, one full packet takes longer than a second.
pub const RATE_MIN: u64 = 8_000;
/// The highest rate, in bits per second.
pub const RATE_MAX: u64 = 1_000_000_000_000;

/// A direction of a subscriber's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// To the subscriber.
    Down = 0,
    /// From the subscriber.
    Up = 1,
}

impl Way {
    /// Both directions, in the order of their value.
    pub const ALL: [Self; 2] = [Self::Down, Self::Up];
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Down => "down",
            Self::Up => "up",
        })
    }
}

/// What one source says about a subscriber's queues. For each missing part, the next source decides.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Queue {
    /// Rates down and up in bits per second; 0: no limit.
    pub rates_bps: [Option<u64>; 2],
    /// The templates. The first is that of the queues; a second one differs only where the source has a template for each
    /// direction, and gives the rate up alone.
    pub templates: [Option<Box<str>>; 2],
    /// The shared link.
    pub link: Option<Box<str>>,
}

impl Queue {
    /// Whether the source says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Sets the template, which gives the rates of both directions.
    #[must_use]
    pub fn with_template(mut self, name: Option<&str>) -> Self {
        self.templates = [name.map(Into::into), name.map(Into::into)];
        self
    }

    /// Replaces each part that `other` has.
    pub fn replace_with(&mut self, other: &Self) {
        for way in Way::ALL {
            let at = way as usize;
            if other.rates_bps[at].is_some() {
                self.rates_bps[at] = other.rates_bps[at];
            }
            if other.templates[at].is_some() {
                self.templates[at].clone_from(&other.templates[at]);
            }
        }
        if other.link.is_some() {
            self.link.clone_from(&other.link);
        }
    }
}

/// Reads a rate: as tc writes it ("20mbit", "500kbit", or a bare number of bits per second), or "none" for no limit.
///
/// # Errors
/// What is wrong, and what would be right.
pub fn rate(text: &str) -> Result<u64, String> {
    if text.trim().eq_ignore_ascii_case("none") {
        return Ok(0);
    }
    match settings::units::rate(text) {
        Ok(bits) if bits > RATE_MAX => Err(format!(
            "{} is too much; the highest rate is {}",
            BitsPerSecond(bits),
            BitsPerSecond(RATE_MAX)
        )),
        Ok(bits) if bits < RATE_MIN => Err(format!(
            "{} is too little; the lowest rate is {}; is the unit missing, as in \"20mbit\"?",
            BitsPerSecond(bits),
            BitsPerSecond(RATE_MIN)
        )),
        read => read,
    }
}

/// Reads the name of a template or of a link.
///
/// # Errors
/// What is wrong, and what would be right.
pub fn name(text: &str) -> Result<Box<str>, String> {
    let right = "write 1 to 64 bytes without spaces, quotes or control characters";
    let is_bad = |c: char| c.is_control() || c.is_whitespace() || c == '"';
    match text.len() {
        0 => Err(format!("is empty; {right}")),
        1..=NAME_OCTETS_MAX if !text.contains(is_bad) => Ok(text.into()),
        1..=NAME_OCTETS_MAX => Err(format!("{text:?} is no name; {right}")),
        _ => Err(format!("has {} bytes; {right}", text.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_the_impossible_is_refused_with_words() {
        for (text, bits) in [
            ("20mbit", 20_000_000),
            ("500kbit", 500_000),
            ("none", 0),
            ("5gbit", 5_000_000_000),
        ] {
            assert_eq!(rate(text), Ok(bits), "{text}");
        }
        for (text, word) in [
            ("20", "is the unit missing"),
            ("2tbit", "the highest rate is 1000 Gbit/s"),
            ("fast", "write it as tc does"),
            ("0", "more than 0"),
        ] {
            let told = rate(text).unwrap_err();
            assert!(told.contains(word), "{told}");
        }
    }

    #[test]
    fn names_are_short_and_without_spaces() {
        assert_eq!(name("gold").as_deref(), Ok("gold"));
        let long = "x".repeat(65);
        for text in ["", "a b", "a\n", "\"", &long] {
            assert!(name(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_later_source_replaces_only_the_parts_that_it_has() {
        let mut first = Queue {
            rates_bps: [Some(1), Some(2)],
            link: Some("a".into()),
            ..Queue::default().with_template(Some("gold"))
        };
        let second = Queue {
            rates_bps: [None, Some(0)],
            templates: [Some("silver".into()), None],
            link: None,
        };
        first.replace_with(&second);
        assert_eq!(first.rates_bps, [Some(1), Some(0)]);
        assert_eq!(
            first.templates,
            [Some("silver".into()), Some("gold".into())]
        );
        assert_eq!(first.link.as_deref(), Some("a"));
        assert!(!first.is_empty() && Queue::default().is_empty());
    }
}
