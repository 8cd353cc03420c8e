//! Parses the values after a rule's words: protocols, addresses, ports, flags, ICMP types. Lists are separated
//! by commas.

use std::net::IpAddr;

use wire::ip;

use super::Word;
use super::remark::{Wrong, meant, wrong, wrong_part};
use crate::Names;
use crate::names::{ICMP_TYPES, ICMP6_TYPES};
use crate::rule::{Addresses, Rule, Span};

/// The most items of a list.
const ITEMS_MAX: usize = 1_024;

/// TCP's flags, FIN lowest, as filters and analysers write them.
pub(crate) const FLAGS: &str = "FSRPAUEW";

/// The end of a packet that a rule's clause concerns.
#[derive(Clone, Copy)]
pub(super) enum End {
    Source,
    Destination,
}

impl End {
    pub(super) fn addresses(self, rule: &mut Rule) -> &mut Vec<Addresses> {
        match self {
            End::Source => &mut rule.source,
            End::Destination => &mut rule.destination,
        }
    }

    pub(super) fn ports(self, rule: &mut Rule) -> &mut Vec<Span> {
        match self {
            End::Source => &mut rule.source_ports,
            End::Destination => &mut rule.destination_ports,
        }
    }
}

fn items(word: &Word) -> Result<impl Iterator<Item = &str>, Wrong> {
    let count = word.text.split(',').count();
    if count > ITEMS_MAX {
        let right = format!("at most {ITEMS_MAX}");
        return Err(wrong(word, format!("a list of {count}"), right));
    }
    if word.text.split(',').any(str::is_empty) {
        let right = "values with a comma between each two";
        return Err(wrong(word, "a list with nothing between commas", right));
    }
    Ok(word.text.split(','))
}

/// `ip` (any), `ip4`, `ip6`, or a list of names and numbers.
pub(super) fn protocols(word: &Word, names: &Names, rule: &mut Rule) -> Result<(), Wrong> {
    match word.text.as_str() {
        "ip" | "all" => return Ok(()),
        "ip4" | "ipv4" => {
            rule.version = Some(4);
            return Ok(());
        }
        "ip6" => {
            rule.version = Some(6);
            return Ok(());
        }
        _ => {}
    }
    for item in items(word)? {
        let number = item.parse().ok().or_else(|| names.protocol(item));
        let Some(number) = number else {
            let mut known = names.protocols();
            known.extend(["ip", "ip4", "ip6"]);
            let right = meant(item, &known, "a name, a number up to 255, or ip for any");
            return Err(wrong_part(word, item, "is no protocol", right));
        };
        if !rule.protocols.contains(&number) {
            rule.protocols.push(number);
        }
    }
    Ok(())
}

/// `any`, or a list of `ADDRESS`, `ADDRESS/LENGTH` and `FIRST-LAST`.
pub(super) fn addresses(word: &Word) -> Result<Vec<Addresses>, Wrong> {
    if word.text == "any" {
        return Ok(Vec::new());
    }
    items(word)?.map(|item| address(word, item)).collect()
}

fn address(word: &Word, item: &str) -> Result<Addresses, Wrong> {
    let one = |text: &str| {
        let address: Option<IpAddr> = text.parse().ok();
        address.ok_or_else(|| {
            let or = "any, an address, ADDRESS/LENGTH, or FIRST-LAST";
            wrong_part(word, text, "is no address", meant(text, &["any"], or))
        })
    };
    if let Some((first, last)) = item.split_once('-') {
        let (first, last) = (one(first)?, one(last)?);
        if first.is_ipv4() != last.is_ipv4() || first > last {
            let right = "both of one version, the lower one first";
            return Err(wrong_part(word, item, "is no range", right));
        }
        return Ok(Addresses {
            version: version(first),
            first: number(first),
            last: number(last),
        });
    }
    let Some((address, length)) = item.split_once('/') else {
        let address = one(item)?;
        return Ok(Addresses {
            version: version(address),
            first: number(address),
            last: number(address),
        });
    };
    let address = one(address)?;
    let bits = if address.is_ipv4() { 32_u32 } else { 128 };
    let length = length.parse().ok().filter(|length: &u32| *length <= bits);
    let Some(length) = length else {
        let right = format!("a length from 0 to {bits}");
        return Err(wrong_part(word, item, "is no prefix", right));
    };
    let host = u128::MAX.checked_shr(128 - bits + length).unwrap_or(0);
    let first = number(address);
    if first & host != 0 {
        let network = match address {
            IpAddr::V4(_) => std::net::Ipv4Addr::from_bits((first & !host) as u32).into(),
            IpAddr::V6(_) => IpAddr::V6((first & !host).into()),
        };
        let message = format!("has bits behind its first {length}");
        let right = format!("did you mean {network}/{length}, or {address} alone?");
        return Err(wrong_part(word, item, message, right));
    }
    Ok(Addresses {
        version: version(address),
        first,
        last: first | host,
    })
}

