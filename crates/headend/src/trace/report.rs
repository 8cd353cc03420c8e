//! The report at the end: connections in the order of their first packets, thawed one at a time, printed, forgotten.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};

use jiff::tz::TimeZone;
use trace::Connection;
use trace::text::{self, About, Counts, Head, Names};
use trace::udp::Flow;

use super::columns::Summary;
use super::filter::Subject;
use super::hi::{HiArgs, Report};
use super::json;
use super::store::Store;

/// Where the numbers of the connections that pass go, as in tcptrace.
const PASSED: &str = "PF";

/// Octets gathered before they are written.
const GATHERED: usize = 1 << 16;

/// All that is to be reported.
pub(super) struct Results {
    pub(super) store: Store,
    pub(super) flows: Vec<Flow>,
    /// Names of the files, as connections number them.
    pub(super) files: Vec<String>,
    pub(super) summary: Summary,
}

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

    /// What is written goes here.
    pub(super) fn text(&mut self) -> &mut String {
        &mut self.text
    }

    /// Writes out what was gathered, if it is much.
    pub(super) fn turn(&mut self) -> io::Result<()> {
        if self.text.len() >= GATHERED {
            self.flush()?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(self.text.as_bytes())?;
        self.text.clear();
        self.out.flush()
    }
}

