//! The statistics of a connection as columns of a table. JSON, Parquet and `docs/trace-columns.md` are all made from
//! this one list, so that they cannot disagree.
//!
//! No value in a row depends on how the capture was split into files or parts. A value that does not exist is absent,
//! not 0: for example the shortest round trip if none was measured, or the length of a stream whose FIN is not in the
//! capture.
//!
//! ```
//! use trace::columns::{self, Get};
//!
//! let connection = trace::Connection::default();
//! let rows = columns::rows(&connection, 0);
//! for placed in columns::ALL.iter() {
//!     if let Get::Count(get) = placed.column.get {
//!         println!("{}: {}", placed.name, get(&rows[placed.side]));
//!     }
//! }
//! ```

mod connection;
mod details;
mod direction;
mod summary;
mod table;

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::{Connection, Direction, Times};

pub use summary::{Count, SUMMARY, Summary};
pub use table::{DETAILED, PLAIN, Table};

/// Version of the columns. A larger version has more columns. No column is removed or changed without a new version.
pub const SCHEMA: u32 = 1;

/// A connection and one of its directions: the source of a column's value.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// The connection.
    pub connection: &'a Connection,
    /// The direction. Columns of the whole connection do not use it.
    pub this: &'a Direction,
    /// The longest silence of the direction's sender, in nanoseconds.
    pub idle_max: Option<i64>,
}

/// The rows of both directions of a connection. `end` is the time of the capture's last packet, in nanoseconds since 1970
/// ([`Summary::end`]).
pub fn rows(connection: &Connection, end: i64) -> [Row<'_>; 2] {
    let (a, b) = connection.idle_max(end);
    [(&connection.a, a), (&connection.b, b)].map(|(this, idle_max)| Row {
        connection,
        this,
        idle_max,
    })
}

/// Computes a column's value. The variant is the value's type.
#[derive(Clone, Copy)]
pub enum Get {
    /// A number that is always there.
    Count(fn(&Row<'_>) -> u64),
    /// A number that may be absent.
    Maybe(fn(&Row<'_>) -> Option<u64>),
    /// A length of time in nanoseconds.
    Span(fn(&Row<'_>) -> Option<i64>),
    /// A mean or another fraction.
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
    #[must_use]
    pub const fn may_be_absent(self) -> bool {
        matches!(
            self,
            Get::Maybe(_) | Get::Span(_) | Get::Real(_) | Get::Time(_) | Get::Text(_)
        )
    }
}

/// A column of the connection, or a pair of columns for its two directions.
#[derive(Clone, Copy)]
pub struct Column {
    /// Its name; in a pair, without the prefixes `a2b_` and `b2a_`.
    pub name: &'static str,
    /// The unit of its numbers; empty if they have none.
    pub unit: &'static str,
    /// Its name in tcptrace's long report; empty if that report lacks the value.
    pub tcptrace: &'static str,
    /// A description in one sentence.
    pub doc: &'static str,
    /// Computes its value.
    pub get: Get,
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

/// A column of the table.
pub struct Placed {
    /// Its full name.
    pub name: String,
    /// Index of the row in [`rows`] that it is computed from.
    pub side: usize,
    /// The column.
    pub column: &'static Column,
}

/// All columns, in order: first those of the connection, then each pair.
pub static ALL: LazyLock<Vec<Placed>> =
    LazyLock::new(|| placed(connection::COLUMNS, direction::COLUMNS));

/// The columns of [`crate::details`], in the same order.
pub static DETAILS: LazyLock<Vec<Placed>> =
    LazyLock::new(|| placed(details::CONNECTION, details::DIRECTION));

fn placed(whole: &'static [Column], pairs: &'static [Column]) -> Vec<Placed> {
    let whole = whole.iter().map(|column| Placed {
        name: column.name.to_owned(),
        side: 0,
        column,
    });
    let pairs = pairs.iter().flat_map(|column| {
        [(0, "a2b_"), (1, "b2a_")].map(|(side, prefix)| Placed {
            name: format!("{prefix}{}", column.name),
            side,
            column,
        })
    });
    whole.chain(pairs).collect()
}

/// The mean of `count` values. It is between their bounds even if the division rounds.
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
pub(crate) mod samples;
#[cfg(test)]
mod tests;
