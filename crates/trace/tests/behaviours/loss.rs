//! Retransmission, reordering, copies.

use crate::support::{End::*, Script};

/// Bytes 1001 to 2001 are missing when 2001 to 3001 arrive. They arrive `after_ms` later, with an
/// IP identification that is larger by `id`.
fn gap_filled(after_ms: i64, id: i32) -> trace::Direction {
    let mut script = Script::begun();
    script.octets(A, 1, 1_001);
    let above = script.octets(A, 2_001, 3_001).id;
    script.wait(after_ms);
    script.octets(A, 1_001, 2_001).id = above.wrapping_add_signed(id as i16);
    script.ack(B);
    script.connection().a
}

#[test]
fn a_gap_filled_within_a_round_trip_by_an_older_packet_is_reordering() {
    let a = gap_filled(5, -1);
    assert_eq!((a.out_of_order_packets, a.retransmitted_packets), (1, 0));
    assert_eq!(a.unique_bytes, 3_000);
}

#[test]
fn a_gap_filled_later_by_a_newer_packet_is_a_retransmission() {
    let a = gap_filled(300, 1);
    assert_eq!((a.out_of_order_packets, a.retransmitted_packets), (0, 1));
    assert_eq!((a.unique_bytes, a.retransmitted_bytes), (3_000, 1_000));
}

#[test]
fn a_retransmission_that_was_seen_twice_counts_once() {
    let mut script = Script::begun();
    script.data(A, 1_000);
    script.wait(300);
    script.octets(A, 1, 1_001);
    let a = script.connection().a;
    assert_eq!((a.retransmitted_packets, a.retransmitted_bytes), (1, 1_000));
    assert_eq!((a.data_bytes, a.unique_bytes), (2_000, 1_000));
    assert_eq!(a.retransmission_times.min, 301_000_000);
}

#[test]
fn what_was_acknowledged_and_is_sent_again_is_spurious() {
    let mut script = Script::begun();
    script.data(A, 1_000);
    script.data(A, 1_000);
    script.ack_of(B, 1_001);
    script.wait(300);
    script.octets(A, 1, 1_001);
    script.octets(A, 1_001, 2_001);
    let a = script.connection().a;
    assert_eq!(
        (a.retransmitted_packets, a.spurious_retransmissions),
        (2, 1)
    );
}

#[test]
fn a_partial_overlap_counts_only_the_octets_seen_before() {
    let mut script = Script::begun();
    script.octets(A, 1, 1_001);
    script.wait(300);
    script.octets(A, 601, 1_601);
    let a = script.connection().a;
    assert_eq!((a.retransmitted_packets, a.retransmitted_bytes), (1, 400));
    assert_eq!(a.unique_bytes, 1_600);
    // The ACK covers only data that was captured.
    script.ack(B);
    assert_eq!(script.connection().a.segments.in_flight(), 0);
}

#[test]
fn a_retransmission_after_three_duplicates_is_fast_and_after_none_is_not() {
    for (duplicates, fast) in [(3, 1), (1, 0)] {
        let mut script = Script::begun();
        for segment in 0..5 {
            script.octets(A, 1 + segment * 1_000, 1_001 + segment * 1_000);
        }
        script.ack_of(B, 1_001);
        for _ in 0..duplicates {
            script.ack_of(B, 1_001);
        }
        script.octets(A, 1_001, 2_001);
        let a = script.connection().a;
        assert_eq!(a.retransmitted_packets, 1);
        assert_eq!(a.fast_retransmissions, fast, "{duplicates} duplicates");
    }
}

#[test]
fn what_lies_below_a_selective_acknowledgment_is_resent_fast() {
    let mut script = Script::begun();
    for segment in 0..5 {
        script.octets(A, 1 + segment * 1_000, 1_001 + segment * 1_000);
    }
    script.sack(B, 1_001, &[(3_001, 5_001)]);
    script.octets(A, 1_001, 2_001);
    assert_eq!(script.connection().a.fast_retransmissions, 1);
}

