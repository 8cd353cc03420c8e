//! BIRD's filters. A filter becomes a policy only if each of its statements has a counterpart; else the direction is
//! closed, so that the result never accepts more routes than the source.

use super::Work;
use super::syntax::Statement;
use crate::bgp;
use crate::document::{Document, Table, Value};
use crate::report::Place;

/// What a direction of a channel does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    name: String,
    /// `None` for `accept` and `deny`.
    terms: Option<Vec<Table>>,
}

impl Policy {
    pub(super) fn accept() -> Policy {
        Policy {
            name: "accept".into(),
            terms: None,
        }
    }

    pub(super) fn deny() -> Policy {
        Policy {
            name: "deny".into(),
            terms: None,
        }
    }

    /// The same, with a next hop in each term that accepts and has none.
    pub(super) fn with_next_hop(&self, ip: &str, at: &Place) -> Policy {
        let mut terms = self.terms(at);
        for term in &mut terms {
            if term.get("then") == Some(&"accept".into()) && term.get("set_next_hop").is_none() {
                term.set("set_next_hop", ip, std::slice::from_ref(at), "");
                bgp::then_last(term);
            }
        }
        Policy {
            name: format!("{}, next hop {ip}", self.name),
            terms: Some(terms),
        }
    }

    fn terms(&self, at: &Place) -> Vec<Table> {
        match &self.terms {
            Some(terms) => terms.clone(),
            None => vec![bgp::term(&self.name, at)],
        }
    }
}

/// Adds the policy of a direction, of all families, and returns its name.
pub(super) fn add(config: &mut Document, filters: &[(&str, Policy)], from: &[Place]) -> String {
    let Some((_, first)) = filters.first() else {
        return "deny".into();
    };
    let is_one = filters.iter().all(|(_, policy)| policy == first);
    let names: Vec<String> = filters
        .iter()
        .map(|(family, policy)| format!("{} ({family})", policy.name))
        .collect();
    let name = if is_one {
        first.name.clone()
    } else {
        names.join(", ")
    };
    let Some(place) = from.first() else {
        return name;
    };
    let is_there = |table: &Table| {
        table.path == "bgp.policy" && table.get("name") == Some(&name.as_str().into())
    };
    if is_one && first.terms.is_none() || config.tables.iter().any(is_there) {
        return name;
    }
    let mut terms = Vec::new();
    if is_one {
        terms = first.terms(place);
    } else {
        for (family, policy) in filters {
            let end = bgp::term("deny", place);
            for mut term in policy.terms(place).into_iter().chain([end]) {
                term.set("family", *family, &[], "");
                bgp::then_last(&mut term);
                terms.push(term);
            }
        }
    }
    bgp::add_policy(config, &name, from, terms);
    name
}

/// A filter while it is read: its terms, and the lines with the keys that they became.
#[derive(Default)]
struct Reading {
    terms: Vec<Table>,
    lines: Vec<(Place, Vec<String>)>,
}

