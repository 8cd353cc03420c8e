//! What each step of a packet's way costs, in nanoseconds: the median of rounds, each over packets of as many
//! subscribers as there are, in no order that a cache could know.
//!
//! ```text
//! cargo run --release -p headend-forward --example cost
//! ```
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use forward::mss::{self, Sum};
use forward::routes::Routes;
use forward::source::Addresses;
use forward::{Discard, check, hop, source};
use wire::ip::Header;

/// Operations in a round.
const BATCH: usize = 100_000;
const ROUNDS: usize = 15;

fn main() {
    println!("look-ups, ns each; octets for each route");
    println!(
        "subscribers      v4  v4 miss  v4 with 8 framed lengths  their miss      v6    v4 oct.  v6 oct."
    );
    for count in [1_000, 12_500, 25_000, 50_000, 100_000, 200_000] {
        lookups(count);
    }
    println!("\nsteps, ns each, over packets of 100 octets that are warm");
    steps();
}

fn host(n: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x6440_0000 + n as u32)
}

fn prefix(n: usize) -> Ipv6Addr {
    Ipv6Addr::from_bits((0x2001_0db8_0000_0000 + n as u128) << 64)
}

/// The median cost of `operation` over the numbers that it is given.
fn ns(numbers: &[usize], mut operation: impl FnMut(usize) -> bool) -> f64 {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut hits = 0;
        for &n in numbers {
            hits += usize::from(operation(n));
        }
        rounds.push(start.elapsed().as_nanos() as f64 / numbers.len() as f64);
        black_box(hits);
    }
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// Numbers below `count` in no order.
fn numbers(count: usize) -> Vec<usize> {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    };
    (0..BATCH).map(|_| next()).collect()
}

fn lookups(count: usize) {
    let mut routes = Routes::new(usize::MAX);
    for n in 0..count {
        routes
            .insert(host(n).into(), 32, n as u32)
            .expect("a new prefix");
    }
    let v4_octets = routes.memory() as f64 / count as f64;
    let mut framed = routes.clone();
    for n in 0..count {
        routes
            .insert(prefix(n).into(), 64, n as u32)
            .expect("a new prefix");
    }
    let v6_octets = routes.memory() as f64 / count as f64 - v4_octets;
    for (n, length) in (24..32).flat_map(|length| (0..100).map(move |n| (n, length))) {
        let address = Ipv4Addr::from_bits(0x0a00_0000 | u32::from(length - 24) << 20 | n << 8);
        framed
            .insert(IpAddr::V4(address), length, n)
            .expect("a new prefix");
    }
    let order = numbers(count);
    let v4 = ns(&order, |n| routes.lookup_v4(host(n).to_bits()).is_some());
    let miss = ns(&order, |n| routes.lookup_v4(!host(n).to_bits()).is_some());
    let v4_framed = ns(&order, |n| framed.lookup_v4(host(n).to_bits()).is_some());
    let miss_framed = ns(&order, |n| framed.lookup_v4(!host(n).to_bits()).is_some());
    let v6 = ns(&order, |n| {
        routes.lookup_v6(prefix(n).to_bits() | 0x2a).is_some()
    });
    println!(
        "{count:>11} {v4:>7.1}  {miss:>7.1}  {v4_framed:>24.1}  {miss_framed:>10.1} {v6:>7.1}  {v4_octets:>9.1}  {v6_octets:>7.1}"
    );
}

fn steps() {
    let packet = tcp_packet();
    // To restore it after a hop.
    let sum = [packet[10], packet[11]];
    let mut packets = vec![packet; 1000];
    let order = numbers(packets.len());
    let mut routes = Routes::new(10);
    routes.insert(host(1).into(), 32, 7).expect("a new prefix");
    let addresses = Addresses {
        v4: host(1).to_bits(),
        ..Addresses::default()
    };
    let up = |packet: &mut [u8]| {
        let header = Header::read(packet)?;
        check::checksum(&header, packet)?;
        let reach = check::addresses(&header)?;
        source::check(&addresses, 7, &routes, &header, reach)?;
        hop::decrement(&header, packet)?;
        mss::clamp(&header, packet, 1400, Sum::Complete);
        Ok::<(), Discard>(())
    };
    let header = Header::read(&packets[0]).expect("a packet");
    let report = |name, ns: f64| println!("{name:<34} {ns:>5.1}");
    report("nothing", ns(&order, |n| packets[n][0] == 0x45));
    report(
        "reading the header",
        ns(&order, |n| Header::read(black_box(&packets[n])).is_ok()),
    );
    report(
        "header checksum",
        ns(&order, |n| {
            check::checksum(black_box(&header), &packets[n]).is_ok()
        }),
    );
    report(
        "martians",
        ns(&order, |_| check::addresses(black_box(&header)).is_ok()),
    );
    report(
        "source, own address",
        ns(&order, |_| {
            let reach = check::Reach::Any;
            source::check(&addresses, 7, &routes, black_box(&header), reach).is_ok()
        }),
    );
    report(
        "hop and checksum",
        ns(&order, |n| {
            hop::decrement(black_box(&header), &mut packets[n]).is_ok()
        }),
    );
    report(
        "MSS of a packet that is no SYN",
        ns(&order, |n| {
            mss::clamp(black_box(&header), &mut packets[n], 1400, Sum::Complete)
        }),
    );
    // The hop that each loses is given back: the header's copy has it.
    report(
        "all of upstream with its header",
        ns(&order, |n| {
            let packet = &mut packets[n];
            packet[8] = 64;
            packet[10..12].copy_from_slice(&sum);
            up(packet).is_ok()
        }),
    );
}

/// A TCP segment of 100 bytes from a subscriber.
fn tcp_packet() -> Vec<u8> {
    let mut packet = vec![
        0x45, 0, 0, 100, 0, 1, 0x40, 0, 64, 6, 0, 0, 100, 64, 0, 1, 198, 51, 100, 7,
    ];
    packet.extend_from_slice(&[
        0, 80, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff,
    ]);
    packet.resize(100, 0);
    let sum = !wire::checksum::sum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}
