//! Policies: which routes are accepted and advertised, and with which changes.
//!
//! A policy is a list of terms. A term has conditions, which must all hold, then changes, then an outcome: `accept`,
//! `deny`, or the `next` term, which sees the changes of earlier terms. A route on which no term decides is denied. The
//! policies `accept` and `deny` always exist.
//!
//! - [`Spec`]: a policy as it is written in a configuration.
//! - [`compile`]: from there to [`Policies`], with the place of each fault.
//! - [`Roas`]: the authorised route origins (RFC 6811), which are loaded separately.

mod compile;
mod condition;
pub(crate) mod rewrite;
mod roas;
mod spec;

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use wire::bgp::Prefix;

pub use compile::{Policies, PolicyFault, compile};
use condition::Condition;
use rewrite::{Change, ListEdit, Rewrite};
pub use roas::{Roa, Roas, Validity};
pub use spec::{Spec, Term as TermSpec, Then};

/// The most terms of a policy that change something. A policy with more is refused.
pub const CHANGING_TERMS_MAX: usize = 128;

/// The changing terms of a policy that applied to a route, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Edits(u128);

impl Edits {
    pub(crate) const NONE: Edits = Edits(0);
}

/// A route for a policy to judge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) prefix: Prefix,
    /// Canonical attributes.
    pub(crate) attributes: &'a [u8],
    /// The peer that the route came from; `None` for a route of our own.
    pub(crate) neighbour: Option<(u32, IpAddr)>,
    pub(crate) roas: &'a Roas,
}

/// The changes of one term.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Changes {
    origin: Option<u8>,
    local_pref: Option<u32>,
    /// `None` inside removes the attribute.
    med: Option<Option<u32>>,
    next_hop: Option<IpAddr>,
    prepend: u8,
    lists: [ListEdit; 3],
}

impl Changes {
    fn is_empty(&self) -> bool {
        *self == Changes::default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    conditions: Vec<Condition>,
    /// The index of the term's changes in the policy.
    changes: Option<u8>,
    then: Then,
}

/// A compiled policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    name: String,
    terms: Vec<Term>,
    changes: Vec<Changes>,
    by_prefix: bool,
    uses_roas: bool,
}

impl Policy {
    fn new(name: &str, terms: Vec<Term>, changes: Vec<Changes>) -> Self {
        let conditions = || terms.iter().flat_map(|term| &term.conditions);
        Policy {
            name: name.to_owned(),
            by_prefix: conditions().any(Condition::is_by_prefix),
            uses_roas: conditions().any(Condition::uses_roas),
            terms,
            changes,
        }
    }

    fn always(name: &str, then: Then) -> Arc<Self> {
        let term = Term {
            conditions: Vec::new(),
            changes: None,
            then,
        };
        Arc::new(Policy::new(name, vec![term], Vec::new()))
    }

    /// The policy that accepts every route unchanged.
    #[must_use]
    pub fn accept() -> Arc<Self> {
        static POLICY: OnceLock<Arc<Policy>> = OnceLock::new();
        Arc::clone(POLICY.get_or_init(|| Policy::always("accept", Then::Accept)))
    }

    /// The policy that denies every route.
    #[must_use]
    pub fn deny() -> Arc<Self> {
        static POLICY: OnceLock<Arc<Policy>> = OnceLock::new();
        Arc::clone(POLICY.get_or_init(|| Policy::always("deny", Then::Deny)))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the result can differ between prefixes with equal attributes.
    pub(crate) const fn is_by_prefix(&self) -> bool {
        self.by_prefix
    }

    /// Whether it looks at [`Roas`].
    pub(crate) const fn uses_roas(&self) -> bool {
        self.uses_roas
    }

    /// Judges a route; `None` denies it.
    pub(crate) fn judge(&self, subject: &Subject<'_>) -> Option<Edits> {
        let mut edits = Edits::NONE;
        let mut changed = Vec::new();
        for term in &self.terms {
            let subject = Subject {
                attributes: if edits == Edits::NONE {
                    subject.attributes
                } else {
                    &changed
                },
                ..*subject
            };
            if !term
                .conditions
                .iter()
                .all(|condition| condition.holds(&subject))
            {
                continue;
            }
            if let Some(which) = term.changes {
                edits.0 |= 1 << which;
            }
            match term.then {
                Then::Accept => return Some(edits),
                Then::Deny => return None,
                Then::Next if term.changes.is_some() => {
                    changed = self.preview(subject.attributes, term);
                }
                Then::Next => {}
            }
        }
        None
    }

    /// The attributes as later terms see them. Prepending does not show in the path.
    fn preview(&self, attributes: &[u8], term: &Term) -> Vec<u8> {
        let edits = term.changes.map_or(Edits::NONE, |which| Edits(1 << which));
        let mut rewrite = Rewrite::default();
        self.rewrite(edits, 0, &mut rewrite);
        rewrite.prepend.1 = 0;
        let mut out = Vec::with_capacity(attributes.len() + 16);
        rewrite.apply(attributes, &mut out);
        out
    }

    /// Adds changes to a rewrite, with `asn` as our AS. Returns the next hop that they set.
    pub(crate) fn rewrite<'a>(
        &'a self,
        edits: Edits,
        asn: u32,
        rewrite: &mut Rewrite<'a>,
    ) -> Option<IpAddr> {
        let mut next_hop = None;
        let mut left = edits.0;
        while left != 0 {
            let which = left.trailing_zeros() as usize;
            left &= left - 1;
            let changes = &self.changes[which];
            rewrite.origin = changes.origin.or(rewrite.origin);
            if let Some(value) = changes.local_pref {
                rewrite.local_pref = Change::Set(value);
            }
            if let Some(value) = changes.med {
                rewrite.med = value.map_or(Change::Remove, Change::Set);
            }
            next_hop = changes.next_hop.or(next_hop);
            let times = rewrite.prepend.1.saturating_add(changes.prepend);
            rewrite.prepend = (asn, times);
            if changes.lists.iter().any(|list| !list.is_empty()) {
                rewrite.lists.push(&changes.lists);
            }
        }
        if let Some(IpAddr::V4(address)) = next_hop {
            rewrite.next_hop = Change::Set(address.to_bits());
        }
        next_hop
    }
}
