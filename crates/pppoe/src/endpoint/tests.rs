use base::{Duration, Instant, Machine};
use wire::pppoe::{Mac, Vlans};

use crate::{Config, Dial, Endpoint, Event, Frame, PortConfig, Role, Route, SessionKey};

const AC: Mac = Mac([0, 0x53, 0, 0, 0, 0xac]);
const HOST: Mac = Mac([0, 0x53, 0, 0, 0, 1]);

fn endpoint(config: Config, seed: u8) -> Endpoint {
    let mut endpoint = Endpoint::new(config, [seed; 32]);
    endpoint.add_port(0, PortConfig::default());
    endpoint
}

/// Passes all packets of `from` to `to`.
fn pass(from: &mut Endpoint, source: Mac, to: &mut Endpoint, now: Instant) {
    let mut bytes = Vec::new();
    while let Some(route) = from.poll_transmit(now, &mut bytes) {
        let frame = Frame {
            route: Route {
                peer: source,
                ..route
            },
            is_broadcast: route.peer == Mac::BROADCAST,
            bytes: &bytes,
        };
        to.handle(frame, now).expect("nothing is ignored");
        bytes.clear();
    }
}

fn up(endpoint: &mut Endpoint) -> SessionKey {
    match endpoint.poll_event() {
        Some(Event::SessionUp { session }) => session,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_and_a_server_agree_on_a_session() {
    let now = Instant::ZERO + Duration::from_secs(5);
    let mut server = endpoint(Config::default(), 1);
    let mut client = endpoint(Config::default(), 2);
    client
        .dial(0, Vlans::one(7), Dial::default(), now)
        .expect("room");
    for _ in 0..2 {
        pass(&mut client, HOST, &mut server, now);
        pass(&mut server, AC, &mut client, now);
    }
    let (here, there) = (up(&mut server), up(&mut client));
    let (ours, theirs) = (
        server.session(here).unwrap(),
        client.session(there).unwrap(),
    );
    assert_eq!((ours.role, theirs.role), (Role::Server, Role::Client));
    assert_eq!(ours.id, theirs.id);
    assert_eq!((ours.route.peer, theirs.route.peer), (HOST, AC));
    assert_eq!(ours.host_uniq, theirs.host_uniq);
    assert_eq!(theirs.ac_name, b"headend");

    let (header, route) = client.header(there).unwrap();
    let mut frame = header.to_vec();
    frame.extend_from_slice(&[0xc0, 0x21, 1, 1, 0, 4]);
    wire::pppoe::complete(&mut frame, 0);
    frame.extend_from_slice(&[0; 40]);
    let from = Route {
        peer: HOST,
        ..route
    };
    let found = server.receive_data(&from, &frame, now);
    assert_eq!(found, Ok(Some((here, &frame[6..12]))));
    assert_eq!(server.half_open(), 0);

    client.end(there, Duration::ZERO, now);
    pass(&mut client, HOST, &mut server, now);
    assert!(matches!(
        server.poll_event(),
        Some(Event::SessionDown { .. })
    ));
    assert_eq!((server.count(), client.count()), (0, 0));
}
