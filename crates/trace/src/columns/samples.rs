//! Small captures for tests: any packets between a few ends, at any times.

use proptest::prelude::*;
use trace::columns::Summary;
use trace::part::is_mine;
use trace::{Analyzer, Config, Connection, FlowKey, Nobody, Segment, SegmentOptions};

/// A packet: its sender and contents, and the time since the packet before.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    flow: u8,
    from_low: bool,
    flags: u16,
    forward: i16,
    payload: u16,
    acknowledged: i16,
    window: u16,
    elapsed_ns: i64,
}

/// Milliseconds, hours, and backwards.
fn elapsed_ns() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => 0..200_000_000i64,
        1 => 600_000_000_000..15_000_000_000_000i64,
        1 => -3_000_000_000..0i64,
    ]
}

const SYN: u16 = 2;
const ACK: u16 = 16;

fn flags() -> impl Strategy<Value = u16> {
    prop_oneof![
        8 => Just(ACK),
        2 => Just(ACK | 8),
        2 => Just(SYN),
        1 => Just(SYN | ACK),
        1 => Just(ACK | 1),
        1 => Just(4u16),
        1 => 0..256u16,
    ]
}

/// Up to `most` packets.
pub(crate) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = (
        (0..12u8, any::<bool>(), flags(), elapsed_ns()),
        (-40..40i16, 0..3u16, -40..60i16, 0..4u16),
    );
    let step = step.prop_map(|((flow, from_low, flags, elapsed_ns), numbers)| {
        let (forward, payload, acknowledged, window) = numbers;
        Step {
            flow,
            from_low,
            flags,
            forward,
            payload: payload * 10,
            acknowledged,
            window: window * 1000,
            elapsed_ns,
        }
    });
    prop::collection::vec(step, 1..most)
}

/// The packets of a capture.
pub(crate) fn segments(steps: &[Step]) -> Vec<Segment> {
    let (mut time, mut clock) = (1_700_000_000_000_000_000i64, i64::MIN);
    let mut next = [[0xffff_ff00u32; 2]; 12];
    let segments = steps.iter().zip(1..).map(|(step, number)| {
        time += step.elapsed_ns;
        clock = clock.max(time);
        let (key, from_low) = key(step);
        let ends = &mut next[usize::from(step.flow)];
        let sequence = ends[usize::from(from_low)].wrapping_add_signed(step.forward.into());
        ends[usize::from(from_low)] = sequence.wrapping_add(step.payload.into());
        let acknowledged = ends[usize::from(!from_low)];
        let mut options = SegmentOptions::default();
        if step.flags & SYN != 0 {
            options.mss = Some(1460);
            options.window_scale = (step.flow % 2 == 0).then_some(7);
            options.sack_permitted = true;
        }
        Segment {
            number,
            time,
            clock,
            key,
            from_low,
            version: 4,
            traffic_class: step.flow % 4,
            hop_limit: 64,
            id: number as u16,
            flags: step.flags,
            sequence,
            acknowledgment: acknowledged.wrapping_add_signed(step.acknowledged.into()),
            window: step.window,
            urgent: 0,
            checksum: number as u16,
            payload: step.payload.into(),
            captured: step.payload.into(),
            lead: 0,
            options,
        }
    });
    segments.collect()
}

fn key(step: &Step) -> (FlowKey, bool) {
    let address = |last: u8| {
        let mut address = [0; 16];
        address[10..].copy_from_slice(&[255, 255, 192, 0, 2, last]);
        address
    };
    let (low, high) = (address(step.flow / 3), address(100));
    let port = 1000 + u16::from(step.flow);
    if step.from_low {
        FlowKey::new(&low, port, &high, 80, 0)
    } else {
        FlowKey::new(&high, 80, &low, port, 0)
    }
}

/// What became of a capture, or of a part of it.
pub(crate) struct Run {
    /// Number of the first packet of each connection and its octets, in order.
    pub(crate) finished: Vec<(u64, Box<[u8]>)>,
    pub(crate) summary: Summary,
}

/// Analyses a capture in files that begin at the packets `splits`, or part K of N of it.
pub(crate) fn run(segments: &[Segment], splits: &[usize], part: (u32, u32)) -> Run {
    let mut analyzer = Analyzer::new(Config {
        hot: 3,
        ..Config::default()
    });
    let mut summary = Summary {
        first_time: segments.first().map(|segment| segment.time),
        last_time: segments.last().map(|segment| segment.time),
        packets: segments.len() as u64,
        tcp_seen: segments.len() as u64,
        seen: vec![("frames".into(), segments.len() as u64)],
        ..Summary::default()
    };
    for (at, segment) in segments.iter().enumerate() {
        let file = splits.iter().filter(|&&split| split <= at).count();
        analyzer.set_file(file as u32);
        if is_mine(segment.key.hash(0), part.0, part.1) {
            summary.tcp += 1;
            analyzer.packet(segment, &[], &mut Nobody);
        }
    }
    analyzer.finish();
    let finished = analyzer.take_finished();
    let mut finished: Vec<(u64, Box<[u8]>)> = finished
        .into_iter()
        .map(|finished| (finished.first_packet, finished.octets))
        .collect();
    finished.sort();
    summary.connections = finished.len() as u64;
    Run { finished, summary }
}

/// The connections of a run, numbered.
pub(crate) fn connections(run: &Run) -> Vec<Connection> {
    let thawed = run.finished.iter().zip(1..).map(|((_, octets), number)| {
        let mut connection = Connection::default();
        connection.thaw(octets).unwrap();
        connection.number = number;
        connection
    });
    thawed.collect()
}
