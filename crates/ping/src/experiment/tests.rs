use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::IpAddr;

use super::*;
use crate::outcome::Row;
use crate::plan::{Protocol, StreamPlan};
use crate::sample::flag;

const MS: u64 = 1_000_000;
const START: Instant = Instant::from_nanos(77 * MS + 123);

fn stream(interval_ms: u64, count: Option<u64>) -> StreamPlan {
    StreamPlan {
        name: "peer".into(),
        host: "peer".into(),
        address: IpAddr::from([192, 0, 2, 1]),
        protocol: Protocol::Icmp,
        tos: 0,
        size: 56,
        interval: Duration::from_millis(interval_ms),
        offset: Duration::ZERO,
        count,
    }
}

fn plan(streams: Vec<StreamPlan>, wait_ms: u64) -> Plan {
    Plan::spread(streams, Duration::from_millis(wait_ms))
}

/// A link simulated as an event queue.
struct Link<F> {
    experiment: Experiment,
    now: Instant,
    /// The delays after which the replies to a packet arrive.
    fate: F,
    in_flight: BinaryHeap<Reverse<(Instant, u32, u64)>>,
    /// The pending replies in order: arrival time, stream, packet, and when the packet was sent.
    arrived: Vec<(Instant, u32, u64, Instant)>,
    sent: BTreeMap<(u32, u64), Instant>,
}

impl<F: FnMut(u32, u64) -> Vec<Duration>> Link<F> {
    fn new(plan: Plan, fate: F) -> Self {
        Self {
            experiment: Experiment::new(plan, START),
            now: START,
            fate,
            in_flight: BinaryHeap::new(),
            arrived: Vec::new(),
            sent: BTreeMap::new(),
        }
    }

    /// Advances to the next event and processes everything due then. Returns `false` when the experiment has finished.
    fn step(&mut self) -> bool {
        if self.experiment.is_over() {
            return false;
        }
        let arrival = self.in_flight.peek().map(|Reverse((at, ..))| *at);
        let timeout = self.experiment.poll_timeout();
        let next = [arrival, timeout].into_iter().flatten().min();
        let next = next.expect("what is not over waits for something");
        self.now = self.now.max(next);
        while let Some(due) = self.experiment.pop_send(self.now) {
            assert!(due.due <= self.now);
            self.experiment.sent(due.stream, due.sequence, self.now);
            self.sent.insert((due.stream, due.sequence), self.now);
            for delay in (self.fate)(due.stream, due.sequence) {
                let reply = (self.now + delay, due.stream, due.sequence);
                self.in_flight.push(Reverse(reply));
            }
        }
        while let Some(&Reverse((at, stream, sequence))) = self.in_flight.peek()
            && at <= self.now
        {
            self.in_flight.pop();
            let reply = reply(stream, Sequence::Low(sequence as u16), at);
            let accepted = self.experiment.received(reply).expect("it was sent");
            let sent = self.sent[&(stream, sequence)];
            assert_eq!((accepted.sequence, accepted.rtt), (sequence, at - sent));
            self.arrived.push((at, stream, sequence, sent));
        }
        self.experiment.handle_timeout(self.now);
        true
    }

    fn run(mut self) -> (Outcome, Vec<(Instant, u32, u64, Instant)>) {
        while self.step() {}
        (self.experiment.finish(0, false), self.arrived)
    }
}

fn reply(stream: u32, sequence: Sequence, at: Instant) -> Reply {
    Reply {
        stream,
        sequence,
        at,
        ttl: 64,
        tos: 0,
        far: None,
    }
}

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

