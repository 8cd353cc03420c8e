//! Infers a bottleneck from the flows that pass it in one direction.
//!
//! | what | how |
//! |---|---|
//! | base round trip | the shortest round trip of each flow, without the time its own packet takes at the rate |
//! | queue | each later round trip less the base one |
//! | rate | delivered bytes over time, in windows in which every round trip shows a queue; the median of the windows |
//! | buffer | the queue that the packets before each loss met |
//! | losses | at a full queue: drop-tail; else at random, or by a policer if the rate between losses is flat |
//! | cross traffic | the fastest frequent rate of two deliveries in a row, less the rate above |

use core::fmt;

use crate::rank::{at, sorted};
use crate::tap::{Flow, Lost};

/// A value, and the interval in which it is expected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The most likely value.
    pub value: f64,
    /// The interval's ends.
    pub low: f64,
    /// The interval's ends.
    pub high: f64,
}

impl Estimate {
    fn of(sorted: &[f64], low: f64, high: f64) -> Option<Estimate> {
        Some(Estimate {
            value: at(sorted, 0.5)?,
            low: at(sorted, low)?,
            high: at(sorted, high)?,
        })
    }
}

/// The bottleneck's buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Buffer {
    /// In bytes of frames.
    pub bytes: Estimate,
    /// Time that a full buffer takes to drain, in nanoseconds.
    pub time: Estimate,
}

/// Where packets are lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// None were.
    None,
    /// The queue was full.
    DropTail,
    /// At any length of the queue, with this probability: by chance, or by a queue that drops early.
    Early(f64),
    /// By a policer, with bytes of its bucket.
    Policer(f64),
}

/// A bottleneck.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// Bits per second, of frames without their checksum.
    pub rate_bps: Estimate,
    /// Windows of time that the rate is from.
    pub windows: usize,
    /// Round trip of each flow without a queue, in nanoseconds.
    pub bases: Vec<Estimate>,
    /// `None` if no loss shows its limit.
    pub buffer: Option<Buffer>,
    /// The longest queue seen, in bytes.
    pub most_queued: f64,
    /// What is lost, and how.
    pub loss: Loss,
    /// Losses, and packets.
    pub losses: (usize, u64),
    /// Traffic of others while the queue stands, in bits per second.
    pub cross_bps: Estimate,
    /// Share of the flows' time in which the queue stands or a loss is repaired.
    pub congested: f64,
}

/// Why there is no twin.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// No flow has enough data.
    TooLittle,
    /// The path had no standing queue, and lost next to nothing.
    NotCongested {
        /// Share of the time in which a queue stood.
        congested: f64,
    },
    /// Packets were lost without a queue and without a flat rate: the bottleneck is not visible.
    NoQueue {
        /// Share of packets that were lost.
        loss: f64,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::TooLittle => write!(
                f,
                "no flow has {FLOW_SEGMENTS} segments: too little data to see a bottleneck"
            ),
            Refusal::NotCongested { congested } => write!(
                f,
                "the path was not congested: a queue stood for {:.0} % of the time, and at least {:.0} % are needed",
                100.0 * congested,
                100.0 * CONGESTED_MIN
            ),
            Refusal::NoQueue { loss } => write!(
                f,
                "{:.2} % of the packets were lost, but no queue stood and the rate was not flat: packets were lost by \
                 chance or before another bottleneck, whose rate this capture does not show",
                100.0 * loss
            ),
        }
    }
}

/// A flow with fewer segments is left out.
pub const FLOW_SEGMENTS: u64 = 50;

/// A path is congested if a queue stands for this share of the time.
pub const CONGESTED_MIN: f64 = 0.1;

/// A queue stands if round trips are longer than the base one by this, in nanoseconds, and by this share of it.
const QUEUE_MIN: f64 = 3e6;
const QUEUE_SHARE: f64 = 0.05;

/// A window of the rate has this many segments, or the second number if no queue stands for as long, and takes this
/// long, in nanoseconds.
const WINDOW_SEGMENTS: [f64; 2] = [48.0, 12.0];
const WINDOW_TIME: u64 = 40_000_000;

