//! What a benchmark leaves behind: tables on the terminal, and JSON, CSV and
//! SVG files that say how, where and in whose company the figures were taken.
//!
//! Left out: comparison with earlier runs, which is a reader's job: the JSON
//! carries a schema version and every figure unrounded.

mod machine;
mod table;
mod witness;
mod write;

pub use machine::MachineInfo;
pub use table::{Cell, Column, Row, Table};
pub use witness::{CoreUse, CoreWitness};
pub use write::{WriteError, Written, slug};

use plot::figure::Figure;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The version in the schema of the JSON that [`Report::write`] makes: `bench.NAME/VERSION`. It increases when a field
/// changes its meaning.
pub const SCHEMA: u32 = 1;

/// The results of one benchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The benchmark's name, e.g. `bringup`; also names the directory of its files.
    pub name: String,
    /// How the figures were taken, a sentence each.
    pub method: Vec<String>,
    /// Where they were taken.
    pub machine: MachineInfo,
    /// The figures.
    pub tables: Vec<Table>,
    /// The pictures.
    pub charts: Vec<Figure>,
}

impl Report {
    /// A report without tables and charts yet; `machine` is best read once the work is done.
    pub fn new(name: impl Into<String>, machine: MachineInfo) -> Self {
        Self {
            name: name.into(),
            method: Vec::new(),
            machine,
            tables: Vec::new(),
            charts: Vec::new(),
        }
    }

    /// Where the files go unless the operator says otherwise: `bench-results/NAME`.
    pub fn default_dir(&self) -> PathBuf {
        Path::new("bench-results").join(slug(&self.name))
    }

    /// Writes the files into `dir`, or the default directory, then prints the tables and where each file went to stdout.
    ///
    /// # Errors
    /// The first directory or file that cannot be written; stdout being closed is not an error.
    pub fn publish(&self, dir: Option<&Path>) -> Result<Written, WriteError> {
        let written = self.write(dir.unwrap_or(&self.default_dir()))?;
        let text = format!("{}\n{written}", self.to_text());
        // A reader that went away, as `| head` does, is no failure of the benchmark.
        let _ = std::io::Write::write_all(&mut std::io::stdout().lock(), text.as_bytes());
        Ok(written)
    }

    /// Tables, method and machine as text for a terminal.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for table in &self.tables {
            text.push_str(&table.to_text());
            text.push('\n');
        }
        if !self.method.is_empty() {
            text.push_str("How:\n");
            for sentence in &self.method {
                text.push_str(&format!("  {sentence}\n"));
            }
        }
        text.push_str("Where:\n");
        for line in self.machine.lines() {
            text.push_str(&format!("  {line}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests;
