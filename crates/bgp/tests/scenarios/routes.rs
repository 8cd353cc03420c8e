//! Routes spread correctly: in the end every router has what a plain computation gives.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Duration;
use bgp::PeerSettings;
use bgp::config::GracefulSettings;
use bgp::policy::Policy;
use bgp::rib::LocalRoute;
use sim::Rng;
use wire::bgp::{Prefix, attr};

use crate::net::{Net, asn, router};

fn open_settings() -> PeerSettings {
    PeerSettings {
        hold_time_s: 9,
        connect_retry: Duration::from_secs(2),
        import: Some(Policy::accept()),
        export: Some(Policy::accept()),
        ..PeerSettings::default()
    }
}

/// A connected graph: a chain in random order, and some more edges.
fn graph(rng: &mut Rng, routers: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..routers).collect();
    rng.shuffle(&mut order);
    let mut edges: Vec<(usize, usize)> = order.windows(2).map(|pair| (pair[0], pair[1])).collect();
    for _ in 0..rng.below(routers as u64) {
        let [a, b] = [(); 2].map(|()| rng.below(routers as u64) as usize);
        edges.push((a, b));
    }
    let mut neighbours = vec![Vec::new(); routers];
    for (a, b) in edges {
        if a != b && !neighbours[a].contains(&b) {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
    }
    neighbours
}

fn prefix(number: usize) -> Prefix {
    Prefix::v4(0xcb00_7100 + number as u32, 32)
}

/// The path of autonomous systems from each router to `origin`: the shortest one, through the neighbour with the lowest
/// identifier.
fn reference(neighbours: &[Vec<usize>], origin: usize) -> Vec<Option<Vec<u32>>> {
    let mut paths: Vec<Option<Vec<u32>>> = vec![None; neighbours.len()];
    paths[origin] = Some(Vec::new());
    let mut ring = vec![origin];
    while !ring.is_empty() {
        ring.sort_unstable();
        let mut next = Vec::new();
        for &from in &ring {
            for &to in &neighbours[from] {
                if paths[to].is_none() && !next.iter().any(|(there, _)| *there == to) {
                    let mut path = vec![asn(from)];
                    path.extend(paths[from].as_ref().expect("it was reached"));
                    next.push((to, path));
                }
            }
        }
        ring = next.iter().map(|(to, _)| *to).collect();
        for (to, path) in next {
            paths[to] = Some(path);
        }
    }
    paths
}

fn believed(net: &Net, router: usize, prefix: Prefix) -> Option<Vec<u32>> {
    let best = net.speakers[router].rib().best(prefix)?;
    let attributes = best.attributes.expect("a best route is one that was taken");
    Some(attr::as_path(attributes).asns().collect())
}

fn assert_agrees(net: &Net, neighbours: &[Vec<usize>], origins: &BTreeMap<usize, usize>) {
    for number in 0..PREFIXES {
        let expected = match origins.get(&number) {
            Some(&origin) => reference(neighbours, origin),
            None => vec![None; neighbours.len()],
        };
        for (router, expected) in expected.iter().enumerate() {
            let found = believed(net, router, prefix(number));
            assert_eq!(found, *expected, "router {router}, prefix {number}");
        }
    }
}

const PREFIXES: usize = 12;

#[test]
fn all_routers_agree_with_a_plain_computation_after_whatever_happened() {
    sim::seeds(150, |seed| {
        let mut rng = Rng::stream(seed, &["routes"]);
        let routers = 3 + rng.below(6) as usize;
        let neighbours = graph(&mut rng, routers);
        let settings = Arc::new(open_settings());
        let configs = (0..routers)
            .map(|number| router(number, neighbours[number].clone(), &settings))
            .collect();
        let mut net = Net::new(seed, configs);
        let mut origins = BTreeMap::new();
        net.start(Duration::from_secs(1));
        for _ in 0..30 {
            net.run_for(rng.up_to(Duration::from_millis(600)));
            let (number, which) = (
                rng.below(PREFIXES as u64) as usize,
                rng.below(routers as u64) as usize,
            );
            match rng.below(10) {
                0..=4 => {
                    if let Some(old) = origins.insert(number, which) {
                        net.with(old, |speaker, _| speaker.retract(prefix(number)));
                    }
                    net.with(which, |speaker, _| {
                        speaker.originate(prefix(number), &LocalRoute::default());
                    });
                }
                5..=6 => {
                    if let Some(old) = origins.remove(&number) {
                        net.with(old, |speaker, _| speaker.retract(prefix(number)));
                    }
                }
                7 => {
                    net.break_streams(which);
                }
                8 => {
                    let peer = net.peer(which, neighbours[which][0]);
                    net.with(which, |speaker, now| speaker.reset_peer(peer, "", now));
                }
                _ => {
                    let peer = net.peer(which, neighbours[which][0]);
                    let all = wire::bgp::Families::ALL;
                    net.with(which, |speaker, now| speaker.refresh_in(peer, all, now));
                }
            }
        }
        net.run_for(Duration::from_secs(90));
        assert_agrees(&net, &neighbours, &origins);
    });
}

