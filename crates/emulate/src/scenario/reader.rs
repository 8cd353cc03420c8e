//! Reads the tables of a TOML document key by key, and notes every key that nobody asked for and every value that is
//! not what was asked for, so that all faults of a scenario are told at once.

use std::fmt::Display;
use std::ops::RangeInclusive;

use base::{Duration, nearest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::Notes;

/// A value and the octet of the file where it stands.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) at: usize,
}

/// One table of the document while its keys are taken.
pub(crate) struct Section<'d, 's, 'n> {
    name: &'static str,
    at: usize,
    table: &'d DeTable<'s>,
    known: Vec<&'static str>,
    notes: &'n mut Notes<'s>,
}

impl<'d, 's, 'n> Section<'d, 's, 'n> {
    /// The keys of `table`, which is called `name` (empty at the top) and starts at the octet `at`.
    pub(crate) fn new(
        table: &'d DeTable<'s>,
        name: &'static str,
        at: usize,
        notes: &'n mut Notes<'s>,
    ) -> Self {
        Self {
            name,
            at,
            table,
            known: Vec::new(),
            notes,
        }
    }

    /// The table `key` of `root`, if it is there and is one.
    pub(crate) fn open(
        root: &'d DeTable<'s>,
        key: &'static str,
        notes: &'n mut Notes<'s>,
    ) -> Option<Self> {
        let value = root.get(key)?;
        let at = value.span().start;
        match value.get_ref().as_table() {
            Some(table) => Some(Self::new(table, key, at, notes)),
            None => {
                let kind = describe(value.get_ref());
                notes.at(
                    at,
                    key,
                    format!("is {kind}; write it as a section, [{key}]"),
                );
                None
            }
        }
    }

    /// Runs `take` with each of the tables `[[key]]` of `root`, in their order.
    pub(crate) fn each(
        root: &'d DeTable<'s>,
        key: &'static str,
        notes: &'n mut Notes<'s>,
        mut take: impl FnMut(Section<'d, 's, '_>),
    ) {
        let Some(value) = root.get(key) else { return };
        let wrong = |at, value: &DeValue<'_>, notes: &mut Notes<'s>| {
            let kind = describe(value);
            notes.at(
                at,
                key,
                format!("is {kind}; write it as a list of sections, [[{key}]]"),
            );
        };
        let DeValue::Array(list) = value.get_ref() else {
            return wrong(value.span().start, value.get_ref(), notes);
        };
        for value in list.iter() {
            let at = value.span().start;
            match value.get_ref().as_table() {
                Some(table) => take(Section::new(table, key, at, notes)),
                None => wrong(at, value.get_ref(), notes),
            }
        }
    }

    /// Where the section starts.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Says that `key` is known, and read elsewhere.
    pub(crate) fn known(&mut self, key: &'static str) {
        self.known.push(key);
    }

    /// Whether `key` is given, rightly or wrongly.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Notes a fault with `key`.
    pub(crate) fn fault(&mut self, at: usize, key: &str, message: impl Into<String>) {
        let key = self.path(key);
        self.notes.at(at, key, message);
    }

    /// Notes that `key` is missing.
    pub(crate) fn missing(&mut self, key: &str, example: &str) {
        self.fault(
            self.at,
            key,
            format!("is missing; write for example {example}"),
        );
    }

    /// A string.
    pub(crate) fn string(&mut self, key: &'static str) -> Option<At<String>> {
        let value = self.take(key)?;
        let at = value.span().start;
        match value.get_ref() {
            DeValue::String(text) => Some(At {
                value: text.to_string(),
                at,
            }),
            other => self.wrong(at, key, other, "a string in quotes"),
        }
    }

    /// A string that `parse` understands, or else says what it should be.
    pub(crate) fn parsed<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<At<T>> {
        let text = self.string(key)?;
        match parse(&text.value) {
            Ok(value) => Some(At { value, at: text.at }),
            Err(message) => {
                self.fault(text.at, key, message);
                None
            }
        }
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, key: &'static str) -> Option<At<bool>> {
        let value = self.take(key)?;
        let at = value.span().start;
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(At { value: *flag, at }),
            other => self.wrong(at, key, other, "true or false"),
        }
    }

