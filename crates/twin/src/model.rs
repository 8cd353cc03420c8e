//! The twin: the inferred path, its flows, and the run of them as they were.

use qos::fifo;
use qos::tree::SpecError;
use sim::Rng;
use wire::flow::Keys;

use crate::demand::{Demand, Evidence, buffer_of, stopped_together};
use crate::figures::{Error, Figures};
use crate::line::Line;
use crate::path::{Estimate, FLOW_SEGMENTS, Loss, Path, Refusal};
use crate::tap::Flow;
use crate::tcp::Algorithm;
use crate::world::{Outcome, Run, run};

/// Flows that a twin runs: those with the most data. The others are left out.
pub const FLOWS_MAX: usize = 1000;

/// Draws of chance at most.
const DRAWS_MAX: u64 = 8;

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
    /// Draws of chance until the twin was near the capture.
    pub draws: u64,
    /// For flows that were stopped together, when: they run until then, instead of for as many bytes.
    pub stopped: Vec<Option<u64>>,
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
        let stopped = stopped_together(&flows);
        let end = flows.iter().map(|flow| flow.finished()).max().unwrap_or(0);
        let until = end.saturating_mul(LONGER).saturating_add(LONGER_BY);
        let mut twin = Twin {
            again: Outcome::default(),
            figures: measured.clone(),
            error: measured.error(&measured),
            captured: measured,
            demands: Vec::new(),
            algorithm: Algorithm::Cubic,
            draws: 0,
            path,
            chosen,
            evidence,
            line,
            stopped,
            seed,
            until,
        };
        twin.fit(captured)?;
        Ok(twin)
    }

    /// Runs the flows as they were with each algorithm that the capture does not exclude, and keeps the run that is
    /// nearest to the capture. Draws chance again while no run is near.
    fn fit(&mut self, captured: &[Captured]) -> Result<(), SpecError> {
        let mut best = f64::INFINITY;
        let first = self.seed;
        for draw in 0..DRAWS_MAX {
            let line = self.drawn(draw);
            for algorithm in self.evidence.candidates.into_iter().flatten() {
                let demand = |(&index, base): (&usize, &Estimate)| {
                    let Captured { flow, keys } = &captured[index];
                    Demand::new(flow, *keys, base.value as u64, algorithm)
                };
                let demands = self.chosen.iter().zip(&self.path.bases).map(demand);
                let mut demands: Vec<Demand> = demands.collect();
                for (demand, until) in demands.iter_mut().zip(&self.stopped) {
                    demand.until = *until;
                }
                let seed = first.wrapping_add(draw);
                let again = run(&self.run(&demands, &line, seed))?;
                let figures = Figures::of(&again.flows.iter().collect::<Vec<_>>());
                let error = self.captured.error(&figures);
                if error.score() < best {
                    best = error.score();
                    (self.again, self.figures, self.error) = (again, figures, error);
                    (self.algorithm, self.demands, self.seed) = (algorithm, demands, seed);
                }
            }
            self.draws = draw + 1;
            if self.error.is_small() {
                break;
            }
        }
        Ok(())
    }

    /// The bottleneck of a draw: the first as inferred, the others with a buffer that differs by up to half a percent.
    /// Slow start of Reno leaves a full buffer exactly full, so that a packet more or less decides about losses.
    fn drawn(&self, draw: u64) -> Line {
        let mut line = self.line.clone();
        if draw > 0 {
            let chance = Rng::stream(self.seed.wrapping_add(draw), &["buffer"]).unit();
            let bytes = buffer_of(&self.path) as f64 * (0.995 + 0.01 * chance);
            line.queue = fifo::Limit::Bytes(bytes as u64).into();
        }
        line
    }

    fn run<'a>(&self, demands: &'a [Demand], line: &'a Line, seed: u64) -> Run<'a> {
        Run {
            demands,
            line,
            cross_bps: self.path.cross_bps.value as u64,
            seed,
            until: self.until,
        }
    }

    /// Runs the flows through another bottleneck.
    ///
    /// # Errors
    /// Its queue cannot be made.
    pub fn under(&self, line: &Line) -> Result<(Outcome, Figures), SpecError> {
        let outcome = run(&self.run(&self.demands, line, self.seed))?;
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
