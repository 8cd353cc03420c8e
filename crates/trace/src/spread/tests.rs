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

/// Frames with their times in ms.
fn frames(steps: &[Step]) -> Vec<(i64, Vec<u8>)> {
    let (mut time, mut sequence) = (1_700_000_000_000i64, [[1u32; 2]; 9]);
    let frames = steps.iter().map(|step| {
        time += step.4;
        (time, frame(step, &mut sequence))
    });
    frames.collect()
}

/// A pcap file, and the offset of each record.
fn file(steps: &[Step]) -> (Vec<u8>, Vec<usize>) {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    file.extend([0; 8]);
    file.extend([0xff, 0xff, 0, 0, 1, 0, 0, 0]);
    let mut offsets = Vec::new();
    for (time, frame) in frames(steps) {
        offsets.push(file.len());
        let (seconds, micros) = ((time / 1000) as u32, (time % 1000) as u32 * 1000);
        for number in [seconds, micros, frame.len() as u32, frame.len() as u32] {
            file.extend(number.to_le_bytes());
        }
        file.extend(frame);
    }
    (file, offsets)
}

/// A pcapng file of sections, whose interfaces are described while packets arrive; and the offset of each block.
fn blocks(steps: &[Step], section: usize) -> (Vec<u8>, Vec<usize>) {
    let (mut file, mut offsets) = (Vec::new(), Vec::new());
    for (at, (time, frame)) in frames(steps).into_iter().enumerate() {
        let nth = at % section;
        let is_big = at / section % 2 == 1;
        let number = |value: u32| match is_big {
            true => value.to_be_bytes(),
            false => value.to_le_bytes(),
        };
        let mut block = |kind: [u8; 4], body: &[u8]| {
            offsets.push(file.len());
            let length = number(12 + body.len() as u32);
            file.extend([&kind[..], &length, body, &length].concat());
        };
        if nth == 0 {
            let version = if is_big { [0, 1, 0, 0] } else { [1, 0, 0, 0] };
            let body = [&number(0x1a2b_3c4d)[..], &version, &[0xff; 8]].concat();
            block([0x0a, 0x0d, 0x0d, 0x0a], &body);
        }
        // The first interface counts in us, the second one in ms.
        if nth == 0 || nth == 3 {
            let short = |value: u16| match is_big {
                true => value.to_be_bytes(),
                false => value.to_le_bytes(),
            };
            let option = [&short(9)[..], &short(1), &[3, 0, 0, 0]].concat();
            let option = if nth == 3 { &option[..] } else { &[] };
            let body = [&short(1)[..], &[0, 0], &number(0), option].concat();
            block(number(1), &body);
        }
        let interface = u32::from(nth > 3 && nth % 2 == 1);
        let ticks = time as u64 * if interface == 0 { 1000 } else { 1 };
        let length = number(frame.len() as u32);
        let mut body = [
            number(interface),
            number((ticks >> 32) as u32),
            number(ticks as u32),
        ]
        .concat();
        body.extend([&length[..], &length, &frame].concat());
        body.resize(body.len().next_multiple_of(4), 0);
        block(number(6), &body);
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

/// The parts by ranges that begin at these offsets. The first one is 0.
fn spread(file: &[u8], starts_at: &[usize]) -> Vec<Vec<u8>> {
    let guess = header(file).unwrap_or_default();
    let ends = starts_at.iter().skip(1).copied().chain([file.len()]);
    let ranges: Vec<(usize, usize)> = starts_at.iter().copied().zip(ends).collect();
    let one = |(from, to): (usize, usize), header: &[u8], start| {
        let header = if from == 0 { &[] } else { header };
        let until = (header.len() + to - from) as u64;
        let stream = [header, &file[from..]].concat();
        map("x", &stream[..], until, plan(), PARTS, start).unwrap()
    };
    let mut mapped: Vec<Mapped> = ranges
        .iter()
        .map(|&range| one(range, &guess, None))
        .collect();
    let mut headers = vec![guess.clone()];
    for at in 1..ranges.len() {
        let needed = mapped[at - 1].header.clone();
        headers.push(needed.unwrap_or_else(|| guess.clone()));
        if headers[at] != guess {
            mapped[at] = one(ranges[at], &headers[at], None);
        }
    }
    let starts = loop {
        let sides: Vec<Side> = mapped.iter().map(|mapped| mapped.side.clone()).collect();
        match starts(&sides) {
            Ok(starts) => break starts,
            Err((at, start)) => mapped[at] = one(ranges[at], &headers[at], Some(start)),
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

fn compare(
    (file, offsets): &(Vec<u8>, Vec<usize>),
    cuts: &[prop::sample::Index],
) -> Result<(), TestCaseError> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| *cut.get(offsets)).collect();
    at.push(0);
    at.sort_unstable();
    at.dedup();
    prop_assert_eq!(merged(&spread(file, &at)), merged(&whole(file)));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn ranges_give_what_parts_give(steps in calm(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        compare(&file(&steps), &cuts)?;
    }

    #[test]
    fn times_that_leap_and_run_backwards_change_nothing(steps in steps(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        compare(&file(&steps), &cuts)?;
    }

    #[test]
    fn interfaces_and_sections_of_pcapng_change_nothing(steps in steps(), section in 1usize..40, cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        compare(&blocks(&steps, section), &cuts)?;
    }

    #[test]
    fn a_block_of_pcapng_is_found_wherever_the_search_begins(steps in calm(), at in any::<prop::sample::Index>()) {
        let (file, offsets) = blocks(&steps, 1000);
        let from = at.index(file.len());
        let expected = offsets.iter().find(|&&offset| offset >= from);
        let found = next_record(&header(&file).unwrap(), &file[from..]);
        prop_assert_eq!(found, expected.map(|expected| expected - from));
    }

    #[test]
    fn the_first_record_is_found_wherever_the_search_begins(steps in calm(), at in any::<prop::sample::Index>()) {
        let (file, offsets) = file(&steps);
        let from = 24 + at.index(file.len() - 24);
        let expected = offsets.iter().find(|&&offset| offset >= from);
        let found = next_record(&header(&file).unwrap(), &file[from..]);
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
fn compressed_files_and_other_formats_are_not_divided() {
    let steps = [(0, true, 0x10, 200, 0); 3];
    assert_eq!(header(&file(&steps).0).unwrap(), file(&[]).0);
    assert_eq!(header(&blocks(&steps, 9).0).unwrap().len(), 28 + 44);
    assert_eq!(header(b"snoop\0\0\0\0\0\0\x02\0\0\0\x04"), None);
    assert_eq!(header(b"\x1f\x8b"), None);
}

#[test]
fn packets_without_time_stamps_are_seen() {
    let (mut file, offsets) = blocks(&[(0, true, 0x10, 0, 0); 3], 9);
    assert!(
        !map("x", &file[..], u64::MAX, plan(), PARTS, None)
            .unwrap()
            .is_untimed
    );
    // The type of a Simple Packet Block.
    file[offsets[3]] = 3;
    assert!(
        map("x", &file[..], u64::MAX, plan(), PARTS, None)
            .unwrap()
            .is_untimed
    );
}
