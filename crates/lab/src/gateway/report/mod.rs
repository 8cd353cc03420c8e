//! The outcome for people: tables, and one page with every picture.

mod charts;
mod tables;

use plot::{Block, Page};

use super::outcome::Outcome;
use super::rows::Load;
use crate::report::{Cell, Table};
use charts::{bar_charts, experiment_charts, ping_charts};
pub use tables::tables;
pub(crate) use tables::{experiment_table, fairness_table, rows_table, waits_table};

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
    blocks.extend(outcome.stopped().map(Block::Text));
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
