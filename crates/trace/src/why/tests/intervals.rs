use super::*;
use crate::why::{Mark, Moment};

/// Calls `see` with each interval of `width` of the connection.
fn intervals(
    mut segments: Vec<Segment>,
    width: i64,
    count: i64,
    mut see: impl FnMut(&Moment<'_>, Option<&Mark>, i64),
) {
    segments.sort_by_key(|segment| segment.time);
    let mut analyzer = Analyzer::new(Config {
        why: true,
        recent: true,
        ..Config::default()
    });
    let mut segments = segments.into_iter().peekable();
    let mut before = None;
    for interval in 0..count {
        let (mut from, until) = (START + interval * width, START + (interval + 1) * width);
        if interval == 0 {
            // With the handshake.
            from -= 100 * MS;
        }
        while let Some(segment) = segments.next_if(|segment| segment.time <= until) {
            analyzer.packet(&segment, &[], &mut Nobody);
        }
        analyzer.recent(|connection| {
            let Some(moment) = Moment::new(connection, until) else {
                return false;
            };
            see(&moment, before.as_ref(), from);
            before = Some(moment.mark());
            moment.is_waiting()
        });
    }
}

#[test]
fn an_interval_has_its_own_cause_and_not_that_of_the_life() {
    // The receiver's window is full from the second round trip on.
    let mut capture = Capture::new(40 * MS, 0);
    windows(&mut capture, 10, 480, 10 * MSS as u16, |_| 0);
    let mut seen = Vec::new();
    intervals(capture.segments, 500 * MS, 4, |moment, before, from| {
        let interval = moment.since(before, from, false).unwrap();
        assert_eq!(interval.times.iter().sum::<i64>(), interval.span);
        seen.push((interval.cause, interval.bytes));
    });
    assert_eq!(seen.len(), 4);
    assert!(
        seen[1..].iter().all(|(cause, _)| *cause == Cause::Receiver),
        "{seen:?}"
    );
    // Ten segments in each round trip of 40.1 ms.
    assert!(
        seen[1..3]
            .iter()
            .all(|(_, bytes)| (110_000..=130_000).contains(bytes)),
        "{seen:?}"
    );
}

#[test]
fn silence_with_data_in_flight_is_reported_and_counted_once() {
    let mut capture = Capture::new(20 * MS, 20 * MS);
    capture.request(MS);
    for index in 0..10 {
        capture.data(2 * MS + i64::from(index) * 10_000, index);
    }
    // The first segment again, after 3.1 s: a time-out.
    capture.data(3_100 * MS, 0);
    capture.ack(3_140 * MS, 10);
    let mut sums = [0; CAUSES];
    let mut silent = 0;
    intervals(capture.segments, 1_000 * MS, 4, |moment, before, from| {
        let interval = moment.since(before, from, false).unwrap();
        assert_eq!(interval.times.iter().sum::<i64>(), interval.span);
        if interval.is_silent {
            silent += 1;
            assert!(interval.to_string().starts_with("no packet for 1.0 s"));
            assert_eq!(interval.lost(), interval.span);
        }
        for (sum, time) in sums.iter_mut().zip(interval.times) {
            *sum += time;
        }
    });
    // The intervals from 1 s to 3 s.
    assert_eq!(silent, 2);
    assert_eq!(sums.iter().sum::<i64>() / MS, 4_040);
}

#[test]
fn a_pause_before_the_interval_does_not_count_in_it() {
    let mut capture = Capture::new(20 * MS, 20 * MS);
    capture.request(MS);
    capture.end(2 * MS, 0);
    capture.ack(22 * MS, 1);
    // Ten seconds later.
    capture.push(10_100 * MS, true, ACK | PSH, 200, 2_000, 100);
    capture.push(10_101 * MS, false, ACK | PSH, 2_000, 300, 500);
    capture.push(10_121 * MS, true, ACK, 300, 2_500, 0);
    let mut looks = Vec::new();
    intervals(capture.segments, 1_000 * MS, 12, |moment, before, from| {
        for from_a in [true, false] {
            let interval = moment.since(before, from, from_a).unwrap();
            assert_eq!(interval.times.iter().sum::<i64>(), interval.span);
            assert!(interval.span <= 1_000 * MS + 40 * MS);
        }
        looks.push((
            (from - START) / MS,
            moment.since(before, from, false).unwrap().bytes,
        ));
    });
    // While nothing was in flight, nobody looked.
    assert_eq!(looks, [(-100, 1_000), (10_000, 500)]);
}

#[test]
fn a_closed_connection_has_no_interval_after_its_end() {
    let mut capture = Capture::new(20 * MS, 20 * MS);
    capture.request(MS);
    capture.end(2 * MS, 0);
    capture.push(30 * MS, true, ACK | crate::segment::RST, 200, 2_000, 0);
    let connection = capture.analyse().0;
    let moment = Moment::new(&connection, START + 9_000 * MS).unwrap();
    assert!(!moment.is_waiting());
    assert_eq!(moment.since(None, START + 1_000 * MS, false), None);
    // Without an earlier moment, nothing is known of an interval in the middle of a connection.
    assert_eq!(moment.since(None, START, false), None);
    let interval = moment.since(None, START - 100 * MS, false).unwrap();
    assert_eq!((interval.span / MS, interval.bytes), (70, 1_000));
}

proptest! {
    #[test]
    fn times_always_add_up_to_the_span(
        packets in prop::collection::vec((0..400_i64, any::<bool>(), 0..8_u32, 0..8_u32, 0..3_u32), 1..80),
        width in 1..900_i64,
    ) {
        let mut capture = Capture::new(20 * MS, 20 * MS);
        let mut at = 0;
        for (wait, from_a, index, ack, length) in packets {
            at += wait * MS;
            capture.push(at, from_a, ACK, 200 + index * MSS, 200 + ack * MSS, length * 500);
        }
        let count = (at / (width * MS) + 2).min(60);
        let mut faults = Vec::new();
        intervals(capture.segments, width * MS, count, |moment, before, from| {
            for from_a in [true, false] {
                if let Some(interval) = moment.since(before, from, from_a) {
                    let sum = interval.times.iter().sum::<i64>();
                    let good = sum == interval.span && interval.times.iter().all(|time| *time >= 0);
                    if !good {
                        faults.push(interval);
                    }
                }
            }
        });
        prop_assert!(faults.is_empty(), "{faults:?}");
    }
}
