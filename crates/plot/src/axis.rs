//! What an axis shows.

use serde::Serialize;

/// Units of time that axes adapt, the largest first, and how many seconds each is.
const TIMES: [(&str, f64); 5] = [
    ("s", 1.0),
    ("ms", 1e-3),
    ("\u{b5}s", 1e-6),
    ("us", 1e-6),
    ("ns", 1e-9),
];

/// What an axis shows: its name, its unit, and how values are laid along it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// What is measured, e.g. `time`.
    pub label: String,
    /// The unit, e.g. `s`; empty for a count.
    pub unit: String,
    /// Whether equal distances mean equal ratios; values of zero and below are then not drawn.
    pub log: bool,
    /// Where the axis ends when that is not the largest value; lines leave the picture there.
    pub max: Option<f64>,
}

impl Axis {
    /// An axis on which equal distances mean equal differences.
    pub fn linear(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            unit: unit.into(),
            log: false,
            max: None,
        }
    }

    /// An axis on which equal distances mean equal ratios.
    pub fn log(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self {
            log: true,
            ..Self::linear(label, unit)
        }
    }

    /// Ends the axis at `max`, in the axis's unit.
    #[must_use]
    pub fn up_to(self, max: f64) -> Self {
        Self {
            max: Some(max),
            ..self
        }
    }

    /// How many seconds the unit is, if it is one of time.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let own = TIMES.iter().find(|(unit, _)| *unit == self.unit);
        own.map(|(_, seconds)| *seconds)
    }

    /// The unit in which values up to `most` of this axis's read well, and the factor that makes them such.
    ///
    /// Only units of time change, and only where there would be none before the point or more than four digits.
    pub(crate) fn unit_for(&self, most: f64) -> (f64, &str) {
        let Some(own) = self.seconds().filter(|_| most > 0.0 && most.is_finite()) else {
            return (1.0, &self.unit);
        };
        if (0.9999..5000.0).contains(&most) {
            return (1.0, &self.unit);
        }
        let fits = |time: &&(&str, f64)| most * own >= time.1 * 0.9999;
        let (unit, seconds) = TIMES.iter().find(fits).unwrap_or(&TIMES[TIMES.len() - 1]);
        (own / seconds, unit)
    }

    /// The label with its unit and scale, as written beside the axis.
    pub(crate) fn caption(&self) -> String {
        match (self.unit.is_empty(), self.log) {
            (true, false) => self.label.clone(),
            (true, true) => format!("{} (log scale)", self.label),
            (false, false) => format!("{} ({})", self.label, self.unit),
            (false, true) => format!("{} ({}, log scale)", self.label, self.unit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_of_time_follows_its_values_and_others_stay() {
        let unit = |unit: &str, most: f64| {
            let axis = Axis::linear("t", unit);
            let (factor, unit) = axis.unit_for(most);
            (most * factor, unit.to_owned())
        };
        for (own, most, wanted) in [
            ("ms", 20.0, (20.0, "ms")),
            ("ms", 4999.0, (4999.0, "ms")),
            ("ms", 8000.0, (8.0, "s")),
            ("ms", 0.25, (250.0, "\u{b5}s")),
            ("ms", 0.000_25, (250.0, "ns")),
            ("us", 9000.0, (9.0, "ms")),
            ("s", 0.5, (500.0, "ms")),
            ("s", 90_000.0, (90_000.0, "s")),
            ("bit/s", 1e9, (1e9, "bit/s")),
            ("ms", 0.0, (0.0, "ms")),
        ] {
            let (value, unit) = unit(own, most);
            assert!((value - wanted.0).abs() <= 1e-9 * wanted.0, "{most} {own}");
            assert_eq!(unit, wanted.1, "{most} {own}");
        }
    }
}
