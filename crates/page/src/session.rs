//! Analyses files, and answers the page's questions about the results.

use std::io::Read;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use trace::capture::{Error, Event};
use trace::graph::{self, Collector};
use trace::why::{Cause, Verdict};
use trace::{Captures, Connection, Findings, Observer as _, Options, Seen, Segment, Watch};

use crate::json::{Writer, summary};
use crate::keep::Keep;
use crate::table::PLAIN;

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

    /// A connection's line of `headend trace --json`, and its causes.
    ///
    /// # Errors
    /// There is no such connection, or it is damaged.
    pub fn details(&mut self, at: usize) -> Result<String, String> {
        let line = self.line(at)?;
        let connection = self.connection(at)?;
        let values: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        Ok(json!({ "values": values, "causes": causes(&connection) }).to_string())
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

/// The verdicts of both directions, the one with more time lost first.
fn verdicts(connection: &Connection) -> Vec<Verdict> {
    let Some(why) = &connection.why else {
        return Vec::new();
    };
    let why = why.until(connection.last_time);
    let sides = [false, true].map(|from_a| Verdict::new(connection, &why, from_a));
    let mut sides: Vec<Verdict> = sides.into_iter().flatten().collect();
    sides.sort_by_key(|verdict| {
        let lost = match verdict.cause.is_limit() {
            true => verdict.share.time,
            false => 0,
        };
        std::cmp::Reverse(lost)
    });
    sides
}

fn row(at: usize, connection: &Connection) -> Value {
    let ((a, a_port), (b, b_port)) = (connection.a_end(), connection.b_end());
    let verdicts = verdicts(connection);
    let main = verdicts.first();
    let lost = main.filter(|verdict| verdict.cause.is_limit());
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
        "lost_ns": lost.map_or(0, |verdict| verdict.share.time),
        "sentence": main.map(ToString::to_string),
    })
}

fn causes(connection: &Connection) -> Value {
    let Some(why) = &connection.why else {
        return Value::Null;
    };
    let why = why.until(connection.last_time);
    let sides = verdicts(connection).into_iter().map(|verdict| {
        let sender = if verdict.from_a { &why.a } else { &why.b };
        let shares: Map<String, Value> = Cause::all()
            .map(|cause| (cause.rule().name, sender.shares()[cause as usize]))
            .filter(|(_, share)| share.time > 0)
            .map(|(name, share)| {
                let share = json!({
                    "time_ns": share.time,
                    "spans": share.spans,
                    "longest_ns": share.longest,
                    "longest_until_packet": share.packet,
                });
                (name.to_owned(), share)
            })
            .collect();
        json!({
            "direction": if verdict.from_a { "a2b" } else { "b2a" },
            "sentence": verdict.to_string(),
            "cause": verdict.cause.rule().name,
            "part": verdict.part(),
            "confidence": verdict.confidence.name(),
            "vantage": verdict.vantage.name(),
            "contradicted_by": verdict.cause.rule().contradicted_by,
            "cannot_see": verdict.vantage.cannot_see(),
            "life_ns": verdict.life,
            "causes": shares,
        })
    });
    Value::Array(sides.collect())
}
