//! The result of an experiment as a value.

use base::Duration;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::oneway::Directions;
use crate::plan::StreamPlan;
use crate::sample::{OneWay, Sample, State};
use crate::statistics::{Percentiles, RoundTrips};
use crate::stream::{Run, Stream};

/// The result of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The program and its version.
    pub tool: String,
    /// The start, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// From the start to the last packet or reply.
    pub duration: Duration,
    /// Whether it was stopped before the plan was complete.
    pub interrupted: bool,
    /// The timeout of a reply.
    pub wait: Duration,
    /// Replies that matched no packet of the experiment.
    pub ignored_replies: u64,
    /// Its streams, as planned.
    pub streams: Vec<StreamOutcome>,
}

/// The result of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamOutcome {
    /// Its plan.
    pub plan: StreamPlan,
    /// Its counts and statistics, over all packets.
    pub summary: Summary,
    pub(crate) runs: Vec<Run>,
    pub(crate) samples: Vec<Sample>,
    /// For UDP; one for each sample.
    pub(crate) one_ways: Option<Vec<OneWay>>,
}

/// A stream's counts and statistics. Every transmitted packet is received, lost, failed or waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Packets sent or refused by the kernel.
    pub transmitted: u64,
    /// Packets answered, in time or late.
    pub received: u64,
    /// Packets answered after the timeout.
    pub late: u64,
    /// Packets not answered.
    pub lost: u64,
    /// Packets refused by the kernel.
    pub failed: u64,
    /// Packets unanswered, but not timed out, when the experiment was stopped.
    pub waiting: u64,
    /// Further replies to answered packets.
    pub duplicates: u64,
    /// Packets answered after a packet that was sent later.
    pub reordered: u64,
    /// Packets not sent because the sender was too far behind.
    pub skipped: u64,
    /// ICMP errors that routers or hosts reported.
    pub errors: u64,
    /// The most packets in flight when a reply came.
    pub pipe: u64,
    /// From its first packet to its last packet or reply, in nanoseconds.
    pub span_ns: u64,
    /// As ping prints them; `None` if no reply came.
    pub rtt: Option<RoundTrips>,
    /// Percentiles of the round trips, without duplicates.
    pub rtt_percentiles: Option<Percentiles>,
    /// How late packets were sent, for packets whose samples are stored.
    pub lateness: Option<Percentiles>,
    /// Each direction by itself, for UDP.
    pub directions: Option<Directions>,
}

/// All that is known of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Its number, from 1.
    pub sequence: u64,
    /// When it was due, in nanoseconds after the experiment's start.
    pub due_ns: u64,
    /// When it was sent, after the experiment's start. It is below `due_ns` only by the difference of two clocks.
    pub sent_ns: i64,
    /// Its fate.
    pub sample: Sample,
    /// Both directions, for UDP.
    pub one_way: Option<OneWay>,
}

impl Row {
    /// How late it was sent.
    #[must_use]
    pub fn late_ns(&self) -> i64 {
        let due = i64::try_from(self.due_ns).unwrap_or(i64::MAX);
        self.sent_ns.saturating_sub(due)
    }
}

/// A finished stream with its plan.
pub(crate) struct Finished {
    pub(crate) stream: Stream,
    pub(crate) plan: StreamPlan,
}

impl Outcome {
    pub(crate) fn of(
        finished: impl Iterator<Item = Finished>,
        wait: Duration,
        started_unix_ns: u64,
        interrupted: bool,
        ignored_replies: u64,
    ) -> Outcome {
        let mut last_ns = 0;
        let streams = finished
            .map(|finished| {
                let stream = &finished.stream;
                last_ns = last_ns.max(stream.last_sent_ns).max(stream.last_reply_ns);
                StreamOutcome::of(finished)
            })
            .collect();
        Outcome {
            tool: concat!("headend ", env!("CARGO_PKG_VERSION")).to_owned(),
            started_unix_ns,
            duration: Duration::from_nanos(u64::try_from(last_ns).unwrap_or(0)),
            interrupted,
            wait,
            ignored_replies,
            streams,
        }
    }

    /// Whether every stream got a reply.
    #[must_use]
    pub fn all_answered(&self) -> bool {
        self.streams
            .iter()
            .all(|stream| stream.summary.received > 0)
    }
}

impl StreamOutcome {
    fn of(Finished { stream, plan }: Finished) -> StreamOutcome {
        let statistics = stream.statistics;
        let samples = stream.samples.into_kept();
        let one_ways = stream.one_ways.map(|store| store.into_kept());
        let directions = one_ways
            .as_ref()
            .and_then(|delays| stream.tally.finish(statistics.lost, &samples, delays));
        let summary = Summary {
            transmitted: statistics.transmitted,
            received: statistics.received,
            late: statistics.late,
            lost: statistics.lost,
            failed: statistics.failed,
            waiting: statistics.waiting(),
            duplicates: statistics.duplicates,
            reordered: statistics.reordered,
            skipped: statistics.skipped,
            errors: statistics.errors,
            pipe: statistics.pipe,
            span_ns: stream
                .last_sent_ns
                .max(stream.last_reply_ns)
                .abs_diff(stream.first_sent_ns),
            rtt: statistics.round_trips(),
            rtt_percentiles: statistics.percentiles(),
            lateness: None,
            directions,
        };
        let mut runs = stream.runs;
        runs.truncate(runs.partition_point(|run| run.index < samples.len() as u64));
        let mut outcome = StreamOutcome {
            plan,
            summary,
            runs,
            samples,
            one_ways,
        };
        outcome.summary.lateness = outcome.lateness();
        outcome
    }

    fn lateness(&self) -> Option<Percentiles> {
        let mut histogram = Histogram::default();
        for row in self.rows() {
            if row.sample.state() != State::Failed {
                histogram.add(u64::try_from(row.late_ns()).unwrap_or(0));
            }
        }
        Percentiles::of(&histogram)
    }

    /// The packets whose samples are stored, by number.
    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let mut dues = Dues::new(&self.runs, self.plan.interval);
        self.samples.iter().enumerate().map(move |(index, sample)| {
            let due_ns = dues.next_due();
            Row {
                sequence: index as u64 + 1,
                due_ns,
                sent_ns: sample.sent_ns(),
                sample: *sample,
                one_way: self
                    .one_ways
                    .as_ref()
                    .and_then(|delays| delays.get(index).copied()),
            }
        })
    }

    /// Number of packets whose samples are stored.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.samples.len()
    }
}

/// The due time of each packet, from the runs of the schedule.
pub(crate) struct Dues<'a> {
    runs: std::iter::Peekable<std::slice::Iter<'a, Run>>,
    interval_ns: u64,
    index: u64,
    next_ns: u64,
}

impl<'a> Dues<'a> {
    pub(crate) fn new(runs: &'a [Run], interval: Duration) -> Self {
        Self {
            runs: runs.iter().peekable(),
            interval_ns: interval.as_nanos(),
            index: 0,
            next_ns: 0,
        }
    }

    pub(crate) fn next_due(&mut self) -> u64 {
        if let Some(run) = self.runs.next_if(|run| run.index == self.index) {
            self.next_ns = run.due_ns;
        }
        let due_ns = self.next_ns;
        self.index += 1;
        self.next_ns = due_ns.saturating_add(self.interval_ns);
        due_ns
    }
}
