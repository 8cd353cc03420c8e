//! Where an axis begins and ends, and where its ticks are.

use crate::axis::Axis;
use crate::number;

/// A place on an axis: with a label, a major tick; without, a faint line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: Option<String>,
}

/// An axis with its ends chosen.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    lo: f64,
    hi: f64,
    log: bool,
    pub(crate) ticks: Vec<Tick>,
}

impl Scale {
    /// Chooses round ends that hold all `values`, and at most `room` labelled ticks or so.
    pub(crate) fn fit(values: impl Iterator<Item = f64>, axis: &Axis, room: usize) -> Self {
        let room = room.clamp(2, 20);
        let usable = values.filter(|v| v.is_finite() && (!axis.log || *v > 0.0));
        let (mut lo, mut hi) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| {
            (lo.min(v), hi.max(v))
        });
        if lo > hi {
            (lo, hi) = (1.0, 10.0);
        }
        if let Some(max) = axis
            .max
            .filter(|m| m.is_finite() && (!axis.log || *m > 0.0))
        {
            (lo, hi) = (lo.min(max), max);
        }
        // Nothing measured is larger or smaller; the number of decades stays bounded.
        let least = if axis.log { 1e-15 } else { -1e15 };
        (lo, hi) = (lo.clamp(least, 1e15), hi.clamp(least, 1e15));
        if axis.log {
            Self::fit_log(lo, hi, room)
        } else {
            Self::fit_linear(lo, hi, room)
        }
    }

    /// The same of a value and its unit, each for people to read: a unit of time is one in which the ends read well, and
    /// on a log axis each label has its own.
    pub(crate) fn fit_units(ends: [f64; 2], axis: &Axis, room: usize) -> (Self, Axis) {
        if let Some(seconds) = axis.seconds().filter(|_| axis.log) {
            let mut scale = Self::fit(ends.into_iter(), axis, room);
            for tick in scale.ticks.iter_mut().filter(|t| t.label.is_some()) {
                tick.label = Some(number::human_seconds(tick.at * seconds));
            }
            let unit = String::new();
            return (
                scale,
                Axis {
                    unit,
                    ..axis.clone()
                },
            );
        }
        let most = axis.max.unwrap_or(ends[0].abs().max(ends[1].abs()));
        let (factor, unit) = axis.unit_for(most);
        let shown = Axis {
            unit: unit.to_owned(),
            max: axis.max.map(|max| max * factor),
            ..axis.clone()
        };
        let mut scale = Self::fit(ends.into_iter().map(|end| end * factor), &shown, room);
        scale.lo /= factor;
        scale.hi /= factor;
        scale.ticks.iter_mut().for_each(|tick| tick.at /= factor);
        (scale, shown)
    }

    fn fit_linear(mut lo: f64, mut hi: f64, room: usize) -> Self {
        // Differences only read truly from zero; leave it out only where it would crush the data.
        if lo >= 0.0 && lo <= 0.6 * hi {
            lo = 0.0;
        }
        if hi <= lo {
            (lo, hi) = if lo == 0.0 {
                (0.0, 1.0)
            } else {
                (lo - lo.abs() / 2.0, hi + hi.abs() / 2.0)
            };
        }
        let step = round_step((hi - lo) / room as f64);
        // A hundredth of a step beyond a round number is not worth another step.
        let (first, last) = ((lo / step).floor(), (hi / step - 0.01).ceil());
        let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let count = (last - first).clamp(1.0, 100.0) as usize;
        let ticks = (0..=count)
            .map(|i| (first + i as f64) * step)
            .map(|at| Tick {
                at,
                label: Some(number::grouped(at, decimals)),
            })
            .collect();
        Self {
            lo: first * step,
            hi: last * step,
            log: false,
            ticks,
        }
    }

    /// Seconds as minutes or hours, where there are enough of them; `None` where plain seconds read better.
    ///
    /// Ends at the last value, not at a round one.
    pub(crate) fn fit_time(lo: f64, hi: f64, room: usize) -> Option<Self> {
        const STEPS: [f64; 16] = [
            10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10_800.0,
            21_600.0, 43_200.0, 86_400.0, 604_800.0,
        ];
        if !(hi - lo >= 120.0 && hi < 1e8) {
            return None;
        }
        let least = (hi - lo) / room.clamp(2, 20) as f64;
        let step = STEPS
            .into_iter()
            .find(|step| *step >= least)
            .unwrap_or(least);
        let ticks = ((lo / step).ceil() as i64..=(hi / step).floor() as i64)
            .map(|i| i as f64 * step)
            .map(|at| Tick {
                at,
                label: Some(number::clock(at)),
            });
        Some(Self {
            lo,
            hi,
            log: false,
            ticks: ticks.collect(),
        })
    }

    fn fit_log(lo: f64, hi: f64, room: usize) -> Self {
        let (lo, hi) = (round_down(lo), round_up(hi));
        let (lo, hi) = if hi <= lo {
            (round_down(lo / 1.5), round_up(hi * 1.5))
        } else {
            (lo, hi)
        };
        let decades = lo.log10().floor() as i32..=hi.log10().ceil() as i32;
        let inside = |v: &f64| *v >= lo * (1.0 - 1e-9) && *v <= hi * (1.0 + 1e-9);
        let at_mantissas = |mantissas: &[f64], every: i32| -> Vec<f64> {
            decades
                .clone()
                .filter(|d| d.rem_euclid(every) == 0)
                .flat_map(|d| mantissas.iter().map(move |m| m * 10f64.powi(d)))
                .filter(inside)
                .collect()
        };
        let labelled = [
            (&[1.0, 2.0, 5.0][..], 1),
            (&[1.0], 1),
            (&[1.0], 2),
            (&[1.0], 3),
        ]
        .into_iter()
        .map(|(mantissas, every)| at_mantissas(mantissas, every))
        .find(|ticks| ticks.len() <= room)
        .unwrap_or_else(|| vec![lo, hi]);
        // A decade rarely starts both ends: the ends get a label of their own if few others do.
        let labelled = if labelled.len() < 2 {
            vec![lo, hi]
        } else {
            labelled
        };
        let faint: &[f64] = if (hi / lo).log10() <= 5.0 {
            &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
        } else {
            &[1.0]
        };
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
        let mut ticks: Vec<Tick> = at_mantissas(faint, 1)
            .into_iter()
            .filter(|at| !labelled.iter().any(|l| near(*l, *at)))
            .map(|at| Tick { at, label: None })
            .collect();
        ticks.extend(labelled.iter().map(|&at| Tick {
            at,
            label: Some(number::log_tick(at)),
        }));
        Self {
            lo,
            hi,
            log: true,
            ticks,
        }
    }

    /// How far along the axis `value` is, 0 at its start and 1 at its end; `None` if it has no place.
    pub(crate) fn position(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || (self.log && value <= 0.0) {
            return None;
        }
        Some(if self.log {
            (value / self.lo).log10() / (self.hi / self.lo).log10()
        } else {
            (value - self.lo) / (self.hi - self.lo)
        })
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is not (clearly) below `raw`.
fn round_step(raw: f64) -> f64 {
    round_up(raw.max(f64::MIN_POSITIVE * 1e10))
}

fn round_up(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|f| f * decade >= value * 0.995);
    factor.unwrap_or(10.0) * decade
}

