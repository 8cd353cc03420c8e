//! Access lists. l2tpns gives a session a list for each direction, by two Filter-Ids; headend gives a subscriber one
//! filter with both directions. Each list becomes two filters, whose names are those Filter-Ids.

use std::fmt::Write;
use std::net::Ipv4Addr;

use super::{Block, Work};
use crate::report::{Fate, Place};

/// Lists that l2tpns holds.
const LISTS_MAX: usize = 32;

/// Rules of a list; l2tpns ignores further ones.
const RULES_MAX: usize = 31;

/// Networks that stand for one address with wildcard bits.
const NETWORKS_MAX: u32 = 64;

/// Why a rule gives no line, or a wider one.
const SCATTERED: &str = "the wildcard stands for more than 64 networks";

/// A list of rules.
#[derive(Debug)]
pub(super) struct List {
    name: String,
    is_extended: bool,
    from: Vec<Place>,
    /// What each rule says, without the action, and its line.
    rules: Vec<(Vec<String>, Place)>,
}

impl Work {
    pub(super) fn list(&mut self, words: &[&str], is_extended: bool, at: &Place) {
        let option = if is_extended {
            "ip access-list extended"
        } else {
            "ip access-list standard"
        };
        self.block = Block::NoList;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let report = &mut self.import.report;
        let [name] = words else {
            return report.unknown(at, option, "the list has no name, or several");
        };
        // The length is that of l2tpns's table.
        if name.is_empty() || name.len() > 31 || !name.chars().all(is_plain) {
            let why = "a name has letters, digits, - and _, 31 at most";
            return report.unknown(at, option, why);
        }
        let known = self.lists.iter().position(|list| list.name == *name);
        if known.is_none() && self.lists.len() == LISTS_MAX {
            return report.line(at, option, Fate::NoEffect, "l2tpns has 32 lists at most");
        }
        if known.is_some_and(|list| self.lists[list].is_extended != is_extended) {
            return report.unknown(at, option, "the list was of the other kind before");
        }
        let number = known.unwrap_or(self.lists.len());
        if known.is_none() {
            self.lists.push(List {
                name: (*name).to_owned(),
                is_extended,
                from: Vec::new(),
                rules: Vec::new(),
            });
        }
        self.lists[number].from.push(at.clone());
        let why = "a Filter-Id with .in or .out selects it, as before; headend takes one Filter-Id for each subscriber";
        report.key(at, option, &["filter.file"], why);
        self.block = Block::List(number);
    }

    pub(super) fn no_list(&mut self, words: &[&str], at: &Place) {
        let option = "no ip access-list";
        self.block = Block::Top;
        let found = words
            .get(1)
            .and_then(|name| self.lists.iter().position(|list| list.name == *name));
        let Some(found) = found else {
            return self
                .import
                .report
                .unknown(at, option, "there is no such list before it");
        };
        let list = self.lists.remove(found);
        for place in list
            .from
            .iter()
            .chain(list.rules.iter().map(|(_, place)| place))
        {
            let why = "a later line removes the list";
            let report = &mut self.import.report;
            report.take_back(place, "filter.file", Fate::NoEffect, why);
        }
        let why = "the list is removed";
        self.import.report.line(at, option, Fate::Kept, why);
    }

    pub(super) fn list_rule(&mut self, action: &'static str, words: &[&str], at: &Place) {
        let report = &mut self.import.report;
        let Block::List(number) = self.block else {
            let why = "not in an access list; l2tpns ignores it";
            return report.line(at, action, Fate::NoEffect, why);
        };
        let list = &mut self.lists[number];
        let is_permit = action == "permit";
        let rule = if list.is_extended {
            extended(words, is_permit)
        } else {
            standard(words, is_permit)
        };
        let (texts, is_wider) = match rule {
            Ok(rule) => rule,
            Err(why) => return report.unknown(at, action, &format!("{why}; l2tpns ignores it")),
        };
        if list.rules.len() == RULES_MAX {
            let why = "l2tpns has 31 rules in a list at most";
            return report.line(at, action, Fate::NoEffect, why);
        }
        match (is_wider, texts.is_empty()) {
            (true, true) => report.lost(at, action, SCATTERED),
            (true, false) => {
                let why = format!("{SCATTERED}; the result denies all addresses here");
                report.lost(at, action, &why);
            }
            (false, true) => {
                let why = "no packet matches the rule";
                report.line(at, action, Fate::Kept, why);
            }
            (false, false) => report.key(at, action, &["filter.file"], ""),
        }
        let action = if is_permit { "accept" } else { "deny" };
        let lines = texts.iter().map(|text| format!("{action} {text}"));
        list.rules.push((lines.collect(), at.clone()));
    }

