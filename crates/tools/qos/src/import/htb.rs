//! Trees of htb: the class below the root is the link, the classes below it are sections, and filters their conditions.

use std::collections::BTreeMap;

use convert::{Fate, Place, Table, Value};

use super::filters::{Conditions, Part};
use super::leaf;
use super::objects::{self, Object, What};
use super::sheet::Way;
use super::tc::{Entry, Work, child, name, pairs, small};

/// Levels of classes that are read.
const DEPTH_MAX: usize = 8;

impl Work {
    pub(super) fn htb(&mut self, root: &Object, way: Way, entries: &mut [Entry]) {
        self.report(root, "", Fate::Kept, "headend shapes without it");
        let mut default = String::new();
        let words = self.stab(root);
        for (key, value) in pairs(&words) {
            match key {
                "default" => {
                    let minor = value.trim_start_matches("0x");
                    default = format!("{}{}", root.handle, minor.trim_start_matches('0'));
                    self.report(root, key, Fate::Kept, "packets that no section takes");
                }
                "r2q" | "direct_qlen" | "offload" => {
                    self.report(root, key, Fate::NoEffect, "headend computes it")
                }
                _ => self.report(
                    root,
                    key,
                    Fate::Unknown,
                    "not an option of htb that headend knows",
                ),
            }
        }
        let mut tree = Tree {
            way,
            classes: BTreeMap::new(),
            link_bps: None,
            default,
            filters: BTreeMap::new(),
        };
        for (at, entry) in entries.iter_mut().enumerate() {
            if entry.object.what == What::Class && entry.object.kind == "htb" {
                entry.is_done = true;
                tree.classes
                    .insert(entry.object.handle.clone(), Class::read(&entry.object, at));
            }
        }
        let is_top = |class: &Class| class.parent == root.handle || class.parent == "root";
        let tops = tree.classes.iter().filter(|(_, class)| is_top(class));
        let tops: Vec<String> = tops.map(|(id, _)| id.clone()).collect();
        let [top] = tops.as_slice() else {
            for class in tree.classes.values() {
                let why = "headend translates trees of htb with one class below the root";
                self.lost(&entries[class.at].object, why);
            }
            return;
        };
        tree.link_bps = bps(&tree.classes[top].rate);
        self.top(&tree, top, entries);
        self.filters(&mut tree, entries);
        self.below(&mut tree, top, None, 0, entries);
        for class in tree.classes.values().filter(|class| !class.is_read) {
            self.lost(
                &entries[class.at].object,
                "the class is not below the root, or too deep",
            );
        }
    }

    /// The class of the link: its rate is the link's.
    fn top(&mut self, tree: &Tree, top: &str, entries: &mut [Entry]) {
        let link = &tree.classes[top];
        let object = entries[link.at].object.clone();
        for (key, value) in pairs(&object.words) {
            self.import.options += 1;
            let option = format!("{} {key}", name(&object));
            let from = (&object.place, option.as_str());
            match key {
                "rate" => self
                    .import
                    .set(("link", tree.way.name()), small(value), from, ""),
                "ceil" if bps(value) == bps(&link.rate) => {
                    self.import
                        .report
                        .line(from.0, &option, Fate::Kept, "the link's rate");
                }
                "ceil" => self.import.report.lost(
                    from.0,
                    &option,
                    "a link has one rate, that of the class",
                ),
                _ => self
                    .import
                    .report
                    .line(from.0, &option, Fate::NoEffect, COMPUTED),
            }
        }
        if let Some(at) = child(top, entries) {
            self.leaf_of_rest(&mut entries[at]);
        }
    }

