//! Parses tc's output into records, one per qdisc, class and filter. The input is JSON, text, or both in one file.

use super::actions;
use super::header::{self, Key, Said};
use super::loose::{self, Item};
use super::model::Numbers;
use super::tins::{self, Tin};
use super::units;
use crate::apply::state::Names;

/// Words of a header line whose following value is not an option.
const HEADER: [&str; 8] = [
    "dev",
    "parent",
    "refcnt",
    "leaf",
    "fh",
    "handle",
    "ingress_block",
    "egress_block",
];

/// Members that are irrelevant to the drawing.
pub(super) const NOISE: [&str; 15] = [
    "refcnt",
    "priomap",
    "multiqueue",
    "not_in_hw",
    "rule_hit",
    "success",
    "order",
    "key_ht",
    "bkt",
    "index",
    "ref",
    "bind",
    "installed",
    "last_used",
    "first_used",
];

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Qdisc,
    Class,
    Filter,
    Unknown,
}

/// A qdisc, class or filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) what: What,
    /// "htb", "u32".
    pub(super) kind: String,
    /// Empty for a line that only announces a filter.
    pub(super) handle: String,
    pub(super) parent: Option<String>,
    /// The interface, if the file covers several.
    pub(super) dev: Option<String>,
    /// For filters: "pref 5 ip".
    pub(super) place: String,
    /// For filters: the protocol of the packets, as tc names it.
    protocol: String,
    /// For u32 filters: the words of the packet that are compared.
    keys: Vec<Key>,
    /// For u32 filters: mask and place of the bucket in the linked table.
    bucket: Option<(u32, i32)>,
    /// For u32 filters: mask, shift and place of the length of the header.
    next: Option<(u32, u32, i32)>,
    pub(super) chain: u32,
    /// The class that a filter selects, or the first of several.
    pub(super) class: Option<String>,
    /// For a qdisc: the minor number of its default class, in hexadecimal.
    pub(super) default: Option<String>,
    /// The hash table that a u32 rule links to.
    pub(super) link: Option<String>,
    /// The chain that an action jumps to.
    pub(super) goto: Option<u32>,
    /// Interfaces that actions send packets to.
    pub(super) devices: Vec<String>,
    /// For a qdisc: the sides whose filters are in a shared block, with its number. For a filter: its shared block, and
    /// an empty side.
    pub(super) blocks: Vec<(&'static str, u32)>,
    /// The policy's name for a class, or the section of the policy that a filter comes from.
    pub(super) name: Option<String>,
    /// Everything else.
    pub(super) lines: Vec<String>,
    pub(super) numbers: Option<Numbers>,
    /// The tins of cake.
    pub(super) tins: Vec<Tin>,
}

impl Record {
    fn new(what: What) -> Self {
        Self {
            what,
            kind: String::new(),
            handle: String::new(),
            parent: None,
            dev: None,
            place: String::new(),
            protocol: String::new(),
            keys: Vec::new(),
            bucket: None,
            next: None,
            chain: 0,
            class: None,
            default: None,
            link: None,
            goto: None,
            devices: Vec::new(),
            blocks: Vec::new(),
            name: None,
            lines: Vec::new(),
            numbers: None,
            tins: Vec::new(),
        }
    }

    /// Notes a shared block. `key` is "ingress_block", "egress_block" or "block".
    fn share(&mut self, key: &str, number: &str) {
        let side = match key {
            "ingress_block" => "ingress",
            "egress_block" => "egress",
            _ => "",
        };
        self.blocks
            .extend(number.parse().map(|number| (side, number)));
    }

    /// The shared block that a filter is in.
    pub(super) fn block(&self) -> Option<u32> {
        let is_filter = self.what == What::Filter;
        self.blocks
            .first()
            .filter(|_| is_filter)
            .map(|(_, number)| *number)
    }

    /// Takes the policy's name for this record.
    pub(super) fn take_name(&mut self, names: &Names) {
        let name = match self.what {
            What::Class => names.of_class(&self.handle),
            // A table has the priority of its rules.
            What::Filter if self.parent.as_deref() == Some("1:") && !self.lines.is_empty() => {
                let mut words = self.place.split(' ').skip_while(|word| *word != "pref");
                let priority = words.nth(1).and_then(|word| word.parse().ok());
                priority.and_then(|priority| names.of_filter(priority))
            }
            _ => None,
        };
        self.name = name.map(str::to_owned);
    }