#[test]
fn a_known_pattern_gives_exactly_the_known_counts() {
    // Of 1,000 packets, 10 ms apart, with a wait of 200 ms: every 10th is lost, every 10th comes twice, every 20th
    // 25 ms late (after the two that follow it), every 50th after 300 ms, all others after 2 ms.
    let fate = |_, sequence: u64| match sequence % 100 {
        n if n % 10 == 3 => vec![],
        n if n % 10 == 5 => vec![ms(2), ms(4)],
        n if n % 20 == 7 => vec![ms(25)],
        n if n % 50 == 1 => vec![ms(300)],
        _ => vec![ms(2)],
    };
    let (outcome, _) = Link::new(plan(vec![stream(10, Some(1_000))], 200), fate).run();
    let summary = &outcome.streams[0].summary;
    assert_eq!((summary.transmitted, summary.received), (1_000, 900));
    assert_eq!((summary.lost, summary.waiting, summary.failed), (100, 0, 0));
    assert_eq!((summary.duplicates, summary.late), (100, 20));
    assert_eq!(summary.reordered, 50 + 20);
    let rtt = summary.rtt.unwrap();
    assert_eq!((rtt.min_us, rtt.max_us), (2_000, 300_000));
    let percentiles = summary.rtt_percentiles.unwrap();
    assert_eq!(
        (percentiles.p50_ns, percentiles.p999_ns),
        (2 * MS, 300 * MS)
    );
    let rows: Vec<Row> = outcome.streams[0].rows().collect();
    let flags = |sequence: usize| rows[sequence - 1].sample.flags();
    assert_eq!((flags(3), flags(4)), (flag::LOST, flag::REPLIED));
    assert_eq!(flags(5), flag::REPLIED | flag::DUPLICATED);
    assert_eq!(flags(7), flag::REPLIED | flag::REORDERED);
    let late = flag::REPLIED | flag::LATE | flag::REORDERED;
    assert_eq!((flags(1), flags(51)), (late, late));
    assert_eq!((rows[9].due_ns, rows[9].sample.ttl()), (90 * MS, 64));
}

/// A straightforward count from the arrivals of a stream: received, late, duplicates, reordered.
fn counted(arrived: &[(Instant, u32, u64, Instant)], stream: u32, wait: Duration) -> [u64; 4] {
    let mut seen = std::collections::BTreeSet::new();
    let mut counts = [0; 4];
    for (at, _, sequence, sent) in arrived.iter().filter(|arrival| arrival.1 == stream) {
        if seen.contains(sequence) {
            counts[2] += 1;
            continue;
        }
        counts[0] += 1;
        counts[1] += u64::from(*at - *sent > wait);
        counts[3] += u64::from(seen.last().is_some_and(|last| last > sequence));
        seen.insert(*sequence);
    }
    counts
}

#[test]
fn whatever_a_link_does_the_counts_are_those_of_what_came() {
    sim::seeds(300, |seed| {
        let mut rng = sim::Rng::new(seed);
        let wait = ms(20 + rng.below(200));
        let count = 1 + rng.below(200);
        let streams = (1..=1 + rng.below(6))
            .map(|number| stream(1 + rng.below(30) * number, Some(count)))
            .collect();
        let bad = rng.unit();
        let mut view = sim::Rng::new(seed);
        let fate = move |_, _| {
            let replies = if rng.chance(bad) { rng.below(4) } else { 1 };
            let mut delay = |_| {
                let most = if rng.chance(bad) { 400 } else { 5 };
                rng.up_to(ms(most))
            };
            (0..replies).map(&mut delay).collect()
        };
        let plan = plan(streams, wait.as_millis());
        let mut link = Link::new(plan, fate);
        let mut live = Live::default();
        while link.step() {
            for number in 0..link.experiment.streams.len() as u32 {
                if view.chance(0.1) {
                    let now = link.now;
                    link.experiment.live(number, now, 20, &mut live);
                    assert!(live.missing + live.received <= live.transmitted);
                    assert!(live.recent.len() <= 20);
                }
            }
        }
        let arrived = link.arrived;
        let outcome = link.experiment.finish(0, false);
        for (number, stream) in outcome.streams.iter().enumerate() {
            let found = &stream.summary;
            let counts = [
                found.received,
                found.late,
                found.duplicates,
                found.reordered,
            ];
            assert_eq!(counts, counted(&arrived, number as u32, wait), "{number}");
            assert_eq!(found.transmitted, count);
            assert_eq!(found.received + found.lost, count);
            let rows: Vec<Row> = stream.rows().collect();
            assert_eq!(rows.len() as u64, count);
            let replied = rows.iter().filter(|row| row.sample.rtt().is_some());
            assert_eq!(replied.count() as u64, found.received);
        }
    });
}

