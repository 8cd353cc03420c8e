mod intervals;
mod rules;

use super::*;
use crate::analyzer::{Analyzer, Config};
use crate::connection::Connection;
use crate::key::FlowKey;
use crate::segment::{ACK, FIN, PSH, SYN, SegmentOptions};
use crate::verdict::Nobody;
use proptest::prelude::*;

const MS: i64 = 1_000_000;
const MSS: u32 = 1_000;
const START: i64 = 1_700_000_000_000_000_000;

/// A download: `a` is the client, and `b` sends the data.
struct Capture {
    segments: Vec<Segment>,
    /// Round trip from the point of capture to the client and to the server.
    to_a: i64,
    to_b: i64,
}

impl Capture {
    /// After the handshake, at time 0.
    fn new(to_a: i64, to_b: i64) -> Capture {
        let mut capture = Capture {
            segments: Vec::new(),
            to_a,
            to_b,
        };
        let open = SegmentOptions {
            window_scale: Some(0),
            sack_permitted: true,
            ..SegmentOptions::default()
        };
        let begin = -(to_a + to_b);
        for (at, from_a, flags, sequence, ack) in [
            (begin, true, SYN, 99, 0),
            (begin + to_b, false, SYN | ACK, 999, 100),
            (0, true, ACK, 100, 1_000),
        ] {
            capture.push(at, from_a, flags, sequence, ack, 0);
            if flags & SYN != 0
                && let Some(last) = capture.segments.last_mut()
            {
                last.options = open;
            }
        }
        capture
    }

    fn push(&mut self, at: i64, from_a: bool, flags: u16, sequence: u32, ack: u32, payload: u32) {
        let (key, from_low) = match from_a {
            true => FlowKey::new(&[1; 16], 1, &[2; 16], 2, 0),
            false => FlowKey::new(&[2; 16], 2, &[1; 16], 1, 0),
        };
        let number = self.segments.len() as u64 + 1;
        self.segments.push(Segment {
            number,
            time: START + at,
            clock: START + at,
            key,
            from_low,
            version: 4,
            flags,
            sequence,
            acknowledgment: ack,
            window: 50_000,
            payload,
            captured: payload,
            ..Segment::default()
        });
    }

    /// The server's segment number `index`, captured at `at`.
    fn data(&mut self, at: i64, index: u32) {
        self.push(at, false, ACK, 1_000 + index * MSS, 200, MSS);
    }

    /// The same, the end of a write.
    fn end(&mut self, at: i64, index: u32) {
        self.push(at, false, ACK | PSH, 1_000 + index * MSS, 200, MSS);
    }

    /// The client acknowledges all segments below `index`.
    fn ack(&mut self, at: i64, index: u32) {
        self.push(at, true, ACK, 200, 1_000 + index * MSS, 0);
    }

    fn window(&mut self, window: u16) {
        if let Some(last) = self.segments.last_mut() {
            last.window = window;
        }
    }

    /// The client asks.
    fn request(&mut self, at: i64) {
        self.push(at, true, ACK | PSH, 100, 1_000, 100);
    }

    fn sack(&mut self, left: u32, right: u32) {
        if let Some(last) = self.segments.last_mut() {
            last.options.sack[0] = (1_000 + left * MSS, 1_000 + right * MSS);
            last.options.blocks = 1;
        }
    }

    fn analyse(mut self) -> (Connection, Why) {
        self.segments.sort_by_key(|segment| segment.time);
        for (number, segment) in self.segments.iter_mut().enumerate() {
            segment.number = number as u64 + 1;
        }
        let connection = analyse(&self.segments, 64).remove(0);
        let why = connection.why.as_ref().unwrap().until(connection.last_time);
        (connection, why)
    }

    /// Milliseconds of a cause.
    fn of(self, cause: Cause) -> i64 {
        let (_, why) = self.analyse();
        why.b.shares()[cause as usize].time / MS
    }
}

