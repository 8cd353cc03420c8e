//! Many clients that all reconnect at once, whichever side went away.

use base::{Duration, Instant, Route};
use l2tp::{Call, Config, Endpoint, Event, OpenTunnel};
use sim::{Link, NodeHandle, World};
use wire::l2tp::{MessageType as M, Version};

use crate::common::{
    LNS, Peer, Stage, describe, lac_config, lns_config, only, only_ack, with_secret,
};

/// An LNS, and clients that redial whenever their tunnel ends.
struct Village {
    world: World,
    lns: NodeHandle<Endpoint>,
    clients: Vec<NodeHandle<Endpoint>>,
    version: Version,
    secret: bool,
    crashes: u8,
}

const CLIENTS: u32 = 30;

fn dial(client: &mut Endpoint, version: Version, now: Instant) {
    let route = Route {
        peer: sim::addr(LNS),
        local: None,
        socket: 0,
    };
    let tunnel = client
        .open_tunnel(OpenTunnel { route, version }, now)
        .expect("nothing is full");
    client
        .open_session(tunnel, Call::default(), now)
        .expect("nothing is full");
}

impl Village {
    fn new(seed: u64, version: Version, secret: bool, link: Link) -> Self {
        let mut world = World::new(seed);
        world.set_decoder(describe);
        world.set_default_link(link);
        let mut village = Self {
            lns: world.add(
                "lns",
                Endpoint::new(config(lns_config(), secret), [9; 32]),
                [LNS],
            ),
            clients: Vec::new(),
            world,
            version,
            secret,
            crashes: 0,
        };
        for n in 0..CLIENTS {
            let address = format!("192.0.2.{}:1701", 100 + n);
            let machine = village.client(n);
            let name = format!("client {n}");
            let client = village.world.add(name, machine, [address.as_str()]);
            village.world.on_event(client, move |client, event, now| {
                if let Event::TunnelDown { .. } = event {
                    dial(client, version, now);
                }
            });
            village.clients.push(client);
        }
        village
    }

    /// A client at its start: always with the same seed, so that it requests with the same ids. Only its nonces
    /// differ, because a repeated one would be treated as a replay.
    fn client(&self, n: u32) -> Endpoint {
        let mut seed = [n as u8 + 1; 32];
        if self.secret && self.version == Version::V3 {
            seed[31] = self.crashes;
        }
        Endpoint::new(config(lac_config(), self.secret), seed)
    }

    fn dial_all(&mut self) {
        for client in self.clients.clone() {
            let version = self.version;
            self.world.with(client, |c, now| dial(c, version, now));
        }
    }

    /// All clients crash silently and return at once.
    fn crash_all(&mut self) {
        self.crashes += 1;
        for n in 0..CLIENTS {
            let machine = self.client(n);
            self.world.replace(self.clients[n as usize], machine);
        }
        self.dial_all();
    }

    /// Each client has one tunnel and one session, and the LNS has as many.
    fn is_well(&self) -> bool {
        let well = |endpoint: &Endpoint, each: u32| {
            let counts = endpoint.counts();
            counts.established == each && counts.sessions_established == each
        };
        let clients = self.clients.iter().all(|&c| well(&self.world[c], 1));
        clients && well(&self.world[self.lns], CLIENTS)
    }

    #[track_caller]
    fn expect_well(&mut self, seconds: u64) {
        let end = self.world.now() + Duration::from_secs(seconds);
        while !self.is_well() && self.world.now() < end {
            self.world.run_for(Duration::from_secs(1));
        }
        let counts = self.world[self.lns].counts();
        assert!(self.is_well(), "not well after {seconds} s: {counts:?}");
    }
}

fn config(config: Config, secret: bool) -> Config {
    let config = Config {
        hello_interval: Duration::from_secs(20),
        ..config
    };
    if secret { with_secret(config) } else { config }
}

fn villages(seeds: u64, link: Link, run: impl Fn(&mut Village)) {
    sim::seeds(seeds, |seed| {
        let version = [Version::V2, Version::V3][seed as usize % 2];
        let mut village = Village::new(seed, version, seed % 4 >= 2, link);
        village.dial_all();
        village.expect_well(40);
        run(&mut village);
    });
}

const SHAKY: Link = Link {
    loss: 0.02,
    ..Link::ROUGH
};

/// The LNS restarts: each client detects it by HELLO, and redials. "xl2tpd users report they never do."
#[test]
fn b27_thirty_clients_recover_after_the_lns_restarts() {
    villages(4, SHAKY, |village| {
        village.world.run_for(Duration::from_secs(100));
        let config = config(lns_config(), village.secret);
        let restarted = Endpoint::new(config, [77; 32]);
        village.world.replace(village.lns, restarted);
        village.expect_well(20 + 31 + 40);
    });
}

/// All clients restart at once without a StopCCN, and request with their previous ids. The LNS still has all of
/// their tunnels.
#[test]
fn b27_thirty_clients_recover_after_they_crash_and_ask_with_the_same_ids() {
    villages(4, SHAKY, |village| {
        for _ in 0..2 {
            village.world.run_for(Duration::from_secs(30));
            village.crash_all();
            // With the same id, the old tunnel is removed at once; with another, after its HELLO goes
            // unanswered.
            let fresh = village.secret && village.version == Version::V3;
            village.expect_well(if fresh { 20 + 31 + 40 } else { 40 });
            let lns = &village.world[village.lns];
            assert_eq!(lns.counts().tunnels, CLIENTS, "no tunnel is left over");
        }
    });
}

/// The same directly after the tunnels were established, when the same request could also be a late duplicate:
/// the doubt lasts eight seconds.
#[test]
fn b27_thirty_clients_recover_after_they_crash_as_soon_as_they_are_up() {
    villages(4, Link::CLEAN, |village| {
        village.crash_all();
        village.expect_well(90);
        assert_eq!(village.world[village.lns].counts().tunnels, CLIENTS);
    });
}

#[test]
fn b27_thirty_clients_recover_after_the_network_was_away() {
    villages(4, SHAKY, |village| {
        village.world.isolate(village.lns);
        village.world.run_for(Duration::from_secs(90));
        assert_eq!(village.world[village.lns].counts().established, 0);
        village.world.rejoin(village.lns);
        village.expect_well(31 + 40);
    });
}

/// The LNS closes all tunnels, and all clients redial at the same instant.
#[test]
fn b27_thirty_clients_recover_after_the_lns_closed_their_tunnels() {
    villages(4, SHAKY, |village| {
        village.world.with(village.lns, |lns, now| {
            let mut cursor = 0;
            while let Some((next, tunnel)) = lns.next_tunnel(cursor) {
                cursor = next;
                let key = tunnel.key;
                lns.close_tunnel(key, now);
            }
        });
        village.expect_well(60);
    });
}

/// A client that gave up during set-up may request again with the same bytes.
#[test]
fn b27_a_request_that_was_given_up_may_be_made_again() {
    for peer in [Peer::v2, Peer::v3] {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let request = lac.packet(0, &lac.clone().sccrq());
        stage.send(&request);
        only(&lac.hear(&mut stage), M::Sccrp);
        lac.nr = 0;
        let stop = lac.stop_ccn(1);
        only_ack(&lac.say(&mut stage, &stop));
        // A copy of the request that was in flight all the time is not a new one.
        stage.run_secs(7);
        stage.send(&request);
        only_ack(&stage.hear());
        assert_eq!(stage.counts().tunnels, 0);
        // After that time it is a new one.
        stage.run_secs(2);
        let mut lac = peer();
        lac.connect(&mut stage);
        assert_eq!(stage.counts().established, 1);
    }
}
