//! What an LNS gets, and what becomes of a session at each end.

use core::net::Ipv4Addr;
use std::sync::Arc;

use aaa::{Profile, Tunnelled};
use base::Duration;
use edge::access::Either::{First, Second};
use edge::{End, Entry, LineRule, Phase, Refusal, Switching};
use wire::pppoe::{LineInfo, line};

use crate::world::{Answer, World, lns, ping, tunnel};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn on(tunnels: Vec<edge::NamedTunnel>) -> Option<Switching> {
    Some(Switching {
        is_on: true,
        tunnels,
        ..Switching::default()
    })
}

/// A host, a concentrator that hands `@isp` over, and its LNS.
pub(crate) fn chain(seed: u64) -> World {
    chain_on(1, seed)
}

/// The same, with that many paths at the concentrator.
pub(crate) fn chain_on(paths: u16, seed: u64) -> World {
    let mut world = World::new(seed);
    let host = world.add(None, Answer::Ask);
    let to = |n: u8| Ipv4Addr::new(192, 0, 2, n).into();
    let switching = on(vec![tunnel("isp", "isp", vec![lns(to(3), 1)])]);
    let lac = world.add_on(paths, switching, Answer::Ask);
    let far = world.add(None, Answer::Ask);
    assert_eq!((host, lac, far), (0, 1, 2));
    // Only the concentrator answers hosts.
    for n in [host, far] {
        let port = pppoe::PortConfig {
            server: false,
            ..pppoe::PortConfig::default()
        };
        let edge = &mut world.nodes[n].edge;
        edge.endpoint_mut().pppoe_mut().set_port(0, port);
    }
    world
}

/// RFC 2661, section 4.4.5: the LNS continues from what the LAC negotiated, and answers the peer's proof.
#[test]
fn a_realm_is_handed_over_after_its_proof() {
    let mut world = chain(1);
    world.dial(0, "ann@isp", None);
    world.pass(SECOND);
    let address = world.address_of(0).expect("connected");
    assert_eq!(world.held(2), [(address, 1)].into(), "the LNS's pool");
    assert_eq!(
        world.nodes[1].asked,
        [],
        "the concentrator judged no secret"
    );
    let (_, at_lns) = world.nodes[2].edge.next_subscriber(0).unwrap();
    assert_eq!(at_lns.name, b"ann@isp");
    assert_eq!(at_lns.link.view().claims, 1, "no second proof was asked");
    let (_, at_lac) = world.nodes[1].edge.next_subscriber(0).unwrap();
    assert_eq!((at_lac.phase, at_lac.address), (Phase::Up, None));
    assert_eq!(at_lac.name, b"ann@isp");
    let both = world.nodes[1].edge.switched(at_lac.key).unwrap();
    let place = both.place.expect("an LNS has it");
    assert!(matches!((at_lac.place, place), (Second(_), First(_))));
    assert_eq!(world.nodes[1].edge.switch_counts().sessions, 1);

    // Packets pass both ways, and PPP at the concentrator sees none of them.
    let gateway = Ipv4Addr::new(192, 0, 2, 1);
    world.forward(0, &ping(address, gateway));
    world.pass(SECOND);
    assert_eq!(world.nodes[2].inside.0.len(), 1);
    world.forward(2, &ping(gateway, address));
    world.pass(SECOND);
    assert_eq!(world.nodes[0].inside.0, [ping(gateway, address)]);
    let (_, at_lac) = world.nodes[1].edge.next_subscriber(0).unwrap();
    assert!(at_lac.traffic.packets_in > 1 && at_lac.traffic.packets_out > 1);
    assert!(world.nodes[1].inside.0.is_empty());
}

/// RFC 5515, section 3, and RFC 4679: what the access node said of the line reaches the LNS.
#[test]
fn the_line_reaches_the_lns() {
    let mut world = chain(2);
    let known = LineInfo::collect([
        (line::AGENT_CIRCUIT_ID, &b"dslam-7 atm 3/1"[..]),
        (line::ACTUAL_RATE_UP, &10_000_000_u32.to_be_bytes()),
        (line::ACTUAL_RATE_DOWN, &50_000_000_u32.to_be_bytes()),
    ]);
    let known = known.unwrap();
    world.dial(0, "ann@isp", Some(known.clone()));
    world.pass(SECOND);
    assert!(world.address_of(0).is_some());
    let (name, calling, access) = &world.nodes[2].asked[0];
    assert_eq!(name, "ann@isp");
    assert_eq!(calling, b"02:00:00:00:00:01");
    assert_eq!(access, known.as_bytes());
    let endpoint = world.nodes[2].edge.endpoint().l2tp();
    let (_, session) = endpoint.next_session(0).unwrap();
    let details = session.details.unwrap();
    // RFC 2661, section 4.4.4: Tx is the direction from the LAC to the caller.
    assert_eq!(
        (details.tx_speed_bps, details.rx_speed_bps),
        (50_000_000, 10_000_000)
    );
}

