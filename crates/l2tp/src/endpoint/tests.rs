//! Checks that no view can show: the tables are empty after everything has ended.

use base::timer::TimerStore;
use base::{Datagram, Duration, Instant, Machine, Route};
use sim::{Link, Pair};
use wire::l2tp::{self, Attribute, MessageType, Version, Writer};

use super::Endpoint;
use crate::{Call, Config, OpenTunnel};

fn endpoint(accept: bool) -> Endpoint {
    let config = Config {
        accept,
        ..Config::default()
    };
    Endpoint::new(config, [u8::from(accept); 32])
}

#[track_caller]
fn assert_empty(endpoint: &Endpoint) {
    assert_eq!(endpoint.tunnels.len(), 0);
    assert_eq!(endpoint.sessions.len(), 0);
    assert_eq!(endpoint.peers.len(), 0);
    assert_eq!(endpoint.pool.in_use(), 0);
    assert_eq!(endpoint.timers.len(), 0);
    assert!(endpoint.requests.is_empty());
    assert!(endpoint.session_ids.is_empty());
    assert!(endpoint.session_remotes.is_empty());
    assert!(endpoint.ready.is_empty());
    assert!(endpoint.refusals.is_empty());
    assert!(endpoint.sources.is_empty());
    assert!(endpoint.events.is_empty());
    assert!(endpoint.held_order.is_empty());
    for ids in &endpoint.narrow_ids {
        assert_eq!(ids.in_use(), 0);
    }
}

/// Closed by either end, never answered, never established: whatever happened to a tunnel and its sessions, no
/// table keeps an entry.
#[test]
fn every_table_is_empty_after_everything_is_torn_down() {
    sim::seeds(40, |seed| {
        let mut pair = Pair::new(seed, Link::ROUGH, endpoint(false), endpoint(true));
        for round in 0..4_u32 {
            pair.with_a(|lac, now| {
                for n in 0..20 {
                    let route = Route {
                        // One in five calls an address that never answers.
                        peer: if n % 5 == 0 {
                            sim::addr("192.0.2.99:1701")
                        } else {
                            sim::ADDRESS_B
                        },
                        local: None,
                        socket: 0,
                    };
                    let version = if n % 2 == 0 { Version::V2 } else { Version::V3 };
                    let tunnel = lac
                        .open_tunnel(OpenTunnel { route, version }, now)
                        .expect("nothing is full");
                    for _ in 0..n % 4 {
                        lac.open_session(tunnel, Call::default(), now)
                            .expect("nothing is full");
                    }
                }
            });
            pair.run_for(Duration::from_millis(u64::from(round) * 400));
            // Some sessions and tunnels are closed at either end, in any state.
            pair.with_b(|lns, now| {
                let (mut tunnels, mut sessions) = (0, 0);
                while let Some((next, session)) = lns.next_session(sessions) {
                    let key = session.key;
                    sessions = next;
                    if session.id % 3 == 0 {
                        lns.close_session(key, now);
                    }
                }
                while let Some((next, tunnel)) = lns.next_tunnel(tunnels) {
                    let key = tunnel.key;
                    tunnels = next;
                    if tunnel.id % 3 == 0 {
                        lns.close_tunnel(key, now);
                    }
                }
            });
        }
        pair.with_a(|lac, now| lac.shut_down(now));
        pair.run_for(Duration::from_secs(200));
        pair.with_b(|lns, now| lns.shut_down(now));
        pair.run_for(Duration::from_secs(100));
        assert_empty(pair.a());
        assert_empty(pair.b());
    });
}

/// The queues of half-open and held tunnels do not grow with tunnels that are gone.
#[test]
fn a_peer_that_asks_and_gives_up_over_and_over_leaves_no_trail() {
    let mut lns = endpoint(true);
    let route = Route {
        peer: sim::ADDRESS_A,
        local: None,
        socket: 0,
    };
    let mut buffer = Vec::new();
    let mut say = |lns: &mut Endpoint, ns: u16, connection: u32, body: &[u8]| {
        let mut bytes = Vec::new();
        l2tp::emit_control(&mut bytes, Version::V2, connection, 0, ns, 0, body);
        let bytes = &bytes;
        lns.handle(Datagram { route, bytes }, Instant::ZERO)
            .expect("it is in order");
        buffer.clear();
        while lns.poll_transmit(Instant::ZERO, &mut buffer).is_some() {}
        while lns.poll_event().is_some() {}
    };
    for round in 0..10_000_u32 {
        let (mut sccrq, mut stop_ccn) = (Vec::new(), Vec::new());
        Writer::new(&mut sccrq, Version::V2, MessageType::Sccrq)
            .u16(Attribute::ProtocolVersion, 0x0100)
            .bytes(Attribute::HostName, &round.to_be_bytes())
            .u16(Attribute::AssignedTunnelId, 7);
        Writer::new(&mut stop_ccn, Version::V2, MessageType::StopCcn)
            .u16(Attribute::AssignedTunnelId, 7)
            .result_code(1, None, "");
        say(&mut lns, 0, 0, &sccrq);
        say(&mut lns, 1, 0, &stop_ccn);
        assert_eq!((lns.counts().held, lns.counts().half_open), (1, 0));
    }
    assert!(lns.held_order.len() < 3_000, "{}", lns.held_order.len());
    assert!(lns.half_open_order.len() < 3_000);
    assert_eq!(lns.tunnels.len(), 1);
}

#[test]
fn timers_that_are_due_together_fire_as_many_at_a_time_as_the_caller_asks_for() {
    let mut endpoint = endpoint(false);
    let now = Instant::ZERO + Duration::from_secs(1);
    for n in 0..100 {
        let peer = std::net::SocketAddr::from(([192, 0, 2, n], 1701));
        let route = Route {
            peer,
            local: None,
            socket: 0,
        };
        let version = Version::V2;
        endpoint
            .open_tunnel(OpenTunnel { route, version }, now)
            .expect("there is room");
    }
    let mut out = Vec::new();
    while endpoint.poll_transmit(now, &mut out).is_some() {
        out.clear();
    }
    // Every SCCRQ is due again.
    let later = now + Duration::from_secs(2);
    assert_eq!(endpoint.handle_timeouts(later, 10), 10);
    assert!(endpoint.poll_timeout().is_some_and(|(at, _)| at <= later));
    assert_eq!(endpoint.handle_timeouts(later, usize::MAX), 90);
    assert!(endpoint.poll_timeout().is_none_or(|(at, _)| at > later));
    let mut sent = 0;
    while endpoint.poll_transmit(later, &mut out).is_some() {
        sent += 1;
    }
    assert_eq!(sent, 100, "each retransmits once");
}
