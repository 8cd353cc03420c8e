//! The twin: the inferred path, its flows, and the run of them as they were.

use qos::fifo;
use qos::tree::SpecError;
use wire::flow::Keys;

use crate::demand::{Demand, Evidence, buffer_of};
use crate::figures::{Error, Figures};
use crate::line::Line;
use crate::path::{FLOW_SEGMENTS, Loss, Path, Refusal};
use crate::tap::Flow;
use crate::tcp::Algorithm;
use crate::world::{Outcome, Run, run};

/// Flows that a twin runs: those with the most data. The others are left out.
pub const FLOWS_MAX: usize = 1000;

/// A run may take this many times as long as the capture, and this much longer, in nanoseconds.
const LONGER: u64 = 3;
const LONGER_BY: u64 = 60_000_000_000;

/// Flows of one direction, as captured.
#[derive(Debug, Clone)]
pub struct Captured {
    /// The flow's packets.
    pub flow: Flow,
    /// Addresses, ports and traffic class of its data.
    pub keys: Keys,
}

/// The model of a congested path.
#[derive(Debug, Clone)]
pub struct Twin {
    /// The inferred bottleneck.
    pub path: Path,
    /// Indices of the flows that are in the twin.
    pub chosen: Vec<usize>,
    /// What the capture shows of congestion control.
    pub evidence: Evidence,
    /// The algorithm that the twin runs: of those not excluded, the one with the smallest error.
    pub algorithm: Algorithm,
    /// The flows.
    pub demands: Vec<Demand>,
    /// The bottleneck as it was.
    pub line: Line,
    /// The figures of the capture, and of the twin as it was.
    pub captured: Figures,
    /// The twin as it was.
    pub again: Outcome,
    /// Its figures.
    pub figures: Figures,
    /// How far they are from the capture's.
    pub error: Error,
    seed: u64,
    until: u64,
}

/// Why there is no twin.
#[derive(Debug, thiserror::Error)]
pub enum NoTwin {
    /// The capture shows no bottleneck.
    #[error("{0}")]
    Refused(Refusal),
    /// The bottleneck's queue cannot be made.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl Twin {
    /// Infers the path of flows in one direction, and runs the flows again as they were.
    ///
    /// # Errors
    /// The path was not congested, or is not visible.
    pub fn new(captured: &[Captured], seed: u64) -> Result<Twin, NoTwin> {
        let mut chosen: Vec<usize> = (0..captured.len())
            .filter(|&index| captured[index].flow.segments() >= FLOW_SEGMENTS)
            .collect();
        chosen.sort_by_key(|&index| std::cmp::Reverse(captured[index].flow.segments()));
        chosen.truncate(FLOWS_MAX);
        chosen.sort_unstable();
        let flows: Vec<&Flow> = chosen.iter().map(|&index| &captured[index].flow).collect();
        let path = Path::infer(&flows).map_err(NoTwin::Refused)?;
        let evidence = Evidence::of(&flows);
        let line = as_it_was(&path);
        let measured = Figures::of(&flows);
        let end = flows.iter().map(|flow| flow.finished()).max().unwrap_or(0);
        let until = end.saturating_mul(LONGER).saturating_add(LONGER_BY);
        let mut best: Option<Twin> = None;
        for algorithm in evidence.candidates.into_iter().flatten() {
            let demand = |(&index, base): (&usize, &crate::path::Estimate)| {
                let Captured { flow, keys } = &captured[index];
                Demand::new(flow, *keys, base.value as u64, algorithm)
            };
            let demands: Vec<Demand> = chosen.iter().zip(&path.bases).map(demand).collect();
            let again = run(&Run {
                demands: &demands,
                line: &line,
                cross_bps: path.cross_bps.value as u64,
                seed,
                until,
            })?;
            let figures = Figures::of(&again.flows.iter().collect::<Vec<_>>());
            let error = measured.error(&figures);
            let is_better = |best: &Twin| error.score() < best.error.score();
            if best.as_ref().is_none_or(is_better) {
                best = Some(Twin {
                    path: path.clone(),
                    chosen: chosen.clone(),
                    evidence,
                    algorithm,
                    demands,
                    line: line.clone(),
                    captured: measured.clone(),
                    again,
                    figures,
                    error,
                    seed,
                    until,
                });
            }
        }
        best.ok_or(NoTwin::Refused(Refusal::TooLittle))
    }

    /// Runs the flows through another bottleneck.
    ///
    /// # Errors
    /// Its queue cannot be made.
    pub fn under(&self, line: &Line) -> Result<(Outcome, Figures), SpecError> {
        let outcome = run(&Run {
            demands: &self.demands,
            line,
            cross_bps: self.path.cross_bps.value as u64,
            seed: self.seed,
            until: self.until,
        })?;
        let figures = Figures::of(&outcome.flows.iter().collect::<Vec<_>>());
        Ok((outcome, figures))
    }
}

/// The bottleneck of a path as it was.
fn as_it_was(path: &Path) -> Line {
    let rate = path.rate_bps.value + path.cross_bps.value;
    let (loss, policer) = match path.loss {
        Loss::Early(share) => (share, None),
        Loss::Policer(bucket) => (0.0, Some((rate as u64, bucket as u32))),
        Loss::None | Loss::DropTail => (0.0, None),
    };
    Line {
        // Behind a policer the line is faster than the policer's rate; how much is not visible.
        rate_bps: if policer.is_some() {
            10 * rate as u64
        } else {
            rate as u64
        },
        queue: fifo::Limit::Bytes(buffer_of(path)).into(),
        overhead: None,
        loss,
        policer,
    }
}
