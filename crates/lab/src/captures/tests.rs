//! Small captures of each kind: right checksums, the promised counts, the same bytes each time.

use std::collections::{HashMap, HashSet};

use super::*;

const SMALL: Scale = Scale(0.01);

fn file(kind: &Kind, scale: Scale) -> (Vec<u8>, Written) {
    let mut file = Vec::new();
    let written = kind.write(scale, &mut file, &mut |_| {}).unwrap();
    (file, written)
}

/// A TCP packet of a file.
struct Tcp {
    time_us: u64,
    /// Addresses and ports, source first.
    ends: Vec<u8>,
    seq: u32,
    flags: u8,
    options: Vec<u8>,
    payload: usize,
}

impl Tcp {
    /// The connection, independent of the sender.
    fn connection(&self) -> Vec<u8> {
        let half = self.ends.len() / 2;
        let (from, to) = self.ends.split_at(half);
        if from < to {
            [from, to].concat()
        } else {
            [to, from].concat()
        }
    }

    /// Octets of sequence space.
    fn range(&self) -> (Vec<u8>, std::ops::Range<u32>) {
        (self.ends.clone(), self.seq..self.seq + self.payload as u32)
    }
}

fn u16_at(octets: &[u8], at: usize) -> usize {
    usize::from(octets[at]) << 8 | usize::from(octets[at + 1])
}

/// Whether a checksum is right over `octets` and any number of zeros after them.
fn is_right(octets: &[u8]) -> bool {
    let even = [octets, &[0][..octets.len() % 2]].concat();
    frame::fold(frame::sum(&even)) == 0
}

/// All TCP packets, and the number of others; checks every length and checksum.
fn parse(file: &[u8]) -> (Vec<Tcp>, usize) {
    let (mut packets, mut others) = (Vec::new(), 0);
    let mut rest = &file[24..];
    let mut last = 0;
    while !rest.is_empty() {
        let field = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
        let time_us = u64::from(field(0)) * 1_000_000 + u64::from(field(4));
        let (captured, len) = (field(8) as usize, field(12) as usize);
        assert!(
            time_us >= last && captured <= len,
            "packets are in order of time"
        );
        last = time_us;
        let packet = &rest[16..16 + captured];
        rest = &rest[16 + captured..];
        match parse_packet(packet, len, time_us) {
            Some(tcp) => packets.push(tcp),
            None => others += 1,
        }
    }
    (packets, others)
}

fn parse_packet(packet: &[u8], len: usize, time_us: u64) -> Option<Tcp> {
    let at = if u16_at(packet, 12) == 0x8100 { 18 } else { 14 };
    let ip = &packet[at..];
    let (header, protocol, addresses) = match u16_at(packet, at - 2) {
        0x0800 => {
            assert!(is_right(&ip[..20]));
            assert_eq!(at + u16_at(ip, 2), len);
            (20, ip[9], &ip[12..20])
        }
        0x86dd => {
            assert_eq!(at + 40 + u16_at(ip, 4), len);
            (40, ip[6], &ip[8..40])
        }
        _ => return None,
    };
    if protocol != 6 {
        return None;
    }
    let tcp = &ip[header..];
    let tcp_len = len - at - header;
    let pseudo = [addresses, &[0, 6], &(tcp_len as u16).to_be_bytes()].concat();
    // The missing part of the payload consists of zeros, like the captured part.
    assert!(is_right(&[&pseudo, tcp].concat()));
    let data = usize::from(tcp[12] >> 4) * 4;
    assert!(tcp.len() >= data && tcp[data..].iter().all(|&octet| octet == 0));
    let half = addresses.len() / 2;
    let ends = [
        &addresses[..half],
        &tcp[..2],
        &addresses[half..],
        &tcp[2..4],
    ]
    .concat();
    Some(Tcp {
        time_us,
        ends,
        seq: u32::from_be_bytes(tcp[4..8].try_into().unwrap()),
        flags: tcp[13],
        options: tcp[20..data].to_vec(),
        payload: tcp_len - data,
    })
}

