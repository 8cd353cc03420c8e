//! Tables of the results, for the terminal, the page and CSV.

use super::super::outcome::{Experiment, Outcome, RowOutcome, Spread};
use super::super::rows::{Result, median, percentile};
use super::super::targets::{Target, targets};
use super::load_words;
use crate::report::{Cell, Table};

/// All tables of the results.
#[must_use]
pub fn tables(outcome: &Outcome) -> Vec<Table> {
    let mut tables = Vec::new();
    if !outcome.rows.is_empty() {
        tables.push(rows_table(outcome));
        tables.push(waits_table(outcome));
        tables.extend(browser_table(outcome));
        tables.extend(spread_table(outcome));
    }
    if !outcome.fairness.is_empty() {
        tables.push(fairness_table(outcome));
    }
    tables.extend(outcome.experiments.iter().map(experiment_table));
    tables.extend(targets_table(outcome));
    tables
}

/// The columns that identify a row.
const ROW: [(&str, &str); 3] = [("row", ""), ("A does", ""), ("policy", "")];

fn row_cells(outcome: &Outcome, row: &RowOutcome) -> [Cell; 3] {
    let number = u64::from(row.row.number);
    [
        match row.is_partial() || row.failed.is_some() {
            true => Cell::Text(format!("{number}*")),
            false => Cell::from(number),
        },
        Cell::from(load_words(row.row.load)),
        Cell::from(match row.engine {
            None => "no",
            Some(engine) if outcome.compares() => engine,
            Some(_) => "yes",
        }),
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
        table.row(row_cells(outcome, row).into_iter().chain(figures));
    }
    table
}

/// Pages and pings.
pub(crate) fn waits_table(outcome: &Outcome) -> Table {
    let figures = [
        ("page publ.", "ms"),
        ("page", "ms"),
        ("failed", ""),
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
            number(row.mean(|run| run.ping_percentile_ms(0.5)), 1),
            number(row.mean(|run| run.ping_percentile_ms(0.99)), 1),
            number(row.mean(|run| Some(run.ping_loss_percent())), 1),
        ];
        table.row(row_cells(outcome, row).into_iter().chain(figures));
    }
    table
}

/// Pages that a browser loaded; `None` if there was none.
pub(super) fn browser_table(outcome: &Outcome) -> Option<Table> {
    let browser = outcome.browser.as_deref()?;
    let figures = [
        ("loads", ""),
        ("failed", ""),
        ("p50", "ms"),
        ("p90", "ms"),
        ("network p50", "ms"),
    ];
    let title = format!("How long B waits: pages loaded by {browser}");
    let mut table = Table::new(title, &[&ROW[..], &figures].concat());
    for row in &outcome.rows {
        let all = |figure: fn(&Result) -> &Vec<f64>| -> Vec<f64> {
            row.runs.iter().flat_map(figure).copied().collect()
        };
        let loads = all(|run| &run.browser_ms);
        let failures: u32 = row.runs.iter().map(|run| run.browser_failures).sum();
        let figures = [
            Cell::from(loads.len()),
            Cell::from(u64::from(failures)),
            number(median(&loads), 0),
            number(percentile(&loads, 0.9), 0),
            number(median(&all(|run| &run.browser_network_ms)), 0),
        ];
        table.row(row_cells(outcome, row).into_iter().chain(figures));
    }
    Some(table)
}

/// A figure of one measurement.
type Reading = fn(&Result) -> Option<f64>;

/// Figures of each row that vary between measurements.
const FIGURES: [(&str, Reading); 6] = [
    ("loss (%)", |run| Some(run.loss_percent)),
    ("jitter (ms)", |run| Some(run.jitter_ms)),
    ("page (ms)", |run| run.page_mean_ms()),
    ("browser (ms)", |run| run.browser_median_ms()),
    ("ping p99 (ms)", |run| run.ping_percentile_ms(0.99)),
    ("B's share", |run| run.share),
];

/// `None` if nothing was measured more than once.
pub(super) fn spread_table(outcome: &Outcome) -> Option<Table> {
    if outcome.rows.iter().all(|row| row.runs.len() < 2) {
        return None;
    }
    let mut table = Table::new(
        "Spread over the measurements",
        &[
            ("row", ""),
            ("figure", ""),
            ("n", ""),
            ("mean", ""),
            ("min", ""),
            ("max", ""),
            ("95 % ±", ""),
        ],
    );
    for row in &outcome.rows {
        for (name, figure) in FIGURES {
            let Some(spread) = row.spread(figure) else {
                continue;
            };
            let engine = row.engine.filter(|_| outcome.compares());
            let engine = engine.map_or(String::new(), |engine| format!(", {engine}"));
            table.row([
                Cell::from(u64::from(row.row.number)),
                Cell::Text(format!("{name}{engine}")),
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
    Some(table)
}

pub(crate) fn fairness_table(outcome: &Outcome) -> Table {
    let mut table = Table::new(
        "Nine uploads of A against one of B",
        &[
            ("policy", ""),
            ("engine", ""),
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
            Cell::from(one.engine),
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

/// `None` if nothing with a target was measured. With several engines, each has a column.
pub(super) fn targets_table(outcome: &Outcome) -> Option<Table> {
    let targets = targets(outcome);
    if targets.iter().all(|target| target.reached.is_none()) {
        return None;
    }
    let title = "What is to be reached";
    if outcome.compares() {
        return Some(targets_by_engine(outcome, title, &targets));
    }
    let columns = [("target", ""), ("found", ""), ("reached", "")];
    let mut table = Table::new(title, &columns);
    for target in targets {
        let reached = reached(&target);
        table.row([
            Cell::Text(target.what),
            Cell::Text(target.found),
            Cell::from(reached),
        ]);
    }
    Some(table)
}

fn reached(target: &Target) -> &'static str {
    match target.reached {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "-",
    }
}

fn targets_by_engine(outcome: &Outcome, title: &str, targets: &[Target]) -> Table {
    let engines = outcome.engines.iter().map(|engine| (engine.name, ""));
    let columns: Vec<_> = std::iter::once(("target", "")).chain(engines).collect();
    let mut table = Table::new(title, &columns);
    let mut done: Vec<&str> = Vec::new();
    for target in targets {
        if done.contains(&target.what.as_str()) {
            continue;
        }
        done.push(&target.what);
        let cells = outcome.engines.iter().map(|engine| {
            let mut same = targets.iter().filter(|other| other.what == target.what);
            let own = same.find(|other| other.engine.is_none_or(|name| name == engine.name));
            match own {
                Some(own) if own.reached.is_some() => {
                    Cell::Text(format!("{}: {}", reached(own), own.found))
                }
                _ => Cell::Missing,
            }
        });
        let cells: Vec<Cell> = cells.collect();
        table.row(std::iter::once(Cell::Text(target.what.clone())).chain(cells));
    }
    table
}
