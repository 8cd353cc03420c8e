//! Analyses files, and answers the page's questions about the results.

use std::io::Read;
use std::sync::Arc;

use serde_json::{Value, json};
use trace::capture::{Error, Event, Reading};
use trace::columns::PLAIN;
use trace::graph::{self, Collector};
use trace::json::{self as lines, Writer, summary};
use trace::why::{Report, Side};
use trace::{Captures, Connection, Findings, Observer as _, Options, Seen, Segment, Watch};

use crate::keep::Keep;
use crate::udp::Explain;

/// Memory of connections that have not finished: a wasm32 module has 4 GiB at most, and a page should need less.
const MEMORY: u64 = 512 << 20;

/// A capture file: its name, and a function that starts to read it from its beginning.
pub struct File {
    /// Its name.
    pub name: String,
    /// Opens it.
    pub open: Box<dyn Fn() -> Box<dyn Read + Send>>,
}

/// An analysis of files: first a reading of all of them, then questions about the results.
///
/// Every reading runs block by block, so that JavaScript can fetch the next bytes between the blocks.
pub struct Session {
    files: Vec<File>,
    results: Option<Results>,
    pass: Option<Pass>,
}

/// A reading of all files.
enum Pass {
    Analysis(Reading<Keep>),
    Graph(Reading<Draw>),
    Udp(Reading<Explain>),
}

/// The results of an analysis.
struct Results {
    findings: Findings,
    /// Numbers of the first packets of the connections that are left out, in order.
    left_out: Vec<u64>,
    room: Vec<u8>,
}

fn options() -> Options {
    Options {
        memory: MEMORY,
        threads: Some(1),
        why: true,
        ..Options::default()
    }
}

fn captures(files: &[File]) -> Captures {
    let readers = files.iter().map(|file| (file.name.clone(), (file.open)()));
    Captures::from_readers(readers, options(), Arc::new(()))
}

impl Session {
    /// Starts to analyse files as one capture. `progress` receives the packets and connections so far, block by block.
    pub fn new(files: Vec<File>, mut progress: impl FnMut(u64, u64) + Send + 'static) -> Session {
        let mut captures = captures(&files);
        captures.on_event(move |event| {
            if let Event::Counted {
                packets,
                connections,
            } = event
            {
                progress(packets, connections);
            }
        });
        Session {
            files,
            results: None,
            pass: Some(Pass::Analysis(captures.start(Keep::default()))),
        }
    }

    /// Starts the reading for the graphs of a connection.
    ///
    /// # Errors
    /// There is no such connection.
    pub fn graph(&mut self, at: usize) -> Result<(), String> {
        let number = self.results()?.connection(at)?.number;
        let collector = Collector::new(graph::Options {
            only: vec![number..=number],
            ..graph::Options::default()
        });
        self.pass = Some(Pass::Graph(captures(&self.files).start(Draw(collector))));
        Ok(())
    }

    /// Starts the reading for the UDP flows.
    pub fn udp(&mut self) {
        let captures = captures(&self.files);
        let explain = Explain::new(captures.plan());
        self.pass = Some(Pass::Udp(captures.start(explain)));
    }

    /// Reads the next block. False at the end of all files, and if no reading has been started.
    ///
    /// # Errors
    /// The memory is full.
    pub fn step(&mut self) -> Result<bool, String> {
        let more = match &mut self.pass {
            None => Ok(false),
            Some(Pass::Analysis(reading)) => reading.step(),
            Some(Pass::Graph(reading)) => reading.step(),
            Some(Pass::Udp(reading)) => reading.step(),
        };
        more.map_err(text)
    }

    /// Ends the reading. The answer is the overview of an analysis, the page with the graphs, or the UDP flows, the worst
    /// first.
    ///
    /// # Errors
    /// No file can be read; the text names the first one. Or no reading has been started.
    pub fn finish(&mut self) -> Result<String, String> {
        match self.pass.take().ok_or("no reading has been started")? {
            Pass::Analysis(reading) => {
                let (findings, keep) = reading.finish().map_err(text)?;
                let mut left_out = keep.left_out;
                left_out.sort_unstable();
                let results = self.results.insert(Results {
                    findings,
                    left_out,
                    room: Vec::new(),
                });
                Ok(results.overview())
            }
            Pass::Graph(reading) => {
                let (_, Draw(collector)) = reading.finish().map_err(text)?;
                let found = collector.finish();
                let found = found.first();
                Ok(graph::html(
                    found.ok_or("the files have changed since they were read")?,
                ))
            }
            Pass::Udp(reading) => {
                let (_, explain) = reading.finish().map_err(text)?;
                Ok(explain.answer())
            }
        }
    }

    /// `count` rows of the list from index `start` on, as an array in JSON.
    ///
    /// # Errors
    /// No capture has been read, or a connection is damaged.
    pub fn rows(&mut self, start: usize, count: usize) -> Result<String, String> {
        self.results()?.rows(start, count)
    }

    /// The lines of `headend trace --json` and of `headend trace why --json` for a connection of the list, as JSON.
    ///
    /// # Errors
    /// No capture has been read, there is no such connection, or it is damaged.
    pub fn details(&mut self, at: usize) -> Result<String, String> {
        self.results()?.details(at)
    }

