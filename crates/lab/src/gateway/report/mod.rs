//! The results as a report: tables, and one page with all charts.

mod charts;
mod drawing;
mod tables;

use plot::{Block, Page};

use super::outcome::Outcome;
use super::rows::Load;
use crate::report::{Cell, Table};
use charts::{bar_charts, experiment_charts, ping_charts};
pub use tables::tables;
use tables::{browser_table, spread_table, targets_table};
pub(crate) use tables::{experiment_table, fairness_table, rows_table, waits_table};

/// Length up to which a table entry is not broken into lines.
const SHORT: usize = 20;

/// A's load in a row, as text.
#[must_use]
pub fn load_words(load: Load) -> &'static str {
    match load {
        Load::None => "nothing",
        Load::Bulk => "3 uploads",
        Load::Flood => "8.2 Mbit/s UDP",
    }
}

/// The report as one self-contained HTML file.
#[must_use]
pub fn page(outcome: &Outcome) -> String {
    let mut page = Page::new("The home gateway");
    page.subtitle = format!(
        "Hosts A and B share a slow link. Measured: how A's traffic delays a thin stream, pings and pages of B, without \
         and with a policy ({}) in the gateway, in {}, beside the published figures (Dan Siemon, 2009 to 2014).",
        outcome.treatment, outcome.place
    );
    let blocks = &mut page.blocks;
    blocks.extend(outcome.stopped().map(Block::Text));
    blocks.extend(drawing::sentence(outcome).map(Block::Lead));
    blocks.push(drawing::drawing(outcome));
    blocks.extend(outcome.method.first().cloned().map(Block::Text));
    if outcome.compares() {
        blocks.extend(engines(outcome).into_iter().map(Block::Text));
    }
    blocks.extend(charts::ping_chart(outcome, Load::Bulk).map(Block::from));
    let tables = |blocks: &mut Vec<Block>, tables: &[Option<Table>]| {
        for table in tables.iter().flatten() {
            blocks.push(Block::Heading(table.title.clone()));
            blocks.push(as_block(table));
        }
    };
    let measured = !outcome.rows.is_empty();
    if measured {
        blocks.push(Block::Text(LEGEND.to_owned()));
    }
    let rows = [
        measured.then(|| rows_table(outcome)),
        measured.then(|| waits_table(outcome)),
        browser_table(outcome).filter(|_| measured),
        targets_table(outcome),
    ];
    tables(blocks, &rows);
    charts_with_heading(blocks, "More pings of B", ping_charts(outcome));
    charts_with_heading(blocks, "Stream, pages and shares", bar_charts(outcome));
    if !outcome.fairness.is_empty() {
        tables(blocks, &[Some(fairness_table(outcome))]);
        blocks.push(Block::Text(FAIRNESS.to_owned()));
    }
    for experiment in &outcome.experiments {
        blocks.push(Block::Heading(experiment.title.to_owned()));
        blocks.extend(experiment.how.iter().cloned().map(Block::Text));
        blocks.push(as_block(&experiment_table(experiment)));
        let charts = experiment_charts(experiment);
        blocks.extend(charts.into_iter().map(Block::from));
    }
    tables(blocks, &[spread_table(outcome)]);
    let how = "How and where it was measured";
    blocks.push(Block::Heading(how.to_owned()));
    let lines = outcome.method.iter().cloned();
    let lines = lines.chain(outcome.machine.lines());
    blocks.extend(lines.map(Block::Text));
    page.to_html()
}

/// How the engines were set up, what they lack, and which rows did not finish; a sentence each.
#[must_use]
pub fn engines(outcome: &Outcome) -> Vec<String> {
    let mut lines = vec![format!(
        "The column \"policy\" names what shaped: {}.",
        outcome.machine.kernel
    )];
    for engine in &outcome.engines {
        lines.extend(engine.how.iter().cloned());
        let lacks = engine.lacks.iter();
        lines.extend(lacks.map(|lack| format!("{} here: {lack}.", engine.name)));
    }
    for row in &outcome.rows {
        let engine = row.engine.unwrap_or("no policy");
        let failed = row.failed.iter();
        lines.extend(
            failed.map(|why| format!("Row {}* ({engine}) did not finish: {why}.", row.row.number)),
        );
    }
    lines
}

/// Explains the tables' columns.
const LEGEND: &str = "Loss and jitter (RFC 3550): of a stream of 200 kbit/s from B. Page: the mean time until a page of a \
    dozen objects is loaded by our own loader. Network: the part of a browser's load \
    between the first connection attempt and the last byte. Ping p50 and p99: the round trips that 50 % and 99 % of B's pings did not exceed. B's share: \
    the part of the link that one upload of B gets against A's load. The published figure (publ.) is beside each. A dash \
    means not measured, or not published.";

/// Explains the table of nine uploads.
const FAIRNESS: &str = "A sends nine uploads at once, B one. A queue that is fair to hosts gives B half of the link; a \
    queue that is fair to flows alone gives B a tenth. Jain's index is 1 when both hosts get the same, 0.5 when one gets \
    all.";

fn charts_with_heading<T: Into<Block>>(blocks: &mut Vec<Block>, heading: &str, charts: Vec<T>) {
    if !charts.is_empty() {
        blocks.push(Block::Heading(heading.to_owned()));
    }
    blocks.extend(charts.into_iter().map(Into::into));
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

#[cfg(test)]
mod tests;
