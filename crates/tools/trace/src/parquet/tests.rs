use super::*;
use crate::samples::{connections, run, segments, steps};
use crate::temporary::TemporaryDirectory;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;
use proptest::prelude::*;
use std::fs::{self, File};
use trace::columns::PLAIN;

/// The names of the files in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let names = entries.map(|entry| name(entry).into_string().unwrap());
    names.collect()
}

fn write(path: &Path, connections: &[Connection], summary: &Summary) {
    let mut writer = Writer::create(path, summary.end(), &PLAIN).unwrap();
    for connection in connections {
        writer.connection(connection).unwrap();
    }
    writer.finish(summary).unwrap();
}

/// A value from the reader as the member of a JSON object, for comparison.
fn member((name, field): (&String, &Field)) -> String {
    let value = match field {
        Field::Null => "null".to_owned(),
        Field::Bool(value) => value.to_string(),
        Field::Long(value) => value.to_string(),
        Field::Double(value) => format!("{value:?}"),
        Field::Str(value) => format!("\"{value}\""),
        other => panic!("a column of type {other:?}"),
    };
    format!("\"{name}\":{value}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn what_is_read_back_is_what_json_says(steps in steps(100)) {
        let directory = TemporaryDirectory::new();
        let path = directory.path.join("c.parquet");
        let found = run(&segments(&steps), &[], (0, 1));
        let connections = connections(&found);
        write(&path, &connections, &found.summary);
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let mut lines = json::Writer::new(Vec::new(), found.summary.end(), &PLAIN);
        for connection in &connections {
            lines.connection(connection).unwrap();
        }
        let lines = String::from_utf8(lines.finish(&found.summary).unwrap()).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(rows.len(), connections.len());
        for (row, line) in rows.iter().zip(lines.lines()) {
            prop_assert_eq!(row.len(), columns::ALL.len());
            let members: Vec<String> = row.get_column_iter().map(member).collect();
            let read = format!("{{\"schema\":\"trace.connection/1\",\"kind\":\"connection\",{}}}", members.join(","));
            prop_assert_eq!(read, line);
        }
    }
}

#[test]
fn row_groups_are_bounded_and_columns_described() {
    let directory = TemporaryDirectory::new();
    let path = directory.path.join("c.parquet");
    let connections = vec![Connection::default(); GROUP + 1];
    write(&path, &connections, &Summary::default());
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let metadata = reader.metadata();
    let sizes: Vec<i64> = metadata
        .row_groups()
        .iter()
        .map(|group| group.num_rows())
        .collect();
    assert_eq!(sizes, [GROUP as i64, 1]);
    let pairs = metadata.file_metadata().key_value_metadata().unwrap();
    let described = pairs
        .iter()
        .filter(|pair| pair.key.starts_with("column."))
        .count();
    assert_eq!(described, columns::ALL.len());
    let value = |key: &str| {
        pairs
            .iter()
            .find(|pair| pair.key == key)
            .unwrap()
            .value
            .clone()
    };
    assert_eq!(
        value("column.a2b_rtt_min_ns").unwrap(),
        "Shortest round trip. Unit: ns. tcptrace: RTT min."
    );
    assert_eq!(value("headend.schema").unwrap(), SCHEMA.to_string());
    let times = metadata.file_metadata().schema_descr().column(2);
    assert_eq!(
        times.logical_type_ref(),
        Some(&LogicalType::timestamp(true, TimeUnit::NANOS))
    );
}

#[test]
fn the_file_has_its_name_only_once_it_is_complete() {
    let directory = TemporaryDirectory::new();
    let path = directory.path.join("c.parquet");
    fs::write(&path, "what was there").unwrap();
    let mut writer = Writer::create(&path, 0, &PLAIN).unwrap();
    writer.connection(&Connection::default()).unwrap();
    assert_eq!(names(&directory.path).len(), 2);
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), b"what was there");
    assert_eq!(names(&directory.path), ["c.parquet"]);
    write(&path, &[], &Summary::default());
    assert_eq!(names(&directory.path), ["c.parquet"]);
    assert!(fs::read(&path).unwrap().starts_with(b"PAR1"));
}

#[test]
fn what_is_no_ordinary_file_stays() {
    write(
        Path::new("/dev/null"),
        &[Connection::default()],
        &Summary::default(),
    );
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}
