//! Subscribers behind a NAT on several paths: packets arrive on any path, and paths have their turns in any order.

mod chaos;
mod wire;
mod world;

use core::net::Ipv4Addr;

use base::Duration;
use edge::Discard;
use hqos::Shape;
use hqos::spec::{NodeId, Rates, TemplateId};
use nat::{Config, Deterministic, ForwardError, ForwardRequest, Protocol, Range};

use crate::packets::FAR;
use crate::several::{node, plan};
use wire::{ICMP, TCP, UDP, address, error, packet, pieces};
use world::World;

const EXTERNALS: &str = "203.0.113.8/30";

fn range(text: &str) -> Range {
    text.parse().unwrap()
}

fn config() -> Config {
    Config::new(vec![range(EXTERNALS)], [1, 2, 3])
}

fn external(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(203, 0, 113, last)
}

/// Every subscriber sends from some ports, and gets answers.
fn talk(world: &mut World, rounds: usize) {
    for _ in 0..rounds {
        for n in 0..world.sessions.len() {
            for protocol in [TCP, UDP, ICMP] {
                for port in [2_000, 2_001, 3_000 + n as u16] {
                    let socket = world.socket(n, protocol, port);
                    world.send(socket);
                    world.reply(socket);
                }
            }
        }
        world.turns();
        world.pass(Duration::from_millis(1));
    }
}

#[test]
fn a_socket_has_one_external_end_and_every_reply_reaches_it_in_order() {
    for seed in 0..90 {
        let mut world = World::new(2 + (seed % 3) as u16, 7, config(), seed);
        talk(&mut world, 8);
        world.settle();
        assert_eq!(world.lost(), 0, "seed {seed}");
        let totals = world.totals();
        assert_eq!(totals.counters.mappings, 7 * 9, "seed {seed}");
        assert_eq!(totals.counters.subscribers, 7);
        assert_eq!(totals.counters.outbound, 8 * 7 * 9);
        let [free, held, all] = totals.blocks;
        assert_eq!(
            (free + held + world.blocks.len() as u32, all),
            (all, 4 * 126)
        );
        // Every subscriber has one external address (RFC 6888 REQ-2).
        for n in 0..7 {
            let own = world.external.iter().filter(|(socket, _)| socket.0 == n);
            let first = own.clone().next().unwrap().1.0;
            assert!(own.clone().all(|(_, end)| end.0 == first), "seed {seed}");
        }
    }
}

#[test]
fn packets_of_a_flow_may_arrive_on_any_path() {
    for seed in 0..60 {
        let mut world = World::new(2 + (seed % 3) as u16, 6, config(), seed);
        world.anywhere = true;
        talk(&mut world, 8);
        world.settle();
        assert_eq!(world.lost(), 0, "seed {seed}");
        assert_eq!(world.dropped(Discard::Nat), 0);
    }
}

#[test]
fn packets_that_arrive_before_a_path_knows_their_subscriber_are_not_lost() {
    for seed in 0..60 {
        let mut world = World::unsettled(2 + (seed % 3) as u16, 6, config(), seed);
        world.anywhere = true;
        for _ in 0..8 {
            for n in 0..6 {
                let socket = world.socket(n, UDP, 2_000);
                world.send(socket);
            }
            world.turns();
            world.pass(Duration::from_millis(1));
        }
        world.settle();
        assert_eq!(world.lost(), 0, "seed {seed}");
    }
}

#[test]
fn a_path_that_is_behind_costs_counted_packets_and_no_mapping() {
    for seed in 0..40 {
        let mut world = World::new(3, 6, config(), seed);
        world.anywhere = true;
        talk(&mut world, 2);
        world.settle();
        assert_eq!(world.lost(), 0);
        world.inbox_max = 4;
        // Only one path works for a while.
        let only = world.dice.below(3);
        for _ in 0..12 {
            for n in 0..6 {
                let socket = world.socket(n, UDP, 2_000);
                world.send(socket);
                world.reply(socket);
            }
            world.turn(only);
        }
        world.settle();
        let dropped = world.dropped(Discard::Handover);
        assert!(dropped > 0 && world.lost() as u64 == dropped, "seed {seed}");
        // The same external ends serve on.
        world.inbox_max = usize::MAX;
        talk(&mut world, 2);
        world.settle();
        assert_eq!(world.lost() as u64, dropped);
        assert_eq!(world.totals().counters.mappings, 6 * 9);
    }
}

