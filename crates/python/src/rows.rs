//! Arrow arrays that grow by a value.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampNanosecondBuilder,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer,
    Real,
    Flag,
    /// Nanoseconds since 1970.
    Time,
    Text,
}

impl Kind {
    pub(crate) fn data_type(self) -> DataType {
        match self {
            Kind::Integer => DataType::Int64,
            Kind::Real => DataType::Float64,
            Kind::Flag => DataType::Boolean,
            Kind::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            Kind::Text => DataType::Utf8,
        }
    }
}

/// The values of a column so far.
pub(crate) enum Values {
    Integers(Int64Builder),
    Reals(Float64Builder),
    Flags(BooleanBuilder),
    Times(TimestampNanosecondBuilder),
    Texts(StringBuilder),
}

/// A value of a column.
pub(crate) enum Value<'a> {
    Integer(Option<i64>),
    Real(Option<f64>),
    Flag(Option<bool>),
    Text(Option<&'a str>),
}

impl Values {
    pub(crate) fn new(kind: Kind, rows: usize) -> Values {
        match kind {
            Kind::Integer => Values::Integers(Int64Builder::with_capacity(rows)),
            Kind::Real => Values::Reals(Float64Builder::with_capacity(rows)),
            Kind::Flag => Values::Flags(BooleanBuilder::with_capacity(rows)),
            Kind::Time => {
                let times = TimestampNanosecondBuilder::with_capacity(rows);
                Values::Times(times.with_timezone("UTC"))
            }
            Kind::Text => Values::Texts(StringBuilder::new()),
        }
    }

    /// Adds a value.
    ///
    /// # Panics
    /// The value is not of the column's type.
    pub(crate) fn push(&mut self, value: Value<'_>) {
        match (self, value) {
            (Values::Integers(values), Value::Integer(value)) => values.append_option(value),
            (Values::Times(values), Value::Integer(value)) => values.append_option(value),
            (Values::Reals(values), Value::Real(value)) => values.append_option(value),
            (Values::Flags(values), Value::Flag(value)) => values.append_option(value),
            (Values::Texts(values), Value::Text(value)) => values.append_option(value),
            _ => unreachable!("a column's values are of its own type"),
        }
    }

    /// The array.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        let array: Arc<dyn Array> = match self {
            Values::Integers(values) => Arc::new(values.finish()),
            Values::Reals(values) => Arc::new(values.finish()),
            Values::Flags(values) => Arc::new(values.finish()),
            Values::Times(values) => Arc::new(values.finish()),
            Values::Texts(values) => Arc::new(values.finish()),
        };
        array
    }
}

/// Counts stay below 2^63.
pub(crate) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
