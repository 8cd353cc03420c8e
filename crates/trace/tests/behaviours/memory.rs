//! Memory per connection, and tests that the work per packet does not grow.

use crate::support::{End::*, Script};
use trace::{Analyzer, Clock, Config, Connection, Nobody, Segment};

fn run(analyzer: &mut Analyzer, segments: &[Segment]) {
    let mut clock = Clock::default();
    for segment in segments {
        clock.tick(segment.time);
        let segment = Segment {
            clock: clock.now(),
            ..*segment
        };
        analyzer.packet(&segment, &[], &mut Nobody);
    }
}

/// An analyzer with less memory than the connections would take.
fn short_of_memory(segments: &[Segment]) -> Analyzer {
    let memory = 500_000;
    let mut analyzer = Analyzer::new(Config {
        memory,
        hot: 16,
        ..Config::default()
    });
    run(&mut analyzer, segments);
    assert!(analyzer.memory() <= memory + 4_096);
    analyzer
}

#[test]
fn an_idle_short_connection_takes_no_more_than_512_octets() {
    const CONNECTIONS: u16 = 20_000;
    let mut script = Script::new();
    for port in 0..CONNECTIONS {
        script.port(port);
        script.handshake();
        script.data(A, 300);
        script.data(B, 1_400);
        script.data(B, 1_400);
        script.ack(A);
        script.close();
    }
    let mut analyzer = Analyzer::new(Config {
        hot: 64,
        ..Config::default()
    });
    run(&mut analyzer, &script.segments);
    assert_eq!(analyzer.held(), usize::from(CONNECTIONS));
    let each = analyzer.memory() / u64::from(CONNECTIONS);
    assert!(each <= 512, "{each} octets");
}

#[test]
fn short_of_memory_the_oldest_connections_end_early_and_that_is_told() {
    let mut script = Script::new();
    for port in 0..5_000 {
        script.port(port);
        script.handshake();
    }
    let mut analyzer = short_of_memory(&script.segments);
    assert!(analyzer.limits().finished_early > 0);
    let ended = analyzer.take_finished();
    assert_eq!(ended.len() as u64, analyzer.limits().finished_early);
    let first: Vec<u64> = ended.iter().map(|one| one.first_packet).collect();
    assert!(first.is_sorted(), "the oldest first");
}

#[test]
fn connections_that_are_over_leave_nothing_in_memory() {
    let mut analyzer = Analyzer::new(Config::default());
    let mut time = Script::new().time;
    for number in 0..20_000 {
        // On the same ports: each ends the one before it.
        let mut script = Script::starting_at(number * 100_000, number * 200_000);
        script.time = time;
        script.handshake();
        script.close();
        time = script.time;
        run(&mut analyzer, &script.segments);
        drop(analyzer.take_finished());
    }
    assert_eq!((analyzer.held(), analyzer.connections()), (1, 20_000));
    assert!(analyzer.memory() < 100_000, "{}", analyzer.memory());
}

#[test]
fn closed_connections_leave_before_open_ones() {
    let mut script = Script::new();
    for port in 0..3_000 {
        script.port(port);
        script.handshake();
        // One in ten stays open.
        if port % 10 > 0 {
            script.close();
        }
    }
    let mut analyzer = short_of_memory(&script.segments);
    let limits = analyzer.limits();
    assert_eq!(
        (limits.finished_early, limits.closed_early > 1_000),
        (0, true)
    );
    let ended = analyzer.take_finished();
    assert_eq!(ended.len() as u64, limits.closed_early);
    let mut connection = Connection::default();
    for one in ended {
        connection.thaw(&one.octets).unwrap();
        assert!(connection.is_closed());
    }
}

/// Number of packets. If each packet caused a walk over all earlier ones, the test would not end
/// within a day.
const LONG: u32 = 200_000;

fn only(segments: &[Segment]) -> Connection {
    let mut analyzer = Analyzer::new(Config::default());
    run(&mut analyzer, segments);
    analyzer.finish();
    let [finished] = analyzer.take_finished().try_into().unwrap();
    let mut connection = Connection::default();
    connection.thaw(&finished.octets).unwrap();
    connection
}

#[test]
fn one_way_without_sack_and_an_early_loss_is_no_walk() {
    let mut script = Script::begun();
    for segment in (0..LONG).filter(|segment| *segment != 100) {
        let at = 1 + segment * 1_000;
        script.octets(A, at, at + 1_000);
    }
    script.octets(A, 100_001, 101_001);
    script.segments.retain(|segment| segment.from_low);
    let a = only(&script.segments).a;
    assert_eq!(a.unique_bytes, u64::from(LONG) * 1_000);
    assert_eq!(a.out_of_order_packets + a.retransmitted_packets, 1);
    assert_eq!(
        a.segments.in_flight(),
        LONG as usize + 1,
        "the SYN included"
    );
}

#[test]
fn one_way_with_one_retransmission_in_a_hundred_is_no_walk() {
    let mut script = Script::begun();
    for segment in 0..LONG {
        let at = 1 + segment * 1_000;
        script.octets(A, at, at + 1_000);
        if segment % 100 == 99 {
            script.octets(A, at - 50_000, at - 49_000);
        }
    }
    script.segments.retain(|segment| segment.from_low);
    let a = only(&script.segments).a;
    assert_eq!(a.retransmitted_packets, u64::from(LONG) / 100);
}

#[test]
fn two_way_with_drops_in_the_capture_is_no_walk() {
    let mut script = Script::begun();
    for segment in 0..LONG {
        let at = 1 + segment * 1_000;
        if segment % 200 != 7 {
            script.octets(A, at, at + 1_000);
        }
        if segment % 2 == 1 {
            script.ack_of(B, at + 1_000);
        }
    }
    // Segments lost before the capture point arrive only at the end.
    for segment in (7..LONG).step_by(200) {
        let at = 1 + segment * 1_000;
        script.octets(A, at, at + 1_000);
    }
    let a = only(&script.segments).a;
    assert_eq!(a.unique_bytes, u64::from(LONG) * 1_000);
    assert_eq!(a.segments.in_flight(), 0);
}

#[test]
fn gaps_count_as_memory_and_are_given_up_when_it_is_short() {
    let mut script = Script::begun();
    for segment in 0..20_000 {
        let at = 1 + segment * 2_000;
        script.octets(A, at, at + 1_000);
        script.ack_of(B, at + 1_000);
    }
    let memory = 400_000;
    let mut analyzer = Analyzer::new(Config {
        memory,
        ..Config::default()
    });
    run(&mut analyzer, &script.segments);
    assert!(analyzer.memory() <= memory);
    assert!(analyzer.limits().flights_cut > 0);
    analyzer.finish();
    assert_eq!(analyzer.memory(), 0);
}
