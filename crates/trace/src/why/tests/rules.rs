//! Each rule of the table with a capture that shows it, and one that must not.

use super::*;

/// Sends segments at the times that `at` has, and lets the client acknowledge each, 20 ms later. A segment that `lost` names
/// is lost behind the point of capture, and sent again once three later ones have been acknowledged selectively.
fn transfer(
    capture: &mut Capture,
    count: u32,
    at: impl Fn(u32) -> i64,
    lost: impl Fn(u32) -> bool,
) {
    full(capture);
    let trip = capture.to_a;
    let mut arrivals = Vec::new();
    for index in 0..count {
        capture.data(at(index), index);
        if lost(index) {
            let again = at(index + 3) + trip + 100_000;
            capture.data(again, index);
            arrivals.push((again + trip, index));
        } else {
            arrivals.push((at(index) + trip, index));
        }
    }
    arrivals.sort_unstable();
    let mut has = vec![false; count as usize];
    let mut next = 0;
    for (time, index) in arrivals {
        has[index as usize] = true;
        while has.get(next as usize) == Some(&true) {
            next += 1;
        }
        capture.ack(time, next);
        if index > next {
            let mut left = index;
            while has[left as usize - 1] {
                left -= 1;
            }
            capture.sack(left, index + 1);
        }
    }
}

/// Both SYNs offer segments of `MSS` bytes.
fn full(capture: &mut Capture) {
    for syn in &mut capture.segments[..2] {
        syn.options.mss = Some(MSS as u16);
    }
}

fn times(capture: Capture) -> impl Fn(Cause) -> i64 {
    let (_, why) = capture.analyse();
    move |cause| why.b.shares()[cause as usize].time / MS
}

/// Ten segments each 21 ms.
fn bursts(index: u32) -> i64 {
    i64::from(index / 10) * 21 * MS + i64::from(index % 10) * 10_000 + MS
}

/// A segment each 2.1 ms.
fn evenly(index: u32) -> i64 {
    i64::from(index) * 2_100_000 + MS
}

#[test]
fn data_in_flight_that_doubles_is_slow_start() {
    let mut capture = Capture::new(40 * MS, 0);
    let (mut sent, mut at) = (0, MS);
    for flight in [4, 8, 16, 32] {
        for index in sent..sent + flight {
            capture.data(at + i64::from(index - sent) * 10_000, index);
        }
        for index in sent..sent + flight {
            capture.ack(at + 40 * MS + i64::from(index - sent) * 10_000, index + 1);
        }
        sent += flight;
        at += 40 * MS + 10_000;
    }
    let time = times(capture);
    assert!(time(Cause::SlowStart) >= 110, "{}", time(Cause::SlowStart));
}

#[test]
fn data_in_flight_that_does_not_grow_is_no_slow_start() {
    let mut capture = Capture::new(20 * MS, 0);
    transfer(&mut capture, 1_000, bursts, |_| false);
    let time = times(capture);
    // The first two rounds.
    assert!(time(Cause::SlowStart) <= 70, "{}", time(Cause::SlowStart));
}

#[test]
fn segments_at_one_distance_are_paced_and_bursts_are_not() {
    let mut capture = Capture::new(20 * MS, 0);
    transfer(&mut capture, 1_000, evenly, |_| false);
    let time = times(capture);
    assert!(time(Cause::Pacing) >= 1_800, "{}", time(Cause::Pacing));
    assert_eq!(time(Cause::Queue), 0);
    let mut capture = Capture::new(20 * MS, 0);
    transfer(&mut capture, 1_000, bursts, |_| false);
    assert_eq!(times(capture)(Cause::Pacing), 0);
}

#[test]
fn segments_that_are_shorter_are_the_applications() {
    let mut capture = Capture::new(20 * MS, 0);
    let mut offset = 1_000;
    for index in 0..200 {
        let at = evenly(index);
        capture.push(at, false, ACK | PSH, offset, 200, 700);
        offset += 700;
        capture.push(at + 20 * MS, true, ACK, 200, offset, 0);
    }
    let time = times(capture);
    assert!(
        time(Cause::Application) >= 400,
        "{}",
        time(Cause::Application)
    );
    assert_eq!(
        time(Cause::Pacing) + time(Cause::SlowStart) + time(Cause::Queue),
        0
    );
}