    /// Puts what a u32 filter compares before its other lines.
    fn say_keys(&mut self) {
        if !self.keys.is_empty() {
            let words = Said::of(&self.protocol, &self.keys).words();
            self.lines.insert(0, words);
        }
        if let Some((mask, offset)) = self.bucket {
            self.lines
                .push(header::bucket(&self.protocol, mask, offset));
        }
        if let Some((mask, shift, offset)) = self.next {
            self.lines.push(header::next_header(mask, shift, offset));
        }
    }

    /// Whether this record only announces the filters that follow it.
    pub(super) fn is_announcement(&self) -> bool {
        self.what == What::Filter && self.handle.is_empty() && self.lines.is_empty()
    }
}

/// Parses all records in `text`. When tc is queried for one parent it omits the parent; `parent` supplies it.
pub(super) fn read(text: &str, parent: Option<&str>) -> Vec<Record> {
    let mut records = Vec::new();
    let mut rest = text.trim_start_matches('\u{feff}');
    while !rest.trim_start().is_empty() {
        let start = rest.trim_start();
        if start.starts_with('[') || start.starts_with('{') {
            let (item, after) = loose::read(start);
            rest = after;
            match item {
                Item::List(items) => records.extend(items.iter().map(from_item)),
                item => records.push(from_item(&item)),
            }
        } else {
            let end = block_end(rest);
            let (block, after) = rest.split_at(end);
            rest = after;
            if !block.trim().is_empty() {
                records.push(from_text(block));
            }
        }
    }
    for record in &mut records {
        record.say_keys();
        if record.what == What::Filter && record.parent.is_none() {
            record.parent = parent.map(str::to_owned);
            // "block22=FILE": tc does not repeat the block that it was asked for.
            if let Some(number) = parent.and_then(|parent| parent.strip_prefix("block"))
                && record.blocks.is_empty()
            {
                record.share("block", number);
            }
        }
    }
    records
}

/// The start of the next block of text or list of JSON.
fn block_end(text: &str) -> usize {
    let mut at = 0;
    let mut has_begun = false;
    for line in text.split_inclusive('\n') {
        let opens = ["qdisc ", "class ", "filter ", "["]
            .iter()
            .any(|word| line.starts_with(word));
        if opens && has_begun {
            return at;
        }
        has_begun |= !line.trim().is_empty();
        at += line.len();
    }
    text.len()
}

// JSON.

fn from_item(item: &Item) -> Record {
    let is_filter = item.get("protocol").is_some() || item.get("pref").is_some();
    let what = match item {
        Item::Object(_) if is_filter => What::Filter,
        Item::Object(_) if item.text("class").is_some() => What::Class,
        Item::Object(_) if item.text("kind").is_some() => What::Qdisc,
        _ => What::Unknown,
    };
    let mut record = Record::new(what);
    let Item::Object(members) = item else {
        record.lines = vec![flat(item)];
        return record;
    };
    if what == What::Unknown {
        record.lines = vec![flat(item)];
        return record;
    }
    let mut numbers = Numbers::default();
    let mut has_numbers = false;
    for (key, value) in members {
        match (key.as_str(), value) {
            ("kind" | "class", Item::Text(text)) => record.kind = text.clone(),
            ("handle", Item::Text(text)) => record.handle = text.clone(),
            ("parent", Item::Text(text)) => record.parent = Some(text.clone()),
            ("dev", Item::Text(text)) => record.dev = Some(text.clone()),
            ("block" | "ingress_block" | "egress_block", Item::Text(text)) => {
                record.share(key, text)
            }
            ("chain", Item::Text(text)) => record.chain = text.parse().unwrap_or(0),
            ("root" | "protocol" | "pref" | "requeues", _) => {}
            ("leaf", _) if what == What::Class => {}
            ("options", value) => options(value, &mut record),
            (key, Item::Text(text)) => match counter(&mut numbers, key) {
                Some(place) => {
                    *place = text.parse().unwrap_or(0);
                    has_numbers = true;
                }
                None => member(key, value, &mut record),
            },
            (key, value) => member(key, value, &mut record),
        }
    }
    if what == What::Filter {
        let (pref, protocol) = (item.text("pref"), item.text("protocol"));
        record.place = place(pref, protocol);
        record.protocol = protocol.unwrap_or_default().to_owned();
        // tc's text output has these in hexadecimal.
        if let Ok(handle) = record.handle.parse::<u32>() {
            record.handle = format!("{handle:#x}");
        }
    }
    if has_numbers {
        record.numbers = Some(numbers);
    }
    record
}

