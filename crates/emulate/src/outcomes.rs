//! Records which route each router used to a watched address, and from which time on. Start reading at
//! [`Outcomes::push`].

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use base::Instant;
use wire::bgp::Prefix;

/// Limit of recorded outcomes. Later ones are counted and not recorded.
const OUTCOMES_MAX: usize = 500_000;

/// Where a router's best route to a watched address leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Belief {
    /// There is no route.
    #[default]
    Nothing,
    /// It leads to the owner.
    Owner,
    /// It leads to a hijacker, or through a router that leaks.
    Other,
}

/// The route that a router uses to an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Route {
    /// The longest match.
    pub(crate) prefix: Prefix,
    /// None for a route of the router's own.
    pub(crate) next_hop: Option<IpAddr>,
    /// The AS that originates it; none if the path ends in a set.
    pub(crate) origin: Option<u32>,
    /// The AS path as text, the nearest AS first.
    pub(crate) path: Box<str>,
}

impl Route {
    /// A number that differs for different routes, in all likelihood.
    pub(crate) fn digest(route: Option<&Self>) -> u64 {
        let mut hasher = DefaultHasher::new();
        route.hash(&mut hasher);
        hasher.finish()
    }
}

/// A router's route to a watched address, from a time on.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Index of the watch.
    pub(crate) watch: usize,
    pub(crate) router: u32,
    pub(crate) at: Instant,
    pub(crate) belief: Belief,
    pub(crate) route: Option<Route>,
}

/// All outcomes of a run, in the order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcomes {
    pub(crate) rows: Vec<Outcome>,
    /// Number of outcomes that were not recorded.
    pub(crate) left_out: u64,
}

impl Outcomes {
    pub(crate) fn push(&mut self, outcome: Outcome) {
        if self.rows.len() < OUTCOMES_MAX {
            self.rows.push(outcome);
        } else {
            self.left_out += 1;
        }
    }

    /// Adds the outcomes of another part of the same run.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.rows.sort_by_key(|row| (row.at, row.router));
        let beyond = self.rows.len().saturating_sub(OUTCOMES_MAX);
        self.rows.truncate(OUTCOMES_MAX);
        self.left_out += other.left_out + beyond as u64;
    }
}
