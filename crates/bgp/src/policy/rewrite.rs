//! Rewrites attributes: with the changes of a policy, and with those that advertising requires.

use std::borrow::Cow;

use wire::bgp::attr::{self, Attribute, code};
use wire::bgp::{AsPath, SegmentKind};

/// A change of an attribute that is one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Change {
    #[default]
    Keep,
    Set(u32),
    /// Sets the number only if the attribute is missing.
    Add(u32),
    Remove,
}

/// A change of a CLUSTER_LIST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Clusters {
    #[default]
    Keep,
    Prepend(u32),
    Remove,
}

/// Changes of a list of communities of one kind, as whole communities.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ListEdit {
    /// Replaces all that there are.
    pub(crate) set: Option<Vec<u8>>,
    pub(crate) remove: Vec<u8>,
    pub(crate) add: Vec<u8>,
}

impl ListEdit {
    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_none() && self.remove.is_empty() && self.add.is_empty()
    }

    fn apply(&self, width: usize, list: &mut Cow<'_, [u8]>) {
        if self.is_empty() {
            return;
        }
        let old: &[u8] = self.set.as_deref().unwrap_or(list);
        let is_in = |list: &[u8], one: &[u8]| list.chunks_exact(width).any(|other| other == one);
        let mut new = Vec::with_capacity(old.len() + self.add.len());
        for one in old.chunks_exact(width) {
            if !is_in(&self.remove, one) {
                new.extend_from_slice(one);
            }
        }
        for one in self.add.chunks_exact(width) {
            if !is_in(&new, one) {
                new.extend_from_slice(one);
            }
        }
        *list = Cow::Owned(new);
    }
}

/// The three kinds of communities that a policy changes, by type code.
pub(crate) const LISTS: [u8; 3] = [
    code::COMMUNITIES,
    code::EXT_COMMUNITIES,
    code::LARGE_COMMUNITIES,
];

/// All changes at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rewrite<'a> {
    pub(crate) origin: Option<u8>,
    /// The AS to prepend to the path, and how often.
    pub(crate) prepend: (u32, u8),
    /// For IPv4 routes.
    pub(crate) next_hop: Change,
    pub(crate) med: Change,
    pub(crate) local_pref: Change,
    pub(crate) originator: Change,
    pub(crate) clusters: Clusters,
    pub(crate) otc: Change,
    /// For each kind in [`LISTS`], applied in order.
    pub(crate) lists: Vec<&'a [ListEdit; 3]>,
    /// Whether the attributes are advertised, so that unknown attributes get the Partial bit (RFC 4271, section 5).
    pub(crate) leaves: bool,
}

/// The attributes that a rewrite may change, by type code.
const MANAGED: [u8; 11] = [
    code::ORIGIN,
    code::AS_PATH,
    code::NEXT_HOP,
    code::MED,
    code::LOCAL_PREF,
    code::COMMUNITIES,
    code::ORIGINATOR_ID,
    code::CLUSTER_LIST,
    code::EXT_COMMUNITIES,
    code::LARGE_COMMUNITIES,
    code::OTC,
];

impl Rewrite<'_> {
    /// Appends attributes with the changes. New attributes are placed by type code (RFC 4271, section 5).
    pub(crate) fn apply(&self, raw: &[u8], out: &mut Vec<u8>) {
        let present = attr::iter(raw).fold(0_u64, |present, attribute| {
            present | 1_u64.checked_shl(attribute.code.into()).unwrap_or(0)
        });
        let mut missing = MANAGED
            .into_iter()
            .filter(|&code| present & 1 << code == 0)
            .peekable();
        for attribute in attr::iter(raw) {
            while let Some(code) = missing.next_if(|&code| code < attribute.code) {
                self.emit(code, None, out);
            }
            self.emit(attribute.code, Some(&attribute), out);
        }
        missing.for_each(|code| self.emit(code, None, out));
    }

    fn emit(&self, kind: u8, old: Option<&Attribute<'_>>, out: &mut Vec<u8>) {
        match kind {
            code::ORIGIN => match self.origin {
                Some(origin) => attr::put(kind, &[origin], out),
                None => self.keep(old, out),
            },
            code::AS_PATH => self.emit_path(old, out),
            code::NEXT_HOP => self.emit_number(self.next_hop, kind, old, out),
            code::MED => self.emit_number(self.med, kind, old, out),
            code::LOCAL_PREF => self.emit_number(self.local_pref, kind, old, out),
            code::ORIGINATOR_ID => self.emit_number(self.originator, kind, old, out),
            code::CLUSTER_LIST => self.emit_clusters(old, out),
            code::OTC => self.emit_number(self.otc, kind, old, out),
            code::COMMUNITIES | code::EXT_COMMUNITIES | code::LARGE_COMMUNITIES => {
                self.emit_list(kind, old, out);
            }
            _ => self.keep(old, out),
        }
    }

    fn keep(&self, old: Option<&Attribute<'_>>, out: &mut Vec<u8>) {
        match old {
            Some(old) if self.leaves => attr::pass_on(old, out),
            Some(old) => out.extend_from_slice(old.octets),
            None => {}
        }
    }

    fn emit_number(
        &self,
        change: Change,
        code: u8,
        old: Option<&Attribute<'_>>,
        out: &mut Vec<u8>,
    ) {
        match (change, old) {
            (Change::Keep, _) | (Change::Add(_), Some(_)) => self.keep(old, out),
            (Change::Set(number), _) | (Change::Add(number), None) => {
                attr::put_number(code, number, out);
            }
            (Change::Remove, _) => {}
        }
    }

    fn emit_path(&self, old: Option<&Attribute<'_>>, out: &mut Vec<u8>) {
        let (asn, times) = self.prepend;
        if times == 0 && old.is_some() {
            return self.keep(old, out);
        }
        let path = AsPath::new(old.map_or(&[], |old| old.value));
        attr::put_with(code::AS_PATH, out, |out| {
            path.emit_prepended(SegmentKind::Sequence, asn, times, out);
        });
    }

    fn emit_clusters(&self, old: Option<&Attribute<'_>>, out: &mut Vec<u8>) {
        match self.clusters {
            Clusters::Keep => self.keep(old, out),
            Clusters::Remove => {}
            Clusters::Prepend(id) => {
                attr::put_with(code::CLUSTER_LIST, out, |out| {
                    out.extend_from_slice(&id.to_be_bytes());
                    out.extend_from_slice(old.map_or(&[], |old| old.value));
                });
            }
        }
    }

    fn emit_list(&self, code: u8, old: Option<&Attribute<'_>>, out: &mut Vec<u8>) {
        let which = LISTS.iter().position(|list| *list == code).unwrap_or(0);
        let width = attr::row(code).form.width().unwrap_or(1);
        if self.lists.iter().all(|edits| edits[which].is_empty()) {
            return self.keep(old, out);
        }
        let mut list = Cow::Borrowed(old.map_or(&[][..], |old| old.value));
        for edits in &self.lists {
            edits[which].apply(width, &mut list);
        }
        if !list.is_empty() {
            attr::put(code, &list, out);
        }
    }
}
