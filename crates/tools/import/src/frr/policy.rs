//! Prefix lists, AS path lists, community lists and route-maps, and the policies that they become.
//!
//! The result never accepts more routes than the source: a term that permits is left out if headend lacks one of its
//! conditions, and a term that denies then denies more.

use std::collections::{BTreeMap, BTreeSet};

use super::peers::Peer;
use super::{Block, Work};
use crate::Import;
use crate::bgp;
use crate::document::{Table, Value};
use crate::report::{Fate, Place};

/// An entry of a list.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    sequence: u32,
    permits: bool,
    words: Vec<String>,
    at: Place,
    option: &'static str,
}

/// An entry of a route-map.
#[derive(Clone, Debug)]
pub(super) struct MapEntry {
    name: String,
    sequence: u32,
    permits: bool,
    at: Place,
    pub lines: Vec<MapLine>,
}

/// A line of an entry.
#[derive(Clone, Debug)]
pub(super) struct MapLine {
    pub words: Vec<String>,
    pub at: Place,
}

/// What a direction of a neighbour refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reference {
    Map(String),
    List(String),
    /// The source filters in a way that headend does not.
    Deny,
    /// The source does not filter.
    Accept,
}

impl Reference {
    fn name(&self) -> String {
        match self {
            Reference::Map(name) => name.clone(),
            Reference::List(name) => bgp::list_policy(name),
            Reference::Deny => "deny".into(),
            Reference::Accept => "accept".into(),
        }
    }
}

impl Work {
    /// An entry of a list: `[seq N] permit|deny WORDS`.
    pub(super) fn list(
        import: &mut Import,
        lists: &mut BTreeMap<String, Vec<Entry>>,
        name: &str,
        rest: &[&str],
        at: &Place,
        option: &'static str,
    ) {
        if let ["description", ..] = rest {
            return import.report.line(at, option, Fate::NoEffect, "a comment");
        }
        let list = lists.entry(name.to_owned()).or_default();
        let last = list.last().map_or(0, |entry| entry.sequence);
        let (sequence, rest) = match rest {
            ["seq", number, rest @ ..] => (number.parse().ok(), rest),
            rest => (Some(last.saturating_add(5)), rest),
        };
        let permits = match rest.first() {
            Some(&"permit") => Some(true),
            Some(&"deny") => Some(false),
            _ => None,
        };
        let (Some(sequence), Some(permits), true) = (sequence, permits, rest.len() > 1) else {
            return import.report.unknown(
                at,
                option,
                "write [seq NUMBER] permit or deny, then what it matches",
            );
        };
        list.push(Entry {
            sequence,
            permits,
            words: rest[1..].iter().map(|&word| word.to_owned()).collect(),
            at: at.clone(),
            option,
        });
        list.sort_by_key(|entry| entry.sequence);
    }

    /// The start of an entry of a route-map.
    pub(super) fn map(&mut self, name: &str, rest: &[&str], at: &Place) {
        let (permits, sequence) = match rest {
            ["permit", number] => (true, number.parse().ok()),
            ["deny", number] => (false, number.parse().ok()),
            _ => (true, None),
        };
        let Some(sequence) = sequence else {
            self.import
                .report
                .unknown(at, "route-map NAME", "write permit or deny, then a number");
            self.block = Block::Other(Fate::Unknown, "in a route-map whose start is not known");
            return;
        };
        self.maps.push(MapEntry {
            name: name.to_owned(),
            sequence,
            permits,
            at: at.clone(),
            lines: Vec::new(),
        });
        self.block = Block::Map(self.maps.len() - 1);
    }

