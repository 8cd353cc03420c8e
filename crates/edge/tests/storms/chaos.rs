//! Random commands at both ends of bad networks, over hundreds of seeds.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use aaa::{Change, Prefix};
use base::{Duration, Redacted, Route};
use edge::{Config, Dial, Edge, End, Phase, SubscriberKey, SubscriberView};
use l2tp::{Call, Endpoint, OpenTunnel, TunnelKey};
use ppp::{Authentication, Credentials};
use sim::{Link, NodeHandle, Rng, World};
use wire::l2tp::Version;

use crate::authority::{Authority, Mood, SECRET};
use crate::node::Node;
use crate::state::{assert_empty, check, sessions, subscribers, used};
use crate::v6;

const LNS: &str = "192.0.2.100:1701";
const LACS: [&str; 3] = ["192.0.2.1:1701", "192.0.2.2:1701", "192.0.2.3:1701"];
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);

/// The state of one seed's run.
struct Chaos {
    world: World,
    lns: NodeHandle<Node>,
    lacs: Vec<NodeHandle<Node>>,
    rng: Rng,
    lives: u8,
}

fn link(rng: &mut Rng) -> Link {
    let loss = [0.0, 0.02, 0.1, 0.3][rng.below(4) as usize];
    Link {
        loss,
        duplicate: [0.0, 0.1][rng.below(2) as usize],
        reorder: [0.0, 0.1][rng.below(2) as usize],
        reorder_delay: Duration::from_millis(1 + rng.below(2_000)),
        jitter: Duration::from_millis(rng.below(50)),
        ..Link::ROUGH
    }
}

fn endpoint(name: &str, accept: bool, seed: u8) -> Endpoint {
    let config = l2tp::Config {
        host_name: name.into(),
        accept,
        hello_interval: Duration::from_secs(20),
        ..l2tp::Config::default()
    };
    Endpoint::new(config, [seed; 32])
}

pub(crate) fn pools(addresses: u8) -> aaa::Pools {
    let range = |first: [u8; 4], last: [u8; 4]| aaa::pools::Range::new(first.into(), last.into());
    let spec = aaa::pools::Spec {
        name: "home".into(),
        ranges: vec![range([10, 0, 0, 1], [10, 0, 0, addresses]).expect("a range")],
        ..aaa::pools::Spec::default()
    };
    aaa::Pools::new(vec![spec], vec![GATEWAY], 7).expect("pools")
}

fn lns(seed: u64, rng: &mut Rng) -> Node {
    let ways = [Authentication::ChapMd5, Authentication::Pap];
    let authenticate = match rng.below(4) {
        0 => vec![ways[1]],
        1 => vec![],
        _ => ways.to_vec(),
    };
    let config = Config {
        terminate: true,
        accounting: true,
        tells_networks: true,
        address: GATEWAY,
        ipv6: rng.chance(0.7),
        v6: std::sync::Arc::new(v6::settings(rng)),
        subscribers_max: [4, 1_000, 1_000][rng.below(3) as usize],
        routes_max: [3, 1_000, 1_000][rng.below(3) as usize],
        interim_interval: Duration::from_secs([0, 30][rng.below(2) as usize]),
        history_max: 3,
        paths: 1 + rng.below(3) as u16,
        ppp: ppp::Config {
            authenticate,
            rechallenge_interval: Duration::from_secs([0, 0, 15][rng.below(3) as usize]),
            echo_interval: Duration::from_secs(20),
            ..ppp::Config::default()
        },
        ..Config::default()
    };
    let mood = [Mood::PROMPT, Mood::BAD][rng.below(2) as usize];
    let addresses = [3, 8, 200][rng.below(3) as usize];
    let mut edge = Edge::new(config, endpoint("lns", true, 1), pools(addresses), [1; 32]);
    let specs = v6::specs(rng);
    edge.prefixes_mut().reload(specs).expect("faultless");
    Node::new(
        edge,
        Authority::new(Rng::stream(seed, &["authority"]), mood),
    )
}

fn lac(seed: u8) -> Node {
    let config = Config {
        paths: 2,
        ppp: ppp::Config {
            echo_interval: Duration::from_secs(20),
            ..ppp::Config::default()
        },
        ..Config::default()
    };
    let none = aaa::Pools::new(Vec::new(), Vec::new(), 0).expect("no pools");
    let edge = Edge::new(config, endpoint("lac", false, seed), none, [seed; 32]);
    Node::new(edge, Authority::new(Rng::new(0), Mood::PROMPT))
}

fn route(address: &str) -> Route {
    Route {
        peer: sim::addr(address),
        local: None,
        socket: 0,
    }
}

