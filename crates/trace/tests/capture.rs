//! Captures through the crate's entry point.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use trace::capture::FileError;
use trace::{
    Captures, Connection, Error, Findings, Finished, Options, Seen, Segment, Verdict, Watch,
};
use wire::tcp::Tcp;

fn capture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(name)
}

fn threads(threads: usize) -> Options {
    Options {
        threads: Some(threads),
        seed: Some(7),
        ..Options::default()
    }
}

fn frozen(found: &Findings) -> Vec<Vec<u8>> {
    let mut room = Vec::new();
    (0..found.len())
        .map(|at| found.frozen(at, &mut room).unwrap().to_vec())
        .collect()
}

/// Eighteen connections that reuse one pair of ports.
const MANY: &str = "trace/tcptrace/fast_reuse.dmp.gz";

/// Four connections with ports of their own.
const FLOWS: &str = "interop-trace/cooper-grill-dvwa.pcapng.gz";

#[test]
fn any_number_of_threads_finds_the_same() {
    let one = Captures::open([capture(MANY)], threads(1)).read().unwrap();
    let four = Captures::open([capture(MANY)], threads(4)).read().unwrap();
    assert!(one.len() > 10, "{}", one.len());
    assert_eq!(one.summary(), four.summary());
    assert_eq!(frozen(&one), frozen(&four));
}

#[test]
fn a_capture_in_memory_is_the_same_as_in_a_file() {
    let file = Captures::open([capture(MANY)], threads(1)).read().unwrap();
    let octets = fs::read(capture(MANY)).unwrap();
    let memory = Captures::from_reader("memory", Cursor::new(octets), threads(2));
    let memory = memory.read().unwrap();
    assert_eq!(file.summary(), memory.summary());
    assert_eq!(frozen(&file), frozen(&memory));
    assert_eq!(memory.files()[0].name, "memory");
}

#[test]
fn connections_are_numbered_in_the_order_of_their_first_packets() {
    let found = Captures::open([capture(MANY)], Options::default())
        .read()
        .unwrap();
    let connections: Result<Vec<Connection>, Error> = found.connections().collect();
    let connections = connections.unwrap();
    assert_eq!(connections.len(), found.connections().len());
    assert_eq!(connections.len() as u64, found.summary().connections);
    assert!(connections.is_sorted_by_key(|connection| connection.first_packet));
    assert!(
        connections
            .iter()
            .zip(1..)
            .all(|(connection, number)| connection.number == number)
    );
    let packets: u64 = connections
        .iter()
        .map(|connection| connection.packets)
        .sum();
    assert_eq!(packets, found.summary().tcp);
}

#[test]
fn little_memory_for_finished_connections_changes_no_connection() {
    let plenty = Captures::open([capture(MANY)], threads(1)).read().unwrap();
    let little = Options {
        memory: 4 << 20,
        ..threads(1)
    };
    let little = Captures::open([capture(MANY)], little).read().unwrap();
    assert_eq!(frozen(&plenty), frozen(&little));
    for count in [1, 3] {
        let none = Options {
            memory: 0,
            ..threads(count)
        };
        let none = Captures::open([capture(MANY)], none).read().unwrap();
        assert!(none.spilled() > 0, "{count} threads");
        assert!(none.connections().all(|connection| connection.is_ok()));
    }
}

#[test]
fn the_parts_of_a_capture_add_up_to_it() {
    let whole = Captures::open([capture(FLOWS)], threads(1)).read().unwrap();
    let parts = [0, 1, 2].map(|part| {
        let options = Options {
            part: Some((part, 3)),
            seed: None,
            ..threads(2)
        };
        Captures::open([capture(FLOWS)], options).read().unwrap()
    });
    let mut all: Vec<Vec<u8>> = parts.iter().flat_map(frozen).collect();
    let mut expected = frozen(&whole);
    all.sort();
    expected.sort();
    assert_eq!(all, expected);
    assert!(parts.iter().filter(|part| !part.is_empty()).count() > 1);
}

#[test]
fn a_missing_file_is_reported_and_the_others_are_read() {
    let paths = [PathBuf::from("/nonexistent/capture"), capture(MANY)];
    let found = Captures::open(&paths, threads(1)).read().unwrap();
    assert!(!found.is_good() && !found.is_empty());
    // The file without a time stamp comes last.
    let [good, missing] = found.files() else {
        panic!("{:?}", found.files());
    };
    assert!(good.is_good());
    assert!(matches!(missing.error, Some(FileError::Open(_))));

    let error = Captures::open(&paths[..1], threads(1)).read().unwrap_err();
    assert_eq!(error.to_string(), "/nonexistent/capture: cannot be read");
    assert!(matches!(
        error,
        Error::NothingRead {
            source: Some(_),
            ..
        }
    ));
}

#[test]
fn a_truncated_file_is_read_up_to_its_fault() {
    let octets = fs::read(capture(MANY)).unwrap();
    let half = octets[..octets.len() / 2].to_vec();
    let found = Captures::from_reader("half", Cursor::new(half), threads(1));
    let found = found.read().unwrap();
    assert!(!found.is_empty() && !found.is_good());
    assert!(!found.files()[0].faults.is_empty());
}

/// Counts the packets it observes, and keeps every second connection.
#[derive(Default)]
struct Counter {
    packets: u64,
    segments: u64,
    blocks: u64,
    finished: u64,
}

impl Watch for Counter {
    type Error = Error;

    fn packet(&mut self, seen: &Seen<'_, '_>) {
        self.packets += 1;
        assert_eq!(self.packets, seen.number);
    }

    fn segment(
        &mut self,
        _: &Seen<'_, '_>,
        _: &Tcp<'_>,
        connection: &Connection,
        segment: &Segment,
        verdict: &Verdict,
    ) {
        self.segments += 1;
        assert_eq!(connection.key, segment.key);
        assert_eq!(verdict.first, connection.packets == 1);
    }

    fn block(&mut self) -> Result<(), Error> {
        self.blocks += 1;
        Ok(())
    }

    fn finished(&mut self, mut finished: Vec<Finished>, _: i64) -> Result<Vec<Finished>, Error> {
        finished.retain(|_| {
            self.finished += 1;
            self.finished.is_multiple_of(2)
        });
        Ok(finished)
    }
}

#[test]
fn an_observer_sees_every_packet_and_chooses_what_is_kept() {
    let captures = Captures::open([capture(MANY)], threads(4));
    let (found, counter) = captures.read_with(Counter::default()).unwrap();
    let summary = found.summary();
    assert_eq!(counter.packets, summary.packets);
    assert_eq!(counter.segments, summary.tcp);
    assert_eq!(counter.finished, summary.connections);
    assert_eq!(found.len() as u64, counter.finished / 2);
    assert!(counter.blocks > 0);
}