fn place(pref: Option<&str>, protocol: Option<&str>) -> String {
    let pref = pref.map(|pref| format!("pref {pref}"));
    let both = [pref, protocol.map(str::to_owned)];
    both.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn counter<'n>(numbers: &'n mut Numbers, key: &str) -> Option<&'n mut u64> {
    Some(match key {
        "bytes" => &mut numbers.bytes,
        "packets" => &mut numbers.packets,
        "drops" => &mut numbers.drops,
        "overlimits" => &mut numbers.overlimits,
        "backlog" => &mut numbers.backlog_bytes,
        "qlen" => &mut numbers.backlog_packets,
        "ecn_mark" => &mut numbers.ecn_mark,
        _ => return None,
    })
}

fn options(item: &Item, record: &mut Record) {
    match item {
        Item::Object(members) => {
            let mut words = Vec::new();
            for (key, value) in members {
                match value {
                    Item::Text(text) if key.is_empty() => loose_options(text, record),
                    Item::Text(_)
                        if record.what != What::Filter && !NOISE.contains(&key.as_str()) =>
                    {
                        if key == "default" {
                            record.default = item.text(key).map(str::to_owned);
                        }
                        words.push(amount(&record.kind, key, value));
                    }
                    // The police action of u32 has no object of its own.
                    Item::Text(kind) if key == "kind" && kind == "police" => {
                        actions::read(item, record);
                        break;
                    }
                    _ => member(key, value, record),
                }
            }
            if !words.is_empty() {
                record.lines.insert(0, words.join(" "));
            }
        }
        other => record.lines.push(flat(other)),
    }
}

/// Options without keys, as tc prints them for hfsc, fw and flow.
fn loose_options(text: &str, record: &mut Record) {
    let words: Vec<&str> = text.split_whitespace().collect();
    // A linked table's offset: its numbers have keys.
    if matches!(words.as_slice(), ["offset" | "eat"]) {
        return;
    }
    let rest = header_words(&words, record);
    if !rest.is_empty() {
        record.lines.push(rest.join(" "));
    }
}

/// Reads one member of a filter's options, or of any nested object.
fn member(key: &str, value: &Item, record: &mut Record) {
    match (key, value) {
        ("fh" | "handle", Item::Text(text)) => record.handle = text.clone(),
        ("flowid" | "classid", Item::Text(text)) => record.class = Some(text.clone()),
        ("link", Item::Text(text)) => {
            record.link = Some(text.clone());
            record.lines.push(format!("link {text}"));
        }
        ("ht_divisor", Item::Text(count)) => record.lines.push(buckets(count)),
        ("hash_mask" | "hash_off", Item::Text(text)) => {
            let bucket = record.bucket.get_or_insert_default();
            match key {
                "hash_mask" => bucket.0 = hexadecimal(text),
                _ => bucket.1 = text.parse().unwrap_or(0),
            }
        }
        ("offset_mask" | "offset_shift" | "offset_off", Item::Text(text)) => {
            let next = record.next.get_or_insert_default();
            match key {
                "offset_mask" => next.0 = hexadecimal(text),
                "offset_shift" => next.1 = text.parse().unwrap_or(0),
                _ => next.2 = text.parse().unwrap_or(0),
            }
        }
        ("actions", Item::List(list)) => {
            for one in list {
                actions::read(one, record);
            }
        }
        ("match", Item::Object(_)) => match key_of_json(value) {
            Some(key) => record.keys.push(key),
            None => record.lines.push(pair("match", value)),
        },
        ("keys", Item::Object(keys)) => {
            let words = keys.iter().map(|(key, value)| pair(key, value));
            record.lines.push(words.collect::<Vec<_>>().join(" "));
        }
        ("kind", Item::Text(kind)) => record.lines.push(format!("action {kind}")),
        ("control_action", _) => record.lines.push(actions::control(value)),
        ("bytecode", Item::Object(_)) => {
            let length = value.text("length").unwrap_or("?");
            record.lines.push(format!("bytecode of {length}"));
        }
        ("tins", Item::List(tins)) => record.tins = tins::of_json(tins),
        ("", Item::Text(text)) if text.starts_with("Sent ") => actions::sent(text, record),
        // Skip queue-specific counters, and members that are read elsewhere.
        (_, Item::Text(_)) if record.what == What::Qdisc && !key.is_empty() => {}
        (key, _) if NOISE.contains(&key) => {}
        (_, value) => record.lines.push(pair(key, value)),
    }
}

