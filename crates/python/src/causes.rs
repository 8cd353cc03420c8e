//! The columns of [`trace::why::columns`] as Arrow arrays.

use std::collections::HashMap;

use arrow_schema::Field;
use trace::Connection;
use trace::why::Report;
use trace::why::columns::{ALL, Get, rows};

use crate::rows::{Kind, Value, Values, signed};

/// All fields, in order. The metadata of each has its description.
pub(crate) fn fields() -> Vec<Field> {
    let columns = ALL.iter().map(|column| {
        let absent = matches!(column.get, Get::Span(_));
        let about = HashMap::from([("description".to_owned(), column.doc.clone())]);
        Field::new(&column.name, kind(column.get).data_type(), absent).with_metadata(about)
    });
    columns.collect()
}

fn kind(get: Get) -> Kind {
    match get {
        Get::Count(_) | Get::Span(_) | Get::Share(..) => Kind::Integer,
        Get::Real(_) => Kind::Real,
        Get::Moment(_) => Kind::Time,
        Get::Name(_) => Kind::Text,
    }
}

/// The columns of those indexes, empty.
pub(crate) fn empty(chosen: &[usize], rows: usize) -> Vec<Values> {
    let chosen = chosen.iter().map(|&at| kind(ALL[at].get));
    chosen.map(|kind| Values::new(kind, rows)).collect()
}

/// Adds the rows of a connection to the columns of those indexes; returns how many.
pub(crate) fn push(chosen: &[usize], connection: &Connection, values: &mut [Values]) -> usize {
    let Some(report) = Report::new(connection) else {
        return 0;
    };
    let rows = rows(&report);
    for row in &rows {
        for (&at, values) in chosen.iter().zip(values.iter_mut()) {
            match ALL[at].get {
                Get::Count(get) => values.push(Value::Integer(Some(signed(get(row))))),
                Get::Span(get) => values.push(Value::Integer(get(row))),
                Get::Moment(get) => values.push(Value::Integer(Some(get(row)))),
                Get::Real(get) => values.push(Value::Real(Some(get(row)))),
                Get::Name(get) => values.push(Value::Text(Some(&get(row)))),
                Get::Share(cause, get) => {
                    let count = get(&row.side.shares[cause as usize]);
                    values.push(Value::Integer(Some(signed(count))));
                }
            }
        }
    }
    rows.len()
}
