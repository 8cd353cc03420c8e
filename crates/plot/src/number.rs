//! Numbers as people read them.

/// `value` with `decimals` digits after the point and a comma between thousands.
///
/// A value that is not finite gives `-`.
pub fn grouped(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    if value < 0.0 && text.bytes().any(|b| b.is_ascii_digit() && b != b'0') {
        out.push('-');
    }
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// `value` rounded to three significant digits, with commas; `0` for zero.
///
/// Whole parts keep all their digits: 12345.6 gives `12,346`.
pub fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let magnitude = value.abs().log10().floor();
    if magnitude < -4.0 {
        return scientific(value);
    }
    let decimals = (2.0 - magnitude).max(0.0) as usize;
    let text = grouped(value, decimals);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A span of `seconds` in the units a person would use: `350 ms`, `24 min`, `3 h 5 min`.
pub fn human_seconds(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "-".into();
    }
    match seconds.abs() {
        0.0 => "0 s".into(),
        s if s < 0.999_5e-6 => format!("{} ns", short(seconds * 1e9)),
        s if s < 0.999_5e-3 => format!("{} \u{b5}s", short(seconds * 1e6)),
        s if s < 0.999_5 => format!("{} ms", short(seconds * 1e3)),
        s if s < 119.5 => format!("{} s", short(seconds)),
        s if s < 7170.0 => format!("{} min", short((seconds / 6.0).round() / 10.0)),
        s if s < 48.0 * 3600.0 => {
            let minutes = (seconds / 60.0).round();
            let (hours, rest) = ((minutes / 60.0).trunc(), minutes % 60.0);
            if rest == 0.0 {
                format!("{hours} h")
            } else {
                format!("{hours} h {rest} min")
            }
        }
        _ => format!("{} days", short((seconds / 8640.0).round() / 10.0)),
    }
}

/// Whole `seconds` as a clock shows them: `0:30`, `12:00`, `1:00:00`.
pub(crate) fn clock(seconds: f64) -> String {
    let all = seconds.abs().round() as u64;
    let (hours, minutes, rest) = (all / 3600, all / 60 % 60, all % 60);
    let sign = if seconds <= -0.5 { "-" } else { "" };
    match hours {
        0 => format!("{sign}{minutes}:{rest:02}"),
        _ => format!("{sign}{hours}:{minutes:02}:{rest:02}"),
    }
}

/// A tick's label for a log axis.
pub(crate) fn log_tick(value: f64) -> String {
    let exponent = value.log10().floor();
    if (-4.0..7.0).contains(&exponent) {
        grouped(value, (-exponent).max(0.0) as usize)
    } else {
        scientific(value)
    }
}

/// `2×10⁻⁷`, or `10⁹` when the mantissa is one.
fn scientific(value: f64) -> String {
    let exponent = value.abs().log10().floor();
    let mantissa = grouped(value / 10f64.powf(exponent), 1);
    let mantissa = mantissa.trim_end_matches(".0");
    let power: String = format!("{exponent}")
        .chars()
        .map(|c| match c {
            '-' => '\u{207b}',
            '1' => '\u{b9}',
            '2' => '\u{b2}',
            '3' => '\u{b3}',
            // The remaining superscript digits are in one run of code points.
            digit => char::from_u32(0x2070 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit),
        })
        .collect();
    if mantissa == "1" {
        format!("10{power}")
    } else {
        format!("{mantissa}\u{d7}10{power}")
    }
}
