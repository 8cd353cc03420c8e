//! Edges on one network with loss: hosts, concentrators and LNSs, each with both access protocols.

use core::cmp::Reverse;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

use aaa::pools::{Pools, Range, Spec};
use aaa::{Lns, Profile, TunnelTo};
use base::{Duration, Instant, Redacted};
use edge::access::Either::{First, Second};
use edge::access::{Access, Both, Served};
use edge::{
    Account, Admission, Change, Config, Dial, Edge, End, Event, Inside, NamedTunnel, Outside, Path,
    Refusal, SubscriberKey, Switching, Taken,
};
use ppp::{Authentication, Credentials, Proof};
use sim::Rng;
use wire::pppoe::{LineInfo, Mac, Vlans};

pub(crate) type Route = <Served as Access>::Route;
pub(crate) type Reason = <Served as Access>::Reason;
pub(crate) type Place = <Served as Access>::Place;
pub(crate) type Session = <Served as Access>::Session;
type Encapsulation = <Served as Access>::Encapsulation;

/// The subscriber's password.
pub(crate) const SECRET: &[u8] = b"sesame";

#[derive(Default)]
pub(crate) struct Packets(pub(crate) Vec<Vec<u8>>);

impl Inside for Packets {
    fn packet(&mut self, packet: &[u8]) {
        self.0.push(packet.to_vec());
    }
}

/// What a node does with a question.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Hands over by realm, and checks the secret of all others.
    Ask,
    /// Admits subscribers with the secret, with this profile.
    Profile(Box<Profile>),
}

/// An edge on the network.
pub(crate) struct Node {
    pub(crate) edge: Edge<Served>,
    pub(crate) address: IpAddr,
    pub(crate) mac: Mac,
    pub(crate) answer: Answer,
    pub(crate) inside: Packets,
    pub(crate) up: Vec<SubscriberKey>,
    pub(crate) ended: Vec<End<Reason>>,
    pub(crate) accounts: Vec<Account<Place>>,
    /// The names and proofs that were judged, and the calling number and line with each.
    pub(crate) asked: Vec<(String, Vec<u8>, Vec<u8>)>,
    /// It neither receives nor sends.
    pub(crate) is_dead: bool,
    /// Its paths on other cores. A frame arrives on any path.
    cores: Vec<Core>,
    /// Changes that it has sent them.
    told: u64,
    /// Frames that its paths on other cores took.
    pub(crate) taken: u64,
}

/// A path on another core, and the changes that it has not applied yet.
struct Core {
    path: Path<Encapsulation>,
    changes: VecDeque<Change<Encapsulation>>,
    applied: u64,
}