#[test]
fn a_copy_that_a_mirror_made_is_no_retransmission() {
    let mut script = Script::begun();
    script.data(A, 1_000);
    let copy = *script.segments.last().unwrap();
    script.segments.push(copy);
    script.ack(B);
    let copy = *script.segments.last().unwrap();
    script.segments.push(copy);
    let a = script.connection().a;
    assert_eq!((a.hardware_duplicates, a.retransmitted_packets), (1, 0));
    assert_eq!((a.duplicate_acks, a.rtt.count), (0, 2));
    assert_eq!(script.connection().b.hardware_duplicates, 1);
}

#[test]
fn the_same_octets_with_another_identification_are_no_copy() {
    let mut script = Script::begun();
    script.data(A, 1_000);
    script.octets(A, 1, 1_001);
    let a = script.connection().a;
    assert_eq!((a.hardware_duplicates, a.retransmitted_packets), (0, 1));
}

#[test]
fn a_connection_that_stands_still_with_data_in_flight_has_stalled() {
    let mut script = Script::begun();
    script.data(A, 1_000);
    script.wait(3_000);
    script.octets(A, 1, 1_001);
    script.ack(B);
    // With nothing in flight, silence is silence.
    script.wait(60_000);
    script.data(A, 1_000);
    let a = script.connection().a;
    assert_eq!(a.stalls.count, 1);
    assert_eq!(
        (a.stalls.total, a.stalls.longest),
        (3_001_000_000, 3_001_000_000)
    );
}

#[test]
fn a_capture_of_one_direction_is_analysed_as_far_as_it_goes() {
    let mut both = Script::begun();
    for _ in 0..100 {
        both.data(A, 1_000);
        both.ack(B);
    }
    both.octets(A, 50_001, 51_001);
    both.close();
    let whole = both.connection();
    let (sent, answers): (Vec<_>, Vec<_>) = both
        .segments
        .iter()
        .copied()
        .partition(|segment| segment.from_low == both.segments[0].from_low);

    let [sender] = crate::support::connections(&sent).try_into().unwrap();
    let counts = |d: &trace::Direction| {
        let bytes = [d.unique_bytes, d.data_bytes, d.segment_max.into()];
        (bytes, d.packets, d.retransmitted_packets)
    };
    assert_eq!(counts(&sender.a), counts(&whole.a));
    assert_eq!((sender.b.packets, sender.a.rtt.count), (0, 0));
    assert_eq!(sender.a.missed(), Some(0));

    let [receiver] = crate::support::connections(&answers).try_into().unwrap();
    assert_eq!(receiver.a.pure_acks, whole.b.pure_acks);
    assert_eq!((receiver.b.packets, receiver.b.missed()), (0, None));
}

#[test]
fn acknowledged_data_that_the_capture_lacks_is_a_loss_of_the_capture() {
    let mut script = Script::begun();
    script.octets(A, 1, 1_001);
    script.octets(A, 2_501, 3_001);
    script.ack_of(B, 3_001);
    let connection = script.connection();
    assert_eq!(
        (connection.a.unseen_bytes(), connection.b.unseen_bytes()),
        (1_500, 0)
    );
    // Sent again, the rest of the data is in the capture, though late.
    script.wait(300);
    script.octets(A, 1_001, 2_001);
    assert_eq!(script.connection().a.unseen_bytes(), 500);
    script.octets(A, 2_001, 2_501);
    assert_eq!(script.connection().a.unseen_bytes(), 0);
    // Data that the capture lacks and nobody acknowledged may have been lost on its way.
    script.octets(A, 4_001, 5_001);
    assert_eq!(script.connection().a.unseen_bytes(), 0);
}

#[test]
fn data_from_before_the_capture_is_no_loss_of_the_capture() {
    let mut script = Script::begun();
    script.data(A, 1_000);
    script.data(A, 1_000);
    script.data(A, 1_000);
    script.ack_of(B, 1_001);
    script.ack_of(B, 2_001);
    script.octets(A, 3_001, 4_001);
    script.ack_of(B, 4_001);
    // The capture begins after the first three segments, at an ACK of the first.
    script.segments.drain(..6);
    let sender = script.connection().b;
    let bytes = (sender.unique_bytes, sender.unseen_bytes());
    assert_eq!(bytes, (1_000, 0));
}
