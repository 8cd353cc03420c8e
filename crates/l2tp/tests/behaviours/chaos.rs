//! Random commands at every end of a lossy network, including crashes, over hundreds of seeds. Afterwards the
//! ends agree, and after a shutdown nothing is left.

use std::collections::HashMap;

use base::timer::TimerKind;
use base::{Duration, Redacted, Route};
use l2tp::{
    Call, CallErrors, Config, ConfigIds, Direction, Endpoint, Event, OpenTunnel, OutgoingCalls,
    PeerLookup, SessionKey, SessionState, SessionView, TunnelKey, TunnelState, TunnelView,
};
use sim::{Link, NodeHandle, Rng, World};
use wire::l2tp::{DigestType, Version};

use crate::common::{describe, values};

const ADDRESSES: [&str; 3] = ["192.0.2.1:1701", "192.0.2.2:1701", "192.0.2.3:1701"];

/// The settings that all ends of one run share, and those that each draws.
fn config(seed: u64, node: usize) -> Config {
    let mut rng = Rng::stream(seed, &["config", ADDRESSES[node]]);
    let bit = |n: u64| seed >> n & 1 == 1;
    Config {
        host_name: ADDRESSES[node].into(),
        accept: true,
        secret: bit(1).then(|| Redacted::new(b"shared by all".to_vec())),
        hide: bit(1) && bit(2),
        tie_breaker: bit(3),
        receive_window: [1, 2, 4, 32][rng.below(4) as usize],
        hello_interval: Duration::from_secs(20),
        timers: [TimerKind::Wheel, TimerKind::Tree, TimerKind::List][rng.below(3) as usize],
        peer_lookup: [PeerLookup::Hash, PeerLookup::List][rng.below(2) as usize],
        config_ids: [ConfigIds::Off, ConfigIds::FirstFree][rng.below(2) as usize],
        outgoing_calls: [
            OutgoingCalls::Refuse,
            OutgoingCalls::Answer,
            OutgoingCalls::Ask,
        ][rng.below(3) as usize],
        cookie_len: [0, 4, 8][rng.below(3) as usize],
        digest: [DigestType::HmacMd5, DigestType::HmacSha1][rng.below(2) as usize],
        ..Config::default()
    }
}

struct Chaos {
    world: World,
    nodes: [NodeHandle<Endpoint>; 3],
    rng: Rng,
    lives: u8,
    /// The sessions that each machine was asked to open, for checking its events.
    asked: [Vec<SessionKey>; 3],
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        world.set_decoder(describe);
        world.set_default_link(Link::ROUGH);
        let rng = world.rng("commands");
        let mut node = |n: usize| {
            let machine = Endpoint::new(config(seed, n), [n as u8 + 1; 32]);
            let node = world.add(format!("node {n}"), machine, [ADDRESSES[n]]);
            // Every third requested call is refused.
            world.on_event(node, |endpoint, event, now| {
                if let Event::CallRequested { session } = *event {
                    let id = endpoint.session(session).map_or(0, |s| s.id);
                    if id % 3 == 0 {
                        endpoint.close_session(session, now);
                    } else {
                        endpoint.answer_call(session);
                    }
                }
            });
            node
        };
        Self {
            nodes: [node(0), node(1), node(2)],
            world,
            rng,
            lives: 0,
            asked: Default::default(),
        }
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> Option<T> {
        let at = self.rng.below(list.len() as u64) as usize;
        list.get(at).copied()
    }

    fn tunnels(&self, node: usize) -> Vec<TunnelKey> {
        tunnels(&self.world[self.nodes[node]])
            .map(|t| t.key)
            .collect()
    }

    fn sessions(&self, node: usize) -> Vec<SessionKey> {
        sessions(&self.world[self.nodes[node]])
            .map(|s| s.key)
            .collect()
    }

    /// Other intervals, while tunnels are in any state.
    fn reconfigure(&mut self, n: usize) {
        let mut one_of =
            |seconds: [u64; 4]| Duration::from_secs(seconds[self.rng.below(4) as usize]);
        // Without HELLOs, no end would notice that the other has crashed.
        let hello_interval = one_of([1, 3, 10, 20]);
        let idle_tunnel = one_of([0, 3, 20, 60]);
        self.world.with(self.nodes[n], |endpoint, now| {
            let config = Config {
                hello_interval,
                idle_tunnel,
                ..endpoint.config().clone()
            };
            endpoint.set_config(config, now);
        });
    }

