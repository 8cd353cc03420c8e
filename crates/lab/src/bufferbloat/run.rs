//! What one run measured. Times are microseconds since the run's start.

use ping::{Outcome, State};
use serde::{Deserialize, Serialize};

/// What loads the link in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Nothing but the pings.
    Idle,
    /// Streams to this host.
    Down,
    /// Streams from this host.
    Up,
    /// Streams in both directions.
    Both,
}

impl Kind {
    /// The order of a test.
    pub const ALL: [Kind; 4] = [Kind::Idle, Kind::Down, Kind::Up, Kind::Both];

    /// Its name in tables and pictures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Idle => "idle",
            Kind::Down => "down",
            Kind::Up => "up",
            Kind::Both => "both",
        }
    }
}

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Its load.
    pub kind: Kind,
    /// When it began.
    pub from_us: u64,
    /// From here on it counts: before, connections were still starting.
    pub counts_from_us: u64,
    /// When it ended.
    pub to_us: u64,
    /// Whether it lasted as long as planned, with all of its streams.
    pub complete: bool,
}

/// One ping stream: a column for each value, with an entry for each packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pings {
    /// Its name.
    pub name: String,
    /// TOS octet or traffic class.
    pub tos: u8,
    /// When each packet was sent.
    pub at_us: Vec<i64>,
    /// Round trips; `None` for a packet without a reply.
    pub rtt_us: Vec<Option<u64>>,
    /// Delays to the responder, as if the shortest delays both ways were alike; empty if they are not known.
    pub up_us: Vec<Option<i64>>,
    /// Delays from the responder, likewise.
    pub down_us: Vec<Option<i64>>,
}

/// The streams' rates as the receiver counted them, in bits of payload per second.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// When each rate was read; it is the mean since the reading before.
    pub at_us: Vec<u64>,
    /// The rates of each stream to this host.
    pub down_bps: Vec<Vec<u64>>,
    /// The rates of each stream from this host.
    pub up_bps: Vec<Vec<u64>>,
}

/// One run of the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The program and its version.
    pub tool: String,
    /// The responder's host as the user typed it.
    pub host: String,
    /// Its address.
    pub address: String,
    /// The start, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Streams in each direction.
    pub streams: u32,
    /// The streams' congestion control; empty for the kernel's choice.
    pub congestion: String,
    /// Whether a signal or an error ended it early.
    pub interrupted: bool,
    /// What went wrong, in sentences.
    pub faults: Vec<String>,
    /// By how much the delay of one direction may be wrong: half of the shortest round trip. `None` without such delays.
    pub one_way_error_us: Option<u64>,
    /// Its phases in their order.
    pub phases: Vec<Phase>,
    /// Its ping streams; the verdict is about the first.
    pub pings: Vec<Pings>,
    /// The streams' rates.
    pub load: Load,
}

impl Pings {
    /// Whether all columns have an entry for each packet, or none for delays that are not known.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let count = self.at_us.len();
        let fits = |length: usize| length == count || length == 0;
        self.rtt_us.len() == count && fits(self.up_us.len()) && fits(self.down_us.len())
    }
}

impl Load {
    /// Whether all columns are equally long.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let mut streams = self.down_bps.iter().chain(&self.up_bps);
        streams.all(|stream| stream.len() == self.at_us.len())
    }

    /// The sum of some streams' rates at each reading.
    #[must_use]
    pub fn sum(&self, streams: &[Vec<u64>]) -> Vec<u64> {
        let at = |index: usize| {
            let rates = streams.iter().filter_map(|stream| stream.get(index));
            rates.fold(0_u64, |sum, rate| sum.saturating_add(*rate))
        };
        (0..self.at_us.len()).map(at).collect()
    }
}

impl Run {
    /// The first phase with this load.
    #[must_use]
    pub fn phase(&self, kind: Kind) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.kind == kind)
    }
}

/// The ping streams of a result, and by how much the delay of one direction may be wrong.
#[must_use]
pub fn pings_of(outcome: &Outcome) -> (Vec<Pings>, Option<u64>) {
    let mut shortest_us = None;
    let streams = outcome.streams.iter().map(|stream| {
        let directions = stream.summary.directions.as_ref();
        let ahead_ns = directions.map(|directions| directions.clock_offset_ns);
        let mut pings = Pings {
            name: stream.plan.name.clone(),
            tos: stream.plan.tos,
            at_us: Vec::new(),
            rtt_us: Vec::new(),
            up_us: Vec::new(),
            down_us: Vec::new(),
        };
        for row in stream.rows() {
            // What was still under way at the end is neither answered nor lost.
            if row.sample.state() == State::Waiting {
                continue;
            }
            let rtt = row.sample.rtt();
            let way = rtt.zip(row.one_way).zip(ahead_ns);
            pings.at_us.push(row.sent_ns / 1_000);
            pings.rtt_us.push(rtt.map(|rtt| rtt.as_nanos() / 1_000));
            let up = way.map(|((_, way), ahead)| way.up_ns.saturating_sub(ahead) / 1_000);
            let down =
                way.map(|((rtt, way), ahead)| way.down_ns(rtt).saturating_add(ahead) / 1_000);
            pings.up_us.push(up);
            pings.down_us.push(down);
            if up.is_some() {
                let rtt = rtt.map(|rtt| rtt.as_nanos() / 1_000);
                shortest_us = [shortest_us, rtt].into_iter().flatten().min();
            }
        }
        if ahead_ns.is_none() {
            pings.up_us.clear();
            pings.down_us.clear();
        }
        pings
    });
    let streams = streams.collect();
    (streams, shortest_us.map(|us| us / 2))
}
