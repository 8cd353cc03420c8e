//! Route origin authorisations, and the validity of routes: RFC 6811.

use std::collections::{BTreeSet, HashMap};

use wire::bgp::{FAMILIES, Prefix};

/// Authorises an AS to originate a prefix, and longer prefixes in it up to a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Roa {
    /// The prefix.
    pub prefix: Prefix,
    /// The longest length in bits, at least that of the prefix.
    pub len_max: u8,
    /// The AS; 0 for none.
    pub asn: u32,
}

/// A route's validity (RFC 6811, section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Validity {
    /// No authorisation covers the prefix.
    NotFound,
    /// An authorisation covers the prefix and matches the route.
    Valid,
    /// Authorisations cover the prefix, and none matches the route.
    Invalid,
}

/// A set of authorisations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roas {
    by_prefix: HashMap<Prefix, Vec<(u8, u32)>>,
    /// For each family, the lengths of the prefixes.
    lengths: [BTreeSet<u8>; FAMILIES],
}

impl FromIterator<Roa> for Roas {
    fn from_iter<I: IntoIterator<Item = Roa>>(list: I) -> Self {
        let mut roas = Roas::default();
        for Roa {
            prefix,
            len_max,
            asn,
        } in list
        {
            let of_prefix = roas.by_prefix.entry(prefix).or_default();
            if !of_prefix.contains(&(len_max, asn)) {
                of_prefix.push((len_max, asn));
                roas.lengths[prefix.family().index()].insert(prefix.len());
            }
        }
        roas
    }
}

impl Roas {
    /// How many authorisations there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_prefix.values().map(Vec::len).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_prefix.is_empty()
    }

    /// The validity of a prefix with an origin AS. `None` is an origin that the path does not show; no authorisation
    /// matches it.
    #[must_use]
    pub fn validity(&self, prefix: Prefix, origin: Option<u32>) -> Validity {
        let mut validity = Validity::NotFound;
        for &len in self.lengths[prefix.family().index()].range(..=prefix.len()) {
            let Some(covering) = self.by_prefix.get(&prefix.truncated(len)) else {
                continue;
            };
            let matches = |&(len_max, asn): &(u8, u32)| {
                prefix.len() <= len_max && asn != 0 && Some(asn) == origin
            };
            if covering.iter().any(matches) {
                return Validity::Valid;
            }
            validity = Validity::Invalid;
        }
        validity
    }
}
