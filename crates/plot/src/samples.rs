//! Any number of samples in bounded room: columns of equally many samples, each with its extremes.
//!
//! A column is the range of x of some consecutive samples, with the first, the last, the lowest and the highest value.
//! When there are too many columns, each two become one. So nothing that could be seen is lost: whatever the size,
//! the extremes of every range of x that is drawn are exact. Percentiles come from all values, kept as 32-bit floats.

use crate::chart::Series;

/// Columns that a [`Thinner`] keeps at most; with fewer samples than that, each has a column of its own.
pub(crate) const COLUMNS_MAX: usize = 1 << 18;

/// Points of a distribution that are kept evenly; about as many again are close to its two ends.
const SHARES: usize = 1024;

/// Some consecutive samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Column {
    /// The x of the first and of the last sample.
    pub(crate) x: (f64, f64),
    pub(crate) first: f64,
    pub(crate) last: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// The x of the first sample with the lowest value, and with the highest.
    pub(crate) extremes_at: (f64, f64),
    pub(crate) count: u64,
}

impl Column {
    pub(crate) fn one(x: f64, y: f64) -> Self {
        Self {
            x: (x, x),
            first: y,
            last: y,
            min: y,
            max: y,
            extremes_at: (x, x),
            count: 1,
        }
    }

    /// Takes in the samples that follow.
    fn absorb(&mut self, next: &Self) {
        self.x.1 = self.x.1.max(next.x.1);
        self.last = next.last;
        if next.min < self.min {
            (self.min, self.extremes_at.0) = (next.min, next.extremes_at.0);
        }
        if next.max > self.max {
            (self.max, self.extremes_at.1) = (next.max, next.extremes_at.1);
        }
        self.count += next.count;
    }
}

/// Half as many columns: each two become one.
pub(crate) fn halve(columns: &[Column]) -> Vec<Column> {
    let pair = |pair: &[Column]| {
        let mut one = pair[0];
        if let Some(next) = pair.get(1) {
            one.absorb(next);
        }
        one
    };
    columns.chunks(2).map(pair).collect()
}

/// Columns for steps, about `limit` of them at most: columns that are close to each other become one.
///
/// A value of steps holds until the next sample, so the place of a sample matters even where few samples are. Columns
/// of equally many samples may be wide there. These are narrow: each is at most a `limit`th of the whole wide, unless it
/// was wider before.
pub(crate) fn narrow(columns: &[Column], limit: usize) -> Vec<Column> {
    let (Some(first), Some(last)) = (columns.first(), columns.last()) else {
        return Vec::new();
    };
    if columns.len() <= limit {
        return columns.to_vec();
    }
    // Half of each first, since the difference of the largest numbers is not one.
    let width = (last.x.1 / 2.0 - first.x.0 / 2.0) / limit.max(1) as f64 * 2.0;
    let mut narrow: Vec<Column> = Vec::with_capacity(limit + 1);
    for column in columns {
        match narrow.last_mut() {
            Some(before) if column.x.1 / 2.0 - before.x.0 / 2.0 <= width / 2.0 => {
                before.absorb(column);
            }
            _ => narrow.push(*column),
        }
    }
    narrow
}

/// The samples that steps through a column are drawn by: the first, the extremes, and the last.
pub(crate) fn corners_of(column: &Column) -> impl Iterator<Item = (f64, f64)> + use<> {
    let (from, to) = column.x;
    let mut extremes = [
        (column.extremes_at.0, column.min),
        (column.extremes_at.1, column.max),
    ];
    extremes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all = [
        (from, column.first),
        extremes[0],
        extremes[1],
        (to, column.last),
    ];
    all.into_iter().take(if column.count > 1 { 4 } else { 1 })
}

/// Takes samples one by one and keeps at most 262,144 columns of them, and four octets for each value.
#[derive(Clone, Debug)]
pub struct Thinner {
    columns: Vec<Column>,
    limit: usize,
    /// Samples in a column.
    per_column: u64,
    /// Every value as a number whose order is that of the values.
    values: Vec<u32>,
    /// Samples whose x is below that of one before.
    late: Vec<(f64, f64)>,
    lost: Vec<f64>,
    ignored: u64,
    sum: f64,
}

impl Default for Thinner {
    fn default() -> Self {
        Self::new()
    }
}

