//! Reads captures: on one thread if packets are observed, otherwise on several.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, Result};
use trace::capture::Event;
use trace::{
    Analyzer, Captures, Checksum, Connection, Error, FileReport, Findings, Finished, Seen, Segment,
    Summary, Verdict, Watch, text,
};
use wire::tcp::Tcp;

use super::hi::HiArgs;
use super::live::{self, Counts, Ticker};
use super::progress::Progress;
use super::report::{Paper, Style};
use super::results::{Results, Source};
use super::stop::Stop;
use super::watch::Watchers;

/// The captures' contents.
pub(super) struct Captured {
    pub(super) results: Results,
    /// Nothing was wrong with any file.
    pub(super) good: bool,
    /// The counts of a captured interface.
    pub(super) counts: Option<Counts>,
}

/// Reads the files that the command line names, or captures its interface.
///
/// # Errors
/// No file could be read, the interface cannot be captured, or an output file cannot be written.
pub(super) fn read<W: Write>(style: &Style<'_>, paper: &mut Paper<W>) -> Result<Captured> {
    let (args, low) = (style.args, &style.args.low);
    let stop = Arc::new(Stop::new().context("cannot take signals")?);
    let (mut captures, ticker, counts) = open(args, &stop)?;
    let names = captures.files();
    announce(style, &names, paper)?;
    report_events(style, &mut captures);
    // Lines on the terminal would disturb a report that is redrawn.
    let reports = ticker.as_ref().is_some_and(Ticker::reports);
    let closings = captures.is_live() && !low.quiet && !reports;
    let closings = low.closings.unwrap_or(closings);
    let (found, flows, ticker) = match Watchers::new(style, closings, captures.plan())? {
        Some(watchers) => {
            let session = Session::new(style, watchers, &names, paper, ticker);
            let (found, session) = read_with(captures, session)?;
            let mut watchers = session.watch;
            let flows = watchers.flows.take();
            watchers.finish()?;
            (found, flows, session.ticker)
        }
        None if low.continuous || ticker.is_some() => {
            let session = Session::new(style, (), &names, paper, ticker);
            let (found, session) = read_with(captures, session)?;
            (found, None, session.ticker)
        }
        None => (captures.read().map_err(plain)?, None, None),
    };
    if low.contents {
        tell_incomplete(style, &found)?;
    }
    let mut summary = found.summary().clone();
    if low.warn.summary {
        for (name, count) in &summary.seen {
            eprintln!("headend: {count} {name}");
        }
    }
    tell_partial(&summary);
    tell_limits(&summary, &found);
    let flows = flows.map_or(Vec::new(), |flows| {
        summary.udp = Some(flows.packets());
        summary.flows = flows.flows().len() as u64;
        summary.flows_beyond = flows.beyond();
        flows.into_flows()
    });
    let good = found.is_good();
    let results = Results {
        source: Source::Read {
            found: Box::new(found),
            flows,
            files: names,
            stop,
        },
        summary,
        processes: ticker.map(Ticker::into_learnt),
    };
    Ok(Captured {
        results,
        good,
        counts,
    })
}

/// Opens the files or the interface; the latter with its reports at intervals and its counts.
fn open(args: &HiArgs, stop: &Arc<Stop>) -> Result<(Captures, Option<Ticker>, Option<Counts>)> {
    let low = &args.low;
    let Some(name) = &low.live else {
        let until = Arc::<Stop>::clone(stop);
        let captures = Captures::open_until(&low.files, args.analysis.clone(), until);
        return Ok((captures, None, None));
    };
    let opened = live::open(args, name, stop)?;
    Ok((opened.captures, opened.ticker, Some(opened.counts)))
}

/// Reports packets whose checksum the sender's network card was to fill in.
fn tell_partial(summary: &Summary) {
    let mut seen = summary.seen.iter();
    if let Some((_, count)) = seen.find(|(name, _)| name == trace::PARTIAL_CHECKSUMS) {
        eprintln!(
            "headend: --checksum: {count} packets were captured on their sender before its network card filled in the \
             checksum; headend counts them as right"
        );
    }
}

