//! Rates as tc(8) writes them, and numbers with units in general. Files, attributes and command lines share this reader.

use std::fmt;

/// Bits per second; prints for people: `20 Mbit/s`, `1.5 Gbit/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitsPerSecond(pub u64);

impl fmt::Display for BitsPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..1_000 => return write!(f, "{} bit/s", self.0),
            1_000..1_000_000 => (1_000, "kbit/s"),
            1_000_000..1_000_000_000 => (1_000_000, "Mbit/s"),
            _ => (1_000_000_000, "Gbit/s"),
        };
        let thousandths = u128::from(self.0) * 1_000 / unit;
        let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        write!(f, "{text} {name}")
    }
}

const BITS: [(&str, u64); 18] = [
    ("", 1),
    ("bit", 1),
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("tbit", 1_000_000_000_000),
    ("kibit", 1 << 10),
    ("mibit", 1 << 20),
    ("gibit", 1 << 30),
    ("tibit", 1 << 40),
    ("bps", 8),
    ("kbps", 8_000),
    ("mbps", 8_000_000),
    ("gbps", 8_000_000_000),
    ("tbps", 8_000_000_000_000),
    ("kibps", 8 << 10),
    ("mibps", 8 << 20),
    ("gibps", 8 << 30),
];

/// Bits per second: "2.3mbit", "500kbit", "1gbit", "250kbps" (bytes), or a bare number of bits. As in tc, `m` is not
/// milli, and upper case is allowed.
///
/// # Errors
/// What is wrong, and what would be right.
pub fn rate(text: &str) -> Result<u64, String> {
    match quantity(text, &BITS) {
        Some(0) => Err(format!("\"{text}\" is no rate; it must be more than 0")),
        Some(bits) => Ok(bits),
        None => Err(format!(
            "\"{text}\" is no rate; write it as tc does: \"2.3mbit\", \"500kbit\", \"1gbit\" (bits) or \"250kbps\" (octets)"
        )),
    }
}

/// A decimal number and a unit, exactly, rounded down to whole ones. `None` if the text is no such number.
#[must_use]
pub fn quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start();
    let unit = u128::from(units.iter().find(|(name, _)| *name == unit)?.1);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || whole.len() > 19 || fraction.len() > 12 {
        return None;
    }
    let digits = |digits: &str| match digits {
        "" => Some(0),
        digits => digits.parse::<u64>().ok().map(u128::from),
    };
    let scale = 10_u128.pow(fraction.len() as u32);
    let total = digits(whole)? * unit + digits(fraction)? * unit / scale;
    u64::try_from(total).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_tc_reads_them() {
        for (text, bits) in [
            ("2.3mbit", 2_300_000),
            ("19Mbit", 19_000_000),
            ("500 kbit", 500_000),
            ("1gbit", 1_000_000_000),
            ("100Gbit", 100_000_000_000),
            ("1000", 1_000),
            ("250kbps", 2_000_000),
            ("1bps", 8),
            ("1mibit", 1_048_576),
            ("0.001kbit", 1),
        ] {
            assert_eq!(rate(text), Ok(bits), "{text}");
        }
        for text in [
            "",
            "mbit",
            "fast",
            "-1mbit",
            "1..2mbit",
            "1mbyte",
            "0kbit",
            "1e6",
            "99999999tbit",
        ] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_rate_prints_in_its_largest_unit() {
        for (bits, text) in [
            (0, "0 bit/s"),
            (999, "999 bit/s"),
            (64_000, "64 kbit/s"),
            (1_500_000, "1.5 Mbit/s"),
            (20_000_000, "20 Mbit/s"),
            (2_488_320_000, "2.488 Gbit/s"),
            (u64::MAX, "18446744073.709 Gbit/s"),
        ] {
            assert_eq!(BitsPerSecond(bits).to_string(), text);
        }
    }
}
