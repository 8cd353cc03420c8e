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
use super::spec::{Spec, Term as TermSpec};
use super::{CHANGING_TERMS_MAX, Changes, Policy, Term, Validity};

/// Where a policy is wrong, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PolicyFault {
    /// The policy's name.
    pub policy: String,
    /// The number of the policy among those that were compiled, from 1.
    pub number: usize,
    /// The number of the term, from 1; `None` if no term is at fault.
    pub term: Option<usize>,
    /// The key in the term, or `name`.
    pub key: &'static str,
    /// The value at fault, if one of the key's values cannot be read.
    pub value: Option<String>,
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
/// Every fault: a name that is used twice or reserved, a value that cannot be read, or too many terms that change
/// something.
pub fn compile(specs: &[Spec]) -> Result<Policies, Vec<PolicyFault>> {
    let mut policies = Policies::default();
    let mut faults = Vec::new();
    for (number, spec) in (1..).zip(specs) {
        let mut fault = |term: Option<usize>, wrong: Wrong| {
            faults.push(PolicyFault {
                policy: spec.name.clone(),
                number,
                term,
                key: wrong.key,
                value: wrong.value,
                message: wrong.message,
            });
        };
        if policies.get(&spec.name).is_some() {
            let message = format!("{:?} is taken; give another name", spec.name);
            fault(None, Wrong::of("name", message));
        }
        let mut terms = Vec::new();
        let mut all_changes = Vec::new();
        for (number, term) in (1..).zip(&spec.term) {
            let mut wrongs = Vec::new();
            let conditions = conditions(term, &mut wrongs);
            let changes = changes(term, &mut wrongs);
            let mut which = None;
            if !changes.is_empty() {
                if all_changes.len() == CHANGING_TERMS_MAX {
                    let message = format!("more than {CHANGING_TERMS_MAX} terms change something");
                    wrongs.push(Wrong::of("term", message));
                }
                which = Some(all_changes.len() as u8);
                all_changes.push(changes);
            }
            for wrong in wrongs {
                fault(Some(number), wrong);
            }
            terms.push(Term {
                conditions,
                changes: which,
                then: term.then,
            });
        }
        if faults.is_empty() {
            let policy = Policy::new(&spec.name, terms, all_changes);
            policies.by_name.insert(spec.name.clone(), Arc::new(policy));
        } else {
            // Later policies may not have this name either.
            let name = spec.name.clone();
            policies.by_name.entry(name).or_insert_with(Policy::deny);
        }
    }
    if faults.is_empty() {
        Ok(policies)
    } else {
        Err(faults)
    }
}

/// A fault of one term, or of a name.
struct Wrong {
    key: &'static str,
    value: Option<String>,
    message: String,
}

impl Wrong {
    fn of(key: &'static str, message: String) -> Self {
        Self {
            key,
            value: None,
            message,
        }
    }

    /// A value that is not `right`.
    fn value(key: &'static str, text: &str, right: &str) -> Self {
        Self {
            key,
            value: Some(text.to_owned()),
            message: format!("{text:?} is not {right}"),
        }
    }
}

/// Reads each value of a key. Values that cannot be read are noted and left out.
fn each<T>(
    key: &'static str,
    values: &[String],
    read: impl Fn(&str) -> Option<T>,
    right: &str,
    wrongs: &mut Vec<Wrong>,
) -> Vec<T> {
    let mut found = Vec::with_capacity(values.len());
    for text in values {
        match read(text) {
            Some(value) => found.push(value),
            None => wrongs.push(Wrong::value(key, text, right)),
        }
    }
    found
}

/// Reads the value of a key that may be left out.
fn only<T>(
    key: &'static str,
    text: Option<&String>,
    read: impl Fn(&str) -> Option<T>,
    right: &str,
    wrongs: &mut Vec<Wrong>,
) -> Option<T> {
    let text = text.map(std::slice::from_ref).unwrap_or_default();
    each(key, text, read, right, wrongs).pop()
}