    /// Sets `import` or `export` of a neighbour, whose families are `on`.
    pub(super) fn direction(
        &mut self,
        peer: &mut Peer,
        direction: &'static str,
        on: &[&'static str],
    ) {
        let absent = if self.needs_policy && !self.is_internal(&peer.table) {
            Reference::Deny
        } else {
            Reference::Accept
        };
        let given: Vec<_> = on
            .iter()
            .map(|family| peer.policies.get(&(direction, *family)).cloned())
            .collect();
        if given.iter().all(Option::is_none) {
            return;
        }
        let places: Vec<Place> = given.iter().flatten().map(|(_, at)| at.clone()).collect();
        let references: Vec<Reference> = given
            .into_iter()
            .map(|one| one.map_or(absent.clone(), |(reference, _)| reference))
            .collect();
        let distinct: BTreeSet<&Reference> = references.iter().collect();
        let name = if distinct.len() == 1 {
            references[0].name()
        } else {
            let parts = references
                .iter()
                .zip(on)
                .map(|(reference, family)| format!("{} ({family})", reference.name()));
            parts.collect::<Vec<_>>().join(", ")
        };
        peer.table.set(direction, name.as_str(), &places, "");
        let tables = &self.import.config.tables;
        let is_there = |table: &Table| {
            table.path == "bgp.policy" && table.get("name") == Some(&name.as_str().into())
        };
        if matches!(references[0], Reference::Deny | Reference::Accept) && distinct.len() == 1
            || tables.iter().any(is_there)
        {
            return;
        }
        let mut terms = Vec::new();
        if distinct.len() == 1 {
            terms = self.terms(&references[0], &places[0]);
        } else {
            for (reference, family) in references.iter().zip(on) {
                for mut term in self.terms(reference, &places[0]) {
                    term.set("family", *family, &[], "");
                    bgp::then_last(&mut term);
                    terms.push(term);
                }
                let mut end = bgp::term("deny", &places[0]);
                end.set("family", *family, &[], "");
                bgp::then_last(&mut end);
                terms.push(end);
            }
        }
        bgp::add_policy(&mut self.import.config, &name, &places, terms);
    }

    fn is_internal(&self, table: &Table) -> bool {
        match (table.get("remote_asn"), &self.asn) {
            (Some(Value::Text(kind)), _) => kind == "internal",
            (Some(Value::Number(asn)), Some((own, _))) => asn == own,
            _ => false,
        }
    }

    fn terms(&mut self, reference: &Reference, at: &Place) -> Vec<Table> {
        match reference {
            Reference::Accept => vec![bgp::term("accept", at)],
            Reference::Deny => vec![bgp::term("deny", at)],
            Reference::List(name) => {
                let entries = self.prefix_lists.get(name).cloned().unwrap_or_default();
                entries
                    .iter()
                    .filter_map(|entry| self.list_term(entry))
                    .collect()
            }
            Reference::Map(name) => {
                let mut entries: Vec<MapEntry> = self
                    .maps
                    .iter()
                    .filter(|entry| entry.name == *name)
                    .cloned()
                    .collect();
                entries.sort_by_key(|entry| entry.sequence);
                entries
                    .iter()
                    .filter_map(|entry| self.map_term(entry))
                    .collect()
            }
        }
    }

    /// The prefix of an entry, with its bounds.
    fn prefixes(&mut self, entry: &Entry) -> Option<Vec<String>> {
        let words: Vec<&str> = entry.words.iter().map(String::as_str).collect();
        let is_ipv6 = entry.option.starts_with("ipv6");
        let bound = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            words.get(at + 1)?.parse().ok()
        };
        let found = match words[0] {
            "any" if is_ipv6 => bgp::bounded("::/0", None, Some(128)),
            "any" => bgp::bounded("0.0.0.0/0", None, Some(32)),
            prefix => bgp::bounded(prefix, bound("ge"), bound("le")),
        };
        if found.is_none() {
            self.import
                .report
                .unknown(&entry.at, entry.option, "not a prefix with lengths");
        }
        found.map(|prefix| vec![prefix])
    }

    fn list_term(&mut self, entry: &Entry) -> Option<Table> {
        let prefixes = self.prefixes(entry);
        if prefixes.is_none() && entry.permits {
            return None;
        }
        let mut term = bgp::term(if entry.permits { "accept" } else { "deny" }, &entry.at);
        if let Some(prefixes) = prefixes {
            term.set(
                "prefix",
                Value::Texts(prefixes),
                std::slice::from_ref(&entry.at),
                "",
            );
            self.import
                .report
                .key(&entry.at, entry.option, &["bgp.policy.term.prefix"], "");
        }
        bgp::then_last(&mut term);
        Some(term)
    }

