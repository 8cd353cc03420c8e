//! A capture in parts gives what the whole does.

use crate::statistics;
use crate::support::{End::*, SYN, Script, analysed, thawed};
use trace::{Analyzer, Clock, Config, Nobody, Segment};

/// Forty overlapping connections; some close and open again, some are idle for long.
fn many() -> Vec<Segment> {
    let mut script = Script::new();
    for round in 0..6 {
        for port in 0..40u16 {
            script.port(1_000 + port);
            match round {
                0 => script.handshake(),
                5 if port % 3 == 0 => script.close(),
                _ => {
                    script.data(A, 100 + u32::from(port));
                    script.ack(B);
                }
            }
            if port % 10 == 9 {
                script.wait(700_000);
            }
        }
    }
    for port in (0..40).step_by(6) {
        script.port(1_000 + port);
        script.flags(A, SYN);
    }
    script.segments
}

#[test]
fn parts_by_hash_give_the_connections_of_the_whole() {
    let segments = many();
    let whole = analysed(&segments, Config::default(), |_| true);
    assert_eq!(whole.len(), 47);
    for parts in [2, 3, 7, 64] {
        let mut joined: Vec<_> = (0..parts)
            .flat_map(|part| {
                analysed(&segments, Config::default(), |segment| {
                    segment.key.hash(0) % parts == part
                })
            })
            .collect();
        joined.sort_by_key(|finished| finished.first_packet);
        assert_eq!(whole, joined, "{parts} parts");
    }
}

#[test]
fn what_is_kept_at_hand_changes_nothing() {
    let segments = many();
    let whole = analysed(&segments, Config::default(), |_| true);
    for hot in [1, 2, 5, 39] {
        let config = Config {
            hot,
            ..Config::default()
        };
        assert_eq!(whole, analysed(&segments, config, |_| true), "{hot} hot");
    }
}

#[test]
fn files_split_at_any_packet_give_the_connections_of_one() {
    let segments = many();
    let whole = analysed(&segments, Config::default(), |_| true);
    let whole: Vec<_> = thawed(&whole).iter().map(statistics::of).collect();
    for split in (0..segments.len()).step_by(7) {
        let mut analyzer = Analyzer::new(Config::default());
        let mut clock = Clock::default();
        for (at, segment) in segments.iter().enumerate() {
            if at == split {
                analyzer.set_file(1);
            }
            clock.tick(segment.time);
            let clock = clock.now();
            let segment = Segment { clock, ..*segment };
            analyzer.packet(&segment, &[], &mut Nobody);
        }
        analyzer.finish();
        let mut finished = analyzer.take_finished();
        finished.sort_by_key(|finished| finished.first_packet);
        let connections = thawed(&finished);
        let statistics: Vec<_> = connections.iter().map(statistics::of).collect();
        assert_eq!(whole, statistics, "split before packet {split}");
        for connection in connections {
            let expected = u32::from(connection.first_packet > split as u64);
            assert_eq!(connection.file, expected);
        }
    }
}
