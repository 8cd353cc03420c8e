//! Flows whose packets are known, and the sentence about each.

use super::*;
use crate::key::FlowKey;
use crate::udp::{Datagram, Flows};

const MS: i64 = 1_000_000;

/// The flows of datagrams: whether end `a` sends it, its time in milliseconds, its payload.
fn flow(ports: [u16; 2], datagrams: &[(bool, i64, Vec<u8>)]) -> Flow {
    let mut flows = Flows::new(1, 10);
    flows.explain();
    add(&mut flows, ports, datagrams);
    flows.flows()[0].clone()
}

fn add(flows: &mut Flows, ports: [u16; 2], datagrams: &[(bool, i64, Vec<u8>)]) {
    for (number, (from_a, time, payload)) in (1..).zip(datagrams) {
        let [a, b] = [[1; 16], [2; 16]];
        let (key, from_low) = match from_a {
            true => FlowKey::new(&a, ports[0], &b, ports[1], 0),
            false => FlowKey::new(&b, ports[1], &a, ports[0], 0),
        };
        let datagram = Datagram {
            number,
            time: time * MS,
            key,
            from_low,
            length: payload.len() as u32 + 8,
        };
        flows.packet_with(&datagram, payload, 0);
    }
}

fn dns(id: u16, is_answer: bool) -> Vec<u8> {
    let mut payload = id.to_be_bytes().to_vec();
    payload.extend([if is_answer { 0x81 } else { 1 }, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    payload
}

#[test]
fn questions_of_dns_have_answers_repetitions_and_none() {
    let found = flow(
        [5353, 53],
        &[
            (true, 0, dns(7, false)),
            (false, 20, dns(7, true)),
            (true, 100, dns(8, false)),
            (true, 5100, dns(8, false)),
            (false, 5130, dns(8, true)),
            (false, 5131, dns(8, true)),
            (true, 6000, dns(9, false)),
        ],
    );
    let report = Report::new(&found).unwrap();
    assert_eq!(report.protocol, "dns");
    assert_eq!(
        report.sentence,
        "3 questions, 1 without an answer, 1 sent again; answers took 2.52 s (20.0 ms to 5.03 s, the slowest in packet 5)"
    );
    assert_eq!(report.weight().0, 2);
}

#[test]
fn a_flow_without_numbers_is_not_judged() {
    let datagrams: Vec<_> = (0..20)
        .map(|at| (at % 2 == 0, at * 10, vec![at as u8; 40]))
        .collect();
    let found = flow([1000, 2000], &datagrams);
    let report = Report::new(&found).unwrap();
    assert_eq!(report.protocol, "unknown");
    assert_eq!(
        report.sentence,
        "cannot say: 10 packets from a to b and 10 back show no sequence numbers"
    );
    assert_eq!(report.weight().0, 0);
    assert_eq!(report.traffic.a.silence, (20 * MS, 3));
    assert!(!report.traffic.last_from_a);
}

#[test]
fn a_lost_packet_of_wireguard_is_in_the_sentence() {
    let payload = |number: u64| {
        let mut payload = vec![4, 0, 0, 0, 1, 2, 3, 4];
        payload.extend(number.to_le_bytes());
        payload.resize(48, 0);
        payload
    };
    let numbers = (0..100u64).filter(|number| !(50..54).contains(number));
    let datagrams: Vec<_> = numbers.map(|number| (true, 5, payload(number))).collect();
    let found = flow([51_820, 51_820], &datagrams);
    assert_eq!(
        Report::new(&found).unwrap().sentence,
        "4 of 100 WireGuard packets from a to b were lost before this point (4.0 %, at most 4 in a row until packet 51)"
    );
}

#[test]
fn without_being_asked_nothing_is_kept() {
    let datagrams = [(true, 0, vec![1])];
    assert!(Report::new(&flow([1, 2], &datagrams)).is_some());
    let mut flows = Flows::new(1, 10);
    add(&mut flows, [1, 2], &datagrams);
    let plain = &flows.flows()[0];
    assert!(plain.traffic.is_none() && Report::new(plain).is_none());
}
