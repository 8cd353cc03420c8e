//! The charts of the tunnels report.

use lab::plot::number::grouped;
use lab::plot::{Axis, Bar, BarChart, BarGroup, COLOUR_OURS, Chart, Figure, Series, Style};

use super::Results;
use super::hello::Hello;
use super::setup::{Run, SetUp, number};
use super::tables::by_size;
use crate::harness::server::LnsProgram;

/// Each subject has the same colour in all charts.
fn colour(program: LnsProgram) -> usize {
    match program {
        LnsProgram::Headend => COLOUR_OURS,
        LnsProgram::Bare => 7,
        LnsProgram::Xl2tpd => 0,
        LnsProgram::L2tpns => 1,
    }
}

/// A number with thousands separators.
fn whole(n: u32) -> String {
    grouped(n.into(), 0)
}

/// All charts.
pub(super) fn all(results: &Results) -> Vec<Figure> {
    let mut figures: Vec<Figure> = against(results).map(Into::into).into_iter().collect();
    figures.extend([
        set_up(results).into(),
        memory(results).into(),
        storm(results).into(),
        hello(results).into(),
    ]);
    figures
}

/// Bars of us beside the peers, where peers were measured.
fn against(results: &Results) -> Option<BarChart> {
    let sorted = by_size(&results.against, |s| (s.tunnels, s.program));
    let mut groups: Vec<BarGroup> = Vec::new();
    for set_up in sorted {
        let Some(run) = set_up.median().filter(|run| run.wave.up > 0) else {
            continue;
        };
        let name = format!("{} tunnels", whole(set_up.tunnels));
        let bar = Bar::new(
            set_up.program.name(),
            Style::Solid,
            colour(set_up.program),
            run.cpu_us,
        )
        .labelled(format!("{} us", grouped(run.cpu_us, 0)));
        match groups.last_mut().filter(|group| group.name == name) {
            Some(group) => group.bars.push(bar),
            None => groups.push(BarGroup {
                name,
                bars: vec![bar],
            }),
        }
    }
    let has_peer = |group: &BarGroup| group.bars.len() > 1;
    groups.iter().any(has_peer).then(|| BarChart {
        title: "Processor time to set up one L2TPv2 tunnel".into(),
        subtitle: "As LNS, 64 set-ups in progress at a time, median of the rounds.".into(),
        value: Axis::linear("processor time per tunnel", "us"),
        groups: groups.into_iter().filter(has_peer).collect(),
        notes: Vec::new(),
    })
}

/// One line per server and version of the set-ups.
fn lines(all: &[SetUp], skip: impl Fn(&SetUp) -> bool, y: impl Fn(&Run) -> f64) -> Vec<Series> {
    let mut lines: Vec<Series> = Vec::new();
    let mut sorted: Vec<&SetUp> = all.iter().filter(|s| !skip(s)).collect();
    sorted.sort_by_key(|s| s.tunnels);
    for set_up in sorted {
        let Some(run) = set_up.median() else { continue };
        let point = (f64::from(set_up.tunnels), y(run));
        let name = format!("{}, L2TPv{}", set_up.program.name(), number(set_up.version));
        if let Some(line) = lines.iter_mut().find(|line| line.name == name) {
            line.points.push(point);
            continue;
        }
        let colour = match (set_up.program, number(set_up.version)) {
            (LnsProgram::Headend, 2) => 4,
            (program, _) => colour(program),
        };
        let line = Series::new(name, Style::Solid, colour, vec![point]);
        lines.push(if set_up.program == LnsProgram::Headend {
            line.bold()
        } else {
            line
        });
    }
    lines
}

fn set_up(results: &Results) -> Chart {
    let mut chart = Chart::new(
        "Processor time to set up a tunnel",
        "64 at a time from distinct addresses, as LNS. A design is good if its line is flat and near the bare loop's.",
        Axis::log("tunnels", ""),
        Axis::log("processor time per tunnel", "us"),
    );
    let is_v2_bare = |s: &SetUp| s.program == LnsProgram::Bare && number(s.version) == 2;
    chart.series = lines(&results.set_ups, is_v2_bare, |run| run.cpu_us);
    let ours =
        |s: &SetUp| s.program == LnsProgram::Headend || s.runs.iter().all(|r| r.wave.up == 0);
    chart
        .series
        .extend(lines(&results.against, ours, |run| run.cpu_us));
    chart
}