fn conditions(term: &TermSpec, wrongs: &mut Vec<Wrong>) -> Vec<Condition> {
    let mut found = Vec::new();
    let mut add = |is_there: bool, condition: Condition| {
        if is_there {
            found.push(condition);
        }
    };
    let keys = FamilyId::ALL.map(|family| format!("\"{}\"", family.key()));
    let right = format!("a family; write {}", keys.join(" or "));
    let family = term.family.as_ref();
    if let Some(family) = only("family", family, FamilyId::from_key, &right, wrongs) {
        add(true, Condition::Family(family));
    }
    let right = "a prefix with lengths; write PREFIX, PREFIX le N, PREFIX ge N or PREFIX ge N le M";
    let list = each("prefix", &term.prefix, prefix_range, right, wrongs);
    add(!list.is_empty(), Condition::Prefix(list));
    let right = "a peer; write an AS number, an address, a prefix or \"local\"";
    let list = each("neighbour", &term.neighbour, neighbour, right, wrongs);
    add(!list.is_empty(), Condition::Neighbour(list));
    let right = "a length; write N, \"<= N\", \">= N\" or \"N..M\"";
    let length = term.as_path_length.as_ref();
    if let Some(range) = only("as_path_length", length, range, right, wrongs) {
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
        add(!list.is_empty(), make(list.clone()));
    }
    let list = each("origin", &term.origin, origin, ORIGINS, wrongs);
    add(!list.is_empty(), Condition::Origin(list));
    let right = "a path; write AS numbers, ? and *, with blanks between them";
    let list = each("as_path", &term.as_path, pattern, right, wrongs);
    add(!list.is_empty(), Condition::Path(list));
    let (key, values) = ("community", &term.community);
    let list = each(key, values, community_parts, COMMUNITY, wrongs);
    add(!list.is_empty(), Condition::Community(list));
    let (key, values) = ("ext_community", &term.ext_community);
    let list = each(key, values, ext_community, EXT, wrongs);
    add(!list.is_empty(), Condition::ExtCommunity(list));
    let (key, values) = ("large_community", &term.large_community);
    let list = each(key, values, parts, LARGE, wrongs);
    add(!list.is_empty(), Condition::LargeCommunity(list));
    let right = "a validity; write \"valid\", \"invalid\" or \"not-found\"";
    let list = each("rpki", &term.rpki, validity, right, wrongs);
    add(!list.is_empty(), Condition::Rpki(list));
    found
}

const ORIGINS: &str = "an origin; write \"igp\", \"egp\" or \"incomplete\"";
const COMMUNITY: &str = "a community; write it like 64496:14 or no-export";
const EXT: &str = "an extended community; write it like RT:64496:14, or as 0x and sixteen digits";
const LARGE: &str = "a large community; write it like 64496:1:2";

fn changes(term: &TermSpec, wrongs: &mut Vec<Wrong>) -> Changes {
    let mut changes = Changes {
        local_pref: term.set_local_pref,
        prepend: term.prepend,
        ..Changes::default()
    };
    changes.med = match (term.set_med, term.remove_med) {
        (Some(_), true) => {
            let message = "is given together with set_med; give one of the two".to_owned();
            wrongs.push(Wrong::of("remove_med", message));
            None
        }
        (Some(med), false) => Some(Some(med)),
        (None, true) => Some(None),
        (None, false) => None,
    };
    let text = term.set_origin.as_ref();
    changes.origin = only("set_origin", text, origin, ORIGINS, wrongs).map(|origin| origin as u8);
    let (text, right) = (
        term.set_next_hop.as_ref(),
        "an address; write it like 192.0.2.1",
    );
    changes.next_hop = only(
        "set_next_hop",
        text,
        |text| text.parse().ok(),
        right,
        wrongs,
    );
    changes.lists = [
        list_edit(
            ["set_community", "add_community", "remove_community"],
            term.set_community.as_deref(),
            [&term.add_community, &term.remove_community],
            |text| Some(Community::from_str(text).ok()?.0.to_be_bytes()),
            COMMUNITY,
            wrongs,
        ),
        list_edit(
            [
                "set_ext_community",
                "add_ext_community",
                "remove_ext_community",
            ],
            term.set_ext_community.as_deref(),
            [&term.add_ext_community, &term.remove_ext_community],
            |text| Some(ext_community(text)?.to_be_bytes()),
            EXT,
            wrongs,
        ),
        list_edit(
            [
                "set_large_community",
                "add_large_community",
                "remove_large_community",
            ],
            term.set_large_community.as_deref(),
            [&term.add_large_community, &term.remove_large_community],
            |text| {
                let words = LargeCommunity::from_str(text).ok()?.0.map(u32::to_be_bytes);
                <[u8; 12]>::try_from(words.as_flattened()).ok()
            },
            LARGE,
            wrongs,
        ),
    ];
    changes
}

fn list_edit<const N: usize>(
    [set_key, add_key, remove_key]: [&'static str; 3],
    set: Option<&[String]>,
    [add, remove]: [&[String]; 2],
    read: impl Fn(&str) -> Option<[u8; N]>,
    right: &str,
    wrongs: &mut Vec<Wrong>,
) -> ListEdit {
    let mut octets = |key, values| each(key, values, &read, right, wrongs).concat();
    ListEdit {
        set: set.map(|values| octets(set_key, values)),
        add: octets(add_key, add),
        remove: octets(remove_key, remove),
    }
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

fn range(text: &str) -> Option<RangeInclusive<u32>> {
    let text = text.trim();
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
