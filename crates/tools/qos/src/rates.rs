//! Computes rates from the counters of two readings, and formats them.

use std::time::Duration;

use anyhow::{Result, ensure};
use control::rows::QosRates;

/// A queue's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counted {
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) drops: u64,
    pub(super) marks: u64,
}

/// The rates from `before` to `after`, which was read `span_ns` later. `None` if no time passed, or if a counter
/// decreased, as happens when another queue reuses the name.
pub(super) fn between(before: Counted, after: Counted, span_ns: u64) -> Option<QosRates> {
    let rise = |before: u64, after: u64| Some(u128::from(after.checked_sub(before)?));
    let tenths = |rise: u128| {
        let tenths = (rise * 10_000_000_000).checked_div(span_ns.into())?;
        Some(u64::try_from(tenths).ok()? as f64 / 10.0)
    };
    let bits = rise(before.bytes, after.bytes)? * 8_000_000_000;
    Some(QosRates {
        bps: u64::try_from(bits.checked_div(span_ns.into())?).ok()?,
        pps: tenths(rise(before.packets, after.packets)?)?,
        drops_ps: tenths(rise(before.drops, after.drops)?)?,
        marks_ps: tenths(rise(before.marks, after.marks)?)?,
    })
}

/// The sum of both.
pub(super) fn sum(one: QosRates, other: QosRates) -> QosRates {
    QosRates {
        bps: one.bps.saturating_add(other.bps),
        pps: one.pps + other.pps,
        drops_ps: one.drops_ps + other.drops_ps,
        marks_ps: one.marks_ps + other.marks_ps,
    }
}

/// "9.87 Mbit/s, 823 p/s, dropped 2/s".
pub(super) fn words(rates: &QosRates) -> String {
    let mut words = format!("{}, {} p/s", bits(rates.bps), count(rates.pps));
    for (what, rate) in [("dropped", rates.drops_ps), ("marked", rates.marks_ps)] {
        if rate > 0.0 {
            words.push_str(&format!(", {what} {}/s", count(rate)));
        }
    }
    words
}

/// A rate with three digits: "9.87 Mbit/s".
pub(super) fn bits(bps: u64) -> String {
    let (number, unit) = scaled(bps, 1_000);
    format!("{number} {unit}bit/s")
}

/// Bytes with three digits: "12.3 MB".
pub(super) fn octets(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        _ => {
            let (number, unit) = scaled(bytes, 1_000);
            format!("{number} {unit}B")
        }
    }
}

/// A whole number above ten, otherwise with one decimal if it is not 0.
pub(super) fn count(number: f64) -> String {
    match number {
        0.0 => "0".to_owned(),
        0.0..10.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

/// Three digits and the SI prefix.
fn scaled(number: u64, from: u64) -> (String, &'static str) {
    if number < from {
        return (number.to_string(), "");
    }
    let mut value = number as f64 / 1e3;
    let mut units = ["k", "M", "G", "T", "P", "E"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    // A value that would be rounded to 1000 takes the next prefix.
    while value >= 999.5
        && let Some(next) = units.next()
    {
        value /= 1e3;
        unit = next;
    }
    let digits = match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    (format!("{value:.digits$}"), unit)
}

/// Parses seconds as typed (1, 0.5), from a tenth of a second to an hour.
pub(super) fn interval(text: &str) -> Result<Duration> {
    let seconds = text.parse::<f64>().unwrap_or(f64::NAN);
    ensure!(
        (0.1..=3_600.0).contains(&seconds),
        "\"{text}\" is no interval; give seconds from 0.1 to 3600"
    );
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(bytes: u64, packets: u64) -> Counted {
        Counted {
            bytes,
            packets,
            drops: packets / 10,
            marks: 0,
        }
    }

    #[test]
    fn a_rate_is_what_a_counter_rose_by_over_the_time() {
        let rates = between(counted(1_000, 10), counted(2_001_000, 1_510), 2_000_000_000);
        let rates = rates.expect("rates");
        assert_eq!(
            (rates.bps, rates.pps, rates.drops_ps),
            (8_000_000, 750.0, 75.0)
        );
        assert_eq!(words(&rates), "8.00 Mbit/s, 750 p/s, dropped 75/s");
        let most = between(counted(0, 0), counted(u64::MAX, u64::MAX), 1);
        assert_eq!(most, None, "the rate overflows");
    }

    #[test]
    fn a_counter_that_went_back_has_no_rate_and_neither_has_no_time() {
        assert_eq!(between(counted(2, 2), counted(1, 3), 1_000), None);
        assert_eq!(between(counted(1, 1), counted(2, 2), 0), None);
    }

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!(
            [
                0,
                999,
                1_000,
                9_994_999,
                9_995_000,
                99_950_000,
                999_499_999,
                999_500_000
            ]
            .map(bits),
            [
                "0 bit/s",
                "999 bit/s",
                "1.00 kbit/s",
                "9.99 Mbit/s",
                "10.0 Mbit/s",
                "100 Mbit/s",
                "999 Mbit/s",
                "1.00 Gbit/s"
            ]
        );
        assert_eq!(bits(u64::MAX), "18.4 Ebit/s");
        assert_eq!(
            [9_999, 10_000, 12_340_000].map(octets),
            ["9999 B", "10.0 kB", "12.3 MB"]
        );
        assert_eq!([0.0, 0.25, 823.4].map(count), ["0", "0.2", "823"]);
    }

    #[test]
    fn an_interval_is_a_tenth_of_a_second_at_least() {
        assert_eq!(
            interval("0.5").expect("an interval"),
            Duration::from_millis(500)
        );
        for wrong in ["0", "0.01", "-1", "nan", "inf", "1e9", "1s", ""] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }
}
