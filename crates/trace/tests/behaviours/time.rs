//! Where a connection begins and ends, and time stamps that are not in order.

use crate::support::{ACK, End::*, MS, RST, SYN, Script, connections};

const MINUTE: i64 = 60_000;

#[test]
fn twenty_idle_minutes_are_within_one_connection() {
    let mut script = Script::begun();
    script.data(A, 100);
    script.ack(B);
    script.wait(20 * MINUTE);
    script.data(A, 100);
    script.ack(B);
    let a = script.connection().a;
    assert_eq!(a.unique_bytes, 200);
    assert_eq!(a.idle_max, 20 * MINUTE * MS + 2 * MS);
}

#[test]
fn more_than_two_idle_hours_are_between_two_connections() {
    let mut script = Script::begun();
    script.wait(121 * MINUTE);
    script.data(A, 100);
    assert_eq!(connections(&script.segments).len(), 2);
}

#[test]
fn a_syn_after_fin_inside_the_old_window_begins_another_connection() {
    let mut script = Script::begun();
    script.data(A, 1_000);
    script.ack(B);
    script.close();
    script.wait(10);
    script.flags(A, SYN).sequence -= 500;
    let connections = connections(&script.segments);
    assert_eq!(connections.len(), 2);
    assert!(connections[0].is_complete());
    assert_eq!(connections[1].packets, 1);
}

#[test]
fn a_syn_after_a_reset_begins_another_connection_and_one_sent_again_does_not() {
    let mut script = Script::new();
    script.flags(A, SYN);
    script.wait(1_000);
    let mut again = script.segments[0];
    again.id += 1;
    again.time += 1_000 * MS;
    script.segments.push(again);
    assert_eq!(script.connection().a.syns, 2);
    script.flags(B, RST | ACK);
    script.flags(A, SYN);
    assert_eq!(connections(&script.segments).len(), 2);
}

#[test]
fn time_stamps_that_run_backwards_give_no_negative_times() {
    let mut script = Script::begun();
    script.data(A, 1_000);
    script.wait(-50);
    script.ack(B);
    script.data(A, 1_000);
    script.wait(-500);
    script.octets(A, 1_001, 2_001);
    script.ack(B).window = 0;
    script.wait(-5_000);
    script.ack(B);
    let connection = script.connection();
    assert!(connection.elapsed() >= 0);
    for direction in [&connection.a, &connection.b] {
        for (name, times) in crate::statistics::times(direction) {
            assert!(0 <= times.min && times.min <= times.max, "{name}");
        }
        assert!(direction.idle_max >= 0);
        assert!(direction.zero_windows.total >= 0 && direction.stalls.total >= 0);
    }
    assert_eq!(connection.a.unique_bytes, 2_000);
}

#[test]
fn one_packet_from_next_year_ends_nothing() {
    let mut script = Script::begun();
    script.data(A, 100);
    script.port(50_000);
    script.ack(A).time += 365 * 24 * 60 * MINUTE * MS;
    script.port(40_000);
    script.data(A, 100);
    assert_eq!(connections(&script.segments).len(), 2);
}