#[test]
fn an_experiment_that_nobody_answers_ends_after_the_wait() {
    let streams = vec![stream(10, Some(3)), stream(1_000, Some(1))];
    let mut link = Link::new(plan(streams, 500), |_, _| vec![]);
    while link.step() {}
    // The second stream starts half a second after the first.
    let end = (link.now - START).as_millis();
    assert!((1_000..=1_001).contains(&end), "{end}");
    let outcome = link.experiment.finish(0, false);
    let lost: Vec<u64> = outcome.streams.iter().map(|s| s.summary.lost).collect();
    assert_eq!((lost, outcome.all_answered()), (vec![3, 1], false));
}

#[test]
fn after_the_last_packet_twice_the_longest_round_trip_is_waited_as_ping_does() {
    // But at least a second, ping's default interval.
    for (rtt, expected) in [(600, 1_220), (40, 1_020)] {
        let fate = move |_, sequence| match sequence {
            3 => vec![],
            _ => vec![ms(rtt)],
        };
        let mut link = Link::new(plan(vec![stream(10, Some(3))], 10_000), fate);
        while link.step() {}
        let end = (link.now - START).as_millis();
        assert!((expected..=expected + 1).contains(&end), "{end}");
        assert_eq!(link.experiment.statistics(0).unwrap().lost, 1);
    }
}

#[test]
fn a_stopped_experiment_waits_only_for_what_is_likely_to_come() {
    let streams = vec![stream(10, None), stream(10, None)];
    let answers = |stream, _| if stream == 0 { vec![ms(5)] } else { vec![] };
    let mut link = Link::new(plan(streams, 10_000), answers);
    while link.now < START + ms(1_001) {
        link.step();
    }
    link.experiment.stop();
    let stopped = link.now;
    while link.step() {}
    assert!(link.now - stopped <= ms(11), "{:?}", link.now - stopped);
    let outcome = link.experiment.finish(0, true);
    let [answered, silent] = [0, 1].map(|number| &outcome.streams[number].summary);
    assert_eq!(answered.received, answered.transmitted);
    assert_eq!((silent.received, silent.waiting), (0, silent.transmitted));
}

#[test]
fn sequence_numbers_pass_65536_and_old_replies_are_unknown() {
    let mut experiment = Experiment::new(plan(vec![stream(1, None)], 10_000), START);
    let mut now = START + Duration::from_micros(1);
    while experiment.pop_send(now).is_some() {}
    for _ in 0..70_000 {
        now += ms(1);
        while experiment.pop_send(now).is_some() {}
    }
    let sent = experiment.statistics(0).unwrap().transmitted;
    assert_eq!(sent, 70_001);
    let mut take = |sequence| {
        experiment
            .received(reply(0, sequence, now))
            .map(|accepted| accepted.sequence)
    };
    assert_eq!(take(Sequence::Low(1)), Ok(65_537));
    assert_eq!(take(Sequence::Low(70_001_u64 as u16)), Ok(70_001));
    assert_eq!(take(Sequence::Low(70_002_u64 as u16)), Ok(70_002 - 65_536));
    assert_eq!(take(Sequence::Full(70_002)), Err(Ignored::UnknownSequence));
    assert_eq!(take(Sequence::Full(1)), Err(Ignored::UnknownSequence));
    assert_eq!(take(Sequence::Full(0)), Err(Ignored::UnknownSequence));
    let other = experiment.received(reply(9, Sequence::Full(1), now));
    assert_eq!(other, Err(Ignored::UnknownStream));
    assert_eq!(experiment.ignored(), 4);
}