/// What is the same for all connections.
pub(super) struct Style<'a> {
    pub(super) args: &'a HiArgs,
    pub(super) names: &'a dyn Names,
    pub(super) zone: &'a TimeZone,
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

    /// Prints the report.
    ///
    /// # Errors
    /// Standard output, the file of the numbers or a temporary one cannot be used.
    pub(super) fn print<W: Write>(
        &self,
        results: &mut Results,
        paper: &mut Paper<W>,
    ) -> anyhow::Result<()> {
        results.store.sort();
        let passed = self.choose(results)?;
        if self.args.report == Report::Json {
            return self.json(results, &passed, paper);
        }
        let counts = self.counts(results);
        if self.args.report == Report::Nothing {
            quiet_head(paper, self.head(), &counts)?;
            return Ok(paper.flush()?);
        }
        // Formatting into a String cannot fail.
        let _ = self.head().write(paper.text(), &counts);
        match &self.args.report {
            Report::Brief => self.brief(results, &passed, paper)?,
            Report::Values(separator) => self.values(separator, results, &passed, paper)?,
            Report::Long | Report::Json | Report::Nothing => self.long(results, &passed, paper)?,
        }
        if self.args.low.udp {
            self.flows(results, &counts, paper)?;
        }
        Ok(paper.flush()?)
    }

    fn counts(&self, results: &Results) -> Counts {
        let summary = &results.summary;
        let first = summary.first_time.unwrap_or(summary.end());
        Counts {
            packets: summary.packets,
            tcp: summary.tcp,
            udp: summary.udp,
            connections: summary.connections,
            too_short: summary.too_short,
            elapsed: summary.end().saturating_sub(first).max(0),
            files: results.files.len(),
            bad_checksums: summary.bad_checksums,
        }
    }

    /// Thaws each connection in turn and hands it over, its number given.
    fn each(
        &self,
        store: &Store,
        mut take: impl FnMut(&Connection) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let mut connection = Connection::default();
        let mut room = Vec::new();
        for at in 0..store.len() {
            connection.thaw(store.get(at, &mut room)?)?;
            connection.number = at as u64 + 1;
            take(&connection)?;
        }
        Ok(())
    }

    /// Which connections pass `-o`, `-i` and `-f`, and writes file PF where `-c` or `-f` is given. `None` for all.
    fn choose(&self, results: &Results) -> anyhow::Result<Option<Passed>> {
        let low = &self.args.low;
        let noted = low.complete || self.args.filter.is_some();
        if !noted && low.only.is_empty() && low.ignored.is_empty() {
            return Ok(None);
        }
        let mut passed = Passed::default();
        let mut numbers = String::new();
        self.each(&results.store, |connection| {
            let number = connection.number;
            let filter = self.args.filter.as_ref();
            let passes = self.args.chosen(number)
                && filter.is_none_or(|filter| {
                    filter.passes(Subject {
                        connection,
                        names: self.names,
                        end: results.summary.end(),
                    })
                });
            let complete = !low.complete || connection.is_complete();
            if passes && complete {
                let comma = if numbers.is_empty() { "" } else { "," };
                let _ = write!(numbers, "{comma}{number}");
            }
            passed.push(passes, passes && complete);
            Ok(())
        })?;
        if noted {
            numbers.push('\n');
            fs::write(PASSED, numbers)
                .map_err(|error| anyhow::anyhow!("cannot write {PASSED}: {error}"))?;
        }
        Ok(Some(passed))
    }

    /// Hands over each connection that is to be printed.
    fn chosen(
        &self,
        results: &Results,
        passed: &Option<Passed>,
        mut take: impl FnMut(&Connection) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let Some(passed) = passed else {
            return self.each(&results.store, take);
        };
        let mut connection = Connection::default();
        let mut room = Vec::new();
        for at in 0..results.store.len() {
            if passed.prints(at) {
                connection.thaw(results.store.get(at, &mut room)?)?;
                connection.number = at as u64 + 1;
                take(&connection)?;
            }
        }
        Ok(())
    }

    fn about<'a>(&'a self, results: &'a Results, pair: u64, file: u32) -> About<'a> {
        About {
            names: self.names,
            zone: self.zone,
            pair,
            file: results.files.get(file as usize).map_or("", String::as_str),
            end: results.summary.end(),
        }
    }

    fn brief<W: Write>(
        &self,
        results: &Results,
        passed: &Option<Passed>,
        paper: &mut Paper<W>,
    ) -> anyhow::Result<()> {
        let mut name = String::new();
        let mut width = 0;
        let mut pairs = Pairs::new(self.args.low.udp, results);
        self.each(&results.store, |connection| {
            let pair = pairs.of(connection);
            // As in tcptrace, incomplete connections that -c leaves out count for the width.
            let counts = passed.as_ref();
            if counts.is_none_or(|passed| passed.passes(connection.number as usize - 1)) {
                name.clear();
                let _ = text::brief_name(&mut name, connection, self.names, pair);
                width = width.max(name.len());
            }
            Ok(())
        })?;
        let mut pairs = Pairs::new(self.args.low.udp, results);
        self.chosen(results, passed, |connection| {
            let pair = pairs.of(connection);
            name.clear();
            let _ = text::brief_name(&mut name, connection, self.names, pair);
            let _ = text::brief(paper.text(), connection, &name, width, pair);
            paper.turn()
        })
    }

    fn long<W: Write>(
        &self,
        results: &Results,
        passed: &Option<Passed>,
        paper: &mut Paper<W>,
    ) -> anyhow::Result<()> {
        let mut pairs = Pairs::new(self.args.low.udp, results);
        self.chosen(results, passed, |connection| {
            if connection.number > 1 {
                paper.text().push_str(RULE);
            }
            let about = self.about(results, pairs.of(connection), connection.file);
            let _ = text::long(paper.text(), connection, &about, self.args.options);
            paper.turn()
        })
    }

    fn values<W: Write>(
        &self,
        separator: &str,
        results: &Results,
        passed: &Option<Passed>,
        paper: &mut Paper<W>,
    ) -> anyhow::Result<()> {
        let mut pairs = Pairs::new(self.args.low.udp, results);
        let mut first = true;
        self.chosen(results, passed, |connection| {
            if std::mem::take(&mut first) {
                let _ = text::values_header(paper.text(), separator, self.args.options);
            }
            let about = self.about(results, pairs.of(connection), connection.file);
            let options = self.args.options;
            let _ = text::values(paper.text(), connection, &about, separator, options);
            paper.turn()
        })
    }

    fn json<W: Write>(
        &self,
        results: &Results,
        passed: &Option<Passed>,
        paper: &mut Paper<W>,
    ) -> anyhow::Result<()> {
        let mut writer = json::Writer::new(&mut paper.out, results.summary.end());
        self.chosen(results, passed, |connection| writer.connection(connection))?;
        if self.args.low.udp {
            for flow in &results.flows {
                if self.args.chosen_flow(flow.number) {
                    writer.flow(flow)?;
                }
            }
        }
        writer.finish(&results.summary)?;
        Ok(())
    }

    fn flows<W: Write>(
        &self,
        results: &Results,
        counts: &Counts,
        paper: &mut Paper<W>,
    ) -> io::Result<()> {
        if counts.udp == Some(0) {
            let _ = text::no_udp(paper.text());
            return Ok(());
        }
        let _ = text::udp_head(
            paper.text(),
            counts,
            results.flows.len() as u64,
            self.head(),
        );
        let chosen = || {
            let flows = results.flows.iter();
            flows.filter(|flow| self.args.chosen_flow(flow.number))
        };
        let mut name = String::new();
        let mut named = |flow: &Flow, pair: u64| {
            name.clear();
            let _ = text::flow_name(&mut name, flow, self.names, pair);
            name.clone()
        };
        let mut pairs = Pairs::new(true, results);
        let mut width = 0;
        for flow in &results.flows {
            width = width.max(named(flow, pairs.of_flow(flow, &results.store)).len());
        }
        let mut pairs = Pairs::new(true, results);
        for flow in chosen() {
            let pair = pairs.of_flow(flow, &results.store);
            if self.args.low.brief {
                let name = named(flow, pair);
                let _ = text::flow_brief(paper.text(), flow, &name, width);
            } else {
                if flow.number > 1 {
                    paper.text().push_str(RULE);
                }
                let about = self.about(results, pair, flow.file);
                let _ = text::flow_long(paper.text(), flow, &about);
            }
            paper.turn()?;
        }
        Ok(())
    }
}