fn memory(results: &Results) -> Chart {
    let mut chart = Chart::new(
        "Memory of an established tunnel",
        "Resident memory gained since before the first tunnel; at small sizes the buffers that all tunnels share weigh most.",
        Axis::log("tunnels", ""),
        Axis::log("memory per tunnel", "bytes"),
    );
    chart.series = lines(
        &results.set_ups,
        |s| s.program == LnsProgram::Bare,
        |run| run.memory_bytes,
    );
    let ours =
        |s: &SetUp| s.program == LnsProgram::Headend || s.runs.iter().all(|r| r.wave.up == 0);
    chart
        .series
        .extend(lines(&results.against, ours, |run| run.memory_bytes));
    chart
}

fn storm(results: &Results) -> Chart {
    let largest = results.storms.iter().map(|s| s.tunnels).max().unwrap_or(0);
    let shown = if results.storms.iter().any(|s| s.tunnels == 10_000) {
        10_000
    } else {
        largest
    };
    let mut chart = Chart::new(
        "A storm: tunnels up against time",
        "Every SCCRQ is sent before the first answer is read. A full receive buffer drops some, and they come again when their sender's timer says so.",
        Axis::linear("time", "s"),
        Axis::linear("tunnels up", ""),
    );
    for storm in results.storms.iter().filter(|s| s.tunnels == shown) {
        let (name, colour) = match storm.asked_bytes {
            None => ("receive buffer as configured by default", COLOUR_OURS),
            Some(_) => ("receive buffer of 212,992 bytes", 0),
        };
        let points = steps(&storm.run.wave.samples);
        let line = Series::new(name, Style::Solid, colour, points).marked_at_end();
        chart.series.push(if storm.asked_bytes.is_none() {
            line.bold()
        } else {
            line
        });
    }
    chart
}

/// A step curve: nothing is known of the time between two samples.
fn steps(samples: &[(f64, u64)]) -> Vec<(f64, f64)> {
    let mut points = vec![(0.0, 0.0)];
    let mut before = 0.0;
    for &(at, up) in samples {
        points.extend([(at, before), (at, up as f64)]);
        before = up as f64;
    }
    points
}

fn hello(results: &Results) -> BarChart {
    let bar = |hello: &Hello, name: String| {
        let percent = hello.spent.percent();
        let text = format!("{percent:.2} %, {:.2} us each", hello.each_us());
        Bar::new(name, Style::Solid, colour(hello.program), percent).labelled(text)
    };
    let mut groups: Vec<BarGroup> = [
        ("answered", &results.answered),
        ("originated", &results.originated),
    ]
    .into_iter()
    .map(|(what, all)| {
        let rate = whole(all.first().map_or(0, |hello| hello.rate));
        let bars = all.iter();
        let name = |h: &Hello| format!("{}, {} tunnels", h.program.name(), whole(h.tunnels));
        BarGroup {
            name: format!("{rate} HELLO/s {what}, L2TPv3"),
            bars: bars.map(|h| bar(h, name(h))).collect(),
        }
    })
    .collect();
    if let Some(first) = results.against_hello.first() {
        let bars = by_size(&results.against_hello, |h| (h.tunnels, h.program)).into_iter();
        let name = |h: &Hello| format!("{}, {} tunnels", h.program.name(), whole(h.tunnels));
        groups.push(BarGroup {
            name: format!("{} HELLO/s answered, L2TPv2", whole(first.rate)),
            bars: bars.map(|h| bar(h, name(h))).collect(),
        });
    }
    BarChart {
        title: "HELLOs: share of a core".into(),
        subtitle: "As LNS, over tunnels that are up.".into(),
        value: Axis::linear("of a core", "%"),
        groups,
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staircase_stays_where_it_was_until_the_next_sample() {
        let points = steps(&[(0.5, 10), (2.0, 12)]);
        let expected = [
            (0.0, 0.0),
            (0.5, 0.0),
            (0.5, 10.0),
            (2.0, 10.0),
            (2.0, 12.0),
        ];
        assert_eq!(points, expected);
    }
}
