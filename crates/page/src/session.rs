//! Analyses files, and answers the page's questions about the results.

use std::io::Read;
use std::sync::Arc;

use serde_json::{Value, json};
use trace::capture::{Error, Event};
use trace::columns::PLAIN;
use trace::graph::{self, Collector};
use trace::json::{self as lines, Writer, summary};
use trace::why::{Report, Side};
use trace::{Captures, Connection, Findings, Observer as _, Options, Seen, Segment, Watch};

use crate::keep::Keep;

/// Memory of connections that have not finished: a wasm32 module has 4 GiB at most, and a page should need less.
const MEMORY: u64 = 512 << 20;

/// A capture file: its name, and a function that starts to read it from its beginning.
pub struct File {
    /// Its name.
    pub name: String,
    /// Opens it.
    pub open: Box<dyn Fn() -> Box<dyn Read + Send>>,
}

/// The results of an analysis.
pub struct Session {
    files: Vec<File>,
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
    /// Analyses files as one capture. `progress` receives the packets and connections so far, block by block.
    ///
    /// # Errors
    /// No file can be read. The text names the first one.
    pub fn new(
        files: Vec<File>,
        mut progress: impl FnMut(u64, u64) + Send + 'static,
    ) -> Result<Session, String> {
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
        let (findings, keep) = captures.read_with(Keep::default()).map_err(text)?;
        let mut left_out = keep.left_out;
        left_out.sort_unstable();
        Ok(Session {
            files,
            findings,
            left_out,
            room: Vec::new(),
        })
    }

    /// The summary of `headend trace --json`, what is wrong with the files, and how many connections there are.
    #[must_use]
    pub fn overview(&self) -> String {
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
    ///
    /// # Errors
    /// A connection is damaged.
    pub fn rows(&mut self, start: usize, count: usize) -> Result<String, String> {
        let end = start.saturating_add(count).min(self.findings.len());
        let rows: Result<Vec<Value>, String> = (start..end)
            .map(|at| self.connection(at).map(|connection| row(at, &connection)))
            .collect();
        Ok(Value::Array(rows?).to_string())
    }

    /// A connection's lines of `headend trace --json` and of `headend trace why --json`; no second one if neither end
    /// sent data.
    ///
    /// # Errors
    /// There is no such connection, or it is damaged.
    pub fn details(&mut self, at: usize) -> Result<String, String> {
        let line = self.line(at)?;
        let connection = self.connection(at)?;
        let values: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let why = Report::new(&connection).map(|report| lines::why::connection(&report));
        Ok(json!({ "values": values, "why": why }).to_string())
    }

    /// The lines of `headend trace --json`, with the summary.
    ///
    /// # Errors
    /// A connection is damaged.
    pub fn lines(&mut self) -> Result<String, String> {
        let end = self.findings.summary().end();
        let mut writer = Writer::new(Vec::new(), end, &PLAIN);
        for at in 0..self.findings.len() {
            let connection = self.connection(at)?;
            writer
                .connection(&connection)
                .map_err(|error| error.to_string())?;
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

    /// The page with the graphs of a connection. This reads the files once more.
    ///
    /// # Errors
    /// There is no such connection, or the files cannot be read.
    pub fn graph(&mut self, at: usize) -> Result<String, String> {
        let number = self.connection(at)?.number;
        let collector = Collector::new(graph::Options {
            only: vec![number..=number],
            ..graph::Options::default()
        });
        let watch = Draw(collector);
        let (_, Draw(collector)) = captures(&self.files).read_with(watch).map_err(text)?;
        let found = collector.finish();
        let found = found.first();
        Ok(graph::html(
            found.ok_or("the files have changed since they were read")?,
        ))
    }

    /// The UDP flows, the worst first. This reads the files once more.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn udp(&mut self) -> Result<String, String> {
        crate::udp::explain(captures(&self.files)).map_err(text)
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