    /// The filters: what they match, for the class that they select.
    fn filters(&mut self, tree: &mut Tree, entries: &mut [Entry]) {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|at| entries[*at].object.pref);
        for at in order {
            let Entry {
                object,
                filter,
                is_done,
            } = &mut entries[at];
            let Some(filter) = filter.as_ref().filter(|_| !*is_done) else {
                continue;
            };
            *is_done = true;
            let class = filter
                .class
                .as_deref()
                .filter(|class| tree.classes.contains_key(*class));
            let is_all = filter.conditions.is_empty() && !filter.is_partial;
            let why = match class {
                None => Some("it selects no class that headend reads"),
                _ if filter.is_partial => {
                    Some("the filter has a part that is no condition of a policy")
                }
                Some(_) => None,
            };
            if let (Some(class), None, false) = (class, why, is_all) {
                let of = tree.filters.entry(class.to_owned()).or_default();
                of.push((object.place.clone(), filter.conditions.clone()));
            }
            if let (Some(class), None, true) = (class, why, is_all) {
                class.clone_into(&mut tree.default);
            }
            let keys: Vec<String> = filter
                .conditions
                .keys()
                .map(|key| format!("class.{key}"))
                .collect();
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            for part in &filter.parts {
                self.import.options += 1;
                let (text, own) = match part {
                    Part::Used(text) => (text, None),
                    Part::Lost(text, why) => (text, Some(*why)),
                };
                let option = format!("{} {text}", name(object));
                match own.or(why) {
                    Some(why) => self.import.report.lost(&object.place, &option, why),
                    None if is_all => {
                        let why = "packets that no section takes";
                        self.import
                            .report
                            .line(&object.place, &option, Fate::Kept, why);
                    }
                    None => self.import.report.key(&object.place, &option, &keys, ""),
                }
            }
            if filter.parts.is_empty() {
                let object = object.clone();
                self.lost(&object, "the filter has no options that headend knows");
            }
        }
    }

    /// Reads the classes below `parent`, whose section is `above`.
    fn below(
        &mut self,
        tree: &mut Tree,
        parent: &str,
        above: Option<&str>,
        depth: usize,
        entries: &mut [Entry],
    ) {
        if let Some(class) = tree.classes.get_mut(parent) {
            class.is_read = true;
        }
        if depth == DEPTH_MAX {
            return;
        }
        let mut ids: Vec<String> = tree
            .classes
            .iter()
            .filter(|(_, class)| class.parent == parent && !class.is_read)
            .map(|(id, _)| id.clone())
            .collect();
        // A policy tries its sections in order, and tc its filters.
        ids.sort_by_key(|id| tree.filters.get(id).map(|filters| filters[0].0.clone()));
        for id in ids {
            let is_parent = tree.classes.values().any(|class| class.parent == id);
            let section = format!("{} {}", tree.way.name(), id);
            let object = entries[tree.classes[&id].at].object.clone();
            if id == tree.default && !is_parent {
                self.rest_class(tree, &object);
            } else {
                let filters = tree.filters.remove(&id).unwrap_or_default();
                if is_parent || !filters.is_empty() {
                    self.section(tree, &object, (&section, above), is_parent, &filters);
                } else {
                    let why = "no filter that headend reads selects the class";
                    self.lost(&object, why);
                }
            }
            if let Some(at) = child(&id, entries) {
                if id == tree.default {
                    self.leaf_of_rest(&mut entries[at]);
                } else {
                    self.leaf_of_class(&section, &mut entries[at]);
                }
            }
            self.below(tree, &id, Some(&section), depth + 1, entries);
        }
    }

    /// The class of packets that no section takes.
    fn rest_class(&mut self, tree: &Tree, object: &Object) {
        for (key, value) in pairs(&object.words) {
            let is_below = tree.link_bps > bps(value);
            let (fate, why) = match key {
                "rate" => (
                    Fate::Kept,
                    "packets that no section takes have the rate that the sections leave",
                ),
                "ceil" if is_below => (
                    Fate::NotSupported,
                    "packets that no section takes may use the whole link",
                ),
                "ceil" => (
                    Fate::Kept,
                    "packets that no section takes may use the whole link",
                ),
                "prio" => (
                    Fate::Kept,
                    "the priorities of the sections are relative to it",
                ),
                _ => (Fate::NoEffect, COMPUTED),
            };
            self.report(object, key, fate, why);
        }
        if tree.filters.contains_key(&object.handle) {
            // Its filters are reported as keys, which Report::verify takes back where no section has them.
            let filters = &tree.filters[&object.handle];
            for (place, conditions) in filters {
                for key in conditions.keys() {
                    let why = "packets that no section takes go there without a condition";
                    self.import
                        .report
                        .take_back(place, &format!("class.{key}"), Fate::Kept, why);
                }
            }
        }
    }

    /// Makes the section of a class. Several filters that are not one list become sections below it.
    fn section(
        &mut self,
        tree: &Tree,
        object: &Object,
        (section, above): (&str, Option<&str>),
        is_parent: bool,
        filters: &[(Place, Conditions)],
    ) {
        let class = Class::read(object, 0);
        let base = tree
            .classes
            .get(&tree.default)
            .map_or(0, |class| class.prio);
        let priority = (3 + class.prio - base).clamp(1, 7);
        let merged = if is_parent {
            Vec::new()
        } else {
            merge(filters)
        };
        let from = std::slice::from_ref(&object.place);
        let mut table = Table::each("class");
        table.set("name", section, from, "");
        table.set("direction", tree.way.name(), from, "");
        if let Some(above) = above {
            table.set("parent", above, &[], "");
        }
        for (key, value) in pairs(&object.words) {
            self.import.options += 1;
            let option = format!("{} {key}", name(object));
            let key = match key {
                "rate" | "ceil" => {
                    table.set(key, small(value), from, "");
                    key
                }
                "prio" => "priority",
                _ => {
                    self.import
                        .report
                        .line(&object.place, &option, Fate::NoEffect, COMPUTED);
                    continue;
                }
            };
            self.import
                .report
                .key(&object.place, &option, &[&format!("class.{key}")], "");
        }
        table.set("priority", priority, from, "");
        let has_children = is_parent || merged.len() > 1;
        if is_parent {
            self.without_conditions(filters);
        }
        if let ([(places, conditions)], false) = (merged.as_slice(), is_parent) {
            conditions_of(&mut table, places, conditions);
        }
        let template = table.clone();
        self.import.policy.tables.push(table);
        if has_children && !is_parent {
            let share = bps(&class.rate).unwrap_or(0) / merged.len() as u64;
            self.divide_class(&template, share, &merged);
        }
    }

    /// Takes back the conditions of a class that has classes below it.
    fn without_conditions(&mut self, filters: &[(Place, Conditions)]) {
        for (place, conditions) in filters {
            for key in conditions.keys() {
                let why = "a class with classes below it has no conditions";
                let key = format!("class.{key}");
                self.import
                    .report
                    .take_back(place, &key, Fate::NotSupported, why);
            }
        }
    }

    /// Makes a section for each of several filters, below that of their class.
    fn divide_class(&mut self, class: &Table, share: u64, merged: &[(Vec<Place>, Conditions)]) {
        let section = match class.get("name") {
            Some(Value::Text(name)) => name.clone(),
            _ => String::new(),
        };
        for (number, (places, conditions)) in (1..).zip(merged) {
            let mut below = Table::each("class");
            let rate = objects::rate(share.max(1));
            below.set("name", format!("{section} filter {number}"), places, "");
            below.set("parent", section.as_str(), places, "");
            below.set("rate", rate, places, "a part of the class's rate");
            for key in ["direction", "ceil", "priority"] {
                if let Some(value) = class.get(key) {
                    below.set(key, value.clone(), places, "");
                }
            }
            conditions_of(&mut below, places, conditions);
            self.import.policy.tables.push(below);
        }
    }

    /// The queue of a class: its kind and its limit are keys.
    fn leaf_of_class(&mut self, section: &str, entry: &mut Entry) {
        entry.is_done = true;
        let object = entry.object.clone();
        let tables = self.import.policy.tables.iter();
        let own: Vec<usize> = tables
            .enumerate()
            .filter(|(_, table)| {
                let is_own = table.get("name") == Some(&section.into());
                let is_below = table.get("parent") == Some(&section.into());
                (is_own || is_below) && table.path == "class"
            })
            .map(|(at, _)| at)
            .collect();
        // With sections for several filters, those have the queues.
        let leaves = if own.len() > 1 { &own[1..] } else { &own[..] };
        self.import.options += leaf::class(&mut self.import, &object, &name(&object), leaves);
    }
}

