//! Network Layer Reachability Information: RFC 4271, section 4.3; RFC 4760, section 5; RFC 7911, section 3.

use super::family::{Family, FamilyId};
use super::prefix::{Nlri, Prefix};

/// A validated field of prefixes (RFC 7606, section 5.3): iterating over it meets no fault.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block<'a> {
    octets: &'a [u8],
    family: FamilyId,
    has_path_ids: bool,
}

impl<'a> Block<'a> {
    pub(super) const EMPTY: Block<'static> = Block {
        octets: &[],
        family: FamilyId::IN_FIELDS,
        has_path_ids: false,
    };

    /// Validates a field: every length is valid for the family, and the last prefix ends exactly at the field's
    /// end. `None` if not.
    #[inline]
    pub(super) fn check(octets: &'a [u8], family: FamilyId, has_path_ids: bool) -> Option<Self> {
        let len_max = family.bits();
        let id_len = if has_path_ids { 4 } else { 0 };
        let mut at = 0;
        while at < octets.len() {
            let len = *octets.get(at + id_len)?;
            if len > len_max {
                return None;
            }
            at += id_len + 1 + usize::from(len).div_ceil(8);
        }
        if at > octets.len() {
            return None;
        }
        Some(Block {
            octets,
            family,
            has_path_ids,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    #[inline]
    fn take(&mut self) -> Option<Nlri> {
        let mut path_id = 0;
        let mut octets = self.octets;
        if self.has_path_ids {
            let (id, rest) = octets.split_first_chunk::<4>()?;
            path_id = u32::from_be_bytes(*id);
            octets = rest;
        }
        let (&len, rest) = octets.split_first()?;
        let prefix = with_family!(self.family, F => F::read(rest, len));
        self.octets = rest.get(usize::from(len).div_ceil(8)..)?;
        Some(Nlri { prefix, path_id })
    }
}

/// Iterates over the prefixes of up to four fields of a message, in order.
#[derive(Debug, Clone)]
pub struct Nlris<'a> {
    current: Block<'a>,
    /// The remaining fields, the next one last.
    following: [Block<'a>; 3],
    count: usize,
}

impl<'a> Nlris<'a> {
    /// The next field is stored last.
    pub(super) fn new(blocks: &[Block<'a>]) -> Self {
        let mut nlris = Nlris {
            current: Block::EMPTY,
            following: [Block::EMPTY; 3],
            count: 0,
        };
        for &block in blocks.iter().filter(|block| !block.is_empty()) {
            if !nlris.current.is_empty() {
                nlris.following[nlris.count] = nlris.current;
                nlris.count += 1;
            }
            nlris.current = block;
        }
        nlris
    }

    /// A single field; `None` if it is malformed (RFC 7606, section 5.3).
    #[must_use]
    pub fn of(octets: &'a [u8], family: FamilyId, has_path_ids: bool) -> Option<Self> {
        Some(Nlris {
            current: Block::check(octets, family, has_path_ids)?,
            following: [Block::EMPTY; 3],
            count: 0,
        })
    }

    /// Whether no prefix is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.current.is_empty()
    }
}

impl Iterator for Nlris<'_> {
    type Item = Nlri;

    #[inline]
    fn next(&mut self) -> Option<Nlri> {
        let nlri = self.current.take();
        if self.current.is_empty() && self.count > 0 {
            self.count -= 1;
            self.current = self.following[self.count];
        }
        nlri
    }
}

/// Octets that an encoded prefix takes.
#[must_use]
#[inline]
pub fn encoded_len(prefix: Prefix, has_path_id: bool) -> usize {
    1 + usize::from(prefix.len()).div_ceil(8) + if has_path_id { 4 } else { 0 }
}

/// Appends a prefix, preceded by its path identifier if `has_path_id`.
#[inline]
pub fn emit(nlri: Nlri, has_path_id: bool, out: &mut Vec<u8>) {
    if has_path_id {
        out.extend_from_slice(&nlri.path_id.to_be_bytes());
    }
    let len = nlri.prefix.len();
    let end = out.len() + 1 + usize::from(len).div_ceil(8);
    with_family!(nlri.prefix.family(), F => F::write(nlri.prefix, out));
    out.truncate(end);
}
