//! The stations of the street, and how they are made.

use core::net::Ipv4Addr;
use std::sync::Arc;

use aaa::dynauth::{Dynauth, DynauthClient, DynauthConfig};
use aaa::pools::{Pools, Range, Spec};
use aaa::radius::{Client, ServerConfig};
use base::{Duration, Redacted};
use edge::access::{Both, Served};
use edge::v6::PrefixWish;
use edge::{Config, Edge, NamedTunnel, Switching};
use ppp::Authentication;
use sim::{Link, NodeHandle, Rng, World};

use crate::books::HOLD;
use crate::desk::{Desk, Servers, lns, nas};
use crate::eap::EapHost;
use crate::node::{EDGE, Node, RADIUS, REQUESTS, REQUESTS_PORT, ROGUE, ip, sockets};
use crate::radius::{SHARED, Server};
use crate::v6;

/// The first host, the first that uses EAP, the LAC, the first LNS, the first server.
pub(crate) const HOST: u8 = 10;
pub(crate) const EAP: u8 = 30;
pub(crate) const LAC: u8 = 50;
pub(crate) const LNS: u8 = 60;
pub(crate) const SERVER: u8 = 80;

const HOSTS: u8 = 7;
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);
/// An address has four blocks of so many ports.
const BLOCK: u16 = 32;
const PORT_FIRST: u16 = 65_408;

/// A run of one seed.
pub(crate) struct Street {
    pub(crate) world: World,
    pub(crate) edge: NodeHandle<Node>,
    pub(crate) hosts: Vec<NodeHandle<Node>>,
    pub(crate) eap: Vec<NodeHandle<EapHost>>,
    pub(crate) lac: NodeHandle<Node>,
    pub(crate) lns: Vec<NodeHandle<Node>>,
    pub(crate) rogue: NodeHandle<Node>,
    pub(crate) servers: Vec<NodeHandle<Server>>,
    pub(crate) rng: Rng,
}

fn seed(rng: &mut Rng) -> [u8; 32] {
    let mut seed = [0; 32];
    rng.fill(&mut seed);
    seed
}

/// The endpoints of an edge.
fn endpoints(name: &str, limits: Option<pppoe::Limits>, rng: &mut Rng) -> Served {
    let l2tp = l2tp::Config {
        host_name: name.into(),
        accept: true,
        secret: Some(Redacted::new(b"tunnel secret".to_vec())),
        hello_interval: Duration::from_secs(20),
        ..l2tp::Config::default()
    };
    let mut config = pppoe::Config {
        ac_name: name.as_bytes().into(),
        ..pppoe::Config::default()
    };
    let server = limits.is_some();
    config.limits = limits.unwrap_or_default();
    let mut hosts = pppoe::Endpoint::new(config, seed(rng));
    let port = pppoe::PortConfig {
        server,
        ..pppoe::PortConfig::default()
    };
    hosts.add_port(0, port);
    Both::new(l2tp::Endpoint::new(l2tp, seed(rng)), hosts)
}

/// Address pools: with three addresses, or more, of one network or another.
pub(crate) fn specs(rng: &mut Rng) -> Vec<Spec> {
    let net = rng.below(2) as u8;
    let count = [3, 8, 100][rng.below(3) as usize];
    let address = |host| Ipv4Addr::new(10, 0, net, host);
    vec![Spec {
        name: "home".into(),
        ranges: vec![Range::new(address(1), address(count)).expect("a range")],
        sticky: rng.chance(0.3),
        ..Spec::default()
    }]
}

pub(crate) fn own() -> Vec<Ipv4Addr> {
    vec![GATEWAY]
}

fn no_pools() -> Pools {
    Pools::new(Vec::new(), Vec::new(), 0).expect("no pools")
}

/// The NAT's external addresses: one, another, or all.
pub(crate) fn externals(which: u64) -> Vec<nat::Range> {
    let text = ["203.0.113.1", "203.0.113.2", "203.0.113.1-203.0.113.2"][which as usize % 3];
    vec![text.parse().expect("a range")]
}

