//! Compiles policies as they are written into policies that judge routes.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

use wire::bgp::attr::{Community, LargeCommunity, Origin};
use wire::bgp::{FamilyId, Prefix};

use super::condition::{Condition, Neighbour, Parts, PrefixRange, Word};
use super::rewrite::ListEdit;
use super::spec::{Number, OneOrMore, Spec, Term as TermSpec};
use super::{CHANGING_TERMS_MAX, Changes, Policy, Term, Validity};

/// Where a policy is wrong, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PolicyFault {
    /// The policy's name.
    pub policy: String,
    /// The number of the term, from 1; `None` if no term is at fault.
    pub term: Option<usize>,
    /// The key in the term, or `name`.
    pub key: &'static str,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for PolicyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy {:?}", self.policy)?;
        if let Some(term) = self.term {
            write!(f, ", term {term}")?;
        }
        write!(f, ", {}: {}", self.key, self.message)
    }
}

/// Compiled policies by name, with `accept` and `deny` among them.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    by_name: BTreeMap<String, Arc<Policy>>,
}

impl Policies {
    /// The policy with a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Policy>> {
        match name {
            "accept" => Some(Policy::accept()),
            "deny" => Some(Policy::deny()),
            _ => self.by_name.get(name).cloned(),
        }
    }

    /// The policy of a peer for which `name` or no name is configured. Without a name, external peers get `deny` (RFC
    /// 8212) and internal peers `accept`. Returns `None` if the name does not exist.
    #[must_use]
    pub fn resolve(&self, name: Option<&str>, is_internal: bool) -> Option<Arc<Policy>> {
        self.get(name.unwrap_or(if is_internal { "accept" } else { "deny" }))
    }

    /// All names except `accept` and `deny`, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

/// Compiles policies.
///
/// # Errors
/// The first fault: a name that is used twice or reserved, a value that cannot be read, or too many terms that change
/// something.
pub fn compile(specs: &[Spec]) -> Result<Policies, PolicyFault> {
    let mut policies = Policies::default();
    for spec in specs {
        let fault = |term: Option<usize>, (key, message): Wrong| PolicyFault {
            policy: spec.name.clone(),
            term,
            key,
            message,
        };
        if policies.get(&spec.name).is_some() {
            let message = "the name is taken".to_owned();
            return Err(fault(None, ("name", message)));
        }
        let mut terms = Vec::new();
        let mut all_changes = Vec::new();
        for (number, term) in (1..).zip(&spec.term) {
            let at = |wrong| fault(Some(number), wrong);
            let conditions = conditions(term).map_err(at)?;
            let changes = changes(term).map_err(at)?;
            let mut which = None;
            if !changes.is_empty() {
                if all_changes.len() >= CHANGING_TERMS_MAX {
                    let message = format!("more than {CHANGING_TERMS_MAX} terms change something");
                    return Err(at(("term", message)));
                }
                which = Some(all_changes.len() as u8);
                all_changes.push(changes);
            }
            terms.push(Term {
                conditions,
                changes: which,
                then: term.then,
            });
        }
        let policy = Policy::new(&spec.name, terms, all_changes);
        policies.by_name.insert(spec.name.clone(), Arc::new(policy));
    }
    Ok(policies)
}