    /// The lines of `headend trace --json`, with the summary.
    ///
    /// # Errors
    /// No capture has been read, or a connection is damaged.
    pub fn lines(&mut self) -> Result<String, String> {
        self.results()?.lines()
    }

    fn results(&mut self) -> Result<&mut Results, String> {
        let results = self.results.as_mut();
        results.ok_or_else(|| "no capture has been read".to_owned())
    }
}

impl Results {
    /// The summary of `headend trace --json`, what is wrong with the files, and how many connections there are.
    fn overview(&self) -> String {
        let files = self.findings.files().iter();
        let faults: Vec<String> = files.flat_map(|file| file.lines()).collect();
        let summary: Value = serde_json::from_str(&summary(self.findings.summary()))
            .expect("the summary is an object");
        json!({
            "summary": summary,
            "faults": faults,
            "connections": self.findings.len(),
            "left_out": self.left_out.len(),
        })
        .to_string()
    }

    /// `count` rows of the list from index `start` on, as an array.
    fn rows(&mut self, start: usize, count: usize) -> Result<String, String> {
        let end = start.saturating_add(count).min(self.findings.len());
        let rows: Result<Vec<Value>, String> = (start..end)
            .map(|at| self.connection(at).map(|connection| row(at, &connection)))
            .collect();
        Ok(Value::Array(rows?).to_string())
    }

    /// A connection's lines of `headend trace --json` and of `headend trace why --json`; no second one if neither end
    /// sent data.
    fn details(&mut self, at: usize) -> Result<String, String> {
        let line = self.line(at)?;
        let connection = self.connection(at)?;
        let values: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let why = Report::new(&connection).map(|report| lines::why::connection(&report));
        Ok(json!({ "values": values, "why": why }).to_string())
    }

    /// The lines of `headend trace --json`, with the summary.
    fn lines(&mut self) -> Result<String, String> {
        let end = self.findings.summary().end();
        let mut writer = Writer::new(Vec::new(), end, &PLAIN);
        for at in 0..self.findings.len() {
            let connection = self.connection(at)?;
            writer
                .connection(&connection)
                .map_err(|error| error.to_string())?;
        }
        for file in self.findings.files() {
            writer.file(&file.name, &file.statistics);
        }
        let out = writer.finish(self.findings.summary());
        let out = out.map_err(|error| error.to_string())?;
        String::from_utf8(out).map_err(|error| error.to_string())
    }

    fn line(&mut self, at: usize) -> Result<String, String> {
        let connection = self.connection(at)?;
        let mut writer = Writer::new(Vec::new(), self.findings.summary().end(), &PLAIN);
        let written = writer.connection(&connection);
        let out = written.and_then(|()| writer.finish(self.findings.summary()));
        let out = String::from_utf8(out.map_err(|error| error.to_string())?);
        let out = out.map_err(|error| error.to_string())?;
        Ok(out.lines().next().unwrap_or_default().to_owned())
    }

    fn connection(&mut self, at: usize) -> Result<Connection, String> {
        if at >= self.findings.len() {
            return Err(format!("there is no connection at index {at}"));
        }
        let first = self.findings.first_packet(at);
        let before = self.left_out.partition_point(|&other| other < first);
        let octets = self.findings.frozen(at, &mut self.room).map_err(text)?;
        let mut connection = Connection::default();
        connection.thaw(octets).map_err(|error| error.to_string())?;
        connection.number = (at + before) as u64 + 1;
        Ok(connection)
    }
}

/// Collects the packets of a graph.
struct Draw(Collector);

impl Watch for Draw {
    const FINISHED: bool = false;
    type Error = Error;

    fn segment(
        &mut self,
        _: &Seen<'_, '_>,
        _: &wire::tcp::Tcp<'_>,
        connection: &Connection,
        segment: &Segment,
        verdict: &trace::Verdict,
    ) {
        self.0.observe(connection, segment, verdict);
    }
}

fn text(error: Error) -> String {
    match &error {
        Error::NothingRead {
            file,
            source: Some(source),
        } => format!("{file}: {source}"),
        error => error.to_string(),
    }
}

fn row(at: usize, connection: &Connection) -> Value {
    let ((a, a_port), (b, b_port)) = (connection.a_end(), connection.b_end());
    let why = Report::new(connection);
    let main = why.as_ref().and_then(Report::main);
    let rtt = [&connection.a, &connection.b]
        .iter()
        .filter(|side| side.rtt.count > 0)
        .map(|side| side.rtt.min)
        .max();
    json!({
        "at": at,
        "number": connection.number,
        "a": format!("{a}:{a_port}"),
        "b": format!("{b}:{b_port}"),
        "packets": connection.packets,
        "bytes": connection.a.unique_bytes + connection.b.unique_bytes,
        "elapsed_ns": connection.elapsed(),
        "retransmitted": connection.a.retransmitted_packets + connection.b.retransmitted_packets,
        "rtt_ns": rtt,
        "lost_ns": main.map_or(0, Side::lost),
        "sentence": main.map(|side| side.verdict.to_string()),
    })
}
