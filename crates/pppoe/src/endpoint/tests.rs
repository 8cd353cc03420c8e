use base::timer::TimerStore as _;
use base::{Duration, Instant, Machine};
use wire::pppoe::{Code, Discovery, Mac, Vlans, Writer, tag};

use crate::session::Session;
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

/// An established session with what a home gateway's request has.
fn street(sessions: u32) -> Endpoint {
    let mut config = Config::default();
    config.limits.padis_per_s = 0;
    config.limits.padis_per_vlan_per_s = 0;
    config.limits.padrs_per_s = 0;
    config.limits.half_open_max = 0;
    let mut server = endpoint(config, 1);
    let now = Instant::ZERO + Duration::from_secs(5);
    let mut bytes = Vec::new();
    for n in 0..sessions {
        let [_, b, c, d] = n.to_be_bytes();
        let route = Route {
            port: 0,
            peer: Mac([0, 0x53, 0, b, c, d]),
            vlans: Vlans::NONE,
        };
        let send = |server: &mut Endpoint, bytes: &[u8]| {
            let is_broadcast = false;
            let frame = Frame {
                route,
                is_broadcast,
                bytes,
            };
            server.handle(frame, now).expect("nothing is ignored");
        };
        bytes.clear();
        let mut writer = Writer::new(&mut bytes, Code::PADI, 0);
        writer.tag(tag::SERVICE_NAME, b"");
        writer.finish();
        send(&mut server, &bytes);
        bytes.clear();
        server.poll_transmit(now, &mut bytes).expect("a PADO");
        let pado = wire::pppoe::parse(&bytes).expect("whole");
        let tags = Discovery::parse(pado.payload).expect("whole");
        let mut padr = Vec::new();
        let mut writer = Writer::new(&mut padr, Code::PADR, 0);
        writer.tag(tag::SERVICE_NAME, b"");
        writer.tag(tag::HOST_UNIQ, &n.to_be_bytes());
        writer.tag_if(tag::AC_COOKIE, tags.ac_cookie);
        writer.finish();
        send(&mut server, &padr);
        bytes.clear();
        server.poll_transmit(now, &mut bytes).expect("a PADS");
        let key = up(&mut server);
        server.heard(key, now);
    }
    server
}

/// What a session costs in tables, without the allocator's own overhead.
#[test]
fn a_session_costs_at_most_200_bytes() {
    const SESSIONS: usize = 60_000;
    let server = street(SESSIONS as u32);
    assert_eq!(server.count(), SESSIONS);
    // The slab stores a generation and a tag beside each value.
    let slab = SESSIONS.div_ceil(256) * 256 * (size_of::<Session>() + 8);
    let tables = [&server.by_id, &server.by_host, &server.by_request];
    let tables: usize = tables.iter().map(|table| table.allocation_size()).sum();
    let uniq: usize = server.sessions.iter().map(|(_, s)| s.host_uniq.len()).sum();
    // Room for 16-bit ids is needed however few sessions there are.
    let total = slab + tables + uniq;
    let each = total / SESSIONS;
    assert!(
        each <= 200,
        "{each} bytes, {} in a record",
        size_of::<Session>()
    );
    assert!(server.lines.is_empty());
    assert_eq!(server.timers.len(), 0);
}

/// The buffer for answers does not grow, and nothing else is touched.
#[test]
fn answering_an_initiation_takes_no_memory() {
    let mut config = Config::default();
    config.limits.padis_per_s = 0;
    config.limits.padis_per_vlan_per_s = 0;
    let mut server = endpoint(config, 1);
    let now = Instant::ZERO + Duration::from_secs(5);
    let mut padi = Vec::new();
    let mut writer = Writer::new(&mut padi, Code::PADI, 0);
    writer.tag(tag::SERVICE_NAME, b"");
    writer.finish();
    let mut out = Vec::with_capacity(1_500);
    let mut capacities = Vec::new();
    for n in 0..10_000_u16 {
        let [c, d] = n.to_be_bytes();
        let frame = Frame {
            route: Route {
                port: 0,
                peer: Mac([0, 0x53, 0, 0, c, d]),
                vlans: Vlans::NONE,
            },
            is_broadcast: true,
            bytes: &padi,
        };
        server.handle(frame, now).expect("nothing is ignored");
        out.clear();
        server.poll_transmit(now, &mut out).expect("a PADO");
        capacities.push(server.outbox.capacity());
    }
    assert!(capacities.iter().all(|found| *found == capacities[0]));
    assert!(server.sessions.is_empty() && server.delayed.is_empty());
    assert!(server.timers.is_empty() && server.events.is_empty());
}

#[test]
fn nothing_is_left_of_sessions_that_ended() {
    let mut server = street(2_000);
    let now = Instant::ZERO + Duration::from_secs(9);
    server.shut_down(now);
    server.handle_timeout(now);
    assert!(server.sessions.is_empty());
    assert_eq!(server.poll_timeout(), None);
    let tables = [&server.by_id, &server.by_host, &server.by_request];
    assert!(tables.iter().all(|table| table.is_empty()));
    assert_eq!((server.half_open, server.dialing), (0, 0));
}

#[test]
fn a_route_is_small() {
    assert!(size_of::<Route>() <= 16);
}
