//! The cost of a packet in the edge's whole path of a subscriber, with its queues and without.
//!
//! A LAC and two LNSs of ours connect in memory. Both LNSs have the same subscribers; those of one are shaped.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, anyhow, ensure};
use base::{Duration, Instant, Route};
use edge::{Admission, Dial, Edge, Event, Inside, Outside};
use hqos::spec::{Node, NodeId, Rates, Template, TemplateId};
use hqos::{Plan, Shape};
use l2tp::{Call, Endpoint, OpenTunnel};
use lab::plot::number::grouped;
use lab::report::{Cell, Table};
use reactor::clock;
use wire::checksum;
use wire::l2tp::Version;

use super::Config;
use super::packets::Random;

/// Numbers of subscribers.
const SUBSCRIBERS: [u32; 3] = [1_000, 4_000, 16_000];

/// Goal: the time of a packet with shaping, over that without.
const REACH: f64 = 1.3;

/// Lengths of packets in bytes: a third each.
const LENGTHS: [usize; 3] = [64, 576, 1_500];

/// Packets that are composed together, and then pass.
const ROUND: usize = 256;

/// Packets that the edge receives together.
const BATCH: usize = 64;

/// Rounds of one side of a pair.
const ROUNDS: usize = 16;

/// Bytes of an IP packet between the LAC and the LNS: packets of 1,500 bytes fit with the headers of the tunnel.
const PATH_MTU: u16 = 1_600;

const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 254);

/// The rate of the link that subscribers share, and of each subscriber: nothing reaches them.
const LINK_BPS: u64 = 900_000_000_000;
const SUBSCRIBER_BPS: u64 = 1_000_000_000;

/// Nanoseconds between two batches.
const GAP_NS: u64 = 50_000;

/// The direction of packets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

const ROWS: [(Way, &str); 2] = [
    (Way::Up, "from subscribers, pass at once"),
    (Way::Down, "to subscribers, pass at once"),
];

/// Takes packets and datagrams, as a batch that is sent does.
#[derive(Default)]
struct Sink {
    octets: Vec<u8>,
    count: u64,
}

impl Inside for Sink {
    #[inline]
    fn packet(&mut self, packet: &[u8]) {
        if self.octets.len() > 1 << 16 {
            self.octets.clear();
        }
        self.octets.extend_from_slice(packet);
        self.count += 1;
    }
}

impl Outside for Sink {
    #[inline]
    fn begin(&mut self, _: &Route) -> Option<&mut Vec<u8>> {
        if self.octets.len() > 1 << 16 {
            self.octets.clear();
        }
        Some(&mut self.octets)
    }

    #[inline]
    fn commit(&mut self, _: &Route) {
        self.count += 1;
    }
}

fn route(last: u8) -> Route {
    Route {
        peer: SocketAddr::from(([192, 0, 2, last], 1_701)),
        local: None,
        socket: 0,
    }
}

const LAC: u8 = 1;
const LNS: u8 = 2;

