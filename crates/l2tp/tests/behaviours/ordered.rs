//! Rows in the order of SNMP's tables (RFC 3371): L2TPv2 tunnels by place, and sessions by tunnel and id.

use std::collections::{BTreeMap, BTreeSet};

use base::Instant;
use l2tp::{Call, Config, ConfigIds, Endpoint, SessionKey, TunnelKey};
use wire::l2tp::Version;

use crate::common::{lac_config, open_to};

/// Every row of a walk that asks for the first row after the last one.
fn walk<K: Copy>(first: K, next: impl Fn(K) -> Option<(K, K)>) -> Vec<K> {
    let step = |at: &(K, K)| next(at.1);
    let found = core::iter::successors(next(first), step);
    found.map(|(row, _)| row).collect()
}

fn check(
    lac: &Endpoint,
    tunnels: &BTreeMap<u32, TunnelKey>,
    sessions: &BTreeMap<(u32, u32), SessionKey>,
) {
    let places = walk(0, |from| {
        let (place, view) = lac.tunnel_from(from)?;
        assert_eq!((view.key.index(), view.version), (place, Version::V2));
        Some((place, place + 1))
    });
    // Closed tunnels are listed while they are held.
    let live: Vec<u32> = places
        .iter()
        .copied()
        .filter(|place| {
            lac.tunnel_from(*place)
                .is_some_and(|(_, view)| !view.closing)
        })
        .collect();
    assert_eq!(live, tunnels.keys().copied().collect::<Vec<_>>());
    // Tunnels of either version: those of version 2 are some of them. No two tunnels with a peer have the same config id.
    let mut every = walk(0, |from| {
        let (place, view) = lac.any_tunnel_from(from)?;
        assert_eq!(view.key.index(), place);
        Some((place, place + 1))
    });
    assert!(every.is_sorted());
    let config_ids: Vec<_> = every
        .iter()
        .filter_map(|place| {
            let (_, view) = lac.any_tunnel_from(*place)?;
            Some((view.route.peer.ip(), view.config_id?))
        })
        .collect();
    assert_eq!(
        config_ids.iter().collect::<BTreeSet<_>>().len(),
        config_ids.len()
    );
    every.retain(|place| {
        lac.tunnel_from(*place)
            .is_some_and(|(found, _)| found == *place)
    });
    assert_eq!(every, places);
    let found = walk((0, 0), |from| {
        let ((place, id), view) = lac.session_from(from)?;
        assert_eq!((view.tunnel.index(), view.id), (place, id));
        Some(((place, id), (place, id + 1)))
    });
    assert_eq!(found, sessions.keys().copied().collect::<Vec<_>>());
}

#[test]
fn rows_are_in_order_whatever_comes_and_goes() {
    sim::seeds(100, |seed| {
        let mut config: Config = lac_config();
        config.config_ids = ConfigIds::FirstFree;
        config.limits.sessions = 10_000;
        config.limits.sessions_per_tunnel = 5_000;
        let mut lac = Endpoint::new(config, [seed as u8; 32]);
        let now = Instant::ZERO;
        let mut rng = sim::Rng::new(seed);
        let (mut tunnels, mut sessions) = (BTreeMap::new(), BTreeMap::new());
        for step in 0..60 {
            let any = |rng: &mut sim::Rng, tunnels: &BTreeMap<u32, TunnelKey>| {
                let at = rng.below(tunnels.len().max(1) as u64) as usize;
                tunnels.iter().nth(at).map(|(place, key)| (*place, *key))
            };
            match rng.below(8) {
                0..3 => {
                    let version = [Version::V2, Version::V3][rng.below(2) as usize];
                    let peer = [10, 0, 0, rng.below(9) as u8];
                    let key = lac.open_tunnel(open_to((peer, 1701).into(), version), now);
                    let key = key.expect("room");
                    if version == Version::V2 {
                        tunnels.insert(key.index(), key);
                    } else {
                        // Sessions of version 3 have no rows.
                        lac.open_session(key, Call::default(), now).expect("room");
                    }
                }
                3..6 => {
                    let Some((place, tunnel)) = any(&mut rng, &tunnels) else {
                        continue;
                    };
                    // Few sessions, or so many that their ids are kept as a set.
                    for _ in 0..[1, 3, 300][rng.below(3) as usize] {
                        let session = lac.open_session(tunnel, Call::default(), now);
                        let session = session.expect("room");
                        let id = lac.session(session).expect("it is there").id;
                        sessions.insert((place, id), session);
                    }
                }
                6 => {
                    let closed: Vec<(u32, u32)> = sessions
                        .keys()
                        .copied()
                        .filter(|_| rng.chance(0.4))
                        .collect();
                    for row in closed {
                        let session = sessions.remove(&row).expect("a row");
                        assert!(lac.close_session(session, now));
                    }
                }
                _ => {
                    if let Some((place, tunnel)) = any(&mut rng, &tunnels) {
                        assert!(lac.close_tunnel(tunnel, now));
                        tunnels.remove(&place);
                        sessions.retain(|(of, _), _| *of != place);
                    }
                }
            }
            if step % 12 == 11 {
                check(&lac, &tunnels, &sessions);
            }
        }
    });
}
