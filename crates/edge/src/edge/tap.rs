//! Taps: the subscribers whose packets an operator captures. [`crate::path`] makes the copies.

use std::sync::Arc;

use crate::access::Access;
use crate::edge::Edge;
use crate::key::SubscriberKey;
use crate::path::change::Step;
use crate::path::{TapId, Tapped};

/// Largest number of taps at a time.
pub const TAPS_MAX: usize = 16;

/// Largest number of subscribers in one tap. If more have the tapped name, the others are left out.
pub const TAPPED_MAX: usize = 64;

/// A tap.
#[derive(Debug)]
pub(crate) struct Tap {
    id: TapId,
    /// Subscribers that authenticate with this name later join the tap.
    name: Option<Box<[u8]>>,
    on: Vec<SubscriberKey>,
}

impl<A: Access> Edge<A> {
    /// Starts a capture of these subscribers, and of later ones with this name from when they give it. `None` if there
    /// are [`TAPS_MAX`] taps already.
    pub fn tap(
        &mut self,
        keys: impl IntoIterator<Item = SubscriberKey>,
        name: Option<&[u8]>,
    ) -> Option<TapId> {
        if self.taps.len() >= TAPS_MAX {
            return None;
        }
        self.last_tap = self.last_tap.wrapping_add(1);
        let id = TapId(self.last_tap);
        self.taps.push(Tap {
            id,
            name: name.map(Into::into),
            on: keys.into_iter().take(TAPPED_MAX).collect(),
        });
        self.retap();
        Some(id)
    }

    /// Ends a tap. Copies that are queued can still be polled. Returns how many were lost, inside and outside.
    pub fn untap(&mut self, id: TapId) -> [u64; 2] {
        let lost = self.path.copies.lost(id);
        self.taps.retain(|tap| tap.id != id);
        self.path.copies.forget(id);
        self.retap();
        lost
    }

    /// The number of subscribers in a tap, and how many copies were lost, inside and outside. `None` if there is no
    /// such tap.
    #[must_use]
    pub fn tap_state(&self, id: TapId) -> Option<(usize, [u64; 2])> {
        let tap = self.taps.iter().find(|tap| tap.id == id)?;
        Some((tap.on.len(), self.path.copies.lost(id)))
    }

    /// The next copy, oldest first; appends its bytes to `out`.
    pub fn poll_tapped(&mut self, out: &mut Vec<u8>) -> Option<Tapped<A::Route>> {
        self.path.poll_tapped(out)
    }

    /// Whether copies are queued.
    #[must_use]
    #[inline]
    pub fn has_tapped(&self) -> bool {
        self.path.copies.has_waiting()
    }

    /// Takes a copy that another path made.
    pub fn take_tapped(&mut self, tapped: Tapped<A::Route>, octets: &[u8]) {
        if self.taps.iter().any(|one| one.id == tapped.tap) {
            self.path.copies.push(tapped, [octets, &[]]);
        }
    }

    /// Another path lost so many copies of a tap.
    pub fn take_lost(&mut self, tap: TapId, lost: [u64; 2]) {
        if self.taps.iter().any(|one| one.id == tap) {
            self.path.copies.lose(tap, lost);
        }
    }

    /// Adds a subscriber that now has a name to the taps of that name.
    #[cold]
    pub(crate) fn tap_named(&mut self, key: SubscriberKey, name: &[u8]) {
        let of_name = |tap: &&mut Tap| tap.name.as_deref() == Some(name);
        let mut changed = false;
        for tap in self.taps.iter_mut().filter(of_name) {
            if tap.on.len() < TAPPED_MAX && !tap.on.contains(&key) {
                tap.on.push(key);
                changed = true;
            }
        }
        if changed {
            self.retap();
        }
    }

    /// Removes a subscriber that ended from its taps.
    #[cold]
    pub(crate) fn tap_gone(&mut self, key: SubscriberKey) {
        let before: usize = self.taps.iter().map(|tap| tap.on.len()).sum();
        for tap in &mut self.taps {
            tap.on.retain(|one| *one != key);
        }
        let after: usize = self.taps.iter().map(|tap| tap.on.len()).sum();
        if after < before {
            self.retap();
        }
    }

    fn retap(&mut self) {
        let taps = self.taps.iter();
        let on = taps.flat_map(|tap| tap.on.iter().map(|&key| (tap.id, key)));
        let on: Arc<[_]> = on.collect();
        self.change(Step::Taps(on));
    }
}
