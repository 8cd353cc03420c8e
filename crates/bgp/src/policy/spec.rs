//! Policies as they are written: what the configuration and the emulator's scenarios embed.

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
    /// Exactly that.
    Exact(u32),
    /// A range as text.
    Range(String),
}

/// What follows a term that applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Then {
    /// The route is taken.
    Accept,
    /// It is not.
    Deny,
    /// The next term is asked.
    #[default]
    Next,
}

/// A policy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// What peers call it by; not `accept` or `deny`.
    pub name: String,
    /// What it does, in order.
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
    /// Prefixes: `10.0.0.0/8` is that one, `10.0.0.0/8 ge 16 le 24` those in it with so many bits.
    pub prefix: OneOrMore<String>,
    /// `ipv4` or `ipv6`.
    pub family: Option<String>,
    /// AS numbers of which one is in the path.
    pub as_path_contains: OneOrMore<u32>,
    /// The AS that the route comes from.
    pub origin_as: OneOrMore<u32>,
    /// The first AS of the path.
    pub neighbour_as: OneOrMore<u32>,
    /// The path's length as the decision counts it.
    pub as_path_length: Option<Number>,
    /// The path as words: numbers, `?` for any one AS, `*` for any number of them: `64500 * 64511`.
    pub as_path: OneOrMore<String>,
    /// Communities of which one is there: `64496:14`, `64496:*` or a well-known name.
    pub community: OneOrMore<String>,
    /// Extended communities: `RT:64496:14`, `SoO:192.0.2.1:14` or sixteen digits after `0x`.
    pub ext_community: OneOrMore<String>,
    /// Large communities: `64496:1:2`, with `*` for any number.
    pub large_community: OneOrMore<String>,
    /// `igp`, `egp` or `incomplete`.
    pub origin: OneOrMore<String>,
    /// The peer that the route came from: an AS number, an address or a prefix of addresses; `local` for our own.
    pub neighbour: OneOrMore<String>,
    /// The origin's validity (RFC 6811): `valid`, `invalid` or `not-found`.
    pub rpki: OneOrMore<String>,

    /// LOCAL_PREF.
    pub set_local_pref: Option<u32>,
    /// MULTI_EXIT_DISC.
    pub set_med: Option<u32>,
    /// Takes MULTI_EXIT_DISC away.
    pub remove_med: bool,
    /// `igp`, `egp` or `incomplete`.
    pub set_origin: Option<String>,
    /// An address, for routes of its family.
    pub set_next_hop: Option<String>,
    /// How often our AS is put before the path, beside what is usual.
    pub prepend: u8,
    /// Communities instead of all that there are.
    pub set_community: Option<OneOrMore<String>>,
    /// Communities to be added.
    pub add_community: OneOrMore<String>,
    /// Communities to be taken away.
    pub remove_community: OneOrMore<String>,
    /// Extended communities instead of all that there are.
    pub set_ext_community: Option<OneOrMore<String>>,
    /// Extended communities to be added.
    pub add_ext_community: OneOrMore<String>,
    /// Extended communities to be taken away.
    pub remove_ext_community: OneOrMore<String>,
    /// Large communities instead of all that there are.
    pub set_large_community: Option<OneOrMore<String>>,
    /// Large communities to be added.
    pub add_large_community: OneOrMore<String>,
    /// Large communities to be taken away.
    pub remove_large_community: OneOrMore<String>,

    /// What follows.
    pub then: Then,
}
