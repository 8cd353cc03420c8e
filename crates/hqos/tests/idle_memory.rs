//! The memory of idle subscribers: in a process of its own, because resident memory is that of the process.

use base::Instant;
use hqos::spec::{Rates, Template, TemplateId};
use hqos::{Direction, Options, Plan, Shape, Tree};

#[test]
fn an_idle_subscriber_takes_at_most_600_bytes_in_both_directions() {
    let plan = Plan {
        templates: vec![Template::default()],
        nodes: Vec::new(),
    };
    let options = Options {
        direction: Direction::Down,
        packets_max: 100_000,
        octets_max: 256 << 20,
        subscribers_max: 1_000_000,
        seed: 7,
    };
    let shape = Shape {
        rates: Rates {
            down: 50_000_000,
            up: 10_000_000,
        },
        template: TemplateId(0),
        node: None,
    };
    let count = 100_000;
    let before = resident();
    let trees = [0, 1].map(|_| {
        let mut tree = Tree::new(&plan, &options, Instant::ZERO).unwrap();
        for owner in 0..count {
            tree.add(&shape, owner, Instant::ZERO).unwrap();
        }
        tree
    });
    let each = (resident() - before) / u64::from(count);
    assert!((100..=600).contains(&each), "{each} bytes");
    assert!(trees.iter().all(|tree| tree.next_deadline().is_none()));
}

/// Bytes of this process's memory that are resident.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}
