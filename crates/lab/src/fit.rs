//! Fits power laws to measured curves: how fast a cost grows, and when a run that was stopped would
//! have ended.
//!
//! Left out: fits with a constant term, and confidence intervals from residuals. Benchmark samples
//! are not independent, so such intervals would be too narrow.

use serde::Serialize;

/// Number of points at which a curve is read for a fit, evenly spread over the logarithm of the
/// count.
const READINGS: usize = 16;

/// `y = factor * x^exponent`, fitted by least squares over the logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PowerLaw {
    /// How fast `y` grows: 0 is flat, 1 linear, 2 quadratic.
    pub exponent: f64,
    /// `y` at `x = 1`.
    pub factor: f64,
    /// The share of the logarithms' variance that the law explains, 0 to 1; 1 for a flat law that fits.
    pub r_squared: f64,
}

impl PowerLaw {
    /// The law's `y` at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.factor * x.powf(self.exponent)
    }
}

/// Fits a power law to the points whose coordinates are both finite and above zero.
///
/// `None` without two points that differ in `x`.
pub fn log_log(points: &[(f64, f64)]) -> Option<PowerLaw> {
    let logs: Vec<(f64, f64)> = points
        .iter()
        .filter(|(x, y)| x.is_finite() && y.is_finite() && *x > 0.0 && *y > 0.0)
        .map(|(x, y)| (x.ln(), y.ln()))
        .collect();
    let n = logs.len() as f64;
    let mean_x = logs.iter().map(|p| p.0).sum::<f64>() / n;
    let mean_y = logs.iter().map(|p| p.1).sum::<f64>() / n;
    let sum = |f: &dyn Fn(f64, f64) -> f64| {
        logs.iter()
            .map(|(x, y)| f(x - mean_x, y - mean_y))
            .sum::<f64>()
    };
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    if logs.len() < 2 || xx <= 1e-12 {
        return None;
    }
    let exponent = xy / xx;
    let r_squared = if yy <= 1e-12 {
        1.0
    } else {
        (xy * xy / (xx * yy)).min(1.0)
    };
    Some(PowerLaw {
        exponent,
        factor: (mean_y - exponent * mean_x).exp(),
        r_squared,
    })
}

/// Fits time against count over the last part of a run, from `share` of the last count onwards.
///
/// `samples` are `(seconds, count)`, neither ever falling. The curve is read at points evenly
/// spread over the logarithm of the count, so the sampling rate does not matter. `None` if there
/// are fewer than four distinct readings.
pub fn growth(samples: &[(f64, u64)], share: f64) -> Option<PowerLaw> {
    let last = samples.last()?.1 as f64;
    let first = (last * share.clamp(0.0, 1.0)).max(1.0);
    let mut readings: Vec<(f64, f64)> = Vec::with_capacity(READINGS);
    for i in 0..READINGS {
        let wanted = first * (last / first).powf(i as f64 / (READINGS - 1) as f64);
        let at = samples.partition_point(|(_, n)| (*n as f64) < wanted * (1.0 - 1e-9));
        let Some(&(seconds, count)) = samples.get(at) else {
            continue;
        };
        let reading = (count as f64, seconds);
        if seconds > 0.0 && readings.last().is_none_or(|r| r.0 < reading.0) {
            readings.push(reading);
        }
    }
    if readings.len() < 4 {
        None
    } else {
        log_log(&readings)
    }
}

/// The estimated end of a run that was stopped, assuming that it continues as in its last part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Extrapolation {
    /// Seconds to the target, by the exponent over the last three quarters of the run.
    pub seconds: f64,
    /// The smallest and the largest estimate from three choices of the last part.
    ///
    /// A wide span means that the curve still bends; it does not bound the truth.
    pub span: (f64, f64),
    /// The exponent of time against count that was used; never below 1.
    pub exponent: f64,
    /// The target's count divided by the last measured count.
    pub reach: f64,
}

