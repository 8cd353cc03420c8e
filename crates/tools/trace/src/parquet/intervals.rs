//! `--intervals` with `--parquet`: a second file with the columns over time.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::Result;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;
use trace::Connection;
use trace::columns::SCHEMA;

use super::target::Target;
use super::{plain, properties};
use trace::details::rows::{self, INTERVAL, Value};

/// Rows in a row group: about 16 MB.
const GROUP: usize = 1 << 17;

/// Values of a column until their row group is written, and for each row whether it has one.
#[derive(Default)]
struct Column {
    integers: Vec<i64>,
    reals: Vec<f64>,
    texts: Vec<ByteArray>,
    present: Vec<i16>,
}

/// Writes the file.
pub(in super::super) struct Intervals {
    file: SerializedFileWriter<Target>,
    columns: [Column; INTERVAL.len()],
    rows: usize,
}

/// `connections.intervals.parquet` beside `connections.parquet`.
pub(in super::super) fn path_beside(path: &Path) -> PathBuf {
    let extension = path.extension().and_then(|extension| extension.to_str());
    path.with_extension(format!("intervals.{}", extension.unwrap_or("parquet")))
}

impl Intervals {
    /// # Errors
    /// It cannot be created.
    pub(in super::super) fn create(path: &Path) -> io::Result<Intervals> {
        let target = Target::create(path)?;
        let properties = Arc::new(properties().map_err(plain)?);
        let file = SerializedFileWriter::new(target, schema().map_err(plain)?, properties);
        Ok(Intervals {
            file: file.map_err(plain)?,
            columns: Default::default(),
            rows: 0,
        })
    }

    /// Adds the rows of a connection.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(in super::super) fn connection(&mut self, connection: &Connection) -> io::Result<()> {
        rows::each(connection, |row| {
            for (column, value) in self.columns.iter_mut().zip(row) {
                column.push(*value);
            }
            self.rows += 1;
            match self.rows == GROUP {
                true => self.group().map_err(plain),
                false => Ok(()),
            }
        })
    }

    /// Writes the remaining rows, and renames the file to its final name.
    ///
    /// # Errors
    /// The file cannot be written or named.
    pub(in super::super) fn finish(mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.group().map_err(plain)?;
        }
        let version = KeyValue::new("headend.schema".into(), SCHEMA.to_string());
        self.file.append_key_value_metadata(version);
        self.file.into_inner().map_err(plain)?.finish()
    }

    fn group(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for (column, name) in self.columns.iter_mut().zip(INTERVAL) {
            let Some(mut writer) = group.next_column()? else {
                break;
            };
            let levels = may_be_absent(name).then_some(column.present.as_slice());
            match physical(name) {
                Physical::BYTE_ARRAY => {
                    (writer.typed::<ByteArrayType>()).write_batch(&column.texts, levels, None)?
                }
                Physical::DOUBLE => {
                    (writer.typed::<DoubleType>()).write_batch(&column.reals, levels, None)?
                }
                _ => (writer.typed::<Int64Type>()).write_batch(&column.integers, levels, None)?,
            };
            writer.close()?;
            *column = Column::default();
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl Column {
    fn push(&mut self, value: Value) {
        self.present.push(i16::from(value != Value::Absent));
        match value {
            Value::Number(number) => self.integers.push(number.try_into().unwrap_or(i64::MAX)),
            Value::Time(time) => self.integers.push(time),
            Value::Real(real) => self.reals.push(real),
            Value::Direction(text) | Value::Cause(text) => {
                self.texts.push(ByteArray::from(text.as_bytes().to_vec()));
            }
            Value::Absent => {}
        }
    }
}

fn physical(name: &str) -> Physical {
    match name {
        "direction" => Physical::BYTE_ARRAY,
        "rtt_avg_ns" => Physical::DOUBLE,
        _ => Physical::INT64,
    }
}

fn may_be_absent(name: &str) -> bool {
    matches!(
        name,
        "in_flight_max" | "rtt_min_ns" | "rtt_avg_ns" | "rtt_max_ns" | "window_min"
    )
}

fn schema() -> Result<Arc<Type>> {
    let fields = INTERVAL.into_iter().map(|name| {
        let logical = match name {
            "direction" => Some(LogicalType::String),
            "time" => Some(LogicalType::timestamp(true, TimeUnit::NANOS)),
            _ => None,
        };
        let repetition = match may_be_absent(name) {
            true => Repetition::OPTIONAL,
            false => Repetition::REQUIRED,
        };
        let field = Type::primitive_type_builder(name, physical(name))
            .with_logical_type(logical)
            .with_repetition(repetition);
        field.build().map(Arc::new)
    });
    let schema = Type::group_type_builder("intervals")
        .with_fields(fields.collect::<Result<_>>()?)
        .build()?;
    Ok(Arc::new(schema))
}
