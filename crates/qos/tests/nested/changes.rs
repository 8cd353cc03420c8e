//! Tests that random trees and changes never lose, duplicate, reorder, overspeed or needlessly delay a packet.

use base::{Duration, Instant};
use proptest::prelude::*;
use qos::tree::{Spec, TbfSpec};

use crate::trees::{MTU, any_tree, shaped_tree};
use crate::world::{World, keys};

/// Some packets of one flow at one time, perhaps after a change to another tree.
#[derive(Debug, Clone)]
struct Step<T> {
    tree: Option<T>,
    wait: u64,
    flow: (u8, u16, u8),
    lengths: Vec<u32>,
}

fn steps<T: core::fmt::Debug + Clone>(
    tree: impl Strategy<Value = T>,
) -> impl Strategy<Value = Vec<Step<T>>> {
    let flow = (
        0u8..4,
        0u16..5,
        prop::sample::select(vec![0u8, 2, 0x20, 0xb8]),
    );
    let lengths = prop::collection::vec(40..=MTU, 1..12);
    let tree = prop::option::weighted(0.2, tree);
    let step = (tree, 0u64..20_000_000, flow, lengths);
    let step = step.prop_map(|(tree, wait, flow, lengths)| Step {
        tree,
        wait,
        flow,
        lengths,
    });
    prop::collection::vec(step, 1..40)
}

fn offer<T>(world: &mut World, step: &Step<T>) {
    world.run_until(world.now + Duration::from_nanos(step.wait));
    let (host, port, traffic_class) = step.flow;
    for &length in &step.lengths {
        world.offer(keys(host, port, traffic_class), length);
    }
    world.check();
}

/// Over any span across all trees, the output is at most the allowed rate times the time, plus the largest burst.
fn assert_never_above(world: &World, rates: &[(Instant, u64)], burst: u32) {
    let allowed = |at: Instant| -> i128 {
        let ends = rates.iter().skip(1).map(|(from, _)| *from).chain([at]);
        let spans = rates.iter().zip(ends);
        let spans = spans.filter(|((from, _), _)| *from < at);
        let each = spans.map(|((from, rate_bps), end)| {
            i128::from(*rate_bps) * i128::from(end.min(at).since(*from).as_nanos())
        });
        each.sum()
    };
    let (mut start, mut total) = (i128::MIN, 0);
    for (at, packet) in &world.sent {
        start = start.max(allowed(*at) - total);
        total += i128::from(packet.length) * 8_000_000_000;
        let over = start - (allowed(*at) - total) - i128::from(burst) * 8_000_000_000;
        assert!(
            over <= 0,
            "{at:?}: {} octets too many",
            over / 8_000_000_000
        );
    }
}

/// Rate and burst of the topmost limit.
fn root(tree: &Spec) -> (u64, u32) {
    match tree {
        Spec::Tbf(TbfSpec { options, .. }) => (options.rate_bps, options.burst),
        Spec::Htb(htb) => (htb.classes[0].ceil_bps, htb.classes[0].cburst),
        _ => unreachable!("it is shaped"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    #[test]
    fn any_tree_conserves_packets_and_work_keeps_order_and_ceilings_while_it_changes(
        first in any_tree(),
        steps in steps(any_tree()),
    ) {
        let mut world = World::new(&first);
        for step in &steps {
            offer(&mut world, step);
            if let Some(tree) = &step.tree {
                world.change(tree);
            }
        }
        world.empty();
    }

    #[test]
    fn a_rate_above_all_else_is_kept_over_every_change(
        first in shaped_tree(),
        steps in steps(shaped_tree()),
    ) {
        let mut world = World::new(&first);
        let (rate_bps, mut burst) = root(&first);
        let mut rates = vec![(Instant::ZERO, rate_bps)];
        for step in &steps {
            offer(&mut world, step);
            if let Some(tree) = &step.tree {
                world.change(tree);
                rates.push((world.now, root(tree).0));
                burst = burst.max(root(tree).1);
            }
        }
        world.empty();
        assert_never_above(&world, &rates, burst);
    }
}
