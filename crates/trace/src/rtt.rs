//! Sums, bounds and distributions of times.

/// Count, bounds and sums of a set of times, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// Shortest; 0 if there is none.
    pub min: i64,
    /// Longest; 0 if there is none.
    pub max: i64,
    /// Sum.
    pub sum: i64,
    /// Sum of squares.
    pub squares: f64,
}

impl Times {
    /// None at all.
    pub(crate) const NONE: Times = Times {
        count: 0,
        min: 0,
        max: 0,
        sum: 0,
        squares: 0.0,
    };

    /// Adds one.
    pub fn add(&mut self, time: i64) {
        if self.count == 0 {
            (self.min, self.max) = (time, time);
        } else {
            self.min = self.min.min(time);
            self.max = self.max.max(time);
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(time);
        self.squares += time as f64 * time as f64;
    }

    /// Their mean; 0 if there is none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.sum as f64 / self.count as f64
    }

    /// Their sample standard deviation; 0 for fewer than three, as in tcptrace.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        if self.count <= 2 {
            return 0.0;
        }
        let count = self.count as f64;
        let sum = self.sum as f64;
        ((self.squares - sum * sum / count) / (count - 1.0))
            .max(0.0)
            .sqrt()
    }
}

/// A distribution of times in buckets 3 % wide, so that a percentile is correct within 1.6 %.
#[derive(Debug, Clone, Default)]
pub struct Percentiles {
    /// Buckets that have a count, in order.
    buckets: Vec<(u16, u32)>,
    /// Index of the bucket of the last time.
    recent: u32,
}

/// Buckets for each power of two, as a power of two.
const BITS: u32 = 5;

fn bucket(time: i64) -> u16 {
    let time = time.max(0) as u64;
    if time < 1 << BITS {
        return time as u16;
    }
    let shift = 63 - time.leading_zeros() - BITS;
    let mantissa = (time >> shift) as u32 & ((1 << BITS) - 1);
    (((shift + 1) << BITS) | mantissa) as u16
}

/// The middle of a bucket.
fn middle(bucket: u16) -> i64 {
    let bucket = u64::from(bucket);
    if bucket < 1 << BITS {
        return bucket as i64;
    }
    let shift = (bucket >> BITS) - 1;
    let low = ((1 << BITS) | (bucket & ((1 << BITS) - 1))) << shift;
    (low + (1u64 << shift >> 1)) as i64
}

impl Percentiles {
    /// Counts one time, in nanoseconds.
    pub fn add(&mut self, time: i64) {
        let bucket = bucket(time);
        if let Some(entry) = self.buckets.get_mut(self.recent as usize)
            && entry.0 == bucket
        {
            entry.1 = entry.1.saturating_add(1);
            return;
        }
        match self.buckets.binary_search_by_key(&bucket, |entry| entry.0) {
            Ok(at) => {
                self.buckets[at].1 = self.buckets[at].1.saturating_add(1);
                self.recent = at as u32;
            }
            Err(at) => {
                self.buckets.insert(at, (bucket, 1));
                self.recent = at as u32;
            }
        }
    }

    /// The percentile `share` (0 to 1), in nanoseconds; `None` if there are no times.
    #[must_use]
    pub fn at(&self, share: f64) -> Option<i64> {
        let count: u64 = self.buckets.iter().map(|entry| u64::from(entry.1)).sum();
        let rank = ((share.clamp(0.0, 1.0) * count as f64).ceil() as u64).max(1);
        let mut below = 0;
        for &(bucket, count) in &self.buckets {
            below += u64::from(count);
            if below >= rank {
                return Some(middle(bucket));
            }
        }
        None
    }

    /// Reads the memory that most samples need.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.buckets.first().map_or(0, |entry| u64::from(entry.1))
    }

    /// Removes all times.
    pub fn clear(&mut self) {
        self.buckets.clear();
        self.recent = 0;
    }

    /// Buckets and their counts, for freezing.
    #[must_use]
    pub fn buckets(&self) -> &[(u16, u32)] {
        &self.buckets
    }

    /// Adds a frozen bucket. False if it is invalid or not above the buckets before it.
    #[must_use]
    pub(crate) fn restore(&mut self, kept: u16, count: u32) -> bool {
        let above = self.buckets.last().is_none_or(|last| last.0 < kept);
        self.buckets.push((kept, count));
        above && kept <= bucket(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_mean_and_deviation_are_those_of_the_samples() {
        let mut times = Times::default();
        for time in [2, 4, 4, 4, 5, 5, 7, 9] {
            times.add(time);
        }
        assert_eq!((times.count, times.min, times.max), (8, 2, 9));
        assert!((times.mean() - 5.0).abs() < 1e-12);
        assert!((times.deviation() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_zero_is_a_sample_like_others() {
        let mut times = Times::default();
        times.add(0);
        times.add(10);
        assert_eq!((times.min, times.max), (0, 10));
    }

    proptest! {
        #[test]
        fn a_percentile_is_within_two_per_cent(mut samples in prop::collection::vec(0i64..100_000_000_000, 1..200), share in 0.0f64..1.0) {
            let mut percentiles = Percentiles::default();
            for sample in &samples {
                percentiles.add(*sample);
            }
            samples.sort_unstable();
            let rank = ((share * samples.len() as f64).ceil() as usize).max(1);
            let exact = samples[rank - 1] as f64;
            let given = percentiles.at(share).unwrap() as f64;
            prop_assert!((given - exact).abs() <= exact * 0.02 + 1.0, "{given} for {exact}");
        }
    }
}