/// The size of a hash table of u32.
fn buckets(count: &str) -> String {
    match count {
        "1" => "1 bucket".to_owned(),
        count => format!("{count} buckets"),
    }
}

fn hexadecimal(text: &str) -> u32 {
    u32::from_str_radix(text, 16).unwrap_or(0)
}

/// A word of the packet that tc's JSON describes.
fn key_of_json(item: &Item) -> Option<Key> {
    let word = |key| u32::from_str_radix(item.text(key).unwrap_or("0"), 16).ok();
    Some(Key {
        value: word("value")?,
        mask: word("mask")?,
        offset: item.text("off").unwrap_or("0").parse().ok()?,
        is_next: item.text("offmask").is_some_and(|mask| !mask.is_empty()),
    })
}

/// "0a000000/ff000000" at "12" or "nexthdr+0".
fn key_of_text(word: &str, place: &str) -> Option<Key> {
    let (value, mask) = word.split_once('/')?;
    let word = |text| u32::from_str_radix(text, 16).ok();
    let next = place.strip_prefix("nexthdr+");
    Some(Key {
        value: word(value)?,
        mask: word(mask)?,
        offset: next.unwrap_or(place).parse().ok()?,
        is_next: next.is_some(),
    })
}

/// An option of a discipline or class, with its unit.
fn amount(kind: &str, key: &str, value: &Item) -> String {
    let count = match value {
        Item::Text(text) => text.parse().ok(),
        _ => None,
    };
    let amount = count.and_then(|count| units::amount(kind, key, count));
    amount.map_or_else(|| pair(key, value), |amount| format!("{key} {amount}"))
}

/// Formats a member as tc's text output does: "rate 2Mbit".
pub(super) fn pair(key: &str, value: &Item) -> String {
    let text = flat(value);
    let count = text.parse::<u64>().ok();
    match (key, text.as_str(), count) {
        ("", text, _) => text.to_owned(),
        (key, "true", _) => key.to_owned(),
        (key, "false", _) => format!("no{key}"),
        // tc's JSON gives bytes per second here, and microseconds there.
        ("rate" | "ceil" | "peakrate" | "bandwidth", _, Some(count)) => {
            format!("{key} {}", bits(count))
        }
        ("target" | "interval" | "rtt" | "lat" | "ce_threshold", _, Some(count)) => {
            format!("{key} {}", micros(count))
        }
        (key, text, _) => format!("{key} {text}"),
    }
}

fn bits(octets_per_second: u64) -> String {
    let bps = octets_per_second.saturating_mul(8);
    for (unit, name) in [
        (1_000_000_000, "Gbit"),
        (1_000_000, "Mbit"),
        (1_000, "Kbit"),
    ] {
        if bps >= unit && bps.is_multiple_of(unit / 1_000) {
            let (whole, part) = (bps / unit, bps % unit / (unit / 1_000));
            let part = format!(".{part:03}");
            let part = part.trim_end_matches('0').trim_end_matches('.');
            return format!("{whole}{part}{name}");
        }
    }
    format!("{bps}bit")
}

fn micros(count: u64) -> String {
    // The kernel counts in units of about 1.024 us, so 4999 means 5 ms.
    match count.saturating_add(1) / 1_000 {
        0 => format!("{count}us"),
        whole if count.abs_diff(whole.saturating_mul(1_000)) <= 1 => format!("{whole}ms"),
        _ => format!("{count}us"),
    }
}

pub(super) fn flat(item: &Item) -> String {
    match item {
        Item::Text(text) => text.clone(),
        Item::List(items) => items.iter().map(flat).collect::<Vec<_>>().join(" "),
        Item::Object(members) => {
            let words = members.iter().map(|(key, value)| pair(key, value));
            words.collect::<Vec<_>>().join(" ")
        }
    }
}

// Text.

