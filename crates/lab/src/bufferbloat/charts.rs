//! Delay and throughput over time: one picture, or one page. Several runs share its axis, each from its start.

use ::plot::{Axis, Band, Block, Chart, Kind as Drawn, Page, Series, Stack, Thinner};

use super::account::accounts;
use super::run::{Kind, Run};
use super::verdict::{Verdict, megabits};

/// What a series' colour has with the same hue, but hollow markers and another dash.
const HOLLOW: usize = 8;

/// Both charts as one picture.
#[must_use]
pub fn stack(runs: &[(&str, &Run)]) -> Stack {
    Stack {
        title: title(runs),
        subtitle: sentences(runs).join("\n"),
        charts: vec![delay(runs), throughput(runs)],
    }
}

/// Both charts, the delay of each direction where it is known, and the accounts of the phases, as a page.
#[must_use]
pub fn page(runs: &[(&str, &Run)]) -> Page {
    let mut page = Page::new(title(runs));
    let lead = sentences(runs).into_iter().map(Block::Lead);
    page.blocks.extend(lead);
    page.blocks.push(delay(runs).into());
    page.blocks.push(throughput(runs).into());
    page.blocks.extend(each_way(runs).map(Block::from));
    page.blocks
        .push(Block::Heading("What each phase measured".to_owned()));
    page.blocks.push(table(runs));
    let faults = runs.iter().flat_map(|(name, run)| {
        let faults = run.faults.iter();
        faults.map(move |fault| Block::Text(label(runs, name, fault)))
    });
    page.blocks.extend(faults);
    page
}

fn title(runs: &[(&str, &Run)]) -> String {
    let host = runs.first().map_or("", |(_, run)| &run.host);
    format!("Delay under load: {host}")
}

fn sentences(runs: &[(&str, &Run)]) -> Vec<String> {
    runs.iter()
        .map(|(name, run)| label(runs, name, &Verdict::of(&accounts(run)).sentence))
        .collect()
}

/// A text with the name of its run, if there are several.
fn label(runs: &[(&str, &Run)], name: &str, text: &str) -> String {
    match runs.len() {
        1 => text.to_owned(),
        _ => format!("{name}: {text}"),
    }
}

fn bands(runs: &[(&str, &Run)]) -> Vec<Band> {
    // The phases of the first run that got furthest: an aborted one has fewer.
    let longest = runs.iter().rev().max_by_key(|(_, run)| run.phases.len());
    let phases = longest.into_iter().flat_map(|(_, run)| &run.phases);
    phases
        .map(|phase| Band {
            x: (phase.from_us as f64 / 1e6, phase.to_us as f64 / 1e6),
            is_shaded: phase.kind != Kind::Idle,
            name: phase.kind.name().to_owned(),
        })
        .collect()
}

fn over_time(runs: &[(&str, &Run)], kind: Drawn, title: &str, y: Axis) -> Chart {
    let mut chart = Chart::new(kind, title, Axis::linear("time since the start", "s"), y);
    chart.bands = bands(runs);
    let ends = runs.iter().flat_map(|(_, run)| &run.phases);
    let end_us = ends.map(|phase| phase.to_us).max();
    chart.x.max = end_us.map(|us| us as f64 / 1e6);
    chart
}

fn delay(runs: &[(&str, &Run)]) -> Chart {
    let y = Axis::linear("round-trip time", "ms");
    let mut chart = over_time(runs, Drawn::OverTime, "Delay", y).of_packets();
    for (name, run) in runs {
        for pings in &run.pings {
            let mut thinner = Thinner::new();
            for (at, rtt) in pings.at_us.iter().zip(&pings.rtt_us) {
                let at = *at as f64 / 1e6;
                match rtt {
                    Some(rtt) => thinner.push(at, *rtt as f64 / 1e3),
                    None => thinner.push_lost(at),
                }
            }
            chart
                .series
                .push(thinner.finish(label(runs, name, &pings.name)));
        }
    }
    chart
}

