//! Indices of rows, and the first index that a name allows.

use std::net::Ipv4Addr;

/// The most sub-identifiers of an index: a string of 80 octets and its length.
pub(super) const INDEX_MAX: usize = 81;

/// The index of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Index {
    ids: [u32; INDEX_MAX],
    len: usize,
}

impl Index {
    /// An index of at most [`INDEX_MAX`] sub-identifiers; the others are cut off.
    pub(super) fn of(given: &[u32]) -> Self {
        let len = given.len().min(INDEX_MAX);
        let mut ids = [0; INDEX_MAX];
        ids[..len].copy_from_slice(&given[..len]);
        Self { ids, len }
    }

    pub(super) fn ids(&self) -> &[u32] {
        &self.ids[..self.len]
    }
}

/// Moves sub-identifiers up to the first ones in order that are all within their ranges, whose ends are included. `false`
/// if there are none.
pub(super) fn lift(ids: &mut [u32], range: impl Fn(usize) -> (u32, u32)) -> bool {
    let smallest_from = |ids: &mut [u32], start: usize| {
        for (at, id) in ids.iter_mut().enumerate().skip(start) {
            *id = range(at).0;
        }
    };
    for at in 0..ids.len() {
        let (low, high) = range(at);
        if ids[at] < low {
            smallest_from(ids, at);
            return true;
        }
        if ids[at] > high {
            let carried = (0..at).rev().find(|&before| ids[before] < range(before).1);
            let Some(before) = carried else { return false };
            ids[before] += 1;
            smallest_from(ids, before + 1);
            return true;
        }
    }
    true
}

/// The smallest index that a row may have, of as many sub-identifiers as the rows of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound(Index);

impl Bound {
    /// Any row.
    pub(super) fn first(arity: usize) -> Self {
        Self(Index::of(&[0; INDEX_MAX][..arity.min(INDEX_MAX)]))
    }

    /// This row. `None` if rows have another number of sub-identifiers.
    pub(super) fn at(arity: usize, index: &[u32]) -> Option<Self> {
        (index.len() == arity).then(|| Self(Index::of(index)))
    }

    /// The rows after the index that a name has, or that very row too. `None` if there can be none.
    pub(super) fn after(arity: usize, index: &[u32], includes: bool) -> Option<Self> {
        let mut first = Self::first(arity);
        let ids = &mut first.0.ids[..first.0.len];
        let common = index.len().min(ids.len());
        ids[..common].copy_from_slice(&index[..common]);
        // Every row whose index goes on after that of the name is after it.
        let goes_on = index.len() < arity;
        let is_allowed = includes && index.len() == arity;
        if goes_on || is_allowed {
            return Some(first);
        }
        for id in ids.iter_mut().rev() {
            match id.checked_add(1) {
                Some(next) => {
                    *id = next;
                    return Some(first);
                }
                None => *id = 0,
            }
        }
        None
    }

    pub(super) fn ids(&self) -> &[u32] {
        self.0.ids()
    }

    /// The index of an object that has one value, which is 0.
    pub(super) fn single(self) -> Option<Index> {
        (self.0.ids() == [0]).then_some(self.0)
    }

    /// The index of the only row, a string with its length.
    pub(super) fn string(self, text: &[u8]) -> Option<Index> {
        let mut ids = [0; INDEX_MAX];
        ids[0] = text.len() as u32;
        for (id, octet) in ids[1..].iter_mut().zip(text) {
            *id = u32::from(*octet);
        }
        let index = Index::of(&ids[..=text.len()]);
        (self.0.ids() <= index.ids()).then_some(index)
    }

    /// The place of a row whose index is its place and `base`.
    pub(super) fn place(self, base: u32) -> Option<u32> {
        let [first] = *self.0.ids() else { return None };
        Some(first.saturating_sub(base))
    }

    /// The place and the id of a row whose index is its place and `base`, and an id.
    pub(super) fn place_and_id(self, base: u32) -> Option<(u32, u32)> {
        let [first, id] = *self.0.ids() else {
            return None;
        };
        Some(match first.checked_sub(base) {
            Some(place) => (place, id),
            None => (0, 0),
        })
    }

