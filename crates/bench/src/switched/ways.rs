//! One measurement: packets sent at a rate in one direction, and what they cost the process that switches them.

use anyhow::{Context, Result};
use base::Duration;
use lab::report::CoreWitness;
use reactor::namespace::Namespace;

use super::ends::{Ends, Shots, Subscribers};
use super::load::{self, Outlet, Sent};
use super::place::{FAR, HOSTS, LAC, LISTEN, LNS, OWN, Place};
use super::{Arrival, Way, bare};
use crate::forward::packets::LENGTH;
use crate::forward::place::received;
use crate::harness::Bench;
use crate::harness::others_of;
use crate::harness::server::{LnsProgram, Server};

/// Time until all packets have come out and the measured process sleeps.
const SETTLE: std::time::Duration = std::time::Duration::from_millis(50);

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) arrival: Arrival,
    pub(super) sessions: u16,
    /// Packets per second that are to be sent.
    pub(super) rate: u64,
    pub(super) span: Duration,
}

/// Results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) program: LnsProgram,
    pub(super) arrival: Arrival,
    pub(super) way: Way,
    pub(super) sessions: u16,
    pub(super) sent: Sent,
    /// Packets that came out.
    pub(super) passed: u64,
    /// Processor time of the measured process.
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

    /// Processor time per packet.
    pub(super) fn ns(&self) -> f64 {
        self.cpu_us * 1e3 / self.passed.max(1) as f64
    }
}

/// Measures the daemon in both directions.
///
/// # Errors
/// It does not start or has ended, or the kernel's error.
pub(super) fn ours(bench: &Bench, place: &Place, case: Case) -> Result<Vec<Measured>> {
    let daemon = place.start(bench, case.arrival)?;
    let mut ends = Ends::open(place, case.arrival, case.sessions)?;
    let mut all = Vec::new();
    for way in [Way::Up, Way::Down] {
        let shots = ends.shots(way)?;
        let program = LnsProgram::Headend;
        all.push(measure(
            place,
            case,
            way,
            (program, &daemon.server),
            &mut ends,
            &shots,
        )?);
    }
    Ok(all)
}

/// Measures the bare loops of both directions.
///
/// # Errors
/// As of [`ours`].
pub(super) fn bare(bench: &Bench, place: &Place, case: Case) -> Result<Vec<Measured>> {
    // The same packets as for the daemon, from the same sockets.
    let mut ends = {
        let _daemon = place.start(bench, case.arrival)?;
        Ends::open(place, case.arrival, case.sessions)?
    };
    let mut all = Vec::new();
    for way in [Way::Up, Way::Down] {
        let mut shots = ends.shots(way)?;
        shots.daemon = match (way, case.arrival) {
            (Way::Up, Arrival::Pppoe) => None,
            (Way::Up, Arrival::L2tp) => Some(LISTEN),
            (Way::Down, _) => Some(OWN),
        };
        let peer = match way {
            Way::Up => LNS,
            Way::Down => LAC,
        };
        let replaced = (shots.strip, &shots.head[..]);
        let server = bare::start(bench, place, (case.arrival, way), replaced, peer)?;
        let program = LnsProgram::Bare;
        all.push(measure(
            place,
            case,
            way,
            (program, &server),
            &mut ends,
            &shots,
        )?);
    }
    Ok(all)
}

/// Sends the packets of one direction.
fn measure(
    place: &Place,
    case: Case,
    way: Way,
    (program, server): (LnsProgram, &Server),
    ends: &mut Ends,
    shots: &Shots,
) -> Result<Measured> {
    let (namespace, name, is_ethernet): (&Namespace, &str, bool) = match way {
        Way::Up => (&place.lns, FAR, false),
        Way::Down => (&place.hosts, HOSTS, case.arrival == Arrival::Pppoe),
    };
    let datagrams = |socket| -> Result<Outlet<'_>> {
        let peer = shots.daemon.context("the daemon's address")?;
        Ok(Outlet::udp(socket, peer))
    };
    let mut outlet = match (way, &mut ends.subscribers) {
        (Way::Up, Subscribers::Hosts(hosts)) => Outlet::ether(&mut hosts.socket),
        (Way::Up, Subscribers::Lac(lac)) => datagrams(&mut lac.socket)?,
        (Way::Down, _) => datagrams(&mut ends.lns.socket)?,
    };
    // A first burst is not measured, so that caches and memory are warm. It also fills the buffers that nobody reads.
    load::send(
        &mut outlet,
        &shots.packets,
        case.rate,
        Duration::from_millis(200),
    );
    std::thread::sleep(SETTLE);
    let witness = CoreWitness::start();
    let before = (received(namespace, name)?, server.booked()?);
    let sent = load::send(&mut outlet, &shots.packets, case.rate, case.span);
    std::thread::sleep(SETTLE);
    let spent = server.spent_since(&before.1)?;
    let count = received(namespace, name)?.since(before.0);
    server.running.check()?;
    let content = (shots.head.len() + 2 + LENGTH) as u64;
    let counted = match is_ethernet {
        true => count.frames(content),
        false => count.datagrams(content),
    };
    Ok(Measured {
        program,
        arrival: case.arrival,
        way,
        sessions: case.sessions,
        sent,
        // The interface also counts packets that the sender did not send, such as ARP.
        passed: counted.min(sent.packets),
        cpu_us: spent.cpu_us,
        waits: spent.waits,
        others_percent: others_of(witness.finish()),
    })
}
