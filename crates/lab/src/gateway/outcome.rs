//! The results of the experiment, as a value and as `results.json`.

use serde::Serialize;

use super::rows::{Published, Result, Row, jain, mean};
use super::treatment::Link;
use crate::report::MachineInfo;

/// The version of `results.json`; it increases when a field changes its meaning.
pub const SCHEMA: &str = "lab.home-gateway/2";

/// All results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// `headend-home-gateway`.
    pub kind: &'static str,
    /// `namespaces` or `virtual time`.
    pub place: &'static str,
    /// The link.
    pub link: Link,
    /// What the gateway did in the rows that have a policy.
    pub treatment: String,
    /// What shaped in these rows, one after the other.
    pub engines: Vec<EngineOutcome>,
    /// The name of the browser's program; `None` if pages were loaded only by our own loader.
    pub browser: Option<String>,
    /// Seconds of each measurement.
    pub seconds: u64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Whether it was stopped before everything was measured.
    pub interrupted: bool,
    /// The measurement that was in progress when it was stopped, if any.
    pub cut_short: Option<String>,
    /// The rows that were measured.
    pub rows: Vec<RowOutcome>,
    /// Results of nine connections of A against one of B.
    pub fairness: Vec<Fairness>,
    /// Further experiments.
    pub experiments: Vec<Experiment>,
    /// How it was measured, a sentence each.
    pub method: Vec<String>,
    /// The machine of the run.
    pub machine: MachineInfo,
}

/// An engine of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EngineOutcome {
    /// Its name.
    pub name: &'static str,
    /// How it was set up, a sentence each.
    pub how: Vec<String>,
    /// What it lacks in this kernel, a sentence each.
    pub lacks: Vec<String>,
}

/// A row, with all its measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowOutcome {
    /// The row.
    #[serde(flatten)]
    pub row: Row,
    /// The name of the engine that shaped; `None` in a row without a policy.
    pub engine: Option<&'static str>,
    /// Why a measurement did not finish; `None` if all did.
    pub failed: Option<String>,
    /// The published figures.
    pub published: &'static Published,
    /// Each measurement.
    pub runs: Vec<Result>,
}

/// Nine connections of A against one of B.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fairness {
    /// The name of the engine that shaped.
    pub engine: &'static str,
    /// What the gateway did.
    pub treatment: String,
    /// B's share of each measurement, 0 to 1.
    pub shares: Vec<f64>,
    /// Jain's index of both hosts' shares, for each measurement.
    pub jain: Vec<f64>,
}

impl Fairness {
    /// The result for these shares of B.
    #[must_use]
    pub fn new(engine: &'static str, treatment: String, shares: Vec<f64>) -> Self {
        let jain = shares.iter().map(|&b| jain(&[1.0 - b, b])).collect();
        Self {
            engine,
            treatment,
            shares,
            jain,
        }
    }
}

/// An experiment besides the rows: pings in several settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Experiment {
    /// `tunnel`, `bands` or `perturb`.
    pub name: &'static str,
    /// A heading.
    pub title: &'static str,
    /// How it was done, in some sentences.
    pub how: Vec<String>,
    /// The settings that are compared.
    pub settings: Vec<Setting>,
}

/// One setting of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// What distinguishes it.
    pub name: String,
    /// Streams of pings.
    pub streams: Vec<Stream>,
}

/// A stream of pings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// Pairs of sending time in seconds and round-trip time in milliseconds; null without a reply.
    pub pings: Vec<(f64, Option<f64>)>,
}

impl Stream {
    /// The round-trip time that a share `p` of the answered pings did not exceed, in milliseconds.
    #[must_use]
    pub fn percentile_ms(&self, p: f64) -> Option<f64> {
        self.as_result().ping_percentile_ms(p)
    }

    /// Pings without reply, in per cent.
    #[must_use]
    pub fn loss_percent(&self) -> f64 {
        self.as_result().ping_loss_percent()
    }

    fn as_result(&self) -> Result {
        Result {
            pings: self.pings.clone(),
            ..Result::default()
        }
    }
}

/// Several measurements of one figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Number of measurements.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// Half of the 95 % confidence interval of the mean (Student's t); `None` for fewer than two.
    pub half_95: Option<f64>,
}

/// Student's t for 95 %, two-sided, by degrees of freedom from 1; 1.96 beyond 30.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

