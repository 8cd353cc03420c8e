use proptest::prelude::*;
use wire::checksum::{fold, pseudo_sum, sum};
use wire::virtio::{Gso, Header};

use super::*;
use crate::split::{Opened, open};

/// A packet to be made.
#[derive(Debug, Clone)]
struct Plan {
    is_v6: bool,
    is_tcp: bool,
    /// Tells flows apart.
    port: u16,
    payload: usize,
    sequence: u32,
    identification: u16,
    flags: u8,
    acknowledged: u32,
    traffic_class: u8,
    must_stay_whole: bool,
    options: bool,
}

const PLAIN: Plan = Plan {
    is_v6: false,
    is_tcp: true,
    port: 1000,
    payload: 100,
    sequence: 0xffff_ff80,
    identification: 0xfffe,
    flags: 0x10,
    acknowledged: 77,
    traffic_class: 0,
    must_stay_whole: true,
    options: true,
};

impl Plan {
    fn packet(&self) -> Vec<u8> {
        let mut transport = self.port.to_be_bytes().to_vec();
        transport.extend([0, 80]);
        if self.is_tcp {
            transport.extend(self.sequence.to_be_bytes());
            transport.extend(self.acknowledged.to_be_bytes());
            let words = if self.options { 8 } else { 5 };
            transport.extend([words << 4, self.flags, 0x20, 0, 0, 0, 0, 0]);
            if self.options {
                transport.extend([1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
            }
        } else {
            transport.extend((8 + self.payload as u16).to_be_bytes());
            transport.extend([0, 0]);
        }
        transport.extend((0..self.payload).map(|n| (n * 7) as u8 ^ self.sequence as u8));
        let mut packet = self.ip_header(transport.len());
        let addresses = if self.is_v6 { 8..40 } else { 12..20 };
        let pseudo = pseudo_sum(&packet[addresses], self.protocol(), transport.len());
        let total = fold(u64::from(pseudo) + u64::from(sum(&transport)));
        let place = if self.is_tcp { 16 } else { 6 };
        let checksum = match !total {
            0 if !self.is_tcp => 0xffff,
            checksum => checksum,
        };
        transport[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
        packet.extend(transport);
        packet
    }

    fn protocol(&self) -> u8 {
        if self.is_tcp { 6 } else { 17 }
    }

    fn ip_header(&self, length: usize) -> Vec<u8> {
        if self.is_v6 {
            let class = self.traffic_class;
            let mut head = vec![0x60 | class >> 4, class << 4, 0, 9];
            head.extend((length as u16).to_be_bytes());
            head.extend([self.protocol(), 64]);
            head.extend([0x20; 16]);
            head.extend([0x30; 16]);
            return head;
        }
        let mut head = vec![0x45, self.traffic_class];
        head.extend((length as u16 + 20).to_be_bytes());
        head.extend(self.identification.to_be_bytes());
        head.extend([if self.must_stay_whole { 0x40 } else { 0 }, 0]);
        head.extend([64, self.protocol(), 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        let checksum = !sum(&head);
        head[10..12].copy_from_slice(&checksum.to_be_bytes());
        head
    }

    /// `count` packets, one after the other, the last of `last` octets.
    fn run(&self, count: usize, last: usize) -> Vec<Vec<u8>> {
        let mut plan = self.clone();
        let mut packets = Vec::new();
        for n in 0..count {
            if n + 1 == count {
                plan.payload = last;
            }
            packets.push(plan.packet());
            plan.sequence = plan.sequence.wrapping_add(plan.payload as u32);
            plan.identification = plan.identification.wrapping_add(1);
        }
        packets
    }
}

fn join(joiner: &mut Joiner, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut emitted = Vec::new();
    let mut emit = |octets: &[u8]| emitted.push(octets.to_vec());
    for packet in packets {
        joiner.push(packet, &mut emit);
    }
    joiner.flush(&mut emit);
    emitted
}

/// What a device that cuts makes of it.
fn cut(emitted: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for octets in emitted {
        let mut octets = octets.clone();
        match open(&mut octets).unwrap() {
            Opened::One(packet) => packets.push(packet.to_vec()),
            Opened::Several(segments) => {
                for n in 0..segments.count() {
                    let mut packet = Vec::new();
                    segments.append(n, &mut packet).unwrap();
                    packets.push(packet);
                }
            }
        }
    }
    packets
}

fn plans() -> impl Strategy<Value = Plan> {
    let kind = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let numbers = (1_usize..300, any::<u32>(), any::<u16>(), 0_u16..3);
    (kind, numbers).prop_map(|((is_v6, is_tcp, whole, options), numbers)| Plan {
        is_v6,
        is_tcp,
        port: numbers.3,
        payload: numbers.0,
        sequence: numbers.1,
        identification: numbers.2,
        must_stay_whole: whole,
        options,
        ..PLAIN
    })
}

fn runs_have(runs: &[(Plan, usize)], packet: &Vec<u8>) -> bool {
    let mut all = runs
        .iter()
        .flat_map(|(plan, count)| plan.run(*count, plan.payload));
    all.any(|one| one == *packet)
}

proptest! {
    #[test]
    fn a_run_becomes_one_packet_that_is_cut_into_the_same_run(
        plan in plans(),
        count in 2_usize..60,
        last: prop::sample::Index,
        push: bool,
    ) {
        let mut run = plan.run(count, 1 + last.index(plan.payload));
        if push && plan.is_tcp {
            let mut end = plan.clone();
            end.sequence = plan.sequence.wrapping_add((plan.payload * (count - 1)) as u32);
            end.identification = plan.identification.wrapping_add(count as u16 - 1);
            (end.payload, end.flags) = (1 + last.index(plan.payload), 0x19);
            run[count - 1] = end.packet();
        }
        let mut joiner = Joiner::new(Options::default());
        let emitted = join(&mut joiner, &run);
        prop_assert_eq!(emitted.len(), 1);
        prop_assert_eq!(cut(&emitted), run);
        prop_assert_eq!(joiner.stats().joined, count as u64);
    }

    /// Several flows at once, damaged anywhere: each packet goes on as it came, those of a flow in their order.
    #[test]
    fn whatever_comes_leaves_octet_for_octet(
        runs in prop::collection::vec((plans(), 1_usize..8), 1..6),
        order in prop::collection::vec(any::<prop::sample::Index>(), 40),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 0..4),
        lanes in 1_usize..4,
    ) {
        let mut queues: Vec<Vec<Vec<u8>>> = runs
            .iter()
            .map(|(plan, count)| plan.run(*count, plan.payload))
            .collect();
        queues.iter_mut().for_each(|queue| queue.reverse());
        let mut packets = Vec::new();
        for index in order {
            queues.retain(|queue| !queue.is_empty());
            if !queues.is_empty() {
                let at = index.index(queues.len());
                packets.extend(queues[at].pop());
            }
        }
        for (which, place, octet) in damage {
            let packet = which.index(packets.len());
            let at = place.index(packets[packet].len());
            packets[packet][at] = octet;
        }
        let mut joiner = Joiner::new(Options { lanes, udp: true });
        let mut out = cut(&join(&mut joiner, &packets));
        let is_whole = packets.iter().all(|packet| runs_have(&runs, packet));
        // Of a flow; but a damaged packet may be of another one than it was.
        let flow = |packet: &Vec<u8>| {
            let (protocol, at) = if packet[0] == 0x60 { (6, 40) } else { (9, 20) };
            (packet[0], packet[protocol], packet[at..at + 2].to_vec())
        };
        if is_whole {
            packets.sort_by_key(flow);
            out.sort_by_key(flow);
        } else {
            packets.sort();
            out.sort();
        }
        prop_assert_eq!(out, packets);
    }

    #[test]
    fn any_octets_pass(packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..10)) {
        let mut joiner = Joiner::new(Options::default());
        let emitted = join(&mut joiner, &packets);
        prop_assert_eq!(emitted.len(), packets.len());
    }
}

/// How many packets leave when the second of two was made otherwise.
fn emitted_with(change: impl FnOnce(&mut Plan)) -> usize {
    let mut second = PLAIN;
    second.sequence = second.sequence.wrapping_add(100);
    second.identification = second.identification.wrapping_add(1);
    change(&mut second);
    let packets = [PLAIN.packet(), second.packet()];
    join(&mut Joiner::new(Options::default()), &packets).len()
}

#[test]
fn a_segment_with_another_header_is_not_joined() {
    assert_eq!(emitted_with(|_| {}), 1);
    assert_eq!(emitted_with(|plan| plan.payload = 40), 1);
    assert_eq!(emitted_with(|plan| plan.flags |= PSH_FIN), 1);
    assert_eq!(emitted_with(|plan| plan.payload = 101), 2);
    assert_eq!(emitted_with(|plan| plan.payload = 0), 2);
    assert_eq!(emitted_with(|plan| plan.sequence += 1), 2);
    assert_eq!(emitted_with(|plan| plan.acknowledged += 1), 2);
    assert_eq!(emitted_with(|plan| plan.options = false), 2);
    assert_eq!(emitted_with(|plan| plan.traffic_class = 3), 2);
    assert_eq!(emitted_with(|plan| plan.must_stay_whole = false), 2);
    assert_eq!(emitted_with(|plan| plan.identification -= 9), 2);
    assert_eq!(emitted_with(|plan| plan.port += 1), 2);
    for flag in [0x02, 0x04, 0x20, 0x40, 0x80] {
        assert_eq!(emitted_with(|plan| plan.flags |= flag), 2, "{flag:#x}");
    }
}

const PSH_FIN: u8 = 0x09;

#[test]
fn an_identification_may_stand_still_only_where_nobody_may_look_at_it() {
    let still = |plan: &mut Plan| plan.identification = PLAIN.identification;
    assert_eq!(emitted_with(still), 1);
    let mut plan = PLAIN;
    plan.must_stay_whole = false;
    let first = plan.packet();
    plan.sequence = plan.sequence.wrapping_add(100);
    let packets = [first, plan.packet()];
    assert_eq!(
        join(&mut Joiner::new(Options::default()), &packets).len(),
        2
    );
}

#[test]
fn a_damaged_packet_is_not_mended() {
    for damaged in 0..3 {
        for is_tcp in [false, true] {
            let plan = Plan { is_tcp, ..PLAIN };
            let mut run = plan.run(3, 100);
            let last = run[damaged].len() - 1;
            run[damaged][last] ^= 1;
            let mut joiner = Joiner::new(Options::default());
            let emitted = join(&mut joiner, &run);
            assert!(emitted.contains(&[vec![0; FRONT], run[damaged].clone()].concat()));
            assert_eq!(cut(&emitted), run);
            assert!(joiner.stats().bad_checksum > 0);
        }
    }
}

#[test]
fn push_ends_a_larger_packet_and_congestion_window_reduced_begins_one() {
    let mut run = PLAIN.run(4, 100);
    for (n, flags) in [(0, 0x90), (1, 0x18)] {
        let plan = Plan {
            flags,
            sequence: PLAIN.sequence.wrapping_add(100 * n),
            identification: PLAIN.identification.wrapping_add(n as u16),
            ..PLAIN
        };
        run[n as usize] = plan.packet();
    }
    let emitted = join(&mut Joiner::new(Options::default()), &run);
    assert_eq!(emitted.len(), 2);
    assert_eq!(cut(&emitted), run);
    let header = Header::parse(&emitted[0]).unwrap();
    assert_eq!((header.gso, header.ecn), (Gso::TcpV4, true));
    assert_eq!((header.segment_size, header.header_length), (100, 52));
    assert_eq!((header.checksum_start, header.checksum_offset), (20, 16));
    assert!(header.needs_checksum());
}

#[test]
fn a_larger_packet_has_an_end() {
    let udp = Plan {
        is_tcp: false,
        ..PLAIN
    };
    let emitted = join(&mut Joiner::new(Options::default()), &udp.run(130, 100));
    let lengths: Vec<usize> = emitted
        .iter()
        .map(|octets| octets.len() - FRONT - 28)
        .collect();
    assert_eq!(lengths, [6400, 6400, 200]);
    let tcp = Plan {
        payload: 1400,
        ..PLAIN
    };
    for is_v6 in [false, true] {
        let run = Plan {
            is_v6,
            ..tcp.clone()
        }
        .run(100, 1400);
        let emitted = join(&mut Joiner::new(Options::default()), &run);
        assert_eq!(emitted.len(), 3);
        assert!(emitted.iter().all(|octets| octets.len() <= FRONT + 65_535));
        assert_eq!(cut(&emitted), run);
    }
}

#[test]
fn udp_is_left_alone_where_the_kernel_cannot_cut_it_or_it_has_no_checksum() {
    let udp = Plan {
        is_tcp: false,
        ..PLAIN
    };
    let options = Options {
        lanes: 1,
        udp: false,
    };
    assert_eq!(join(&mut Joiner::new(options), &udp.run(3, 100)).len(), 3);
    let mut run = udp.run(3, 100);
    run.iter_mut().for_each(|packet| packet[26..28].fill(0));
    let emitted = join(&mut Joiner::new(Options::default()), &run);
    assert_eq!((emitted.len(), cut(&emitted)), (3, run));
}

#[test]
fn fragments_flush_what_the_same_sender_has_and_what_is_too_long_is_dropped() {
    let mut fragment = PLAIN.packet();
    fragment[6] = 0x20;
    let other = Plan {
        port: 2000,
        is_v6: true,
        ..PLAIN
    };
    let mut joiner = Joiner::new(Options::default());
    let mut emitted = Vec::new();
    let mut emit = |octets: &[u8]| emitted.push(octets[FRONT]);
    joiner.push(&other.packet(), &mut emit);
    joiner.push(&PLAIN.packet(), &mut emit);
    joiner.push(&fragment, &mut emit);
    joiner.push(&vec![0x60; PACKET_MAX + 1], &mut emit);
    joiner.flush(&mut emit);
    assert_eq!(emitted, [0x45, 0x45, 0x60]);
    let stats = joiner.stats();
    assert_eq!((stats.packets, stats.emitted, stats.too_long), (4, 3, 1));
}

/// Packets of many flows in turn, `rounds` of each.
fn alternating(flows: u16, rounds: usize) -> Vec<Vec<u8>> {
    let runs: Vec<Vec<Vec<u8>>> = (0..flows)
        .map(|flow| {
            let plan = Plan {
                port: 1000 + flow,
                is_v6: flow % 3 == 0,
                is_tcp: flow % 2 == 0,
                ..PLAIN
            };
            plan.run(rounds, plan.payload)
        })
        .collect();
    (0..rounds)
        .flat_map(|round| runs.iter().map(move |run| run[round].clone()))
        .collect()
}

#[test]
fn packets_of_64_flows_in_turn_become_one_packet_for_each_flow() {
    let mut joiner = Joiner::new(Options::default());
    // Twice, because the lanes are used again after a flush.
    for _ in 0..2 {
        let packets = alternating(64, 4);
        let emitted = join(&mut joiner, &packets);
        assert_eq!(emitted.len(), 64);
        let (mut all, mut sorted) = (cut(&emitted), packets);
        all.sort();
        sorted.sort();
        assert_eq!(all, sorted);
    }
}

#[test]
fn a_flow_more_than_there_are_lanes_puts_out_one_and_loses_nothing() {
    let lanes = 5;
    let mut joiner = Joiner::new(Options { lanes, udp: true });
    let packets = alternating(6, 3);
    let (mut all, mut sorted) = (cut(&join(&mut joiner, &packets)), packets);
    all.sort();
    sorted.sort();
    assert_eq!(all, sorted);
    let stats = joiner.stats();
    assert_eq!((stats.packets, stats.bad_checksum), (18, 0));
}
