//! Times as people write them: RFC 3339, or seconds since 1970.

const DAY_S: i64 = 86_400;

/// Days from 1 January 1970 to a day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Counted from 1 March, so that a leap day is a year's last day.
    let year = if month > 2 { year } else { year - 1 };
    let month = (month + 9) % 12;
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Milliseconds since 1970 of a time such as `2026-11-23T12:00:00Z`, `2026-11-23 12:00:00+01:00` or `@1795435200`. A time
/// without an offset is in UTC.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "\"{text}\" is no time; write it as 2026-11-23T12:00:00Z, 2026-11-23T13:00:00+01:00 or @1795435200"
        )
    };
    if let Some(seconds) = text.strip_prefix('@') {
        let seconds: f64 = seconds.parse().map_err(|_| wrong())?;
        let is_in_range = (0.0..=253_402_300_799.0).contains(&seconds);
        return is_in_range
            .then_some((seconds * 1000.0) as u64)
            .ok_or_else(wrong);
    }
    read(text).ok_or_else(wrong)
}

fn read(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let number = |text: &str, digits: usize| -> Option<i64> {
        let is_number = text.len() == digits && text.bytes().all(|one| one.is_ascii_digit());
        is_number.then(|| text.parse().ok()).flatten()
    };
    let mut date = date.split('-');
    let year = number(date.next()?, 4)?;
    let month = number(date.next()?, 2)?;
    let day = number(date.next()?, 2)?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if date.next().is_some() || !(1..=12).contains(&month) || !(1..=last).contains(&day) {
        return None;
    }
    let (time, offset_s) = match time.strip_suffix(['Z', 'z']) {
        Some(time) => (time, 0),
        None => match time.rfind(['+', '-']) {
            None => (time, 0),
            Some(at) => {
                let (hours, minutes) = time[at + 1..].split_once(':')?;
                let offset = number(hours, 2)? * 3600 + number(minutes, 2)? * 60;
                let sign = if time[at..].starts_with('-') { -1 } else { 1 };
                (&time[..at], sign * offset)
            }
        },
    };
    let mut time = time.split(':');
    let hour = number(time.next()?, 2)?;
    let minute = number(time.next()?, 2)?;
    let (second, millis) = match time.next() {
        None => (0, 0),
        Some(second) => {
            let (whole, part) = second.split_once('.').unwrap_or((second, ""));
            let is_number = part.bytes().all(|one| one.is_ascii_digit());
            let part: String = part.chars().chain("000".chars()).take(3).collect();
            (
                number(whole, 2)?,
                is_number.then(|| part.parse().ok()).flatten()?,
            )
        }
    };
    if time.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second - offset_s;
    let millis: i64 = seconds * 1000 + millis;
    millis.try_into().ok()
}

/// A time in milliseconds since 1970 as RFC 3339 in UTC.
pub(crate) fn show(millis: u64) -> String {
    let (day, rest) = ((millis / 86_400_000) as i64 + 719_468, millis % 86_400_000);
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    let (second, millis) = (rest / 1000, rest % 1000);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_shown() {
        for (text, shown) in [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
            ("2024-02-29T23:59:59.007Z", "2024-02-29T23:59:59.007Z"),
            ("2026-11-23 12:00", "2026-11-23T12:00:00.000Z"),
            ("2026-11-23T12:00:00+01:30", "2026-11-23T10:30:00.000Z"),
            ("2026-11-23T23:00:00-02:00", "2026-11-24T01:00:00.000Z"),
            ("@1795435200.5", "2026-11-23T12:00:00.500Z"),
        ] {
            assert_eq!(parse(text).map(show), Ok(shown.to_owned()), "{text}");
        }
        for wrong in [
            "",
            "yesterday",
            "2026-13-01T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2026-11-23",
            "2026-11-23T24:00:00Z",
            "2026-11-23T1:00:00Z",
            "@-5",
            "@nan",
            "1960-01-01T00:00:00Z",
            "2026-11-23T12:00:00+1",
            "2026-11-23T12:00:00.ä",
        ] {
            parse(wrong).expect_err(wrong);
        }
    }
}
