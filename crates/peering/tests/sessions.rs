//! Speakers on loopback: sessions are established, also many at once, and a stalled peer affects only itself.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use base::{Duration, Instant};
use bgp::{DynamicConfig, Event, PeerConfig, PeerSettings, RemoteAsn, Speaker, SpeakerConfig};
use peering::{Buffers, Listen, Peering};
use reactor::{PollerKind, Reactor, StoreKind};

/// One of several routers on a reactor.
struct Node {
    speaker: Speaker,
    peering: Peering,
    ups: usize,
    downs: usize,
}

struct World {
    reactor: Reactor,
    buffers: Buffers,
    nodes: Vec<Node>,
}

fn settings() -> PeerSettings {
    PeerSettings {
        hold_time_s: 3,
        connect_retry: Duration::from_millis(200),
        ..PeerSettings::default()
    }
}

impl World {
    fn new() -> Self {
        Self {
            reactor: Reactor::new(PollerKind::Epoll, StoreKind::Slab).unwrap(),
            buffers: Buffers::new(),
            nodes: Vec::new(),
        }
    }

    /// A router with its own address; returns where it listens.
    fn add(&mut self, address: Ipv4Addr, config: impl FnOnce(&mut SpeakerConfig)) -> SocketAddr {
        let number = self.nodes.len() as u64;
        let mut made = SpeakerConfig::new(64_512 + number as u32, address);
        config(&mut made);
        let listen = Listen {
            address: SocketAddr::new(IpAddr::V4(address), 0),
            is_optional: false,
        };
        let opened = Peering::open(number << 32, &[listen], Vec::new(), &mut self.reactor);
        let peering = opened.unwrap();
        let local = peering.listening().next().unwrap();
        let mut speaker = Speaker::new(made, [number as u8; 32]);
        speaker.start(reactor::clock::now());
        self.nodes.push(Node {
            speaker,
            peering,
            ups: 0,
            downs: 0,
        });
        local
    }

    fn turn(&mut self) {
        let due = self
            .nodes
            .iter()
            .filter_map(|node| node.speaker.poll_timeout());
        let due = due.map(|(at, _)| at).min();
        let soon = reactor::clock::now() + Duration::from_millis(20);
        let now = self
            .reactor
            .wait(Some(due.map_or(soon, |due| due.min(soon))))
            .unwrap();
        self.buffers.begin();
        while let Some(ready) = self.reactor.next_ready() {
            let node = &mut self.nodes[(ready.user >> 32) as usize];
            let (speaker, reactor) = (&mut node.speaker, &mut self.reactor);
            node.peering
                .ready(ready, speaker, &mut self.buffers, reactor, now);
        }
        for node in &mut self.nodes {
            node.turn(&mut self.buffers, &mut self.reactor, now);
        }
    }

    fn until(&mut self, what: &str, mut is_done: impl FnMut(&[Node]) -> bool) {
        // More octets than a session needs: only a fault comes near it.
        let end = reactor::clock::now() + Duration::from_secs(30);
        while !is_done(&self.nodes) {
            assert!(reactor::clock::now() < end, "{what} did not come about");
            self.turn();
        }
    }
}

impl Node {
    fn turn(&mut self, buffers: &mut Buffers, reactor: &mut Reactor, now: Instant) {
        let Self {
            speaker, peering, ..
        } = self;
        speaker.drained(reactor.complete_until());
        speaker.handle_timeout(now);
        peering.tend(reactor, now);
        speaker.work(1_000, now);
        let slice = reactor.slice(Duration::from_millis(2));
        peering.write(speaker, buffers, reactor, (now, slice));
        while let Some(event) = speaker.poll_event() {
            match peering.act(event, speaker, reactor, now) {
                Some(Event::Up { .. }) => self.ups += 1,
                Some(Event::Down { .. }) => self.downs += 1,
                _ => {}
            }
        }
    }
}

fn server(config: &mut SpeakerConfig) {
    config.dynamic.push(DynamicConfig {
        prefix: "127.0.0.0/8".parse().unwrap(),
        remote_asn: RemoteAsn::Any,
        peers_max: 10_000,
        settings: Arc::new(settings()),
    });
}

fn towards(server: SocketAddr, from: Ipv4Addr) -> impl FnOnce(&mut SpeakerConfig) {
    move |config| {
        let mut peer = PeerConfig::new(server.ip(), RemoteAsn::Any, Arc::new(settings()));
        peer.port = server.port();
        peer.local = Some(IpAddr::V4(from));
        config.peers.push(peer);
    }
}

#[test]
fn sessions_come_up_and_stay_up_on_keepalives() {
    let mut world = World::new();
    let address = world.add(Ipv4Addr::new(127, 77, 0, 1), server);
    for host in 2..=60 {
        let from = Ipv4Addr::new(127, 77, 0, host);
        world.add(from, towards(address, from));
    }
    world.until("59 sessions", |nodes| nodes[0].ups == 59);
    let begun = reactor::clock::now();
    // Longer than the hold time.
    world.until("four seconds", |_| {
        reactor::clock::now().since(begun) > Duration::from_secs(4)
    });
    assert!(world.nodes.iter().all(|node| node.downs == 0));
    assert_eq!(world.nodes[0].speaker.established(), 59);
    assert_eq!(world.nodes[0].peering.counts().connections, 59);
}