fn read_with<W: Watch<Error = anyhow::Error>>(
    captures: Captures,
    watch: W,
) -> Result<(Findings, W)> {
    captures
        .read_with(watch)
        .map_err(|error| match error.downcast() {
            Ok(error) => plain(error),
            Err(error) => error,
        })
}

/// The error for the end of the run: each file's own has been reported.
fn plain(error: Error) -> anyhow::Error {
    match error {
        Error::NothingRead { .. } => anyhow::anyhow!("nothing could be read"),
        error => error.into(),
    }
}

/// Shows progress, and reports the faults of each file when it ends.
fn report_events(style: &Style<'_>, captures: &mut Captures) {
    let low = &style.args.low;
    let live = low.closings == Some(true) || captures.is_live();
    // `why` reports an interface at intervals itself.
    let reports = low.why && low.live.is_some();
    let wanted = low.progress && (!low.quiet || !live) && !reports;
    let mut progress = Progress::new(wanted, captures.size(), live, low.interval);
    let debug = low.debug > 0;
    captures.on_event(move |event| match event {
        Event::Opened {
            file,
            format,
            compression,
        } if debug => {
            let compression = compression.map_or(String::new(), |kind| format!(", {kind}"));
            eprintln!("headend: {file}: {format}{compression}");
        }
        Event::Read(octets) => progress.at(octets),
        Event::Closed(file) => {
            progress.file_done(file.size.unwrap_or(0));
            report_faults(file);
        }
        Event::Counted {
            packets,
            connections,
        } => progress.counted(packets, connections),
        Event::Ended => progress.finish(),
        _ => {}
    });
}

fn report_faults(file: &FileReport) {
    for line in file.lines() {
        eprintln!("headend: {line}");
    }
}

/// Prints the lines that tcptrace prints before it reads.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn announce<W: Write>(
    style: &Style<'_>,
    names: &[String],
    paper: &mut Paper<W>,
) -> Result<()> {
    if style.args.is_data() {
        return Ok(());
    }
    let head = style.head();
    if let Some(filter) = &style.args.filter {
        paper.text().push_str(&format!("Output filter: {filter}\n"));
    }
    let short: Vec<&str> = names.iter().map(String::as_str).collect();
    // Formatting into a String cannot fail.
    let _ = text::arguments(paper.text(), &short, head);
    let comment = if head.values { "#" } else { "" };
    for (at, name) in names.iter().enumerate().filter(|_| names.len() > 1) {
        let (at, of) = (at + 1, names.len());
        let line = format!("{comment}Running file '{name}' ({at} of {of})\n");
        paper.text().push_str(&line);
    }
    Ok(paper.flush()?)
}

/// Reading on one thread.
struct Session<'a, V, W> {
    style: &'a Style<'a>,
    watch: V,
    paper: &'a mut Paper<W>,
    /// Names of the files, in the order they are read.
    files: &'a [String],
    /// Connections that have been printed, for `--continuous`.
    printed: u64,
    /// Reports at intervals.
    ticker: Option<Ticker>,
}

/// The work of observers between two blocks.
trait Between {
    fn close(&mut self, _first_packet: u64) {}
    fn printed(&mut self) -> Option<&mut String> {
        None
    }
}

impl Between for () {}

impl Between for Watchers<'_> {
    fn close(&mut self, first_packet: u64) {
        Watchers::close(self, first_packet);
    }
    fn printed(&mut self) -> Option<&mut String> {
        Watchers::printed(self)
    }
}

impl<'a, V, W: Write> Session<'a, V, W> {
    fn new(
        style: &'a Style<'a>,
        watch: V,
        files: &'a [String],
        paper: &'a mut Paper<W>,
        ticker: Option<Ticker>,
    ) -> Self {
        Session {
            style,
            watch,
            paper,
            files,
            printed: 0,
            ticker,
        }
    }