impl Thinner {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(COLUMNS_MAX)
    }

    /// The same with another limit on columns, at least 2.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self {
            columns: Vec::new(),
            limit: limit.max(2),
            per_column: 1,
            values: Vec::new(),
            late: Vec::new(),
            lost: Vec::new(),
            ignored: 0,
            sum: 0.0,
        }
    }

    /// Takes a sample, in the units of the chart's axes.
    ///
    /// Samples whose x is not below the one before take no room of their own. Others are kept until the end and
    /// sorted in, 16 octets each. A sample that is not finite is ignored and counted.
    pub fn push(&mut self, x: f64, y: f64) {
        if !x.is_finite() || !y.is_finite() {
            self.ignored += 1;
            return;
        }
        self.values.push(ordered(y));
        self.sum += y;
        if self.columns.last().is_some_and(|last| x < last.x.1) {
            self.late.push((x, y));
            return;
        }
        self.append(&Column::one(x, y));
    }

    /// Takes the x at which a packet was lost; one that is not finite is ignored and counted.
    pub fn push_lost(&mut self, x: f64) {
        if x.is_finite() {
            self.lost.push(x);
        } else {
            self.ignored += 1;
        }
    }

    /// The series of all that was taken.
    pub fn finish(self, name: impl Into<String>) -> Series {
        Series::new(name, self.into_samples())
    }

    /// What was taken, without a name.
    #[must_use]
    pub fn into_samples(mut self) -> Samples {
        self.sort_in();
        self.values.sort_unstable();
        self.lost.sort_unstable_by(f64::total_cmp);
        let low = self.columns.iter().map(|c| c.min).reduce(f64::min);
        let high = self.columns.iter().map(|c| c.max).reduce(f64::max);
        let count = self.values.len() as u64;
        Samples {
            count,
            ignored: self.ignored,
            range: low.zip(high),
            mean: (count > 0).then(|| self.sum / count as f64),
            shares: shares(&self.values, high),
            // A value of 32 bits may be beyond the extremes, which are exact.
            percentiles: PERCENTILES.map(|p| {
                let value = percentile(&self.values, p)?;
                Some(value.clamp(low?, high?))
            }),
            columns: self.columns,
            per_column: self.per_column,
            lost_count: self.lost.len() as u64,
            lost: spans(&self.lost),
        }
    }

    fn append(&mut self, next: &Column) {
        match self.columns.last_mut() {
            Some(last) if last.count + next.count <= self.per_column => last.absorb(next),
            _ => {
                if self.columns.len() >= self.limit {
                    self.columns = halve(&self.columns);
                    self.per_column *= 2;
                    // The last column may be a half one, which takes this too.
                    return self.append(next);
                }
                self.columns.push(*next);
            }
        }
    }

    /// Puts the samples that came late where they belong.
    fn sort_in(&mut self) {
        if self.late.is_empty() {
            return;
        }
        let mut late = std::mem::take(&mut self.late);
        late.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut late = late.into_iter().peekable();
        for column in std::mem::take(&mut self.columns) {
            while let Some((x, y)) = late.next_if(|(x, _)| *x < column.x.0) {
                self.append(&Column::one(x, y));
            }
            self.append(&column);
        }
        for (x, y) in late {
            self.append(&Column::one(x, y));
        }
    }
}

/// Percentiles that summaries show.
const PERCENTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// What is kept of samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    count: u64,
    ignored: u64,
    range: Option<(f64, f64)>,
    mean: Option<f64>,
    percentiles: [Option<f64>; 3],
    pub(crate) columns: Vec<Column>,
    /// Samples in a column, at most.
    pub(crate) per_column: u64,
    /// Values and the share of samples up to them, ascending in both; the last share is 1.
    pub(crate) shares: Vec<(f64, f64)>,
    lost_count: u64,
    /// Spans of x with how many were lost in each.
    pub(crate) lost: Vec<Lost>,
}

/// Packets lost in a row of lost ones: first and last x, and how many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lost {
    pub(crate) x: (f64, f64),
    pub(crate) count: u64,
}

