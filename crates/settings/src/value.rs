//! The methods of [`Section`] that read one value. Each notes a fault and returns `None` if the value is wrong. No I/O.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use base::{Duration, nearest};
use toml::de::DeValue;

use crate::fault::Words;
use crate::section::{At, Section, Value, describe};

impl<'a> Section<'a> {
    /// A string.
    pub fn string(&mut self, key: &'static str) -> Option<At<String>> {
        let At { value, at } = self.str(key)?;
        Some(At {
            value: value.to_owned(),
            at,
        })
    }

    /// A string that stays in the document.
    pub fn str(&mut self, key: &'static str) -> Option<At<&'a str>> {
        let value = self.take(key)?;
        self.str_of(key, value)
    }

    /// A string of so many bytes.
    pub fn sized(
        &mut self,
        key: &'static str,
        range: RangeInclusive<usize>,
    ) -> Option<At<&'a str>> {
        let text = self.str(key)?;
        let (low, high) = (range.start(), range.end());
        match text.value.len() {
            len if range.contains(&len) => return Some(text),
            0 => self.fault(
                text.at,
                key,
                format!("is empty; it must have {low} to {high} bytes"),
            ),
            len => self.fault(
                text.at,
                key,
                format!("has {len} bytes; it must have {low} to {high}"),
            ),
        }
        None
    }

    /// A string that `read` understands, or says what is wrong with it.
    pub fn parsed<T, E: Into<Words>>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<At<T>> {
        let text = self.str(key)?;
        self.understood(key, text.value, text.at, read)
    }

    /// A string, or a number as its text.
    pub fn text(&mut self, key: &'static str) -> Option<At<String>> {
        self.written(key, |text| Ok::<_, String>(text.to_owned()))
    }

    /// A string that `read` understands, or a number whose text it understands.
    pub fn written<T, E: Into<Words>>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<At<T>> {
        let value = self.take(key)?;
        let wanted = "a string in quotes or a number";
        let text = self.text_of(key, value, wanted)?;
        self.understood(key, &text, self.place_of(value), read)
    }

    /// What its text form stands for: an address, a network. `what` and `example` tell what to write.
    pub fn from_text<T: FromStr>(
        &mut self,
        key: &'static str,
        what: &str,
        example: &str,
    ) -> Option<At<T>> {
        self.parsed(key, |text| {
            let wrong = |_| format!("\"{text}\" is not {what}; write it as {key} = \"{example}\"");
            text.parse().map_err(wrong)
        })
    }