/// Few ports: at most two blocks of a subscriber.
pub(crate) fn nat_config(which: u64) -> nat::Config {
    let limits = nat::Limits {
        mappings_max: 512,
        sessions_max: 64,
        subscribers_max: 16,
        blocks_per_subscriber: 2,
        mappings_per_subscriber: 100,
        ..nat::Limits::default()
    };
    nat::Config {
        port_first: PORT_FIRST,
        block_ports: BLOCK,
        hold: HOLD,
        limits,
        ..nat::Config::new(externals(which), [1, 2, 3])
    }
}

/// The edge's settings that may change while it runs.
pub(crate) fn vary(config: &mut Config, rng: &mut Rng) {
    let seconds = [0, 2, 20, 60].map(Duration::from_secs);
    let mut any = || seconds[rng.below(4) as usize];
    config.ppp.echo_interval = Duration::from_secs(20).min(any().max(Duration::from_secs(2)));
    config.ppp.rechallenge_interval = any();
    config.interim_interval = any();
    config.idle_timeout = any().saturating_mul(2);
    config.v6 = Arc::new(v6::settings(rng));
}

fn edge(rng: &mut Rng) -> Node {
    let methods = match rng.below(3) {
        0 => vec![
            Authentication::Eap,
            Authentication::ChapMd5,
            Authentication::Pap,
        ],
        1 => vec![Authentication::ChapMd5, Authentication::Pap],
        _ => vec![Authentication::Pap],
    };
    let tunnel = NamedTunnel {
        name: "isp".into(),
        lns: vec![lns(LNS, 1), lns(LNS + 1, 1)].into(),
        realms: vec!["isp".into()],
        lines: Vec::new(),
    };
    let mut config = Config {
        terminate: true,
        accounting: true,
        address: GATEWAY,
        subscribers_max: [4, 1_000, 1_000][rng.below(3) as usize],
        routes_max: [6, 1_000, 1_000][rng.below(3) as usize],
        history_max: 3,
        ppp: ppp::Config {
            authenticate: methods,
            ..ppp::Config::default()
        },
        switching: Arc::new(Switching {
            is_on: true,
            tunnels: vec![tunnel],
            ..Switching::default()
        }),
        ..Config::default()
    };
    vary(&mut config, rng);
    let limits = pppoe::Limits {
        sessions_max: [5, 1_000][rng.below(2) as usize],
        half_open_max: [2, 100][rng.below(2) as usize],
        ..pppoe::Limits::default()
    };
    let endpoints = endpoints("street", Some(limits), rng);
    let pools = Pools::new(specs(rng), own(), 7).expect("pools");
    let mut edge = Edge::new(config, endpoints, pools, seed(rng));
    edge.prefixes_mut()
        .reload(v6::specs(rng))
        .expect("faultless");
    let nat = nat_config(rng.below(3));
    let inside = vec!["10.0.0.0/8".parse().expect("a range")];
    assert!(edge.set_nat(nat, inside, |_, _| ()).is_ok());
    let mut config = aaa::radius::Config::new(nas());
    let mut requests = DynauthConfig::new(nas());
    for number in 0..2 {
        let address = |port: u16| (ip(SERVER + number), port).into();
        config.servers.push(ServerConfig {
            authentication: Some(address(1812)),
            accounting: Some(address(1813)),
            timeout: Duration::from_secs(1),
            sockets_max: 1,
            ..ServerConfig::new(&format!("server{number}"), SHARED)
        });
        let secret = Redacted::new(SHARED.into());
        (requests.clients).push(DynauthClient::new(ip(SERVER + number).into(), secret));
    }
    let client = Client::new(config, seed(rng)).expect("a client");
    let servers = Servers::new(client, Dynauth::new(requests));
    Node::new(edge, Desk::with_servers(servers), EDGE)
}

