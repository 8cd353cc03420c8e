//! Copies for captures: a subscriber's IP packets on the inside, and the datagrams that carry its frames outside.
//!
//! Without a tap, a packet costs the check of one flag. The owner polls copies once a turn, so they have no time stamp.
//! Copies that do not fit into the queue are counted and lost.

use std::collections::VecDeque;

use super::Path;
use crate::access::{Access, Encapsulation, L2tp};
use crate::key::SubscriberKey;

/// Limit on queued bytes.
const OCTETS_MAX: usize = 4 << 20;

/// Names a tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TapId(pub(crate) u32);

impl TapId {
    /// The tap as a number, unique in its edge.
    #[must_use]
    pub fn to_number(self) -> u32 {
        self.0
    }
}

/// Where a copy was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed<R = <L2tp as Access>::Route> {
    /// An IP packet, between the session and the inside.
    Inside,
    /// A datagram to or from the peer, on this route.
    Outside(R),
}

/// A copy of a packet or datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tapped<R = <L2tp as Access>::Route> {
    /// The tap that it is for.
    pub tap: TapId,
    /// The subscriber.
    pub subscriber: SubscriberKey,
    /// Where it was made.
    pub passed: Passed<R>,
    /// Whether it goes to the subscriber; otherwise it is from it.
    pub is_to: bool,
}

/// The tapped subscribers, and the queued copies.
#[derive(Debug)]
pub(crate) struct Copies<R> {
    on: Vec<(TapId, SubscriberKey)>,
    octets: Vec<u8>,
    /// Each copy with the end of its bytes.
    waiting: VecDeque<(Tapped<R>, u32)>,
    taken: usize,
    /// Lost copies, inside and outside, by tap.
    lost: Vec<(TapId, [u64; 2])>,
}

impl<R> Default for Copies<R> {
    fn default() -> Self {
        Self {
            on: Vec::new(),
            octets: Vec::new(),
            waiting: VecDeque::new(),
            taken: 0,
            lost: Vec::new(),
        }
    }
}

impl<R: Copy + Eq> Copies<R> {
    /// Whether any subscriber is tapped.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        !self.on.is_empty()
    }

    pub(super) fn set_on(&mut self, on: &[(TapId, SubscriberKey)]) {
        self.on.clear();
        self.on.extend_from_slice(on);
    }

    /// Copies a packet of a subscriber, in parts, for every tap on it.
    #[cold]
    pub(crate) fn copy(
        &mut self,
        subscriber: SubscriberKey,
        passed: Passed<R>,
        is_to: bool,
        parts: [&[u8]; 2],
    ) {
        for at in 0..self.on.len() {
            let (tap, on) = self.on[at];
            if on == subscriber {
                let tapped = Tapped {
                    tap,
                    subscriber,
                    passed,
                    is_to,
                };
                self.push(tapped, parts);
            }
        }
    }

    /// Queues a copy, or counts it as lost.
    pub(crate) fn push(&mut self, tapped: Tapped<R>, parts: [&[u8]; 2]) {
        let length = parts[0].len() + parts[1].len();
        if self.octets.len() + length > OCTETS_MAX {
            let mut lost = [0; 2];
            lost[usize::from(tapped.passed != Passed::Inside)] = 1;
            self.lose(tapped.tap, lost);
            return;
        }
        parts
            .iter()
            .for_each(|part| self.octets.extend_from_slice(part));
        self.waiting.push_back((tapped, self.octets.len() as u32));
    }

    /// Counts copies of a tap that were lost, inside and outside.
    pub(crate) fn lose(&mut self, tap: TapId, more: [u64; 2]) {
        match self.lost.iter_mut().find(|(id, _)| *id == tap) {
            Some((_, lost)) => lost
                .iter_mut()
                .zip(more)
                .for_each(|(lost, more)| *lost += more),
            None => self.lost.push((tap, more)),
        }
    }

    /// How many copies of a tap were lost, inside and outside.
    pub(crate) fn lost(&self, tap: TapId) -> [u64; 2] {
        let found = self.lost.iter().find(|(id, _)| *id == tap);
        found.map_or([0; 2], |(_, lost)| *lost)
    }

    pub(crate) fn forget(&mut self, tap: TapId) {
        self.lost.retain(|(id, _)| *id != tap);
    }

    pub(crate) fn pop(&mut self, out: &mut Vec<u8>) -> Option<Tapped<R>> {
        let Self {
            waiting,
            octets,
            taken,
            ..
        } = self;
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

    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl<E: Encapsulation> Path<E> {
    /// The next copy, oldest first; appends its bytes to `out`.
    pub fn poll_tapped(&mut self, out: &mut Vec<u8>) -> Option<Tapped<E::Route>> {
        self.copies.pop(out)
    }

    /// Copies of a tap that were lost since the last poll, inside and outside.
    pub fn poll_lost(&mut self) -> Option<(TapId, [u64; 2])> {
        self.copies.lost.pop()
    }
}