impl Samples {
    /// How many samples there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many samples and losses were not finite, and left out.
    #[must_use]
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// How many packets were lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost_count
    }

    /// The share of packets that were lost, 0 to 1; `None` without a packet.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let all = self.count + self.lost_count;
        (all > 0).then(|| self.lost_count as f64 / all as f64)
    }

    /// The lowest and the highest value, exact.
    #[must_use]
    pub fn range(&self) -> Option<(f64, f64)> {
        self.range
    }

    /// The mean of the values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        self.mean
    }

    /// The mean over x, where each value holds until the next sample; the last one holds for nothing.
    ///
    /// Of samples in one column only the mean of the extremes is known.
    #[must_use]
    pub fn mean_over_x(&self) -> Option<f64> {
        let first = self.columns.first()?;
        let nexts = self.columns.iter().skip(1).map(|next| next.x.0);
        let ends = nexts.chain(self.columns.last().map(|last| last.x.1));
        let (mut sum, mut all) = (0.0, 0.0);
        for (column, end) in self.columns.iter().zip(ends) {
            let (inside, after) = (column.x.1 - column.x.0, end - column.x.1);
            let middle = match column.count {
                2 => column.first,
                _ => column.min / 2.0 + column.max / 2.0,
            };
            sum += middle * inside + column.last * after;
            all += inside + after;
        }
        Some(if all > 0.0 { sum / all } else { first.last })
    }

    /// The median, 95th and 99th percentile (nearest rank), to seven digits.
    #[must_use]
    pub fn percentiles(&self) -> [Option<f64>; 3] {
        self.percentiles
    }

    /// The values and the share of samples up to each, ascending in both; the last share is 1.
    #[must_use]
    pub fn distribution(&self) -> &[(f64, f64)] {
        &self.shares
    }

    /// The columns, each two made one until at most `limit` are left.
    pub(crate) fn at_most(&self, limit: usize) -> Vec<Column> {
        let mut columns = self.columns.clone();
        while columns.len() > limit.max(1) {
            columns = halve(&columns);
        }
        columns
    }
}

/// A number whose order is that of the value, rounded to 32 bits.
fn ordered(value: f64) -> u32 {
    // Adding zero makes of both zeros the same.
    let bits = (value.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32 + 0.0).to_bits();
    if bits >> 31 == 1 {
        !bits
    } else {
        bits | 1 << 31
    }
}

/// The value that [`ordered`] made a number of.
fn value_of(ordered: u32) -> f64 {
    let bits = if ordered >> 31 == 1 {
        ordered & !(1 << 31)
    } else {
        !ordered
    };
    f64::from(f32::from_bits(bits))
}

/// The least value that is not below the given share of all.
fn percentile(sorted: &[u32], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).map(|v| value_of(*v))
}

/// Points of the distribution: evenly over the shares, and denser towards both ends.
fn shares(sorted: &[u32], highest: Option<f64>) -> Vec<(f64, f64)> {
    let count = sorted.len();
    let mut ranks: Vec<usize> = if count <= 4 * SHARES {
        (0..count).collect()
    } else {
        let even = (0..=SHARES).map(|i| (count - 1) * i / SHARES);
        // Sixteen to each doubling of the distance from an end.
        let steps = (0..).map(|i| 2_f64.powf(f64::from(i) / 16.0) as usize - 1);
        let near = steps.take_while(|d| *d < count / SHARES);
        even.chain(near.flat_map(|d| [d, count - 1 - d])).collect()
    };
    ranks.sort_unstable();
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut last = None;
    for value in ranks.into_iter().map(|rank| sorted[rank]) {
        if last.replace(value) != Some(value) {
            let up_to = sorted.partition_point(|v| *v <= value);
            points.push((value_of(value), up_to as f64 / count as f64));
        }
    }
    if let (Some(point), Some(highest)) = (points.last_mut(), highest) {
        point.0 = highest;
    }
    points
}

/// Lost packets, in ascending order, as at most 2^14 spans, none wider than that part of the whole.
fn spans(lost: &[f64]) -> Vec<Lost> {
    let (Some(&low), Some(&high)) = (lost.first(), lost.last()) else {
        return Vec::new();
    };
    // Half of each first, since the difference of the largest numbers is not one.
    let width = high / 2.0 - low / 2.0;
    let part = |x: f64| ((x / 2.0 - low / 2.0) / width * 16_383.0) as u32;
    let mut spans: Vec<Lost> = Vec::new();
    for &x in lost {
        match spans.last_mut() {
            Some(span) if part(span.x.0) == part(x) => {
                span.x.1 = x;
                span.count += 1;
            }
            _ => spans.push(Lost {
                x: (x, x),
                count: 1,
            }),
        }
    }
    spans
}

#[cfg(test)]
mod tests;
