//! The subscribers with the most dropped packets, or the longest round trips.
//!
//! The table is walked a part per step, and only the worst so far are kept, in a heap of a bounded size.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::served::SubscriberView;
use edge::SubscriberKey;

use super::{Rows, Step, subscribers};
use crate::core::Core;
use control::reply::{Code, Refusal};
use control::request::{ShowWorst, WorstBy};

/// The most rows of an answer.
const COUNT_MAX: u32 = 1_000;

/// Subscribers that a step visits: about as much work as a row. The steps of a turn visit 4,096.
const VISITED: usize = 8;

/// A search, with what it has found.
pub(crate) struct Worst {
    by: WorstBy,
    most: Most<SubscriberKey>,
    /// What was found, the worst last, once all were visited.
    found: Option<Vec<SubscriberKey>>,
}

/// The entries with the largest amounts of those seen. Of two that are equal, the one seen first comes first.
struct Most<T> {
    count: usize,
    /// The least of them on top.
    heap: BinaryHeap<Entry<T>>,
}

struct Entry<T> {
    amount: u64,
    place: u32,
    what: T,
}

impl<T> Entry<T> {
    fn rank(&self) -> (Reverse<u64>, u32) {
        (Reverse(self.amount), self.place)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl<T> Most<T> {
    fn new(count: usize) -> Self {
        Self {
            count,
            heap: BinaryHeap::with_capacity(count + 1),
        }
    }

    /// Sees the next entry. One without any amount is none.
    fn see(&mut self, amount: u64, place: u32, what: T) {
        let least = self.heap.peek().map_or(0, |entry| entry.amount);
        let is_full = self.heap.len() >= self.count;
        if amount == 0 || (is_full && amount <= least) {
            return;
        }
        self.heap.push(Entry {
            amount,
            place,
            what,
        });
        if is_full {
            self.heap.pop();
        }
    }

    /// The entries, the largest last.
    fn take(&mut self) -> Vec<T> {
        let sorted = std::mem::take(&mut self.heap).into_sorted_vec();
        sorted.into_iter().rev().map(|entry| entry.what).collect()
    }
}

impl Worst {
    /// From the first subscriber.
    ///
    /// # Errors
    /// The count is out of range.
    pub(crate) fn new(wanted: &ShowWorst) -> Result<Self, Refusal> {
        if !(1..=COUNT_MAX).contains(&wanted.count) {
            let message = format!("count is {}; it must be 1 to {COUNT_MAX}", wanted.count);
            return Err(Refusal::new(Code::BadRequest, message));
        }
        Ok(Self {
            by: wanted.by,
            most: Most::new(wanted.count as usize),
            found: None,
        })
    }

    /// Visits the next subscribers, or writes the next row.
    pub(super) fn step(&mut self, core: &Core, cursor: u32, out: &mut Rows) -> Step {
        if let Some(found) = &mut self.found {
            let Some(key) = found.pop() else {
                return Step::End;
            };
            // It may have gone since.
            if let Some(view) = core.edge.subscriber(key) {
                subscribers::line(core, &view, out);
            }
            return Step::From(cursor);
        }
        let mut cursor = cursor;
        for _ in 0..VISITED {
            let Some((next, view)) = core.edge.next_subscriber(cursor) else {
                self.found = Some(self.most.take());
                return Step::From(cursor);
            };
            self.see(cursor, &view);
            cursor = next;
        }
        Step::From(cursor)
    }

    fn see(&mut self, place: u32, view: &SubscriberView) {
        let amount = match self.by {
            WorstBy::Dropped => view.traffic.dropped,
            WorstBy::RoundTrip => view.link.echo_rtt_us().map_or(0, u64::from),
        };
        self.most.see(amount, place, view.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_are_those_that_a_sort_puts_first() {
        let mut number = 7_u64;
        let mut next = || {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            number >> 33
        };
        for seen in [0, 1, 5, 300] {
            for count in [1, 3, 10, 400] {
                let amounts: Vec<u64> = (0..seen).map(|_| next() % 20).collect();
                let mut most = Most::new(count);
                for (place, &amount) in (0..).zip(&amounts) {
                    most.see(amount, place, (place, amount));
                    assert!(most.heap.len() <= count, "it is bounded");
                }
                let mut sorted: Vec<(u32, u64)> = (0..).zip(amounts).collect();
                sorted.retain(|(_, amount)| *amount > 0);
                sorted.sort_by_key(|&(place, amount)| (Reverse(amount), place));
                sorted.truncate(count);
                sorted.reverse();
                assert_eq!(most.take(), sorted, "{count} of {seen}");
            }
        }
    }
}
