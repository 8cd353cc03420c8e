use std::net::IpAddr;

use base::{Duration, Instant};
use proptest::prelude::*;

use super::*;
use crate::experiment::{Experiment, Far, Reply, Sequence};
use crate::outcome::Outcome;
use crate::plan::{Plan, Protocol, StreamPlan};

/// An experiment without a network: `seed` decides when packets are sent and which replies arrive.
fn outcome(seed: u64, packets: u64) -> Outcome {
    let mut rng = sim::Rng::new(seed);
    let streams = (0..1 + rng.below(4))
        .map(|number| StreamPlan {
            name: format!("peer \"{number}\" \u{1f600}\n"),
            host: "peer".into(),
            address: match rng.chance(0.5) {
                true => IpAddr::from([192, 0, 2, 1]),
                false => "2001:db8::1".parse().unwrap(),
            },
            protocol: match rng.chance(0.5) {
                true => Protocol::Icmp,
                false => Protocol::Udp { port: 9 },
            },
            tos: rng.below(256) as u8,
            size: 56,
            interval: Duration::from_nanos(1 + rng.below(2_000_000_000)),
            offset: Duration::ZERO,
            count: rng.chance(0.5).then_some(packets),
        })
        .collect();
    let mut plan = Plan::spread(streams, Duration::from_millis(100));
    plan.samples_max = packets * 3;
    let start = Instant::from_nanos(1_000);
    let mut experiment = Experiment::new(plan, start);
    let mut sent = Vec::new();
    for _ in 0..packets {
        let next = experiment.next_send().unwrap_or(start);
        let pause = Duration::from_secs(rng.below(3));
        let now = next + rng.up_to(pause);
        if let Some(due) = experiment.pop_send(now) {
            sent.push((due.stream, due.sequence));
            if rng.chance(0.9) {
                let stamp = Instant::from_nanos(now.as_nanos() - rng.below(1_000));
                experiment.sent(due.stream, due.sequence, stamp);
            }
        }
        for _ in 0..rng.below(3) {
            let which = rng.below(packets) as usize;
            let Some(&(stream, sequence)) = sent.get(which) else {
                continue;
            };
            let _ = experiment.received(Reply {
                stream,
                sequence: Sequence::Full(sequence),
                at: now + rng.up_to(Duration::from_millis(200)),
                ttl: rng.below(256) as u8,
                tos: rng.below(256) as u8,
                far: rng.chance(0.9).then(|| far(&mut rng)),
            });
        }
        experiment.handle_timeout(now);
    }
    experiment.finish(rng.next_u64(), rng.chance(0.5))
}

fn far(rng: &mut sim::Rng) -> Far {
    let [arrival, departure, count, shift] = [0; 4].map(|_| rng.next_u64());
    Far {
        arrived_ns: arrival as i64 >> (shift % 64),
        departed_ns: departure as i64 >> (shift >> 6 & 63),
        count: count as u32,
    }
}

fn written(outcome: &Outcome) -> Vec<u8> {
    let mut out = Vec::new();
    write(outcome, &mut out).unwrap();
    out
}

#[test]
fn a_file_is_as_documented() {
    let mut plan = Plan::spread(
        vec![StreamPlan {
            name: "192.0.2.1".into(),
            host: "192.0.2.1".into(),
            address: IpAddr::from([192, 0, 2, 1]),
            protocol: Protocol::Icmp,
            tos: 184,
            size: 56,
            interval: Duration::from_millis(10),
            offset: Duration::ZERO,
            count: Some(3),
        }],
        Duration::from_secs(1),
    );
    plan.samples_max = 10;
    let mut experiment = Experiment::new(plan, Instant::ZERO);
    for number in 0..3 {
        let now = Instant::from_nanos(number * 10_000_000 + 50_000);
        let due = experiment.pop_send(now).unwrap();
        experiment.sent(0, due.sequence, now + Duration::from_nanos(7));
        if number != 1 {
            let reply = Reply {
                stream: 0,
                sequence: Sequence::Full(due.sequence),
                at: now + Duration::from_nanos(2_345_678 + 7),
                ttl: 64,
                tos: 184,
                far: None,
            };
            experiment.received(reply).unwrap();
        }
    }
    experiment.handle_timeout(Instant::from_nanos(2_000_000_000));
    let outcome = experiment.finish(1_700_000_000_000_000_000, false);
    let text = String::from_utf8(written(&outcome)).unwrap();
    let expected = format!(
        r#"{{"format":"headend-ping",
"version":2,
"schema":"ping.result/2",
"tool":"headend {}",
"started_unix_ns":1700000000000000000,
"duration_ns":22395685,
"wait_ns":1000000000,
"ignored_replies":0,
"interrupted":false,
"streams":[
{{"plan":{{"name":"192.0.2.1","host":"192.0.2.1","address":"192.0.2.1","protocol":"icmp","tos":184,"size":56,"interval_ns":10000000,"offset_ns":0,"count":3}},
"summary":{{"transmitted":3,"received":2,"late":0,"lost":1,"failed":0,"waiting":0,"duplicates":0,"reordered":0,"skipped":0,"errors":0,"pipe":1,"span_ns":22345685,"rtt":{{"min_us":2345,"avg_us":2345,"max_us":2345,"mdev_us":0}},"rtt_percentiles":{{"p50_ns":2345678,"p90_ns":2345678,"p99_ns":2345678,"p999_ns":2345678}},"lateness":{{"p50_ns":50007,"p90_ns":50007,"p99_ns":50007,"p999_ns":50007}},"directions":null}},
"samples":{{"due_delta_ns":[0,10000000,10000000],
"late_ns":[50007,50007,50007],
"rtt_ns":[2345678,-1,2345678],
"ttl":[64,0,64],
"tos":[184,0,184],
"flags":[1,4,1]}}}}]}}
"#,
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(text, expected);
}

