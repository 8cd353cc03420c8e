//! The same connection in whatever carries it, and in whatever file, has the same statistics.

use crate::statistics::{self, Statistics};
use crate::support::{End::*, Script};
use capfile::{Block, Reader};
use trace::{Analyzer, Clock, Config, Connection, Nobody, Segment};
use wire::link::LinkType;
use wire::packet::{Packet, decode};
use wire::tcp::Tcp;

/// A frame, its link type, when it was captured, and its length as sent.
struct Captured {
    link: LinkType,
    time: i64,
    octets: Vec<u8>,
    length: u32,
}

/// Adds the encapsulations to an IPv4 packet; the last argument is true if end `a` sent it.
type Wrap = fn(Vec<u8>, bool) -> Vec<u8>;

const WAYS: &[(&str, LinkType, Wrap)] = &[
    ("ethernet", LinkType::ETHERNET, |ip, _| {
        ethernet(&[], 0x0800, ip)
    }),
    ("vlan", LinkType::ETHERNET, |ip, _| {
        ethernet(&[0x8100, 100], 0x0800, ip)
    }),
    ("qinq", LinkType::ETHERNET, |ip, _| {
        ethernet(&[0x88a8, 7, 0x8100, 100], 0x0800, ip)
    }),
    ("sll", LinkType::LINUX_SLL, |ip, _| {
        joined(&[&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0], &ip])
    }),
    ("sll2", LinkType::LINUX_SLL2, |ip, _| {
        joined(&[
            &[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0],
            &ip,
        ])
    }),
    ("raw", LinkType::RAW, |ip, _| ip),
    ("mpls", LinkType::ETHERNET, |ip, _| {
        ethernet(&[], 0x8847, joined(&[&[0, 1, 0, 64, 0, 2, 1, 64], &ip]))
    }),
    ("pppoe", LinkType::ETHERNET, |ip, _| {
        let length = (ip.len() as u16 + 2).to_be_bytes();
        ethernet(
            &[],
            0x8864,
            joined(&[&[0x11, 0, 0, 9], &length, &[0, 0x21], &ip]),
        )
    }),
    ("gre", LinkType::ETHERNET, |ip, from_a| {
        outer(47, joined(&[&[0, 0, 8, 0], &ip]), from_a)
    }),
    ("ipip", LinkType::ETHERNET, |ip, from_a| {
        outer(4, ip, from_a)
    }),
    ("vxlan", LinkType::ETHERNET, |ip, from_a| {
        let inside = ethernet(&[], 0x0800, ip);
        udp(4789, joined(&[&[8, 0, 0, 0, 0, 0, 5, 0], &inside]), from_a)
    }),
    ("l2tp", LinkType::ETHERNET, |ip, from_a| {
        let head = [0, 2, 0, 7, 0, 9, 0xff, 3, 0, 0x21];
        udp(1701, joined(&[&head, &ip]), from_a)
    }),
];

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn ethernet(tags: &[u16], ethertype: u16, inside: Vec<u8>) -> Vec<u8> {
    let mut frame = vec![2; 12];
    for word in tags.iter().chain([&ethertype]) {
        frame.extend(word.to_be_bytes());
    }
    frame.extend(inside);
    frame
}

/// In an IPv4 packet of two routers, on Ethernet.
fn outer(protocol: u8, inside: Vec<u8>, from_a: bool) -> Vec<u8> {
    let packet = ipv4(9, protocol, [10, 9, 9], from_a, inside);
    ethernet(&[], 0x0800, packet)
}

fn udp(port: u16, inside: Vec<u8>, from_a: bool) -> Vec<u8> {
    let length = (inside.len() as u16 + 8).to_be_bytes();
    let port = port.to_be_bytes();
    let head = joined(&[&port, &port, &length, &[0, 0]]);
    outer(17, joined(&[&head, &inside]), from_a)
}

fn ipv4(id: u16, protocol: u8, net: [u8; 3], from_a: bool, inside: Vec<u8>) -> Vec<u8> {
    let (source, destination) = if from_a { (1, 2) } else { (2, 1) };
    let length = u16::try_from(inside.len() + 20).unwrap_or(0);
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend([0, 0, 64, protocol, 0, 0]);
    packet.extend([&net[..], &[source], &net[..], &[destination]].concat());
    packet.extend(inside);
    packet
}

