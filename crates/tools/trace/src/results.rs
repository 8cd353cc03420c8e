//! The results: connections and UDP flows in the order of their first packets, from a capture or from the parts of one.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use trace::part::{Header, Item, Merge, Writer};
use trace::udp::Flow;
use trace::{Connection, FileReport, Findings, Summary};

use super::owners::Learnt;
use super::stop::Stop;

/// The results to report.
pub(super) struct Results {
    pub(super) source: Source,
    pub(super) summary: Summary,
    /// The processes of connections that were captured at an interface of their host.
    pub(super) processes: Option<Learnt>,
}

/// The source of the connections.
pub(super) enum Source {
    /// A capture that was read.
    Read {
        found: Box<Findings>,
        flows: Vec<Flow>,
        /// Names of the files, by [`Connection::file`].
        files: Vec<String>,
        /// A second signal ends the report, too.
        stop: Arc<Stop>,
    },
    /// The parts of a capture.
    Parts { paths: Vec<PathBuf>, files: usize },
}

/// A connection or flow, and its names.
pub(super) struct Entry<'a> {
    pub(super) what: What<'a>,
    /// The number of its pair of letters.
    pub(super) pair: u64,
    /// The file its first packet is in.
    pub(super) file: &'a str,
}

/// What it is.
#[derive(Clone, Copy)]
pub(super) enum What<'a> {
    Connection(&'a Connection),
    Flow(&'a Flow),
}

impl Source {
    /// How many files were read.
    pub(super) fn files(&self) -> usize {
        match self {
            Source::Read { files, .. } => files.len(),
            Source::Parts { files, .. } => *files,
        }
    }

    /// The reports of the files, unless each part had its own.
    pub(super) fn reports(&self) -> &[FileReport] {
        match self {
            Source::Read { found, .. } => found.files(),
            Source::Parts { .. } => &[],
        }
    }

    /// Calls `take` for the connections that `wanted` selects by number, and for all flows, in the order of their first
    /// packets. With `lettered`, flows and connections share one sequence of letters, as in tcptrace.
    ///
    /// # Errors
    /// Those of `take`, or a file cannot be read.
    pub(super) fn each(
        &self,
        lettered: bool,
        wanted: impl Fn(u64) -> bool,
        mut take: impl FnMut(&Entry<'_>) -> io::Result<()>,
    ) -> Result<()> {
        let mut pair = 0;
        let mut give = |what: What<'_>, file: &str| {
            let number = match what {
                What::Connection(connection) => connection.number,
                What::Flow(_) if lettered => 0,
                What::Flow(flow) => {
                    return take(&Entry {
                        what,
                        pair: flow.number,
                        file,
                    });
                }
            };
            pair += 1;
            if number > 0 && !wanted(number) {
                return Ok(());
            }
            take(&Entry { what, pair, file })
        };
        match self {
            Source::Read {
                found,
                flows,
                files,
                stop,
            } => {
                let name = |file: u32| files.get(file as usize).map_or("", String::as_str);
                let mut flows = flows.iter().peekable();
                let mut connection = Connection::default();
                let mut room = Vec::new();
                for at in 0..found.len() {
                    if at % 1024 == 1023 && stop.again() {
                        bail!("interrupted");
                    }
                    let first_packet = found.first_packet(at);
                    while let Some(flow) = flows.next_if(|flow| flow.first_packet < first_packet) {
                        give(What::Flow(flow), name(flow.file))?;
                    }
                    let number = at as u64 + 1;
                    connection.number = number;
                    if wanted(number) {
                        connection.thaw(found.frozen(at, &mut room)?)?;
                        connection.number = number;
                    }
                    let file = name(connection.file);
                    give(What::Connection(&connection), file)?;
                }
                for flow in flows {
                    give(What::Flow(flow), name(flow.file))?;
                }
            }
            Source::Parts { paths, .. } => each_of_parts(paths, give)?,
        }
        Ok(())
    }

    /// Writes the results as a part.
    ///
    /// # Errors
    /// The output cannot be written, or a temporary file cannot be read.
    pub(super) fn write_part<W: Write>(&self, out: W, header: &Header) -> Result<()> {
        let Source::Read { found, flows, .. } = self else {
            return Ok(());
        };
        let mut writer = Writer::new(out, header)?;
        let mut flows = flows.iter().peekable();
        let mut room = Vec::new();
        for at in 0..found.len() {
            let first_packet = found.first_packet(at);
            while let Some(flow) = flows.next_if(|flow| flow.first_packet < first_packet) {
                writer.flow(flow)?;
            }
            writer.connection(first_packet, found.frozen(at, &mut room)?)?;
        }
        for flow in flows {
            writer.flow(flow)?;
        }
        writer.finish()?.flush()?;
        Ok(())
    }
}

/// Merges the parts, and calls `give` for each connection and flow with its file.
fn each_of_parts(
    paths: &[PathBuf],
    mut give: impl FnMut(What<'_>, &str) -> io::Result<()>,
) -> Result<()> {
    let mut merge = Merge::open(paths)?;
    while let Some(item) = merge.next()? {
        match item {
            Item::Connection(connection, file) => give(What::Connection(connection), file)?,
            Item::Flow(flow, file) => give(What::Flow(flow), file)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
