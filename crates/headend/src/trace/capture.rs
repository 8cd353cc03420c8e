//! Reads a capture: on one thread where somebody looks at packets as they pass, else on several.

use std::io::Write;

use anyhow::{Context, Result, bail};
use capfile::Block;
use trace::{Connection, Limits, text};

use super::columns::Summary;
use super::feed::Feed;
use super::pipeline::{Machine, Watch};
use super::report::{Paper, Style};
use super::results::{Results, Source};
use super::store::Store;
use super::tally::Tally;
use super::threads;
use super::watch::Watchers;

/// What was read.
pub(super) struct Captured {
    pub(super) results: Results,
    /// Nothing was wrong with any file.
    pub(super) good: bool,
}

/// Reads what the command line names.
///
/// # Errors
/// Nothing at all could be read, or a file that was asked for cannot be written.
pub(super) fn read<W: Write>(style: &Style<'_>, paper: &mut Paper<W>) -> Result<Captured> {
    let args = style.args;
    let mut feed = Feed::new(args)?;
    let names = feed.names();
    announce(style, &names, paper)?;
    let live = args.low.live.unwrap_or(feed.is_live() && !args.low.quiet);
    let mut store = Store::new(args.finished_memory);
    let (found, flows) = match Watchers::new(style, live)? {
        Some(watchers) => {
            let mut reading = Reading::new(style, watchers, &mut store, paper);
            let found = reading.read(&mut feed)?;
            let mut watchers = reading.machine.watch;
            let flows = watchers.flows.take();
            watchers.finish()?;
            (found, flows)
        }
        None => match args.threads(feed.is_live()) {
            1 => (
                Reading::new(style, (), &mut store, paper).read(&mut feed)?,
                None,
            ),
            threads => (on_threads(style, threads, &mut feed, &mut store)?, None),
        },
    };
    feed.end();
    if feed.read == 0 {
        bail!("nothing could be read");
    }
    store.sort();
    if args.low.contents {
        tell_incomplete(style, &store)?;
    }
    if args.low.warn.summary {
        for (name, count) in found.tally.lines() {
            eprintln!("headend: {count} {name}");
        }
    }
    let mut summary = summary(&found, args.low.checksum);
    summary.connections = store.len() as u64 + found.continuous;
    tell_limits(&summary, &store);
    let flows = flows.map_or(Vec::new(), |flows| {
        summary.udp = Some(flows.packets());
        summary.flows = flows.flows().len() as u64;
        summary.flows_beyond = flows.beyond();
        flows.flows().to_vec()
    });
    let results = Results {
        source: Source::Read {
            store,
            flows,
            files: names,
            stop: feed.stop(),
        },
        summary,
    };
    Ok(Captured {
        results,
        good: feed.good,
    })
}

/// What tcptrace prints before it reads.
///
/// # Errors
/// Those of the output.
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

/// What one run found, besides its connections.
struct Found {
    tally: Tally,
    limits: Limits,
    /// Connections that were printed as they ended, and are gone.
    continuous: u64,
}

/// Reading on one thread.
struct Reading<'a, V, W> {
    style: &'a Style<'a>,
    machine: Machine<V>,
    store: &'a mut Store,
    paper: &'a mut Paper<W>,
    /// Names of the files.
    names: Vec<String>,
    /// Connections that have been printed.
    printed: u64,
}

/// What is done between two blocks beyond what every watcher does.
trait Between {
    fn set_file(&mut self, _: u32) {}
    fn close(&mut self, _: u64) {}
    fn printed(&mut self) -> Option<&mut String> {
        None
    }
}

impl Between for () {}

impl Between for Watchers<'_> {
    fn set_file(&mut self, file: u32) {
        Watchers::set_file(self, file);
    }
    fn close(&mut self, first_packet: u64) {
        Watchers::close(self, first_packet);
    }
    fn printed(&mut self) -> Option<&mut String> {
        Watchers::printed(self)
    }
}

impl<'a, V: Watch + Between, W: Write> Reading<'a, V, W> {
    fn new(style: &'a Style<'a>, watch: V, store: &'a mut Store, paper: &'a mut Paper<W>) -> Self {
        Reading {
            machine: Machine::new(style.args.plan, watch),
            style,
            store,
            paper,
            names: Vec::new(),
            printed: 0,
        }
    }

