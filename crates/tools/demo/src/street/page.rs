//! The results as a page.

use lab::report::MachineInfo;
use plot::number::grouped;
use plot::{Axis, Band, Block, Chart, Kind, Page, Series};

use super::change::Change;
use super::drawing::drawing;
use super::report::Report;

/// A page that has this text was written by this command.
pub(super) const MARK: &str = "written by headend demo street";

/// The whole page.
pub(super) fn html(report: &Report) -> String {
    let mut page = Page::new("A street of PPPoE lines");
    page.subtitle = format!(
        "Version {}, {MARK} on the machine below.",
        env!("CARGO_PKG_VERSION")
    );
    let blocks = &mut page.blocks;
    blocks.push(Block::Lead(format!(
        "{} of {} lines have IPv4 and IPv6 {:.1}\u{a0}s after the first PADI: {} a second.",
        grouped(report.up.into(), 0),
        grouped(report.lines.into(), 0),
        report.took_s(),
        grouped(report.per_second(), 0)
    )));
    blocks.push(drawing(report));
    for text in how(report) {
        blocks.push(Block::Text(text));
    }
    blocks.push(came_up(report).into());
    match &report.change {
        Ok(change) => {
            blocks.push(Block::Lead(changed(change)));
            blocks.push(rate(change).into());
            blocks.extend(beside(change).into_iter().map(Block::Text));
        }
        Err(why) => blocks.push(Block::Text(format!("No line was loaded: {why}."))),
    }
    blocks.push(Block::Heading("The daemons".into()));
    blocks.push(daemons(report));
    blocks.push(Block::Heading("The machine".into()));
    let lines = MachineInfo::read().lines();
    blocks.extend(lines.into_iter().map(Block::Text));
    page.to_html()
}

/// How it was measured.
fn how(report: &Report) -> Vec<String> {
    let mut lines = vec![
        format!(
            "All hosts dial at the same moment, as after a power failure, with the daemons' default limits. A host is up \
             when it has an IPv4 address, an IPv6 address and a delegated prefix. {} Discovery packets were sent again.",
            report.retransmissions
        ),
        "Four network namespaces on one machine: the hosts, two daemons, and the internet. The daemons are processes of \
         their own; the hosts are clients in the process of the demo. The daemons\u{2019} figures are those that they show."
            .into(),
    ];
    for (at, way) in [
        (0, "IPv4 through NAT"),
        (1, "IPv6 from the delegated prefix"),
    ] {
        let (sent, answered) = report.answered[at];
        let median = report.median_ms[at];
        let median = median.map_or(String::new(), |ms| format!(", in {ms:.1} ms (median)"));
        let [sent, answered] = [sent, answered].map(|count| grouped(count as f64, 0));
        lines.push(format!(
            "Of {sent} lines, {answered} got a reply to a ping from the internet by {way}{median}."
        ));
    }
    lines
}

fn came_up(report: &Report) -> Chart {
    let axes = (Axis::linear("time", "s"), Axis::linear("lines", ""));
    let mut chart = Chart::new(Kind::Steps, "Lines that are up", axes.0, axes.1);
    chart.subtitle = "Seconds since the first PADI; a line is up when it has IPv4 and IPv6.".into();
    let names = ["at the access concentrator", "at the LNS"];
    for (colour, (name, course)) in names.into_iter().zip(&report.courses).enumerate() {
        let up = (1_u32..).zip(course);
        let up = up.map(|(count, &at)| (at, f64::from(count)));
        let points = std::iter::once((0.0, 0.0)).chain(up);
        let series = Series::from_points(name, points, []);
        chart.series.push(series.coloured(colour));
    }
    chart
}

fn mbit(bps: f64) -> f64 {
    bps / 1e6
}

fn changed(change: &Change) -> String {
    format!(
        "A CoA-Request, acknowledged in {:.1}\u{a0}ms, takes a download from {:.1} to {:.1}\u{a0}Mbit/s.",
        change.ack_ms,
        mbit(change.rate_before_bps),
        mbit(change.rate_after_bps)
    )
}

fn rate(change: &Change) -> Chart {
    let axes = (Axis::linear("time", "s"), Axis::linear("rate", "Mbit/s"));
    let mut chart = Chart::new(Kind::OverTime, "The rate of the line", axes.0, axes.1);
    let configured = [&change.before, &change.after];
    let [before, after] = configured.map(|detail| mbit(detail.rate_down_bps.unwrap_or(0) as f64));
    chart.subtitle = format!(
        "IP bytes that reach the host of {} in each 100 ms, while {} downloads through NAT. The RADIUS server changes the \
         rate from {before:.0} to {after:.0} Mbit/s.",
        change.line, change.program
    );
    let end_s = change.samples.last().map_or(0.0, |sample| sample.0);
    let points = change.samples.iter().map(|&(at, bps)| (at, mbit(bps)));
    let limits = [
        (0.0, before),
        (change.sent_s, before),
        (change.sent_s, after),
        (end_s, after),
    ];
    chart.series = vec![
        Series::from_points("measured", points, []).coloured(0),
        Series::from_points("configured", limits, []).coloured(1),
    ];
    chart.bands = vec![Band {
        x: (change.sent_s, end_s),
        is_shaded: true,
        name: format!("after the CoA: {after:.0} Mbit/s"),
    }];
    chart
}

/// What else happened during the download.
fn beside(change: &Change) -> Vec<String> {
    let queue = change.queue();
    let mut lines = vec![format!(
        "In the queue of the line, {} packets waited and {} passed at once. Controlled delay dropped {} of them, by which \
         TCP learns the rate.",
        grouped(queue.waited as f64, 0),
        grouped(queue.passed as f64, 0),
        queue.dropped
    )];
    for (stream, whose) in change
        .streams
        .iter()
        .zip(["the same line", "a line at the LNS"])
    {
        lines.push(format!(
            "Beside the download, a stream of datagrams to the delegated prefix of {whose}: {} sent, {} lost, {} reordered.",
            grouped(stream.sent as f64, 0),
            stream.lost(),
            stream.reordered
        ));
    }
    lines
}

fn daemons(report: &Report) -> Block {
    let row = |(name, unit, [bng, lns]): (&str, &str, [String; 2])| {
        let name = match unit {
            "" => name.to_owned(),
            unit => format!("{name} ({unit})"),
        };
        vec![name, bng, lns]
    };
    let head = ["", "access concentrator", "LNS"].map(str::to_owned);
    Block::Table {
        head: head.into(),
        rows: report.daemon_rows().into_iter().map(row).collect(),
    }
}
