//! The list of subscribers: rates between two readings, order, filter and selection.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

use super::filter::Filter;
use crate::list::{Cursor, Move};
use crate::rows::{Key, LIST_MAX, Listing, Subscriber};

/// A column to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Name,
    Age,
    RoundTrip,
    Drops,
    Rate,
}

impl Order {
    /// In the order of the columns on the screen.
    pub(crate) const ALL: [Order; 5] = [
        Order::Name,
        Order::Age,
        Order::RoundTrip,
        Order::Drops,
        Order::Rate,
    ];

    /// The name in the status line.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Order::Name => "name",
            Order::Age => "age",
            Order::RoundTrip => "round trip",
            Order::Drops => "drops",
            Order::Rate => "rate",
        }
    }
}

impl Order {
    /// The name in requests.
    fn verb(self) -> &'static str {
        match self {
            Order::Name => "name",
            Order::Age => "age",
            Order::RoundTrip => "round-trip",
            Order::Drops => "dropped",
            Order::Rate => "rate",
        }
    }
}

/// The neighbour of `now` among `all`, in a circle.
pub(super) fn step<T: Copy + PartialEq>(all: &[T], now: T, is_next: bool) -> T {
    let at = all.iter().position(|one| *one == now).unwrap_or(0);
    let by = if is_next { 1 } else { all.len() - 1 };
    all[(at + by) % all.len()]
}

/// A subscriber with its rates between the last two readings that list it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) row: Subscriber,
    /// Bytes from it per second.
    pub(crate) rate_in: Option<f64>,
    /// Bytes to it per second.
    pub(crate) rate_out: Option<f64>,
    /// Packets dropped per second.
    pub(crate) drops: Option<f64>,
}

/// The list of subscribers.
#[derive(Debug)]
pub(crate) struct Subscribers {
    rows: Vec<Row>,
    /// Indices of the rows that the filter lets through, in order.
    shown: Vec<usize>,
    keys: Vec<Key>,
    /// What the daemon was asked for, and when.
    listing: Listing,
    at: Option<Duration>,
    text: String,
    filter: Filter,
    pub(crate) order: Order,
    pub(crate) is_reversed: bool,
    pub(crate) cursor: Cursor<Key>,
}

impl Subscribers {
    /// An empty list with a filter.
    pub(crate) fn new(filter: &str) -> Self {
        Self {
            rows: Vec::new(),
            shown: Vec::new(),
            keys: Vec::new(),
            listing: Listing::default(),
            at: None,
            text: filter.to_owned(),
            filter: Filter::read(filter),
            order: Order::Rate,
            is_reversed: false,
            cursor: Cursor::default(),
        }
    }

    /// What to ask a daemon with `total` subscribers for. If it has more than a list holds, it sends the first ones in the
    /// order.
    pub(super) fn listing(&self, total: u64) -> Listing {
        let mut listing = self.filter.listing();
        if total > u64::from(LIST_MAX) {
            listing.sort = Some((self.order.verb(), self.is_reversed));
        }
        listing
    }

    /// Takes a reading.
    pub(super) fn take(&mut self, listing: Listing, rows: Vec<Subscriber>, at: Duration) {
        let span = self
            .at
            .map(|before| at.saturating_sub(before).as_secs_f64());
        let before: HashMap<Key, &Subscriber> = self
            .rows
            .iter()
            .map(|row| (row.row.key(), &row.row))
            .collect();
        let with_rates = |row: Subscriber| {
            let known = before
                .get(&row.key())
                .filter(|known| known.name == row.name);
            let rate = |counter: fn(&Subscriber) -> u64| {
                let rise = counter(&row).checked_sub(counter(known?))?;
                span.filter(|span| *span > 0.0)
                    .map(|span| rise as f64 / span)
            };
            Row {
                rate_in: rate(|row| row.octets_in),
                rate_out: rate(|row| row.octets_out),
                drops: rate(|row| row.dropped),
                row,
            }
        };
        self.rows = rows.into_iter().map(with_rates).collect();
        self.at = Some(at);
        self.listing = listing;
        self.arrange();
    }

    /// Filters and sorts.
    fn arrange(&mut self) {
        let rows = &self.rows;
        self.shown = (0..rows.len())
            .filter(|&i| self.filter.matches(&rows[i].row))
            .collect();
        let (order, is_reversed) = (self.order, self.is_reversed);
        // The daemon also knows the rates of those that are new in this list.
        let is_sorted = order == Order::Rate
            && rows.len() >= LIST_MAX as usize
            && self.listing.sort == Some(("rate", is_reversed));
        let by_place = |a: usize, b: usize| match is_sorted {
            true => a.cmp(&b),
            false => Ordering::Equal,
        };
        self.shown.sort_by(|&a, &b| {
            let by = compare(order, &rows[a], &rows[b]);
            let by = if is_reversed { by.reverse() } else { by };
            by_place(a, b)
                .then(by)
                .then_with(|| rows[a].row.name.cmp(&rows[b].row.name))
                .then_with(|| rows[a].row.key().cmp(&rows[b].row.key()))
        });
        self.keys = self.shown.iter().map(|&i| rows[i].row.key()).collect();
        self.cursor.settle(&self.keys);
    }

    /// The rows to show, in order.
    pub(crate) fn shown(&self) -> impl ExactSizeIterator<Item = &Row> {
        self.shown.iter().map(|&i| &self.rows[i])
    }

    pub(crate) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Whether there was a reading.
    pub(crate) fn is_read(&self) -> bool {
        self.at.is_some()
    }

    /// Rows of the last reading.
    pub(crate) fn received(&self) -> usize {
        self.rows.len()
    }

    /// Whether the rows are the first ones of all subscribers in this order.
    pub(crate) fn is_of_all(&self) -> bool {
        self.listing.sort == Some((self.order.verb(), self.is_reversed))
    }

    /// The selected row.
    pub(super) fn selected(&self) -> Option<&Subscriber> {
        let index = self.cursor.index(&self.keys)?;
        Some(&self.rows[self.shown[index]].row)
    }

    pub(super) fn go(&mut self, to: Move) {
        self.cursor.go(to, &self.keys);
    }

    pub(super) fn sort(&mut self, is_next: bool) {
        self.order = step(&Order::ALL, self.order, is_next);
        self.is_reversed = false;
        self.arrange();
    }

    pub(super) fn reverse(&mut self) {
        self.is_reversed = !self.is_reversed;
        self.arrange();
    }

    pub(super) fn filter(&self) -> &str {
        &self.text
    }

    pub(super) fn edit(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.text);
        self.filter = Filter::read(&self.text);
        self.arrange();
    }
}

/// Large rates, drops and round trips first, old sessions first; names by the alphabet.
fn compare(order: Order, a: &Row, b: &Row) -> Ordering {
    let largest = |a: Option<f64>, b: Option<f64>| b.unwrap_or(-1.0).total_cmp(&a.unwrap_or(-1.0));
    match order {
        Order::Name => a.row.name.cmp(&b.row.name),
        Order::Age => largest(Some(a.row.age_s), Some(b.row.age_s)),
        Order::RoundTrip => largest(a.row.echo_rtt_us, b.row.echo_rtt_us),
        Order::Drops => largest(a.drops, b.drops).then_with(|| b.row.dropped.cmp(&a.row.dropped)),
        Order::Rate => {
            let rate = |row: &Row| Some(row.rate_in? + row.rate_out?);
            let total = |row: &Row| row.row.octets_in.saturating_add(row.row.octets_out);
            largest(rate(a), rate(b)).then_with(|| total(b).cmp(&total(a)))
        }
    }
}