    /// `true` or `false`.
    pub fn flag(&mut self, key: &'static str) -> Option<At<bool>> {
        let value = self.take(key)?;
        let at = self.place_of(value);
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(At { value: *flag, at }),
            _ => self.wrong(key, value, "true or false"),
        }
    }

    /// An integer in `range` of `unit`, which may be empty.
    pub fn integer(
        &mut self,
        key: &'static str,
        range: RangeInclusive<i64>,
        unit: &str,
    ) -> Option<At<i64>> {
        let value = self.take(key)?;
        self.integer_of(key, value, &range, unit)
    }

    /// A number in `range` of `unit`, whole or with a fraction.
    pub fn number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<f64>,
        unit: &str,
    ) -> Option<At<f64>> {
        let value = self.take(key)?;
        self.number_of(key, value, &range, unit)
    }

    /// Seconds in `range_s`, whole or with a fraction.
    pub fn seconds(
        &mut self,
        key: &'static str,
        range_s: RangeInclusive<f64>,
    ) -> Option<At<Duration>> {
        let number = self.number(key, range_s, "seconds")?;
        Some(duration(number, 1e9))
    }

    /// Milliseconds in `range_ms`, whole or with a fraction.
    pub fn milliseconds(
        &mut self,
        key: &'static str,
        range_ms: RangeInclusive<f64>,
    ) -> Option<At<Duration>> {
        let number = self.number(key, range_ms, "milliseconds")?;
        Some(duration(number, 1e6))
    }

    /// One of the `choices` by name.
    pub fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Option<At<T>> {
        self.parsed(key, |text| choose(text, choices))
    }

    pub(crate) fn str_of(&self, key: &str, value: Value<'a>) -> Option<At<&'a str>> {
        let at = self.place_of(value);
        match value.get_ref() {
            DeValue::String(text) => Some(At { value: text, at }),
            _ => self.wrong(key, value, "a string in quotes"),
        }
    }

    /// A string, or a number as it would be written in a string: hexadecimal ones have their prefix.
    pub(crate) fn text_of(&self, key: &str, value: Value<'a>, wanted: &str) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Float(number) => Some(number.as_str().to_owned()),
            DeValue::Integer(number) => match number.radix() {
                10 => Some(number.as_str().to_owned()),
                16 => Some(format!("0x{}", number.as_str())),
                radix => {
                    let number = i64::from_str_radix(number.as_str(), radix).ok();
                    let text = number.map(|number| number.to_string());
                    text.or_else(|| self.wrong(key, value, wanted))
                }
            },
            _ => self.wrong(key, value, wanted),
        }
    }

    pub(crate) fn integer_of(
        &self,
        key: &str,
        value: Value<'a>,
        range: &RangeInclusive<i64>,
        unit: &str,
    ) -> Option<At<i64>> {
        let at = self.place_of(value);
        let DeValue::Integer(number) = value.get_ref() else {
            return self.no_number(key, value, "an integer", unit);
        };
        match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(value) if range.contains(&value) => Some(At { value, at }),
            _ => self.outside(at, key, number.as_str(), range, unit),
        }
    }

    pub(crate) fn number_of(
        &self,
        key: &str,
        value: Value<'a>,
        range: &RangeInclusive<f64>,
        unit: &str,
    ) -> Option<At<f64>> {
        let at = self.place_of(value);
        let text = match value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return self.no_number(key, value, "a number", unit),
        };
        match text.parse::<f64>() {
            Ok(value) if range.contains(&value) => Some(At { value, at }),
            _ => self.outside(at, key, text, range, unit),
        }
    }

    pub(crate) fn understood<T, E: Into<Words>>(
        &self,
        key: &str,
        text: &str,
        at: usize,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<At<T>> {
        match read(text) {
            Ok(value) => Some(At { value, at }),
            Err(words) => {
                self.fault(at, key, words);
                None
            }
        }
    }

    /// Notes a value of the wrong kind.
    pub(crate) fn wrong<T>(&self, key: &str, found: Value<'a>, wanted: &str) -> Option<T> {
        let message = format!("is {}", describe(found.get_ref()));
        let right = format!("it must be {wanted}");
        self.fault(self.place_of(found), key, (message, right));
        None
    }

    /// Notes a value that is no number. A number in quotes that has the key's unit is shown without them.
    fn no_number<T>(&self, key: &str, found: Value<'a>, kind: &str, unit: &str) -> Option<T> {
        let of = if unit.is_empty() { "" } else { " of " };
        let mut wanted = format!("{kind}{of}{unit}");
        if let Some(text) = found.get_ref().as_str() {
            let digits = text.trim_end_matches(|c: char| c.is_alphabetic() || c == ' ');
            let suffix = text[digits.len()..].trim();
            if !digits.is_empty() && digits.parse::<f64>().is_ok() {
                wanted += ", without quotes or unit";
                if suffix.is_empty() || key.ends_with(&format!("_{suffix}")) {
                    wanted += &format!(": {key} = {digits}");
                }
            }
        }
        self.wrong(key, found, &wanted)
    }

    fn outside<T>(
        &self,
        at: usize,
        key: &str,
        found: &str,
        range: &RangeInclusive<impl Display>,
        unit: &str,
    ) -> Option<T> {
        let (low, high) = (range.start(), range.end());
        let space = if unit.is_empty() { "" } else { " " };
        let right = format!("it must be {low} to {high}{space}{unit}");
        self.fault(at, key, (format!("{found} is out of range"), right));
        None
    }
}

/// Puts a value in its place, if it was given.
pub fn set<T>(found: Option<At<T>>, to: &mut T) {
    if let Some(found) = found {
        *to = found.value;
    }
}

/// One of the `choices` by name.
///
/// # Errors
/// The name that was probably meant, or all names.
pub fn choose<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, String> {
    if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
        return Ok(*value);
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let right = match nearest(text, &names) {
        Some(right) => format!("did you mean \"{right}\"?"),
        None => format!("it can be \"{}\"", names.join("\", \"")),
    };
    Err(format!("\"{text}\" is not known; {right}"))
}

fn duration(number: At<f64>, unit_ns: f64) -> At<Duration> {
    At {
        value: Duration::from_nanos((number.value * unit_ns).round() as u64),
        at: number.at,
    }
}
