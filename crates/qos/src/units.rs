//! Rates, sizes and times as tc(8) writes them.

use core::fmt;
use core::ops::RangeInclusive;

use base::Duration;

/// Bits per second; prints as tc does: `2300Kbit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(pub u64);

/// Bytes; prints as tc does: `32Mb`, `1514b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Octets(pub u64);

/// A time; prints as tc does: `5ms`, `1.5s` as `1500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

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

const OCTETS: [(&str, u64); 8] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1 << 30),
];

const NANOSECONDS: [(&str, u64); 11] = [
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("secs", 1_000_000_000),
    ("ms", 1_000_000),
    ("msec", 1_000_000),
    ("msecs", 1_000_000),
    ("us", 1_000),
    ("usec", 1_000),
    ("usecs", 1_000),
    ("ns", 1),
    ("nsec", 1),
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

/// Octets: "1514", "1514b", "32k", "4mb" (multiples of 1,024).
///
/// # Errors
/// What is wrong, and what would be right.
pub fn octets(text: &str) -> Result<u64, String> {
    quantity(text, &OCTETS).ok_or_else(|| {
        format!("\"{text}\" is no size; write octets: \"1514\", \"32k\" or \"4mb\" (of 1,024)")
    })
}

/// A time with its unit: "5ms", "1.5s", "800us".
///
/// # Errors
/// What is wrong, and what would be right.
pub fn time(text: &str) -> Result<Duration, String> {
    if let Some(ns) = quantity(text, &NANOSECONDS) {
        return Ok(Duration::from_nanos(ns));
    }
    Err(if text.trim().parse::<f64>().is_ok() {
        format!(
            "\"{text}\" has no unit; is it \"{0}ms\" or \"{0}s\"?",
            text.trim()
        )
    } else {
        format!("\"{text}\" is no time; write \"5ms\", \"800us\" or \"1.5s\"")
    })
}

/// A share of a whole in thousandths: "30%", "12.5%".
///
/// # Errors
/// What is wrong, and what would be right.
pub fn share(text: &str) -> Result<u32, String> {
    let wrong = || format!("\"{text}\" is no share; write it in percent: \"30%\"");
    let thousandths = quantity(text, &[("%", 10)]).ok_or_else(wrong)?;
    match u32::try_from(thousandths) {
        Ok(thousandths @ 1..=1_000) => Ok(thousandths),
        _ => Err(format!(
            "\"{text}\" is no share; it must be above 0% and at most 100%"
        )),
    }
}

/// A whole number in `range`.
pub(super) fn whole(range: RangeInclusive<u32>) -> impl Fn(&str) -> Result<u32, String> {
    move |text| {
        let (low, high) = (range.start(), range.end());
        match text.parse() {
            Ok(number) if range.contains(&number) => Ok(number),
            Ok(_) => Err(format!(
                "{text} is out of range; it must be {low} to {high}"
            )),
            Err(_) => Err(format!(
                "\"{text}\" is no whole number; write one from {low} to {high}"
            )),
        }
    }
}

/// A decimal number and a unit, exactly, rounded down to whole ones.
fn quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
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

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            (1_000_000_000_000, "T"),
            (1_000_000_000, "G"),
            (1_000_000, "M"),
            (1_000, "K"),
        ];
        scaled(f, self.0, &units)?;
        f.write_str("bit")
    }
}

impl fmt::Display for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, &[(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")])?;
        f.write_str("b")
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos();
        let units = [
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
            (1, "ns"),
        ];
        match units
            .iter()
            .find(|(unit, _)| ns >= *unit && ns.is_multiple_of(*unit))
        {
            Some((unit, name)) => write!(f, "{}{name}", ns / unit),
            None => f.write_str("0s"),
        }
    }
}

/// In the largest unit that gives a whole number.
fn scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)]) -> fmt::Result {
    match units
        .iter()
        .find(|(unit, _)| value >= *unit && value.is_multiple_of(*unit))
    {
        Some((unit, name)) => write!(f, "{}{name}", value / unit),
        None => write!(f, "{value}"),
    }
}

/// Bytes that take a millisecond at a rate.
pub(crate) fn bytes_in_a_millisecond(rate_bps: u64) -> u32 {
    u32::try_from(rate_bps / 8_000).unwrap_or(u32::MAX)
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
    fn sizes_times_and_shares_are_read() {
        assert_eq!(octets("32k"), Ok(32_768));
        assert_eq!(octets("4MB"), Ok(4 << 20));
        assert_eq!(octets("1514"), Ok(1_514));
        assert_eq!(time("5ms"), Ok(Duration::from_millis(5)));
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1_500)));
        assert!(time("20").is_err_and(|message| message.contains("\"20ms\"")));
        assert_eq!(share("12.5%"), Ok(125));
        assert!(share("0%").is_err());
        assert!(share("101%").is_err());
        assert!(share("30").is_err());
    }

    #[test]
    fn what_is_printed_is_read_back() {
        for bits in [
            1,
            999,
            2_300_000,
            19_000_000,
            1_000_000_007,
            3_000_000_000_000,
        ] {
            assert_eq!(rate(&Rate(bits).to_string()), Ok(bits));
        }
        assert_eq!(Rate(2_300_000).to_string(), "2300Kbit");
        assert_eq!(Octets(1_514).to_string(), "1514b");
        assert_eq!(octets(&Octets(32 << 20).to_string()), Ok(32 << 20));
    }
}
