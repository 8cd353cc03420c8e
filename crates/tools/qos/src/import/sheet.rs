//! The policy while it is made: each key is set once, because a policy has one value for both directions.

use std::collections::BTreeSet;

use anyhow::Result;
use convert::{Document, Entry, Fate, Place, Report, Table, Value, Wrong, repair, take_back};
use qos::policy::Policy;
use settings::Faults;

/// A direction of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    Down,
}

impl Way {
    /// Its name, which is also the key of its rate.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Way::Up => "up",
            Way::Down => "down",
        }
    }
}

/// A policy and the report of its making.
#[derive(Debug, Default)]
pub struct Import {
    /// The policy file.
    pub policy: Document,
    /// What became of each option.
    pub report: Report,
    /// How many options the source has.
    pub options: usize,
    /// How many sections or objects it has: without any, it is no such source.
    pub found: usize,
    /// The comment at the start of the policy file.
    pub(super) head: String,
}

/// Sections in the order in which they are written.
const ORDER: &[&str] = &["link", "link.overhead", "shape", "first", "class"];

/// A policy needs a rate; without one, it is this template.
const NO_RATE: &str = "not in the source: it has no rate; give [link] up and down in place of this";

impl Import {
    /// An empty policy. `source` names the kind of file.
    pub(super) fn new(source: &str, file: &str) -> Import {
        Import {
            head: format!(
                "Made by headend qos import {source} from {file}.\nThe comment behind a key names the line that it comes from."
            ),
            ..Import::default()
        }
    }

    /// Sets a key from an option. A key that another option set to another value stays, and the option is lost.
    pub(super) fn set(
        &mut self,
        (path, key): (&str, &str),
        value: impl Into<Value>,
        (place, option): (&Place, &str),
        note: &str,
    ) {
        let value = value.into();
        let table = self.policy.table(path);
        let known = table.entries.iter_mut().find(|entry| entry.key == key);
        let name = format!("{path}.{key}");
        match known {
            Some(entry) if entry.value != value => {
                let from = entry.from.first().map(Place::to_string);
                let from = from.unwrap_or_else(|| "another option".to_owned());
                let why = format!("a policy has one {name} for both directions, that of {from}");
                self.report.lost(place, option, &why);
            }
            Some(entry) => {
                if !entry.from.contains(place) {
                    entry.from.push(place.clone());
                }
                self.report.key(place, option, &[name.as_str()], note);
            }
            None => {
                table.entries.push(Entry {
                    key: key.to_owned(),
                    value,
                    from: vec![place.clone()],
                    note: note.to_owned(),
                });
                self.report.key(place, option, &[name.as_str()], "");
            }
        }
    }

    /// Whether a key is set.
    pub(super) fn has(&self, path: &str, key: &str) -> bool {
        let mut tables = self.policy.tables.iter().filter(|table| table.path == path);
        tables.any(|table| table.get(key).is_some())
    }

    /// Leaves out what the reader of policies refuses, completes the report, and returns the text.
    ///
    /// # Errors
    /// The reader refuses the policy whatever is left out.
    pub fn finish(&mut self) -> Result<String> {
        self.without_rate();
        self.policy.sort(ORDER);
        let head = self.head.clone();
        let judge = |text: &str| Ok(Policy::parse(text).err());
        repair(&mut self.policy, &mut self.report, &head, judge, remove)?;
        let tables = self.policy.tables.iter();
        let known: BTreeSet<String> = tables
            .flat_map(|table| table.entries.iter().map(|entry| table.name_of(entry)))
            .collect();
        self.report.verify(|key| known.contains(key));
        self.report.sort();
        Ok(self.policy.write(&self.head).0)
    }

    fn without_rate(&mut self) {
        let has_rate = self.has("link", "up") || self.has("link", "down");
        if !has_rate {
            no_rate(&mut self.policy, &mut self.report);
        }
    }
}

/// Leaves the template that needs no rate.
fn no_rate(policy: &mut Document, report: &mut Report) {
    for table in std::mem::take(&mut policy.tables) {
        for entry in &table.entries {
            for place in &entry.from {
                let why = "the source has no rate that headend could shape to";
                report.take_back(place, &table.name_of(entry), Fate::NotSupported, why);
            }
        }
    }
    policy.note("shape", "template", "none", NO_RATE);
}

/// Removes the entries that have faults. A class or a priority loses no condition: it would match other packets.
fn remove(policy: &mut Document, report: &mut Report, _: &Faults, wrong: &[Wrong]) -> bool {
    let mut gone = None;
    for ((table, entry), message) in wrong {
        if gone == Some(*table) {
            continue;
        }
        let is_whole = matches!(&*policy.tables[*table].path, "first" | "class");
        let removed = match entry {
            Some(entry) if !is_whole => {
                let table = &mut policy.tables[*table];
                let mut removed = table.clone();
                removed.entries = vec![table.entries.remove(*entry)];
                vec![removed]
            }
            _ => {
                gone = Some(*table);
                policy.remove(*table)
            }
        };
        take_back(&removed, message, report);
    }
    policy.tables.retain(|table| !table.entries.is_empty());
    let has_rate = |table: &Table| {
        table.path == "link" && ["up", "down"].iter().any(|key| table.get(key).is_some())
    };
    let is_left = policy.tables.iter().any(has_rate);
    let is_none = policy
        .tables
        .iter()
        .any(|table| table.get("template") == Some(&"none".into()));
    if !is_left && !is_none {
        no_rate(policy, report);
        return true;
    }
    !wrong.is_empty()
}
