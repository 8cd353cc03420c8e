//! Policies as they are written in the daemon's configuration and in the emulator's scenarios.

use serde::Deserialize;

/// One value or a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore<T> {
    /// `x`
    One(T),
    /// `[x, y]`
    More(Vec<T>),
}

impl<T> Default for OneOrMore<T> {
    fn default() -> Self {
        OneOrMore::More(Vec::new())
    }
}

impl<T> OneOrMore<T> {
    /// The values.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        match self {
            OneOrMore::One(value) => std::slice::from_ref(value),
            OneOrMore::More(values) => values,
        }
    }
}

/// A number, or a text with a range: `"3"`, `"<= 3"`, `">= 3"`, `"2..4"`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// Exactly this number.
    Exact(u32),
    /// A range as text.
    Range(String),
}

/// The outcome of a term that applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Then {
    /// The route is accepted.
    Accept,
    /// The route is denied.
    Deny,
    /// The next term judges the route.
    #[default]
    Next,
}

/// A policy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The name by which peers refer to it; not `accept` or `deny`.
    pub name: String,
    /// The terms, in order.
    #[serde(default)]
    pub term: Vec<Term>,
}

/// A term: conditions that must all hold (of a list, one entry is enough), then changes, then what follows.
///
/// ```toml
/// [[term]]
/// prefix = ["10.0.0.0/8 le 24", "192.0.2.0/24"]
/// origin_as = 64500
/// set_local_pref = 200
/// add_community = "64496:1"
/// then = "accept"
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Term {
    /// Prefixes: `10.0.0.0/8` is that prefix, `10.0.0.0/8 ge 16 le 24` are the prefixes in it with these lengths.
    pub prefix: OneOrMore<String>,
    /// `ipv4` or `ipv6`.
    pub family: Option<String>,
    /// AS numbers, one of which is in the path.
    pub as_path_contains: OneOrMore<u32>,
    /// The origin AS.
    pub origin_as: OneOrMore<u32>,
    /// The first AS of the path.
    pub neighbour_as: OneOrMore<u32>,
    /// The path's length as the decision process counts it.
    pub as_path_length: Option<Number>,
    /// The path as words: numbers, `?` for any one AS, `*` for any sequence of AS numbers: `64500 * 64511`.
    pub as_path: OneOrMore<String>,
    /// Communities, one of which is present: `64496:14`, `64496:*` or a well-known name.
    pub community: OneOrMore<String>,
    /// Extended communities: `RT:64496:14`, `SoO:192.0.2.1:14` or sixteen digits after `0x`.
    pub ext_community: OneOrMore<String>,
    /// Large communities: `64496:1:2`, with `*` for any number.
    pub large_community: OneOrMore<String>,
    /// `igp`, `egp` or `incomplete`.
    pub origin: OneOrMore<String>,
    /// The peer that the route came from: an AS number, an address or a prefix of addresses; `local` for a route of our
    /// own.
    pub neighbour: OneOrMore<String>,
    /// The origin's validity (RFC 6811): `valid`, `invalid` or `not-found`.
    pub rpki: OneOrMore<String>,

    /// LOCAL_PREF.
    pub set_local_pref: Option<u32>,
    /// MULTI_EXIT_DISC.
    pub set_med: Option<u32>,
    /// Removes MULTI_EXIT_DISC.
    pub remove_med: bool,
    /// `igp`, `egp` or `incomplete`.
    pub set_origin: Option<String>,
    /// The next hop, for routes of its family.
    pub set_next_hop: Option<String>,
    /// How often our AS is prepended to the path, in addition to the usual one.
    pub prepend: u8,
    /// Communities that replace all that there are.
    pub set_community: Option<OneOrMore<String>>,
    /// Communities to add.
    pub add_community: OneOrMore<String>,
    /// Communities to remove.
    pub remove_community: OneOrMore<String>,
    /// Extended communities that replace all that there are.
    pub set_ext_community: Option<OneOrMore<String>>,
    /// Extended communities to add.
    pub add_ext_community: OneOrMore<String>,
    /// Extended communities to remove.
    pub remove_ext_community: OneOrMore<String>,
    /// Large communities that replace all that there are.
    pub set_large_community: Option<OneOrMore<String>>,
    /// Large communities to add.
    pub add_large_community: OneOrMore<String>,
    /// Large communities to remove.
    pub remove_large_community: OneOrMore<String>,

    /// The outcome.
    pub then: Then,
}