fn tcp_of(name: &str) -> Vec<Tcp> {
    parse(&file(named(name).unwrap(), SMALL).0).0
}

/// For each connection, the indices of its packets that repeat earlier data.
fn resent(packets: &[Tcp]) -> HashMap<Vec<u8>, Vec<usize>> {
    let mut seen = HashSet::new();
    let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut resent: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    for packet in packets {
        let number = counts.entry(packet.connection()).or_default();
        *number += 1;
        if packet.payload > 0 && !seen.insert(packet.range()) {
            resent.entry(packet.connection()).or_default().push(*number);
        }
    }
    resent
}

#[test]
fn every_kind_is_the_same_each_time_and_counts_what_it_claims() {
    for kind in &KINDS {
        let (octets, written) = file(kind, SMALL);
        assert_eq!(octets.len() as u64, written.bytes, "{kind:?}");
        assert!(
            octets == file(kind, SMALL).0,
            "{kind:?} differs from itself"
        );
        let (packets, others) = parse(&octets);
        assert_eq!((packets.len() + others) as u64, written.packets, "{kind:?}");
        let claimed = kind.packets_at(SMALL) as f64;
        // A small `mixed` capture lacks the largest connections.
        let share = if kind.name == "mixed" { 0.4 } else { 0.02 };
        let off = written.packets as f64 / claimed - 1.0;
        assert!(
            off.abs() < share,
            "{kind:?}: {} of {claimed}",
            written.packets
        );
    }
}

#[test]
fn the_octets_are_those_of_every_machine() {
    // FNV-1a of each file at a thousandth; they change when a generator does.
    let hash = |octets: &[u8]| {
        octets
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &octet| {
                (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
            })
    };
    let hashes = KINDS
        .each_ref()
        .map(|kind| hash(&file(kind, Scale(0.001)).0));
    let expected = [
        0x5e80_5bca_60b0_2c98,
        0x6c68_0925_2ade_2d48,
        0xe67b_9eb4_3de1_326f,
        0xed49_c0ad_234e_8cb1,
        0x3b00_2dfb_29f5_9238,
        0xe44b_532c_befd_7738,
    ];
    assert_eq!(hashes, expected);
}

#[test]
fn a_larger_scale_makes_the_long_connections_longer() {
    for kind in &KINDS[..4] {
        let connections = |scale| {
            let packets = parse(&file(kind, scale).0).0;
            packets.iter().map(Tcp::connection).collect::<HashSet<_>>()
        };
        assert_eq!(connections(SMALL), connections(Scale(0.02)), "{kind:?}");
    }
}

#[test]
fn clean_connections_send_nothing_twice_and_end_with_fins() {
    let packets = tcp_of("clean");
    assert!(resent(&packets).is_empty());
    let fins = packets
        .iter()
        .filter(|packet| packet.flags & frame::FIN != 0);
    assert_eq!(fins.count(), 18);
    let data = packets.iter().filter(|packet| packet.payload > 0).count();
    let ratio = packets.len() as f64 / data as f64;
    assert!((ratio - 1.5).abs() < 0.01, "{ratio}");
}

#[test]
fn oneway_loss_has_one_direction_and_a_resent_segment_near_packet_100() {
    let packets = tcp_of("oneway-loss");
    assert!(
        packets
            .iter()
            .all(|packet| packet.ends < packet.ends[6..].to_vec())
    );
    // NOP, NOP, SACK-permitted; and no SACK either.
    assert!(
        packets
            .iter()
            .all(|packet| !packet.options.windows(2).any(|o| o == [4, 2]))
    );
    let resent = resent(&packets);
    assert_eq!(resent.len(), 9);
    for numbers in resent.values() {
        assert!((95..=105).contains(&numbers[0]), "{numbers:?}");
    }
}