impl Work<'_> {
    /// `all`, `none`, `filter NAME`, `filter { ... }` or `where CONDITION`.
    pub(super) fn policy(&mut self, rest: &[&str], statement: &Statement, at: &Place) -> Policy {
        if let ["filter", name] = rest {
            self.used.insert((*name).to_owned());
        }
        let direction = statement
            .words
            .first()
            .map_or("import", String::as_str)
            .to_owned();
        let mut reading = Reading::default();
        let (name, done) = match rest {
            ["all"] => (String::new(), Some(Policy::accept())),
            ["none"] => (String::new(), Some(Policy::deny())),
            ["filter"] => {
                let body = statement.block.clone().unwrap_or_default();
                (
                    format!("filter of line {}", at.line),
                    self.filter(&body, &mut reading).map(|()| Policy::deny()),
                )
            }
            ["filter", name] => match self.filters.get(*name).cloned() {
                Some(body) => (
                    (*name).to_owned(),
                    self.filter(&body, &mut reading).map(|()| Policy::deny()),
                ),
                None => (String::new(), None),
            },
            ["where", condition @ ..] => {
                let mut term = bgp::term("accept", at);
                let read = self.condition(&mut term, condition, at);
                bgp::then_last(&mut term);
                reading.terms.push(term);
                (
                    format!("where of line {}", at.line),
                    read.map(|_| Policy::deny()),
                )
            }
            _ => (String::new(), None),
        };
        let key = format!("bgp.neighbor.{direction}");
        match done {
            Some(policy) if name.is_empty() => {
                self.import.report.key(at, &direction, &[&key], "");
                policy
            }
            Some(_) => {
                self.import.report.key(at, &direction, &[&key], "");
                for (place, keys) in reading.lines {
                    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                    self.import.report.key(&place, "filter", &keys, "");
                }
                Policy {
                    name,
                    terms: Some(reading.terms),
                }
            }
            None => {
                self.close(rest, statement, at, &direction);
                Policy::deny()
            }
        }
    }

    /// Reports a filter without a counterpart.
    fn close(&mut self, rest: &[&str], statement: &Statement, at: &Place, direction: &str) {
        let why = "the filter has no counterpart in headend; the direction is \"deny\"";
        self.import.report.lost(at, direction, why);
        let body = match rest {
            ["filter", name] => self.filters.get(*name).cloned(),
            _ => statement.block.clone(),
        };
        for statement in body.iter().flatten() {
            let at = self.at(statement);
            self.import.report.lost(&at, "filter", why);
            self.inside(statement, crate::Fate::NotSupported, why);
        }
    }

    /// The terms of a filter's statements; `None` if one has no counterpart.
    fn filter(&self, body: &[Statement], reading: &mut Reading) -> Option<()> {
        let mut is_terminal = false;
        for statement in body {
            let at = self.at(statement);
            let words = statement.words();
            match words.as_slice() {
                // The branch before it ends the filter, so that what follows is reached without it.
                ["else", rest @ ..] => {
                    if !is_terminal {
                        return None;
                    }
                    let mut inner = statement.block.clone().unwrap_or_default();
                    if !rest.is_empty() {
                        inner.insert(
                            0,
                            Statement {
                                words: rest.iter().map(|&word| word.to_owned()).collect(),
                                line: statement.line,
                                file: statement.file.clone(),
                                block: statement
                                    .block
                                    .clone()
                                    .filter(|_| rest.first() == Some(&"if")),
                            },
                        );
                        inner.truncate(1);
                    }
                    reading
                        .lines
                        .push((at, vec!["bgp.policy.term.then".into()]));
                    self.filter(&inner, reading)?;
                    is_terminal = false;
                }
                ["if", rest @ ..] => {
                    let then = rest.iter().position(|word| *word == "then")?;
                    let mut term = Table::each("bgp.policy.term");
                    let mut keys = self.condition(&mut term, &rest[..then], &at)?;
                    let after = &rest[then + 1..];
                    let single = Statement {
                        words: after.iter().map(|&word| word.to_owned()).collect(),
                        line: statement.line,
                        file: statement.file.clone(),
                        block: None,
                    };
                    let actions = match &statement.block {
                        Some(block) if after.is_empty() => block.clone(),
                        None => vec![single],
                        Some(_) => return None,
                    };
                    let outcome = self.actions(&mut term, &actions, reading)?;
                    is_terminal = outcome != "next";
                    term.set("then", outcome, std::slice::from_ref(&at), "");
                    keys.push("bgp.policy.term.then".into());
                    reading.lines.push((at, keys));
                    reading.terms.push(term);
                }
                _ => {
                    let mut term = Table::each("bgp.policy.term");
                    let outcome =
                        self.actions(&mut term, std::slice::from_ref(statement), reading)?;
                    term.set("then", outcome, std::slice::from_ref(&at), "");
                    reading.terms.push(term);
                    is_terminal = false;
                }
            }
        }
        Some(())
    }

    /// The actions of a branch, and its outcome.
    fn actions(
        &self,
        term: &mut Table,
        body: &[Statement],
        reading: &mut Reading,
    ) -> Option<&'static str> {
        for (number, statement) in body.iter().enumerate() {
            let at = self.at(statement);
            let words: Vec<String> = statement
                .words()
                .into_iter()
                .map(|word| self.value(word))
                .collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            if statement.block.is_some() {
                return None;
            }
            let is_last = number + 1 == body.len();
            match words.as_slice() {
                ["accept", ..] | ["reject", ..] if is_last => {
                    reading
                        .lines
                        .push((at, vec!["bgp.policy.term.then".into()]));
                    return Some(if words[0] == "accept" {
                        "accept"
                    } else {
                        "deny"
                    });
                }
                ["print", ..] => reading.lines.push((at, Vec::new())),
                _ => {
                    let (key, value) = self.action(&words)?;
                    match (value, key.starts_with("set_"), term.get(key)) {
                        (value, _, None) => term.set(key, value, std::slice::from_ref(&at), ""),
                        // Further communities of the same action.
                        (Value::Texts(texts), false, Some(_)) => {
                            texts.iter().for_each(|text| term.add(key, text, &at));
                        }
                        _ => return None,
                    }
                    reading
                        .lines
                        .push((at, vec![format!("bgp.policy.term.{key}")]));
                }
            }
        }
        Some("next")
    }

    fn action(&self, words: &[&str]) -> Option<(&'static str, Value)> {
        let number = |text: &str| {
            text.parse::<u32>()
                .ok()
                .map(|number| Value::Number(number.into()))
        };
        match words {
            ["bgp_local_pref", "=", text] => Some(("set_local_pref", number(text)?)),
            ["bgp_med", "=", text] => Some(("set_med", number(text)?)),
            ["bgp_next_hop", "=", ip] => ip
                .parse::<std::net::IpAddr>()
                .ok()
                .map(|_| ("set_next_hop", (*ip).into())),
            ["bgp_origin", "=", "ORIGIN_IGP"] => Some(("set_origin", "igp".into())),
            ["bgp_origin", "=", "ORIGIN_EGP"] => Some(("set_origin", "egp".into())),
            ["bgp_origin", "=", "ORIGIN_INCOMPLETE"] => Some(("set_origin", "incomplete".into())),
            ["bgp_path.prepend", "(", asn, ")"] => {
                (asn.parse().ok() == self.prepends).then_some(("prepend", Value::Number(1)))
            }
            [method, "(", tuple @ .., ")"] => {
                let key = match *method {
                    "bgp_community.add" => "add_community",
                    "bgp_community.delete" => "remove_community",
                    "bgp_large_community.add" => "add_large_community",
                    "bgp_large_community.delete" => "remove_large_community",
                    _ => return None,
                };
                Some((key, Value::Texts(tuples(tuple)?)))
            }
            _ => None,
        }
    }

    /// Conditions joined with `&&`; returns the keys.
    fn condition(&self, term: &mut Table, words: &[&str], at: &Place) -> Option<Vec<String>> {
        let mut keys = Vec::new();
        for part in words.split(|word| *word == "&&") {
            let part: Vec<String> = part.iter().map(|word| self.value(word)).collect();
            let part: Vec<&str> = part.iter().map(String::as_str).collect();
            let Some((key, value)) = single(&part)? else {
                continue;
            };
            if term.get(key).is_some() {
                return None;
            }
            term.set(key, value, std::slice::from_ref(at), "");
            keys.push(format!("bgp.policy.term.{key}"));
        }
        Some(keys)
    }
}

