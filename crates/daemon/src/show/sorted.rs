//! The first subscribers of all in an order, such as the fastest.
//!
//! The table is walked a part per step, as for `show.worst`. Only the first so far are kept, in a heap of a bounded size.
//! A rate is that since the previous walk: [`Rates`](crate::rates::Rates) has what it read of each subscriber.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::served::SubscriberView;
use base::Instant;
use edge::SubscriberKey;

use super::{Rows, Step, subscribers};
use crate::core::Core;
use control::reply::{Code, Refusal};
use control::request::{SubscriberFilter, SubscriberOrder};

/// The most rows of an answer.
const LIMIT_MAX: u32 = 1_000;

/// Subscribers that a step visits: about as much work as a row. The steps of a turn visit 4,096.
const VISITED: usize = 8;

/// A search, with what it has found.
pub(crate) struct Sorted {
    filter: SubscriberFilter,
    order: SubscriberOrder,
    first: First<SubscriberKey>,
    /// What was found, the first one last, once all were visited.
    found: Option<Vec<SubscriberKey>>,
}

impl Sorted {
    /// From the first subscriber. `None` if the request names no order.
    ///
    /// # Errors
    /// The limit is missing or out of range, or there is no order to reverse.
    pub(crate) fn new(filter: &SubscriberFilter) -> Result<Option<Self>, Refusal> {
        let Some(order) = filter.sort else {
            return match filter.reverse {
                true => {
                    let message = "reverse needs sort, the order to reverse";
                    Err(Refusal::new(Code::BadRequest, message))
                }
                false => Ok(None),
            };
        };
        let limit = filter.limit.unwrap_or(0);
        if !(1..=LIMIT_MAX).contains(&limit) {
            let given = filter.limit.map_or("missing".into(), |n| n.to_string());
            let message = format!("limit is {given}; with sort it must be 1 to {LIMIT_MAX}");
            return Err(Refusal::new(Code::BadRequest, message));
        }
        Ok(Some(Self {
            filter: filter.clone(),
            order,
            first: First::new(limit as usize, filter.reverse),
            found: None,
        }))
    }

    /// Visits the next subscribers, or writes the next row.
    pub(super) fn step(&mut self, core: &mut Core, cursor: u32, out: &mut Rows) -> Step {
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
        let Core {
            edge, rates, now, ..
        } = core;
        for _ in 0..VISITED {
            let Some((next, view)) = edge.next_subscriber(cursor) else {
                self.found = Some(self.first.take());
                return Step::From(cursor);
            };
            if self.order == SubscriberOrder::Rate {
                // Those that the filter leaves out are read too, for the rates of a next request.
                let rate = rates.read(&view, *now);
                if subscribers::is_wanted(&self.filter, &view) {
                    self.first.see(Rank::Most(Reverse(rate)), cursor, view.key);
                }
            } else if subscribers::is_wanted(&self.filter, &view) {
                self.see(cursor, &view);
            }
            cursor = next;
        }
        Step::From(cursor)
    }

    fn see(&mut self, place: u32, view: &SubscriberView) {
        let most = |amount| Rank::Most(Reverse(amount));
        let rank = match self.order {
            SubscriberOrder::Name => Rank::Name(view.name),
            SubscriberOrder::Age => Rank::Since(view.created),
            SubscriberOrder::Dropped => most(view.traffic.dropped),
            SubscriberOrder::RoundTrip => most(view.link.echo_rtt_us().map_or(0, u64::from)),
            // It needs what earlier requests read.
            SubscriberOrder::Rate => return,
        };
        self.first.see(rank, place, view.key);
    }
}

/// What decides the place of a subscriber. All of one search are of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank<T> {
    Most(Reverse<u64>),
    Since(Instant),
    Name(T),
}

impl Rank<&[u8]> {
    fn kept(self) -> Rank<Box<[u8]>> {
        match self {
            Rank::Most(amount) => Rank::Most(amount),
            Rank::Since(at) => Rank::Since(at),
            Rank::Name(name) => Rank::Name(name.into()),
        }
    }
}

