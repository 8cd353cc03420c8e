//! One table of a document while its keys are read. No I/O.
//!
//! A reader asks for each key that it knows; [`Section::finish`] then reports every other key. The methods that read
//! values are in `value` (one value) and `list` (several).

use std::borrow::Cow;

use base::{Redacted, nearest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::fault::{Faults, Notes, Words};
use crate::record::labels;

/// A value and its offset in the text.
#[derive(Clone, Copy, Debug)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// The offset of its first byte.
    pub at: usize,
}

/// One table of a document while its keys are read. A missing table has no keys.
#[derive(Debug)]
pub struct Section<'a> {
    name: Cow<'static, str>,
    /// Its place in a [record](crate::Record): `first[eth0]`.
    place: Cow<'static, str>,
    /// Its number in its list, from 1.
    number: Option<usize>,
    at: usize,
    /// Where the document starts in the noted text.
    base: usize,
    table: Option<&'a DeTable<'a>>,
    known: Vec<&'static str>,
    notes: &'a Notes<'a>,
}

pub(crate) type Value<'a> = &'a Spanned<DeValue<'a>>;

impl<'a> Section<'a> {
    fn new(
        table: Option<&'a DeTable<'a>>,
        name: impl Into<Cow<'static, str>>,
        at: usize,
        notes: &'a Notes<'a>,
    ) -> Self {
        let name = name.into();
        Self {
            place: name.clone(),
            name,
            number: None,
            at,
            base: 0,
            table,
            known: Vec::with_capacity(16),
            notes,
        }
    }

    /// The keys before the first section, whose names have no prefix.
    pub fn root(root: &'a DeTable<'a>, notes: &'a Notes<'a>) -> Self {
        Self::new(Some(root), "", 0, notes)
    }

    /// The table `[name]` of `root`.
    pub fn open(root: &'a DeTable<'a>, name: &'static str, notes: &'a Notes<'a>) -> Self {
        let found = root.get(name);
        let at = found.map_or(0, |value| value.span().start);
        let table = found.and_then(|value| value.get_ref().as_table());
        if let (Some(value), None) = (found, table) {
            let message = format!("is {}", describe(value.get_ref()));
            notes.at(
                at,
                name,
                (message, format!("write it as a section: [{name}]")),
            );
        }
        Self::new(table, name, at, notes)
    }

    /// Each table of the list `key` of `root`. The list is called `name`: `[[name]]`.
    pub fn each(
        root: &'a DeTable<'a>,
        key: &str,
        name: &'static str,
        notes: &'a Notes<'a>,
    ) -> Vec<Self> {
        Self::each_of_part(root, (key, name), (0, 0), notes)
    }

