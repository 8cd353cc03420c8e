//! A server, a second server and many hosts on a bad network, over hundreds of seeds: hosts dial, send data, restart,
//! hang up; the servers end sessions and lose a port. Afterwards the ends agree, and after a shutdown nothing is left.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::{Datagram, Duration, Instant, Machine};
use pppoe::{
    Config, Counters, Dial, Discard, Endpoint, Event, Frame, Mac, Phase, PortConfig, Role, Route,
    SessionKey, Vlans,
};
use sim::{Link, NodeHandle, Rng, World};

use crate::common::{config, limits};

/// A station of an Ethernet segment that the simulated network stands for: its MAC address is its IP address, and a
/// datagram is the octet "broadcast", then the frame.
struct Station {
    endpoint: Endpoint,
    segment: Vec<SocketAddr>,
    copies: VecDeque<(SocketAddr, Vec<u8>)>,
    /// PPP frames received, by session.
    frames: HashMap<SessionKey, u32>,
    up: HashSet<SessionKey>,
}

fn mac_of(addr: SocketAddr) -> Mac {
    let IpAddr::V4(ip) = addr.ip() else {
        panic!("IPv4")
    };
    let [a, b, c, d] = ip.octets();
    Mac([0, 0x53, a, b, c, d])
}

fn addr_of(mac: Mac) -> SocketAddr {
    let [_, _, a, b, c, d] = mac.0;
    SocketAddr::new(Ipv4Addr::new(a, b, c, d).into(), 2516)
}

const VLANS: Vlans = Vlans::one(100);

impl Machine for Station {
    type Input<'a> = Datagram<'a>;
    type Transmit = base::Route;
    type Event = Event;
    type Discard = Discard;

    fn handle(&mut self, input: Datagram<'_>, now: Instant) -> Result<(), Discard> {
        let (&broadcast, bytes) = input.bytes.split_first().expect("a whole datagram");
        let route = Route {
            port: 0,
            peer: mac_of(input.route.peer),
            vlans: VLANS,
        };
        if let Some((session, _)) = self.endpoint.receive_data(&route, bytes, now)? {
            *self.frames.entry(session).or_default() += 1;
            return Ok(());
        }
        let is_broadcast = broadcast == 1;
        let frame = Frame {
            route,
            is_broadcast,
            bytes,
        };
        self.endpoint.handle(frame, now)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<base::Route> {
        if self.copies.is_empty() {
            let mut bytes = vec![0];
            let route = self.endpoint.poll_transmit(now, &mut bytes)?;
            assert_eq!((route.port, route.vlans), (0, VLANS));
            if route.peer == Mac::BROADCAST {
                bytes[0] = 1;
                let copies = self.segment.iter().map(|&to| (to, bytes.clone()));
                self.copies.extend(copies);
            } else {
                self.copies.push_back((addr_of(route.peer), bytes));
            }
        }
        let (to, bytes) = self.copies.pop_front()?;
        out.extend_from_slice(&bytes);
        Some(base::Route::to(to))
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.endpoint.poll_event()?;
        match &event {
            Event::SessionUp { session } => assert!(self.up.insert(*session), "up once"),
            Event::SessionDown { session, .. } => {
                self.up.remove(session);
                assert!(self.endpoint.session(*session).is_none());
            }
        }
        Some(event)
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.endpoint.poll_timeout()
    }
}

const SERVERS: usize = 2;
const HOSTS: usize = 8;

struct Chaos {
    world: World,
    nodes: Vec<NodeHandle<Station>>,
    rng: Rng,
}

fn address(n: usize) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(10, 0, 0, n as u8 + 1).into(), 2516)
}

fn server_config(seed: u64) -> Config {
    let mut rng = Rng::stream(seed, &["config"]);
    let mut config = Config {
        setup_timeout: Duration::from_secs(10),
        unknown_padts_per_s: [0, 50][rng.below(2) as usize],
        ..config()
    };
    config.limits.sessions_per_mac_max = [1, 2][rng.below(2) as usize];
    config.limits.half_open_max = [3, 100][rng.below(2) as usize];
    config
}

fn station(seed: u64, n: usize) -> Station {
    let is_server = n < SERVERS;
    let config = match is_server {
        true => server_config(seed),
        false => Config {
            limits: limits(),
            ..Config::default()
        },
    };
    let mut key = [n as u8 + 1; 32];
    key[..8].copy_from_slice(&seed.to_be_bytes());
    let mut endpoint = Endpoint::new(config, key);
    endpoint.add_port(0, port(is_server));
    let all = (0..SERVERS + HOSTS).map(address);
    Station {
        endpoint,
        segment: all.filter(|&other| other != address(n)).collect(),
        copies: VecDeque::new(),
        frames: HashMap::new(),
        up: HashSet::new(),
    }
}