    fn command(&mut self) {
        let n = self.rng.below(3) as usize;
        let node = self.nodes[n];
        let (tunnel, session) = (self.tunnels(n), self.sessions(n));
        let (tunnel, session) = (self.pick(&tunnel), self.pick(&session));
        match self.rng.below(100) {
            0..20 => self.open_tunnel(n),
            20..55 => {
                if let Some(tunnel) = tunnel {
                    self.open_session(n, tunnel);
                }
            }
            55..65 => {
                if let Some(tunnel) = tunnel {
                    self.world.with(node, |e, now| e.close_tunnel(tunnel, now));
                }
            }
            65..80 => {
                if let Some(session) = session {
                    self.world
                        .with(node, |e, now| e.close_session(session, now));
                }
            }
            80..90 => {
                if let Some(session) = session {
                    let errors = CallErrors::default();
                    self.world.with(node, |e, _| {
                        e.send_wan_errors(session, errors);
                        e.send_link_info(session, (0, 0), true);
                    });
                }
            }
            90..92 => {
                if let Some(tunnel) = tunnel {
                    self.world.with(node, |e, _| e.send_hello(tunnel));
                }
            }
            92 => self.reconfigure(n),
            93..96 => self.world.cut(node, self.nodes[(n + 1) % 3]),
            96..99 => self.world.heal(node, self.nodes[(n + 1) % 3]),
            _ => self.crash(n),
        }
    }

    fn open_tunnel(&mut self, n: usize) {
        let peer = (n + 1 + self.rng.below(2) as usize) % 3;
        let version = self.pick(&[Version::V2, Version::V3]).expect("two");
        let route = Route {
            peer: sim::addr(ADDRESSES[peer]),
            local: None,
            socket: 0,
        };
        let open = OpenTunnel { route, version };
        self.world
            .with(self.nodes[n], |e, now| e.open_tunnel(open, now))
            .expect("nothing is full");
    }

    fn open_session(&mut self, n: usize, tunnel: TunnelKey) {
        let direction = [Direction::Incoming, Direction::Outgoing];
        let call = Call {
            direction: self.pick(&direction).expect("two"),
            ..Call::default()
        };
        let opened = self
            .world
            .with(self.nodes[n], |e, now| e.open_session(tunnel, call, now));
        self.asked[n].extend(opened);
    }

    /// The machine crashes silently, and a new one takes its place.
    fn crash(&mut self, n: usize) {
        self.lives += 1;
        account(&self.world.take_events(self.nodes[n]), &[], false);
        self.asked[n].clear();
        let seed = [100 + self.lives; 32];
        let machine = Endpoint::new(config(self.world.seed(), n), seed);
        self.world.replace(self.nodes[n], machine);
    }

    /// Each end can be made again of the values of its tunnels and sessions, and then has the same values.
    fn check_values(&mut self) {
        for node in self.nodes {
            self.world.with(node, |endpoint, _| {
                values::copy(endpoint);
            });
        }
    }

    /// A session established at one end is established at the other, with the ids swapped.
    fn check_agreement(&self) {
        for (a, &node) in self.nodes.iter().enumerate() {
            let ours = &self.world[node];
            for tunnel in tunnels(ours) {
                assert_eq!(tunnel.state, TunnelState::Established, "{tunnel:?}");
                let peer = tunnel.route.peer.to_string();
                let b = ADDRESSES.iter().position(|a| *a == peer).expect("a node");
                let theirs = &self.world[self.nodes[b]];
                let mut twins = tunnels(theirs).filter(|t| {
                    (t.id, t.remote_id, t.version) == (tunnel.remote_id, tunnel.id, tunnel.version)
                });
                let twin = twins
                    .next()
                    .unwrap_or_else(|| panic!("no twin of {tunnel:?}"));
                assert_ne!(twin.originated, tunnel.originated);
                assert_eq!(twin.sessions, tunnel.sessions, "{tunnel:?} {twin:?}");
                assert!(twin.peer_window >= 1 && twin.host_name == ADDRESSES[a]);
            }
            for session in sessions(ours) {
                self.check_session(a, &session);
            }
        }
    }

    fn check_session(&self, a: usize, session: &SessionView<'_>) {
        assert_eq!(session.state, SessionState::Established, "{session:?}");
        let tunnel = self.world[self.nodes[a]]
            .tunnel(session.tunnel)
            .expect("it is there");
        let others = (0..3).filter(|&b| b != a).flat_map(|b| {
            let node = &self.world[self.nodes[b]];
            sessions(node).map(move |s| (s, node.tunnel(s.tunnel).expect("it is there")))
        });
        let mut twins = others.filter(|(s, t)| {
            (t.id, t.remote_id) == (tunnel.remote_id, tunnel.id)
                && t.version == tunnel.version
                && (s.id, s.remote_id) == (session.remote_id, session.id)
        });
        let (twin, _) = twins
            .next()
            .unwrap_or_else(|| panic!("no twin of {session:?}"));
        assert_eq!(twin.local_cookie, session.remote_cookie);
        assert_eq!(twin.pseudowire, session.pseudowire);
    }
}

