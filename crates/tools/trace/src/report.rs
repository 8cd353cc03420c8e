//! The report at the end: connections in the order of their first packets, one at a time.

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use jiff::tz::TimeZone;
use trace::json;
use trace::text::{self, About, Head, Names, ReportCounts};
use trace::udp::Flow;
use trace::{Connection, Summary};

use super::filter::Subject;
use super::hi::{HiArgs, Report};
use super::parquet;
use super::results::{Entry, Results, What};

/// The file for the numbers of the selected connections, as in tcptrace.
const PASSED: &str = "PF";

/// Bytes collected before they are written.
const GATHERED: usize = 1 << 16;

/// The line between two long reports.
const RULE: &str = "================================\n";

/// Text on its way to standard output.
pub(super) struct Paper<W> {
    text: String,
    out: W,
}

impl<W: Write> Paper<W> {
    pub(super) fn new(out: W) -> Paper<W> {
        Paper {
            text: String::with_capacity(GATHERED + GATHERED / 4),
            out,
        }
    }

    /// The text to append to.
    pub(super) fn text(&mut self) -> &mut String {
        &mut self.text
    }

    /// The output, for data that is not text. The collected text is written first.
    ///
    /// # Errors
    /// Those of the output.
    pub(super) fn out(&mut self) -> io::Result<&mut W> {
        self.flush()?;
        Ok(&mut self.out)
    }

    /// Writes the collected text if there is much.
    ///
    /// # Errors
    /// Those of the output.
    pub(super) fn turn(&mut self) -> io::Result<()> {
        if self.text.len() >= GATHERED {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the collected text.
    ///
    /// # Errors
    /// Those of the output.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(self.text.as_bytes())?;
        self.text.clear();
        self.out.flush()
    }
}

/// The style of the report.
pub(super) struct Style<'a> {
    pub(super) args: &'a HiArgs,
    pub(super) names: &'a dyn Names,
    pub(super) zone: &'a TimeZone,
    /// Losses of the capture in the connections printed so far.
    pub(super) loss: Cell<Loss>,
}

/// Connections with acknowledged data that the capture lacks.
#[derive(Clone, Copy, Default)]
pub(super) struct Loss {
    connections: u64,
    bytes: u64,
    /// Number of the last connection that was looked at. A report may read the connections several times.
    last: u64,
}

impl Loss {
    fn add(mut self, connection: &Connection) -> Loss {
        if connection.number <= self.last {
            return self;
        }
        self.last = connection.number;
        let bytes = connection.a.unseen_bytes() + connection.b.unseen_bytes();
        self.connections += u64::from(bytes > 0);
        self.bytes += bytes;
        self
    }

    fn tell(self) {
        if self.connections > 0 {
            eprintln!(
                "headend: the capture lost packets: {} bytes in {} connections were acknowledged and are not in the \
                 capture (unseen_bytes of --json)",
                self.bytes, self.connections
            );
        }
    }
}

