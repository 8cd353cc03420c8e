//! Records which keys a reader of a file asked for, and the value that the file gives to each key. No I/O.
//!
//! A reload compares the [`Record`]s of two readings, key by key. A secret is compared but never printed. If a key
//! names a file, the content of that file is compared too. Start reading at [`Record::differences`].

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hasher};

use base::Redacted;
use toml::de::{DeArray, DeTable, DeValue};

/// One key of one section.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The section as an operator finds it, `bgp.neighbor[192.0.2.7]`; empty for the sections themselves.
    pub place: String,
    /// The key's name.
    pub key: String,
}

impl Key {
    /// The section without the names in it: `bgp.neighbor`.
    pub fn section(&self) -> String {
        kind(&self.place)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}.", self.place)?;
        }
        f.write_str(&self.key)
    }
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    text: String,
    /// A digest of the file that the value names.
    content: Option<u64>,
    secret: Option<Redacted<Vec<u8>>>,
}

impl Value {
    /// Whether it does not print because it is a secret.
    pub fn is_secret(&self) -> bool {
        self.secret.is_some()
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.secret {
            Some(_) => f.write_str("(secret)"),
            None => f.write_str(&self.text),
        }
    }
}

/// A key whose value differs between two records. A value that is absent is the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key.
    pub key: Key,
    /// Its value before.
    pub old: Option<Value>,
    /// Its value now.
    pub new: Option<Value>,
}

impl Difference {
    /// Whether a section that is no list appears or goes; its keys differ on their own.
    pub fn is_section(&self) -> bool {
        let value = self.old.as_ref().or(self.new.as_ref());
        self.key.place.is_empty() && value.is_some_and(|value| value.text == SECTION)
    }

    /// Whether both values print alike: a secret, or the content of a file, has changed.
    pub fn is_hidden(&self) -> bool {
        matches!((&self.old, &self.new), (Some(old), Some(new)) if old.to_string() == new.to_string())
    }
}

/// The keys that a reading asked for, and the values of the file.
#[derive(Clone, Debug, Default)]
pub struct Record {
    asked: BTreeSet<(String, &'static str)>,
    values: BTreeMap<Key, Value>,
}

impl Record {
    /// Each key that was asked for, given or not, with its section. The sections themselves are keys of the section "".
    pub fn asked(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.asked
            .iter()
            .map(|(section, key)| (section.as_str(), *key))
    }

    /// Each key that the file gives, in order, with its value; secrets do not print.
    pub fn values(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.values.iter()
    }

    /// `text` without the secrets of the file: each is replaced wherever it occurs.
    pub fn without_secrets(&self, text: &str) -> String {
        let secrets = self.values.values();
        let secrets = secrets.filter_map(|value| value.secret.as_ref());
        let mut secrets: Vec<&str> = secrets
            .filter_map(|secret| std::str::from_utf8(secret.reveal()).ok())
            .filter(|secret| !secret.is_empty())
            .collect();
        // A secret may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let mut text = text.to_owned();
        for secret in secrets {
            text = text.replace(secret, "(secret)");
        }
        text
    }

    /// What differs in `new`, in the order of the keys.
    pub fn differences(&self, new: &Self) -> Vec<Difference> {
        let all: BTreeSet<&Key> = self.values.keys().chain(new.values.keys()).collect();
        let differs = |key: &&Key| self.values.get(*key) != new.values.get(*key);
        let difference = |key: &Key| Difference {
            key: key.clone(),
            old: self.values.get(key).cloned(),
            new: new.values.get(key).cloned(),
        };
        all.into_iter().filter(differs).map(difference).collect()
    }

    /// Sets the value of a key; `None` removes it.
    pub fn set(&mut self, key: Key, value: Option<Value>) {
        match value {
            Some(value) => self.values.insert(key, value),
            None => self.values.remove(&key),
        };
    }

    /// Notes the keys that a section was asked for.
    pub(crate) fn section(
        &mut self,
        place: &str,
        known: &[&'static str],
        table: Option<&DeTable<'_>>,
    ) {
        let section = kind(place);
        for &name in known {
            self.asked.insert((section.clone(), name));
            let value = table.and_then(|table| table.get(name));
            let Some(value) = value.map(|value| value.get_ref()) else {
                continue;
            };
            let entry = self.entry(place, name);
            // The value of a secret is noted by its reader.
            if entry.secret.is_none() {
                entry.text = text(value);
            }
        }
    }

    /// Notes the content of the file that a key names.
    pub(crate) fn content(&mut self, place: &str, key: &str, content: &[u8]) {
        let mut hasher = DefaultHasher::new();
        hasher.write(content);
        self.entry(place, key).content = Some(hasher.finish());
    }

    /// Notes a secret, from the text or from a file.
    pub(crate) fn secret(&mut self, place: &str, key: &str, secret: Redacted<Vec<u8>>) {
        self.entry(place, key).secret = Some(secret);
    }

    fn entry(&mut self, place: &str, key: &str) -> &mut Value {
        let key = Key {
            place: place.to_owned(),
            key: key.to_owned(),
        };
        self.values.entry(key).or_insert_with(|| Value {
            text: String::new(),
            content: None,
            secret: None,
        })
    }
}

/// The names of the sections of a list: each has that of its key `name`, or else its address, or else its number.
pub(crate) fn labels(list: &DeArray<'_>) -> Vec<String> {
    let mut known = HashSet::new();
    let labels = (1..).zip(list.iter()).map(|(number, item)| {
        let given = item.get_ref().as_table().and_then(own_name);
        let mut label = given.map_or_else(|| number.to_string(), str::to_owned);
        if !known.insert(label.clone()) {
            label = format!("{label}#{number}");
            known.insert(label.clone());
        }
        label
    });
    labels.collect()
}

fn own_name<'t>(table: &'t DeTable<'_>) -> Option<&'t str> {
    ["name", "address", "prefix", "authentication", "accounting"]
        .into_iter()
        .find_map(|key| table.get(key)?.get_ref().as_str())
}

/// `bgp.policy[in].term[2]` without the names: `bgp.policy.term`.
fn kind(place: &str) -> String {
    let mut depth = 0;
    let mut kind = String::new();
    for c in place.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            c if depth == 0 => kind.push(c),
            _ => {}
        }
    }
    kind
}

/// Whether a string needs no quotes: it cannot be taken for a list or for several values.
fn is_plain(text: &str) -> bool {
    let ends_in_space = text.trim() != text;
    let splits = |c: char| c.is_control() || matches!(c, ',' | '[' | ']' | '"' | '\\');
    !text.is_empty() && !ends_in_space && !text.contains(splits)
}

/// The value of a section.
const SECTION: &str = "given";

/// A value on one line. Equal values have equal texts, however they are written.
fn text(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if is_plain(text) => text.to_string(),
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| number.as_str().to_owned(), |number| number.to_string()),
        DeValue::Float(number) => number.as_str().parse().map_or_else(
            |_| number.as_str().to_owned(),
            |number: f64| number.to_string(),
        ),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Table(_) => SECTION.to_owned(),
        DeValue::Array(list) => {
            let is_sections = list.iter().any(|item| item.get_ref().is_table());
            let items = match is_sections {
                true => labels(list),
                false => list.iter().map(|item| text(item.get_ref())).collect(),
            };
            format!("[{}]", items.join(", "))
        }
    }
}
