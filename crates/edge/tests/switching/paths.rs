//! A concentrator with several paths: frames of both halves of a session arrive on any of them.

use base::Duration;
use core::net::Ipv4Addr;
use edge::Entry;

use crate::handed::{chain_on, hang_up, on};
use crate::world::{Answer, World, lns, ping, tunnel};

const SECOND: Duration = Duration::from_secs(1);
/// Packets each way.
const PACKETS: usize = 60;
/// A host beyond the LNS.
const BEYOND: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// Sends packets both ways between the host and an LNS, and checks that each arrives once.
fn exchange(world: &mut World, lns: usize, address: Ipv4Addr) {
    for node in [0, lns] {
        world.nodes[node].inside.0.clear();
    }
    for _ in 0..PACKETS {
        world.forward(0, &ping(address, BEYOND));
        world.forward(lns, &ping(BEYOND, address));
        world.pass(Duration::from_millis(5));
    }
    let all = |packet: Vec<u8>| vec![packet; PACKETS];
    assert_eq!(world.nodes[lns].inside.0, all(ping(address, BEYOND)));
    assert_eq!(world.nodes[0].inside.0, all(ping(BEYOND, address)));
}

#[test]
fn frames_of_both_halves_are_switched_on_any_path() {
    for paths in [2, 3] {
        for seed in 0..20 {
            let mut world = chain_on(paths, seed);
            world.dial(0, "ann@isp", None);
            world.pass(Duration::from_secs(4));
            let address = world.address_of(0).expect("connected");
            let (_, view) = world.nodes[1].edge.next_subscriber(0).unwrap();
            let before = view.traffic;
            let taken = world.nodes[1].taken;
            exchange(&mut world, 2, address);
            let (_, view) = world.nodes[1].edge.next_subscriber(0).unwrap();
            // A ping of 28 bytes and PPP's protocol number.
            let octets = (PACKETS * 30) as u64;
            let after = view.traffic;
            assert_eq!(after.packets_in - before.packets_in, PACKETS as u64);
            assert_eq!(after.packets_out - before.packets_out, PACKETS as u64);
            assert_eq!(after.octets_in - before.octets_in, octets);
            assert!(
                world.nodes[1].taken - taken > PACKETS as u64 / 2,
                "other paths switched some of {} frames",
                2 * PACKETS
            );

            hang_up(&mut world, 0);
            world.pass(Duration::from_secs(30));
            for n in 0..3 {
                assert_eq!(world.sessions(n), (0, 0), "{paths} paths, seed {seed}");
            }
            let [.., stop] = &world.nodes[1].accounts[..] else {
                panic!("no record");
            };
            assert!(matches!(stop.entry, Entry::Stop(_)));
            // The Stop has the counts of all paths.
            assert!(stop.traffic.packets_in >= after.packets_in);
            assert!(stop.traffic.octets_out >= after.octets_out);
            // The sessions are gone from all paths: a late frame reaches nobody.
            world.nodes[2].inside.0.clear();
            world.forward(0, &ping(address, BEYOND));
            world.pass(SECOND);
            assert!(world.nodes[2].inside.0.is_empty());
        }
    }
}

/// From tunnel to tunnel, at a node with three paths.
#[test]
fn a_tunnel_is_switched_to_another_on_any_path() {
    for seed in 0..20 {
        let mut world = World::new(seed);
        let to = |n: u8| Ipv4Addr::new(192, 0, 2, n).into();
        world.add(None, Answer::Ask);
        let first = on(vec![tunnel("isp", "isp", vec![lns(to(3), 1)])]);
        world.add_on(2, first, Answer::Ask);
        let next = on(vec![tunnel("on", "isp", vec![lns(to(4), 1)])]);
        world.add_on(3, next, Answer::Ask);
        let last = world.add(None, Answer::Ask);
        for n in [0, 2, last] {
            let port = pppoe::PortConfig {
                server: false,
                ..pppoe::PortConfig::default()
            };
            let edge = &mut world.nodes[n].edge;
            edge.endpoint_mut().pppoe_mut().set_port(0, port);
        }
        world.dial(0, "ann@isp", None);
        world.pass(Duration::from_secs(4));
        let address = world.address_of(0).expect("connected");
        exchange(&mut world, last, address);
        for n in [1, 2] {
            assert!(world.nodes[n].taken > 0, "node {n}, seed {seed}");
        }
        hang_up(&mut world, last);
        world.pass(Duration::from_secs(30));
        for n in 0..4 {
            assert_eq!(world.sessions(n), (0, 0), "node {n}, seed {seed}");
        }
    }
}

/// RFC 2661, section 5.4: a LAC that requires sequence numbers gets them on every frame, and only one path can count.
#[test]
fn frames_that_are_numbered_pass_the_first_path() {
    for seed in 0..10 {
        let mut world = chain_on(3, seed);
        world.dial_numbered(0, 1, "ann@isp");
        world.pass(Duration::from_secs(4));
        let address = world.address_of(0).expect("connected");
        let taken = world.nodes[1].taken;
        exchange(&mut world, 2, address);
        assert_eq!(world.nodes[1].taken, taken, "seed {seed}");
        let session = world.nodes[1].edge.switch_counts().sessions;
        assert_eq!(session, 1, "seed {seed}");
    }
}