/// One condition. `Some(None)`: it matches every route; `None`: it has no counterpart.
fn single(words: &[&str]) -> Option<Option<(&'static str, Value)>> {
    let number = |text: &str| {
        text.parse::<u32>()
            .ok()
            .map(|number| Value::Number(number.into()))
    };
    let found = match words {
        ["true"] => return Some(None),
        ["net", "=", prefix] => ("prefix", Value::Texts(vec![bgp::network(prefix)?])),
        ["net", "~", "[", set @ .., "]"] => ("prefix", Value::Texts(prefixes(set)?)),
        ["source", "=", kind] => return sources(&[*kind]),
        ["source", "~", "[", set @ .., "]"] => {
            let kinds: Vec<&str> = set.iter().copied().filter(|word| *word != ",").collect();
            return sources(&kinds);
        }
        ["bgp_path.first", "=", asn] => ("neighbour_as", number(asn)?),
        ["bgp_path.last", "=", asn] => ("origin_as", number(asn)?),
        ["bgp_path.len", sign, length] => {
            let length: u32 = length.parse().ok()?;
            let text = match *sign {
                "=" => length.to_string(),
                "<=" | ">=" => format!("{sign} {length}"),
                ">" => format!(">= {}", length.checked_add(1)?),
                "<" => format!("<= {}", length.checked_sub(1)?),
                _ => return None,
            };
            ("as_path_length", text.into())
        }
        ["bgp_path", "~", "[", "=", pattern @ .., "=", "]"] => {
            let is_known = |word: &&str| matches!(*word, "*" | "?") || word.parse::<u32>().is_ok();
            pattern
                .iter()
                .all(is_known)
                .then(|| ("as_path", pattern.join(" ").into()))?
        }
        ["bgp_community", "~", "[", set @ .., "]"] => ("community", Value::Texts(tuples(set)?)),
        ["bgp_large_community", "~", "[", set @ .., "]"] => {
            ("large_community", Value::Texts(tuples(set)?))
        }
        [tuple @ .., "~", "bgp_community"] => ("community", Value::Texts(tuples(tuple)?)),
        [tuple @ .., "~", "bgp_large_community"] => {
            ("large_community", Value::Texts(tuples(tuple)?))
        }
        _ => return None,
    };
    Some(Some(found))
}