/// Packets up to this size give a base round trip without the time they take at the rate.
const SMALL: u32 = 200;

/// A loss is at a full queue if the packets before it met this share of the longest queue.
const FULL: f64 = 0.6;

/// A round trip of any flow: when its segment was sent, when the ACK came, and the queue it met.
#[derive(Debug, Clone, Copy)]
struct Met {
    sent: u64,
    at: u64,
    queue: f64,
}

impl Path {
    /// Infers the bottleneck of flows in one direction.
    ///
    /// # Errors
    /// There is none that the flows show.
    pub fn infer(flows: &[&Flow]) -> Result<Path, Refusal> {
        if flows.is_empty() || flows.iter().all(|flow| flow.segments() < FLOW_SEGMENTS) {
            return Err(Refusal::TooLittle);
        }
        let first: Vec<f64> = flows.iter().map(|flow| base(flow, f64::INFINITY)).collect();
        let met = queues(flows, &first);
        let rough = rates(flows, &met, threshold(&first, 0.0));
        let rough_bps = at(&rough.rates, 0.5).unwrap_or(f64::INFINITY);
        let bases = bases(flows, rough_bps);
        let values: Vec<f64> = bases.iter().map(|base| base.value).collect();
        let met = queues(flows, &values);
        let frame = flows.iter().map(|flow| flow.mss + flow.header).max();
        let frame = f64::from(frame.unwrap_or(1514));
        let threshold = threshold(&values, 1.5 * frame * 8e9 / rough_bps);
        let found = rates(flows, &met, threshold);
        let smooth = smooth(&met);
        let losses = losses(flows, &smooth);
        let segments: u64 = flows.iter().map(|flow| flow.segments()).sum();
        let share = losses.len() as f64 / segments.max(1) as f64;
        let congested = found.busy as f64 / found.active.max(1) as f64;
        let rate_bps = Estimate::of(&found.rates, 0.1, 0.9).filter(|_| congested >= CONGESTED_MIN);
        let Some(mut rate_bps) = rate_bps else {
            let queues = sorted(met.iter().map(|met| met.queue));
            let stands = at(&queues, 0.5).is_some_and(|queue| queue > threshold);
            return match stands {
                true => Err(Refusal::NotCongested { congested }),
                false => police(flows, bases, &losses, segments, congested),
            };
        };
        // The median of the windows is known better than a single window is.
        let spread = (found.rates.len() as f64).sqrt();
        rate_bps.low = rate_bps.value - (rate_bps.value - rate_bps.low) / spread;
        rate_bps.high = rate_bps.value + (rate_bps.high - rate_bps.value) / spread;
        let most = smooth.iter().map(|met| met.queue);
        let most = at(&sorted(most), 0.999).unwrap_or(0.0);
        let (buffer, loss) = buffer(&losses, most, rate_bps.value, share);
        Ok(Path {
            cross_bps: cross(flows, &met, threshold, rate_bps),
            rate_bps,
            windows: found.rates.len(),
            bases,
            buffer,
            most_queued: most * rate_bps.value / 8e9,
            loss,
            losses: (losses.len(), segments),
            congested,
        })
    }
}

/// The shortest round trip of a flow, less the time its packet takes at a rate.
fn base(flow: &Flow, rate_bps: f64) -> f64 {
    let near = flow.near as f64;
    if let Some(handshake) = flow.handshake {
        let frame = f64::from(flow.header + 8) * 8e9 / rate_bps;
        let syn = handshake.time as f64 + near - frame;
        let least = flow.trips.iter().map(|trip| trip.time).min();
        return least.map_or(syn, |least| syn.min(least as f64 + near));
    }
    let times = flow.trips.iter().map(|trip| {
        let frame = trip.bytes + flow.header;
        let own = if frame <= SMALL { 0 } else { frame };
        trip.time as f64 + near - f64::from(own) * 8e9 / rate_bps
    });
    times.fold(f64::INFINITY, f64::min)
}

