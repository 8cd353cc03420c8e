//! The charts of the chapter: published figures dashed, old designs thin, ours thick.

use super::{Run, slowest};
use crate::gateway::outcome::{RowOutcome, Setting};
use crate::gateway::report::load_words;
use crate::gateway::rows::{Load, Result};
use plot::figure::{Axis, Bar, BarChart, BarGroup, COLOUR_OURS, Chart, Figure, Series, Style};

/// Pairs of sending time in seconds and round-trip time in milliseconds; `None` without a reply.
type Trips = [(f64, Option<f64>)];

/// Colours of the rows without the policy by load, then of those with it.
const COLOURS: [usize; 6] = [0, 3, 1, 4, 5, COLOUR_OURS];

pub(super) fn charts(run: &Run<'_>) -> Vec<Figure> {
    let mut charts: Vec<Figure> = Vec::new();
    charts.extend(rows_over_time(run, Load::Bulk, (3, 4)).map(Figure::from));
    charts.extend(rows_over_time(run, Load::Flood, (5, 6)).map(Figure::from));
    if run.0.rows.is_empty() {
        return charts;
    }
    charts.push(distribution(run).into());
    charts.push(loss(run).into());
    charts.push(pages(run).into());
    charts.push(shares(run).into());
    charts.extend(tunnel(run).map(Figure::from));
    charts.extend(perturb(run).map(Figure::from));
    charts
}

fn over_time(title: &str, subtitle: &str) -> Chart {
    let (x, y) = (
        Axis::linear("time", "s"),
        Axis::linear("round trip of a ping", "ms"),
    );
    Chart::new(title, subtitle, x, y)
}

/// Adds pings as a line. The line breaks where a ping had no reply, and the foot of the chart marks
/// these pings.
fn add(chart: &mut Chart, name: &str, colour: usize, trips: &Trips) {
    let points = trips
        .iter()
        .map(|&(at, trip)| (at, trip.unwrap_or(f64::NAN)));
    let series = Series::new(name, Style::Solid, colour, points.collect());
    chart.series.push(if colour == COLOUR_OURS {
        series.bold()
    } else {
        series
    });
    let lost: Vec<(f64, f64)> = trips
        .iter()
        .filter(|trip| trip.1.is_none())
        .map(|trip| (trip.0, 0.0))
        .collect();
    if !lost.is_empty() {
        let name = format!("{name}: no reply to {} of {}", lost.len(), trips.len());
        chart
            .series
            .push(Series::new(name, Style::Points, colour, lost));
    }
}

fn rows_over_time(run: &Run<'_>, load: Load, (without, with): (u8, u8)) -> Option<Chart> {
    let title = format!("Pings of B while A does {}", load_words(load));
    let mut chart = over_time(
        &title,
        "Lower is better. Ten pings a second; on the idle link one takes 20 ms.",
    );
    // Of several measurements the first is drawn.
    let pings = |number| Some(&run.row(number)?.runs.first()?.pings);
    let name = |number, policy: &str| format!("row {number}: {policy}");
    add(
        &mut chart,
        &name(without, "without policy"),
        0,
        pings(without)?,
    );
    add(
        &mut chart,
        &name(with, "with policy"),
        COLOUR_OURS,
        pings(with)?,
    );
    Some(chart)
}

/// For each row, the share of all pings that had a reply within a time.
fn distribution(run: &Run<'_>) -> Chart {
    let mut chart = Chart::new(
        "Pings answered within a time",
        "Further left is faster. A line that ends below one has lost pings; a missing line has lost all.",
        Axis::log("round trip", "ms"),
        Axis::linear("share of the pings", "").up_to(1.0),
    );
    for (row, colour) in run.0.rows.iter().zip(COLOURS) {
        let sent: usize = row.runs.iter().map(|run| run.pings.len()).sum();
        let pings = row.runs.iter().flat_map(|run| &run.pings);
        let mut trips: Vec<f64> = pings.filter_map(|ping| ping.1).collect();
        trips.sort_by(f64::total_cmp);
        let points = (1_usize..).zip(trips);
        let points: Vec<_> = points
            .map(|(place, trip)| (trip, place as f64 / sent as f64))
            .collect();
        let series = Series::new(row_name(row), Style::Solid, colour, points);
        chart.series.push(if row.row.shaped {
            series.bold()
        } else {
            series
        });
    }
    chart
}

