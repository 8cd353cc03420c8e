//! Rates, sizes and times as tc(8) writes them.

use core::fmt;
use core::ops::RangeInclusive;

use base::Duration;
use settings::units::quantity;
pub use settings::units::rate;

/// Bits per second; prints as tc does: `2300Kbit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(pub u64);

/// Bytes; prints as tc does: `32Mb`, `1514b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Octets(pub u64);

/// A time; prints as tc does: `5ms`, `1.5s` as `1500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

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
