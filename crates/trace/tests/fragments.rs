//! Tests that fragmented TCP segments have the same statistics as whole segments, in captures that the tests make.

use std::io::Cursor;

use trace::{Captures, Connection, Error, Findings, Options, Seen, Segment, Verdict, Watch};
use wire::tcp::Tcp;

const ACK: u8 = 0x10;
const SYN: u8 = 0x02;
const MS: u64 = 1_000_000;

/// An IP packet with TCP, and when it is sent, in nanoseconds.
#[derive(Clone)]
struct Sent {
    time: u64,
    from_a: bool,
    tcp: Vec<u8>,
}

fn tcp(from_a: bool, sequence: u32, acknowledgment: u32, flags: u8, payload: usize) -> Vec<u8> {
    let ports = if from_a {
        [40_000u16, 80]
    } else {
        [80, 40_000]
    };
    let mut octets = Vec::new();
    octets.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    octets.extend(sequence.to_be_bytes());
    octets.extend(acknowledgment.to_be_bytes());
    octets.extend([0x50, flags, 0x20, 0, 0, 0, 0, 0]);
    octets.extend((0..payload).map(|at| at as u8));
    octets
}

/// A handshake, and `count` segments of 3,000 bytes that are acknowledged 20 ms later. The third is sent twice.
fn conversation(count: u32) -> Vec<Sent> {
    let mut time = 1_600_000_000_000 * MS;
    let mut sent = Vec::new();
    let mut send = |from_a, octets, after: u64| {
        time += after * MS;
        sent.push(Sent {
            time,
            from_a,
            tcp: octets,
        });
    };
    send(true, tcp(true, 100, 0, SYN, 0), 1);
    send(false, tcp(false, 900, 101, SYN | ACK, 0), 20);
    send(true, tcp(true, 101, 901, ACK, 0), 1);
    for at in 0..count {
        let sequence = 101 + at * 3_000;
        send(true, tcp(true, sequence, 901, ACK, 3_000), 1);
        if at == 2 {
            send(true, tcp(true, sequence, 901, ACK, 3_000), 400);
        }
        send(false, tcp(false, 901, sequence + 3_000, ACK, 0), 20);
    }
    sent
}

fn ip(version: u8, sent: &Sent, id: u32, offset: usize, more: bool, octets: &[u8]) -> Vec<u8> {
    let ends = if sent.from_a { [1, 2] } else { [2, 1] };
    let whole = offset == 0 && !more;
    let mut packet = Vec::new();
    if version == 4 {
        let place = (offset / 8) as u16 | u16::from(more) << 13;
        packet.extend([0x45, 0]);
        packet.extend((20 + octets.len() as u16).to_be_bytes());
        packet.extend((id as u16).to_be_bytes());
        packet.extend(place.to_be_bytes());
        packet.extend([64, 6, 0, 0]);
        packet.extend(ends.iter().flat_map(|end| [10, 0, 0, *end]));
        let words = packet
            .chunks(2)
            .map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
        let sum: u32 = words.sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    } else {
        let length = octets.len() + if whole { 0 } else { 8 };
        packet.extend([0x60, 0, 0, 0]);
        packet.extend((length as u16).to_be_bytes());
        packet.extend([if whole { 6 } else { 44 }, 64]);
        for end in ends {
            packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
        }
        if !whole {
            packet.extend([6, 0]);
            packet.extend((offset as u16 | u16::from(more)).to_be_bytes());
            packet.extend(id.to_be_bytes());
        }
    }
    packet.extend_from_slice(octets);
    packet
}

/// Fragments of at most `size` bytes.
fn fragments(version: u8, sent: &Sent, id: u32, size: usize) -> Vec<Vec<u8>> {
    let count = sent.tcp.len().div_ceil(size);
    let parts = sent.tcp.chunks(size).enumerate();
    parts
        .map(|(at, part)| ip(version, sent, id, at * size, at + 1 < count, part))
        .collect()
}

/// A capture of these IP packets, of which it has at most `snap` bytes each.
fn capture(packets: impl IntoIterator<Item = (u64, Vec<u8>)>, snap: usize) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 2 | 4 << 16, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    for (time, packet) in packets {
        let captured = packet.len().min(snap);
        let words = [
            time / 1_000_000_000,
            time % 1_000_000_000,
            captured as u64,
            packet.len() as u64,
        ];
        for word in words {
            file.extend((word as u32).to_le_bytes());
        }
        file.extend_from_slice(&packet[..captured]);
    }
    file
}

fn read(file: Vec<u8>, options: Options) -> Findings {
    let captures = Captures::from_reader("hand-made", Cursor::new(file), options);
    captures.read().unwrap()
}

fn threads(threads: usize) -> Options {
    Options {
        threads: Some(threads),
        seed: Some(7),
        ..Options::default()
    }
}

