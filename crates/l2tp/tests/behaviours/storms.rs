//! Very many requests at once, and more tunnels than there are ids.

use base::{Datagram, Duration, Instant, Machine, Route};
use l2tp::{Config, Discard, Endpoint, Limits, OpenTunnel};
use sim::{Link, NodeHandle, World};
use wire::l2tp::{MessageType as M, Version};

use crate::common::{Body, Peer, counter, describe, lac_config, lns_config};
use crate::recovery::LNS;

/// One LAC with an address of its own for each tunnel, so that the LNS sees as many peers.
fn open_from_everywhere(world: &mut World, lac: NodeHandle<Endpoint>, tunnels: u32) {
    let version = |n: u32| [Version::V2, Version::V3][n as usize % 2];
    world.with(lac, |lac, now| {
        for n in 0..tunnels {
            let route = Route {
                peer: sim::addr(LNS),
                local: Some([10, 0, (n >> 8) as u8, n as u8].into()),
                socket: 0,
            };
            let version = version(n);
            lac.open_tunnel(OpenTunnel { route, version }, now)
                .expect("nothing is full");
        }
    });
}

fn storm(link: Link, tunnels: u32) -> (World, NodeHandle<Endpoint>, NodeHandle<Endpoint>) {
    let mut world = World::new(26);
    world.set_decoder(describe);
    world.set_log_limit(64);
    world.set_default_link(link);
    let lac = world.add(
        "lac",
        Endpoint::new(lac_config(), [1; 32]),
        ["10.0.0.0/8:1701"],
    );
    let lns = world.add("lns", Endpoint::new(lns_config(), [2; 32]), [LNS]);
    open_from_everywhere(&mut world, lac, tunnels);
    (world, lac, lns)
}

#[test]
fn b26_a_storm_of_10_000_sccrqs_at_once_brings_all_tunnels_up_without_a_retransmission() {
    let (mut world, lac, lns) = storm(Link::CLEAN, 10_000);
    world.run_for(Duration::from_millis(100));
    for end in [lac, lns] {
        assert_eq!(world[end].counts().established, 10_000);
        assert_eq!(counter(&world[end], "retransmissions"), 0);
        assert_eq!(counter(&world[end], "duplicates"), 0);
        assert_eq!(world[end].counts().messages, 0);
    }
    assert_eq!(world[lns].counts().peers, 10_000);
    assert_eq!(world[lns].counts().half_open, 0);
    world.with(lac, |lac, now| lac.shut_down(now));
    world.run_for(Duration::from_secs(40));
    for end in [lac, lns] {
        assert_eq!(world[end].counts(), Default::default());
    }
}

/// What a full buffer delays by less than the first interval is not sent twice.
#[test]
fn b26_a_storm_through_a_slow_queue_is_late_but_not_repeated() {
    let link = Link {
        rate_bps: Some(50_000_000),
        queue_limit: 100_000,
        ..Link::CLEAN
    };
    let (mut world, lac, lns) = storm(link, 10_000);
    world.run_for(Duration::from_secs(1));
    for end in [lac, lns] {
        assert_eq!(world[end].counts().established, 10_000);
        assert_eq!(counter(&world[end], "retransmissions"), 0);
    }
}

/// What is lost is sent again, and nothing is lost for good.
#[test]
fn b26_a_storm_over_a_lossy_link_brings_all_tunnels_up() {
    let link = Link {
        loss: 0.05,
        ..Link::CLEAN
    };
    let (mut world, lac, lns) = storm(link, 10_000);
    world.run_for(Duration::from_secs(62));
    for end in [lac, lns] {
        assert_eq!(world[end].counts().established, 10_000);
        assert_eq!(world[end].counts().tunnels, 10_000);
    }
    assert!(counter(&world[lac], "retransmissions") > 500);
}

/// An endpoint without a world around it, for tens of thousands of requests.
struct Bare {
    endpoint: Endpoint,
    buffer: Vec<u8>,
}

impl Bare {
    fn new(config: Config) -> Self {
        Self {
            endpoint: Endpoint::new(config, [2; 32]),
            buffer: Vec::new(),
        }
    }

    /// Hands one datagram over; what is said to it.
    fn say(&mut self, peer: core::net::SocketAddr, bytes: &[u8]) -> (Result<(), Discard>, &[u8]) {
        let route = Route {
            peer,
            local: None,
            socket: 0,
        };
        let result = self
            .endpoint
            .handle(Datagram { route, bytes }, Instant::ZERO);
        self.buffer.clear();
        let mut sent = 0;
        while self
            .endpoint
            .poll_transmit(Instant::ZERO, &mut self.buffer)
            .is_some()
        {
            sent += 1;
        }
        assert!(sent <= 1);
        while self.endpoint.poll_event().is_some() {}
        (result, &self.buffer)
    }
}

/// Answers by kind: an SCCRP and its tunnel id, or a StopCCN and its codes.
fn read(answer: &[u8]) -> (M, u16, Option<(u16, Option<u16>)>) {
    let Ok(wire::l2tp::Packet::Control(control)) = wire::l2tp::parse(answer) else {
        panic!("no control message: {answer:02x?}");
    };
    let message = wire::l2tp::Message::parse(control.version, control.body);
    let id = message.u16(wire::l2tp::Attribute::AssignedTunnelId);
    let codes = message.result_code().map(|c| (c.result, c.error));
    (message.kind(), id.expect("an id"), codes)
}