/// What stands between two long reports.
const RULE: &str = "================================\n";

/// With `-q`, what was seen is all that is printed.
fn quiet_head<W: Write>(paper: &mut Paper<W>, head: Head, counts: &Counts) -> io::Result<()> {
    let _ = head.totals(paper.text(), counts);
    Ok(())
}

/// Which connections passed, by their place: two bits each.
#[derive(Default)]
struct Passed(Vec<u8>);

impl Passed {
    fn push(&mut self, passes: bool, prints: bool) {
        self.0.push(u8::from(passes) | u8::from(prints) << 1);
    }

    fn passes(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(|bits| bits & 1 != 0)
    }

    fn prints(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(|bits| bits & 2 != 0)
    }
}

/// Which pair of letters each connection and flow has: with `-u` they draw them from one row, in the order of their
/// first packets, as in tcptrace.
struct Pairs<'a> {
    flows: &'a [Flow],
    /// How many of the others came before.
    before: usize,
}

impl<'a> Pairs<'a> {
    fn new(udp: bool, results: &'a Results) -> Pairs<'a> {
        Pairs {
            flows: if udp { &results.flows } else { &[] },
            before: 0,
        }
    }

    /// That of a connection; they are asked for in their order.
    fn of(&mut self, connection: &Connection) -> u64 {
        let earlier = |flow: &Flow| flow.first_packet < connection.first_packet;
        while self.flows.get(self.before).is_some_and(earlier) {
            self.before += 1;
        }
        connection.number + self.before as u64
    }

    /// That of a flow; they are asked for in their order.
    fn of_flow(&mut self, flow: &Flow, store: &Store) -> u64 {
        while self.before < store.len() && store.first_packet(self.before) < flow.first_packet {
            self.before += 1;
        }
        flow.number + self.before as u64
    }
}
