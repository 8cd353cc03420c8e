//! Changes of best routes, for an owner that asked to see them.

use wire::bgp::{FAMILIES, FamilyId, Prefix};

use super::dirty::{Dirty, Item};
use super::number::NONE;
use super::store::{Best, Store};

/// The best route of a prefix has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BestChange {
    /// The prefix.
    pub prefix: Prefix,
    /// Its best route now.
    pub best: Option<Best>,
}

/// The slots whose best route has changed since the owner saw it.
#[derive(Debug, Default)]
pub(super) struct Watch {
    dirty: [Dirty; FAMILIES],
    window: Vec<Item>,
    /// The index of the family that `window` is of.
    family: usize,
}

impl Watch {
    /// Starts with all best routes that there are.
    pub(super) fn new(store: &Store) -> Self {
        let mut watch = Watch::default();
        for family in FamilyId::ALL {
            for slot in 0..store.end(family) {
                if store.best_path(family, slot) != NONE {
                    watch.insert(family, slot);
                }
            }
        }
        watch
    }

    #[inline]
    pub(super) fn insert(&mut self, family: FamilyId, slot: u32) {
        self.dirty[family.index()].insert(slot);
    }

    /// Whether a slot is still to be shown; while a window is open, any slot may be in it.
    pub(super) fn refers_to(&self, family: FamilyId, slot: u32) -> bool {
        !self.window.is_empty() || self.dirty[family.index()].contains(slot)
    }

    /// The next change. Several changes of one prefix are shown as one.
    pub(super) fn next(&mut self, store: &Store) -> Option<BestChange> {
        while self.window.is_empty() {
            let family = self.dirty.iter().position(|dirty| !dirty.is_empty())?;
            self.family = family;
            let path_of = |slot| store.best_path(FamilyId::ALL[family], slot);
            self.dirty[family].take(store.paths_end(), path_of, &mut self.window);
        }
        let item = self.window.pop()?;
        let family = FamilyId::ALL[self.family];
        Some(BestChange {
            prefix: store.prefix(family, item.slot),
            best: store.best_at(family, item.slot),
        })
    }
}