/// The base round trips. Flows that differ by less than a quarter and 5 ms share the shortest: a flow that starts
/// while a queue stands has no round trip without it.
fn bases(flows: &[&Flow], rate_bps: f64) -> Vec<Estimate> {
    let own: Vec<f64> = flows.iter().map(|flow| base(flow, rate_bps)).collect();
    let frames = flows
        .iter()
        .map(|flow| f64::from(flow.mss + flow.header) * 8e9 / rate_bps);
    let shortest = own.iter().copied().fold(f64::INFINITY, f64::min);
    let base = |(&own, frame): (&f64, f64)| {
        let is_near = own - shortest < (0.25 * shortest).max(5e6);
        let value = if is_near { shortest } else { own }.max(0.0);
        Estimate {
            value,
            low: (value - frame.min(value / 4.0)).max(0.0),
            high: own.max(value),
        }
    };
    own.iter().zip(frames).map(base).collect()
}

fn threshold(bases: &[f64], own: f64) -> f64 {
    let longest = bases.iter().copied().fold(0.0, f64::max);
    QUEUE_MIN.max(QUEUE_SHARE * longest).max(own)
}

/// The queue that each acknowledged segment met, in order of the ACKs.
fn queues(flows: &[&Flow], bases: &[f64]) -> Vec<Met> {
    let of = |(flow, base): (&&Flow, &f64)| {
        let (near, base) = (flow.near as f64, *base);
        let met = move |trip: &crate::tap::Trip| Met {
            sent: trip.sent(),
            at: trip.at,
            queue: trip.time as f64 + near - base,
        };
        flow.trips.iter().map(met).collect::<Vec<_>>()
    };
    let mut met: Vec<Met> = flows.iter().zip(bases).flat_map(of).collect();
    met.sort_by_key(|met| met.at);
    met
}

struct Rates {
    /// Of each window, sorted.
    rates: Vec<f64>,
    busy: u64,
    active: u64,
}

/// Bytes of frames that arrived, by time.
fn deliveries(flows: &[&Flow]) -> Vec<(u64, f64)> {
    let mut all = Vec::new();
    for flow in flows {
        let mut before = 0;
        for acked in &flow.acked {
            if acked.delivered > before {
                let bytes = (acked.delivered - before) as f64 * flow.expansion();
                before = acked.delivered;
                all.push((acked.at, bytes));
            }
        }
    }
    all.sort_by_key(|&(at, _)| at);
    all
}

/// The rates in windows in which a queue stands all the time.
fn rates(flows: &[&Flow], met: &[Met], threshold: f64) -> Rates {
    let [long, short] = WINDOW_SEGMENTS.map(|segments| rates_in(flows, met, threshold, segments));
    if long.rates.is_empty() { short } else { long }
}

fn rates_in(flows: &[&Flow], met: &[Met], threshold: f64, segments: f64) -> Rates {
    let deliveries = deliveries(flows);
    let frame = flows.iter().map(|flow| flow.mss + flow.header).max();
    let wanted = segments * f64::from(frame.unwrap_or(1514));
    let mut rates = Vec::new();
    let (mut busy, mut active) = (0, 0);
    let mut next = 0;
    let mut window: Option<(u64, f64)> = None;
    for pair in met.windows(2) {
        let (one, two) = (pair[0], pair[1]);
        let gap = two.at - one.at;
        while deliveries
            .get(next)
            .is_some_and(|delivery| delivery.0 <= one.at)
        {
            next += 1;
        }
        let from = next;
        while deliveries
            .get(next)
            .is_some_and(|delivery| delivery.0 <= two.at)
        {
            next += 1;
        }
        let bytes: f64 = deliveries[from..next]
            .iter()
            .map(|delivery| delivery.1)
            .sum();
        // Without new data for long, the flows had nothing to send, or waited for a time-out.
        active += gap.min(1_000_000_000);
        // The queue cannot have drained in a gap that is shorter than itself.
        let stands = one.queue > threshold && two.queue > threshold;
        let is_short = gap as f64 <= one.queue.max(2e7);
        if !stands || !is_short {
            if stands {
                busy += gap.min(1_000_000_000);
            }
            window = None;
            continue;
        }
        busy += gap;
        let (start, sum) = window.unwrap_or((one.at, 0.0));
        let sum = sum + bytes;
        if sum >= wanted && two.at - start >= WINDOW_TIME {
            rates.push(sum * 8e9 / (two.at - start) as f64);
            window = Some((two.at, 0.0));
        } else {
            window = Some((start, sum));
        }
    }
    Rates {
        rates: sorted(rates),
        busy,
        active,
    }
}