const COMPUTED: &str = "headend computes it from the rate";

/// A class of htb.
#[derive(Debug)]
struct Class {
    at: usize,
    parent: String,
    rate: String,
    prio: i64,
    is_read: bool,
}

impl Class {
    fn read(object: &Object, at: usize) -> Class {
        let value = |wanted: &str| {
            let pairs = pairs(&object.words);
            let found = pairs.iter().find(|(key, _)| *key == wanted);
            found.map_or(String::new(), |(_, value)| (*value).to_owned())
        };
        Class {
            at,
            parent: object.parent.clone(),
            rate: value("rate"),
            prio: value("prio").parse().unwrap_or(0).clamp(0, 7),
            is_read: false,
        }
    }
}

/// The classes of one direction.
struct Tree {
    way: Way,
    classes: BTreeMap<String, Class>,
    /// The rate of the class at the root.
    link_bps: Option<u64>,
    /// The class of packets that no filter takes.
    default: String,
    /// The conditions of each class, with the place of each filter, in the order of the filters.
    filters: BTreeMap<String, Vec<(Place, Conditions)>>,
}

/// A rate in bits per second.
fn bps(text: &str) -> Option<u64> {
    qos::units::rate(&small(text)).ok()
}

/// Joins filters on the same single field into one list.
fn merge(filters: &[(Place, Conditions)]) -> Vec<(Vec<Place>, Conditions)> {
    let mut merged: Vec<(Vec<Place>, Conditions)> = Vec::new();
    for (place, conditions) in filters {
        let same = merged.iter_mut().find(|(_, known)| {
            *known == *conditions
                || (known.len() == 1 && conditions.len() == 1 && known.keys().eq(conditions.keys()))
        });
        match same {
            Some((places, known)) => {
                places.push(place.clone());
                for (key, values) in conditions {
                    let known = known.entry(key).or_default();
                    let new: Vec<String> = values
                        .iter()
                        .filter(|value| !known.contains(value))
                        .cloned()
                        .collect();
                    known.extend(new);
                }
            }
            None => merged.push((vec![place.clone()], conditions.clone())),
        }
    }
    merged
}

fn conditions_of(table: &mut Table, places: &[Place], conditions: &Conditions) {
    for (key, values) in conditions {
        table.set(key, Value::texts(values), places, "");
    }
    let is_flow = |key: &&&str| matches!(**key, "proto" | "src" | "dst" | "src_port" | "dst_port");
    if conditions.keys().any(|key| is_flow(&key)) {
        table.set("header", "outer", &[], "tc looks at the outer header");
    }
}
