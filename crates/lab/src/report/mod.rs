//! Reports of benchmarks: tables on the terminal, and JSON, CSV and SVG files that also record the
//! method, the machine and other load on it.
//!
//! Left out: comparison with earlier runs. The JSON carries a schema version and unrounded figures,
//! so that other programs can compare them.

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

/// The version of the JSON from [`Report::write`]; it increases when a field changes its meaning.
pub const SCHEMA: u32 = 1;

/// The results of one benchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The benchmark's name, e.g. `bringup`; also names the directory of its files.
    pub name: String,
    /// How the figures were measured, one sentence each.
    pub method: Vec<String>,
    /// The machine on which they were measured.
    pub machine: MachineInfo,
    /// The tables.
    pub tables: Vec<Table>,
    /// The charts.
    pub charts: Vec<Figure>,
}

impl Report {
    /// A report without tables and charts; `machine` is best read after the measurements.
    pub fn new(name: impl Into<String>, machine: MachineInfo) -> Self {
        Self {
            name: name.into(),
            method: Vec::new(),
            machine,
            tables: Vec::new(),
            charts: Vec::new(),
        }
    }

    /// The default directory of the files: `bench-results/NAME`.
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
        // A closed pipe, as with `| head`, is not an error of the benchmark.
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
