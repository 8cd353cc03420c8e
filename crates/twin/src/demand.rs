//! What a flow asks of the path, as its capture shows it.

use crate::path::Path;
use crate::tap::Flow;
use crate::tcp::Algorithm;
use wire::flow::Keys;

/// Steps of the receiver's window that a demand keeps.
const WINDOWS_MAX: usize = 4096;

/// Reductions below this are time-outs, and those above show no reduction (RFC 5681: half; RFC 9438: 0.7).
const TIME_OUT: f64 = 0.35;
const RENO: f64 = 0.6;
const CUBIC: f64 = 0.85;

/// The initial window where the capture does not show it, in segments (RFC 6928).
const INITIAL: u32 = 10;

/// A flow to run.
#[derive(Debug, Clone)]
pub struct Demand {
    /// Addresses, ports and traffic class of its packets.
    pub keys: Keys,
    /// Largest payload, and bytes of headers.
    pub mss: u32,
    /// Bytes of headers of a segment.
    pub header: u32,
    /// Round trip without a queue, in nanoseconds.
    pub base: u64,
    /// For each burst of the application: the pause before it, and its bytes. The first pause counts from the start.
    pub bursts: Vec<(u64, u64)>,
    /// The receiver's window from an acknowledged offset on.
    pub windows: Vec<(u64, u64)>,
    /// Bytes of the send buffer, where it limits the data in flight.
    pub buffer: Option<u64>,
    /// Segments that are acknowledged together.
    pub ack_every: u32,
    /// Initial window, in segments.
    pub initial: u32,
    /// Congestion control.
    pub algorithm: Algorithm,
    /// The application writes without end until this time, instead of the last burst's bytes.
    pub until: Option<u64>,
}

impl Demand {
    /// The demand of a captured flow; `near` and `far` queues are not part of `base`.
    #[must_use]
    pub fn new(flow: &Flow, keys: Keys, base: u64, algorithm: Algorithm) -> Demand {
        let bytes = flow.bytes();
        let ends = flow.bursts.iter().skip(1).map(|burst| burst.start);
        let ends = ends.chain([bytes]);
        let bursts = flow.bursts.iter().zip(ends);
        let bursts = bursts.map(|(burst, end)| (burst.pause, end.saturating_sub(burst.start)));
        Demand {
            keys,
            mss: flow.mss,
            header: flow.header,
            base,
            bursts: bursts.filter(|burst| burst.1 > 0).collect(),
            windows: windows(flow),
            buffer: send_buffer(flow),
            ack_every: ack_every(flow),
            initial: match flow.handshake {
                Some(_) if flow.initial > 0 => {
                    (flow.initial.div_ceil(u64::from(flow.mss)) as u32).clamp(1, 64)
                }
                _ => INITIAL,
            },
            algorithm,
            until: None,
        }
    }

    /// The receiver's window at an acknowledged offset.
    #[must_use]
    pub fn window(&self, acked: u64) -> u64 {
        let after = self.windows.partition_point(|window| window.0 <= acked);
        let place = after.saturating_sub(1);
        let window = self
            .windows
            .get(place)
            .map_or(u64::MAX >> 1, |window| window.1);
        window.min(self.buffer.unwrap_or(u64::MAX >> 1))
    }
}

/// The most data in flight, if a fifth of the packets leave at least 97 % of it in flight and no loss reduced the window:
/// the send buffer is full.
fn send_buffer(flow: &Flow) -> Option<u64> {
    let mut acked = flow.acked.iter().peekable();
    let mut delivered = 0;
    let in_flight = flow.sent.iter().map(|sent| {
        while let Some(ack) = acked.next_if(|ack| ack.at <= sent.at) {
            delivered = ack.delivered;
        }
        (sent.start + u64::from(sent.bytes)).saturating_sub(delivered)
    });
    let in_flight: Vec<u64> = in_flight.collect();
    let most = in_flight.iter().copied().max()?;
    let full = in_flight
        .iter()
        .filter(|&&bytes| bytes > most / 100 * 97)
        .count();
    (flow.reductions.is_empty() && full * 5 > in_flight.len()).then_some(most)
}

