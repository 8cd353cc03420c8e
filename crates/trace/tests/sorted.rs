//! With many connections at once, packets are sorted by flow before they are analysed. The results are the same.

use std::io::Cursor;

use trace::{Captures, Error, Findings, Options, Watch};

/// Connections that are open at once.
const FLOWS: u32 = 1_000;

/// Packets of each flow.
const ROUNDS: u32 = 30;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// A capture of [`FLOWS`] flows that take turns, in an order that changes with each round. A seventh is in a VLAN.
/// Each flow closes and is used by a second connection.
fn capture() -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1u32] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for round in 0..ROUNDS {
        for turn in 0..FLOWS {
            let flow = (turn * 7 + round * 311) % FLOWS;
            let frame = frame(flow, round);
            let time_us = (round * FLOWS + turn) * 20;
            let length = frame.len() as u32;
            for word in [time_us / 1_000_000, time_us % 1_000_000, length, length] {
                file.extend_from_slice(&word.to_le_bytes());
            }
            file.extend_from_slice(&frame);
        }
    }
    file
}

/// Flags of a flow's packets, whether the client sent each, the payload, and the bytes that both ends sent before.
const STEPS: [(u8, bool, usize, [u32; 2]); 15] = [
    (SYN, true, 0, [0, 0]),
    (SYN | ACK, false, 0, [1, 0]),
    (ACK, true, 0, [1, 1]),
    (ACK | PSH, true, 100, [1, 1]),
    (ACK, false, 0, [101, 1]),
    (ACK | PSH, false, 200, [101, 1]),
    // The same once more, and then a gap.
    (ACK | PSH, false, 200, [101, 1]),
    (ACK, true, 0, [101, 201]),
    (ACK | PSH, false, 50, [101, 301]),
    (ACK | PSH, false, 100, [101, 201]),
    (ACK, true, 0, [101, 351]),
    (ACK | FIN, true, 0, [101, 351]),
    (ACK | FIN, false, 0, [102, 351]),
    (ACK, true, 0, [102, 352]),
    // A copy of the last one.
    (ACK, true, 0, [102, 352]),
];

fn frame(flow: u32, round: u32) -> Vec<u8> {
    let (flags, from_client, payload, offsets) = STEPS[round as usize % STEPS.len()];
    let second = round / STEPS.len() as u32;
    let start = [
        1_000 * flow + 77_777 * second,
        2_000 * flow + 99_999 * second,
    ];
    let [client, server] = [start[0] + offsets[0], start[1] + offsets[1]];
    let client_port = 10_000 + flow as u16;
    let (ports, numbers) = match from_client {
        true => ([client_port, 80], [client, server]),
        false => ([80, client_port], [server, client]),
    };
    let mut tcp = Vec::new();
    tcp.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    tcp.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
    tcp.extend([0x50, flags, 0x20, 0, 0, 0, 0, 0]);
    tcp.resize(20 + payload, b'x');
    let mut ip = vec![0x45, 0];
    ip.extend((20 + tcp.len() as u16).to_be_bytes());
    ip.extend(((flow + round) as u16).to_be_bytes());
    ip.extend([0x40, 0, 64, 6, 0, 0]);
    let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let [from, to] = if from_client { [0, 1] } else { [1, 0] };
    ip.extend(ends[from].iter().chain(&ends[to]));
    let mut frame = vec![2; 12];
    if flow.is_multiple_of(7) {
        frame.extend([0x81, 0, 0, (flow % 200) as u8]);
    }
    frame.extend([8, 0]);
    frame.extend(ip);
    frame.extend(tcp);
    frame
}

/// Needs no packets, but connections as they finish: packets are then analysed in the order of the capture.
struct InOrder;

impl Watch for InOrder {
    const PACKETS: bool = false;
    type Error = Error;
}

fn captures(threads: usize) -> Captures {
    let options = Options {
        threads: Some(threads),
        seed: Some(7),
        ..Options::default()
    };
    Captures::from_reader("memory", Cursor::new(capture()), options)
}

fn frozen(found: &Findings) -> Vec<Vec<u8>> {
    let mut room = Vec::new();
    (0..found.len())
        .map(|at| found.frozen(at, &mut room).unwrap().to_vec())
        .collect()
}

#[test]
fn packets_sorted_by_flow_give_the_same_connections() {
    let (in_order, InOrder) = captures(1).read_with(InOrder).unwrap();
    assert_eq!(in_order.len() as u32, 2 * FLOWS);
    let tagged = in_order
        .connections()
        .filter(|connection| !connection.as_ref().unwrap().a.layers.is_empty());
    assert_eq!(tagged.count() as u32, 2 * FLOWS.div_ceil(7));
    for threads in [1, 2, 5] {
        let sorted = captures(threads).read().unwrap();
        assert_eq!(in_order.summary(), sorted.summary());
        assert_eq!(frozen(&in_order), frozen(&sorted), "{threads} threads");
    }
}
