//! Takes the tables of a TOML document key by key, and notes every key that nobody asked for and every value that is
//! not what was asked for: an operator sees all faults at once.

use core::fmt::Display;
use core::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::remark::Remarks;
use base::nearest;

/// A value and the byte of the text where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) at: usize,
}

/// One table while its keys are taken.
pub(super) struct Section<'d, 's> {
    /// `link`, `first[2]`.
    pub(super) name: String,
    /// Where it starts.
    pub(super) at: usize,
    table: Option<&'d DeTable<'s>>,
    known: Vec<&'static str>,
}

impl<'d, 's> Section<'d, 's> {
    /// The table `name` of `root`; one that is missing has no keys.
    pub(super) fn open(
        root: &'d DeTable<'s>,
        name: &'static str,
        remarks: &mut Remarks<'_>,
    ) -> Self {
        let found = root.get(name);
        let at = found.map_or(0, |value| value.span().start);
        let table = found.and_then(|value| value.get_ref().as_table());
        if let (Some(value), None) = (found, table) {
            let message = format!("is {}", describe(value.get_ref()));
            remarks.fault(
                at,
                name,
                message,
                format!("write it as a section: [{name}]"),
            );
        }
        Self {
            name: name.to_owned(),
            at,
            table,
            known: Vec::new(),
        }
    }

    /// The tables of the list `name` of `root`.
    pub(super) fn open_each(
        root: &'d DeTable<'s>,
        name: &'static str,
        remarks: &mut Remarks<'_>,
    ) -> Vec<Self> {
        let Some(value) = root.get(name) else {
            return Vec::new();
        };
        let items: &[Spanned<DeValue<'s>>] = match value.get_ref() {
            DeValue::Array(items) => items,
            _ => core::slice::from_ref(value),
        };
        let mut sections = Vec::new();
        for (place, item) in (1..).zip(items) {
            let name_of = format!("{name}[{place}]");
            let at = item.span().start;
            match item.get_ref() {
                DeValue::Table(table) => sections.push(Self {
                    name: name_of,
                    at,
                    table: Some(table),
                    known: Vec::new(),
                }),
                other => {
                    let message = format!("is {}", describe(other));
                    let right = format!("write each as a section of its own: [[{name}]]");
                    remarks.fault(at, &name_of, message, right);
                }
            }
        }
        sections
    }

    /// Whether `key` is given, rightly or wrongly.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// Where the value of `key` stands, if it is given.
    pub(super) fn place(&self, key: &str) -> Option<usize> {
        Some(self.table?.get(key)?.span().start)
    }