#[test]
fn subscribers_are_spread_over_the_paths() {
    for paths in 2..5 {
        let mut world = World::new(paths, 48, config(), 3);
        talk(&mut world, 1);
        world.settle();
        let mut cursor = Some((0, 0));
        let mut on = vec![0_usize; paths.into()];
        while let Some(at) = cursor {
            let now = world.now();
            let asked = world.stage.lns.nat_subscribers(at, 5, now).unwrap();
            world.settle();
            let (views, next) = asked.answer().unwrap();
            assert!(views.len() <= 5 && views.iter().all(|view| view.blocks == 1));
            on[usize::from(at.0)] += views.len();
            cursor = next;
        }
        assert_eq!(on.iter().sum::<usize>(), 48);
        let fair = 48 / usize::from(paths);
        assert!(on.iter().all(|one| one.abs_diff(fair) <= 8), "{on:?}");
    }
}

#[test]
fn subscribers_reach_each_other_through_their_external_ends() {
    for seed in 0..60 {
        let mut world = World::new(2 + (seed % 3) as u16, 6, config(), seed);
        world.anywhere = true;
        talk(&mut world, 1);
        world.settle();
        for n in 0..6 {
            let to = (n + 1 + world.dice.below(5)) % 6;
            for protocol in [TCP, UDP] {
                let (from, to) = (
                    world.socket(n, protocol, 2_001),
                    world.socket(to, protocol, 2_000),
                );
                world.cross(from, to);
                world.turns();
            }
        }
        world.settle();
        assert_eq!((world.lost(), world.crossed), (0, 12), "seed {seed}");
        assert_eq!(world.totals().counters.hairpinned, 12);
    }
}

#[test]
fn fragments_meet_whatever_path_each_arrives_on() {
    for seed in 0..90 {
        let mut world = World::new(2 + (seed % 3) as u16, 6, config(), seed);
        talk(&mut world, 1);
        world.settle();
        for n in 0..6 {
            let socket = world.socket(n, UDP, 2_000);
            let end = world.external[&socket];
            let number = world.next_number();
            let mut all = pieces(&packet(UDP, (FAR, 53), end, false, number), n as u16);
            let count = all.len();
            while !all.is_empty() {
                let piece = all.swap_remove(world.dice.below(all.len()));
                let at = world.dice.below(world.paths());
                world.pass_from_inside(&piece, at);
                if world.dice.below(3) == 0 {
                    world.turns();
                }
            }
            world.settle();
            let got = core::mem::take(&mut world.in_pieces);
            assert_eq!(got.len(), count, "seed {seed}");
            let inside = world.address(n);
            assert!(got.iter().all(|piece| address(piece, 16) == inside));
            // From the subscriber they arrive on any path too, and leave with one identification.
            let from = (world.address(n), 2_000);
            let number = world.next_number();
            for piece in pieces(&packet(UDP, from, (FAR, 53), false, number), 9) {
                let at = world.dice.below(world.paths());
                world.pass_from_subscriber(&piece, at);
            }
            world.settle();
            let sent = core::mem::take(&mut world.out_pieces);
            assert_eq!(sent.len(), count, "seed {seed}");
            let whole = |piece: &Vec<u8>| (address(piece, 12), [piece[4], piece[5]]);
            assert!(sent.iter().all(|piece| whole(piece) == whole(&sent[0])));
            assert_eq!(address(&sent[0], 12), end.0);
        }
    }
}

#[test]
fn no_two_paths_give_datagrams_to_one_host_the_same_identification() {
    let mut world = World::new(4, 12, Config::new(vec![range("203.0.113.8")], [1, 2, 3]), 1);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..20 {
        for n in 0..12 {
            let from = (world.address(n), 2_000);
            let number = world.next_number();
            let all = pieces(&packet(UDP, from, (FAR, 53), false, number), 9);
            for piece in &all {
                world.pass_from_subscriber(piece, n % 4);
            }
            world.settle();
            let sent = core::mem::take(&mut world.out_pieces);
            assert_eq!(sent.len(), all.len());
            assert!(seen.insert([sent[0][4], sent[0][5]]));
        }
    }
}

