//! Windows: scaled, closed, probed.

use crate::support::{End::*, Script, options};

/// The other end's window closes after 2,000 bytes.
fn closed() -> Script {
    let mut script = Script::begun();
    script.data(A, 1_000);
    script.data(A, 1_000);
    script.ack(B).window = 0;
    script
}

#[test]
fn full_size_data_after_a_zero_window_is_no_probe_and_its_resend_counts() {
    let mut script = closed();
    script.octets(A, 2_001, 3_001);
    script.wait(500);
    script.octets(A, 2_001, 3_001);
    script.ack(B);
    let a = script.connection().a;
    assert_eq!((a.probe_packets, a.probe_bytes), (0, 0));
    assert_eq!((a.retransmitted_packets, a.retransmitted_bytes), (1, 1_000));
    assert_eq!(a.unique_bytes, 3_000);
}

#[test]
fn an_octet_into_a_zero_window_is_a_probe_and_its_answer_no_duplicate() {
    let mut script = closed();
    for _ in 0..5 {
        script.wait(500);
        script.octets(A, 2_001, 2_002);
        script.ack_of(B, 2_001).window = 0;
    }
    let a = script.connection().a;
    assert_eq!((a.probe_packets, a.probe_bytes), (5, 5));
    assert_eq!((a.retransmitted_packets, a.keep_alives), (0, 0));
    assert_eq!((a.duplicate_acks, a.triple_duplicate_acks), (0, 0));
    assert_eq!(a.unique_bytes, 2_000);
}

#[test]
fn a_probe_that_was_taken_counts_as_sent() {
    let mut script = closed();
    script.octets(A, 2_001, 2_002);
    script.ack(B);
    script.octets(A, 2_002, 3_001);
    script.ack(B);
    let a = script.connection().a;
    assert_eq!((a.probe_packets, a.unique_bytes), (1, 3_000));
    assert_eq!(a.retransmitted_packets, 0);
}

#[test]
fn a_closed_window_is_one_episode_until_it_opens() {
    let mut script = closed();
    script.wait(199);
    script.ack(B).window = 0;
    script.wait(299);
    script.ack(B);
    script.ack(B).window = 0;
    script.wait(99);
    script.ack(B);
    let b = script.connection().b;
    assert_eq!((b.windows.zero, b.zero_windows.count), (3, 2));
    assert_eq!(b.zero_windows.total, 600_000_000);
    assert_eq!(b.zero_windows.longest, 500_000_000);
    assert_eq!((b.windows.min, b.windows.max), (8_000, 8_000));
}

/// Windows of 8,000, from ends that announce these shifts, if any.
fn scaled(a: Option<u8>, b: Option<u8>) -> [u32; 2] {
    let mut script = Script::begun();
    for (segment, shift) in [(0, a), (1, b)] {
        if let Some(shift) = shift {
            script.segments[segment].options = options(&[3, 3, shift]);
        }
    }
    script.data(A, 10);
    script.ack(B);
    let connection = script.connection();
    [connection.a.window, connection.b.window]
}

#[test]
fn windows_are_scaled_when_both_ends_asked_and_never_by_more_than_fourteen() {
    assert_eq!(scaled(Some(2), Some(3)), [32_000, 64_000]);
    assert_eq!(scaled(Some(2), Some(0)), [32_000, 8_000]);
    assert_eq!(scaled(Some(2), None), [8_000, 8_000]);
    assert_eq!(scaled(Some(2), Some(15)), [32_000, 8_000 << 14]);
}

#[test]
fn windows_are_as_sent_if_one_of_the_syns_was_not_captured() {
    for missing in [0, 1] {
        let mut script = Script::begun();
        for segment in [0, 1] {
            script.segments[segment].options = options(&[3, 3, 5]);
        }
        script.data(A, 10);
        script.ack(B);
        script.segments.remove(missing);
        let connection = script.connection();
        // End `a` sent the first packet that the capture has.
        let scales = (connection.a.scale, connection.b.scale);
        assert_eq!((connection.a.window, connection.b.window), (8_000, 8_000));
        assert_eq!(scales, (5, 0), "the shift that one end announced");
    }
}

#[test]
fn the_window_of_a_handshake_is_not_scaled() {
    let mut script = Script::begun();
    for (segment, octets) in [(0, [3, 3, 7]), (1, [3, 3, 7])] {
        script.segments[segment].options = options(&octets);
        script.segments[segment].window = 60_000;
    }
    script.data(B, 10);
    script.ack(A);
    let connection = script.connection();
    for direction in [connection.a, connection.b] {
        assert_eq!(direction.windows.max, 8_000 << 7);
        assert_eq!(direction.windows.min, 8_000 << 7);
    }
}
