//! The result as a table: a row for each direction that sent data. The Python package makes Arrow columns of it.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::cause::Cause;
use super::report::{Report, Side};
use super::sender::Share;

/// Version of the columns.
pub const SCHEMA: &str = "why/1";

/// One direction with data: the source of a column's value.
#[derive(Debug, Clone)]
pub struct Row<'a> {
    /// The connection's result.
    pub report: &'a Report,
    /// The direction.
    pub side: &'a Side,
    /// The main cause in one sentence.
    pub sentence: String,
}

/// Computes a number from a cause's time.
pub type OfShare = fn(&Share) -> u64;

/// Computes a column's value. The variant is the value's type.
#[derive(Clone, Copy)]
pub enum Get {
    /// A number, or a time in nanoseconds.
    Count(fn(&Row<'_>) -> u64),
    /// A time in nanoseconds that may be absent.
    Span(fn(&Row<'_>) -> Option<i64>),
    /// A part of something.
    Real(fn(&Row<'_>) -> f64),
    /// A time in nanoseconds since 1970.
    Moment(fn(&Row<'_>) -> i64),
    /// Text.
    Name(for<'a> fn(&'a Row<'_>) -> Cow<'a, str>),
    /// A number of a single cause.
    Share(Cause, OfShare),
}

/// A column.
pub struct Column {
    /// Its name.
    pub name: String,
    /// A description in one sentence.
    pub doc: String,
    /// Computes its value.
    pub get: Get,
}

/// Columns that are not of a single cause: name, value, description.
#[rustfmt::skip]
const WHOLE: [(&str, Get, &str); 18] = [
    ("connection", Get::Count(|row| row.report.number),
        "Number of the connection, as in trace."),
    ("direction", Get::Name(|row| row.side.name().into()),
        "The direction of the data: a2b or b2a."),
    ("a_address", Get::Name(|row| row.report.a.0.to_string().into()),
        "IP address of end a, the end that sent the connection's first packet."),
    ("a_port", Get::Count(|row| row.report.a.1.into()),
        "TCP port of end a."),
    ("b_address", Get::Name(|row| row.report.b.0.to_string().into()),
        "IP address of end b."),
    ("b_port", Get::Count(|row| row.report.b.1.into()),
        "TCP port of end b."),
    ("first_time", Get::Moment(|row| row.report.first_time),
        "Time of the connection's first packet."),
    ("elapsed_ns", Get::Count(|row| row.report.life.unsigned_abs()),
        "Time from the connection's first packet to its last. The times of all causes add up to it."),
    ("rtt_to_a_ns", Get::Span(|row| row.report.to_a),
        "Round trip between the point of capture and end a."),
    ("rtt_to_b_ns", Get::Span(|row| row.report.to_b),
        "Round trip between the point of capture and end b."),
    ("bytes", Get::Count(|row| row.side.bytes),
        "Payload bytes of the direction, counting each byte of the stream once."),
    ("sentence", Get::Name(|row| row.sentence.as_str().into()),
        "The main cause in one sentence."),
    ("cause", Get::Name(|row| row.side.verdict.cause.rule().name.into()),
        "The main cause."),
    ("part", Get::Real(|row| row.side.verdict.part()),
        "The main cause's part of the time in which the sender was not idle, from 0 to 1."),
    ("confidence", Get::Name(|row| row.side.verdict.confidence.name().into()),
        "high, medium or low."),
    ("vantage", Get::Name(|row| row.side.verdict.vantage.name().into()),
        "Where the capture was taken: sender, receiver, between or unknown."),
    ("contradicted_by", Get::Name(|row| row.side.verdict.cause.rule().contradicted_by.into()),
        "What would contradict the main cause."),
    ("cannot_see", Get::Name(|row| row.side.verdict.vantage.cannot_see().into()),
        "What a capture taken there does not show."),
];

/// Columns of each cause: the end of the name, value, description.
const EACH: [(&str, OfShare, &str); 4] = [
    (
        "ns",
        |share| share.time.unsigned_abs(),
        "Time of the cause.",
    ),
    (
        "spans",
        |share| share.spans.into(),
        "Number of spans of the cause.",
    ),
    (
        "longest_ns",
        |share| share.longest.unsigned_abs(),
        "The longest span.",
    ),
    (
        "longest_until_packet",
        |share| share.packet,
        "The packet that ended the longest span; 0 if there is none.",
    ),
];

/// All columns, in order.
pub static ALL: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let whole = WHOLE.into_iter().map(|(name, get, doc)| Column {
        name: name.to_owned(),
        doc: doc.to_owned(),
        get,
    });
    let causes = Cause::all().flat_map(|cause| {
        EACH.map(|(end, get, doc)| Column {
            name: format!("{}_{end}", cause.rule().name),
            doc: format!("{doc} It counts {}.", cause.rule().rule),
            get: Get::Share(cause, get),
        })
    });
    whole.chain(causes).collect()
});

/// The rows of a connection.
#[must_use]
pub fn rows(report: &Report) -> Vec<Row<'_>> {
    let sides = report.sides.iter();
    sides
        .map(|side| Row {
            report,
            side,
            sentence: side.verdict.to_string(),
        })
        .collect()
}
