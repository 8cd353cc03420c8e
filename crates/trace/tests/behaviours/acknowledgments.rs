//! Duplicate ACKs, keep-alives, D-SACK, round trips.

use crate::support::{ACK, End::*, FIN, RST, SYN, Script};

#[test]
fn fin_syn_and_rst_are_never_duplicate_acks() {
    let mut script = Script::begun();
    script.data(A, 1_000);
    script.data(A, 1_000);
    script.ack_of(B, 1_001);
    script.flags(B, FIN | ACK).acknowledgment -= 1_000;
    let mut again = *script.segments.last().unwrap();
    again.id += 100;
    script.segments.push(again);
    script.ack_of(B, 1_001).flags = SYN | ACK;
    script.ack_of(B, 1_001).flags = RST | ACK;
    assert_eq!(script.connection().a.duplicate_acks, 0);
}

#[test]
fn an_ack_with_another_window_or_with_payload_is_no_duplicate() {
    let mut script = Script::begun();
    script.data(A, 1_000);
    script.data(A, 1_000);
    script.ack_of(B, 1_001);
    script.ack_of(B, 1_001).window = 9_000;
    script.data(B, 10).acknowledgment -= 1_000;
    assert_eq!(script.connection().a.duplicate_acks, 0);
    script.ack_of(B, 1_001);
    assert_eq!(script.connection().a.duplicate_acks, 1, "but the next is");
}

#[test]
fn three_duplicates_in_a_row_are_a_triple_once() {
    let mut script = Script::begun();
    script.octets(A, 1, 1_001);
    script.octets(A, 2_001, 3_001);
    for _ in 0..8 {
        script.ack_of(B, 1_001);
    }
    script.octets(A, 1_001, 2_001);
    script.ack(B);
    let a = script.connection().a;
    assert_eq!((a.duplicate_acks, a.triple_duplicate_acks), (7, 1));
}

#[test]
fn a_duplicate_of_an_ack_inside_a_segment_counts() {
    // As in a capture on a sender that leaves segmentation to its network card (TSO).
    let mut script = Script::begun();
    script.data(A, 40_000);
    for _ in 0..4 {
        script.ack_of(B, 14_601);
    }
    let a = script.connection().a;
    assert_eq!((a.duplicate_acks, a.triple_duplicate_acks), (3, 1));
}

/// Six keep-alives, each of `length` octets, and their answers.
fn kept_alive(length: u32) -> Script {
    let mut script = Script::begun();
    script.data(A, 500);
    script.ack(B);
    for _ in 0..6 {
        script.wait(7_000);
        script.octets(A, 500, 500 + length);
        script.ack(B);
    }
    script
}

#[test]
fn keep_alives_have_their_own_counter_and_their_answers_are_no_duplicates() {
    for length in [0, 1] {
        let connection = kept_alive(length).connection();
        let a = &connection.a;
        assert_eq!(a.keep_alives, 6, "of {length} octets");
        assert_eq!((a.retransmitted_packets, a.probe_packets), (0, 0));
        assert_eq!((a.duplicate_acks, a.triple_duplicate_acks), (0, 0));
        assert_eq!(connection.b.duplicate_acks, 0, "nor is a keep-alive one");
        assert_eq!(a.unique_bytes, 500);
    }
}

#[test]
fn keep_alives_are_seen_in_a_capture_that_begins_in_the_middle() {
    for length in [0, 1] {
        let mut script = kept_alive(length);
        // Without the handshake and the data: only keep-alives and answers.
        script.segments.drain(..5);
        let connection = script.connection();
        // The first one says nothing about itself: nothing is acknowledged yet.
        let (end, other) = (&connection.a, &connection.b);
        assert_eq!(end.keep_alives, 5, "of {length} octets");
        assert_eq!((end.retransmitted_packets, end.probe_packets), (0, 0));
        assert_eq!((end.duplicate_acks, other.duplicate_acks), (0, 0));
    }
}

#[test]
fn an_octet_that_is_not_acknowledged_is_sent_again_and_no_keep_alive() {
    let mut script = Script::begun();
    script.data(A, 1);
    script.wait(400);
    script.octets(A, 1, 2);
    let a = script.connection().a;
    assert_eq!((a.keep_alives, a.retransmitted_packets), (0, 1));
}

#[test]
fn a_dsack_is_seen_at_the_wrap_too() {
    for isn in [1_000, 0xffff_ffff - 1_200] {
        let mut script = Script::starting_at(isn, 1);
        script.handshake();
        for _ in 0..4 {
            script.data(A, 1_000);
        }
        // Below the ACK; within the second block; and none.
        script.sack(B, 2_001, &[(1, 1_001)]);
        script.sack(B, 1_001, &[(2_001, 3_001), (2_001, 4_001)]);
        script.sack(B, 1_001, &[(2_001, 3_001)]);
        let b = script.connection().b;
        assert_eq!((b.sack_packets, b.dsack_packets), (3, 2), "from {isn}");
        assert_eq!(b.sack_blocks_max, 2);
    }
}

#[test]
fn a_round_trip_is_measured_from_a_segment_sent_once() {
    let mut script = Script::begun();
    for (wait, again) in [(9, false), (19, false), (39, true), (29, false)] {
        script.data(A, 1_000);
        if again {
            let mut copy = *script.segments.last().unwrap();
            copy.id += 1_000;
            copy.time += 1;
            script.segments.push(copy);
        }
        script.wait(wait);
        script.ack(B);
    }
    let a = script.connection().a;
    assert_eq!(a.rtt.count, 4, "three, and the SYN's");
    assert_eq!((a.rtt.min, a.rtt.max), (10_000_000, 30_000_000));
    assert_eq!(a.rtt_ambiguous.count, 1);
    assert_eq!(a.rtt_handshake, 20_000_000);
}

#[test]
fn full_size_is_that_of_the_largest_segments_not_of_a_syn() {
    let mut script = Script::begun();
    for length in [500, 1_460, 1_460, 20] {
        script.data(A, length);
        script.ack(B);
    }
    let a = script.connection().a;
    assert_eq!((a.rtt_full_size, a.rtt_full.count), (1_460, 2));
}

#[test]
fn percentiles_are_those_of_the_round_trips() {
    let mut script = Script::begun();
    for round in 1..=100 {
        script.data(A, 100);
        script.wait(round - 1);
        script.ack(B);
    }
    let percentiles = script.connection().a.rtt_percentiles;
    for (share, milliseconds) in [(0.5, 50.0), (0.9, 90.0), (0.99, 99.0)] {
        let at = percentiles.at(share).unwrap() as f64 / 1e6;
        assert!(
            (at - milliseconds).abs() / milliseconds < 0.02,
            "{share}: {at}"
        );
    }
}
