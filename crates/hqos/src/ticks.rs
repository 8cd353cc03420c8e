//! When links have tokens again: a hierarchical timing wheel (Varghese and Lauck, 1987) whose slots are lists of
//! numbers, not of links.
//!
//! A link that waits for tokens is in memory only. Where timers are chained through links or through places of their
//! own, each timer waits for memory before the next one is known. Here a slot has its links' numbers side by side, so
//! that all links of a slot are loaded at once. A cancelled timer stays in its slot until it fires, and its owner
//! recognises it as stale: a link stores the tick of the timer that counts.
//!
//! Levels and slots are those of [`base::timer::Wheel`]: six bits of the tick for each level.

use base::{Duration, Instant};

const NIL: u32 = u32::MAX;
const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = 64_usize.div_ceil(DIGIT_BITS as usize);
/// Timers of a chunk: four cache lines with its head.
pub(crate) const CHUNK: usize = 31;
/// No timer is further ahead than this, so that 32 bits name its tick. A later one fires early, and is set again.
const AHEAD_MAX: u64 = 1 << 31;

/// A timer of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timer {
    pub(crate) link: u32,
    /// The tick in which it fires, modulo 2^32.
    pub(crate) tick: u32,
}

#[derive(Debug, Clone)]
struct Chunk {
    next: u32,
    len: u32,
    timers: [Timer; CHUNK],
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    head: u32,
    tail: u32,
    /// No later than any timer in it.
    earliest: u64,
}

const UNUSED: Slot = Slot {
    head: NIL,
    tail: NIL,
    earliest: u64::MAX,
};

/// Timers by tick, then in the order of arming.
#[derive(Debug)]
pub(crate) struct Ticks {
    tick_ns: u64,
    /// No timer is before it.
    position: u64,
    levels: u16,
    occupied: [u64; LEVELS],
    /// Of the levels used so far.
    slots: Vec<Slot>,
    chunks: Vec<Chunk>,
    free: u32,
    /// Timers in it, with the stale ones.
    len: usize,
}

impl Ticks {
    pub(crate) fn new(tick: Duration) -> Self {
        Self {
            tick_ns: tick.as_nanos().max(1),
            position: 0,
            levels: 0,
            occupied: [0; LEVELS],
            slots: Vec::new(),
            chunks: Vec::new(),
            free: NIL,
            len: 0,
        }
    }

    /// Timers in it, with the stale ones.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Arms a timer. Returns its tick modulo 2^32.
    #[inline]
    pub(crate) fn insert(&mut self, at: Instant, link: u32) -> u32 {
        let tick = at.as_nanos().div_ceil(self.tick_ns);
        let tick = tick.clamp(self.position, self.position.saturating_add(AHEAD_MAX));
        let timer = Timer {
            link,
            tick: tick as u32,
        };
        self.put(tick, timer);
        self.len += 1;
        timer.tick
    }

    #[inline]
    fn put(&mut self, tick: u64, timer: Timer) {
        let (level, slot) = place(self.position, tick);
        let number = level * SLOTS + slot;
        if number >= self.slots.len() {
            self.slots.resize((level + 1) * SLOTS, UNUSED);
        }
        self.levels |= 1 << level;
        self.occupied[level] |= 1 << slot;
        let slot = &mut self.slots[number];
        slot.earliest = slot.earliest.min(tick);
        let mut tail = slot.tail;
        if tail == NIL || self.chunks[tail as usize].len as usize == CHUNK {
            tail = self.new_chunk();
            let slot = &mut self.slots[number];
            match slot.tail {
                NIL => slot.head = tail,
                last => self.chunks[last as usize].next = tail,
            }
            slot.tail = tail;
        }
        let chunk = &mut self.chunks[tail as usize];
        chunk.timers[chunk.len as usize % CHUNK] = timer;
        chunk.len += 1;
    }

    fn new_chunk(&mut self) -> u32 {
        if let Some(chunk) = self.chunks.get_mut(self.free as usize) {
            let index = self.free;
            self.free = chunk.next;
            (chunk.next, chunk.len) = (NIL, 0);
            return index;
        }
        let none = Timer { link: 0, tick: 0 };
        self.chunks.push(Chunk {
            next: NIL,
            len: 0,
            timers: [none; CHUNK],
        });
        self.chunks.len() as u32 - 1
    }

    fn free_chunk(&mut self, index: u32) {
        self.chunks[index as usize].next = self.free;
        self.free = index;
    }