#[test]
fn an_error_finds_the_sender_of_the_packet_that_it_quotes() {
    for seed in 0..60 {
        let mut world = World::new(2 + (seed % 3) as u16, 6, config(), seed);
        talk(&mut world, 1);
        world.settle();
        for n in 0..6 {
            for protocol in [TCP, UDP, ICMP] {
                let end = world.external[&world.socket(n, protocol, 2_001)];
                let about = packet(protocol, end, (FAR, 53), false, 0);
                let at = world.dice.below(world.paths());
                world.pass_from_inside(&error(Ipv4Addr::new(192, 0, 2, 77), &about), at);
                world.settle();
                let got = world.errors.pop().expect("an error");
                assert_eq!(address(&got, 16), world.address(n));
                let quoted = seen_in(&got);
                assert_eq!(quoted, (world.address(n), 2_001), "seed {seed}");
            }
            // One of ours about a packet that is too big, wherever it arrives, has the external end of what it quotes.
            let end = world.external[&world.socket(n, UDP, 2_000)];
            let mut big = packet(UDP, (FAR, 53), end, false, 0);
            big.resize(1_480, 0);
            let big = wire::with_length(big);
            let at = world.dice.below(world.paths());
            world.pass_from_inside(&big, at);
            world.settle();
            let told = world.errors.pop().expect("an error");
            assert_eq!((address(&told, 12), address(&told, 16)), (end.0, FAR));
            assert_eq!(told[40..52], big[12..24], "seed {seed}");
        }
        assert!(world.errors.is_empty());
    }
}

/// The source of the packet that an error quotes.
fn seen_in(error: &[u8]) -> (Ipv4Addr, u16) {
    let quote = &error[28..];
    let at = if quote[9] == ICMP { 24 } else { 20 };
    (
        address(quote, 12),
        u16::from_be_bytes([quote[at], quote[at + 1]]),
    )
}

fn wish(inside: Ipv4Addr, port: u16, external: Option<(Ipv4Addr, u16)>) -> ForwardRequest {
    ForwardRequest {
        protocol: Protocol::Udp,
        inside,
        inside_port: port,
        external,
        subscriber: None,
        lifetime: None,
    }
}

#[test]
fn a_forwarded_port_is_open_on_every_path_and_follows_its_subscriber() {
    for seed in 0..60 {
        let mut world = World::new(2 + (seed % 3) as u16, 5, config(), seed);
        world.anywhere = true;
        let end = (external(9), 80);
        let inside = world.address(2);
        let forward = world.forward(&wish(inside, 8_080, Some(end))).unwrap();
        assert_eq!((forward.external, forward.external_port), end);
        world.settle();
        for at in 0..world.paths() {
            let socket = world.socket(2, UDP, 8_080);
            world.forwarded_packet(socket, end, at);
        }
        world.settle();
        assert_eq!(world.lost(), 0, "seed {seed}");
        // The subscriber's own packets leave from there.
        let socket = world.socket(2, UDP, 8_080);
        world.send(socket);
        world.settle();
        assert_eq!(world.external[&socket], end);
        // A second one of the same inside end is refused by all.
        let other = world.forward(&wish(inside, 8_080, Some((external(9), 81))));
        assert_eq!(other, Err(ForwardError::Forwarded(end.0, 80)));
        // It outlives the session: the next one of the address has it, on whatever path it is.
        world.end(2);
        world.settle();
        let totals = world.totals();
        assert_eq!((totals.forwards, totals.counters.mappings), (1, 1));
        let ended = world.unforward(Protocol::Udp, end);
        assert_eq!(ended.map(|one| one.inside_port), Some(8_080));
        assert_eq!(world.unforward(Protocol::Udp, end), None);
        assert_eq!(world.totals().forwards, 0);
    }
}

