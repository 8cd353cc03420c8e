//! One measurement: packets sent at a rate in one direction, and what they cost the process that
//! forwards them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, ensure};
use base::Duration;
use lab::report::CoreWitness;
use reactor::UdpSocket;
use reactor::namespace::Namespace;

use super::packets::{HEADERS, LENGTH, Sender, Sent, Shot, udp};
use super::place::{LNS, OWN, PEER, Place, TUN, WIRE, peer};
use super::{Way, bare as loops, l2tpns as other};
use crate::harness::Bench;
use crate::harness::others_of;
use crate::harness::server::{LnsProgram, Server};
use crate::subscribers::load::{self, Load, Options};

/// Number of subscribers in mixed flows.
pub(super) const PEERS: u32 = 64;

/// Destination of subscribers' packets; no host has it.
const BEYOND: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);

/// Time until all packets have come out and the forwarding process sleeps.
const SETTLE: std::time::Duration = std::time::Duration::from_millis(50);

/// The order of the packets' subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flows {
    One,
    Mixed,
}

impl Flows {
    pub(super) fn name(self) -> &'static str {
        match self {
            Flows::One => "runs of one flow",
            Flows::Mixed => "mixed flows",
        }
    }

    fn subscribers(self) -> u32 {
        match self {
            Flows::One => 1,
            Flows::Mixed => PEERS,
        }
    }
}

/// The direction as text.
pub(super) fn words(way: Way) -> &'static str {
    match way {
        Way::In => "tunnel to TUN",
        Way::Out => "TUN to tunnel",
    }
}

/// Results.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) program: LnsProgram,
    pub(super) way: Way,
    pub(super) flows: Flows,
    /// Packets per second that were to be sent.
    pub(super) offered: u64,
    pub(super) sent: Sent,
    /// Packets that came out.
    pub(super) passed: u64,
    /// Processor time of the forwarding process.
    pub(super) cpu_us: f64,
    /// Number of times it went to sleep.
    pub(super) waits: f64,
    pub(super) others_percent: Option<f64>,
}

impl Measured {
    /// Packets that did not come out, in percent of those sent.
    pub(super) fn lost_percent(&self) -> f64 {
        let sent = self.sent.packets;
        sent.saturating_sub(self.passed) as f64 / sent.max(1) as f64 * 100.0
    }

    /// Processor time of the forwarding process per packet.
    pub(super) fn ns(&self) -> f64 {
        self.cpu_us * 1e3 / self.passed.max(1) as f64
    }
}

/// How many of `sent` packets came out, of an interface's count. The count also has packets that the sender did not send,
/// such as ARP and HELLO; what is above `sent` is theirs.
fn passed(counted: u64, sent: u64) -> u64 {
    counted.min(sent)
}

/// A subscriber, as its sender needs it.
struct Line {
    address: Ipv4Addr,
    /// The bytes before a packet in the tunnel.
    head: Vec<u8>,
    local: Option<IpAddr>,
}

/// Measures our LNS at each of the rates.
///
/// # Errors
/// It does not start or has ended, or the kernel's error.
pub(super) fn ours(
    bench: &Bench,
    place: &Place,
    way: Way,
    flows: Flows,
    rates: &[u64],
    span: Duration,
) -> Result<Vec<Measured>> {
    let lns = place.start(bench, flows.subscribers(), true)?;
    let count = flows.subscribers();
    let (socket, lines) = place.peers.run(|| on_line(count))??;
    let scene = Scene {
        bench,
        place,
        server: &lns.server,
        way,
        flows,
        program: LnsProgram::Headend,
        device: TUN,
    };
    scene.at_rates(rates, span, socket, &lines)
}

/// Measures the bare loop at each of the rates.
///
/// # Errors
/// As of [`ours`].
pub(super) fn bare(
    bench: &Bench,
    place: &Place,
    way: Way,
    flows: Flows,
    rates: &[u64],
    span: Duration,
) -> Result<Vec<Measured>> {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let socket = place
        .peers
        .run(|| UdpSocket::bind(any, &load::buffers()))??;
    let head = [&[0, 2, 0, 1, 0, 1][..], &[0xff, 3, 0, 0x21]].concat();
    let sink = SocketAddr::from((PEER, socket.local_addr().port()));
    let server = loops::start(bench, place, way, head.len(), sink)?;
    let lines: Vec<Line> = (0..flows.subscribers())
        .map(|n| Line {
            address: Ipv4Addr::new(10, 0, 1, n as u8),
            head: head.clone(),
            local: Some(peer(n).into()),
        })
        .collect();
    let scene = Scene {
        bench,
        place,
        server: &server,
        way,
        flows,
        program: LnsProgram::Bare,
        device: TUN,
    };
    scene.at_rates(rates, span, socket, &lines)
}

/// Measures l2tpns at each of the rates, with mixed flows from the tunnel.
///
/// # Errors
/// As of [`ours`].
pub(super) fn l2tpns(
    bench: &Bench,
    place: &Place,
    rates: &[u64],
    span: Duration,
) -> Result<Vec<Measured>> {
    let lns = other::start(bench, place)?;
    let (socket, lines) = place.peers.run(|| on_line(PEERS))??;
    let scene = Scene {
        bench,
        place,
        server: &lns.server,
        way: Way::In,
        flows: Flows::Mixed,
        program: LnsProgram::L2tpns,
        device: other::TUN,
    };
    scene.at_rates(rates, span, socket, &lines)
}