fn tunnels(endpoint: &Endpoint) -> impl Iterator<Item = TunnelView<'_>> {
    let mut cursor = 0;
    core::iter::from_fn(move || {
        let (next, view) = endpoint.next_tunnel(cursor)?;
        cursor = next;
        Some(view)
    })
}

fn sessions(endpoint: &Endpoint) -> impl Iterator<Item = SessionView<'_>> {
    let mut cursor = 0;
    core::iter::from_fn(move || {
        let (next, view) = endpoint.next_session(cursor)?;
        cursor = next;
        Some(view)
    })
}

/// Checks that every event occurs once and in order; with `complete`, that every session has ended.
fn account(events: &[Event], asked: &[SessionKey], complete: bool) {
    let mut tunnels: HashMap<TunnelKey, Vec<u8>> = HashMap::new();
    let mut calls: HashMap<SessionKey, Vec<u8>> = HashMap::new();
    for event in events {
        match event {
            Event::TunnelAccepted { tunnel } => tunnels.entry(*tunnel).or_default().push(0),
            Event::TunnelUp { tunnel, .. } => tunnels.entry(*tunnel).or_default().push(1),
            Event::TunnelDown { tunnel, .. } => tunnels.entry(*tunnel).or_default().push(2),
            Event::TunnelGone { tunnel, .. } => tunnels.entry(*tunnel).or_default().push(3),
            Event::CallRequested { session } => calls.entry(*session).or_default().push(0),
            Event::SessionUp { session, .. } => calls.entry(*session).or_default().push(1),
            Event::SessionDown { session, .. } => calls.entry(*session).or_default().push(2),
            Event::WanErrors { session, .. }
            | Event::SpeedChanged { session, .. }
            | Event::LinkInfo { session, .. } => {
                let told = calls.get(session);
                // An LNS may send data before the ICCN, but not for an ended call.
                assert!(told.is_none_or(|told| !told.contains(&2)), "{event:?}");
            }
        }
    }
    for (key, told) in &tunnels {
        assert!(told.is_sorted_by(|a, b| a < b), "{key:?} {told:?}");
        let ends = told.ends_with(&[2, 3]);
        assert!(ends || !complete, "{key:?} {told:?}");
    }
    for (key, told) in &calls {
        assert!(told.is_sorted_by(|a, b| a < b), "{key:?} {told:?}");
        assert!(told.ends_with(&[2]) || !complete, "{key:?} {told:?}");
    }
    for key in asked {
        assert!(calls.contains_key(key), "{key:?} has no end");
    }
}

fn run(seed: u64, commands: u32) {
    let mut chaos = Chaos::new(seed);
    for _ in 0..commands {
        let pause = chaos.rng.up_to(Duration::from_secs(2));
        chaos.world.run_for(pause);
        chaos.command();
        chaos.check_values();
    }
    // Long enough for every HELLO to detect a lost peer.
    let nodes = chaos.nodes;
    for (a, b) in [(0, 1), (1, 2), (2, 0)] {
        chaos.world.heal(nodes[a], nodes[b]);
    }
    chaos.world.set_default_link(Link::CLEAN);
    chaos.world.run_for(Duration::from_secs(200));
    chaos.check_agreement();
    for node in nodes {
        // At most one HELLO per tunnel is in flight.
        let counts = chaos.world[node].counts();
        assert!(counts.messages <= counts.tunnels, "{counts:?}");
        chaos
            .world
            .with(node, |endpoint, now| endpoint.shut_down(now));
    }
    chaos.world.run_for(Duration::from_secs(100));
    for (n, node) in nodes.into_iter().enumerate() {
        assert_eq!(chaos.world[node].counts(), Default::default(), "node {n}");
        assert!(chaos.world[node].is_quiet());
        account(&chaos.world.take_events(node), &chaos.asked[n], true);
    }
}

#[test]
fn after_random_commands_and_crashes_the_ends_agree_and_nothing_is_left() {
    sim::seeds(200, |seed| run(seed, 60));
}

#[test]
fn a_long_run_of_random_commands_leaves_nothing_either() {
    sim::seeds(4, |seed| run(1_000 + seed, 1_500));
}