#[test]
fn a_peer_that_ends_in_the_middle_of_a_message_is_gone_and_may_come_again() {
    let mut world = World::new();
    let address = world.add(Ipv4Addr::new(127, 77, 1, 1), server);
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(&[0xff; 17]).unwrap();
    world.until("a connection", |nodes| {
        nodes[0].peering.counts().connections == 1
    });
    drop(stream);
    world.until("its end", |nodes| {
        nodes[0].peering.counts().connections == 0
    });
    let from = Ipv4Addr::new(127, 77, 1, 2);
    world.add(from, towards(address, from));
    world.until("a session", |nodes| nodes[0].ups == 1);
}

#[test]
fn a_notification_reaches_a_peer_that_sends_without_end() {
    use std::io::Read;
    let mut world = World::new();
    let address = world.add(Ipv4Addr::new(127, 77, 2, 1), server);
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    // No marker: a header error, and more behind it than the speaker reads.
    stream.write_all(&[0; 100_000]).unwrap();
    let reader = std::thread::spawn(move || {
        let mut octets = Vec::new();
        let _ = stream.read_to_end(&mut octets);
        octets
    });
    world.until("the end of it", |_| reader.is_finished());
    let octets = reader.join().unwrap();
    // OPEN, then NOTIFICATION: message header error, connection not synchronised (RFC 4271, 6.1).
    assert!(octets.len() >= 21, "{octets:?}");
    assert_eq!(octets[18], 1);
    assert!(
        octets.windows(3).any(|part| part == [3, 1, 1]),
        "{octets:?}"
    );
}

#[test]
fn every_keepalive_leaves_in_a_turn_that_has_time_for_one_peers_routes_alone() {
    let mut world = World::new();
    let address = world.add(Ipv4Addr::new(127, 77, 3, 1), |config| {
        server(config);
        config.dynamic[0].settings = Arc::new(PeerSettings {
            export: Some(bgp::policy::Policy::accept()),
            ..settings()
        });
    });
    for host in 2..=20 {
        let from = Ipv4Addr::new(127, 77, 3, host);
        world.add(from, towards(address, from));
    }
    world.until("19 sessions", |nodes| nodes[0].ups == 19);
    let World {
        reactor,
        buffers,
        nodes,
    } = &mut world;
    let Node {
        speaker, peering, ..
    } = &mut nodes[0];
    let now = reactor.wait(Some(reactor::clock::now())).unwrap();
    for n in 0..20_000u32 {
        let prefix = wire::bgp::Prefix::v4(0x0a00_0000 + (n << 8), 24);
        speaker.originate(prefix, &bgp::rib::LocalRoute::default());
    }
    while speaker.work(1_000, now) {}
    // All KEEPALIVEs are due, and every peer is owed 20,000 routes.
    let later = now + Duration::from_millis(1_400);
    speaker.handle_timeout(later);
    let over = reactor::Slice::until(Instant::ZERO);
    let before = peering.counts().octets_out;
    let writes = peering.write(speaker, buffers, reactor, (later, over));
    assert_eq!(writes, 19 + 1);
    let octets = peering.counts().octets_out - before;
    assert!(octets > 19 * 19 + 32_000, "a share of the routes: {octets}");
    assert!(octets < 19 * 19 + 100_000, "of one peer alone: {octets}");
    assert!(
        peering.has_work(),
        "the others are served in the next turns"
    );
}

#[test]
fn input_that_no_turn_had_time_for_waits_and_expires_no_hold_timer() {
    let mut world = World::new();
    let address = world.add(Ipv4Addr::new(127, 77, 4, 1), server);
    let from = Ipv4Addr::new(127, 77, 4, 2);
    world.add(from, towards(address, from));
    world.until("a session", |nodes| nodes[0].ups == 1 && nodes[1].ups == 1);
    // The peer's KEEPALIVE arrives, and the speaker has no time to read it before the hold time is over.
    let World {
        reactor,
        buffers,
        nodes,
    } = &mut world;
    let now = reactor::clock::now();
    let [server, peer] = &mut nodes[..] else {
        unreachable!("two nodes");
    };
    peer.speaker
        .handle_timeout(now + Duration::from_millis(1_100));
    let long = reactor::Slice::until(Instant::FAR_FUTURE);
    peer.peering
        .write(&mut peer.speaker, buffers, reactor, (now, long));
    let late = now + Duration::from_secs(4);
    reactor.wait(Some(now + Duration::from_secs(5))).unwrap();
    buffers.begin_slice(reactor::Slice::until(Instant::ZERO));
    while let Some(ready) = reactor.next_ready() {
        if ready.user >> 32 == 0 {
            let Node {
                speaker, peering, ..
            } = &mut *server;
            peering.ready(ready, speaker, buffers, reactor, late);
        }
    }
    assert!(server.peering.has_work(), "it waits to be read");
    server.speaker.drained(late);
    server.speaker.handle_timeout(late);
    assert_eq!(server.speaker.established(), 1);
    buffers.begin_slice(long);
    let Node {
        speaker, peering, ..
    } = server;
    assert!(peering.read_waiting(speaker, buffers, reactor, late));
    speaker.drained(late);
    assert!(!peering.has_work());
    assert_eq!(speaker.established(), 1);
}