fn analyse(segments: &[Segment], hot: usize) -> Vec<Connection> {
    let mut analyzer = Analyzer::new(Config {
        why: true,
        hot,
        ..Config::default()
    });
    for segment in segments {
        analyzer.packet(segment, &[], &mut Nobody);
    }
    analyzer.finish();
    let mut finished = analyzer.take_finished();
    finished.sort_by_key(|finished| finished.first_packet);
    finished
        .iter()
        .map(|finished| {
            let mut connection = Connection::default();
            connection.thaw(&finished.octets).unwrap();
            connection
        })
        .collect()
}

/// Sends `count` segments in windows of `flight`, each released by the ACK of the one before. `queue` is added to the
/// round trip of each.
fn windows(
    capture: &mut Capture,
    flight: u32,
    count: u32,
    window: u16,
    queue: impl Fn(u32) -> i64,
) {
    let (to_a, to_b) = (capture.to_a, capture.to_b);
    let mut at = to_b + MS;
    let mut sent = 0;
    while sent < count {
        let more = flight.min(count - sent);
        for index in sent..sent + more {
            capture.data(at + i64::from(index - sent) * 10_000, index);
        }
        sent += more;
        capture.ack(at + to_a + queue(sent), sent);
        capture.window(window);
        at += to_a + to_b + queue(sent) + 100_000;
    }
}

#[test]
fn a_full_receivers_window_is_its_receivers() {
    for (to_a, to_b) in [(40 * MS, 0), (20 * MS, 20 * MS), (0, 40 * MS)] {
        let mut capture = Capture::new(to_a, to_b);
        windows(&mut capture, 10, 500, 10 * MSS as u16, |_| 0);
        let share = capture.of(Cause::Receiver);
        // The window of the handshake was larger, and receivers do not take windows back.
        assert!((1_750..2_200).contains(&share), "{to_a} {to_b}: {share}");
    }
}

#[test]
fn a_window_that_is_not_full_is_not_the_receivers() {
    let mut capture = Capture::new(20 * MS, 20 * MS);
    windows(&mut capture, 10, 500, 50_000, |_| 0);
    assert_eq!(capture.of(Cause::Receiver), 0);
}

#[test]
fn a_window_whose_scale_is_unknown_is_not_the_receivers() {
    let mut capture = Capture::new(20 * MS, 20 * MS);
    windows(&mut capture, 10, 500, 10 * MSS as u16, |_| 0);
    capture.segments.drain(..2);
    assert_eq!(capture.of(Cause::Receiver), 0);
}

#[test]
fn a_zero_window_is_the_receivers() {
    let mut capture = Capture::new(10 * MS, 0);
    capture.window(MSS as u16);
    capture.data(MS, 0);
    capture.ack(11 * MS, 1);
    capture.window(0);
    capture.ack(511 * MS, 1);
    capture.data(512 * MS, 1);
    capture.ack(522 * MS, 2);
    assert!((490..=512).contains(&capture.of(Cause::Receiver)));
}

#[test]
fn an_answer_that_takes_long_is_the_applications() {
    let mut capture = Capture::new(10 * MS, 10 * MS);
    capture.request(MS);
    capture.end(5_000 * MS, 0);
    capture.ack(5_010 * MS, 1);
    let (_, why) = capture.analyse();
    let time = |cause: Cause| why.b.shares()[cause as usize].time / MS;
    assert!(time(Cause::Application) >= 4_990);
    assert_eq!(time(Cause::Idle), 0);
}

#[test]
fn a_pause_after_the_last_answer_is_idle() {
    let mut capture = Capture::new(10 * MS, 10 * MS);
    capture.request(MS);
    capture.end(20 * MS, 0);
    capture.ack(30 * MS, 1);
    capture.end(9_000 * MS, 1);
    capture.ack(9_010 * MS, 2);
    assert!(capture.of(Cause::Idle) >= 8_900);
}

#[test]
fn small_writes_are_the_applications() {
    let mut capture = Capture::new(0, 20 * MS);
    for index in 0..50 {
        let at = i64::from(index) * 100 * MS + 30 * MS;
        capture.end(at, index);
        capture.ack(at + 50_000, index + 1);
    }
    let share = capture.of(Cause::Application);
    assert!(share >= 4_800, "{share}");
}