#[test]
fn a_file_cut_anywhere_is_refused_and_nothing_panics() {
    let whole = written(&outcome(3, 20));
    // The last byte ends the line, not the object.
    for end in 0..whole.len() - 1 {
        assert!(
            matches!(read(&whole[..end]), Err(ReadError::Truncated)),
            "{:?} {end}",
            read(&whole[..end])
        );
    }
}

#[test]
fn a_file_of_version_1_has_no_schema_and_one_of_version_2_has_its_own() {
    let outcome = outcome(7, 20);
    let two = String::from_utf8(written(&outcome)).unwrap();
    let without = two.replace("\"schema\":\"ping.result/2\",\n", "");
    let one = without.replace("\"version\":2", "\"version\":1");
    assert_eq!(read(one.as_bytes()).unwrap(), outcome);
    let other = two.replace("ping.result/2", "ping.result/9");
    for wrong in [without, other] {
        let found = read(wrong.as_bytes()).unwrap_err().to_string();
        assert!(found.contains("another schema"), "{found}");
    }
}

#[test]
fn foreign_and_newer_files_are_refused_as_what_they_are() {
    for foreign in [
        "{}",
        "[1]",
        "hello",
        "{\"format\":\"other\",\"version\":1}",
        "{\"version\":1}",
        "\u{0}",
    ] {
        let found = read(foreign.as_bytes());
        assert!(matches!(found, Err(ReadError::Foreign)), "{foreign}");
    }
    let newer = "{\"format\":\"headend-ping\",\"version\":3,\"what\":[]}";
    let found = read(newer.as_bytes()).unwrap_err().to_string();
    assert!(found.contains("newer version"), "{found}");
    assert!(matches!(read(&b""[..]), Err(ReadError::Truncated)));
}

#[test]
fn contradictions_are_refused_with_what_is_wrong() {
    let good = String::from_utf8(written(&outcome(5, 30))).unwrap();
    let after = format!("{good}{good}");
    let cases = [
        ("\"ttl\":[", "\"ttl\":[300,", "300 cannot be"),
        ("\"ttl\":[", "\"ttl\":[3,", "columns are too long"),
        ("\"rtt_ns\":[", "\"rtt_ns\":[-2,", "-2 cannot be"),
        (
            "\"tool\":",
            "\"extra\":1,\"tool\":",
            "unknown key \"extra\"",
        ),
        ("\"late\":", "\"later\":", "unknown field `later`"),
        ("\"interrupted\":", "\"tool\":", "invalid type"),
        ("\"ttl\":", "\"tos\":", "duplicate field `tos`"),
    ];
    for (from, to, why) in cases {
        let found = read(good.replacen(from, to, 1).as_bytes());
        let text = found.unwrap_err().to_string();
        assert!(
            text.starts_with("damaged: ") && text.contains(why),
            "{text}"
        );
    }
    assert!(matches!(read(after.as_bytes()), Err(ReadError::Damaged(_))));
}

proptest! {
    #[test]
    fn what_is_written_is_read_and_written_again_octet_for_octet(seed: u64, packets in 0_u64..120) {
        let outcome = outcome(seed, packets);
        let first = written(&outcome);
        let again = read(&first[..]).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(again == outcome);
        prop_assert!(written(&again) == first);
    }

    #[test]
    fn a_damaged_file_never_panics(at in 0_usize..10_000, octet: u8) {
        let mut whole = written(&outcome(9, 40));
        let at = at % whole.len();
        whole[at] = octet;
        let _ = read(&whole[..]);
    }
}
