//! Seeded simulations of accounting. Subscribers connect and disconnect while servers lose, delay,
//! repeat and corrupt packets, crash and restart, and while the edge itself is killed. Afterwards
//! every connected subscriber had been accepted by a server, and servers have every record that was
//! on disk or in flight.
//!
//! The edge, the RADIUS client, the delivery and the store are the daemon's own, with their glue;
//! only sockets and time are simulated. The store commits when the simulation says so, and a kill
//! is a copy of its file.

mod books;
mod node;
mod server;

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use base::{Duration, Redacted, Route};
use edge::{Dial, Edge, End, SubscriberKey};
use l2tp::{Call, OpenTunnel, TunnelKey};
use ppp::Credentials;
use sim::{Link, NodeHandle, Rng, World};
use wire::l2tp::Version;

use books::Books;
use node::{Node, RADIUS_SOCKETS};
use server::{Mood, SECRET, Server};

const LNS: &str = "192.0.2.100:1701";
const LAC: &str = "192.0.2.1:1701";
const SERVERS: usize = 3;
/// The start of the virtual time, in seconds since 1970.
const EPOCH_S: u64 = 1_700_000_000;

/// The state of the run of one seed.
struct Storm {
    world: World,
    lns: NodeHandle<Node>,
    lac: NodeHandle<Client>,
    servers: Vec<NodeHandle<Server>>,
    tunnel: TunnelKey,
    books: Rc<RefCell<Books>>,
    rng: Rng,
    directory: Directory,
    seed: u64,
}

/// Half of the seeds run without a store. Records that no server has are then lost when the edge is
/// killed.
fn has_store(seed: u64) -> bool {
    seed.is_multiple_of(2)
}

/// A directory for stores, removed after the run.
struct Directory(PathBuf);

