//! Tests the documentation of the policy file, and the behaviour of its policies.

use base::{Duration, Instant};
use qos::policy::Policy;
use qos::tree::Tree;

use crate::world::{World, assert_ceiling, keys};

const PAGE: &str = include_str!("../../../../docs/qos-policy.md");

#[test]
fn every_example_of_the_page_is_faultless_and_wise() {
    let examples: Vec<&str> = PAGE.split("```toml\n").skip(1).collect();
    assert!(examples.len() >= 3);
    for example in examples {
        let text = example.split("```").next().expect("it ends");
        let (policy, advice) = Policy::parse(text).unwrap_or_else(|faults| panic!("{faults:?}"));
        assert!(advice.is_empty(), "{advice}: {text}");
        for spec in [policy.up_spec(), policy.down_spec()] {
            Tree::new(&spec, 1, Instant::ZERO).expect("it fits together");
        }
    }
}

/// Packets of SSH, names and telephones pass a backlog of two hosts, which share what is left.
#[test]
fn the_policy_of_a_home_sends_ssh_names_and_calls_first_and_shares_the_rest_by_host() {
    let text = include_str!("../../../../docs/qos/first.toml");
    let (policy, advice) = Policy::parse(text).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(advice.is_empty(), "{advice}");
    let tree = Tree::new(&policy.up_spec(), 1, Instant::ZERO).expect("it fits together");
    let mut world = World::new(tree);
    let length = |ip: u32| policy.overhead().on_line(ip);
    let mut urgent = [22, 53, 5_060].map(|port| keys(1, 99, port));
    urgent[0].outer.protocol = 6;
    for millisecond in 0..10_000_u32 {
        // Host 1 has nine uploads, and host 2 has one.
        for flow in 0..9 {
            world.offer(keys(1, 99, 6_000 + flow), length(1_500));
        }
        world.offer(keys(2, 99, 6_000), length(1_500));
        if millisecond % 50 == 0 {
            for keys in urgent {
                world.offer(keys, length(100));
            }
        }
        world.run_until(world.now + Duration::from_millis(1));
    }
    let octets = |of: &dyn Fn(&wire::flow::Keys) -> bool| -> u64 {
        let sent = world.sent.iter().filter(|sent| of(&sent.packet.keys));
        sent.map(|sent| u64::from(sent.packet.length)).sum()
    };
    for keys in urgent {
        let sent = world.sent.iter().filter(|sent| sent.packet.keys == keys);
        let waits: Vec<Duration> = sent.map(|sent| sent.at - sent.packet.arrived).collect();
        assert_eq!(waits.len(), 200);
        // One packet of 1,530 bytes is on the line already (5.4 ms), and the others of the same moment.
        let longest = waits.iter().max().expect("200 waits");
        assert!(*longest <= Duration::from_millis(12), "{longest:?}");
    }
    let one = octets(&|found| (0..9).any(|flow| *found == keys(1, 99, 6_000 + flow)));
    let other = octets(&|found| *found == keys(2, 99, 6_000));
    let ratio = one as f64 / other as f64;
    assert!((0.9..=1.1).contains(&ratio), "{one} and {other}");
}

/// One host floods and another sends a low-rate stream. Returns the stream's losses and longest wait.
fn flood_against_a_stream(policy: &str) -> (u64, Duration) {
    let (policy, _) = Policy::parse(policy).expect("no fault");
    let tree = Tree::new(&policy.up_spec(), 1, Instant::ZERO).expect("it fits together");
    let mut world = World::new(tree);
    let length = |ip: u32| policy.overhead().on_line(ip);
    let mut streamed = 0;
    // 8.2 Mbit/s of 1,400 bytes, and 200 kbit/s of 500, for ten seconds.
    for millisecond in 0..10_000_u32 {
        if millisecond % 4 < 3 {
            world.offer(keys(1, 99, 5_001), length(1_428));
        }
        if millisecond % 20 == 0 {
            streamed += 1;
            world.offer(keys(2, 99, 5_002), length(528));
        }
        world.run_until(world.now + Duration::from_millis(1));
    }
    let of_stream = world
        .sent
        .iter()
        .filter(|sent| sent.packet.keys == keys(2, 99, 5_002));
    let waits = of_stream.map(|sent| sent.at - sent.packet.arrived);
    let (count, longest) = waits.fold((0, Duration::ZERO), |(count, longest), wait| {
        (count + 1, longest.max(wait))
    });
    assert_ceiling(world.sent.iter(), 2_400_000, 2 * length(1_500));
    (streamed - count, longest)
}

#[test]
fn behind_the_home_template_a_flood_of_one_host_costs_another_nothing() {
    let (lost, longest) = flood_against_a_stream("[link]\nup = \"2.4mbit\"\n");
    assert_eq!(lost, 0);
    // The flood's packet that is already on the line, and a debt of one packet.
    assert!(longest <= Duration::from_millis(12), "{longest:?}");
}

#[test]
fn behind_a_fifo_it_costs_the_other_most_of_its_packets() {
    let policy = "[link]\nup = \"2.4mbit\"\n[shape]\ntemplate = \"pfifo\"\n";
    let (lost, _) = flood_against_a_stream(policy);
    assert!(lost >= 250, "half of 500: {lost}");
}

#[test]
fn what_goes_first_does_not_wait_behind_the_same_hosts_bulk() {
    let text = "[link]\nup = \"2.4mbit\"\n[[first]]\nport = 22\n";
    let (policy, _) = Policy::parse(text).expect("no fault");
    let tree = Tree::new(&policy.up_spec(), 1, Instant::ZERO).expect("it fits together");
    let mut world = World::new(tree);
    for turn in 0..2_000_u32 {
        for port in 6_000..6_010 {
            if turn % 30 == 0 {
                world.offer(keys(1, 99, port), 1_538);
            }
        }
        if turn % 25 == 0 {
            world.offer(keys(1, 99, 22), 120);
        }
        world.run_until(world.now + Duration::from_millis(1));
    }
    let ssh = world
        .sent
        .iter()
        .filter(|sent| sent.packet.keys.outer.source_port == 22);
    let longest = ssh.map(|sent| sent.at - sent.packet.arrived).max();
    assert!(longest <= Some(Duration::from_millis(6)), "{longest:?}");
}