fn round_down(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let factor = [5.0, 2.0]
        .into_iter()
        .find(|f| f * decade <= value * (1.0 + 1e-9));
    factor.unwrap_or(1.0) * decade
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<&str> {
        scale
            .ticks
            .iter()
            .filter_map(|t| t.label.as_deref())
            .collect()
    }

    #[test]
    fn a_linear_axis_starts_at_zero_and_ends_on_a_round_number() {
        let scale = Scale::fit([130.0, 10_001.0].into_iter(), &Axis::linear("n", ""), 6);
        assert_eq!(
            labels(&scale),
            ["0", "2,000", "4,000", "6,000", "8,000", "10,000"]
        );
        assert_eq!(scale.position(10_000.0), Some(1.0));
    }

    #[test]
    fn small_linear_steps_keep_their_decimals() {
        let scale = Scale::fit([0.0, 0.04].into_iter(), &Axis::linear("t", "s"), 5);
        assert_eq!(labels(&scale), ["0.00", "0.01", "0.02", "0.03", "0.04"]);
    }

    #[test]
    fn a_long_log_axis_labels_decades_only() {
        let scale = Scale::fit([0.013, 9_000.0].into_iter(), &Axis::log("t", "s"), 8);
        assert_eq!(
            labels(&scale),
            ["0.01", "0.1", "1", "10", "100", "1,000", "10,000"]
        );
        assert_eq!(scale.position(0.01), Some(0.0));
        assert_eq!(scale.position(0.0), None);
    }

    #[test]
    fn a_short_log_axis_labels_twos_and_fives() {
        let scale = Scale::fit([30.0, 400.0].into_iter(), &Axis::log("n", ""), 8);
        assert_eq!(labels(&scale), ["20", "50", "100", "200", "500"]);
    }

    #[test]
    fn no_values_one_value_and_equal_values_give_a_usable_axis() {
        for values in [
            &[][..],
            &[0.0],
            &[7.0, 7.0],
            &[-3.0],
            &[f64::NAN, f64::INFINITY],
        ] {
            for axis in [Axis::linear("v", ""), Axis::log("v", "")] {
                let scale = Scale::fit(values.iter().copied(), &axis, 6);
                assert!(labels(&scale).len() >= 2, "{values:?} {axis:?}");
                assert!(scale.hi > scale.lo, "{values:?} {axis:?}");
            }
        }
    }

    #[test]
    fn an_axis_with_a_given_end_stops_there() {
        let scale = Scale::fit(
            [0.0, 80.0].into_iter(),
            &Axis::linear("t", "").up_to(3.0),
            6,
        );
        assert_eq!(scale.position(3.0), Some(1.0));
        assert!(scale.position(80.0).unwrap() > 1.0);
    }
}