#[test]
fn others_end_here_as_before() {
    let mut world = chain(3);
    world.dial(0, "bob@home", None);
    world.pass(SECOND);
    let address = world.address_of(0).expect("connected");
    assert_eq!(world.held(1), [(address, 1)].into());
    assert_eq!(world.sessions(2), (0, 0));
}

/// RFC 2868: a profile names the LNS once a server has judged the proof.
#[test]
fn a_profile_hands_over() {
    let mut world = chain(4);
    let far = world.nodes[2].address;
    world.nodes[1].answer = Answer::Profile(Box::new(Profile {
        tunnel: Some(Box::new(Tunnelled::To([lns(far, 0)].into()))),
        class: vec![b"gold"[..].into()],
        ..Profile::default()
    }));
    world.dial(0, "bob@home", None);
    world.pass(SECOND);
    assert!(world.address_of(0).is_some());
    assert_eq!(world.nodes[1].asked.len(), 1, "the concentrator asked");
    assert_eq!(world.nodes[2].asked.len(), 1, "and the LNS");
    let start = &world.nodes[1].accounts[0];
    assert_eq!(start.entry, Entry::Start);
    assert_eq!(start.class, [b"gold"[..].into()]);
    let place = start.far.as_ref().expect("RFC 2867: the tunnel is named");
    assert_eq!(place.tunnel.server.ip(), far);
    assert_eq!(&*place.server_name, b"node3");
}

/// A session of a line is handed over before PPP; the LNS negotiates LCP itself.
#[test]
fn a_line_is_handed_over_before_ppp() {
    let mut world = World::new(5);
    let host = world.add(None, Answer::Ask);
    let far = Ipv4Addr::new(192, 0, 2, 3).into();
    let mut by_line = tunnel("line", "unused", vec![lns(far, 1)]);
    by_line.lines = vec![LineRule {
        interface: Some(0),
        ..LineRule::default()
    }];
    let lac = world.add(on(vec![by_line]), Answer::Ask);
    let lns = world.add(None, Answer::Ask);
    for n in [host, lns] {
        let port = pppoe::PortConfig {
            server: false,
            ..pppoe::PortConfig::default()
        };
        let edge = &mut world.nodes[n].edge;
        edge.endpoint_mut().pppoe_mut().set_port(0, port);
    }
    world.dial(host, "carol", None);
    // Less than PPP's Restart timer: no request of the host was lost while the LNS was called.
    world.pass(SECOND);
    assert!(world.address_of(host).is_some());
    assert_eq!(world.nodes[lac].asked, []);
    let endpoint = world.nodes[lns].edge.endpoint().l2tp();
    let (_, session) = endpoint.next_session(0).unwrap();
    assert_eq!(session.details.unwrap().proxy, None, "LCP was untouched");
    assert_eq!(world.nodes[lac].edge.switch_counts().not_held, 0);
}

/// From tunnel to tunnel: the middle hands over what the first LAC negotiated.
#[test]
fn a_tunnel_is_switched_to_another() {
    let mut world = chain(6);
    let far = Ipv4Addr::new(192, 0, 2, 4).into();
    let mut config = world.nodes[2].edge.config().clone();
    let mut by_peer = tunnel("on", "isp", vec![lns(far, 1)]);
    by_peer.name = "on".into();
    config.switching = Arc::new(on(vec![by_peer]).unwrap());
    let now = world.now;
    world.nodes[2].edge.set_config(config, now);
    let last = world.add(None, Answer::Ask);
    let port = pppoe::PortConfig {
        server: false,
        ..pppoe::PortConfig::default()
    };
    let edge = &mut world.nodes[last].edge;
    edge.endpoint_mut().pppoe_mut().set_port(0, port);
    world.dial(0, "ann@isp", None);
    world.pass(SECOND);
    let address = world.address_of(0).expect("connected");
    assert_eq!(world.held(last), [(address, 1)].into());
    assert_eq!(world.nodes[2].asked, []);
    let (_, view) = world.nodes[last].edge.next_subscriber(0).unwrap();
    assert_eq!(view.link.view().claims, 1);
    assert_eq!(&*view.numbers.unwrap().calling, b"02:00:00:00:00:01");
    world.forward(0, &ping(address, Ipv4Addr::new(192, 0, 2, 1)));
    world.pass(SECOND);
    assert_eq!(world.nodes[last].inside.0.len(), 1);
    assert_eq!(world.sessions(2), (2, 0));

    // The end of the host reaches the last LNS.
    hang_up(&mut world, 0);
    world.pass(Duration::from_secs(30));
    for n in 0..4 {
        assert_eq!(world.sessions(n), (0, 0), "node {n}");
    }
}

pub(crate) fn hang_up(world: &mut World, host: usize) {
    let (_, view) = world.nodes[host].edge.next_subscriber(0).unwrap();
    let (key, now) = (view.key, world.now);
    world.nodes[host]
        .edge
        .drop_subscriber(key, End::Administrator, now);
}