    /// The name of one of its keys, for a remark.
    pub(super) fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.name)
    }

    /// A string, or a number as its text.
    pub(super) fn text(
        &mut self,
        key: &'static str,
        remarks: &mut Remarks<'_>,
    ) -> Option<At<String>> {
        let value = self.take(key)?;
        let at = value.span().start;
        match scalar(value.get_ref()) {
            Some(text) => Some(At { value: text, at }),
            None => self.wrong(at, key, value.get_ref(), "write text in quotes", remarks),
        }
    }

    /// A text that `read` understands.
    pub(super) fn parsed<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&str) -> Result<T, String>,
        remarks: &mut Remarks<'_>,
    ) -> Option<At<T>> {
        let At { value, at } = self.text(key, remarks)?;
        self.understood(key, &value, at, read, remarks)
    }

    /// One text or a list of them, each of which `read` understands.
    pub(super) fn several<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&str) -> Result<T, String>,
        remarks: &mut Remarks<'_>,
    ) -> Vec<At<T>> {
        let Some(value) = self.take(key) else {
            return Vec::new();
        };
        let items: &[Spanned<DeValue<'s>>] = match value.get_ref() {
            DeValue::Array(items) if items.is_empty() => {
                let at = value.span().start;
                let right = "give at least one, or leave the key out";
                remarks.fault(at, &self.key(key), "is an empty list", right);
                return Vec::new();
            }
            DeValue::Array(items) => items,
            _ => core::slice::from_ref(value),
        };
        let mut found = Vec::new();
        for item in items {
            let at = item.span().start;
            let text = scalar(item.get_ref());
            let right = "write text in quotes, a number, or a list of them";
            found.extend(match text {
                Some(text) => self.understood(key, &text, at, &read, remarks),
                None => self.wrong(at, key, item.get_ref(), right, remarks),
            });
        }
        found
    }

    /// `true` or `false`.
    pub(super) fn flag(
        &mut self,
        key: &'static str,
        remarks: &mut Remarks<'_>,
    ) -> Option<At<bool>> {
        let value = self.take(key)?;
        let at = value.span().start;
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(At { value: *flag, at }),
            other => self.wrong(
                at,
                key,
                other,
                "write true or false, without quotes",
                remarks,
            ),
        }
    }

    /// An integer in `range`.
    pub(super) fn integer(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u32>,
        remarks: &mut Remarks<'_>,
    ) -> Option<At<u32>> {
        let read = |text: &str| {
            let number = text.parse().ok().filter(|number| range.contains(number));
            let (low, high) = (range.start(), range.end());
            number.ok_or_else(|| format!("\"{text}\" is no whole number from {low} to {high}"))
        };
        self.parsed(key, read, remarks)
    }

    /// One of the `choices` by name.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
        remarks: &mut Remarks<'_>,
    ) -> Option<At<T>> {
        self.parsed(key, |text| choose(text, choices), remarks)
    }

    /// A table within this one, for a key that may be text or a table.
    pub(super) fn table(&mut self, key: &'static str) -> Option<Section<'d, 's>> {
        let value = self.table?.get(key)?;
        let table = value.get_ref().as_table()?;
        self.known.push(key);
        Some(Section {
            name: self.key(key),
            at: value.span().start,
            table: Some(table),
            known: Vec::new(),
        })
    }

    /// Notes every key that none of the calls before asked for.
    pub(super) fn finish(self, remarks: &mut Remarks<'_>) {
        let Some(table) = self.table else { return };
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if !self.known.contains(&name) {
                let right = known_keys(name, &self.known);
                remarks.fault(key.span().start, &self.key(name), "is no key here", right);
            }
        }
    }

    fn take(&mut self, key: &'static str) -> Option<&'d Spanned<DeValue<'s>>> {
        self.known.push(key);
        self.table?.get(key)
    }

    fn understood<T>(
        &self,
        key: &str,
        text: &str,
        at: usize,
        read: impl Fn(&str) -> Result<T, String>,
        remarks: &mut Remarks<'_>,
    ) -> Option<At<T>> {
        match read(text) {
            Ok(value) => Some(At { value, at }),
            Err(message) => {
                let (message, right) = message.split_once("; ").unwrap_or((&message, ""));
                remarks.fault(at, &self.key(key), message, right);
                None
            }
        }
    }

    fn wrong<T>(
        &self,
        at: usize,
        key: &str,
        found: &DeValue<'_>,
        right: &str,
        remarks: &mut Remarks<'_>,
    ) -> Option<T> {
        let message = format!("is {}", describe(found));
        remarks.fault(at, &self.key(key), message, right);
        None
    }
}

/// One of the `choices` by name.
///
/// # Errors
/// What there is to choose from.
pub(super) fn choose<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, String> {
    if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
        return Ok(*value);
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let right = match nearest(text, &names) {
        Some(right) => format!("did you mean \"{right}\"?"),
        None => format!("there are {}", quoted(&names)),
    };
    Err(format!("\"{text}\" is not known; {right}"))
}

/// What to say of a key that is not known.
pub(super) fn known_keys(name: &str, known: &[&'static str]) -> String {
    match nearest(name, known) {
        Some(right) => format!("did you mean {right}?"),
        None => format!("there are {}", known.join(", ")),
    }
}

fn quoted(names: &[impl Display]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

/// Text, or a number as it would be written in text: hexadecimal ones with their prefix.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(match number.radix() {
            16 => format!("0x{}", number.as_str()),
            10 => number.as_str().to_owned(),
            radix => i64::from_str_radix(number.as_str(), radix)
                .ok()?
                .to_string(),
        }),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

fn describe(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}