#[test]
fn without_policies_external_peers_hear_nothing() {
    let settings = Arc::new(PeerSettings {
        import: None,
        export: None,
        ..open_settings()
    });
    let mut net = Net::new(
        1,
        vec![router(0, [1], &settings), router(1, [0], &settings)],
    );
    net.start(Duration::ZERO);
    net.with(0, |speaker, _| {
        speaker.originate(prefix(0), &LocalRoute::default());
    });
    net.run_for(Duration::from_secs(30));
    assert_eq!(net.speakers[0].established(), 1);
    assert_eq!(believed(&net, 1, prefix(0)), None);
    // A reload with policies brings the routes, and the session continues.
    for number in [0, 1] {
        let other = 1 - number;
        let config = router(number, [other], &Arc::new(open_settings()));
        let reload = net.with(number, |speaker, now| speaker.reload(config, now));
        assert_eq!((reload.kept, reload.replaced), (1, 0));
    }
    net.run_for(Duration::from_secs(1));
    assert_eq!(believed(&net, 1, prefix(0)), Some(vec![asn(0)]));
    assert_eq!(net.view(0, 1).counts.ups, 1);
}

#[test]
fn a_restart_keeps_routes_and_the_end_of_rib_takes_what_is_gone() {
    sim::seeds(40, |seed| {
        let settings = Arc::new(PeerSettings {
            graceful_restart: Some(GracefulSettings {
                forwarding: true,
                ..GracefulSettings::default()
            }),
            ..open_settings()
        });
        let mut net = Net::new(
            seed,
            vec![router(0, [1], &settings), router(1, [0], &settings)],
        );
        net.start(Duration::ZERO);
        for number in [0, 1] {
            net.with(0, |speaker, _| {
                speaker.originate(prefix(number), &LocalRoute::default());
            });
        }
        net.run_for(Duration::from_secs(30));
        assert_eq!(believed(&net, 1, prefix(1)), Some(vec![asn(0)]));
        // The first router dies and starts again, with one of its two prefixes.
        net.break_streams(0);
        assert_eq!(believed(&net, 1, prefix(0)), Some(vec![asn(0)]));
        assert!(net.view(1, 0).stale_until.is_some());
        let mut config = router(0, [1], &settings);
        config.restarted = Some(Duration::from_secs(20));
        net.replace(0, config);
        net.with(0, |speaker, _| {
            speaker.originate(prefix(0), &LocalRoute::default());
        });
        let mut lost = 0;
        for _ in 0..300 {
            net.run_for(Duration::from_millis(100));
            lost += u32::from(believed(&net, 1, prefix(0)).is_none());
        }
        assert_eq!(lost, 0, "forwarding never stopped");
        assert_eq!(believed(&net, 1, prefix(1)), None);
        assert_eq!(net.view(1, 0).stale_until, None);
        assert!(!net.speakers[0].summary().deferring);
    });
}

#[test]
fn a_peer_over_its_limit_is_told_and_comes_back_when_it_may() {
    let plain = Arc::new(open_settings());
    let limited = Arc::new(PeerSettings {
        prefix_limit: Some(bgp::config::PrefixLimit {
            prefixes_max: 5,
            restart_after: Some(Duration::from_secs(60)),
        }),
        ..open_settings()
    });
    let mut net = Net::new(1, vec![router(0, [1], &plain), router(1, [0], &limited)]);
    net.start(Duration::ZERO);
    for number in 0..5 {
        net.with(0, |speaker, _| {
            speaker.originate(prefix(number), &LocalRoute::default());
        });
    }
    net.run_for(Duration::from_secs(20));
    assert_eq!(net.view(1, 0).counts.ups, 1);
    net.with(0, |speaker, _| {
        speaker.originate(prefix(5), &LocalRoute::default());
    });
    net.run_for(Duration::from_secs(5));
    let end = net.view(1, 0).last_end.expect("it ended");
    assert_eq!(end.to_string(), "more than 5 IPv4 unicast prefixes");
    assert_eq!(net.speakers[1].established(), 0);
    assert_eq!(believed(&net, 1, prefix(0)), None);
    net.with(0, |speaker, _| speaker.retract(prefix(5)));
    net.run_for(Duration::from_secs(90));
    assert_eq!(believed(&net, 1, prefix(0)), Some(vec![asn(0)]));
}

#[test]
fn two_thousand_five_hundred_peers_come_up_at_once() {
    let hub = Arc::new(PeerSettings {
        hold_time_s: 3,
        ..open_settings()
    });
    let mut config = router(0, [], &hub);
    config.dynamic.push(bgp::DynamicConfig {
        prefix: "127.0.0.0/8".parse().unwrap(),
        remote_asn: bgp::RemoteAsn::Any,
        peers_max: 10_000,
        settings: hub.clone(),
    });
    let mut configs = vec![config];
    configs.extend((1..=2_500).map(|number| router(number, [0], &hub)));
    let mut net = Net::new(7, configs);
    net.cuts = false;
    net.start(Duration::ZERO);
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.speakers[0].established(), 2_500);
    net.with(1, |speaker, _| {
        speaker.originate(prefix(0), &LocalRoute::default());
    });
    let before = net.sent[0];
    net.run_for(Duration::from_secs(8));
    assert_eq!(net.speakers[0].established(), 2_500);
    assert_eq!(believed(&net, 2_500, prefix(0)), Some(vec![asn(0), asn(1)]));
    // Every peer except the source gets one UPDATE, and a KEEPALIVE each second.
    assert_eq!(net.sent[0][2] - before[2], 2_499);
    let keepalives = net.sent[0][4] - before[4];
    assert!(
        (2_500 * 7..=2_500 * 8).contains(&keepalives),
        "{keepalives}"
    );
}
