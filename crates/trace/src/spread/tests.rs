use super::*;
use crate::part::Merge;
use crate::part::temporary::TemporaryDirectory;
use crate::{Captures, Options};
use proptest::prelude::*;

const PARTS: u32 = 3;

/// A packet: its flow, direction, flags, payload, and the time since the packet before, in ms.
type Step = (u8, bool, u8, u8, i64);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let elapsed = prop_oneof![
        8 => 0..200i64,
        1 => -3000..0i64,
        1 => 700_000..900_000i64,
    ];
    let flags = prop_oneof![
        Just(0x10u8),
        Just(0x18),
        Just(0x02),
        Just(0x12),
        Just(0x11),
        Just(4)
    ];
    let step = (0..9u8, any::<bool>(), flags, any::<u8>(), elapsed);
    prop::collection::vec(step, 1..120)
}

fn calm() -> impl Strategy<Value = Vec<Step>> {
    steps().prop_map(|mut steps| {
        steps
            .iter_mut()
            .for_each(|step| step.4 = step.4.rem_euclid(300));
        steps
    })
}

/// A frame of Ethernet, some of them in a VLAN, and some of them ARP.
fn frame(&(flow, up, flags, payload, _): &Step, sequence: &mut [[u32; 2]; 9]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    if flow == 8 {
        frame.extend([0x08, 0x06, 0, 1]);
        return frame;
    }
    if flow == 7 {
        frame.extend([0x81, 0, 0, 5]);
    }
    frame.extend([0x08, 0x00]);
    let length = 40 + u16::from(payload);
    let (a, b) = ([192, 0, 2, flow], [198, 51, 100, 1]);
    let (source, destination) = if up { (a, b) } else { (b, a) };
    frame.extend([0x45, 0]);
    frame.extend(length.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 6, 0, 0]);
    frame.extend(source);
    frame.extend(destination);
    let ports = if up { [1000, 80u16] } else { [80, 1000] };
    frame.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    let ends = &mut sequence[usize::from(flow)];
    frame.extend(ends[usize::from(up)].to_be_bytes());
    frame.extend(ends[usize::from(!up)].to_be_bytes());
    ends[usize::from(up)] += u32::from(payload);
    frame.extend([0x50, flags, 0x10, 0, 0, 0, 0, 0]);
    frame.extend((0..payload).map(|at| at ^ flow));
    frame
}

/// A pcap file, and the offset of each record.
fn file(steps: &[Step]) -> (Vec<u8>, Vec<usize>) {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    file.extend([0; 8]);
    file.extend([0xff, 0xff, 0, 0, 1, 0, 0, 0]);
    let (mut time, mut sequence) = (1_700_000_000_000i64, [[1u32; 2]; 9]);
    let mut offsets = Vec::new();
    for step in steps {
        time += step.4;
        offsets.push(file.len());
        let frame = frame(step, &mut sequence);
        let (seconds, micros) = ((time / 1000) as u32, (time % 1000) as u32 * 1000);
        for number in [seconds, micros, frame.len() as u32, frame.len() as u32] {
            file.extend(number.to_le_bytes());
        }
        file.extend(frame);
    }
    (file, offsets)
}

fn options(part: u32) -> Options {
    Options {
        part: Some((part, PARTS)),
        threads: Some(1),
        why: true,
        ..Options::default()
    }
}

fn plan() -> Plan {
    let options = Options {
        part: None,
        seed: Some(0),
        ..options(0)
    };
    Captures::from_reader("plan", io::empty(), options).plan()
}

/// The parts by `--part`.
fn whole(file: &[u8]) -> Vec<Vec<u8>> {
    let part = |part| {
        let captures = Captures::from_reader("x", io::Cursor::new(file.to_vec()), options(part));
        let found = captures.read().unwrap();
        let settings = Vec::new();
        let summary = found.summary().clone();
        let header = Header::new(part, PARTS, settings, vec!["x".into()], summary);
        let mut writer = Writer::new(Vec::new(), &header).unwrap();
        let mut room = Vec::new();
        for at in 0..found.len() {
            let octets = found.frozen(at, &mut room).unwrap();
            writer.connection(found.first_packet(at), octets).unwrap();
        }
        writer.finish().unwrap()
    };
    (0..PARTS).map(part).collect()
}

