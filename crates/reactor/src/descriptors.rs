//! The descriptor store: finds the entry of a ready descriptor.
//!
//! The list and the tree exist so that benchmarks can re-run old designs; use the slab otherwise.

use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::RawFd;
use std::str::FromStr;

use crate::token::{Interest, Token, UnknownName};

/// The data structure of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum StoreKind {
    /// A linked list, walked from its head: O(n).
    List,
    /// A balanced tree ordered by number: O(log n).
    Tree,
    /// A table indexed by number: O(1).
    #[default]
    Slab,
}

impl StoreKind {
    /// Every kind.
    pub const ALL: [StoreKind; 3] = [StoreKind::List, StoreKind::Tree, StoreKind::Slab];

    /// Its name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            StoreKind::List => "list",
            StoreKind::Tree => "tree",
            StoreKind::Slab => "slab",
        }
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for StoreKind {
    type Err = UnknownName;

    fn from_str(given: &str) -> Result<Self, UnknownName> {
        StoreKind::ALL
            .into_iter()
            .find(|k| k.name() == given)
            .ok_or_else(|| UnknownName {
                what: "descriptor store",
                allowed: &["list", "tree", "slab"],
                given: given.to_owned(),
            })
    }
}

/// A watched descriptor as `show event poll` lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorInfo {
    /// The descriptor.
    pub token: Token,
    /// The owner's name.
    pub owner: &'static str,
    /// The owner's own number for it.
    pub user: u64,
    /// The events it is watched for.
    pub interest: Interest,
    /// How often it was reported as ready.
    pub wakeups: u64,
}

/// All watched descriptors, by number.
#[derive(Debug)]
pub(crate) enum Descriptors {
    List(List),
    Tree(BTreeMap<RawFd, DescriptorInfo>),
    Slab(Slab),
}

impl Descriptors {
    pub(crate) fn new(kind: StoreKind) -> Self {
        match kind {
            StoreKind::List => Descriptors::List(List::default()),
            StoreKind::Tree => Descriptors::Tree(BTreeMap::new()),
            StoreKind::Slab => Descriptors::Slab(Slab::default()),
        }
    }

    pub(crate) fn kind(&self) -> StoreKind {
        match self {
            Descriptors::List(_) => StoreKind::List,
            Descriptors::Tree(_) => StoreKind::Tree,
            Descriptors::Slab(_) => StoreKind::Slab,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Descriptors::List(list) => list.len,
            Descriptors::Tree(tree) => tree.len(),
            Descriptors::Slab(slab) => slab.len,
        }
    }

    /// Adds an entry; its number must not be in the store.
    pub(crate) fn insert(&mut self, info: DescriptorInfo) {
        match self {
            Descriptors::List(list) => list.insert(info),
            Descriptors::Tree(tree) => {
                tree.insert(info.token.fd, info);
            }
            Descriptors::Slab(slab) => slab.insert(info),
        }
    }

    pub(crate) fn get(&self, fd: RawFd) -> Option<&DescriptorInfo> {
        match self {
            Descriptors::List(list) => list.iter().find(|info| info.token.fd == fd),
            Descriptors::Tree(tree) => tree.get(&fd),
            Descriptors::Slab(slab) => slab.entries.get(usize::try_from(fd).ok()?)?.as_ref(),
        }
    }

    pub(crate) fn get_mut(&mut self, fd: RawFd) -> Option<&mut DescriptorInfo> {
        match self {
            Descriptors::List(list) => list.get_mut(fd),
            Descriptors::Tree(tree) => tree.get_mut(&fd),
            Descriptors::Slab(slab) => slab.entries.get_mut(usize::try_from(fd).ok()?)?.as_mut(),
        }
    }

    pub(crate) fn remove(&mut self, fd: RawFd) -> Option<DescriptorInfo> {
        match self {
            Descriptors::List(list) => list.remove(fd),
            Descriptors::Tree(tree) => tree.remove(&fd),
            Descriptors::Slab(slab) => slab.remove(fd),
        }
    }

    /// Calls `visit` for each entry, in no particular order.
    pub(crate) fn for_each(&self, visit: impl FnMut(&DescriptorInfo)) {
        match self {
            Descriptors::List(list) => list.iter().for_each(visit),
            Descriptors::Tree(tree) => tree.values().for_each(visit),
            Descriptors::Slab(slab) => slab.entries.iter().flatten().for_each(visit),
        }
    }

    /// Appends up to `limit` entries with numbers from `from` on, in ascending order. Returns the number to continue
    /// from; `None` at the end.
    pub(crate) fn page(
        &self,
        from: RawFd,
        limit: usize,
        out: &mut Vec<DescriptorInfo>,
    ) -> Option<RawFd> {
        let start = out.len();
        match self {
            Descriptors::List(list) => {
                out.extend(list.iter().filter(|info| info.token.fd >= from));
                out[start..].sort_unstable_by_key(|info| info.token.fd);
                out.truncate(start.saturating_add(limit));
            }
            Descriptors::Tree(tree) => {
                out.extend(tree.range(from..).take(limit).map(|(_, info)| *info));
            }
            Descriptors::Slab(slab) => {
                let first = usize::try_from(from).unwrap_or(0).min(slab.entries.len());
                out.extend(slab.entries[first..].iter().flatten().take(limit));
            }
        }
        let page = &out[start..];
        if page.len() < limit {
            None
        } else {
            Some(page.last()?.token.fd.saturating_add(1))
        }
    }
}

