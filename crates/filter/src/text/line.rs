//! Parses one line: `ACTION PROTOCOL [from ADDRESSES [port PORTS]] [to ADDRESSES [port PORTS]] [OPTIONS]`.

use wire::{icmp, ip, tcp};

use super::Word;
use super::remark::{Wrong, meant, wrong};
use super::values::{self, End};
use crate::Names;
use crate::rule::Rule;

/// Words that may follow the protocol.
const KEYWORDS: [&str; 8] = [
    "from",
    "to",
    "port",
    "established",
    "flags",
    "icmp-type",
    "fragment",
    "log",
];

/// The default rule of a direction.
pub(super) fn default(accept: bool, log: bool, line: usize) -> Rule {
    let action = if accept { "accept" } else { "deny" };
    Rule {
        accept,
        log,
        line,
        text: format!("default {action}{}", if log { " log" } else { "" }),
        version: None,
        protocols: Vec::new(),
        source: Vec::new(),
        destination: Vec::new(),
        source_ports: Vec::new(),
        destination_ports: Vec::new(),
        icmp: Vec::new(),
        flags: None,
        established: false,
        fragment: false,
    }
}

/// Accept if true, deny otherwise.
pub(super) fn action(word: &Word) -> Result<bool, Wrong> {
    let right = match word.text.as_str() {
        "accept" => return Ok(true),
        "deny" => return Ok(false),
        "permit" | "allow" | "pass" => "did you mean accept?".to_owned(),
        "block" | "drop" | "reject" => "did you mean deny?".to_owned(),
        other => {
            let known = ["accept", "deny", "default", "filter", "in", "out"];
            meant(
                other,
                &known,
                "a line begins with accept, deny, default, filter, in or out",
            )
        }
    };
    Err(wrong(word, "begins no line", right))
}

/// Reads a rule.
pub(super) fn rule(number: usize, words: &[Word], names: &Names) -> Result<Rule, Wrong> {
    let first = &words[0];
    let mut rule = default(action(first)?, false, number);
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    rule.text = texts.join(" ");
    let Some(protocol) = words.get(1) else {
        let right = "a protocol's name or number, or ip for any";
        return Err(wrong(first, "of what?", right));
    };
    values::protocols(protocol, names, &mut rule)?;
    let mut rest = Words {
        rest: &words[2..],
        last: protocol,
    };
    let mut seen = Seen::default();
    while let Some(word) = rest.next() {
        clause(word, &mut rest, &mut seen, names, &mut rule)?;
    }
    seen.check(first, &rule)?;
    Ok(rule)
}

/// The rest of a line.
struct Words<'w> {
    rest: &'w [Word],
    last: &'w Word,
}

impl<'w> Words<'w> {
    fn next(&mut self) -> Option<&'w Word> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        self.last = first;
        Some(first)
    }

    fn value(&mut self, what: &str) -> Result<&'w Word, Wrong> {
        let last = self.last;
        self.next()
            .ok_or_else(|| wrong(last, "nothing follows", what))
    }
}

/// The words seen, for faults that only the whole rule shows.
#[derive(Default)]
struct Seen<'w> {
    words: Vec<&'w Word>,
    ports: Option<&'w Word>,
}

fn clause<'w>(
    word: &'w Word,
    rest: &mut Words<'w>,
    seen: &mut Seen<'w>,
    names: &Names,
    rule: &mut Rule,
) -> Result<(), Wrong> {
    if seen.words.iter().any(|before| before.text == word.text) {
        return Err(wrong(word, "is there twice", "once; lists have commas"));
    }
    seen.words.push(word);
    match word.text.as_str() {
        "from" | "to" => {
            let end = match word.text.as_str() {
                "from" => End::Source,
                _ => End::Destination,
            };
            let value = rest.value("any, an address, or ADDRESS/LENGTH")?;
            *end.addresses(rule) = values::addresses(value)?;
            if let Some(port) = rest.rest.first().filter(|word| word.text == "port") {
                rest.next();
                seen.ports = Some(port);
                let value = rest.value("a port, a list, or FIRST-LAST")?;
                *end.ports(rule) = values::ports(value, names)?;
            }
        }
        "established" => rule.established = true,
        "flags" => rule.flags = Some(values::flags(rest.value("SET, or SET/OF as in S/SA")?)?),
        "icmp-type" => {
            let value = rest.value("a type's name or number, or TYPE/CODE")?;
            let [protocol @ (icmp::PROTOCOL | icmp::PROTOCOL_V6)] = rule.protocols[..] else {
                let right = "a rule for icmp or for icmp6, which have types of their own";
                return Err(wrong(word, "is of another protocol", right));
            };
            rule.icmp = values::icmp(value, protocol)?;
        }
        "fragment" => rule.fragment = true,
        "log" => rule.log = true,
        "port" => {
            let right = "from ADDRESSES port PORTS, or to ADDRESSES port PORTS";
            return Err(wrong(word, "follows no addresses", right));
        }
        other => {
            let or = "from, to, established, flags, icmp-type, fragment or log";
            return Err(wrong(
                word,
                "is no word of a rule",
                meant(other, &KEYWORDS, or),
            ));
        }
    }
    Ok(())
}

impl Seen<'_> {
    fn find(&self, text: &str) -> Option<&Word> {
        self.words.iter().find(|word| word.text == text).copied()
    }

    /// Checks the conditions on a rule as a whole.
    fn check(&self, first: &Word, rule: &Rule) -> Result<(), Wrong> {
        if let Some(port) = self.ports {
            let has_ports = |&protocol: &u8| ip::has_ports(protocol);
            if rule.protocols.is_empty() || !rule.protocols.iter().all(has_ports) {
                let right = "tcp, udp, sctp, dccp or udplite as protocol";
                return Err(wrong(port, "is of a protocol without ports", right));
            }
        }
        for text in ["established", "flags"] {
            if let Some(word) = self.find(text)
                && rule.protocols != [tcp::PROTOCOL]
            {
                return Err(wrong(word, "is of TCP alone", "tcp as protocol"));
            }
        }
        if let Some(word) = self.find("fragment")
            && rule.asks_upper()
        {
            let message = "means later fragments, which have no ports, flags or ICMP type";
            return Err(wrong(word, message, "addresses and protocol only"));
        }
        if !rule.has_version(4) && !rule.has_version(6) {
            let message = "never matches: one part of it is IPv4, another IPv6";
            return Err(wrong(first, message, "addresses of one version"));
        }
        Ok(())
    }
}
