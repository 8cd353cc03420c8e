//! Tests the bytes in flight over time.

use crate::support::{ACK, End::*, RST, Script};
use trace::Connection;

/// The mean over the connection's time, rounded.
fn weighted(connection: &Connection) -> u64 {
    let sum = connection
        .a
        .owin
        .byte_nanoseconds_until(connection.last_time);
    let elapsed = connection.elapsed() as u128;
    ((sum + elapsed / 2) / elapsed) as u64
}

#[test]
fn a_thousand_bytes_in_flight_for_a_millisecond_of_each_second_are_one_on_average() {
    let mut script = Script::new();
    script.handshake();
    for _ in 0..100 {
        script.data(A, 1_000);
        script.ack(B);
        script.wait(998);
    }
    let connection = script.connection();
    assert_eq!(weighted(&connection), 1);
    let owin = connection.a.owin;
    let until = owin.byte_nanoseconds_until(connection.last_time);
    assert_eq!(until, 100 * 1_000 * 1_000_000);
    assert_eq!((owin.min, owin.max, owin.count), (1_000, 1_000, 100));
}

#[test]
fn the_average_changes_with_each_ack_of_a_part() {
    let mut script = Script::begun();
    for _ in 0..4 {
        script.data(A, 1_000);
    }
    // 1,000, 2,000, 3,000 for a millisecond each; then 4,000, 3,000 and 1,000 for ten.
    script.wait(9);
    script.ack_of(B, 1_001);
    script.wait(9);
    script.ack_of(B, 3_001);
    script.wait(9);
    script.ack_of(B, 4_001);
    let connection = script.connection();
    let until = |connection: &Connection| {
        let owin = connection.a.owin;
        owin.byte_nanoseconds_until(connection.last_time)
    };
    assert_eq!(until(&connection), (6_000 + 80_000) * 1_000_000);
    // A retransmission does not add to what is in flight, and a FIN is no byte.
    script.data(A, 1_000);
    script.octets(A, 4_001, 5_001);
    script.flags(A, crate::support::FIN | ACK);
    script.wait(7);
    script.ack_of(B, 5_001);
    script.wait(100);
    script.ack(B);
    assert_eq!(
        until(&script.connection()),
        (6_000 + 80_000 + 10_000) * 1_000_000
    );
}

#[test]
fn data_that_nobody_acknowledges_is_in_flight_until_the_end_or_a_reset() {
    let mut script = Script::begun();
    script.data(A, 1_000);
    script.wait(99);
    script.ack_of(B, 1);
    let connection = script.connection();
    let until = connection
        .a
        .owin
        .byte_nanoseconds_until(connection.last_time);
    assert_eq!(until, 100 * 1_000 * 1_000_000);
    script.flags(B, RST | ACK).acknowledgment -= 1_000;
    script.wait(500);
    script.flags(B, RST).sequence -= 1;
    let connection = script.connection();
    let until = connection
        .a
        .owin
        .byte_nanoseconds_until(connection.last_time);
    assert_eq!(until, 101 * 1_000 * 1_000_000);
}
