//! Timers by index, in ticks of about a second.
//!
//! A slot of the wheel is a list of indices, linked through an array beside the records, so that a packet that refreshes a
//! record does not read its timer: the owner compares the record's time when its timer fires, and arms it again. A record
//! without packets therefore costs one timer, and a busy one a timer per time-out. Arming and disarming are O(1); a tick
//! without timers costs a bit test.

use crate::pages::Reserve;

/// Ticks ahead that a timer can be armed for; later ones fire early, and the owner arms them again.
const SLOTS: u32 = 8192;
const NONE: u32 = u32::MAX;
/// Marks a link to a slot's head rather than to another index.
const HEAD: u32 = 1 << 31;

/// Timers of indices below a bound.
#[derive(Debug)]
pub(crate) struct Wheel {
    heads: Vec<u32>,
    /// Which slots are not empty.
    busy: Vec<u64>,
    /// Next and previous index of each armed one; `[NONE, NONE]` if it is not armed.
    links: Vec<[u32; 2]>,
    /// All earlier ticks are empty.
    tick: u32,
}

impl Wheel {
    /// A wheel for indices below `indices_max`, which is at most 2^31.
    pub(crate) fn new(indices_max: usize) -> Self {
        Self {
            heads: vec![NONE; SLOTS as usize],
            busy: vec![0; SLOTS as usize / 64],
            links: Vec::with_capacity(indices_max),
            tick: 0,
        }
    }

    fn slot(tick: u32) -> usize {
        (tick % SLOTS) as usize
    }

    /// Arms the timer of `index` for `tick`, in place of an earlier one.
    pub(crate) fn arm(&mut self, index: u32, tick: u32) {
        self.disarm(index);
        if self.links.len() <= index as usize {
            self.links.resize(index as usize + 1, [NONE, NONE]);
        }
        let tick = tick.clamp(self.tick, self.tick + SLOTS - 1);
        let slot = Self::slot(tick);
        let first = self.heads[slot];
        if first != NONE {
            self.links[first as usize][1] = index;
        }
        self.links[index as usize] = [first, HEAD | slot as u32];
        self.heads[slot] = index;
        self.busy[slot / 64] |= 1 << (slot % 64);
    }

    /// Disarms the timer of `index`, if it is armed.
    pub(crate) fn disarm(&mut self, index: u32) {
        let Some(&[next, before]) = self.links.get(index as usize) else {
            return;
        };
        if before == NONE {
            return;
        }
        if next != NONE {
            self.links[next as usize][1] = before;
        }
        if before & HEAD != 0 {
            let slot = (before & !HEAD) as usize;
            self.heads[slot] = next;
            if next == NONE {
                self.busy[slot / 64] &= !(1 << (slot % 64));
            }
        } else {
            self.links[before as usize][0] = next;
        }
        self.links[index as usize] = [NONE, NONE];
    }

    /// The tick of the earliest timer, at most one turn of the wheel away.
    pub(crate) fn next(&self) -> Option<u32> {
        let start = Self::slot(self.tick);
        let words = self.busy.len();
        for step in 0..=words {
            let word = (start / 64 + step) % words;
            let mut bits = self.busy[word];
            if step == 0 {
                bits &= u64::MAX << (start % 64);
            } else if step == words {
                bits &= !(u64::MAX << (start % 64));
            }
            if bits != 0 {
                let slot = (word * 64) as u32 + bits.trailing_zeros();
                return Some(self.tick + (slot + SLOTS - start as u32) % SLOTS);
            }
        }
        None
    }

    /// Takes an index whose timer is due at `now`, in order of ticks.
    pub(crate) fn pop(&mut self, now: u32) -> Option<u32> {
        match self.next() {
            Some(tick) if tick <= now => {
                self.tick = tick;
                let index = self.heads[Self::slot(tick)];
                self.disarm(index);
                Some(index)
            }
            _ => {
                self.tick = self.tick.max(now);
                None
            }
        }
    }

    pub(crate) fn on_reserve(&self, reserve: Reserve) {
        reserve(
            self.links.as_ptr().cast(),
            self.links.capacity() * Self::BYTES,
        );
    }

    /// Bytes reserved per index.
    pub(crate) const BYTES: usize = 8;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn timers_fire_at_their_tick_and_never_before(
            steps in prop::collection::vec((0_u32..30, 0_u32..9000, 0_u32..3), 1..200),
        ) {
            let mut wheel = Wheel::new(30);
            let mut model = BTreeMap::new();
            let mut now = 0;
            for (index, ahead, what) in steps {
                match what {
                    0 => {
                        wheel.arm(index, now + ahead);
                        model.insert(index, now + ahead.min(SLOTS - 1));
                    }
                    1 => {
                        wheel.disarm(index);
                        model.remove(&index);
                    }
                    _ => {
                        now += ahead;
                        while let Some(index) = wheel.pop(now) {
                            let due = model.remove(&index);
                            prop_assert!(due.is_some_and(|due| due <= now));
                        }
                        prop_assert!(model.values().all(|&due| due > now));
                    }
                }
                prop_assert_eq!(wheel.next(), model.values().min().copied());
            }
        }
    }
}
