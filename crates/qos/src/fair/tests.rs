use super::*;
use crate::classify::Key;
use crate::packet::Packet;
use wire::flow::{Flow, Keys};

fn keys(host: u32, port: u16) -> Keys {
    let mut source = [0; 16];
    source[12..].copy_from_slice(&host.to_be_bytes());
    Keys {
        outer: Flow {
            source,
            destination: [9; 16],
            source_port: port,
            destination_port: 443,
            protocol: 6,
        },
        ..Keys::default()
    }
}

fn offer(fair: &mut Fair, pool: &mut Pool, keys: Keys, length: u32) -> bool {
    let handle = u32::from(keys.outer.source_port);
    let packet = Packet {
        handle,
        length,
        keys,
        ..Packet::default()
    };
    let id = pool.insert(packet).expect("room");
    fair.enqueue(pool, id, Instant::ZERO)
}

fn take(fair: &mut Fair, pool: &mut Pool) -> Option<Packet> {
    let id = fair.dequeue(pool, Instant::ZERO)?;
    Some(pool.take(id))
}

#[test]
fn nothing_is_kept_of_who_is_gone() {
    let mut pool = Pool::new(1_000);
    let mut fair = Fair::new(&Options::default(), 1);
    for host in 0..10 {
        for port in 0..10 {
            assert!(offer(&mut fair, &mut pool, keys(host, port), 100));
        }
    }
    assert_eq!(fair.details()[..2], [("hosts", 10), ("flows", 100)]);
    while take(&mut fair, &mut pool).is_some() {}
    assert_eq!(fair.details()[..2], [("hosts", 0), ("flows", 0)]);
    assert_eq!(fair.backlog(), Backlog::default());
    assert_eq!(fair.next_time(Instant::ZERO), None);
    assert!(pool.is_empty());
}

#[test]
fn at_the_limit_the_host_with_the_most_bytes_loses_of_its_longest_flow() {
    let mut pool = Pool::new(1_000);
    let options = Options {
        limit: 40,
        ..Options::default()
    };
    let mut fair = Fair::new(&options, 1);
    // Host 1 has the longest flow, host 2 the most bytes.
    for _ in 0..12 {
        offer(&mut fair, &mut pool, keys(1, 1), 1_000);
    }
    for port in [2, 3, 4] {
        for _ in 0..(port + 5) {
            offer(&mut fair, &mut pool, keys(2, port), 1_000);
        }
    }
    for _ in 0..4 {
        offer(&mut fair, &mut pool, keys(3, 9), 60);
    }
    assert_eq!(pool.discarded().count(), 0);
    assert!(offer(&mut fair, &mut pool, keys(3, 9), 60));
    let lost: Vec<_> = pool.discarded().collect();
    assert_eq!(lost, [(4, Reason::Overlimit)]);
    assert_eq!(fair.statistics().dropped, 1);
}

#[test]
fn the_packet_that_comes_to_the_longest_flow_of_one_may_be_the_one_that_goes() {
    let mut pool = Pool::new(10);
    let options = Options {
        memory_limit: 1_000,
        ..Options::default()
    };
    let mut fair = Fair::new(&options, 1);
    assert!(!offer(&mut fair, &mut pool, keys(1, 1), 1_001));
    assert!(pool.is_empty());
    assert!(offer(&mut fair, &mut pool, keys(1, 1), 1_000));
}

#[test]
fn beyond_the_tables_hosts_and_flows_share_and_that_is_counted() {
    let mut pool = Pool::new(1_000);
    let options = Options {
        hosts_max: 2,
        flows_max: 4,
        ..Options::default()
    };
    let mut fair = Fair::new(&options, 1);
    for host in 0..5 {
        for port in 0..4 {
            for _ in 0..2 {
                assert!(offer(&mut fair, &mut pool, keys(host, port), 100));
            }
        }
    }
    let details = fair.details();
    assert_eq!(details[0], ("hosts", 3), "two and the rest");
    assert_eq!(
        details[1],
        ("flows", 6),
        "four and a shared one each for the others"
    );
    // Four flows of host 0; then each packet shares its flow, and those of three hosts their host.
    assert_eq!(details[3], ("host_collisions", 24));
    assert_eq!(details[4], ("flow_collisions", 32));
    let mut left = 0;
    while take(&mut fair, &mut pool).is_some() {
        left += 1;
    }
    assert_eq!(left, 40);
    assert_eq!(fair.details()[..2], [("hosts", 0), ("flows", 0)]);
}

#[test]
fn a_stream_of_new_flows_does_not_starve_an_old_one() {
    let mut pool = Pool::new(10_000);
    let mut fair = Fair::new(&Options::default(), 1);
    for _ in 0..100 {
        offer(&mut fair, &mut pool, keys(1, 1), 1_000);
    }
    let mut old = 0;
    for port in 1_000..5_000 {
        offer(&mut fair, &mut pool, keys(1, port), 1_000);
        let packet = take(&mut fair, &mut pool).expect("backlogged");
        old += u32::from(packet.handle == 1);
    }
    assert_eq!(old, 100, "a seventeenth of 4,000 is more than it has");
}

#[test]
fn a_stream_of_new_hosts_does_not_starve_an_old_one() {
    let mut pool = Pool::new(10_000);
    let mut fair = Fair::new(&Options::default(), 1);
    for _ in 0..100 {
        offer(&mut fair, &mut pool, keys(1, 1), 1_000);
    }
    let mut old = 0;
    for host in 1_000..5_000 {
        offer(&mut fair, &mut pool, keys(host, 7), 1_000);
        old += u32::from(take(&mut fair, &mut pool).is_some_and(|packet| packet.handle == 1));
    }
    assert_eq!(old, 100);
}

#[test]
fn a_tunnels_flows_are_told_apart_unless_the_outer_header_is_asked_for() {
    for (hosts, flows, count) in [
        (KeySet::HOST, KeySet::INNERMOST, 8),
        (KeySet::of(&[Key::Src]), KeySet::PLAIN, 1),
    ] {
        let mut pool = Pool::new(100);
        let options = Options {
            hosts,
            flows,
            ..Options::default()
        };
        let mut fair = Fair::new(&options, 1);
        for port in 0..8 {
            let mut packet = keys(1, 0);
            packet.outer.protocol = 4;
            packet.inner = keys(50, port).outer;
            offer(&mut fair, &mut pool, packet, 100);
        }
        assert_eq!(fair.details()[..2], [("hosts", 1), ("flows", count)]);
    }
}

#[test]
fn drained_and_restored_it_is_as_before_and_no_limit_counts() {
    let mut pool = Pool::new(100);
    let mut fair = Fair::new(&Options::default(), 1);
    for port in 0..10 {
        offer(&mut fair, &mut pool, keys(u32::from(port) / 3, port), 100);
    }
    let mut all = Vec::new();
    fair.drain(&mut pool, &mut all);
    assert_eq!((all.len(), fair.backlog()), (10, Backlog::default()));
    assert_eq!(fair.dequeue(&mut pool, Instant::ZERO), None);
    let options = Options {
        limit: 1,
        ..Options::default()
    };
    let mut small = Fair::new(&options, 1);
    for &id in &all {
        assert!(small.restore(&mut pool, id, Instant::ZERO));
    }
    assert_eq!(small.backlog().packets, 10);
    assert_eq!(small.statistics(), Statistics::default());
}
