use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The offset at which streams start in these tests.
const BASE: u64 = 1 << 32;

/// Segments 100..200 and 300..400 in flight.
fn two() -> Segments {
    let mut segments = Segments::default();
    segments.insert(BASE + 100, 100, 1);
    segments.insert(BASE + 300, 100, 2);
    segments
}

/// Inserts from and to, and gives (overlap, acknowledged, fills, before another).
fn insert(segments: &mut Segments, from: u64, to: u64) -> (u32, u32, bool, bool) {
    let found = segments.insert(BASE + from, (to - from) as u32, 10);
    (
        found.overlap,
        found.acknowledged,
        found.fills,
        found.before_another,
    )
}

macro_rules! cases {
    ($($name:ident: $from:literal..$to:literal => $overlap:literal, $fills:literal, $before:literal;)*) => {
        $(#[test]
        fn $name() {
            let mut segments = two();
            assert_eq!(insert(&mut segments, $from, $to), ($overlap, 0, $fills, $before));
            assert!(segments.has(BASE + $from, BASE + $to));
        })*
    };
}

// The functional cases of a segment against those that are there: 100..200 and 300..400.
cases! {
    before_all: 10..50 => 0, true, true;
    adjacent_before: 50..100 => 0, true, true;
    left_overlap: 50..150 => 50, true, true;
    left_overlap_by_one: 50..101 => 1, true, true;
    left_and_all_of_it: 50..200 => 100, true, false;
    around_one: 50..250 => 100, true, true;
    inside: 120..180 => 60, false, false;
    inside_at_the_left: 100..150 => 50, false, false;
    inside_at_the_right: 150..200 => 50, false, false;
    equal: 100..200 => 100, false, false;
    right_overlap: 150..250 => 50, true, true;
    right_overlap_by_one: 199..250 => 1, true, true;
    equal_and_beyond: 100..250 => 100, true, true;
    adjacent_after: 200..250 => 0, true, true;
    between: 220..280 => 0, true, true;
    the_gap_exactly: 200..300 => 0, true, true;
    adjacent_before_the_second: 250..300 => 0, true, true;
    gap_and_one_of_the_second: 200..301 => 1, true, true;
    spanning_both_inside: 150..350 => 100, true, true;
    spanning_both_exactly: 100..400 => 200, true, false;
    around_both: 50..450 => 200, true, false;
    second_left: 250..350 => 50, true, true;
    second_right: 350..450 => 50, false, false;
    second_and_beyond: 300..450 => 100, false, false;
    adjacent_after_all: 400..450 => 0, false, false;
    after_all: 500..600 => 0, false, false;
    one_octet_new: 250..251 => 0, true, true;
    one_octet_old: 150..151 => 1, false, false;
}

#[test]
fn at_the_wrap_of_sequence_numbers_offsets_go_on() {
    let mut segments = Segments::default();
    let edge = 2 * BASE;
    segments.insert(edge - 100, 100, 1);
    segments.insert(edge, 100, 2);
    let found = segments.insert(edge - 50, 100, 3);
    assert_eq!((found.overlap, found.fills), (100, false));
    assert_eq!(segments.acknowledge(edge + 100).segments, 2);
    assert_eq!(segments.top(), edge + 100);
}

#[test]
fn an_acknowledgement_beyond_any_window_is_not_believed() {
    let mut segments = two();
    segments.acknowledge(BASE + 400 + (1 << 30) + 1);
    assert_eq!(segments.acked(), 0);
    segments.acknowledge(BASE + 400 + (1 << 30));
    assert_eq!(segments.acked(), BASE + 400 + (1 << 30));
}

#[test]
fn what_is_acknowledged_is_known_to_be() {
    let mut segments = two();
    segments.acknowledge(BASE + 400);
    assert_eq!(insert(&mut segments, 120, 180), (60, 60, false, false));
    // The gap between the two was never seen, and is now.
    assert_eq!(insert(&mut segments, 150, 350), (100, 100, true, true));
    assert_eq!(insert(&mut segments, 200, 300), (100, 100, false, false));
}

#[test]
fn a_segment_partly_acknowledged_counts_both_parts() {
    let mut segments = two();
    segments.acknowledge(BASE + 200);
    assert_eq!(insert(&mut segments, 150, 350), (100, 50, true, true));
}

#[test]
fn data_seen_after_its_acknowledgement_is_new() {
    let mut segments = two();
    segments.acknowledge(BASE + 500);
    assert_eq!(insert(&mut segments, 400, 500), (0, 0, false, false));
    assert_eq!(insert(&mut segments, 400, 500), (100, 100, false, false));
}

#[test]
fn an_acknowledgement_finds_the_segment_that_ends_there() {
    let mut segments = two();
    let covered = segments.acknowledge(BASE + 200);
    assert_eq!(covered.segments, 1);
    assert_eq!(
        covered.exact.map(|sent| (sent.first, sent.time)),
        Some((BASE + 100, 1))
    );
    assert!(!covered.waited);
    assert_eq!(segments.acknowledge(BASE + 200), Acknowledged::default());
}

#[test]
fn a_segment_sent_before_a_retransmission_below_it_has_waited() {
    let mut segments = two();
    segments.insert(BASE + 100, 100, 9);
    let covered = segments.acknowledge(BASE + 400);
    assert_eq!(covered.segments, 2);
    assert!(covered.waited);
    assert_eq!(covered.exact.map(|sent| sent.again), Some(0));
}

