//! Each line is an object, with exact values.

use super::*;
use crate::columns::PLAIN;
use crate::columns::samples::{connections, run, segments, steps};
use proptest::prelude::*;
use serde_json::{Map, Value as Json};

fn lines(connections: &[Connection], summary: &Summary) -> Vec<Map<String, Json>> {
    let mut writer = Writer::new(Vec::new(), summary.end(), &PLAIN);
    for connection in connections {
        writer.connection(connection).unwrap();
    }
    let out = String::from_utf8(writer.finish(summary).unwrap()).unwrap();
    let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn each_line_is_an_object_with_every_column(steps in steps(60)) {
        let found = run(&segments(&steps), &[], (0, 1));
        let connections = connections(&found);
        let lines = lines(&connections, &found.summary);
        prop_assert_eq!(lines.len(), connections.len() + 1);
        for (line, number) in lines[..connections.len()].iter().zip(1u64..) {
            prop_assert_eq!(&line["kind"], "connection");
            prop_assert_eq!(&line["connection"], number);
            prop_assert_eq!(line.len(), columns::ALL.len() + 2);
            for placed in columns::ALL.iter() {
                let null = line[&placed.name].is_null();
                prop_assert!(!null || placed.column.get.may_be_absent(), "{}", placed.name);
            }
        }
        let last = &lines[connections.len()];
        prop_assert_eq!(&last["kind"], "summary");
        prop_assert_eq!(&last["connections"], connections.len() as u64);
        prop_assert_eq!(&last["seen"]["frames"], steps.len() as u64);
    }
}

#[test]
fn numbers_are_exact_and_what_is_absent_is_null() {
    let mut connection = Connection {
        first_time: 1_700_000_000_123_456_789,
        last_time: i64::MAX,
        packets: u64::MAX,
        ..Connection::default()
    };
    connection.a.rtt.add(10);
    connection.a.rtt.add(10);
    connection.a.rtt.add(21);
    let lines = lines(&[connection], &Summary::default());
    let line = &lines[0];
    assert_eq!(line["first_time"], 1_700_000_000_123_456_789i64);
    assert_eq!(line["packets"], u64::MAX);
    assert_eq!(line["a2b_rtt_avg_ns"], 41.0 / 3.0);
    assert_eq!(line["b2a_rtt_avg_ns"], Json::Null);
    assert_eq!(line["complete"], false);
    assert_eq!(line["a_address"], "::");
    assert_eq!(lines[1]["first_time"], Json::Null);
    assert_eq!(lines[1]["udp_packets"], Json::Null);
}

#[test]
fn text_is_escaped() {
    let mut out = Vec::new();
    text(&mut out, "a\"b\\c\n\u{1}é\u{10ffff}");
    let read: String = serde_json::from_slice(&out).unwrap();
    assert_eq!(read, "a\"b\\c\n\u{1}é\u{10ffff}");
}
