//! The outcome for people: tables, and one page with every picture.

use plot::figure::{Bar, BarChart, BarGroup, Figure, Style};
use plot::{Axis, Block, Chart, Kind, Page, Series};

use super::outcome::{Experiment, Outcome, RowOutcome, Spread, targets};
use super::rows::{Load, Result};
use crate::report::{Cell, Table};

/// Colours of what was published, of what was measured here, and of a browser here.
const PUBLISHED: usize = 0;
const HERE: usize = plot::figure::COLOUR_OURS;
const BROWSER: usize = 2;

/// Octets of a table's entry that is not broken into lines.
const SHORT: usize = 20;

/// What A does in a row, in words.
#[must_use]
pub fn load_words(load: Load) -> &'static str {
    match load {
        Load::None => "nothing",
        Load::Bulk => "3 uploads",
        Load::Flood => "8.2 Mbit/s UDP",
    }
}

/// Tables of the outcome, for the terminal, the page and CSV.
#[must_use]
pub fn tables(outcome: &Outcome) -> Vec<Table> {
    let mut tables = Vec::new();
    if !outcome.rows.is_empty() {
        tables.push(rows_table(outcome));
        tables.push(waits_table(outcome));
        if outcome.rows.iter().any(|row| row.runs.len() > 1) {
            tables.push(spread_table(outcome));
        }
    }
    if !outcome.fairness.is_empty() {
        tables.push(fairness_table(outcome));
    }
    tables.extend(outcome.experiments.iter().map(experiment_table));
    if outcome.row(6).is_some() || !outcome.fairness.is_empty() {
        tables.push(targets_table(outcome));
    }
    tables
}

/// Columns that say which row it is.
const ROW: [(&str, &str); 3] = [("row", ""), ("A does", ""), ("policy", "")];

fn row_cells(row: &RowOutcome) -> [Cell; 3] {
    [
        Cell::from(u64::from(row.row.number)),
        Cell::from(load_words(row.row.load)),
        Cell::from(if row.row.shaped { "yes" } else { "no" }),
    ]
}

fn number(value: Option<f64>, decimals: usize) -> Cell {
    value.map_or(Cell::Missing, |value| Cell::num(value, decimals))
}

/// Stream and shares.
pub(crate) fn rows_table(outcome: &Outcome) -> Table {
    let title = format!(
        "The six rows, published (publ.) and here ({}, policy: {})",
        outcome.place, outcome.treatment
    );
    let figures = [
        ("loss publ.", "%"),
        ("loss", "%"),
        ("jitter publ.", "ms"),
        ("jitter", "ms"),
        ("B's share publ.", ""),
        ("B's share", ""),
    ];
    let mut table = Table::new(title, &[&ROW[..], &figures].concat());
    for row in &outcome.rows {
        let published = row.published;
        let figures = [
            Cell::num(published.loss_percent, 1),
            number(row.mean(|run| Some(run.loss_percent)), 2),
            Cell::num(published.jitter_ms, 2),
            number(row.mean(|run| Some(run.jitter_ms)), 2),
            number(published.share, 2),
            number(row.mean(|run| run.share), 3),
        ];
        table.row(row_cells(row).into_iter().chain(figures));
    }
    table
}

/// Pages and pings.
pub(crate) fn waits_table(outcome: &Outcome) -> Table {
    let figures = [
        ("page publ.", "ms"),
        ("page", "ms"),
        ("failed", ""),
        ("browser", "ms"),
        ("ping p50", "ms"),
        ("ping p99", "ms"),
        ("pings lost", "%"),
    ];
    let title = "How long B waits: pages and pings";
    let mut table = Table::new(title, &[&ROW[..], &figures].concat());
    for row in &outcome.rows {
        let failures = row.runs.iter().map(|run| u64::from(run.page_failures));
        let figures = [
            number(row.published.page_ms, 0),
            number(row.mean(Result::page_mean_ms), 0),
            Cell::from(failures.sum::<u64>()),
            number(row.mean(Result::browser_mean_ms), 0),
            number(row.mean(|run| run.ping_percentile_ms(0.5)), 1),
            number(row.mean(|run| run.ping_percentile_ms(0.99)), 1),
            number(row.mean(|run| Some(run.ping_loss_percent())), 1),
        ];
        table.row(row_cells(row).into_iter().chain(figures));
    }
    table
}

/// A figure of one measurement.
type Reading = fn(&Result) -> Option<f64>;

/// Each row's figures that are spread over its measurements.
const FIGURES: [(&str, Reading); 6] = [
    ("loss (%)", |run| Some(run.loss_percent)),
    ("jitter (ms)", |run| Some(run.jitter_ms)),
    ("page (ms)", |run| run.page_mean_ms()),
    ("browser (ms)", |run| run.browser_mean_ms()),
    ("ping p99 (ms)", |run| run.ping_percentile_ms(0.99)),
    ("B's share", |run| run.share),
];

