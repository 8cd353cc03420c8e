//! A LAC and an LNS establish, keep and end tunnels and sessions.

use base::{Duration, Instant, Route};
use l2tp::{Call, Config, Endpoint, Event, OpenTunnel, Retransmit, TunnelKey, TunnelState};
use sim::{Link, Pair};
use wire::l2tp::Version;

/// More retransmissions than the default, so that no seed runs out of them.
const PATIENT: Retransmit = Retransmit {
    first: Duration::from_secs(1),
    cap: Duration::from_secs(8),
    tries: 12,
};

fn lac() -> Endpoint {
    Endpoint::new(
        Config {
            host_name: "lac".into(),
            retransmit: PATIENT,
            ..Config::default()
        },
        [1; 32],
    )
}

fn lns() -> Endpoint {
    let config = Config {
        host_name: "lns".into(),
        accept: true,
        retransmit: PATIENT,
        ..Config::default()
    };
    Endpoint::new(config, [2; 32])
}

fn open(lac: &mut Endpoint, version: Version, now: Instant) -> TunnelKey {
    let route = Route {
        peer: sim::ADDRESS_B,
        local: None,
        socket: 0,
    };
    lac.open_tunnel(OpenTunnel { route, version }, now)
        .expect("nothing is full")
}

#[test]
fn a_tunnel_with_a_session_comes_up_and_goes_down_in_both_versions() {
    for version in [Version::V2, Version::V3] {
        let mut pair = Pair::new(1, Link::CLEAN, lac(), lns());
        let tunnel = pair.with_a(|lac, now| {
            let tunnel = open(lac, version, now);
            lac.open_session(tunnel, Call::default(), now)
                .expect("the tunnel is there");
            tunnel
        });
        pair.run_for(Duration::from_secs(1));
        assert_eq!(pair.a().counts().sessions_established, 1, "{version:?}");
        assert_eq!(pair.b().counts().sessions_established, 1, "{version:?}");
        assert_eq!(
            pair.a().tunnel(tunnel).unwrap().state,
            TunnelState::Established
        );
        assert_eq!(pair.a().tunnel(tunnel).unwrap().host_name, "lns");
        assert_eq!(pair.b().next_tunnel(0).unwrap().1.host_name, "lac");
        pair.with_a(|lac, now| assert!(lac.close_tunnel(tunnel, now)));
        pair.run_for(Duration::from_secs(1));
        assert_eq!(
            (pair.a().counts().tunnels, pair.b().counts().tunnels),
            (0, 0)
        );
        assert_eq!((pair.a().counts().held, pair.b().counts().held), (1, 1));
        pair.run_for(Duration::from_secs(31));
        assert_eq!((pair.a().counts().held, pair.b().counts().held), (0, 0));
        assert_eq!((pair.a().counts().timers, pair.b().counts().timers), (0, 0));
        assert_eq!(pair.a().counts().sessions, 0);
    }
}

#[test]
fn every_tunnel_comes_up_over_a_rough_link_and_every_end_is_told_once() {
    sim::seeds(200, |seed| {
        let version = if seed % 2 == 0 {
            Version::V2
        } else {
            Version::V3
        };
        let mut pair = Pair::new(
            seed,
            Link {
                loss: 0.1,
                ..Link::ROUGH
            },
            lac(),
            lns(),
        );
        pair.with_a(|lac, now| {
            for _ in 0..10 {
                let tunnel = open(lac, version, now);
                lac.open_session(tunnel, Call::default(), now)
                    .expect("nothing is full");
            }
        });
        pair.run_for(Duration::from_secs(80));
        assert_eq!(pair.a().counts().sessions_established, 10);
        assert_eq!(pair.b().counts().sessions_established, 10);
        pair.with_a(|lac, now| lac.shut_down(now));
        pair.run_for(Duration::from_secs(240));
        assert_eq!(
            (pair.a().counts().tunnels, pair.b().counts().tunnels),
            (0, 0)
        );
        assert_eq!((pair.a().counts().timers, pair.b().counts().timers), (0, 0));
        let downs = |events: Vec<Event>| {
            events
                .iter()
                .filter(|e| matches!(e, Event::TunnelDown { .. }))
                .count()
        };
        assert_eq!(downs(pair.events_a()), 10);
        assert_eq!(downs(pair.events_b()), 10);
    });
}

fn with_secret(config: &Config, secret: &str) -> Config {
    Config {
        secret: Some(base::Redacted::new(secret.as_bytes().to_vec())),
        hide: true,
        ..config.clone()
    }
}

/// A tunnel goes on with the secret that opened it; every message of it is authenticated or hidden with that one. A new
/// tunnel needs the new secret at both ends.
#[test]
fn a_new_secret_applies_to_new_tunnels_only() {
    for version in [Version::V2, Version::V3] {
        let configs = [lac(), lns()].map(|end| with_secret(end.config(), "old"));
        let [one, other] = configs.clone().map(|config| Endpoint::new(config, [3; 32]));
        let mut pair = Pair::new(1, Link::CLEAN, one, other);
        let first = pair.with_a(|lac, now| open(lac, version, now));
        pair.run_for(Duration::from_secs(1));
        let [for_lac, for_lns] = configs.map(|config| with_secret(&config, "new"));
        pair.with_b(|lns, now| lns.set_config(for_lns, now));
        pair.with_a(|lac, now| {
            lac.open_session(first, Call::default(), now).unwrap();
            open(lac, version, now);
        });
        pair.run_for(Duration::from_secs(100));
        let counts = pair.a().counts();
        assert_eq!(
            (counts.established, counts.sessions_established),
            (1, 1),
            "{version:?}"
        );
        assert_eq!(pair.b().counts().established, 1, "{version:?}");

        pair.with_a(|lac, now| {
            lac.set_config(for_lac.clone(), now);
            open(lac, version, now);
        });
        pair.run_for(Duration::from_secs(100));
        assert_eq!(pair.a().counts().established, 2, "{version:?}");
        // HELLOs of the first tunnel have passed meanwhile; its end is understood too.
        pair.with_a(|lac, now| assert!(lac.close_tunnel(first, now)));
        pair.run_for(Duration::from_secs(1));
        assert_eq!(pair.b().counts().established, 1, "{version:?}");

        // Without a secret, a new tunnel is neither authenticated nor hidden.
        pair.with_b(|lns, now| {
            let none = Config {
                secret: None,
                hide: false,
                ..lns.config().clone()
            };
            lns.set_config(none, now);
        });
        pair.with_a(|lac, now| {
            let none = Config {
                secret: None,
                hide: false,
                ..for_lac
            };
            lac.set_config(none, now);
            open(lac, version, now);
        });
        pair.run_for(Duration::from_secs(100));
        assert_eq!(pair.a().counts().established, 2, "{version:?}");
    }
}
