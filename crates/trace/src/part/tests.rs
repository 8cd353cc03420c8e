use super::temporary::TemporaryDirectory;
use super::*;
use crate::FlowKey;
use crate::columns::Summary;
use crate::columns::samples::{Run, run, segments, steps};
use crate::udp::traffic::Traffic;
use crate::udp::{Datagram, Flow, Flows, Sent};
use core::net::IpAddr;
use proptest::prelude::*;
use std::path::Path;

fn settings() -> Vec<(String, String)> {
    vec![("idle".into(), "7200 s".into())]
}

fn header(part: (u32, u32), summary: Summary, files: usize) -> Header {
    let files = (0..files).map(|file| format!("capture.{file}")).collect();
    Header::new(part.0, part.1, settings(), files, summary)
}

fn part_of(run: &Run, part: (u32, u32), files: usize) -> Vec<u8> {
    let header = header(part, run.summary.clone(), files);
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    for (first_packet, octets) in &run.finished {
        writer.connection(*first_packet, octets).unwrap();
    }
    writer.finish().unwrap()
}

/// A run in two parts, with some 30 connections.
fn two_parts() -> [Vec<u8>; 2] {
    let segments = fixed_segments();
    [0, 1].map(|part| part_of(&run(&segments, &[], (part, 2)), (part, 2), 1))
}

/// The packets that a fixed seed gives.
fn fixed_segments() -> Vec<crate::Segment> {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let steps = prop::collection::vec(steps(40), 4).new_tree(&mut runner);
    segments(&steps.unwrap().current().concat())
}

/// Merges to the end.
fn merge_all(paths: &[PathBuf]) -> Result<u64, Fault> {
    let mut merge = Merge::open(paths)?;
    let mut items = 0;
    while merge.next()?.is_some() {
        items += 1;
    }
    Ok(items)
}

fn complaint(paths: &[PathBuf]) -> String {
    let fault = merge_all(paths).expect_err("these must not be merged");
    let directory = paths[0]
        .parent()
        .unwrap_or(Path::new(""))
        .display()
        .to_string();
    fault.to_string().replace(&format!("{directory}/"), "")
}

#[test]
fn a_part_cut_anywhere_is_refused_with_where_it_ends() {
    let directory = TemporaryDirectory::new();
    let [first, second] = two_parts();
    let second = directory.file("b", &second);
    for length in 0..first.len() {
        let path = directory.file("a", &first[..length]);
        let said = complaint(&[path, second.clone()]);
        assert_eq!(said, format!("a: cut off at octet {length}"));
    }
}

#[test]
fn a_part_with_a_wrong_octet_is_refused() {
    let directory = TemporaryDirectory::new();
    let [first, second] = two_parts();
    let second = directory.file("b", &second);
    for at in 0..first.len() {
        let mut octets = first.clone();
        octets[at] ^= 1 << (at % 8);
        let path = directory.file("a", &octets);
        assert!(merge_all(&[path, second.clone()]).is_err(), "octet {at}");
    }
    let mut longer = first.clone();
    longer.push(0);
    let path = directory.file("a", &longer);
    let said = complaint(&[path, second]);
    assert_eq!(
        said,
        format!("a: something after the end at octet {}", first.len())
    );
}

#[test]
fn missing_and_doubled_parts_are_named() {
    let directory = TemporaryDirectory::new();
    let [first, second] = two_parts();
    let (a, b) = (directory.file("a", &first), directory.file("b", &second));
    let said = complaint(std::slice::from_ref(&b));
    assert_eq!(said, "1 of 2 parts are given; missing: 0/2");
    let again = directory.file("c", &first);
    let said = complaint(&[a.clone(), b.clone(), again]);
    assert!(
        said.starts_with("c: part 0 of 2, as ") && said.ends_with("a is"),
        "{said}"
    );
    let other = directory.file("d", b"\xd4\xc3\xb2\xa1 a capture and no part");
    assert_eq!(
        complaint(&[a.clone(), other]),
        "d: not a part of a run at octet 0"
    );
    assert!(merge_all(&[b, a]).unwrap() > 1);
}

#[test]
fn parts_of_other_captures_and_settings_are_refused() {
    let directory = TemporaryDirectory::new();
    let segments = fixed_segments();
    let found = run(&segments, &[], (1, 2));
    let [first, _] = two_parts();
    let a = directory.file("a", &first);
    let refused = |change: &dyn Fn(&mut Header)| {
        let mut header = header((1, 2), found.summary.clone(), 1);
        change(&mut header);
        let mut writer = Writer::new(Vec::new(), &header).unwrap();
        for (first_packet, octets) in &found.finished {
            writer.connection(*first_packet, octets).unwrap();
        }
        let path = directory.file("b", &writer.finish().unwrap());
        complaint(&[a.clone(), path])
    };
    let packets = segments.len();
    assert_eq!(
        refused(&|header| header.summary.packets += 1),
        format!(
            "b: of another capture than the first part: packets {}, there {packets}",
            packets + 1
        )
    );
    assert_eq!(
        refused(&|header| header.settings[0].1 = "60 s".into()),
        "b: made with idle 60 s, the first part with 7200 s"
    );
    assert_eq!(
        refused(&|header| header.parts = 3),
        "b: one of 3 parts, but the first file is one of 2"
    );
    assert_eq!(
        refused(&|header| header.files.push("more".into())),
        "b: of a capture in 2 files, the first part's is in 1"
    );
    assert_eq!(
        refused(&|header| header.part = 2),
        "b: claims to be part 2 of 2"
    );
    assert_eq!(
        refused(&|header| header.seed = 5),
        "b: its flows were chosen with another seed"
    );
    let said = refused(&|header| header.summary.tcp -= 1);
    assert!(
        said.contains("TCP packets, but all parts together"),
        "{said}"
    );
    let said = refused(&|header| header.summary.connections += 1);
    assert!(
        said.contains("fewer or more records than it tells of"),
        "{said}"
    );
}

