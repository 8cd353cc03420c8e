//! Filters of tc as conditions of a policy: u32, flower, fw and matchall.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::objects::Object;

/// The conditions of one filter: keys of a section with their values.
pub(super) type Conditions = BTreeMap<&'static str, Vec<String>>;

/// One option of a filter: its words, and why it is no condition.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A condition, or something that the policy does without one.
    Used(String),
    Lost(String, &'static str),
}

/// What a filter does.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) conditions: Conditions,
    /// It has a part that is no condition, so it must not become one: it would match other packets.
    pub(super) is_partial: bool,
    pub(super) class: Option<String>,
    pub(super) redirect: Option<String>,
    pub(super) police: Option<String>,
    pub(super) parts: Vec<Part>,
}

impl Filter {
    /// Reads the words of a filter.
    // long: an arm for each word of each kind of filter
    pub(super) fn read(object: &Object) -> Filter {
        let mut filter = Filter::default();
        let mut words = object.words.iter().map(String::as_str).peekable();
        let mut addresses = BTreeMap::new();
        if object.kind == "fw" && !object.handle.is_empty() {
            let mark = object.handle.clone();
            filter.condition("mark", mark, format!("handle {}", object.handle));
        }
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_default().to_owned();
            match (object.kind.as_str(), word) {
                (_, "flowid" | "classid" | "*flowid") => {
                    let class = value();
                    filter.used(format!("{word} {class}"));
                    filter.class = Some(class);
                }
                ("fw", "handle") => {
                    let mark = value();
                    filter.condition("mark", mark.clone(), format!("handle {mark}"));
                }
                ("fw", "mask") => {
                    let mask = value();
                    let marks = filter.conditions.entry("mark").or_default();
                    marks
                        .iter_mut()
                        .for_each(|mark| *mark = format!("{mark}/{mask}"));
                    filter.used(format!("mask {mask}"));
                }
                ("u32", "match") => {
                    let mut own = Vec::new();
                    let is_end = |word: &&str| {
                        matches!(
                            *word,
                            "match"
                                | "flowid"
                                | "classid"
                                | "action"
                                | "police"
                                | "link"
                                | "hashkey"
                        )
                    };
                    while let Some(word) = words.next_if(|word| !is_end(word)) {
                        own.push(word);
                    }
                    filter.u32(&own, object.protocol == "ipv6", &mut addresses);
                }
                (
                    "u32",
                    "u32" | "ht" | "divisor" | "ht_divisor" | "link" | "hashkey" | "hash_mask"
                    | "hash_off",
                ) => {
                    let value = value();
                    filter.lost(
                        format!("{word} {value}"),
                        "headend has no hash tables of filters: write their rules as conditions",
                    );
                }
                ("flower", _) => {
                    let text = format!("{word} {}", words.peek().unwrap_or(&""));
                    match flower(word) {
                        Some(_) if word == "action" => filter.action(&mut words),
                        Some("") => {
                            words.next();
                            filter.used(text);
                        }
                        Some(key) => {
                            let value = words.next().unwrap_or_default().to_owned();
                            filter.condition(key, value, text);
                        }
                        None if word == "action" => filter.action(&mut words),
                        None => {
                            words.next();
                            filter.lost(text, "not a condition of a policy");
                        }
                    }
                }
                (_, "action") => filter.action(&mut words),
                (_, "police") => filter.police(&mut words),
                ("matchall" | "u32", _) => {
                    filter.lost(word.to_owned(), "not an option that headend reads")
                }
                _ => filter.lost(
                    word.to_owned(),
                    "headend translates u32, flower, fw and matchall",
                ),
            }
        }
        filter.addresses(addresses);
        filter
    }

    fn used(&mut self, text: String) {
        self.parts.push(Part::Used(text));
    }

    fn lost(&mut self, text: String, why: &'static str) {
        self.is_partial = true;
        self.parts.push(Part::Lost(text, why));
    }

    fn condition(&mut self, key: &'static str, value: String, text: String) {
        // Two values of one key in one filter must both match, which a list does not say.
        match self.conditions.contains_key(key) {
            true => self.lost(text, "a second condition on the same field"),
            false => {
                self.conditions.insert(key, vec![value]);
                self.used(text);
            }
        }
    }

    fn action<'w>(&mut self, words: &mut std::iter::Peekable<impl Iterator<Item = &'w str>>) {
        let kind = words.next().unwrap_or_default();
        match kind {
            "mirred" => {
                let mut own = vec!["action", "mirred"];
                while let Some(word) = words.next_if(|word| *word != "action") {
                    own.push(word);
                    if let (true, Some(device)) = (word == "dev", words.peek()) {
                        self.redirect = Some((*device).to_owned());
                    }
                }
                let is_redirect = own.contains(&"redirect");
                let text = own.join(" ");
                match is_redirect {
                    true => self.used(text),
                    false => {
                        self.redirect = None;
                        self.lost(text, "headend copies no packets");
                    }
                }
            }
            "police" => self.police(words),
            "pass" | "ok" | "gact" => {
                let mut own = vec!["action", kind];
                while let Some(word) = words.next_if(|word| *word != "action") {
                    own.push(word);
                }
                match own
                    .iter()
                    .any(|word| matches!(*word, "drop" | "goto" | "jump"))
                {
                    true => self.lost(own.join(" "), "a policy drops no packets by a filter"),
                    false => self.used(own.join(" ")),
                }
            }
            _ => {
                let mut own = vec!["action", kind];
                while let Some(word) = words.next_if(|word| *word != "action") {
                    own.push(word);
                }
                self.lost(own.join(" "), "a policy changes no packets");
            }
        }
    }

    fn police<'w>(&mut self, words: &mut std::iter::Peekable<impl Iterator<Item = &'w str>>) {
        let mut own = vec!["police"];
        while let Some(word) = words.next_if(|word| !matches!(*word, "flowid" | "classid")) {
            own.push(word);
            if let (true, Some(rate)) = (word == "rate", words.peek()) {
                self.police = Some((*rate).to_owned());
            }
        }
        self.used(own.join(" "));
    }

    /// `match ip dport 22 0xffff`, `match u32 0x0a000000 0xff000000 at 12`, and tc's `match hex a000000/ff000000 at 12`.
    fn u32(&mut self, words: &[&str], is_v6: bool, addresses: &mut Words) {
        let text = format!("match {}", words.join(" "));
        let whole = match words {
            ["ip" | "ip6", key @ ("dport" | "sport"), value, mask, ..] => {
                let key = if *key == "dport" {
                    "dst_port"
                } else {
                    "src_port"
                };
                return match number(value)
                    .zip(number(mask))
                    .and_then(|(value, mask)| ports(value, mask))
                {
                    Some(ports) => self.condition(key, ports, text),
                    None => self.lost(text, "not a range of ports"),
                };
            }
            ["ip" | "ip6", key @ ("src" | "dst"), value, ..] => {
                let key = if *key == "src" { "src" } else { "dst" };
                return self.condition(key, (*value).to_owned(), text);
            }
            ["ip" | "ip6", "protocol", "0", "0" | "0x0" | "0x00"] => return self.used(text),
            ["ip" | "ip6", "protocol", value, "0xff" | "255"] => {
                let value = number(value).unwrap_or(256).to_string();
                return self.condition("proto", value, text);
            }
            ["ip", "tos" | "dsfield" | "precedence", value, mask]
            | ["ip6", "priority", value, mask] => {
                let both = number(value).zip(number(mask));
                return match both {
                    Some((value, mask)) => self.tos(value, mask, text),
                    None => self.lost(text, "not a TOS byte with a mask"),
                };
            }
            ["hex", both, "at", at] => both.split_once('/').and_then(|(value, mask)| {
                let value = u32::from_str_radix(value, 16).ok()?;
                let mask = u32::from_str_radix(mask, 16).ok()?;
                Some((value, mask, at.parse().ok()?))
            }),
            ["u32", value, mask] => number(value)
                .zip(number(mask))
                .map(|(value, mask)| (value, mask, 0)),
            ["u32", value, mask, "at", at] => {
                let both = number(value).zip(number(mask));
                both.zip(at.parse().ok())
                    .map(|((value, mask), at)| (value, mask, at))
            }
            _ => None,
        };
        match whole {
            Some((_, 0, _)) => self.used(text),
            Some((value, mask, at)) => self.field(value, mask, at, is_v6, addresses, text),
            None => self.lost(text, "not a field that a policy has"),
        }
    }

    fn tos(&mut self, value: u32, mask: u32, text: String) {
        match (value, mask) {
            (value, 0xfc) if value <= 0xff => {
                self.condition("dscp", (value >> 2).to_string(), text)
            }
            (value, mask) if value <= 0xff && mask <= 0xff => {
                self.condition("tos", format!("{value:#04x}/{mask:#04x}"), text);
            }
            _ => self.lost(text, "not a TOS byte with a mask"),
        }
    }

    /// A word of 32 bits at an offset from the IP header.
    fn field(
        &mut self,
        value: u32,
        mask: u32,
        at: u32,
        is_v6: bool,
        addresses: &mut Words,
        text: String,
    ) {
        let ports_at = if is_v6 { 40 } else { 20 };
        match (at, mask, is_v6) {
            (0, mask, false) if mask & !0x00ff_0000 == 0 => self.tos(value >> 16, mask >> 16, text),
            (0, mask, true) if mask & !0x0ff0_0000 == 0 => self.tos(value >> 20, mask >> 20, text),
            (8, 0x00ff_0000, false) => {
                self.condition("proto", (value >> 16 & 0xff).to_string(), text)
            }
            (4, 0x0000_ff00, true) => {
                self.condition("proto", (value >> 8 & 0xff).to_string(), text)
            }
            (12 | 16, _, false) | (8 | 12 | 16 | 20 | 24 | 28 | 32 | 36, _, true) => {
                addresses.insert((is_v6, at), (value, mask));
                self.used(text);
            }
            (at, mask, _) if at == ports_at && mask & 0xffff_0000 == 0 => {
                match ports(value, mask) {
                    Some(ports) => self.condition("dst_port", ports, text),
                    None => self.lost(text, "not a range of ports"),
                }
            }
            (at, mask, _) if at == ports_at && mask & 0xffff == 0 => {
                match ports(value >> 16, mask >> 16) {
                    Some(ports) => self.condition("src_port", ports, text),
                    None => self.lost(text, "not a range of ports"),
                }
            }
            _ => self.lost(text, "not a field that a policy has"),
        }
    }

    /// Joins the words of each address.
    fn addresses(&mut self, words: Words) {
        for (is_v6, start, count, key) in [
            (false, 12, 1, "src"),
            (false, 16, 1, "dst"),
            (true, 8, 4, "src"),
            (true, 24, 4, "dst"),
        ] {
            let (mut value, mut mask) = (0_u128, 0_u128);
            for at in 0..count {
                let (word, own) = words
                    .get(&(is_v6, start + 4 * at))
                    .copied()
                    .unwrap_or_default();
                value = value << 32 | u128::from(word & own);
                mask = mask << 32 | u128::from(own);
            }
            if mask == 0 {
                continue;
            }
            let bits = 32 * count;
            let length = mask.count_ones();
            let is_prefix = mask << (128 - bits) == u128::MAX << (128 - length);
            let prefix = match is_v6 {
                true => format!("{}/{length}", Ipv6Addr::from(value)),
                false => format!("{}/{length}", Ipv4Addr::from(value as u32)),
            };
            match is_prefix && !self.conditions.contains_key(key) {
                true => {
                    self.conditions.insert(key, vec![prefix]);
                }
                false => self.is_partial = true,
            }
        }
    }
}

/// Words of addresses by their offset, with their masks.
type Words = BTreeMap<(bool, u32), (u32, u32)>;

/// The condition of a key of flower; empty for what needs none.
fn flower(word: &str) -> Option<&'static str> {
    Some(match word {
        "ip_proto" => "proto",
        "src_port" => "src_port",
        "dst_port" => "dst_port",
        "src_ip" => "src",
        "dst_ip" => "dst",
        "ip_tos" => "tos",
        "vlan_id" => "vlan",
        "eth_type" | "skip_hw" | "skip_sw" => "",
        _ => return None,
    })
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A port, or the range that a mask leaves open.
fn ports(value: u32, mask: u32) -> Option<String> {
    let (value, open) = (u16::try_from(value).ok()?, !u16::try_from(mask).ok()?);
    let is_range = open & open.wrapping_add(1) == 0;
    let low = value & !open;
    match (open, is_range) {
        (0, _) => Some(low.to_string()),
        (_, true) => Some(format!("{low}-{}", low | open)),
        _ => None,
    }
}
