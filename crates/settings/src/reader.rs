//! Reads the tables of a TOML document key by key, and notes every key that
//! nobody asked for and every value that is not what was asked for.
//!
//! Serde stops at the first fault; this goes on, so that an operator sees all of
//! them at once.

use std::fmt::Display;
use std::ops::RangeInclusive;

use base::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::fault::Notes;
use base::nearest;

/// A value and the byte of the file where it stands.
#[derive(Clone, Debug)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Its first byte in the file.
    pub at: usize,
}

/// One table of the document while its keys are taken.
pub struct Section<'d, 's, 'n> {
    name: &'static str,
    at: usize,
    table: Option<&'d DeTable<'s>>,
    known: Vec<&'static str>,
    notes: &'n mut Notes<'s>,
}

type Value<'d, 's> = &'d Spanned<DeValue<'s>>;

impl<'d, 's, 'n> Section<'d, 's, 'n> {
    /// The table `name` of `root`; one that is missing has no keys.
    pub fn open(root: &'d DeTable<'s>, name: &'static str, notes: &'n mut Notes<'s>) -> Self {
        let found = root.get(name);
        let at = found.map_or(0, |value| value.span().start);
        let table = found.and_then(|value| value.get_ref().as_table());
        if let (Some(value), None) = (found, table) {
            let kind = describe(value.get_ref());
            notes.at(
                at,
                name,
                format!("is {kind}; write it as a section, [{name}]"),
            );
        }
        Self {
            name,
            at,
            table,
            known: Vec::new(),
            notes,
        }
    }

    /// Says that `key` is known, and read elsewhere.
    pub fn known(&mut self, key: &'static str) {
        self.known.push(key);
    }

