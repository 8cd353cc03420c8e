//! The columns of `why`: a row for each direction that sent data. [`trace::why`] has the rules.

use std::collections::HashMap;

use arrow_schema::Field;
use trace::why::{Cause, Sender, Verdict};
use trace::{Connection, Direction};

use crate::rows::{Kind, Value, Values, signed};

/// One direction with data.
struct Row<'a> {
    connection: &'a Connection,
    verdict: &'a Verdict,
    sender: &'a Sender,
    this: &'a Direction,
    sentence: &'a str,
}

/// A column that is not of a single cause.
struct Column {
    name: &'static str,
    kind: Kind,
    may_be_absent: bool,
    doc: &'static str,
    get: for<'a> fn(&Row<'a>, &mut Values),
}

const fn column(
    name: &'static str,
    kind: Kind,
    get: for<'a> fn(&Row<'a>, &mut Values),
    doc: &'static str,
) -> Column {
    Column {
        name,
        kind,
        may_be_absent: false,
        doc,
        get,
    }
}

const fn optional(column: Column) -> Column {
    Column {
        may_be_absent: true,
        ..column
    }
}

fn integer(values: &mut Values, value: u64) {
    values.push(Value::Integer(Some(signed(value))));
}

fn text(values: &mut Values, value: &str) {
    values.push(Value::Text(Some(value)));
}

/// Round trip between the point of capture and the end that acknowledges this direction.
fn near(this: &Direction) -> Option<i64> {
    let time = match this.rtt_handshake {
        0 => this.rtt.min,
        time => time,
    };
    (time > 0).then_some(time)
}

#[rustfmt::skip]
const COLUMNS: &[Column] = &[
    column("connection", Kind::Integer, |row, values| integer(values, row.connection.number),
        "Number of the connection, as in trace."),
    column("direction", Kind::Text, |row, values| text(values, if row.verdict.from_a { "a2b" } else { "b2a" }),
        "The direction of the data: a2b or b2a."),
    column("a_address", Kind::Text, |row, values| text(values, &row.connection.a_end().0.to_string()),
        "IP address of end a, the end that sent the connection's first packet."),
    column("a_port", Kind::Integer, |row, values| integer(values, row.connection.a_end().1.into()),
        "TCP port of end a."),
    column("b_address", Kind::Text, |row, values| text(values, &row.connection.b_end().0.to_string()),
        "IP address of end b."),
    column("b_port", Kind::Integer, |row, values| integer(values, row.connection.b_end().1.into()),
        "TCP port of end b."),
    column("first_time", Kind::Time, |row, values| values.push(Value::Integer(Some(row.connection.first_time))),
        "Time of the connection's first packet."),
    column("elapsed_ns", Kind::Integer, |row, values| values.push(Value::Integer(Some(row.verdict.life))),
        "Time from the connection's first packet to its last. The times of all causes add up to it."),
    optional(column("rtt_to_a_ns", Kind::Integer, |row, values| values.push(Value::Integer(near(&row.connection.b))),
        "Round trip between the point of capture and end a.")),
    optional(column("rtt_to_b_ns", Kind::Integer, |row, values| values.push(Value::Integer(near(&row.connection.a))),
        "Round trip between the point of capture and end b.")),
    column("bytes", Kind::Integer, |row, values| integer(values, row.this.unique_bytes),
        "Payload bytes of the direction, counting each byte of the stream once."),
    column("sentence", Kind::Text, |row, values| text(values, row.sentence),
        "The main cause in one sentence."),
    column("cause", Kind::Text, |row, values| text(values, row.verdict.cause.rule().name),
        "The main cause."),
    column("part", Kind::Real, |row, values| values.push(Value::Real(Some(row.verdict.part()))),
        "The main cause's part of the connection's life, from 0 to 1."),
    column("confidence", Kind::Text, |row, values| text(values, row.verdict.confidence.name()),
        "high, medium or low."),
    column("vantage", Kind::Text, |row, values| text(values, row.verdict.vantage.name()),
        "Where the capture was taken: sender, receiver, between or unknown."),
    column("contradicted_by", Kind::Text, |row, values| text(values, row.verdict.cause.rule().contradicted_by),
        "What would contradict the main cause."),
    column("cannot_see", Kind::Text, |row, values| text(values, row.verdict.vantage.cannot_see()),
        "What a capture taken there does not show."),
];

/// Columns of each cause: the end of the name, and the description.
const EACH: [(&str, &str); 4] = [
    ("ns", "Time of the cause."),
    ("spans", "Number of spans of the cause."),
    ("longest_ns", "The longest span."),
    (
        "longest_until_packet",
        "The packet that ended the longest span; 0 if there is none.",
    ),
];

fn about(doc: String) -> HashMap<String, String> {
    HashMap::from([("description".to_owned(), doc)])
}

/// All fields, in order.
pub(crate) fn fields() -> Vec<Field> {
    let whole = COLUMNS.iter().map(|column| {
        let field = Field::new(column.name, column.kind.data_type(), column.may_be_absent);
        field.with_metadata(about(column.doc.to_owned()))
    });
    let causes = Cause::all().flat_map(|cause| {
        EACH.map(|(end, doc)| {
            let name = format!("{}_{end}", cause.rule().name);
            let doc = format!("{doc} It counts {}.", cause.rule().rule);
            Field::new(name, Kind::Integer.data_type(), false).with_metadata(about(doc))
        })
    });
    whole.chain(causes).collect()
}

/// The columns of those indexes, empty.
pub(crate) fn empty(chosen: &[usize], rows: usize) -> Vec<Values> {
    let kind = |at: usize| COLUMNS.get(at).map_or(Kind::Integer, |column| column.kind);
    let chosen = chosen.iter().map(|&at| Values::new(kind(at), rows));
    chosen.collect()
}

/// Adds the rows of a connection to the columns of those indexes; returns how many.
pub(crate) fn push(chosen: &[usize], connection: &Connection, values: &mut [Values]) -> usize {
    let Some(why) = &connection.why else {
        return 0;
    };
    let why = why.until(connection.last_time);
    let mut rows = 0;
    for from_a in [true, false] {
        let Some(verdict) = Verdict::new(connection, &why, from_a) else {
            continue;
        };
        let (sender, this) = match from_a {
            true => (&why.a, &connection.a),
            false => (&why.b, &connection.b),
        };
        let row = Row {
            connection,
            verdict: &verdict,
            sender,
            this,
            sentence: &verdict.to_string(),
        };
        for (&at, values) in chosen.iter().zip(values.iter_mut()) {
            cell(at, &row, values);
        }
        rows += 1;
    }
    rows
}

fn cell(at: usize, row: &Row<'_>, values: &mut Values) {
    if let Some(column) = COLUMNS.get(at) {
        return (column.get)(row, values);
    }
    let at = at - COLUMNS.len();
    let share = &row.sender.shares()[at / EACH.len()];
    match at % EACH.len() {
        0 => values.push(Value::Integer(Some(share.time))),
        1 => integer(values, share.spans.into()),
        2 => values.push(Value::Integer(Some(share.longest))),
        _ => integer(values, share.packet),
    }
}
