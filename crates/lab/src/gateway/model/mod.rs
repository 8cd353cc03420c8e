//! The experiment in virtual time: the same topology, loads and probes, with our own queues, from
//! one seed.
//!
//! ```text
//! A --+
//!     +-- router (the policy) -- modem (the line's rates, deep FIFO) --- delay --- far side
//! B --+
//! ```
//!
//! Every node is a machine in a [`sim::World`], and the packets have real IPv4 headers. Start with
//! [`probe`] and [`share`], the two halves of a row.

mod host;
mod middle;
mod packet;
mod tcp;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::{Duration, Instant};
use qos::tree::SpecError;
use sim::{Link, NodeHandle, World};

use super::rows::{self, FLOOD_BPS, Load};
use super::stop::Stop;
use super::traffic::page;
use super::treatment::Both;
pub use host::Echo;
use host::Host;
use middle::Middle;

const A: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 10);
const B: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 20);
const ROUTER: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 1);
const MODEM: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// A placeholder: the nodes use the port in the packet.
const PORT: u16 = 1;

/// Interval between B's pings.
const PING_EVERY: Duration = Duration::from_millis(100);

/// Pause between two page loads.
const PAGE_PAUSE: Duration = Duration::from_millis(500);

/// Virtual time between two checks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Time for which the load runs before the measurement.
const SETTLE_S: u64 = 5;
const SETTLE: Duration = Duration::from_secs(SETTLE_S);

/// Settings of a run.
#[derive(Debug)]
pub struct Setup {
    /// Seed of all random numbers.
    pub seed: u64,
    /// The router's queues.
    pub router: Both,
    /// The modem's rates and buffers in both directions.
    pub modem: Both,
    /// Delay between the modem and the far side.
    pub delay: Duration,
    /// Whether the hosts' TCP supports ECN (RFC 3168).
    pub ecn: bool,
    /// A's load.
    pub load: Load,
    /// Number of connections of [`Load::Bulk`].
    pub bulk: usize,
    /// Length of the measurement in seconds.
    pub seconds: u64,
    /// Ends the measurement early.
    pub stop: Stop,
}

/// The link between hosts and boxes.
const WIRE: Link = Link {
    delay: Duration::from_micros(50),
    // Jitter, so that no two senders stay in step.
    jitter: Duration::from_micros(100),
    ..Link::CLEAN
};

struct Model {
    world: World,
    stop: Stop,
    a: NodeHandle<Host>,
    b: NodeHandle<Host>,
    far: NodeHandle<Host>,
}

impl Model {
    fn new(setup: &Setup) -> Result<Self, SpecError> {
        let mut world = World::new(setup.seed);
        world.set_default_link(WIRE);
        world.set_log_limit(64);
        let at = |ip: Ipv4Addr| SocketAddr::new(IpAddr::V4(ip), PORT);
        let hosts = [A, B];
        let to_hosts = hosts.map(|ip| (ip, at(ip)));
        let to_router = hosts.map(|ip| (ip, at(ROUTER)));
        let queues = (&setup.router, setup.seed);
        let router = Middle::new(queues, at(MODEM), BTreeMap::from(to_hosts))?;
        let queues = (&setup.modem, setup.seed);
        let modem = Middle::new(queues, at(FAR), BTreeMap::from(to_router))?;
        let modem = modem.with_delay(setup.delay);
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
        let stop = setup.stop.clone();
        Ok(Self {
            world,
            stop,
            a,
            b,
            far,
        })
    }

    /// Runs for `seconds`, unless stopped.
    fn run(&mut self, seconds: u64) {
        let end = self.world.now() + Duration::from_secs(seconds);
        while self.world.now() < end && !self.stop.is_set() {
            self.world.run_for(LOOK_EVERY);
        }
    }

    fn load(&mut self, (load, bulk): (Load, usize), end: Instant) {
        self.world.with(self.a, |a, now| match load {
            Load::None => {}
            Load::Bulk => (0..bulk).for_each(|_| a.bulk(FAR, now)),
            Load::Flood => a.flood(FAR, FLOOD_BPS, (now, end)),
        });
    }
}

/// The first half of a row: B's stream, pings and page loads beside A's load.
///
/// # Errors
/// Disciplines that cannot be combined.
pub fn probe(setup: &Setup) -> Result<rows::Result, SpecError> {
    let mut model = Model::new(setup)?;
    let end = Instant::ZERO + SETTLE + Duration::from_secs(setup.seconds);
    model.load((setup.load, setup.bulk), end);
    model.run(SETTLE_S);
    model.world.with(model.b, |b, now| {
        b.stream(FAR, (now, end));
        b.ping((FAR, 0), PING_EVERY, (now, end));
    });
    let page_failures = model.load_pages(end);
    model.world.with(model.b, |b, now| b.fall_silent(now));
    // Packets in flight may still arrive.
    model.world.run_for(Duration::from_secs(5));
    let (b, far) = (&model.world[model.b], &model.world[model.far]);
    let mut account = far.account();
    account.sent = b.stream_sent();
    Ok(rows::Result {
        loss_percent: account.loss_percent(),
        jitter_ms: account.jitter_ms,
        page_ms: b.loads.iter().copied().map(milliseconds).collect(),
        page_failures,
        pings: b.echoes().iter().map(trip).collect(),
        ..rows::Result::default()
    })
}