/// An edge that takes sessions over, or the second PPPoE server.
pub(crate) fn other(station: u8, rng: &mut Rng) -> Node {
    let config = Config {
        terminate: true,
        accounting: true,
        ppp: ppp::Config {
            authenticate: vec![Authentication::ChapMd5, Authentication::Pap],
            echo_interval: Duration::from_secs(20),
            ..ppp::Config::default()
        },
        ..Config::default()
    };
    let limits = (station == ROGUE).then(pppoe::Limits::default);
    let endpoints = endpoints(&format!("other{station}"), limits, rng);
    let address = |host| Ipv4Addr::new(10, station, 0, host);
    let spec = Spec {
        name: "home".into(),
        ranges: vec![Range::new(address(1), address(100)).expect("a range")],
        ..Spec::default()
    };
    let pools = Pools::new(vec![spec], own(), 7).expect("pools");
    Node::new(
        Edge::new(config, endpoints, pools, seed(rng)),
        Desk::local(station),
        station,
    )
}

/// A station with clients.
pub(crate) fn host(station: u8, rng: &mut Rng) -> Node {
    let config = Config {
        ppp: ppp::Config {
            echo_interval: Duration::from_secs(20),
            ..ppp::Config::default()
        },
        uplink: rng.chance(0.7).then(|| PrefixWish {
            duid: Box::new([0, 3, 0, 1, 2, 0, 0, 0, 0, station]),
            iaid: 1,
            length: None,
            rapid_commit: rng.chance(0.5),
        }),
        ..Config::default()
    };
    let endpoints = endpoints(&format!("host{station}"), None, rng);
    let edge = Edge::new(config, endpoints, no_pools(), seed(rng));
    Node::new(edge, Desk::local(station), station)
}

pub(crate) fn link(rng: &mut Rng) -> Link {
    Link {
        loss: [0.0, 0.02, 0.1, 0.3][rng.below(4) as usize],
        duplicate: [0.0, 0.1][rng.below(2) as usize],
        reorder: [0.0, 0.1][rng.below(2) as usize],
        reorder_delay: Duration::from_millis(1 + rng.below(2_000)),
        jitter: Duration::from_millis(rng.below(50)),
        ..Link::ROUGH
    }
}

impl Street {
    pub(crate) fn new(number: u64) -> Self {
        let mut rng = Rng::stream(number, &["street"]);
        let mut world = World::new(number);
        world.set_log_limit(64);
        world.set_default_link(link(&mut rng));
        let mut places = sockets(EDGE);
        for socket in RADIUS..REQUESTS {
            places.push(format!("{}:{}", ip(EDGE), 3_000 + socket));
        }
        places.push(format!("{}:{REQUESTS_PORT}", ip(EDGE)));
        let binds = |places: Vec<String>| -> Vec<sim::Bind> {
            let parsed = places.iter().map(|place| place.parse().expect("a bind"));
            parsed.collect()
        };
        let edge = world.add("edge", self::edge(&mut rng), binds(places));
        let mut add =
            |name: &str, station: u8, node: Node| world.add(name, node, binds(sockets(station)));
        let hosts = (HOST..HOST + HOSTS).map(|station| {
            let node = host(station, &mut rng);
            add(&format!("host{station}"), station, node)
        });
        let hosts = hosts.collect();
        let lac = add("lac", LAC, host(LAC, &mut rng));
        let lns = [LNS, LNS + 1].map(|station| {
            let node = other(station, &mut rng);
            add(&format!("lns{station}"), station, node)
        });
        let rogue = add("rogue", ROGUE, other(ROGUE, &mut rng));
        let eap = [EAP, EAP + 1].map(|station| {
            let host = EapHost::new(&format!("user{station}"), seed(&mut rng));
            world.add(format!("eap{station}"), host, binds(sockets(station)))
        });
        let servers = [0, 1].map(|number| {
            let server = Server::new(Rng::stream(number, &["server"]));
            let station = ip(SERVER + number as u8);
            let places = [1812, 1813, 3000].map(|port| format!("{station}:{port}"));
            world.add(format!("server{number}"), server, binds(places.to_vec()))
        });
        Self {
            world,
            edge,
            hosts,
            eap: eap.to_vec(),
            lac,
            lns: lns.to_vec(),
            rogue,
            servers: servers.to_vec(),
            rng,
        }
    }

    /// All edges that own subscribers.
    pub(crate) fn owners(&self) -> Vec<NodeHandle<Node>> {
        let mut all = vec![self.edge, self.rogue];
        all.extend(&self.lns);
        all
    }
}