#[test]
fn round_trips_that_grow_are_a_queue() {
    let mut capture = Capture::new(20 * MS, 0);
    windows(&mut capture, 10, 500, 50_000, |sent| {
        i64::from(sent.min(200)) * MS / 5
    });
    let (_, why) = capture.analyse();
    let time = |cause: Cause| why.b.shares()[cause as usize].time / MS;
    assert!(time(Cause::Queue) > 2_000, "{:?}", why.b.shares());
    assert_eq!(time(Cause::Receiver), 0);
}

#[test]
fn a_loss_that_sack_shows_is_a_fast_retransmission() {
    let mut capture = Capture::new(20 * MS, 0);
    for index in (0..10).filter(|index| *index != 3) {
        capture.data(MS + i64::from(index) * 1_000, index);
    }
    capture.data(MS + 3_000, 3);
    capture.ack(21 * MS, 3);
    for right in 5..10 {
        capture.ack(21 * MS + i64::from(right) * 1_000, 3);
        capture.sack(4, right);
    }
    capture.data(22 * MS, 3);
    capture.ack(42 * MS, 10);
    let (_, why) = capture.analyse();
    let time = |cause: Cause| why.b.shares()[cause as usize].time / MS;
    assert!(
        (38..=42).contains(&time(Cause::FastRetransmit)),
        "{:?}",
        why.b.shares()
    );
    assert_eq!(time(Cause::Timeout) + time(Cause::TailLoss), 0);
}

#[test]
fn a_silence_before_a_retransmission_is_a_timeout_and_at_the_end_a_tail_loss() {
    for (again, cause, other) in [
        (2, Cause::Timeout, Cause::TailLoss),
        (4, Cause::TailLoss, Cause::Timeout),
    ] {
        let mut capture = Capture::new(20 * MS, 0);
        for index in 0..5 {
            capture.data(MS + i64::from(index) * 1_000, index);
        }
        capture.ack(21 * MS, again);
        capture.data(321 * MS, again);
        capture.ack(341 * MS, 5);
        let (_, why) = capture.analyse();
        let time = |cause: Cause| why.b.shares()[cause as usize].time / MS;
        assert!(
            (330..=341).contains(&time(cause)),
            "{again} {:?}",
            why.b.shares()
        );
        assert_eq!(time(other), 0);
    }
}

#[test]
fn a_retransmission_of_acknowledged_data_is_spurious() {
    let mut capture = Capture::new(20 * MS, 0);
    for index in 0..5 {
        capture.data(MS + i64::from(index) * 1_000, index);
    }
    capture.ack(21 * MS, 5);
    capture.data(300 * MS, 4);
    capture.ack(320 * MS, 5);
    let (_, why) = capture.analyse();
    let time = |cause: Cause| why.b.shares()[cause as usize].time / MS;
    assert!(time(Cause::Spurious) > 250, "{:?}", why.b.shares());
    assert_eq!(time(Cause::TailLoss), 0);
}

#[test]
fn after_both_fins_all_time_is_idle() {
    let closing = |rest: bool| {
        let mut capture = Capture::new(10 * MS, 0);
        capture.data(MS, 0);
        capture.ack(11 * MS, 1);
        capture.push(12 * MS, false, ACK | FIN, 1_000 + MSS, 200, 0);
        capture.push(22 * MS, true, ACK | FIN, 200, 1_001 + MSS, 0);
        capture.push(32 * MS, false, ACK, 1_001 + MSS, 201, 0);
        if rest {
            // A copy of the last ACK that comes late.
            capture.push(9_032 * MS, false, ACK, 1_001 + MSS, 201, 0);
        }
        capture.analyse().1
    };
    let (short, long) = (closing(false), closing(true));
    assert!(short.over && long.over);
    let idle = |why: &Why| why.b.shares()[Cause::Idle as usize].time;
    assert_eq!(idle(&long) - idle(&short), 9_000 * MS);
    for cause in (0..cause::CAUSES).filter(|cause| *cause != Cause::Idle as usize) {
        assert_eq!(short.b.shares()[cause], long.b.shares()[cause], "{cause}");
    }
}

#[test]
fn the_handshake_ends_with_the_first_packet_after_the_syns() {
    let mut capture = Capture::new(30 * MS, 50 * MS);
    capture.request(MS);
    capture.end(60 * MS, 0);
    capture.ack(90 * MS, 1);
    assert_eq!(capture.of(Cause::Handshake), 80);
}

