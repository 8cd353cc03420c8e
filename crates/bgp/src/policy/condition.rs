//! Compiled conditions of terms.

use std::ops::RangeInclusive;

use wire::bgp::attr::{self, Origin};
use wire::bgp::{AsPath, FamilyId, Prefix};

use super::{Subject, Validity};

/// A prefix and the lengths of matching prefixes in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PrefixRange {
    pub(super) prefix: Prefix,
    pub(super) lengths: RangeInclusive<u8>,
}

impl PrefixRange {
    fn holds(&self, prefix: Prefix) -> bool {
        self.lengths.contains(&prefix.len()) && self.prefix.contains(prefix)
    }
}

/// A word of an AS path pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Asn(u32),
    AnyOne,
    AnyMany,
}

/// The source of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Neighbour {
    Local,
    Asn(u32),
    Within(Prefix),
}

/// The numbers of a community: each a fixed number or any.
pub(super) type Parts<const N: usize> = [Option<u32>; N];

/// A condition. If it is a list, one matching entry is enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    Prefix(Vec<PrefixRange>),
    Family(FamilyId),
    Contains(Vec<u32>),
    OriginAs(Vec<u32>),
    NeighbourAs(Vec<u32>),
    Length(RangeInclusive<u32>),
    Path(Vec<Vec<Word>>),
    Community(Vec<Parts<2>>),
    ExtCommunity(Vec<u64>),
    LargeCommunity(Vec<Parts<3>>),
    Origin(Vec<Origin>),
    Neighbour(Vec<Neighbour>),
    Rpki(Vec<Validity>),
}

impl Condition {
    /// Whether the result can differ between prefixes with equal attributes. It can for a family too: one message may
    /// have routes of both families.
    pub(super) fn is_by_prefix(&self) -> bool {
        matches!(
            self,
            Condition::Prefix(_) | Condition::Family(_) | Condition::Rpki(_)
        )
    }

    pub(super) fn uses_roas(&self) -> bool {
        matches!(self, Condition::Rpki(_))
    }

    pub(super) fn holds(&self, subject: &Subject<'_>) -> bool {
        let raw = subject.attributes;
        match self {
            Condition::Prefix(list) => list.iter().any(|range| range.holds(subject.prefix)),
            Condition::Family(family) => subject.prefix.family() == *family,
            Condition::Contains(list) => attr::as_path(raw).asns().any(|asn| list.contains(&asn)),
            Condition::OriginAs(list) => is_in(list, attr::as_path(raw).origin_as()),
            Condition::NeighbourAs(list) => is_in(list, attr::as_path(raw).neighbour_as()),
            Condition::Length(range) => {
                let length = attr::as_path(raw).length();
                u32::try_from(length).is_ok_and(|length| range.contains(&length))
            }
            Condition::Path(list) => list
                .iter()
                .any(|words| path_matches(words, attr::as_path(raw))),
            Condition::Community(list) => attr::communities(raw).any(|community| {
                let parts = [community.0 >> 16, community.0 & 0xffff];
                list.iter().any(|wanted| parts_match(wanted, &parts))
            }),
            Condition::ExtCommunity(list) => {
                attr::ext_communities(raw).any(|community| list.contains(&community.0))
            }
            Condition::LargeCommunity(list) => attr::large_communities(raw)
                .any(|community| list.iter().any(|wanted| parts_match(wanted, &community.0))),
            Condition::Origin(list) => list.contains(&attr::origin(raw)),
            Condition::Neighbour(list) => list.iter().any(|neighbour| match *neighbour {
                Neighbour::Local => subject.neighbour.is_none(),
                Neighbour::Asn(asn) => subject.neighbour.is_some_and(|other| other.0 == asn),
                Neighbour::Within(prefix) => subject
                    .neighbour
                    .is_some_and(|other| prefix.contains_address(other.1)),
            }),
            Condition::Rpki(list) => {
                let origin = attr::as_path(raw).origin_as();
                list.contains(&subject.roas.validity(subject.prefix, origin))
            }
        }
    }
}

fn is_in(list: &[u32], asn: Option<u32>) -> bool {
    asn.is_some_and(|asn| list.contains(&asn))
}

fn parts_match<const N: usize>(wanted: &Parts<N>, parts: &[u32; N]) -> bool {
    wanted
        .iter()
        .zip(parts)
        .all(|(wanted, part)| wanted.is_none_or(|wanted| wanted == *part))
}

/// Whether a pattern matches a whole path. The members of a set are matched in their order.
fn path_matches(words: &[Word], path: AsPath<'_>) -> bool {
    // Where to continue when the attempt after the last `*` fails: at the word after it, one AS later.
    let mut again = None;
    let mut asns = path.asns();
    let mut words = words;
    loop {
        if let [Word::AnyMany, rest @ ..] = words {
            words = rest;
            again = Some((rest, asns.clone()));
            continue;
        }
        let mut after = asns.clone();
        let matches = match (words.first(), after.next()) {
            (None, None) => return true,
            (Some(Word::AnyOne), Some(_)) => true,
            (Some(Word::Asn(wanted)), Some(asn)) => *wanted == asn,
            _ => false,
        };
        if matches {
            words = &words[1..];
            asns = after;
            continue;
        }
        let Some((rest, from)) = &mut again else {
            return false;
        };
        if from.next().is_none() {
            return false;
        }
        words = rest;
        asns = from.clone();
    }
}
