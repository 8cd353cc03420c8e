//! Percentiles of many values in little memory: exact for few values, and within 0.5 % for many.

/// Values stored exactly before they are put into buckets.
const EXACT_MAX: usize = 1_024;
/// Buckets per power of two, as a power of two: a value differs from its bucket's middle by at most 1/256.
const BUCKET_BITS: u32 = 7;
const BUCKETS: usize = 1 << BUCKET_BITS;

/// Counts of values by size. Memory grows with the powers of two that occur, 1 KiB each.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    /// Every value, while there are few.
    exact: Vec<u64>,
    octaves: Vec<Octave>,
    count: u64,
    /// The smallest and the largest value: the middle of a bucket may be beyond them.
    range: Option<(u64, u64)>,
}

/// Values with the same highest bit. Values below 128 are all in the first, each in a bucket of its own.
#[derive(Debug, Clone)]
struct Octave {
    total: u64,
    buckets: Option<Box<[u64; BUCKETS]>>,
}

impl Histogram {
    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        let (low, high) = self.range.unwrap_or((value, value));
        self.range = Some((low.min(value), high.max(value)));
        if !self.octaves.is_empty() {
            self.place(value);
        } else if self.exact.len() < EXACT_MAX {
            self.exact.push(value);
        } else {
            for value in std::mem::take(&mut self.exact) {
                self.place(value);
            }
            self.place(value);
        }
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest value that `per_million` of all values do not exceed (nearest rank); `None` without values.
    /// 500,000 gives the median.
    #[must_use]
    pub fn quantile(&self, per_million: u32) -> Option<u64> {
        self.quantiles([per_million]).map(|[value]| value)
    }

    /// Several percentiles at once.
    #[must_use]
    pub fn quantiles<const N: usize>(&self, per_million: [u32; N]) -> Option<[u64; N]> {
        if self.count == 0 {
            return None;
        }
        let ranks = per_million.map(|share| rank(self.count, share));
        if self.octaves.is_empty() {
            let mut sorted = self.exact.clone();
            sorted.sort_unstable();
            return Some(ranks.map(|rank| sorted[(rank - 1) as usize]));
        }
        let (low, high) = self.range?;
        Some(ranks.map(|rank| self.value_at(rank).clamp(low, high)))
    }

    fn place(&mut self, value: u64) {
        let (octave, bucket) = place(value);
        while self.octaves.len() <= octave {
            self.octaves.push(Octave {
                total: 0,
                buckets: None,
            });
        }
        let octave = &mut self.octaves[octave];
        octave.total += 1;
        let empty = || Box::new([0; BUCKETS]);
        octave.buckets.get_or_insert_with(empty)[bucket] += 1;
    }

    fn value_at(&self, rank: u64) -> u64 {
        let mut before = 0;
        for (number, octave) in self.octaves.iter().enumerate() {
            if before + octave.total < rank {
                before += octave.total;
                continue;
            }
            for (bucket, count) in octave.buckets.iter().flat_map(|b| b.iter()).enumerate() {
                before += count;
                if before >= rank {
                    return middle(number, bucket);
                }
            }
        }
        0
    }
}

/// The rank, from 1, of a share of `count` values.
pub(crate) fn rank(count: u64, per_million: u32) -> u64 {
    let rank = (u128::from(count) * u128::from(per_million)).div_ceil(1_000_000);
    (rank as u64).clamp(1, count)
}

fn place(value: u64) -> (usize, usize) {
    if value < BUCKETS as u64 {
        return (0, value as usize);
    }
    let shift = value.ilog2() - BUCKET_BITS;
    (shift as usize + 1, (value >> shift) as usize - BUCKETS)
}

fn middle(octave: usize, bucket: usize) -> u64 {
    match octave.checked_sub(1) {
        None => bucket as u64,
        Some(shift) => {
            let low = ((bucket + BUCKETS) as u64) << shift;
            low + ((1_u64 << shift) >> 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHARES: [u32; 6] = [0, 500_000, 900_000, 990_000, 999_000, 1_000_000];

    fn sorted_quantile(values: &mut [u64], share: u32) -> u64 {
        values.sort_unstable();
        values[(rank(values.len() as u64, share) - 1) as usize]
    }

    #[test]
    fn no_percentile_is_beyond_the_values() {
        let mut histogram = Histogram::default();
        // The buckets of these values are 64 wide.
        for value in std::iter::repeat_n(10_001, 2_000) {
            histogram.add(value);
        }
        assert_eq!(
            histogram.quantiles([0, 500_000, 1_000_000]),
            Some([10_001; 3])
        );
    }

    #[test]
    fn few_values_give_exact_percentiles() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(500_000), None);
        for value in (1..=1_000).rev() {
            histogram.add(value);
        }
        let all = histogram.quantiles([500_000, 900_000, 990_000, 999_000]);
        assert_eq!(all, Some([500, 900, 990, 999]));
    }

    proptest! {
        #[test]
        fn many_values_give_percentiles_within_half_a_percent(
            mut values in prop::collection::vec(0_u32..=64, 1_025..3_000),
            seed: u64,
        ) {
            // Spread over all powers of two.
            let mut values: Vec<u64> = values.drain(..).enumerate()
                .map(|(index, bits)| {
                    let random = seed.wrapping_mul(index as u64 | 1).rotate_left(29);
                    random.checked_shr(bits).unwrap_or(0)
                })
                .collect();
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.add(value));
            prop_assert_eq!(histogram.count(), values.len() as u64);
            for share in SHARES {
                let exact = sorted_quantile(&mut values, share);
                let found = histogram.quantile(share).unwrap();
                prop_assert!(found.abs_diff(exact) <= exact / 200, "{} {} {}", share, found, exact);
            }
        }
    }
}