/// The parts by ranges that begin at these records. `found` tells the start of a range from where it was cut.
fn spread(file: &[u8], starts_at: &[usize]) -> Vec<Vec<u8>> {
    let stream = |at: usize| [&file[..HEADER_LEN], &file[at..]].concat();
    let ends = starts_at.iter().skip(1).copied().chain([file.len()]);
    let ranges: Vec<(usize, usize)> = starts_at.iter().copied().zip(ends).collect();
    let one = |(from, to): (usize, usize), start| {
        let until = (HEADER_LEN + to - from) as u64;
        map("x", &stream(from)[..], until, plan(), PARTS, start).unwrap()
    };
    let mut mapped: Vec<Mapped> = ranges.iter().map(|&range| one(range, None)).collect();
    let starts = loop {
        let sides: Vec<Side> = mapped.iter().map(|mapped| mapped.side.clone()).collect();
        match starts(&sides) {
            Ok(starts) => break starts,
            Err((at, start)) => mapped[at] = one(ranges[at], Some(start)),
        }
    };
    let sides: Vec<Side> = mapped.iter().map(|mapped| mapped.side.clone()).collect();
    let part = |part: u32| {
        let mut reducer = Reducer::new(&plan());
        for (mapped, start) in mapped.iter().zip(&starts) {
            reducer.lot(0, start, &mapped.lots[part as usize]).unwrap();
        }
        let out = reducer.finish((part, PARTS), vec!["x".into()], &sides, Vec::new());
        out.unwrap()
    };
    (0..PARTS).map(part).collect()
}

/// Everything in the parts: the summary, and each connection as text.
fn merged(parts: &[Vec<u8>]) -> (Summary, Vec<String>) {
    let directory = TemporaryDirectory::new();
    let paths: Vec<_> = (parts.iter().enumerate())
        .map(|(at, part)| directory.file(&at.to_string(), part))
        .collect();
    let mut merge = Merge::open(&paths).unwrap();
    let summary = merge.summary().clone();
    let mut connections = Vec::new();
    while let Some(item) = merge.next().unwrap() {
        if let crate::part::Item::Connection(connection, _) = item {
            connections.push(format!("{connection:?}"));
        }
    }
    (summary, connections)
}

fn compare(steps: &[Step], cuts: &[prop::sample::Index]) -> Result<(), TestCaseError> {
    let (file, offsets) = file(steps);
    let mut at: Vec<usize> = cuts.iter().map(|cut| *cut.get(&offsets)).collect();
    at.push(HEADER_LEN);
    at.sort_unstable();
    at.dedup();
    prop_assert_eq!(merged(&spread(&file, &at)), merged(&whole(&file)));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn ranges_give_what_parts_give(steps in calm(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        compare(&steps, &cuts)?;
    }

    #[test]
    fn times_that_leap_and_run_backwards_change_nothing(steps in steps(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        compare(&steps, &cuts)?;
    }

    #[test]
    fn the_first_record_is_found_wherever_the_search_begins(steps in calm(), at in any::<prop::sample::Index>()) {
        let (file, offsets) = file(&steps);
        let from = HEADER_LEN + at.index(file.len() - HEADER_LEN);
        let expected = offsets.iter().find(|&&offset| offset >= from);
        let found = next_record(&file[..HEADER_LEN], &file[from..]);
        prop_assert_eq!(found, expected.map(|expected| expected - from));
    }

    #[test]
    fn any_bytes_are_damaged_or_segments(octets in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut reducer = Reducer::new(&plan());
        let start = Start { before: 0, now: 0, last: 0, clock: (None, None) };
        let _ = reducer.lot(0, &start, &octets);
        let _ = codec::read_tally(&octets);
    }
}

#[test]
fn fragments_of_tcp_are_seen() {
    let (mut file, offsets) = file(&[(0, true, 0x10, 200, 0), (0, true, 0x10, 8, 0)]);
    // More fragments follow the first packet.
    file[offsets[0] + 16 + 14 + 6] = 0x20;
    let mapped = map("x", &file[..], u64::MAX, plan(), PARTS, None).unwrap();
    assert!(mapped.side.is_fragmented);
}

#[test]
fn other_files_than_pcap_are_not_divided() {
    assert!(is_divisible(&file(&[]).0));
    assert!(!is_divisible(&[0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 0]));
    assert!(!is_divisible(b"\x1f\x8b"));
}
