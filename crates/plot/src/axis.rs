//! What an axis shows.

use serde::Serialize;

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
