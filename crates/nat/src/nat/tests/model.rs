//! Random packets, times and subscribers against a naive model: no port has two owners, none is leaked, and each packet is
//! translated as the model says.

use std::collections::BTreeMap;

use super::*;
use crate::nat::testing::{assert_sums, ends, read, udp};
use crate::{Block, Limits};

const SEEDS: u64 = 300;
const STEPS: usize = 400;

/// xorshift64*, of which the upper bits are used.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}

/// A UDP mapping as the model knows it.
#[derive(Debug, Clone, Copy)]
struct Known {
    external: (Ipv4Addr, u16),
    last: Instant,
}

/// What the model knows.
#[derive(Default)]
struct Model {
    by_inside: BTreeMap<(Ipv4Addr, u16), Known>,
    blocks: BTreeMap<(Ipv4Addr, u16), (Block, Instant)>,
    /// Blocks that were freed, and when.
    freed: BTreeMap<(Ipv4Addr, u16), Instant>,
}

/// Two ticks: how long after its time a timer may fire.
const SLACK: Duration = Duration::from_nanos(3 << 30);
const UDP: Duration = Duration::from_secs(300);
const HOLD: Duration = Duration::from_secs(120);

impl Model {
    fn events(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::BlockAllocated(block, at) => {
                    let key = (block.external, block.first);
                    if let Some(&freed) = self.freed.get(&key) {
                        assert!(at - freed >= HOLD, "RFC 6888 REQ-8");
                    }
                    let before = self.blocks.insert(key, (block, at));
                    assert!(before.is_none(), "{block:?} has two owners");
                }
                Event::BlockFreed(block, at) => {
                    let key = (block.external, block.first);
                    let before = self.blocks.remove(&key);
                    assert_eq!(before.map(|(block, _)| block), Some(block));
                    self.freed.insert(key, at);
                }
                Event::PoolUsedUp { .. } | Event::SubscriberLimit { .. } => {}
                Event::ForwardAdded(..) | Event::ForwardRemoved(..) => unreachable!(),
            }
        }
    }

    fn outbound(&mut self, inside: (Ipv4Addr, u16), external: (Ipv4Addr, u16), now: Instant) {
        let block = self.blocks.range(..=external).next_back();
        let (_, (block, _)) = block.expect("a port of a block");
        assert_eq!(block.external, external.0);
        assert!((block.first..=block.last).contains(&external.1));
        assert_eq!(block.inside, inside.0, "the block is the subscriber's");
        if let Some(known) = self.by_inside.get(&inside)
            && now - known.last < UDP + HOLD
        {
            assert_eq!(known.external, external, "RFC 4787 REQ-1");
        }
        let is_other = |(&other, known): (&(Ipv4Addr, u16), &Known)| {
            other != inside && known.external == external && now - known.last < UDP + HOLD
        };
        assert!(
            !self.by_inside.iter().any(is_other),
            "{external:?} has two users"
        );
        let last = now;
        self.by_inside.insert(inside, Known { external, last });
    }
}

fn run(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut config = config();
    config.seed = [seed | 1, !seed, seed ^ 0x5555];
    config.block_ports = 16;
    config.port_first = 65_408;
    config.limits = Limits {
        mappings_max: 200,
        blocks_per_subscriber: 3,
        ..config.limits
    };
    let mut world = world(config);
    let hosts: Vec<Ipv4Addr> = (1..=8).map(|n| Ipv4Addr::new(100, 64, 1, n)).collect();
    let mut ids: Vec<Option<SubscriberId>> = vec![None; hosts.len()];
    let mut model = Model::default();
    for _ in 0..STEPS {
        let one = random.below(hosts.len() as u64) as usize;
        let host = hosts[one];
        match random.below(20) {
            0 => {
                world.now += Duration::from_millis(random.below(200_000));
                if random.below(4) > 0 {
                    world.nat.handle_timeout(world.now);
                }
            }
            1 => {
                if let Some(id) = ids[one].take() {
                    world.nat.leave(id, world.now);
                    model.by_inside.retain(|inside, _| inside.0 != host);
                }
            }
            2..12 => {
                let nat = &mut world.nat;
                let id = *ids[one].get_or_insert_with(|| nat.join(one as u64, host).expect("room"));
                let inside = (host, random.below(30) as u16 + 1);
                let mut packet = udp(between(inside, (address(WEB), 80)), b"x");
                let result = world.out(id, &mut packet);
                model.events(world.events());
                if result.is_ok() {
                    assert_sums(&packet, true);
                    model.outbound(inside, read(&packet).from, world.now);
                }
            }
            _ => inbound(&mut world, &model, &mut random),
        }
        model.events(world.events());
    }
    finish(&mut world, ids, &mut model);
}

/// A packet to a random port of the pool reaches whom the model says.
fn inbound(world: &mut World, model: &Model, random: &mut Random) {
    let external = match model.by_inside.len() as u64 {
        0 => (address("192.0.2.1"), 65_500),
        count => {
            let at = random.below(count) as usize;
            let known = model.by_inside.values().nth(at);
            known.expect("one of them").external
        }
    };
    let mut packet = udp(between((address(DNS), 53), external), b"y");
    let result = world.back(&mut packet);
    let live = model
        .by_inside
        .iter()
        .filter(|(_, known)| known.external == external && world.now - known.last < UDP + SLACK);
    let live: Vec<_> = live.map(|(&inside, known)| (inside, known.last)).collect();
    match result {
        Ok(_) => {
            assert_sums(&packet, true);
            let to = read(&packet).to;
            assert!(live.iter().any(|&(inside, _)| inside == to), "{to:?}");
        }
        Err(why) => {
            assert_eq!(why, Discard::NoMapping);
            let is_due = |&(_, last): &((Ipv4Addr, u16), Instant)| world.now - last >= UDP;
            assert!(live.iter().all(is_due), "a live mapping was not found");
        }
    }
}

/// Everybody leaves: nothing is left.
fn finish(world: &mut World, ids: Vec<Option<SubscriberId>>, model: &mut Model) {
    for id in ids.into_iter().flatten() {
        world.nat.leave(id, world.now);
    }
    model.events(world.events());
    assert!(model.blocks.is_empty(), "every block was freed");
    assert_eq!(world.nat.counters().mappings, 0);
    world.wait(200);
    let (free, waiting, all) = world.nat.blocks();
    assert_eq!((free, waiting), (all, 0), "every block can be used again");
    assert_eq!(world.nat.poll_timeout(), None);
    assert_eq!(world.nat.counters().subscribers, 2);
    let mut packet = udp(ends((ANN, 1), (WEB, 80)), b"x");
    assert_eq!(world.out(world.ann, &mut packet), Ok(Verdict::Translated));
}

#[test]
fn no_port_block_is_used_twice_or_leaked_for_any_seed() {
    for seed in 0..SEEDS {
        let result = std::panic::catch_unwind(|| run(seed));
        assert!(result.is_ok(), "seed {seed}");
    }
}