/// A UDP packet without data.
pub(crate) fn udp(from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let mut packet = vec![0; 28];
    packet[0] = 0x45;
    packet[3] = 28;
    packet[8] = 64;
    packet[9] = 17;
    packet[12..16].copy_from_slice(&from.octets());
    packet[16..20].copy_from_slice(&to.octets());
    packet[25] = 8;
    let sum = !wire::checksum::sum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        let mut rng = world.rng("commands");
        world.set_default_link(link(&mut rng));
        let lns = world.add("lns", lns(seed, &mut rng), [LNS]);
        let lacs = (10..).zip(LACS);
        let lacs = lacs.map(|(n, address)| world.add(address, lac(n), [address]));
        let lacs = lacs.collect();
        Self {
            world,
            lns,
            lacs,
            rng,
            lives: 20,
        }
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> Option<T> {
        let at = self.rng.below(list.len() as u64) as usize;
        list.get(at).copied()
    }

    fn tunnels(&self, node: NodeHandle<Node>) -> Vec<TunnelKey> {
        let endpoint = self.world[node].edge.endpoint();
        let mut cursor = 0;
        let next = || {
            let (next, view) = endpoint.next_tunnel(cursor)?;
            cursor = next;
            Some(view.key)
        };
        core::iter::from_fn(next).collect()
    }

    fn keys(&self, node: NodeHandle<Node>) -> Vec<SubscriberKey> {
        subscribers(&self.world[node].edge)
            .map(|one| one.key)
            .collect()
    }

    /// Other intervals, while subscribers are in any phase.
    fn reconfigure(&mut self) {
        let seconds = [0, 2, 20, 60].map(Duration::from_secs);
        let [echo, challenge, interim, idle] =
            [(); 4].map(|()| seconds[self.rng.below(4) as usize]);
        self.world.with(self.lns, |node, now| {
            let mut config = node.edge.config().clone();
            config.ppp.echo_interval = echo;
            config.ppp.rechallenge_interval = challenge;
            (config.interim_interval, config.idle_timeout) = (interim, idle);
            node.edge.set_config(config, now);
        });
    }

    fn command(&mut self) {
        let all = self.lacs.clone();
        let lac = self.pick(&all).expect("there are some");
        let lns = self.lns;
        match self.rng.below(100) {
            0..10 => self.open_tunnel(lac),
            10..15 => self.change_some(),
            15..45 => self.dial(lac),
            45..50 => {
                for _ in 0..8 {
                    self.dial(lac);
                }
            }
            50..60 => self.drop_one(lac, End::Administrator),
            60..65 => self.drop_one(lns, End::Administrator),
            65..70 => self.drop_one(lns, End::Disconnected),
            70..74 => self.close_tunnel(lac),
            74..76 => self.close_tunnel(lns),
            76..82 => self.begin_anew(lac),
            82..85 => self.packets(),
            85..91 => self.link_packets(lac),
            91 => self.reconfigure(),
            92..94 => self.world.cut(lac, lns),
            94..96 => self.world.heal(lac, lns),
            96..98 => {
                let link = link(&mut self.rng);
                self.world.set_default_link(link);
            }
            _ => self.crash(lac),
        }
    }

    fn open_tunnel(&mut self, lac: NodeHandle<Node>) {
        let version = self.pick(&[Version::V2, Version::V3]).expect("two");
        let open = OpenTunnel {
            route: route(LNS),
            version,
        };
        self.world
            .with(lac, |lac, now| {
                lac.edge.endpoint_mut().open_tunnel(open, now).map(|_| ())
            })
            .expect("nothing is full");
    }

    fn dial(&mut self, lac: NodeHandle<Node>) {
        let tunnels = self.tunnels(lac);
        let Some(tunnel) = self.pick(&tunnels) else {
            return self.open_tunnel(lac);
        };
        let user = self.rng.below(64);
        let secret = if self.rng.chance(0.9) {
            SECRET
        } else {
            b"guess"
        };
        let credentials = Credentials {
            name: format!("user{user}").into_bytes().into(),
            secret: Redacted::new(secret.into()),
        };
        let dial = Dial {
            credentials: self.rng.chance(0.95).then_some(credentials),
            ipv4: self.rng.chance(0.9),
            ipv6: self.rng.chance(0.6),
            networks: Vec::new(),
        };
        self.world.with(lac, |lac, now| {
            let endpoint = lac.edge.endpoint_mut();
            if let Ok(session) = endpoint.open_session(tunnel, Call::default(), now) {
                lac.edge.dial(session, dial, now);
            }
        });
    }

    /// Changes one or two subscribers of the LNS, which may be in any phase: all parts, or none.
    fn change_some(&mut self) {
        let keys = self.keys(self.lns);
        let of: Vec<_> = (0..=self.rng.below(2))
            .filter_map(|_| self.pick(&keys))
            .collect();
        let change = self.random_change();
        self.world.with(self.lns, |node, now| {
            let edge = &mut node.edge;
            let facts = |edge: &Edge| -> Vec<_> {
                let views = of.iter().filter_map(|key| edge.subscriber(*key));
                let parts = views.map(|view| (view.profile.cloned(), view.queue.cloned()));
                parts.collect()
            };
            let is_ready = |key: &SubscriberKey| {
                let view = edge.subscriber(*key);
                view.is_some_and(|view| matches!(view.phase, Phase::Networks | Phase::Up))
            };
            let ready = of.iter().all(is_ready);
            let before = facts(edge);
            match edge.change_sessions(&of, &change, now) {
                Ok(()) => {
                    assert!(ready);
                    let first = facts(edge);
                    assert_eq!(edge.change_sessions(&of, &change, now), Ok(()));
                    assert_eq!(facts(edge), first, "the same change again");
                }
                Err(_) => assert_eq!(facts(edge), before, "{change:?}"),
            }
        });
    }

    fn random_change(&mut self) -> Change {
        let mut change = Change::default();
        if self.rng.chance(0.5) {
            change.queue.rates_bps = [Some(self.rng.below(3) * 1_000_000), None];
        }
        if self.rng.chance(0.3) {
            change.session_timeout = Some(Duration::from_secs(self.rng.below(3) * 20));
        }
        if self.rng.chance(0.3) {
            change.idle_timeout = Some(Duration::from_secs(self.rng.below(3) * 20));
        }
        if self.rng.chance(0.4) {
            change.routes[0] = Some(Vec::new());
            for _ in 0..self.rng.below(3) {
                let network = Ipv4Addr::new(172, 16, self.rng.below(6) as u8, 0);
                change.route(Prefix::new(network.into(), 24).expect("a network"));
            }
        }
        if self.rng.chance(0.1) {
            change.filter = Some("none such".into());
        }
        change
    }

    fn drop_one(&mut self, node: NodeHandle<Node>, reason: End) {
        let keys = self.keys(node);
        if let Some(key) = self.pick(&keys) {
            self.world.with(node, |node, now| {
                node.edge.drop_subscriber(key, reason, now);
                assert!(!node.edge.drop_subscriber(key, End::ShutDown, now));
            });
        }
    }

    fn close_tunnel(&mut self, node: NodeHandle<Node>) {
        let tunnels = self.tunnels(node);
        if let Some(tunnel) = self.pick(&tunnels) {
            self.world.with(node, |node, now| {
                node.edge.endpoint_mut().close_tunnel(tunnel, now);
            });
        }
    }

    /// A client renegotiates LCP, or another client does so in its place.
    fn begin_anew(&mut self, lac: NodeHandle<Node>) {
        let keys = self.keys(lac);
        let Some(key) = self.pick(&keys) else { return };
        let magic = self.rng.next_u64().to_be_bytes();
        let mut frame = vec![0xff, 3, 0xc0, 0x21];
        wire::ppp::control::emit(&mut frame, 1, magic[4], |out| {
            out.extend_from_slice(&[5, 6, magic[0], magic[1], magic[2], magic[3] | 1]);
        });
        self.world.with(lac, |lac, _| {
            let session = lac.edge.subscriber(key).expect("it is there").session;
            if let Some(header) = lac.edge.endpoint_mut().data_header(session) {
                let datagram = [header.as_bytes(), &frame].concat();
                lac.outside.push(header.route, datagram);
            }
        });
    }

    /// A packet to every subscriber, and one from each.
    fn packets(&mut self) {
        let far = Ipv4Addr::new(198, 51, 100, 7);
        for node in [vec![self.lns], self.lacs.clone()].concat() {
            self.world.with(node, |node, now| {
                let addresses: Vec<_> = subscribers(&node.edge)
                    .filter_map(|one| Some((one.address?, one.is_client)))
                    .collect();
                for (address, is_client) in addresses {
                    let packet = match is_client {
                        true => udp(address, far),
                        false => udp(far, address),
                    };
                    node.forward(&packet, now);
                }
            });
        }
    }

    /// Packets of hosts to the edge, on the links of a concentrator's clients.
    fn link_packets(&mut self, lac: NodeHandle<Node>) {
        for key in self.keys(lac) {
            let one = self.world[lac].edge.subscriber(key).expect("it is there");
            let (session, Some([own, _])) = (one.session, one.ipv6) else {
                continue;
            };
            let frame = v6::frame(&mut self.rng, own);
            self.world.with(lac, |lac, _| {
                if let Some(header) = lac.edge.endpoint_mut().data_header(session) {
                    let datagram = [header.as_bytes(), &frame].concat();
                    lac.outside.push(header.route, datagram);
                }
            });
        }
    }

    /// A concentrator crashes silently, and a new one takes its place.
    fn crash(&mut self, lac: NodeHandle<Node>) {
        self.lives += 1;
        let node = self::lac(self.lives);
        self.world.replace(lac, node);
    }

    fn check(&self) {
        check(&self.world[self.lns], false);
        for &lac in &self.lacs {
            check(&self.world[lac], true);
        }
    }

    /// After receiving all changes, paths on other cores equal the edge's.
    fn check_paths(&mut self) {
        for node in [vec![self.lns], self.lacs.clone()].concat() {
            self.world.with(node, |node, _| {
                let is_open = |one: &SubscriberView<'_>| {
                    one.phase != Phase::Ending
                        && (one.link.is_open(false) || one.link.is_open(true))
                };
                let open = subscribers(&node.edge).filter(is_open).count();
                let routes = node.edge.counts().routes;
                if node.edge.config().terminate {
                    assert_eq!(node.books.networks.len(), routes, "networks were reported");
                }
                for (others, its_routes) in node.others() {
                    assert_eq!((others, its_routes), (open, routes));
                }
            });
        }
    }

    /// A subscriber connected at one end is connected at the other, with the same addresses; none is half
    /// connected.
    fn check_agreement(&self) {
        let lns = &self.world[self.lns].edge;
        let mut clients = HashMap::new();
        for &lac in &self.lacs {
            let lac = &self.world[lac].edge;
            for session in sessions(lac) {
                let one = lac.subscriber_in(session.key).expect("a client in it");
                assert_eq!(one.phase, Phase::Up, "{one:?}");
                let tunnel = lac.endpoint().tunnel(session.tunnel).expect("it has one");
                let ids = (tunnel.version, tunnel.remote_id, session.remote_id);
                assert!(clients.insert(ids, one).is_none());
            }
        }
        let counts = lns.counts();
        assert_eq!(counts.subscribers, clients.len(), "{counts:?}");
        let mut routes_max = 0;
        for session in sessions(lns) {
            let one = lns.subscriber_in(session.key).expect("a subscriber in it");
            assert_eq!(one.phase, Phase::Up, "{one:?}");
            let twin = clients[&(session.version, session.tunnel_id, session.id)];
            assert_eq!(twin.link.is_open(false), one.link.is_open(false));
            assert_eq!(twin.link.is_open(true), one.link.is_open(true));
            if one.link.is_open(false) {
                assert_eq!(twin.address, one.address);
                routes_max += 1 + one.profile.map_or(0, |profile| profile.routes.len());
            }
            let leases = [one.leases.prefix, one.leases.delegated, one.leases.address];
            routes_max += leases.iter().flatten().count();
            assert_eq!(twin.ipv6.map(|[a, b]| [b, a]), one.ipv6);
            assert!(matches!(one.link.claims(), 1..));
        }
        assert!(counts.routes <= routes_max);
        assert_eq!(used(lns) as usize, held(lns));
    }
}