/// Extends a run's `(seconds, count)` samples to `target` by a power law of the count.
///
/// The law starts at the last sample. Exponents below 1 are raised to 1, so a run never speeds up
/// beyond what was measured. `None` if nothing was counted or the run is too short to fit. If the
/// run had already reached the target, the result is the time at which it did, with `reach` 1.
pub fn extrapolate(samples: &[(f64, u64)], target: u64) -> Option<Extrapolation> {
    if let Some(&(seconds, _)) = samples.iter().find(|(_, n)| *n >= target) {
        let span = (seconds, seconds);
        let exponent = growth(samples, 0.25).map_or(1.0, |law| law.exponent.max(1.0));
        return Some(Extrapolation {
            seconds,
            span,
            exponent,
            reach: 1.0,
        });
    }
    let &(end, reached) = samples.last()?;
    if reached == 0 || end <= 0.0 {
        return None;
    }
    let reach = target as f64 / reached as f64;
    let with = |law: PowerLaw| end * reach.powf(law.exponent.max(1.0));
    let law = growth(samples, 0.25)?;
    let seconds = with(law);
    let others = [0.1, 0.5]
        .into_iter()
        .filter_map(|share| growth(samples, share))
        .map(with);
    let span = others.fold((seconds, seconds), |(lo, hi), s| (lo.min(s), hi.max(s)));
    Some(Extrapolation {
        seconds,
        span,
        exponent: law.exponent.max(1.0),
        reach,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in which `n` tunnels take `factor * n^exponent` seconds, sampled each `step`.
    fn run(factor: f64, exponent: f64, until: u64, step: usize) -> Vec<(f64, u64)> {
        (1..=until)
            .step_by(step)
            .map(|n| (factor * (n as f64).powf(exponent), n))
            .collect()
    }

    fn close(got: f64, wanted: f64) {
        assert!((got / wanted - 1.0).abs() < 0.02, "{got} is not {wanted}");
    }

    #[test]
    fn an_exact_power_law_is_found() {
        let points: Vec<_> = (1..50)
            .map(|x| (f64::from(x), 3.0 * f64::from(x).powi(2)))
            .collect();
        let law = log_log(&points).unwrap();
        close(law.exponent, 2.0);
        close(law.factor, 3.0);
        close(law.r_squared, 1.0);
        close(law.at(10.0), 300.0);
    }

    #[test]
    fn a_flat_curve_has_exponent_zero() {
        let law = log_log(&[(10.0, 5.0), (100.0, 5.0), (1000.0, 5.0)]).unwrap();
        assert!(law.exponent.abs() < 1e-9 && law.r_squared == 1.0);
    }

    #[test]
    fn too_few_points_and_points_without_a_logarithm_give_no_law() {
        assert_eq!(log_log(&[]), None);
        assert_eq!(log_log(&[(1.0, 1.0)]), None);
        assert_eq!(log_log(&[(2.0, 1.0), (2.0, 9.0)]), None);
        assert_eq!(
            log_log(&[(0.0, 1.0), (-1.0, 2.0), (f64::NAN, 3.0), (4.0, 0.0)]),
            None
        );
    }

    #[test]
    fn growth_does_not_depend_on_how_often_a_part_was_sampled() {
        let mut samples = run(0.001, 1.5, 100, 1);
        samples.extend(
            run(0.001, 1.5, 10_000, 500)
                .into_iter()
                .filter(|s| s.1 > 100),
        );
        close(growth(&samples, 0.01).unwrap().exponent, 1.5);
    }

    #[test]
    fn growth_of_the_last_part_ignores_a_fixed_cost_at_the_start() {
        let samples: Vec<_> = (1..=10_000)
            .map(|n| (0.2 + 1e-6 * (n as f64).powi(2), n))
            .collect();
        let (whole, tail) = (
            growth(&samples, 0.0).unwrap(),
            growth(&samples, 0.25).unwrap(),
        );
        assert!(
            whole.exponent < 1.2 && tail.exponent > 1.9,
            "{whole:?} {tail:?}"
        );
    }

    #[test]
    fn a_stopped_quadratic_run_is_extended_quadratically() {
        let found = extrapolate(&run(1e-5, 2.0, 2_500, 10), 10_000).unwrap();
        close(found.seconds, 1e-5 * 1e8);
        close(found.exponent, 2.0);
        assert!((found.reach - 4.0).abs() < 0.05);
    }

    #[test]
    fn a_curve_that_still_bends_has_a_wide_span() {
        let samples: Vec<_> = (1..=2_000)
            .map(|n| (n as f64 * 1e-3 + 1e-10 * (n as f64).powi(3), n))
            .collect();
        let found = extrapolate(&samples, 10_000).unwrap();
        assert!(
            found.span.0 < found.seconds && found.seconds < found.span.1,
            "{found:?}"
        );
        assert!(
            found.seconds < 10.0 + 100.0,
            "the truth is above: {found:?}"
        );
    }

    #[test]
    fn a_run_is_never_assumed_to_speed_up() {
        let found = extrapolate(&run(1.0, 0.5, 100, 1), 10_000).unwrap();
        close(found.seconds, 10.0 * 100.0);
    }

    #[test]
    fn a_run_that_reached_its_target_is_not_extended() {
        let found = extrapolate(&run(0.5, 1.0, 100, 1), 100).unwrap();
        assert_eq!((found.seconds, found.reach), (50.0, 1.0));
        assert_eq!(extrapolate(&[(2.0, 10)], 10).unwrap().seconds, 2.0);
    }

    #[test]
    fn runs_too_short_to_say_anything_give_nothing() {
        assert_eq!(extrapolate(&[], 10), None);
        assert_eq!(extrapolate(&[(1.0, 0), (9.0, 0)], 10), None);
        assert_eq!(extrapolate(&[(0.0, 5)], 10), None);
        assert_eq!(extrapolate(&[(1.0, 1), (2.0, 2)], 10), None);
    }
}
