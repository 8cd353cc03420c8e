//! Slots without routes: they are freed once no group and no watch refers to them.

use base::{Duration, Instant};
use wire::bgp::{FAMILIES, FamilyId};

use super::dirty::{Dirty, Item};
use super::groups::{Barrier, Groups};
use super::store::Store;
use super::watch::Watch;

/// How many slots' memory is loaded together.
const TOUCHED_AT_ONCE: usize = 16;
/// How long to wait before looking again at slots that are still referred to.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Empty slots of one family.
#[derive(Debug, Default)]
struct Empty {
    collected: Dirty,
    /// Slots that are freed once the messages about them have been read.
    waiting: Vec<Item>,
    /// What the groups had written when `waiting` was filled.
    barriers: Vec<Barrier>,
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
        if budget == 0 {
            return 0;
        }
        if empty.waiting.is_empty() {
            if empty.collected.is_empty() || now < empty.retry_at {
                return budget;
            }
            empty.collected.take(1, |_| 0, &mut empty.waiting);
            empty.barriers.clear();
            groups.barriers(family, &mut empty.barriers);
        }
        if empty
            .barriers
            .iter()
            .any(|barrier| groups.is_behind(barrier))
        {
            return budget;
        }
        let slots = std::mem::take(&mut empty.waiting);
        let mut is_kept = false;
        for (at, &Item { slot, .. }) in slots.iter().enumerate() {
            if at.is_multiple_of(TOUCHED_AT_ONCE) {
                for item in slots[at..].iter().take(TOUCHED_AT_ONCE) {
                    store.touch(family, item.slot);
                }
            }
            if !store.is_empty_at(family, slot) {
                continue;
            }
            let is_watched = watch.is_some_and(|watch| watch.refers_to(family, slot));
            if is_watched || groups.refers_to(family, slot) {
                empty.collected.insert(slot);
                is_kept = true;
            } else {
                store.free_slot(family, slot);
            }
        }
        if is_kept {
            empty.retry_at = now + RETRY_INTERVAL;
        }
        budget.saturating_sub(slots.len())
    }
}
