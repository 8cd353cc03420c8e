//! Numbers in intervals, each with its row: a table by a number's upper bits gives the first interval that it can be
//! in, and a search of a fixed length, without branches that could be guessed wrongly, the one that it is in.

use super::Rows;

/// An address or a port.
pub(crate) trait Number: Copy + Ord {
    const ZERO: Self;
    const MAX: Self;
    /// The next one; `None` behind the last.
    fn next(self) -> Option<Self>;
    /// How far it is above `base`, in steps of 2^`shift`; 0 if it is below.
    fn steps(self, base: Self, shift: u32) -> usize;
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
            fn steps(self, base: Self, shift: u32) -> usize {
                usize::try_from(self.saturating_sub(base) >> shift).unwrap_or(usize::MAX)
            }
        }
    };
}
number!(u16);
number!(u32);
number!(u128);

/// From the first to the last.
pub(crate) type Interval<N> = (N, N);

/// Places of the table by upper bits, at most.
const BUCKETS_MAX: usize = 4_096;

/// Which row a number has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ranges<N> {
    /// Where the table by upper bits begins: the second interval, or 0.
    base: N,
    /// Lower bits that it does not look at.
    shift: u32,
    /// By upper bits, the first interval.
    buckets: Box<[u32]>,
    /// Half of the longest search in a bucket, rounded up to a power of two; 0 when none is needed.
    half: usize,
    /// Where each interval begins, and behind them the last number as often as a search may look.
    starts: Box<[N]>,
    /// The row of each interval, the last one's repeated likewise.
    rows: Box<[u32]>,
}

impl<N: Number> Ranges<N> {
    /// The row of a number.
    #[inline(always)]
    pub(super) fn find(&self, number: N) -> u32 {
        let bucket = number.steps(self.base, self.shift);
        let bucket = bucket.min(self.buckets.len().wrapping_sub(1));
        let mut at = self.buckets.get(bucket).map_or(0, |&at| at as usize);
        let mut half = self.half;
        while half > 0 {
            let next = at + half;
            let is_there = self.starts.get(next).is_some_and(|start| *start <= number);
            at += half * usize::from(is_there);
            half >>= 1;
        }
        self.rows.get(at).copied().unwrap_or(0)
    }

    /// The intervals that the rules' lists make, an empty list being everything.
    pub(super) fn new(lists: impl Iterator<Item = Vec<Interval<N>>>, rows: &mut Rows) -> Self {
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
        Self::with_table(starts, of)
    }

    /// Adds the table by upper bits.
    fn with_table(mut starts: Vec<N>, mut rows: Vec<u32>) -> Self {
        let base = starts.get(1).copied().unwrap_or(N::ZERO);
        let last = starts.last().copied().unwrap_or(N::ZERO);
        let wanted = (starts.len() * 2).min(BUCKETS_MAX);
        let shift = (0..)
            .find(|shift| last.steps(base, *shift) < wanted)
            .unwrap_or(0);
        let buckets: Vec<u32> = (0..=last.steps(base, shift))
            .map(|bucket| match bucket {
                0 => 0,
                // The last interval that begins before the bucket, or where the bucket does.
                _ => {
                    let before = starts.partition_point(|start| start.steps(base, shift) < bucket);
                    before.saturating_sub(1) as u32
                }
            })
            .collect();
        let longest = (0..buckets.len())
            .map(|bucket| {
                let behind = starts.partition_point(|start| start.steps(base, shift) <= bucket);
                behind - buckets[bucket] as usize
            })
            .max()
            .unwrap_or(1);
        let half = longest.next_power_of_two() / 2;
        let padding = starts.len() + longest.next_power_of_two();
        starts.resize(padding, N::MAX);
        let last_row = rows.last().copied().unwrap_or(0);
        rows.resize(padding, last_row);
        Self {
            base,
            shift,
            buckets: buckets.into(),
            half,
            starts: starts.into(),
            rows: rows.into(),
        }
    }

    pub(super) fn octets(&self) -> usize {
        size_of_val(&*self.buckets) + size_of_val(&*self.starts) + size_of_val(&*self.rows)
    }
}

/// Sorted, and none within or right behind another.
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