fn spread_table(outcome: &Outcome) -> Table {
    let mut table = Table::new(
        "Spread over the measurements",
        &[
            ("row", ""),
            ("figure", ""),
            ("n", ""),
            ("mean", ""),
            ("min", ""),
            ("max", ""),
            ("95 % +-", ""),
        ],
    );
    for row in &outcome.rows {
        for (name, figure) in FIGURES {
            let Some(spread) = row.spread(figure) else {
                continue;
            };
            table.row([
                Cell::from(u64::from(row.row.number)),
                Cell::from(name),
                Cell::from(spread.count),
                Cell::num(spread.mean, 3),
                Cell::num(spread.min, 3),
                Cell::num(spread.max, 3),
                spread
                    .half_95
                    .map_or(Cell::Missing, |half| Cell::num(half, 3)),
            ]);
        }
    }
    table
}

pub(crate) fn fairness_table(outcome: &Outcome) -> Table {
    let mut table = Table::new(
        "Nine uploads of A against one of B",
        &[
            ("policy", ""),
            ("B's share", ""),
            ("Jain's index of the hosts", ""),
        ],
    );
    for one in &outcome.fairness {
        let mean = |values: &[f64]| {
            Spread::of(values).map_or(Cell::Missing, |spread| Cell::num(spread.mean, 4))
        };
        table.row([
            Cell::from(one.treatment.as_str()),
            mean(&one.shares),
            mean(&one.jain),
        ]);
    }
    table
}

pub(crate) fn experiment_table(experiment: &Experiment) -> Table {
    let mut table = Table::new(
        experiment.title,
        &[
            ("setting", ""),
            ("pings", ""),
            ("p50", "ms"),
            ("p99", "ms"),
            ("max", "ms"),
            ("lost", "%"),
        ],
    );
    for setting in &experiment.settings {
        for stream in &setting.streams {
            let at = |p| {
                let value = stream.percentile_ms(p);
                value.map_or(Cell::Missing, |value| Cell::num(value, 1))
            };
            table.row([
                Cell::from(setting.name.as_str()),
                Cell::from(stream.name.as_str()),
                at(0.5),
                at(0.99),
                at(1.0),
                Cell::num(stream.loss_percent(), 1),
            ]);
        }
    }
    table
}

fn targets_table(outcome: &Outcome) -> Table {
    let mut table = Table::new(
        "What is to be reached",
        &[("target", ""), ("found", ""), ("reached", "")],
    );
    for target in targets(outcome) {
        let reached = match target.reached {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "-",
        };
        table.row([
            Cell::Text(target.what),
            Cell::Text(target.found),
            Cell::from(reached),
        ]);
    }
    table
}

/// All of it as one HTML file that needs nothing else.
#[must_use]
pub fn page(outcome: &Outcome) -> String {
    let mut page = Page::new("The home gateway");
    page.subtitle = format!(
        "Hosts A and B share a slow link. What A does to a thin stream, to pings and to pages of B, without and with a \
         policy ({}) in the gateway, in {}, beside what was published (Dan Siemon, 2009 to 2014).",
        outcome.treatment, outcome.place
    );
    let blocks = &mut page.blocks;
    let heading = |text: &str| Block::Heading(text.to_owned());
    if outcome.interrupted {
        let text = "It was stopped: what was not measured until then is missing.";
        blocks.push(Block::Text(text.to_owned()));
    }
    for table in tables(outcome) {
        blocks.push(heading(&table.title));
        blocks.push(as_block(&table));
    }
    let charts = ping_charts(outcome);
    if !charts.is_empty() {
        blocks.push(heading("Pings of B"));
    }
    blocks.extend(charts.into_iter().map(Block::from));
    let bars = bar_charts(outcome);
    if !bars.is_empty() {
        blocks.push(heading("Stream, pages and shares"));
    }
    blocks.extend(bars.into_iter().map(Block::from));
    for experiment in &outcome.experiments {
        blocks.push(heading(experiment.title));
        blocks.extend(experiment.how.iter().cloned().map(Block::Text));
        let charts = experiment_charts(experiment);
        blocks.extend(charts.into_iter().map(Block::from));
    }
    blocks.push(heading("How and where it was measured"));
    let lines = outcome.method.iter().cloned();
    let lines = lines.chain(outcome.machine.lines());
    blocks.extend(lines.map(Block::Text));
    page.to_html()
}

fn as_block(table: &Table) -> Block {
    let columns = 0..table.columns.len();
    let head = table
        .columns
        .iter()
        .map(|column| match column.unit.as_str() {
            "" => column.name.clone(),
            unit => format!("{} ({unit})", column.name),
        });
    let rows = table.rows.iter().map(|row| {
        let cell = |at: usize| {
            let shown = row.cells.get(at).unwrap_or(&Cell::Missing).shown();
            // A few words stay on one line.
            let is_short = shown.len() < SHORT;
            if is_short {
                shown.replace(' ', "\u{a0}")
            } else {
                shown
            }
        };
        columns.clone().map(cell).collect()
    });
    Block::Table {
        head: head.collect(),
        rows: rows.collect(),
    }
}

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

fn ping_charts(outcome: &Outcome) -> Vec<Chart> {
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

fn experiment_charts(experiment: &Experiment) -> Vec<Chart> {
    let chart = |setting: &super::outcome::Setting| {
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

fn bar_charts(outcome: &Outcome) -> Vec<Figure> {
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