    /// One entry of a route-map; `None` if it permits and a condition of it is lost.
    fn map_term(&mut self, entry: &MapEntry) -> Option<Table> {
        let mut term = bgp::term(if entry.permits { "accept" } else { "deny" }, &entry.at);
        let mut is_whole = true;
        for line in &entry.lines {
            let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
            if words[0] == "match" {
                is_whole &= self.condition(&mut term, &words, &line.at);
            } else {
                self.action(&mut term, &words, &line.at);
            }
        }
        // Conditions that have no key were reported when they were read.
        let report = &self.import.report;
        let next = self
            .maps
            .iter()
            .filter(|other| other.at.file == entry.at.file && other.at.line > entry.at.line);
        let end = next.map(|other| other.at.line).min().unwrap_or(usize::MAX);
        let is_lost = |line: &&crate::Line| {
            line.place.file == entry.at.file
                && (entry.at.line..end).contains(&line.place.line)
                && (matches!(line.option.as_str(), "match" | "call") && line.fate.is_lost()
                    || line.fate == Fate::Unknown)
        };
        is_whole &= report.lines().iter().find(is_lost).is_none();
        if !is_whole && entry.permits {
            let why =
                "a condition is not supported, so the entry is left out: it would permit too much";
            self.import.report.lost(&entry.at, "route-map NAME", why);
            return None;
        }
        let why = if is_whole {
            ""
        } else {
            "a condition is not supported, so the entry denies more"
        };
        self.import
            .report
            .key(&entry.at, "route-map NAME", &["bgp.policy.term.then"], why);
        bgp::then_last(&mut term);
        Some(term)
    }

    /// A condition; returns whether it is carried over.
    fn condition(&mut self, term: &mut Table, words: &[&str], at: &Place) -> bool {
        let found = match words {
            ["match", "ip" | "ipv6", "address", "prefix-list", name] => self.listed_prefixes(name),
            ["match", "as-path", name] => self.listed_path(name),
            ["match", kind @ ("community" | "large-community"), name] => {
                let key = if *kind == "community" {
                    "community"
                } else {
                    "large_community"
                };
                self.listed_communities(name).map(|list| (key, list))
            }
            ["match", "origin", origin] => Ok(("origin", Value::from(*origin))),
            ["match", "peer", "local"] => Ok(("neighbour", Value::texts(&["local"]))),
            ["match", "peer", peer] => Ok(("neighbour", Value::texts(&[*peer]))),
            _ => Err("headend's policies have no such condition"),
        };
        let option = words[..words.len().min(2)].join(" ");
        match found {
            // A list that permits everything is no condition.
            Ok(("", _)) => {
                self.import
                    .report
                    .line(at, &option, Fate::Kept, "it matches every route")
            }
            Ok((key, value)) if term.get(key).is_none() => {
                term.set(key, value, std::slice::from_ref(at), "");
                self.import
                    .report
                    .key(at, &option, &[&format!("bgp.policy.term.{key}")], "");
            }
            Ok(_) => {
                self.import
                    .report
                    .lost(at, &option, "the entry has this condition already");
                return false;
            }
            Err(why) => {
                self.import.report.lost(at, &option, why);
                return false;
            }
        }
        true
    }