fn port(server: bool) -> PortConfig {
    PortConfig {
        server,
        ..PortConfig::default()
    }
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        world.set_default_link(Link::ROUGH);
        let rng = world.rng("commands");
        let nodes = (0..SERVERS + HOSTS)
            .map(|n| world.add(format!("node {n}"), station(seed, n), [address(n)]))
            .collect();
        Self { world, nodes, rng }
    }

    fn pick(&mut self, node: usize) -> Option<SessionKey> {
        let machine = &self.world[self.nodes[node]].endpoint;
        let keys: Vec<SessionKey> = machine.sessions().map(|view| view.key).collect();
        let at = self.rng.below(keys.len().max(1) as u64) as usize;
        keys.get(at).copied()
    }

    fn command(&mut self) {
        let host = SERVERS + self.rng.below(HOSTS as u64) as usize;
        let any = self.rng.below((SERVERS + HOSTS) as u64) as usize;
        let wait = Duration::from_millis(self.rng.below(3) * 700);
        match self.rng.below(20) {
            0..=8 => self.dial(host),
            9..=13 => self.data(any),
            14..=16 => {
                if let Some(key) = self.pick(any) {
                    let node = self.nodes[any];
                    self.world
                        .with(node, |station, now| station.endpoint.end(key, wait, now));
                }
            }
            17 => {
                if let Some(key) = self.pick(any) {
                    let node = self.nodes[any];
                    self.world
                        .with(node, |station, now| station.endpoint.close(key, now));
                }
            }
            // The host restarts: nothing of it is left.
            18 => {
                let seed = self.rng.below(u64::MAX);
                let node = self.nodes[host];
                self.world
                    .with(node, |machine, _| *machine = station(seed, host));
            }
            _ => {
                let node = self.nodes[any];
                self.world.with(node, |station, now| {
                    station.endpoint.remove_port(0, now);
                    station.endpoint.remove_port(0, now);
                    station.endpoint.add_port(0, port(any < SERVERS));
                });
            }
        }
    }

    fn dial(&mut self, host: usize) {
        let dial = Dial {
            wait: Duration::from_millis(500),
            wait_max: Duration::from_secs(4),
            ..Dial::default()
        };
        let node = self.nodes[host];
        self.world.with(node, |station, now| {
            if station.endpoint.count() < 3 {
                station.endpoint.dial(0, VLANS, dial, now).expect("room");
            }
        });
    }

    /// Sends a PPP frame in each session of a node, as its owner would.
    fn data(&mut self, node: usize) {
        let node = self.nodes[node];
        self.world.with(node, |station, _| {
            let frames: Vec<_> = station
                .endpoint
                .sessions()
                .filter_map(|view| station.endpoint.header(view.key))
                .collect();
            for (header, route) in frames {
                let mut bytes = [&[0], &header[..], &[0xc0, 0x21, 9, 1, 0, 4]].concat();
                wire::pppoe::complete(&mut bytes, 1);
                station.copies.push_back((addr_of(route.peer), bytes));
            }
        });
    }

    fn everyone_sends_data(&mut self) {
        for node in 0..SERVERS + HOSTS {
            self.data(node);
        }
    }

    /// What holds at any time.
    fn check(&self) {
        for &node in &self.nodes {
            let station = &self.world[node];
            let endpoint = &station.endpoint;
            let mut ids = HashSet::new();
            let mut half_open = 0;
            for view in endpoint.sessions() {
                if view.phase.carries_data() {
                    assert!((1..0xffff).contains(&view.id));
                    assert!(ids.insert((view.role, view.route.peer, view.id)));
                    let found = endpoint.find(0, view.route.peer, view.id);
                    assert_eq!(found, Some(view.key));
                    assert!(station.up.contains(&view.key));
                } else {
                    assert_eq!((view.id, view.role), (0, Role::Client));
                }
                half_open += u32::from(view.phase == Phase::HalfOpen);
            }
            assert_eq!(endpoint.half_open(), half_open);
            let counters = endpoint.counters();
            assert!(counters.sessions_down <= counters.sessions_up + 10_000);
        }
    }

    /// The sessions that a node has, as (peer, id).
    fn sessions(&self, node: usize, role: Role) -> HashSet<(Mac, u16)> {
        let views = self.world[self.nodes[node]].endpoint.sessions();
        views
            .filter(|view| view.role == role && view.phase.carries_data())
            .map(|view| (view.route.peer, view.id))
            .collect()
    }

    /// Once the network is good and all is settled, each session has both its ends.
    fn check_agreement(&self) {
        let mut seen_by_hosts = HashSet::new();
        for host in SERVERS..SERVERS + HOSTS {
            for (peer, id) in self.sessions(host, Role::Client) {
                seen_by_hosts.insert((peer, mac_of(address(host)), id));
            }
        }
        let mut seen_by_servers = HashSet::new();
        for server in 0..SERVERS {
            for (peer, id) in self.sessions(server, Role::Server) {
                seen_by_servers.insert((mac_of(address(server)), peer, id));
            }
        }
        assert_eq!(seen_by_hosts, seen_by_servers);
    }
}

