//! Packets of two points of a path through the comparison: few connections, close to each other and to the wrap of sequence
//! numbers, with clocks that jump to any time.

use paths::{Align, Config, DEPTH, Findings, FlowKey, Lost, Matcher, Pair, Point, Sight, Sink};
use wire::link::LinkType;
use wire::packet::{Packet, decode};

/// Bytes per packet of the input.
const STEP: usize = 12;

/// Counts what the comparison reports.
#[derive(Default)]
struct Count {
    pairs: u64,
    lost: u64,
}

impl Sink for Count {
    fn pair(&mut self, _: &Pair) {
        self.pairs += 1;
    }
    fn lost(&mut self, _: &Lost) {
        self.lost += 1;
    }
}

/// Takes packets, twelve bytes each; then the whole input as one IP packet.
///
/// # Panics
/// If more packets are matched or lost than there are, or the reported packets are not those that were counted.
pub fn target(data: &[u8]) {
    let mut packet = Packet::new();
    if decode(LinkType::RAW, data, data.len() as u32, &mut packet).is_ok() {
        let _ = Sight::new(1, 0, &packet, DEPTH);
    }
    for waiting_max in [3, Config::WAITING_MAX] {
        compare(data, waiting_max);
    }
}

fn compare(data: &[u8], waiting_max: u32) {
    let mut align = Align::new(1);
    let mut sights = Vec::new();
    let (mut counts, mut time) = ([0u64; 2], 0i64);
    for step in data.chunks_exact(STEP) {
        let point = if step[0] & 1 == 0 { Point::A } else { Point::B };
        counts[point as usize] += 1;
        time = match step[1] {
            255 => i64::MAX,
            254 => i64::MIN,
            253 => time.saturating_add(1 << 55),
            more => time.saturating_add(i64::from(more) << (step[0] >> 3)),
        };
        let sight = sight(step, counts[point as usize], time);
        align.see(point, &sight);
        sights.push((point, sight));
    }
    let aligned = align.result();
    let mut matcher = Matcher::new(Config {
        seed: 1,
        wait: 1_000_000,
        waiting_max,
        one_clock: data.len().is_multiple_of(2),
        one_file: data.len().is_multiple_of(3),
        differences: aligned.map_or((0, 0), |aligned| aligned.differences),
        centre: aligned.and_then(|aligned| aligned.centre),
        first: [Point::A, Point::B].map(|point| align.first(point).unwrap_or(0)),
    });
    let mut count = Count::default();
    for (point, sight) in &sights {
        let _ = matcher.next(sight.time, 0);
        matcher.see(*point, sight, &mut count);
    }
    matcher.end(Point::A, &mut count);
    check(&matcher.finish(&mut count), &count, counts);
}

/// A packet of one of four connections: in half of them, TCP.
fn sight(step: &[u8], number: u64, time: i64) -> Sight {
    let is_tcp = step[2] & 2 == 0;
    let key = FlowKey {
        source: [step[2] & 4; 16],
        destination: [9; 16],
        source_port: u16::from(step[2] & 1),
        destination_port: 2,
        protocol: if is_tcp { 6 } else { 17 },
    };
    Sight {
        number,
        time,
        key: if step[2] & 8 == 0 {
            key
        } else {
            key.reversed()
        },
        hop_limit: 64 - (step[2] >> 6),
        id: u16::from(step[3] & 7),
        length: u32::from(step[4]) * 7,
        body: u64::from(step[5]),
        sequence: 0xffff_ff80u32.wrapping_add(u32::from(step[6]) * 7),
        acknowledgment: u32::from(step[7]),
        flags: u16::from(step[8]),
        stamps: (step[9] & 1 == 1).then(|| (u32::from(step[9]), u32::from(step[10]))),
        sack: (step[11] & 1 == 1).then(|| (u32::from(step[11]), u32::from(step[10]))),
        ..Sight::default()
    }
}

fn check(found: &Findings, count: &Count, counts: [u64; 2]) {
    for (point, fed) in found.points.iter().zip(counts) {
        assert_eq!(point.packets, fed);
    }
    let pairs: u64 = found.ways.iter().map(|way| way.pairs).sum();
    let parts: u64 = found.ways.iter().map(|way| way.parts).sum();
    let lost: u64 = found.ways.iter().map(|way| way.lost.packets).sum();
    assert_eq!((pairs, lost), (count.pairs, count.lost));
    assert!(pairs - parts <= counts[0].min(counts[1]));
    assert!(lost <= counts[0] + counts[1]);
    let samples: u64 = found.clock.delays.iter().map(|delay| delay.count).sum();
    assert!(samples <= pairs);
}
