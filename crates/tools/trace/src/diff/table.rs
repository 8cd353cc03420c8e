//! `--parquet FILE`: matched and lost packets as a Parquet file, a row each.
//!
//! Like the file of `headend trace --parquet`: zstd, times as `timestamp[ns, UTC]`, durations in nanoseconds, the version
//! and a sentence for each column in the metadata. A lost packet has no number and no time at the point that it did not
//! reach. Rows are in the order in which packets are matched or given up.

use std::io;
use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::{
    Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel,
};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;
use paths::{FlowKey, Lost, Pair, Point};

use super::super::parquet::Target;
use super::lines;

/// Version of the columns.
const SCHEMA: u32 = 1;

/// Rows in a group, which is kept in memory until it is written: about 8 MB.
const GROUP: usize = 1 << 16;

/// The kind of a column's values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Count,
    Time,
    Flag,
}

/// Name, kind, whether it may be absent, and description. Columns are written in this order.
const COLUMNS: [(&str, Kind, bool, &str); 11] = [
    (
        "direction",
        Kind::Text,
        false,
        "a2b or b2a: which way the packet went.",
    ),
    (
        "a_packet",
        Kind::Count,
        true,
        "Number in the first capture, from 1.",
    ),
    (
        "b_packet",
        Kind::Count,
        true,
        "Number in the second capture, from 1.",
    ),
    (
        "a_time",
        Kind::Time,
        true,
        "Time by the first capture's clock.",
    ),
    (
        "b_time",
        Kind::Time,
        true,
        "Time by the second capture's clock.",
    ),
    (
        "difference_ns",
        Kind::Count,
        true,
        "b_time less a_time: the delay and the clocks' offset. Unit: ns.",
    ),
    (
        "bytes",
        Kind::Count,
        false,
        "Bytes of payload that were matched, or lost.",
    ),
    (
        "lost",
        Kind::Flag,
        false,
        "The packet was lost between the points.",
    ),
    (
        "part",
        Kind::Flag,
        false,
        "A part of a segment that was cut or joined.",
    ),
    (
        "a_flow",
        Kind::Text,
        true,
        "Addresses, ports and protocol in the first capture.",
    ),
    (
        "b_flow",
        Kind::Text,
        true,
        "Addresses, ports and protocol in the second capture.",
    ),
];

/// A row before it is written.
struct Row {
    direction: &'static str,
    numbers: [Option<u64>; 2],
    times: [Option<i64>; 2],
    bytes: u64,
    is_lost: bool,
    is_part: bool,
    flows: [Option<ByteArray>; 2],
}

/// The name of the latest flow of a point, which is mostly the next packet's too.
#[derive(Default)]
struct Named(Option<(FlowKey, ByteArray)>);

impl Named {
    fn get(&mut self, key: &FlowKey) -> ByteArray {
        match &self.0 {
            Some((last, name)) if last == key => name.clone(),
            _ => {
                let name = ByteArray::from(key.to_string().into_bytes());
                self.0 = Some((*key, name.clone()));
                name
            }
        }
    }
}

/// Writes a file. It gets its name when it is complete.
pub(super) struct Table {
    file: SerializedFileWriter<Target>,
    rows: Vec<Row>,
    names: [Named; 2],
}

impl Table {
    /// # Errors
    /// The file cannot be created.
    pub(super) fn create(path: &Path) -> io::Result<Table> {
        let target = Target::create(path)?;
        let level = ZstdLevel::try_new(1).map_err(io::Error::other)?;
        let properties = WriterProperties::builder()
            .set_created_by(concat!("headend ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(level))
            .build();
        let schema = schema().map_err(io::Error::other)?;
        let file = SerializedFileWriter::new(target, schema, Arc::new(properties));
        Ok(Table {
            file: file.map_err(io::Error::other)?,
            rows: Vec::new(),
            names: [Named::default(), Named::default()],
        })
    }

    /// Adds a matched packet.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn pair(&mut self, pair: &Pair) -> io::Result<()> {
        let [a, b] = &mut self.names;
        let flows = [Some(a.get(&pair.keys.0)), Some(b.get(&pair.keys.1))];
        self.push(Row {
            direction: lines::direction(pair.way),
            numbers: [Some(pair.numbers.0), Some(pair.numbers.1)],
            times: [Some(pair.times.0), Some(pair.times.1)],
            bytes: pair.bytes,
            is_lost: false,
            is_part: pair.is_part,
            flows,
        })
    }

    /// Adds a lost packet.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn lost(&mut self, lost: &Lost) -> io::Result<()> {
        let at = lost.point as usize;
        let mut row = Row {
            direction: lines::direction(lost.way),
            numbers: [None; 2],
            times: [None; 2],
            bytes: lost.bytes,
            is_lost: true,
            is_part: lost.is_partial,
            flows: [None, None],
        };
        (row.numbers[at], row.times[at]) = (Some(lost.number), Some(lost.time));
        row.flows[at] = Some(self.names[at].get(&lost.key));
        self.push(row)
    }

