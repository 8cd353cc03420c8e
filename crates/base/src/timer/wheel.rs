//! The hierarchical timing wheel (Varghese and Lauck, 1987), without the walk
//! over empty ticks.
//!
//! Time is divided into ticks, and a tick number into digits of six bits. A timer's level is the highest digit in
//! which its tick differs from the wheel's position; its slot is the value of that digit. So each upper slot lies
//! entirely after the position, all timers of one level are due before those of the next, and the first slot of the
//! first used level holds the earliest. Two bit scans find it, however long the wheel was idle.
//!
//! Only `pop_due` moves the position, and never past an armed timer. When it reaches the earliest timer of an upper
//! slot, that slot's timers move down by at least one level each. A timer moves at most ten times, and not at all if
//! it is cancelled first, as most are.

use super::nodes::{Chain, NIL, Nodes};
use super::{Expired, TimerId, TimerStore};
use crate::{Duration, Instant};

/// Bits of one digit: 64 slots in a level, so that one word records which are used.
const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
/// Digits of a 64-bit tick number.
const LEVELS: usize = 64_usize.div_ceil(DIGIT_BITS as usize);
/// How many timers `cancel` visits to find a slot's next earliest one.
const RESCAN_NODES_MAX: usize = 32;

/// Timers in a hierarchical wheel: insert and cancel are O(1). Expire is O(1) plus moving each timer down a level at
/// most ten times.
///
/// Deadlines are rounded up to a multiple of the tick, counted from [`Instant::ZERO`]: a timer never fires early, and
/// less than one tick late. Timers fire by tick, and in the order of arming within a tick. A deadline in the past
/// counts as the latest tick that fired.
///
/// `next_deadline` is O(1), and exact to the tick with one exception: after the earliest timer of a crowded upper
/// slot was cancelled, it still returns that timer's deadline. `pop_due` then finds no timer and spreads the slot, so
/// a timer causes at most ten such wake-ups.
///
/// One call of `pop_due` may move a whole slot. With ticks of 1 ms and timers of up to a minute, it moves a fifteenth
/// of them every 4 s, and all of them every 4 minutes. Wider levels would expire a million timers faster, and stall
/// four times as often.
pub struct Wheel {
    tick_ns: u64,
    /// The tick that the digits are compared with; no armed timer is before it.
    position: u64,
    /// One bit per level that has a timer.
    levels: u16,
    /// One bit per slot that has a timer.
    occupied: [u64; LEVELS],
    /// All slots of the levels used so far, 64 per level.
    slots: Vec<Slot>,
    nodes: Nodes,
}

#[derive(Clone, Copy)]
struct Slot {
    chain: Chain,
    /// No later than any deadline in the chain.
    earliest: Instant,
}

impl Wheel {
    /// A wheel without timers that fires on multiples of `tick` (of 1 ns if
    /// `tick` is zero).
    pub const fn new(tick: Duration) -> Self {
        let ns = tick.as_nanos();
        Self {
            tick_ns: if ns == 0 { 1 } else { ns },
            position: 0,
            levels: 0,
            occupied: [0; LEVELS],
            slots: Vec::new(),
            nodes: Nodes::new(),
        }
    }

    /// The tick that deadlines are rounded up to.
    pub const fn tick(&self) -> Duration {
        Duration::from_nanos(self.tick_ns)
    }

    /// The tick in which a timer for `at` fires.
    fn tick_of(&self, at: Instant) -> u64 {
        at.as_nanos().div_ceil(self.tick_ns).max(self.position)
    }

    /// The start of a tick; a tick that would start after the end of time starts at the end of time.
    const fn begin_of(&self, tick: u64) -> Instant {
        Instant::from_nanos(tick.saturating_mul(self.tick_ns))
    }

