//! Object identifiers, ordered as SNMP orders them.

use core::fmt;

/// The most sub-identifiers of an object identifier (RFC 2741, section 5.1).
pub const OID_IDS_MAX: usize = 128;

/// An object identifier of at most [`OID_IDS_MAX`] sub-identifiers; empty for the null identifier. The order is
/// lexicographic.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(Vec<u32>);

impl Oid {
    /// The identifier with these sub-identifiers; `None` if they are too many.
    #[must_use]
    pub fn new(ids: &[u32]) -> Option<Self> {
        (ids.len() <= OID_IDS_MAX).then(|| Self(ids.to_vec()))
    }

    /// `prefix` followed by `rest`; `None` if they are too many.
    #[must_use]
    pub fn joined(prefix: &[u32], rest: &[u32]) -> Option<Self> {
        let count = prefix.len() + rest.len();
        (count <= OID_IDS_MAX).then(|| Self([prefix, rest].concat()))
    }

    /// Its sub-identifiers.
    #[must_use]
    pub fn ids(&self) -> &[u32] {
        &self.0
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|id| write!(f, ".{id}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_ordered_and_bounded() {
        let oid = |ids: &[u32]| Oid::new(ids).unwrap();
        assert!(oid(&[1, 3]) < oid(&[1, 3, 0]));
        assert!(oid(&[1, 3, 9]) < oid(&[1, 4]));
        assert_eq!(Oid::joined(&[1, 3], &[6]), Some(oid(&[1, 3, 6])));
        assert_eq!(oid(&[1, 3, 6]).to_string(), ".1.3.6");
        assert!(Oid::new(&[1; 128]).is_some());
        assert_eq!(Oid::new(&[1; 129]), None);
        assert_eq!(Oid::joined(&[1; 100], &[1; 29]), None);
    }
}