/// A UDP packet with the checksum of its IP header.
fn packet(from: Ipv4Addr, to: Ipv4Addr, length: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((length as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    packet.extend(from.octets());
    packet.extend(to.octets());
    let sum = !checksum::sum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend([0x30, 0x39, 0, 53]);
    packet.extend((length as u16 - 20).to_be_bytes());
    packet.resize(length, 0);
    packet
}

/// Shaped subscribers below a shared link.
fn shaped() -> (Plan, Shape) {
    // The offered load does not react to drops.
    let template = Template {
        target: Duration::from_secs(10),
        ..Template::default()
    };
    let node = Node {
        name: "access".to_owned(),
        parent: None,
        rates: Rates {
            down: LINK_BPS,
            up: LINK_BPS,
        },
        weight: 1,
    };
    let plan = Plan {
        templates: vec![template],
        nodes: vec![node],
    };
    let shape = Shape {
        rates: Rates {
            down: SUBSCRIBER_BPS,
            up: SUBSCRIBER_BPS,
        },
        template: TemplateId(0),
        node: Some(NodeId(0)),
    };
    (plan, shape)
}

fn endpoint(name: &str, accept: bool) -> Endpoint {
    let config = l2tp::Config {
        host_name: name.into(),
        accept,
        ..l2tp::Config::default()
    };
    Endpoint::new(config, [u8::from(accept); 32])
}

fn pools(specs: Vec<aaa::pools::Spec>) -> Result<aaa::Pools> {
    let pools = aaa::Pools::new(specs, vec![GATEWAY], 7);
    pools.map_err(|faults| anyhow!("the pool has {} faults", faults.len()))
}

/// Subscribers at an LNS, and the bytes before their packets in the tunnel.
pub(super) struct Side {
    pub(super) lns: Edge,
    lines: Vec<(Ipv4Addr, Vec<u8>)>,
    now: Instant,
    sink: Sink,
    composed: Vec<Vec<u8>>,
    ns: u64,
}

impl Side {
    /// With a plan and a shape, all subscribers are shaped.
    pub(super) fn new(
        subscribers: u32,
        shaped: Option<(Plan, Shape)>,
        now: Instant,
    ) -> Result<Self> {
        let config = edge::Config {
            terminate: true,
            address: GATEWAY,
            subscribers_max: subscribers,
            path_mtu: PATH_MTU,
            ..edge::Config::default()
        };
        let range = aaa::pools::Range::new([10, 0, 0, 1].into(), [10, 1, 255, 254].into());
        let spec = aaa::pools::Spec {
            name: "home".into(),
            ranges: vec![range.context("the range of addresses")?],
            ..aaa::pools::Spec::default()
        };
        let [pools, none] = [vec![spec], Vec::new()].map(pools);
        let clients = edge::Config {
            subscribers_max: subscribers,
            path_mtu: PATH_MTU,
            ..edge::Config::default()
        };
        let mut lac = Edge::new(clients, endpoint("lac", false), none?, [3; 32]);
        let mut side = Self {
            lns: Edge::new(config, endpoint("lns", true), pools?, [4; 32]),
            lines: Vec::new(),
            now,
            sink: Sink::default(),
            composed: Vec::new(),
            ns: 0,
        };
        let mut shape = None;
        if let Some((plan, each)) = shaped {
            side.lns.set_plan(plan, now)?;
            shape = Some(each);
        }
        side.connect(&mut lac, subscribers, shape)?;
        Ok(side)
    }

    /// Connects clients through one tunnel.
    fn connect(&mut self, lac: &mut Edge, count: u32, shape: Option<Shape>) -> Result<()> {
        let open = OpenTunnel {
            route: route(LNS),
            version: Version::V2,
        };
        let tunnel = lac.endpoint_mut().open_tunnel(open, self.now)?;
        self.settle(lac, shape);
        for _ in 0..count {
            let endpoint = lac.endpoint_mut();
            let session = endpoint.open_session(tunnel, Call::default(), self.now)?;
            let dial = Dial {
                credentials: None,
                ipv4: true,
                ipv6: false,
                networks: Vec::new(),
            };
            lac.dial(session, dial, self.now);
            self.settle(lac, shape);
        }
        let (mut cursor, mut known) = (0, Vec::new());
        while let Some((next, view)) = lac.next_subscriber(cursor) {
            cursor = next;
            known.extend(view.address.map(|address| (address, view.session)));
        }
        for (address, session) in known {
            let header = lac.endpoint_mut().data_header(session);
            let header = header.context("a session that is not up")?;
            let head = [header.as_bytes(), &[0xff, 3, 0, 0x21]].concat();
            self.lines.push((address, head));
        }
        let up = self.lines.len();
        ensure!(
            up == count as usize,
            "{up} of {count} subscribers connected"
        );
        Ok(())
    }

    /// Delivers datagrams until both ends have nothing to send.
    fn settle(&mut self, lac: &mut Edge, shape: Option<Shape>) {
        let mut bytes = Vec::new();
        let mut is_busy = true;
        while core::mem::take(&mut is_busy) {
            while lac.poll_transmit(self.now, &mut bytes).is_some() {
                self.lns
                    .receive(route(LAC), &bytes, self.now, &mut self.sink);
                bytes.clear();
                is_busy = true;
            }
            while let Some(question) = self.lns.poll_question() {
                let admission = Admission {
                    shape,
                    ..Admission::default()
                };
                let subscriber = question.subscriber;
                is_busy |= self.lns.admit(subscriber, admission, b"", self.now);
            }
            while self.lns.poll_transmit(self.now, &mut bytes).is_some() {
                lac.receive(route(LNS), &bytes, self.now, &mut self.sink);
                bytes.clear();
                is_busy = true;
            }
        }
        while let Some(Event::Up { .. } | _) = self.lns.poll_event() {}
        while lac.poll_event().is_some() {}
    }

    /// What the TUN device returns for a packet of this length to a subscriber.
    pub(super) fn down(&self, subscriber: usize, length: usize) -> Vec<u8> {
        let head = [0; wire::virtio::LENGTH];
        [&head[..], &packet(FAR, self.lines[subscriber].0, length)].concat()
    }

    /// What the LAC sends for a packet of this length from a subscriber.
    fn up(&self, subscriber: usize, length: usize) -> Vec<u8> {
        let (address, head) = &self.lines[subscriber];
        [&head[..], &packet(*address, FAR, length)].concat()
    }

    /// Composes the packets of a round.
    fn compose(&mut self, way: Way, random: &mut Random) {
        self.composed.clear();
        for _ in 0..ROUND {
            let subscriber = random.below(self.lines.len());
            let length = LENGTHS[random.below(LENGTHS.len())];
            self.composed.push(match way {
                Way::Up => self.up(subscriber, length),
                Way::Down => self.down(subscriber, length),
            });
        }
    }

    fn pass(&mut self, way: Way) {
        let start = clock::now();
        for batch in self.composed.chunks_mut(BATCH) {
            self.now += Duration::from_nanos(GAP_NS);
            match way {
                Way::Up => {
                    let datagrams = || batch.iter().map(|bytes| (route(LAC), &bytes[..]));
                    self.lns.touch(datagrams);
                    for bytes in batch {
                        self.lns
                            .receive(route(LAC), bytes, self.now, &mut self.sink);
                    }
                }
                Way::Down => {
                    for octets in batch {
                        self.lns.forward(octets, self.now, &mut self.sink);
                    }
                }
            }
        }
        self.ns += clock::now().since(start).as_nanos();
    }

    /// Nanoseconds of a packet.
    fn measure(&mut self, way: Way, random: &mut Random) -> Result<f64> {
        (self.ns, self.sink.count) = (0, 0);
        for _ in 0..ROUNDS {
            self.compose(way, random);
            self.pass(way);
        }
        let (passed, wanted) = (self.sink.count, (ROUND * ROUNDS) as u64);
        ensure!(passed == wanted, "{passed} of {wanted} packets passed");
        Ok(self.ns as f64 / wanted as f64)
    }
}

/// The medians of all pairs: nanoseconds without shaping, with it, and their ratio.
struct Measured {
    off_ns: f64,
    on_ns: f64,
    ratio: f64,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn pairs(config: &Config, way: Way, sides: &mut [Side; 2]) -> Result<Measured> {
    let mut random = Random::new(1);
    let (mut offs, mut ons, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for side in &mut *sides {
        // The first round maps the memory.
        side.measure(way, &mut random)?;
    }
    let start = clock::now();
    while ratios.len() < 3 || clock::now().since(start) < config.span {
        let [off, on] = &mut *sides;
        let off_ns = off.measure(way, &mut random)?;
        let on_ns = on.measure(way, &mut random)?;
        offs.push(off_ns);
        ons.push(on_ns);
        ratios.push(on_ns / off_ns);
    }
    Ok(Measured {
        off_ns: median(offs),
        on_ns: median(ons),
        ratio: median(ratios),
    })
}

/// The table of all rows.
///
/// # Errors
/// Subscribers do not connect, or packets are lost.
pub(super) fn table(config: &Config, told: &mut dyn FnMut(String)) -> Result<Table> {
    let columns = [
        ("packets", ""),
        ("subscribers", ""),
        ("without queues", "ns"),
        ("with queues", "ns"),
        ("ratio", "x"),
        ("to reach", "x"),
    ];
    let mut table = Table::new(
        "Subscriber path: a packet with queues against one without",
        &columns,
    );
    for n in SUBSCRIBERS {
        told(format!("{n} subscribers connect"));
        let now = Instant::from_nanos(1);
        let mut sides = [Side::new(n, None, now)?, Side::new(n, Some(shaped()), now)?];
        for (way, what) in ROWS {
            told(format!("{what}, {n} subscribers"));
            let measured = pairs(config, way, &mut sides)?;
            table.row([
                what.into(),
                grouped(f64::from(n), 0).into(),
                Cell::num(measured.off_ns, 0),
                Cell::num(measured.on_ns, 0),
                Cell::num(measured.ratio, 2),
                Cell::num(REACH, 1),
            ]);
        }
    }
    Ok(table)
}

/// How the table was measured.
pub(super) fn method(config: &Config) -> String {
    format!(
        "Subscriber path: LNSs without sockets. Datagrams of random subscribers go through the edge to a buffer, or packets of the TUN device to a buffer of datagrams, {BATCH} at a time; packets have 64, 576 and 1,500 bytes, a third each. A pair is {} packets through an LNS without queues, then through one where every subscriber is shaped; the table shows the medians of all pairs in {} s. All packets pass at once: no rate is reached.",
        grouped((ROUND * ROUNDS) as f64, 0),
        config.span.as_secs_f64()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_pass_both_ways_with_queues_and_without() {
        let now = Instant::from_nanos(1);
        for shape in [None, Some(shaped())] {
            let mut side = Side::new(20, shape, now).unwrap();
            let mut random = Random::new(1);
            for (way, _) in ROWS {
                side.measure(way, &mut random).unwrap();
            }
        }
    }
}
