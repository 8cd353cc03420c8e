//! Loss and kills: whatever happens, the halves of a session end together, and a host that calls again is served.

use core::net::Ipv4Addr;

use base::Duration;
use edge::{End, Switching};
use sim::Rng;

use crate::world::{Answer, World, lns, tunnel};

const HOSTS: usize = 4;

/// Four hosts, a concentrator, two LNSs.
fn world(seed: u64) -> World {
    let mut world = World::new(seed);
    for _ in 0..HOSTS {
        world.add(None, Answer::Ask);
    }
    let to = |n: usize| Ipv4Addr::new(192, 0, 2, n as u8 + 1).into();
    let set = vec![lns(to(HOSTS + 1), 1), lns(to(HOSTS + 2), 1)];
    let switching = Switching {
        is_on: true,
        tunnels: vec![tunnel("isp", "isp", set)],
        ..Switching::default()
    };
    world.add(Some(switching), Answer::Ask);
    for _ in 0..2 {
        world.add(None, Answer::Ask);
    }
    for n in 0..world.nodes.len() {
        if n != HOSTS {
            let port = pppoe::PortConfig {
                server: false,
                ..pppoe::PortConfig::default()
            };
            let edge = &mut world.nodes[n].edge;
            edge.endpoint_mut().pppoe_mut().set_port(0, port);
        }
    }
    world
}

fn check(world: &World, seed: u64) {
    let lac = &world.nodes[HOSTS].edge;
    let (calls, lines) = world.sessions(HOSTS);
    // Each call to an LNS has a line; a line may wait for its LNS, or be refused just now.
    assert!(calls as usize <= lines, "seed {seed}: {calls} {lines}");
    assert!(lac.switch_counts().sessions <= u64::from(calls));
    for n in [HOSTS + 1, HOSTS + 2] {
        for (address, count) in world.held(n) {
            assert_eq!(count, 1, "seed {seed}: {address} is held twice");
        }
    }
}

/// A host calls, something ends, an LNS hangs or comes back.
fn happen(world: &mut World, rng: &mut Rng) {
    let host = rng.below(HOSTS as u64) as usize;
    let now = world.now;
    match rng.below(8) {
        0..=3 => {
            if world.nodes[host].edge.next_subscriber(0).is_none() && world.sessions(host).1 == 0 {
                world.dial(host, &format!("host{host}@isp"), None);
            }
        }
        4 | 5 => {
            let n = [host, HOSTS, HOSTS + 1, HOSTS + 2][rng.below(4) as usize];
            let key = (world.nodes[n].edge.next_subscriber(0)).map(|(_, view)| view.key);
            if let Some(key) = key {
                let edge = &mut world.nodes[n].edge;
                edge.drop_subscriber(key, End::Administrator, now);
            }
        }
        6 => {
            // An LNS hangs for a while, or comes back.
            let n = HOSTS + 1 + rng.below(2) as usize;
            world.nodes[n].is_dead = !world.nodes[n].is_dead;
        }
        _ => {
            let endpoint = world.nodes[HOSTS].edge.endpoint_mut().l2tp_mut();
            if let Some((_, view)) = endpoint.next_tunnel(0) {
                let key = view.key;
                endpoint.close_tunnel(key, now);
            }
        }
    }
}

#[test]
fn no_half_of_a_session_stays() {
    sim::seeds(300, |seed| {
        let mut world = world(seed);
        let mut rng = Rng::stream(seed, &["what happens"]);
        world.loss = [0.0, 0.02, 0.1][rng.below(3) as usize];
        for _ in 0..30 {
            happen(&mut world, &mut rng);
            world.pass(Duration::from_millis(rng.below(8_000)));
            check(&world, seed);
        }
        // All is well again, and everybody hangs up.
        world.loss = 0.0;
        for n in [HOSTS + 1, HOSTS + 2] {
            world.nodes[n].is_dead = false;
        }
        world.pass(Duration::from_secs(300));
        for host in 0..HOSTS {
            if world.nodes[host].edge.next_subscriber(0).is_none() && world.sessions(host).1 == 0 {
                world.dial(host, &format!("host{host}@isp"), None);
            }
        }
        world.pass(Duration::from_secs(30));
        for host in 0..HOSTS {
            assert!(world.address_of(host).is_some(), "seed {seed}: host {host}");
        }
        for host in 0..HOSTS {
            let (_, view) = world.nodes[host].edge.next_subscriber(0).unwrap();
            let (key, now) = (view.key, world.now);
            let edge = &mut world.nodes[host].edge;
            edge.drop_subscriber(key, End::Administrator, now);
        }
        world.pass(Duration::from_secs(300));
        for n in 0..world.nodes.len() {
            assert_eq!(world.sessions(n), (0, 0), "seed {seed}: node {n}");
            assert_eq!(world.nodes[n].edge.counts().subscribers, 0);
        }
        let edge = &world.nodes[HOSTS].edge;
        assert_eq!(edge.switch_counts().sessions, 0);
        let starts = |entry: &edge::Entry| matches!(entry, edge::Entry::Start);
        let records = &world.nodes[HOSTS].accounts;
        let begun = records.iter().filter(|one| starts(&one.entry)).count();
        let ended = records.iter().filter(|one| !starts(&one.entry)).count();
        assert_eq!(begun, ended, "seed {seed}: a Stop for each Start");
    });
}