/// The key, and what is wrong with it.
type Wrong = (&'static str, String);

/// Reads each value of a key.
fn each<T, U>(
    key: &'static str,
    values: &OneOrMore<T>,
    read: impl Fn(&T) -> Option<U>,
    right: &str,
) -> Result<Vec<U>, Wrong>
where
    T: fmt::Debug,
{
    let values = values.as_slice().iter();
    values
        .map(|value| read(value).ok_or_else(|| (key, format!("{value:?} is not {right}"))))
        .collect()
}

fn conditions(term: &TermSpec) -> Result<Vec<Condition>, Wrong> {
    let mut found = Vec::new();
    let mut add = |is_there: bool, condition: Condition| {
        if is_there {
            found.push(condition);
        }
    };
    if let Some(family) = &term.family {
        let known = FamilyId::from_key(family).ok_or_else(|| {
            let keys = FamilyId::ALL.map(|family| format!("\"{}\"", family.key()));
            ("family", format!("{family:?} is not {}", keys.join(" or ")))
        })?;
        add(true, Condition::Family(known));
    }
    let right = "PREFIX, PREFIX le N, PREFIX ge N or PREFIX ge N le M";
    let list = each("prefix", &term.prefix, |text| prefix_range(text), right)?;
    add(!list.is_empty(), Condition::Prefix(list));
    let right = "an AS number, an address, a prefix or \"local\"";
    let list = each("neighbour", &term.neighbour, |text| neighbour(text), right)?;
    add(!list.is_empty(), Condition::Neighbour(list));
    if let Some(length) = &term.as_path_length {
        let range = range(length).ok_or_else(|| {
            let right = "a number, \"<= N\", \">= N\" or \"N..M\"";
            ("as_path_length", format!("{length:?} is not {right}"))
        })?;
        add(true, Condition::Length(range));
    }
    for (list, make) in [
        (
            &term.origin_as,
            Condition::OriginAs as fn(Vec<u32>) -> Condition,
        ),
        (&term.neighbour_as, Condition::NeighbourAs),
        (&term.as_path_contains, Condition::Contains),
    ] {
        let list = list.as_slice().to_vec();
        add(!list.is_empty(), make(list));
    }
    let list = each("origin", &term.origin, |text| origin(text), ORIGINS)?;
    add(!list.is_empty(), Condition::Origin(list));
    let right = "AS numbers, ? and *, with blanks between them";
    let list = each("as_path", &term.as_path, |text| pattern(text), right)?;
    add(!list.is_empty(), Condition::Path(list));
    let list = each(
        "community",
        &term.community,
        |text| community_parts(text),
        COMMUNITY,
    )?;
    add(!list.is_empty(), Condition::Community(list));
    let list = each(
        "ext_community",
        &term.ext_community,
        |text| ext_community(text),
        EXT,
    )?;
    add(!list.is_empty(), Condition::ExtCommunity(list));
    let list = each(
        "large_community",
        &term.large_community,
        |text| parts(text),
        LARGE,
    )?;
    add(!list.is_empty(), Condition::LargeCommunity(list));
    let right = "\"valid\", \"invalid\" or \"not-found\"";
    let list = each("rpki", &term.rpki, |text| validity(text), right)?;
    add(!list.is_empty(), Condition::Rpki(list));
    Ok(found)
}

const ORIGINS: &str = "\"igp\", \"egp\" or \"incomplete\"";
const COMMUNITY: &str = "a community like 64496:14 or no-export";
const EXT: &str = "an extended community like RT:64496:14 or 0x and sixteen digits";
const LARGE: &str = "a large community like 64496:1:2";

fn changes(term: &TermSpec) -> Result<Changes, Wrong> {
    let mut changes = Changes {
        local_pref: term.set_local_pref,
        prepend: term.prepend,
        ..Changes::default()
    };
    changes.med = match (term.set_med, term.remove_med) {
        (Some(_), true) => {
            let message = "not together with set_med".to_owned();
            return Err(("remove_med", message));
        }
        (Some(med), false) => Some(Some(med)),
        (None, true) => Some(None),
        (None, false) => None,
    };
    if let Some(text) = &term.set_origin {
        let origin = origin(text);
        let wrong = || ("set_origin", format!("{text:?} is not {ORIGINS}"));
        changes.origin = Some(origin.ok_or_else(wrong)? as u8);
    }
    if let Some(text) = &term.set_next_hop {
        let wrong = |_| ("set_next_hop", format!("{text:?} is not an address"));
        changes.next_hop = Some(text.parse::<IpAddr>().map_err(wrong)?);
    }
    changes.lists = [
        list_edit(
            ["set_community", "add_community", "remove_community"],
            &term.set_community,
            [&term.add_community, &term.remove_community],
            |text| Some(Community::from_str(text).ok()?.0.to_be_bytes()),
            COMMUNITY,
        )?,
        list_edit(
            [
                "set_ext_community",
                "add_ext_community",
                "remove_ext_community",
            ],
            &term.set_ext_community,
            [&term.add_ext_community, &term.remove_ext_community],
            |text| Some(ext_community(text)?.to_be_bytes()),
            EXT,
        )?,
        list_edit(
            [
                "set_large_community",
                "add_large_community",
                "remove_large_community",
            ],
            &term.set_large_community,
            [&term.add_large_community, &term.remove_large_community],
            |text| {
                let words = LargeCommunity::from_str(text).ok()?.0.map(u32::to_be_bytes);
                <[u8; 12]>::try_from(words.as_flattened()).ok()
            },
            LARGE,
        )?,
    ];
    Ok(changes)
}

fn list_edit<const N: usize>(
    [set_key, add_key, remove_key]: [&'static str; 3],
    set: &Option<OneOrMore<String>>,
    [add, remove]: [&OneOrMore<String>; 2],
    read: impl Fn(&str) -> Option<[u8; N]>,
    right: &str,
) -> Result<ListEdit, Wrong> {
    let octets = |key, values: &OneOrMore<String>| {
        let list = each(key, values, |text| read(text), right)?;
        Ok(list.concat())
    };
    Ok(ListEdit {
        set: match set {
            Some(values) => Some(octets(set_key, values)?),
            None => None,
        },
        add: octets(add_key, add)?,
        remove: octets(remove_key, remove)?,
    })
}

fn prefix_range(text: &str) -> Option<PrefixRange> {
    let mut words = text.split_whitespace();
    let prefix = Prefix::from_str(words.next()?).ok()?;
    let (len, bits) = (prefix.len(), prefix.family().bits());
    let mut bounds = [None, None];
    while let Some(word) = words.next() {
        let bound = match word {
            "ge" => &mut bounds[0],
            "le" => &mut bounds[1],
            _ => return None,
        };
        let value = words.next()?.parse::<u8>().ok()?;
        if value < len || value > bits || bound.replace(value).is_some() {
            return None;
        }
    }
    let lengths = match bounds {
        [None, None] => len..=len,
        [Some(least), None] => least..=bits,
        [None, Some(most)] => len..=most,
        [Some(least), Some(most)] => least..=most,
    };
    (!lengths.is_empty()).then_some(PrefixRange { prefix, lengths })
}

fn neighbour(text: &str) -> Option<Neighbour> {
    if text == "local" {
        return Some(Neighbour::Local);
    }
    if let Ok(asn) = text.parse() {
        return Some(Neighbour::Asn(asn));
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(Neighbour::Within(Prefix::of(address, 128)));
    }
    Prefix::from_str(text).ok().map(Neighbour::Within)
}

fn range(number: &Number) -> Option<RangeInclusive<u32>> {
    let text = match number {
        Number::Exact(number) => return Some(*number..=*number),
        Number::Range(text) => text.trim(),
    };
    if let Some(most) = text.strip_prefix("<=") {
        return Some(0..=most.trim().parse().ok()?);
    }
    if let Some(least) = text.strip_prefix(">=") {
        return Some(least.trim().parse().ok()?..=u32::MAX);
    }
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let range = least.trim().parse().ok()?..=most.trim().parse().ok()?;
    (!range.is_empty()).then_some(range)
}

fn origin(text: &str) -> Option<Origin> {
    match text {
        "igp" => Some(Origin::Igp),
        "egp" => Some(Origin::Egp),
        "incomplete" => Some(Origin::Incomplete),
        _ => None,
    }
}

fn validity(text: &str) -> Option<Validity> {
    match text {
        "valid" => Some(Validity::Valid),
        "invalid" => Some(Validity::Invalid),
        "not-found" => Some(Validity::NotFound),
        _ => None,
    }
}

fn pattern(text: &str) -> Option<Vec<Word>> {
    let word = |word: &str| match word {
        "?" => Some(Word::AnyOne),
        "*" => Some(Word::AnyMany),
        number => number.parse().ok().map(Word::Asn),
    };
    text.split_whitespace().map(word).collect()
}

fn parts<const N: usize>(text: &str) -> Option<Parts<N>> {
    let mut parts = [None; N];
    let mut words = text.split(':');
    for part in &mut parts {
        match words.next()? {
            "*" => {}
            word => *part = Some(word.parse().ok()?),
        }
    }
    words.next().is_none().then_some(parts)
}

fn community_parts(text: &str) -> Option<Parts<2>> {
    if let Ok(community) = Community::from_str(text) {
        return Some([Some(community.0 >> 16), Some(community.0 & 0xffff)]);
    }
    let parts = parts(text)?;
    let fits = |part: &Option<u32>| part.is_none_or(|part| part <= 0xffff);
    parts.iter().all(fits).then_some(parts)
}

/// Reads an extended community (RFC 4360, section 3; RFC 5668) in the form in which it is shown.
fn ext_community(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        let is_whole = digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        return u64::from_str_radix(digits, 16).ok().filter(|_| is_whole);
    }
    let mut words = text.split(':');
    let subtype: u64 = match words.next()? {
        "RT" => 2,
        "SoO" => 3,
        _ => return None,
    };
    let (administrator, number) = (words.next()?, words.next()?.parse::<u32>().ok()?);
    if words.next().is_some() {
        return None;
    }
    let head = |kind: u64| kind << 56 | subtype << 48;
    let short = u16::try_from(number).ok().map(u64::from);
    if let Ok(address) = administrator.parse::<std::net::Ipv4Addr>() {
        return Some(head(1) | u64::from(address.to_bits()) << 16 | short?);
    }
    let asn = administrator.parse::<u32>().ok()?;
    match u16::try_from(asn) {
        Ok(asn) => Some(head(0) | u64::from(asn) << 32 | u64::from(number)),
        Err(_) => Some(head(2) | u64::from(asn) << 16 | short?),
    }
}