fn only(found: &Findings) -> Connection {
    assert_eq!(found.len(), 1);
    found.connections().next().unwrap().unwrap()
}

fn seen(found: &Findings, name: &str) -> u64 {
    let seen = found.summary().seen.iter();
    seen.filter(|(own, _)| own == name)
        .map(|(_, count)| count)
        .sum()
}

const JOINED: &str = "TCP segments put together";
const INCOMPLETE: &str = "incomplete TCP segments";
const OVERLAPPING: &str = "TCP segments with overlapping fragments";

/// What the fragments of a packet become in the capture.
type Order = fn(Vec<Vec<u8>>) -> Vec<Vec<u8>>;

#[test]
fn fragments_in_any_order_and_twice_are_the_segment() {
    let whole = |version| {
        let packets = conversation(20).into_iter().zip(1..);
        let packets =
            packets.map(|(sent, id)| (sent.time, ip(version, &sent, id, 0, false, &sent.tcp)));
        only(&read(capture(packets, 65_535), threads(1)))
    };
    let orders: [(&str, Order); 3] = [
        ("in order", |parts| parts),
        ("the last one first", |parts| {
            parts.into_iter().rev().collect()
        }),
        ("each twice", |parts| {
            let times = if parts.len() > 1 { 2 } else { 1 };
            let twice = |part| std::iter::repeat_n(part, times);
            parts.into_iter().flat_map(twice).collect()
        }),
    ];
    for version in [4, 6] {
        let expected = whole(version);
        assert_eq!(
            (expected.a.unique_bytes, expected.a.retransmitted_packets),
            (60_000, 1)
        );
        for (name, order) in orders {
            let packets = conversation(20)
                .into_iter()
                .zip(1..)
                .flat_map(|(sent, id)| {
                    let parts = order(fragments(version, &sent, id, 1_400));
                    parts.into_iter().map(move |part| (sent.time, part))
                });
            let found = read(capture(packets, 65_535), threads(1));
            let connection = only(&found);
            let which = format!("IPv{version}, {name}");
            for (own, expected) in [(&connection.a, &expected.a), (&connection.b, &expected.b)] {
                assert_eq!(own.packets, expected.packets, "{which}");
                assert_eq!(own.unique_bytes, expected.unique_bytes, "{which}");
                assert_eq!(own.segment_max, expected.segment_max, "{which}");
                assert_eq!(
                    own.retransmitted_bytes, expected.retransmitted_bytes,
                    "{which}"
                );
                assert_eq!(own.rtt.max, expected.rtt.max, "{which}");
            }
            assert_eq!(
                (seen(&found, JOINED), seen(&found, INCOMPLETE)),
                (21, 0),
                "{which}"
            );
        }
    }
}

#[test]
fn a_capture_that_cuts_fragments_has_the_length_as_sent() {
    let packets = conversation(4).into_iter().zip(1..).flat_map(|(sent, id)| {
        let parts = fragments(4, &sent, id, 1_400);
        parts.into_iter().map(move |part| (sent.time, part))
    });
    let a = only(&read(capture(packets, 96), threads(1))).a;
    assert_eq!((a.unique_bytes, a.truncated_packets), (12_000, 5));
    // 96 bytes without the headers of IP and TCP are left of each first fragment, and nothing else counts.
    assert_eq!(a.truncated_bytes, 5 * (3_000 - 56));
}

#[test]
fn overlapping_fragments_drop_the_segment_and_what_comes_later_of_it() {
    for version in [4, 6] {
        for (offset, same) in [(1_392, true), (1_400, false)] {
            let packets = conversation(4).into_iter().zip(1..).flat_map(|(sent, id)| {
                let mut parts = fragments(version, &sent, id, 1_400);
                if id == 4 {
                    // Overlaps the first two fragments, or has other data than the second.
                    let octet = if same { 1 } else { 0xff };
                    let other = ip(version, &sent, id, offset, true, &[octet; 1_400]);
                    parts.insert(2, other);
                }
                parts.into_iter().map(move |part| (sent.time, part))
            });
            let found = read(capture(packets, 65_535), threads(1));
            let a = only(&found).a;
            assert_eq!((seen(&found, JOINED), seen(&found, OVERLAPPING)), (4, 1));
            assert_eq!((a.unique_bytes, a.unseen_bytes()), (9_000, 3_000));
        }
    }
}

#[test]
fn a_segment_whose_last_fragment_comes_after_a_minute_is_incomplete() {
    for (wait, joined) in [(59_000, 1), (61_000, 0)] {
        let sent = conversation(1).remove(3);
        let mut parts = fragments(4, &sent, 1, 1_400);
        let last = (sent.time + wait * MS, parts.remove(2));
        let packets = parts.into_iter().map(|part| (sent.time, part));
        let found = read(capture(packets.chain([last]), 65_535), threads(1));
        assert_eq!(seen(&found, JOINED), joined, "{wait} ms");
        // The late fragment begins another one.
        assert_eq!(seen(&found, INCOMPLETE), 2 * (1 - joined), "{wait} ms");
    }
}