    /// The address of a row whose index is an IPv4 address.
    pub(super) fn address(self) -> Option<Ipv4Addr> {
        let [a, b, c, d] = *self.0.ids() else {
            return None;
        };
        let mut address = 0_u64;
        for (place, id) in [a, b, c, d].into_iter().enumerate() {
            let shift = 8 * (3 - place);
            if id > 255 {
                // No address has such an octet: those after it differ in an octet before.
                address += 256 << shift;
                break;
            }
            address += u64::from(id) << shift;
        }
        u32::try_from(address).ok().map(Ipv4Addr::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(arity: usize, index: &[u32], includes: bool) -> Option<Vec<u32>> {
        Bound::after(arity, index, includes).map(|bound| bound.0.ids().to_vec())
    }

    #[test]
    fn the_first_index_after_a_name() {
        assert_eq!(after(1, &[], false), Some(vec![0]));
        assert_eq!(after(1, &[7], false), Some(vec![8]));
        assert_eq!(after(1, &[7], true), Some(vec![7]));
        // 7 is before 7.0, so a row 7 is not after it.
        assert_eq!(after(1, &[7, 0], true), Some(vec![8]));
        assert_eq!(after(1, &[u32::MAX], false), None);
        assert_eq!(after(2, &[7], false), Some(vec![7, 0]));
        assert_eq!(after(2, &[7, u32::MAX], false), Some(vec![8, 0]));
        assert_eq!(after(2, &[7, u32::MAX], true), Some(vec![7, u32::MAX]));
        assert_eq!(after(2, &[u32::MAX, u32::MAX, 1], true), None);
        let address = |index: &[u32], includes| {
            let bound = Bound::after(4, index, includes)?;
            bound.address().map(|address| address.to_string())
        };
        assert_eq!(address(&[192, 0, 2], false).unwrap(), "192.0.2.0");
        assert_eq!(address(&[192, 0, 2, 255], false).unwrap(), "192.0.3.0");
        assert_eq!(address(&[192, 0, 999, 1], false).unwrap(), "192.1.0.0");
        assert_eq!(
            address(&[255, 255, 255, 255], true).unwrap(),
            "255.255.255.255"
        );
        assert_eq!(address(&[255, 255, 255, 255], false), None);
        assert_eq!(address(&[256], false), None);
    }

    #[test]
    fn numbers_are_lifted_into_their_ranges() {
        // Two numbers up to 9, a length that is always 4, and a number from 1 on.
        let range = |at: usize| [(0, 9), (0, 9), (4, 4), (1, u32::MAX)][at];
        for (ids, expected) in [
            ([0, 0, 0, 0], Some([0, 0, 4, 1])),
            ([3, 8, 4, 7], Some([3, 8, 4, 7])),
            ([3, 8, 5, 0], Some([3, 9, 4, 1])),
            ([3, 9, 5, 0], Some([4, 0, 4, 1])),
            ([3, 10, 0, 0], Some([4, 0, 4, 1])),
            ([9, 9, 4, 0], Some([9, 9, 4, 1])),
            ([9, 9, 5, 0], None),
            ([10, 0, 0, 0], None),
        ] {
            let mut lifted = ids;
            let is_possible = lift(&mut lifted, range);
            assert_eq!(is_possible.then_some(lifted), expected, "{ids:?}");
        }
    }

    #[test]
    fn a_string_has_its_length_before_it() {
        let bound = Bound::first(4);
        let index = bound.string(b"lac").unwrap();
        assert_eq!(index.ids(), [3, 108, 97, 99]);
        assert!(
            Bound::after(4, index.ids(), true)
                .unwrap()
                .string(b"lac")
                .is_some()
        );
        assert!(
            Bound::after(4, index.ids(), false)
                .unwrap()
                .string(b"lac")
                .is_none()
        );
    }
}
