//! The report: what became of each line of the source.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file's name, as it is printed.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// What became of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It is a key of the result.
    Key,
    /// headend does this without a key.
    Kept,
    /// Nothing that headend does depends on it.
    NoEffect,
    /// Its effect is lost.
    NotSupported,
    /// Not an option of this source, or not a value of that option.
    Unknown,
}

impl Fate {
    /// Every fate, in the order of a report.
    pub const ALL: [Fate; 5] = [
        Fate::Key,
        Fate::Kept,
        Fate::NoEffect,
        Fate::NotSupported,
        Fate::Unknown,
    ];

    /// Its name in a report.
    pub const fn name(self) -> &'static str {
        match self {
            Fate::Key => "key",
            Fate::Kept => "kept",
            Fate::NoEffect => "no effect",
            Fate::NotSupported => "not supported",
            Fate::Unknown => "syntax unknown",
        }
    }

    /// Whether an effect of the source is lost.
    pub const fn is_lost(self) -> bool {
        matches!(self, Fate::NotSupported | Fate::Unknown)
    }
}

/// An option of a source, as documented in docs/import.md.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The option's name.
    pub name: &'static str,
    /// How many words follow it, where the number is fixed by the name.
    pub words: usize,
    /// What becomes of it.
    pub fate: Fate,
    /// The keys, or why there is none.
    pub note: &'static str,
    /// With this value, headend does the same without a key.
    pub kept: Option<&'static str>,
}

impl Rule {
    /// An option that becomes keys.
    pub const fn key(name: &'static str, words: usize, keys: &'static str) -> Rule {
        Rule::new(name, words, Fate::Key, keys)
    }

    /// An option whose meaning is what headend always does.
    pub const fn kept(name: &'static str, words: usize, why: &'static str) -> Rule {
        Rule::new(name, words, Fate::Kept, why)
    }

    /// An option on which nothing in headend depends.
    pub const fn none(name: &'static str, words: usize, why: &'static str) -> Rule {
        Rule::new(name, words, Fate::NoEffect, why)
    }

    /// An option whose effect is lost.
    pub const fn lost(name: &'static str, words: usize, why: &'static str) -> Rule {
        Rule::new(name, words, Fate::NotSupported, why)
    }

    /// The same, but kept with the value `value`.
    #[must_use]
    pub const fn unless(mut self, value: &'static str) -> Rule {
        self.kept = Some(value);
        self
    }

    const fn new(name: &'static str, words: usize, fate: Fate, note: &'static str) -> Rule {
        Rule {
            name,
            words,
            fate,
            note,
            kept: None,
        }
    }

    /// Its row in the table of docs/import.md.
    pub fn row(&self) -> String {
        let kept = self.kept.map(|value| format!("; `{value}`: kept"));
        let kept = kept.unwrap_or_default();
        match self.fate {
            Fate::Key => format!("| `{}` | {}{kept} |", self.name, self.note),
            fate => format!("| `{}` | {}: {}{kept} |", self.name, fate.name(), self.note),
        }
    }
}

/// One option in one place, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it starts.
    pub place: Place,
    /// The option, never its value: values may be secrets. Empty if the option is not known.
    pub option: String,
    /// What became of it.
    pub fate: Fate,
    /// The keys of the result, such as `lns.listen`.
    pub keys: Vec<String>,
    /// Why it is no key; or what differs.
    pub why: String,
}

/// The lines of a report that are kept; further ones are counted.
const LINES_MAX: usize = 1 << 20;

/// What became of each line.
#[derive(Clone, Debug, Default)]
pub struct Report {
    lines: Vec<Line>,
    more: usize,
}

impl Report {
    /// Reports an option.
    pub fn line(&mut self, place: &Place, option: &str, fate: Fate, why: &str) {
        self.push(place, option, fate, Vec::new(), why);
    }

    /// Reports an option of the table; not for [`Fate::Key`].
    pub fn rule(&mut self, place: &Place, rule: &Rule, value: &str) {
        if rule
            .kept
            .is_some_and(|kept| kept.eq_ignore_ascii_case(value))
        {
            self.line(
                place,
                rule.name,
                Fate::Kept,
                "headend does this without a key",
            );
        } else {
            self.line(place, rule.name, rule.fate, rule.note);
        }
    }

    /// Reports an option that became keys.
    pub fn key(&mut self, place: &Place, option: &str, keys: &[&str], why: &str) {
        let keys = keys.iter().map(|&key| key.to_owned()).collect();
        self.push(place, option, Fate::Key, keys, why);
    }

