//! The values of one column until their row group is written.

use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::Result;
use ::parquet::file::writer::SerializedColumnWriter;

use trace::columns::{Get, Row};

/// Values, and for each row whether it has one.
pub(super) struct Buffer {
    get: Get,
    values: Values,
    /// 1 for a row that has a value; not kept where all have.
    present: Vec<i16>,
}

enum Values {
    Integers(Vec<i64>),
    Reals(Vec<f64>),
    Flags(Vec<bool>),
    Texts(Vec<ByteArray>),
}

impl Buffer {
    pub(super) fn new(get: Get) -> Buffer {
        let values = match get {
            Get::Count(_) | Get::Maybe(_) | Get::Span(_) | Get::Moment(_) | Get::Time(_) => {
                Values::Integers(Vec::new())
            }
            Get::Real(_) => Values::Reals(Vec::new()),
            Get::Flag(_) => Values::Flags(Vec::new()),
            Get::Name(_) | Get::Text(_) => Values::Texts(Vec::new()),
        };
        Buffer {
            get,
            values,
            present: Vec::new(),
        }
    }

    /// Adds the value of a row.
    pub(super) fn push(&mut self, row: &Row<'_>) {
        let present = &mut self.present;
        let octets = |text: &str| ByteArray::from(text.as_bytes().to_vec());
        match (&mut self.values, self.get) {
            (Values::Integers(values), Get::Count(get)) => values.push(signed(get(row))),
            (Values::Integers(values), Get::Moment(get)) => values.push(get(row)),
            (Values::Integers(values), Get::Maybe(get)) => {
                add(values, present, get(row).map(signed));
            }
            (Values::Integers(values), Get::Span(get) | Get::Time(get)) => {
                add(values, present, get(row));
            }
            (Values::Reals(values), Get::Real(get)) => add(values, present, get(row)),
            (Values::Flags(values), Get::Flag(get)) => values.push(get(row)),
            (Values::Texts(values), Get::Name(get)) => values.push(octets(&get(row))),
            (Values::Texts(values), Get::Text(get)) => {
                add(values, present, get(row).map(|text| octets(&text)));
            }
            _ => unreachable!("the values are of the type that the column gives"),
        }
    }

    /// Writes all into a column chunk, and is empty then.
    pub(super) fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let levels = self.get.may_be_absent().then_some(self.present.as_slice());
        match &mut self.values {
            Values::Integers(values) => chunk::<Int64Type>(column, values, levels)?,
            Values::Reals(values) => chunk::<DoubleType>(column, values, levels)?,
            Values::Flags(values) => chunk::<BoolType>(column, values, levels)?,
            Values::Texts(values) => chunk::<ByteArrayType>(column, values, levels)?,
        }
        self.present.clear();
        Ok(())
    }
}

fn chunk<D: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    values: &mut Vec<D::T>,
    levels: Option<&[i16]>,
) -> Result<()> {
    column.typed::<D>().write_batch(values, levels, None)?;
    values.clear();
    Ok(())
}

fn add<T>(values: &mut Vec<T>, present: &mut Vec<i16>, value: Option<T>) {
    present.push(value.is_some().into());
    values.extend(value);
}

/// Counts stay below 2^63.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