#[test]
fn each_end_ends_the_other() {
    // The host, the concentrator, the LNS.
    for by in 0..3 {
        let mut world = chain(7 + by as u64);
        world.dial(0, "ann@isp", None);
        world.pass(SECOND);
        assert!(world.address_of(0).is_some());
        hang_up(&mut world, by);
        world.pass(Duration::from_secs(30));
        for n in 0..3 {
            assert_eq!(world.sessions(n), (0, 0), "node {n}, ended by {by}");
            assert_eq!(world.nodes[n].edge.counts().subscribers, 0);
            assert_eq!(world.nodes[n].ended.len(), 1);
        }
        let [.., stop] = &world.nodes[1].accounts[..] else {
            panic!("no record");
        };
        assert!(matches!(stop.entry, Entry::Stop(_)));
        assert!(stop.far.is_some() && stop.traffic.octets_in > 0);
        assert_eq!(world.nodes[1].edge.switch_counts().sessions, 0);
    }
}

/// The next LNS of the set is called before the host loses patience.
#[test]
fn a_dead_lns_is_failed_over() {
    let mut world = World::new(11);
    let host = world.add(None, Answer::Ask);
    let to = |n: u8| Ipv4Addr::new(192, 0, 2, n).into();
    let set = vec![lns(to(9), 1), lns(to(3), 2)];
    let lac = world.add(on(vec![tunnel("isp", "isp", set)]), Answer::Ask);
    let far = world.add(None, Answer::Ask);
    for n in [host, far] {
        let port = pppoe::PortConfig {
            server: false,
            ..pppoe::PortConfig::default()
        };
        let edge = &mut world.nodes[n].edge;
        edge.endpoint_mut().pppoe_mut().set_port(0, port);
    }
    world.dial(host, "ann@isp", None);
    world.pass(Duration::from_secs(4));
    assert!(world.address_of(host).is_none());
    world.pass(Duration::from_secs(2));
    assert!(world.address_of(host).is_some(), "failed over after 5 s");
    assert_eq!(world.nodes[lac].edge.switch_counts().failed_over, 1);
    // The one that did not answer is tried last now: the next subscriber does not wait for it.
    hang_up(&mut world, host);
    world.pass(SECOND);
    world.dial(host, "eve@isp", None);
    world.pass(SECOND);
    assert!(world.address_of(host).is_some());
    assert_eq!(world.nodes[lac].edge.switch_counts().failed_over, 1);
}

#[test]
fn a_set_that_points_at_us_is_refused() {
    let mut world = World::new(12);
    let host = world.add(None, Answer::Ask);
    let own = Ipv4Addr::new(192, 0, 2, 2).into();
    let lac = world.add(
        on(vec![tunnel("isp", "isp", vec![lns(own, 1)])]),
        Answer::Ask,
    );
    let port = pppoe::PortConfig {
        server: false,
        ..pppoe::PortConfig::default()
    };
    let edge = &mut world.nodes[host].edge;
    edge.endpoint_mut().pppoe_mut().set_port(0, port);
    world.dial(host, "ann@isp", None);
    world.pass(Duration::from_secs(30));
    assert!(world.address_of(host).is_none());
    let edge = &world.nodes[lac].edge;
    assert_eq!(edge.switch_counts().own_address, 1);
    assert_eq!(edge.counts().refusals.of(Refusal::NoTunnel), 1);
    let [End::Refused(why)] = &world.nodes[lac].ended[..] else {
        panic!("{:?}", world.nodes[lac].ended);
    };
    assert!(why.contains("192.0.2.2:1701 is our own address"), "{why}");
    assert_eq!(world.sessions(lac), (0, 0));
}

/// RFC 2661, section 5.1.1: a wrong secret ends the tunnel; the next LNS is called at once.
#[test]
fn an_lns_with_another_secret_is_failed_over_at_once() {
    let mut world = chain(13);
    let far = world.nodes[2].address;
    let mut wrong = lns(far, 0);
    let mut to = (*wrong.tunnel).clone();
    to.secret = Some(base::Redacted::new(b"another".to_vec()));
    wrong.tunnel = Arc::new(to);
    let mut misnamed = lns(far, 1);
    let mut to = (*misnamed.tunnel).clone();
    to.server_name = Some("elsewhere".into());
    misnamed.tunnel = Arc::new(to);
    let good = lns(far, 2);
    world.nodes[1].answer = Answer::Profile(Box::new(Profile {
        tunnel: Some(Box::new(Tunnelled::To([wrong, misnamed, good].into()))),
        ..Profile::default()
    }));
    world.dial(0, "bob@home", None);
    world.pass(SECOND);
    assert!(world.address_of(0).is_some());
    assert_eq!(world.nodes[1].edge.switch_counts().failed_over, 2);
}
