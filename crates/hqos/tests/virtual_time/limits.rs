//! Limits, changes under load, and removal.

use base::{Duration, Instant};
use hqos::spec::{Depth, Template};
use hqos::{Admission, Options, Tree};

use crate::world::{World, node, options, plan, shape, template};

#[test]
fn the_subscriber_with_the_most_bytes_loses_first_when_the_tree_is_full() {
    let limits = Options {
        packets_max: 100,
        ..options()
    };
    let plan = plan(vec![template("home", 1)], Vec::new());
    let mut world = World::new(&plan);
    world.tree = Tree::new(&plan, &limits, Instant::ZERO).unwrap();
    let shape = shape(1_000_000, 0, None);
    let ids = [0, 1].map(|owner| world.tree.add(&shape, owner, world.now).unwrap());
    for _ in 0..200 {
        world.offer(ids[0], 0, 1_500, (0, 0));
    }
    for _ in 0..20 {
        world.offer(ids[1], 1, 1_500, (0, 0));
    }
    let [flood, calm] = ids.map(|id| world.view(id, 1).unwrap());
    assert_eq!(
        (calm.counts.dropped, flood.packets + calm.packets),
        (0, 100)
    );
    assert_eq!(
        u64::from(flood.packets) + flood.counts.dropped + flood.counts.passed,
        200
    );
}

#[test]
fn the_longest_flow_of_the_heaviest_host_loses_first_when_a_queue_is_full() {
    let depth = Depth {
        packets: 50,
        octets: 1 << 20,
    };
    let home = Template {
        depth,
        ..template("home", 1)
    };
    let mut world = World::new(&plan(vec![home], Vec::new()));
    let id = world
        .tree
        .add(&shape(1_000_000, 0, None), 0, world.now)
        .unwrap();
    for n in 0..200 {
        world.offer(id, 0, 1_500, (0, 7));
        if n % 10 == 5 && n < 100 {
            world.offer(id, 0, 200, (1, n));
        }
    }
    let view = world.view(id, 8).unwrap();
    let calm = view
        .hosts
        .iter()
        .find(|host| host.address == [2; 16])
        .unwrap();
    assert_eq!((view.packets, calm.packets, calm.flows), (50, 10, 10));
    assert_eq!(world.tree.admit(id, 2 << 20, world.now), Admission::Drop);
}

#[test]
fn a_change_of_rates_under_load_loses_nothing_and_counts_at_once() {
    let mut world = World::new(&plan(
        vec![template("home", 1)],
        vec![
            node("olt", None, 50_000_000),
            node("other", None, 2_000_000),
        ],
    ));
    let id = world
        .tree
        .add(&shape(100_000, 0, Some(0)), 0, world.now)
        .unwrap();
    for _ in 0..101 {
        world.offer(id, 0, 1_000, (0, 0));
    }
    let passed = world.sent.len();
    world.now += Duration::from_millis(10);
    world.drain();
    assert_eq!((world.sent.len(), world.lost), (passed, 0));
    // 800,000 bits at 10 Mbit/s; at the old rate the first one is due later.
    assert!(
        world
            .tree
            .change(id, &shape(10_000_000, 0, Some(0)), world.now)
    );
    world.run(
        Duration::from_millis(40),
        Duration::from_millis(100),
        |_| {},
    );
    let sent = world.sent.len() - passed;
    assert!((40..60).contains(&sent), "{sent}");
    assert!(world.tree.change(id, &shape(0, 0, Some(1)), world.now));
    world.run(Duration::from_secs(1), Duration::from_secs(1), |_| {});
    assert_eq!((world.queued(), world.tree.next_deadline()), (0, None));
    assert_eq!(world.lost + world.sent.len() as u64, 101);
}

#[test]
fn a_plan_that_loses_a_link_and_a_template_keeps_the_packets() {
    let before = plan(
        vec![template("a", 1), template("b", 2)],
        vec![node("top", None, 1_000_000), node("low", Some(0), 500_000)],
    );
    let mut world = World::new(&before);
    let id = world.tree.add(&shape(0, 1, Some(1)), 0, world.now).unwrap();
    for _ in 0..50 {
        world.offer(id, 0, 1_000, (0, 0));
    }
    let names = |world: &World| world.view(id, 0).map(|view| (view.template, view.nodes));
    let links = vec!["low".to_owned(), "top".to_owned()];
    assert_eq!(names(&world), Some(("b".to_owned(), links)));
    // The two links change places.
    let turned = plan(
        vec![template("b", 1)],
        vec![node("low", None, 500_000), node("top", Some(0), 0)],
    );
    world.tree.set_plan(&turned, world.now).unwrap();
    assert_eq!(
        names(&world),
        Some(("b".to_owned(), vec!["low".to_owned()]))
    );
    let empty = plan(vec![template("c", 1)], Vec::new());
    world.tree.set_plan(&empty, world.now).unwrap();
    assert_eq!(names(&world), Some(("c".to_owned(), Vec::new())));
    world.drain();
    assert_eq!(
        (world.sent.len() as u64 + world.lost, world.queued()),
        (50, 0)
    );
}

#[test]
fn a_removed_subscriber_leaves_nothing_and_no_timer() {
    let mut world = World::new(&plan(
        vec![template("home", 1)],
        vec![node("olt", None, 900_000)],
    ));
    for round in 0..3 {
        let id = world
            .tree
            .add(&shape(500_000, 0, Some(0)), round, world.now)
            .unwrap();
        for n in 0..30 {
            world.offer(id, round, 1_000, (n, 0));
        }
        assert!(world.tree.waiting() > 0);
        world.tree.remove(id);
        world.drain();
        let tree = &world.tree;
        assert_eq!((tree.packets(), tree.octets(), tree.waiting()), (0, 0, 0));
        assert_eq!((world.queued(), world.tree.subscribers()), (0, 0));
        world.now += Duration::from_secs(1);
    }
}
