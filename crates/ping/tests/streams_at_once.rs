//! Concurrent streams that differ in destination, traffic class and size, each with its own losses, from plan to file.

use std::collections::BTreeMap;
use std::net::IpAddr;

use base::{Duration, Instant};
use ping::file::{ReadError, read, write};
use ping::{Experiment, Outcome, Plan, Protocol, Reply, Sequence, StreamPlan};

const START: Instant = Instant::from_nanos(5_000_000_001);
const COUNT: u64 = 60;
const INTERVAL_MS: u64 = 20;
const WAIT_MS: u64 = 300;

/// The faults of a stream: how many packets are lost, duplicated, delayed by 50 ms, or answered after the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Orders {
    lost: u64,
    twice: u64,
    behind: u64,
    late: u64,
}

impl Orders {
    /// The first `lost` packets are lost, the next `twice` are duplicated, and so on. Of the delayed ones only every
    /// third is delayed, so that two packets sent after it are answered before it.
    fn of(stream: u64) -> Self {
        match stream {
            0 => Self {
                lost: COUNT,
                twice: 0,
                behind: 0,
                late: 0,
            },
            _ => Self {
                lost: stream,
                twice: stream % 3,
                behind: stream % 5,
                late: stream % 4,
            },
        }
    }

    /// When the replies to a packet arrive, in milliseconds after it was sent.
    fn fate(self, sequence: u64) -> Vec<u64> {
        let (number, after_lost) = (sequence - 1, self.lost + self.twice);
        let after_behind = after_lost + 3 * self.behind;
        match number {
            n if n < self.lost => vec![],
            n if n < after_lost => vec![2, 7],
            n if n < after_behind && (n - after_lost).is_multiple_of(3) => vec![2 + 50],
            n if n >= after_behind && n < after_behind + self.late => vec![WAIT_MS + 500],
            _ => vec![2],
        }
    }
}

/// Two hosts, three traffic classes, two sizes.
fn plan() -> Plan {
    let hosts = ["192.0.2.1", "2001:db8::1"];
    let mut streams = Vec::new();
    for host in hosts {
        for tos in [0, 0x20, 0xb8] {
            for size in [56, 1_400] {
                streams.push(StreamPlan {
                    name: format!("{host},{tos},{size}"),
                    host: host.to_owned(),
                    address: host.parse::<IpAddr>().expect("an address"),
                    protocol: Protocol::Icmp,
                    tos,
                    size,
                    interval: Duration::from_millis(INTERVAL_MS),
                    offset: Duration::ZERO,
                    count: Some(COUNT),
                });
            }
        }
    }
    let plan = Plan::spread(streams, Duration::from_millis(WAIT_MS));
    plan.check().expect("it can be");
    plan
}

/// Runs the experiment. A reply is matched by its stream and the low half of its number, as in ICMP.
fn outcome() -> Outcome {
    let mut experiment = Experiment::new(plan(), START);
    let mut now = START;
    let mut replies: BTreeMap<(Instant, u64), (u32, u64)> = BTreeMap::new();
    let mut order = 0;
    while !experiment.is_over() {
        // An unfinished experiment always has a next time, even if no reply arrives.
        let own = experiment.poll_timeout().expect("it goes on");
        let next = replies.first_key_value().map(|((at, _), _)| *at);
        now = now.max(next.map_or(own, |at| at.min(own)));
        while let Some(due) = experiment.pop_send(now) {
            experiment.sent(due.stream, due.sequence, now);
            for delay in Orders::of(due.stream.into()).fate(due.sequence) {
                order += 1;
                let at = now + Duration::from_millis(delay);
                replies.insert((at, order), (due.stream, due.sequence));
            }
        }
        while let Some(entry) = replies.first_entry()
            && entry.key().0 <= now
        {
            let ((at, _), (stream, sequence)) = entry.remove_entry();
            let reply = Reply {
                stream,
                sequence: Sequence::Low(sequence as u16),
                at,
                ttl: 64,
                tos: experiment.plan().streams[stream as usize].tos,
                far: None,
            };
            let accepted = experiment.received(reply).expect("it was sent");
            assert_eq!(accepted.sequence, sequence);
        }
        experiment.handle_timeout(now);
    }
    // The last packet of the last stream is sent within the last interval, and its reply arrives soon after.
    let whole = Duration::from_millis(COUNT * INTERVAL_MS + 2 * WAIT_MS + 500);
    assert!(now.since(START) <= whole, "{:?}", now.since(START));
    experiment.finish(1_700_000_000_000_000_000, false)
}

fn written(outcome: &Outcome) -> Vec<u8> {
    let mut out = Vec::new();
    write(outcome, &mut out).expect("memory takes it");
    out
}

#[test]
fn each_of_twelve_streams_has_exactly_the_counts_that_were_ordered_for_it() {
    let outcome = outcome();
    assert_eq!(outcome.streams.len(), 12);
    assert!(!outcome.all_answered(), "one was silent");
    for (number, stream) in (0..).zip(&outcome.streams) {
        let (orders, found) = (Orders::of(number), &stream.summary);
        let name = &stream.plan.name;
        assert_eq!(found.transmitted, COUNT, "{name}");
        assert_eq!(found.lost, orders.lost, "{name}");
        assert_eq!(found.received, COUNT - orders.lost, "{name}");
        assert_eq!(found.duplicates, orders.twice, "{name}");
        assert_eq!(found.late, orders.late, "{name}");
        // A delayed packet is answered after later ones, as long as there are any.
        assert_eq!(found.reordered, orders.behind + orders.late, "{name}");
        assert_eq!(
            (found.failed, found.waiting, found.skipped),
            (0, 0, 0),
            "{name}"
        );
        let rows = stream.rows();
        let answered = rows.filter(|row| row.sample.rtt().is_some());
        assert!(
            answered
                .map(|row| row.sample.tos())
                .all(|tos| tos == stream.plan.tos)
        );
    }
}

#[test]
fn it_is_saved_loaded_and_saved_octet_for_octet_and_refused_when_cut() {
    let outcome = outcome();
    let file = written(&outcome);
    let again = read(&file[..]).expect("it is whole");
    assert!(again == outcome);
    assert!(written(&again) == file);
    // All but the last byte, which ends the line.
    for end in (0..file.len() - 1)
        .rev()
        .step_by(61)
        .chain(file.len() - 40..file.len() - 1)
    {
        let cut = read(&file[..end]);
        assert!(matches!(cut, Err(ReadError::Truncated)), "{end}: {cut:?}");
    }
}
