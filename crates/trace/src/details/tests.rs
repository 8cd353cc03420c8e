use super::*;
use crate::{Analyzer, Config, Connection, FlowKey, Nobody, Observer, SegmentOptions};
use proptest::prelude::*;

const SECOND: i64 = 1_000_000_000;

/// Packets between two ends, analysed with details.
struct Lab {
    analyzer: Analyzer,
    number: u64,
}

/// Gives a packet's payload to the analyser.
struct Payload<'a>(&'a [u8]);

impl Observer for Payload<'_> {
    fn observe(&mut self, _: &Connection, _: &Segment, _: &Verdict) {}
    fn payload(&self) -> &[u8] {
        self.0
    }
}

fn template(from_a: bool) -> Segment {
    let (low, high) = ([0; 16], [1; 16]);
    let (key, from_low) = match from_a {
        true => FlowKey::new(&low, 1000, &high, 443, 0),
        false => FlowKey::new(&high, 443, &low, 1000, 0),
    };
    Segment {
        key,
        from_low,
        version: 4,
        hop_limit: 64,
        flags: 0x10,
        window: 60_000,
        sequence: 1,
        acknowledgment: 1,
        ..Segment::default()
    }
}

impl Lab {
    fn new(interval: i64) -> Lab {
        Lab {
            analyzer: Analyzer::new(Config {
                details: true,
                interval,
                ..Config::default()
            }),
            number: 0,
        }
    }

    fn packet(&mut self, time: i64, segment: Segment) {
        self.payload(time, segment, &[]);
    }

    fn payload(&mut self, time: i64, mut segment: Segment, payload: &[u8]) {
        self.number += 1;
        segment.number = self.number;
        // Otherwise equal packets are no copies.
        segment.checksum = self.number as u16;
        (segment.time, segment.clock) = (time, time);
        if !payload.is_empty() {
            segment.payload = payload.len() as u32;
            segment.captured = segment.payload;
            segment.lead = payload[0];
        }
        self.analyzer.packet(&segment, &[], &mut Payload(payload));
    }

    fn data(&mut self, time: i64, sequence: u32, length: u32) {
        self.packet(
            time,
            Segment {
                sequence,
                payload: length,
                captured: length,
                ..template(true)
            },
        );
    }

    fn ack(&mut self, time: i64, acknowledgment: u32, blocks: &[(u32, u32)]) {
        let mut options = SegmentOptions::default();
        for (place, block) in options.sack.iter_mut().zip(blocks) {
            *place = *block;
            options.blocks += 1;
        }
        self.packet(
            time,
            Segment {
                acknowledgment,
                options,
                ..template(false)
            },
        );
    }

    fn finish(mut self) -> Box<Details> {
        self.analyzer.finish();
        let finished = self.analyzer.take_finished();
        let mut connection = Connection::default();
        connection.thaw(&finished[0].octets).unwrap();
        connection.details.unwrap()
    }
}

fn stamped(from_a: bool, value: u32, echo: u32) -> Segment {
    let mut segment = template(from_a);
    segment.options.set_stamp(Some((value, echo)));
    segment
}

#[test]
fn a_clock_of_a_thousand_ticks_a_second_and_its_echo_give_rate_and_round_trips() {
    let mut lab = Lab::new(0);
    for round in 0..50u32 {
        let now = i64::from(round) * SECOND / 10;
        // The value wraps.
        lab.packet(
            now,
            stamped(true, (u32::MAX - 2000).wrapping_add(round * 100), round),
        );
        lab.packet(
            now + 30_000_000,
            stamped(false, 7, (u32::MAX - 2000).wrapping_add(round * 100)),
        );
    }
    let details = lab.finish();
    assert_eq!(details.a.stamps.rate_hz(), Some(1000.0));
    let round_trips = details.a.stamps.round_trips;
    assert_eq!(
        (round_trips.count, round_trips.min, round_trips.max),
        (50, 30_000_000, 30_000_000)
    );
    assert_eq!(details.b.stamps.rate_hz(), None);
}

