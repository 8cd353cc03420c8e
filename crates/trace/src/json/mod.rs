//! The lines of `headend trace --json`, one object each: connections and UDP flows in the order of their first packets,
//! then a summary. `docs/trace-columns.md` names every member. The command and the web page both write these lines.
//!
//! | file | what it has |
//! |---|---|
//! | `quic` | members about QUIC of a UDP flow |
//! | `why` | the lines of `headend trace why --json` |
//!
//! RFC 8259. Numbers are exact: integers are written in full, also above 2^53, and fractions as the shortest text that
//! reads back as the same number.

mod quic;
pub mod why;

use std::io::{self, Write};

use capfile::Statistics;

use crate::Connection;
use crate::columns::{self, Get, SCHEMA, SUMMARY, Summary, Table};
use crate::details::community_id;
use crate::details::rows::{self, INTERVAL, Value};
use crate::udp::Flow;

/// Bytes collected before they are written.
const GATHERED: usize = 1 << 16;

/// Writes lines.
pub struct Writer<'t, W: Write> {
    out: W,
    line: Vec<u8>,
    end: i64,
    table: &'t Table,
    /// Losses and windows of round trips follow each connection, and UDP flows have members about QUIC.
    details: bool,
}

impl<'t, W: Write> Writer<'t, W> {
    /// Lines about a capture that ended at `end`, in nanoseconds since 1970.
    #[must_use]
    pub fn new(out: W, end: i64, table: &'t Table) -> Writer<'t, W> {
        Writer {
            out,
            line: Vec::with_capacity(GATHERED + (GATHERED >> 2)),
            end,
            table,
            details: false,
        }
    }

    /// With `on`, lists follow each connection, and UDP flows have members about QUIC.
    #[must_use]
    pub fn with_details(self, on: bool) -> Self {
        Writer {
            details: on,
            ..self
        }
    }

    /// Writes a connection.
    ///
    /// # Errors
    /// Those of the output.
    pub fn connection(&mut self, connection: &Connection) -> io::Result<()> {
        self.connection_with(connection, [])
    }

    /// Writes a connection, with further members after those of its columns.
    ///
    /// # Errors
    /// Those of the output.
    pub fn connection_with(
        &mut self,
        connection: &Connection,
        members: impl IntoIterator<Item = (&'static str, serde_json::Value)>,
    ) -> io::Result<()> {
        let line = &mut self.line;
        begin(line, "connection");
        let rows = columns::rows(connection, self.end);
        for (placed, key) in self.table.columns.iter().zip(&self.table.keys) {
            line.extend_from_slice(key.as_bytes());
            let row = &rows[placed.side];
            match placed.column.get {
                Get::Count(get) => integer(line, get(row)),
                Get::Maybe(get) => maybe(line, get(row), integer),
                Get::Moment(get) => integer(line, get(row)),
                Get::Span(get) | Get::Time(get) => maybe(line, get(row), integer),
                Get::Real(get) => maybe(line, get(row), real),
                Get::Flag(get) => flag(line, get(row)),
                Get::Name(get) => text(line, &get(row)),
                Get::Text(get) => maybe(line, get(row), |line, value| text(line, &value)),
            }
        }
        for (name, value) in members {
            key(line, name);
            line.extend_from_slice(value.to_string().as_bytes());
        }
        self.end_line()?;
        if self.details {
            rows::each_of_lists(connection, |kind, row| self.row(kind, row))?;
        }
        rows::each(connection, |row| {
            let line = &mut self.line;
            begin(line, "interval");
            for (name, value) in INTERVAL.iter().zip(row) {
                key(line, name);
                self::value(line, *value);
            }
            self.end_line()
        })
    }

    /// Writes a line of another kind about a connection.
    fn row(&mut self, kind: &str, row: &[(&str, Value)]) -> io::Result<()> {
        let line = &mut self.line;
        begin(line, kind);
        for (name, value) in row {
            key(line, name);
            self::value(line, *value);
        }
        self.end_line()
    }

    /// Writes a UDP flow.
    ///
    /// # Errors
    /// Those of the output.
    pub fn flow(&mut self, flow: &Flow) -> io::Result<()> {
        let line = &mut self.line;
        begin(line, "udp_flow");
        for (name, value) in [("flow", flow.number), ("first_packet", flow.first_packet)] {
            key(line, name);
            integer(line, value);
        }
        let times = [
            ("first_time", flow.first_time),
            ("last_time", flow.last_time),
            ("elapsed_ns", flow.elapsed()),
        ];
        for (name, value) in times {
            key(line, name);
            integer(line, value);
        }
        for (end, (address, port)) in [("a", flow.a_end()), ("b", flow.b_end())] {
            key(line, &format!("{end}_address"));
            text(line, &address.to_string());
            key(line, &format!("{end}_port"));
            integer(line, port);
        }
        for (side, sent) in [("a2b", flow.a), ("b2a", flow.b)] {
            key(line, &format!("{side}_packets"));
            integer(line, sent.packets);
            key(line, &format!("{side}_bytes"));
            integer(line, sent.bytes);
        }
        if self.details {
            key(line, "community_id");
            text(line, &community_id(17, flow.a_end(), flow.b_end()));
            quic::members(line, flow.quic.as_deref());
        }
        self.end_line()
    }

    /// Writes what a file's capture counted, if the file says it.
    pub fn file(&mut self, name: &str, counts: &Statistics) {
        if let Some(object) = file(name, counts) {
            self.line.extend_from_slice(object.as_bytes());
            self.line.push(b'\n');
        }
    }

    /// Writes the summary and flushes.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self, summary: &Summary) -> io::Result<W> {
        self.line
            .extend_from_slice(self::summary(summary).as_bytes());
        self.line.push(b'\n');
        self.flush()?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.line.extend_from_slice(b"}\n");
        if self.line.len() >= GATHERED {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the collected bytes, so that a reader of a live capture sees them.
    ///
    /// # Errors
    /// Those of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }
}

/// What a file's capture counted, as an object; `None` if the file does not say.
#[must_use]
pub fn file(name: &str, counts: &Statistics) -> Option<String> {
    if counts.is_empty() {
        return None;
    }
    let mut out = Vec::new();
    begin(&mut out, "file");
    key(&mut out, "file");
    text(&mut out, name);
    let counts = [
        ("received", counts.received),
        ("accepted", counts.accepted),
        ("dropped_by_interface", counts.dropped_by_interface),
        ("dropped_by_system", counts.dropped_by_system),
    ];
    for (name, count) in counts {
        key(&mut out, name);
        maybe(&mut out, count, integer);
    }
    out.push(b'}');
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// The summary as an object.
#[must_use]
pub fn summary(summary: &Summary) -> String {
    let mut out = Vec::new();
    begin(&mut out, "summary");
    for count in SUMMARY {
        key(&mut out, count.name);
        maybe(&mut out, (count.get)(summary), integer);
    }
    out.extend_from_slice(b",\"seen\":{");
    for (at, (name, count)) in summary.seen.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        text(&mut out, name);
        out.push(b':');
        integer(&mut out, *count);
    }
    out.extend_from_slice(b"}}");
    String::from_utf8_lossy(&out).into_owned()
}

fn value(line: &mut Vec<u8>, value: Value) {
    match value {
        Value::Number(number) => integer(line, number),
        Value::Time(time) => integer(line, time),
        Value::Real(number) => real(line, number),
        Value::Direction(name) | Value::Cause(name) => text(line, name),
        Value::Absent => line.extend_from_slice(b"null"),
    }
}

fn begin(line: &mut Vec<u8>, kind: &str) {
    line.extend_from_slice(b"{\"schema\":\"trace.");
    line.extend_from_slice(kind.as_bytes());
    line.push(b'/');
    integer(line, SCHEMA);
    line.push(b'"');
    key(line, "kind");
    text(line, kind);
}

fn key(line: &mut Vec<u8>, name: &str) {
    line.push(b',');
    text(line, name);
    line.push(b':');
}

fn maybe<T>(line: &mut Vec<u8>, value: Option<T>, write: fn(&mut Vec<u8>, T)) {
    match value {
        Some(value) => write(line, value),
        None => line.extend_from_slice(b"null"),
    }
}

fn integer<I: itoa::Integer>(line: &mut Vec<u8>, value: I) {
    line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The shortest text that reads back as the same number; `null` for NaN and infinity, which JSON lacks.
fn real(line: &mut Vec<u8>, value: f64) {
    let written = if value.is_finite() {
        write!(line, "{value:?}")
    } else {
        write!(line, "null")
    };
    written.expect("a Vec takes whatever is written");
}

fn flag(line: &mut Vec<u8>, value: bool) {
    line.extend_from_slice(if value { b"true" } else { b"false" });
}

/// A string, escaped as RFC 8259 section 7 requires.
fn text(line: &mut Vec<u8>, value: &str) {
    line.push(b'"');
    for character in value.chars() {
        match character {
            '"' => line.extend_from_slice(b"\\\""),
            '\\' => line.extend_from_slice(b"\\\\"),
            control if control < ' ' => {
                let escaped = format!("\\u{:04x}", u32::from(control));
                line.extend_from_slice(escaped.as_bytes());
            }
            other => line.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    line.push(b'"');
}

#[cfg(test)]
mod tests;