    /// The same of a [part](crate::part) that starts at the byte `base` and has `before` sections of the list before it.
    pub fn each_of_part(
        root: &'a DeTable<'a>,
        (key, name): (&str, &'static str),
        (base, before): (usize, usize),
        notes: &'a Notes<'a>,
    ) -> Vec<Self> {
        match root.get(key) {
            Some(value) => Self::list_of(value, (name.into(), name), (base, before), notes),
            None => Vec::new(),
        }
    }

    /// Each table of a list that is called `name` in faults, and `place` in records.
    fn list_of(
        value: Value<'a>,
        (name, place): (Cow<'static, str>, &str),
        (base, before): (usize, usize),
        notes: &'a Notes<'a>,
    ) -> Vec<Self> {
        let labels = match value.get_ref() {
            DeValue::Array(list) if notes.records() => labels(list),
            _ => Vec::new(),
        };
        let items: &[Spanned<DeValue<'a>>] = match value.get_ref() {
            DeValue::Array(items) => items,
            _ => std::slice::from_ref(value),
        };
        let is_list = value.get_ref().is_array();
        let mut sections = Vec::new();
        for (number, item) in (before + 1..).zip(items) {
            let at = base + item.span().start;
            match item.get_ref() {
                DeValue::Table(table) if is_list => sections.push(Self {
                    number: Some(number),
                    place: labels
                        .get(number - before - 1)
                        .map_or_else(String::new, |label| format!("{place}[{label}]"))
                        .into(),
                    base,
                    ..Self::new(Some(table), name.clone(), at, notes)
                }),
                other => {
                    let message = format!("is {}", describe(other));
                    let right = format!("write each as a section of its own: [[{name}]]");
                    notes.at(at, name.as_ref(), (message, right));
                }
            }
        }
        sections
    }

    /// Each table of the list `key` within this one: `[[policy.term]]`, called `policy[2].term[1]` in faults.
    pub fn tables(&mut self, key: &'static str) -> Vec<Section<'a>> {
        let Some(value) = self.take(key) else {
            return Vec::new();
        };
        let place = format!("{}.{key}", self.place);
        let name = (self.path(key).into(), place.as_str());
        Self::list_of(value, name, (self.base, 0), self.notes)
    }

    /// The table within this one, for a key that takes text or a table.
    pub fn table(&mut self, key: &'static str) -> Option<Section<'a>> {
        let value = self.table?.get(key)?;
        let table = value.get_ref().as_table()?;
        self.known.push(key);
        Some(Self {
            base: self.base,
            place: format!("{}.{key}", self.place).into(),
            ..Self::new(
                Some(table),
                self.path(key),
                self.place_of(value),
                self.notes,
            )
        })
    }

    /// Its name in faults: `link`, `first[2]`.
    pub fn name(&self) -> String {
        match self.number {
            Some(number) => format!("{}[{number}]", self.name),
            None => self.name.to_string(),
        }
    }

    /// The name of one of its keys in faults: `first[2].port`.
    pub fn path(&self, key: &str) -> String {
        match self.name.is_empty() {
            true => key.to_owned(),
            false => format!("{}.{key}", self.name()),
        }
    }

    /// Where the section starts.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The line of the byte `at`.
    pub fn line(&self, at: usize) -> usize {
        self.notes.line(at)
    }

    /// Whether the file has this section.
    pub fn is_given(&self) -> bool {
        self.table.is_some()
    }

    /// Whether `key` is given, with any value.
    pub fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// Whether the value of `key` is a string.
    pub fn is_string(&self, key: &str) -> bool {
        let value = self.peek(key);
        value.is_some_and(|value| matches!(value.get_ref(), DeValue::String(_)))
    }

    /// Where the value of `key` is, if it is given.
    pub fn place(&self, key: &str) -> Option<usize> {
        Some(self.place_of(self.peek(key)?))
    }

    /// Where `text` is in the value of `key`: in its list, or the value itself.
    pub fn place_in(&self, key: &str, text: &str) -> Option<usize> {
        let value = self.peek(key)?;
        let items = value
            .get_ref()
            .as_array()
            .into_iter()
            .flat_map(|list| list.iter());
        let mut found = items.filter(|item| item.get_ref().as_str() == Some(text));
        Some(self.place_of(found.next().unwrap_or(value)))
    }

    /// Declares a key that is read elsewhere.
    pub fn known(&mut self, key: &'static str) {
        self.known.push(key);
    }

    /// Notes a fault of `key`.
    pub fn fault(&self, at: usize, key: &str, words: impl Into<Words>) {
        self.notes.at(at, self.path(key), words);
    }

    /// Notes the faults of the file that `key` names.
    pub fn faults_of_file(&self, at: usize, key: &str, faults: &Faults) {
        self.notes.of_file(at, &self.path(key), faults);
    }

    /// Notes a fault if `key` is not given: `remedy` says what to write.
    pub fn require(&mut self, key: &'static str, remedy: &str) {
        self.known.push(key);
        if !self.has(key) {
            self.fault(self.at, key, ("is missing", remedy));
        }
    }

    /// Notes the content of the file that `key` names, for a comparison with another reading.
    pub fn content(&self, key: &str, content: &[u8]) {
        self.notes
            .record(|record| record.content(&self.place, key, content));
    }

    pub(crate) fn secret(&self, secret: &Redacted<Vec<u8>>) {
        self.notes
            .record(|record| record.secret(&self.place, "secret", secret.clone()));
    }

    /// Reports every key of the section that no call before asked for.
    pub fn finish(self) {
        self.notes
            .record(|record| record.section(&self.place, &self.known, self.table));
        let Some(table) = self.table else { return };
        for (key, value) in table.iter() {
            let name = key.get_ref().as_ref();
            if !self.known.contains(&name) {
                let mut message = unknown_key(name, &self.known);
                if self.name.is_empty() && is_section(value.get_ref()) {
                    message = message.replacen("key", "section", 1);
                }
                self.fault(self.base + key.span().start, name, message);
            }
        }
    }

    pub(crate) fn take(&mut self, key: &'static str) -> Option<Value<'a>> {
        self.known.push(key);
        self.table?.get(key)
    }

    pub(crate) fn peek(&self, key: &str) -> Option<Value<'a>> {
        self.table?.get(key)
    }

    pub(crate) fn place_of(&self, value: Value<'a>) -> usize {
        self.base + value.span().start
    }
}

/// Notes every section of a document that is not one of `names`, and every key outside of a section. The document
/// starts at the byte `base` of the noted text.
pub fn only_sections(root: &DeTable<'_>, base: usize, names: &[&'static str], notes: &Notes<'_>) {
    notes.record(|record| record.section("", names, Some(root)));
    for (key, value) in root.iter() {
        let name = key.get_ref().as_ref();
        let at = base + key.span().start;
        if names.contains(&name) {
        } else if is_section(value.get_ref()) {
            let message = unknown_key(name, names).replacen("key", "section", 1);
            notes.at(at, name, message);
        } else {
            let right = format!(
                "write it below its section, which is one of {}",
                names.join(", ")
            );
            notes.at(at, name, ("is outside of a section", right));
        }
    }
}

/// The words for a key that is not one of `known`.
fn unknown_key(name: &str, known: &[&'static str]) -> String {
    if let Some(right) = known.iter().find(|k| *k != &name && stem(k) == stem(name)) {
        let unit = match right.rsplit_once('_').map(|(_, unit)| unit) {
            Some("s") => " It takes seconds",
            Some("ms") => " It takes milliseconds",
            Some("bytes") => " It takes bytes",
            _ => "",
        };
        return format!("unknown key; did you mean {right}?{unit}");
    }
    if let Some(right) = nearest(name, known) {
        return format!("unknown key; did you mean {right}?");
    }
    if known.is_empty() {
        return "unknown key; no key is known here".to_owned();
    }
    let mut names: Vec<&str> = Vec::new();
    for name in known {
        if !names.contains(name) {
            names.push(name);
        }
    }
    format!("unknown key; known here: {}", names.join(", "))
}

/// `name` without the unit it ends in.
fn stem(name: &str) -> &str {
    let units = [
        "s", "ms", "us", "ns", "sec", "secs", "min", "seconds", "bytes", "kb",
    ];
    match name.rsplit_once('_') {
        Some((stem, unit)) if units.contains(&unit) => stem,
        _ => name,
    }
}

fn is_section(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::Table(_) => true,
        DeValue::Array(items) => items.iter().any(|item| item.get_ref().is_table()),
        _ => false,
    }
}

pub(crate) fn describe(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(items) if items.is_empty() => "an empty list",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}
