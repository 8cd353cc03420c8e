//! Tests handshakes that are repeated, that cross each other, or that start again.

use crate::support::{ACK, End, End::*, RST, SYN, Script, connections, options};

/// Continues with new initial sequence numbers on the same ports.
fn restarted(script: Script, a: u32, b: u32) -> Script {
    let mut next = Script::starting_at(a, b);
    next.time = script.time;
    next.segments = script.segments;
    next
}

/// SYN, SYN-ACK with 9,000, SYN-ACK with `second`, and then the handshake and 10,000 bytes with `used`.
fn two_syn_acks(second: u32, used: u32, before: bool) -> Script {
    let mut script = Script::starting_at(1_000, used);
    script.flags(A, SYN);
    script.flags(B, SYN | ACK).sequence = 9_000;
    if before {
        script.flags(B, SYN | ACK).sequence = second;
        script.segments.last_mut().unwrap().acknowledgment = 1_001;
    }
    script.ack_of(A, 1);
    if !before {
        let mut stray = script.segments[1];
        stray.sequence = second;
        stray.id += 100;
        stray.time = script.time;
        script.segments.push(stray);
        script.wait(1);
    }
    for at in 0..10 {
        script.octets(B, 1 + at * 1_000, 1_001 + at * 1_000);
    }
    script.ack_of(A, 10_001);
    script
}

#[test]
fn a_syn_ack_with_another_number_leaves_the_stream_as_it_was() {
    for second in [400, 2_000_000_000, 9_500] {
        for (used, before) in [(9_000, true), (second, true), (9_000, false)] {
            let b = two_syn_acks(second, used, before).connection().b;
            let which = format!("{second}, {used} counts, before the ACK: {before}");
            assert_eq!(b.unique_bytes, 10_000, "{which}");
            assert_eq!(
                (b.retransmitted_packets, b.out_of_order_packets),
                (0, 0),
                "{which}"
            );
            assert_eq!((b.syns, b.bad_behaviour), (2, true), "{which}");
            assert_eq!(b.syn.map(|syn| syn as u32), Some(used), "{which}");
            assert_eq!(b.initial_bytes, 10_000, "{which}");
            assert_eq!(b.owin.max, 10_000, "{which}");
        }
    }
}

#[test]
fn a_new_handshake_on_the_same_ports_is_a_new_connection() {
    for (a, b) in [
        (1_500, 5_000_500),
        (4_000_000_000, 77),
        (1_000_000, 6_000_000),
    ] {
        let mut script = Script::begun();
        script.data(A, 1_000);
        script.ack(B);
        script.data(A, 1_000);
        script.wait(30_000);
        let mut script = restarted(script, a, b);
        script.handshake();
        script.data(A, 500);
        script.ack(B);
        let connections = connections(&script.segments);
        assert_eq!(connections.len(), 2);
        let [old, new] = &connections[..] else {
            unreachable!()
        };
        assert_eq!((old.packets, old.a.unique_bytes, old.a.syns), (6, 2_000, 1));
        assert_eq!((new.packets, new.a.unique_bytes, new.b.syns), (5, 500, 1));
        assert_eq!(new.a.rtt_handshake, 20_000_000);
        assert!(!new.a.bad_behaviour && !new.b.bad_behaviour);
    }
}

#[test]
fn a_handshake_after_the_middle_of_a_connection_is_a_new_one_and_a_late_syn_is_not() {
    let mut script = Script::begun();
    script.data(A, 1_000);
    script.ack(B);
    let whole = script.segments.clone();
    script.segments.drain(..3);
    let mut script = restarted(script, 70_000, 90_000);
    script.handshake();
    assert_eq!(connections(&script.segments).len(), 2);
    // The capture has the SYN after its answer.
    let mut late = whole;
    late.swap(0, 1);
    late.swap(1, 2);
    assert_eq!(late[2].flags, SYN);
    assert_eq!(connections(&late).len(), 1);
}

#[test]
fn both_syn_acks_of_a_simultaneous_open_are_no_retransmissions() {
    let mut script = Script::new();
    script.flags(A, SYN);
    script.flags(B, SYN);
    script.wait(18);
    script.flags(A, SYN | ACK).sequence -= 1;
    script.flags(B, SYN | ACK).sequence -= 1;
    let syn_acks = &mut script.segments[2..];
    (syn_acks[0].acknowledgment, syn_acks[1].acknowledgment) = (5_000_001, 1_001);
    for end in [A, B] {
        script.octets(end, 1, 101);
    }
    let connection = script.connection();
    for (direction, answered) in [(&connection.a, 21_000_000), (&connection.b, 19_000_000)] {
        assert_eq!(direction.retransmitted_packets, 0);
        assert_eq!(
            (direction.retransmitted_bytes, direction.unique_bytes),
            (0, 100)
        );
        assert_eq!((direction.syns, direction.bad_behaviour), (2, false));
        assert_eq!(direction.rtt.max, answered);
        assert_eq!(direction.rtt_ambiguous.count, 0);
    }
}

#[test]
fn first_data_that_the_capture_has_late_is_in_the_initial_window() {
    let mut script = Script::begun();
    script.octets(B, 1_001, 2_001);
    script.wait(300);
    script.octets(B, 1, 1_001);
    script.octets(B, 1, 1_001);
    script.ack_of(A, 2_001);
    let b = script.connection().b;
    assert_eq!((b.initial_bytes, b.initial_packets), (2_000, 2));
    assert_eq!(b.retransmitted_packets, 2);
}

#[test]
fn ecn_flags_of_a_handshake_count_neither_as_ece_nor_as_cwr() {
    const ECE: u16 = 0x40;
    const CWR: u16 = 0x80;
    let mut script = Script::new();
    script.flags(A, SYN | ECE | CWR);
    script.flags(B, SYN | ACK | ECE);
    script.ack(A);
    script.data(A, 100).flags |= CWR;
    script.ack(B).flags |= ECE;
    let connection = script.connection();
    let counts = |end: End| {
        let direction = if end == A {
            &connection.a
        } else {
            &connection.b
        };
        (direction.ece_packets, direction.cwr_packets)
    };
    assert_eq!((counts(A), counts(B)), ((0, 1), (1, 0)));
}

#[test]
fn a_reset_and_a_syn_sent_again_are_what_they_were() {
    let mut script = Script::new();
    script.flags(A, SYN).options = options(&[2, 4, 5, 180]);
    let mut again = script.segments[0];
    again.time += 1_000_000_000;
    script.wait(1_000);
    again.id += 1;
    script.segments.push(again);
    script.flags(B, RST | ACK);
    let a = script.connection().a;
    assert_eq!((a.syns, a.retransmitted_packets, a.mss), (2, 1, 1_460));
}
