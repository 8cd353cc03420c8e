use super::*;

const AT: Instant = Instant::from_nanos(5_300_000_000);

fn after(ms: u64) -> Instant {
    AT + Duration::from_millis(ms)
}

/// A gauge, a rate, a least value and a quantile.
fn all() -> Vec<Series> {
    let kinds = [
        Kind::Gauge,
        Kind::Rate,
        Kind::Least,
        Kind::Quantile(Histogram::RoundTrips, 50),
    ];
    let series = kinds.into_iter().enumerate();
    let series = series.map(|(n, kind)| Series {
        name: format!("s{n}"),
        kind,
    });
    series.collect()
}

fn reading(gauge: f64, counter: f64, least: f64, trips: u64) -> Reading {
    Reading {
        numbers: vec![gauge, counter, least, f64::NAN],
        round_trips: vec![(64.0, 0), (128.0, trips), (f64::INFINITY, 0)],
        lateness: Vec::new(),
    }
}

fn history() -> History {
    History::new(all(), &reading(0.0, 0.0, f64::NAN, 0), after(200))
}

fn values(history: &History, step_s: u32, series: usize) -> Vec<Option<f64>> {
    let part = history.part(step_s, series, 0, usize::MAX);
    part.map_or(Vec::new(), |part| part.values)
}

#[test]
fn a_step_has_the_increase_the_last_value_the_least_and_the_quantile() {
    let mut history = history();
    assert!(!history.is_due(after(199)) && history.is_due(after(200)));
    history.record(&reading(7.0, 10.0, 3.0, 4), after(200));
    history.record(&reading(8.0, 15.0, f64::NAN, 4), after(1_200));
    assert_eq!(values(&history, 1, 0), [Some(7.0), Some(8.0)]);
    assert_eq!(values(&history, 1, 1), [Some(10.0), Some(5.0)]);
    assert_eq!(values(&history, 1, 2), [Some(3.0), None]);
    assert_eq!(values(&history, 1, 3), [Some(96.0), None]);
    let part = history.part(1, 0, 1, 1).unwrap();
    assert_eq!((part.first, part.values), (after(1_200), vec![Some(8.0)]));
    assert_eq!(history.part(1, 0, 2, 1), None);
    assert_eq!(history.part(60, 0, 0, 1), None, "no minute has ended");
}

#[test]
fn a_turn_after_a_long_wait_fills_the_rows_that_were_missed() {
    let mut history = history();
    history.record(&reading(7.0, 10.0, 3.0, 0), after(5_900));
    assert_eq!(values(&history, 1, 0), [Some(7.0); 6]);
    let mut rates = vec![Some(0.0); 6];
    rates[0] = Some(10.0);
    assert_eq!(values(&history, 1, 1), rates, "all of it before the wait");
    assert!(!history.is_due(after(6_199)) && history.is_due(after(6_200)));
    // A day and more without a turn: the rings are full, and the next step is the one that ends next.
    history.record(&reading(9.0, 11.0, 3.0, 0), after(200_000_000));
    assert_eq!(values(&history, 1, 0), [Some(9.0); SECONDS]);
    assert_eq!(values(&history, 60, 0), [Some(9.0); MINUTES]);
    assert!(!history.is_due(after(200_000_199)) && history.is_due(after(200_000_200)));
    let first = history.part(1, 0, 0, 1).unwrap().first;
    assert_eq!(first, after(200_000_200 - 1_000 * SECONDS as u64));
}

#[test]
fn a_minute_has_the_sum_of_its_seconds_and_the_least_of_them() {
    let mut history = history();
    for second in 0..180_u64 {
        let least = if second == 70 { 2.0 } else { 9.0 };
        let number = second as f64;
        history.record(
            &reading(number, number * 10.0, least, second),
            after(200 + second * 1_000),
        );
    }
    assert_eq!(
        values(&history, 60, 0),
        [Some(59.0), Some(119.0), Some(179.0)]
    );
    assert_eq!(
        values(&history, 60, 1),
        [Some(590.0), Some(600.0), Some(600.0)]
    );
    assert_eq!(values(&history, 60, 2), [Some(9.0), Some(2.0), Some(9.0)]);
    let first = history.part(60, 0, 0, 1).unwrap().first;
    assert_eq!(first, after(200 + 59_000));
    let seconds = &values(&history, 1, 1)[..60];
    let sum: f64 = seconds.iter().flatten().sum();
    assert_eq!(sum, 590.0);
}

#[test]
fn a_series_without_a_value_is_not_shown() {
    let mut history = history();
    for second in 0..10 {
        history.record(&reading(1.0, 0.0, f64::NAN, 0), after(200 + second * 1_000));
    }
    assert_eq!(values(&history, 1, 0).len(), 10);
    assert_eq!(history.part(1, 2, 0, 10), None);
    assert_eq!(history.part(1, 3, 0, 10), None);
    assert_eq!(history.part(5, 0, 0, 10), None, "no such step");
}

#[test]
fn a_quantile_is_interpolated_and_never_beyond_the_last_bound() {
    let before = Reading {
        round_trips: vec![(64.0, 5), (128.0, 0), (f64::INFINITY, 0)],
        ..Reading::default()
    };
    let quantile = |counts: [u64; 3], percent| {
        let [one, two, last] = counts;
        let now = Reading {
            round_trips: vec![(64.0, 5 + one), (128.0, two), (f64::INFINITY, last)],
            ..Reading::default()
        };
        now.quantile(&before, Histogram::RoundTrips, percent)
    };
    assert!(quantile([0, 0, 0], 50).is_nan());
    assert_eq!(quantile([4, 0, 0], 50), 32.0);
    assert_eq!(quantile([1, 1, 0], 99), 64.0 + 64.0 * 0.98);
    assert_eq!(quantile([0, 0, 3], 50), 128.0);
}

#[test]
fn the_rings_of_sixty_series_take_less_than_500_kb() {
    let series: Vec<_> = (0..60).map(|_| all().remove(0)).collect();
    let reading = Reading {
        numbers: vec![0.0; series.len()],
        ..Reading::default()
    };
    let history = History::new(series, &reading, AT);
    let bytes: usize = history.tracks.iter().map(|track| track.ring.bytes()).sum();
    assert!(bytes < 500_000, "{bytes}");
}