/// A singly linked list, newest first.
#[derive(Debug, Default)]
pub(crate) struct List {
    head: Option<Box<Node>>,
    len: usize,
}

#[derive(Debug)]
struct Node {
    info: DescriptorInfo,
    next: Option<Box<Node>>,
}

impl List {
    fn insert(&mut self, info: DescriptorInfo) {
        self.head = Some(Box::new(Node {
            info,
            next: self.head.take(),
        }));
        self.len += 1;
    }

    fn iter(&self) -> impl Iterator<Item = &DescriptorInfo> {
        std::iter::successors(self.head.as_deref(), |node| node.next.as_deref())
            .map(|node| &node.info)
    }

    fn get_mut(&mut self, fd: RawFd) -> Option<&mut DescriptorInfo> {
        let mut next = self.head.as_deref_mut();
        while let Some(node) = next {
            if node.info.token.fd == fd {
                return Some(&mut node.info);
            }
            next = node.next.as_deref_mut();
        }
        None
    }

    fn remove(&mut self, fd: RawFd) -> Option<DescriptorInfo> {
        let mut link = &mut self.head;
        while link.as_ref().is_some_and(|node| node.info.token.fd != fd) {
            link = &mut link.as_mut()?.next;
        }
        let node = link.take()?;
        *link = node.next;
        self.len -= 1;
        Some(node.info)
    }
}

impl Drop for List {
    /// Node by node: dropping the head would recurse once per node.
    fn drop(&mut self) {
        let mut next = self.head.take();
        while let Some(mut node) = next {
            next = node.next.take();
        }
    }
}

/// Descriptor numbers are small and dense, so they are the index.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    entries: Vec<Option<DescriptorInfo>>,
    len: usize,
}

impl Slab {
    fn insert(&mut self, info: DescriptorInfo) {
        let index = usize::try_from(info.token.fd).unwrap_or(0);
        if index >= self.entries.len() {
            self.entries.resize(index + 1, None);
        }
        self.entries[index] = Some(info);
        self.len += 1;
    }

    fn remove(&mut self, fd: RawFd) -> Option<DescriptorInfo> {
        let info = self.entries.get_mut(usize::try_from(fd).ok()?)?.take()?;
        self.len -= 1;
        Some(info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(fd: RawFd) -> DescriptorInfo {
        let token = Token { fd, generation: 0 };
        DescriptorInfo {
            token,
            owner: "test",
            user: 0,
            interest: Interest::READ,
            wakeups: 0,
        }
    }

    #[test]
    fn every_store_finds_what_was_inserted_and_not_removed() {
        for kind in StoreKind::ALL {
            let mut store = Descriptors::new(kind);
            for fd in [5, 3, 900, 4] {
                store.insert(info(fd));
            }
            assert_eq!(store.remove(3).map(|i| i.token.fd), Some(3), "{kind}");
            assert_eq!(store.remove(3), None, "{kind}");
            assert_eq!(store.len(), 3, "{kind}");
            assert!(
                store.get(3).is_none() && store.get_mut(3).is_none(),
                "{kind}"
            );
            assert!(
                store.get(-1).is_none() && store.get(901).is_none(),
                "{kind}"
            );
            for fd in [4, 5, 900] {
                assert_eq!(store.get(fd), Some(&info(fd)), "{kind}");
                assert_eq!(store.get_mut(fd), Some(&mut info(fd)), "{kind}");
            }
            let mut seen = Vec::new();
            store.for_each(|i| seen.push(i.token.fd));
            seen.sort_unstable();
            assert_eq!(seen, [4, 5, 900], "{kind}");
        }
    }

    #[test]
    fn pages_resume_by_number_while_entries_come_and_go() {
        for kind in StoreKind::ALL {
            let mut store = Descriptors::new(kind);
            (0..10).rev().for_each(|fd| store.insert(info(fd)));
            let mut out = Vec::new();
            let next = store.page(0, 4, &mut out);
            assert_eq!(next, Some(4), "{kind}");
            store.remove(4);
            store.insert(info(50));
            let next = store.page(4, 4, &mut out);
            assert_eq!(next, Some(9), "{kind}");
            assert_eq!(store.page(9, 4, &mut out), None, "{kind}");
            let fds: Vec<_> = out.iter().map(|i| i.token.fd).collect();
            assert_eq!(fds, [0, 1, 2, 3, 5, 6, 7, 8, 9, 50], "{kind}");
        }
    }

    #[test]
    fn a_long_list_is_dropped_without_recursion() {
        let mut store = Descriptors::new(StoreKind::List);
        (0..1_000_000).for_each(|fd| store.insert(info(fd)));
        drop(store);
    }

    #[test]
    fn names_read_back_and_unknown_ones_are_refused() {
        for kind in StoreKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        let error = "heap".parse::<StoreKind>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"heap\" is no descriptor store: use list, tree, slab"
        );
    }
}
