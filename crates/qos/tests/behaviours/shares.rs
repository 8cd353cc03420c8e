//! Nine flows of one host compete with one flow of another, through the queues that operators configure for this.

use base::{Duration, Instant};
use qos::classify::{Key, KeySet};
use qos::policy::Policy;
use qos::tree::{Classifier, DrrClass, DrrSpec, Spec, Tree};
use qos::{Discipline, Packet, Pool, fair, fq_codel};
use wire::flow::{Flow, Keys};

const LENGTH: u32 = 1_514;

fn keys(host: u8, port: u16) -> Keys {
    let address = |last: u8| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last];
    Keys {
        outer: Flow {
            source: address(host),
            destination: address(99),
            source_port: port,
            destination_port: 443,
            protocol: 6,
        },
        ..Keys::default()
    }
}

/// Jain's index of both hosts' throughput over ten seconds on a 10 Mbit/s link, with every flow always backlogged.
fn jain(spec: &Spec) -> f64 {
    let mut pool = Pool::new(100_000);
    let mut tree = Tree::new(spec, 11, Instant::ZERO).expect("it fits together");
    let mut now = Instant::ZERO;
    let put = |tree: &mut Tree, pool: &mut Pool, keys: Keys, now| {
        let packet = Packet {
            length: LENGTH,
            keys,
            arrived: now,
            ..Packet::default()
        };
        let id = pool.insert(packet).expect("room");
        tree.enqueue(pool, id, now);
        pool.discarded().count();
    };
    let flows = (0..9).map(|port| keys(1, port)).chain([keys(2, 100)]);
    for keys in flows {
        for _ in 0..5 {
            put(&mut tree, &mut pool, keys, now);
        }
    }
    let mut octets = [0.0_f64; 2];
    while now < Instant::from_nanos(10_000_000_000) {
        now = tree.next_time(now).expect("backlogged").max(now);
        let Some(id) = tree.dequeue(&mut pool, now) else {
            continue;
        };
        let sent = pool.take(id);
        now += Duration::from_nanos(u64::from(LENGTH) * 800);
        octets[usize::from(sent.keys.outer.source[15] - 1)] += f64::from(LENGTH);
        // Packets that CoDel drops are sent again.
        for _ in 0..2 {
            put(&mut tree, &mut pool, sent.keys, now);
        }
    }
    let [a, b] = octets;
    (a + b).powi(2) / (2.0 * (a * a + b * b))
}

/// The core of the published script: hosts spread over buckets, and `fq_codel` in each.
fn script() -> Spec {
    let buckets = 32;
    Spec::Drr(DrrSpec {
        classes: (1..=buckets)
            .map(|minor| DrrClass {
                minor,
                quantum: LENGTH,
                child: Spec::FqCodel(fq_codel::Options::default()),
            })
            .collect(),
        classifier: Classifier::Hash {
            keys: KeySet::of(&[Key::Src]),
            divisor: buckets.into(),
            seed: 1,
            baseclass: 1,
        },
    })
}

#[test]
fn by_host_the_index_is_099_and_by_flow_it_is_below_07() {
    let home = Policy::parse("[link]\nup = \"9mbit\"\n").expect("no fault");
    for spec in [
        script(),
        Spec::Fair(fair::Options::default()),
        home.0.up_spec(),
    ] {
        let index = jain(&spec);
        assert!(index >= 0.99, "{spec:?}: {index}");
    }
    let flows = Policy::parse("[link]\nup = \"9mbit\"\n[shape]\ntemplate = \"flows\"\n");
    for spec in [
        Spec::FqCodel(fq_codel::Options::default()),
        flows.expect("no fault").0.up_spec(),
    ] {
        let index = jain(&spec);
        assert!((0.5..=0.70).contains(&index), "{spec:?}: {index}");
    }
}