/// A round of 21 ms has one segment more than the one before.
fn growing(index: u32) -> i64 {
    let (mut round, mut first) = (0, 0);
    while first + 6 + round <= index {
        first += 6 + round;
        round += 1;
    }
    i64::from(round) * 21 * MS + i64::from(index - first) * 10_000 + MS
}

#[test]
fn a_smaller_window_that_grows_after_a_loss_is_after_loss() {
    for is_lost in [true, false] {
        let mut capture = Capture::new(20 * MS, 0);
        transfer(&mut capture, 600, growing, |index| is_lost && index == 30);
        let time = times(capture);
        assert_eq!(
            time(Cause::AfterLoss) > 200,
            is_lost,
            "{}",
            time(Cause::AfterLoss)
        );
        assert_eq!(time(Cause::FastRetransmit) >= 20, is_lost);
        assert_eq!(time(Cause::Spurious), 0);
    }
}

#[test]
fn equal_rates_between_losses_are_a_policers_only_if_no_queue_spaces_the_acks() {
    for (at, is_policer) in [(bursts as fn(u32) -> i64, true), (evenly, false)] {
        let mut capture = Capture::new(20 * MS, 0);
        transfer(&mut capture, 2_000, at, |index| index % 200 == 103);
        let time = times(capture);
        let losses = time(Cause::FastRetransmit) + time(Cause::AfterLoss);
        assert_eq!(
            time(Cause::Policer) > 200,
            is_policer,
            "{}",
            time(Cause::Policer)
        );
        assert_eq!(losses > 200, !is_policer, "{losses}");
    }
}

#[test]
fn unequal_rates_between_losses_are_no_policers() {
    let mut capture = Capture::new(20 * MS, 0);
    let lost = [30, 90, 200, 350, 550, 800, 1_100];
    transfer(&mut capture, 1_400, growing, |index| lost.contains(&index));
    let time = times(capture);
    assert_eq!(time(Cause::Policer), 0);
    assert!(time(Cause::FastRetransmit) > 100);
}

/// The server's answers of one segment, captured at the client. Their identifications count from 100; `gap` are missing
/// before the last one, which takes 300 ms longer.
fn answers(gap: u16) -> Capture {
    let mut capture = Capture::new(0, 40 * MS);
    for index in 0..20 {
        let late = i64::from(index == 19) * 300 * MS;
        let at = i64::from(index + 1) * 41 * MS + late;
        capture.push(at, false, ACK | PSH, 1_000 + index * 700, 200, 700);
        if let Some(last) = capture.segments.last_mut() {
            last.id = 100 + index as u16 + if index == 19 { gap } else { 0 };
        }
        capture.push(at + 1_000, true, ACK, 200, 1_700 + index * 700, 0);
    }
    capture
}

#[test]
fn a_gap_of_identifications_shows_a_lost_tail_and_none_shows_that_nothing_was_lost() {
    let time = times(answers(1));
    assert!(
        (290..=345).contains(&time(Cause::TailLoss)),
        "{}",
        time(Cause::TailLoss)
    );
    let time = times(answers(0));
    assert_eq!(time(Cause::TailLoss) + time(Cause::Timeout), 0);
    assert!(time(Cause::Application) >= 1_000);
}

#[test]
fn an_ack_above_the_data_shows_that_the_data_was_lost() {
    for is_ahead in [true, false] {
        let mut capture = Capture::new(0, 40 * MS);
        capture.push(41 * MS, false, ACK | PSH, 1_000, 200, 700);
        capture.push(41 * MS + 1_000, true, ACK, 200, 1_700, 0);
        let sequence = if is_ahead { 2_400 } else { 1_700 };
        capture.push(90 * MS, false, ACK, sequence, 200, 0);
        capture.push(390 * MS, false, ACK | PSH, 1_700, 200, 700);
        capture.push(390 * MS + 1_000, true, ACK, 200, 2_400, 0);
        let time = times(capture);
        assert_eq!(
            time(Cause::TailLoss) >= 300,
            is_ahead,
            "{}",
            time(Cause::TailLoss)
        );
        assert_eq!(time(Cause::Application) >= 300, !is_ahead);
    }
}