#[test]
fn a_forwarding_that_one_path_refuses_is_on_none() {
    for seed in 0..40 {
        let mut world = World::new(2 + (seed % 3) as u16, 5, config(), seed);
        let inside = world.address(3);
        // One of the subscriber's own ports is on its path alone.
        let own = world.forward(&wish(inside, 8_080, None)).unwrap();
        assert!(own.external_port >= 1_024 && own.tag == world.stage.up[3].to_token());
        let refused = world.forward(&wish(inside, 8_080, Some((external(9), 80))));
        let ends = (own.external, own.external_port);
        assert_eq!(refused, Err(ForwardError::Forwarded(ends.0, ends.1)));
        world.settle();
        assert_eq!(world.totals().forwards, 1, "seed {seed}");
        let socket = world.socket(3, UDP, 8_080);
        let at = world.dice.below(world.paths());
        world.forwarded_packet(socket, ends, at);
        world.settle();
        assert_eq!(world.lost(), 0);
        // The port below the blocks is free for another one.
        let other = world.address(1);
        assert!(
            world
                .forward(&wish(other, 1, Some((external(9), 80))))
                .is_ok()
        );
        let now = world.now();
        let asked = world.stage.lns.nat_forwards(None, 1, now).unwrap();
        world.settle();
        let first = asked.answer().unwrap();
        let asked = world.stage.lns.nat_forwards(first.last(), 9, now).unwrap();
        world.settle();
        let rest = asked.answer().unwrap();
        assert_eq!((first.len(), rest.len()), (1, 1), "seed {seed}");
        assert_ne!(first[0].inside, rest[0].inside);
    }
}

#[test]
fn ports_that_follow_from_the_inside_address_are_on_the_path_of_their_subscriber() {
    for seed in 0..60 {
        let mut deterministic = Config::new(vec![range("203.0.113.8")], [1, 2, 3]);
        deterministic.deterministic = Some(Deterministic {
            inside: vec![range("10.0.0.0/24")],
            dynamic: 16,
        });
        deterministic.block_ports = 64;
        let mut world = World::new(2 + (seed % 3) as u16, 7, deterministic, seed);
        talk(&mut world, 4);
        world.settle();
        assert_eq!(world.lost(), 0, "seed {seed}");
        assert!(world.blocks.is_empty());
        let nat = world.stage.lns.nat().unwrap();
        for (socket, end) in &world.external {
            let inside = nat.deterministic_inside(end.0, end.1);
            assert_eq!(inside, Some(world.address(socket.0)));
        }
        // A share that is used up has blocks on demand behind it.
        for port in 0..300 {
            let socket = world.socket(1, UDP, 10_000 + port);
            world.send(socket);
        }
        world.settle();
        for port in 0..300 {
            let socket = world.socket(1, UDP, 10_000 + port);
            world.reply(socket);
        }
        world.settle();
        assert_eq!(world.lost(), 0, "seed {seed}");
        assert!(!world.blocks.is_empty());
    }
}

#[test]
fn queues_move_while_the_translation_stays_and_no_packet_overtakes_another() {
    for seed in 0..60 {
        let mut world = World::new(2 + (seed % 3) as u16, 8, config(), seed);
        let nodes = ["a", "b", "c"].map(|name| node(name, None, 50_000_000, 1));
        let now = world.now();
        world.stage.lns.set_plan(plan(nodes.to_vec()), now).unwrap();
        let mut moved = 0;
        for _ in 0..10 {
            let n = world.dice.below(8);
            let link = world.dice.below(3) as u32;
            let (key, now) = (world.stage.up[n], world.now());
            let before = world.stage.lns.home(key);
            let shape = Shape {
                rates: Rates::default(),
                template: TemplateId(0),
                node: Some(NodeId(link)),
            };
            assert_eq!(world.stage.lns.set_shape(key, Some(shape), now), Ok(true));
            moved += u32::from(before.is_some() && world.stage.lns.home(key) != before);
            talk(&mut world, 2);
        }
        world.pass(Duration::from_secs(1));
        world.settle();
        assert_eq!(world.lost(), 0, "seed {seed}: {moved} moved");
    }
}