#[test]
fn the_start_of_tls_ends_with_the_clients_first_data() {
    let mut capture = Capture::new(30 * MS, 50 * MS);
    capture.request(MS);
    capture.segments[3].lead = TLS_HANDSHAKE;
    capture.end(52 * MS, 0);
    capture.push(82 * MS, true, ACK | PSH, 200, 2_000, 100);
    capture.segments[5].lead = TLS_DATA;
    capture.end(400 * MS, 1);
    capture.ack(430 * MS, 2);
    let (_, why) = capture.analyse();
    let time = |cause: Cause| why.b.shares()[cause as usize].time / MS;
    assert_eq!(time(Cause::Tls), 82);
    assert!(time(Cause::Application) >= 310, "{:?}", why.b.shares());
}

#[test]
fn the_sentence_names_the_window_and_the_missing_option() {
    let mut capture = Capture::new(20 * MS, 20 * MS);
    windows(&mut capture, 10, 500, 10 * MSS as u16, |_| 0);
    for segment in &mut capture.segments {
        segment.options.window_scale = None;
        segment.window = 10 * MSS as u16;
    }
    let (connection, why) = capture.analyse();
    let verdict = Verdict::new(&connection, &why, false).unwrap();
    assert_eq!(verdict.cause, Cause::Receiver);
    let sentence = verdict.to_string();
    assert!(sentence.contains("of this download waited for the receiver's window (10000 bytes"));
    assert!(sentence.contains("neither SYN has the window scale option"));
    assert_eq!(verdict.vantage, Vantage::Between);
}

/// Any packets of two connections.
fn packet(number: u64, word: u64) -> Segment {
    let bits = |shift: u32, bits: u32| (word >> shift) as u32 & ((1 << bits) - 1);
    let mut capture = Capture {
        segments: Vec::new(),
        to_a: 0,
        to_b: 0,
    };
    let flags = match bits(0, 4) {
        0 => SYN,
        1 => SYN | ACK,
        2 => FIN | ACK,
        3 => 4,
        4..7 => ACK | PSH,
        _ => ACK,
    };
    let at = number as i64 * 3 * MS - i64::from(bits(40, 21));
    let (sequence, ack) = (bits(8, 9) * 37, bits(17, 9) * 37);
    capture.push(at, bits(4, 1) == 1, flags, sequence, ack, bits(26, 10));
    let mut segment = capture.segments[0];
    segment.number = number;
    segment.window = bits(36, 4) as u16 * 100;
    segment.lead = bits(5, 3) as u8 + 18;
    let [one, two, three, four, _, realm] = segment.key.parts();
    segment.key = FlowKey::from_parts([one, two, three, four, word >> 63, realm]);
    segment
}

proptest! {
    #[test]
    fn the_causes_add_up_to_the_connections_life(words in prop::collection::vec(any::<u64>(), 1..150)) {
        let segments: Vec<Segment> = words.iter().zip(1..).map(|(word, number)| packet(number, *word)).collect();
        for connection in analyse(&segments, 64) {
            let end = connection.last_time.max(connection.first_time);
            let why = connection.why.as_ref().unwrap();
            let latest = segments.iter().map(|one| one.time).max().unwrap_or(0).max(end);
            let whole = why.until(latest);
            for sender in [&whole.a, &whole.b] {
                let sum: i64 = sender.shares().iter().map(|share| share.time).sum();
                prop_assert_eq!(sum, latest - connection.first_time);
                prop_assert!(sender.shares().iter().all(|share| share.time >= 0 && share.longest >= 0));
            }
        }
    }

    #[test]
    fn freezing_in_between_changes_no_cause(words in prop::collection::vec(any::<u64>(), 1..150)) {
        let segments: Vec<Segment> = words.iter().zip(1..).map(|(word, number)| packet(number, *word)).collect();
        let (one, many) = (analyse(&segments, 1), analyse(&segments, 64));
        let whys = |all: Vec<Connection>| all.into_iter().map(|one| one.why).collect::<Vec<_>>();
        prop_assert_eq!(whys(one), whys(many));
    }
}
