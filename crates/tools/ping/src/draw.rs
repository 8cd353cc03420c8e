//! Draws results as charts.

use std::collections::BTreeSet;

use ping::statistics::Percentiles;
use ping::text::Millis;
use ping::{Outcome, Row, State, StreamOutcome};
use plot::{Axis, Block, Chart, Kind, Page, Series, Thinner};

use super::words;

/// The kinds of round-trip chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drawn {
    /// A line over time, with marks for losses.
    Time,
    /// A line over the packet number.
    Line,
    /// A dot per packet.
    Scatter,
    /// The cumulative distribution of round-trip times.
    Cdf,
}

impl Drawn {
    pub(super) const ALL: [Drawn; 4] = [Drawn::Time, Drawn::Line, Drawn::Scatter, Drawn::Cdf];

    /// Its name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Drawn::Time => "time",
            Drawn::Line => "line",
            Drawn::Scatter => "scatter",
            Drawn::Cdf => "cdf",
        }
    }
}

/// The figures of results for drawing, each under the name of its file.
pub(super) struct Charts<'a> {
    outcomes: &'a [(&'a str, &'a Outcome)],
    labels: Vec<Vec<String>>,
    /// The labels of the streams.
    subject: String,
    over_time: Chart,
}

impl<'a> Charts<'a> {
    /// Reads all packets of the results.
    pub(super) fn new(outcomes: &'a [(&'a str, &'a Outcome)]) -> Charts<'a> {
        let labels = words::labels(outcomes);
        let hosts: BTreeSet<&str> = outcomes
            .iter()
            .flat_map(|(_, outcome)| &outcome.streams)
            .map(|stream| stream.plan.host.as_str())
            .collect();
        let subject = match hosts.first() {
            Some(host) if hosts.len() == 1 => format!("Round-trip times to {host}"),
            _ => format!("Round-trip times to {} hosts", hosts.len()),
        };
        let mut charts = Charts {
            outcomes,
            labels,
            over_time: Chart::new(
                Kind::OverTime,
                format!("{subject}, over time"),
                since_start(),
                round_trip(),
            )
            .of_packets(),
            subject,
        };
        charts.over_time.series = charts.series(|row, thinner| {
            let at = row.sent_ns as f64 / 1e9;
            push(row, at, thinner);
        });
        charts.over_time.subtitle = charts.conditions();
        charts.over_time.notes = charts.notes();
        charts
    }

    /// The chart of round trips of one kind.
    pub(super) fn chart(&self, drawn: Drawn) -> Chart {
        let subject = &self.subject;
        match drawn {
            Drawn::Time => self.over_time.clone(),
            Drawn::Scatter => {
                let title = format!("{subject}, each packet a dot");
                self.over_time.drawn_as(Kind::Scatter, title)
            }
            Drawn::Cdf => {
                let title = format!("{subject}, how they are distributed");
                let mut chart = distribution(&self.over_time, &title);
                chart.notes = self.notes();
                chart
            }
            Drawn::Line => {
                let title = format!("{subject}, packet by packet");
                let packets = Axis::linear("number of the packet", "");
                let mut chart = Chart::new(Kind::Line, title, packets, round_trip()).of_packets();
                let by_number = |row: &Row, thinner: &mut Thinner| {
                    push(row, row.sequence as f64, thinner);
                };
                chart.series = self.series(by_number);
                chart.subtitle = self.conditions();
                chart.notes = self.notes();
                chart
            }
        }
    }

    /// All charts: round trips of each kind, the delay of each direction if known, and the send delay.
    pub(super) fn all(&self) -> Vec<Chart> {
        let ways = [Drawn::Time, Drawn::Cdf, Drawn::Scatter, Drawn::Line];
        let mut charts: Vec<Chart> = ways.map(|drawn| self.chart(drawn)).into();
        charts.extend(self.each_way());
        charts.push(self.lateness());
        charts
    }

    /// A page with all charts and a table of every packet's outcome.
    pub(super) fn page(&self, charts: impl IntoIterator<Item = Chart>) -> Page {
        let mut page = Page::new(self.subject.clone());
        page.subtitle = self.began();
        page.blocks = charts.into_iter().map(Block::from).collect();
        page.blocks
            .push(Block::Heading("What became of every packet".into()));
        page.blocks.push(self.table());
        page
    }

    fn streams(&self) -> impl Iterator<Item = (&str, &'a StreamOutcome)> {
        let results = self.outcomes.iter().zip(&self.labels);
        results.flat_map(|((_, outcome), labels)| {
            let labels = labels.iter().map(String::as_str);
            labels.zip(&outcome.streams)
        })
    }

    fn series(&self, take: impl Fn(&Row, &mut Thinner)) -> Vec<Series> {
        let series = self.streams().map(|(label, stream)| {
            let mut thinner = Thinner::new();
            stream.rows().for_each(|row| take(&row, &mut thinner));
            thinner.finish(label)
        });
        series.collect()
    }

    /// The chart of each direction's delay, if any is known.
    fn each_way(&self) -> Option<Chart> {
        let mut series = Vec::new();
        for (label, stream) in self.streams() {
            let Some(directions) = &stream.summary.directions else {
                continue;
            };
            let ahead = directions.clock_offset_ns;
            let (mut up, mut down) = (Thinner::new(), Thinner::new());
            for row in stream.rows() {
                if let Some((rtt, way)) = row.sample.rtt().zip(row.one_way) {
                    let at = row.sent_ns as f64 / 1e9;
                    up.push(at, (way.up_ns.saturating_sub(ahead)) as f64 / 1e6);
                    down.push(at, (way.down_ns(rtt).saturating_add(ahead)) as f64 / 1e6);
                }
            }
            series.push(up.finish(format!("{label}, there")));
            series.push(down.finish(format!("{label}, back")));
        }
        if series.is_empty() {
            return None;
        }
        let delay = Axis::linear("delay", "ms");
        let mut chart = Chart::new(Kind::OverTime, "Delay each way", since_start(), delay);
        chart.subtitle = self.conditions();
        chart.series = series;
        chart.notes = vec![
            "As if the shortest delays there and back were alike: the hosts' clocks are not compared.".into(),
        ];
        Some(chart)
    }

    /// The chart of send delays.
    fn lateness(&self) -> Chart {
        let late = Axis::linear("sent after it was due", "ms");
        let mut chart = Chart::new(Kind::OverTime, "", since_start(), late);
        chart.series = self.series(|row, thinner| {
            if row.sample.state() != State::Failed {
                thinner.push(row.sent_ns as f64 / 1e9, row.late_ns() as f64 / 1e6);
            }
        });
        distribution(&chart, "How late packets were sent")
    }

    fn table(&self) -> Block {
        let head = [
            "stream",
            "sent",
            "answered",
            "late",
            "lost",
            "not sent",
            "duplicates",
            "reordered",
            "ICMP errors",
            "p50, ms",
            "p90, ms",
            "p99, ms",
            "sent late, p99, ms",
        ];
        let ms = |of: Option<Percentiles>, which: fn(Percentiles) -> u64| {
            of.map_or("-".to_owned(), |all| Millis(which(all)).to_string())
        };
        let rows = self.streams().map(|(label, stream)| {
            let summary = &stream.summary;
            let counts = [
                summary.transmitted,
                summary.received,
                summary.late,
                summary.lost,
                summary.failed,
                summary.duplicates,
                summary.reordered,
                summary.errors,
            ];
            let rtt = summary.rtt_percentiles;
            let mut row = vec![label.to_owned()];
            row.extend(counts.map(|count| plot::number::grouped(count as f64, 0)));
            row.extend([
                ms(rtt, |rtt| rtt.p50_ns),
                ms(rtt, |rtt| rtt.p90_ns),
                ms(rtt, |rtt| rtt.p99_ns),
                ms(summary.lateness, |late| late.p99_ns),
            ]);
            row
        });
        Block::Table {
            head: head.map(str::to_owned).into(),
            rows: rows.collect(),
        }
    }

    /// The settings of the measurement, for below a title.
    fn conditions(&self) -> String {
        let common = words::common(self.outcomes);
        [common, self.began()].join(" ").trim().to_owned()
    }

    fn began(&self) -> String {
        match self.outcomes {
            [(_, outcome)] => {
                words::began(outcome).map_or(String::new(), |at| format!("Began {at}."))
            }
            _ => "Each result from its own beginning.".to_owned(),
        }
    }

    /// Notes on what the chart shows and omits.
    fn notes(&self) -> Vec<String> {
        let sum = |of: fn(&StreamOutcome) -> u64| {
            let counts = self.streams().map(|(_, stream)| of(stream));
            counts.fold(0, u64::saturating_add)
        };
        let kept = sum(|stream| stream.kept() as u64);
        let sent = sum(|stream| stream.summary.transmitted);
        let waiting = sum(|stream| stream.summary.waiting);
        let notes = [
            (
                sent.saturating_sub(kept),
                format!("Only the first {kept} of {sent} packets were kept, and are drawn."),
            ),
            (
                waiting,
                format!(
                    "At the end {waiting} of {sent} packets were still waited for; they are not drawn."
                ),
            ),
            (
                sum(|stream| stream.summary.late),
                "Replies that came after the wait are drawn as all others.".to_owned(),
            ),
            (
                sum(|stream| stream.summary.failed),
                "Packets that could not be sent are marked as lost.".to_owned(),
            ),
        ];
        let notes = notes.into_iter().filter(|(count, _)| *count > 0);
        notes.map(|(_, note)| note).collect()
    }
}

/// The distribution of a chart's values, on an axis that covers most of them.
fn distribution(chart: &Chart, title: &str) -> Chart {
    let mut chart = chart.to_cdf(title);
    if is_wide(&chart) {
        chart.x = Axis::log(chart.x.label, chart.x.unit);
    }
    chart
}

/// Whether a few values are so large that they would pile up at the edge of the axis.
fn is_wide(chart: &Chart) -> bool {
    let samples = || chart.series.iter().map(Series::samples);
    let medians = samples().filter_map(|samples| samples.percentiles()[0]);
    let largest = samples().filter_map(|samples| Some(samples.range()?.1));
    let (median, largest) = (medians.reduce(f64::min), largest.reduce(f64::max));
    median
        .zip(largest)
        .is_some_and(|(median, largest)| largest > 20.0 * median)
}

fn since_start() -> Axis {
    Axis::linear("time since the start", "s")
}

fn round_trip() -> Axis {
    Axis::linear("round-trip time", "ms")
}

/// A packet at `x`: its round trip, or a mark for a missing one.
fn push(row: &Row, x: f64, thinner: &mut Thinner) {
    match row.sample.state() {
        State::Lost | State::Failed => thinner.push_lost(x),
        State::Replied | State::Late | State::Waiting => {
            if let Some(rtt) = row.sample.rtt() {
                thinner.push(x, rtt.as_nanos() as f64 / 1e6);
            }
        }
    }
}