#[test]
fn memory_is_bounded_and_counts_are_not() {
    let mut plan = plan(vec![stream(1, Some(200_000))], 100);
    plan.samples_max = 1_000;
    let (outcome, _) = Link::new(plan, |_, sequence| match sequence % 4 {
        0 => vec![],
        _ => vec![ms(3)],
    })
    .run();
    let stream = &outcome.streams[0];
    assert_eq!(
        (stream.kept(), stream.summary.transmitted),
        (1_000, 200_000)
    );
    assert_eq!(
        (stream.summary.received, stream.summary.lost),
        (150_000, 50_000)
    );
}

#[test]
fn a_sender_that_is_held_up_keeps_its_grid_and_leaves_out_what_is_long_past() {
    let mut experiment = Experiment::new(plan(vec![stream(100, None)], 1_000), START);
    let mut dues = Vec::new();
    for at_ms in [0, 150, 330, 5_020] {
        let now = START + ms(at_ms);
        while let Some(due) = experiment.pop_send(now + Duration::from_micros(1)) {
            dues.push((due.due - START).as_millis());
        }
    }
    assert_eq!(dues, [0, 100, 200, 300, 5_000]);
    let outcome = experiment.finish(0, true);
    assert_eq!(outcome.streams[0].summary.skipped, 46);
    let rows = outcome.streams[0].rows();
    let rows: Vec<u64> = rows.map(|row| row.due_ns / MS).collect();
    assert_eq!(rows, dues);
}

#[test]
fn the_kernel_s_stamp_is_the_time_of_sending_until_the_reply_is_there() {
    let mut experiment = Experiment::new(plan(vec![stream(100, Some(2))], 1_000), START);
    let first = experiment.pop_send(START + ms(1)).unwrap();
    experiment.sent(0, first.sequence, START + ms(3));
    let at = START + ms(13);
    let accepted = experiment.received(reply(0, Sequence::Full(1), at));
    assert_eq!(accepted.unwrap().rtt, ms(10));
    experiment.sent(0, 1, START + ms(5));
    let second = experiment.pop_send(START + ms(120)).unwrap();
    experiment.failed(0, second.sequence);
    assert!(experiment.is_over());
    let outcome = experiment.finish(0, false);
    let rows: Vec<Row> = outcome.streams[0].rows().collect();
    assert_eq!(
        (rows[0].sent_ns, rows[0].late_ns()),
        (3 * MS as i64, 3 * MS as i64)
    );
    assert_eq!(rows[1].sample.flags(), flag::FAILED | flag::UNSTAMPED);
    assert_eq!(outcome.streams[0].summary.failed, 1);
}

#[test]
fn udp_streams_know_their_directions() {
    let mut udp = stream(10, Some(4));
    udp.protocol = Protocol::Udp { port: 9 };
    let mut experiment = Experiment::new(plan(vec![udp], 100), START);
    for number in 0..4_i64 {
        let now = START + ms(10 * number as u64 + 1);
        let due = experiment.pop_send(now).unwrap();
        if due.sequence == 3 {
            continue;
        }
        let arrived_ns = (now - START).as_nanos() as i64 + 500_000_000;
        let far = Far {
            arrived_ns,
            departed_ns: arrived_ns + 1_000,
            count: due.sequence as u32,
        };
        let reply = Reply {
            far: Some(far),
            ..reply(0, Sequence::Full(due.sequence), now + ms(2))
        };
        experiment.received(reply).unwrap();
    }
    experiment.handle_timeout(START + ms(1_000));
    let outcome = experiment.finish(0, false);
    let found = outcome.streams[0].summary.directions.as_ref().unwrap();
    assert_eq!((found.up.lost, found.down.lost), (Some(0), Some(1)));
    assert_eq!(found.up.min_ns + found.down.min_ns, 2 * MS as i64 - 1_000);
    let row = outcome.streams[0].rows().next().unwrap();
    assert_eq!(row.one_way.unwrap().up_ns, 500 * MS as i64);
}
