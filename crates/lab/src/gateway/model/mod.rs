//! The experiment in virtual time: the same topology, loads and probes, with our own queues, from one seed.
//!
//! ```text
//! A --+
//!     +-- router (the policy) -- modem (the line's rates, deep FIFO) --- delay --- far side
//! B --+
//! ```
//!
//! Every node is a machine in a [`sim::World`]; what travels are IPv4 packets with real headers.

mod host;
mod middle;
mod packet;
mod tcp;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::{Duration, Instant};
use qos::Discipline;
use qos::tree::Overhead;
use sim::{Link, NodeHandle, World};

use super::rows::{self, FLOOD_BPS, Load};
use super::traffic::page;
pub use host::Echo;
use host::Host;
use middle::Middle;

const A: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 10);
const B: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 20);
const ROUTER: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 1);
const MODEM: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// Ports mean nothing to the nodes: a packet has its own.
const PORT: u16 = 1;

/// How often B pings.
const PING_EVERY: Duration = Duration::from_millis(100);

/// Wait between one page and the next.
const PAGE_PAUSE: Duration = Duration::from_millis(500);

/// Before anything is measured, the load has this long to settle.
const SETTLE: Duration = Duration::from_secs(5);

/// A queue for each direction.
#[derive(Debug)]
pub struct Queues {
    /// Towards the far side.
    pub up: Box<dyn Discipline>,
    /// Towards the hosts.
    pub down: Box<dyn Discipline>,
    /// What the link layer adds to each packet.
    pub overhead: Overhead,
}

/// What a run needs to know.
#[derive(Debug)]
pub struct Setup {
    /// Chance of everything that has any.
    pub seed: u64,
    /// The gateway's queues.
    pub router: Queues,
    /// The line's: rates and buffers of both directions.
    pub modem: Queues,
    /// From the modem to the far side.
    pub delay: Duration,
    /// Whether the hosts' TCP understands ECN (RFC 3168).
    pub ecn: bool,
    /// What A does.
    pub load: Load,
    /// Connections of [`Load::Bulk`].
    pub bulk: usize,
    /// How long is measured.
    pub seconds: u64,
}

struct Model {
    world: World,
    a: NodeHandle<Host>,
    b: NodeHandle<Host>,
    far: NodeHandle<Host>,
}

impl Model {
    fn new(setup: Setup) -> Self {
        let mut world = World::new(setup.seed);
        world.set_default_link(Link {
            delay: Duration::from_micros(50),
            ..Link::CLEAN
        });
        world.set_log_limit(64);
        let at = |ip: Ipv4Addr| SocketAddr::new(IpAddr::V4(ip), PORT);
        let hosts = [A, B];
        let to_hosts = hosts.map(|ip| (ip, at(ip)));
        let to_router = hosts.map(|ip| (ip, at(ROUTER)));
        let router = Middle::new(setup.router, at(MODEM), BTreeMap::from(to_hosts));
        let modem =
            Middle::new(setup.modem, at(FAR), BTreeMap::from(to_router)).with_delay(setup.delay);
        world.add("router", router, [at(ROUTER)]);
        world.add("modem", modem, [at(MODEM)]);
        let mut host = |name: &str, ip, gateway| {
            let chance = world.rng(name);
            world.add(
                name,
                Host::new(ip, at(gateway), setup.ecn, chance),
                [at(ip)],
            )
        };
        let (a, b, far) = (
            host("a", A, ROUTER),
            host("b", B, ROUTER),
            host("far", FAR, MODEM),
        );
        Self { world, a, b, far }
    }

    fn load(&mut self, (load, bulk): (Load, usize), end: Instant) {
        self.world.with(self.a, |a, now| match load {
            Load::None => {}
            Load::Bulk => (0..bulk).for_each(|_| a.bulk(FAR, now)),
            Load::Flood => a.flood(FAR, FLOOD_BPS, now, end),
        });
    }
}

