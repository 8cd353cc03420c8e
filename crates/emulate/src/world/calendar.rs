//! What is due when: a ring of short days for the near future, a heap for the far one.
//!
//! Adding and taking cost the same however much is waiting. Of two things that are due together the one that was added
//! first comes first, so a run depends on nothing but its seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use base::Instant;

/// A day is 2^20 ns, about a millisecond.
const DAY_SHIFT: u32 = 20;
/// Days in the ring, about four seconds.
const DAYS: u64 = 4096;

/// A thing with its time and its turn among all.
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

/// Things by time.
pub(super) struct Calendar<T> {
    /// What is due on the day that is going on, or before.
    today: BinaryHeap<Reverse<Due<T>>>,
    /// Each day after it, for as long as the ring goes.
    days: Vec<Vec<Due<T>>>,
    /// One bit for each day of the ring that has something.
    marks: Vec<u64>,
    /// What is due later than that.
    later: BinaryHeap<Reverse<Due<T>>>,
    /// The day that is going on.
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

    /// Puts `thing` down for `at`.
    pub(super) fn add(&mut self, at: Instant, thing: T) {
        let due = Due {
            at,
            turn: self.turn,
            thing,
        };
        self.turn += 1;
        self.put(due);
    }

    /// When the next thing is due.
    pub(super) fn next(&mut self) -> Option<Instant> {
        if self.today.is_empty() {
            self.turn_over();
        }
        self.today.peek().map(|Reverse(due)| due.at)
    }

    /// Takes the next thing if it is due at `now` or before.
    pub(super) fn take(&mut self, now: Instant) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        self.today.pop().map(|Reverse(due)| due.thing)
    }

    /// Every thing that waits, to be changed in its place.
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

    /// Goes on to the next day that has something.
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
            // The room is used again by the day that takes this place, unless it is far too much.
            if list.capacity() <= 1024 {
                self.days[place] = list;
            }
        }
        // What was far moves into the ring as the ring moves on.
        while let Some(Reverse(due)) = self.later.peek() {
            if (due.at.as_nanos() >> DAY_SHIFT) - day.min(due.at.as_nanos() >> DAY_SHIFT) >= DAYS {
                break;
            }
            if let Some(Reverse(due)) = self.later.pop() {
                self.put(due);
            }
        }
    }

    /// The first day after the present one that has something in the ring.
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
