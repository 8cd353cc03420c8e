//! Each finding has packets that show it and similar packets that do not.

use super::*;
use crate::analyzer::{Analyzer, Config};
use crate::connection::Connection;
use crate::key::FlowKey;
use crate::segment::{ACK, CWR, ECE, FIN, PSH, RST, SYN, SegmentOptions};
use crate::verdict::Nobody;

const MS: i64 = 1_000_000;
const START: i64 = 1_700_000_000_000_000_000;
const MSS: u32 = 1460;

/// `a` is the client. Sequence numbers of `a` begin at 100 and those of `b` at 1000, after the SYNs.
#[derive(Default)]
struct Capture(Vec<Segment>);

fn modern() -> SegmentOptions {
    SegmentOptions {
        mss: Some(1460),
        window_scale: Some(0),
        sack_permitted: true,
        ..SegmentOptions::default()
    }
}

impl Capture {
    /// After a handshake over a path with a round trip of 20 ms behind the point of capture, which is near `near_a`'s end.
    fn new(near_a: bool) -> Capture {
        Capture::with(near_a, modern(), modern())
    }

    fn with(near_a: bool, a: SegmentOptions, b: SegmentOptions) -> Capture {
        let mut capture = Capture::default();
        let (to_a, to_b) = if near_a { (0, 20 * MS) } else { (20 * MS, 0) };
        capture.packet(-to_a - to_b, true, SYN, 99, 0, 0).options = a;
        capture.packet(-to_a, false, SYN | ACK, 999, 100, 0).options = b;
        capture.packet(0, true, ACK, 100, 1000, 0);
        capture
    }

    fn packet(
        &mut self,
        at: i64,
        from_a: bool,
        flags: u16,
        sequence: u32,
        ack: u32,
        payload: u32,
    ) -> &mut Segment {
        let (key, from_low) = match from_a {
            true => FlowKey::new(&[1; 16], 1, &[2; 16], 2, 0),
            false => FlowKey::new(&[2; 16], 2, &[1; 16], 1, 0),
        };
        let number = self.0.len() as u64 + 1;
        let segment = Segment {
            number,
            time: START + at,
            clock: START + at,
            key,
            from_low,
            version: 4,
            hop_limit: if from_a { 64 } else { 57 },
            id: number as u16,
            flags,
            sequence,
            acknowledgment: ack,
            window: 60_000,
            payload,
            captured: payload,
            ..Segment::default()
        };
        self.0.push(segment);
        self.0.last_mut().unwrap()
    }

    fn found(&self) -> Findings {
        let config = Config {
            why: true,
            ..Config::default()
        };
        let mut analyzer = Analyzer::new(config);
        for segment in &self.0 {
            analyzer.packet(segment, &[], &mut Nobody);
        }
        analyzer.finish();
        let finished = analyzer.take_finished();
        assert_eq!(finished.len(), 1);
        let mut connection = Connection::default();
        connection.thaw(&finished[0].octets).unwrap();
        let found = connection.findings();
        found.unwrap()
    }

    fn a(&self, finding: Finding) -> Seen {
        self.found().a.seen(finding)
    }

    fn b(&self, finding: Finding) -> Seen {
        self.found().b.seen(finding)
    }
}