/// The example of a sender with segments of 1,000 bytes, of which the second of eight is lost.
#[test]
fn the_pipe_is_that_of_rfc_6675() {
    let mut lab = Lab::new(0);
    for segment in 0..8 {
        lab.data(i64::from(segment) * 1000, 1 + segment * 1000, 1000);
    }
    lab.ack(SECOND, 1001, &[]);
    // One and two ranges above the gap: not lost yet (IsLost needs three, or more than two segments).
    lab.ack(SECOND + 1, 1001, &[(2001, 3001)]);
    lab.ack(SECOND + 2, 1001, &[(2001, 4001)]);
    lab.ack(SECOND + 3, 1001, &[(2001, 5001)]);
    let details = lab.finish();
    let board = &details.a.board;
    assert_eq!((board.ranges_max, board.lost_max), (1, 1000));
    // In flight are the last three; before, the lost one and up to six above it.
    assert_eq!((board.pipe, board.pipe_max), (3000, 6000));
}

#[test]
fn a_retransmission_counts_in_the_pipe_and_in_the_list_with_its_cause() {
    let mut lab = Lab::new(0);
    for segment in 0..5 {
        lab.data(i64::from(segment) * 1000, 1 + segment * 1000, 1000);
    }
    lab.ack(SECOND, 1001, &[]);
    for right in [3001, 4001, 5001] {
        lab.ack(SECOND + 10 + i64::from(right), 1001, &[(2001, right)]);
    }
    lab.data(SECOND + SECOND / 2, 1001, 1000);
    lab.ack(SECOND + SECOND / 2 + 1, 1001, &[(2001, 5001)]);
    lab.ack(2 * SECOND, 5001, &[]);
    lab.data(3 * SECOND, 5001, 1000);
    lab.data(5 * SECOND, 5001, 1000);
    let details = lab.finish();
    assert_eq!(details.a.board.pipe, 1000);
    let losses: Vec<_> = details
        .a
        .losses
        .list()
        .iter()
        .map(|loss| (loss.sequence, loss.length, loss.cause))
        .collect();
    assert_eq!(
        losses,
        [
            (1001, 1000, LossCause::Fast),
            (5001, 1000, LossCause::Timeout)
        ]
    );
    assert_eq!(details.a.losses.list()[1].packet, 14);
}

#[test]
fn shares_of_time_are_busy_and_limited_by_the_window() {
    let mut lab = Lab::new(0);
    // The window of 60,000 bytes is full for a second, and half full for another.
    lab.data(0, 1, 30_000);
    lab.ack(0, 1, &[]);
    lab.data(0, 30_001, 30_000);
    lab.ack(SECOND, 30_001, &[]);
    lab.ack(2 * SECOND, 60_001, &[]);
    lab.ack(9 * SECOND, 60_001, &[]);
    let shares = lab.finish().a.shares;
    assert_eq!(
        (shares.busy, shares.rwnd_limited, shares.recovery),
        (2 * SECOND, SECOND, 0)
    );
}

#[test]
fn a_hello_in_two_segments_out_of_order_is_put_together() {
    // TLS 1.2 with the name example.net and the protocol h2.
    let mut message = vec![1, 0, 0, 0, 3, 3];
    message.extend([7; 32]);
    message.extend([0, 0, 2, 0xc0, 0x2f, 1, 0, 0, 29]);
    message.extend([0, 0, 0, 16, 0, 14, 0, 0, 11]);
    message.extend(b"example.net");
    message.extend([0, 16, 0, 5, 0, 3, 2, b'h', b'2']);
    message[3] = (message.len() - 4) as u8;
    let mut stream = vec![22, 3, 1, 0, message.len() as u8];
    stream.extend(message);
    let at = |offset: usize| Segment {
        sequence: 1 + offset as u32,
        ..template(true)
    };
    for (first, second) in [((0, 40), (40, stream.len())), ((40, stream.len()), (0, 40))] {
        let mut lab = Lab::new(0);
        lab.packet(
            0,
            Segment {
                sequence: 0,
                flags: 0xc2,
                acknowledgment: 0,
                ..template(true)
            },
        );
        lab.packet(
            1,
            Segment {
                sequence: 0,
                flags: 0x52,
                ..template(false)
            },
        );
        for (place, (from, to)) in [first, second].into_iter().enumerate() {
            lab.payload(2 + place as i64, at(from), &stream[from..to]);
        }
        let details = lab.finish();
        assert_eq!(details.tls.server_name, "example.net");
        let tls = &details.tls;
        assert_eq!((tls.offered.as_str(), tls.client_version), ("h2", 0x0303));
        assert_eq!(details.ecn.negotiated(), Some("classic"));
    }
}

