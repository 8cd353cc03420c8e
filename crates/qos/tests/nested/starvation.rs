//! Tests that a flow that is always backlogged is served, wherever it is among its equals.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::trees::{LINK_BPS, tree_of_equals};
use crate::world::{World, keys};

/// Number of hosts, and of flows per host.
const FLOWS: (u8, u16) = (2, 4);
/// Number of packets within which each flow must have sent at least one.
const AMONG: usize = 6_000;

/// Keeps every flow backlogged with packets of varying length, until `count` have left over the link.
fn saturate(world: &mut World, count: usize) {
    let all = (0..FLOWS.0).flat_map(|host| (0..FLOWS.1).map(move |port| keys(host, port, 0)));
    let mut lengths = [1_514, 300, 900, 64].into_iter().cycle();
    let mut offer = |world: &mut World, keys| world.offer(keys, lengths.next().unwrap_or(64));
    let all: Vec<_> = all.collect();
    for keys in all.iter().chain(&all) {
        offer(world, *keys);
    }
    let mut gone = (world.sent.len(), world.lost.len());
    // Packets are identified by the order in which they were offered.
    let mut owners: Vec<_> = all.iter().chain(&all).copied().collect();
    while world.sent.len() < count {
        world.step(LINK_BPS);
        let lost: Vec<u32> = world.lost[gone.1..].to_vec();
        let sent: Vec<u32> = world.sent[gone.0..]
            .iter()
            .map(|(_, packet)| packet.handle)
            .collect();
        gone = (world.sent.len(), world.lost.len());
        for handle in lost.into_iter().chain(sent) {
            let keys = owners[handle as usize];
            owners.push(keys);
            offer(world, keys);
        }
    }
    world.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn among_equals_no_flow_waits_for_ever(tree in tree_of_equals()) {
        let mut world = World::new(&tree);
        saturate(&mut world, 2 * AMONG);
        for part in world.sent.chunks(AMONG) {
            let mut served = BTreeMap::new();
            for (_, packet) in part {
                let outer = packet.keys.outer;
                *served.entry((outer.source[15], outer.source_port)).or_insert(0) += 1;
            }
            let flows = usize::from(FLOWS.0) * usize::from(FLOWS.1);
            prop_assert_eq!(served.len(), flows, "{:?}", served);
        }
    }
}