/// Connects `count` subscribers.
fn on_line(count: u32) -> Result<(UdpSocket, Vec<Line>)> {
    let mut load = Load::new(Options {
        servers: vec![LNS],
        sources: (PEER, count),
        ipv6: false,
        first_user: 0,
    })?;
    let wave = load.open(count, count, Duration::from_secs(10))?;
    ensure!(
        wave.up == count,
        "{} of {count} subscribers connected",
        wave.up
    );
    load.answer(Duration::from_millis(50))?;
    let mut known = Vec::new();
    let mut cursor = 0;
    while let Some((next, view)) = load.edge.next_subscriber(cursor) {
        cursor = next;
        let address = view.address.context("a subscriber without an address")?;
        known.push((address, view.session));
    }
    let endpoint = load.edge.endpoint_mut();
    let line = |(address, session)| {
        let header = endpoint.data_header(session)?;
        Some(Line {
            address,
            head: [header.as_bytes(), &[0xff, 3, 0, 0x21]].concat(),
            local: header.route.local,
        })
    };
    let lines: Option<Vec<Line>> = known.into_iter().map(line).collect();
    Ok((
        load.into_socket(),
        lines.context("a session that is not up")?,
    ))
}

/// The forwarding process, and the packets' direction and order.
struct Scene<'a> {
    bench: &'a Bench,
    place: &'a Place,
    server: &'a Server,
    way: Way,
    flows: Flows,
    program: LnsProgram,
    /// Its TUN device.
    device: &'static str,
}

impl Scene<'_> {
    /// Sends at each of the rates. `socket` is the peers' socket, which sends or receives.
    fn at_rates(
        &self,
        rates: &[u64],
        span: Duration,
        socket: UdpSocket,
        lines: &[Line],
    ) -> Result<Vec<Measured>> {
        let front = lines.first().map_or(0, |line| line.head.len());
        let (mut sender, _sink) = match self.way {
            Way::In => (from_peers(socket, lines), None),
            Way::Out => (from_inside(self.place, lines)?, Some(socket)),
        };
        // A first burst is not measured, so that caches and memory are warm.
        sender.send(20_000, Duration::from_millis(20));
        std::thread::sleep(SETTLE);
        rates
            .iter()
            .map(|&offered| self.at(offered, span, &mut sender, front))
            .collect()
    }

    fn at(
        &self,
        offered: u64,
        span: Duration,
        sender: &mut Sender,
        front: usize,
    ) -> Result<Measured> {
        let (way, flows, place) = (self.way, self.flows, self.place);
        let what = format!("{}, {}, {offered}/s", words(way), flows.name());
        self.bench.say(what);
        let (namespace, name): (&Namespace, &str) = match way {
            Way::In => (&place.lns, self.device),
            Way::Out => (&place.peers, WIRE),
        };
        let witness = CoreWitness::start();
        let before = (Place::received(namespace, name)?, self.server.booked()?);
        let sent = sender.send(offered, span);
        std::thread::sleep(SETTLE);
        let spent = self.server.spent_since(&before.1)?;
        let count = Place::received(namespace, name)?.since(before.0);
        self.server.running.check()?;
        let counted = match way {
            Way::In => count.ip_packets(LENGTH as u64, HEADERS as u64),
            Way::Out => count.datagrams((front + LENGTH) as u64),
        };
        Ok(Measured {
            program: self.program,
            way,
            flows,
            offered,
            sent,
            passed: passed(counted, sent.packets),
            cpu_us: spent.cpu_us,
            waits: spent.waits,
            others_percent: others_of(witness.finish()),
        })
    }
}

/// A sender of packets in tunnels, from the peers' side.
fn from_peers(socket: UdpSocket, lines: &[Line]) -> Sender {
    let shots = lines.iter().map(|line| {
        let packet = udp(line.address, BEYOND, (4_000, 9));
        Shot {
            octets: [&line.head[..], &packet].concat(),
            peer: LNS,
            local: line.local,
        }
    });
    Sender::new(socket, shots.collect())
}

/// A sender of packets to subscribers.
fn from_inside(place: &Place, lines: &[Line]) -> Result<Sender> {
    let shots = lines.iter().map(|line| Shot {
        octets: vec![0x5a; LENGTH - HEADERS],
        peer: (line.address, 9).into(),
        local: None,
    });
    let at = SocketAddr::from((OWN, 0));
    let socket = place.lns.run(|| UdpSocket::bind(at, &load::buffers()))??;
    Ok(Sender::new(socket, shots.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(counted: u64, sent: u64) -> Measured {
        Measured {
            program: LnsProgram::Headend,
            way: Way::Out,
            flows: Flows::One,
            offered: 1_000,
            sent: Sent {
                packets: sent,
                seconds: 1.0,
            },
            passed: passed(counted, sent),
            cpu_us: 0.0,
            waits: 0.0,
            others_percent: None,
        }
    }

    #[test]
    fn a_loss_is_never_negative() {
        for (counted, sent, percent) in [
            (990, 1_000, 1.0),
            (1_000, 1_000, 0.0),
            // Two packets of others.
            (1_002, 1_000, 0.0),
            (2, 0, 0.0),
        ] {
            let lost = measured(counted, sent).lost_percent();
            assert!((lost - percent).abs() < 1e-9, "{counted} of {sent}: {lost}");
        }
    }
}
