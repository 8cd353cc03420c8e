//! Policies as they are written in the daemon's configuration.
//!
//! The values are texts as the operator wrote them; [`compile`](super::compile) checks them.

/// The outcome of a term that applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spec {
    /// The name by which peers refer to it; not `accept` or `deny`.
    pub name: String,
    /// The terms, in order.
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Term {
    /// Prefixes: `10.0.0.0/8` is that prefix, `10.0.0.0/8 ge 16 le 24` are the prefixes in it with these lengths.
    pub prefix: Vec<String>,
    /// `ipv4` or `ipv6`.
    pub family: Option<String>,
    /// AS numbers, one of which is in the path.
    pub as_path_contains: Vec<u32>,
    /// The origin AS.
    pub origin_as: Vec<u32>,
    /// The first AS of the path.
    pub neighbour_as: Vec<u32>,
    /// The path's length as the decision process counts it: `3`, `<= 3`, `>= 3` or `2..4`.
    pub as_path_length: Option<String>,
    /// The path as words: numbers, `?` for any one AS, `*` for any sequence of AS numbers: `64500 * 64511`.
    pub as_path: Vec<String>,
    /// Communities, one of which is present: `64496:14`, `64496:*` or a well-known name.
    pub community: Vec<String>,
    /// Extended communities: `RT:64496:14`, `SoO:192.0.2.1:14` or sixteen digits after `0x`.
    pub ext_community: Vec<String>,
    /// Large communities: `64496:1:2`, with `*` for any number.
    pub large_community: Vec<String>,
    /// `igp`, `egp` or `incomplete`.
    pub origin: Vec<String>,
    /// The peer that the route came from: an AS number, an address or a prefix of addresses; `local` for a route of our
    /// own.
    pub neighbour: Vec<String>,
    /// The origin's validity (RFC 6811): `valid`, `invalid` or `not-found`.
    pub rpki: Vec<String>,

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
    pub set_community: Option<Vec<String>>,
    /// Communities to add.
    pub add_community: Vec<String>,
    /// Communities to remove.
    pub remove_community: Vec<String>,
    /// Extended communities that replace all that there are.
    pub set_ext_community: Option<Vec<String>>,
    /// Extended communities to add.
    pub add_ext_community: Vec<String>,
    /// Extended communities to remove.
    pub remove_ext_community: Vec<String>,
    /// Large communities that replace all that there are.
    pub set_large_community: Option<Vec<String>>,
    /// Large communities to add.
    pub add_large_community: Vec<String>,
    /// Large communities to remove.
    pub remove_large_community: Vec<String>,

    /// The outcome.
    pub then: Then,
}
