//! Maps numbers to rows by interval, without unpredictable branches. A part of the packet that no rule
//! restricts costs one memory access.
//!
//! Ports are looked up in pages of 64. For addresses, a table indexed by the upper bits yields the first
//! candidate interval. A fixed-length search narrows the range if many intervals follow, and the last few are
//! compared all at once and counted.

use std::collections::HashMap;
use std::hint::select_unpredictable;

use super::Rows;

/// An address or a port.
pub(crate) trait Number: Copy + Ord {
    const ZERO: Self;
    const MAX: Self;
    /// The next number; `None` after the last.
    fn next(self) -> Option<Self>;
    /// Its distance above `base`, wrapping around after the last number.
    fn from(self, base: Self) -> Self;
    /// Its value in steps of 2^`shift`.
    fn steps(self, shift: u32) -> usize;
}

macro_rules! number {
    ($type:ty) => {
        impl Number for $type {
            const ZERO: Self = 0;
            const MAX: Self = <$type>::MAX;

            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }

            #[inline(always)]
            fn from(self, base: Self) -> Self {
                self.wrapping_sub(base)
            }

            #[inline(always)]
            fn steps(self, shift: u32) -> usize {
                usize::try_from(self >> shift).unwrap_or(usize::MAX)
            }
        }
    };
}
number!(u16);
number!(u32);
number!(u128);

/// First and last number.
pub(crate) type Interval<N> = (N, N);

/// The most entries of the table indexed by upper bits.
const BUCKETS_MAX: usize = 4_096;
/// Entries per interval: more of them shorten a search, but fewer tables stay in the processor's cache.
const BUCKETS_EACH: usize = 4;
/// Intervals compared at the end of a search, after the current one.
const COUNTED: usize = 3;

/// Maps an address to a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ranges<N> {
    /// Where the second interval starts. Numbers are counted from here, so that the first interval becomes the
    /// last one.
    base: N,
    /// Lower bits that the table of upper bits ignores.
    shift: u32,
    /// The first candidate interval, by upper bits.
    buckets: Box<[u32]>,
    /// The first step of the search in a bucket, a power of two; 0 if comparing all is enough.
    step: usize,
    /// The start of each interval but the first, then the last number repeated as often as a search may read
    /// past the end.
    starts: Box<[N]>,
    /// The row of each interval from [`Rows`], the last one repeated likewise.
    rows: Box<[u64]>,
}

impl<N: Number> Ranges<N> {
    /// The row of a number, as [`Rows`] returned it.
    #[inline(always)]
    pub(super) fn find(&self, number: N) -> u64 {
        if let [row] = *self.rows {
            return row;
        }
        let number = number.from(self.base);
        let bucket = number.steps(self.shift).min(self.buckets.len() - 1);
        let mut at = self.buckets[bucket] as usize;
        let mut step = self.step;
        while step > COUNTED {
            let is_there = self.starts[at + step - 1] <= number;
            at = select_unpredictable(is_there, at + step, at);
            step >>= 1;
        }
        let starts = &self.starts[at..at + COUNTED];
        let behind = starts.iter().map(|start| usize::from(*start <= number));
        self.rows[at + behind.sum::<usize>()]
    }

    /// Builds the intervals from the rules' lists; an empty list means every number.
    pub(super) fn new(lists: impl Iterator<Item = Vec<Interval<N>>>, rows: &mut Rows) -> Self {
        let (mut starts, mut rows) = intervals(lists, rows);
        let base = starts.get(1).copied().unwrap_or(N::ZERO);
        if starts.len() > 1 {
            starts.rotate_left(1);
            rows.rotate_left(1);
        }
        let starts = starts.into_iter().map(|start| start.from(base)).collect();
        Self::with_table(base, starts, rows)
    }

    /// Adds the table of upper bits. It ends at the last interval but one, after whose start at most one
    /// interval follows.
    fn with_table(base: N, mut starts: Vec<N>, mut rows: Vec<u64>) -> Self {
        let last = starts.len().checked_sub(2).map_or(N::ZERO, |at| starts[at]);
        let wanted = (starts.len() * BUCKETS_EACH).min(BUCKETS_MAX);
        let shift = (0..).find(|shift| last.steps(*shift) < wanted).unwrap_or(0);
        let last_bucket = last.steps(shift);
        // The last interval that starts before the bucket, or at the first bucket's start.
        let first_of = |bucket: usize| {
            let before = starts.partition_point(|start| start.steps(shift) < bucket);
            before.saturating_sub(1)
        };
        let longest = (0..=last_bucket).map(|bucket| {
            let behind = match bucket == last_bucket {
                true => starts.len(),
                false => starts.partition_point(|start| start.steps(shift) <= bucket),
            };
            behind - first_of(bucket)
        });
        let longest = longest.max().unwrap_or(1).next_power_of_two();
        let buckets = (0..=last_bucket).map(|bucket| first_of(bucket) as u32);
        let buckets: Vec<u32> = buckets.collect();
        if starts.len() > 1 {
            starts.remove(0);
            let room = starts.len() + longest.max(COUNTED + 1);
            starts.resize(room, N::MAX);
            let last_row = rows.last().copied().unwrap_or(0);
            rows.resize(room, last_row);
        }
        Self {
            base,
            shift,
            buckets: buckets.into(),
            step: longest / 2,
            starts: starts.into(),
            rows: rows.into(),
        }
    }

