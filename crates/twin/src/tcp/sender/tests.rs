use super::*;

const MS: u64 = 1_000_000;

fn sender(algorithm: Algorithm, initial: u32) -> Sender {
    let mut sender = Sender::new(Setup {
        algorithm,
        initial,
        mss: 1000,
    });
    sender.handshake(50 * MS);
    sender.write(1_000_000, 0);
    sender.open(1 << 30);
    sender
}

fn drain(sender: &mut Sender, now: u64) -> Vec<u64> {
    std::iter::from_fn(|| sender.poll(now))
        .map(|sent| sent.segment)
        .collect()
}

fn ack(sender: &mut Sender, next: u64, sacked: Option<u64>, now: u64) {
    sender.acknowledge(Ack { next, sacked }, now);
}

#[test]
fn slow_start_sends_two_segments_for_each_acknowledged_one() {
    let mut sender = sender(Algorithm::Reno, 10);
    assert_eq!(drain(&mut sender, 0), (0..10).collect::<Vec<_>>());
    // RFC 5681 3.1.
    ack(&mut sender, 2, None, 50 * MS);
    assert_eq!(drain(&mut sender, 50 * MS), [10, 11, 12, 13]);
    assert_eq!(sender.in_flight(), 12);
}

#[test]
fn three_segments_above_a_gap_show_a_loss_and_halve_the_window() {
    let mut sender = sender(Algorithm::Reno, 20);
    drain(&mut sender, 0);
    for sacked in 1..=2 {
        ack(&mut sender, 0, Some(sacked), 50 * MS);
        assert!(!drain(&mut sender, 50 * MS).contains(&0));
    }
    let before = sender.window();
    ack(&mut sender, 0, Some(3), 51 * MS);
    // RFC 6675 5: the gap is sent first.
    assert_eq!(drain(&mut sender, 51 * MS).first(), Some(&0));
    for sacked in 4..20 {
        ack(&mut sender, 0, Some(sacked), 52 * MS);
        drain(&mut sender, 52 * MS);
    }
    let end = sender.first + sender.segments.len() as u64;
    ack(&mut sender, end, None, 110 * MS);
    assert!(
        (sender.window() - before / 2.0).abs() <= 1.0,
        "{before} {}",
        sender.window()
    );
}

#[test]
fn cubic_keeps_seven_tenths() {
    let mut sender = sender(Algorithm::Cubic, 20);
    drain(&mut sender, 0);
    for sacked in 1..=3 {
        ack(&mut sender, 0, Some(sacked), 50 * MS);
    }
    // RFC 9438 4.6.
    let share = sender.control.threshold / 20.0;
    assert!((0.65..0.85).contains(&share), "{share}");
}

#[test]
fn a_gap_below_one_segment_is_lost_after_a_quarter_of_the_round_trip() {
    let mut sender = sender(Algorithm::Reno, 3);
    drain(&mut sender, 0);
    ack(&mut sender, 0, Some(2), 50 * MS);
    drain(&mut sender, 50 * MS);
    // RFC 8985 6.2.
    assert_eq!(sender.deadline(50 * MS), Some(62 * MS + MS / 2));
    sender.expire(63 * MS);
    assert_eq!(drain(&mut sender, 63 * MS).first(), Some(&0));
}

#[test]
fn silence_is_probed_and_then_times_out() {
    let mut sender = sender(Algorithm::Reno, 4);
    drain(&mut sender, 0);
    ack(&mut sender, 1, None, 50 * MS);
    assert_eq!(drain(&mut sender, 50 * MS), [4, 5]);
    // RFC 8985 7.2: two round trips, and 2 ms of ours.
    assert_eq!(sender.deadline(50 * MS), Some(152 * MS));
    sender.expire(152 * MS);
    assert_eq!(drain(&mut sender, 152 * MS), [6], "new data probes");
    // RFC 6298 5: the time-out, 250 ms.
    assert_eq!(sender.deadline(152 * MS), Some(402 * MS));
    sender.expire(402 * MS);
    assert_eq!(drain(&mut sender, 402 * MS), [1], "one segment, the first");
    assert!(sender.window() <= 1.0);
    // 5.5: back off.
    assert_eq!(sender.deadline(402 * MS), Some(902 * MS));
}

#[test]
fn the_receivers_window_stops_the_sender() {
    let mut sender = Sender::new(Setup {
        algorithm: Algorithm::Reno,
        initial: 10,
        mss: 1000,
    });
    sender.write(50_000, 0);
    sender.open(2_500);
    assert_eq!(drain(&mut sender, 0), [0, 1]);
    sender.open(4_000);
    assert_eq!(drain(&mut sender, 1), [2, 3]);
}

#[test]
fn bbr_paces_its_segments() {
    let mut sender = sender(Algorithm::Bbr, 10);
    drain(&mut sender, 0);
    ack(&mut sender, 2, None, 50 * MS);
    let sent = drain(&mut sender, 50 * MS);
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert!(sender.deadline(50 * MS).is_some_and(|at| at < 70 * MS));
}
