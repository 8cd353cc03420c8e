//! Tests that the output stays within the policy's rate over any second, for every template and from slow to fast.

use std::collections::VecDeque;

use base::Instant;
use qos::policy::Policy;
use qos::tree::{Spec, TbfSpec, Tree};
use qos::{Discipline, Packet, Pool};
use wire::flow::{Flow, Keys};

const SECOND_NS: u64 = 1_000_000_000;

fn keys(host: u8) -> Keys {
    let address = |last: u8| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last];
    Keys {
        outer: Flow {
            source: address(host),
            destination: address(99),
            source_port: 1_000,
            destination_port: 443,
            protocol: 6,
        },
        ..Keys::default()
    }
}

/// Rate and burst of the topmost limit.
fn root(spec: &Spec) -> (u64, u32) {
    match spec {
        Spec::Tbf(TbfSpec { options, .. }) => (options.rate_bps, options.burst),
        Spec::Htb(htb) => (htb.classes[0].ceil_bps, htb.classes[0].cburst),
        other => panic!("not shaped: {}", other.kind()),
    }
}

/// Sends for `end_ns`, always backlogged, and checks each second that ends with a packet.
fn assert_seconds(spec: &Spec, on_line: impl Fn(u32) -> u32, end_ns: u64) {
    let (rate_bps, burst) = root(spec);
    let mut pool = Pool::new(100_000);
    let mut tree = Tree::new(spec, 1, Instant::ZERO).expect("it fits together");
    let mut now = Instant::ZERO;
    let mut lengths = [1_500, 60, 1_500, 700].into_iter().cycle();
    let mut last_second: VecDeque<(u64, u64)> = VecDeque::new();
    let mut bits = 0;
    let mut host = 0;
    loop {
        while tree.backlog().packets < 30 {
            host = (host + 1) % 4;
            let packet = Packet {
                length: on_line(lengths.next().unwrap_or(60)),
                keys: keys(host),
                arrived: now,
                ..Packet::default()
            };
            let id = pool.insert(packet).expect("room");
            let taken = tree.enqueue(&mut pool, id, now);
            pool.discarded().count();
            if !taken {
                break;
            }
        }
        now = tree.next_time(now).expect("backlogged").max(now);
        if now.as_nanos() > end_ns {
            return;
        }
        let Some(id) = tree.dequeue(&mut pool, now) else {
            continue;
        };
        while let Some(&(at, length)) = last_second.front()
            && at + SECOND_NS <= now.as_nanos()
        {
            bits -= length;
            last_second.pop_front();
        }
        let length = u64::from(pool.take(id).length) * 8;
        last_second.push_back((now.as_nanos(), length));
        bits += length;
        // The packet at the start of the second is not counted.
        let cut = u64::from(on_line(1_500)) * 8;
        let is_whole = now.as_nanos() >= SECOND_NS;
        let least = u128::from(rate_bps) * 97 / 100;
        assert!(
            !is_whole || u128::from(bits + cut) >= least,
            "{bits} of {rate_bps} until {now:?}"
        );
        let most = rate_bps + u64::from(burst) * 8;
        assert!(
            bits <= most,
            "{bits} of {rate_bps} and {burst} octets, {now:?}"
        );
    }
}

#[test]
fn no_second_has_more_than_rate_and_burst_and_none_less_than_97_per_cent() {
    for template in [
        "home", "gamer", "flows", "codel", "sfq", "bands", "fifo", "pfifo",
    ] {
        for (rate, end_ns) in [
            ("500kbit", 5 * SECOND_NS),
            ("2.5mbit", 4 * SECOND_NS),
            ("50mbit", 3 * SECOND_NS),
        ] {
            let text = format!("[link]\nup = \"{rate}\"\n[shape]\ntemplate = \"{template}\"\n");
            let (policy, _) = Policy::parse(&text).expect("no fault");
            let on_line = |ip| policy.overhead().on_line(ip);
            assert_seconds(&policy.up_spec(), on_line, end_ns);
        }
    }
}

#[test]
fn a_gigabit_is_kept_as_a_megabit_is() {
    let (policy, _) = Policy::parse("[link]\nup = \"1gbit\"\n").expect("no fault");
    let on_line = |ip| policy.overhead().on_line(ip);
    assert_seconds(&policy.up_spec(), on_line, 6 * SECOND_NS / 5);
}
