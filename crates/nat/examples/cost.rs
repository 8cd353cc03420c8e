//! What a translation costs, and a new mapping, at growing numbers of mappings, beside a bare loop.
//!
//! `cargo run --profile quick -p headend-nat --example cost`. The bare loop reads each packet's header and one record of 32
//! bytes at a random place in as much memory as the mappings take: no NAT can do with less. Each figure is the best of five
//! passes over all mappings in random order, in batches of 32 packets.

use std::hint::black_box;
use std::time::Instant as Clock;

use base::Instant;
use nat::{Config, Direction, Nat, SubscriberId, Sum};
use wire::ip::Header;

const BATCH: usize = 32;
const PASSES: usize = 5;
const PER_SUBSCRIBER: u32 = 250;

/// A UDP datagram with a checksum that is not verified.
fn packet(source: u32, port: u16) -> [u8; 40] {
    let mut packet = [0; 40];
    packet[..12].copy_from_slice(&[0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, 17, 0x55, 0x55]);
    packet[12..16].copy_from_slice(&source.to_be_bytes());
    packet[16..20].copy_from_slice(&[198, 51, 100, 7]);
    packet[20..22].copy_from_slice(&port.to_be_bytes());
    packet[22..28].copy_from_slice(&[0, 53, 0, 20, 0x12, 0x34]);
    packet
}

fn shuffle<T>(items: &mut [T]) {
    let mut state = 0x1234_5678_9abc_def1_u64;
    for at in (1..items.len()).rev() {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let other = (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % (at + 1);
        items.swap(at, other);
    }
}

type Flow = (SubscriberId, [u8; 40]);

/// Nanoseconds per item of the fastest of some passes.
fn best(items: usize, mut pass: impl FnMut()) -> f64 {
    let times = (0..PASSES).map(|_| {
        let start = Clock::now();
        pass();
        start.elapsed().as_nanos() as f64 / items as f64
    });
    times.fold(f64::INFINITY, f64::min)
}

fn pass_out(nat: &mut Nat, flows: &[Flow], now: Instant) {
    let mut packets: [[u8; 40]; BATCH] = [[0; 40]; BATCH];
    for batch in flows.chunks(BATCH) {
        for (packet, flow) in packets.iter_mut().zip(batch) {
            *packet = flow.1;
        }
        let ahead = packets.iter().zip(batch);
        nat.touch(
            Direction::Out,
            ahead.map(|(one, flow)| (Some(flow.0), &one[..])),
        );
        for (packet, flow) in packets.iter_mut().zip(batch) {
            if let Ok(header) = &Header::read(packet) {
                let _ = black_box(nat.outbound(flow.0, header, packet, Sum::Complete, now));
            }
        }
    }
}

fn pass_in(nat: &mut Nat, flows: &[[u8; 40]], now: Instant) {
    let mut packets: [[u8; 40]; BATCH] = [[0; 40]; BATCH];
    for batch in flows.chunks(BATCH) {
        for (packet, flow) in packets.iter_mut().zip(batch) {
            *packet = *flow;
        }
        let ahead = packets.iter().zip(batch);
        nat.touch(Direction::In, ahead.map(|(one, _)| (None, &one[..])));
        for packet in packets[..batch.len()].iter_mut() {
            if let Ok(header) = &Header::read(packet) {
                let _ = black_box(nat.inbound(header, packet, Sum::Complete, now));
            }
        }
    }
}

/// The floor: copy and read the header, and load one record.
fn pass_bare(memory: &[[u64; 4]], flows: &[Flow]) {
    for batch in flows.chunks(BATCH) {
        let mut sum = 0;
        for (_, flow) in batch {
            let packet = *black_box(flow);
            if let Ok(header) = Header::read(&packet) {
                let key = header.source as u64 * 0x9e37_79b9 + u64::from(header.source_port);
                let at = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                sum ^= memory[((at * memory.len() as u64) >> 32) as usize][0];
            }
        }
        black_box(sum);
    }
}

fn measure(count: u32) {
    let externals = vec!["192.0.0.0/25".parse().expect("a prefix")];
    let mut config = Config::new(externals, [0x1357_9bdf_0246_8ace, 0xfedc_ba98_7654_3210, 7]);
    config.limits.mappings_max = count + count / 8;
    config.limits.events_max = 1 << 20;
    let mut nat = Nat::new(config).expect("good settings");
    let now = Instant::from_nanos(1 << 40);
    let mut flows: Vec<Flow> = Vec::new();
    for subscriber in 0..count.div_ceil(PER_SUBSCRIBER) {
        let address = 0x6440_0000 + subscriber;
        let id = nat.join(subscriber.into(), address.into()).expect("room");
        let left = PER_SUBSCRIBER.min(count - flows.len() as u32);
        flows.extend((0..left).map(|port| (id, packet(address, 1024 + port as u16 * 7))));
    }
    shuffle(&mut flows);
    let start = Clock::now();
    pass_out(&mut nat, &flows, now);
    let new = start.elapsed().as_nanos() as f64 / f64::from(count);
    assert_eq!(nat.counters().mappings, count, "{:?}", nat.counters());
    let outbound = best(flows.len(), || pass_out(&mut nat, &flows, now));
    let back = flows.iter().map(|flow| {
        let mut packet = flow.1;
        let header = Header::read(&packet).expect("an IP packet");
        nat.outbound(flow.0, &header, &mut packet, Sum::Complete, now)
            .expect("a mapping");
        let mut back = packet;
        back[12..16].copy_from_slice(&packet[16..20]);
        back[16..20].copy_from_slice(&packet[12..16]);
        back[20..22].copy_from_slice(&packet[22..24]);
        back[22..24].copy_from_slice(&packet[20..22]);
        back
    });
    let back: Vec<_> = back.collect();
    let inbound = best(back.len(), || pass_in(&mut nat, &back, now));
    let memory = vec![[1_u64; 4]; count as usize];
    let bare = best(flows.len(), || pass_bare(&memory, &flows));
    println!("{count:>9} {new:>7.1} {outbound:>8.1} {inbound:>8.1} {bare:>6.1}");
}

fn main() {
    println!(" mappings  ns/new   ns/out    ns/in   bare");
    let sizes: Vec<u32> = std::env::args()
        .skip(1)
        .flat_map(|one| one.parse())
        .collect();
    for &count in match sizes.is_empty() {
        true => &[62_500, 250_000, 1_000_000],
        false => &sizes[..],
    } {
        measure(count);
    }
}