impl Core {
    fn apply(&mut self, most: usize) {
        let most = most.min(self.changes.len());
        for change in self.changes.drain(..most) {
            self.path.apply(change);
            self.applied += 1;
        }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    at: Reverse<(Instant, u64)>,
    to: usize,
    from: usize,
    vlans: Option<u16>,
    bytes: Vec<u8>,
}

/// The network.
pub(crate) struct World {
    pub(crate) nodes: Vec<Node>,
    pub(crate) now: Instant,
    pub(crate) loss: f64,
    flights: BinaryHeap<Flight>,
    rng: Rng,
    sent: u64,
}

pub(crate) fn lns(address: IpAddr, preference: u32) -> Lns {
    Lns {
        tunnel: Arc::new(TunnelTo {
            secret: Some(Redacted::new(b"tunnel secret".to_vec())),
            ..TunnelTo::new(SocketAddr::new(address, 1701))
        }),
        preference,
        private_group: Box::default(),
    }
}

pub(crate) fn tunnel(name: &str, realm: &str, lns: Vec<Lns>) -> NamedTunnel {
    NamedTunnel {
        name: name.into(),
        lns: lns.into(),
        realms: vec![realm.into()],
        lines: Vec::new(),
    }
}

fn pool(n: u8) -> Pools {
    let last = |host| Ipv4Addr::new(10, n, 0, host);
    let spec = Spec {
        name: "home".into(),
        ranges: vec![Range::new(last(1), last(200)).unwrap()],
        ..Spec::default()
    };
    Pools::new(vec![spec], vec![Ipv4Addr::new(10, 255, 0, 1)], 7).unwrap()
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            nodes: Vec::new(),
            now: Instant::ZERO,
            loss: 0.0,
            flights: BinaryHeap::new(),
            rng: Rng::new(seed),
            sent: 0,
        }
    }

    /// Adds an edge. `switching` says what it hands over; without it, it is an LNS or a host.
    pub(crate) fn add(&mut self, switching: Option<Switching>, answer: Answer) -> usize {
        self.add_on(1, switching, answer)
    }

    /// Adds an edge with that many paths.
    pub(crate) fn add_on(
        &mut self,
        paths: u16,
        switching: Option<Switching>,
        answer: Answer,
    ) -> usize {
        let n = self.nodes.len() as u8 + 1;
        let l2tp = l2tp::Config {
            host_name: format!("node{n}"),
            accept: true,
            secret: Some(Redacted::new(b"tunnel secret".to_vec())),
            ..l2tp::Config::default()
        };
        let mut seed = [0; 32];
        self.rng.fill(&mut seed);
        let tunnels = l2tp::Endpoint::new(l2tp, seed);
        let mut hosts = pppoe::Endpoint::new(pppoe::Config::default(), seed);
        hosts.add_port(0, pppoe::PortConfig::default());
        let config = Config {
            paths,
            terminate: true,
            accounting: true,
            switching: Arc::new(switching.unwrap_or_default()),
            ppp: ppp::Config {
                authenticate: vec![Authentication::ChapMd5, Authentication::Pap],
                ..ppp::Config::default()
            },
            ..Config::default()
        };
        self.rng.fill(&mut seed);
        let edge = Edge::new(config, Both::new(tunnels, hosts), pool(n), seed);
        let cores = (1..paths).map(|number| Core {
            path: edge.replica(number.into()),
            changes: VecDeque::new(),
            applied: 0,
        });
        let cores = cores.collect();
        self.nodes.push(Node {
            edge,
            address: Ipv4Addr::new(192, 0, 2, n).into(),
            mac: Mac([2, 0, 0, 0, 0, n]),
            answer,
            inside: Packets::default(),
            up: Vec::new(),
            ended: Vec::new(),
            accounts: Vec::new(),
            asked: Vec::new(),
            is_dead: false,
            cores,
            told: 0,
            taken: 0,
        });
        usize::from(n) - 1
    }

    /// A client of a node dials by PPPoE; the first concentrator that answers has it.
    pub(crate) fn dial(&mut self, host: usize, name: &str, line: Option<LineInfo>) -> Session {
        let now = self.now;
        let edge = &mut self.nodes[host].edge;
        let call = pppoe::Dial {
            line,
            ..pppoe::Dial::default()
        };
        let dialled = edge.endpoint_mut().pppoe_mut();
        let session = Second(dialled.dial(0, Vlans::NONE, call, now).unwrap());
        self.start(host, session, name);
        session
    }

    /// A client of a node dials by L2TP, and requires sequence numbers.
    pub(crate) fn dial_numbered(&mut self, host: usize, to: usize, name: &str) -> Session {
        let now = self.now;
        let route = base::Route {
            peer: SocketAddr::new(self.nodes[to].address, 1701),
            local: Some(self.nodes[host].address),
            socket: 0,
        };
        let endpoint = self.nodes[host].edge.endpoint_mut().l2tp_mut();
        let open = l2tp::OpenTunnel {
            route,
            version: wire::l2tp::Version::V2,
        };
        let tunnel = endpoint.open_tunnel(open, now).unwrap();
        let call = l2tp::Call {
            sequencing: true,
            ..l2tp::Call::default()
        };
        let session = First(endpoint.open_session(tunnel, call, now).unwrap());
        self.start(host, session, name);
        session
    }

    /// Starts the client of a session.
    fn start(&mut self, host: usize, session: Session, name: &str) {
        let now = self.now;
        let credentials = Credentials {
            name: name.as_bytes().into(),
            secret: Redacted::new(SECRET.into()),
        };
        let dial = Dial {
            credentials: Some(credentials),
            ipv4: true,
            ipv6: false,
            networks: Vec::new(),
        };
        self.nodes[host].edge.dial(session, dial, now);
    }

    /// A turn of a node's other cores: each applies some of the changes, or all of them.
    fn turn_cores(&mut self, n: usize, all: bool) {
        let (now, rng) = (self.now, &mut self.rng);
        let node = &mut self.nodes[n];
        while let Some(change) = node.edge.poll_change() {
            node.told += 1;
            for core in &mut node.cores {
                core.changes.push_back(change.clone());
            }
        }
        let mut sent = Vec::new();
        let mut bytes = Vec::new();
        for core in &mut node.cores {
            core.apply(match all {
                true => usize::MAX,
                false => rng.below(3) as usize,
            });
            while let Some(session) = core.path.poll_heard() {
                node.edge.heard(session, now);
            }
            while let Some(route) = core.path.poll_transmit(&mut bytes) {
                sent.push((route, core::mem::take(&mut bytes)));
            }
        }
        if let Some(applied) = node.cores.iter().map(|core| core.applied).min() {
            node.edge.applied(applied, now);
        }
        for (route, bytes) in sent {
            self.send(n, route, bytes);
        }
    }

    /// Passes what a node has to send, and answers its questions.
    fn drain(&mut self, n: usize) {
        self.turn_cores(n, false);
        let mut bytes = Vec::new();
        loop {
            let mut any = self.answer(n);
            let now = self.now;
            while let Some(route) = self.nodes[n].edge.poll_transmit(now, &mut bytes) {
                let sent = core::mem::take(&mut bytes);
                self.send(n, route, sent);
                any = true;
            }
            if !any {
                break;
            }
        }
        let node = &mut self.nodes[n];
        while let Some(event) = node.edge.poll_event() {
            match event {
                Event::Up { subscriber } => node.up.push(subscriber),
                Event::Down { reason, .. } => node.ended.push(reason),
                _ => {}
            }
        }
        while let Some(account) = node.edge.poll_account() {
            node.accounts.push(account);
        }
        self.turn_cores(n, false);
    }

    fn send(&mut self, from: usize, route: Route, bytes: Vec<u8>) {
        if self.nodes[from].is_dead {
            return;
        }
        let is_to = |node: &Node| match route {
            First(route) => node.address == route.peer.ip(),
            Second(route) => route.peer == node.mac || route.peer == Mac::BROADCAST,
        };
        for to in 0..self.nodes.len() {
            if to == from || !is_to(&self.nodes[to]) || self.rng.chance(self.loss) {
                continue;
            }
            self.sent += 1;
            // A network that loses datagrams reorders them too.
            let late = match self.loss > 0.0 {
                true => self.rng.up_to(Duration::from_micros(7)),
                false => Duration::ZERO,
            };
            let delay = Duration::from_millis(1) + late;
            self.flights.push(Flight {
                at: Reverse((self.now + delay, self.sent)),
                to,
                from,
                vlans: route.second().map(|_| 0),
                bytes: bytes.clone(),
            });
        }
    }

    fn answer(&mut self, n: usize) -> bool {
        let mut any = false;
        let now = self.now;
        let node = &mut self.nodes[n];
        while let Some(question) = node.edge.poll_question() {
            any = true;
            let key = question.subscriber;
            let claim = &question.claim;
            let name = String::from_utf8_lossy(&claim.name).into_owned();
            if let Some(tunnel) = node.edge.tunnel_of_user(&claim.name) {
                let tunnel = tunnel.to_owned();
                node.edge.switch_to(key, &tunnel, now);
                continue;
            }
            let numbers = node.edge.subscriber(key).and_then(|one| one.numbers);
            let numbers = numbers.cloned().unwrap_or_default();
            node.asked
                .push((name, numbers.calling.to_vec(), numbers.line.to_vec()));
            let good = match &claim.proof {
                Proof::None | Proof::MsChapV2 { .. } | Proof::Eap { .. } => false,
                Proof::Pap { password, .. } => **password.reveal() == *SECRET,
                Proof::Chap {
                    identifier,
                    challenge,
                    response,
                } => *response == wire::ppp::chap::md5_response(*identifier, SECRET, challenge),
            };
            let good = good && !claim.name.starts_with(b"mallory");
            let profile = match &node.answer {
                Answer::Ask => Profile::default(),
                Answer::Profile(profile) => (**profile).clone(),
            };
            let admission = Admission {
                profile,
                ..Admission::default()
            };
            match good {
                true => node.edge.admit(key, admission, b"welcome", now),
                false => node
                    .edge
                    .refuse(key, (Refusal::Rejected, "wrong"), b"no", now),
            };
        }
        let address = node.address;
        while let Some(wanted) = node.edge.poll_wanted() {
            any = true;
            if node.edge.needs_route(&wanted) {
                let route = base::Route {
                    peer: wanted.tunnel.server,
                    local: Some(address),
                    socket: 0,
                };
                let route = match route.peer.ip() == address {
                    true => Err(edge::NoRoute::OwnAddress),
                    false => Ok(route),
                };
                node.edge.open_wanted(&wanted, route, now);
            }
        }
        any
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        for n in 0..self.nodes.len() {
            self.drain(n);
        }
        loop {
            let flight = self.flights.peek().map(|flight| flight.at.0.0);
            let alive = self.nodes.iter().filter(|node| !node.is_dead);
            let timers = alive.filter_map(|node| node.edge.poll_timeout().map(|(at, _)| at));
            let Some(next) = timers.chain(flight).min().filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(next);
            while let Some(flight) = self.flights.peek()
                && flight.at.0.0 <= self.now
            {
                let flight = self.flights.pop().expect("it was seen");
                self.arrive(flight);
            }
            let now = self.now;
            for n in 0..self.nodes.len() {
                let node = &mut self.nodes[n];
                if !node.is_dead && node.edge.poll_timeout().is_some_and(|(at, _)| at <= now) {
                    node.edge.handle_timeout(now);
                    self.drain(n);
                }
            }
        }
        self.now = end;
        for n in 0..self.nodes.len() {
            self.turn_cores(n, true);
            self.drain(n);
        }
    }

    fn arrive(&mut self, flight: Flight) {
        let from = &self.nodes[flight.from];
        let route = match flight.vlans {
            None => First(base::Route {
                peer: SocketAddr::new(from.address, 1701),
                local: Some(self.nodes[flight.to].address),
                socket: 0,
            }),
            Some(_) => Second(pppoe::Route {
                port: 0,
                peer: from.mac,
                vlans: Vlans::NONE,
            }),
        };
        let now = self.now;
        let node = &mut self.nodes[flight.to];
        if node.is_dead {
            return;
        }
        let at = self.rng.below(node.cores.len() as u64 + 1) as usize;
        let Node {
            edge,
            cores,
            inside,
            taken,
            ..
        } = node;
        match cores.get_mut(at) {
            None => edge.receive(route, &flight.bytes, now, inside),
            Some(core) => match core.path.receive(&route, &flight.bytes, now, inside) {
                Taken::Done => *taken += 1,
                Taken::Left => edge.receive_left(route, &flight.bytes, now, inside),
            },
        }
        self.drain(flight.to);
    }

    /// Our client's address, if it is connected.
    pub(crate) fn address_of(&self, host: usize) -> Option<Ipv4Addr> {
        let (_, view) = self.nodes[host].edge.next_subscriber(0)?;
        view.up?;
        view.address
    }

    /// Sends a packet from the inside of a node.
    pub(crate) fn forward(&mut self, n: usize, packet: &[u8]) {
        struct Sent(Vec<(Route, Vec<u8>)>, Vec<u8>);
        impl Outside<Route> for Sent {
            fn begin(&mut self, _: &Route) -> Option<&mut Vec<u8>> {
                self.1.clear();
                Some(&mut self.1)
            }

            fn commit(&mut self, route: &Route) {
                self.0.push((*route, core::mem::take(&mut self.1)));
            }
        }
        let mut sent = Sent(Vec::new(), Vec::new());
        let mut octets = vec![0; wire::virtio::LENGTH];
        octets.extend_from_slice(packet);
        let now = self.now;
        self.nodes[n].edge.forward(&mut octets, now, &mut sent);
        for (route, bytes) in sent.0 {
            self.send(n, route, bytes);
        }
    }

    /// Sessions of a node by protocol: those of tunnels, and those of PPPoE.
    pub(crate) fn sessions(&self, n: usize) -> (u32, usize) {
        let endpoint = self.nodes[n].edge.endpoint();
        (endpoint.l2tp().counts().sessions, endpoint.pppoe().count())
    }

    /// All addresses that subscribers of a node hold, each once.
    pub(crate) fn held(&self, n: usize) -> BTreeMap<Ipv4Addr, usize> {
        let mut held = BTreeMap::new();
        let mut cursor = 0;
        while let Some((next, view)) = self.nodes[n].edge.next_subscriber(cursor) {
            cursor = next;
            if let Some(address) = view.address {
                *held.entry(address).or_insert(0) += 1;
            }
        }
        held
    }
}

/// An ICMP echo request.
pub(crate) fn ping(from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let mut packet = vec![0; 28];
    packet[0] = 0x45;
    packet[3] = 28;
    packet[8] = 64;
    packet[9] = 1;
    packet[12..16].copy_from_slice(&from.octets());
    packet[16..20].copy_from_slice(&to.octets());
    let sum: u32 = (packet[..20].chunks(2))
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet[20] = 8;
    packet[22..24].copy_from_slice(&[0xf7, 0xff]);
    packet
}