fn flow(number: u64, first_packet: u64, last: u8) -> Flow {
    let address = |last: u8| {
        let mut address = [0x20; 16];
        address[15] = last;
        address
    };
    let (key, a_is_low) = FlowKey::new(&address(9), 5000, &address(last), 53, 77);
    Flow {
        number,
        first_packet,
        file: 0,
        key,
        a_is_low,
        first_time: -5,
        last_time: i64::MAX,
        a: Sent {
            packets: 1,
            bytes: 2,
        },
        b: Sent {
            packets: u64::MAX,
            bytes: 3,
        },
        quic: None,
        traffic: explained(last),
    }
}

/// What `why` keeps of packets of WireGuard; of every second flow only.
fn explained(last: u8) -> Option<Box<Traffic>> {
    let mut flows = Flows::new(1, 1);
    flows.explain();
    let (key, from_low) = FlowKey::new(&[1; 16], 1, &[2; 16], 2, 0);
    for number in 0..u64::from(last) + 10 {
        let mut payload = vec![4, 0, 0, 0, 1, 2, 3, last];
        payload.extend((number * number % 9 + number).to_le_bytes());
        payload.resize(32, 0);
        let datagram = Datagram {
            number: number + 1,
            time: number as i64 * 7,
            key,
            from_low,
            length: 40,
        };
        flows.packet_with(&datagram, &payload, 0);
    }
    let flow = flows.flows().first()?.clone();
    flow.traffic.filter(|_| last.is_multiple_of(2))
}

#[test]
fn udp_flows_come_back_in_order_with_numbers_of_their_own() {
    let directory = TemporaryDirectory::new();
    let flows: Vec<Flow> = (1..20u8)
        .map(|at| flow(at.into(), u64::from(at) * 3, at))
        .collect();
    assert!(flows.iter().any(|flow| flow.a_is_low) && flows.iter().any(|flow| !flow.a_is_low));
    let paths = [0u32, 1].map(|part| {
        let mine = flows
            .iter()
            .filter(|flow| is_mine(flow.key.hash(0), part, 2));
        let mine: Vec<&Flow> = mine.collect();
        let summary = Summary {
            flows: mine.len() as u64,
            ..Summary::default()
        };
        let mut writer = Writer::new(Vec::new(), &header((part, 2), summary, 1)).unwrap();
        for flow in mine {
            writer.flow(flow).unwrap();
        }
        directory.file(&format!("{part}"), &writer.finish().unwrap())
    });
    let mut merge = Merge::open(&paths).unwrap();
    assert_eq!(merge.summary().flows, 19);
    for expected in &flows {
        match merge.next().unwrap() {
            Some(Item::Flow(flow, "capture.0")) => assert_eq!(flow, expected),
            _ => panic!("flow {} is not next", expected.number),
        }
    }
    assert!(merge.next().unwrap().is_none());
}

proptest! {
    /// Hostile parts have right checksums.
    #[test]
    fn no_octets_with_right_checksums_bring_it_down(
        kinds in prop::collection::vec((0..2u8, 0..4u64, prop::collection::vec(any::<u8>(), 0..200)), 0..6),
        cut in any::<bool>(),
    ) {
        let directory = TemporaryDirectory::new();
        let head = serde_json::to_vec(&header((0, 1), Summary::default(), 1)).unwrap();
        let mut frames = frame::Writer::new(Vec::new()).unwrap();
        frames.frame(Kind::Header, &head).unwrap();
        for (kind, step, body) in kinds {
            let mut record = vec![1 + kind];
            record.extend_from_slice(&step.to_le_bytes());
            record.extend_from_slice(&(body.len() as u32).to_le_bytes());
            record.extend_from_slice(&body);
            frames.frame(Kind::Records, if cut { &body } else { &record }).unwrap();
        }
        frames.frame(Kind::End, &0u64.to_le_bytes()).unwrap();
        let path = directory.file("a", &frames.finish().unwrap());
        let _ = merge_all(&[path]);
    }
}

#[test]
fn a_flow_of_no_known_file_or_another_part_is_refused() {
    let directory = TemporaryDirectory::new();
    let flow = flow(1, 3, 4);
    assert!(matches!(flow.a_end().0, IpAddr::V6(_)));
    let mine = u32::from(!is_mine(flow.key.hash(0), 0, 2));
    for (part, files) in [(mine, 0), (1 - mine, 1)] {
        let paths = [part, 1 - part].map(|at| {
            let flows = u64::from(at == part);
            let summary = Summary {
                flows,
                ..Summary::default()
            };
            let mut writer = Writer::new(Vec::new(), &header((at, 2), summary, files)).unwrap();
            if at == part {
                writer.flow(&flow).unwrap();
            }
            directory.file(&format!("{at}"), &writer.finish().unwrap())
        });
        assert!(complaint(&paths).contains("another part's UDP flow at octet"));
    }
}
