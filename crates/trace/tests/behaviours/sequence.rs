//! Sequence numbers: their start, wrap-around and range.

use crate::statistics;
use crate::support::{End::*, Script};

/// Loss, reordering, SACK, a keep-alive, a zero window and a probe, in 300 kB.
fn eventful(mut script: Script) -> Script {
    script.handshake();
    for round in 0..20 {
        let first = 1 + round * 15_000;
        for segment in (0..10).filter(|segment| *segment != 3) {
            let at = first + segment * 1_500;
            script.octets(A, at, at + 1_500);
        }
        script.wait(20);
        for block in 0..4 {
            let right = first + 7_500 + block * 1_500;
            script.sack(B, first + 4_500, &[(first + 6_000, right)]);
        }
        script.octets(A, first + 4_500, first + 6_000);
        script.wait(20);
        script.ack(B);
    }
    script.ack(B).window = 0;
    script.wait(500);
    script.octets(A, 300_001, 300_002);
    script.wait(20);
    script.ack_of(B, 300_001).window = 0;
    script.wait(300);
    script.ack_of(B, 300_001);
    script.data(A, 1_000);
    script.ack(B);
    script.ack(A).sequence -= 1;
    script.ack(B);
    script.data(B, 700);
    script.ack(A);
    script.close();
    script
}

#[test]
fn an_initial_sequence_number_near_the_wrap_gives_the_statistics_of_a_low_one() {
    let low = statistics::of(&eventful(Script::starting_at(1_000, 2_000)).connection());
    assert_eq!(low["a.retransmitted_packets"], 20);
    assert_eq!(low["a.missed"], 0);
    for (a, b) in [
        (0xfff0_0000, 0xffff_ff00),
        (0xffff_ffff, 0),
        (0x7fff_fff0, 0x8000_0000),
    ] {
        let near = statistics::of(&eventful(Script::starting_at(a, b)).connection());
        assert_eq!(low, near);
    }
}

#[test]
fn a_stream_of_four_point_six_gigabytes_is_counted_to_the_octet() {
    const SEGMENT: u32 = 64_000;
    const SEGMENTS: u64 = 71_875;
    let mut script = Script::starting_at(0xfff0_0000, 1);
    script.handshake();
    for segment in 1..=SEGMENTS {
        script.data(A, SEGMENT);
        // One in 1,000 is lost beyond the place of capture.
        if segment % 1_000 == 0 {
            let again = *script.segments.last().unwrap();
            script.wait(300);
            let copy = script.ack(A);
            (copy.sequence, copy.payload) = (again.sequence, again.payload);
        }
        if segment % 2 == 0 {
            script.ack(B);
        }
    }
    script.close();
    let a = script.connection().a;
    let bytes = SEGMENTS * u64::from(SEGMENT);
    assert_eq!(bytes, 4_600_000_000);
    assert_eq!(a.unique_bytes, bytes);
    assert_eq!(a.stream_length(), Some(bytes));
    assert_eq!(a.missed(), Some(0));
    assert_eq!(a.retransmitted_packets, 71);
    assert_eq!(a.retransmitted_bytes, 71 * u64::from(SEGMENT));
    assert_eq!(a.data_bytes, bytes + 71 * u64::from(SEGMENT));
    assert_eq!(
        a.rtt.count + a.rtt_ambiguous.count + a.cumulative_acks,
        SEGMENTS + 2
    );
}

#[test]
fn bytes_in_flight_at_the_wrap_are_those_sent_and_not_acknowledged() {
    let mut script = Script::starting_at(0xffff_fc00, 1);
    script.handshake();
    script.data(A, 1_000);
    script.data(A, 1_000);
    script.data(A, 1_000);
    let a = script.connection().a;
    assert_eq!((a.owin.min, a.owin.max), (1_000, 3_000));
    assert_eq!((a.owin.total, a.owin.count), (6_000, 3));
}

#[test]
fn missing_data_is_no_more_than_the_stream() {
    let mut script = Script::begun();
    script.octets(A, 1, 101);
    script.octets(A, 5_001, 5_101);
    script.close();
    let a = script.connection().a;
    assert_eq!(a.stream_length(), Some(5_100));
    assert_eq!(a.missed(), Some(4_900));
    // A second FIN at a lower sequence number, and data beyond it, do not reduce the counts.
    script.octets(A, 6_000, 9_000);
    let a = script.connection().a;
    assert_eq!(a.missed(), Some(1_900));
}

#[test]
fn a_segment_resent_three_hundred_times_is_counted_so_often() {
    let mut script = Script::begun();
    for _ in 0..301 {
        script.octets(A, 1, 101);
        script.wait(300);
    }
    assert_eq!(script.connection().a.retransmissions_max, 300);
}

#[test]
fn the_largest_maximum_segment_size_is_itself() {
    let mut script = Script::new();
    script.handshake();
    script.segments[0].options = crate::support::options(&[2, 4, 0xff, 0xd7]);
    assert_eq!(script.connection().a.mss, 65_495);
}