/// TCP header and payload of a segment.
fn tcp(segment: &Segment, from_a: bool) -> Vec<u8> {
    let ports = if from_a {
        [40_000u16, 80]
    } else {
        [80, 40_000]
    };
    let mut octets: Vec<u8> = ports.into_iter().flat_map(u16::to_be_bytes).collect();
    octets.extend(segment.sequence.to_be_bytes());
    octets.extend(segment.acknowledgment.to_be_bytes());
    octets.extend([0x50, segment.flags as u8]);
    octets.extend(segment.window.to_be_bytes());
    octets.extend([0; 4]);
    octets.resize(20 + segment.payload as usize, b'x');
    octets
}

/// A conversation with a little of everything.
fn conversation() -> Script {
    let mut script = Script::begun();
    for round in 0..10 {
        script.data(A, 1_000);
        script.data(B, 400);
        let at = 1 + round * 1_000;
        if round % 3 == 1 {
            script.wait(300);
            script.octets(A, at, at + 1_000);
        }
        script.ack(B);
        script.ack(B);
    }
    script.close();
    script
}

fn frames(script: &Script, link: LinkType, wrap: Wrap) -> Vec<Captured> {
    let first = script.segments[0].from_low;
    let frame = |segment: &Segment| {
        let from_a = segment.from_low == first;
        let ip = ipv4(segment.id, 6, [10, 0, 0], from_a, tcp(segment, from_a));
        let octets = wrap(ip, from_a);
        Captured {
            link,
            time: segment.time,
            length: octets.len() as u32,
            octets,
        }
    };
    script.segments.iter().map(frame).collect()
}

struct Analysis {
    analyzer: Analyzer,
    clock: Clock,
    number: u64,
}

impl Analysis {
    fn new() -> Analysis {
        Analysis {
            analyzer: Analyzer::new(Config::default()),
            clock: Clock::default(),
            number: 0,
        }
    }

    fn frame(&mut self, link: LinkType, time: i64, octets: &[u8], length: u32) {
        self.number += 1;
        self.clock.tick(time);
        let mut packet = Packet::new();
        decode(link, octets, length, &mut packet).expect("an IP packet");
        let tcp = Tcp::parse(&packet).expect("a TCP segment");
        let segment = Segment::new(self.number, time, self.clock.now(), &packet, &tcp, 0);
        let layers = packet.layers.as_slice();
        self.analyzer.packet(&segment, layers, &mut Nobody);
    }

    fn connection(mut self) -> Connection {
        self.analyzer.finish();
        let [finished] = self.analyzer.take_finished().try_into().unwrap();
        let mut connection = Connection::default();
        connection.thaw(&finished.octets).unwrap();
        connection
    }
}

fn analysed(frames: &[Captured]) -> Connection {
    let mut analysis = Analysis::new();
    for one in frames {
        analysis.frame(one.link, one.time, &one.octets, one.length);
    }
    analysis.connection()
}

#[test]
fn each_encapsulation_gives_the_statistics_of_the_segments_alone() {
    let script = conversation();
    let alone = statistics::of(&script.connection());
    assert_eq!(alone["a.retransmitted_packets"], 3);
    for (name, link, wrap) in WAYS {
        let connection = analysed(&frames(&script, *link, *wrap));
        assert_eq!(statistics::of(&connection), alone, "{name}");
        let wrapped = !["ethernet", "sll", "sll2", "raw"].contains(name);
        assert_eq!(!connection.a.layers.is_empty(), wrapped, "{name}");
    }
}

/// Writes numbers in one byte order.
#[derive(Clone, Copy)]
enum Order {
    Big,
    Little,
}

impl Order {
    fn long(self, out: &mut Vec<u8>, value: u32) {
        match self {
            Order::Big => out.extend(value.to_be_bytes()),
            Order::Little => out.extend(value.to_le_bytes()),
        }
    }

    fn short(self, out: &mut Vec<u8>, value: u16) {
        match self {
            Order::Big => out.extend(value.to_be_bytes()),
            Order::Little => out.extend(value.to_le_bytes()),
        }
    }
}

fn pcap(frames: &[Captured], order: Order, nanoseconds: bool) -> Vec<u8> {
    let mut file = Vec::new();
    order.long(
        &mut file,
        if nanoseconds {
            0xa1b2_3c4d
        } else {
            0xa1b2_c3d4
        },
    );
    order.short(&mut file, 2);
    order.short(&mut file, 4);
    for word in [0, 0, 65_535, u32::from(frames[0].link.0)] {
        order.long(&mut file, word);
    }
    for one in frames {
        let unit = if nanoseconds { 1 } else { 1_000 };
        order.long(&mut file, (one.time / 1_000_000_000) as u32);
        order.long(&mut file, (one.time % 1_000_000_000 / unit) as u32);
        order.long(&mut file, one.octets.len() as u32);
        order.long(&mut file, one.length);
        file.extend(&one.octets);
    }
    file
}

