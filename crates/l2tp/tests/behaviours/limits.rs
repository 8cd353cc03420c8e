//! The limit of every table, and the behaviour at it.

use l2tp::{Config, Discard, Limits, OpenError, TunnelEnd};
use wire::l2tp::{Attribute as A, MessageType as M, Version};

use crate::common::{Body, Got, Peer, Stage, lns_config, only, only_ack, to_peer};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

#[test]
fn b20_held_tunnels_have_a_limit_and_the_oldest_is_forgotten_and_counted() {
    let config = Config {
        limits: Limits {
            held: 2,
            ..Config::default().limits
        },
        ..lns_config()
    };
    let mut stage = Stage::new(config);
    let mut stops = Vec::new();
    for id in 1..=4 {
        let mut lac = Peer::new(Version::V2, id);
        lac.connect(&mut stage);
        let stop = lac.packet(0, &lac.clone().stop_ccn(1));
        stage.send(&stop);
        only_ack(&stage.hear());
        stops.push(stop);
        stage.run_secs(1);
    }
    assert_eq!(stage.counts().held, 2);
    assert_eq!(stage.counter("held_forgotten"), 2);
    let answers = |stage: &mut Stage, stop: &[u8]| {
        stage.send(stop);
        stage.hear().len()
    };
    let answered: Vec<usize> = stops.iter().map(|s| answers(&mut stage, s)).collect();
    assert_eq!(answered, [0, 0, 1, 1]);
    stage.run_secs(31);
    assert_eq!(stage.counts(), Default::default());
}

/// StopCCN 2, error 4, "insufficient resources to handle this operation now", without a record of the
/// requester.
#[test]
fn b28_a_request_over_the_limit_of_tunnels_gets_stopccn_2_4() {
    for peer in VERSIONS {
        let config = Config {
            limits: Limits {
                tunnels: 3,
                ..Config::default().limits
            },
            ..lns_config()
        };
        let mut stage = Stage::new(config);
        for id in 1..=3 {
            let mut lac = peer();
            lac.id += id;
            lac.connect(&mut stage);
        }
        let mut lac = peer();
        for _ in 0..3 {
            (lac.ns, lac.nr) = (0, 0);
            let request = lac.sccrq();
            let stop = only(&lac.say(&mut stage, &request), M::StopCcn);
            assert_eq!(stop.codes(), (2, Some(4)));
            assert_eq!((stop.connection, stop.ns, stop.nr), (lac.id, 0, 1));
            assert_ne!(stop.assigned_connection(), 0);
        }
        assert_eq!(stage.discarded(Discard::TunnelLimit), 3);
        assert_eq!(stage.counter("stateless_refusals"), 3);
        assert_eq!((stage.counts().tunnels, stage.counts().closing), (3, 0));
        let refused = stage.with(|lns, now| lns.open_tunnel(to_peer(Version::V2), now));
        assert_eq!(refused, Err(OpenError::TunnelLimit));
        // A peer that restarts needs no additional room.
        let mut lac = peer();
        lac.id += 3;
        let request = lac.sccrq().avp(A::VendorName, b"restarted");
        lac.connect_with(&mut stage, &request, &Body::new(M::Scccn));
        assert_eq!(stage.tunnel_end(), TunnelEnd::PeerRestarted);
        // A closed tunnel makes room at once, although it is held.
        let tunnel = stage.endpoint().next_tunnel(0).unwrap().1.key;
        stage.with(|lns, now| lns.close_tunnel(tunnel, now));
        stage.hear();
        let mut lac = peer();
        lac.connect(&mut stage);
    }
}

/// At the limit of half-open tunnels a request evicts the oldest of them. A flood therefore evicts mostly its
/// own tunnels, and a genuine peer needs only one round trip. Refused requests count until their sender has
/// acknowledged the refusal.
#[test]
fn b28_half_open_tunnels_have_a_limit_and_the_oldest_makes_room() {
    let config = Config {
        limits: Limits {
            half_open: 4,
            ..Config::default().limits
        },
        ..lns_config()
    };
    for good in [true, false] {
        let mut stage = Stage::new(config.clone());
        for id in 1..=4 {
            let mut flood = Peer::new(Version::V2, id);
            let request = match good {
                true => flood.sccrq(),
                false => flood.sccrq().raw(0x80, 0, 9999, b""),
            };
            flood.say(&mut stage, &request);
        }
        assert_eq!(stage.counts().half_open, 4);
        let mut late = Peer::new(Version::V2, 5);
        let request = late.packet(0, &late.clone().sccrq());
        stage.send(&request);
        // The oldest gets a StopCCN unless it was refused already; the new one is served.
        let heard = stage.hear();
        let refused = heard.iter().filter(|got| got.kind() == M::StopCcn).count();
        assert_eq!(refused, usize::from(good));
        assert_eq!(heard.iter().filter(|got| got.kind() == M::Sccrp).count(), 1);
        assert_eq!(stage.counts().half_open, 4);
        assert_eq!(stage.discarded(Discard::HalfOpenLimit), 0);
        stage.run_secs(100);
        assert_eq!(stage.counts().half_open, 0);
    }
}

/// The tunnel of a restarting peer may be the one evicted to make room for it.
#[test]
fn b28_a_peer_that_begins_anew_at_the_limit_of_half_open_tunnels_is_answered() {
    let config = Config {
        limits: Limits {
            half_open: 1,
            ..Config::default().limits
        },
        ..lns_config()
    };
    for peer in VERSIONS {
        let mut stage = Stage::new(config.clone());
        for name in [&b"first"[..], b"second", b"third"] {
            let mut lac = peer();
            let request = lac.sccrq().avp(A::VendorName, name);
            let got = lac.say(&mut stage, &request);
            assert_eq!(got.last().map(Got::kind), Some(M::Sccrp));
            assert_eq!(stage.counts().half_open, 1);
        }
        // An unacceptable request evicts nothing.
        let mut lac = peer();
        let request = lac.sccrq().u16(A::ReceiveWindowSize, 0);
        assert!(lac.say(&mut stage, &request).is_empty());
        assert_eq!(stage.discarded(Discard::NotARequest), 1);
        assert_eq!((stage.counts().half_open, stage.counts().closing), (1, 0));
    }
}

#[test]
fn b28_the_history_of_ends_has_a_limit_and_the_latest_is_first() {
    let config = Config {
        limits: Limits {
            history: 3,
            ..Config::default().limits
        },
        ..lns_config()
    };
    let mut stage = Stage::new(config);
    for id in 1..=5 {
        let mut lac = Peer::new(Version::V2, id);
        lac.connect(&mut stage);
        let stop = lac.stop_ccn(id as u16);
        lac.say(&mut stage, &stop);
    }
    let ids: Vec<u32> = (0..)
        .map_while(|n| stage.endpoint().ended_tunnel(n))
        .map(|ended| ended.remote_id)
        .collect();
    assert_eq!(ids, [5, 4, 3]);
    let TunnelEnd::Peer(notice) = stage.tunnel_end() else {
        panic!("{:?}", stage.tunnel_end());
    };
    assert_eq!(notice.result, 5);
}
