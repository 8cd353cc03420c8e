//! Route origin authorisations and what they say of a route: RFC 6811.

use std::collections::{BTreeSet, HashMap};

use wire::bgp::{FAMILIES, Prefix};

/// An AS may originate a prefix and what is in it, up to a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Roa {
    /// The prefix.
    pub prefix: Prefix,
    /// The longest length in bits, at least the prefix's.
    pub len_max: u8,
    /// Who may; 0 for nobody.
    pub asn: u32,
}

/// A route's validity (RFC 6811, section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Validity {
    /// No authorisation covers the prefix.
    NotFound,
    /// One covers and matches it.
    Valid,
    /// Some cover it, none matches.
    Invalid,
}

/// A set of authorisations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roas {
    by_prefix: HashMap<Prefix, Vec<(u8, u32)>>,
    /// The lengths of their prefixes, of each family.
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
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_prefix.values().map(Vec::len).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_prefix.is_empty()
    }

    /// What they say of a prefix with that origin AS; `None` is an origin that the path does not tell, which nothing
    /// matches.
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