impl Spread {
    /// The spread of `values`; `None` if there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mean = mean(values)?;
        let count = values.len();
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let half_95 = (count > 1).then(|| {
            let t = T_95.get(count - 2).copied().unwrap_or(1.96);
            t * (squares / (count - 1) as f64 / count as f64).sqrt()
        });
        Some(Self {
            count,
            mean,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            half_95,
        })
    }
}

impl RowOutcome {
    /// A row without measurements. The engine is that of a row with a policy.
    #[must_use]
    pub fn new(row: Row, engine: &'static str) -> Self {
        Self {
            row,
            engine: row.shaped.then_some(engine),
            failed: None,
            published: row.published(),
            runs: Vec::new(),
        }
    }

    /// Whether one of its measurements was stopped early.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.runs.iter().any(|run| run.partial)
    }

    /// The spread of a figure over the measurements that have it.
    pub fn spread(&self, figure: impl Fn(&Result) -> Option<f64>) -> Option<Spread> {
        let values: Vec<f64> = self.runs.iter().filter_map(figure).collect();
        Spread::of(&values)
    }

    /// The mean of a figure.
    pub fn mean(&self, figure: impl Fn(&Result) -> Option<f64>) -> Option<f64> {
        self.spread(figure).map(|spread| spread.mean)
    }
}

impl Outcome {
    /// The row with this number, if it was measured; a row with a policy is that of the first
    /// engine.
    #[must_use]
    pub fn row(&self, number: u8) -> Option<&RowOutcome> {
        let measured = |row: &&RowOutcome| row.row.number == number && !row.runs.is_empty();
        self.rows.iter().find(measured)
    }

    /// The row with this number, if it was measured; a row with a policy is that of this engine.
    #[must_use]
    pub fn row_of(&self, number: u8, engine: &str) -> Option<&RowOutcome> {
        let mut rows = self.rows.iter().filter(|row| row.row.number == number);
        rows.find(|row| row.engine.is_none_or(|name| name == engine) && !row.runs.is_empty())
    }

    /// Whether the run compares engines.
    #[must_use]
    pub fn compares(&self) -> bool {
        self.engines.len() > 1 || self.engines.iter().any(|engine| engine.name != "user")
    }

    /// A sentence that says that and when the run was stopped; `None` if it was not.
    #[must_use]
    pub fn stopped(&self) -> Option<String> {
        let during = self.cut_short.as_ref();
        let during = during.map_or(String::new(), |part| format!(" during \"{part}\""));
        let rows = self.rows.iter();
        let partial = rows.filter(|row| row.is_partial());
        let numbers: Vec<String> = partial.map(|row| row.row.number.to_string()).collect();
        let partial = match numbers.as_slice() {
            [] => String::new(),
            numbers => format!(
                " The figures of row {}, marked with *, are partial: of what was measured until then.",
                numbers.join(", ")
            ),
        };
        self.interrupted.then(|| {
            format!("It was stopped{during}: what was not measured until then is missing.{partial}")
        })
    }

    /// The results as `results.json`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.expect("an outcome holds only strings, numbers and lists of them") + "\n"
    }

    /// All pings as `pings.csv`: setting, measurement, sending time and round-trip time.
    #[must_use]
    pub fn pings_csv(&self) -> String {
        let mut out = String::from("part,setting,stream,run,sent_s,rtt_ms\r\n");
        let mut add = |place: &str, run: usize, pings: &[(f64, Option<f64>)]| {
            for (sent, rtt) in pings {
                let rtt = rtt.map_or(String::new(), |rtt| format!("{rtt:.3}"));
                out += &format!("{place},{run},{sent:.6},{rtt}\r\n");
            }
        };
        for row in &self.rows {
            for (run, result) in (1..).zip(&row.runs) {
                let engine = row.engine.filter(|_| self.compares()).unwrap_or_default();
                add(
                    &format!("row {},{engine},B", row.row.number),
                    run,
                    &result.pings,
                );
            }
        }
        for experiment in &self.experiments {
            for setting in &experiment.settings {
                for stream in &setting.streams {
                    let place = format!("{},{},{}", experiment.name, setting.name, stream.name);
                    add(&place, 1, &stream.pings);
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_student_s() {
        // 1, 2, 3: s = 1, so 4.303 / sqrt(3).
        let spread = Spread::of(&[1.0, 2.0, 3.0]).expect("values");
        assert_eq!((spread.mean, spread.min, spread.max), (2.0, 1.0, 3.0));
        assert!((spread.half_95.expect("three") - 2.484).abs() < 0.001);
        assert_eq!(Spread::of(&[7.0]).expect("one").half_95, None);
        assert_eq!(Spread::of(&[]), None);
    }
}