fn pcapng(frames: &[Captured], order: Order) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0x0a0d_0d0a, 28, 0x1a2b_3c4d] {
        order.long(&mut file, word);
    }
    order.short(&mut file, 1);
    order.short(&mut file, 0);
    for word in [u32::MAX, u32::MAX, 28, 1, 20] {
        order.long(&mut file, word);
    }
    order.short(&mut file, frames[0].link.0);
    order.short(&mut file, 0);
    for word in [0, 20] {
        order.long(&mut file, word);
    }
    for one in frames {
        let length = 32 + one.octets.len().next_multiple_of(4) as u32;
        let microseconds = (one.time / 1_000) as u64;
        let captured = one.octets.len() as u32;
        for word in [
            6,
            length,
            0,
            (microseconds >> 32) as u32,
            microseconds as u32,
        ] {
            order.long(&mut file, word);
        }
        order.long(&mut file, captured);
        order.long(&mut file, one.length);
        file.extend(&one.octets);
        file.resize(file.len().next_multiple_of(4), 0);
        order.long(&mut file, length);
    }
    file
}

fn read(file: &[u8]) -> Statistics {
    let mut reader = Reader::new(file).unwrap();
    let mut block = Block::new();
    let mut analysis = Analysis::new();
    while reader.read_block(&mut block).unwrap() {
        for record in block.records() {
            let octets = block.bytes(record);
            analysis.frame(record.link, record.time_ns, octets, record.length);
        }
    }
    assert!(reader.faults().is_empty());
    statistics::of(&analysis.connection())
}

#[test]
fn each_kind_of_pcap_and_pcapng_gives_the_statistics_of_the_segments_alone() {
    let script = conversation();
    let alone = statistics::of(&script.connection());
    for (name, link, wrap) in WAYS {
        let frames = frames(&script, *link, *wrap);
        for order in [Order::Big, Order::Little] {
            assert_eq!(read(&pcap(&frames, order, false)), alone, "{name}");
            assert_eq!(read(&pcap(&frames, order, true)), alone, "{name}");
            assert_eq!(read(&pcapng(&frames, order)), alone, "{name}");
        }
    }
}

#[test]
fn large_segments_of_a_network_card_count_in_full() {
    // The IP length is right; it is 0, as for a segment that the network card will split; and it is
    // 0 because the packet is longer than the field can express.
    for (payload, zero) in [(40_000, false), (40_000, true), (180_000, true)] {
        let mut script = Script::begun();
        script.data(A, payload);
        script.ack(B);
        let mut frames = frames(&script, LinkType::ETHERNET, WAYS[0].2);
        let frame = &mut frames[3];
        if zero {
            frame.octets[16..18].fill(0);
        }
        // The capture keeps only the headers.
        frame.octets.truncate(94);
        let a = analysed(&frames).a;
        assert_eq!(a.unique_bytes, u64::from(payload));
        assert_eq!(a.segment_max, payload);
        assert_eq!(a.truncated_bytes, u64::from(payload) - 40);
        assert_eq!(a.rtt_full_size, payload);
    }
}

#[test]
fn a_segment_of_big_tcp_over_ipv6_counts_in_full() {
    // RFC 2675: a payload length of 0; with the jumbo payload option, and, as Linux captures them, without.
    for option in [true, false] {
        let payload = 190_000u32;
        let segment = *Script::begun().data(A, payload);
        let tcp = tcp(&segment, true);
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, if option { 0 } else { 6 }, 64];
        packet.extend([1; 16]);
        packet.extend([2; 16]);
        if option {
            packet.extend([6, 0, 0xc2, 4]);
            packet.extend((tcp.len() as u32 + 8).to_be_bytes());
        }
        packet.extend(tcp);
        let octets = ethernet(&[], 0x86dd, packet);
        let mut analysis = Analysis::new();
        let length = octets.len() as u32;
        analysis.frame(LinkType::ETHERNET, segment.time, &octets[..200], length);
        let a = analysis.connection().a;
        assert_eq!((a.unique_bytes, a.ipv6_packets), (payload.into(), 1));
    }
}