    fn listed_prefixes(&mut self, name: &str) -> Result<(&'static str, Value), &'static str> {
        let entries = self
            .prefix_lists
            .get(name)
            .cloned()
            .ok_or("there is no such list")?;
        if entries.iter().any(|entry| !entry.permits) {
            for entry in &entries {
                self.import.report.lost(
                    &entry.at,
                    entry.option,
                    "headend cannot match a list with entries that deny",
                );
            }
            return Err("headend cannot match a list with entries that deny");
        }
        let mut all = Vec::new();
        for entry in &entries {
            if let Some(prefixes) = self.prefixes(entry) {
                all.extend(prefixes);
                self.import
                    .report
                    .key(&entry.at, entry.option, &["bgp.policy.term.prefix"], "");
            }
        }
        Ok(("prefix", Value::Texts(all)))
    }

    fn listed_path(&mut self, name: &str) -> Result<(&'static str, Value), &'static str> {
        let entries = self
            .as_path_lists
            .get(name)
            .cloned()
            .ok_or("there is no such list")?;
        let why = "headend matches a list with one entry, which permits a simple expression such as _64500_ or ^64500$";
        let [entry] = entries.as_slice() else {
            for entry in &entries {
                self.import.report.lost(&entry.at, entry.option, why);
            }
            return Err(why);
        };
        let text = entry.words.join(" ");
        if entry.permits && text == ".*" {
            self.import.report.line(
                &entry.at,
                entry.option,
                Fate::Kept,
                "it matches every route",
            );
            return Ok(("", Value::Flag(true)));
        }
        match bgp::as_path_condition(&text).filter(|_| entry.permits) {
            Some((key, value)) => {
                self.import.report.key(
                    &entry.at,
                    entry.option,
                    &[&format!("bgp.policy.term.{key}")],
                    "",
                );
                Ok((key, value))
            }
            None => {
                self.import.report.lost(&entry.at, entry.option, why);
                Err(why)
            }
        }
    }

    fn listed_communities(&mut self, name: &str) -> Result<Value, &'static str> {
        let entries = self
            .community_lists
            .get(name)
            .cloned()
            .ok_or("there is no such list")?;
        let is_simple = |entry: &Entry| {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == ':' || c == '-';
            entry.permits && entry.words.len() == 1 && entry.words[0].chars().all(plain)
        };
        let why = "headend matches a list whose entries each permit one community, without a regular expression";
        if !entries.iter().all(is_simple) {
            for entry in &entries {
                self.import.report.lost(&entry.at, entry.option, why);
            }
            return Err(why);
        }
        for entry in &entries {
            self.import
                .report
                .key(&entry.at, entry.option, &["bgp.policy.term.community"], "");
        }
        Ok(Value::Texts(
            entries
                .into_iter()
                .map(|entry| community(&entry.words[0]))
                .collect(),
        ))
    }

    fn action(&mut self, term: &mut Table, words: &[&str], at: &Place) {
        let option = words[..words.len().min(2)].join(" ");
        let number = |text: &str| {
            text.parse::<u32>()
                .ok()
                .map(|number| Value::Number(number.into()))
        };
        let own = self.asn.as_ref().map(|(asn, _)| asn.to_string());
        let found = match words {
            ["set", "local-preference", text] => {
                number(text).map(|value| ("set_local_pref", value))
            }
            ["set", "metric", text] => number(text).map(|value| ("set_med", value)),
            ["set", "origin", origin] => Some(("set_origin", Value::from(*origin))),
            ["set", "ip", "next-hop", ip] | ["set", "ipv6", "next-hop", "global", ip] => ip
                .parse::<std::net::IpAddr>()
                .ok()
                .map(|_| ("set_next_hop", Value::from(*ip))),
            ["set", "as-path", "prepend", asns @ ..] => {
                let is_own = asns.iter().all(|asn| Some(*asn) == own.as_deref());
                is_own.then_some(("prepend", Value::Number(asns.len() as i64)))
            }
            ["set", "extcommunity", "rt", all @ ..] => {
                let all: Vec<String> = all.iter().map(|one| format!("RT:{one}")).collect();
                Some(("set_ext_community", Value::Texts(all)))
            }
            ["set", kind @ ("community" | "large-community"), all @ ..] => {
                let is_large = *kind == "large-community";
                let added = all.strip_suffix(&["additive"]);
                let key = match (is_large, added.is_some()) {
                    (false, false) => "set_community",
                    (false, true) => "add_community",
                    (true, false) => "set_large_community",
                    (true, true) => "add_large_community",
                };
                let all = added.unwrap_or(all).iter().filter(|one| **one != "none");
                Some((key, Value::Texts(all.map(|one| community(one)).collect())))
            }
            _ => None,
        };
        match found {
            Some((key, value)) => {
                term.set(key, value, std::slice::from_ref(at), "");
                self.import
                    .report
                    .key(at, &option, &[&format!("bgp.policy.term.{key}")], "");
            }
            None => self
                .import
                .report
                .lost(at, &option, "headend's policies have no such action"),
        }
    }

    /// Reports the lists and route-maps that no neighbour uses.
    pub(super) fn unused_policies(&mut self) {
        let known: BTreeSet<Place> = self
            .import
            .report
            .lines()
            .iter()
            .map(|line| line.place.clone())
            .collect();
        let lists = [
            &self.prefix_lists,
            &self.as_path_lists,
            &self.community_lists,
        ];
        let entries = lists.into_iter().flat_map(|lists| lists.values().flatten());
        let mut unused: Vec<(Place, String)> = entries
            .map(|entry| (entry.at.clone(), entry.option.to_owned()))
            .collect();
        for entry in &self.maps {
            unused.push((entry.at.clone(), "route-map NAME".into()));
            let lines = entry.lines.iter();
            unused.extend(lines.map(|line| {
                (
                    line.at.clone(),
                    line.words[..line.words.len().min(2)].join(" "),
                )
            }));
        }
        for (place, option) in unused
            .into_iter()
            .filter(|(place, _)| !known.contains(place))
        {
            self.import
                .report
                .line(&place, &option, Fate::NoEffect, "no neighbour uses it");
        }
    }
}

/// A community in headend's words.
fn community(text: &str) -> String {
    match text {
        "local-AS" => "no-export-subconfed".into(),
        text => text.to_owned(),
    }
}