#[test]
fn every_finding_has_its_row() {
    for (index, description) in DESCRIPTIONS.iter().enumerate() {
        assert_eq!(description.finding as usize, index);
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/why.md");
    let page = std::fs::read_to_string(page).unwrap();
    for description in &DESCRIPTIONS {
        let row = format!(
            "| `{}` | {} | {} | {} |",
            description.name, description.rule, description.source, description.contradicted_by
        );
        assert!(page.contains(&row), "docs/why.md lacks: {row}");
    }
}

#[test]
fn a_usual_connection_shows_nothing() {
    let mut capture = Capture::new(true);
    capture.packet(MS, true, ACK | PSH, 100, 1000, 200);
    capture.packet(21 * MS, false, ACK, 1000, 300, MSS);
    capture.packet(22 * MS, true, ACK, 300, 1000 + MSS, 0);
    capture.packet(23 * MS, true, ACK | FIN, 300, 1000 + MSS, 0);
    capture.packet(43 * MS, false, ACK | FIN, 1000 + MSS, 301, 0);
    capture.packet(44 * MS, true, ACK, 301, 1001 + MSS, 0);
    let found = capture.found();
    for finding in Finding::all() {
        assert_eq!(found.a.seen(finding), Seen::default(), "{finding:?}");
        assert_eq!(found.b.seen(finding), Seen::default(), "{finding:?}");
    }
}

#[test]
fn an_answer_without_window_scale_is_found() {
    let without = SegmentOptions {
        window_scale: None,
        ..modern()
    };
    let answer = Capture::with(true, modern(), without);
    assert_eq!(answer.b(Finding::NoWindowScale).first, 2);
    assert_eq!(answer.a(Finding::NoWindowScale).count, 0);
    // RFC 7323 2.2: the answer may have the option only if the SYN has it.
    let both = Capture::with(true, without, without);
    assert_eq!(both.a(Finding::NoWindowScale).first, 1);
    assert_eq!(both.b(Finding::NoWindowScale).count, 0);
}

#[test]
fn an_answer_without_sack_is_found() {
    let without = SegmentOptions {
        sack_permitted: false,
        ..modern()
    };
    let answer = Capture::with(true, modern(), without);
    assert_eq!(answer.b(Finding::NoSack).first, 2);
    let both = Capture::with(true, without, without);
    assert_eq!(both.b(Finding::NoSack).count, 0);
}

#[test]
fn the_mss_of_pppoe_is_small() {
    let pppoe = SegmentOptions {
        mss: Some(1452),
        ..modern()
    };
    let capture = Capture::with(true, pppoe, modern());
    assert_eq!(capture.a(Finding::SmallMss).value, 1452);
    assert_eq!(capture.b(Finding::SmallMss).count, 0);
}

#[test]
fn a_repeated_syn_is_found_and_compared() {
    let capture = |options: SegmentOptions| {
        let mut capture = Capture::default();
        capture.packet(0, true, SYN, 99, 0, 0).options = modern();
        capture.packet(1000 * MS, true, SYN, 99, 0, 0).options = options;
        capture
    };
    let same = capture(modern());
    let repeated = same.a(Finding::SynRepeated);
    assert_eq!((repeated.count, repeated.value), (1, 1_000 * MS as u64));
    assert_eq!(same.a(Finding::SynChanged).count, 0);
    let plain = capture(SegmentOptions::default());
    assert_eq!(plain.a(Finding::SynChanged).first, 2);
}

#[test]
fn a_reset_has_its_reason() {
    // RFC 9293 3.5.2: the answer to a SYN for a closed port.
    let mut refused = Capture::default();
    refused.packet(0, true, SYN, 99, 0, 0);
    refused.packet(20 * MS, false, RST | ACK, 0, 100, 0);
    assert_eq!(refused.b(Finding::Refused).first, 2);

    let mut lost = Capture::new(true);
    lost.packet(MS, true, ACK, 100, 1000, 500);
    lost.packet(22 * MS, false, RST, 1000, 0, 0).hop_limit = 57;
    assert_eq!(lost.b(Finding::ResetDataLost).value, 500);

    let mut closed = Capture::new(true);
    closed.packet(MS, true, ACK | FIN, 100, 1000, 0);
    closed.packet(21 * MS, false, RST, 1000, 0, 0);
    assert_eq!(closed.b(Finding::ResetAfterClose).count, 1);

    let mut idle = Capture::new(true);
    idle.packet(MS, true, ACK, 100, 1000, 500);
    idle.packet(21 * MS, false, ACK, 1000, 600, 0);
    idle.packet(90_000 * MS, false, RST, 1000, 0, 0);
    assert_eq!(idle.b(Finding::ResetIdle).count, 1);

    let mut plain = Capture::new(true);
    plain.packet(MS, true, RST, 100, 0, 0);
    assert_eq!(plain.a(Finding::Reset).count, 1);
}

#[test]
fn a_reset_with_another_ttl_is_another_devices() {
    let mut far = Capture::new(true);
    far.packet(MS, true, ACK, 100, 1000, 500);
    far.packet(2 * MS, false, RST, 1000, 0, 0).hop_limit = 61;
    assert_eq!(far.b(Finding::ResetInjected).first, 5);

    let mut goes_on = Capture::new(true);
    goes_on.packet(MS, true, ACK, 100, 1000, 500);
    goes_on.packet(2 * MS, false, RST, 1000, 0, 0);
    goes_on.packet(21 * MS, false, ACK, 1000, 600, MSS);
    assert_eq!(goes_on.b(Finding::ResetInjected).first, 5);

    let mut own = Capture::new(true);
    own.packet(MS, true, ACK, 100, 1000, 500);
    own.packet(2 * MS, false, RST, 1000, 0, 0);
    assert_eq!(own.b(Finding::ResetInjected).count, 0);
}

#[test]
fn a_first_flight_of_two_segments_is_small() {
    let flight = |segments: u32, flags: u16| {
        let mut capture = Capture::new(true);
        for index in 0..segments {
            let last = if index + 1 == segments { flags } else { 0 };
            capture.packet(MS, true, ACK | last, 100 + index * MSS, 1000, MSS);
        }
        capture.packet(21 * MS, false, ACK, 1000, 100 + MSS, 0);
        capture.a(Finding::SmallInitialWindow)
    };
    assert_eq!(flight(2, 0).value, 2);
    assert_eq!(flight(10, 0).count, 0);
    // The application wrote no more.
    assert_eq!(flight(2, PSH).count, 0);
}

#[test]
fn a_closed_window_has_its_time() {
    let mut capture = Capture::new(true);
    capture.packet(MS, false, ACK, 1000, 100, MSS);
    capture.packet(2 * MS, true, ACK, 100, 1000 + MSS, 0).window = 0;
    capture.packet(302 * MS, true, ACK, 100, 1000 + MSS, 0);
    let zero = capture.a(Finding::ZeroWindow);
    assert_eq!(
        (zero.count, zero.first, zero.value),
        (1, 5, 300 * MS as u64)
    );
    assert_eq!(capture.b(Finding::ZeroWindow).count, 0);
}

#[test]
fn a_window_that_opens_in_small_steps_is_silly() {
    let opens_by = |bytes: u32| {
        let mut capture = Capture::new(true);
        for segment in &mut capture.0 {
            segment.window = 2 * MSS as u16;
        }
        let mut sequence = 1000;
        for step in 0..6 {
            let at = (1 + 2 * step) * MS;
            let length = if step == 0 { 2 * MSS } else { bytes };
            capture.packet(at, false, ACK, sequence, 100, length);
            sequence += length;
            let answer = capture.packet(at + MS, true, ACK, 100, sequence, 0);
            answer.window = bytes as u16;
        }
        capture.a(Finding::SillyWindow)
    };
    assert_eq!((opens_by(100).count, opens_by(100).value), (6, 100));
    // RFC 9293 3.8.6.2.2: a full segment is no small step.
    assert_eq!(opens_by(MSS).count, 0);
}

#[test]
fn a_small_segment_waits_for_a_delayed_ack() {
    let answer_after = |delay: i64, next: i64| {
        let mut capture = Capture::new(true);
        capture.packet(MS, true, ACK | PSH, 100, 1000, 50);
        capture.packet(MS + delay, false, ACK, 1000, 150, 0);
        capture.packet(MS + delay + next, true, ACK | PSH, 150, 1000, 50);
        capture.a(Finding::DelayedAck)
    };
    assert_eq!(answer_after(60 * MS, MS / 10).value, 40 * MS as u64);
    assert_eq!(answer_after(21 * MS, MS / 10).count, 0);
    // The application was the slower one.
    assert_eq!(answer_after(60 * MS, 30 * MS).count, 0);
}

#[test]
fn full_segments_that_never_arrive_are_a_black_hole() {
    let mut capture = Capture::new(true);
    capture.packet(MS, true, ACK | PSH, 100, 1000, 200);
    capture.packet(21 * MS, false, ACK, 1000, 300, 0);
    for (at, index) in [(22, 0), (22, 1), (300, 0), (900, 0), (2100, 0)] {
        capture.packet(at * MS, true, ACK, 300 + index * MSS, 1000, MSS);
    }
    let mut shrunk = Capture(capture.0.clone());
    assert_eq!(capture.a(Finding::PathMtu).value, u64::from(MSS));
    // The sender tries smaller segments, which arrive (RFC 8899).
    shrunk.packet(4500 * MS, true, ACK, 300, 1000, 1000);
    shrunk.packet(4520 * MS, false, ACK, 1000, 1300, 0);
    assert_eq!(shrunk.a(Finding::PathMtu).count, 1);
    // An outage: the full segment arrives at last.
    capture.packet(2120 * MS, false, ACK, 1000, 300 + 2 * MSS, 0);
    assert_eq!(capture.a(Finding::PathMtu).count, 0);
}

#[test]
fn joined_segments_are_over_the_mss() {
    let of = |payload: u32| {
        let mut capture = Capture::new(true);
        capture.packet(MS, true, ACK, 100, 1000, payload);
        capture.a(Finding::OverMss)
    };
    assert_eq!(of(2 * MSS).value, u64::from(2 * MSS));
    assert_eq!(of(MSS).count, 0);
}

/// A connection that agreed on ECN and sends `count` segments with the field `ecn`.
fn with_ecn(count: u32, ecn: u8) -> Capture {
    let mut capture = Capture::new(true);
    capture.0[0].flags = SYN | ECE | CWR;
    capture.0[1].flags = SYN | ACK | ECE;
    for index in 0..count {
        let at = i64::from(index + 1) * MS;
        capture
            .packet(at, true, ACK, 100 + index * 100, 1000, 100)
            .traffic_class = ecn;
    }
    capture
}

#[test]
fn data_without_ect_after_agreement_is_cleared() {
    assert_eq!(with_ecn(12, 0).a(Finding::EcnCleared).count, 1);
    assert_eq!(with_ecn(12, 2).a(Finding::EcnCleared).count, 0);
    let mut refused = with_ecn(12, 0);
    refused.0[1].flags = SYN | ACK;
    assert_eq!(refused.a(Finding::EcnCleared).count, 0);
}

#[test]
fn marks_are_found_on_both_sides_of_the_router() {
    assert_eq!(with_ecn(3, 3).a(Finding::EcnMarked).count, 3);
    let mut behind = with_ecn(3, 2);
    behind.packet(30 * MS, false, ACK | ECE, 1000, 400, 0);
    assert_eq!(behind.a(Finding::EcnMarked).count, 1);
    assert_eq!(with_ecn(3, 2).a(Finding::EcnMarked).count, 0);
}

#[test]
fn acknowledged_data_that_the_capture_lacks_is_found() {
    let mut capture = Capture::new(true);
    capture.packet(MS, true, ACK, 100, 1000, 500);
    capture.packet(2 * MS, true, ACK, 700, 1000, 500);
    capture.packet(22 * MS, false, ACK, 1000, 1200, 0);
    assert_eq!(capture.a(Finding::CaptureLoss).value, 100);
    assert_eq!(capture.b(Finding::CaptureLoss).count, 0);
}

#[test]
fn the_answer_to_losses_names_the_congestion_control() {
    let of = |ratio: f64, count: u32| Response {
        count,
        sum: ratio * f64::from(count),
        squares: ratio * ratio * f64::from(count),
    };
    // RFC 5681: half. RFC 9438 4.6: 0.7.
    assert_eq!(of(0.5, 4).like(), Some("reno"));
    assert_eq!(of(0.7, 4).like(), Some("cubic"));
    assert_eq!(of(0.6, 4).like(), None);
    assert_eq!(of(0.5, 2).like(), None);
}
