//! What the outputs need of single packets, taken as they are matched.

use std::io::{self, BufWriter, Stdout, Write};

use paths::{Lost, Pair, Point, Sink};
use serde_json::json;

use super::table::Table;

/// Lost packets that the text lists for each direction.
pub(super) const LISTED: usize = 20;

/// Lost packets that the page marks.
const MARKED: usize = 100_000;

/// Takes packets from the matcher. After the first error, nothing more is written.
pub(super) struct Kept {
    out: Option<BufWriter<Stdout>>,
    has_page: bool,
    table: Option<Table>,
    /// The first lost packets of each direction.
    pub(super) listed: [Vec<Lost>; 2],
    /// The lost packets that the page marks.
    pub(super) marked: Vec<Lost>,
    wrong: Option<io::Error>,
}

impl Kept {
    /// `json` prints each lost packet; `page` keeps them for the page.
    pub(super) fn new(json: bool, page: bool, table: Option<Table>) -> Kept {
        Kept {
            out: json.then(|| BufWriter::new(io::stdout())),
            has_page: page,
            table,
            listed: [Vec::new(), Vec::new()],
            marked: Vec::new(),
            wrong: None,
        }
    }

    /// Completes the outputs.
    ///
    /// # Errors
    /// Standard output or the Parquet file cannot be written.
    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        if let Some(error) = self.wrong.take() {
            return Err(error.into());
        }
        if let Some(out) = &mut self.out {
            out.flush()?;
        }
        if let Some(table) = self.table.take() {
            table.finish()?;
        }
        Ok(())
    }

    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result
            && self.wrong.is_none()
        {
            self.wrong = Some(error);
            (self.out, self.table) = (None, None);
        }
    }
}

impl Sink for Kept {
    fn pair(&mut self, pair: &Pair) {
        if let Some(table) = &mut self.table {
            let result = table.pair(pair);
            self.note(result);
        }
    }

    fn lost(&mut self, lost: &Lost) {
        let listed = &mut self.listed[lost.way as usize];
        if listed.len() < LISTED {
            listed.push(*lost);
        }
        if self.has_page && self.marked.len() < MARKED {
            self.marked.push(*lost);
        }
        if let Some(table) = &mut self.table {
            let result = table.lost(lost);
            self.note(result);
        }
        if let Some(out) = &mut self.out {
            let line = json!({
                "schema": "trace.diff_lost/1",
                "kind": "diff_lost",
                "direction": super::lines::direction(lost.way),
                "seen_at": lost.point.name(),
                "packet": lost.number,
                "time": lost.time,
                "bytes": lost.bytes,
                "in_part": lost.is_partial,
                "flow": lost.key.to_string(),
            });
            let result = writeln!(out, "{line}");
            self.note(result);
        }
    }
}

/// A point's letter and packet number: `A 17`.
pub(super) fn place(point: Point, number: u64) -> String {
    format!("{} {number}", point.name())
}
