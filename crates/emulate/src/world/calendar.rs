//! A calendar queue: a ring of short days for the near future, and a heap for later times.
//!
//! The cost of adding and taking does not depend on how much is waiting. Of two entries with the
//! same time, the one added first comes first, so a run depends only on its seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use base::Instant;

/// A day is 2^20 ns, about a millisecond.
const DAY_SHIFT: u32 = 20;
/// Days in the ring, about four seconds.
const DAYS: u64 = 4096;

/// An entry with its time and its number in the order of additions.
struct Due<T> {
    at: Instant,
    turn: u64,
    thing: T,
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.turn) == (other.at, other.turn)
    }
}
impl<T> Eq for Due<T> {}
impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Due<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.turn).cmp(&(other.at, other.turn))
    }
}

/// Entries ordered by time.
pub(super) struct Calendar<T> {
    /// Entries due on the present day or before.
    today: BinaryHeap<Reverse<Due<T>>>,
    /// A list for each later day that the ring covers.
    days: Vec<Vec<Due<T>>>,
    /// One bit for each day of the ring that has an entry.
    marks: Vec<u64>,
    /// Entries due after the days of the ring.
    later: BinaryHeap<Reverse<Due<T>>>,
    /// The present day.
    day: u64,
    turn: u64,
}

impl<T> Calendar<T> {
    pub(super) fn new() -> Self {
        Self {
            today: BinaryHeap::new(),
            days: (0..DAYS).map(|_| Vec::new()).collect(),
            marks: vec![0; DAYS as usize / 64],
            later: BinaryHeap::new(),
            day: 0,
            turn: 0,
        }
    }

    /// Adds `thing` at the time `at`.
    pub(super) fn add(&mut self, at: Instant, thing: T) {
        let due = Due {
            at,
            turn: self.turn,
            thing,
        };
        self.turn += 1;
        self.put(due);
    }

    /// The time of the next entry.
    pub(super) fn next(&mut self) -> Option<Instant> {
        if self.today.is_empty() {
            self.turn_over();
        }
        self.today.peek().map(|Reverse(due)| due.at)
    }

    /// Takes the next entry if it is due at `now` or before.
    pub(super) fn take(&mut self, now: Instant) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        self.today.pop().map(|Reverse(due)| due.thing)
    }

    /// Calls `change` for every waiting entry.
    pub(super) fn change(&mut self, mut change: impl FnMut(&mut T)) {
        for heap in [&mut self.today, &mut self.later] {
            let mut list = std::mem::take(heap).into_vec();
            list.iter_mut()
                .for_each(|Reverse(due)| change(&mut due.thing));
            *heap = list.into();
        }
        self.days
            .iter_mut()
            .flatten()
            .for_each(|due| change(&mut due.thing));
    }

    fn put(&mut self, due: Due<T>) {
        let day = due.at.as_nanos() >> DAY_SHIFT;
        if day <= self.day {
            self.today.push(Reverse(due));
        } else if day - self.day < DAYS {
            let place = (day % DAYS) as usize;
            self.marks[place / 64] |= 1 << (place % 64);
            self.days[place].push(due);
        } else {
            self.later.push(Reverse(due));
        }
    }

    /// Moves on to the next day that has an entry.
    fn turn_over(&mut self) {
        let far = self
            .later
            .peek()
            .map(|Reverse(due)| due.at.as_nanos() >> DAY_SHIFT);
        let near = self.next_marked();
        let Some(day) = near.into_iter().chain(far).min() else {
            return;
        };
        self.day = day;
        let place = (day % DAYS) as usize;
        if near == Some(day) {
            self.marks[place / 64] &= !(1 << (place % 64));
            let mut list = std::mem::take(&mut self.days[place]);
            self.today.extend(list.drain(..).map(Reverse));
            // The next day in this place reuses the memory, unless it is far too much.
            if list.capacity() <= 1024 {
                self.days[place] = list;
            }
        }
        // As the ring moves on, entries of the heap move into it.
        while let Some(Reverse(due)) = self.later.peek() {
            if (due.at.as_nanos() >> DAY_SHIFT) - day.min(due.at.as_nanos() >> DAY_SHIFT) >= DAYS {
                break;
            }
            if let Some(Reverse(due)) = self.later.pop() {
                self.put(due);
            }
        }
    }

    /// The first day after the present one that has an entry in the ring.
    fn next_marked(&self) -> Option<u64> {
        let start = ((self.day + 1) % DAYS) as usize;
        let words = self.marks.len();
        for step in 0..=words {
            let word = (start / 64 + step) % words;
            let mut bits = self.marks[word];
            if step == 0 {
                bits &= u64::MAX << (start % 64);
            } else if step == words {
                bits &= !(u64::MAX << (start % 64));
            }
            if bits != 0 {
                let place = (word * 64 + bits.trailing_zeros() as usize) as u64;
                let ahead = (place + DAYS - start as u64) % DAYS;
                return Some(self.day + 1 + ahead);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Rng;

    #[test]
    fn things_come_by_time_and_then_as_they_were_added() {
        let mut rng = Rng::new(3);
        let mut calendar = Calendar::new();
        let mut plain: Vec<(u64, u32)> = Vec::new();
        let mut now = 0;
        let mut next_thing = 0;
        for _ in 0..20_000 {
            for _ in 0..rng.below(3) {
                // Often the same times, sometimes days, sometimes minutes ahead.
                let ahead = match rng.below(4) {
                    0 => 0,
                    1 => rng.below(5) << 18,
                    2 => rng.below(1 << 30),
                    _ => rng.below(1 << 36),
                };
                calendar.add(Instant::from_nanos(now + ahead), next_thing);
                plain.push((now + ahead, next_thing));
                next_thing += 1;
            }
            let earliest = plain.iter().copied().min();
            assert_eq!(
                calendar.next().map(Instant::as_nanos),
                earliest.map(|(at, _)| at)
            );
            if let Some((at, thing)) = earliest.filter(|_| rng.chance(0.9)) {
                now = now.max(at);
                assert_eq!(calendar.take(Instant::from_nanos(now)), Some(thing));
                plain.retain(|(_, other)| *other != thing);
            }
        }
    }

    #[test]
    fn nothing_comes_early() {
        let mut calendar = Calendar::new();
        calendar.add(Instant::from_nanos(10_000_000_000), 'a');
        assert_eq!(calendar.take(Instant::from_nanos(9_999_999_999)), None);
        assert_eq!(
            calendar.take(Instant::from_nanos(10_000_000_000)),
            Some('a')
        );
        assert_eq!(calendar.next(), None);
    }
}