/// Version 2 has 65,535 tunnel ids between two hosts, and no more.
#[test]
fn b26_65_535_tunnels_of_version_2_come_from_one_address_and_the_next_is_refused() {
    let mut lns = Bare::new(lns_config());
    let peer = sim::addr("10.0.0.1:1701");
    let mut seen = vec![false; 1 << 16];
    for id in 1..=65_535 {
        let mut lac = Peer::new(Version::V2, id);
        let request = lac.packet(0, &lac.clone().sccrq());
        let (result, answer) = lns.say(peer, &request);
        assert_eq!(result, Ok(()));
        let (kind, id, _) = read(answer);
        assert_eq!(kind, M::Sccrp);
        assert!(id != 0 && !seen[usize::from(id)], "id {id} twice");
        seen[usize::from(id)] = true;
    }
    assert_eq!(lns.endpoint.counts().half_open, 65_535);
    let mut lac = Peer::new(Version::V2, 1);
    let request = lac.packet(0, &lac.clone().sccrq());
    let (result, answer) = lns.say(sim::addr("10.0.0.1:1702"), &request);
    assert_eq!(result, Err(Discard::TunnelLimit));
    let (kind, _, codes) = read(answer);
    assert_eq!((kind, codes), (M::StopCcn, Some((2, Some(4)))));
    // Another host is not to suffer for it.
    let (result, answer) = lns.say(sim::addr("10.0.0.2:1701"), &request);
    assert_eq!((result, read(answer).0), (Ok(()), M::Sccrp));
}

/// Several hosts have more than 65,535 between them: an id is unique for a host.
#[test]
fn b26_66_000_tunnels_of_version_2_come_from_several_addresses() {
    let limits = Limits {
        half_open: 70_000,
        ..Config::default().limits
    };
    for hosts in [2, 3, 50] {
        let mut lns = Bare::new(Config {
            limits,
            ..lns_config()
        });
        let mut seen = std::collections::HashSet::new();
        for n in 0..66_000 {
            let (host, id) = (n % hosts, 1 + n / hosts);
            let peer = core::net::SocketAddr::from(([10, 0, 0, host as u8], 1701));
            let mut lac = Peer::new(Version::V2, id);
            let request = lac.packet(0, &lac.clone().sccrq());
            let (result, answer) = lns.say(peer, &request);
            assert_eq!(result, Ok(()), "tunnel {n} of {hosts} hosts");
            let (kind, id, _) = read(answer);
            assert_eq!(kind, M::Sccrp);
            assert!(seen.insert((host, id)), "id {id} twice");
        }
        assert_eq!(lns.endpoint.counts().half_open, 66_000);
    }
}

/// Each message reaches the tunnel of its own peer, though the id is the same.
#[test]
fn b26_tunnels_with_equal_ids_of_ours_are_told_apart_by_their_peer() {
    let limits = Limits {
        half_open: 70_000,
        ..Config::default().limits
    };
    let mut lns = Bare::new(Config {
        limits,
        ..lns_config()
    });
    let mut tunnels: Vec<(core::net::SocketAddr, u16)> = Vec::new();
    for n in 0..66_000_u32 {
        let peer = core::net::SocketAddr::from(([10, 0, 0, (n % 3) as u8], 1701));
        let mut lac = Peer::new(Version::V2, 1 + n / 3);
        let request = lac.packet(0, &lac.clone().sccrq());
        tunnels.push((peer, read(lns.say(peer, &request).1).1));
    }
    for (n, (peer, id)) in tunnels.into_iter().enumerate() {
        let mut lac = Peer::new(Version::V2, 1 + n as u32 / 3);
        (lac.remote, lac.ns, lac.nr) = (id.into(), 1, 1);
        let connected = lac.packet(0, &Body::new(M::Scccn));
        let (result, _) = lns.say(peer, &connected);
        assert_eq!(result, Ok(()), "tunnel {n}");
    }
    assert_eq!(lns.endpoint.counts().established, 66_000);
}

/// Ids that went to tunnels which are held are given out again where there are no others.
#[test]
fn b26_ids_of_held_tunnels_are_used_again_when_all_are_in_use() {
    let mut lns = Bare::new(Config {
        limits: Limits {
            tunnels: 60_000,
            ..Config::default().limits
        },
        ..lns_config()
    });
    let peer = sim::addr("10.0.0.1:1701");
    for id in 1..=65_535 {
        let mut lac = Peer::new(Version::V2, id);
        let request = lac.packet(0, &lac.clone().sccrq());
        let (result, answer) = lns.say(peer, &request);
        assert_eq!(result, Ok(()));
        if id % 2 == 0 {
            lac.remote = read(answer).1.into();
            let stop = lac.packet(0, &lac.clone().stop_ccn(1));
            assert_eq!(lns.say(peer, &stop).0, Ok(()));
        }
    }
    assert_eq!(lns.endpoint.counts().held, 32_767);
    for n in 0..100 {
        let mut lac = Peer::new(Version::V2, 1 + n);
        let request = lac.packet(0, &lac.clone().sccrq());
        let (result, answer) = lns.say(sim::addr("10.0.0.2:1701"), &request);
        assert_eq!((result, read(answer).0), (Ok(()), M::Sccrp));
    }
    assert_eq!(lns.endpoint.counts().held, 32_667);
    assert_eq!(counter(&lns.endpoint, "held_forgotten"), 100);
}