fn from_text(block: &str) -> Record {
    let mut lines = block.lines().filter(|line| !line.trim().is_empty());
    let head: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let what = match head.first() {
        Some(&"qdisc") => What::Qdisc,
        Some(&"class") => What::Class,
        Some(&"filter") => What::Filter,
        _ => What::Unknown,
    };
    let mut record = Record::new(what);
    if what == What::Unknown {
        record.lines = block.lines().map(|line| line.trim().to_owned()).collect();
        return record;
    }
    let rest = match what {
        What::Filter => filter_head(&head[1..], &mut record),
        _ => {
            record.kind = head.get(1).copied().unwrap_or_default().to_owned();
            record.handle = head.get(2).copied().unwrap_or_default().to_owned();
            header_words(head.get(3..).unwrap_or_default(), &mut record)
        }
    };
    if what == What::Qdisc
        && let Some(at) = rest.iter().position(|word| *word == "default")
    {
        record.default = rest.get(at + 1).map(|word| (*word).to_owned());
    }
    if !rest.is_empty() {
        let line = rest.join(" ");
        record.lines.push(match what {
            What::Filter => match line.strip_prefix("ht divisor ") {
                Some(count) => buckets(count),
                None => line,
            },
            _ => units::line(&line),
        });
    }
    let mut numbers = None;
    let mut is_in_action = false;
    for line in lines {
        further(line.trim(), &mut record, &mut numbers, &mut is_in_action);
    }
    if what != What::Filter {
        record.numbers = numbers;
    }
    record
}

/// Takes "parent", "dev" and the like out of a header; returns the other words.
fn header_words<'w>(words: &[&'w str], record: &mut Record) -> Vec<&'w str> {
    let mut rest = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let is_filter = record.what == What::Filter;
        let is_class = matches!(*word, "flowid" | "*flowid" | "classid" | "baseclass");
        if HEADER.contains(word) || (is_filter && is_class) {
            let value = words.next().copied().unwrap_or_default();
            match *word {
                "ingress_block" | "egress_block" => record.share(word, value),
                "parent" => record.parent = Some(value.to_owned()),
                "dev" => record.dev = Some(value.to_owned()),
                "fh" | "handle" => record.handle = value.to_owned(),
                // "terminal flowid not_in_hw": no class is given.
                "flowid" | "*flowid" | "classid" if !value.contains(':') => {}
                "flowid" | "*flowid" | "classid" => record.class = Some(value.to_owned()),
                "baseclass" => {
                    record.class = Some(value.to_owned());
                    rest.extend([*word, value]);
                }
                _ => {}
            }
        } else if *word == "link" && is_filter {
            record.link = words.peek().map(|value| (**value).to_owned());
            rest.push(word);
        } else if *word == "priomap" {
            while words.next_if(|word| word.parse::<u8>().is_ok()).is_some() {}
        } else if !matches!(*word, "root" | "not_in_hw" | "terminal")
            && !word.bytes().all(|byte| byte == b'-')
        {
            rest.push(word);
        }
    }
    rest
}

/// "protocol ip pref 5 u32 chain 0 fh 800: ...".
fn filter_head<'w>(words: &[&'w str], record: &mut Record) -> Vec<&'w str> {
    let mut pref = None;
    let mut protocol = None;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let value = words.get(at + 1).copied();
        match *word {
            "protocol" => protocol = value,
            "pref" => pref = value,
            "block" => record.share("block", value.unwrap_or_default()),
            "parent" => record.parent = value.map(str::to_owned),
            "dev" => record.dev = value.map(str::to_owned),
            "chain" => {
                record.chain = value.and_then(|chain| chain.parse().ok()).unwrap_or(0);
                at += 2;
                break;
            }
            kind if record.kind.is_empty() => {
                record.kind = kind.to_owned();
                at += 1;
                continue;
            }
            _ => break,
        }
        at += 2;
    }
    record.place = place(pref, protocol);
    record.protocol = protocol.unwrap_or_default().to_owned();
    let words = words.get(at..).unwrap_or_default();
    // The counters of u32 are not options.
    let end = words.iter().position(|word| *word == "(rule");
    let words = &words[..end.unwrap_or(words.len())];
    let mut kept = Vec::new();
    let mut skip = 0;
    for (at, word) in words.iter().enumerate() {
        if skip > 0 {
            skip -= 1;
        } else if *word == "order" || *word == "bkt" {
            skip = 1;
        } else if *word == "key" && words.get(at + 1) == Some(&"ht") {
            skip = 2;
        } else {
            kept.push(*word);
        }
    }
    header_words(&kept, record)
}