/// Subscribers that hold a pool address.
fn held(edge: &Edge) -> usize {
    let addresses = subscribers(edge).filter_map(|one| one.address);
    addresses.filter(|held| held.octets()[0] == 10).count()
}

fn run(seed: u64, commands: u32) {
    let mut chaos = Chaos::new(seed);
    for _ in 0..commands {
        let pause = chaos.rng.up_to(Duration::from_secs(3));
        chaos.world.run_for(pause);
        chaos.command();
        chaos.check();
    }
    let (lns, lacs) = (chaos.lns, chaos.lacs.clone());
    // Every other seed ends in mid-run.
    if seed.is_multiple_of(2) {
        for &lac in &lacs {
            chaos.world.heal(lac, lns);
        }
        chaos.world.set_default_link(Link::CLEAN);
        for _ in 0..10 {
            chaos.world.run_for(Duration::from_secs(30));
            chaos.check();
        }
        chaos.check_agreement();
    }
    chaos.check_paths();
    for node in [vec![lns], lacs.clone()].concat() {
        chaos.world.with(node, |node, now| node.edge.shut_down(now));
        chaos.world.run_for(Duration::from_millis(seed % 50));
        chaos.check();
    }
    chaos.world.run_for(Duration::from_secs(200));
    chaos.check_paths();
    assert_empty(&chaos.world[lns], "lns");
    for lac in lacs {
        assert_empty(&chaos.world[lac], "lac");
    }
}

#[test]
fn after_random_commands_nothing_has_leaked_and_both_ends_agree() {
    sim::seeds(150, |seed| run(seed, 60));
}

#[test]
fn after_other_random_commands_neither() {
    sim::seeds(150, |seed| run(1_000_000 + seed, 60));
}

#[test]
fn a_long_run_leaves_nothing_either() {
    sim::seeds(3, |seed| run(2_000_000 + seed, 1_000));
}