/// The steps of the receiver's window of at least 1/32.
fn windows(flow: &Flow) -> Vec<(u64, u64)> {
    let mut steps: Vec<(u64, u64)> = Vec::new();
    let mut to = 0;
    for acked in &flow.acked {
        // Behind a gap, data that the receiver holds takes up the window; the twin has its gaps elsewhere.
        if acked.to < to || acked.window == 0 || acked.delivered > acked.to {
            continue;
        }
        to = acked.to;
        let last = steps.last().map_or(0, |step| step.1);
        if acked.window.abs_diff(last) > last / 32 {
            if steps.len() >= WINDOWS_MAX {
                break;
            }
            steps.pop_if(|step| step.0 == to);
            steps.push((to, acked.window));
        }
    }
    steps
}

/// The median of the segments that an ACK acknowledges.
fn ack_every(flow: &Flow) -> u32 {
    let pairs = flow.acked.windows(2);
    let steps = pairs.map(|pair| (pair[1].to - pair[0].to) / u64::from(flow.mss));
    let mut steps: Vec<u64> = steps.filter(|&step| step > 0).collect();
    steps.sort_unstable();
    let median = steps.get(steps.len() / 2).copied().unwrap_or(2);
    median.clamp(1, 44) as u32
}

/// When the last flows stopped together, if at least two did: a clock or the end of the capture stopped them, rather than
/// their bytes. Returns the flows that did, and when each sent its last new data.
#[must_use]
pub fn stopped_together(flows: &[&Flow]) -> Vec<Option<u64>> {
    let last = |flow: &Flow| {
        let top = flow.bytes();
        let first = flow
            .sent
            .iter()
            .find(|sent| sent.start + u64::from(sent.bytes) == top);
        first.map_or(0, |sent| sent.at)
    };
    let ends: Vec<u64> = flows.iter().map(|flow| last(flow)).collect();
    let end = ends.iter().copied().max().unwrap_or(0);
    let trips = flows
        .iter()
        .flat_map(|flow| flow.trips.iter().rev().take(20));
    let longest = trips.map(|trip| trip.time).max().unwrap_or(0);
    let is_last = |&at: &u64| end - at <= longest;
    let together = ends.iter().filter(|at| is_last(at)).count();
    let stopped = ends.iter().map(|at| Some(*at).filter(is_last));
    match together {
        0 | 1 => vec![None; flows.len()],
        _ => stopped.collect(),
    }
}

/// How a flow's congestion control is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// The algorithms that the capture does not exclude, the most likely first.
    pub candidates: [Option<Algorithm>; 3],
    /// The median share of the window that remained after a loss, and from how many.
    pub remained: Option<(f64, usize)>,
}

impl Evidence {
    /// What the reductions of a flow's window show.
    #[must_use]
    pub fn of(flows: &[&Flow]) -> Evidence {
        let all = flows.iter().flat_map(|flow| &flow.reductions);
        let shares = all.map(|reduction| reduction.after as f64 / reduction.before.max(1) as f64);
        let shares = crate::rank::sorted(shares.filter(|&share| share > TIME_OUT));
        let median = crate::rank::at(&shares, 0.5);
        let all = [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr].map(Some);
        let candidates = match median {
            Some(share) if shares.len() >= 3 && share < RENO => [Some(Algorithm::Reno), None, None],
            Some(share) if shares.len() >= 3 && share < CUBIC => {
                [Some(Algorithm::Cubic), None, None]
            }
            _ => all,
        };
        Evidence {
            candidates,
            remained: median.map(|median| (median, shares.len())),
        }
    }
}

/// Bytes of the bottleneck's queue that the twin uses: the inferred ones, or more than was ever seen if no loss shows
/// the limit.
#[must_use]
pub fn buffer_of(path: &Path) -> u64 {
    match path.buffer {
        Some(buffer) => buffer.bytes.value as u64,
        None => (path.most_queued * 4.0) as u64 + 100_000,
    }
}
