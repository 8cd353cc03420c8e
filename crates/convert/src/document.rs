//! The result: TOML with a comment behind each key that names the lines that it comes from.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::report::Place;

/// A value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A string.
    Text(String),
    /// An integer.
    Number(i64),
    /// `true` or `false`.
    Flag(bool),
    /// A list of strings.
    Texts(Vec<String>),
    /// A list of integers.
    Numbers(Vec<i64>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Number(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Flag(flag)
    }
}

impl Value {
    /// A list of strings.
    pub fn texts<T: AsRef<str>>(texts: &[T]) -> Value {
        Value::Texts(texts.iter().map(|text| text.as_ref().to_owned()).collect())
    }

    fn write(&self, out: &mut String) {
        match self {
            Value::Text(text) => string(out, text),
            Value::Number(number) => out.push_str(&number.to_string()),
            Value::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Value::Texts(texts) => list(out, texts, |out, text| string(out, text)),
            Value::Numbers(numbers) => {
                list(out, numbers, |out, number| {
                    out.push_str(&number.to_string())
                });
            }
        }
    }
}

fn list<T>(out: &mut String, items: &[T], write: impl Fn(&mut String, &T)) {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { ", " });
        write(out, item);
    }
    out.push(']');
}

/// A basic string of TOML.
fn string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key's name in its section.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// The lines that it comes from.
    pub from: Vec<Place>,
    /// Why the key is there, if no line says so, or what differs.
    pub note: String,
}

/// A section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Its path, such as `bgp.neighbor`.
    pub path: String,
    /// Whether there may be several: `[[pool]]`.
    pub is_array: bool,
    /// Its keys.
    pub entries: Vec<Entry>,
}

impl Table {
    /// A section of which there may be several.
    pub fn each(path: &str) -> Table {
        Table {
            path: path.to_owned(),
            is_array: true,
            entries: Vec::new(),
        }
    }

    /// Sets a key. A later value replaces an earlier one.
    pub fn set(&mut self, key: &str, value: impl Into<Value>, from: &[Place], note: &str) {
        let entry = Entry {
            key: key.to_owned(),
            value: value.into(),
            from: from.to_vec(),
            note: note.to_owned(),
        };
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
    }

    /// Appends to a list of strings.
    pub fn add(&mut self, key: &str, text: &str, from: &Place) {
        let entry = self.entries.iter_mut().find(|entry| entry.key == key);
        if let Some(Entry {
            value: Value::Texts(texts),
            from: places,
            ..
        }) = entry
        {
            if !texts.iter().any(|old| old == text) {
                texts.push(text.to_owned());
            }
            if !places.contains(from) {
                places.push(from.clone());
            }
        } else {
            self.set(key, Value::texts(&[text]), std::slice::from_ref(from), "");
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let entry = self.entries.iter().find(|entry| entry.key == key);
        entry.map(|entry| &entry.value)
    }

    /// Sets the keys that are not set yet to those of `other`.
    pub fn inherit(&mut self, other: &Table) {
        for entry in &other.entries {
            if self.get(&entry.key).is_none() {
                self.entries.push(entry.clone());
            }
        }
    }

    /// The full name of a key, as reports have it.
    pub fn name_of(&self, entry: &Entry) -> String {
        format!("{}.{}", self.path, entry.key)
    }

    fn rank(&self, order: &[&str]) -> usize {
        let path = self.path.strip_suffix(".term").unwrap_or(&self.path);
        let place = order.iter().position(|other| *other == path);
        place.unwrap_or(order.len())
    }
}

/// A TOML file.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Its sections.
    pub tables: Vec<Table>,
}

/// What a line of the written text is: a section, and which of its entries; none for the header.
pub type Origin = (usize, Option<usize>);

impl Document {
    /// The section with this path, which is made if there is none. Not for sections of which there may be several.
    pub fn table(&mut self, path: &str) -> &mut Table {
        let found = self.tables.iter().position(|table| table.path == path);
        let at = found.unwrap_or_else(|| {
            self.tables.push(Table {
                path: path.to_owned(),
                ..Table::default()
            });
            self.tables.len() - 1
        });
        &mut self.tables[at]
    }

    /// Whether there is such a section.
    pub fn has(&self, path: &str) -> bool {
        self.tables.iter().any(|table| table.path == path)
    }

    /// Sets a key from one line.
    pub fn set(&mut self, path: &str, key: &str, value: impl Into<Value>, from: &Place) {
        self.table(path)
            .set(key, value, std::slice::from_ref(from), "");
    }

    /// Sets a key that no line has, and says why.
    pub fn note(&mut self, path: &str, key: &str, value: impl Into<Value>, why: &str) {
        self.table(path).set(key, value, &[], why);
    }

    /// Sorts the sections by their place in `order`; those that it does not have follow.
    pub fn sort(&mut self, order: &[&str]) {
        self.tables.sort_by_key(|table| table.rank(order));
    }

    /// Removes a section; with a policy, also its terms.
    pub fn remove(&mut self, at: usize) -> Vec<Table> {
        let child = format!("{}.term", self.tables[at].path);
        let terms = self.tables[at + 1..].iter();
        let terms = terms.take_while(|table| table.path == child).count();
        self.tables.drain(at..=at + terms).collect()
    }

    /// The text, after `head`, and the origin of each of its lines.
    pub fn write(&self, head: &str) -> (String, Vec<Option<Origin>>) {
        let mut out = String::new();
        let mut origins = Vec::new();
        for line in head.lines() {
            let _ = writeln!(out, "# {line}");
            origins.push(None);
        }
        for (number, table) in self.tables.iter().enumerate() {
            let (open, close) = if table.is_array {
                ("[[", "]]")
            } else {
                ("[", "]")
            };
            let _ = writeln!(out, "\n{open}{}{close}", table.path);
            origins.extend([None, Some((number, None))]);
            for (at, entry) in table.entries.iter().enumerate() {
                let start = out.len();
                let _ = write!(out, "{} = ", entry.key);
                entry.value.write(&mut out);
                let comment = comment(entry);
                if !comment.is_empty() {
                    let width = out[start..].chars().count();
                    let _ = write!(
                        out,
                        "{:1$}  # {comment}",
                        "",
                        30_usize.saturating_sub(width)
                    );
                }
                out.push('\n');
                origins.push(Some((number, Some(at))));
            }
        }
        (out, origins)
    }
}

/// The lines that an entry comes from, at most four of them.
fn comment(entry: &Entry) -> String {
    const SHOWN_MAX: usize = 4;
    let places: BTreeSet<&Place> = entry.from.iter().collect();
    let mut parts: Vec<String> = Vec::new();
    let mut last = None;
    for place in places.iter().take(SHOWN_MAX) {
        let is_same = last == Some(&place.file);
        parts.push(if is_same {
            place.line.to_string()
        } else {
            place.to_string()
        });
        last = Some(&place.file);
    }
    if places.len() > SHOWN_MAX {
        parts.push(format!("{} more lines", places.len() - SHOWN_MAX));
    }
    let mut text = parts.join(", ");
    if !entry.note.is_empty() {
        text.push_str(if text.is_empty() { "" } else { ": " });
        text.push_str(&entry.note);
    }
    let plain = text.chars().map(|c| if c.is_control() { '?' } else { c });
    plain.collect()
}
