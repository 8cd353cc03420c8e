//! Parts of a capture, merged, are printed as the whole is.

use super::*;
use crate::parquet;
use crate::samples::{Run, connections, run, segments, steps};
use crate::temporary::TemporaryDirectory;
use proptest::prelude::*;
use std::fs;
use trace::columns::PLAIN;
use trace::json;
use trace::text::{self, About, LongOptions, Numeric};

fn part_of(run: &Run, part: (u32, u32), files: usize) -> Vec<u8> {
    let files = (0..files).map(|file| format!("capture.{file}")).collect();
    let header = Header::new(part.0, part.1, Vec::new(), files, run.summary.clone());
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    for (first_packet, octets) in &run.finished {
        writer.connection(*first_packet, octets).unwrap();
    }
    writer.finish().unwrap()
}

/// What is printed of connections, in every form that does not name files.
#[derive(Default, PartialEq, Eq)]
struct Printed {
    text: String,
    json: Vec<u8>,
    parquet: Vec<u8>,
}

struct Printer<'a> {
    text: String,
    json: json::Writer<'static, Vec<u8>>,
    parquet: parquet::Writer<'static>,
    path: PathBuf,
    summary: &'a Summary,
}

impl<'a> Printer<'a> {
    fn new(directory: &TemporaryDirectory, name: &str, summary: &'a Summary) -> Printer<'a> {
        let path = directory.path.join(name);
        Printer {
            text: String::new(),
            json: json::Writer::new(Vec::new(), summary.end(), &PLAIN),
            parquet: parquet::Writer::create(&path, summary.end(), &PLAIN).unwrap(),
            path,
            summary,
        }
    }

    fn print(&mut self, connection: &Connection) {
        let about = About {
            names: &Numeric,
            zone: &jiff::tz::TimeZone::UTC,
            pair: connection.number,
            file: "",
            end: self.summary.end(),
        };
        let options = LongOptions {
            rtt: true,
            owin: true,
        };
        text::long(&mut self.text, connection, &about, options).unwrap();
        self.json.connection(connection).unwrap();
        self.parquet.connection(connection).unwrap();
    }

    fn finish(self) -> Printed {
        self.parquet.finish(self.summary).unwrap();
        Printed {
            text: self.text,
            json: self.json.finish(self.summary).unwrap(),
            parquet: fs::read(&self.path).unwrap(),
        }
    }
}

fn printed_whole(directory: &TemporaryDirectory, whole: &Run) -> Printed {
    let mut printer = Printer::new(directory, "whole.parquet", &whole.summary);
    for connection in connections(whole) {
        printer.print(&connection);
    }
    printer.finish()
}

fn printed_merged(directory: &TemporaryDirectory, paths: &[PathBuf]) -> Printed {
    let mut merge = Merge::open(paths).unwrap();
    let summary = merge.summary().clone();
    let mut printer = Printer::new(directory, "merged.parquet", &summary);
    while let Some(item) = merge.next().unwrap() {
        match item {
            Item::Connection(connection, file) => {
                assert_eq!(file, format!("capture.{}", connection.file));
                printer.print(connection);
            }
            Item::Flow(..) => panic!("there are no flows"),
        }
    }
    printer.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_capture_in_any_files_over_any_parts_is_printed_as_the_whole(
        steps in steps(120),
        splits in prop::collection::vec(0..120usize, 0..4),
        parts in prop::sample::select(vec![1u32, 2, 3, 7]),
        turn in 0..7usize,
    ) {
        let directory = TemporaryDirectory::new();
        let segments = segments(&steps);
        let mut whole = run(&segments, &[], (0, 1));
        whole.finished.sort();
        let mut paths: Vec<PathBuf> = (0..parts)
            .map(|part| {
                let found = run(&segments, &splits, (part, parts));
                let octets = part_of(&found, (part, parts), splits.len() + 1);
                directory.file(&format!("part.{part}"), &octets)
            })
            .collect();
        paths.rotate_left(turn % parts as usize);
        let (whole, merged) = (printed_whole(&directory, &whole), printed_merged(&directory, &paths));
        prop_assert_eq!(&whole.text, &merged.text);
        prop_assert!(whole.json == merged.json, "JSON differs");
        prop_assert!(whole.parquet == merged.parquet, "Parquet differs");
    }
}

/// The packets that a fixed seed gives.
fn fixed_segments() -> Vec<trace::Segment> {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let steps = prop::collection::vec(steps(40), 4).new_tree(&mut runner);
    segments(&steps.unwrap().current().concat())
}

proptest! {
    /// Whatever is in a connection that thaws can be printed.
    #[test]
    fn a_connection_with_wrong_octets_thaws_or_does_not_but_prints(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        which in any::<prop::sample::Index>(),
    ) {
        let found = run(&fixed_segments(), &[], (0, 1));
        let mut octets = which.get(&found.finished).1.to_vec();
        for (at, octet) in changes {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        let mut connection = Connection::default();
        if connection.thaw(&octets).is_ok() {
            let mut lines = json::Writer::new(Vec::new(), i64::MIN, &PLAIN);
            lines.connection(&connection).unwrap();
        }
    }
}