    /// Prints connections as they finish, for `--continuous`.
    fn print(&mut self, finished: &[Finished], end: i64) -> Result<()> {
        let mut connection = Connection::default();
        for finished in finished {
            connection.thaw(&finished.octets)?;
            self.printed += 1;
            connection.number = self.printed;
            let file = self.files.get(connection.file as usize);
            let file = file.map_or("", String::as_str);
            self.style.print_one(&connection, end, file, self.paper)?;
        }
        Ok(self.paper.flush()?)
    }
}

impl<V: Watch + Between, W: Write> Watch for Session<'_, V, W> {
    const PACKETS: bool = V::PACKETS;
    type Error = anyhow::Error;

    fn set_file(&mut self, file: u32) {
        self.watch.set_file(file);
    }

    #[inline]
    fn packet(&mut self, seen: &Seen<'_, '_>) {
        self.watch.packet(seen);
    }

    fn bad_checksum(&mut self, seen: &Seen<'_, '_>, which: Checksum) {
        self.watch.bad_checksum(seen, which);
    }

    #[inline]
    fn other(&mut self, seen: &Seen<'_, '_>) {
        self.watch.other(seen);
    }

    #[inline]
    fn segment(
        &mut self,
        seen: &Seen<'_, '_>,
        tcp: &Tcp<'_>,
        connection: &Connection,
        segment: &Segment,
        verdict: &Verdict,
    ) {
        self.watch.segment(seen, tcp, connection, segment, verdict);
    }

    fn block(&mut self) -> Result<()> {
        if let Some(text) = self.watch.printed() {
            self.paper.text().push_str(text);
            text.clear();
            self.paper.turn()?;
        }
        Ok(())
    }

    fn look(&mut self, analyzer: &mut Analyzer) -> Result<()> {
        match &mut self.ticker {
            Some(ticker) => ticker.look(analyzer, self.paper),
            None => Ok(()),
        }
    }

    fn finished(&mut self, finished: Vec<Finished>, end: i64) -> Result<Vec<Finished>> {
        for connection in &finished {
            self.watch.close(connection.first_packet);
        }
        if let Some(ticker) = &mut self.ticker {
            ticker.forget(&finished)?;
        }
        if !self.style.args.low.continuous {
            return Ok(finished);
        }
        self.print(&finished, end)?;
        Ok(Vec::new())
    }
}

/// Warns if the files of `-e` lack data.
fn tell_incomplete(style: &Style<'_>, found: &Findings) -> Result<()> {
    let mut connection = Connection::default();
    let mut room = Vec::new();
    for at in 0..found.len() {
        if !style.args.chosen(at as u64 + 1) {
            continue;
        }
        connection.thaw(found.frozen(at, &mut room)?)?;
        let directions = [&connection.a, &connection.b];
        let missing = |direction: &trace::Direction| {
            direction.missed().is_some_and(|missed| missed > 0) || direction.truncated_bytes > 0
        };
        if directions.into_iter().any(missing) {
            eprintln!("\nWarning : some extracted files are incomplete!");
            eprintln!("          Please see -l output for more detail.");
            return Ok(());
        }
    }
    Ok(())
}

/// Warns if a limit of memory changed the results.
fn tell_limits(summary: &Summary, found: &Findings) {
    if summary.finished_early + summary.closed_early > 0 {
        eprintln!(
            "headend: memory ran out: {} open and {} closed connections were ended early; later packets of these \
             count as other connections (see --memory)",
            summary.finished_early, summary.closed_early
        );
    }
    if summary.flights_cut > 0 {
        eprintln!(
            "headend: memory ran out: segments in flight were given up {} times, and their retransmissions are not \
             timed (see --memory)",
            summary.flights_cut
        );
    }
    if found.forgotten() > 0 {
        eprintln!(
            "headend: memory ran out: {} connections that finished first are not in the report (see --memory)",
            found.forgotten()
        );
    }
    if found.spilled() > 0 {
        eprintln!(
            "headend: {} octets of finished connections were kept in a temporary file (see --memory)",
            found.spilled()
        );
    }
}
