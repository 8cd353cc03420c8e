//! A convex hull of points over time, the lower one, which a clock's offset and drift follow from.

/// Vertices kept at most. A hull of random points has a few dozen.
const VERTICES_MAX: usize = 4096;

/// The lower hull of points `(time, value)`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hull {
    points: Vec<(i64, i64)>,
}

impl Hull {
    /// Adds a point. Points may come in any order of time.
    #[inline]
    pub(crate) fn add(&mut self, time: i64, value: i64) {
        match self.points.last() {
            Some(last) if time <= last.0 => self.insert(time, value),
            _ => {
                self.points.push((time, value));
                self.straighten_before(self.points.len() - 1);
            }
        }
    }

    #[cold]
    fn insert(&mut self, time: i64, value: i64) {
        let at = self.points.partition_point(|point| point.0 < time);
        match self.points.get(at) {
            Some(same) if same.0 == time => {
                if value >= same.1 {
                    return;
                }
                self.points[at].1 = value;
            }
            Some(after) => {
                if at > 0 && !is_below(self.points[at - 1], (time, value), *after) {
                    return;
                }
                self.points.insert(at, (time, value));
            }
            None => self.points.push((time, value)),
        }
        self.straighten_after(at);
        self.straighten_before(at);
    }

    /// Removes points before `at` that are no longer on the hull.
    #[inline]
    fn straighten_before(&mut self, mut at: usize) {
        while at >= 2 && !is_below(self.points[at - 2], self.points[at - 1], self.points[at]) {
            self.points.remove(at - 1);
            at -= 1;
        }
        if self.points.len() > VERTICES_MAX {
            // Only a prepared capture has so many. The line may then be too high by less than the vertices' distance.
            let mut index = 0;
            let last = self.points.len() - 1;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1 || index == last + 1
            });
        }
    }

    fn straighten_after(&mut self, at: usize) {
        while at + 2 < self.points.len()
            && !is_below(self.points[at], self.points[at + 1], self.points[at + 2])
        {
            self.points.remove(at + 1);
        }
    }

    /// Adds all points of another hull.
    pub(crate) fn join(&mut self, other: &Hull) {
        for &(time, value) in &other.points {
            self.add(time, value);
        }
    }

    /// The smallest `value - rate * (time - origin)`; `None` without points.
    pub(crate) fn least(&self, rate: f64, origin: i64) -> Option<f64> {
        let values = self
            .points
            .iter()
            .map(|&(time, value)| value as f64 - rate * time.wrapping_sub(origin) as f64);
        values.reduce(f64::min)
    }

    /// Its vertices in the order of time.
    pub(crate) fn points(&self) -> &[(i64, i64)] {
        &self.points
    }
}

/// Whether `b` is below the line from `a` to `c`.
#[inline]
fn is_below(a: (i64, i64), b: (i64, i64), c: (i64, i64)) -> bool {
    let (width, step) = (
        i128::from(c.0) - i128::from(a.0),
        i128::from(b.0) - i128::from(a.0),
    );
    let (height, rise) = (
        i128::from(c.1) - i128::from(a.1),
        i128::from(b.1) - i128::from(a.1),
    );
    rise.saturating_mul(width) < height.saturating_mul(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_least_value_is_that_of_all_points(
            points in prop::collection::vec((0i64..1000, -1000i64..1000), 1..60),
            rate in -2.0f64..2.0,
        ) {
            let mut hull = Hull::default();
            for &(time, value) in &points {
                hull.add(time, value);
            }
            let all = points.iter().map(|&(time, value)| value as f64 - rate * time as f64);
            let least = all.reduce(f64::min).unwrap();
            prop_assert!((hull.least(rate, 0).unwrap() - least).abs() < 1e-6);
            let times: Vec<i64> = hull.points().iter().map(|point| point.0).collect();
            prop_assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