#[test]
fn one_segment_and_a_round_trip_after_a_silence_show_a_time_out() {
    for is_timeout in [true, false] {
        let mut capture = Capture::new(0, 40 * MS);
        for index in 0..10 {
            capture.data(41 * MS + i64::from(index) * 10_000, index);
            capture.ack(41 * MS + i64::from(index) * 10_000 + 1_000, index + 1);
        }
        capture.data(500 * MS, 10);
        capture.ack(500 * MS + 1_000, 11);
        let second = if is_timeout {
            540 * MS + 1_000
        } else {
            500 * MS + 2_000
        };
        for index in 11..13 {
            capture.data(second + i64::from(index), index);
            capture.ack(second + 1_000 + i64::from(index), index + 1);
        }
        let time = times(capture);
        assert_eq!(
            time(Cause::Timeout) >= 450,
            is_timeout,
            "{}",
            time(Cause::Timeout)
        );
        assert_eq!(time(Cause::Unknown) >= 450, !is_timeout);
    }
}

#[test]
fn echoes_that_grow_older_are_a_queue_before_the_point_of_capture() {
    for growth in [0, 200_000] {
        let mut capture = Capture::new(0, 20 * MS);
        full(&mut capture);
        for index in 0..300_u32 {
            let at = 21 * MS + i64::from(index) * MS;
            // The ACK that released it, by its time stamp in milliseconds.
            let queue = i64::from(index) * growth;
            let echo = ((at - 20 * MS - queue) / MS) as u32;
            capture.data(at, index);
            let stamp = |capture: &mut Capture, stamp| {
                if let Some(last) = capture.segments.last_mut() {
                    last.options.set_stamp(Some(stamp));
                }
            };
            stamp(&mut capture, (index, echo));
            capture.ack(at + 1_000, index + 1);
            stamp(&mut capture, ((at / MS) as u32, index));
        }
        let time = times(capture);
        assert_eq!(
            time(Cause::Queue) >= 150,
            growth > 0,
            "{}",
            time(Cause::Queue)
        );
    }
}

#[test]
fn a_coarse_clock_of_time_stamps_hides_no_full_window() {
    let mut capture = Capture::new(20 * MS, 10 * MS);
    full(&mut capture);
    windows(&mut capture, 10, 500, 10 * MSS as u16, |_| 0);
    for segment in &mut capture.segments {
        // Ticks of 500 ms, and echoes that stay behind.
        let tick = ((segment.time - START) / (500 * MS)) as u32 + 9;
        segment
            .options
            .set_stamp(Some((tick, tick.saturating_sub(1))));
    }
    let share = capture.of(Cause::Receiver);
    assert!(share > 1_000, "{share}");
}

#[test]
fn time_after_the_fin_is_idle() {
    let mut capture = Capture::new(20 * MS, 0);
    capture.end(MS, 0);
    capture.ack(21 * MS, 1);
    capture.push(22 * MS, false, ACK | FIN, 2_000, 200, 0);
    capture.push(42 * MS, true, ACK, 200, 2_001, 0);
    capture.push(900 * MS, true, ACK | FIN, 200, 2_001, 0);
    let time = times(capture);
    assert!(time(Cause::Idle) >= 870, "{}", time(Cause::Idle));
    assert_eq!(time(Cause::Unknown), 0);
}

#[test]
fn data_that_begins_otherwise_is_no_tls() {
    let mut capture = Capture::new(30 * MS, 50 * MS);
    capture.request(MS);
    capture.end(52 * MS, 0);
    capture.ack(82 * MS, 1);
    assert_eq!(times(capture)(Cause::Tls), 0);
}
