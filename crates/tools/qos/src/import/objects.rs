//! Queues, classes and filters as objects with options, from what tc prints (`tc -j`, also where that is no JSON, and
//! text) and from the tc commands of a shell script.

use std::collections::BTreeMap;

use convert::{Place, Source};

use crate::graph::loose::{self, Item};

/// Objects of one import; further ones are reported as not read.
pub(super) const OBJECTS_MAX: usize = 20_000;

/// Options of one object; further ones are not read.
const OPTIONS_MAX: usize = 1_000;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Qdisc,
    Class,
    Filter,
}

impl What {
    pub(super) const fn name(self) -> &'static str {
        match self {
            What::Qdisc => "qdisc",
            What::Class => "class",
            What::Filter => "filter",
        }
    }

    fn of(word: &str) -> Option<What> {
        let all = [What::Qdisc, What::Class, What::Filter];
        all.into_iter().find(|what| what.name() == word)
    }
}

/// A queue, class or filter.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) what: What,
    /// "htb", "u32".
    pub(super) kind: String,
    /// "1:" or "1:10"; empty for most filters.
    pub(super) handle: String,
    /// "root", "1:", "ingress"; empty if tc does not print it.
    pub(super) parent: String,
    /// Empty if tc was asked for one interface, and so does not name it.
    pub(super) device: String,
    /// A filter's "ip", "ipv6" or "all".
    pub(super) protocol: String,
    /// A filter's order.
    pub(super) pref: u32,
    /// Words in order: an option, and its value where it has one.
    pub(super) words: Vec<String>,
    pub(super) place: Place,
}

/// A line or a value that is no object: where, what, why, and whether an effect is lost.
#[derive(Debug)]
pub(super) struct Remark {
    pub(super) place: Place,
    pub(super) what: String,
    pub(super) why: &'static str,
    pub(super) is_lost: bool,
}

/// What a file has.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) objects: Vec<Object>,
    pub(super) remarks: Vec<Remark>,
}

/// Reads all objects of a file.
pub(super) fn read(source: &Source, found: &mut Found) {
    let mut rest = &*source.text;
    let mut line = 1;
    let mut variables = BTreeMap::new();
    while !rest.is_empty() {
        let start = rest.trim_start();
        line += lines(&rest[..rest.len() - start.len()]);
        if found.objects.len() >= OBJECTS_MAX {
            remark(
                found,
                source.at(line),
                "",
                "the source has more than 20000 objects",
                true,
            );
            return;
        }
        if is_json(start) {
            let (item, after) = loose::read(start);
            json(source, line, &item, found);
            line += lines(&start[..start.len() - after.len()]);
            rest = after;
        } else {
            let (block, after) = block(start);
            text(source.at(line), block, &mut variables, found);
            line += lines(&start[..start.len() - after.len()]);
            rest = after;
        }
    }
}

/// Whether a list or an object of JSON starts here, and not a test or a group of the shell.
fn is_json(text: &str) -> bool {
    let inside = text.strip_prefix(['[', '{']).map(str::trim_start);
    inside.is_some_and(|inside| inside.starts_with(['"', '{', ']', '}']))
}

fn lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

fn remark(found: &mut Found, place: Place, what: &str, why: &'static str, is_lost: bool) {
    found.remarks.push(Remark {
        place,
        what: what.to_owned(),
        why,
        is_lost,
    });
}

// JSON.

/// tc prints all objects on one line, so the place of each is its number in the line.
fn json(source: &Source, line: usize, item: &Item, found: &mut Found) {
    let items = match item {
        Item::List(items) => items.as_slice(),
        item => std::slice::from_ref(item),
    };
    let file: std::sync::Arc<str> = format!("{} line {line} object", source.name).into();
    for (number, item) in (1..).zip(items) {
        let place = Place {
            file: std::sync::Arc::clone(&file),
            line: number,
        };
        match item {
            Item::Object(members) if !members.is_empty() => object(place, item, members, found),
            Item::Object(_) => {}
            _ => remark(found, place, "", "not an object of tc", true),
        }
    }
}

/// Members that are counters, or that Linux sets itself.
const COUNTERS: &[&str] = &[
    "refcnt",
    "bytes",
    "packets",
    "drops",
    "overlimits",
    "requeues",
    "backlog",
    "qlen",
    "stats",
    "direct_packets_stat",
    "ver",
    "not_in_hw",
    "in_hw",
    "in_hw_count",
    "rule_hit",
    "success",
    "installed",
    "last_used",
    "first_used",
    "index",
    "ref",
    "bind",
    "order",
    "key_ht",
    "bkt",
    "tins",
    "maxpacket",
    "drop_overlimit",
    "new_flow_count",
    "ecn_mark",
    "new_flows_len",
    "old_flows_len",
    "memory_used",
    "memory_limit_used",
    "capacity_estimate",
    "min_network_size",
    "max_network_size",
    "min_adj_size",
    "max_adj_size",
    "avg_hdr_offset",
    "count",
    "lastcount",
    "ldelay",
    "drop_next",
    "offmask",
    "prob",
    "used_hw_stats",
    "hw_stats",
];