    /// Level and slot of the earliest timer.
    const fn first(&self) -> Option<(usize, usize)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some((level, self.occupied[level].trailing_zeros() as usize))
    }

    /// The tick of the earliest timer in a level's first slot, or one before it.
    fn first_tick(&self, level: usize, slot: usize) -> u64 {
        if level == 0 {
            begin_of_slot(self.position, 0, slot)
        } else {
            self.tick_of(self.slots[level * SLOTS + slot].earliest)
        }
    }

    /// Links a node into the slot of its deadline, as seen from the position.
    fn link(&mut self, index: u32) {
        let at = self.nodes.get(index).at;
        let tick = self.tick_of(at);
        let (level, slot) = place(self.position, tick);
        let number = level * SLOTS + slot;
        if number >= self.slots.len() {
            let unused = Slot {
                chain: Chain::EMPTY,
                earliest: Instant::FAR_FUTURE,
            };
            self.slots.resize((level + 1) * SLOTS, unused);
        }
        self.nodes.get_mut(index).chain = number as u16;
        let entry = &mut self.slots[number];
        if entry.chain.is_empty() {
            entry.earliest = at;
            self.occupied[level] |= 1 << slot;
            self.levels |= 1 << level;
        } else if at < entry.earliest {
            entry.earliest = at;
        }
        self.nodes.link_before(&mut entry.chain, NIL, index);
    }

    /// Unlinks a node from its slot.
    fn unlink(&mut self, index: u32) {
        let number = usize::from(self.nodes.get(index).chain);
        let entry = &mut self.slots[number];
        self.nodes.unlink(&mut entry.chain, index);
        if entry.chain.is_empty() {
            self.vacate(number / SLOTS, number % SLOTS);
        }
    }

    /// Records that a slot is empty.
    fn vacate(&mut self, level: usize, slot: usize) {
        self.occupied[level] &= !(1 << slot);
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
    }

    /// Finds the next earliest timer of an upper slot after the earliest left. If there are too many to visit,
    /// `earliest` stays a lower bound.
    fn rescan(&mut self, number: usize, gone: Instant) {
        let mut earliest = Instant::FAR_FUTURE;
        let mut index = self.slots[number].chain.head;
        for _ in 0..RESCAN_NODES_MAX {
            let node = self.nodes.get(index);
            earliest = earliest.min(node.at);
            index = node.next;
            if index == NIL || earliest == gone {
                self.slots[number].earliest = earliest;
                return;
            }
        }
    }

    /// Moves an upper slot's timers to the levels below, in order.
    fn cascade(&mut self, level: usize, slot: usize) {
        let entry = &mut self.slots[level * SLOTS + slot];
        let mut index = core::mem::replace(&mut entry.chain, Chain::EMPTY).head;
        self.vacate(level, slot);
        while index != NIL {
            let next = self.nodes.get(index).next;
            self.link(index);
            index = next;
        }
    }

    /// Moves the position towards `now`, but not into a used slot, so that the next timers start in a low level.
    fn approach(&mut self, now: Instant) {
        let mut target = now.as_nanos() / self.tick_ns;
        if let Some((level, slot)) = self.first() {
            target = target.min(begin_of_slot(self.position, level, slot).saturating_sub(1));
        }
        self.position = self.position.max(target);
    }
}

impl TimerStore for Wheel {
    fn insert(&mut self, at: Instant, token: u32) -> TimerId {
        let index = self.nodes.allocate(at, token);
        self.link(index);
        self.nodes.id(index)
    }

    fn cancel(&mut self, id: TimerId) -> bool {
        let Some(index) = self.nodes.find(id) else {
            return false;
        };
        let node = *self.nodes.get(index);
        let number = usize::from(node.chain);
        self.unlink(index);
        self.nodes.release(index);
        let entry = self.slots[number];
        if number >= SLOTS && node.at == entry.earliest && !entry.chain.is_empty() {
            self.rescan(number, node.at);
        }
        true
    }

    fn next_deadline(&self) -> Option<Instant> {
        let (level, slot) = self.first()?;
        Some(self.begin_of(self.first_tick(level, slot)))
    }

    fn pop_due(&mut self, now: Instant) -> Option<Expired> {
        while let Some((level, slot)) = self.first() {
            let tick = self.first_tick(level, slot);
            if self.begin_of(tick) > now {
                break;
            }
            self.position = tick;
            if level > 0 {
                self.cascade(level, slot);
                continue;
            }
            let index = self.slots[slot].chain.head;
            let node = *self.nodes.get(index);
            self.unlink(index);
            self.nodes.release(index);
            return Some(Expired {
                token: node.token,
                at: node.at,
            });
        }
        self.approach(now);
        None
    }

    fn len(&self) -> usize {
        self.nodes.armed()
    }
}

/// The level and slot of a tick as seen from `position`: the highest digit in which they differ, and its value.
const fn place(position: u64, tick: u64) -> (usize, usize) {
    let highest = ((position ^ tick) | 1).ilog2();
    let level = highest / DIGIT_BITS;
    (
        level as usize,
        (tick >> (level * DIGIT_BITS)) as usize % SLOTS,
    )
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