/// Parses a line below the header.
fn further(
    line: &str,
    record: &mut Record,
    numbers: &mut Option<Numbers>,
    is_in_action: &mut bool,
) {
    let words: Vec<&str> = line.split_whitespace().collect();
    if record.kind == "cake" && record.what == What::Qdisc {
        if let Some(tins) = tins::of_head(line) {
            record.tins = tins;
            return;
        }
        if tins::read_row(&words, &mut record.tins) {
            return;
        }
    }
    match words.as_slice() {
        ["Sent", ..] if record.what == What::Filter => actions::sent(line, record),
        _ if u32_line(&words, record) => {}
        ["police", _, rest @ ..] => {
            *is_in_action = true;
            record.lines.push(actions::police(rest));
        }
        ["Sent", bytes, "bytes", packets, _, rest @ ..] if !*is_in_action => {
            let into = numbers.get_or_insert_default();
            into.bytes = leading(bytes);
            into.packets = leading(packets);
            dropped(rest, into);
        }
        // A flow of fq_codel or cake, which does not count sent packets.
        ["(dropped", ..] if !*is_in_action => dropped(&words, numbers.get_or_insert_default()),
        ["backlog", bytes, packets, ..] if !*is_in_action => {
            let into = numbers.get_or_insert_default();
            let scale = if bytes.ends_with("Kb") { 1_024 } else { 1 };
            into.backlog_bytes = leading(bytes).saturating_mul(scale);
            into.backlog_packets = leading(packets);
        }
        ["action", "order", _, rest @ ..] => {
            *is_in_action = true;
            if let Some(at) = rest.iter().position(|word| *word == "device")
                && let Some(device) = rest.get(at + 1)
            {
                let device = device.trim_end_matches(')');
                record.devices.push(device.to_owned());
            }
            if let ["gact", "action", "goto", "chain", chain, ..] = rest {
                record.goto = chain.parse().ok();
            }
            record.lines.push(match rest {
                ["police", _, rest @ ..] => actions::police(rest),
                _ => format!("action {}", rest.join(" ")),
            });
        }
        [
            "Sent" | "backlog" | "Action" | "index" | "ref" | "random",
            ..,
        ]
        | ["lended:" | "tokens:" | "period" | "rate", ..]
        | ["not_in_hw" | "overhead", ..]
        | [] => {}
        _ if record.what == What::Qdisc => {}
        _ => {
            let line = line.split(" (success").next().unwrap_or(line);
            record.lines.push(line.to_owned());
        }
    }
}

/// Reads a line below the header of a u32 filter; returns whether it is one.
fn u32_line(words: &[&str], record: &mut Record) -> bool {
    if record.kind != "u32" || record.what != What::Filter {
        return false;
    }
    match words {
        ["match", word, "at", place, ..] if key_of_text(word, place).is_some() => {
            record.keys.extend(key_of_text(word, place));
        }
        ["hash", "mask", mask, "at", place, ..] => {
            record.bucket = Some((hexadecimal(mask), place.parse().unwrap_or(0)));
        }
        ["offset", length, "at", place, rest @ ..] if length.contains(">>") => {
            let (mask, shift) = length.split_once(">>").unwrap_or_default();
            let shift = shift.parse().unwrap_or(0);
            record.next = Some((hexadecimal(mask), shift, place.parse().unwrap_or(0)));
            let rest = rest.iter().filter(|word| **word != "eat");
            let rest: Vec<&str> = rest.copied().collect();
            if !rest.is_empty() {
                record.lines.push(rest.join(" "));
            }
        }
        _ => return false,
    }
    true
}

/// "(dropped 1, overlimits 2 requeues 3)".
pub(super) fn dropped(words: &[&str], into: &mut Numbers) {
    for pair in words.windows(2) {
        match pair[0].trim_start_matches('(') {
            "dropped" => into.drops = leading(pair[1]),
            "overlimits" => into.overlimits = leading(pair[1]),
            _ => {}
        }
    }
}

pub(super) fn leading(text: &str) -> u64 {
    let end = text
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(text.len());
    text[..end].parse().unwrap_or(0)
}