fn object(place: Place, item: &Item, members: &[(String, Item)], found: &mut Found) {
    let text = |key| item.text(key).unwrap_or_default().to_owned();
    let (kind, class) = (text("kind"), text("class"));
    let what = match item {
        _ if item.text("pref").is_some() || item.text("protocol").is_some() => What::Filter,
        _ if !class.is_empty() => What::Class,
        _ => What::Qdisc,
    };
    let is_root = item.text("root").is_some();
    let mut object = Object {
        what,
        kind: if kind.is_empty() { class } else { kind },
        handle: text("handle"),
        parent: if is_root {
            "root".to_owned()
        } else {
            text("parent")
        },
        device: text("dev"),
        protocol: text("protocol"),
        pref: text("pref").parse().unwrap_or(0),
        words: Vec::new(),
        place,
    };
    let head = [
        "kind", "class", "handle", "parent", "root", "dev", "protocol", "pref", "chain", "leaf",
        "ingress", "clsact",
    ];
    for (key, value) in members {
        match (key.as_str(), value) {
            ("options", Item::Object(options)) => {
                options
                    .iter()
                    .for_each(|(key, value)| option(key, value, &mut object));
            }
            (key, _) if head.contains(&key) => {}
            (key, value) => option(key, value, &mut object),
        }
    }
    object.words.truncate(OPTIONS_MAX);
    keep(object, found);
}

/// Adds a member as the words of a tc command.
fn option(key: &str, value: &Item, object: &mut Object) {
    if COUNTERS.contains(&key) {
        return;
    }
    let words = &mut object.words;
    match (key, value) {
        ("fh" | "handle", Item::Text(text)) if object.kind != "fw" => {
            object.handle.clone_from(text)
        }
        ("", Item::Text(text)) => words.extend(text.split_whitespace().map(str::to_owned)),
        ("match", Item::Object(_)) => {
            let part = |key| value.text(key).unwrap_or("0");
            let at = part("off").to_owned();
            let both = format!("{}/{}", part("value"), part("mask"));
            words.extend(["match", "hex"].map(str::to_owned));
            words.extend([both, "at".to_owned(), at]);
        }
        ("keys", Item::Object(keys)) => {
            for (key, value) in keys.iter().filter(|(key, _)| key != "eth_type") {
                words.extend([key.clone(), flat(value)]);
            }
        }
        ("stab", Item::Object(parts)) => {
            for (key, value) in parts {
                words.extend([key.clone(), flat(value)]);
            }
        }
        ("actions", Item::List(actions)) => {
            for action in actions {
                words.push("action".to_owned());
                let text = |key| action.text(key).unwrap_or_default().to_owned();
                words.push(text("kind"));
                let known = ["mirred_action", "direction"].map(text);
                words.extend(known.into_iter().filter(|word| !word.is_empty()));
                if let Some(device) = action.text("to_dev") {
                    words.extend(["dev".to_owned(), device.to_owned()]);
                }
            }
        }
        // tc prints these of police in the filter itself.
        ("kind", Item::Text(kind)) => words.extend(["action".to_owned(), kind.clone()]),
        ("control_action", _) => words.extend(value.text("type").map(str::to_owned)),
        (_, Item::Text(text)) => {
            words.push(key.to_owned());
            words.push(with_unit(key, text));
        }
        (_, value) => words.extend([key.to_owned(), flat(value)]),
    }
}

/// tc's JSON has rates in bytes per second, and times in microseconds.
fn with_unit(key: &str, text: &str) -> String {
    let Ok(number) = text.parse::<u64>() else {
        return text.to_owned();
    };
    match key {
        "rate" | "ceil" | "peakrate" | "bandwidth" | "maxrate" => rate(number.saturating_mul(8)),
        "target" | "interval" | "rtt" | "lat" | "latency" | "ce_threshold" => {
            // The kernel rounds: 4999 us are 5 ms.
            let us = if number % 10 == 9 {
                number.saturating_add(1)
            } else {
                number
            };
            match us.is_multiple_of(1_000) && us > 0 {
                true => format!("{}ms", us / 1_000),
                false => format!("{us}us"),
            }
        }
        _ => text.to_owned(),
    }
}