    /// Writes the filters.
    pub(super) fn take_lists(&mut self) {
        if self.lists.is_empty() {
            return;
        }
        let head = self.import.head.lines().take(2);
        let mut text: String = head.map(|line| format!("# {line}\n")).collect();
        let mut from = Vec::new();
        for list in &self.lists {
            from.extend(list.from.iter().cloned());
            for (direction, other) in [("in", "out"), ("out", "in")] {
                let mut rules = String::new();
                for (lines, place) in &list.rules {
                    for line in lines {
                        let file = place.to_string();
                        let _ = writeln!(rules, "    {line}  # {}", file.escape_debug());
                    }
                }
                let _ = write!(
                    text,
                    "\nfilter {}.{direction}\n{direction}\n    accept ip6  # l2tpns filters IPv4 only\n{rules}    default deny\n{other}\n    default accept\n",
                    list.name
                );
            }
        }
        self.import.filters = text;
        let note = "l2tpns's access lists";
        let table = self.import.config.table("filter");
        table.set("file", crate::output::FILTERS, &from, note);
    }
}

/// The texts of a rule, without its action; and whether they are wider than the rule, or left out for that.
type Texts = (Vec<String>, bool);

/// `full`, or a start of it: l2tpns takes abbreviations.
fn is(word: Option<&&str>, full: &str) -> bool {
    word.is_some_and(|word| !word.is_empty() && full.starts_with(word))
}

/// A rule of a standard list: a source.
fn standard(words: &[&str], is_permit: bool) -> Result<Texts, &'static str> {
    let alone = matches!(words, [_]) && !is(words.first(), "any");
    let (from, rest) = if alone {
        let ip = words[0].parse::<Ipv4Addr>();
        let ip = ip.map_err(|_| "not an address")?;
        (networks(ip.to_bits(), 0), &words[1..])
    } else {
        addresses(words)?
    };
    if !rest.is_empty() && !is(words.first(), "any") {
        return Err("more words than a source");
    }
    Ok(finish(
        "ip4",
        from,
        &[String::new()],
        Some(vec!["any".into()]),
        &[String::new()],
        &[""],
        is_permit,
    ))
}

/// A rule of an extended list: a protocol, two addresses with ports, and flags.
fn extended(words: &[&str], is_permit: bool) -> Result<Texts, &'static str> {
    let Some((protocol, rest)) = words.split_first() else {
        return Err("the rule is empty");
    };
    let names = [("ip", "ip4"), ("udp", "udp"), ("tcp", "tcp")];
    let protocol = names.iter().find(|(name, _)| is(Some(protocol), name));
    let protocol = protocol.ok_or("the protocol is not ip, tcp or udp")?.1;
    let has_ports = protocol != "ip4";
    let (from, rest) = addresses(rest)?;
    let (from_ports, rest) = ports(rest, has_ports)?;
    let (to, rest) = addresses(rest)?;
    let (to_ports, rest) = ports(rest, has_ports)?;
    let (flags, rest) = flags(rest, protocol == "tcp")?;
    let is_plain = from_ports == Ports::Any && to_ports == Ports::Any && flags.is_none();
    let (options, rest) = match flags {
        Some(flags) => (flags, rest),
        None if is(rest.first(), "fragments") && is_plain => (vec![" fragment".into()], &rest[1..]),
        None => (vec![String::new()], rest),
    };
    if !rest.is_empty() {
        return Err("not a rule of this list");
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let (from_ports, to_ports) = (from_ports.texts(), to_ports.texts());
    Ok(finish(
        protocol,
        from,
        &from_ports,
        to,
        &to_ports,
        &options,
        is_permit,
    ))
}

/// Every combination. Without networks, a permission is left out and a denial is for any address.
fn finish(
    protocol: &str,
    from: Option<Vec<String>>,
    from_ports: &[String],
    to: Option<Vec<String>>,
    to_ports: &[String],
    options: &[&str],
    is_permit: bool,
) -> Texts {
    let is_wider = from.is_none() || to.is_none();
    if is_wider && is_permit {
        return (Vec::new(), true);
    }
    let from = from.map_or_else(|| "any".to_owned(), |list| list.join(","));
    let to = to.map_or_else(|| "any".to_owned(), |list| list.join(","));
    let mut texts = Vec::new();
    for from_port in from_ports {
        for to_port in to_ports {
            let both = format!("{protocol} from {from}{from_port} to {to}{to_port}");
            texts.extend(options.iter().map(|option| format!("{both}{option}")));
        }
    }
    (texts, is_wider)
}

/// The networks of an address, `host` or `any`, and the words behind it.
fn addresses<'w>(
    words: &'w [&'w str],
) -> Result<(Option<Vec<String>>, &'w [&'w str]), &'static str> {
    let ip = |word: Option<&&str>| {
        let ip = word.and_then(|word| word.parse::<Ipv4Addr>().ok());
        ip.map(Ipv4Addr::to_bits).ok_or("not an address")
    };
    if is(words.first(), "any") {
        return Ok((Some(vec!["any".into()]), &words[1..]));
    }
    if is(words.first(), "host") {
        return Ok((networks(ip(words.get(1))?, 0), &words[2..]));
    }
    let (address, wildcard) = (ip(words.first())?, ip(words.get(1))?);
    Ok((networks(address, wildcard), &words[2..]))
}