/// The origins of routes: our own networks, or peers.
fn sources(kinds: &[&str]) -> Option<Option<(&'static str, Value)>> {
    let known = [
        "RTS_STATIC",
        "RTS_BGP",
        "RTS_DEVICE",
        "RTS_STATIC_DEVICE",
        "RTS_RIP",
        "RTS_OSPF",
    ];
    if !kinds.iter().all(|kind| known.contains(kind)) {
        return None;
    }
    match (kinds.contains(&"RTS_STATIC"), kinds.contains(&"RTS_BGP")) {
        (true, true) => Some(None),
        (true, false) => Some(Some(("neighbour", Value::texts(&["local"])))),
        (false, true) => Some(Some(("neighbour", Value::texts(&["0.0.0.0/0", "::/0"])))),
        (false, false) => None,
    }
}

/// The prefixes of a set: `10.0.0.0/8`, `10.0.0.0/8+`, `10.0.0.0/8-`, `10.0.0.0/8{16,24}`.
fn prefixes(words: &[&str]) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let mut rest = words;
    while let Some((prefix, after)) = rest.split_first() {
        let bits = if prefix.contains(':') { 128 } else { 32 };
        let length: u32 = prefix
            .trim_end_matches('-')
            .split_once('/')?
            .1
            .parse()
            .ok()?;
        let (text, after) = match after {
            _ if prefix.ends_with('-') => return None,
            ["+", after @ ..] => (bgp::bounded(prefix, None, Some(bits)), after),
            ["{", low, ",", high, "}", after @ ..] => {
                let low = low.parse::<u32>().ok()?.max(length);
                (
                    bgp::bounded(prefix, Some(low), Some(high.parse().ok()?)),
                    after,
                )
            }
            after => (bgp::network(prefix), after),
        };
        all.push(text?);
        rest = match after {
            [",", after @ ..] => after,
            [] => &[],
            _ => return None,
        };
    }
    Some(all)
}

/// `(1,2), (1,*)` as `1:2`, `1:*`; also of three numbers.
fn tuples(words: &[&str]) -> Option<Vec<String>> {
    let text = words.concat();
    let mut all = Vec::new();
    for part in text.split("),") {
        let inside = part.trim_end_matches(')').strip_prefix('(')?;
        let parts: Vec<&str> = inside.split(',').collect();
        let is_known = |part: &&str| *part == "*" || part.parse::<u32>().is_ok();
        if !(2..=3).contains(&parts.len()) || !parts.iter().all(is_known) {
            return None;
        }
        all.push(parts.join(":"));
    }
    Some(all)
}
