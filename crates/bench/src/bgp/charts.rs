//! The charts of the BGP report.

use lab::plot::{Axis, COLOUR_OURS, Chart, Figure, Series, Style};

use super::Results;
use super::daemons::BgpProgram;

/// Each subject has the same colour in all charts.
fn colour(program: &BgpProgram) -> usize {
    match program {
        BgpProgram::Headend => COLOUR_OURS,
        BgpProgram::Bare(_) => 7,
        BgpProgram::Frr(..) => 0,
        BgpProgram::Bird => 1,
        BgpProgram::Gobgp => 2,
    }
}

/// All charts that have at least one line.
pub(super) fn all(results: &Results) -> Vec<Figure> {
    let whole = |all: &[super::Kept]| -> Vec<super::Kept> {
        all.iter().filter(|k| k.up > 0).cloned().collect()
    };
    let kept = whole(&results.kept);
    let mut charts = [
        chart(
            "CPU of passive peers",
            "A KEEPALIVE in a second in both directions, hold time 3 s. Lower is better.",
            [Axis::log("peers", ""), Axis::log("CPU", "% of a core")],
            kept.iter()
                .map(|k| (&k.program, f64::from(k.peers), k.cpu_percent)),
        ),
        chart(
            "Memory of an idle peer",
            "Resident memory gained since before the first.",
            [
                Axis::log("peers", ""),
                Axis::log("memory per peer", "bytes"),
            ],
            kept.iter()
                .filter(|k| !matches!(k.program, BgpProgram::Bare(_)))
                .map(|k| (&k.program, f64::from(k.peers), k.memory_bytes)),
        ),
        chart(
            "Peers at once",
            "From the first connect to the last session established.",
            [Axis::log("peers", ""), Axis::log("time", "s")],
            results
                .risen
                .iter()
                .filter(|r| r.up == r.peers)
                .map(|r| (&r.program, f64::from(r.peers), r.seconds)),
        ),
        chart(
            "A table from feeder to sink",
            "From the feeder's first octet to the last prefix at the sink.",
            [Axis::log("prefixes", ""), Axis::log("time", "s")],
            results
                .passed
                .iter()
                .filter(|p| p.arrived == p.prefixes)
                .map(|p| (&p.program, f64::from(p.prefixes), p.announce.seconds)),
        ),
        chart(
            "The same table withdrawn",
            "From the feeder's first octet to the last prefix gone from the sink.",
            [Axis::log("prefixes", ""), Axis::log("time", "s")],
            results
                .passed
                .iter()
                .filter(|p| p.left == p.prefixes)
                .map(|p| (&p.program, f64::from(p.prefixes), p.withdraw.seconds)),
        ),
    ];
    for kept in results.kept.iter().filter(|k| k.up < k.peers) {
        charts[0].notes.push(format!(
            "{} with {} peers: {} up at the end, {} lost.",
            kept.program, kept.peers, kept.up, kept.seen.lost
        ));
    }
    let charts = charts.into_iter().filter(|chart| !chart.series.is_empty());
    charts.map(Into::into).collect()
}

/// A line for every subject that has a point.
fn chart<'a>(
    title: &str,
    subtitle: &str,
    [x, y]: [Axis; 2],
    points: impl Iterator<Item = (&'a BgpProgram, f64, f64)>,
) -> Chart {
    let mut chart = Chart::new(title, subtitle, x, y);
    for (program, x, y) in points {
        let name = program.to_string();
        if let Some(line) = chart.series.iter_mut().find(|line| line.name == name) {
            line.points.push((x, y));
            continue;
        }
        let line = Series::new(name, Style::Solid, colour(program), vec![(x, y)]);
        chart.series.push(if *program == BgpProgram::Headend {
            line.bold()
        } else {
            line
        });
    }
    chart
}
