//! Throughput, round trips and losses of a list of flows, and how far two lists are apart.

use crate::rank::{at, sorted};
use crate::tap::Flow;

/// The figures of one flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct One {
    /// Payload bytes that arrived, in bits per second of its duration.
    pub goodput_bps: f64,
    /// Time from its first data to its last ACK, in seconds.
    pub seconds: f64,
    /// Payload bytes that arrived.
    pub bytes: u64,
}

/// The figures of flows that share a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Each flow's.
    pub flows: Vec<One>,
    /// Goodput of all, over the time from the first data to the last ACK.
    pub goodput_bps: f64,
    /// That time, in seconds.
    pub seconds: f64,
    /// Percentiles 50, 90 and 99 of all round trips, in milliseconds; each round trip counts as long as it lasted.
    pub rtt_ms: [f64; 3],
    /// Share of segments that were lost.
    pub loss: f64,
}

impl Figures {
    /// Measures flows.
    #[must_use]
    pub fn of(flows: &[&Flow]) -> Figures {
        let one = |flow: &&Flow| {
            let seconds = (flow.duration().max(1)) as f64 / 1e9;
            One {
                goodput_bps: flow.delivered() as f64 * 8.0 / seconds,
                seconds,
                bytes: flow.delivered(),
            }
        };
        let start = flows.iter().filter_map(|flow| flow.sent.first());
        let start = start.map(|sent| sent.at).min().unwrap_or(0);
        let end = flows.iter().map(|flow| flow.finished()).max().unwrap_or(0);
        let seconds = (end.saturating_sub(start).max(1)) as f64 / 1e9;
        let bytes: u64 = flows.iter().map(|flow| flow.delivered()).sum();
        let lost: usize = flows.iter().map(|flow| flow.lost.len()).sum();
        let segments: u64 = flows.iter().map(|flow| flow.segments()).sum();
        let times = flows.iter().flat_map(|flow| {
            let near = flow.near as f64;
            flow.trips.iter().map(move |trip| trip.time as f64 + near)
        });
        let times = sorted(times);
        let percentile = |share| at(&times, share).unwrap_or(0.0) / 1e6;
        Figures {
            flows: flows.iter().map(one).collect(),
            goodput_bps: bytes as f64 * 8.0 / seconds,
            seconds,
            rtt_ms: [percentile(0.5), percentile(0.9), percentile(0.99)],
            loss: lost as f64 / segments.max(1) as f64,
        }
    }

    /// How far another list's figures are from these.
    #[must_use]
    pub fn error(&self, other: &Figures) -> Error {
        let relative = |is: f64, of: f64| if of > 0.0 { is / of - 1.0 } else { 0.0 };
        let flows = self.flows.iter().zip(&other.flows);
        let worst = |error: fn(&One) -> f64| {
            let errors = flows
                .clone()
                .map(|(one, two)| relative(error(two), error(one)));
            errors
                .max_by(|a, b| a.abs().total_cmp(&b.abs()))
                .unwrap_or(0.0)
        };
        let mut rtt = [0.0; 3];
        for (error, (own, other)) in rtt.iter_mut().zip(self.rtt_ms.iter().zip(other.rtt_ms)) {
            *error = relative(other, *own);
        }
        Error {
            goodput: relative(other.goodput_bps, self.goodput_bps),
            worst_goodput: worst(|one| one.goodput_bps),
            worst_seconds: worst(|one| one.seconds),
            rtt,
            loss: other.loss - self.loss,
        }
    }
}

/// Relative errors, but for the loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Error {
    /// Of all flows together.
    pub goodput: f64,
    /// Of the flow with the largest error.
    pub worst_goodput: f64,
    /// Of its completion time.
    pub worst_seconds: f64,
    /// Of the percentiles 50, 90 and 99 of round trips.
    pub rtt: [f64; 3],
    /// Difference of the shares of lost segments.
    pub loss: f64,
}

/// The largest error of goodput with which a twin may make a promise.
pub const GOODPUT_MAX: f64 = 0.15;

/// The same for the percentiles of round trips.
pub const RTT_MAX: f64 = 0.25;

impl Error {
    /// The twin is close enough to its capture for a promise.
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.goodput.abs() <= GOODPUT_MAX && self.rtt.iter().all(|rtt| rtt.abs() <= RTT_MAX)
    }

    /// One number to choose among models: the sum of the errors of goodput and round trips, and of the loss in tens of
    /// percent.
    #[must_use]
    pub fn score(&self) -> f64 {
        let rtt: f64 = self.rtt.iter().map(|rtt| rtt.abs()).sum();
        self.goodput.abs() + rtt + 10.0 * self.loss.abs()
    }
}
