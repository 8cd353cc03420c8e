//! The numbers of one moment.

use super::Histogram;

/// Counts of a histogram: the upper bound of each class in microseconds, and its count.
pub(crate) type Classes = Vec<(f64, u64)>;

/// The numbers of one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// A number for each series, in their order; not a number if there is none.
    pub(crate) numbers: Vec<f64>,
    pub(crate) round_trips: Classes,
    pub(crate) lateness: Classes,
}

impl Reading {
    fn classes(&self, of: Histogram) -> &Classes {
        match of {
            Histogram::RoundTrips => &self.round_trips,
            Histogram::Lateness => &self.lateness,
        }
    }

    /// A quantile of what was counted since an earlier reading, interpolated within its class; not a number if nothing was.
    pub(super) fn quantile(&self, before: &Self, of: Histogram, percent: u8) -> f64 {
        let (now, before) = (self.classes(of), before.classes(of));
        let count = |place: usize| {
            let then = before.get(place).map_or(0, |(_, count)| *count);
            now[place].1.saturating_sub(then)
        };
        let all: u64 = (0..now.len()).map(count).sum();
        if all == 0 {
            return f64::NAN;
        }
        let wanted = all as f64 * f64::from(percent) / 100.0;
        let (mut seen, mut from) = (0.0, 0.0);
        for (place, (bound, _)) in now.iter().enumerate() {
            let here = count(place) as f64;
            if here > 0.0 && seen + here >= wanted {
                // The last class has no bound: its lower one is all that is known.
                let width = if bound.is_finite() { bound - from } else { 0.0 };
                return from + width * (wanted - seen) / here;
            }
            seen += here;
            from = *bound;
        }
        from
    }
}