fn throughput(runs: &[(&str, &Run)]) -> Chart {
    let y = Axis::linear("payload received", "Mbit/s");
    let mut chart = over_time(runs, Drawn::Steps, "Throughput", y);
    let mut colour = 0;
    for (name, run) in runs {
        for (way, streams, look) in [
            ("down", &run.load.down_bps, 0),
            ("up", &run.load.up_bps, HOLLOW),
        ] {
            let sums = run.load.sum(streams);
            let series = steps(run, &sums, &label(runs, name, way));
            chart.series.push(series.coloured(colour % HOLLOW + look));
        }
        // That of the next run's first pings.
        colour += run.pings.len();
    }
    chart
}

/// A rate that is the mean since the reading before, as steps that begin there.
fn steps(run: &Run, rates: &[u64], name: &str) -> Series {
    let starts = std::iter::once(&0).chain(&run.load.at_us);
    let points = starts
        .zip(rates)
        .map(|(from, bps)| (*from as f64 / 1e6, *bps as f64 / 1e6));
    let end = run.load.at_us.last().zip(rates.last());
    let end = end.map(|(at, bps)| (*at as f64 / 1e6, *bps as f64 / 1e6));
    Series::from_points(name, points.chain(end), [])
}

/// The delay of each direction; `None` if no run knows it.
fn each_way(runs: &[(&str, &Run)]) -> Option<Chart> {
    let y = Axis::linear("delay", "ms");
    let mut chart = over_time(runs, Drawn::OverTime, "Delay each way", y);
    for (name, run) in runs {
        for pings in run.pings.iter().filter(|pings| !pings.up_us.is_empty()) {
            for (way, delays) in [("there", &pings.up_us), ("back", &pings.down_us)] {
                let points = pings
                    .at_us
                    .iter()
                    .zip(delays)
                    .filter_map(|(at, delay)| Some((*at as f64 / 1e6, (*delay)? as f64 / 1e3)));
                let text = format!("{}, {way}", pings.name);
                let series = Series::from_points(label(runs, name, &text), points, []);
                chart.series.push(series);
            }
        }
    }
    let error_us = runs
        .iter()
        .filter_map(|(_, run)| run.one_way_error_us)
        .max();
    chart.notes = vec![format!(
        "As if the shortest delays there and back were alike: the hosts' clocks are not compared. Each line may be off by \
         up to {:.2} ms as a whole; its shape is not.",
        error_us? as f64 / 1e3
    )];
    Some(chart)
}

fn table(runs: &[(&str, &Run)]) -> Block {
    let head = [
        "phase",
        "pings",
        "sent",
        "lost",
        "min, ms",
        "p50, ms",
        "p95, ms",
        "max, ms",
        "there p95, ms",
        "back p95, ms",
        "down",
        "up",
    ];
    let us = |us: Option<u64>| us.map_or("-".to_owned(), |us| format!("{:.2}", us as f64 / 1e3));
    let signed =
        |us: Option<i64>| us.map_or("-".to_owned(), |us| format!("{:.2}", us as f64 / 1e3));
    let rate = |bps: Option<u64>| bps.map_or("-".to_owned(), megabits);
    let mut rows = Vec::new();
    for (name, run) in runs {
        for account in accounts(run) {
            let kind: Kind = account.kind;
            let part = if account.complete { "" } else { " (cut short)" };
            let phase = label(runs, name, &format!("{}{part}", kind.name()));
            for delay in &account.pings {
                rows.push(vec![
                    phase.clone(),
                    delay.name.clone(),
                    delay.sent.to_string(),
                    delay.lost.to_string(),
                    us(delay.min_us),
                    us(delay.p50_us),
                    us(delay.p95_us),
                    us(delay.max_us),
                    signed(delay.up_p95_us),
                    signed(delay.down_p95_us),
                    rate(account.down_bps),
                    rate(account.up_bps),
                ]);
            }
        }
    }
    let head = head.map(str::to_owned).to_vec();
    Block::Table { head, rows }
}
