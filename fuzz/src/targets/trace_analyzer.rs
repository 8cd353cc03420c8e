//! Packets of a few connections through the analyser: close to each other, close to the wrap of sequence
//! numbers, with any flags and options, and with times that run backwards.

use trace::{Analyzer, Config, Connection, Finished, FlowKey, Nobody, Segment, SegmentOptions};
use wire::tcp::Options;

use super::trace_checks::{check, thawed};

/// Octets per packet of the input.
const STEP: usize = 12;

/// Ports, so that packets of several connections interleave.
const PORTS: u16 = 3;

/// The most memory that a packet may add in octets, unless many segments are in flight.
const HELD_MAX: u64 = 8192;

/// Takes packets, twelve octets each.
///
/// # Panics
/// If counters contradict each other, or depend on the initial sequence number, on the cache size, or on which
/// other connections exist.
pub fn target(data: &[u8]) {
    let whole = analyse(0, Config::default(), data, None);
    let connections = thawed(&whole);
    for connection in &connections {
        check(connection);
    }
    let packets: u64 = connections.iter().map(|one| one.packets).sum();
    assert_eq!(packets, (data.len() / STEP) as u64);

    let cold = Config {
        hot: 1,
        ..Config::default()
    };
    assert_eq!(whole, analyse(0, cold, data, None));

    let detailed = Config {
        details: true,
        interval: 1_000_000,
        ..Config::default()
    };
    let cold = Config { hot: 1, ..detailed };
    assert_eq!(
        analyse(0, detailed, data, None),
        analyse(0, cold, data, None)
    );

    let mut parts: Vec<Finished> = (0..PORTS)
        .flat_map(|port| analyse(0, Config::default(), data, Some(port)))
        .collect();
    parts.sort_by_key(|finished| finished.first_packet);
    assert_eq!(whole, parts);

    // Close to the wrap, or half way to it.
    let initial = [0xffff_f000, 0x7fff_ff00][data.len() / STEP % 2];
    let moved = thawed(&analyse(initial, Config::default(), data, None));
    assert_eq!(connections.len(), moved.len());
    for (near, far) in connections.iter().zip(&moved) {
        // Two packets in some hundred million share a fingerprint by chance.
        if copies(near) == copies(far) {
            assert_eq!(numbers(near), numbers(far));
        }
    }

    // With too little memory, connections may end early; nothing else may change.
    let short = Config {
        memory: 1,
        hot: 1,
        ..Config::default()
    };
    for connection in thawed(&analyse(0, short, data, None)) {
        check(&connection);
    }
}

/// The connections of packets whose sequence numbers start at `initial`; of one port, or of all.
fn analyse(initial: u32, config: Config, data: &[u8], port: Option<u16>) -> Vec<Finished> {
    let mut analyzer = Analyzer::new(config);
    let mut time = 1_000_000_000_000_000_000;
    let mut clock = time;
    // The next octet's sequence number at either end of each connection.
    let mut next = [[initial; 2]; PORTS as usize];
    for (number, octets) in (1..).zip(data.as_chunks::<STEP>().0) {
        let chosen = u16::from(octets[0] >> 1) % PORTS;
        time += step(octets[8], octets[9]);
        clock = clock.max(time);
        let segment = packet(number, octets, &mut next[usize::from(chosen)], chosen);
        let segment = Segment {
            time,
            clock,
            ..segment
        };
        if port.is_none_or(|port| port == chosen) {
            analyzer.packet(&segment, &[], &mut Nobody);
            let held = analyzer.held() as u64;
            assert!(held <= u64::from(PORTS));
            assert!(analyzer.memory() <= (held + 1) * HELD_MAX + data.len() as u64 * 8);
        }
    }
    analyzer.finish();
    assert_eq!((analyzer.held(), analyzer.memory()), (0, 0));
    let mut finished = analyzer.take_finished();
    assert_eq!(finished.len() as u64, analyzer.connections());
    finished.sort_by_key(|finished| finished.first_packet);
    finished
}

/// From a nanosecond to hours; in one of eight cases backwards.
fn step(size: u8, fine: u8) -> i64 {
    let step = (i64::from(fine) + 1) << (size % 40);
    if size >= 224 { -step } else { step }
}