/// The queues in the order in which the segments were sent, each the median of five: a delayed ACK makes one round trip
/// longer than those of its neighbours, but the queue changes slowly.
fn smooth(met: &[Met]) -> Vec<Met> {
    let mut by_sent: Vec<Met> = met.to_vec();
    by_sent.sort_by_key(|met| met.sent);
    let queues: Vec<f64> = by_sent.iter().map(|met| met.queue).collect();
    for (at, met) in by_sent.iter_mut().enumerate() {
        let around = &queues[at.saturating_sub(2)..(at + 3).min(queues.len())];
        met.queue = at_middle(around);
    }
    by_sent
}

fn at_middle(values: &[f64]) -> f64 {
    let sorted = sorted(values.iter().copied());
    sorted[(sorted.len() - 1) / 2]
}

/// Each loss, with the queue that the packets before it met, if known.
fn losses(flows: &[&Flow], by_sent: &[Met]) -> Vec<(Lost, Option<f64>)> {
    let all = flows.iter().flat_map(|flow| &flow.lost);
    let mut all: Vec<Lost> = all.copied().collect();
    all.sort_by_key(|lost| lost.found);
    let queue = |lost: &Lost| {
        let after = by_sent.partition_point(|met| met.sent <= lost.sent);
        let before = &by_sent[after.saturating_sub(4)..after];
        let near = before
            .iter()
            .filter(|met| lost.sent - met.sent < 500_000_000);
        near.map(|met| met.queue).max_by(f64::total_cmp)
    };
    all.iter().map(|lost| (*lost, queue(lost))).collect()
}

/// The buffer and the kind of loss.
fn buffer(
    losses: &[(Lost, Option<f64>)],
    most: f64,
    rate_bps: f64,
    share: f64,
) -> (Option<Buffer>, Loss) {
    let queues = sorted(losses.iter().filter_map(|loss| loss.1));
    if queues.is_empty() {
        return match losses.is_empty() {
            true => (None, Loss::None),
            false => (None, Loss::Early(share)),
        };
    }
    let full: Vec<f64> = queues
        .iter()
        .copied()
        .filter(|queue| *queue >= FULL * most)
        .collect();
    if full.len() * 2 < queues.len() {
        return (None, Loss::Early(share));
    }
    let Some(time) = Estimate::of(&full, 0.1, 0.9) else {
        return (None, Loss::None);
    };
    let bytes = |time: f64| time * rate_bps / 8e9;
    let buffer = Buffer {
        bytes: Estimate {
            value: bytes(time.value),
            low: bytes(time.low),
            high: bytes(time.high),
        },
        time,
    };
    (Some(buffer), Loss::DropTail)
}

