//! GoBGP's policies. The statements of all policies that a list names become the terms of one policy, in order, and the
//! default becomes its last term. If one statement cannot be translated, the direction becomes `deny`.

use std::collections::BTreeMap;

use super::tree::{Part, Scalar, Setting};
use super::{Work, rules};
use crate::bgp;
use crate::document::{Table, Value};
use crate::report::{Fate, Place};

/// A setting of `defined-sets` or `policy-definitions`.
#[derive(Debug)]
struct Raw {
    /// Its keys below the set, the policy or the statement.
    name: String,
    option: &'static str,
    /// The entry of a list in a set.
    item: usize,
    value: Scalar,
    place: Place,
    becomes: Becomes,
}

/// What became of a setting; the worst of its uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Becomes {
    Unused,
    Kept(&'static str),
    Key(&'static str),
    Lost(String),
}

/// Policies and sets as they are read.
#[derive(Debug, Default)]
pub(super) struct Policies {
    all: Vec<Raw>,
    /// The settings of each set, by kind and number.
    sets: BTreeMap<(String, usize), Vec<usize>>,
    /// The settings of each policy, and of each statement, by their numbers.
    names: BTreeMap<usize, Vec<usize>>,
    statements: BTreeMap<(usize, usize), Vec<usize>>,
    /// The lists of policies for import and export.
    lists: [Option<(Vec<String>, Place)>; 2],
}

/// A setting that cannot be translated, and why.
type Fault = (Option<usize>, &'static str);

const OTHER: &str = "headend's policies have no such condition or action";

impl Policies {
    /// Keeps a setting; `path` is below `defined-sets` or `policy-definitions`.
    pub(super) fn keep(&mut self, option: &'static str, setting: &Setting, place: &Place) {
        let mut keys = Vec::new();
        let mut items = Vec::new();
        for part in &setting.path {
            match part {
                Part::Key(key) => keys.push(key.as_str()),
                Part::Item(item) => items.push(*item),
            }
        }
        let number = self.all.len();
        let item = |at: usize| items.get(at).copied().unwrap_or(0);
        let kind = |name: &str| name.trim_end_matches("-sets").to_owned();
        let name = match &*keys {
            ["defined-sets", "bgp-defined-sets", set, rest @ ..]
            | ["defined-sets", set, rest @ ..] => {
                self.sets
                    .entry((kind(set), item(0)))
                    .or_default()
                    .push(number);
                rest.join(".")
            }
            ["policy-definitions", "statements", rest @ ..] => {
                let at = (item(0), item(1));
                self.statements.entry(at).or_default().push(number);
                rest.join(".")
            }
            rest => {
                self.names.entry(item(0)).or_default().push(number);
                rest[1..].join(".")
            }
        };
        self.all.push(Raw {
            name,
            option,
            item: item(1),
            value: setting.value.clone(),
            place: place.clone(),
            becomes: Becomes::Unused,
        });
    }

    /// Keeps a list of policies; `direction` is 0 for import.
    pub(super) fn list(&mut self, direction: usize, names: &[String], place: &Place) {
        if !names.is_empty() {
            self.lists[direction] = Some((names.to_vec(), place.clone()));
        }
    }

    fn text(&self, number: usize) -> Option<&str> {
        match &self.all[number].value {
            Scalar::Text(text) => Some(text),
            _ => None,
        }
    }

    fn integer(&self, number: usize) -> Option<i64> {
        match &self.all[number].value {
            Scalar::Number(value) => Some(*value),
            Scalar::Text(text) => text.parse::<u32>().ok().map(i64::from),
            _ => None,
        }
    }

    fn texts(&self, number: usize) -> Vec<String> {
        match &self.all[number].value {
            Scalar::Texts(texts) => texts.clone(),
            Scalar::Text(text) => vec![text.clone()],
            _ => Vec::new(),
        }
    }

    fn mark(&mut self, number: usize, becomes: Becomes) {
        let old = &mut self.all[number].becomes;
        *old = becomes.max(old.clone());
    }

    /// The settings of the set that a statement names.
    fn set(&mut self, kind: &str, number: usize) -> Result<Vec<usize>, Fault> {
        let name = self.text(number).map(str::to_owned);
        let key = format!("{kind}-set-name");
        let is_it = |(of, numbers): (&(String, usize), &Vec<usize>)| {
            let mut named = numbers.iter().filter(|at| self.all[**at].name == key);
            let found = of.0 == kind && named.any(|at| self.text(*at) == name.as_deref());
            found.then(|| numbers.clone())
        };
        let found = self.sets.iter().find_map(is_it);
        let found = found.ok_or((Some(number), "there is no such set"))?;
        let (named, rest): (Vec<usize>, Vec<usize>) =
            found.into_iter().partition(|at| self.all[*at].name == key);
        for at in named {
            self.mark(
                at,
                Becomes::Kept("the set is a condition of each term that uses it"),
            );
        }
        if rest.is_empty() {
            return Err((Some(number), "the set is empty"));
        }
        Ok(rest)
    }

    /// The terms of the policies in a list.
    fn terms(&mut self, names: &[String], is_import: bool, asn: i64) -> Result<Vec<Table>, Fault> {
        let mut terms = Vec::new();
        for name in names {
            let is_it = |(policy, numbers): (&usize, &Vec<usize>)| {
                let mut named = numbers.iter().filter(|at| self.all[**at].name == "name");
                named
                    .any(|at| self.text(*at) == Some(name))
                    .then_some(*policy)
            };
            let policy = self.names.iter().find_map(is_it);
            let policy = policy.ok_or((None, "a policy of the list is not defined"))?;
            for number in self.names[&policy].clone() {
                self.mark(number, Becomes::Kept("its statements follow"));
            }
            let statements = self.statements.range((policy, 0)..=(policy, usize::MAX));
            let statements: Vec<Vec<usize>> = statements.map(|(_, all)| all.clone()).collect();
            for statement in statements {
                terms.push(self.term(&statement, is_import, asn)?);
            }
        }
        Ok(terms)
    }

    fn term(&mut self, settings: &[usize], is_import: bool, asn: i64) -> Result<Table, Fault> {
        let mut term = Table::each("bgp.policy.term");
        let find =
            |all: &[Raw], name: &str| settings.iter().copied().find(|at| all[*at].name == name);
        // Conditions first, as one writes a term.
        let is_condition = |at: &usize| self.all[*at].name.starts_with("conditions.");
        let (first, rest): (Vec<usize>, Vec<usize>) =
            settings.iter().partition(|at| is_condition(at));
        for number in first.into_iter().chain(rest) {
            let name = self.all[number].name.clone();
            if let Some(short) = name.strip_prefix("conditions.") {
                self.condition(&mut term, short, number, is_import)?;
            } else if let Some(short) = name.strip_prefix("actions.bgp-actions.") {
                let options = short.split_once('.').map(|(action, _)| {
                    let options = format!("actions.bgp-actions.{action}.options");
                    find(&self.all, &options).and_then(|at| self.text(at))
                });
                let options = options.flatten().unwrap_or("add").to_ascii_lowercase();
                self.action(&mut term, short, number, &options, asn)?;
            } else if name != "name" && name != "actions.route-disposition" {
                return Err((Some(number), OTHER));
            }
        }
        self.length(&mut term, settings)?;
        let then = find(&self.all, "actions.route-disposition");
        let (text, from) = match then.map(|at| (self.text(at).unwrap_or_default().to_owned(), at)) {
            Some((text, at)) => {
                let then = match &*text {
                    "accept-route" => "accept",
                    "reject-route" => "deny",
                    "none" | "" => "next",
                    _ => return Err((Some(at), "neither accept-route nor reject-route")),
                };
                (then, vec![self.all[at].place.clone()])
            }
            None => ("next", Vec::new()),
        };
        term.set("then", text, &from, "");
        if let Some(at) = then {
            self.mark(at, Becomes::Key("bgp.policy.term.then"));
        }
        if let Some(at) = find(&self.all, "name") {
            self.mark(at, Becomes::Kept("headend's terms have no names"));
        }
        Ok(term)
    }

    /// The length of the AS path, whose operator is in a setting of its own.
    fn length(&mut self, term: &mut Table, settings: &[usize]) -> Result<(), Fault> {
        let find = |end: &str| {
            let name = format!("conditions.bgp-conditions.as-path-length.{end}");
            settings
                .iter()
                .copied()
                .find(|at| self.all[*at].name == name)
        };
        let (value, operator) = (find("value"), find("operator"));
        let Some(number) = value else { return Ok(()) };
        if term.get("as_path_length").is_some() {
            return Err((value, "two conditions of one kind"));
        }
        let sign = match operator.and_then(|at| self.text(at)).unwrap_or("eq") {
            "eq" => "",
            "ge" => ">= ",
            "le" => "<= ",
            _ => return Err((operator, "the operators are eq, ge and le")),
        };
        let length = self.integer(number).ok_or((value, "not a number"))?;
        self.put(term, "as_path_length", format!("{sign}{length}"), number);
        Ok(())
    }

    /// Sets a key of a term.
    fn put(&mut self, term: &mut Table, key: &'static str, value: impl Into<Value>, number: usize) {
        let mut from = vec![self.all[number].place.clone()];
        let old = term.entries.iter().find(|entry| entry.key == key);
        from.extend(old.iter().flat_map(|entry| entry.from.clone()));
        term.set(key, value, &from, "");
        let is_it = |path: &&&str| path.rsplit('.').next() == Some(key);
        let path = rules::TERM_KEYS.iter().find(is_it);
        let path = path.copied().unwrap_or("bgp.policy.term.then");
        self.mark(number, Becomes::Key(path));
    }

    fn condition(
        &mut self,
        term: &mut Table,
        short: &str,
        number: usize,
        is_import: bool,
    ) -> Result<(), Fault> {
        let fault = |why| Err((Some(number), why));
        match short.strip_prefix("bgp-conditions.").unwrap_or(short) {
            "match-neighbor-set.neighbor-set" | "route-type" if term.get("neighbour").is_some() => {
                fault("two conditions of one kind")
            }
            "match-prefix-set.prefix-set" => self.prefixes(term, number),
            "match-neighbor-set.neighbor-set" if is_import => {
                self.members(term, "neighbor", "neighbour", number, |text| {
                    Some(text.to_owned())
                })
            }
            "match-neighbor-set.neighbor-set" => {
                fault("for export, headend's policies match the peer that sent the route")
            }
            "match-community-set.community-set" => {
                self.members(term, "community", "community", number, community)
            }
            "match-ext-community-set.ext-community-set" => {
                self.members(term, "ext-community", "ext_community", number, plain)
            }
            "match-large-community-set.large-community-set" => {
                self.members(term, "large-community", "large_community", number, plain)
            }
            "match-as-path-set.as-path-set" => self.as_paths(term, number),
            "rpki-validation-result" => match self.text(number) {
                Some(result @ ("valid" | "invalid" | "not-found")) => {
                    let result = result.to_owned();
                    self.put(term, "rpki", result, number);
                    Ok(())
                }
                _ => fault("the results are valid, invalid and not-found"),
            },
            "route-type" if self.text(number) == Some("local") => {
                self.put(term, "neighbour", Value::texts(&["local"]), number);
                Ok(())
            }
            "afi-safi-in-list" => match &*self.texts(number) {
                [one] if one == "ipv4-unicast" || one == "ipv6-unicast" => {
                    let family = one.split('-').next().unwrap_or_default().to_owned();
                    self.put(term, "family", family, number);
                    Ok(())
                }
                _ => fault("a term has one family, ipv4 or ipv6"),
            },
            "as-path-length.operator" => {
                self.mark(number, Becomes::Key("bgp.policy.term.as_path_length"));
                Ok(())
            }
            "as-path-length.value" => Ok(()),
            other if other.ends_with(".match-set-options") => match self.text(number) {
                Some("any" | "") => {
                    self.mark(number, Becomes::Kept("one entry of a list is enough"));
                    Ok(())
                }
                _ => fault("headend's policies have `any` only, not `all` or `invert`"),
            },
            _ => fault(OTHER),
        }
    }

    fn prefixes(&mut self, term: &mut Table, number: usize) -> Result<(), Fault> {
        // A prefix and its range have the same item.
        let mut entries: BTreeMap<usize, [Option<usize>; 2]> = BTreeMap::new();
        for at in self.set("prefix", number)? {
            let part = match &*self.all[at].name {
                "prefix-list.ip-prefix" => 0,
                "prefix-list.masklength-range" => 1,
                _ => return Err((Some(at), OTHER)),
            };
            entries.entry(self.all[at].item).or_default()[part] = Some(at);
            self.mark(at, Becomes::Key("bgp.policy.term.prefix"));
        }
        let mut prefixes = Vec::new();
        for [prefix, range] in entries.into_values() {
            let text = prefix.and_then(|at| self.text(at)).unwrap_or_default();
            let text = match range.and_then(|at| self.text(at)) {
                None | Some("") => bgp::network(text),
                Some(range) => {
                    let ends = range.split_once("..");
                    let ends =
                        ends.and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
                    ends.and_then(|(low, high)| bgp::bounded(text, Some(low), Some(high)))
                }
            };
            let why = "not a prefix with a range of lengths such as 21..24";
            prefixes.push(text.ok_or((range.or(prefix), why))?);
        }
        self.put(term, "prefix", Value::Texts(prefixes), number);
        Ok(())
    }

    /// A condition that is a list of texts.
    fn members(
        &mut self,
        term: &mut Table,
        kind: &str,
        key: &'static str,
        number: usize,
        translate: impl Fn(&str) -> Option<String>,
    ) -> Result<(), Fault> {
        let mut all = Vec::new();
        for at in self.set(kind, number)? {
            for text in self.texts(at) {
                let why = "headend's policies have no regular expressions";
                all.push(translate(&text).ok_or((Some(at), why))?);
            }
            self.put(term, key, Value::texts(&all), at);
        }
        if all.is_empty() {
            return Err((Some(number), "the set is empty"));
        }
        self.put(term, key, Value::texts(&all), number);
        Ok(())
    }

    fn as_paths(&mut self, term: &mut Table, number: usize) -> Result<(), Fault> {
        let why = "headend's policies have no such expression over AS paths, or not in a list";
        let mut found: Option<(&'static str, Vec<Value>)> = None;
        let mut from = Vec::new();
        for at in self.set("as-path", number)? {
            from.push(at);
            for text in self.texts(at) {
                let (key, value) = bgp::as_path_condition(&text).ok_or((Some(at), why))?;
                let (known, values) = found.get_or_insert((key, Vec::new()));
                if *known != key {
                    return Err((Some(at), why));
                }
                values.push(value);
            }
        }
        let (key, values) = found.ok_or((Some(number), "the set is empty"))?;
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        for value in &values {
            match value {
                Value::Number(number) => numbers.push(*number),
                Value::Text(text) => texts.push(text.clone()),
                _ => return Err((Some(number), why)),
            }
        }
        let value = match (&*values, key) {
            ([_], "as_path_length") => Value::Text("0".into()),
            (_, "as_path_length") => return Err((Some(number), why)),
            _ if texts.is_empty() => Value::Numbers(numbers),
            _ => Value::Texts(texts),
        };
        for at in from.into_iter().chain([number]) {
            self.put(term, key, value.clone(), at);
        }
        Ok(())
    }

    /// An action; `options` says what a list of communities does.
    fn action(
        &mut self,
        term: &mut Table,
        short: &str,
        number: usize,
        options: &str,
        asn: i64,
    ) -> Result<(), Fault> {
        let fault = |why| Err((Some(number), why));
        match short {
            "set-med" | "set-local-pref" => {
                let key = if short == "set-med" {
                    "set_med"
                } else {
                    "set_local_pref"
                };
                let is_relative = self
                    .text(number)
                    .is_some_and(|text| text.starts_with(['+', '-']));
                match self.integer(number).filter(|_| !is_relative) {
                    Some(value) => self.put(term, key, value, number),
                    None => {
                        return fault("headend's policies set this value, they do not add to it");
                    }
                }
            }
            "set-next-hop" => match self.text(number).map(str::parse::<std::net::IpAddr>) {
                Some(Ok(ip)) => self.put(term, "set_next_hop", ip.to_string(), number),
                _ => return fault("not an address; see `next_hop_self` and `next_hop_unchanged`"),
            },
            "set-as-path-prepend.as" => {
                if self.integer(number) != Some(asn) {
                    return fault("headend prepends its own AS only");
                }
                self.mark(number, Becomes::Key("bgp.policy.term.prepend"));
            }
            "set-as-path-prepend.repeat-n" => match self.integer(number) {
                Some(times) => self.put(term, "prepend", times, number),
                None => return fault("not a number"),
            },
            _ => return self.communities(term, short, number, options),
        }
        Ok(())
    }

    fn communities(
        &mut self,
        term: &mut Table,
        short: &str,
        number: usize,
        options: &str,
    ) -> Result<(), Fault> {
        let kinds = [
            (
                "set-community.",
                ["add_community", "remove_community", "set_community"],
            ),
            (
                "set-ext-community.",
                [
                    "add_ext_community",
                    "remove_ext_community",
                    "set_ext_community",
                ],
            ),
            (
                "set-large-community.",
                [
                    "add_large_community",
                    "remove_large_community",
                    "set_large_community",
                ],
            ),
        ];
        let kind = kinds.iter().find(|(start, _)| short.starts_with(start));
        let (_, keys) = kind.ok_or((Some(number), OTHER))?;
        let key = match options {
            "add" => keys[0],
            "remove" => keys[1],
            "replace" => keys[2],
            _ => return Err((Some(number), "the options are add, remove and replace")),
        };
        if short.ends_with("-method.communities-list") {
            let all: Option<Vec<String>> =
                self.texts(number).iter().map(|text| plain(text)).collect();
            let why = "headend's policies have no regular expressions";
            let all = all.ok_or((Some(number), why))?;
            self.put(term, key, Value::Texts(all), number);
        } else if short.ends_with(".options") {
            self.mark(number, Becomes::Kept("see the list beside it"));
        } else {
            return Err((Some(number), OTHER));
        }
        Ok(())
    }

    /// Marks every setting that a list of policies reaches, and was not translated for the direction.
    fn lose(&mut self, names: &[String], fault: &Fault, before: &[Becomes]) {
        let line = match fault.0 {
            Some(number) => {
                self.mark(number, Becomes::Lost(fault.1.to_owned()));
                format!(
                    "a policy with line {} cannot be translated",
                    self.all[number].place.line
                )
            }
            None => fault.1.to_owned(),
        };
        for (raw, before) in self.all.iter_mut().zip(before) {
            if raw.becomes != *before && !matches!(raw.becomes, Becomes::Lost(_)) {
                raw.becomes = Becomes::Lost(line.clone()).max(before.clone());
            }
        }
        let policies: Vec<usize> = self
            .names
            .iter()
            .filter(|(_, numbers)| {
                let mut named = numbers.iter().filter(|at| self.all[**at].name == "name");
                named.any(|at| names.iter().any(|name| self.text(*at) == Some(name)))
            })
            .map(|(policy, _)| *policy)
            .collect();
        for policy in policies {
            let statements = self.statements.range((policy, 0)..=(policy, usize::MAX));
            let inside: Vec<usize> = statements.flat_map(|(_, all)| all.clone()).collect();
            for number in self.names[&policy].clone().into_iter().chain(inside) {
                if !matches!(self.all[number].becomes, Becomes::Lost(_)) {
                    self.mark(number, Becomes::Lost(line.clone()));
                }
            }
        }
    }
}

/// A text without the signs of a regular expression.
fn plain(text: &str) -> Option<String> {
    let text = match text.strip_prefix('^') {
        Some(rest) => rest.strip_suffix('$')?,
        None => text,
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ":-.".contains(c);
    // A dot is a character of an address only between digits; elsewhere it stands for any character.
    let is_address = !text.contains('.') || text.split([':', '.']).all(|part| !part.is_empty());
    (!text.is_empty() && text.chars().all(is_plain) && is_address).then(|| text.to_owned())
}

/// A community, or all of an AS: `65001:10`, `^65001:10$`, `^65001:.*$`.
fn community(text: &str) -> Option<String> {
    let start = text.strip_prefix('^').unwrap_or_default();
    let start = start.strip_suffix('$').unwrap_or(start);
    let start = start.strip_suffix(".*").unwrap_or(start);
    match start.strip_suffix(':').map(str::parse::<u16>) {
        Some(Ok(asn)) => Some(format!("{asn}:*")),
        _ => plain(text),
    }
}

impl Work {
    /// Translates the policies and reports their lines. The defaults are in `[bgp]` already.
    pub(super) fn finish_policies(&mut self) {
        let mut policies = std::mem::take(&mut self.policies);
        let asn = match self.import.config.table("bgp").get("asn") {
            Some(Value::Number(asn)) => *asn,
            _ => 0,
        };
        for (number, (direction, name)) in [("import", "gobgp import"), ("export", "gobgp export")]
            .into_iter()
            .enumerate()
        {
            let Some((names, place)) = policies.lists[number].take() else {
                continue;
            };
            let option = super::LISTS[number];
            let key = format!("bgp.{direction}");
            let from = std::slice::from_ref(&place);
            let before: Vec<Becomes> = policies.all.iter().map(|raw| raw.becomes.clone()).collect();
            match policies.terms(&names, number == 0, asn) {
                Ok(mut terms) => {
                    let table = self.import.config.table("bgp");
                    let old = table.entries.iter().find(|entry| entry.key == direction);
                    let mut last = Table::each("bgp.policy.term");
                    match old {
                        Some(old) => last.set("then", old.value.clone(), &old.from, "the default"),
                        None => last.set("then", "accept", &[], "GoBGP's default"),
                    }
                    table.set(direction, name, from, "");
                    terms.push(last);
                    bgp::add_policy(&mut self.import.config, name, from, terms);
                    self.import.report.key(&place, option, &[&key], "");
                }
                Err(fault) => {
                    policies.lose(&names, &fault, &before);
                    let table = self.import.config.table("bgp");
                    let old = table.entries.iter().find(|entry| entry.key == direction);
                    let places = old.map(|old| old.from.clone()).unwrap_or_default();
                    table.set(direction, "deny", from, "a policy cannot be translated");
                    for place in places {
                        let why = "a policy applies that cannot be translated";
                        let report = &mut self.import.report;
                        report.take_back(&place, &key, Fate::NoEffect, why);
                    }
                    let why = format!("{}; the direction is `deny`", fault.1);
                    self.import.report.lost(&place, option, &why);
                }
            }
        }
        self.report_policies(policies);
    }

    /// Without a speaker, no list has an effect.
    pub(super) fn unused_policies(&mut self) {
        let mut policies = std::mem::take(&mut self.policies);
        for (list, option) in policies.lists.iter_mut().zip(super::LISTS) {
            if let Some((_, place)) = list.take() {
                let why = "without global.config.as, there is no speaker";
                let report = &mut self.import.report;
                report.line(&place, option, Fate::NoEffect, why);
            }
        }
        self.report_policies(policies);
    }

    fn report_policies(&mut self, policies: Policies) {
        for raw in policies.all {
            let report = &mut self.import.report;
            match raw.becomes {
                Becomes::Unused => {
                    let why = "no list of policies needs it";
                    report.line(&raw.place, raw.option, Fate::NoEffect, why);
                }
                Becomes::Kept(why) => report.line(&raw.place, raw.option, Fate::Kept, why),
                Becomes::Key(key) => report.key(&raw.place, raw.option, &[key], ""),
                Becomes::Lost(why) => report.lost(&raw.place, raw.option, &why),
            }
        }
    }
}
