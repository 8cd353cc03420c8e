//! Differentiated services code points by name: class selectors (RFC 2474), AF (RFC 2597), EF (RFC 3246), VOICE-ADMIT
//! (RFC 5865), LE (RFC 8622), as RFC 4594 uses them.

use core::fmt;
use core::str::FromStr;

/// A differentiated services code point, 0 to 63: the upper six bits of a TOS octet or traffic class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Dscp(u8);

/// Names of code points. The first name for a value is the one printed.
const NAMES: [(&str, u8); 27] = [
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("ef", 46),
    ("va", 44),
    ("le", 1),
    ("df", 0),
    ("be", 0),
    ("default", 0),
    ("voice-admit", 44),
];

impl Dscp {
    /// The default forwarding of best effort, 0 (RFC 2474 4.1).
    pub const DEFAULT: Dscp = Dscp(0);
    /// Expedited forwarding, 46 (RFC 3246).
    pub const EF: Dscp = Dscp(46);
    /// Class selector 1, 8: low-priority data in RFC 4594.
    pub const CS1: Dscp = Dscp(8);
    /// Lower effort, 1 (RFC 8622).
    pub const LE: Dscp = Dscp(1);

    /// The code point with that number; `None` above 63.
    #[must_use]
    pub const fn new(value: u8) -> Option<Dscp> {
        if value < 64 { Some(Dscp(value)) } else { None }
    }

    /// The code point in a TOS octet or traffic class; ECN bits are ignored (RFC 3168 5).
    #[must_use]
    pub const fn of(traffic_class: u8) -> Dscp {
        Dscp(traffic_class >> 2)
    }

    /// Its number, 0 to 63.
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }

    /// A TOS octet or traffic class with this code point, and 0 for ECN.
    #[must_use]
    pub const fn traffic_class(self) -> u8 {
        self.0 << 2
    }

    /// Its name, if it has one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let named = NAMES.iter().find(|(_, value)| *value == self.0);
        named.map(|(name, _)| *name)
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// The text does not name a code point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no DSCP {0:?}: there are cs0 to cs7, af11 to af43, ef, va, le, and numbers from 0 to 63 (0x3f)"
)]
pub struct UnknownDscp(String);

impl FromStr for Dscp {
    type Err = UnknownDscp;

    /// Reads a name in any case, or a number, decimal or `0x` hexadecimal.
    fn from_str(text: &str) -> Result<Self, UnknownDscp> {
        let named = NAMES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text));
        let number = || match text.strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let number = || number().filter(|_| !text.contains('+'));
        named
            .map(|(_, value)| *value)
            .or_else(number)
            .and_then(Dscp::new)
            .ok_or_else(|| UnknownDscp(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4594 figure 3, RFC 5865 2.3 and RFC 8622 5, as the bits printed there.
    const PUBLISHED: [(&str, u8); 23] = [
        ("cs0", 0b00_0000),
        ("cs1", 0b00_1000),
        ("cs2", 0b01_0000),
        ("cs3", 0b01_1000),
        ("cs4", 0b10_0000),
        ("cs5", 0b10_1000),
        ("cs6", 0b11_0000),
        ("cs7", 0b11_1000),
        ("af11", 0b00_1010),
        ("af12", 0b00_1100),
        ("af13", 0b00_1110),
        ("af21", 0b01_0010),
        ("af22", 0b01_0100),
        ("af23", 0b01_0110),
        ("af31", 0b01_1010),
        ("af32", 0b01_1100),
        ("af33", 0b01_1110),
        ("af41", 0b10_0010),
        ("af42", 0b10_0100),
        ("af43", 0b10_0110),
        ("ef", 0b10_1110),
        ("va", 0b10_1100),
        ("le", 0b00_0001),
    ];

    #[test]
    fn the_rfcs_names_have_the_rfcs_values_both_ways() {
        for (name, value) in PUBLISHED {
            let dscp: Dscp = name.parse().expect("a name");
            assert_eq!((dscp.value(), dscp.to_string().as_str()), (value, name));
            assert_eq!(dscp.traffic_class(), value << 2);
            assert_eq!(name.to_uppercase().parse(), Ok(dscp));
        }
    }

    #[test]
    fn every_code_point_is_read_as_it_is_printed() {
        for value in 0..64 {
            let dscp = Dscp::new(value).expect("six bits");
            assert_eq!(dscp.to_string().parse(), Ok(dscp));
            assert_eq!(value.to_string().parse(), Ok(dscp));
            assert_eq!(format!("0x{value:02x}").parse(), Ok(dscp));
            for ecn in 0..4 {
                assert_eq!(Dscp::of(value << 2 | ecn), dscp);
            }
        }
    }

    #[test]
    fn what_is_no_code_point_is_refused_with_what_there_is() {
        for text in [
            "", "af51", "64", "0x40", "-1", "256", "cs8", "ef ", "+", "+8", "0x+8", "0x",
        ] {
            let error = text.parse::<Dscp>().expect_err("no code point");
            assert!(error.to_string().contains("cs0 to cs7"), "{error}");
        }
        assert_eq!(Dscp::new(64), None);
    }
}