#[test]
fn thousands_in_flight_are_kept_in_order_and_acknowledged_one_by_one() {
    let mut segments = Segments::default();
    let count = 10_000u64;
    // Every other one first, so that the others fill gaps.
    for number in (0..count).step_by(2).chain((1..count).step_by(2)) {
        segments.insert(BASE + number * 100, 100, number as i64);
    }
    assert_eq!(segments.in_flight(), count as usize);
    for number in 0..count {
        let covered = segments.acknowledge(BASE + (number + 1) * 100);
        assert_eq!(covered.segments, 1);
        assert_eq!(covered.exact.map(|sent| sent.time), Some(number as i64));
    }
    assert_eq!(segments.in_flight(), 0);
}

#[test]
fn more_than_the_limit_in_flight_are_forgotten_but_stay_known() {
    let mut segments = Segments::default();
    for number in 0..=FLIGHT_MAX as u64 {
        segments.insert(BASE + number * 10, 10, 0);
    }
    assert!(segments.in_flight() <= FLIGHT_MAX);
    assert!(segments.forgotten() > 0);
    assert_eq!(segments.insert(BASE, 10, 1).overlap, 10);
}

/// Keeps every octet's history, and each segment in a plain list that is walked from its head.
#[derive(Default)]
struct Model {
    /// How often each octet was sent.
    sent: BTreeMap<u64, u32>,
    list: Vec<Sent>,
    edge: u64,
    acked: u64,
    acked_time: i64,
}

impl Model {
    fn insert(&mut self, first: u64, length: u32, time: i64) -> (u32, u32, bool, Option<Again>) {
        let end = first + u64::from(length);
        let top = self.sent.last_key_value().map_or(0, |(octet, _)| octet + 1);
        let mut overlap = 0;
        let (mut acknowledged, mut fills) = (0, false);
        for octet in first..end {
            let times = self.sent.entry(octet).or_default();
            if *times > 0 {
                overlap += 1;
                acknowledged += u32::from(octet < self.edge);
            } else {
                fills |= octet < top;
            }
            *times += 1;
        }
        if acknowledged > 0 {
            self.acked_time = self.acked_time.max(time);
        }
        let mut again = None;
        for sent in &mut self.list {
            if sent.first < end && first < sent.end() {
                sent.again += 1;
                let before = Again {
                    time: sent.time,
                    count: sent.again,
                };
                let is_first = again.is_none();
                again.get_or_insert(before);
                if is_first || sent.end() <= end {
                    sent.time = time;
                }
            }
        }
        // What lies between becomes segments of its own.
        let mut from = first.max(self.edge);
        let mut pieces = Vec::new();
        for sent in self
            .list
            .iter()
            .filter(|sent| sent.first < end && first < sent.end())
        {
            if from < sent.first {
                pieces.push((from, sent.first));
            }
            from = from.max(sent.end());
        }
        if from < end {
            pieces.push((from, end));
        }
        for (from, to) in pieces {
            self.list.push(Sent {
                first: from,
                time,
                length: (to - from) as u32,
                again: 0,
            });
        }
        self.list.sort_by_key(|sent| sent.first);
        (overlap, acknowledged, fills, again)
    }

    fn acknowledge(&mut self, ack: u64) -> Acknowledged {
        let mut covered = Acknowledged::default();
        if ack <= self.acked {
            return covered;
        }
        self.acked = ack;
        for sent in self.list.iter().filter(|sent| sent.first < ack) {
            covered.segments += 1;
            self.acked_time = self.acked_time.max(sent.time);
            self.edge = self.edge.max(sent.end());
            if sent.end() == ack {
                covered.exact = Some(*sent);
                covered.waited = self.acked_time > sent.time;
            }
        }
        self.list.retain(|sent| sent.first >= ack);
        self.edge = self.edge.max(ack);
        covered
    }
}

#[derive(Debug, Clone)]
enum Step {
    Send(u64, u32),
    Ack(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Near the wrap of 32 bits, in few places, so that all kinds of overlap come up.
    let send = (0u64..600, 1u32..40)
        .prop_map(|(first, length)| Step::Send(2 * BASE - 300 + first, length));
    let ack = (0u64..640).prop_map(|ack| Step::Ack(2 * BASE - 300 + ack));
    prop::collection::vec(prop_oneof![6 => send, 1 => ack], 1..600)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_history_is_that_of_the_plain_model(steps in steps()) {
        let (mut segments, mut model) = (Segments::default(), Model::default());
        for (time, step) in steps.into_iter().enumerate() {
            let time = time as i64 + 1;
            match step {
                Step::Send(first, length) => {
                    let found = segments.insert(first, length, time);
                    let (overlap, acknowledged, fills, again) = model.insert(first, length, time);
                    prop_assert_eq!((found.overlap, found.fills, found.again), (overlap, fills, again));
                    // Bytes of a partly acknowledged segment count in the same way as its
                    // unacknowledged rest.
                    prop_assert!(found.acknowledged <= acknowledged);
                }
                Step::Ack(ack) => {
                    prop_assert_eq!(segments.acknowledge(ack), model.acknowledge(ack));
                }
            }
            prop_assert_eq!(segments.in_flight(), model.list.len());
        }
    }
}
