//! Rows of what the daemon recorded of the last day.

use base::Instant;

use super::{Rows, Step, rounded};
use crate::core::Core;
use crate::history::Kind;
use control::reply::{Code, Refusal};
use control::request::HistoryFilter;
use control::rows;

/// The most values in a row, so that a row is far below the longest line that a client reads.
const VALUES: usize = 600;

/// The lengths of steps that are recorded, in seconds.
const STEPS_S: [u32; 2] = [1, 60];

/// The series that are asked for, with the position.
pub(crate) struct HistoryShow {
    wanted: HistoryFilter,
    /// The place of the length of step, the series, and the first value.
    at: (usize, usize, usize),
}

impl HistoryShow {
    /// From the first row.
    ///
    /// # Errors
    /// There is no such field or no such step.
    pub(crate) fn new(wanted: HistoryFilter) -> Result<Self, Refusal> {
        if let Some(step_s) = wanted.step_s
            && !STEPS_S.contains(&step_s)
        {
            let message = format!("step_s is {step_s}; it must be 1 (ten minutes) or 60 (a day)");
            return Err(Refusal::new(Code::BadRequest, message));
        }
        if let Some(series) = &wanted.series {
            let first = series.split('.').next().unwrap_or_default();
            let mut fields = rows::Now::FIELDS.iter();
            if !fields.any(|field| field.name == first) {
                let names: Vec<_> = rows::Now::FIELDS.iter().map(|field| field.name).collect();
                let message = format!(
                    "series: now/1 has no field {first:?}; its fields are {}",
                    names.join(", ")
                );
                return Err(Refusal::new(Code::BadRequest, message));
            }
        }
        Ok(Self {
            wanted,
            at: (0, 0, 0),
        })
    }

    fn wants(&self, step_s: u32, name: &str) -> bool {
        let is_within = |field: &String| {
            name.strip_prefix(field.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.wanted.step_s.is_none_or(|wanted| wanted == step_s)
            && self.wanted.series.as_ref().is_none_or(is_within)
    }

    /// Writes the next row.
    pub(super) fn step(&mut self, core: &Core, out: &mut Rows) -> Step {
        let history = &core.history;
        loop {
            let (place, number, from) = self.at;
            let Some(&step_s) = STEPS_S.get(place) else {
                return Step::End;
            };
            let Some(series) = history.series().get(number) else {
                self.at = (place + 1, 0, 0);
                continue;
            };
            let part = self
                .wants(step_s, &series.name)
                .then(|| history.part(step_s, number, from, VALUES));
            let Some(part) = part.flatten() else {
                self.at = (place, number + 1, 0);
                continue;
            };
            self.at.2 += part.values.len();
            out.push(&rows::History {
                schema: rows::History::SCHEMA.into(),
                series: series.name.clone(),
                is_rate: series.kind == Kind::Rate,
                step_s,
                first_s: wall_s(part.first, core.now),
                values: part.values,
            });
            return Step::From(0);
        }
    }
}

/// The time of day of an earlier moment.
fn wall_s(at: Instant, now: Instant) -> f64 {
    rounded(super::now::wall_s() - now.since(at).as_secs_f64())
}
