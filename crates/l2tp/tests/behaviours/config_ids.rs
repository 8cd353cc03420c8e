//! Config ids: sequential and unique between us and one peer, the first free one, and the
//! same from both ways to find it.

use base::Instant;
use l2tp::{Config, ConfigIds, Endpoint, PeerLookup, TunnelKey};
use wire::l2tp::Version;

use crate::common::{Peer, Stage, lac_config, lns_config, open_to};

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
        // One that is closed gives its id back, held as it may be.
        lac.close_tunnel(tunnels[1], now);
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

/// The four ways, which differ in cost only.
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