impl Model {
    /// Loads pages one after another until `end`; returns how many failed.
    fn load_pages(&mut self, end: Instant) -> u32 {
        let time = |time: std::time::Duration| Duration::from_millis(time.as_millis() as u64);
        let (longest, chance) = (time(page::LOAD_MAX), time(page::CHANCE));
        let mut failures = 0;
        while self.world.now() < end && !self.stop.is_set() {
            let begin = self.world.now();
            let limit = (begin + longest).min(end);
            let before = self.world[self.b].loads.len();
            self.world.with(self.b, |b, now| b.load(FAR, now));
            while self.world[self.b].loads.len() == before && self.world.now() < limit {
                self.world.run_for(Duration::from_millis(10));
            }
            if self.world[self.b].loads.len() == before {
                failures += u32::from(self.world.now().since(begin) >= chance);
                self.world.with(self.b, |b, _| b.give_up());
            }
            self.world.run_for(PAGE_PAUSE);
        }
        failures
    }

    /// Bytes of A's load and of B's upload that have arrived.
    fn arrived(&self) -> [u64; 2] {
        let far = &self.world[self.far];
        [far.bulk_from(A) + far.flooded(), far.bulk_from(B)]
    }
}

/// When a ping was sent, in seconds of the measurement, and its round-trip time in milliseconds.
fn trip(echo: &Echo) -> (f64, Option<f64>) {
    let sent = echo.sent.since(Instant::ZERO + SETTLE);
    (sent.as_secs_f64(), echo.round_trip.map(milliseconds))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The second half of a row: B's share of the link with one bulk connection against A's load, and
/// the throughput of both in bits per second.
///
/// # Errors
/// Disciplines that cannot be combined.
pub fn share(setup: &Setup) -> Result<(f64, f64), SpecError> {
    let mut model = Model::new(setup)?;
    let end = Instant::ZERO + SETTLE + Duration::from_secs(setup.seconds);
    model.load((setup.load, setup.bulk), end);
    model.world.with(model.b, |b, now| b.bulk(FAR, now));
    model.run(SETTLE_S);
    let (before, begin) = (model.arrived(), model.world.now());
    model.run(setup.seconds);
    let (after, took) = (model.arrived(), model.world.now().since(begin));
    let [a, b] = [after[0] - before[0], after[1] - before[1]].map(|octets| octets as f64);
    let goodput = (a + b) * 8.0 / took.as_secs_f64().max(0.001);
    Ok((b / (a + b).max(1.0), goodput))
}

/// Other traffic beside pings.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// A's floods, each with its destination and payload rate.
    pub floods: Vec<(Ipv4Addr, u64)>,
    /// Whether B has a bulk connection too.
    pub bulk_of_b: bool,
    /// Whether B's packets go through one tunnel.
    pub tunnelled: bool,
}

/// Pairs of sending time in seconds and round-trip time in milliseconds; `None` for a ping without
/// a reply.
pub type Trips = Vec<(f64, Option<f64>)>;

/// B's pings to several destinations with several traffic classes at once, beside the load and
/// other traffic.
///
/// # Errors
/// Disciplines that cannot be combined.
pub fn pings(
    setup: &Setup,
    beside: &Beside,
    targets: &[(Ipv4Addr, u8)],
) -> Result<Vec<Trips>, SpecError> {
    let mut model = Model::new(setup)?;
    let end = Instant::ZERO + SETTLE + Duration::from_secs(setup.seconds);
    model.load((setup.load, setup.bulk), end);
    model.world.with(model.a, |a, now| {
        for &(to, rate_bps) in &beside.floods {
            a.flood(to, rate_bps, (now, end));
        }
    });
    model.world.with(model.b, |b, now| {
        b.tunnelled = beside.tunnelled;
        if beside.bulk_of_b {
            b.bulk(FAR, now);
        }
    });
    model.run(SETTLE_S);
    model.world.with(model.b, |b, now| {
        for &target in targets {
            b.ping(target, PING_EVERY, (now, end));
        }
    });
    model.run(setup.seconds);
    model.world.run_for(Duration::from_secs(5));
    let echoes = model.world[model.b].echoes();
    let of = |target| {
        let own = echoes.iter().filter(move |echo| echo.target == target);
        own.map(trip).collect()
    };
    Ok(targets.iter().copied().map(of).collect())
}
