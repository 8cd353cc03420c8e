//! Copies of what passes of a subscriber, for an operator who looks: IP packets inside of its tunnel, and the datagrams
//! that carry its frames outside.
//!
//! While nobody looks, a packet costs one look at a flag. What is copied waits until its owner takes it, which is once a
//! turn: a copy has no time of its own. What does not fit is counted and forgotten.

use std::collections::VecDeque;

use base::Route;

use crate::edge::Edge;
use crate::subscriber::{Subscriber, SubscriberKey};

/// Taps at a time.
pub const TAPS_MAX: usize = 16;

/// Subscribers that one tap is on at a time; of more by one name, the others are left out.
pub const TAPPED_MAX: usize = 64;

/// Octets of copies that may wait.
const OCTETS_MAX: usize = 4 << 20;

/// Names a tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TapId(u32);

/// Where something passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// An IP packet, between the tunnel and the inside.
    Inside,
    /// A datagram of the tunnel, on this way.
    Outside(Route),
}

/// A copy of what passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tapped {
    /// Whose copy it is.
    pub tap: TapId,
    /// Of which subscriber.
    pub subscriber: SubscriberKey,
    /// Where it passed.
    pub passed: Passed,
    /// Whether it goes to the subscriber, and not comes from it.
    pub is_to: bool,
}

/// A tap.
struct Tap {
    id: TapId,
    /// Whoever comes by this name is tapped too.
    name: Option<Box<[u8]>>,
    on: Vec<SubscriberKey>,
    /// Copies that were lost, inside and outside.
    lost: [u64; 2],
}

/// All taps of an edge, and the copies that wait.
#[derive(Default)]
pub(crate) struct Taps {
    taps: Vec<Tap>,
    last: u32,
    octets: Vec<u8>,
    /// Each with where its octets end.
    waiting: VecDeque<(Tapped, u32)>,
    taken: usize,
}

impl Taps {
    /// Whether there is any.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        !self.taps.is_empty()
    }

    /// Copies the parts of what passes of a subscriber, if it is tapped.
    #[cold]
    pub(crate) fn copy(
        &mut self,
        subscriber: &Subscriber,
        passed: Passed,
        is_to: bool,
        parts: [&[u8]; 2],
    ) {
        let key = SubscriberKey(subscriber.key);
        for tap in &mut self.taps {
            if !tap.on.contains(&key) {
                continue;
            }
            let length = parts[0].len() + parts[1].len();
            if self.octets.len() + length > OCTETS_MAX {
                tap.lost[usize::from(passed != Passed::Inside)] += 1;
                continue;
            }
            parts
                .iter()
                .for_each(|part| self.octets.extend_from_slice(part));
            let tapped = Tapped {
                tap: tap.id,
                subscriber: key,
                passed,
                is_to,
            };
            self.waiting.push_back((tapped, self.octets.len() as u32));
        }
    }

    /// A subscriber has a name now.
    #[cold]
    pub(crate) fn named(&mut self, key: SubscriberKey, name: &[u8]) {
        let of_name = |tap: &&mut Tap| tap.name.as_deref() == Some(name);
        for tap in self.taps.iter_mut().filter(of_name) {
            if tap.on.len() < TAPPED_MAX && !tap.on.contains(&key) {
                tap.on.push(key);
            }
        }
    }

    /// A subscriber is gone.
    #[cold]
    pub(crate) fn gone(&mut self, key: SubscriberKey) {
        for tap in &mut self.taps {
            tap.on.retain(|one| *one != key);
        }
    }
}

impl Edge {
    /// Begins to copy what passes of these subscribers, and of whoever comes by this name later, from when it says it.
    /// `None`: there are [`TAPS_MAX`].
    pub fn tap(
        &mut self,
        keys: impl IntoIterator<Item = SubscriberKey>,
        name: Option<&[u8]>,
    ) -> Option<TapId> {
        if self.taps.taps.len() >= TAPS_MAX {
            return None;
        }
        self.taps.last = self.taps.last.wrapping_add(1);
        let id = TapId(self.taps.last);
        self.taps.taps.push(Tap {
            id,
            name: name.map(Into::into),
            on: keys.into_iter().take(TAPPED_MAX).collect(),
            lost: [0; 2],
        });
        Some(id)
    }

    /// Ends a tap; copies that wait are still given out. Returns how many were lost, inside and outside.
    pub fn untap(&mut self, id: TapId) -> [u64; 2] {
        let at = self.taps.taps.iter().position(|tap| tap.id == id);
        at.map_or([0; 2], |at| self.taps.taps.swap_remove(at).lost)
    }

    /// Subscribers that a tap is on, and how many of its copies were lost, inside and outside. `None`: there is none.
    #[must_use]
    pub fn tap_state(&self, id: TapId) -> Option<(usize, [u64; 2])> {
        let tap = self.taps.taps.iter().find(|tap| tap.id == id)?;
        Some((tap.on.len(), tap.lost))
    }

    /// The next copy, oldest first; its octets are appended to `out`.
    pub fn poll_tapped(&mut self, out: &mut Vec<u8>) -> Option<Tapped> {
        let Taps {
            waiting,
            octets,
            taken,
            ..
        } = &mut self.taps;
        let (tapped, end) = waiting.pop_front()?;
        out.extend_from_slice(&octets[*taken..end as usize]);
        *taken = end as usize;
        if waiting.is_empty() {
            octets.clear();
            octets.shrink_to(OCTETS_MAX / 16);
            *taken = 0;
        }
        Some(tapped)
    }

    /// Whether copies wait to be taken.
    #[must_use]
    #[inline]
    pub fn has_tapped(&self) -> bool {
        !self.taps.waiting.is_empty()
    }
}