#[test]
fn ecn_is_negotiated_as_rfc_9768_says() {
    for (syn, answer, expected) in [
        (0x1c2, 0x92, "accecn"),
        (0x1c2, 0x112, "accecn"),
        (0x1c2, 0x052, "classic"),
        (0x0c2, 0x052, "classic"),
        (0x1c2, 0x012, "none"),
        (0x1c2, 0x1d2, "none"),
        (0x002, 0x012, "none"),
    ] {
        let mut lab = Lab::new(0);
        lab.packet(
            0,
            Segment {
                flags: syn,
                traffic_class: 1,
                ..template(true)
            },
        );
        lab.packet(
            1,
            Segment {
                flags: answer,
                ..template(false)
            },
        );
        let details = lab.finish();
        assert_eq!(
            details.ecn.negotiated(),
            Some(expected),
            "{syn:x} {answer:x}"
        );
        assert_eq!((details.a.codepoints.ect1, details.a.ttl), (1, [64; 3]));
    }
}

#[test]
fn intervals_add_up_to_the_connection_and_become_wider_at_their_limit() {
    let mut lab = Lab::new(SECOND);
    let count = 3 * INTERVALS_MAX as i64;
    for second in 0..count {
        lab.data(second * SECOND, 1 + second as u32 * 10, 10);
        lab.ack(second * SECOND + SECOND / 4, 11 + second as u32 * 10, &[]);
    }
    let details = lab.finish();
    let intervals = details.intervals.as_ref().unwrap();
    assert!(intervals.len() <= INTERVALS_MAX);
    assert_eq!(intervals.width(), 4 * SECOND);
    let sum = |get: fn(&Interval) -> u64| {
        intervals
            .iter()
            .map(|(_, interval)| get(interval))
            .sum::<u64>()
    };
    assert_eq!(sum(|interval| interval.a.bytes), 10 * count as u64);
    assert_eq!(sum(|interval| interval.a.rtt_count), count as u64);
    assert_eq!(sum(|interval| interval.b.packets), count as u64);
    assert!(
        intervals
            .iter()
            .all(|(_, interval)| interval.a.rtt_min == SECOND / 4)
    );
    // So do windows of shortest round trips.
    assert!(details.a.round_trips.len() <= RTT_WINDOWS_MAX);
}

proptest! {
    /// Values of any times, in any order, give the same as all at once in the last width.
    #[test]
    fn folding_loses_nothing(times in prop::collection::vec(-5000i64..5000, 1..200)) {
        let mut folding = Folding::new(3, 7);
        for &time in &times {
            folding.add(time, &Shortest { min: time + 10_000, count: 1 });
        }
        let width = folding.width();
        prop_assert!(folding.len() <= 7);
        let mut expected = std::collections::BTreeMap::<i64, Shortest>::new();
        for &time in &times {
            let start = time.div_euclid(width) * width;
            expected.entry(start).or_default().merge(&Shortest { min: time + 10_000, count: 1 });
        }
        let got: Vec<_> = folding.iter().map(|(start, value)| (start, *value)).collect();
        prop_assert_eq!(got, expected.into_iter().collect::<Vec<_>>());
    }

    /// A connection that is frozen after each packet has the same details.
    #[test]
    fn frozen_details_come_back(steps in crate::columns::samples::steps(80)) {
        let segments = crate::columns::samples::segments(&steps);
        let details = |hot: usize| {
            let mut analyzer = Analyzer::new(Config { details: true, interval: SECOND, hot, ..Config::default() });
            for segment in &segments {
                analyzer.packet(segment, &[], &mut Nobody);
            }
            analyzer.finish();
            let mut finished = analyzer.take_finished();
            finished.sort_by_key(|finished| finished.first_packet);
            finished.iter().map(|finished| {
                let mut connection = Connection::default();
                connection.thaw(&finished.octets).unwrap();
                let mut again = Vec::new();
                connection.freeze(&mut again);
                assert_eq!(&again[..], &finished.octets[..]);
                connection.details.unwrap()
            }).collect::<Vec<_>>()
        };
        prop_assert_eq!(details(1), details(1000));
    }
}
