//! The charts of the analyser report.

use lab::plot::number::short;
use lab::plot::{Axis, Bar, BarChart, BarGroup, COLOUR_OURS, Chart, Figure, Series, Style};

use super::course::{Plan, Results};
use super::programs::{Peer, TraceProgram};
use super::tables::reached;

/// All charts, the rates first.
pub(super) fn all(plan: &Plan, results: &Results) -> Vec<Figure> {
    let mut figures = vec![rates(plan, results).into()];
    figures.extend(
        plan.kinds
            .iter()
            .map(|kind| growth(plan, results, kind).into()),
    );
    figures
}

fn colour(program: TraceProgram) -> usize {
    match program {
        TraceProgram::Read => 0,
        TraceProgram::Parse => 1,
        TraceProgram::Peer(Peer::Tcptrace) => 2,
        TraceProgram::Peer(Peer::Tshark) => 3,
        _ => COLOUR_OURS,
    }
}

/// Packets per second that one core can handle.
fn rates(plan: &Plan, results: &Results) -> BarChart {
    let group = |kind: &&'static str| {
        let mut bars = Vec::new();
        for program in [
            TraceProgram::Read,
            TraceProgram::Parse,
            TraceProgram::Quiet,
            TraceProgram::Brief,
        ] {
            if let Some(one) = results.at(program, kind, plan.factor) {
                let rate = one.packets_per_s() / 1e6;
                bars.push(Bar::new(
                    program.name(),
                    Style::Solid,
                    colour(program),
                    rate,
                ));
            }
        }
        let ours = results.at(TraceProgram::Brief, kind, plan.factor);
        for &peer in &plan.peers {
            let found = ours.and_then(|ours| Some((ours, reached(results, peer, ours)?)));
            let colour = colour(TraceProgram::Peer(peer));
            let Some((ours, cpu_s, is_measured)) =
                found.and_then(|(ours, found)| Some((ours, found.cpu_s?, found.is_measured)))
            else {
                bars.push(Bar::missing(peer.name(), colour, "did not end in time"));
                continue;
            };
            let rate = ours.packets as f64 / cpu_s.max(1e-9) / 1e6;
            let style = if is_measured {
                Style::Solid
            } else {
                Style::Dotted
            };
            bars.push(
                Bar::new(peer.name(), style, colour, rate).labelled(match is_measured {
                    true => short(rate),
                    false => format!("{}, extrapolated", short(rate)),
                }),
            );
        }
        BarGroup {
            name: (*kind).into(),
            bars,
        }
    };
    BarChart {
        title: "Packets per second of a core".into(),
        subtitle: "Longer is better. Reading and parsing alone are bare loops, below whose cost nothing can be.".into(),
        value: Axis::log("packets per second of processor time", "million"),
        groups: plan.kinds.iter().map(group).collect(),
        notes: Vec::new(),
    }
}

/// Processor time against the number of packets, for one capture.
fn growth(plan: &Plan, results: &Results, kind: &'static str) -> Chart {
    let mut chart = Chart::new(
        format!("Time against packets: {kind}"),
        "A packet that costs the same however long the capture is gives a line of slope one.",
        Axis::log("packets", ""),
        Axis::log("processor time", "s"),
    );
    let mut programs = vec![TraceProgram::Read, TraceProgram::Parse, TraceProgram::Quiet];
    programs.extend(plan.peers.iter().map(|peer| TraceProgram::Peer(*peer)));
    for program in programs {
        let points: Vec<(f64, f64)> = results
            .of(program, kind)
            .map(|one| (one.packets as f64, one.cpu_s()))
            .collect();
        let Some(&last) = points.last() else { continue };
        let series = Series::new(program.name(), Style::Solid, colour(program), points);
        chart.series.push(if program == TraceProgram::Quiet {
            series.bold()
        } else {
            series
        });
        let ours = results.at(TraceProgram::Brief, kind, plan.factor);
        if let (TraceProgram::Peer(peer), Some(ours)) = (program, ours)
            && let Some(found) = reached(results, peer, ours)
            && let (false, Some(cpu_s)) = (found.is_measured, found.cpu_s)
        {
            let name = format!("{}, extrapolated", program.name());
            let points = vec![last, (ours.packets as f64, cpu_s)];
            chart
                .series
                .push(Series::new(name, Style::Dotted, colour(program), points));
        }
    }
    chart
}