impl Rank<Box<[u8]>> {
    fn borrowed(&self) -> Rank<&[u8]> {
        match self {
            Rank::Most(amount) => Rank::Most(*amount),
            Rank::Since(at) => Rank::Since(*at),
            Rank::Name(name) => Rank::Name(name),
        }
    }
}

/// The entries that come first of those seen. Of two with the same rank, the one seen first comes first.
struct First<T> {
    limit: usize,
    is_reversed: bool,
    /// The last of them on top.
    heap: BinaryHeap<Entry<T>>,
}

struct Entry<T> {
    rank: Rank<Box<[u8]>>,
    place: u32,
    is_reversed: bool,
    what: T,
}

fn compare(one: Rank<&[u8]>, other: Rank<&[u8]>, is_reversed: bool) -> Ordering {
    match is_reversed {
        true => other.cmp(&one),
        false => one.cmp(&other),
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
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
        compare(
            self.rank.borrowed(),
            other.rank.borrowed(),
            self.is_reversed,
        )
        .then(self.place.cmp(&other.place))
    }
}

impl<T> First<T> {
    fn new(limit: usize, is_reversed: bool) -> Self {
        Self {
            limit,
            is_reversed,
            heap: BinaryHeap::with_capacity(limit + 1),
        }
    }

    /// Sees the next entry. A name is copied only if it is among the first.
    fn see(&mut self, rank: Rank<&[u8]>, place: u32, what: T) {
        let is_full = self.heap.len() >= self.limit;
        let is_reversed = self.is_reversed;
        if let Some(last) = self.heap.peek()
            && is_full
            && compare(rank, last.rank.borrowed(), is_reversed) != Ordering::Less
        {
            return;
        }
        self.heap.push(Entry {
            rank: rank.kept(),
            place,
            is_reversed,
            what,
        });
        if is_full {
            self.heap.pop();
        }
    }

    /// The entries, the first one last.
    fn take(&mut self) -> Vec<T> {
        let sorted = std::mem::take(&mut self.heap).into_sorted_vec();
        sorted.into_iter().rev().map(|entry| entry.what).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random.
    fn numbers() -> impl FnMut() -> u64 {
        let mut number = 7_u64;
        move || {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            number >> 33
        }
    }

    #[test]
    fn the_first_are_those_that_a_sort_puts_first() {
        let mut next = numbers();
        for (seen, span) in [(0, 20), (1, 20), (5, 20), (300, 20), (100_000, u64::MAX)] {
            for limit in [1, 3, 10, 400] {
                let amounts: Vec<u64> = (0..seen).map(|_| next() % span).collect();
                let names: Vec<String> = amounts.iter().map(|n| format!("user{n}")).collect();
                for is_reversed in [false, true] {
                    let mut most = First::new(limit, is_reversed);
                    let mut by_name = First::new(limit, is_reversed);
                    for (place, (&amount, name)) in (0..).zip(amounts.iter().zip(&names)) {
                        most.see(Rank::Most(Reverse(amount)), place, place);
                        by_name.see(Rank::Name(name.as_bytes()), place, place);
                        assert!(most.heap.len() <= limit && by_name.heap.len() <= limit);
                    }
                    let sorted = |by: &dyn Fn(u32, u32) -> Ordering| {
                        let mut all: Vec<u32> = (0..seen).collect();
                        // The sort is stable, so those seen first come first.
                        all.sort_by(|&a, &b| match is_reversed {
                            true => by(b, a),
                            false => by(a, b),
                        });
                        all.truncate(limit);
                        all.reverse();
                        all
                    };
                    let amount = |at: u32| amounts[at as usize];
                    let name = |at: u32| &names[at as usize];
                    let what = format!("{limit} of {seen}, {is_reversed}");
                    let expected = sorted(&|a, b| amount(b).cmp(&amount(a)));
                    assert_eq!(most.take(), expected, "{what}");
                    assert_eq!(
                        by_name.take(),
                        sorted(&|a, b| name(a).cmp(name(b))),
                        "{what}"
                    );
                }
            }
        }
    }
}