fn version(address: IpAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}

/// An address in the form of [`wire::ip::Header`].
pub(crate) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => ip::mapped(address.octets()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// A list of ports, names and `FIRST-LAST`.
pub(super) fn ports(word: &Word, names: &Names) -> Result<Vec<Span>, Wrong> {
    let spans: Result<Vec<Span>, Wrong> = items(word)?
        .map(|item| {
            // Names may contain a `-`.
            if let Some(port) = item.parse().ok().or_else(|| names.service(item)) {
                return Ok((port, port));
            }
            let one = |text: &str| text.parse().ok().or_else(|| names.service(text));
            let range = item.split_once('-').and_then(|(a, b)| one(a).zip(one(b)));
            match range {
                Some((first, last)) if first <= last => Ok((first, last)),
                Some(_) => {
                    let right = "the lower one first";
                    Err(wrong_part(word, item, "is no range", right))
                }
                None => {
                    let or = "a number up to 65535, a service's name, or FIRST-LAST";
                    let right = meant(item, &names.services(), or);
                    Err(wrong_part(word, item, "is no port", right))
                }
            }
        })
        .collect();
    spans.map(merged)
}

/// An ICMP or ICMPv6 type with its code, 0 if it has none.
pub(crate) fn icmp_type(word: &Word, protocol: u8) -> Result<u16, Wrong> {
    match icmp(word, protocol)?[..] {
        [(first, _)] => Ok(first),
        _ => Err(wrong(word, "is a list", "one type, or TYPE/CODE")),
    }
}

/// A list of ICMP or ICMPv6 types and `TYPE/CODE`.
pub(super) fn icmp(word: &Word, protocol: u8) -> Result<Vec<Span>, Wrong> {
    let known: &[(&str, u8)] = match protocol {
        wire::icmp::PROTOCOL => &ICMP_TYPES,
        _ => &ICMP6_TYPES,
    };
    let spans: Result<Vec<Span>, Wrong> = items(word)?
        .map(|item| {
            let (kind, code) = match item.split_once('/') {
                Some((kind, code)) => (kind, Some(code)),
                None => (item, None),
            };
            let named = known.iter().find(|(name, _)| *name == kind);
            let Some(number) = kind.parse().ok().or(named.map(|(_, number)| *number)) else {
                let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                let or = format!("a number up to 255, or one of {}", names.join(", "));
                return Err(wrong_part(
                    word,
                    item,
                    "is no ICMP type",
                    meant(kind, &names, &or),
                ));
            };
            let first = u16::from_be_bytes([number, 0]);
            match code.map(str::parse::<u8>) {
                None => Ok((first, first | 0xff)),
                Some(Ok(code)) => Ok((first | u16::from(code), first | u16::from(code))),
                Some(Err(_)) => {
                    let right = "TYPE/CODE with a code up to 255";
                    Err(wrong_part(word, item, "has no code", right))
                }
            }
        })
        .collect();
    spans.map(merged)
}

/// `S/SA`: S is set and A is not. `S`: S is set.
pub(super) fn flags(word: &Word) -> Result<(u8, u8), Wrong> {
    let (want, mask) = match word.text.split_once('/') {
        Some((want, mask)) => (want, Some(mask)),
        None => (word.text.as_str(), None),
    };
    let bits = |letters: &str| {
        flag_bits(letters).ok_or_else(|| {
            let right = format!("letters of {FLAGS}, as in S/SA");
            wrong_part(word, letters, "are no TCP flags", right)
        })
    };
    let want = bits(want)?;
    let mask = mask.map_or(Ok(want), bits)?;
    if want & !mask != 0 {
        let right = "what is set before the slash, what is looked at after it";
        return Err(wrong(word, "never matches", right));
    }
    if mask == 0 {
        let right = format!("letters of {FLAGS}, as in S/SA");
        return Err(wrong(word, "looks at no flag", right));
    }
    Ok((mask, want))
}

/// The flags for these letters; `None` if a letter is unknown.
pub(crate) fn flag_bits(letters: &str) -> Option<u8> {
    letters.chars().try_fold(0, |bits, letter| {
        let at = FLAGS.find(letter.to_ascii_uppercase())?;
        Some(bits | 1 << at)
    })
}

/// Sorted, with touching spans merged.
pub(crate) fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for (first, last) in spans {
        match merged.last_mut() {
            Some(before) if u32::from(first) <= u32::from(before.1) + 1 => {
                before.1 = before.1.max(last);
            }
            _ => merged.push((first, last)),
        }
    }
    merged
}