    fn first(&self) -> Option<(usize, usize)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some((level, self.occupied[level].trailing_zeros() as usize))
    }

    fn first_tick(&self, level: usize, slot: usize) -> u64 {
        self.slots[level * SLOTS + slot].earliest
    }

    fn vacate(&mut self, level: usize, slot: usize) {
        self.slots[level * SLOTS + slot] = UNUSED;
        self.occupied[level] &= !(1 << slot);
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
    }

    /// When the first timer fires, or a stale one.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let (level, slot) = self.first()?;
        let tick = self.first_tick(level, slot);
        Some(Instant::from_nanos(tick.saturating_mul(self.tick_ns)))
    }

    /// Moves up to [`CHUNK`] timers that are due at `now` into `due`. `false` if none is.
    pub(crate) fn take(&mut self, now: Instant, due: &mut Vec<Timer>) -> bool {
        let now = now.as_nanos() / self.tick_ns;
        while let Some((level, slot)) = self.first() {
            let tick = self.first_tick(level, slot);
            if tick > now {
                break;
            }
            self.position = tick;
            let head = self.slots[level * SLOTS + slot].head;
            if level > 0 {
                self.vacate(level, slot);
                self.cascade(head);
                continue;
            }
            let chunk = &self.chunks[head as usize];
            due.extend_from_slice(&chunk.timers[..chunk.len as usize]);
            self.len -= chunk.len as usize;
            match chunk.next {
                NIL => self.vacate(level, slot),
                next => self.slots[slot].head = next,
            }
            self.free_chunk(head);
            return true;
        }
        self.approach(now);
        false
    }

    /// Moves an upper slot's timers to the levels below, in order.
    fn cascade(&mut self, head: u32) {
        let mut at = head;
        while at != NIL {
            let Chunk { next, len, timers } = self.chunks[at as usize].clone();
            self.free_chunk(at);
            for timer in &timers[..len as usize] {
                let ahead = timer.tick.wrapping_sub(self.position as u32);
                self.put(self.position + u64::from(ahead), *timer);
            }
            at = next;
        }
    }

    /// Moves the position towards `now`, but not into a used slot, so that the next timers start in a low level.
    fn approach(&mut self, now: u64) {
        let mut target = now;
        if let Some((level, slot)) = self.first() {
            let begin = begin_of_slot(self.position, level, slot);
            target = target.min(begin.saturating_sub(1));
        }
        self.position = self.position.max(target);
    }

    /// Removes stale timers.
    #[cold]
    pub(crate) fn sweep(&mut self, counts: impl Fn(Timer) -> bool) {
        let mut all = Vec::with_capacity(self.len);
        for slot in &self.slots {
            let mut at = slot.head;
            while at != NIL {
                let chunk = &self.chunks[at as usize];
                all.extend_from_slice(&chunk.timers[..chunk.len as usize]);
                at = chunk.next;
            }
        }
        (self.levels, self.occupied, self.len) = (0, [0; LEVELS], 0);
        self.slots.clear();
        self.chunks = Vec::new();
        self.free = NIL;
        for timer in all.into_iter().filter(|&timer| counts(timer)) {
            let ahead = timer.tick.wrapping_sub(self.position as u32);
            self.put(self.position + u64::from(ahead), timer);
            self.len += 1;
        }
    }
}

/// The level and slot of a tick as seen from `position`: the highest digit in which they differ, and its value.
#[inline]
const fn place(position: u64, tick: u64) -> (usize, usize) {
    let highest = ((position ^ tick) | 1).ilog2();
    let level = highest / DIGIT_BITS;
    let slot = (tick >> (level * DIGIT_BITS)) as usize % SLOTS;
    (level as usize, slot)
}

/// The first tick of a slot of the block that `position` is in.
const fn begin_of_slot(position: u64, level: usize, slot: usize) -> u64 {
    let shift = level as u32 * DIGIT_BITS;
    let block = match (!0_u64).checked_shl(shift + DIGIT_BITS) {
        Some(above) => position & above,
        None => 0,
    };
    block | ((slot as u64) << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tick: u64) -> Instant {
        Instant::from_nanos(tick * 100)
    }

    #[test]
    fn timers_fire_by_tick_then_in_order_and_never_early() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let mut ticks = Ticks::new(Duration::from_nanos(100));
        let mut model: Vec<(u64, u32)> = Vec::new();
        let (mut now, mut next) = (0, 0);
        for _ in 0..20_000 {
            for _ in 0..random(4) {
                let reach = 1 << random(20);
                let tick = now + random(reach);
                ticks.insert(at(tick), next);
                model.push((tick, next));
                next += 1;
            }
            let reach = 1 << random(14);
            now += random(reach);
            let mut due = Vec::new();
            while ticks.take(at(now), &mut due) {}
            let mut wanted: Vec<_> = model.iter().copied().filter(|one| one.0 <= now).collect();
            model.retain(|one| one.0 > now);
            wanted.sort();
            let fired: Vec<_> = due.iter().map(|one| (one.tick, one.link)).collect();
            let wanted: Vec<_> = wanted.iter().map(|one| (one.0 as u32, one.1)).collect();
            assert_eq!(fired, wanted);
            assert_eq!(ticks.len(), model.len());
            let first = model.iter().map(|one| at(one.0)).min();
            assert_eq!(ticks.next_deadline(), first);
        }
    }

    #[test]
    fn a_sweep_keeps_the_timers_that_count() {
        let mut ticks = Ticks::new(Duration::from_nanos(100));
        for link in 0..1_000 {
            ticks.insert(at(u64::from(link) * 7), link);
        }
        ticks.sweep(|timer| timer.link % 10 == 0);
        assert_eq!(ticks.len(), 100);
        let mut due = Vec::new();
        while ticks.take(at(100_000), &mut due) {}
        let links: Vec<u32> = due.iter().map(|one| one.link).collect();
        assert_eq!(links, (0..100).map(|n| n * 10).collect::<Vec<_>>());
        assert_eq!(ticks.next_deadline(), None);
    }

    #[test]
    fn a_timer_of_the_far_future_fires_early_and_can_be_set_again() {
        let mut ticks = Ticks::new(Duration::from_nanos(1));
        ticks.insert(Instant::FAR_FUTURE, 1);
        let mut due = Vec::new();
        assert!(ticks.take(Instant::from_nanos(AHEAD_MAX), &mut due));
        assert_eq!(due.len(), 1);
    }
}