/// A rate in the largest unit that leaves a whole number.
pub(super) fn rate(bps: u64) -> String {
    let units = [
        (1_000_000_000, "gbit"),
        (1_000_000, "mbit"),
        (1_000, "kbit"),
    ];
    let unit = units
        .into_iter()
        .find(|(unit, _)| bps >= *unit && bps.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or((1, "bit"));
    format!("{}{name}", bps / unit)
}

fn flat(item: &Item) -> String {
    match item {
        Item::Text(text) => text.clone(),
        Item::List(items) => items.iter().map(flat).collect::<Vec<_>>().join(","),
        Item::Object(members) => {
            let parts = members
                .iter()
                .map(|(key, value)| format!("{key}={}", flat(value)));
            parts.collect::<Vec<_>>().join(",")
        }
    }
}

// Text and scripts.

/// One printed object with its indented lines, or one command: `\` at the end of a line continues it.
fn block(text: &str) -> (&str, &str) {
    let mut end = 0;
    let is_printed = What::of(text.split_whitespace().next().unwrap_or_default()).is_some();
    for line in text.split_inclusive('\n') {
        let is_first = end == 0;
        let continued = text[..end].trim_end_matches(['\n', '\r']).ends_with('\\');
        let is_below = is_printed && line.starts_with([' ', '\t']) && !line.trim().is_empty();
        if !(is_first || continued || is_below) {
            break;
        }
        end += line.len();
    }
    text.split_at(end)
}

/// Lines below a printed object that have counters.
const COUNTS: &[&str] = &[
    "Sent",
    "backlog",
    "lended:",
    "tokens:",
    "maxpacket",
    "new_flows_len",
    "memory",
    "capacity",
    "min/max",
    "average",
    "rate",
    "count",
    "ldelay",
    "index",
    "(dropped",
    "period",
    "Action",
];

fn text(place: Place, block: &str, variables: &mut BTreeMap<String, String>, found: &mut Found) {
    let whole = block.trim();
    if whole.is_empty() || whole.starts_with('#') {
        return;
    }
    let first = whole.split_whitespace().next().unwrap_or_default();
    if let Some(what) = What::of(first) {
        let mut lines = whole.lines();
        let mut words: Vec<&str> = lines
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .skip(1)
            .collect();
        for line in lines {
            let mut own = line.split_whitespace().peekable();
            match own.peek() {
                Some(word) if COUNTS.contains(word) => {}
                // `action order 1: mirred (Egress Redirect to device ifb0) stolen`
                Some(&"action") => {
                    let own: Vec<&str> = own.collect();
                    let device = own.iter().position(|word| *word == "device");
                    let device = device.and_then(|at| own.get(at + 1));
                    let is_redirect = own.iter().any(|word| word.eq_ignore_ascii_case("redirect"));
                    words.extend(["action", own.get(3).copied().unwrap_or_default()]);
                    words.extend(is_redirect.then_some("redirect"));
                    words.extend(
                        device
                            .into_iter()
                            .flat_map(|device| ["dev", device.trim_end_matches(')')]),
                    );
                }
                // `match 00160000/ffff0000 at 20`: tc prints the key in hexadecimal.
                Some(&"match") => {
                    let mut own: Vec<&str> = own.collect();
                    own.insert(1, "hex");
                    words.extend(own);
                }
                _ => words.extend(own),
            }
        }
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        return command(place, what, words, true, found);
    }
    script(place, whole, variables, found);
}

// long: each step removes what is no option from the words of one command
fn script(place: Place, whole: &str, variables: &mut BTreeMap<String, String>, found: &mut Found) {
    let joined = whole.replace("\\\r\n", " ").replace("\\\n", " ");
    for part in joined.split(';') {
        let part = part.split(" #").next().unwrap_or_default().trim();
        let mut words: Vec<String> = part
            .split_whitespace()
            .map(|word| expand(word, variables))
            .collect();
        let is_prefix = |word: &String| {
            matches!(
                word.as_str(),
                "sudo" | "exec" | "then" | "do" | "else" | "&&"
            )
        };
        while words.first().is_some_and(is_prefix) {
            words.remove(0);
        }
        let Some(first) = words.first().cloned() else {
            continue;
        };
        let program = first.rsplit('/').next().unwrap_or_default();
        if let Some((name, value)) = first.split_once('=').filter(|_| words.len() == 1) {
            if variables.len() < OPTIONS_MAX {
                variables.insert(name.to_owned(), value.to_owned());
            }
            continue;
        }
        if program != "tc" && !first.eq_ignore_ascii_case("$tc") {
            remark(found, place.clone(), &first, "not a command of tc", false);
            continue;
        }
        let is_option = |word: &&String| word.starts_with('-');
        let mut words = words
            .into_iter()
            .skip(1)
            .skip_while(|word| is_option(&word));
        let what = words.next().as_deref().and_then(What::of);
        let verb = words.next().unwrap_or_default();
        let words: Vec<String> = words.collect();
        let until = words
            .iter()
            .position(|word| word.starts_with(['>', '|', '&']) || word == "2>/dev/null");
        let words = words[..until.unwrap_or(words.len())].to_vec();
        if words.iter().any(|word| word.contains(['$', '`'])) {
            let why = "a variable or command of the shell that headend does not know; give the output of tc -j in place of the script";
            remark(found, place.clone(), "tc", why, true);
            continue;
        }
        match (what, verb.as_str()) {
            (Some(what), "add" | "replace" | "change" | "change/add") => {
                command(place.clone(), what, words, false, found)
            }
            (Some(_), "del" | "delete" | "show" | "ls" | "list") => {
                remark(
                    found,
                    place.clone(),
                    "tc",
                    "the command adds nothing",
                    false,
                );
            }
            _ => remark(
                found,
                place.clone(),
                "tc",
                "not a command that headend reads: tc qdisc, class or filter, with add",
                true,
            ),
        }
    }
}

/// Replaces the variables that the script has set.
fn expand(word: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let braced = after
            .strip_prefix('{')
            .and_then(|after| after.split_once('}'));
        let end = after
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(after.len());
        let (name, after) = braced.unwrap_or(after.split_at(end));
        match variables.get(name) {
            Some(value) => out.push_str(value),
            None => out.push_str(&format!("${name}")),
        }
        rest = after;
        if out.len() > 4_096 {
            break;
        }
    }
    out.push_str(rest);
    out.chars().filter(|c| !matches!(c, '"' | '\'')).collect()
}

