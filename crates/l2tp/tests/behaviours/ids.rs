//! Ids: config ids, which are sequential and unique per peer, and the scarce tunnel ids of version 2.

use base::{Datagram, Instant, Machine, Route};
use l2tp::{Config, ConfigIds, Discard, Endpoint, Limits, PeerLookup, TunnelKey};
use wire::l2tp::{MessageType as M, Version};

use crate::common::{Body, Peer, Stage, counter, lac_config, lns_config, open_to};

fn config(config_ids: ConfigIds, peer_lookup: PeerLookup) -> Config {
    Config {
        config_ids,
        peer_lookup,
        ..lac_config()
    }
}

fn id(endpoint: &Endpoint, tunnel: TunnelKey) -> Option<u32> {
    endpoint.tunnel(tunnel).expect("it is there").config_id
}

#[test]
fn config_ids_are_the_first_free_ones_of_each_peer() {
    for kind in [ConfigIds::FirstFree, ConfigIds::Probe] {
        let mut lac = Endpoint::new(config(kind, PeerLookup::Hash), [1; 32]);
        let now = Instant::ZERO;
        let mut open = |peer: u8| {
            let peer = core::net::SocketAddr::from(([10, 0, 0, peer], 1701));
            lac.open_tunnel(open_to(peer, Version::V3), now)
                .expect("nothing is full")
        };
        let tunnels: Vec<TunnelKey> = [1, 1, 2, 1, 2].into_iter().map(&mut open).collect();
        let ids: Vec<u32> = tunnels.iter().map(|&t| id(&lac, t).unwrap()).collect();
        assert_eq!(ids, [1, 2, 1, 3, 2]);
        // A closed tunnel releases its id, even while it is held.
        lac.close_tunnel(tunnels[1], now);
        assert_eq!(lac.tunnel(tunnels[1]).and_then(|held| held.config_id), None);
        let peer = core::net::SocketAddr::from(([10, 0, 0, 1], 1701));
        for expected in [2, 4, 5] {
            let tunnel = lac.open_tunnel(open_to(peer, Version::V3), now).unwrap();
            assert_eq!(id(&lac, tunnel), Some(expected));
        }
    }
}

#[test]
fn config_ids_are_off_by_default() {
    let (mut stage, mut lac) = (Stage::new(lns_config()), Peer::v2());
    lac.connect(&mut stage);
    let tunnel = stage.tunnel();
    assert_eq!(id(stage.endpoint(), tunnel), None);
}

/// The four methods differ only in cost.
#[test]
fn config_ids_are_the_same_whichever_way_they_are_found() {
    sim::seeds(20, |seed| {
        let mut ways = Vec::new();
        for kind in [ConfigIds::FirstFree, ConfigIds::Probe] {
            for lookup in [PeerLookup::Hash, PeerLookup::List] {
                ways.push(Endpoint::new(config(kind, lookup), [1; 32]));
            }
        }
        let mut rng = sim::Rng::new(seed);
        let mut open: Vec<[TunnelKey; 4]> = Vec::new();
        for _ in 0..300 {
            if rng.chance(0.6) || open.is_empty() {
                let peer = [10, 0, 0, rng.below(4) as u8];
                let to = open_to((peer, 1701).into(), Version::V3);
                let opened: Vec<TunnelKey> = ways
                    .iter_mut()
                    .map(|way| way.open_tunnel(to, Instant::ZERO).expect("room"))
                    .collect();
                open.push(opened.try_into().expect("four ways"));
            } else {
                let at = rng.below(open.len() as u64) as usize;
                let closed = open.swap_remove(at);
                for (way, tunnel) in ways.iter_mut().zip(closed) {
                    assert!(way.close_tunnel(tunnel, Instant::ZERO));
                }
            }
            for tunnels in &open {
                let ids = ways.iter().zip(tunnels).map(|(way, &t)| id(way, t));
                let ids: Vec<Option<u32>> = ids.collect();
                assert!(ids.iter().all(|i| i.is_some() && *i == ids[0]), "{ids:?}");
            }
        }
    });
}

/// An endpoint without a simulated world, for tens of thousands of requests.
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

    /// Delivers one datagram; returns the answer.
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

/// Parses an answer: an SCCRP and its tunnel id, or a StopCCN and its codes.
fn read(answer: &[u8]) -> (M, u16, Option<(u16, Option<u16>)>) {
    let Ok(wire::l2tp::Packet::Control(control)) = wire::l2tp::parse(answer) else {
        panic!("no control message: {answer:02x?}");
    };
    let message = wire::l2tp::Message::parse(control.version, control.body);
    let id = message.u16(wire::l2tp::Attribute::AssignedTunnelId);
    let codes = message.result_code().map(|c| (c.result, c.error));
    (message.kind(), id.expect("an id"), codes)
}

/// Version 2 has exactly 65,535 tunnel ids between two hosts.
#[test]
fn all_65_535_ids_of_version_2_serve_one_address_and_the_next_request_is_refused() {
    let mut lns = Bare::new(Config {
        limits: Limits {
            half_open_per_source: 70_000,
            ..Config::default().limits
        },
        ..lns_config()
    });
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
    // Another host is not affected.
    let (result, answer) = lns.say(sim::addr("10.0.0.2:1701"), &request);
    assert_eq!((result, read(answer).0), (Ok(()), M::Sccrp));
}

/// Several hosts can have more than 65,535 together, because an id is unique per host.
#[test]
fn more_than_65_535_tunnels_of_version_2_come_from_several_addresses() {
    let limits = Limits {
        half_open: 70_000,
        half_open_per_source: 70_000,
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

/// Each message reaches the tunnel of its own peer, although the ids are equal.
#[test]
fn tunnels_with_equal_ids_of_ours_are_told_apart_by_their_peer() {
    let limits = Limits {
        half_open: 70_000,
        half_open_per_source: 70_000,
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

/// When no other ids are free, ids of held tunnels are reused.
#[test]
fn ids_of_held_tunnels_are_used_again_when_all_are_in_use() {
    let mut lns = Bare::new(Config {
        limits: Limits {
            tunnels: 60_000,
            half_open_per_source: 60_000,
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