    /// An integer in `range`.
    pub(crate) fn integer(
        &mut self,
        key: &'static str,
        range: RangeInclusive<i64>,
    ) -> Option<At<i64>> {
        let value = self.take(key)?;
        let at = value.span().start;
        match value.get_ref() {
            DeValue::Integer(number) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(value) if range.contains(&value) => Some(At { value, at }),
                    _ => self.outside(at, key, number.as_str(), &range),
                }
            }
            other => self.wrong(at, key, other, "an integer"),
        }
    }

    /// A number, whole or with a fraction, in `range`.
    pub(crate) fn number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<f64>,
    ) -> Option<At<f64>> {
        let value = self.take(key)?;
        let at = value.span().start;
        self.real(key, at, value.get_ref(), &range)
    }

    /// A span of time that the file gives in units of `unit_ns` nanoseconds, in `range` of them.
    pub(crate) fn span(
        &mut self,
        key: &'static str,
        range: RangeInclusive<f64>,
        unit_ns: f64,
    ) -> Option<At<Duration>> {
        let number = self.number(key, range)?;
        Some(At {
            value: Duration::from_nanos((number.value * unit_ns).round() as u64),
            at: number.at,
        })
    }

    /// Seconds in `range_s`.
    pub(crate) fn seconds(
        &mut self,
        key: &'static str,
        range_s: RangeInclusive<f64>,
    ) -> Option<At<Duration>> {
        self.span(key, range_s, 1e9)
    }

    /// Two numbers in `range`, the first not above the second.
    pub(crate) fn pair(
        &mut self,
        key: &'static str,
        range: RangeInclusive<f64>,
    ) -> Option<At<(f64, f64)>> {
        let value = self.take(key)?;
        let at = value.span().start;
        let numbers: Vec<f64> = match value.get_ref() {
            DeValue::Array(list) if list.len() == 2 => list
                .iter()
                .filter_map(|v| self.real(key, v.span().start, v.get_ref(), &range))
                .map(|number| number.value)
                .collect(),
            other => return self.wrong(at, key, other, "two numbers, as in [10, 20]"),
        };
        let &[low, high] = numbers.as_slice() else {
            return None;
        };
        if low > high {
            self.fault(
                at,
                key,
                format!("{low} is above {high}; write the lower one first"),
            );
            return None;
        }
        Some(At {
            value: (low, high),
            at,
        })
    }

    /// One of the `choices` by name.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Option<At<T>> {
        let text = self.string(key)?;
        let found = choices.iter().find(|(name, _)| *name == text.value);
        if let Some((_, value)) = found {
            return Some(At {
                value: *value,
                at: text.at,
            });
        }
        let names: Vec<String> = choices.iter().map(|(n, _)| format!("\"{n}\"")).collect();
        let message = format!(
            "\"{}\" is not known; it can be {}",
            text.value,
            names.join(", ")
        );
        self.fault(text.at, key, message);
        None
    }

    /// A list of strings, at least one.
    pub(crate) fn strings(&mut self, key: &'static str) -> Option<Vec<At<String>>> {
        let value = self.take(key)?;
        let at = value.span().start;
        let list = match value.get_ref() {
            DeValue::Array(list) if !list.is_empty() => list,
            other => return self.wrong(at, key, other, "a list of strings, as in [\"a\", \"b\"]"),
        };
        let mut texts = Vec::new();
        for value in list.iter() {
            let at = value.span().start;
            match value.get_ref() {
                DeValue::String(text) => texts.push(At {
                    value: text.to_string(),
                    at,
                }),
                other => {
                    self.wrong::<()>(at, key, other, "a string in quotes");
                }
            }
        }
        Some(texts)
    }

    /// Notes every key of the section that none of the calls before asked for.
    pub(crate) fn finish(self) {
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !self.known.contains(&name) {
                let message = match nearest(name, &self.known) {
                    Some(right) => format!("unknown key; did you mean {right}?"),
                    None => format!("unknown key; known here: {}", self.known.join(", ")),
                };
                let key_path = self.path(name);
                self.notes.at(key.span().start, key_path, message);
            }
        }
    }

    fn path(&self, key: &str) -> String {
        if self.name.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.name)
        }
    }

    fn take(&mut self, key: &'static str) -> Option<&'d Spanned<DeValue<'s>>> {
        self.known.push(key);
        self.table.get(key)
    }

    fn real(
        &mut self,
        key: &str,
        at: usize,
        value: &DeValue<'_>,
        range: &RangeInclusive<f64>,
    ) -> Option<At<f64>> {
        let text = match value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            other => return self.wrong(at, key, other, "a number"),
        };
        match text.parse::<f64>() {
            Ok(value) if range.contains(&value) => Some(At { value, at }),
            _ => self.outside(at, key, text, range),
        }
    }

    fn wrong<T>(&mut self, at: usize, key: &str, found: &DeValue<'_>, wanted: &str) -> Option<T> {
        self.fault(
            at,
            key,
            format!("is {}; it must be {wanted}", describe(found)),
        );
        None
    }

    fn outside<T>(
        &mut self,
        at: usize,
        key: &str,
        found: &str,
        range: &RangeInclusive<impl Display>,
    ) -> Option<T> {
        let (low, high) = (range.start(), range.end());
        self.fault(
            at,
            key,
            format!("{found} is out of range; it must be {low} to {high}"),
        );
        None
    }
}

/// Puts a value in its place, if it was given.
pub(crate) fn set<T>(found: Option<At<T>>, to: &mut T) {
    if let Some(found) = found {
        *to = found.value;
    }
}

fn describe(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(list) if list.is_empty() => "an empty list",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}