impl Directory {
    fn new(seed: u64) -> Self {
        let name = format!("headend-storm-{}-{seed}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn store(&self, life: u32) -> PathBuf {
        self.0.join(format!("{life}.redb"))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A LAC whose sessions are clients.
struct Client {
    edge: Edge,
}

struct Nothing;

impl edge::Inside for Nothing {
    fn packet(&mut self, _: &[u8]) {}
}

impl base::Machine for Client {
    type Input<'a> = base::Datagram<'a>;
    type Transmit = Route;
    type Event = edge::Event;
    type Discard = core::convert::Infallible;

    fn handle(
        &mut self,
        input: base::Datagram<'_>,
        now: base::Instant,
    ) -> Result<(), Self::Discard> {
        self.edge
            .receive(input.route, input.bytes, now, &mut Nothing);
        Ok(())
    }

    fn handle_timeout(&mut self, now: base::Instant) {
        self.edge.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: base::Instant, out: &mut Vec<u8>) -> Option<Route> {
        self.edge.poll_transmit(now, out)
    }

    fn poll_event(&mut self) -> Option<edge::Event> {
        self.edge.poll_event()
    }

    fn poll_timeout(&self) -> Option<(base::Instant, &'static str)> {
        self.edge.poll_timeout()
    }
}

fn endpoint(accept: bool, seed: u8) -> l2tp::Endpoint {
    let config = l2tp::Config {
        host_name: "a host".into(),
        accept,
        hello_interval: Duration::from_secs(20),
        ..l2tp::Config::default()
    };
    l2tp::Endpoint::new(config, [seed; 32])
}

fn open(client: &mut Client, now: base::Instant) -> TunnelKey {
    let peer = sim::addr(LNS);
    let route = Route {
        peer,
        local: None,
        socket: 0,
    };
    let version = Version::V2;
    let open = OpenTunnel { route, version };
    let tunnel = client.edge.endpoint_mut().open_tunnel(open, now);
    tunnel.expect("nothing is full")
}

/// A network path to the servers, in most cases a bad one.
fn link(rng: &mut Rng) -> Link {
    Link {
        loss: [0.0, 0.05, 0.2, 0.4][rng.below(4) as usize],
        duplicate: [0.0, 0.2][rng.below(2) as usize],
        reorder: [0.0, 0.2][rng.below(2) as usize],
        reorder_delay: Duration::from_millis(1 + rng.below(4_000)),
        ..Link::CLEAN
    }
}

impl Storm {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        let mut rng = world.rng("commands");
        let directory = Directory::new(seed);
        let books = Rc::new(RefCell::new(Books::default()));
        let servers = (0..SERVERS).map(|n| {
            let rng = Rng::stream(seed, &["server", &n.to_string()]);
            let server = Server::new(rng, Rc::clone(&books));
            let addresses = [server::address(n, 1812), server::address(n, 1813)];
            world.add(format!("server{n}"), server, addresses)
        });
        let servers: Vec<_> = servers.collect();
        let now = world.now();
        let store = has_store(seed).then(|| directory.store(0));
        let node = Node::new(seed, 0, store.as_deref(), Rc::clone(&books), now);
        let lns = world.add("lns", node, [sim::addr(LNS)]);
        for n in 0..RADIUS_SOCKETS {
            world.bind(lns, sim::addr(&format!("192.0.2.100:{}", 20_000 + n)));
        }
        let none = aaa::Pools::new(Vec::new(), Vec::new(), 0).expect("no pools");
        let mut client = Client {
            edge: Edge::new(edge::Config::default(), endpoint(false, 9), none, [9; 32]),
        };
        let tunnel = open(&mut client, now);
        let lac = world.add("lac", client, [sim::addr(LAC)]);
        for &server in &servers {
            let link = link(&mut rng);
            world.set_link(lns, server, link);
        }
        Self {
            world,
            lns,
            lac,
            servers,
            tunnel,
            books,
            rng,
            directory,
            seed,
        }
    }

    fn command(&mut self) {
        match self.rng.below(100) {
            0..45 => self.dial(),
            45..60 => self.drop_one(),
            60..62 => {
                let tunnel = self.tunnel;
                self.tunnel = self.world.with(self.lac, |lac, now| {
                    lac.edge.endpoint_mut().close_tunnel(tunnel, now);
                    open(lac, now)
                });
            }
            62..86 => {
                let mood = Mood::ALL[self.rng.below(Mood::ALL.len() as u64) as usize];
                let server = self.any_server();
                self.world.with(server, |server, _| server.mood = mood);
            }
            86..96 => {
                let link = link(&mut self.rng);
                let server = self.any_server();
                self.world.set_link(self.lns, server, link);
            }
            _ => self.kill(),
        }
    }

    fn any_server(&mut self) -> NodeHandle<Server> {
        self.servers[self.rng.below(SERVERS as u64) as usize]
    }

    fn dial(&mut self) {
        for _ in 0..=self.rng.below(2) {
            let user = self.rng.below(20);
            let secret: &[u8] = if self.rng.chance(0.9) {
                b"sesame"
            } else {
                b"guess"
            };
            let credentials = Credentials {
                name: format!("user{user}").into_bytes().into(),
                secret: Redacted::new(secret.into()),
            };
            let dial = Dial {
                credentials: Some(credentials),
                ipv4: true,
                ipv6: false,
                networks: Vec::new(),
            };
            let tunnel = self.tunnel;
            self.world.with(self.lac, |lac, now| {
                let endpoint = lac.edge.endpoint_mut();
                if let Ok(session) = endpoint.open_session(tunnel, Call::default(), now) {
                    lac.edge.dial(session, dial, now);
                }
            });
        }
    }

    fn drop_one(&mut self) {
        let keys = keys(&self.world[self.lns].edge);
        if keys.is_empty() {
            return;
        }
        let key = keys[self.rng.below(keys.len() as u64) as usize];
        self.world.with(self.lns, |lns, now| {
            lns.edge.drop_subscriber(key, End::Administrator, now);
        });
    }

    /// The edge crashes without sending anything; a new one starts from the committed store.
    fn kill(&mut self) {
        let life = self.books.borrow_mut().killed();
        let store = has_store(self.seed).then(|| self.directory.store(life));
        if let Some(store) = &store {
            std::fs::copy(self.directory.store(life - 1), store).unwrap();
        }
        let now = self.world.now();
        let books = Rc::clone(&self.books);
        let node = Node::new(self.seed, life, store.as_deref(), books, now);
        drop(self.world.replace(self.lns, node));
        self.tunnel = self.world.with(self.lac, open);
    }

    /// Ends the storm: servers recover, every subscriber disconnects, and waiting records have time
    /// to arrive.
    fn finish(mut self) {
        for &server in &self.servers {
            self.world
                .with(server, |server, _| server.mood = Mood::Good);
            self.world.set_link(self.lns, server, Link::CLEAN);
        }
        self.world.run_for(Duration::from_secs(60));
        self.world.with(self.lns, |lns, now| {
            lns.edge.shut_down(now);
            lns.note_off(now);
        });
        self.world.run_for(Duration::from_secs(900));
        self.world[self.lns].assert_idle();
        self.books.borrow().assert_whole();
        let damaged = std::fs::read_dir(&self.directory.0).unwrap();
        for entry in damaged {
            let name = entry.unwrap().file_name();
            assert!(!name.to_string_lossy().contains("damaged"), "{name:?}");
        }
    }
}

fn keys(edge: &crate::served::Edge) -> Vec<SubscriberKey> {
    let mut cursor = 0;
    let next = || {
        let (next, view) = edge.next_subscriber(cursor)?;
        cursor = next;
        Some(view.key)
    };
    core::iter::from_fn(next).collect()
}

fn run(seed: u64) -> books::Seen {
    let mut storm = Storm::new(seed);
    for _ in 0..16 {
        let pause = storm.rng.up_to(Duration::from_secs(6));
        storm.world.run_for(pause);
        storm.command();
    }
    let books = Rc::clone(&storm.books);
    storm.finish();
    let mut seen = books.borrow().seen;
    seen.lost = books.borrow().lost();
    seen
}

/// Runs `count` seeds starting at `first`, and prints what they covered.
fn storms(first: u64, count: u64) {
    let seen = RefCell::new(books::Seen::default());
    sim::seeds(count, |seed| seen.borrow_mut().add(run(first + seed)));
    let seen = seen.into_inner();
    println!("{seen:?}");
    assert!(seen.closed > count / 2, "{seen:?}");
}

#[test]
fn whatever_servers_do_and_however_often_we_are_killed_no_account_is_lost() {
    storms(0, 150);
}

#[test]
fn nor_is_one_in_other_storms() {
    storms(1_000_000, 150);
}