    pub(super) fn octets(&self) -> usize {
        size_of_val(&*self.buckets) + size_of_val(&*self.starts) + size_of_val(&*self.rows)
    }
}

/// Ports per page.
const PAGE: usize = 64;
/// Pages for all ports.
const PAGES: usize = (u16::MAX as usize + 1) / PAGE;

/// Maps a port to a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ports {
    /// The page of each 64 ports; equal pages are shared.
    by_page: Box<[u16; PAGES]>,
    /// Index into `rows`, by port.
    pages: Box<[[u16; PAGE]]>,
    /// Rows from [`Rows`].
    rows: Box<[u64]>,
}

impl Ports {
    /// The row of a port, as [`Rows`] returned it.
    #[inline(always)]
    pub(super) fn find(&self, port: u16) -> u64 {
        if let [row] = *self.rows {
            return row;
        }
        let port = usize::from(port);
        let page = usize::from(self.by_page[port / PAGE]);
        self.rows[usize::from(self.pages[page][port % PAGE])]
    }

    /// Like [`Ranges::new`].
    pub(super) fn new(lists: impl Iterator<Item = Vec<Interval<u16>>>, rows: &mut Rows) -> Self {
        let (starts, of) = intervals(lists, rows);
        let mut rows = of.clone();
        rows.sort_unstable();
        rows.dedup();
        // There are at most as many rows as ports, so the number fits.
        let of: Vec<u16> = of
            .iter()
            .map(|row| rows.partition_point(|known| known < row) as u16)
            .collect();
        let mut by_page = Box::new([0; PAGES]);
        let mut pages: Vec<[u16; PAGE]> = Vec::new();
        let mut known = HashMap::new();
        let mut at = 0;
        for (number, place) in by_page.iter_mut().enumerate() {
            let mut page = [of[at]; PAGE];
            let mut begins = starts[at + 1..]
                .iter()
                .map(|start| usize::from(*start))
                .peekable();
            while let Some(start) = begins.next_if(|start| start / PAGE == number) {
                at += 1;
                page[start % PAGE..].fill(of[at]);
            }
            *place = *known.entry(page).or_insert_with(|| {
                pages.push(page);
                pages.len() as u16 - 1
            });
        }
        Self {
            by_page,
            pages: pages.into(),
            rows: rows.into(),
        }
    }

    pub(super) fn octets(&self) -> usize {
        size_of_val(&*self.by_page) + size_of_val(&*self.pages) + size_of_val(&*self.rows)
    }
}

/// The starts of intervals whose numbers all have the same row, and those rows.
fn intervals<N: Number>(
    lists: impl Iterator<Item = Vec<Interval<N>>>,
    rows: &mut Rows,
) -> (Vec<N>, Vec<u64>) {
    let mut words = vec![0_u64; rows.words];
    // Where a rule's bit changes.
    let mut changes: Vec<(N, usize)> = Vec::new();
    for (rule, list) in lists.enumerate() {
        if list.is_empty() {
            words[rule / 64] |= 1 << (rule % 64);
        }
        for (first, last) in united(list) {
            changes.push((first, rule));
            changes.extend(last.next().map(|next| (next, rule)));
        }
    }
    changes.sort_unstable();
    let mut starts = Vec::new();
    let mut of = Vec::new();
    let mut changes = changes.into_iter().peekable();
    let mut start = N::ZERO;
    loop {
        while let Some((_, rule)) = changes.next_if(|(at, _)| *at == start) {
            words[rule / 64] ^= 1 << (rule % 64);
        }
        let row = rows.add(&words);
        if of.last() != Some(&row) {
            starts.push(start);
            of.push(row);
        }
        match changes.peek() {
            Some((at, _)) => start = *at,
            None => break,
        }
    }
    (starts, of)
}

/// Sorted, with overlapping and adjacent intervals merged.
fn united<N: Number>(mut list: Vec<Interval<N>>) -> Vec<Interval<N>> {
    list.sort_unstable();
    let mut united: Vec<Interval<N>> = Vec::with_capacity(list.len());
    for (first, last) in list {
        match united.last_mut() {
            Some(before) if before.1.next().is_none_or(|next| first <= next) => {
                before.1 = before.1.max(last);
            }
            _ => united.push((first, last)),
        }
    }
    united
}