/// One packet, except for its time.
fn packet(number: u64, octets: &[u8; STEP], next: &mut [u32; 2], port: u16) -> Segment {
    let from_low = octets[0] & 1 == 0;
    let (mine, other) = if from_low { (0, 1) } else { (1, 0) };
    let ends = [([1; 16], 1000), ([2; 16], 2000 + port)];
    let (key, low) = FlowKey::new(
        &ends[mine].0,
        ends[mine].1,
        &ends[other].0,
        ends[other].1,
        0,
    );
    assert_eq!(low, from_low);
    // Half of all packets continue where the last one ended; the others are nearby.
    let near = |at: u32, octet: u8| match octet {
        0..=127 => at,
        _ => at.wrapping_add_signed((i32::from(octet) - 192) * 50),
    };
    let payload = match octets[4] {
        0..=63 => 0,
        64..=95 => 1,
        length => u32::from(length - 95) * 50,
    };
    let flags = match octets[1] & 0x87 {
        0x80..=0x87 => u16::from(octets[1]),
        _ => 0x10 | u16::from(octets[1] & 0x08),
    };
    let sequence = near(next[mine], octets[2]);
    let length = payload + u32::from(flags & 1) + u32::from(flags >> 1 & 1);
    let end = sequence.wrapping_add(length);
    if end.wrapping_sub(next[mine]) as i32 > 0 {
        next[mine] = end;
    }
    let acknowledgment = near(next[other], octets[3]);
    Segment {
        number,
        time: 0,
        clock: 0,
        key,
        from_low,
        version: if octets[10] & 1 == 0 { 4 } else { 6 },
        traffic_class: octets[10] >> 1,
        id: u16::from(octets[6] % 32),
        flags,
        sequence,
        acknowledgment,
        window: u16::from(octets[5] % 4) * 1000,
        urgent: u16::from(octets[10]),
        checksum: u16::from(octets[6] >> 5),
        payload,
        captured: payload.min(u32::from(octets[7]) * 8),
        lead: octets[7],
        hop_limit: octets[9],
        options: options(octets[11], acknowledgment),
    }
}

/// Options of various kinds; SACK blocks close to the acknowledgment.
fn options(octet: u8, acknowledgment: u32) -> SegmentOptions {
    let low = octet & 15;
    let mut written = Vec::new();
    match octet >> 4 {
        0 => written.extend([3, 3, low]),
        1 => written.extend([2, 4, 5, low, 4, 2]),
        2 => written.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]),
        blocks @ 3..=6 => {
            written.extend([5, (blocks - 2) * 8 + 2]);
            for block in 0..u32::from(blocks - 2) {
                let left = acknowledgment
                    .wrapping_add(u32::from(low) * 100)
                    .wrapping_add(block * 300)
                    .wrapping_sub(400);
                written.extend(left.to_be_bytes());
                written.extend(left.wrapping_add(200).to_be_bytes());
            }
        }
        _ => {}
    }
    let mut options = SegmentOptions::default();
    options.set(&Options::parse(&written));
    options
}

fn copies(connection: &Connection) -> [u64; 2] {
    [&connection.a, &connection.b].map(|direction| direction.hardware_duplicates)
}

/// Every statistic that must not depend on the initial sequence numbers.
fn numbers(connection: &Connection) -> String {
    let mut connection = connection.clone();
    for direction in [&mut connection.a, &mut connection.b] {
        direction.segments.clear();
        direction.latest = 0;
        direction.window_end = 0;
        direction.first_sequence = None;
        direction.ack = direction.ack.map(|_| 0);
        direction.syn = direction.syn.map(|_| 0);
        direction.fin = direction.fin.map(|_| 0);
    }
    // The remaining values derived from sequence numbers are not public: two named lines, and fingerprints,
    // which are bare numbers.
    let text = format!("{connection:#?}");
    let kept = text.lines().map(str::trim).filter(|line| {
        let bare = line.starts_with(|first: char| first.is_ascii_digit());
        !(bare || line.starts_with("probed:") || line.starts_with("sacked_above:"))
    });
    kept.collect::<Vec<_>>().join(" ")
}