    /// Runs `take` with each of the tables `key` of `root`, which are called `[[name]]`, in their order.
    pub fn each(
        root: &'d DeTable<'s>,
        key: &str,
        name: &'static str,
        notes: &'n mut Notes<'s>,
        mut take: impl FnMut(Section<'d, 's, '_>),
    ) {
        let Some(value) = root.get(key) else { return };
        let DeValue::Array(list) = value.get_ref() else {
            let kind = describe(value.get_ref());
            let message = format!("is {kind}; write it as a list of sections, [[{name}]]");
            return notes.at(value.span().start, name, message);
        };
        for value in list.iter() {
            let at = value.span().start;
            match value.get_ref().as_table() {
                Some(table) => take(Section {
                    name,
                    at,
                    table: Some(table),
                    known: Vec::new(),
                    notes: &mut *notes,
                }),
                None => {
                    let kind = describe(value.get_ref());
                    notes.at(
                        at,
                        name,
                        format!("has {kind}; write it as a section, [[{name}]]"),
                    );
                }
            }
        }
    }

    /// Where the section starts.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Whether `key` is given, rightly or wrongly.
    pub fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// Whether `key` is given as a string.
    pub fn is_string(&self, key: &str) -> bool {
        let value = self.table.and_then(|table| table.get(key));
        value.is_some_and(|value| matches!(value.get_ref(), DeValue::String(_)))
    }

    /// Notes a fault with `key`.
    pub fn fault(&mut self, at: usize, key: &str, message: impl Into<String>) {
        self.notes.at(at, format!("{}.{key}", self.name), message);
    }

    /// The line that the byte `at` is in.
    pub fn line(&self, at: usize) -> usize {
        self.notes.line(at)
    }

    /// A string.
    pub fn string(&mut self, key: &'static str) -> Option<At<String>> {
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

    /// `true` or `false`.
    pub fn flag(&mut self, key: &'static str) -> Option<At<bool>> {
        let value = self.take(key)?;
        let at = value.span().start;
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(At { value: *flag, at }),
            other => self.wrong(at, key, other, "true or false"),
        }
    }

    /// An integer in `range`, whose unit, if it has one, is `unit`.
    pub fn integer(
        &mut self,
        key: &'static str,
        range: RangeInclusive<i64>,
        unit: &str,
    ) -> Option<At<i64>> {
        let value = self.take(key)?;
        let at = value.span().start;
        let span = unit_span(unit);
        match value.get_ref() {
            DeValue::Integer(number) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(value) if range.contains(&value) => Some(At { value, at }),
                    _ => self.outside(at, key, number.as_str(), &range, &span),
                }
            }
            other => self.wrong(at, key, other, &format!("an integer{span}")),
        }
    }

    /// Seconds, whole or with a fraction, in `range_s`.
    pub fn seconds(
        &mut self,
        key: &'static str,
        range_s: RangeInclusive<f64>,
    ) -> Option<At<Duration>> {
        let value = self.take(key)?;
        let at = value.span().start;
        let text = match value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            other => return self.wrong(at, key, other, "a number of seconds"),
        };
        match text.parse::<f64>() {
            Ok(value) if range_s.contains(&value) => Some(At {
                value: Duration::from_nanos((value * 1e9).round() as u64),
                at,
            }),
            _ => self.outside(at, key, text, &range_s, " seconds"),
        }
    }

    /// One of the `choices` by name.
    pub fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Option<At<T>> {
        let text = self.string(key)?;
        let value = self.pick(key, &text, choices)?;
        Some(At { value, at: text.at })
    }

    /// Several of the `choices` by name, none twice, at least one.
    pub fn choices<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Option<Vec<T>> {
        let texts = self.strings(key)?;
        let mut picked = Vec::new();
        for (i, text) in texts.iter().enumerate() {
            if texts[..i].iter().any(|earlier| earlier.value == text.value) {
                self.fault(
                    text.at,
                    key,
                    format!("\"{}\" is given twice; once is enough", text.value),
                );
            } else if let Some(value) = self.pick(key, text, choices) {
                picked.push(value);
            }
        }
        Some(picked)
    }

    /// A list of strings, at least one.
    pub fn strings(&mut self, key: &'static str) -> Option<Vec<At<String>>> {
        let mut texts = Vec::new();
        for value in self.list(key, "[\"...\"]")? {
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

    /// A list of strings, which may be empty or left out.
    pub fn strings_or_none(&mut self, key: &'static str) -> Vec<At<String>> {
        let value = self.table.and_then(|table| table.get(key));
        let is_empty = value.is_some_and(
            |value| matches!(value.get_ref(), DeValue::Array(list) if list.is_empty()),
        );
        if is_empty {
            self.known(key);
            return Vec::new();
        }
        self.strings(key).unwrap_or_default()
    }

    /// A list of integers in `range`, at least one, none twice.
    pub fn integers(
        &mut self,
        key: &'static str,
        range: RangeInclusive<i64>,
    ) -> Option<At<Vec<i64>>> {
        let at = self.table?.get(key).map_or(0, |value| value.span().start);
        let mut numbers = Vec::new();
        for value in self.list(key, "[2, 3]")? {
            let at = value.span().start;
            let DeValue::Integer(number) = value.get_ref() else {
                self.wrong::<()>(at, key, value.get_ref(), "an integer");
                continue;
            };
            match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(value) if numbers.contains(&value) => {
                    self.fault(at, key, format!("{value} is given twice; once is enough"));
                }
                Ok(value) if range.contains(&value) => numbers.push(value),
                _ => {
                    self.outside::<()>(at, key, number.as_str(), &range, "");
                }
            }
        }
        Some(At { value: numbers, at })
    }

    /// Notes every key of the section that none of the calls before asked for.
    pub fn finish(self) {
        let Some(table) = self.table else { return };
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if !self.known.contains(&name) {
                let message = unknown_key(name, &self.known);
                self.notes
                    .at(key.span().start, format!("{}.{name}", self.name), message);
            }
        }
    }

    fn take(&mut self, key: &'static str) -> Option<Value<'d, 's>> {
        self.known.push(key);
        self.table?.get(key)
    }

    fn list(&mut self, key: &'static str, example: &str) -> Option<Vec<Value<'d, 's>>> {
        let value = self.take(key)?;
        let at = value.span().start;
        match value.get_ref() {
            DeValue::Array(list) if list.is_empty() => {
                self.fault(at, key, "is empty; give at least one, or leave the key out");
                None
            }
            DeValue::Array(list) => Some(list.iter().collect()),
            other => self.wrong(at, key, other, &format!("a list such as {example}")),
        }
    }

    fn pick<T: Copy>(&mut self, key: &str, text: &At<String>, choices: &[(&str, T)]) -> Option<T> {
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text.value) {
            return Some(*value);
        }
        let names: Vec<String> = choices
            .iter()
            .map(|(name, _)| format!("\"{name}\""))
            .collect();
        let names = names.join(", ");
        self.fault(
            text.at,
            key,
            format!("\"{}\" is not known; it can be {names}", text.value),
        );
        None
    }

    fn wrong<T>(&mut self, at: usize, key: &str, found: &DeValue<'_>, wanted: &str) -> Option<T> {
        let mut message = format!("is {}; it must be {wanted}", describe(found));
        if let DeValue::String(text) = found {
            let digits = text.trim_end_matches(|c: char| c.is_alphabetic() || c == ' ');
            if !digits.is_empty() && digits.parse::<f64>().is_ok() {
                message = format!("{message}, without quotes or unit: {key} = {digits}");
            }
        }
        self.fault(at, key, message);
        None
    }

    fn outside<T>(
        &mut self,
        at: usize,
        key: &str,
        found: &str,
        range: &RangeInclusive<impl Display>,
        unit: &str,
    ) -> Option<T> {
        let (low, high) = (range.start(), range.end());
        self.fault(
            at,
            key,
            format!("{found} is out of range; it must be {low} to {high}{unit}"),
        );
        None
    }
}

/// Puts a value in its place, if it was given.
pub fn set<T>(found: Option<At<T>>, to: &mut T) {
    if let Some(found) = found {
        *to = found.value;
    }
}

/// What to say of a key that is not known.
pub fn unknown_key(name: &str, known: &[&'static str]) -> String {
    if let Some(right) = known.iter().find(|k| *k != &name && stem(k) == stem(name)) {
        let unit = match right.rsplit_once('_').map(|(_, unit)| unit) {
            Some("s") => " It takes seconds",
            Some("ms") => " It takes milliseconds",
            Some("bytes") => " It takes bytes",
            _ => "",
        };
        return format!("unknown key; did you mean {right}?{unit}");
    }
    match nearest(name, known) {
        Some(right) => format!("unknown key; did you mean {right}?"),
        None => format!("unknown key; known here: {}", known.join(", ")),
    }
}

/// `name` without the unit it ends in.
fn stem(name: &str) -> &str {
    match name.rsplit_once('_') {
        Some((
            stem,
            "s" | "ms" | "us" | "ns" | "sec" | "secs" | "min" | "seconds" | "bytes" | "kb",
        )) => stem,
        _ => name,
    }
}

fn unit_span(unit: &str) -> String {
    if unit.is_empty() {
        String::new()
    } else {
        format!(" {unit}")
    }
}

fn describe(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}