/// Traffic of others: the fastest frequent rate of two deliveries in a row, if it is well above the mean.
fn cross(flows: &[&Flow], met: &[Met], threshold: f64, rate: Estimate) -> Estimate {
    const BINS: usize = 400;
    const WIDTH: f64 = 1.03;
    const FREQUENT: f64 = 0.1;
    let deliveries = deliveries(flows);
    let mut bins = [0_u32; BINS];
    let mut count = 0;
    let mut at = 0;
    for pair in deliveries.windows(2) {
        while met.get(at).is_some_and(|met| met.at < pair[1].0) {
            at += 1;
        }
        let stands = met.get(at).is_some_and(|met| met.queue > threshold);
        let gap = pair[1].0 - pair[0].0;
        if !stands || gap == 0 {
            continue;
        }
        let ratio = pair[1].1 * 8e9 / gap as f64 / rate.value;
        let bin = (ratio.ln() / WIDTH.ln()) + BINS as f64 / 2.0;
        if (0.0..BINS as f64).contains(&bin) {
            bins[bin as usize] += 1;
            count += 1;
        }
    }
    let none = Estimate {
        value: 0.0,
        low: 0.0,
        high: (rate.high - rate.low).max(0.02 * rate.value),
    };
    if count < 200 {
        return none;
    }
    // Nothing passes faster than the line: the fastest value that is frequent is two deliveries without others between.
    let inside = |bin: usize| bins[bin - 2..=bin + 2].iter().sum::<u32>();
    let is_frequent = |bin: &usize| f64::from(inside(*bin)) >= FREQUENT * f64::from(count);
    let Some(first) = (2..BINS - 2).rev().find(is_frequent) else {
        return none;
    };
    let peak = (first.saturating_sub(6).max(2)..=first).max_by_key(|&bin| inside(bin));
    let peak = peak.unwrap_or(first);
    let above: u32 = bins[(peak + 6).min(BINS)..].iter().sum();
    let ratio = WIDTH.powf(peak as f64 + 0.5 - BINS as f64 / 2.0);
    if !(1.15..4.0).contains(&ratio) || f64::from(above) > FREQUENT / 2.0 * f64::from(count) {
        return none;
    }
    let value = (ratio - 1.0) * rate.value;
    Estimate {
        value,
        low: (ratio / WIDTH.powf(1.5) - 1.0) * rate.value,
        high: (ratio * WIDTH.powf(1.5) - 1.0) * rate.value,
    }
}

/// A policer: many losses, no queue, and the same rate between each two of them (Flach et al. 2016).
fn police(
    flows: &[&Flow],
    bases: Vec<Estimate>,
    losses: &[(Lost, Option<f64>)],
    segments: u64,
    congested: f64,
) -> Result<Path, Refusal> {
    const LOSSES_MIN: usize = 15;
    let share = losses.len() as f64 / segments.max(1) as f64;
    if losses.len() < LOSSES_MIN {
        return Err(match losses.len() {
            0..5 => Refusal::NotCongested { congested },
            _ => Refusal::NoQueue { loss: share },
        });
    }
    let (first, last) = (losses[0].0.sent, losses[losses.len() - 1].0.sent);
    let deliveries = deliveries(flows);
    let from = deliveries.partition_point(|delivery| delivery.0 <= first);
    let longest = bases.iter().map(|base| base.value).fold(0.0, f64::max);
    let step = (last.saturating_sub(first) / 12).max(longest as u64).max(1);
    let mut rates = Vec::new();
    let (mut start, mut sum) = (first, 0.0);
    for &(at, bytes) in &deliveries[from..] {
        if at > last {
            break;
        }
        sum += bytes;
        if at.saturating_sub(start) >= step {
            rates.push(sum * 8e9 / (at - start) as f64);
            (start, sum) = (at, 0.0);
        }
    }
    let rates = sorted(rates);
    let flat = Estimate::of(&rates, 0.1, 0.9)
        .filter(|rate| rates.len() >= 6 && rate.high - rate.low < 0.25 * rate.value);
    let Some(rate_bps) = flat else {
        return Err(Refusal::NoQueue { loss: share });
    };
    // What arrived before the first loss above the rate filled the bucket.
    let begin = deliveries.first().map_or(0, |delivery| delivery.0);
    let before: f64 = deliveries[..from].iter().map(|delivery| delivery.1).sum();
    let bucket = before - (first.saturating_sub(begin)) as f64 * rate_bps.value / 8e9;
    Ok(Path {
        rate_bps,
        windows: rates.len(),
        bases,
        buffer: None,
        most_queued: 0.0,
        loss: Loss::Policer(bucket.max(10_000.0)),
        losses: (losses.len(), segments),
        cross_bps: Estimate {
            value: 0.0,
            low: 0.0,
            high: 0.0,
        },
        congested: 1.0,
    })
}
