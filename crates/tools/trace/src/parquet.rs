//! `--parquet FILE`: the connections as a Parquet file.
//!
//! The Apache Parquet format, version 2 of its logical types, compressed with zstd. The file has the columns that
//! `--columns` and `--details` choose. Its metadata describes them: `headend.schema`, `headend.summary`, `column.NAME`, `summary.NAME`. Counts
//! are signed 64-bit integers, which every reader supports. Durations are in nanoseconds, times are
//! `timestamp[ns, UTC]`. UDP flows are left out.
//!
//! The file gets its name only when it is complete.

mod buffer;
mod intervals;
mod target;

pub(super) use intervals::{Intervals, path_beside};

use std::io;
use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::{
    Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel,
};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;
use trace::Connection;
use trace::columns::{self, Get, Placed, SCHEMA, SUMMARY, Summary, Table};
use trace::json;

use buffer::Buffer;
pub(super) use target::Target;

/// Connections in a row group, which is kept in memory until it is written: about 30 MB.
const GROUP: usize = 16_384;

/// Writes a file.
pub(super) struct Writer<'t> {
    file: SerializedFileWriter<Target>,
    buffers: Vec<Buffer>,
    rows: usize,
    end: i64,
    table: &'t Table,
}

impl<'t> Writer<'t> {
    /// A file about a capture that ended at `end`, in nanoseconds since 1970.
    ///
    /// # Errors
    /// It cannot be created.
    pub(super) fn create(path: &Path, end: i64, table: &'t Table) -> io::Result<Self> {
        let target = Target::create(path)?;
        let properties = properties().map_err(plain)?;
        let schema = schema(table).map_err(plain)?;
        let file = SerializedFileWriter::new(target, schema, Arc::new(properties));
        let columns = table.columns.iter();
        Ok(Writer {
            file: file.map_err(plain)?,
            buffers: columns
                .map(|placed| Buffer::new(placed.column.get))
                .collect(),
            rows: 0,
            end,
            table,
        })
    }

    /// Adds a connection.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn connection(&mut self, connection: &Connection) -> io::Result<()> {
        let rows = columns::rows(connection, self.end);
        for (placed, buffer) in self.table.columns.iter().zip(&mut self.buffers) {
            buffer.push(&rows[placed.side]);
        }
        self.rows += 1;
        if self.rows == GROUP {
            self.group().map_err(plain)?;
        }
        Ok(())
    }

    /// Writes remaining rows and the metadata, and renames the file to its final name.
    ///
    /// # Errors
    /// The file cannot be written or named.
    pub(super) fn finish(mut self, summary: &Summary) -> io::Result<()> {
        if self.rows > 0 {
            self.group().map_err(plain)?;
        }
        let mut add = |key: String, value: String| {
            self.file
                .append_key_value_metadata(KeyValue::new(key, value));
        };
        add("headend.schema".into(), SCHEMA.to_string());
        add("headend.summary".into(), json::summary(summary));
        for count in SUMMARY {
            add(format!("summary.{}", count.name), count.doc.into());
        }
        for placed in &self.table.columns {
            add(format!("column.{}", placed.name), description(placed));
        }
        self.file.into_inner().map_err(plain)?.finish()
    }

    /// Writes a row group.
    fn group(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for buffer in &mut self.buffers {
            let Some(mut column) = group.next_column()? else {
                break;
            };
            buffer.write(&mut column)?;
            column.close()?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

fn plain(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

fn properties() -> Result<WriterProperties> {
    Ok(WriterProperties::builder()
        .set_created_by(concat!("headend ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .build())
}

fn schema(table: &Table) -> Result<Arc<Type>> {
    let columns = (table.columns.iter()).map(|placed| field(placed).map(Arc::new));
    let schema = Type::group_type_builder("connections")
        .with_fields(columns.collect::<Result<_>>()?)
        .build()?;
    Ok(Arc::new(schema))
}

fn field(placed: &Placed) -> Result<Type> {
    let get = placed.column.get;
    let (physical, logical) = match get {
        Get::Count(_) | Get::Maybe(_) | Get::Span(_) => (Physical::INT64, None),
        Get::Real(_) => (Physical::DOUBLE, None),
        Get::Flag(_) => (Physical::BOOLEAN, None),
        Get::Moment(_) | Get::Time(_) => (
            Physical::INT64,
            Some(LogicalType::timestamp(true, TimeUnit::NANOS)),
        ),
        Get::Name(_) | Get::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if get.may_be_absent() {
        Repetition::OPTIONAL
    } else {
        Repetition::REQUIRED
    };
    Type::primitive_type_builder(&placed.name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
}

/// The description of a column: its sentence, its unit and tcptrace's name.
fn description(placed: &Placed) -> String {
    let column = placed.column;
    let mut text = column.doc.to_owned();
    if !column.unit.is_empty() {
        text.push_str(&format!(" Unit: {}.", column.unit));
    }
    if !column.tcptrace.is_empty() {
        text.push_str(&format!(" tcptrace: {}.", column.tcptrace));
    }
    text
}

#[cfg(test)]
mod tests;
