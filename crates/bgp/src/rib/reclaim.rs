//! Slots without routes: they are freed once no group and no watch refers to them.

use base::{Duration, Instant};
use wire::bgp::{FAMILIES, FamilyId};

use super::dirty::{Dirty, Item};
use super::groups::{Barrier, Groups, Resend};
use super::store::Store;
use super::watch::Watch;

/// How many slots' memory is loaded together.
const TOUCHED_AT_ONCE: usize = 16;
/// How long to wait before looking again at slots that are still referred to.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Members that are served apart, for which looking at a slot costs as much as freeing it.
const OWED_PER_SLOT: usize = 16;

/// Empty slots of one family.
#[derive(Debug, Default)]
struct Empty {
    collected: Dirty,
    /// Slots that are freed once the messages about them have been read. Those before `at` were looked at.
    waiting: Vec<Item>,
    at: usize,
    /// What the groups had written when `waiting` was filled.
    barriers: Vec<Barrier>,
    /// Whether one of the slots was still referred to.
    has_kept: bool,
    retry_at: Instant,
}

/// Empty slots of all families.
#[derive(Debug, Default)]
pub(super) struct Reclaim([Empty; FAMILIES]);

impl Reclaim {
    /// Adds a slot whose last route is gone.
    #[inline]
    pub(super) fn insert(&mut self, (family, slot): (FamilyId, u32)) {
        self.0[family.index()].collected.insert(slot);
    }

    /// How many slots wait to be freed.
    pub(super) fn waiting(&self) -> usize {
        let waiting =
            |empty: &Empty| empty.collected.len() as usize + empty.waiting.len() - empty.at;
        self.0.iter().map(waiting).sum()
    }

    /// Frees slots. Returns what is left of the budget.
    pub(super) fn work(
        &mut self,
        family: FamilyId,
        budget: usize,
        store: &mut Store,
        (groups, watch): (&Groups, Option<&Watch>),
        now: Instant,
    ) -> usize {
        let empty = &mut self.0[family.index()];
        if budget == 0 || empty.is_idle(now) {
            return budget;
        }
        let mut left = budget;
        let owed = groups.owed(family);
        while left > 0 && empty.fill(family, groups, now) {
            left = empty.free(left, &owed, (family, &mut *store), (groups, watch));
            if empty.at == empty.waiting.len() {
                empty.end_window(now);
            }
        }
        left
    }
}

impl Empty {
    /// Whether no slot waits, or all of them were still referred to a moment ago.
    fn is_idle(&self, now: Instant) -> bool {
        self.waiting.is_empty() && (self.collected.is_empty() || now < self.retry_at)
    }

    /// Frees slots that wait, except those that something refers to. Returns what is left of the budget.
    fn free(
        &mut self,
        budget: usize,
        owed: &[&Resend],
        (family, store): (FamilyId, &mut Store),
        (groups, watch): (&Groups, Option<&Watch>),
    ) -> usize {
        let cost = 1 + owed.len() / OWED_PER_SLOT;
        let mut left = budget;
        while left > 0
            && let Some(&Item { slot, .. }) = self.waiting.get(self.at)
        {
            if self.at.is_multiple_of(TOUCHED_AT_ONCE) {
                for item in self.waiting[self.at..].iter().take(TOUCHED_AT_ONCE) {
                    store.touch(family, item.slot);
                }
            }
            self.at += 1;
            left = left.saturating_sub(cost);
            // A slot that has had a route since and lost it waits for messages after the barriers.
            if !store.is_empty_at(family, slot) || self.collected.contains(slot) {
                continue;
            }
            let is_watched = watch.is_some_and(|watch| watch.refers_to(family, slot));
            if is_watched || groups.refers_to(family, slot, owed) {
                self.collected.insert(slot);
                self.has_kept = true;
            } else {
                store.free_slot(family, slot);
            }
        }
        left
    }

    /// Takes the next slots to free, if none are left of the last ones. Returns whether there are any, and all members
    /// have read the messages about them.
    fn fill(&mut self, family: FamilyId, groups: &Groups, now: Instant) -> bool {
        if self.is_idle(now) {
            return false;
        }
        if self.waiting.is_empty() {
            self.collected.take(1, |_| 0, &mut self.waiting);
            self.barriers.clear();
            groups.barriers(family, &mut self.barriers);
        }
        let behind = |barrier: &Barrier| groups.is_behind(barrier);
        !self.waiting.is_empty() && !self.barriers.iter().any(behind)
    }

    fn end_window(&mut self, now: Instant) {
        self.at = 0;
        self.waiting.clear();
        if std::mem::take(&mut self.has_kept) {
            self.retry_at = now + RETRY_INTERVAL;
        }
    }
}
