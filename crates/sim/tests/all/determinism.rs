//! One seed is one run, byte for byte, and what is simultaneous has an order.

use crate::toy::{self, Event, Toy};
use base::{Duration, Instant};
use sim::{ADDRESS_B, Link, LinkStats, NodeHandle, Pair, Probe, World, addr, seeds};

const HOUR: Duration = Duration::from_secs(3600);

fn rough_run(seed: u64) -> Pair<Toy, Toy> {
    let mut pair = Pair::new(seed, Link::ROUGH, Toy::sender(ADDRESS_B), Toy::echoer());
    pair.with_a(|a, now| a.send(30, now));
    assert!(pair.run_until_idle(HOUR));
    pair
}

#[test]
fn the_same_seed_gives_the_same_log_and_capture() {
    let (first, again, other) = (rough_run(1), rough_run(1), rough_run(2));
    assert_eq!(first.log_text(), again.log_text());
    assert_eq!(first.pcap(), again.pcap());
    assert_eq!(first.now(), again.now());
    assert_ne!(first.log_text(), other.log_text());
}

#[test]
fn every_message_is_acked_once_in_order_over_a_rough_link() {
    seeds(200, |seed| {
        let mut pair = rough_run(seed);
        assert_eq!(pair.a().waiting(), 0);
        let acked: Vec<_> = (0..30).map(Event::Acked).collect();
        assert_eq!(pair.events_a(), acked);
        // Every datagram of either way ended in one of the counted ways.
        for (from, to) in [(pair.a.id(), pair.b.id()), (pair.b.id(), pair.a.id())] {
            let stats = pair.link_stats(from, to);
            assert_eq!(stats.sent + stats.duplicated, stats.delivered + stats.lost);
        }
    });
}

#[test]
fn simultaneous_arrivals_keep_the_order_of_sending() {
    let run = || {
        let mut world = World::new(7);
        let hub = world.add("hub", Probe::default(), ["192.0.2.1:1"]);
        let to = world.address(hub);
        for i in [3_u8, 1, 2] {
            let address = format!("192.0.2.{}:1", i + 10);
            let node = world.add(format!("node{i}"), Probe::default(), [address.as_str()]);
            world.with(node, |p, _| p.send(to, &[i]));
        }
        assert!(world.run_until_idle(HOUR));
        let at_10_ms = Instant::from_nanos(10_000_000);
        let heard = world.take_timed_events(hub);
        assert!(heard.iter().all(|(at, _)| *at == at_10_ms));
        heard
            .iter()
            .map(|(_, heard)| heard.bytes[0])
            .collect::<Vec<_>>()
    };
    assert_eq!(run(), [3, 1, 2]);
}

#[test]
fn a_deadline_goes_before_an_arrival_at_the_same_instant() {
    // The echo of the first sending comes back exactly when the retry is due.
    let link = Link {
        delay: Duration::from_millis(500),
        ..Link::CLEAN
    };
    let mut pair = Pair::new(1, link, Toy::sender(ADDRESS_B), Toy::echoer());
    pair.with_a(|a, now| a.send(1, now));
    pair.run_until(Instant::ZERO + toy::RETRY);
    assert_eq!(pair.sent_by(pair.a).count(), 2);
    assert_eq!(pair.events_a(), [Event::Acked(0)]);
}

#[test]
fn adding_nodes_changes_nothing_between_others() {
    let run = |with_others: bool| {
        let mut world = World::new(5);
        world.set_default_link(Link::ROUGH);
        let add_pair = |world: &mut World, name: &str, net: u8| -> NodeHandle<Toy> {
            let (from, to) = (format!("10.0.{net}.1:1"), format!("10.0.{net}.2:1"));
            world.add(format!("{name} echoer"), Toy::echoer(), [to.as_str()]);
            let sender = Toy::sender(addr(&to));
            let sender = world.add(format!("{name} sender"), sender, [from.as_str()]);
            world.with(sender, |m, now| m.send(20, now));
            sender
        };
        if with_others {
            add_pair(&mut world, "before", 1);
        }
        let sender = add_pair(&mut world, "watched", 2);
        if with_others {
            add_pair(&mut world, "after", 3);
        }
        assert!(world.run_until_idle(HOUR));
        world.take_timed_events(sender)
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn changing_one_property_of_a_link_leaves_the_rest_of_its_chance() {
    let run = |link: Link| -> LinkStats {
        let mut pair = Pair::new(3, link, Probe::default(), Probe::default());
        for _ in 0..500 {
            pair.with_a(|a, _| a.send(ADDRESS_B, b"x"));
        }
        assert!(pair.run_until_idle(HOUR));
        pair.link_stats(pair.a, pair.b)
    };
    let rough = run(Link::ROUGH);
    let other = run(Link {
        jitter: Duration::ZERO,
        duplicate: 0.5,
        ..Link::ROUGH
    });
    assert!(rough.lost > 0 && other.duplicated > rough.duplicated);
    assert_eq!(rough.lost, other.lost);
}
