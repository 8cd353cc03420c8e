//! Hundreds of seeds: subscribers come and go, ports are forwarded, settings change, pools are full.

use base::Duration;
use nat::{Config, ForwardRequest, Limits, Protocol};

use super::wire::{TCP, UDP};
use super::world::World;
use super::{external, range, wish};

const SUBSCRIBERS: usize = 9;

/// Settings with few blocks of few ports: some subscribers find none.
fn scarce(seed: u64) -> Config {
    let few = if seed.is_multiple_of(2) { 24 } else { 400 };
    Config {
        port_first: 65_535 - few * 16,
        block_ports: 16,
        limits: Limits {
            mappings_max: 400,
            blocks_per_subscriber: 5,
            fragmented_max: 4,
            ..Limits::default()
        },
        ..Config::new(vec![range("203.0.113.8")], [seed, 2, 3])
    }
}

struct Chaos {
    world: World,
    config: Config,
    forwards: Vec<(Protocol, (core::net::Ipv4Addr, u16))>,
}

impl Chaos {
    fn packets(&mut self) {
        let world = &mut self.world;
        for _ in 0..12 {
            let n = world.dice.below(SUBSCRIBERS);
            let protocol = [TCP, UDP][world.dice.below(2)];
            let port = 2_000 + world.dice.below(40) as u16;
            let socket = world.socket(n, protocol, port);
            world.send(socket);
            world.reply(socket);
            if world.dice.below(4) == 0 {
                world.turns();
            }
        }
    }

    fn forward(&mut self) {
        let world = &mut self.world;
        let n = world.dice.below(SUBSCRIBERS);
        let inside = world.address(n);
        let port = 4_000 + world.dice.below(6) as u16;
        let low = (external(8), 80 + world.dice.below(4) as u16);
        let own = (world.dice.below(2) == 0).then_some(low);
        let lifetime = (world.dice.below(3) == 0).then(|| Duration::from_millis(5));
        let wish = ForwardRequest {
            lifetime,
            ..wish(inside, port, own)
        };
        if let Ok(forward) = world.forward(&wish) {
            let end = (forward.external, forward.external_port);
            self.forwards.push((forward.protocol, end));
        }
    }

    fn unforward(&mut self) {
        if self.forwards.is_empty() {
            return;
        }
        let at = self.world.dice.below(self.forwards.len());
        let (protocol, end) = self.forwards.swap_remove(at);
        // It may have lapsed, or gone with its subscriber.
        let _ = self.world.unforward(protocol, end);
    }

    fn reload(&mut self) {
        let second = self.world.dice.below(2) == 0;
        self.config.externals = match second {
            true => vec![range("203.0.113.8"), range("203.0.113.10")],
            false => vec![range("203.0.113.8")],
        };
        self.config.limits.blocks_per_subscriber = 3 + self.world.dice.below(4) as u16;
        let config = self.config.clone();
        assert_eq!(self.world.stage.lns.reconfigure_nat(config), Ok(()));
    }
}

#[test]
fn no_port_has_two_owners_and_none_is_left_when_all_have_gone() {
    let (mut full, mut forwarded) = (0, 0);
    for seed in 0..240 {
        let config = scarce(seed);
        let world = World::new(2 + (seed % 3) as u16, SUBSCRIBERS, config.clone(), seed);
        let mut chaos = Chaos {
            world,
            config,
            forwards: Vec::new(),
        };
        chaos.world.anywhere = true;
        for _ in 0..40 {
            chaos.packets();
            match chaos.world.dice.below(12) {
                0 => {
                    let n = chaos.world.dice.below(SUBSCRIBERS);
                    chaos.world.redial(n);
                }
                1 | 2 => chaos.forward(),
                3 => chaos.unforward(),
                4 => chaos.reload(),
                5 => chaos.world.pass(Duration::from_millis(1_100)),
                _ => chaos.world.pass(Duration::from_millis(1)),
            }
            chaos.world.turns();
        }
        let totals = chaos.world.totals();
        full += u32::from(chaos.world.dropped(edge::Discard::Nat) > 0);
        forwarded += totals.forwards;
        assert!(totals.counters.mappings <= 400, "seed {seed}: {totals:?}");
        let [free, held, all] = totals.blocks;
        assert!(free + held <= all + 400, "seed {seed}: {totals:?}");
        for n in 0..SUBSCRIBERS {
            chaos.world.end(n);
        }
        let ends = core::mem::take(&mut chaos.forwards);
        for (protocol, end) in ends {
            let _ = chaos.world.unforward(protocol, end);
        }
        let world = &mut chaos.world;
        world.pass(Duration::from_secs(2));
        world.settle();
        let totals = world.totals();
        let counters = totals.counters;
        let left = (
            counters.subscribers,
            counters.mappings,
            counters.sessions,
            totals.forwards,
        );
        assert_eq!(left, (0, 0, 0, 0), "seed {seed}");
        assert!(world.blocks.is_empty(), "seed {seed}: {:?}", world.blocks);
        // Blocks are free again once they have waited.
        world.pass(Duration::from_secs(130));
        world.settle();
        let [free, held, all] = world.totals().blocks;
        assert_eq!((free, held), (all, 0), "seed {seed}");
    }
    assert!(full > 60 && forwarded > 100, "{full} {forwarded}");
}