    fn push(&mut self, row: Row) -> io::Result<()> {
        self.rows.push(row);
        match self.rows.len() >= GROUP {
            true => self.group().map_err(io::Error::other),
            false => Ok(()),
        }
    }

    /// Writes the rest and the metadata, and names the file.
    ///
    /// # Errors
    /// The file cannot be written or named.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let plain = |error: ParquetError| io::Error::other(error);
        if !self.rows.is_empty() {
            self.group().map_err(plain)?;
        }
        let mut add = |key: String, value: String| {
            self.file
                .append_key_value_metadata(KeyValue::new(key, value));
        };
        add("headend.diff.schema".into(), SCHEMA.to_string());
        for (name, _, _, doc) in COLUMNS {
            add(format!("column.{name}"), doc.into());
        }
        self.file.into_inner().map_err(plain)?.finish()
    }

    /// Writes a row group.
    fn group(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let mut group = self.file.next_row_group()?;
        let mut at = 0;
        while let Some(mut column) = group.next_column()? {
            let (name, kind, is_optional, _) = COLUMNS[at];
            at += 1;
            match kind {
                Kind::Text => {
                    let values = rows.iter().map(|row| text(row, name));
                    let (values, levels) = split(values);
                    let levels = is_optional.then_some(&levels[..]);
                    column
                        .typed::<ByteArrayType>()
                        .write_batch(&values, levels, None)?;
                }
                Kind::Count | Kind::Time => {
                    let (values, levels) = split(rows.iter().map(|row| number(row, name)));
                    let levels = is_optional.then_some(&levels[..]);
                    column
                        .typed::<Int64Type>()
                        .write_batch(&values, levels, None)?;
                }
                Kind::Flag => {
                    let values: Vec<bool> = rows
                        .iter()
                        .map(|row| match name {
                            "lost" => row.is_lost,
                            _ => row.is_part,
                        })
                        .collect();
                    column
                        .typed::<BoolType>()
                        .write_batch(&values, None, None)?;
                }
            }
            column.close()?;
        }
        group.close()?;
        Ok(())
    }
}

/// The values that are present, and 1 for each row that has one.
fn split<T>(values: impl Iterator<Item = Option<T>>) -> (Vec<T>, Vec<i16>) {
    let (mut present, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(value.is_some().into());
        present.extend(value);
    }
    (present, levels)
}

fn text(row: &Row, column: &str) -> Option<ByteArray> {
    match column {
        "direction" => Some(ByteArray::from(row.direction)),
        "a_flow" => row.flows[Point::A as usize].clone(),
        _ => row.flows[Point::B as usize].clone(),
    }
}

fn number(row: &Row, column: &str) -> Option<i64> {
    let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    match column {
        "a_packet" => row.numbers[0].map(count),
        "b_packet" => row.numbers[1].map(count),
        "a_time" => row.times[0],
        "b_time" => row.times[1],
        "difference_ns" => Some(row.times[1]?.saturating_sub(row.times[0]?)),
        _ => Some(count(row.bytes)),
    }
}

fn schema() -> Result<Arc<Type>> {
    let fields = COLUMNS.iter().map(|&(name, kind, is_optional, _)| {
        let (physical, logical) = match kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Count => (Physical::INT64, None),
            Kind::Time => (
                Physical::INT64,
                Some(LogicalType::timestamp(true, TimeUnit::NANOS)),
            ),
            Kind::Flag => (Physical::BOOLEAN, None),
        };
        let repetition = match is_optional {
            true => Repetition::OPTIONAL,
            false => Repetition::REQUIRED,
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()?;
        Ok(Arc::new(field))
    });
    let schema = Type::group_type_builder("packets")
        .with_fields(fields.collect::<Result<_>>()?)
        .build()?;
    Ok(Arc::new(schema))
}
