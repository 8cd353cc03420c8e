//! Pictures of the outcome.

use plot::figure::{Bar, BarChart, BarGroup, Figure, Style};
use plot::{Axis, Chart, Kind, Series};

use super::super::outcome::{Experiment, Outcome, RowOutcome, Setting, Spread};
use super::super::rows::Result;
use super::load_words;

/// Colours of what was published, of what was measured here, and of a browser here.
const PUBLISHED: usize = 0;
const HERE: usize = plot::figure::COLOUR_OURS;
const BROWSER: usize = 2;

fn trips(name: impl Into<String>, pings: &[(f64, Option<f64>)]) -> Series {
    let answered = pings
        .iter()
        .filter_map(|(sent, rtt)| Some((*sent, (*rtt)?)));
    let lost = pings.iter().filter(|ping| ping.1.is_none());
    Series::from_points(name, answered, lost.map(|ping| ping.0))
}

fn over_time(title: String) -> Chart {
    let time = Axis::linear("time", "s");
    Chart::new(
        Kind::OverTime,
        title,
        time,
        Axis::linear("round trip", "ms"),
    )
}

pub(super) fn ping_charts(outcome: &Outcome) -> Vec<Chart> {
    let series = |row: &RowOutcome| {
        let name = format!(
            "row {}: A does {}",
            row.row.number,
            load_words(row.row.load)
        );
        // Of several measurements the first is drawn.
        row.runs.first().map(|run| trips(name, &run.pings))
    };
    let mut charts = Vec::new();
    for shaped in [false, true] {
        let of = |row: &&RowOutcome| row.row.shaped == shaped;
        let title = match shaped {
            false => "Without policy".to_owned(),
            true => format!("With policy: {}", outcome.treatment),
        };
        let mut chart = over_time(title);
        chart.series = outcome.rows.iter().filter(of).filter_map(series).collect();
        if !chart.series.is_empty() {
            charts.push(chart);
        }
    }
    let mut all = over_time(String::new());
    let with = |row: &RowOutcome| {
        let policy = if row.row.shaped { "with" } else { "without" };
        let load = load_words(row.row.load);
        let name = format!("row {}: {load}, {policy} policy", row.row.number);
        row.runs.first().map(|run| trips(name, &run.pings))
    };
    all.series = outcome.rows.iter().filter_map(with).collect();
    if !all.series.is_empty() {
        charts.push(all.to_cdf("How the round trips are distributed"));
    }
    charts
}

pub(super) fn experiment_charts(experiment: &Experiment) -> Vec<Chart> {
    let chart = |setting: &Setting| {
        let mut chart = over_time(setting.name.clone());
        let streams = setting.streams.iter();
        chart.series = streams
            .map(|stream| trips(stream.name.as_str(), &stream.pings))
            .collect();
        chart
    };
    experiment.settings.iter().map(chart).collect()
}

fn group(row: &RowOutcome, bars: Vec<Bar>) -> BarGroup {
    let policy = if row.row.shaped { "with" } else { "without" };
    BarGroup {
        name: format!(
            "Row {}: A does {}, {policy} policy",
            row.row.number,
            load_words(row.row.load)
        ),
        bars,
    }
}

/// A bar of the mean, and its spread in words where there is one.
fn bar(name: &str, colour: usize, spread: Option<Spread>, decimals: usize) -> Bar {
    let Some(spread) = spread else {
        return Bar::missing(name, colour, "none");
    };
    let bar = Bar::new(name, Style::Solid, colour, spread.mean);
    if spread.count < 2 {
        return bar.labelled(format!("{:.decimals$}", spread.mean));
    }
    bar.labelled(format!(
        "{:.decimals$} ({:.decimals$} to {:.decimals$}, n = {})",
        spread.mean, spread.min, spread.max, spread.count
    ))
}

fn published_bar(value: Option<f64>, missing: &str) -> Bar {
    match value {
        Some(value) => Bar::new("published", Style::Dashed, PUBLISHED, value),
        None => Bar::missing("published", PUBLISHED, missing),
    }
}

pub(super) fn bar_charts(outcome: &Outcome) -> Vec<Figure> {
    if outcome.rows.is_empty() {
        return Vec::new();
    }
    let chart = |title: &str, subtitle: &str, value, groups| {
        Figure::from(BarChart {
            title: title.to_owned(),
            subtitle: subtitle.to_owned(),
            value,
            groups,
            notes: Vec::new(),
        })
    };
    let groups = |bars: &dyn Fn(&RowOutcome) -> Vec<Bar>| {
        let rows = outcome.rows.iter();
        rows.map(|row| group(row, bars(row))).collect::<Vec<_>>()
    };
    let stream = "A stream of 200 kbit/s in datagrams of 500 octets from B to the far side";
    let mut charts = vec![
        chart(
            "Loss of the stream",
            stream,
            Axis::linear("loss", "%"),
            groups(&|row| {
                let here = row.spread(|run| Some(run.loss_percent));
                vec![
                    published_bar(Some(row.published.loss_percent), ""),
                    bar("here", HERE, here, 2),
                ]
            }),
        ),
        chart(
            "Jitter of the stream",
            stream,
            Axis::linear("jitter", "ms"),
            groups(&|row| {
                let here = row.spread(|run| Some(run.jitter_ms));
                vec![
                    published_bar(Some(row.published.jitter_ms), ""),
                    bar("here", HERE, here, 2),
                ]
            }),
        ),
        chart(
            "Page loads",
            "A page of a dozen objects, 150 kB, loaded by B: each load, and of a browser each load",
            Axis::linear("time", "ms"),
            groups(&|row| page_bars(row)),
        ),
    ];
    if outcome
        .rows
        .iter()
        .any(|row| row.runs.iter().any(|run| run.share.is_some()))
    {
        charts.push(chart(
            "B's share of the link",
            "One upload of B against what A does",
            Axis::linear("share", "").up_to(1.0),
            groups(&|row| {
                let here = row.spread(|run| run.share);
                vec![
                    published_bar(row.published.share, "not published"),
                    bar("here", HERE, here, 3),
                ]
            }),
        ));
    }
    charts
}

/// The loads of all measurements together, so that their spread is that of single loads.
fn page_bars(row: &RowOutcome) -> Vec<Bar> {
    let all = |loads: fn(&Result) -> &Vec<f64>| {
        let each = row.runs.iter().flat_map(loads).copied();
        Spread::of(&each.collect::<Vec<f64>>())
    };
    let mut bars = vec![
        published_bar(row.published.page_ms, "no page within 120 s"),
        bar("here", HERE, all(|run| &run.page_ms), 0),
    ];
    let browsed = |run: &Result| !run.browser_ms.is_empty() || run.browser_failures > 0;
    if row.runs.iter().any(browsed) {
        bars.push(bar("browser", BROWSER, all(|run| &run.browser_ms), 0));
    }
    bars
}
