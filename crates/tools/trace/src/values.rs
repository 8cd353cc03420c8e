//! Values of flags: lists of connections, sizes, times, parts.

use std::fs;

use trace::part::PARTS_MAX;

/// Ranges of numbers of connections, both ends included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Numbers(Vec<(u64, u64)>);

impl Numbers {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.0
            .iter()
            .any(|&(first, last)| (first..=last).contains(&number))
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = std::ops::RangeInclusive<u64>> {
        self.0.iter().map(|&(first, last)| first..=last)
    }

    pub(super) fn add(&mut self, more: Numbers) {
        self.0.extend(more.0);
    }
}

/// `3`, `3-5`, `1,4-6`, or the name of a file that holds such a list.
pub(super) fn numbers_or_file(text: &str) -> Result<Numbers, String> {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return numbers(text);
    }
    let list = fs::read_to_string(text).map_err(|error| format!("cannot read {text}: {error}"))?;
    let list = numbers(&list).map_err(|why| format!("in {text}: {why}"))?;
    // A filter that no connection passes leaves an empty list. It must choose none, not all: no connection has number 0.
    match list.is_empty() {
        true => Ok(Numbers(vec![(0, 0)])),
        false => Ok(list),
    }
}

fn numbers(text: &str) -> Result<Numbers, String> {
    let mut ranges = Vec::new();
    let items = text.split(|c: char| c == ',' || c.is_whitespace());
    for item in items.filter(|item| !item.is_empty()) {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let number = |text: &str| text.parse::<u64>().ok().filter(|&number| number > 0);
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => ranges.push((first, last)),
            _ => {
                return Err(format!(
                    "'{item}' is neither the number of a connection nor a range"
                ));
            }
        }
    }
    Ok(Numbers(ranges))
}

/// A number of packets.
pub(super) fn count(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is not the number of a packet"))
}

/// A number of at least 1.
pub(super) fn positive(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| format!("'{text}' is not a number above 0"))
}

/// Bytes: `500000`, `64k`, `512M`, `2G`, in powers of 1024.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a size: write 512M or 2G");
    let lower = text.to_ascii_lowercase();
    let bare = lower.trim_end_matches("ib").trim_end_matches('b');
    let (number, shift) = match bare.as_bytes().last() {
        Some(b'k') => (&bare[..bare.len() - 1], 10),
        Some(b'm') => (&bare[..bare.len() - 1], 20),
        Some(b'g') => (&bare[..bare.len() - 1], 30),
        Some(b't') => (&bare[..bare.len() - 1], 40),
        _ => (bare, 0),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

/// A time in nanoseconds: `90`, `90s`, `0.5s`, `500ms`, `20m`, `2h`, `1d`; without a unit, seconds.
pub(super) fn time(text: &str) -> Result<i64, String> {
    let wrong = || format!("'{text}' is not a time: write 90s, 20m or 2h");
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "" | "s" => 1e9,
        "ms" => 1e6,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        "d" => 86400e9,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let time = number * scale;
    if !(1.0..=i64::MAX as f64 / 4.0).contains(&time) {
        return Err(wrong());
    }
    Ok(time as i64)
}

/// `K/N`: part K, from 0, of N.
pub(super) fn part(text: &str) -> Result<(u32, u32), String> {
    let wrong = || format!("'{text}' is not a part: write 0/8 to 7/8 for the parts of eight");
    let (part, of) = text.split_once('/').ok_or_else(wrong)?;
    match (part.parse(), of.parse()) {
        (Ok(part), Ok(of)) if part < of && of <= PARTS_MAX => Ok((part, of)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_hold_numbers_and_ranges_apart_by_commas_or_blanks() {
        let list = numbers("1,4-6 9\n").unwrap();
        let held: Vec<u64> = (0..12).filter(|&number| list.has(number)).collect();
        assert_eq!(held, [1, 4, 5, 6, 9]);
        for wrong in ["0", "6-4", "1-", "x", "1,,y"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size("77"), Ok(77));
        assert!(size("").is_err() && size("M").is_err() && size("99999999999T").is_err());
        assert_eq!(time("90"), Ok(90_000_000_000));
        assert_eq!(time("0.5s"), Ok(500_000_000));
        assert_eq!(time("2h"), Ok(7_200_000_000_000));
        for wrong in ["", "h", "-1s", "0", "1y", "nan", "1e300h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn parts_count_from_zero() {
        assert_eq!(part("0/8"), Ok((0, 8)));
        assert_eq!(part("7/8"), Ok((7, 8)));
        for wrong in ["8/8", "2", "2/", "0/0", "-1/8", "0/99999"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }
}
