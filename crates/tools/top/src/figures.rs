//! Numbers for people: three digits and a unit, and sparklines.

/// Whether the locale's characters are UTF-8. `variable` looks up an environment variable.
pub(crate) fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    // The first variable that is set decides (POSIX, "Environment Variables").
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(variable)
        .find(|value| !value.is_empty());
    set.is_some_and(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// A number with a comma between groups of three digits.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three digits and the SI prefix: "823", "9.87k", "1.2M".
pub(crate) fn short(number: f64) -> String {
    let (text, unit) = scaled(number);
    format!("{text}{unit}")
}

/// A rate of events: "0/s", "0.25/s", "41.0/s", "210k/s".
pub(crate) fn per_second(rate: f64) -> String {
    format!("{}/s", short(rate))
}

/// A rate of bits, from one of bytes: "9.87 Mbit/s".
pub(crate) fn bits(octets_per_second: f64) -> String {
    let (text, unit) = scaled(octets_per_second * 8.0);
    format!("{text} {unit}bit/s")
}

/// Bytes: "12.3 MB".
pub(crate) fn octets(bytes: f64) -> String {
    let (text, unit) = scaled(bytes);
    format!("{text} {unit}B")
}

/// A time given in microseconds: "850 us", "1.20 ms", "3.10 s".
pub(crate) fn micros(us: f64) -> String {
    match us {
        ..999.5 => format!("{} us", digits(us)),
        ..999_500.0 => format!("{} ms", digits(us / 1e3)),
        _ => format!("{} s", digits(us / 1e6)),
    }
}

/// A share: "0.4 %", "23 %".
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// A text without control characters, which a peer may have put into its name.
pub(crate) fn printable(text: &str) -> String {
    if text.chars().any(char::is_control) {
        text.escape_debug().to_string()
    } else {
        text.to_owned()
    }
}

fn scaled(number: f64) -> (String, &'static str) {
    let mut value = number;
    let mut unit = "";
    for next in ["k", "M", "G", "T", "P", "E"] {
        // A value that would be rounded to 1000 takes the next prefix.
        if value < 999.5 {
            break;
        }
        value /= 1e3;
        unit = next;
    }
    (digits(value), unit)
}

/// Three digits; a whole number below a hundred has no decimals.
fn digits(value: f64) -> String {
    if value < 99.95 && value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    match value {
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The newest values as bars, the newest at the right; the tallest bar is the largest value shown. A missing value is a
/// gap, and 0 is the lowest bar.
pub(crate) fn spark(values: &[Option<f64>], width: usize, is_ascii: bool) -> String {
    let bars: &[char; 8] = if is_ascii {
        &['_', '.', ':', '-', '=', '+', '*', '#']
    } else {
        &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
    };
    let shown = &values[values.len().saturating_sub(width)..];
    let largest = shown.iter().flatten().copied().fold(0.0, f64::max);
    let gap = width - shown.len();
    let bar = |value: &Option<f64>| match value {
        None => ' ',
        Some(value) if *value <= 0.0 => bars[0],
        // From 1 to 7, so that a small value differs from 0.
        Some(value) => bars[1 + ((value / largest) * 6.0).round().clamp(0.0, 6.0) as usize],
    };
    std::iter::repeat_n(' ', gap)
        .chain(shown.iter().map(bar))
        .collect()
}

/// A bar of `width` cells of which `share` is full.
pub(crate) fn gauge(share: f64, width: usize, is_ascii: bool) -> String {
    let (full, empty) = if is_ascii { ('#', '.') } else { ('█', '░') };
    let cells = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    let bar = std::iter::repeat_n(full, cells).chain(std::iter::repeat_n(empty, width - cells));
    bar.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [0.0, 0.25, 41.0, 41.25, 999.4, 999.5, 210_000.0, 9_994.0].map(per_second),
            [
                "0/s", "0.25/s", "41/s", "41.2/s", "999/s", "1.00k/s", "210k/s", "9.99k/s"
            ]
        );
        assert_eq!(bits(125_000_000.0), "1 Gbit/s");
        assert_eq!(bits(154_300.0), "1.23 Mbit/s");
        assert_eq!(octets(12_340_000.0), "12.3 MB");
        assert_eq!(
            [850.0, 1_200.0, 3_100_000.0].map(micros),
            ["850 us", "1.20 ms", "3.10 s"]
        );
        assert_eq!(
            [0.004, 0.0995, 0.234, 1.0].map(percent),
            ["0.4 %", "10 %", "23 %", "100 %"]
        );
    }

    #[test]
    fn a_sparkline_ends_with_the_newest_value_and_shows_gaps() {
        let values = [Some(9.0), None, Some(0.0), Some(1.0), Some(4.0)];
        assert_eq!(spark(&values, 4, false), " ▁▄█");
        assert_eq!(spark(&values, 7, true), "  # _:=");
        assert_eq!(spark(&[], 3, false), "   ");
    }

    #[test]
    fn the_locale_decides_between_blocks_and_ascii() {
        let of = |set: &'static [(&str, &str)]| {
            is_utf8(move |name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(of(&[("LANG", "de_DE.UTF-8")]));
        assert!(of(&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8"), ("LANG", "C")]));
        assert!(!of(&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")]));
        assert!(!of(&[]));
    }

    #[test]
    fn a_gauge_is_full_at_one() {
        assert_eq!(gauge(0.5, 4, true), "##..");
        assert_eq!(gauge(7.0, 4, true), "####");
        assert_eq!(gauge(0.0, 4, false), "░░░░");
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(printable("o'hara@é"), "o'hara@é");
    }
}