    fn read(&mut self, feed: &mut Feed) -> Result<Found> {
        self.names = feed.names();
        let mut block = Block::new();
        let mut file = None;
        while let Some(index) = feed.next(&mut block) {
            if file.replace(index) != Some(index) {
                self.machine.analyzer.set_file(index);
                self.machine.watch.set_file(index);
            }
            let more = self.machine.block(&block);
            if let Some(text) = self.machine.watch.printed() {
                self.paper.text().push_str(text);
                text.clear();
                self.paper.turn()?;
            }
            self.keep()?;
            let connections = self.machine.analyzer.connections();
            feed.progress
                .counted(self.machine.decoder.tally.packets, connections);
            if !more {
                break;
            }
        }
        self.machine.analyzer.finish();
        self.keep()?;
        Ok(Found {
            tally: std::mem::take(&mut self.machine.decoder.tally),
            limits: self.machine.analyzer.limits(),
            continuous: self.printed,
        })
    }

    /// Keeps what has finished, or prints it.
    fn keep(&mut self) -> Result<()> {
        if !self.machine.analyzer.has_finished() {
            return Ok(());
        }
        let finished = self.machine.analyzer.take_finished();
        for connection in &finished {
            self.machine.watch.close(connection.first_packet);
        }
        if !self.style.args.low.continuous {
            return self
                .store
                .push(finished)
                .context("cannot write to a temporary file");
        }
        let mut connection = Connection::default();
        for finished in &finished {
            connection.thaw(&finished.octets)?;
            self.printed += 1;
            connection.number = self.printed;
            let file = self.names.get(connection.file as usize);
            let file = file.map_or("", String::as_str);
            let end = self.machine.decoder.tally.last_time;
            self.style.print_one(&connection, end, file, self.paper)?;
        }
        Ok(self.paper.flush()?)
    }
}

/// Reading on several threads.
fn on_threads(
    style: &Style<'_>,
    threads: usize,
    feed: &mut Feed,
    store: &mut Store,
) -> Result<Found> {
    let outcome = threads::run(&style.args.plan, threads, |block| feed.next(block));
    store
        .push(outcome.finished)
        .context("cannot write to a temporary file")?;
    Ok(Found {
        tally: outcome.tally,
        limits: outcome.limits,
        continuous: 0,
    })
}

/// What was seen, as reports have it.
fn summary(found: &Found, checksums: bool) -> Summary {
    let tally = &found.tally;
    Summary {
        first_time: tally.first_time,
        last_time: tally.first_time.map(|_| tally.last_time),
        packets: tally.packets,
        tcp_seen: tally.tcp_seen,
        too_short: tally.too_short,
        bad_checksums: checksums.then_some(tally.bad_checksums),
        seen: tally.lines(),
        tcp: tally.tcp,
        finished_early: found.limits.finished_early,
        flights_cut: found.limits.flights_cut,
        ..Summary::default()
    }
}

/// Says that data is missing in the files of `-e`.
fn tell_incomplete(style: &Style<'_>, store: &Store) -> Result<()> {
    let mut connection = Connection::default();
    let mut room = Vec::new();
    for at in 0..store.len() {
        if !style.args.chosen(at as u64 + 1) {
            continue;
        }
        connection.thaw(store.get(at, &mut room)?)?;
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

/// Says what the limits did.
fn tell_limits(summary: &Summary, store: &Store) {
    if summary.finished_early > 0 {
        eprintln!(
            "headend: memory ran out: {} connections were ended early, and packets that came later for them count as \
             other connections (see --memory)",
            summary.finished_early
        );
    }
    if summary.flights_cut > 0 {
        eprintln!(
            "headend: memory ran out: segments in flight were given up {} times, and their retransmissions are not \
             timed (see --memory)",
            summary.flights_cut
        );
    }
    if store.written() > 0 {
        eprintln!(
            "headend: {} octets of finished connections were kept in a temporary file (see --memory)",
            store.written()
        );
    }
}
