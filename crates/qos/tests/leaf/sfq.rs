//! Tests stochastic fair queuing across changes of its hash, in virtual time.

use base::{Duration, Instant};
use qos::sfq::{Options, Perturb, Sfq};
use qos::{Discipline, Pool};

use crate::harness::{insert, keys, lost, send};

const MS: u64 = 1_000_000;
const FLOOD: u32 = 0;
const PING: u32 = 1;
const PERIOD_MS: u64 = 5_000;

/// With this seed, ping and flood share a bucket after the first change, but not before it or after the second.
fn colliding(perturb: Perturb) -> Options {
    let options = (0..).map(|seed| Options {
        perturb,
        seed,
        period: Duration::from_millis(PERIOD_MS),
        ..Options::default()
    });
    let meet = |options: &Options, changes: u64| {
        let hash = Sfq::hash(options, changes);
        hash.bucket(&keys(FLOOD, 0)) == hash.bucket(&keys(PING, 0))
    };
    let mut found =
        options.filter(|options| [0, 1, 2].map(|n| meet(options, n)) == [false, true, false]);
    found.next().expect("one in about a thousand")
}

/// Longest wait in ms of a ping every 20 ms, in each period, beside a flood of twice the link's 1 Mbit/s; lost pings;
/// and whether a flow's packets left out of order.
fn longest_waits(options: Options) -> ([u64; 3], u32, bool) {
    let mut pool = Pool::new(10_000);
    let mut queue = Sfq::new(options);
    let mut waits = [0; 3];
    let mut lost_pings = 0;
    let mut last = [None; 2];
    let mut reordered = false;
    let mut handle = 0;
    let mut link_free = 0;
    let mut flow_of = Vec::new();
    for tick in 0..3 * PERIOD_MS {
        let now = tick * MS;
        while link_free <= now {
            let at = Instant::from_nanos(link_free);
            let Some(packet) = send(&mut queue, &mut pool, at) else {
                link_free = now + 1;
                break;
            };
            if packet.keys.mark == PING {
                let period = (packet.arrived.as_nanos() / MS / PERIOD_MS) as usize;
                waits[period] = at.since(packet.arrived).as_millis().max(waits[period]);
            }
            let before = last[packet.keys.mark as usize].replace(packet.handle);
            reordered |= before > Some(packet.handle);
            link_free += u64::from(packet.length) * 8_000;
        }
        let mut put = |flow: u32, length: u32| {
            let instant = Instant::from_nanos(now);
            let id = insert(&mut pool, handle, flow, 0, length, instant);
            queue.enqueue(&mut pool, id, instant);
            handle += 1;
            flow_of.push(flow);
        };
        if tick % 6 == 0 {
            put(FLOOD, 1514);
        }
        if tick % 20 == 0 {
            put(PING, 98);
        }
        let pings = lost(&mut pool).into_iter();
        lost_pings += pings
            .filter(|&handle| flow_of[handle as usize] == PING)
            .count() as u32;
    }
    (waits, lost_pings, reordered)
}

#[test]
fn a_hash_that_makes_ping_and_flood_meet_is_a_spike_where_buckets_are_shared() {
    let ([before, met, after], ..) = longest_waits(colliding(Perturb::Rehash));
    assert!(before <= 30, "{before} ms");
    assert!(met >= 1000, "{met} ms");
    assert!(after <= 30, "{after} ms");
}

#[test]
fn the_old_design_has_the_spike_and_lets_packets_overtake_each_other() {
    let ([before, met, _], _, reordered) = longest_waits(colliding(Perturb::Stay));
    assert!(before <= 30, "{before} ms");
    assert!(met >= 1000, "{met} ms");
    assert!(reordered);
}

#[test]
fn flows_known_by_their_whole_hash_have_no_spike_no_loss_and_stay_in_order() {
    let (waits, lost_pings, reordered) = longest_waits(colliding(Perturb::Apart));
    assert!(waits.iter().all(|&wait| wait <= 30), "{waits:?} ms");
    assert_eq!(lost_pings, 0);
    assert!(!reordered);
}

#[test]
fn the_longest_queue_loses_its_newest_or_its_oldest_packet() {
    for (head_drop, expected) in [(false, 4), (true, 0)] {
        let mut pool = Pool::new(100);
        let mut queue = Sfq::new(Options {
            limit: 6,
            head_drop,
            ..Options::default()
        });
        // Five packets of flow 0, then two of others: the seventh exceeds the limit.
        for handle in 0..7u32 {
            let flow = handle.saturating_sub(4);
            let id = insert(&mut pool, handle, flow, 0, 1000, Instant::ZERO);
            assert!(queue.enqueue(&mut pool, id, Instant::ZERO));
        }
        assert_eq!(lost(&mut pool), [expected]);
    }
}

#[test]
fn a_queue_has_a_depth() {
    for (head_drop, expected) in [(false, [2, 3]), (true, [0, 1])] {
        let mut pool = Pool::new(100);
        let mut queue = Sfq::new(Options {
            depth: 2,
            head_drop,
            ..Options::default()
        });
        for handle in 0..4 {
            let id = insert(&mut pool, handle, 0, 0, 1000, Instant::ZERO);
            assert_eq!(
                queue.enqueue(&mut pool, id, Instant::ZERO),
                handle < 2 || head_drop
            );
        }
        assert_eq!(lost(&mut pool), expected);
    }
}

#[test]
fn the_hash_changes_on_the_grid_also_after_a_pause() {
    let mut pool = Pool::new(100);
    let mut queue = Sfq::new(Options {
        period: Duration::from_secs(5),
        ..Options::default()
    });
    let seconds = |s: u64| Instant::ZERO + Duration::from_secs(s);
    for (at, changes) in [(3, 0), (7, 0), (8, 1), (12, 1), (29, 5), (32, 5), (33, 6)] {
        let id = insert(&mut pool, 0, 0, 0, 1000, seconds(at));
        queue.enqueue(&mut pool, id, seconds(at));
        assert!(
            queue.details().contains(&("perturbations", changes)),
            "{at} s"
        );
    }
}

#[test]
fn changes_more_often_than_a_quantum_takes_starve_no_flow() {
    let mut pool = Pool::new(10_000);
    let mut queue = Sfq::new(Options {
        perturb: Perturb::Apart,
        quantum: 3_000,
        period: Duration::from_millis(1),
        ..Options::default()
    });
    let mut served = [0_u32; 8];
    let put = |queue: &mut Sfq, pool: &mut Pool, flow: u32, now| {
        let id = insert(pool, flow, flow, 0, 1_000, now);
        assert!(queue.enqueue(pool, id, now));
    };
    for flow in 0..8 {
        for _ in 0..8 {
            put(&mut queue, &mut pool, flow, Instant::ZERO);
        }
    }
    // Every 2 ms a packet leaves and another of its flow arrives. A quantum takes 6 ms and lasts for six changes.
    for turn in 1..=4_000_u64 {
        let now = Instant::from_nanos(turn * 2 * MS);
        let packet = send(&mut queue, &mut pool, now).expect("all flows have packets");
        served[packet.keys.mark as usize] += 1;
        put(&mut queue, &mut pool, packet.keys.mark, now);
    }
    assert!(served.iter().all(|&count| count >= 450), "{served:?}");
}
