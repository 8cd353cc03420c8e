//! The median and the range of runs that measured the same thing.

/// The run of median cost; of an even number of runs, the cheaper one in the middle.
pub(crate) fn median_by<R>(runs: &[R], cost: impl Fn(&R) -> f64) -> Option<&R> {
    let mut sorted: Vec<&R> = runs.iter().collect();
    sorted.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// The lowest and the highest cost of a run.
pub(crate) fn range_by<R>(runs: &[R], cost: impl Fn(&R) -> f64) -> Option<(f64, f64)> {
    let costs = || runs.iter().map(&cost);
    Some((costs().reduce(f64::min)?, costs().reduce(f64::max)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_one_of_the_runs_and_the_range_has_their_ends() {
        let runs = [9.0, 3.0, 5.0, 8.0];
        assert_eq!(median_by(&runs, |&run| run), Some(&5.0));
        assert_eq!(range_by(&runs, |&run| run), Some((3.0, 9.0)));
        let none: [f64; 0] = [];
        assert_eq!(median_by(&none, |&run| run), None);
        assert_eq!(range_by(&none, |&run| run), None);
    }
}