impl Style<'_> {
    pub(super) fn head(&self) -> Head {
        let low = &self.args.low;
        Head {
            brief: low.brief,
            values: low.csv || low.tsv || low.separator.is_some(),
            warned: low.warn.truncated,
        }
    }

    /// Prints the report, and writes the file PF and the Parquet file if the command line asks for them.
    ///
    /// # Errors
    /// Standard output or a file cannot be used.
    pub(super) fn print<W: Write>(&self, results: &Results, paper: &mut Paper<W>) -> Result<()> {
        let chosen = self.choose(results)?;
        if let Some(path) = &self.args.low.parquet {
            self.parquet(path, results, &chosen)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let counts = counts(&results.summary, results.source.files());
        match &self.args.report {
            Report::Nothing => {
                let _ = self.head().totals(paper.text(), &counts);
            }
            Report::Json => self.json(results, &chosen, paper)?,
            Report::Columns(separator) => self.columns(separator, results, &chosen, paper)?,
            report => {
                // Formatting into a String cannot fail.
                let _ = self.head().write(paper.text(), &counts);
                match report {
                    Report::Brief => self.brief(results, &chosen, paper)?,
                    Report::Values(separator) => self.values(separator, results, &chosen, paper)?,
                    _ => self.long(results, &chosen, paper)?,
                }
                if self.args.low.udp {
                    self.flows(results, &counts, paper)?;
                }
            }
        }
        paper.flush()?;
        self.loss.get().tell();
        Ok(())
    }

    /// Prints a single connection, for `--continuous`. Its number is its rank in the order of finishing.
    ///
    /// # Errors
    /// Standard output cannot be used.
    pub(super) fn print_one<W: Write>(
        &self,
        connection: &Connection,
        end: i64,
        file: &str,
        paper: &mut Paper<W>,
    ) -> Result<()> {
        let subject = Subject {
            connection,
            names: self.names,
            end,
        };
        let filter = self.args.filter.as_ref();
        if filter.is_some_and(|filter| !filter.passes(subject))
            || self.args.low.complete && !connection.is_complete()
        {
            return Ok(());
        }
        let about = About {
            names: self.names,
            zone: self.zone,
            pair: connection.number,
            file,
            end,
        };
        match &self.args.report {
            Report::Nothing => {}
            Report::Json => {
                let writer = json::Writer::new(paper.out()?, end, &self.args.table);
                let mut writer = writer.with_details(self.args.low.details);
                writer.connection(connection)?;
                writer.flush()?;
            }
            Report::Columns(separator) => {
                let table = &self.args.table;
                if connection.number == 1 {
                    table.header(paper.text(), separator);
                }
                table.line(paper.text(), connection, end, separator);
            }
            Report::Brief => {
                let mut name = String::new();
                let _ = text::brief_name(&mut name, connection, self.names, about.pair);
                let _ = text::brief(paper.text(), connection, &name, name.len(), about.pair);
            }
            Report::Values(separator) => {
                let options = self.args.options;
                if connection.number == 1 {
                    let _ = text::values_header(paper.text(), separator, options);
                }
                let _ = text::values(paper.text(), connection, &about, separator, options);
            }
            Report::Long => {
                if connection.number > 1 {
                    paper.text().push_str(RULE);
                }
                let _ = text::long(paper.text(), connection, &about, self.args.options);
            }
        }
        Ok(paper.turn()?)
    }

    /// Selects connections by `-o`, `-i`, `-f` and `-c`, and writes the file PF for the last two.
    fn choose(&self, results: &Results) -> Result<Chosen> {
        let low = &self.args.low;
        let noted = low.complete || self.args.filter.is_some();
        if !noted {
            return Ok(Chosen::ByNumber);
        }
        let mut bits = Vec::new();
        let mut numbers = String::new();
        self.connections(results, &Chosen::All, |connection, _| {
            let number = connection.number;
            let filter = self.args.filter.as_ref();
            let subject = Subject {
                connection,
                names: self.names,
                end: results.summary.end(),
            };
            let passes =
                self.args.chosen(number) && filter.is_none_or(|filter| filter.passes(subject));
            let printed = passes && (!low.complete || connection.is_complete());
            if printed {
                let comma = if numbers.is_empty() { "" } else { "," };
                let _ = write!(numbers, "{comma}{number}");
            }
            bits.push(u8::from(passes) | u8::from(printed) << 1);
            Ok(())
        })?;
        numbers.push('\n');
        fs::write(PASSED, numbers).with_context(|| format!("cannot write {PASSED}"))?;
        Ok(Chosen::Bits(bits))
    }

    fn prints(&self, chosen: &Chosen, number: u64) -> bool {
        match chosen {
            Chosen::All => true,
            Chosen::ByNumber => self.args.chosen(number),
            Chosen::Bits(bits) => bits
                .get(number as usize - 1)
                .is_some_and(|bits| bits & 2 != 0),
        }
    }

    /// Whether the connection counts for the width of the name column: as in tcptrace, also one that `-c` leaves out.
    fn counts_for_width(&self, chosen: &Chosen, number: u64) -> bool {
        match chosen {
            Chosen::Bits(bits) => bits
                .get(number as usize - 1)
                .is_some_and(|bits| bits & 1 != 0),
            _ => self.prints(chosen, number),
        }
    }

    /// Calls `take` for each connection to print.
    fn connections(
        &self,
        results: &Results,
        chosen: &Chosen,
        mut take: impl FnMut(&Connection, &Entry<'_>) -> io::Result<()>,
    ) -> Result<()> {
        let udp = self.args.low.udp;
        let wanted = |number| self.prints(chosen, number);
        results.source.each(udp, wanted, |entry| match entry.what {
            What::Connection(connection) => {
                self.loss.set(self.loss.get().add(connection));
                take(connection, entry)
            }
            What::Flow(_) => Ok(()),
        })
    }

    /// Calls `take` for each UDP flow.
    fn each_flow(
        &self,
        results: &Results,
        mut take: impl FnMut(&Flow, &Entry<'_>) -> io::Result<()>,
    ) -> Result<()> {
        results.source.each(
            true,
            |_| false,
            |entry| match entry.what {
                What::Flow(flow) => take(flow, entry),
                What::Connection(_) => Ok(()),
            },
        )
    }

    fn about<'a>(&'a self, results: &Results, entry: &Entry<'a>) -> About<'a> {
        About {
            names: self.names,
            zone: self.zone,
            pair: entry.pair,
            file: entry.file,
            end: results.summary.end(),
        }
    }

    fn brief<W: Write>(
        &self,
        results: &Results,
        chosen: &Chosen,
        paper: &mut Paper<W>,
    ) -> Result<()> {
        let mut name = String::new();
        let mut lines = Lines::default();
        let wanted = |number| self.counts_for_width(chosen, number);
        let udp = self.args.low.udp;
        results.source.each(udp, wanted, |entry| {
            if let What::Connection(connection) = entry.what {
                self.loss.set(self.loss.get().add(connection));
                name.clear();
                let _ = text::brief_name(&mut name, connection, self.names, entry.pair);
                lines.width = lines.width.max(name.len());
                if !lines.is_full() && self.prints(chosen, connection.number) {
                    lines.add(connection, &name, entry.pair);
                }
            }
            Ok(())
        })?;
        lines.print(paper)?;
        if !lines.is_full() {
            return Ok(());
        }
        let wanted = |number| number > lines.last && self.prints(chosen, number);
        results.source.each(udp, wanted, |entry| {
            if let What::Connection(connection) = entry.what {
                name.clear();
                let _ = text::brief_name(&mut name, connection, self.names, entry.pair);
                let _ = text::brief(paper.text(), connection, &name, lines.width, entry.pair);
            }
            paper.turn()
        })
    }

    fn long<W: Write>(
        &self,
        results: &Results,
        chosen: &Chosen,
        paper: &mut Paper<W>,
    ) -> Result<()> {
        self.connections(results, chosen, |connection, entry| {
            if connection.number > 1 {
                paper.text().push_str(RULE);
            }
            let about = self.about(results, entry);
            let _ = text::long(paper.text(), connection, &about, self.args.options);
            paper.turn()
        })
    }

    fn values<W: Write>(
        &self,
        separator: &str,
        results: &Results,
        chosen: &Chosen,
        paper: &mut Paper<W>,
    ) -> Result<()> {
        let options = self.args.options;
        let mut first = true;
        self.connections(results, chosen, |connection, entry| {
            if std::mem::take(&mut first) {
                let _ = text::values_header(paper.text(), separator, options);
            }
            let about = self.about(results, entry);
            let _ = text::values(paper.text(), connection, &about, separator, options);
            paper.turn()
        })
    }

    fn json<W: Write>(
        &self,
        results: &Results,
        chosen: &Chosen,
        paper: &mut Paper<W>,
    ) -> Result<()> {
        let end = results.summary.end();
        let writer = json::Writer::new(paper.out()?, end, &self.args.table);
        let mut writer = writer.with_details(self.args.low.details);
        let udp = self.args.low.udp;
        let wanted = |number| self.prints(chosen, number);
        results.source.each(udp, wanted, |entry| match entry.what {
            What::Connection(connection) => {
                self.loss.set(self.loss.get().add(connection));
                let learnt = results.processes.iter();
                let members = learnt.flat_map(|learnt| learnt.members(connection.first_packet));
                writer.connection_with(connection, members)
            }
            What::Flow(flow) if udp && self.args.chosen_flow(flow.number) => writer.flow(flow),
            What::Flow(_) => Ok(()),
        })?;
        for file in results.source.reports() {
            writer.file(&file.name, &file.statistics);
        }
        writer.finish(&results.summary)?;
        Ok(())
    }

    fn parquet(&self, path: &Path, results: &Results, chosen: &Chosen) -> Result<()> {
        let end = results.summary.end();
        let mut writer = parquet::Writer::create(path, end, &self.args.table)?;
        let mut intervals = match self.args.low.intervals {
            Some(_) => Some(parquet::Intervals::create(&parquet::path_beside(path))?),
            None => None,
        };
        self.connections(results, chosen, |connection, _| {
            if let Some(intervals) = &mut intervals {
                intervals.connection(connection)?;
            }
            writer.connection(connection)
        })?;
        if let Some(intervals) = intervals {
            intervals.finish()?;
        }
        writer.finish(&results.summary)?;
        Ok(())
    }

    fn columns<W: Write>(
        &self,
        separator: &str,
        results: &Results,
        chosen: &Chosen,
        paper: &mut Paper<W>,
    ) -> Result<()> {
        let (table, end) = (&self.args.table, results.summary.end());
        table.header(paper.text(), separator);
        self.connections(results, chosen, |connection, _| {
            table.line(paper.text(), connection, end, separator);
            paper.turn()
        })
    }

    fn flows<W: Write>(
        &self,
        results: &Results,
        counts: &ReportCounts,
        paper: &mut Paper<W>,
    ) -> Result<()> {
        if counts.udp == Some(0) {
            let _ = text::no_udp(paper.text());
            return Ok(());
        }
        let _ = text::udp_head(paper.text(), counts, results.summary.flows, self.head());
        let mut name = String::new();
        let mut width = 0;
        self.each_flow(results, |flow, entry| {
            name.clear();
            let _ = text::flow_name(&mut name, flow, self.names, entry.pair);
            width = width.max(name.len());
            Ok(())
        })?;
        self.each_flow(results, |flow, entry| {
            if !self.args.chosen_flow(flow.number) {
                return Ok(());
            }
            if self.args.low.brief {
                name.clear();
                let _ = text::flow_name(&mut name, flow, self.names, entry.pair);
                let _ = text::flow_brief(paper.text(), flow, &name, width);
            } else {
                if flow.number > 1 {
                    paper.text().push_str(RULE);
                }
                let _ = text::flow_long(paper.text(), flow, &self.about(results, entry));
            }
            paper.turn()
        })
    }
}

/// Bytes of lines kept until the width of the name column is known. Connections beyond this are read twice.
const KEPT: usize = 1 << 26;

/// The lines of the brief report, before the width of the name column is known.
#[derive(Default)]
struct Lines {
    text: String,
    /// Where in the text each name and each line ends.
    ends: Vec<(usize, usize)>,
    /// Width of the longest name.
    width: usize,
    /// Number of the last connection with a line.
    last: u64,
}

impl Lines {
    fn is_full(&self) -> bool {
        self.text.len() >= KEPT
    }

    fn add(&mut self, connection: &Connection, name: &str, pair: u64) {
        let start = self.text.len();
        let _ = text::brief(&mut self.text, connection, name, 0, pair);
        // The name follows the number and a colon.
        let number = self.text[start..].find(": ").map_or(0, |colon| colon + 2);
        self.ends
            .push((start + number + name.len(), self.text.len()));
        self.last = connection.number;
    }

    fn print<W: Write>(&self, paper: &mut Paper<W>) -> io::Result<()> {
        let mut start = 0;
        for &(name, end) in &self.ends {
            let head = &self.text[start..name];
            let number = head.find(": ").map_or(0, |colon| colon + 2);
            let gap = self.width.saturating_sub(head.len() - number);
            let rest = &self.text[name..end];
            // Formatting into a String cannot fail.
            let _ = write!(paper.text(), "{head}{:gap$}{rest}", "");
            start = end;
            paper.turn()?;
        }
        Ok(())
    }
}

/// Which connections are printed.
enum Chosen {
    All,
    /// By `-o` and `-i` alone.
    ByNumber,
    /// By number from 1: 1 for those that pass, 2 for those that are printed.
    Bits(Vec<u8>),
}

/// The counts at the head of a report.
fn counts(summary: &Summary, files: usize) -> ReportCounts {
    let first = summary.first_time.unwrap_or(summary.end());
    ReportCounts {
        packets: summary.packets,
        tcp: summary.tcp,
        udp: summary.udp,
        connections: summary.connections,
        too_short: summary.too_short,
        elapsed: summary.end().saturating_sub(first).max(0),
        files,
        bad_checksums: summary.bad_checksums,
    }
}