    /// Reports an option whose effect is lost.
    pub fn lost(&mut self, place: &Place, option: &str, why: &str) {
        self.line(place, option, Fate::NotSupported, why);
    }

    /// Reports a line that could not be understood.
    pub fn unknown(&mut self, place: &Place, option: &str, why: &str) {
        self.line(place, option, Fate::Unknown, why);
    }

    fn push(&mut self, place: &Place, option: &str, fate: Fate, keys: Vec<String>, why: &str) {
        if self.lines.len() == LINES_MAX {
            self.more += 1;
            return;
        }
        let printable = |c: char| if c.is_control() { '?' } else { c };
        self.lines.push(Line {
            place: place.clone(),
            option: option.chars().take(128).map(printable).collect(),
            fate,
            keys,
            why: why.chars().map(printable).collect(),
        });
    }

    /// Takes back that `place` became `key`: what became of it instead, and why.
    pub fn take_back(&mut self, place: &Place, key: &str, fate: Fate, why: &str) {
        for line in &mut self.lines {
            let is_key = line.place == *place && line.fate == Fate::Key;
            if is_key && line.keys.iter().any(|other| other == key) {
                line.keys.retain(|other| other != key);
                line.fate = fate;
                why.clone_into(&mut line.why);
            }
        }
    }

    /// Takes back every key that `is_there` does not know: another line set it, or its section was left out.
    pub fn verify(&mut self, is_there: impl Fn(&str) -> bool) {
        for line in &mut self.lines {
            if line.fate != Fate::Key {
                continue;
            }
            line.keys.retain(|key| is_there(key));
            if line.keys.is_empty() {
                line.fate = Fate::NotSupported;
                let why = "its key is not in the result: another line sets it, or its section is left out";
                why.clone_into(&mut line.why);
            }
        }
    }

    /// Sorts by place, and leaves out repetitions: a line may be used several times.
    pub fn sort(&mut self) {
        let order = |line: &Line| {
            (
                line.place.clone(),
                line.fate,
                line.option.clone(),
                line.keys.clone(),
            )
        };
        self.lines.sort_by_cached_key(order);
        self.lines.dedup();
    }

    /// Every line.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// How many lines lost an effect, or were not understood.
    pub fn lost_count(&self) -> usize {
        let lost = self.lines.iter().filter(|line| line.fate.is_lost());
        lost.count() + self.more
    }

    fn counts(&self) -> BTreeMap<Fate, usize> {
        let mut counts: BTreeMap<Fate, usize> = Fate::ALL.map(|fate| (fate, 0)).into();
        for line in &self.lines {
            *counts.entry(line.fate).or_default() += 1;
        }
        counts
    }

    /// The report as one object, `import/1`.
    pub fn json(&self, source: &str, files: &[String]) -> Value {
        let lines = self.lines.iter().map(|line| {
            json!({
                "file": &*line.place.file,
                "line": line.place.line,
                "option": line.option,
                "fate": line.fate.name(),
                "keys": line.keys,
                "why": line.why,
            })
        });
        let counts = self.counts();
        let counts = counts
            .iter()
            .map(|(fate, n)| (fate.name().replace(' ', "_"), json!(n)));
        json!({
            "schema": "import/1",
            "source": source,
            "files": files,
            "counts": counts.collect::<serde_json::Map<_, _>>(),
            "lines": lines.collect::<Vec<_>>(),
            "lines_more": self.more,
        })
    }
}

impl fmt::Display for Report {
    /// A line for each option that is not fully a key, and the counts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            if line.fate == Fate::Key && line.why.is_empty() {
                continue;
            }
            let option = if line.option.is_empty() {
                "?"
            } else {
                &line.option
            };
            let what = match line.fate {
                Fate::Key => line.keys.join(", "),
                fate => fate.name().to_owned(),
            };
            writeln!(f, "{}: {option}: {what}: {}", line.place, line.why)?;
        }
        if self.more > 0 {
            writeln!(f, "{} further lines are not listed", self.more)?;
        }
        let counts = self.counts();
        let counts: Vec<String> = counts
            .iter()
            .map(|(fate, n)| format!("{n} {}", fate.name()))
            .collect();
        write!(
            f,
            "{} options: {}",
            self.lines.len() + self.more,
            counts.join(", ")
        )
    }
}
