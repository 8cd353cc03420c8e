//! What is known of a connection, as columns of a table: the one list from which JSON, Parquet and
//! `docs/trace-columns.md` come, so that they cannot disagree.
//!
//! Nothing in a row depends on how the capture was split into files or parts. A value that does not exist is absent,
//! not 0: the shortest of no round trips, the length of a stream whose FIN is not in the capture.

mod connection;
mod direction;
mod summary;

use std::borrow::Cow;
use std::sync::LazyLock;

use trace::{Connection, Direction, Times};

pub(super) use summary::{SUMMARY, Summary};

/// Version of the columns: a larger one has columns more; a column is never taken away or changed without one.
pub(super) const SCHEMA: u32 = 1;

/// A connection and one of its directions: where a column looks.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) connection: &'a Connection,
    /// What end `a` sent, or end `b`; of no use to columns of the whole connection.
    pub(super) this: &'a Direction,
    /// The longest silence of that end.
    pub(super) idle_max: Option<i64>,
}

/// The rows of both directions of a connection. The capture ended at `end`.
pub(super) fn rows(connection: &Connection, end: i64) -> [Row<'_>; 2] {
    let (a, b) = connection.idle_max(end);
    [(&connection.a, a), (&connection.b, b)].map(|(this, idle_max)| Row {
        connection,
        this,
        idle_max,
    })
}

/// How a value is found, and so of what type it is.
#[derive(Clone, Copy)]
pub(super) enum Get {
    /// A number that is always there.
    Count(fn(&Row<'_>) -> u64),
    /// A number that may be absent.
    Maybe(fn(&Row<'_>) -> Option<u64>),
    /// A length of time in nanoseconds.
    Span(fn(&Row<'_>) -> Option<i64>),
    /// A mean or the like.
    Real(fn(&Row<'_>) -> Option<f64>),
    /// Yes or no.
    Flag(fn(&Row<'_>) -> bool),
    /// A time, in nanoseconds since 1970, that is always there.
    Moment(fn(&Row<'_>) -> i64),
    /// A time that may be absent.
    Time(fn(&Row<'_>) -> Option<i64>),
    /// Text that is always there.
    Name(for<'a> fn(&Row<'a>) -> Cow<'a, str>),
    /// Text that may be absent.
    Text(for<'a> fn(&Row<'a>) -> Option<Cow<'a, str>>),
}

impl Get {
    /// Whether the value may be absent.
    pub(super) const fn may_be_absent(self) -> bool {
        matches!(
            self,
            Get::Maybe(_) | Get::Span(_) | Get::Real(_) | Get::Time(_) | Get::Text(_)
        )
    }
}

/// A column, or a pair of them for both directions.
#[derive(Clone, Copy)]
pub(super) struct Column {
    /// Its name; in a pair, what follows `a2b_` and `b2a_`.
    pub(super) name: &'static str,
    /// Of what its numbers are; empty where there is nothing to say.
    pub(super) unit: &'static str,
    /// What tcptrace calls it in its long report; empty where it has none such.
    pub(super) tcptrace: &'static str,
    /// What it is, in a sentence.
    pub(super) doc: &'static str,
    pub(super) get: Get,
}

const fn column(
    name: &'static str,
    unit: &'static str,
    tcptrace: &'static str,
    get: Get,
    doc: &'static str,
) -> Column {
    Column {
        name,
        unit,
        tcptrace,
        doc,
        get,
    }
}

/// A column in its place.
pub(super) struct Placed {
    /// Its whole name.
    pub(super) name: String,
    /// Which of the [`rows`] it looks at.
    pub(super) side: usize,
    pub(super) column: &'static Column,
}

/// All columns, in order: those of the connection, then each pair.
pub(super) static ALL: LazyLock<Vec<Placed>> = LazyLock::new(|| {
    let whole = connection::COLUMNS.iter().map(|column| Placed {
        name: column.name.to_owned(),
        side: 0,
        column,
    });
    let pairs = direction::COLUMNS.iter().flat_map(|column| {
        [(0, "a2b_"), (1, "b2a_")].map(|(side, prefix)| Placed {
            name: format!("{prefix}{}", column.name),
            side,
            column,
        })
    });
    whole.chain(pairs).collect()
});

/// The mean of `count` values, which lies between their bounds also where the division rounds.
fn mean(sum: f64, count: u64, bounds: (f64, f64)) -> Option<f64> {
    let (min, max) = bounds;
    (count > 0).then(|| (sum / count as f64).max(min).min(max))
}

fn shortest(times: &Times) -> Option<i64> {
    (times.count > 0).then_some(times.min)
}

fn longest(times: &Times) -> Option<i64> {
    (times.count > 0).then_some(times.max)
}

fn average(times: &Times) -> Option<f64> {
    mean(
        times.sum as f64,
        times.count,
        (times.min as f64, times.max as f64),
    )
}

fn deviation(times: &Times) -> Option<f64> {
    (times.count > 2).then(|| times.deviation())
}

#[cfg(test)]
pub(super) mod samples;
#[cfg(test)]
mod tests;
