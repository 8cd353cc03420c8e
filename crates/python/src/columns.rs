//! The columns of [`trace::columns`], the table that Parquet and JSON are made from, as Arrow arrays.

use std::collections::HashMap;

use arrow_schema::Field;
use trace::columns::{ALL, Get, Placed, Row};

use crate::rows::{Kind, Value, Values, signed};

/// A column's field. Its metadata has the column's description and unit.
pub(crate) fn field(placed: &Placed) -> Field {
    let column = placed.column;
    let mut about = HashMap::from([("description".to_owned(), column.doc.to_owned())]);
    for (key, value) in [("unit", column.unit), ("tcptrace", column.tcptrace)] {
        if !value.is_empty() {
            about.insert(key.to_owned(), value.to_owned());
        }
    }
    let absent = column.get.may_be_absent();
    Field::new(&placed.name, kind(column.get).data_type(), absent).with_metadata(about)
}

/// The columns of those indexes, empty.
pub(crate) fn empty(chosen: &[usize], rows: usize) -> Vec<Values> {
    let chosen = chosen.iter().map(|&at| kind(ALL[at].column.get));
    chosen.map(|kind| Values::new(kind, rows)).collect()
}

fn kind(get: Get) -> Kind {
    match get {
        Get::Count(_) | Get::Maybe(_) | Get::Span(_) => Kind::Integer,
        Get::Real(_) => Kind::Real,
        Get::Flag(_) => Kind::Flag,
        Get::Moment(_) | Get::Time(_) => Kind::Time,
        Get::Name(_) | Get::Text(_) => Kind::Text,
    }
}

/// Adds a connection to the columns of those indexes.
pub(crate) fn push(chosen: &[usize], rows: &[Row<'_>; 2], values: &mut [Values]) {
    for (&at, values) in chosen.iter().zip(values) {
        let placed = &ALL[at];
        let row = &rows[placed.side];
        match placed.column.get {
            Get::Count(get) => values.push(Value::Integer(Some(signed(get(row))))),
            Get::Maybe(get) => values.push(Value::Integer(get(row).map(signed))),
            Get::Span(get) | Get::Time(get) => values.push(Value::Integer(get(row))),
            Get::Moment(get) => values.push(Value::Integer(Some(get(row)))),
            Get::Real(get) => values.push(Value::Real(get(row))),
            Get::Flag(get) => values.push(Value::Flag(Some(get(row)))),
            Get::Name(get) => values.push(Value::Text(Some(&get(row)))),
            Get::Text(get) => values.push(Value::Text(get(row).as_deref())),
        }
    }
}