/// The first half of a row: stream, pings and pages of B beside the load of A.
#[must_use]
pub fn probe(setup: Setup) -> rows::Result {
    let (load, seconds) = ((setup.load, setup.bulk), setup.seconds);
    let mut model = Model::new(setup);
    let end = Instant::ZERO + SETTLE + Duration::from_secs(seconds);
    model.load(load, end);
    model.world.run_for(SETTLE);
    model.world.with(model.b, |b, now| {
        b.stream(FAR, now, end);
        b.ping(FAR, 0, PING_EVERY, now, end);
    });
    let mut failures = 0;
    while model.world.now() < end {
        let begin = model.world.now();
        let before = model.world[model.b].loads.len();
        model.world.with(model.b, |b, now| b.load(FAR, now));
        let limit = begin
            + Duration::from_nanos(u64::try_from(page::LOAD_MAX.as_nanos()).unwrap_or(u64::MAX));
        while model.world[model.b].loads.len() == before && model.world.now() < limit.min(end) {
            model.world.run_for(Duration::from_millis(10));
        }
        if model.world[model.b].loads.len() == before {
            failures += 1;
            model.world.with(model.b, |b, _| b.give_up());
        }
        model.world.run_for(PAGE_PAUSE);
    }
    // What is under way may still arrive.
    model.world.run_for(Duration::from_secs(5));
    let (b, far) = (&model.world[model.b], &model.world[model.far]);
    let mut account = far.account();
    account.sent = b.stream_sent();
    let start = (Instant::ZERO + SETTLE).as_nanos();
    let seconds_since = |at: Instant| (at.as_nanos() - start) as f64 / 1e9;
    rows::Result {
        loss_percent: account.loss_percent(),
        jitter_ms: account.jitter_ms,
        page_ms: b
            .loads
            .iter()
            .map(|load| load.as_secs_f64() * 1e3)
            .collect(),
        page_failures: failures,
        pings: b
            .echoes
            .iter()
            .map(|echo| {
                (
                    seconds_since(echo.sent),
                    echo.round_trip.map(|time| time.as_secs_f64() * 1e3),
                )
            })
            .collect(),
        ..rows::Result::default()
    }
}

/// The second half of a row: B's share of the link with one bulk connection against the load of A, and what both got
/// in bits a second.
#[must_use]
pub fn share(setup: Setup) -> (f64, f64) {
    let (load, seconds) = ((setup.load, setup.bulk), setup.seconds);
    let mut model = Model::new(setup);
    let end = Instant::ZERO + SETTLE + Duration::from_secs(seconds);
    model.load(load, end);
    model.world.with(model.b, |b, now| b.bulk(FAR, now));
    model.world.run_for(SETTLE);
    let got = |model: &Model| {
        let far = &model.world[model.far];
        [far.bulk_from(A) + far.flooded(), far.bulk_from(B)]
    };
    let before = got(&model);
    model.world.run_for(Duration::from_secs(seconds));
    let after = got(&model);
    let [a, b] = [after[0] - before[0], after[1] - before[1]].map(|octets| octets as f64);
    (b / (a + b).max(1.0), (a + b) * 8.0 / seconds.max(1) as f64)
}

/// What goes on beside pings.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// Floods of A: where to, and at which rate of payload.
    pub floods: Vec<(Ipv4Addr, u64)>,
    /// Whether B has a bulk connection too.
    pub bulk_of_b: bool,
    /// Whether what B sends goes through one tunnel.
    pub tunnelled: bool,
}

/// Pings of B to several destinations with several traffic classes at once, beside the load and what else goes on: the
/// round trips of each in milliseconds, by when they were sent in seconds.
#[must_use]
pub fn pings(
    setup: Setup,
    beside: &Beside,
    targets: &[(Ipv4Addr, u8)],
) -> Vec<Vec<(f64, Option<f64>)>> {
    let (load, seconds) = ((setup.load, setup.bulk), setup.seconds);
    let mut model = Model::new(setup);
    let end = Instant::ZERO + SETTLE + Duration::from_secs(seconds);
    model.load(load, end);
    model.world.with(model.a, |a, now| {
        for &(to, rate_bps) in &beside.floods {
            a.flood(to, rate_bps, now, end);
        }
    });
    model.world.with(model.b, |b, now| {
        b.tunnelled = beside.tunnelled;
        if beside.bulk_of_b {
            b.bulk(FAR, now);
        }
    });
    model.world.run_for(SETTLE);
    model.world.with(model.b, |b, now| {
        for &(to, class) in targets {
            b.ping(to, class, PING_EVERY, now, end);
        }
    });
    model.world.run_for(Duration::from_secs(seconds + 5));
    let start = (Instant::ZERO + SETTLE).as_nanos();
    let mut trips = vec![Vec::new(); targets.len()];
    // All begin together and keep step, so that they were sent in turn.
    for (number, echo) in model.world[model.b].echoes.iter().enumerate() {
        let sent = (echo.sent.as_nanos() - start) as f64 / 1e9;
        let time = echo.round_trip.map(|time| time.as_secs_f64() * 1e3);
        trips[number % targets.len()].push((sent, time));
    }
    trips
}