/// The networks of an address with wildcard bits; `None`: too many.
fn networks(ip: u32, wildcard: u32) -> Option<Vec<String>> {
    let low = wildcard.trailing_ones();
    let length = 32 - low;
    let mask = u32::MAX.checked_shl(low).unwrap_or(0);
    let scattered = wildcard & mask;
    if scattered.count_ones() > NETWORKS_MAX.ilog2() {
        return None;
    }
    let base = ip & !wildcard;
    let mut part = 0;
    let mut all = Vec::new();
    loop {
        all.push(format!("{}/{length}", Ipv4Addr::from(base | part)));
        // The next subset of the scattered bits.
        part = part.wrapping_sub(scattered) & scattered;
        if part == 0 {
            return Some(all);
        }
    }
}

/// The ports of one end.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ports {
    Any,
    Some(String),
    /// None: such as greater than 65535.
    Empty,
}

impl Ports {
    fn texts(self) -> Vec<String> {
        match self {
            Ports::Any => vec![String::new()],
            Ports::Some(text) => vec![format!(" port {text}")],
            Ports::Empty => Vec::new(),
        }
    }
}

fn ports<'w>(words: &'w [&'w str], may: bool) -> Result<(Ports, &'w [&'w str]), &'static str> {
    let names = ["eq", "neq", "gt", "lt", "range"];
    let named = names.iter().find(|name| is(words.first(), name));
    let Some(name) = named.filter(|_| may) else {
        return Ok((Ports::Any, words));
    };
    let number = |at: usize| {
        let port = words.get(at).and_then(|word| word.parse::<u16>().ok());
        port.filter(|port| *port != 0)
            .ok_or("not a port, 1 to 65535")
    };
    let port = number(1)?;
    let text = match *name {
        "eq" => port.to_string(),
        "neq" if port == u16::MAX => format!("0-{}", port - 1),
        "neq" => format!("0-{},{}-65535", port - 1, port + 1),
        "gt" if port == u16::MAX => return Ok((Ports::Empty, &words[2..])),
        "gt" => format!("{}-65535", port + 1),
        "lt" => format!("0-{}", port - 1),
        _ => {
            let last = number(2)?;
            if last < port {
                return Err("the range ends before it starts");
            }
            return Ok((Ports::Some(format!("{port}-{last}")), &words[3..]));
        }
    };
    Ok((Ports::Some(text), &words[2..]))
}

/// The flags of TCP: one text for each rule that is needed, and the words behind them.
fn flags<'w>(
    words: &'w [&'w str],
    is_tcp: bool,
) -> Result<(Option<Vec<String>>, &'w [&'w str]), &'static str> {
    const LETTERS: [(&str, char); 6] = [
        ("fin", 'F'),
        ("syn", 'S'),
        ("rst", 'R'),
        ("psh", 'P'),
        ("ack", 'A'),
        ("urg", 'U'),
    ];
    if is_tcp && is(words.first(), "established") {
        // headend's own word also takes packets with both SYN and ACK.
        let both = [" flags A/AS".to_owned(), " flags R/RS".to_owned()];
        return Ok((Some(both.into()), &words[1..]));
    }
    let name = words.first().filter(|word| is_tcp && word.len() >= 8);
    let is_all = is(name, "match-all");
    if !is_all && !is(name, "match-any") {
        return Ok((None, words));
    }
    let (mut set, mut clear) = (String::new(), String::new());
    let mut rest = &words[1..];
    while let Some((word, after)) = rest.split_first()
        && let Some(flag) = word.strip_prefix(['+', '-'])
    {
        let known = LETTERS.iter().find(|(name, _)| is(Some(&flag), name));
        let letter = known.ok_or("not a flag of TCP")?.1;
        let list = if word.starts_with('+') {
            &mut set
        } else {
            &mut clear
        };
        if !list.contains(letter) {
            list.push(letter);
        }
        rest = after;
    }
    let texts = if is_all {
        let is_contrary = set.chars().any(|flag| clear.contains(flag));
        match set.len() + clear.len() {
            0 if words.len() == 1 => return Err("no flag is named"),
            0 => vec![String::new()],
            _ if is_contrary => Vec::new(),
            _ => vec![format!(" flags {set}/{set}{clear}")],
        }
    } else {
        let set = set.chars().map(|flag| format!(" flags {flag}/{flag}"));
        let clear = clear.chars().map(|flag| format!(" flags /{flag}"));
        set.chain(clear).collect()
    };
    Ok((Some(texts), rest))
}