fn row_name(row: &RowOutcome) -> String {
    let policy = if row.row.shaped {
        "with policy"
    } else {
        "without"
    };
    let load = load_words(row.row.load);
    format!("row {}: {load}, {policy}", row.row.number)
}

/// Bars of each row: published and measured.
fn bars(
    run: &Run<'_>,
    (title, subtitle, value): (&str, &str, Axis),
    each: impl Fn(&RowOutcome) -> [Bar; 2],
) -> BarChart {
    let groups = run.0.rows.iter().map(|row| BarGroup {
        name: row_name(row),
        bars: each(row).into(),
    });
    BarChart {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        value,
        groups: groups.collect(),
        notes: Vec::new(),
    }
}

fn published(row: &RowOutcome, value: Option<f64>, missing: &str) -> Bar {
    match value {
        Some(value) => Bar::new("published", Style::Dashed, colour(row), value),
        None => Bar::missing("published", colour(row), missing),
    }
}

/// A row with the policy is ours.
fn colour(row: &RowOutcome) -> usize {
    if row.row.shaped { COLOUR_OURS } else { 0 }
}

/// The mean over the measurements, and their spread.
fn here(
    row: &RowOutcome,
    figure: impl Fn(&Result) -> Option<f64>,
    decimals: usize,
    missing: &str,
) -> Bar {
    let Some(spread) = row.spread(figure) else {
        return Bar::missing("here", colour(row), missing);
    };
    let bar = Bar::new("here", Style::Solid, colour(row), spread.mean);
    let mean = format!("{:.decimals$}", spread.mean);
    let [low, high] = [spread.min, spread.max].map(|value| format!("{value:.decimals$}"));
    bar.labelled(if low == high {
        mean
    } else {
        format!("{mean} ({low} to {high})")
    })
}

fn loss(run: &Run<'_>) -> BarChart {
    let of = "A stream of 200 kbit/s in datagrams of 500 octets from B. Shorter is better.";
    let axis = Axis::linear("loss", "%");
    bars(run, ("Loss of the stream", of, axis), |row| {
        let was = published(row, Some(row.published.loss_percent), "");
        [was, here(row, |run| Some(run.loss_percent), 1, "")]
    })
}

fn pages(run: &Run<'_>) -> BarChart {
    let of = "The published page and ours are not the same. Shorter is better.";
    let axis = Axis::linear("time", "ms");
    bars(run, ("Page loads of B, the mean", of, axis), |row| {
        let was = published(row, row.published.page_ms, "no page within 120 s");
        [was, here(row, Result::page_mean_ms, 0, "no page")]
    })
}

fn shares(run: &Run<'_>) -> BarChart {
    let of = "One upload of B against A's load. A half is fair.";
    let axis = Axis::linear("share", "").up_to(1.0);
    let mut chart = bars(run, ("B's share of the link", of, axis), |row| {
        let was = published(row, row.published.share, "");
        [was, here(row, |run| run.share, 2, "")]
    });
    // Beside an idle host there is no share to compare.
    let has_one = |group: &BarGroup| group.bars.iter().any(|bar| bar.value.is_some());
    chart.groups.retain(has_one);
    chart
}

fn tunnel(run: &Run<'_>) -> Option<Chart> {
    let [before, after] = &run.experiment("tunnel")?.settings[..] else {
        return None;
    };
    let mut chart = over_time(
        "A ping beside an upload, both in one tunnel",
        "Lower is better. Queues classify by the outer header, then by the inner header.",
    );
    for (setting, colour) in [(before, 0), (after, COLOUR_OURS)] {
        add(&mut chart, &setting.name, colour, &slowest(setting));
    }
    Some(chart)
}

fn perturb(run: &Run<'_>) -> Option<Chart> {
    let settings = &run.experiment("perturb")?.settings;
    let mut chart = over_time(
        "Pings through an SFQ that changes its hash every 5 s",
        "Lower is better. The slowest of three hosts that are pinged at once, beside two floods that fill the link.",
    );
    let ours = settings.len().checked_sub(1)?;
    let colour = |place: usize, _: &Setting| if place == ours { COLOUR_OURS } else { place };
    for (place, setting) in settings.iter().enumerate() {
        add(
            &mut chart,
            &setting.name,
            colour(place, setting),
            &slowest(setting),
        );
    }
    Some(chart)
}
