use super::*;
use proptest::prelude::*;

fn samples(points: &[(f64, f64)], limit: usize) -> Samples {
    let mut thinner = Thinner::with_limit(limit);
    for (x, y) in points {
        thinner.push(*x, *y);
    }
    thinner.into_samples()
}

/// The lowest and the highest of the samples whose x is from one bound to the other.
fn extremes(points: &[(f64, f64)], (from, to): (f64, f64)) -> (f64, f64) {
    let inside = points.iter().filter(|p| (from..=to).contains(&p.0));
    inside.fold((f64::MAX, f64::MIN), |(low, high), p| {
        (low.min(p.1), high.max(p.1))
    })
}

#[test]
fn percentiles_are_within_the_exact_extremes() {
    // As a number of 32 bits, 0.1 is larger, and 0.3 - 0.1 smaller.
    for value in [0.1, 0.3 - 0.1, 11.650_000_1] {
        let kept = samples(&[(0.0, value), (1.0, value)], 8);
        assert_eq!(kept.percentiles(), [Some(value); 3]);
    }
}

proptest! {
    #[test]
    fn every_level_keeps_the_extremes_of_every_column(
        values in prop::collection::vec(-1e6..1e6_f64, 1..600),
        limit in 2_usize..64,
    ) {
        let points: Vec<_> = (0..).map(f64::from).zip(values).collect();
        let kept = samples(&points, limit);
        prop_assert!(kept.columns.len() <= limit);
        let mut level = kept.columns.clone();
        loop {
            for column in &level {
                prop_assert_eq!((column.min, column.max), extremes(&points, column.x));
                let at = |x: f64| points[x as usize].1;
                prop_assert_eq!((column.first, column.last), (at(column.x.0), at(column.x.1)));
            }
            prop_assert_eq!(level.iter().map(|c| c.count).sum::<u64>(), points.len() as u64);
            if level.len() == 1 {
                break;
            }
            level = halve(&level);
        }
    }

    #[test]
    fn samples_in_any_order_give_sorted_columns_with_all_samples(
        mut points in prop::collection::vec((-1e3..1e3_f64, -1e3..1e3_f64), 1..400),
        limit in 2_usize..500,
    ) {
        let kept = samples(&points, limit);
        prop_assert!(kept.columns.is_sorted_by(|a, b| a.x.0 <= b.x.0));
        prop_assert!(kept.columns.len() <= limit);
        prop_assert_eq!(kept.columns.iter().map(|c| c.count).sum::<u64>(), points.len() as u64);
        prop_assert_eq!(kept.range(), Some(extremes(&points, (-1e9, 1e9))));
        if limit >= points.len() {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let all: Vec<f64> = kept.columns.iter().map(|c| c.x.0).collect();
            let wanted: Vec<f64> = points.iter().map(|p| p.0).collect();
            prop_assert_eq!(all, wanted);
        }
    }

    #[test]
    fn a_distribution_rises_and_ends_at_one(
        values in prop::collection::vec(-1e6..1e6_f64, 1..9000),
    ) {
        let points: Vec<_> = values.iter().map(|y| (0.0, *y)).collect();
        let kept = samples(&points, 8);
        let shares = kept.distribution();
        prop_assert!(shares.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
        prop_assert!(shares.iter().all(|s| s.1 > 0.0));
        prop_assert_eq!(shares.last().map(|s| s.1), Some(1.0));
        prop_assert_eq!(shares.last().map(|s| s.0), kept.range().map(|r| r.1));
    }

    #[test]
    fn numbers_made_of_values_have_their_order(a in any::<f32>(), b in any::<f32>()) {
        prop_assume!(a.is_finite() && b.is_finite());
        let (a, b) = (f64::from(a), f64::from(b));
        prop_assert_eq!(ordered(a).cmp(&ordered(b)), a.partial_cmp(&b).unwrap());
        prop_assert_eq!(value_of(ordered(a)), a);
    }
}

#[test]
fn percentiles_are_of_the_nearest_rank() {
    let points: Vec<_> = (1..=100).map(|i| (f64::from(i), f64::from(i))).collect();
    let kept = samples(&points, 4);
    assert_eq!(kept.percentiles(), [Some(50.0), Some(95.0), Some(99.0)]);
    assert_eq!(kept.mean(), Some(50.5));
    assert_eq!(kept.range(), Some((1.0, 100.0)));
}

#[test]
fn nothing_at_all_and_what_is_not_a_number_are_kept_apart() {
    let mut thinner = Thinner::new();
    thinner.push(f64::NAN, 1.0);
    thinner.push(1.0, f64::INFINITY);
    thinner.push_lost(f64::NAN);
    let kept = thinner.into_samples();
    assert_eq!((kept.count(), kept.ignored(), kept.lost()), (0, 3, 0));
    assert_eq!((kept.range(), kept.mean(), kept.loss()), (None, None, None));
    assert!(kept.distribution().is_empty());
}

#[test]
fn losses_are_counted_whatever_their_number() {
    let mut thinner = Thinner::new();
    thinner.push(0.0, 1.0);
    for i in (0..99_999).rev() {
        thinner.push_lost(f64::from(i));
    }
    let kept = thinner.into_samples();
    assert_eq!(kept.lost(), 99_999);
    assert_eq!(kept.loss(), Some(0.999_99));
    assert!(kept.lost.len() <= 1 << 14);
    assert_eq!(kept.lost.iter().map(|l| l.count).sum::<u64>(), 99_999);
    assert!(kept.lost.is_sorted_by(|a, b| a.x.1 < b.x.0));
}