#[test]
fn fragments_that_no_packet_can_have_are_counted_and_dropped() {
    let sent = conversation(1).remove(3);
    let parts = fragments(4, &sent, 1, 1_400);
    let wrong = [
        ip(4, &sent, 2, 0, true, &sent.tcp[..1_399]),
        ip(4, &sent, 2, 65_528, false, &[0; 9]),
        ip(4, &sent, 2, 1_400, false, &[]),
    ];
    let packets = wrong.into_iter().chain(parts);
    let found = read(
        capture(packets.map(|part| (sent.time, part)), 65_535),
        threads(1),
    );
    assert_eq!(
        (seen(&found, "invalid fragments"), seen(&found, JOINED)),
        (3, 1)
    );
    assert_eq!(seen(&found, INCOMPLETE), 0);
}

#[test]
fn the_oldest_of_too_many_segments_and_of_too_many_bytes_is_given_up() {
    for (count, size) in [(1_025, 1_400), (300, 24_000)] {
        let sent = Sent {
            tcp: tcp(true, 101, 901, ACK, 2 * size),
            ..conversation(1).remove(3)
        };
        let parts = |id| fragments(4, &sent, id, size).into_iter();
        let first = (1..=count).filter_map(|id| parts(id).next());
        let packets = first.chain(parts(1).skip(1)).chain(parts(count).skip(1));
        let packets = packets.map(|part| (sent.time, part));
        let found = read(capture(packets, 65_535), threads(1));
        assert_eq!(seen(&found, JOINED), 1, "{size}");
        // All but the last one, and the rest of the first one, which was given up already.
        assert_eq!(seen(&found, INCOMPLETE), u64::from(count), "{size}");
        assert_eq!(only(&found).a.unique_bytes, 2 * size as u64);
    }
}

#[test]
fn wrong_checksums_of_segments_are_found_after_they_were_put_together() {
    let options = Options {
        checksums: true,
        ..threads(1)
    };
    let packets = conversation(4).into_iter().zip(1..).flat_map(|(sent, id)| {
        let parts = fragments(4, &sent, id, 1_400);
        parts.into_iter().map(move |part| (sent.time, part))
    });
    let found = read(capture(packets, 65_535), options);
    assert_eq!(found.summary().bad_checksums, Some([0, 12, 0]));
    assert_eq!(seen(&found, JOINED), 5);
}

/// The IP packets of segments with payload.
#[derive(Default)]
struct Shown(Vec<Vec<u8>>);

impl Watch for Shown {
    type Error = Error;

    fn segment(
        &mut self,
        seen: &Seen<'_, '_>,
        tcp: &Tcp<'_>,
        _: &Connection,
        _: &Segment,
        _: &Verdict,
    ) {
        if !tcp.payload.is_empty() {
            self.0.push(seen.packet.network.to_vec());
        }
    }
}

#[test]
fn an_observer_sees_the_packet_as_it_was_before_it_was_fragmented() {
    for version in [4, 6] {
        let sent = conversation(1).remove(3);
        let parts = fragments(version, &sent, 1, 1_400).into_iter().rev();
        let file = capture(parts.map(|part| (sent.time, part)), 65_535);
        let captures = Captures::from_reader("hand-made", Cursor::new(file), threads(1));
        let (_, shown) = captures.read_with(Shown::default()).unwrap();
        assert_eq!(shown.0, [ip(version, &sent, 1, 0, false, &sent.tcp)]);
    }
}

#[test]
fn any_number_of_threads_puts_the_same_together() {
    let packets = || {
        conversation(6_000)
            .into_iter()
            .zip(1..)
            .flat_map(|(sent, id)| {
                let version = if id % 2 == 0 { 4 } else { 6 };
                let mut parts = fragments(version, &sent, id, 1_400);
                if id % 5 == 0 {
                    parts.reverse();
                }
                if id % 7 == 0 {
                    parts.pop();
                }
                parts.into_iter().map(move |part| (sent.time, part))
            })
    };
    let [one, three] = [1, 3].map(|count| read(capture(packets(), 65_535), threads(count)));
    assert_eq!(one.summary(), three.summary());
    assert!(seen(&one, JOINED) > 4_000 && seen(&one, INCOMPLETE) > 500);
    let mut rooms = [Vec::new(), Vec::new()];
    assert_eq!(one.len(), three.len());
    for at in 0..one.len() {
        let own = one.frozen(at, &mut rooms[0]).unwrap().to_vec();
        assert_eq!(own, three.frozen(at, &mut rooms[1]).unwrap());
    }
}