#[test]
fn oneway_sack_resends_a_hundredth_and_shows_both_syns() {
    let packets = tcp_of("oneway-sack");
    let syns = packets
        .iter()
        .filter(|packet| packet.flags & frame::SYN != 0);
    assert_eq!(
        syns.filter(|syn| syn.options.windows(2).any(|o| o == [4, 2]))
            .count(),
        16
    );
    let data = packets.iter().filter(|packet| packet.payload > 0).count() as f64;
    let again: usize = resent(&packets).values().map(Vec::len).sum();
    let share = again as f64 / data;
    assert!((0.008..0.012).contains(&share), "{share}");
}

#[test]
fn twoway_drops_misses_packets_that_are_acknowledged_all_the_same() {
    let packets = tcp_of("twoway-drops");
    assert!(resent(&packets).is_empty());
    let mut next: HashMap<&[u8], u32> = HashMap::new();
    let (mut missed, mut data) = (0, 0);
    for packet in packets.iter().filter(|packet| packet.payload > 0) {
        let range = packet.range().1;
        let before = next.insert(&packet.ends, range.end);
        missed += usize::from(before.is_some_and(|next| next < range.start));
        data += 1;
    }
    let share = missed as f64 / data as f64;
    assert!((0.003..0.007).contains(&share), "{share}");
    // None of the receivers missed anything: no SACK blocks.
    let is_long = |packet: &&Tcp| packet.flags & frame::SYN == 0 && packet.options.len() > 12;
    assert_eq!(packets.iter().filter(is_long).count(), 0);
}

#[test]
fn short_connections_are_many_and_many_are_open_at_once() {
    let packets = tcp_of("short");
    let mut spans: HashMap<Vec<u8>, (u64, u64, u8)> = HashMap::new();
    for packet in &packets {
        let time = packet.time_us;
        let span = spans.entry(packet.connection()).or_insert((time, time, 0));
        span.1 = time;
        span.2 |= packet.flags;
    }
    assert_eq!(spans.len(), 10_000);
    let with = |flags: u8| {
        spans
            .values()
            .filter(|span| span.2 & flags == flags)
            .count()
    };
    let syns = spans.values().filter(|span| span.2 == frame::SYN).count();
    assert!(
        (900..1_100).contains(&with(frame::RST)),
        "{}",
        with(frame::RST)
    );
    assert!((900..1_100).contains(&syns), "{syns}");
    assert_eq!(with(frame::FIN) + with(frame::RST) + syns, 10_000);
    let middle = packets[packets.len() / 2].time_us;
    let open = spans
        .values()
        .filter(|span| span.0 <= middle && middle <= span.1);
    assert!(open.count() > 1_000);
}

#[test]
fn mixed_has_every_sort_of_packet_and_fault() {
    let (octets, _) = file(named("mixed").unwrap(), SMALL);
    let (packets, others) = parse(&octets);
    let share = others as f64 / packets.len() as f64;
    assert!((0.02..0.04).contains(&share), "{share}");
    assert!(packets.iter().any(|packet| packet.ends.len() == 36));
    assert!(
        packets
            .iter()
            .any(|packet| packet.options.windows(3).any(|o| o == [1, 5, 10]))
    );
    assert!(resent(&packets).values().map(Vec::len).sum::<usize>() > 20);
    assert!(octets.windows(2).any(|pair| pair == [0x81, 0x00]));
}

#[test]
fn a_scale_is_above_zero_and_not_too_large() {
    assert_eq!("0.5".parse(), Ok(Scale(0.5)));
    for text in ["0", "-1", "nan", "inf", "8.01", "x", ""] {
        assert_eq!(text.parse::<Scale>(), Err(ScaleError), "{text}");
    }
    assert_eq!(Scale(0.5).of(5), 3);
    assert_eq!(Scale(0.001).of(1), 1);
}