/// Reads the words after `qdisc add`, or after `qdisc` of tc's text.
// long: an arm for each word of a header
fn command(place: Place, what: What, words: Vec<String>, is_printed: bool, found: &mut Found) {
    let mut object = Object {
        what,
        kind: String::new(),
        handle: String::new(),
        parent: String::new(),
        device: String::new(),
        protocol: String::new(),
        pref: 0,
        words: Vec::new(),
        place,
    };
    let mut words = words.into_iter().peekable();
    if is_printed && what != What::Filter {
        object.kind = words.next().unwrap_or_default();
        object.handle = words.next().unwrap_or_default();
    }
    while let Some(word) = words.next() {
        let is_head = object.kind.is_empty() || is_printed;
        match word.as_str() {
            "dev" if is_head && object.device.is_empty() => {
                object.device = words.next().unwrap_or_default()
            }
            "parent" if is_head => object.parent = words.next().unwrap_or_default(),
            "root" if is_head => "root".clone_into(&mut object.parent),
            "ingress" | "egress" if is_head && what == What::Filter => object.parent = word,
            "handle" | "classid" if is_head && object.kind.is_empty() => {
                object.handle = words.next().unwrap_or_default()
            }
            "fh" => object.handle = words.next().unwrap_or_default(),
            "protocol" if is_head && what == What::Filter => {
                object.protocol = words.next().unwrap_or_default()
            }
            "prio" | "pref" | "preference" if is_head && what == What::Filter => {
                object.pref = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            }
            "stab" if object.kind.is_empty() => {
                let parts = ["overhead", "mpu", "linklayer", "mtu", "tsize"];
                while let Some(part) = words.next_if(|word| parts.contains(&word.as_str())) {
                    object.words.push(part);
                    object.words.extend(words.next());
                }
            }
            "refcnt" | "leaf" | "chain" | "order" | "bkt" | "direct_packets_stat" | "ver" => {
                words.next();
            }
            "key" if is_printed && words.peek().is_some_and(|word| word == "ht") => {
                words.nth(1);
            }
            "not_in_hw" => {}
            // `terminal flowid` is a filter without a class.
            "terminal" => {
                words.next_if(|word| word == "flowid");
            }
            // `(rule hit 0 success 0)`
            word if is_printed && word.starts_with('(') => {
                while words.peek().is_some_and(|word| !word.ends_with(')')) {
                    words.next();
                }
                words.next();
            }
            _ if object.kind.is_empty() => object.kind = word,
            _ if object.words.len() < OPTIONS_MAX => object.words.push(word),
            _ => {}
        }
    }
    if object.kind.is_empty() && object.what != What::Filter {
        remark(
            found,
            object.place,
            what.name(),
            "the kind of queue is missing",
            true,
        );
    } else {
        keep(object, found);
    }
}

/// A filter without options only announces the filters that follow it, and each u32 has a table with one row.
fn keep(object: Object, found: &mut Found) {
    let own = |word: &String| !matches!(word.as_str(), "ht" | "divisor" | "ht_divisor" | "1");
    if object.what != What::Filter || object.kind == "fw" || object.words.iter().any(own) {
        found.objects.push(object);
    }
}
