//! The endpoint under test, and a peer that a test plays by hand.

use core::net::SocketAddr;

use base::{Datagram, Duration, Instant, Machine, Redacted, Route};
use l2tp::{
    Call, Config, Counts, Discard, Endpoint, Event, OpenTunnel, Pseudowire, SessionEnd, SessionKey,
    TunnelEnd, TunnelKey,
};
use sim::{Link, NodeHandle, Probe, World};
use wire::l2tp::Version;

mod body;
mod got;
mod peer;
pub(crate) mod values;

pub(crate) use body::{Body, describe};
pub(crate) use got::{Got, kinds, only, only_ack};
pub(crate) use peer::Peer;

/// The peer's address.
pub(crate) const PEER: SocketAddr = sim::ADDRESS_A;

/// The address of the endpoint under test.
pub(crate) const US: SocketAddr = sim::ADDRESS_B;

/// The same as text, for worlds of many nodes.
pub(crate) const LNS: &str = "192.0.2.2:1701";

/// A link without delay: answers arrive at the instant of the request, so measured times are those of timers
/// alone.
pub(crate) const INSTANT_LINK: Link = Link {
    delay: Duration::ZERO,
    ..Link::CLEAN
};

/// An endpoint that accepts requests.
pub(crate) fn lns_config() -> Config {
    Config {
        host_name: "lns".into(),
        accept: true,
        pseudowires: ALL_PSEUDOWIRES.to_vec(),
        ..Config::default()
    }
}

/// The types that an endpoint can set up; by default it takes only those whose frames the daemon carries.
pub(crate) const ALL_PSEUDOWIRES: [Pseudowire; 3] =
    [Pseudowire::Ppp, Pseudowire::Ethernet, Pseudowire::Vlan];

/// An endpoint that sends requests.
pub(crate) fn lac_config() -> Config {
    Config {
        host_name: "lac".into(),
        pseudowires: ALL_PSEUDOWIRES.to_vec(),
        ..Config::default()
    }
}

/// The shared secret of the tests that use one.
pub(crate) const SECRET: &[u8] = b"a shared secret";

/// `config` with [`SECRET`].
pub(crate) fn with_secret(config: Config) -> Config {
    Config {
        secret: Some(Redacted::new(SECRET.to_vec())),
        ..config
    }
}

/// The default destination of our tunnels.
pub(crate) fn to_peer(version: Version) -> OpenTunnel {
    open_to(PEER, version)
}

/// A tunnel to `peer` from socket 0.
pub(crate) fn open_to(peer: SocketAddr, version: Version) -> OpenTunnel {
    let route = Route {
        peer,
        local: None,
        socket: 0,
    };
    OpenTunnel { route, version }
}

/// The endpoint under test and, at [`PEER`], a peer that a test plays.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) us: NodeHandle<Endpoint>,
    pub(crate) probe: NodeHandle<Probe>,
}

impl Stage {
    pub(crate) fn new(config: Config) -> Self {
        let mut world = World::new(1);
        world.set_decoder(describe);
        world.set_default_link(INSTANT_LINK);
        let us = world.add("us", Endpoint::new(config, [2; 32]), [US]);
        let probe = world.add("peer", Probe::default(), [PEER]);
        Self { world, us, probe }
    }

    pub(crate) fn lns() -> Self {
        Self::new(lns_config())
    }

    pub(crate) fn lac() -> Self {
        Self::new(lac_config())
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.world[self.us]
    }

    pub(crate) fn counts(&self) -> Counts {
        self.endpoint().counts()
    }

    pub(crate) fn discarded(&self, why: Discard) -> u64 {
        self.endpoint().discarded(why)
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        counter(self.endpoint(), name)
    }

    pub(crate) fn with<R>(&mut self, call: impl FnOnce(&mut Endpoint, Instant) -> R) -> R {
        let result = self.world.with(self.us, call);
        self.settle();
        result
    }

    /// Delivers everything that is due by now.
    fn settle(&mut self) {
        self.world.run_until(self.world.now());
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        self.world.run_for(span);
    }

    pub(crate) fn run_secs(&mut self, seconds: u64) {
        self.world.run_for(Duration::from_secs(seconds));
    }

    /// Sends a datagram from [`PEER`].
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.world
            .with(self.probe, |probe, _| probe.send(US, bytes));
        self.settle();
    }

    /// Delivers a datagram with the source address `from`.
    pub(crate) fn send_from(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.world.inject(from, US, bytes);
        self.settle();
    }

    /// Delivers datagrams from [`PEER`] as one batch, before the endpoint is drained.
    pub(crate) fn send_batch(&mut self, datagrams: &[Vec<u8>]) {
        self.with(|us, now| {
            for bytes in datagrams {
                let route = Route {
                    peer: PEER,
                    local: Some(US.ip()),
                    socket: 0,
                };
                us.handle(Datagram { route, bytes }, now)
                    .expect("the batch is good");
            }
        });
    }

    /// The messages that [`PEER`] received since the last call.
    pub(crate) fn hear(&mut self) -> Vec<Got> {
        let events = self.world.take_timed_events(self.probe);
        events
            .into_iter()
            .map(|(at, heard)| Got::read(at, heard.from(), &heard.bytes))
            .collect()
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        self.world.take_events(self.us)
    }

    /// Why the last tunnel ended.
    #[track_caller]
    pub(crate) fn tunnel_end(&self) -> TunnelEnd {
        let ended = self.endpoint().ended_tunnel(0);
        ended.expect("a tunnel ended").reason.clone()
    }

    /// Why the last session ended.
    #[track_caller]
    pub(crate) fn session_end(&self) -> SessionEnd {
        let ended = self.endpoint().ended_session(0);
        ended.expect("a session ended").reason.clone()
    }

    pub(crate) fn open_tunnel(&mut self, version: Version) -> TunnelKey {
        self.with(|us, now| us.open_tunnel(to_peer(version), now))
            .expect("nothing is full")
    }

    pub(crate) fn open_session(&mut self, tunnel: TunnelKey, call: Call) -> SessionKey {
        self.with(|us, now| us.open_session(tunnel, call, now))
            .expect("nothing is full")
    }

    /// The only live tunnel.
    #[track_caller]
    pub(crate) fn tunnel(&self) -> TunnelKey {
        assert_eq!(self.counts().tunnels, 1);
        self.endpoint().next_tunnel(0).expect("a tunnel").1.key
    }

    /// The only session.
    #[track_caller]
    pub(crate) fn session(&self) -> SessionKey {
        assert_eq!(self.counts().sessions, 1);
        self.endpoint().next_session(0).expect("a session").1.key
    }
}

/// The value of the counter called `name`.
pub(crate) fn counter(endpoint: &Endpoint, name: &str) -> u64 {
    let found = endpoint.counters().find(|(n, _)| n.to_string() == name);
    found.unwrap_or_else(|| panic!("no counter {name}")).1
}