/// Returns what the servers counted.
fn run(seed: u64) -> Vec<Counters> {
    let mut chaos = Chaos::new(seed);
    for _ in 0..120 {
        chaos.command();
        let pause = chaos.rng.below(400);
        chaos.world.run_for(Duration::from_millis(pause));
        chaos.check();
    }
    chaos.settle();
    chaos.check_agreement();
    for &node in &chaos.nodes {
        chaos
            .world
            .with(node, |station, now| station.endpoint.shut_down(now));
    }
    chaos.world.run_for(Duration::from_secs(30));
    for &node in &chaos.nodes {
        let endpoint = &chaos.world[node].endpoint;
        assert_eq!(endpoint.count(), 0);
        assert!(endpoint.is_quiet());
        assert_eq!(endpoint.poll_timeout(), None);
    }
    let servers = chaos.nodes.iter().take(SERVERS);
    let counters = servers.map(|&node| *chaos.world[node].endpoint.counters());
    counters.collect()
}

impl Chaos {
    /// The network becomes good. An owner's PPP link would notice that its peer is gone by its echoes; here each side
    /// sends data, and ends the sessions in which it receives none.
    fn settle(&mut self) {
        for &a in &self.nodes {
            for &b in &self.nodes {
                if a.id() != b.id() {
                    self.world.set_link(a, b, Link::CLEAN);
                }
            }
        }
        self.world.run_for(Duration::from_secs(60));
        for &node in &self.nodes {
            self.world.with(node, |station, _| station.frames.clear());
        }
        for _ in 0..2 {
            self.everyone_sends_data();
            self.world.run_for(Duration::from_secs(2));
        }
        for &node in &self.nodes {
            self.world.with(node, |station, now| {
                let silent: Vec<SessionKey> = station
                    .endpoint
                    .sessions()
                    .map(|view| view.key)
                    .filter(|key| !station.frames.contains_key(key))
                    .collect();
                for key in silent {
                    station.endpoint.end(key, Duration::ZERO, now);
                }
            });
        }
        self.world.run_for(Duration::from_secs(60));
        self.check();
    }
}

#[test]
fn ends_agree_after_any_history_on_a_bad_network() {
    let all = RefCell::new(Vec::new());
    let count = Cell::new(0);
    sim::seeds(300, |seed| {
        all.borrow_mut().extend(run(seed));
        count.set(count.get() + 1);
    });
    if count.get() < 300 {
        return;
    }
    // The histories had what they are for.
    let sum = |of: fn(&Counters) -> u64| all.borrow().iter().map(of).sum::<u64>();
    assert!(sum(|of| of.padrs_repeated) > 100);
    assert!(sum(|of| of.replaced) > 100);
    assert!(sum(|of| of.setup_timeouts) > 100);
    assert!(sum(|of| of.unknown_answered) > 100);
    assert!(sum(|of| of.discard_half_open_limit) > 10);
    assert!(sum(|of| of.received_padt) > 100);
}

/// Every host of a street comes up, however bad the network, and one host at a time never has two sessions.
#[test]
fn every_host_comes_up_on_a_bad_network() {
    sim::seeds(100, |seed| {
        let mut chaos = Chaos::new(seed);
        for _ in 0..60 {
            for host in SERVERS..SERVERS + HOSTS {
                if chaos.world[chaos.nodes[host]].endpoint.count() == 0 {
                    chaos.dial(host);
                }
            }
            chaos.everyone_sends_data();
            chaos.world.run_for(Duration::from_secs(1));
            chaos.check();
        }
        for host in SERVERS..SERVERS + HOSTS {
            let sessions = chaos.sessions(host, Role::Client);
            assert_eq!(sessions.len(), 1, "host {host}");
        }
    });
}
